"""Several trainings of one recipe: what they are, their mean by Student's t, and which model stands for all."""

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from scipy import stats
from typer.testing import CliRunner

from jumok.cli import app, main
from jumok.cli.arguments import splits, stored_beside
from jumok.cli.scores import print_scores, print_short_scores
from jumok.errors import CheckpointError, DataError, InputError
from jumok.examples.labelled import LabelledData
from jumok.predictor import load
from jumok.recipe import parse_recipe
from jumok.series import gather, mean_of, refuse_other_test_data, series

WORDS = ("good", "fine", "great"), ("bad", "poor", "awful")


def recipe(folder: Path, **changes: Any):
    tree = {
        "task": {"kind": "classification"},
        "data": {"kind": "labelled", "train": [str(folder / "table.tsv")], "dev_share": 0.2, "test_share": 0.2},
        "tokenizer": {"kind": "word", "vocab_size": 60},
        "model": {"kind": "rnn", "d_embedding": 8, "d_hidden": 8},
        "train": {"steps": 4, "batch_tokens": 64, "evaluate_every": 2, "save_every": 2, "metric": "accuracy"},
    }
    for key, value in changes.items():
        tree[key] = {**tree[key], **value} if isinstance(value, dict) else value
    return parse_recipe(json.loads(json.dumps(tree)), where="test")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    rows = [f"{rng.choice(WORDS[i % 2])} film {i} of the {rng.integers(9)}\t{'+-'[i % 2]}" for i in range(80)]
    (tmp_path / "table.tsv").write_text("text\tlabel\n" + "\n".join(rows))
    return tmp_path


FOLDS = {"dev_share": 0.2, "test_share": 0.0, "folds": 3}


def test_seeds_and_folds_are_trainings_of_their_own(table: Path) -> None:
    assert series(recipe(table)) == {}
    by_seed = series(recipe(table, seeds=[3, 5]))
    assert {name: part.seed for name, part in by_seed.items()} == {"seed-3": 3, "seed-5": 5}
    by_fold = series(recipe(table, data=FOLDS))
    assert [*by_fold] == ["fold-1", "fold-2", "fold-3"]
    tested = []
    for number, part in enumerate(by_fold.values(), start=1):
        assert isinstance(part.data, LabelledData)
        assert part.data.fold == number
        tested += [example.text for example in part.data.read("test", seed=1)]
    everything = [line.split("\t")[0] for line in (table / "table.tsv").read_text().splitlines()[1:]]
    assert sorted(tested) == sorted(everything)  # every example is tested once
    both = series(recipe(table, seeds=[3, 5], data=FOLDS))
    assert [*both] == [f"seed-{seed}-fold-{fold}" for seed in (3, 5) for fold in (1, 2, 3)]
    assert series(recipe(table, data={**FOLDS, "fold": 2})) == {}


def test_seeds_of_one_fold_are_one_value(table: Path) -> None:
    """They are tested on the same texts: as if they were independent, the interval would be far too narrow."""
    both = recipe(table, seeds=[3, 5], data=FOLDS)
    values = {3: (70.0, 80.0, 90.0), 5: (72.0, 80.0, 88.0)}
    for seed, of_folds in values.items():
        for fold, value in enumerate(of_folds, start=1):
            part = table / f"run/seed-{seed}-fold-{fold}"
            (part / "model").mkdir(parents=True)
            (part / "recipe.json").write_text("{}")
            scores = {"accuracy": {"name": "accuracy", "value": value}}
            results = {"dev": {"sentences": 7, "scores": scores}, "test": {"sentences": 10 * fold, "scores": scores}}
            (part / "scores.json").write_text(json.dumps(results))
    gather(both, table / "run", [*series(both)])
    stored = json.loads((table / "run/scores.json").read_text())
    found = stored["test"]
    low, high = stats.t.interval(0.95, 2, loc=80, scale=stats.sem([71, 80, 89]))
    accuracy = found["scores"]["accuracy"]
    assert (accuracy["value"], accuracy["n"], accuracy["values"]) == (80, 3, [71, 80, 89])
    assert (accuracy["low"], accuracy["high"]) == pytest.approx((low, min(high, 100)), abs=0.01)
    assert accuracy["signature"] == "mean of 3 folds of 2 seeds, Student's t 95%"
    assert (stored["dev"]["sentences"], found["sentences"]) == (7, 60)


