"""Several trainings of one recipe: what they are, their mean by Student's t, and which model stands for all."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from jumok.cli import app
from jumok.data.sources import LabelledData
from jumok.predictor import load
from jumok.recipe import parse_recipe
from jumok.series import gather, mean_of, series

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


@pytest.mark.parametrize("n", [2, 3, 5, 31, 40])
def test_the_interval_is_students(n: int) -> None:
    values = np.random.default_rng(n).normal(80, 3, n).tolist()
    found = mean_of("accuracy", values, "seeds")
    low, high = stats.t.interval(0.95, n - 1, loc=np.mean(values), scale=stats.sem(values))
    assert found["value"] == pytest.approx(np.mean(values), abs=1e-4)
    tolerance = (
        3e-4 if n <= 31 else 0.04
    )  # the table has three places; beyond it the normal distribution is near enough
    assert found["high"] - found["low"] == pytest.approx(high - low, rel=tolerance)
    assert found["high"] + found["low"] == pytest.approx(high + low, abs=1e-3)
    assert found["deviation"] == pytest.approx(stats.tstd(values), abs=1e-4)


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


def test_cross_validation_from_the_command_line(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert sum(each) == 80
    assert load(table / "run").predict(["good film"])[0].text in "+-"
