"""Recipes: defaults filled in, every mistake named by its path, overrides, and data files found."""

import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from jumok.data.made import SyntheticData
from jumok.data.sources import (
    ChoiceData,
    DataConfig,
    LabelledData,
    ParallelData,
    QuestionData,
    RelationData,
    TaggedData,
    TextData,
)
from jumok.decode.search import DecodeConfig
from jumok.errors import RecipeError
from jumok.models import ModelConfig, RnnConfig, Seq2SeqConfig, TransformerConfig
from jumok.recipe import Recipe, TaskConfig, asked_options, load_recipe, parse_recipe, recipe_tree
from jumok.tasks.answering import AnsweringConfig
from jumok.tasks.choice import ChoiceConfig
from jumok.tasks.classification import ClassificationConfig
from jumok.tasks.language_model import LanguageModelConfig
from jumok.tasks.relation import RelationConfig
from jumok.tasks.tagging import TaggingConfig
from jumok.tasks.translation import TranslationConfig
from jumok.text.vocabulary import TokenizerConfig
from jumok.train.layers import TransferConfig
from jumok.train.loop import TrainConfig

SYNTHETIC = {"kind": "synthetic", "problem": "reverse"}
PARALLEL = {"kind": "parallel", "source": "en", "target": "ko"}
MINIMAL = '[data]\nkind = "synthetic"\nproblem = "reverse"\n'
Write = Callable[[str], Path]


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUMOK_DATA", raising=False)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_recipe(text: str) -> Path:
        path = tmp_path / "recipe.toml"
        path.write_text(text, "utf-8")
        return path

    return write_recipe


def parse(**branches: Any) -> Recipe:
    return parse_recipe({"data": SYNTHETIC, **branches}, where="recipe.toml")


def mistakes(tree: dict[str, Any]) -> dict[str, str]:
    """The message for each key path that the error names."""
    with pytest.raises(RecipeError) as caught:
        parse_recipe(tree, where="recipe.toml")
    assert caught.value.where == "recipe.toml"
    lines = (line.strip().partition(": ") for line in (caught.value.right or "").splitlines())
    return {path: message for path, _, message in lines}


# defaults


def test_defaults_are_filled_in() -> None:
    recipe = parse()
    assert recipe == Recipe(data=SyntheticData(problem="reverse"))
    assert recipe.seed == 1
    assert recipe.task == TranslationConfig()
    assert recipe.tokenizer == TokenizerConfig()
    assert recipe.model == TransformerConfig()
    assert recipe.train == TrainConfig()
    assert recipe.decode == DecodeConfig()


def test_given_values_are_taken() -> None:
    recipe = parse(
        seed=7,
        model={"d_model": 64, "dropout": 0},
        train={"optimizer": {"schedule": "linear", "learning_rate": 1, "clip_norm": 2.5}, "patience": 3},
    )
    assert recipe.seed == 7
    assert recipe.model == TransformerConfig(d_model=64, dropout=0.0)
    assert recipe.train.optimizer.learning_rate == 1.0
    assert recipe.train.optimizer.beta2 == 0.98
    assert recipe.train.patience == 3


def test_the_kind_of_data_chooses_its_branch() -> None:
    parallel = parse_recipe({"data": {**PARALLEL, "train": [["a", "b"], ["c.tsv"]]}}, where="x")
    assert parallel.data == ParallelData(source="en", target="ko", train=[["a", "b"], ["c.tsv"]])
    assert isinstance(parse().data, SyntheticData)


def test_the_toy_recipe_of_the_project() -> None:
    path = Path(__file__).parents[2] / "recipes" / "toy" / "reverse.toml"
    recipe = load_recipe(path)
    assert recipe.data == SyntheticData(problem="reverse", n_train=20_000, n_dev=100, n_test=200, length=10)
    assert recipe.train.optimizer.schedule == "linear"


# mistakes


def test_unknown_keys_at_every_depth() -> None:
    found = mistakes(
        {
            "sed": 1,
            "data": {**SYNTHETIC, "lenght": 3},
            "task": {"smoothing": 0.1},
            "tokenizer": {"size": 3},
            "model": {"width": 3},
            "decode": {"beams": 4},
            "train": {"step": 3, "optimizer": {"beta3": 0.9}},
        }
    )
    paths = [
        "sed",
        "data.lenght",
        "task.smoothing",
        "tokenizer.size",
        "model.width",
        "decode.beams",
        "train.step",
        "train.optimizer.beta3",
    ]
    assert found == dict.fromkeys(paths, "there is no such key")


def test_unknown_keys_of_parallel_data() -> None:
    message = 'there is no such key when data.kind is "parallel"; it belongs to "synthetic"'
    assert mistakes({"data": {**PARALLEL, "problem": "reverse"}}) == {"data.problem": message}


@pytest.mark.parametrize("key", ["parallel", "synthetic"])
def test_an_unknown_key_may_be_called_like_a_kind(key: str) -> None:
    assert mistakes({"data": {**SYNTHETIC, key: 1}}) == {f"data.{key}": "there is no such key"}