@pytest.mark.parametrize("n", [2, 3, 5, 31, 40])
def test_the_interval_is_students(n: int) -> None:
    values = np.random.default_rng(n).normal(80, 3, n).tolist()
    found = mean_of("mean_absolute_error", values, "seeds")  # which is not cut off at 100
    low, high = stats.t.interval(0.95, n - 1, loc=np.mean(values), scale=stats.sem(values))
    assert found["value"] == pytest.approx(np.mean(values), abs=1e-4)
    tolerance = (
        3e-4 if n <= 31 else 0.04
    )  # the table has three places; beyond it the normal distribution is near enough
    assert found["high"] - found["low"] == pytest.approx(high - low, rel=tolerance)
    assert found["high"] + found["low"] == pytest.approx(high + low, abs=1e-3)
    assert found["deviation"] == pytest.approx(stats.tstd(values), abs=1e-4)


@pytest.mark.parametrize(
    ("name", "values", "low", "high"),
    [
        ("accuracy", [50.0, 99.0, 99.0], 12.3923, 100.0),
        ("f1_yes", [1.0, 9.0], 0.0, 55.824),
        ("mcc", [-90.0, 10.0], -100.0, 100.0),
        ("spearman", [-1.0, 1.0], -12.706, 12.706),
        ("perplexity", [1.5, 90.0, 180.0], 1.0, 312.2),
        ("mean_absolute_error", [0.1, 0.9], 0.0, 5.5824),
    ],
)
def test_an_interval_stays_on_the_scale_of_its_score(name: str, values: list[float], low: float, high: float) -> None:
    found = mean_of(name, values, "folds")
    assert (found["low"], found["high"]) == (pytest.approx(low, abs=0.1), pytest.approx(high, abs=0.1))


def said_of(out: Path) -> str:
    console = Console(file=io.StringIO(), width=200)
    print_short_scores(console, out)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_a_mean_is_said_to_be_one(tmp_path: Path) -> None:
    mean = mean_of("accuracy", [50.0, 60.0, 84.0], "folds")
    result = {"sentences": 9, "scores": {"accuracy": mean}, "baselines": {"most_frequent": {"accuracy": 40.0}}}
    (tmp_path / "scores.json").write_text(json.dumps({"test": result}))
    assert said_of(tmp_path) == (
        "test: accuracy 64.67 ± 17.47 (21.26 – 100.00), mean of 3 folds, most frequent 40.00\n"
    )
    console = Console(file=io.StringIO(), width=200)
    print_scores(console, "test", result)
    rows = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    (row,) = (row for row in rows if "64.67" in row)
    assert [*filter(None, (cell.strip() for cell in row.split("  ")))] == [
        "accuracy", "64.67 ± 17.47", "21.26 – 100.00", "mean of 3 folds",
    ]  # fmt: skip


@pytest.mark.parametrize(("part", "kept"), [("seed", True), ("fold", False)])
def test_baselines_stand_beside_the_test_set_that_they_are_of(tmp_path: Path, part: str, kept: bool) -> None:
    """All seeds have one; folds have one each, and the mean over these is not beside a model of one of them."""
    found = {"sentences": 9, "scores": {}, "parts": [f"{part}-1", f"{part}-2"], "baselines": {"majority": {}}}
    (tmp_path / "scores.json").write_text(json.dumps({"test": found}))
    assert ("baselines" in stored_beside(tmp_path, "test")) is kept


def test_the_score_of_one_training_is_no_mean(tmp_path: Path) -> None:
    score = {"name": "accuracy", "value": 90.0, "low": 88.0, "high": 92.0, "n": 400, "signature": "2 labels, bootstrap"}
    (tmp_path / "scores.json").write_text(json.dumps({"test": {"sentences": 400, "scores": {"accuracy": score}}}))
    assert said_of(tmp_path) == "test: accuracy 90.00 (88.00 – 92.00)\n"


