"""Scores on a terminal: each class with its precision and recall, each signature once, and the best baseline."""

import io
from typing import Any

import pytest
from rich.console import Console

from jumok.card import beside_baselines
from jumok.cli.scores import print_all_scores


def score(name: str, value: float) -> dict[str, Any]:
    return {"name": name, "value": value, "low": value - 1, "high": value + 1, "n": 100, "signature": "2 labels, b"}


AGAINST = {
    "baseline": "bag_of_words",
    "metric": "accuracy",
    "a": 60.0,
    "b": 70.0,
    "difference": 10.0,
    "low": 4.0,
    "high": 16.0,
    "p_value": 0.001,
    "n": 100,
    "test": "paired approximate randomization",
}


def result(labels: list[str], counts: list[list[int]]) -> dict[str, Any]:
    return {
        "sentences": 100,
        "scores": {name: score(name, 70.0) for name in ("accuracy", "macro_f1")},
        "confusion": {"labels": labels, "counts": counts},
        "baselines": {"bag_of_words": {"accuracy": 60.0}},
        "against_baseline": AGAINST,
    }


def printed(results: dict[str, Any]) -> str:
    out = io.StringIO()
    print_all_scores(Console(file=out, width=200), results)
    return out.getvalue()


def test_classes_and_signatures_are_printed_once() -> None:
    said = printed({split: result(["bad", "[good]"], [[40, 10], [20, 30]]) for split in ("dev", "test")})
    assert said.count("accuracy, macro_f1: 2 labels, b") == 1
    rows = [line.split() for line in said.splitlines() if line.split()[:1] in (["bad"], ["[good]"])]
    bad = ["bad", "50", "66.67", "80.00", "72.73", "40", "10"]
    good = ["[good]", "50", "75.00", "60.00", "66.67", "20", "30"]
    assert rows == [bad, good] * 2
    assert said.count("p = 0.001") == 2


def test_of_many_labels_the_most_frequent_confusions_are_printed() -> None:
    labels = [f"label{n}" for n in range(12)]
    counts = [[8 if i == j else 7 if (i, j) == (3, 5) else 0 for j in range(12)] for i in range(12)]
    said = printed({"test": result(labels, counts)})
    assert "as label0" not in said
    assert "label3 as label5 7" in said


@pytest.mark.parametrize(("p", "words"), [(0.001, "better than the best"), (0.2, "not clearly better than")])
def test_the_card_names_the_best_baseline_and_the_test(p: float, words: str) -> None:
    scores = {"test": {**result(["a", "b"], [[1, 0], [0, 1]]), "against_baseline": {**AGAINST, "p_value": p}}}
    lines = beside_baselines(scores)
    assert "| test | bag of words | accuracy 60.00 |" in lines
    assert any(words in line and "+10.00" in line for line in lines)
    assert any("approximate randomization" in line for line in lines)
    assert beside_baselines({"test": {"scores": {}}}) == []