@pytest.mark.parametrize(
    ("tree", "path"),
    [
        ({"seed": "one"}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"seed": [1]}, "seed"),
        ({"description": 3}, "description"),
        ({"model": 3}, "model"),
        ({"model": {"d_model": "wide"}}, "model.d_model"),
        ({"model": {"norm": "batch"}}, "model.norm"),
        ({"tokenizer": {"joint": "perhaps"}}, "tokenizer.joint"),
        ({"tokenizer": {"kind": "unigram"}}, "tokenizer.kind"),
        ({"train": {"optimizer": "adam"}}, "train.optimizer"),
        ({"train": {"optimizer": {"warmup": "long"}}}, "train.optimizer.warmup"),
        ({"train": {"device": "tpu"}}, "train.device"),
        ({"data": "multi30k"}, "data"),
        ({"data": {"kind": "synthetic", "problem": "sort"}}, "data.problem"),
        ({"data": {**PARALLEL, "train": ["a", "b"]}}, "data.train.0"),
        ({"data": {**PARALLEL, "train": [["a", 3]]}}, "data.train.0.1"),
        ({"data": {**PARALLEL, "columns": ["only one"]}}, "data.columns.1"),
    ],
)
def test_wrong_types_are_named(tree: dict[str, Any], path: str) -> None:
    assert path in mistakes({"data": SYNTHETIC, **tree})


@pytest.mark.parametrize(
    ("tree", "path"),
    [
        ({"seed": "1"}, "seed"),
        ({"seed": True}, "seed"),
        ({"train": {"steps": 200.0}}, "train.steps"),
        ({"train": {"steps": "200"}}, "train.steps"),
        ({"train": {"tensorboard": "yes"}}, "train.tensorboard"),
        ({"tokenizer": {"joint": 1}}, "tokenizer.joint"),
        ({"model": {"dropout": "0.1"}}, "model.dropout"),
        ({"model": {"dropout": True}}, "model.dropout"),
    ],
)
def test_types_are_not_guessed(tree: dict[str, Any], path: str) -> None:
    assert list(mistakes({"data": SYNTHETIC, **tree})) == [path]


@pytest.mark.parametrize(("task", "final"), [("translation", "average"), ("pretraining", "best")])
def test_translation_averages_and_other_tasks_take_the_best(task: str, final: str) -> None:
    stories = {"data": {"kind": "toy_stories"}, "model": {"kind": "bert"}, "tokenizer": {"kind": "wordpiece"}}
    others = {"data": {"kind": "synthetic", "problem": "copy"}} if task == "translation" else stories
    tree = {"task": {"kind": task}, **others}
    assert parse_recipe(tree, where="").train.final == final
    assert parse_recipe({**tree, "train": {"final": "last"}}, where="").train.final == "last"


@pytest.mark.parametrize(
    ("section", "change", "said"),
    [
        ("data", {"max_len": 4}, "data.max_len must be at least 5"),
        ("task", {"mask_share": 0.0}, "mask_share"),
    ],
)
def test_pretraining_has_something_to_read_and_to_guess(section: str, change: dict[str, Any], said: str) -> None:
    tree: dict[str, Any] = {
        "task": {"kind": "pretraining"},
        "data": {"kind": "documents", "train": ["a.txt"]},
        "model": {"kind": "bert"},
        "tokenizer": {"kind": "wordpiece"},
    }
    tree[section] |= change
    with pytest.raises(RecipeError, match=said):
        parse_recipe(tree, where="")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("key", ["learning_rate", "clip_norm", "weight_decay", "epsilon"])
def test_numbers_are_finite(key: str, value: float) -> None:
    optimizer = {"schedule": "linear", "learning_rate": 0.1, key: value}
    found = mistakes({"data": SYNTHETIC, "train": {"optimizer": optimizer}})
    assert [path for path in found if path.startswith("train.optimizer")]


def test_a_wrong_value_is_shown() -> None:
    assert "'wide'" in mistakes({"data": SYNTHETIC, "model": {"d_model": "wide"}})["model.d_model"]


def test_missing_keys_are_named() -> None:
    assert mistakes({}) == {"data": "is missing"}
    assert mistakes({"data": {"kind": "parallel", "source": "en"}}) == {"data.target": "is missing"}
    assert mistakes({"data": {"kind": "synthetic"}}) == {"data.problem": "is missing"}


def test_the_kinds_of_data_are_named() -> None:
    files = "'parallel', 'synthetic', 'labelled', 'tagged', 'relations', 'questions', 'choices', 'text', 'documents'"
    toys = "'toy_reviews', 'toy_topics', 'toy_similarity', 'toy_names', 'toy_josa', 'toy_relations'"
    kinds = f"{files}, {toys}, 'toy_questions', 'toy_choices', 'toy_grammar', 'toy_stories'"
    assert mistakes({"data": {"kind": "web"}}) == {"data.kind": f"must be one of {kinds} (got 'web')"}
    assert mistakes({"data": {"problem": "reverse"}}) == {"data.kind": "is missing"}


