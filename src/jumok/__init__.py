"""jumok: from raw text to a working, inspectable sequence model."""

from typing import TYPE_CHECKING, Any

from jumok.version import __version__

__all__ = ["JumokError", "Prediction", "Predictor", "__version__", "load"]

if TYPE_CHECKING:
    from jumok.errors import JumokError
    from jumok.predictor import Prediction, Predictor, load


def __getattr__(name: str) -> Any:
    """Import the public names when they are asked for: `jumok --help` need not wait for torch."""
    if name not in __all__:
        raise AttributeError(f"module 'jumok' has no attribute '{name}'")
    from jumok import errors, predictor

    return getattr(errors, name, None) or getattr(predictor, name)
