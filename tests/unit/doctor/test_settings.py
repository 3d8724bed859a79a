"""What a recipe says of its labels or answers is looked at beside its data, and told where training would refuse it."""

from pathlib import Path

import pytest

from jumok.data.cache import Cache
from jumok.doctor import examine_data
from jumok.errors import DataError
from jumok.recipe import load_recipe
from jumok.tasks import task_named

TOYS = Path(__file__).parents[3] / "recipes/toy"
FEW = ["data.n_train=40", "data.n_dev=10", "data.n_test=10"]


def prepare(path: Path, overrides: list[str], cache: Path) -> object:
    recipe = load_recipe(path, overrides)
    return task_named(recipe.task.kind).prepare(recipe, Cache(cache))


@pytest.mark.parametrize(
    ("toy", "setting", "facts"),
    [
        ("relations", "task.no_relation=nothing", ["task.no_relation", "(nothing)"]),
        ("classifier-last", "task.class_weights.좋음=2.0", ["task.class_weights", "(좋음)"]),
        ("topics", "task.class_weights.weather=2.0", ["task.class_weights", "(weather)"]),
        ("questions", "task.no_answer=false", ["task.no_answer = true", " of 60"]),
    ],
)
def test_what_training_refuses_is_told(tmp_path: Path, toy: str, setting: str, facts: list[str]) -> None:
    recipe, overrides = TOYS / f"{toy}.toml", [*FEW, setting]
    (found,) = (finding for finding in examine_data([recipe], overrides=overrides) if finding.code == "recipe.settings")
    assert (found.severity, [fact for fact in facts if fact not in found.message]) == ("error", [])
    with pytest.raises(DataError):
        prepare(recipe, overrides, tmp_path)


@pytest.mark.parametrize("toy", ["relations", "classifier-last", "topics", "questions", "tagger", "similarity"])
def test_what_it_does_not_refuse_is_not(tmp_path: Path, toy: str) -> None:
    recipe = TOYS / f"{toy}.toml"
    assert not [finding for finding in examine_data([recipe], overrides=FEW) if finding.code == "recipe.settings"]
    assert prepare(recipe, FEW, tmp_path)


def test_settings_of_a_recipe_that_has_no_training_data_yet(tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text("text\tlabel\na\tred\n", "utf-8")
    (recipe := tmp_path / "recipe.toml").write_text(
        '[task]\nkind = "classification"\nclass_weights = { red = 2.0 }\n'
        f'[data]\nkind = "labelled"\ntest = ["{tmp_path}/test.tsv"]\n[model]\nkind = "rnn"\n',
        "utf-8",
    )
    (found,) = (finding for finding in examine_data([recipe]) if finding.code == "recipe.settings")
    assert "(red)" in found.message


def test_several_labels_of_a_text_are_taken_apart(tmp_path: Path) -> None:
    train = tmp_path / "train.tsv"
    train.write_text("text\tlabel\nboth of them\tred; blue\nnone\t;\n", "utf-8")
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        '[task]\nkind = "classification"\npredicts = "labels"\nclass_weights = { red = 2.0, green = 3.0 }\n'
        f'[data]\nkind = "labelled"\ntrain = ["{train}"]\nseparator = ";"\n[model]\nkind = "rnn"\n',
        "utf-8",
    )
    (found,) = (finding for finding in examine_data([recipe]) if finding.code == "recipe.settings")
    assert "(green)" in found.message
    assert found.message.endswith("blue, red.")