@pytest.mark.parametrize(
    ("tree", "path", "message"),
    [
        ({"tokenizer": {"joint": False}}, "the recipe", "tie_embeddings"),
        ({"model": {"positions": "learned", "max_len": 256}}, "the recipe", "data.max_len"),
        ({"model": {"d_model": 10, "n_heads": 3}}, "model", "n_heads"),
        ({"tokenizer": {"vocab_size": 100}}, "tokenizer", "vocab_size"),
        ({"train": {"optimizer": {"learning_rate": 0.1}}}, "train.optimizer", "noam"),
        ({"train": {"optimizer": {"schedule": "linear"}}}, "train.optimizer", "learning_rate"),
        ({"decode": {"beam": 2, "n_best": 3}}, "decode", "at most beam"),
    ],
)
def test_impossible_relations_are_named(tree: dict[str, Any], path: str, message: str) -> None:
    found = mistakes({"data": SYNTHETIC, **tree})
    assert list(found) == [path]
    assert message in found[path]


@pytest.mark.parametrize(
    ("tree", "path", "message"),
    [
        ({"seed": -1}, "seed", "must be at least 0 (got -1)"),
        ({"model": {"n_heads": 0}}, "model.n_heads", "must be at least 1 (got 0)"),
        ({"model": {"d_k": 0}}, "model.d_k", "must be at least 1 (got 0)"),
        ({"model": {"dropout": 1.0}}, "model.dropout", "must be below 1 (got 1.0)"),
        ({"model": {"dropout": -0.5}}, "model.dropout", "must be at least 0 (got -0.5)"),
        ({"task": {"label_smoothing": 1.0}}, "task.label_smoothing", "must be below 1 (got 1.0)"),
        ({"train": {"save_every": 0, "final": "best"}}, "train.save_every", "must be over 0 (got 0)"),
        ({"train": {"evaluate_every": "x"}}, "train.evaluate_every", "must be a number (got 'x')"),
        ({"train": {"evaluate_every": 0}}, "train.evaluate_every", "must be over 0 (got 0)"),
        ({"train": {"evaluate_every": True}}, "train.evaluate_every", "must be a number (got True)"),
        (
            {"train": {"evaluate_every": 1.5}},
            "train.evaluate_every",
            "must be a whole number, or below 1 a share of all (got 1.5)",
        ),
        (
            {"train": {"optimizer": {"warmup": 1.0}}},
            "train.optimizer.warmup",
            "must be a whole number, or below 1 a share of all (got 1.0)",
        ),
        ({"train": {"transfer": {"unfreeze_every": -2}}}, "train.transfer.unfreeze_every", "must be over 0 (got -2)"),
        ({"train": {"transfer": {"layer_decay": 1.1}}}, "train.transfer.layer_decay", "must be at most 1 (got 1.1)"),
        ({"train": {"epochs": 0}}, "train.epochs", "must be at least 1 (got 0)"),
        ({"train": {"epochs": 1.5}}, "train.epochs", "must be a whole number (got 1.5)"),
        ({"train": {"optimizer": {"warmup": -1}}}, "train.optimizer.warmup", "must be at least 0 (got -1)"),
        ({"data": {**PARALLEL, "max_len": 0}}, "data.max_len", "must be at least 1 (got 0)"),
        ({"data": {**PARALLEL, "dev": [""] * 3}}, "data.dev", "must have at most 2 items, not 3 (got ['', '', ''])"),
        ({"decode": {"top_p": 1.5}}, "decode.top_p", "must be at most 1 (got 1.5)"),
        ({"decode": {"temperature": 0}}, "decode.temperature", "must be over 0 (got 0)"),
        ({"model": {"d_ff": "wide"}}, "model.d_ff", "must be a whole number (got 'wide')"),
        ({"model": {"norm": "batch"}}, "model.norm", "must be 'post' or 'pre' (got 'batch')"),
        ({"tokenizer": []}, "tokenizer", "must be a table of keys and values (got [])"),
    ],
)
def test_ranges_and_types_are_told_in_our_words(tree: dict[str, Any], path: str, message: str) -> None:
    assert mistakes({"data": SYNTHETIC, **tree}) == {path: message}


def test_two_relations_of_the_root_are_both_named() -> None:
    tree = {"data": SYNTHETIC, "tokenizer": {"joint": False}, "model": {"positions": "learned", "max_len": 9}}
    with pytest.raises(RecipeError, match=r"2 errors\n.*\n.*tie_embeddings.*\n.*data\.max_len"):
        parse_recipe(tree, where="recipe.toml")


def test_a_text_that_is_no_unicode_is_refused() -> None:
    assert "surrogate" in mistakes({"data": SYNTHETIC, "description": "\udcff"})["the recipe"]


def test_relations_that_are_possible() -> None:
    assert parse(tokenizer={"joint": False}, model={"tie_embeddings": "target"}).tokenizer.joint is False
    assert parse(model={"positions": "learned", "max_len": 257}).model.max_len == 257
    assert parse(model={"d_model": 10, "n_heads": 3, "d_k": 4, "d_v": 4}).model.d_k == 4


