"""Confusion matrices equal scikit-learn's, of labels and of entities; bins of confidence its calibration curve."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from jumok.errors import DataError
from jumok.score.classification import calibration_error, reliability
from jumok.score.confusion import NO_ENTITY, Confusion, by_label, confused, confusion, span_confusion

LABELS = ["a", "b", "c", "d"]
label = st.integers(0, 3)
places = st.integers(0, 5).flatmap(lambda start: st.tuples(st.sampled_from(["LOC", "PER"]), st.just(start)))


@given(st.lists(st.tuples(label, label), min_size=1, max_size=40))
def test_the_matrix_of_labels_is_that_of_scikit_learn(pairs) -> None:
    predicted, gold = zip(*pairs, strict=True)
    found = confusion(predicted, gold, labels=LABELS)
    assert found.labels == LABELS
    assert found.counts == confusion_matrix(gold, predicted, labels=range(4)).tolist()


def side() -> st.SearchStrategy:
    """Entities of a sentence, no two at one place."""
    one = st.lists(places, max_size=4, unique_by=lambda place: place[1])
    return one.map(lambda found: [(kind, start, start + 1) for kind, start in found])


@given(st.lists(st.tuples(side(), side()), min_size=1, max_size=8))
def test_the_matrix_of_entities_is_that_of_scikit_learn_over_places(sentences) -> None:
    predicted, gold = zip(*sentences, strict=True)
    found = span_confusion(predicted, gold)
    pairs = []
    for ours, true in sentences:
        for start in range(6):
            a, b = ({s: kind for kind, s, _ in some}.get(start, NO_ENTITY) for some in (ours, true))
            if {a, b} != {NO_ENTITY}:
                pairs.append((b, a))
    assert found.labels[-1] == NO_ENTITY
    expected = np.zeros((len(found.labels),) * 2, int)
    if pairs:
        expected = confusion_matrix(*zip(*pairs, strict=True), labels=found.labels)
    assert found.counts == expected.tolist()


def test_another_end_is_another_entity() -> None:
    found = span_confusion([[("LOC", 0, 2)]], [[("LOC", 0, 3)]])
    assert (found.labels, found.counts) == (["LOC", NO_ENTITY], [[0, 1], [1, 0]])


def test_sides_of_different_length_are_refused() -> None:
    with pytest.raises(DataError):
        confusion([0], [0, 1], labels=LABELS)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60))
def test_bins_are_those_of_the_calibration_curve(pairs) -> None:
    sure, right = (list(side) for side in zip(*pairs, strict=True))
    found = reliability(sure, right)
    # With one class alone scikit-learn cannot tell which is the positive one.
    accuracy, confidence = calibration_curve([*right, False, True], [*sure, *sure[:1], *sure[:1]], n_bins=10)
    same = reliability([*sure, *sure[:1], *sure[:1]], [*right, False, True])
    assert [one.accuracy for one in same] == pytest.approx(accuracy.tolist())
    assert [one.confidence for one in same] == pytest.approx(confidence.tolist())
    assert sum(one.n for one in found) == len(sure)
    assert all(one.above - 1e-12 <= one.confidence <= one.up_to + 1e-12 for one in found)  # a mean is rounded
    gaps = sum(abs(one.accuracy - one.confidence) * one.n for one in found) / len(sure)
    assert calibration_error(sure, right) == pytest.approx(100 * gaps)


def test_an_edge_belongs_to_the_bin_below_it() -> None:
    assert [(one.above, one.n) for one in reliability([0.5, 0.51, 1.0], [True, True, True], bins=2)] == [
        (0.0, 1),
        (0.5, 2),
    ]


def test_precision_and_recall_of_each_label_are_those_of_scikit_learn():
    rng = np.random.default_rng(5)
    gold, ours = rng.integers(0, 4, 200), rng.integers(0, 3, 200)  # the last one is never predicted
    found = by_label(confusion(ours.tolist(), gold.tolist(), labels=[*"abcd"]))
    theirs = precision_recall_fscore_support(gold, ours, labels=range(4), zero_division=0)
    rows = np.array([[one.precision, one.recall, one.f1, 100 * one.gold] for one in found])
    assert rows == pytest.approx(100 * np.array(theirs).T)
    assert [one.predicted for one in found] == np.bincount(ours, minlength=4).tolist()


def test_what_is_no_entity_is_no_class_but_may_be_confused_with_one():
    found = Confusion(["LOC", "PER", "O"], [[5, 1, 2], [0, 3, 0], [4, 0, 0]])
    assert [(one.label, one.gold, one.predicted) for one in by_label(found)] == [("LOC", 8, 9), ("PER", 3, 4)]
    assert confused(found) == [("O", "LOC", 4), ("LOC", "O", 2), ("LOC", "PER", 1)]
