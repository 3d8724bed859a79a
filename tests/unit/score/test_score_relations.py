"""Relations score as the official scorer of SemEval-2010 Task 8 prints, as done by hand, and as scikit-learn."""

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

from jumok.errors import DataError
from jumok.score.relations import OVERALL, relation_metrics, relation_of

RELATIONS = [
    "Cause-Effect",
    "Component-Whole",
    "Content-Container",
    "Entity-Destination",
    "Entity-Origin",
    "Instrument-Agency",
    "Member-Collection",
    "Message-Topic",
    "Product-Producer",
]

# What semeval2010_task8_scorer-v1.2.pl printed for some public system: gold in the rows, predictions in the columns,
# Other last; then the examples of each row whose relation is right and whose direction is wrong.
OFFICIAL_CONFUSION = [
    [263, 1, 0, 1, 11, 3, 3, 2, 3, 20],
    [2, 187, 9, 6, 4, 7, 11, 7, 4, 34],
    [0, 6, 156, 8, 6, 0, 2, 0, 1, 5],
    [0, 1, 16, 256, 2, 1, 0, 2, 3, 8],
    [4, 1, 2, 7, 190, 2, 4, 2, 7, 26],
    [2, 12, 1, 1, 3, 80, 2, 6, 7, 35],
    [0, 11, 1, 1, 3, 2, 176, 4, 6, 17],
    [0, 7, 1, 3, 0, 3, 2, 179, 14, 27],
    [7, 8, 0, 5, 9, 8, 5, 8, 132, 28],
    [15, 49, 25, 30, 43, 20, 41, 38, 30, 163],
]
OFFICIAL_WRONG_DIRECTION = [21, 41, 8, 3, 13, 7, 12, 25, 21, 0]
OFFICIAL_F1 = [81.93, 58.81, 75.91, 83.52, 70.11, 55.36, 71.69, 67.04, 57.52]

LABELS = ["Cause-Effect(e1,e2)", "Cause-Effect(e2,e1)", "Message-Topic(e1,e2)", "Message-Topic(e2,e1)", "Other"]
UNDIRECTED = ["INHIBITOR", "AGONIST", "ANTAGONIST", "SUBSTRATE"]


def pairs(labels):
    label = st.sampled_from(labels)
    rows = st.lists(st.tuples(label, label) | label.map(lambda same: (same, same)), min_size=1, max_size=25)
    return rows.map(lambda both: tuple(map(list, zip(*both, strict=True))))


def random_labels(n, seed, rate=0.6):
    rng = np.random.default_rng(seed)
    gold = rng.choice(LABELS, size=n)
    return np.where(rng.random(n) < rate, gold, rng.choice(LABELS, size=n)).tolist(), gold.tolist()


def occurring_metrics(predicted, gold, *, no_relation):
    """Metrics of the relations that occur."""
    return relation_metrics(predicted, gold, relations=sorted({*predicted, *gold}), no_relation=no_relation)


def overall(predicted, gold, *, no_relation):
    return occurring_metrics(predicted, gold, no_relation=no_relation).values(*OVERALL)


def test_the_official_scorer_says_the_same():
    predicted, gold = [], []
    directions = ["(e1,e2)", "(e2,e1)"]
    for row, counts in enumerate(OFFICIAL_CONFUSION):
        names = [*RELATIONS, "Other"]
        cells = [(column, count, True) for column, count in enumerate(counts)]
        for column, count, right_way in [*cells, (row, OFFICIAL_WRONG_DIRECTION[row], False)]:
            for k in range(count):
                true, said = directions[k % 2], directions[k % 2 if right_way else (k + 1) % 2]
                gold.append(names[row] + true * (row < 9))
                predicted.append(names[column] + said * (column < 9))
    assert len(gold) == 2717
    scores = occurring_metrics(predicted, gold, no_relation="Other").scores(samples=5)
    found = {score.name: score.value for score in scores}
    expected = {"macro_f1": 69.10, "micro_f1": 70.13, "accuracy": 65.59}
    expected |= {f"f1_{name}": value for name, value in zip(RELATIONS, OFFICIAL_F1, strict=True)}
    assert found == pytest.approx(expected, abs=0.005001)


def test_by_hand():
    ce12, ce21, mt12, mt21, other = LABELS
    rows = [
        (ce12, ce12),  # gold, predicted
        (ce12, ce12),
        (ce12, ce21),  # the wrong direction: predicted once, missed once
        (ce21, mt21),
        (mt12, mt12),
        (mt21, other),
        (other, ce21),
        (other, other),
    ]
    gold, predicted = zip(*rows, strict=True)
    # Cause-Effect: 2 hits, 4 predicted, 4 gold; Message-Topic: 1 hit, 2 predicted, 2 gold.
    expected = {"macro_f1": (50 + 50) / 2, "micro_f1": 50, "accuracy": 50}
    assert overall(predicted, gold, no_relation="Other") == pytest.approx(expected)
    each = {"f1_Cause-Effect": 50, "f1_Message-Topic": 50}
    found = {score.name: score.value for score in occurring_metrics(predicted, gold, no_relation="Other").scores()}
    assert found == pytest.approx(expected | each)
    # were Other a relation, with 1 hit, 2 predicted and 2 gold, or were there one more that never occurs
    assert overall(predicted, gold, no_relation=None)["macro_f1"] == pytest.approx(50)
    more = relation_metrics(predicted, gold, no_relation="Other", relations=[*LABELS, "Entity-Origin(e1,e2)"])
    assert more.values(*OVERALL) == pytest.approx(expected | {"macro_f1": 100 / 3})


