"""docs/own-data.md: its files are read, its recipes fit them, and its table is what recipes take."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from jumok.data.cache import Cache
from jumok.new import Told
from jumok.new.corpus import look
from jumok.recipe import load_recipe, parse_recipe
from jumok.tasks import TASKS
from jumok.tasks.classification import ClassificationConfig

TEXT = (Path(__file__).parents[2] / "docs/own-data.md").read_text("utf-8")
FILES = dict(re.findall(r"```\w+ (\S+)\n(.*?)```", TEXT, re.DOTALL))
RECIPES = [tomllib.loads(block) for block in re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)]


def merged(tree: dict[str, Any]) -> dict[str, Any]:
    """The first recipe with what another says; its columns and shares are its own."""
    return {**RECIPES[0], **tree, "train": {**RECIPES[0]["train"], **tree.get("train", {})}}


def test_there_is_a_file_for_every_recipe() -> None:
    only_new = {"train.en", "train.ko", "messages.po", "chat.tsv", "stories.txt"}
    assert {tree["data"]["train"][0] for tree in RECIPES} == FILES.keys() - {"names.conll"} - only_new
    assert {tree.get("task", RECIPES[0]["task"])["kind"] for tree in RECIPES} == {
        task.name for task in TASKS if task.config and task.name not in ("translation", "language_model", "pretraining")
    }


@pytest.mark.parametrize("tree", RECIPES, ids=lambda tree: tree["data"]["train"][0])
def test_a_recipe_reads_its_file(tree: dict[str, Any], tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content, "utf-8")
    whole = merged(tree)
    files = [str(tmp_path / name) for name in whole["data"]["train"]]
    whole["data"] = {**whole["data"], "train": files, "dev": files, "dev_share": 0, "test_share": 0}
    recipe = parse_recipe(whole, where="own-data.md")
    task = recipe.kind.prepare(recipe, Cache(tmp_path / "cache"))
    assert len(task.train) == len(list(recipe.data.read("train", seed=1))) > 1


SAID = re.findall(r"^\$ jumok new (.*)\n  (Task: .*)$", TEXT, re.MULTILINE)


def test_every_file_is_looked_at() -> None:
    files = {name for command, _ in SAID for name in command.split(" --")[0].split()}
    assert files == FILES.keys() - {"names.conll", "likeness.tsv"}


@pytest.mark.parametrize(("command", "said"), SAID, ids=lambda text: text[:20])
def test_jumok_new_says_what_the_page_says(command: str, said: str, tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content, "utf-8")
    names, _, text = command.partition(" --text ")
    found = look([tmp_path / name for name in names.split()], Told(text=text or None), lambda question: "")
    assert found.why[0] == said


def test_tags_in_columns_are_read_by_the_recipe_of_spans(tmp_path: Path) -> None:
    (tmp_path / "names.conll").write_text(FILES["names.conll"], "utf-8")
    tagging = next(tree for tree in RECIPES if tree.get("task", {}).get("kind") == "tagging")
    whole = merged({**tagging, "data": {"kind": "tagged", "train": [str(tmp_path / "names.conll")]}})
    examples = list(parse_recipe(whole, where="own-data.md").data.read("train", seed=1))
    assert [example.tags for example in examples] == [["B-PER", "O", "O", "B-LOC", "I-LOC"], ["O", "O"]]


def test_the_first_recipe_is_whole(tmp_path: Path) -> None:
    (tmp_path / "reviews.tsv").write_text(FILES["reviews.tsv"], "utf-8")
    (tmp_path / "recipe.toml").write_text(re.search(r"```toml\n(.*?)```", TEXT, re.DOTALL)[1], "utf-8")  # type: ignore[index]
    assert load_recipe(tmp_path / "recipe.toml").data.files("train") == [str(tmp_path / "reviews.tsv")]


def test_the_metrics_are_those_that_recipes_take() -> None:
    rows = dict(re.findall(r"^\| (\w[^|]*?) \| ([a-z0-9_, ]+) \|$", TEXT, re.MULTILINE))
    told = {task: metrics.split(", ") for task, metrics in rows.items() if task != "task"}
    expected: dict[str, list[str]] = {}
    for task in TASKS:
        assert task.config is not None or task.name == "embedding"
        match task.name:
            case "classification":
                for kind in ("class", "labels", "number"):
                    row = "classification, a class" if kind == "class" else f'classification, `predicts = "{kind}"`'
                    expected[row] = [*task.metrics(ClassificationConfig(predicts=kind))]
            case "tagging" | "relation" | "answering" | "choice" if task.config is not None:
                expected[task.name] = [*task.metrics(task.config())]
    assert told == expected