def test_all_mistakes_are_named_at_once() -> None:
    tree = {
        "zeed": 3,
        "data": {**PARALLEL, "lower": 1, "train": [["a"], "b", ["a", 1]]},
        "task": {"label_smoothing": 2},
        "tokenizer": {"kind": "letters"},
        "model": {"d_model": "wide", "x": 1},
        "train": {"optimizer": {"beta3": 1}},
        "decode": {"beam": -1},
    }
    found = mistakes(tree)
    assert set(found) == {
        "zeed",
        "data.lower",
        "data.train.1",
        "data.train.2.1",
        "task.label_smoothing",
        "tokenizer.kind",
        "model.d_model",
        "model.x",
        "train.optimizer.beta3",
        "decode.beam",
    }
    with pytest.raises(RecipeError, match="the recipe has 10 errors"):
        parse_recipe(tree, where="recipe.toml")


def test_ranges_of_one_section_and_relations_of_another_are_named_at_once() -> None:
    tree = {
        "data": {**SYNTHETIC, "length": 2},
        "model": {"n_heads": 0, "n_layers": -1},
        "train": {"optimizer": {"warmup": -1}},
        "decode": {"beam": 2, "n_best": 3},
    }
    assert mistakes(tree) == {
        "data.length": "must be at least 3 (got 2)",
        "model.n_heads": "must be at least 1 (got 0)",
        "model.n_layers": "must be at least 1 (got -1)",
        "train.optimizer.warmup": "must be at least 0 (got -1)",
        "decode": 'n_best can be at most beam, and 1 unless method = "beam"',
    }


def test_one_mistake_is_an_error() -> None:
    with pytest.raises(RecipeError, match="the recipe has an error"):
        parse(zeed=1)


# overrides


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("seed=7", "seed", 7),
        ("description=words", "description", "words"),
        ("description=two words = three", "description", "two words = three"),
        ('description="7"', "description", "7"),
        ("description=", "description", ""),
        ("description=한국어", "description", "한국어"),
        ("train.steps=200", "train.steps", 200),
        (" train.steps = 200 ", "train.steps", 200),
        ("train.steps=1_000", "train.steps", 1000),
        ("train.optimizer.clip_norm=1e-3", "train.optimizer.clip_norm", 0.001),
        ("train.tensorboard=true", "train.tensorboard", True),
        ("tokenizer.lowercase=false", "tokenizer.lowercase", False),
        ("model.norm=pre", "model.norm", "pre"),
        ("model.norm='pre'", "model.norm", "pre"),
        ("decode={beam = 2, n_best = 2}", "decode.n_best", 2),
    ],
)
def test_overrides(override: str, path: str, value: object, write: Write) -> None:
    tree: Any = recipe_tree(load_recipe(write(MINIMAL), [override]))
    for key in path.split("."):
        tree = tree[key]
    assert tree == value
    assert type(tree) is type(value)


def test_overrides_of_lists(write: Write) -> None:
    path = write('[data]\nkind = "parallel"\nsource = "en"\ntarget = "ko"\n')
    overrides = ['data.train=[["a.en", "a.ko"], ["b.tsv"]]', 'data.columns=["x", "y"]', "data.dev=['d.tsv']"]
    data = load_recipe(path, overrides, find_data=False).data
    assert data == ParallelData(
        source="en", target="ko", train=[["a.en", "a.ko"], ["b.tsv"]], columns=("x", "y"), dev=["d.tsv"]
    )


def test_overrides_change_one_key_and_the_last_one_wins(write: Write) -> None:
    path = write(MINIMAL + "[train]\nsteps = 5\nsave_every = 6\n[train.optimizer]\nwarmup = 7\n")
    recipe = load_recipe(path, ["train.steps=50", "train.optimizer.beta1=0.5", "train.steps=60"])
    assert (recipe.train.steps, recipe.train.save_every) == (60, 6)
    assert (recipe.train.optimizer.warmup, recipe.train.optimizer.beta1) == (7, 0.5)


def test_an_override_may_mend_a_recipe(write: Write) -> None:
    assert load_recipe(write("seed = 1\n"), ["data.kind=synthetic", "data.problem=copy"]).data == SyntheticData(
        problem="copy"
    )


@pytest.mark.parametrize("override", ["train.steps", "", "=3", " =3"])
def test_what_is_no_override(override: str, write: Write) -> None:
    with pytest.raises(RecipeError, match="not an override") as caught:
        load_recipe(write(MINIMAL), [override])
    assert caught.value.where == "--set"
    assert "--set train.steps=200" in (caught.value.right or "")


def test_an_override_below_a_value(write: Write) -> None:
    with pytest.raises(RecipeError, match="seed.more goes below seed, which is a value"):
        load_recipe(write("seed = 1\n" + MINIMAL), ["seed.more=1"])


def test_an_override_of_an_unknown_key(write: Write) -> None:
    with pytest.raises(RecipeError, match=r"train\.optimiser: there is no such key"):
        load_recipe(write(MINIMAL), ["train.optimiser.warmup=3"])


def test_an_override_of_the_wrong_type(write: Write) -> None:
    with pytest.raises(RecipeError, match=r"train\.steps: .*'many'"):
        load_recipe(write(MINIMAL), ["train.steps=many"])


def test_options_of_decoding() -> None:
    assert asked_options([]) == {}
    found = asked_options(["beam=8", "decode.temperature=1", " method = 'sample' ", "n_best=two", "beam=9"])
    assert found == {"beam": 9, "temperature": 1, "method": "sample", "n_best": "two"}