def test_the_wrong_direction_is_no_hit():
    right, wrong = "Cause-Effect(e1,e2)", "Cause-Effect(e2,e1)"
    assert overall([wrong], [right], no_relation="Other") == {"macro_f1": 0, "micro_f1": 0, "accuracy": 0}
    # 1 hit, 2 predicted, 2 gold; by full label macro-F1 would be (200/3 + 0) / 2
    assert overall([right, wrong], [right, right], no_relation="Other")["macro_f1"] == pytest.approx(50)


@pytest.mark.parametrize(
    ("label", "relation"),
    [
        ("Cause-Effect(e2,e1)", "Cause-Effect"),
        ("Cause-Effect(e1,e2)", "Cause-Effect"),
        ("Other", "Other"),
        ("INHIBITOR", "INHIBITOR"),
        ("part(of)", "part(of)"),
        ("원인-결과(e1,e2)", "원인-결과"),
    ],
)
def test_the_direction_is_taken_off(label, relation):
    assert relation_of(label) == relation


@given(pairs(UNDIRECTED), st.sampled_from([*UNDIRECTED, None]))
@example((["AGONIST"], ["AGONIST"]), "AGONIST")
@settings(max_examples=200, deadline=None)
def test_without_direction_scores_are_those_of_scikit_learn(case, no_relation):
    predicted, gold = case
    kept = [label for label in UNDIRECTED if label != no_relation]

    def theirs(average, labels):
        return 100 * f1_score(gold, predicted, labels=labels, average=average, zero_division=0)

    found = relation_metrics(predicted, gold, no_relation=no_relation, relations=UNDIRECTED).values(*OVERALL)
    expected = {
        "macro_f1": theirs("macro", kept),
        "micro_f1": theirs("micro", kept),
        "accuracy": 100 * accuracy_score(gold, predicted),
    }
    assert found == pytest.approx(expected, abs=1e-9)
    occurring = sorted({*predicted, *gold} - {no_relation})
    macro = theirs("macro", occurring) if occurring else 0
    assert overall(predicted, gold, no_relation=no_relation) == pytest.approx(expected | {"macro_f1": macro})


@given(pairs(LABELS), st.randoms())
@settings(max_examples=200, deadline=None)
def test_micro_f1_is_scikit_learns_scores_are_shares_and_order_changes_nothing(case, random):
    predicted, gold = case
    found = overall(predicted, gold, no_relation="Other")
    micro = f1_score(gold, predicted, labels=LABELS[:-1], average="micro", zero_division=0)
    assert found["micro_f1"] == pytest.approx(100 * micro, abs=1e-9)
    assert all(0 <= value <= 100 for value in found.values())
    order = random.sample(range(len(gold)), len(gold))
    assert overall([predicted[i] for i in order], [gold[i] for i in order], no_relation="Other") == found


@given(st.lists(st.sampled_from(LABELS), min_size=1, max_size=20))
@settings(max_examples=100, deadline=None)
def test_perfect_relations_score_100(gold):
    found = overall(gold, gold, no_relation="Other")
    assert found["accuracy"] == 100
    assert found["macro_f1"] == found["micro_f1"] == (0 if set(gold) == {"Other"} else 100)


def test_intervals_contain_the_value_and_the_signature_says_how():
    scores = occurring_metrics(*random_labels(300, seed=1), no_relation="Other").scores(samples=400, seed=9)
    names = ["macro_f1", "micro_f1", "accuracy", "f1_Cause-Effect", "f1_Message-Topic"]
    assert [score.name for score in scores] == names
    assert all(0 < score.low < score.value < score.high < 100 for score in scores)
    rule = "SemEval-2010 Task 8, 2 relations without Other, bootstrap 400, seed 9, 95%"
    assert {score.signature for score in scores} == {rule}
    (score, *_) = relation_metrics(["X"], ["X"], relations=["X"], no_relation=None).scores(samples=2)
    assert score.signature.startswith("SemEval-2010 Task 8, 1 relations, bootstrap 2")


def test_a_better_system_is_better_and_no_better_than_itself():
    predicted, gold = random_labels(200, seed=2)
    ours, perfect = (relation_metrics(side, gold, relations=LABELS, no_relation="Other") for side in (predicted, gold))
    found, scores = ours.against(perfect), ours.scores(samples=5)
    assert {c.metric: c.a for c in found} == pytest.approx({score.name: score.value for score in scores})
    assert all(c.b == 100 and c.low > 0 and c.p_value < 0.01 for c in found)
    assert all((c.difference, c.low, c.high, c.p_value) == (0, 0, 0, 1) for c in ours.against(ours))


def test_a_relation_that_one_system_invents_counts_for_both():
    sides, gold = (["X", "Y"], ["X", "X"]), ["X", "X"]
    a, b = (relation_metrics(side, gold, relations=["X", "Y"], no_relation=None) for side in sides)
    macro = a.against(b, samples=10)[0]
    assert (macro.a, macro.b) == pytest.approx((100 / 3, 50))


def test_relations_that_do_not_fit_are_refused():
    with pytest.raises(DataError) as caught:
        relation_metrics(["X"], ["X", "X"], no_relation=None, relations=["X"])
    assert (caught.value.code, re.findall(r"\d+", caught.value.what)) == ("data.counts", ["1", "2"])
    with pytest.raises(DataError) as caught:
        relation_metrics([], [], no_relation="Other", relations=["X"])
    assert caught.value.code == "data.empty"
    for predicted, gold in ((["X"], ["Y"]), (["Y"], ["X"])):
        with pytest.raises(DataError) as caught:
            relation_metrics(predicted, gold, no_relation=None, relations=["X"])
        assert caught.value.code == "data.unknown_label"
        assert caught.value.what.endswith(" Y")
