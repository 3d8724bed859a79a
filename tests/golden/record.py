"""First losses of the toy recipes, written to losses.json: a change that should not move numbers must not move them."""

import json
import os
import tempfile
from itertools import islice
from pathlib import Path

import torch

from jumok.assemble import assemble
from jumok.recipe import load_recipe
from jumok.train.folder import RunFolder
from jumok.train.loop import Step

ROOT = Path(__file__).parents[2]
RECIPES = ("toy/reverse.toml", "toy/copy.toml", "toy/bert.toml", "toy/gpt.toml", "toy/elmo.toml", "toy/tagger.toml")
LOSSES = Path(__file__).parent / "losses.json"
STEPS = 20


def first_losses(recipe: str, out: Path) -> list[float]:
    """The losses of the first steps, on one thread."""
    overrides = ["data.n_train=2000", "train.threads=1", "data.n_dev=10", f"train.steps={STEPS + 1}"]
    folder = RunFolder(out)
    threads = torch.get_num_threads()
    run = assemble(load_recipe(ROOT / "recipes" / recipe, overrides), folder)
    try:
        steps = (event for event in run.train(lambda: False) if isinstance(event, Step))
        return [event.loss for event in islice(steps, STEPS)]
    finally:
        folder.unlock()
        torch.set_num_threads(threads)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["JUMOK_CACHE"] = folder
        losses = {recipe: first_losses(recipe, Path(folder) / str(i)) for i, recipe in enumerate(RECIPES)}
    LOSSES.write_text(json.dumps(losses, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
