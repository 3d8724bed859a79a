"""What the shell completes: recipes and runs. Nothing here imports torch, so that a key press is answered at once."""

from collections.abc import Callable
from pathlib import Path


def shipped(incomplete: str) -> list[str]:
    """Recipes that come with jumok."""
    from jumok.shipped import shipped_names

    return [name for name in shipped_names() if name.startswith(incomplete)]


def recipes(incomplete: str) -> list[str]:
    """Recipes that come with jumok, and the user's."""
    return [*shipped(incomplete), *_below(incomplete, lambda path: path.suffix == ".toml")]


def runs(incomplete: str) -> list[str]:
    """Runs here, in the folder runs, or in the one that has been typed."""
    here = "" if "/" in incomplete else "runs/"
    found = [*_below(incomplete, _is_run), *(_below(here + incomplete, _is_run) if here else [])]
    return list(dict.fromkeys(found))


def recipes_and_runs(incomplete: str) -> list[str]:
    return list(dict.fromkeys([*recipes(incomplete), *runs(incomplete)]))


def _is_run(path: Path) -> bool:
    return any((path / file).exists() for file in ("recipe.json", "model/config.json", "lock"))


def _below(incomplete: str, wanted: Callable[[Path], bool]) -> list[str]:
    """Wanted paths that begin like this, and the folders on the way to others."""
    folder, _, begin = incomplete.rpartition("/")
    prefix = incomplete[: len(incomplete) - len(begin)]
    try:
        paths = sorted(Path(folder or (prefix or ".")).iterdir())
    except OSError:
        return []
    shown = [path for path in paths if path.name.startswith(begin) and (begin or not path.name.startswith("."))]
    return [
        f"{prefix}{path.name}" if wanted(path) else f"{prefix}{path.name}/"
        for path in shown
        if wanted(path) or path.is_dir()
    ]
