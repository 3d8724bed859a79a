"""A recipe whose data is examined: the weights that training would begin with need not be there for that."""

import tomllib
from collections.abc import Sequence
from pathlib import Path

from jumok.errors import RecipeError
from jumok.recipe import FITTING, VOCABULARIES, Recipe, _override, _resolve, load_recipe, parse_recipe


def load_for_data(path: Path, overrides: Sequence[str] = ()) -> Recipe:
    """The recipe; without its weights, which [model] belongs to, any model that fits the task stands in for theirs."""
    try:
        return load_recipe(path, overrides)
    except RecipeError as error:
        if error.where not in (f"{path}: init", f"{path}: features"):
            raise
    tree = tomllib.loads(path.read_text("utf-8"))
    for override in overrides:
        _override(tree, override)
    tree.pop("features", None)
    task = tree.get("task")
    kind = task.get("kind") if isinstance(task, dict) else None
    if "init" in tree and kind in FITTING:
        model = FITTING[kind][1][0]
        tree |= {"model": {"kind": model}, "tokenizer": {"kind": VOCABULARIES.get(model, "bpe")}}
    return _resolve(parse_recipe(tree, where=str(path)), path)