@pytest.mark.parametrize("key", ["nothing", "decode.nothing", "done", "texts", "prefixes", "decode", "train.steps"])
def test_options_that_decoding_does_not_have(key: str) -> None:
    with pytest.raises(RecipeError, match="there is no such key: decode.") as caught:
        asked_options(["beam=2", f"{key}=1"])
    assert caught.value.what.endswith("decode." + key.removeprefix("decode."))
    assert caught.value.where == "--set"
    assert "beam, length_penalty" in (caught.value.right or "")


@pytest.mark.parametrize("option", ["beam", "", "=3"])
def test_what_is_no_option(option: str) -> None:
    with pytest.raises(RecipeError, match="not an override"):
        asked_options([option])


# files


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("seed = 1\nseed = 2\n", 2),
        (MINIMAL + "oops\n", 4),
        ("seed = 1\n\n[data\n", 3),
        ("a = [1,\n2\n3]\n", 3),
    ],
)
def test_a_syntax_error_names_the_line(text: str, line: int, write: Write) -> None:
    path = write(text)
    with pytest.raises(RecipeError, match=f"line {line}") as caught:
        load_recipe(path)
    assert caught.value.where == str(path)


def test_a_recipe_that_is_no_text(write: Write) -> None:
    path = write("")
    path.write_bytes(b'description = "\xff"\n')
    with pytest.raises(RecipeError, match="not TOML"):
        load_recipe(path)


@pytest.mark.parametrize("name", ["nowhere.toml", "."])
def test_a_recipe_that_cannot_be_read(name: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="cannot be read") as caught:
        load_recipe(tmp_path / name)
    assert caught.value.where == str(tmp_path / name)


FILES = 'train = [["a.en", "a.ko"]]\ndev = ["sub/d.tsv"]\ntest = ["t.tsv"]\n'
PARALLEL_TOML = '[data]\nkind = "parallel"\nsource = "en"\ntarget = "ko"\n' + FILES


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")


def test_data_is_found_beside_the_recipe_or_in_the_data_folder(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    touch(tmp_path, "a.en", "t.tsv")
    touch(elsewhere, "a.ko", "sub/d.tsv", "t.tsv")
    monkeypatch.setenv("JUMOK_DATA", str(elsewhere))
    data = load_recipe(write(PARALLEL_TOML)).data
    assert isinstance(data, ParallelData)
    assert data.train == [[str(tmp_path / "a.en"), str(elsewhere / "a.ko")]]
    assert data.dev == [str(elsewhere / "sub/d.tsv")]
    assert data.test == [str(tmp_path / "t.tsv")]  # beside the recipe comes first


def test_data_is_found_from_any_working_folder(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "a.en", "a.ko", "sub/d.tsv", "t.tsv")
    path = write(PARALLEL_TOML)
    before = load_recipe(path).data
    monkeypatch.chdir(tmp_path)
    assert load_recipe(Path("recipe.toml")).data == before
    monkeypatch.chdir(tmp_path / "sub")
    assert load_recipe(Path("../recipe.toml")).data == before


def test_missing_data_names_both_places(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "a.en")
    monkeypatch.setenv("JUMOK_DATA", str(tmp_path / "elsewhere"))
    path = write(PARALLEL_TOML)
    with pytest.raises(RecipeError, match="no such data file") as caught:
        load_recipe(path)
    assert caught.value.what.endswith(": a.ko, sub/d.tsv, t.tsv")
    assert caught.value.where == str(path)
    assert (caught.value.right or "").endswith(f"looked in {tmp_path}, {tmp_path / 'elsewhere'}")
    assert "JUMOK_DATA" in (caught.value.right or "")


def test_missing_data_without_a_data_folder(write: Write, tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        load_recipe(write(PARALLEL_TOML))
    assert (caught.value.right or "").endswith(f"looked in {tmp_path}")


def test_data_is_not_looked_for_when_it_need_not_be(write: Write) -> None:
    data = load_recipe(write(PARALLEL_TOML), find_data=False).data
    assert isinstance(data, ParallelData)
    assert data.train == [["a.en", "a.ko"]]


# the effective recipe


@pytest.mark.parametrize(
    "tree",
    [
        {"data": SYNTHETIC},
        {"data": {**PARALLEL, "train": [["a", "b"], ["c"]], "columns": ["x", "y"], "dev": ["d"]}, "seed": 3},
        {
            "data": SYNTHETIC,
            "description": "한국어",
            "model": {"d_k": 8, "d_v": 8, "neighbourhood": 3, "dropout": 0},
            "train": {"optimizer": {"schedule": "linear", "learning_rate": 3e-3, "clip_norm": 1}, "patience": 2},
        },
    ],
)
def test_the_effective_recipe_is_the_recipe(tree: dict[str, Any]) -> None:
    recipe = parse_recipe(tree, where="first")
    effective = recipe_tree(recipe)
    again = parse_recipe(effective, where="second")
    assert again == recipe
    assert recipe_tree(again) == effective
    assert effective["train"]["optimizer"]["beta2"] == 0.98  # defaults too


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (
            {"model": {"reverse_source": True}},
            r'model.reverse_source: .* when model.kind is "transformer"; .* "seq2seq"',
        ),
        ({"model": {"kind": "seq2seq", "n_heads": 4}}, r'n_heads: .* when model.kind is "seq2seq"'),
        ({"model": {"kind": "seq2seq", "window": "local-p"}}, r'window is an option of attention = "luong"'),
        ({"model": {"kind": "seq2seq", "attention": "bahdanau", "score": "dot"}}, r"score is an option of .*luong"),
        ({"model": {"kind": "seq2seq", "attention": "luong", "feed_context": True}}, r"feed_context is for"),
        ({"model": {"kind": "seq2seq", "bidirectional": True, "reverse_source": True}}, r"reads both ways"),
        (
            {"model": {"kind": "seq2seq", "bidirectional": True, "d_hidden": 7, "d_embedding": 7}},
            r"d_hidden must be even",
        ),
        ({"model": {"kind": "seq2seq", "d_hidden": 8}}, r"d_embedding must equal d_hidden"),
        ({"task": {"scheduled_sampling": 0.2}}, r'needs model.kind = "seq2seq"'),
        ({"model": {"kind": "seq2seq"}, "decode": {"coverage_penalty": 0.2}}, r"the model has none"),
        ({"model": {"kind": "lstm"}}, r"model.kind: must be one of 'transformer', 'seq2seq'"),
    ],
)
def test_what_a_recurrent_model_cannot_be(tree: dict[str, Any], message: str) -> None:
    data = {"kind": "synthetic", "problem": "copy"}
    with pytest.raises(RecipeError, match=message):
        parse_recipe({"data": data, **tree}, where="test")