def test_one_training_keeps_the_interval_of_its_test_set(tmp_path: Path, table: Path) -> None:
    score = {"name": "accuracy", "value": 90.0, "low": 88.0, "high": 92.0, "n": 400, "signature": "bootstrap"}
    (tmp_path / "seed-7/model").mkdir(parents=True)
    (tmp_path / "seed-7/recipe.json").write_text("{}")
    (tmp_path / "seed-7/events.jsonl").write_text("")
    (tmp_path / "seed-7/scores.json").write_text(
        json.dumps({"test": {"sentences": 400, "scores": {"accuracy": score}}})
    )
    gather(recipe(table, seeds=[7]), tmp_path, ["seed-7"])
    assert json.loads((tmp_path / "scores.json").read_text())["test"]["scores"]["accuracy"] == score


@pytest.mark.parametrize(("metric", "values", "best"), [("accuracy", (70, 91), 1), ("perplexity", (1.2, 3.0), 0)])
def test_the_model_of_all_is_the_best_on_dev(tmp_path: Path, table: Path, metric: str, values: Any, best: int) -> None:
    parts = ["seed-1", "seed-2"]
    for part, value in zip(parts, values, strict=True):
        (tmp_path / part / "model").mkdir(parents=True)
        (tmp_path / part / "model" / "README.md").write_text(part)
        (tmp_path / part / "recipe.json").write_text("{}")
        events = [{"event": "evaluated", "scores": {metric: value}, "best": True}]
        (tmp_path / part / "events.jsonl").write_text("\n".join(map(json.dumps, events)))
        score = {"name": "accuracy", "value": 91.0 if part == parts[best] else 70.0}
        scores = {"dev": {"sentences": 9, "scores": {"accuracy": score}}}
        (tmp_path / part / "scores.json").write_text(json.dumps(scores))
    gather(recipe(table, train={"metric": metric}, seeds=[1, 2]), tmp_path, parts)
    assert (tmp_path / "model/README.md").read_text() == parts[best]
    found = json.loads((tmp_path / "scores.json").read_text())["dev"]["scores"]["accuracy"]
    assert (found["value"], found["n"], sorted(found["values"])) == (80.5, 2, [70.0, 91.0])


def test_what_counts_is_the_model_and_not_a_checkpoint_on_the_way_to_it(tmp_path: Path, table: Path) -> None:
    parts = ["seed-1", "seed-2"]
    for part, on_the_way, in_the_end in zip(parts, (100.0, 90.0), (60.0, 88.0), strict=True):
        (tmp_path / part / "model").mkdir(parents=True)
        (tmp_path / part / "model" / "README.md").write_text(part)
        (tmp_path / part / "recipe.json").write_text("{}")
        event = {"event": "evaluated", "scores": {"accuracy": on_the_way}, "best": True}
        (tmp_path / part / "events.jsonl").write_text(json.dumps(event))
        score = {"name": "accuracy", "value": in_the_end}
        (tmp_path / part / "scores.json").write_text(
            json.dumps({"dev": {"sentences": 9, "scores": {"accuracy": score}}})
        )
    gather(recipe(table, train={"metric": "accuracy", "final": "average"}, seeds=[1, 2]), tmp_path, parts)
    assert (tmp_path / "model/README.md").read_text() == "seed-2"


def test_the_score_that_chose_the_model_is_the_one_that_is_said(tmp_path: Path) -> None:
    scores = {
        name: {"name": name, "value": value, "low": value, "high": value, "n": 9, "signature": ""}
        for name, value in (("accuracy", 90.0), ("mcc", 55.0))
    }
    (tmp_path / "scores.json").write_text(json.dumps({"test": {"sentences": 9, "scores": scores}}))
    (tmp_path / "recipe.json").write_text(json.dumps({"recipe": {"train": {"metric": "mcc"}}, "data": {}}))
    assert said_of(tmp_path) == "test: mcc 55.00 (55.00 – 55.00)\n"


