"""Recipes: defaults filled in, every mistake named by its path and its place, overrides, and data files found."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from jumok.cli.arguments import options
from jumok.decode.options import DecodeConfig
from jumok.errors import Mistake, RecipeError
from jumok.examples.choices import ChoiceData
from jumok.examples.labelled import LabelledData
from jumok.examples.made.data import SyntheticData
from jumok.examples.pairs import ParallelData
from jumok.examples.plain import TextData
from jumok.examples.questions import QuestionData
from jumok.examples.relations import RelationData
from jumok.examples.spans import TaggedData
from jumok.models.build import ModelConfig
from jumok.models.rnn import RnnConfig
from jumok.models.seq2seq import Seq2SeqConfig
from jumok.models.transformer import TransformerConfig
from jumok.recipe import DataConfig, Recipe, TaskConfig, load_recipe, parse_recipe, recipe_of_run, recipe_tree
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


def refused(tree: dict[str, Any]) -> RecipeError:
    with pytest.raises(RecipeError) as caught:
        parse_recipe(tree, where="recipe.toml")
    assert caught.value.where == "recipe.toml"
    assert all(
        mistake.told in str(caught.value) and mistake.guess in str(caught.value) for mistake in caught.value.mistakes
    )
    return caught.value


def mistakes(tree: dict[str, Any]) -> dict[str, Mistake]:
    """Each key path that the error names, with what is wrong."""
    return {mistake.key: mistake for mistake in refused(tree).mistakes}


def codes(tree: dict[str, Any]) -> dict[str, str]:
    return {mistake.key: mistake.code.removeprefix("recipe.") for mistake in refused(tree).mistakes}


def assert_says(mistake: Mistake, facts: tuple[str, ...]) -> None:
    """Facts are told as they are, and in no word of the library that found them."""
    assert all(fact in mistake.what for fact in facts), mistake.what
    assert not any(theirs in mistake.what for theirs in ("Input should", "valid", "Tuple", "List should")), mistake.what


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
    assert {path: mistake.code for path, mistake in found.items()} == dict.fromkeys(paths, "recipe.unknown_key")


@pytest.mark.parametrize(
    ("tree", "path", "meant"),
    [
        ({"sed": 1}, "sed", "seed"),
        ({"tran": {}}, "tran", "train"),
        ({"data": {**SYNTHETIC, "lenght": 3}}, "data.lenght", "length"),
        ({"task": {"label_smothing": 0.1}}, "task.label_smothing", "label_smoothing"),
        ({"tokenizer": {"vocabsize": 300}}, "tokenizer.vocabsize", "vocab_size"),
        ({"model": {"n_head": 8}}, "model.n_head", "n_heads"),
        ({"model": {"kind": "seq2seq", "d_hiden": 8}}, "model.d_hiden", "d_hidden"),
        ({"train": {"step": 3}}, "train.step", "steps"),
        ({"train": {"optimizer": {"lerning_rate": 1}}}, "train.optimizer.lerning_rate", "learning_rate"),
        ({"train": {"optimizer": {"lr": 1}}}, "train.optimizer.lr", "learning_rate"),
        ({"train": {"transfer": {"mod": "full"}}}, "train.transfer.mod", "mode"),
        ({"train": {"learning_rate": 1}}, "train.learning_rate", "train.optimizer.learning_rate"),
        ({"vocab_size": 300}, "vocab_size", "tokenizer.vocab_size"),
        ({"model": {"beam": 4}}, "model.beam", "decode.beam"),
        ({"published": {"sourc": "a paper"}}, "published.sourc", "source"),
    ],
)
def test_an_unknown_key_is_told_the_one_that_was_meant(tree: dict[str, Any], path: str, meant: str) -> None:
    error = refused({"data": SYNTHETIC, **tree})
    found = {mistake.key: mistake for mistake in error.mistakes}[path]
    assert (found.code, found.guess) == ("recipe.unknown_key", f"did you mean {meant}?")


def test_a_key_that_is_like_no_other_is_told_nothing() -> None:
    assert mistakes({"data": SYNTHETIC, "train": {"zzz": 1}})["train.zzz"].guess == ""


@pytest.mark.parametrize(
    ("tree", "path", "meant"),
    [
        ({"data": {"kind": "synthetc", "problem": "copy"}}, "data.kind", "synthetic"),
        ({"data": SYNTHETIC, "task": {"kind": "translate"}}, "task.kind", "translation"),
        ({"data": SYNTHETIC, "model": {"kind": "transfomer"}}, "model.kind", "transformer"),
        ({"data": SYNTHETIC, "tokenizer": {"kind": "wordpeice"}}, "tokenizer.kind", "wordpiece"),
        ({"data": SYNTHETIC, "train": {"metric": "blue"}}, "train.metric", "bleu"),
        ({"data": SYNTHETIC, "train": {"optimizer": {"schedule": "liner"}}}, "train.optimizer.schedule", "linear"),
    ],
)
def test_a_value_that_is_none_of_those_there_are_is_told_the_nearest(
    tree: dict[str, Any], path: str, meant: str
) -> None:
    error = refused(tree)
    (found,) = error.mistakes
    assert (error.code, found.key, found.guess) == ("recipe.value", path, f"did you mean {meant}?")


def test_unknown_keys_of_parallel_data() -> None:
    found = mistakes({"data": {**PARALLEL, "problem": "reverse"}})["data.problem"]
    assert found.code == "recipe.unknown_key"
    assert_says(found, ('data.kind = "parallel"', '"synthetic"'))


@pytest.mark.parametrize("key", ["parallel", "synthetic"])
def test_an_unknown_key_may_be_called_like_a_kind(key: str) -> None:
    assert codes({"data": {**SYNTHETIC, key: 1}}) == {f"data.{key}": "unknown_key"}


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
    assert codes({"data": SYNTHETIC, **tree})[path] == ("missing_key" if path == "data.columns.1" else "value")


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
    assert codes({"data": SYNTHETIC, **tree}) == {path: "value"}


@pytest.mark.parametrize(("task", "final"), [("translation", "average"), ("pretraining", "best")])
def test_translation_averages_and_other_tasks_take_the_best(task: str, final: str) -> None:
    stories = {"data": {"kind": "toy_stories"}, "model": {"kind": "bert"}, "tokenizer": {"kind": "wordpiece"}}
    others = {"data": {"kind": "synthetic", "problem": "copy"}} if task == "translation" else stories
    tree = {"task": {"kind": task}, **others}
    assert parse_recipe(tree, where="").train.final == final
    assert parse_recipe({**tree, "train": {"final": "last"}}, where="").train.final == "last"


@pytest.mark.parametrize(
    ("section", "change", "code", "key"),
    [
        ("data", {"max_len": 4}, "recipe.mismatch", "data.max_len"),
        ("task", {"mask_share": 0.0}, "recipe.value", "task.mask_share"),
    ],
)
def test_pretraining_has_something_to_read_and_to_guess(
    section: str, change: dict[str, Any], code: str, key: str
) -> None:
    tree: dict[str, Any] = {
        "task": {"kind": "pretraining"},
        "data": {"kind": "documents", "train": ["a.txt"]},
        "model": {"kind": "bert"},
        "tokenizer": {"kind": "wordpiece"},
    }
    assert parse_recipe(tree, where="").data.max_len > 4
    tree[section] |= change
    error = refused(tree)
    assert (error.code, error.mistakes[0].key) == (code, key)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("key", ["learning_rate", "clip_norm", "weight_decay", "epsilon"])
def test_numbers_are_finite(key: str, value: float) -> None:
    optimizer = {"schedule": "linear", "learning_rate": 0.1, key: value}
    found = mistakes({"data": SYNTHETIC, "train": {"optimizer": optimizer}})
    assert [path for path in found if path.startswith("train.optimizer")]
    assert refused({"data": SYNTHETIC, "train": {"optimizer": optimizer}}).code == "recipe.value"


def test_a_wrong_value_is_shown() -> None:
    assert "'wide'" in mistakes({"data": SYNTHETIC, "model": {"d_model": "wide"}})["model.d_model"].what


def test_missing_keys_are_named() -> None:
    assert codes({}) == {"data": "missing_key"}
    assert codes({"data": {"kind": "parallel", "source": "en"}}) == {"data.target": "missing_key"}
    assert codes({"data": {"kind": "synthetic"}}) == {"data.problem": "missing_key"}


def test_the_kinds_of_data_are_named() -> None:
    kinds = ["parallel", "synthetic", "labelled", "tagged", "relations", "questions", "choices", "text", "documents"]
    kinds += ["toy_reviews", "toy_topics", "toy_similarity", "toy_names", "toy_josa", "toy_relations"]
    kinds += ["toy_questions", "toy_choices", "toy_grammar", "toy_stories"]
    found = mistakes({"data": {"kind": "web"}})["data.kind"]
    assert found.code == "recipe.value"
    assert_says(found, ("'web'", *(f"'{kind}'" for kind in kinds)))
    assert codes({"data": {"problem": "reverse"}}) == {"data.kind": "missing_key"}


@pytest.mark.parametrize(
    ("tree", "path", "other"),
    [
        ({"tokenizer": {"joint": False}}, "model.tie_embeddings", "tokenizer.joint"),
        ({"model": {"positions": "learned", "max_len": 256}}, "data.max_len", "model.max_len"),
        ({"model": {"d_model": 10, "n_heads": 3}}, "model", "n_heads"),
        ({"tokenizer": {"vocab_size": 100}}, "tokenizer", "vocab_size"),
        ({"train": {"optimizer": {"learning_rate": 0.1}}}, "train.optimizer", "noam"),
        ({"train": {"optimizer": {"schedule": "linear"}}}, "train.optimizer", "learning_rate"),
        ({"decode": {"beam": 2, "n_best": 3}}, "decode", "n_best"),
    ],
)
def test_impossible_relations_are_named(tree: dict[str, Any], path: str, other: str) -> None:
    found = mistakes({"data": SYNTHETIC, **tree})
    assert {key: mistake.code for key, mistake in found.items()} == {path: "recipe.mismatch"}
    assert other in found[path].what


@pytest.mark.parametrize(
    ("tree", "path", "facts"),
    [
        ({"seed": -1}, "seed", ("at least 0", "-1")),
        ({"model": {"n_heads": 0}}, "model.n_heads", ("at least 1", "got 0")),
        ({"model": {"d_k": 0}}, "model.d_k", ("at least 1", "got 0")),
        ({"model": {"dropout": 1.0}}, "model.dropout", ("below 1", "got 1.0")),
        ({"model": {"dropout": -0.5}}, "model.dropout", ("at least 0", "got -0.5")),
        ({"task": {"label_smoothing": 1.0}}, "task.label_smoothing", ("below 1", "got 1.0")),
        ({"train": {"save_every": 0, "final": "best"}}, "train.save_every", ("over 0", "got 0")),
        ({"train": {"evaluate_every": "x"}}, "train.evaluate_every", ("a number", "got 'x'")),
        ({"train": {"evaluate_every": 0}}, "train.evaluate_every", ("over 0", "got 0")),
        ({"train": {"evaluate_every": True}}, "train.evaluate_every", ("a number", "got True")),
        ({"train": {"epochs": 0}}, "train.epochs", ("at least 1", "got 0")),
        ({"train": {"epochs": 1.5}}, "train.epochs", ("a whole number", "got 1.5")),
        ({"train": {"optimizer": {"warmup": -1}}}, "train.optimizer.warmup", ("at least 0", "got -1")),
        ({"train": {"transfer": {"unfreeze_every": -2}}}, "train.transfer.unfreeze_every", ("over 0", "got -2")),
        ({"train": {"transfer": {"layer_decay": 1.1}}}, "train.transfer.layer_decay", ("at most 1", "got 1.1")),
        ({"data": {**PARALLEL, "max_len": 0}}, "data.max_len", ("at least 1", "got 0")),
        ({"data": {**PARALLEL, "dev": [""] * 3}}, "data.dev", ("at most 2", "not 3", "['', '', '']")),
        ({"decode": {"top_p": 1.5}}, "decode.top_p", ("at most 1", "got 1.5")),
        ({"decode": {"temperature": 0}}, "decode.temperature", ("over 0", "got 0")),
        ({"model": {"d_ff": "wide"}}, "model.d_ff", ("a whole number", "got 'wide'")),
        ({"model": {"norm": "batch"}}, "model.norm", ("'post'", "'pre'", "got 'batch'")),
        ({"tokenizer": []}, "tokenizer", ("a table", "got []")),
    ],
)
def test_ranges_and_types_are_told_in_our_words(tree: dict[str, Any], path: str, facts: tuple[str, ...]) -> None:
    assert codes({"data": SYNTHETIC, **tree}) == {path: "value"}
    assert_says(mistakes({"data": SYNTHETIC, **tree})[path], facts)


@pytest.mark.parametrize(
    ("tree", "path", "given"),
    [
        ({"train": {"evaluate_every": 1.5}}, "train.evaluate_every", "1.5"),
        ({"train": {"optimizer": {"warmup": 1.0}}}, "train.optimizer.warmup", "1.0"),
    ],
)
def test_steps_are_whole_or_a_share(tree: dict[str, Any], path: str, given: str) -> None:
    (found,) = refused({"data": SYNTHETIC, **tree}).mistakes
    assert found.key == path
    assert_says(found, ("whole number", "below 1", f"got {given}"))


def test_two_relations_of_the_root_are_both_named() -> None:
    tree = {"data": SYNTHETIC, "tokenizer": {"joint": False}, "model": {"positions": "learned", "max_len": 9}}
    assert codes(tree) == {"model.tie_embeddings": "mismatch", "data.max_len": "mismatch"}
    assert refused(tree).code == "recipe.mismatch"


def test_a_text_that_is_no_unicode_is_refused() -> None:
    error = refused({"data": SYNTHETIC, "description": "\udcff"})
    assert error.code == "recipe.value"
    assert "surrogate" in error.what


def test_relations_that_are_possible() -> None:
    assert parse(tokenizer={"joint": False}, model={"tie_embeddings": "target"}).tokenizer.joint is False
    assert parse(model={"positions": "learned", "max_len": 257}).model == TransformerConfig(
        positions="learned", max_len=257
    )
    narrow = {"d_model": 10, "n_heads": 3, "d_k": 4, "d_v": 4}
    assert parse(model=narrow).model == TransformerConfig(d_model=10, n_heads=3, d_k=4, d_v=4)


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
    error = refused(tree)
    assert error.code == "recipe.invalid"  # of several kinds
    assert "10 errors" in error.what
    assert {mistake.key for mistake in error.mistakes} == {
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
    assert len(error.mistakes) == 10
    assert len(error.what.splitlines()) == 11


def test_ranges_of_one_section_and_relations_of_another_are_named_at_once() -> None:
    tree = {
        "data": {**SYNTHETIC, "length": 2},
        "model": {"n_heads": 0, "n_layers": -1},
        "train": {"optimizer": {"warmup": -1}},
        "decode": {"beam": 2, "n_best": 3},
    }
    assert codes(tree) == {
        "data.length": "value",
        "model.n_heads": "value",
        "model.n_layers": "value",
        "train.optimizer.warmup": "value",
        "decode": "mismatch",
    }


def test_one_mistake_is_the_error() -> None:
    error = refused({"data": SYNTHETIC, "zeed": 1})
    assert (error.code, error.what.partition(":")[0], error.hint) == (
        "recipe.unknown_key",
        "zeed",
        "did you mean seed?",
    )


# places


PLACED = """seed = 1
[data]
kind = "synthetic"
problem = "reverse"
[model]
d_model = 16
[train]
steps = 3
[train.optimizer]
warmup = 4
"""


@pytest.mark.parametrize(
    ("line", "written", "code", "key"),
    [
        (1, "sed = 1", "unknown_key", "sed"),
        (1, "seed = 1.5", "value", "seed"),
        (3, 'kind = "synthetc"', "value", "data.kind"),
        (4, 'problem = "sort"', "value", "data.problem"),
        (6, "d_modell = 16", "unknown_key", "model.d_modell"),
        (6, "d_model = 0", "value", "model.d_model"),
        (6, "d_model = 13", "mismatch", "model"),
        (6, 'kind = "rnn"', "mismatch", "model.kind"),
        (6, 'kind = "lstm"', "value", "model.kind"),
        (8, "stepps = 3", "unknown_key", "train.stepps"),
        (8, 'metric = "accuracy"', "mismatch", "train.metric"),
        (8, "optimiser = { warmup = 1 }", "unknown_key", "train.optimiser"),
        (10, "lerning_rate = 1.0", "unknown_key", "train.optimizer.lerning_rate"),
        (10, 'warmup = "long"', "value", "train.optimizer.warmup"),
        (10, "learning_rate = 0.1", "mismatch", "train.optimizer"),
    ],
)
def test_a_mistake_is_told_with_its_line(line: int, written: str, code: str, key: str, write: Write) -> None:
    lines = PLACED.splitlines()
    lines[line - 1] = written
    path = write("\n".join(lines))
    with pytest.raises(RecipeError) as caught:
        load_recipe(path)
    (found,) = caught.value.mistakes
    assert (caught.value.code, found.key) == (f"recipe.{code}", key)
    assert caught.value.where == found.where == f"{path}:{line}"


def test_a_key_that_is_missing_is_told_with_its_section(write: Write) -> None:
    path = write('seed = 1\n[data]\nkind = "parallel"\nsource = "en"\n')
    with pytest.raises(RecipeError) as caught:
        load_recipe(path)
    assert (caught.value.code, caught.value.where) == ("recipe.missing_key", f"{path}:2")


def test_an_item_of_a_list_is_told_with_its_own_line(write: Write) -> None:
    path = write('[data]\nkind = "parallel"\nsource = "a"\ntarget = "b"\ntrain = [\n  ["a", "b"],\n  "c",\n]\n')
    with pytest.raises(RecipeError) as caught:
        load_recipe(path)
    assert (caught.value.mistakes[0].key, caught.value.where) == ("data.train.1", f"{path}:7")


def test_keys_that_do_not_go_together_are_told_with_all_their_lines(write: Write) -> None:
    path = write(MINIMAL + "[tokenizer]\njoint = false\n[model]\ntie_embeddings = 'all'\n")
    with pytest.raises(RecipeError) as caught:
        load_recipe(path)
    assert (caught.value.code, caught.value.where) == ("recipe.mismatch", f"{path}:7, {path}:5")


def test_several_mistakes_are_told_each_with_its_place(write: Write) -> None:
    path = write(PLACED.replace("d_model", "width").replace("warmup = 4", "warmup = -4"))
    with pytest.raises(RecipeError) as caught:
        load_recipe(path, ["train.steps=many", "decode.beem=2"])
    error = caught.value
    assert (error.code, error.where) == ("recipe.invalid", str(path))
    places = {mistake.key: mistake.where for mistake in error.mistakes}
    assert places == {
        "model.width": f"{path}:6",
        "train.optimizer.warmup": f"{path}:10",
        "train.steps": "--set train.steps=many",
        "decode.beem": "--set decode.beem=2",
    }
    lines = error.what.splitlines()[1:]
    assert sorted(lines) == sorted(f"    {mistake.where}: {mistake.text}" for mistake in error.mistakes)


@pytest.mark.parametrize(
    ("override", "code", "key"),
    [
        ("sed=2", "unknown_key", "sed"),
        ("seed=x", "value", "seed"),
        ("train.steps=many", "value", "train.steps"),
        ("train.optimizer.lerning_rate=1", "unknown_key", "train.optimizer.lerning_rate"),
        ("train.optimiser.warmup=3", "unknown_key", "train.optimiser"),
        ("optimizer.warmup=3", "unknown_key", "optimizer"),
        ("decode={beem = 2}", "unknown_key", "decode.beem"),
        ("train.optimizer={warmup = -1}", "value", "train.optimizer.warmup"),
        ("task.kind=taging", "value", "task.kind"),
        ("model.kind=lstm", "value", "model.kind"),
        ("decode.n_best=20", "mismatch", "decode"),
    ],
)
def test_a_mistake_of_an_override_is_not_blamed_on_the_file(override: str, code: str, key: str, write: Write) -> None:
    with pytest.raises(RecipeError) as caught:
        load_recipe(write(PLACED), [override])
    (found,) = caught.value.mistakes
    assert (caught.value.code, found.key) == (f"recipe.{code}", key)
    assert caught.value.where == f"--set {override}"


def test_what_file_and_override_do_together_is_blamed_on_both(write: Write) -> None:
    path = write(PLACED)
    with pytest.raises(RecipeError) as caught:
        load_recipe(path, ["model.n_heads=5"])
    assert (caught.value.code, caught.value.where) == ("recipe.mismatch", f"{path}:6, --set model.n_heads=5")
    with pytest.raises(RecipeError) as caught:
        load_recipe(path, ["data.kind=parallel"])
    places = {mistake.key: mistake.where for mistake in caught.value.mistakes}
    assert places == {
        "data.problem": f"{path}:4, --set data.kind=parallel",
        "data.source": f"{path}:2, --set data.kind=parallel",
        "data.target": f"{path}:2, --set data.kind=parallel",
    }


def test_the_last_of_two_overrides_is_blamed(write: Write) -> None:
    with pytest.raises(RecipeError) as caught:
        load_recipe(write(PLACED), ["train.steps=many", "train.steps=more"])
    assert caught.value.where == "--set train.steps=more"


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
    with pytest.raises(RecipeError) as caught:
        load_recipe(write(MINIMAL), [override])
    assert (caught.value.code, caught.value.where) == ("recipe.override", "--set")
    assert "--set train.steps=200" in (caught.value.hint or "")


@pytest.mark.parametrize(("override", "value"), [("seed.more=1", "seed"), ("data.problem.more=1", "data.problem")])
def test_an_override_below_a_value(override: str, value: str, write: Write) -> None:
    with pytest.raises(RecipeError) as caught:
        load_recipe(write("seed = 1\n" + MINIMAL), [override])
    assert (caught.value.code, caught.value.where) == ("recipe.override", f"--set {override}")
    assert f" {value}," in caught.value.what


def test_options_of_decoding() -> None:
    assert options(None) == {}
    found = options(["beam=8", "decode.temperature=1", " method = 'sample' ", "n_best=two", "beam=9"])
    assert found == {"beam": 9, "temperature": 1, "method": "sample", "n_best": "two"}


@pytest.mark.parametrize("option", ["beam", "", "=3"])
def test_what_is_no_option(option: str) -> None:
    with pytest.raises(RecipeError) as caught:
        options([option])
    assert caught.value.code == "recipe.override"


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
    with pytest.raises(RecipeError) as caught:
        load_recipe(path)
    assert (caught.value.code, caught.value.where) == ("recipe.not_toml", f"{path}:{line}")


def test_a_recipe_that_is_no_text(write: Write) -> None:
    path = write("")
    path.write_bytes(b'seed = 1\ndescription = "\xff"\n')
    with pytest.raises(RecipeError) as caught:
        load_recipe(path)
    assert (caught.value.code, caught.value.where) == ("recipe.not_toml", f"{path}:2")


@pytest.mark.parametrize("name", ["nowhere.toml", "."])
def test_a_recipe_that_cannot_be_read(name: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        load_recipe(tmp_path / name)
    assert (caught.value.code, caught.value.where) == ("recipe.unreadable", str(tmp_path / name))


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
    with pytest.raises(RecipeError) as caught:
        load_recipe(path)
    assert caught.value.code == "recipe.no_data_file"
    assert caught.value.what.endswith(": a.ko, sub/d.tsv, t.tsv")
    assert caught.value.where == f"{path}:5, {path}:6, {path}:7"
    assert (caught.value.hint or "").endswith(f"looked in {tmp_path}, {tmp_path / 'elsewhere'}")
    assert "JUMOK_DATA" in (caught.value.hint or "")


def test_missing_data_without_a_data_folder(write: Write, tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        load_recipe(write(PARALLEL_TOML))
    assert (caught.value.hint or "").endswith(f"looked in {tmp_path}")


def test_a_data_file_that_is_nearly_there_is_named(write: Write, tmp_path: Path) -> None:
    touch(tmp_path, "a.en", "a.ko", "sub/dev.tsv", "t.tsv")
    path = write(PARALLEL_TOML)
    with pytest.raises(RecipeError) as caught:
        load_recipe(path, ['data.dev=["sub/devs.tsv"]'])
    assert caught.value.code == "recipe.no_data_file"
    assert caught.value.where == '--set data.dev=["sub/devs.tsv"]'
    assert f"did you mean {tmp_path / 'sub/dev.tsv'}?" in (caught.value.hint or "")


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
    ("tree", "code", "key", "facts"),
    [
        ({"model": {"reverse_source": True}}, "unknown_key", "model.reverse_source", ('"transformer"', '"seq2seq"')),
        ({"model": {"kind": "seq2seq", "n_heads": 4}}, "unknown_key", "model.n_heads", ('model.kind = "seq2seq"',)),
        ({"model": {"kind": "seq2seq", "window": "local-p"}}, "mismatch", "model", ("window", "luong")),
        (
            {"model": {"kind": "seq2seq", "attention": "bahdanau", "score": "dot"}},
            "mismatch",
            "model",
            ("score", "luong"),
        ),
        (
            {"model": {"kind": "seq2seq", "attention": "luong", "feed_context": True}},
            "mismatch",
            "model",
            ("feed_context",),
        ),
        (
            {"model": {"kind": "seq2seq", "bidirectional": True, "reverse_source": True}},
            "mismatch",
            "model",
            ("reverse_source",),
        ),
        (
            {"model": {"kind": "seq2seq", "bidirectional": True, "d_hidden": 7, "d_embedding": 7}},
            "mismatch",
            "model",
            ("d_hidden", "even"),
        ),
        ({"model": {"kind": "seq2seq", "d_hidden": 8}}, "mismatch", "model", ("d_embedding", "d_hidden")),
        ({"task": {"scheduled_sampling": 0.2}}, "mismatch", "task.scheduled_sampling", ('model.kind = "seq2seq"',)),
        (
            {"model": {"kind": "seq2seq"}, "decode": {"coverage_penalty": 0.2}},
            "mismatch",
            "decode.coverage_penalty",
            ("attention",),
        ),
        ({"model": {"kind": "lstm"}}, "value", "model.kind", ("'transformer', 'seq2seq'", "'lstm'")),
    ],
)
def test_what_a_recurrent_model_cannot_be(tree: dict[str, Any], code: str, key: str, facts: tuple[str, ...]) -> None:
    data = {"kind": "synthetic", "problem": "copy"}
    assert codes({"data": data, **tree}) == {key: code}
    assert_says(mistakes({"data": data, **tree})[key], facts)


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
        assert len(said) == len(wrong)
        assert all(line.startswith(start) for line, start in zip(said, wrong, strict=True))
        assert all(f'task.kind = "{config.kind}"' in line for line in said)


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        (
            {"task": {"kind": "tagging"}, "data": SYNTHETIC, "train": {"metric": "bleu"}},
            {
                "data.kind": ('"synthetic"', '"tagging"', '"tagged"'),
                "model.kind": ('"transformer"', '"tagging"', '"rnn"'),
                "train.metric": ('"bleu"', '"tagging"', '"perplexity" or "span_f1"'),
            },
        ),
        (
            {"data": {"kind": "text"}, "model": {"kind": "rnn"}, "train": {"metric": "accuracy"}},
            {
                "data.kind": ('"text"', '"translation"', '"parallel" or "synthetic"'),
                "model.kind": ('"rnn"', '"translation"', '"transformer" or "seq2seq"'),
                "train.metric": ('"accuracy"', '"translation"'),
            },
        ),
        (
            {
                "task": {"kind": "language_model"},
                "data": {"kind": "labelled"},
                "model": {"kind": "rnn", "bidirectional": True},
                "decode": {"coverage_penalty": 0.2},
            },
            {
                "data.kind": ('"labelled"', '"language_model"', '"text"'),
                "decode.coverage_penalty": ("attention",),
                "model.bidirectional": ("false",),
            },
        ),
    ],
)
def test_everything_that_does_not_fit_is_named_at_once(tree: dict[str, Any], said: dict[str, tuple[str, ...]]) -> None:
    assert codes(tree) == dict.fromkeys(said, "mismatch")
    for key, mistake in mistakes(tree).items():
        assert_says(mistake, (key, *said[key]))


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
    assert (data.files("train"), data.files("dev")) == ([str(tmp_path / "train")], [str(tmp_path / "data" / "dev")])
    path = write(text + 'test = ["nowhere"]\n')
    with pytest.raises(RecipeError) as caught:
        load_recipe(path)
    assert (caught.value.code, caught.value.where) == ("recipe.no_data_file", f"{path}:9")
    assert "nowhere" in caught.value.what


# fine-tuning

LABELLED: dict[str, Any] = {"task": {"kind": "classification"}, "data": {"kind": "labelled"}}
GPT = {"model": {"kind": "gpt"}, "tokenizer": {"kind": "byte_bpe"}}
BERT = {"model": {"kind": "bert"}, "tokenizer": {"kind": "wordpiece"}}
RNN = {"model": {"kind": "rnn"}}


@pytest.mark.parametrize(
    ("tree", "key", "facts"),
    [
        (
            {**LABELLED, **RNN, "task": {"kind": "classification", "predicts": "number"}},
            "train.metric",
            ('"perplexity"', '"classification"', '"pearson" or "spearman"'),
        ),
        (
            {**LABELLED, **RNN, "train": {"metric": "pearson"}},
            "train.metric",
            ('"pearson"', '"classification"', '"perplexity" or "accuracy"'),
        ),
        (
            {**LABELLED, **GPT, "task": {"kind": "classification", "predicts": "labels"}},
            "model.kind",
            ('"gpt"', 'task.predicts = "class"'),
        ),
        (
            {**LABELLED, **GPT, "task": {"kind": "classification", "label_smoothing": 0.1}},
            "model.kind",
            ('"gpt"', "label_smoothing"),
        ),
        (
            {**LABELLED, **GPT, "task": {"kind": "classification", "class_weights": "balanced"}},
            "model.kind",
            ('"gpt"', "class_weights"),
        ),
        ({**LABELLED, **GPT, "train": {"transfer": {"mode": "gradual"}}}, "train.transfer.mode", ('"gradual"', "GPT")),
        ({**LABELLED, **GPT, "train": {"transfer": {"mode": "frozen"}}}, "train.transfer.mode", ('"frozen"', "GPT")),
        (
            {"data": SYNTHETIC, "train": {"transfer": {"mode": "gradual"}}},
            "train.transfer",
            ('"bert"', '"gpt"', '"rnn"', '"transformer"'),
        ),
        (
            {"data": SYNTHETIC, "train": {"transfer": {"layer_decay": 0.9}}},
            "train.transfer",
            ('"bert"', '"gpt"', '"rnn"', '"transformer"'),
        ),
        ({"data": SYNTHETIC, "seeds": [1, 2, 1]}, "seeds", ()),
        (
            {"task": {"kind": "tagging"}, "data": {"kind": "tagged"}, **GPT},
            "model.kind",
            ('"gpt"', '"tagging"', '"rnn" or "bert"'),
        ),
        (
            {**LABELLED, **BERT, "data": {"kind": "labelled", "max_len": 600}},
            "data.max_len",
            ("600", "model.max_len", "512"),
        ),
    ],
)
def test_what_fine_tuning_cannot_be(tree: dict[str, Any], key: str, facts: tuple[str, ...]) -> None:
    assert codes(tree) == {key: "mismatch"}
    assert_says(mistakes(tree)[key], (key, *facts))


@pytest.mark.parametrize(
    ("tree", "code", "path", "facts"),
    [
        (
            {**LABELLED, **RNN, "task": {"kind": "classification", "crf": True}},
            "unknown_key",
            "task.crf",
            ('task.kind = "classification"', '"tagging"'),
        ),
        (
            {"task": {"kind": "choice", "no_answer": True}, "data": {"kind": "choices"}, **RNN},
            "unknown_key",
            "task.no_answer",
            ('task.kind = "choice"', '"answering"'),
        ),
        (
            {**LABELLED, **RNN, "task": {"kind": "classification", "class_weights": "even"}},
            "value",
            "task.class_weights",
            ("'none' or 'balanced'", "a table", "'even'"),
        ),
        (
            {**LABELLED, **RNN, "task": {"kind": "classification", "class_weights": {"a": 1, "b": 0}}},
            "value",
            "task.class_weights.b",
            ("over 0", "got 0"),
        ),
        (
            {**LABELLED, **RNN, "data": {"kind": "labelled", "max_len": 4}},
            "value",
            "data.max_len",
            ("at least 5", "got 4"),
        ),
        (
            {**LABELLED, **RNN, "data": {"kind": "toy_reviews", "max_len": 4}},
            "value",
            "data.max_len",
            ("at least 5", "got 4"),
        ),
        (
            {**LABELLED, **RNN, "data": {"kind": "labelled", "long_texts": "cut"}},
            "value",
            "data.long_texts",
            ("'windows'", "'truncate'", "'refuse'", "'cut'"),
        ),
        ({"data": SYNTHETIC, "seeds": [1, -1]}, "value", "seeds.1", ("at least 0", "got -1")),
        (
            {"data": SYNTHETIC, "train": {"transfer": {"mode": "thawed"}}},
            "value",
            "train.transfer.mode",
            ("'full'", "'frozen'", "'gradual'", "'thawed'"),
        ),
        (
            {**LABELLED, "model": {"kind": "rnn", "features": {"kind": "elmo", "dropout": 2}}},
            "value",
            "model.features.dropout",
            ("below 1", "got 2"),
        ),
    ],
)
def test_keys_of_fine_tuning_are_named_once_and_in_plain_words(
    tree: dict[str, Any], code: str, path: str, facts: tuple[str, ...]
) -> None:
    assert codes(tree) == {path: code}
    assert_says(mistakes(tree)[path], facts)


def test_several_wrong_weights_are_all_named() -> None:
    weights = {"a": 0, "b": "x", "c": 1.5}
    tree = {**LABELLED, **RNN, "task": {"kind": "classification", "class_weights": weights}}
    found = mistakes(tree)
    assert found.keys() == {"task.class_weights.a", "task.class_weights.b"}
    assert_says(found["task.class_weights.a"], ("over 0", "got 0"))
    assert_says(found["task.class_weights.b"], ("a number", "'x'"))


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
    assert codes({**tree, "old_domain": old}) == {"old_domain": "mismatch"}
    assert parse_recipe({**tree, "old_domain": {"test": ["b"]}}, where="test").old_domain is not None


# recipes of strangers


def test_a_byte_order_mark_is_skipped(write: Write) -> None:
    path = write("")
    path.write_text(f"seed = 7\n{MINIMAL}", "utf-8-sig")
    assert load_recipe(path).seed == 7


@pytest.mark.parametrize(
    "value",
    ["9" * 5000, f"-{'1_' * 3000}1", f"0x{'f' * 5000}", str(2**63), "[" * 100_000, "[" * 33 + "]" * 33, "{a=" * 500],
    ids=["digits", "underscores", "hexadecimal", "64 bits", "brackets", "balanced", "braces"],
)
def test_numbers_and_nesting_beyond_measure_are_named_by_their_line(write: Write, value: str) -> None:
    path = write(f"{MINIMAL}length = {value}\n")
    with pytest.raises(RecipeError) as caught:
        load_recipe(path)
    assert (caught.value.code, caught.value.where) == ("recipe.not_toml", f"{path}:4")
    with pytest.raises(RecipeError) as caught:
        load_recipe(write(MINIMAL), [f"seed={value}"])
    assert (caught.value.code, caught.value.mistakes[0].key) == ("recipe.value", "seed")
    assert len(caught.value.what) < 200


@pytest.mark.parametrize("key", ["a." * 5000 + "a", "a." * 33 + "a"], ids=len)
def test_keys_below_keys_beyond_measure(write: Write, key: str) -> None:
    path = write(f"{MINIMAL}[x]\n{key} = 1\n")
    with pytest.raises(RecipeError) as caught:
        load_recipe(path)
    assert (caught.value.code, caught.value.where) == ("recipe.not_toml", f"{path}:5")
    with pytest.raises(RecipeError) as caught:
        load_recipe(write(MINIMAL), [f"{key}=1"])
    assert caught.value.code in ("recipe.value", "recipe.unknown_key")


@pytest.mark.parametrize(
    "key",
    [
        *(f"model.{name}" for name in ("d_model", "d_ff", "n_heads", "n_layers", "d_k", "d_v", "max_len")),
        *("train.threads", "train.batch_tokens", "train.steps", "train.keep_last", "train.accumulate"),
        *("tokenizer.vocab_size", "decode.beam", "data.n_train", "data.max_len"),
    ],
)
def test_sizes_have_bounds(write: Write, key: str) -> None:
    with pytest.raises(RecipeError) as caught:
        load_recipe(write(MINIMAL), [f"{key}={2**31}"])
    assert (caught.value.code, [one.key for one in caught.value.mistakes]) == ("recipe.value", [key])


def test_relative_data_of_a_run_is_found_in_the_data_folder(tmp_path, monkeypatch):
    (tmp_path / "train.tsv").write_text("a\tb\n", "utf-8")
    tree = {"data": {"kind": "parallel", "source": "en", "target": "xx", "train": [["train.tsv"]], "dev": []}}
    assert recipe_of_run(tree, tmp_path / "run/recipe.json").data.train == [["train.tsv"]]
    monkeypatch.setenv("JUMOK_DATA", str(tmp_path))
    assert recipe_of_run(tree, tmp_path / "run/recipe.json").data.train == [[str(tmp_path / "train.tsv")]]