# what goes with what

DATA: dict[str, DataConfig] = {
    "parallel": ParallelData(source="en", target="ko"),
    "synthetic": SyntheticData(problem="copy"),
    "labelled": LabelledData(),
    "tagged": TaggedData(),
    "relations": RelationData(),
    "questions": QuestionData(),
    "choices": ChoiceData(),
    "text": TextData(),
}
MODELS: dict[str, ModelConfig] = {"transformer": TransformerConfig(), "seq2seq": Seq2SeqConfig(), "rnn": RnnConfig()}
FITS: dict[str, tuple[TaskConfig, set[str], set[str], set[str]]] = {
    "translation": (
        TranslationConfig(),
        {"parallel", "synthetic"},
        {"transformer", "seq2seq"},
        {"perplexity", "bleu", "exact_match"},
    ),
    "classification": (ClassificationConfig(), {"labelled"}, {"rnn"}, {"perplexity", "accuracy", "macro_f1", "mcc"}),
    "several": (
        ClassificationConfig(predicts="labels"),
        {"labelled"},
        {"rnn"},
        {"perplexity", "micro_f1", "macro_f1", "exact_match"},
    ),
    "number": (
        ClassificationConfig(predicts="number"),
        {"labelled"},
        {"rnn"},
        {"pearson", "spearman", "mean_absolute_error"},
    ),
    "relation": (RelationConfig(), {"relations"}, {"rnn"}, {"perplexity", "macro_f1", "micro_f1", "accuracy"}),
    "answering": (AnsweringConfig(), {"questions"}, {"rnn"}, {"answer_f1", "exact_match"}),
    "choice": (ChoiceConfig(), {"choices"}, {"rnn"}, {"perplexity", "accuracy"}),
    "tagging": (TaggingConfig(), {"tagged"}, {"rnn"}, {"perplexity", "span_f1", "tag_accuracy"}),
    "language_model": (LanguageModelConfig(), {"text"}, {"rnn"}, {"perplexity", "bits_per_byte"}),
}
METRICS = sorted(set().union(*(fits[3] for fits in FITS.values())))
each_task = pytest.mark.parametrize("task", FITS)


@each_task
def test_what_does_not_fit_the_task_is_named_and_nothing_else(task: str) -> None:
    config, data_kinds, model_kinds, metrics = FITS[task]
    for data, model, metric in product(DATA, MODELS, METRICS):
        wrong = []
        if data not in data_kinds:
            wrong.append(f'data.kind = "{data}"')
        if model not in model_kinds:
            wrong.append(f'model.kind = "{model}"')
        if metric not in metrics:
            wrong.append(f'train.metric = "{metric}"')
        said = []
        try:
            Recipe(task=config, data=DATA[data], model=MODELS[model], train=TrainConfig(metric=metric))  # type: ignore[arg-type]
        except ValueError as error:
            said = str(error).splitlines()
        assert [line.partition(" does not fit ")[0] for line in said] == wrong
        assert all(f'task.kind = "{config.kind}", ' in line for line in said)


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        (
            {"task": {"kind": "tagging"}, "data": SYNTHETIC, "train": {"metric": "bleu"}},
            [
                r'data.kind = "synthetic" does not fit task.kind = "tagging", "tagged"( or "\w+")* does',
                r'model.kind = "transformer" does not fit task.kind = "tagging", "rnn"( or "\w+")* does',
                r'train.metric = "bleu" does not fit task.kind = "tagging", "perplexity" or "span_f1" or',
            ],
        ),
        (
            {"data": {"kind": "text"}, "model": {"kind": "rnn"}, "train": {"metric": "accuracy"}},
            [
                r'data.kind = "text" does not fit task.kind = "translation", "parallel" or "synthetic" does',
                r'model.kind = "rnn" does not fit task.kind = "translation", "transformer" or "seq2seq" does',
                r'train.metric = "accuracy" does not fit task.kind = "translation"',
            ],
        ),
        (
            {
                "task": {"kind": "language_model"},
                "data": {"kind": "labelled"},
                "model": {"kind": "rnn", "bidirectional": True},
                "decode": {"coverage_penalty": 0.2},
            },
            [
                r'data.kind = "labelled" does not fit task.kind = "language_model", "text"',
                "decode.coverage_penalty counts attention, and the model has none",
                "model.bidirectional must be false for a language model",
            ],
        ),
    ],
)
def test_everything_that_does_not_fit_is_named_at_once(tree: dict[str, Any], said: list[str]) -> None:
    with pytest.raises(RecipeError, match=f"{len(said)} errors") as caught:
        parse_recipe(tree, where="recipe.toml")
    lines = [line.strip() for line in (caught.value.right or "").splitlines()]
    assert len(lines) == len(said)
    for line, pattern in zip(lines, said, strict=True):
        assert re.match(f"the recipe: {pattern}", line), line