def test_cross_validation_from_the_command_line(
    table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JUMOK_CACHE", str(table / "cache"))
    text = """
    task = { kind = "classification" }
    data = { kind = "labelled", train = ["table.tsv"], folds = 3, dev_share = 0.2 }
    tokenizer = { kind = "word", vocab_size = 60 }
    model = { kind = "rnn", d_embedding = 8, d_hidden = 8 }
    train = { steps = 4, batch_tokens = 64, evaluate_every = 2, save_every = 2, metric = "accuracy" }
    """
    (table / "recipe.toml").write_text(text)
    result = CliRunner().invoke(app, ["train", str(table / "recipe.toml"), "--out", str(table / "run")])
    assert result.exit_code == 0, result.output
    scores = json.loads((table / "run/scores.json").read_text())
    assert scores["test"]["parts"] == ["fold-1", "fold-2", "fold-3"]
    assert scores["test"]["scores"]["accuracy"]["signature"] == "mean of 3 folds, Student's t 95%"
    each = [json.loads((table / f"run/fold-{n}/scores.json").read_text())["test"]["sentences"] for n in (1, 2, 3)]
    assert sum(each) == scores["test"]["sentences"] == 80
    fold = table / "run/fold-2"
    assert splits(fold, None).keys() == {"dev", "test"}
    with (table / "table.tsv").open("a") as file:
        file.write("\none more\t+")
    with pytest.raises(CheckpointError) as caught:
        splits(fold, None)
    assert (caught.value.code, caught.value.where) == ("checkpoint.data_changed", str(fold))
    assert "dev and test" in caught.value.what
    (table / "table.tsv").write_text((table / "table.tsv").read_text().removesuffix("\none more\t+"))
    assert load(table / "run").predict(["good film"])[0].text in {"+", "-"}

    def jumok(*arguments: str) -> str:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["jumok", *arguments])
        with pytest.raises(SystemExit):
            main()
        return capsys.readouterr().err

    run, one, two = (str(table / name) for name in ("run", "run/fold-1", "run/fold-2"))
    note = re.compile(rf"^note: {re.escape(run)} .* 3 .*fold-1 .*fold-3", re.MULTILINE)
    assert note.search(jumok("evaluate", run))
    assert "note:" not in jumok("evaluate", one)
    assert "data.fold is 1 and 2" in jumok("compare", one, two)
    assert "fold-1, fold-2, fold-3" in jumok("compare", run, run)
    said = jumok("compare", run, one, "--data", f"test={table / 'table.tsv'}")
    assert (bool(note.search(said)), "error" in said) == (True, False)


def test_what_is_wrong_with_a_fold_is_said_before_the_first_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))
    rows = [f"word{i} film\t{'ab'[i % 2]}\n" for i in range(40)]
    (tmp_path / "table.tsv").write_text("text\tlabel\n" + "".join(rows) + "the only one\trare\n")
    text = """
    task = { kind = "classification" }
    data = { kind = "labelled", train = ["table.tsv"], folds = 3, dev_share = 0.2 }
    tokenizer = { kind = "word", vocab_size = 60 }
    model = { kind = "rnn", d_embedding = 8, d_hidden = 8 }
    train = { steps = 2, batch_tokens = 64, metric = "accuracy" }
    """
    (tmp_path / "recipe.toml").write_text(text)
    result = CliRunner().invoke(app, ["train", str(tmp_path / "recipe.toml"), "--out", str(tmp_path / "run")])
    assert isinstance(result.exception, DataError)
    assert result.exception.code == "data.unknown_label"
    assert re.match(r"in fold-[123]: .*'rare'", result.exception.what)
    assert not (tmp_path / "run").exists()


# what may be compared


def store(run: Path, hashes: dict[str, str], **data: Any) -> Path:
    run.mkdir()
    (run / "recipe.json").write_text(json.dumps({"recipe": {"data": {"kind": "labelled", **data}}, "data": hashes}))
    return run


TEST = {"test": "f00"}


