"""Recipes by name, and what the shell completes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import jumok.shipped
from jumok.cli import app
from jumok.cli.completion import recipes, runs
from jumok.cli.train import run_name
from jumok.errors import InputError, RecipeError
from jumok.recipe import load_recipe
from jumok.shipped import described, find_recipe, shipped_folder, shipped_names

ROOT = Path(__file__).parents[3]
DATA = "kind = 'labelled'\ntrain = ['a.tsv']\ndev = ['a.tsv']\ntest = ['a.tsv']"
RECIPE = (
    f"task = {{ kind = 'classification' }}\nmodel = {{ kind = 'rnn' }}\n[data]\n{DATA}\n[train]\nmetric = 'accuracy'\n"
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments])


def refused(*arguments: str) -> InputError:
    error = command(*arguments).exception
    assert isinstance(error, InputError)
    return error


def test_every_recipe_has_a_name_and_is_listed(here: Path) -> None:
    folder = ROOT / "recipes"
    expected = sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.toml"))
    listed = json.loads(command("recipes", "--json").stdout)["recipes"]
    assert [one["name"] for one in listed] == expected
    assert all(one["description"] for one in listed)
    said = command("recipes").stdout
    assert [name for name in expected if name not in said] == []
    for name in ("toy/lstm", "toy/tagger", "toy/bert"):
        assert described(name).task == load_recipe(ROOT / f"recipes/{name}.toml").task.kind


def test_a_recipe_is_printed_as_it_is(here: Path) -> None:
    text = (ROOT / "recipes/toy/lstm.toml").read_text("utf-8")
    assert command("recipes", "toy/lstm").stdout == text
    assert json.loads(command("recipes", "toy/lstm", "--json").stdout)["text"] == text


def test_a_name_is_the_recipe_that_comes_with_jumok(here: Path) -> None:
    assert load_recipe(Path("toy/lstm")) == load_recipe(ROOT / "recipes/toy/lstm.toml")
    assert json.loads(command("show", "toy/lstm", "--json").stdout)["recipe"]["model"]["cell"] == "lstm"
    assert json.loads(command("doctor", "toy/classifier-last", "--json").stdout)["findings"] is not None
    assert run_name(find_recipe(Path("toy/lstm"))) == "toy-lstm"
    assert run_name(find_recipe(Path("quickstart"))) == "quickstart"


def test_what_the_user_has_comes_first(here: Path) -> None:
    (here / "toy").mkdir()
    (here / "toy/lstm.toml").write_text("")
    assert find_recipe(Path("toy/lstm.toml")) == Path("toy/lstm.toml")
    (here / "toy/lstm").mkdir()
    assert find_recipe(Path("toy/lstm")) == Path("toy/lstm")
    assert find_recipe(Path("toy/gpt.toml")) == shipped_folder() / "toy/gpt.toml"


@pytest.mark.parametrize("what", ["train", "show"])
@pytest.mark.parametrize(
    ("given", "code", "guess"),
    [("toy/lstn", "recipe.unknown_name", "toy/lstm"), ("toy/lstn.toml", "recipe.unreadable", "toy/lstm")],
)
def test_an_unknown_name_brings_the_nearest(here: Path, what: str, given: str, code: str, guess: str) -> None:
    error = refused(what, given)
    assert (error.code, error.where) == (code, given)
    assert guess in (error.hint or "")
    assert list(here.iterdir()) == []


def test_an_unknown_name_is_not_printed(here: Path) -> None:
    assert refused("recipes", "../pyproject").code == "recipe.unknown_name"


def test_data_of_a_recipe_in_a_package_is_here_or_in_the_data_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = here / "package/recipes"
    (package / "own").mkdir(parents=True)
    (package / "quickstart.toml").write_text("")
    (package / "own/news.toml").write_text(RECIPE)
    (here / "elsewhere").mkdir()
    monkeypatch.setattr("jumok.shipped.__file__", str(here / "package/shipped.py"))
    jumok.shipped.shipped_folder.cache_clear()
    monkeypatch.delenv("JUMOK_DATA", raising=False)
    try:
        assert shipped_names() == ["own/news", "quickstart"]
        with pytest.raises(RecipeError) as caught:
            load_recipe(Path("own/news"))
        assert caught.value.code == "recipe.no_data_file"
        (here / "a.tsv").write_text("text\tlabel\n")
        assert load_recipe(Path("own/news")).data.train == [str(here / "a.tsv")]
        (here / "a.tsv").rename(here / "elsewhere/a.tsv")
        monkeypatch.setenv("JUMOK_DATA", str(here / "elsewhere"))
        assert load_recipe(Path("own/news")).data.train == [str(here / "elsewhere/a.tsv")]
    finally:
        jumok.shipped.shipped_folder.cache_clear()


def test_runs_and_recipes_are_completed(here: Path) -> None:
    for run in ("runs/one", "runs/other", "mine"):
        (here / run).mkdir(parents=True)
        (here / run / "recipe.json").write_text("{}")
    (here / "own.toml").write_text("")
    assert runs("") == ["mine", "runs/", "runs/one", "runs/other"]
    assert runs("o") == ["runs/one", "runs/other"]
    assert runs("runs/on") == ["runs/one"]
    assert runs("no/such") == []
    assert recipes("o") == ["own.toml"]
    assert recipes("toy/ls") == ["toy/lstm", "toy/lstm-reversed"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_without_torch(here: Path, shell: str) -> None:
    code = (
        "import atexit, sys; sys.argv = ['jumok']\n"
        "atexit.register(lambda: print('torch' in sys.modules, file=sys.stderr))\n"
        "from jumok.cli import main; main()"
    )
    asked = {"_JUMOK_COMPLETE": f"complete_{shell}", "COMP_WORDS": "jumok train toy/lstm-", "COMP_CWORD": "2"}
    asked |= {"_TYPER_COMPLETE_ARGS": "jumok train toy/lstm-", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    said = subprocess.run([sys.executable, "-c", code], env={**os.environ, **asked}, capture_output=True, text=True)
    assert "toy/lstm-reversed" in said.stdout
    assert "toy/lstm\n" not in said.stdout
    assert said.stderr.strip() == "False"


def test_the_script_of_a_shell_can_be_shown() -> None:
    assert {"--install-completion", "--show-completion"} <= set(command("--help").stdout.split())


def test_a_wrong_column_leaves_no_folder_behind(here: Path) -> None:
    (here / "a.tsv").write_text("text\tlabel\nthe sun\tgood\nrain\tbad\n")
    (here / "r.toml").write_text(RECIPE)
    before = sorted(here.iterdir())
    error = refused("train", "r.toml", "--set", "data.text=sentence", "--out", "runs/new/one")
    assert error.where == f"{here / 'a.tsv'}:1"
    assert "sentence" in error.what
    assert "text, label" in (error.hint or "")
    assert sorted(here.iterdir()) == before
    (here / "runs").mkdir()
    assert refused("train", "r.toml", "--set", "data.label=class", "--out", "runs/new").code == error.code
    assert [path.name for path in here.rglob("runs/*")] == []


def test_a_folder_that_was_there_stays(here: Path) -> None:
    (here / "a.tsv").write_text("text\tlabel\nthe sun\tgood\nrain\tbad\n")
    (here / "r.toml").write_text(RECIPE)
    (here / "mine").mkdir()
    refused("train", "r.toml", "--set", "data.text=sentence", "--out", "mine")
    assert (here / "mine").is_dir()


def unset(here: Path, *overrides: str, text: str = RECIPE) -> dict[str, object]:
    (here / "a.tsv").write_text("text\tlabel\n")
    (here / "r.toml").write_text(text)
    arguments = [argument for override in overrides for argument in ("--set", override)]
    found = command("show", "r.toml", "--json", *arguments)
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    tree: dict[str, object] = json.loads(found.stdout)["recipe"]
    return tree


def test_a_key_that_is_unset_has_its_default(here: Path) -> None:
    text = RECIPE + "steps = 7\n"
    tree = unset(here, "train.steps=", text=text)
    assert tree["train"]["steps"] == 100_000  # type: ignore[index]
    assert unset(here, "train.steps=", "train.steps=9", text=text)["train"]["steps"] == 9  # type: ignore[index]
    assert unset(here, "train.batch_tokens=", text=text)["train"]["steps"] == 7  # type: ignore[index]
    # What belongs to another kind goes with it.
    text = RECIPE.replace("{ kind = 'rnn' }", "{ kind = 'rnn', cell = 'gru' }")
    tree = unset(here, "model.kind=bert", "model.cell=", "tokenizer.kind=wordpiece", text=text)
    assert tree["model"]["kind"] == "bert"  # type: ignore[index]
    assert unset(here, "train=", "train.metric=mcc")["train"]["metric"] == "mcc"  # type: ignore[index]


@pytest.mark.parametrize(
    ("override", "code", "guess"),
    [
        ("train.step=", "recipe.unknown_key", "train.steps"),
        ("data.txt=", "recipe.unknown_key", "data.text"),
        ("model.n_heads=", "recipe.unknown_key", ""),
        ("data.kind=", "recipe.missing_key", ""),
    ],
)
def test_what_cannot_be_unset_is_named(here: Path, override: str, code: str, guess: str) -> None:
    with pytest.raises(RecipeError) as caught:
        unset(here, override)
    assert (caught.value.code, caught.value.where) == (code, f"--set {override}")
    assert guess in (caught.value.hint or "")


def test_an_option_of_prediction_cannot_be_unset(here: Path) -> None:
    from jumok.cli.arguments import options

    with pytest.raises(InputError) as caught:
        options(["decode.beam="])
    assert caught.value.code == "input.options"


@pytest.mark.parametrize(
    ("task", "own", "others"),
    [
        ("predicts = 'class'", ("accuracy", "macro_f1", "mcc"), ("bleu", "span_f1", "pearson")),
        ("predicts = 'number'", ("pearson", "spearman"), ("bleu", "accuracy")),
    ],
)
def test_an_unknown_metric_brings_those_of_the_task_only(
    here: Path, task: str, own: tuple[str, ...], others: tuple[str, ...]
) -> None:
    text = RECIPE.replace("kind = 'classification'", f"kind = 'classification', {task}")
    with pytest.raises(RecipeError) as caught:
        unset(here, "train.metric=pearsn", text=text)
    assert caught.value.code == "recipe.value"
    assert [name for name in own if f"'{name}'" not in caught.value.what] == []
    assert [name for name in others if name in caught.value.what] == []
    assert caught.value.hint == ("did you mean pearson?" if "number" in task else None)
