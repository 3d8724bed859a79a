"""The recipes that come with jumok, by name: `toy/lstm` is recipes/toy/lstm.toml, in a checkout or in the package."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jumok.errors import RecipeError, nearest
from jumok.toml import parse_toml

QUICKSTART = "quickstart.toml"


@dataclass(frozen=True, slots=True)
class Shipped:
    """A recipe that comes with jumok."""

    name: str
    task: str
    description: str
    path: Path


@cache
def shipped_folder() -> Path:
    """Inside the installed package, or beside it in a checkout."""
    package = Path(__file__).parent
    inside, beside = package / "recipes", package.parents[1] / "recipes"
    return beside if (beside / QUICKSTART).exists() and not inside.is_dir() else inside


def shipped_names() -> list[str]:
    """All names; none if somebody copied the package without its recipes."""
    folder = shipped_folder()
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.toml"))


def shipped_recipe(name: str) -> Path:
    """The file of a recipe of that name."""
    if not (names := shipped_names()):
        hint = "reinstall jumok"
        raise RecipeError("jumok has no recipes here", where=shipped_folder(), hint=hint, code="recipe.not_shipped")
    if name not in names:
        raise unknown(name, names)
    return shipped_folder() / f"{name}.toml"


def unknown(name: str, names: list[str]) -> RecipeError:
    guess = nearest(name, names)
    hint = f"{guess} `jumok recipes` lists them all" if guess else "`jumok recipes` lists those that come with jumok"
    return RecipeError("no such recipe, nor a file of that name", where=name, hint=hint, code="recipe.unknown_name")


def find_recipe(given: Path) -> Path:
    """The user's file or folder, if there is one of that name, or else a recipe that comes with jumok."""
    if given.exists() or given.is_absolute():
        return given
    name, names = given.as_posix().removesuffix(".toml"), shipped_names()
    if name in names:
        return shipped_folder() / f"{name}.toml"
    if given.suffix:
        return given  # whoever reads the file says that it is missing
    raise unknown(name, names)


def is_shipped(path: Path) -> bool:
    return path.resolve().is_relative_to(shipped_folder().resolve())


def described(name: str) -> Shipped:
    path = shipped_recipe(name)
    text = path.read_text("utf-8")
    tree, _ = parse_toml(text)
    task = tree.get("task", {}).get("kind", "translation")
    return Shipped(name, task, tree.get("description") or text.partition("\n")[0].lstrip("# "), path)