@pytest.mark.parametrize(("task", "data"), [("classification", "labelled"), ("tagging", "tagged")])
def test_labels_may_be_read_both_ways(task: str, data: str) -> None:
    tree = {"task": {"kind": task}, "data": {"kind": data}, "model": {"kind": "rnn", "bidirectional": True}}
    assert parse_recipe(tree, where="x").model == RnnConfig(bidirectional=True)


@each_task
def test_a_recipe_of_every_task_survives_being_written_and_read(task: str) -> None:
    config, data_kinds, model_kinds, metrics = FITS[task]
    train = TrainConfig(metric=min(metrics))  # type: ignore[arg-type]
    recipe = Recipe(task=config, data=DATA[min(data_kinds)], model=MODELS[min(model_kinds)], train=train)
    assert parse_recipe(recipe_tree(recipe), where="x") == recipe


@pytest.mark.parametrize("kind", ["labelled", "tagged", "text"])
def test_listed_files_are_found(kind: str, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = {"labelled": "classification", "tagged": "tagging", "text": "language_model"}[kind]
    (tmp_path / "data").mkdir()
    for path in (tmp_path / "train", tmp_path / "data" / "dev"):
        path.write_text("", "utf-8")
    monkeypatch.setenv("JUMOK_DATA", str(tmp_path / "data"))
    text = (
        f'[task]\nkind = "{task}"\n[model]\nkind = "rnn"\n[data]\nkind = "{kind}"\ntrain = ["train"]\ndev = ["dev"]\n'
    )
    data = load_recipe(write(text)).data
    assert (data.files("train"), data.files("dev")) == ([str(tmp_path / "train")], [str(tmp_path / "data" / "dev")])  # type: ignore[union-attr]
    with pytest.raises(RecipeError, match="no such data file: nowhere"):
        load_recipe(write(text + 'test = ["nowhere"]\n'))


# fine-tuning

LABELLED: dict[str, Any] = {"task": {"kind": "classification"}, "data": {"kind": "labelled"}}
GPT = {"model": {"kind": "gpt"}, "tokenizer": {"kind": "byte_bpe"}}
BERT = {"model": {"kind": "bert"}, "tokenizer": {"kind": "wordpiece"}}
RNN = {"model": {"kind": "rnn"}}


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        (
            {**LABELLED, **RNN, "task": {"kind": "classification", "predicts": "number"}},
            'train.metric = "perplexity" does not fit task.kind = "classification", "pearson" or "spearman"',
        ),
        (
            {**LABELLED, **RNN, "train": {"metric": "pearson"}},
            'train.metric = "pearson" does not fit task.kind = "classification", "perplexity" or "accuracy"',
        ),
        (
            {**LABELLED, **GPT, "task": {"kind": "classification", "predicts": "labels"}},
            'model.kind = "gpt" writes the label after the text: task.predicts = "class" only',
        ),
        (
            {**LABELLED, **GPT, "task": {"kind": "classification", "label_smoothing": 0.1}},
            'model.kind = "gpt" writes the label: it has no label_smoothing and no class_weights',
        ),
        (
            {**LABELLED, **GPT, "task": {"kind": "classification", "class_weights": "balanced"}},
            'model.kind = "gpt" writes the label: it has no label_smoothing and no class_weights',
        ),
        (
            {**LABELLED, **GPT, "train": {"transfer": {"mode": "gradual"}}},
            'train.transfer.mode = "gradual": GPT has no head that could learn alone',
        ),
        (
            {**LABELLED, **GPT, "train": {"transfer": {"mode": "frozen"}}},
            'train.transfer.mode = "frozen": GPT has no head that could learn alone',
        ),
        (
            {"data": SYNTHETIC, "train": {"transfer": {"mode": "gradual"}}},
            'train.transfer is for model.kind = "bert", "gpt" or "rnn", and model.kind is "transformer"',
        ),
        (
            {"data": SYNTHETIC, "train": {"transfer": {"layer_decay": 0.9}}},
            'train.transfer is for model.kind = "bert", "gpt" or "rnn", and model.kind is "transformer"',
        ),
        ({"data": SYNTHETIC, "seeds": [1, 2, 1]}, "seeds: the same seed twice is the same training twice"),
        (
            {"task": {"kind": "tagging"}, "data": {"kind": "tagged"}, **GPT},
            'model.kind = "gpt" does not fit task.kind = "tagging", "rnn" or "bert" does',
        ),
        (
            {**LABELLED, **BERT, "data": {"kind": "labelled", "max_len": 600}},
            "data.max_len = 600 must not be over model.max_len = 512",
        ),
    ],
)
def test_what_fine_tuning_cannot_be(tree: dict[str, Any], said: str) -> None:
    (found,) = mistakes(tree).values()
    assert found.startswith(said)