@pytest.mark.parametrize(
    ("one", "other", "key"),
    [
        ({"folds": 3, "fold": 1}, {"folds": 3, "fold": 2}, "data.fold is 1 and 2"),
        ({"folds": 3, "fold": 1}, {"folds": 5, "fold": 1}, "data.folds is 3 and 5"),
        ({"test_share": 0.1}, {"test_share": 0.2}, "data.test_share is 0.1 and 0.2"),
        ({"dev_share": 0.1}, {}, "data.dev_share is 0.1 and None"),
        ({"test_share": 0.1, "text": "a"}, {"test_share": 0.1, "text": "b"}, "data.text is 'a' and 'b'"),
        ({"test": ["a.tsv"]}, {"test": ["b.tsv"]}, "data.test is ['a.tsv'] and ['b.tsv']"),
        ({"dev": ["a.tsv"]}, {"dev": ["b.tsv"]}, "data.dev is ['a.tsv'] and ['b.tsv']"),
        ({"kind": "toy_josa"}, {"kind": "toy_names"}, "data.kind is 'toy_josa' and 'toy_names'"),
    ],
)
def test_what_one_may_have_learned_of_the_other_is_no_test(
    tmp_path: Path, one: dict[str, Any], other: dict[str, Any], key: str
) -> None:
    hashes = {"dev": "1", "test": "1"}, {"dev": "2", "test": "2"}
    runs = store(tmp_path / "a", hashes[0], **one), store(tmp_path / "b", hashes[1], **other)
    with pytest.raises(InputError) as caught:
        refuse_other_test_data(*runs)
    assert (caught.value.code, caught.value.where) == ("input.other_test_data", f"{runs[0]} and {runs[1]}")
    assert key in caught.value.what
    assert "--data" in (caught.value.hint or "")


def test_a_cross_validation_as_a_whole_is_not_compared(tmp_path: Path) -> None:
    run = store(tmp_path / "a", TEST)
    found = {"sentences": 9, "scores": {}, "parts": ["fold-1", "fold-2"]}
    (run / "scores.json").write_text(json.dumps({"test": found}))
    for pair in ((run, tmp_path / "b"), (tmp_path / "b", run)):
        with pytest.raises(InputError) as caught:
            refuse_other_test_data(*pair)
        assert (caught.value.code, caught.value.where) == ("input.cross_validation", str(run))
        assert "fold-1, fold-2" in caught.value.what


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"train": ["a.tsv"], "test": ["t.tsv"], "max_len": 64}, {"train": ["b.tsv"], "test": ["t.tsv"]}),
        ({"test": ["here/t.tsv"]}, {"test": ["there/t.tsv"]}),  # the same bytes
        ({"test": ["t.txt"], "kind": "text"}, {"test": ["t.txt"], "kind": "documents"}),
        ({"train": ["a.tsv"], "test_share": 0.1}, {"train": ["a.tsv", "b.tsv"], "test_share": 0.1, "folds": 0}),
        ({"kind": "toy_reviews", "n_test": 9}, {"kind": "toy_reviews", "n_test": 10}),
    ],
)
def test_other_training_data_does_not_matter(tmp_path: Path, one: dict[str, Any], other: dict[str, Any]) -> None:
    refuse_other_test_data(store(tmp_path / "a", TEST, **one), store(tmp_path / "b", TEST, **other))
    refuse_other_test_data(tmp_path / "a", tmp_path / "imported")


def test_the_model_of_a_part_is_copied_without_links(table: Path) -> None:
    both = recipe(table, seeds=[3, 5])
    for part in series(both):
        folder = table / "run" / part
        (folder / "model").mkdir(parents=True)
        (folder / "recipe.json").write_text("{}")
        result = {"sentences": 7, "scores": {"accuracy": {"name": "accuracy", "value": 50.0}}}
        (folder / "scores.json").write_text(json.dumps({"dev": result}))
        (folder / "model/README.md").symlink_to(table / "table.tsv")
    with pytest.raises(CheckpointError) as caught:
        gather(both, table / "run", [*series(both)])
    assert caught.value.code == "checkpoint.link"
    assert not (table / "run/model").exists()


@pytest.mark.parametrize("text", ["{", "[1]", '{"test": 1}', '{"test": {}}', "[" * 100_000, "9" * 5000], ids=range(6))
def test_scores_that_cannot_be_read_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "scores.json").write_text(text)
    with pytest.raises(CheckpointError) as caught:
        stored_beside(tmp_path, "test")
    assert (caught.value.code, caught.value.where) == ("checkpoint.unreadable", str(tmp_path / "scores.json"))
