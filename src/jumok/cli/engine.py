"""The fast engine of a run, built when a command first needs it."""

from collections.abc import Callable
from pathlib import Path

from jumok.errors import CheckpointError, JumokError


def ensure_engine(run: Path, say: Callable[[str], None]) -> None:
    """Build RUN/engine if there is none that can be used. If that fails the reference predicts, and a note says why."""
    from jumok.engines.fast_folder import engine_folder, read_engine
    from jumok.hub.files import model_folder
    from jumok.predictor import NOT_INSTALLED, why_not_fast

    try:
        path = model_folder(run)
    except (CheckpointError, OSError):
        return  # `load` says what is wrong
    if (reason := why_not_fast([path])) is not None or path == run:
        if reason == NOT_INSTALLED:
            say(f"note: {reason}")
        return
    try:
        read_engine(engine_folder(path), path)
    except CheckpointError as missing:
        from jumok.building import build_engine  # imports torch

        say(f"building the fast engine, once ({missing.what})")
        try:
            say(f"engine: {build_engine(run)}")
        except (JumokError, OSError) as error:
            say(f"note: the reference engine predicts: {error}")