@pytest.mark.parametrize(
    ("tree", "path", "message"),
    [
        (
            {**LABELLED, **RNN, "task": {"kind": "classification", "crf": True}},
            "task.crf",
            'there is no such key when task.kind is "classification"; it belongs to "tagging"',
        ),
        (
            {"task": {"kind": "choice", "no_answer": True}, "data": {"kind": "choices"}, **RNN},
            "task.no_answer",
            'there is no such key when task.kind is "choice"; it belongs to "answering"',
        ),
        (
            {**LABELLED, **RNN, "task": {"kind": "classification", "class_weights": "even"}},
            "task.class_weights",
            "must be 'none' or 'balanced' or a table of keys and values (got 'even')",
        ),
        (
            {**LABELLED, **RNN, "task": {"kind": "classification", "class_weights": {"a": 1, "b": 0}}},
            "task.class_weights.b",
            "must be over 0 (got 0)",
        ),
        (
            {**LABELLED, **RNN, "data": {"kind": "labelled", "max_len": 4}},
            "data.max_len",
            "must be at least 5 (got 4)",
        ),
        (
            {**LABELLED, **RNN, "data": {"kind": "toy_reviews", "max_len": 4}},
            "data.max_len",
            "must be at least 5 (got 4)",
        ),
        (
            {**LABELLED, **RNN, "data": {"kind": "labelled", "long_texts": "cut"}},
            "data.long_texts",
            "must be 'windows', 'truncate' or 'refuse' (got 'cut')",
        ),
        ({"data": SYNTHETIC, "seeds": [1, -1]}, "seeds.1", "must be at least 0 (got -1)"),
        (
            {"data": SYNTHETIC, "train": {"transfer": {"mode": "thawed"}}},
            "train.transfer.mode",
            "must be 'full', 'frozen' or 'gradual' (got 'thawed')",
        ),
    ],
)
def test_keys_of_fine_tuning_are_named_once_and_in_plain_words(tree: dict[str, Any], path: str, message: str) -> None:
    assert mistakes(tree) == {path: message}


def test_several_wrong_weights_are_all_named() -> None:
    weights = {"a": 0, "b": "x", "c": 1.5}
    tree = {**LABELLED, **RNN, "task": {"kind": "classification", "class_weights": weights}}
    assert mistakes(tree) == {
        "task.class_weights.a": "must be over 0 (got 0)",
        "task.class_weights.b": "must be a number (got 'x')",
    }


def test_what_fine_tuning_can_be() -> None:
    transfer = {"mode": "gradual", "unfreeze_every": 0.05, "layer_decay": 0.9}
    train = {"epochs": 3, "evaluate_every": 0.1, "save_every": 0.5, "transfer": transfer}
    train["optimizer"] = {"schedule": "linear", "learning_rate": 2e-5, "warmup": 0.06}
    weights = {"class_weights": {"a": 2.0}}
    recipe = parse_recipe(
        {**LABELLED, **BERT, "task": {**LABELLED["task"], **weights}, "train": train, "seeds": [1, 2]}, where="x"
    )
    assert recipe.train.transfer == TransferConfig(mode="gradual", unfreeze_every=0.05, layer_decay=0.9)
    assert (recipe.train.evaluate_every, recipe.train.optimizer.warmup, recipe.seeds) == (0.1, 0.06, [1, 2])
    assert parse_recipe(recipe_tree(recipe), where="x") == recipe
    assert parse_recipe({**LABELLED, **RNN, "train": {"transfer": {"mode": "frozen"}}}, where="x").model.kind == "rnn"


@pytest.mark.parametrize(
    "old", [{}, {"train": ["a"]}, {"train": ["a"], "test_share": 0.5}, {"train": ["a"], "test": ["b"]}], ids=str
)
def test_an_old_domain_is_only_scored(old: dict[str, Any]) -> None:
    tree: dict[str, Any] = {"init": "a", "task": {"kind": "pretraining"}, "data": {"kind": "documents"}}
    tree |= {"model": {"kind": "bert"}, "tokenizer": {"kind": "wordpiece"}}
    with pytest.raises(RecipeError, match="old_domain is scored and not learned from: it needs test"):
        parse_recipe({**tree, "old_domain": old}, where="test")
    assert parse_recipe({**tree, "old_domain": {"test": ["b"]}}, where="test").old_domain is not None
