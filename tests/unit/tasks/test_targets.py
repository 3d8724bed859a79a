"""Labels as they are read, in an order that does not follow the file; and the baselines they are held against."""

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.dummy import DummyClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.utils.class_weight import compute_class_weight

from jumok.errors import DataError
from jumok.examples.labelled import Labelled
from jumok.recipe import parse_recipe
from jumok.tasks.baseline import learn, overlap
from jumok.tasks.classification.baselines import learn_baselines
from jumok.tasks.targets import Classes, Numbers, Several, collect_labels, learn_targets
from jumok.text.bag import BUCKETS, bag, features, share_in_common, words


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["b", "a", "b"], ["a", "b"]),
        (["10", "9", "1"], ["1", "9", "10"]),
        (["b", "10", "9", "a"], ["9", "10", "a", "b"]),
        (["1", "01", "-1"], ["01", "1", "-1"]),
        (["9" * 5000, "9", "a"], ["9", "9" * 5000, "a"]),
    ],
)
def test_labels_stand_in_an_order_that_does_not_follow_the_file(given, expected):
    assert collect_labels(given, where="x") == collect_labels(given[::-1], where="x") == expected


@pytest.mark.parametrize("labels", [[], ["a", "a"]])
@pytest.mark.parametrize("predicts", ["class", "labels"])
def test_one_label_is_nothing_to_learn(labels, predicts):
    examples = [Labelled("text", None, label, "file.tsv:2") for label in labels]
    with pytest.raises(DataError) as caught:
        learn_targets(predicts, examples, separator="|", where="file.tsv")
    assert (caught.value.code, caught.value.where) == ("data.few_labels", "file.tsv")
    assert str(len(set(labels))) in caught.value.what


def test_targets_are_learned_from_the_training_data():
    examples = [Labelled("", None, label, "x") for label in ("2|1", "10", "1")]
    assert learn_targets("class", examples, separator="|", where="x") == Classes(["1", "10", "2|1"])
    assert learn_targets("labels", examples, separator="|", where="x") == Several(["1", "2", "10"])
    with pytest.raises(DataError) as caught:
        learn_targets("number", examples, separator="|", where="x")
    assert caught.value.code == "data.not_a_number"
    assert "'2|1'" in caught.value.what
    assert learn_targets("number", examples[1:], separator="|", where="x") == Numbers(5.5, 4.5)


@pytest.mark.parametrize("values", [[1e6 + i for i in range(20)], [1e-9 * i for i in range(9)], [-3.0, 4.0]])
def test_numbers_are_told_by_how_far_they_are_from_their_mean(values):
    found = Numbers.of([Labelled("", None, repr(value), "x") for value in values])
    assert (found.mean, found.deviation) == pytest.approx((np.mean(values), np.std(values)), rel=1e-9)


def test_one_number_is_nothing_to_tell_apart():
    with pytest.raises(DataError) as caught:
        Numbers.of([Labelled("", None, "7", "x")] * 3, where="file.tsv")
    assert (caught.value.code, caught.value.where) == ("data.few_labels", "file.tsv")
    assert "7" in caught.value.what


def test_of_thousands_of_labels_an_error_names_a_few():
    with pytest.raises(DataError) as caught:
        Classes([f"label {i}" for i in range(5000)]).gold([Labelled("", None, "new", "x")])
    assert (caught.value.code, caught.value.where) == ("data.unknown_label", "x")
    assert "'new'" in caught.value.what
    assert caught.value.hint.startswith("use one of label 0, label 1, ")
    assert caught.value.hint.endswith(" and 4,980 more")


@pytest.mark.parametrize("values", [[1.7e9, 1.7e9 + 3], [1e200, 2e200], [1e-200, 2e-200]])
def test_numbers_that_no_model_could_say_are_refused(values):
    with pytest.raises(DataError) as caught:
        Numbers.of([Labelled("", None, repr(value), "x") for value in values], where="file.tsv")
    assert (caught.value.code, caught.value.where) == ("data.number_range", "file.tsv")


@pytest.mark.parametrize("label", ["1_000", "１", "nan", "1e999", "", "0x1", "1,5"])
def test_what_is_no_number(label):
    with pytest.raises(DataError) as caught:
        Numbers().gold([Labelled("", None, label, "x")])
    assert (caught.value.code, caught.value.where) == ("data.not_a_number", "x")


@pytest.mark.parametrize("targets", [Classes(["a", "b"]), Several(["a", "b"]), Numbers()])
def test_an_example_without_a_label_cannot_be_scored(targets):
    with pytest.raises(DataError) as caught:
        targets.gold([Labelled("a", where="file.tsv:2")])
    assert (caught.value.code, caught.value.where) == ("data.no_label", "file.tsv:2")


def test_batches_are_arrays_as_a_loss_wants_them():
    classes = Classes(["a", "b"]).batch([[1], [0]])
    assert (classes.dtype, classes.tolist()) == (np.int64, [1, 0])
    several = Several(["a", "b"]).batch([[], [0, 1], [1]])
    assert (several.dtype, several.tolist()) == (np.float32, [[0, 0], [1, 1], [0, 1]])
    numbers = Numbers(5.0, 2.0)
    batch = numbers.batch([numbers.stored(Labelled("", None, label, "")) for label in ("1", "6")])
    assert (batch.dtype, batch.tolist()) == (np.float32, [-2, 0.5])


@pytest.mark.parametrize("counts", [[9, 3], [1, 2, 3, 94], [5, 5]])
def test_balanced_weights_are_those_of_scikit_learn(counts):
    y = np.repeat(np.arange(len(counts)), counts)
    expected = compute_class_weight("balanced", classes=np.arange(len(counts)), y=y)
    classes = Classes([str(label) for label in range(len(counts))])
    assert classes.balanced(counts, sum(counts)) == pytest.approx(expected.tolist())


@pytest.mark.parametrize("count", [1, 7, 19])
def test_balanced_weights_of_several_are_those_of_scikit_learn_for_each(count):
    """As it weighs both sides of a label, the side that has it weighs so much more."""
    without, with_it = compute_class_weight("balanced", classes=np.arange(2), y=[0] * (20 - count) + [1] * count)
    assert Several(["a"]).balanced([count], 20) == pytest.approx([with_it / without])


@pytest.mark.parametrize("temperature", [0.05, 0.1, 1.0, 5.0])
def test_what_was_cooled_can_be_heated_again(temperature):
    """So that the calibration error before a temperature can be told after it."""
    targets, outputs = Classes(["a", "b", "c"]), np.random.default_rng(1).normal(0, 4, (50, 3))
    cooled = targets.believed(outputs / temperature)
    assert targets.heated(cooled, 1 / temperature) == pytest.approx(targets.believed(outputs), abs=1e-9)


# baselines


def feature_rows(rows):
    return [features([*map(str, row)]) for row in rows]


def examples(rows, labels):
    stored = ([label] if isinstance(label, int) else label for label in labels)
    return [*zip(feature_rows(rows), stored, strict=True)]


def baselines(targets, train, asked):
    return learn(targets, train)(feature_rows(asked))


def counted(rows):
    found = feature_rows(rows)
    columns = np.concatenate(found)
    lines = np.repeat(np.arange(len(rows)), [len(f) for f in found])
    return csr_matrix((np.ones(len(columns)), (lines, columns)), shape=(len(rows), BUCKETS))


def texts(rng, n, n_labels):
    """Labels of different frequency with words that they like better."""
    labels = rng.choice(n_labels, size=n, p=np.arange(1, n_labels + 1) / np.arange(1, n_labels + 1).sum())
    rows = [rng.integers(10 * label, 30 + 10 * label, size=rng.integers(1, 12)).tolist() for label in labels]
    return rows, labels.tolist()


@pytest.mark.parametrize("seed", range(3))
def test_the_bag_of_words_is_the_naive_bayes_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    rows, labels = texts(rng, 120, 4)
    others, gold = texts(rng, 150, 4)
    found = baselines(Classes(list("abcd")), examples(rows, labels), others)
    seen = np.unique(counted(rows).indices)
    model = MultinomialNB(alpha=1.0).fit(counted(rows)[:, seen], labels)
    assert found["bag_of_words"].tolist() == model.predict(counted(others)[:, seen]).tolist()
    dummy = DummyClassifier(strategy="most_frequent").fit(np.zeros((len(labels), 1)), labels)
    assert found["majority"].tolist() == dummy.predict(np.zeros((len(others), 1))).tolist()
    assert (found["bag_of_words"] == gold).mean() > (found["majority"] == gold).mean()


def test_a_word_counts_once_and_so_do_neighbours():
    assert len(bag("a a a")) == 2
    assert len(bag("a b a b")) == 4
    assert len(bag("")) == 0
    assert set(bag("a b")) != set(bag("b a"))


def test_words_are_told_by_a_fixed_rule():
    assert words("Don't  STOP, naïve\t서울에서 3.5!") == [
        *("don", "'", "t", "stop", ",", "naïve", "서울에서", "3", ".", "5", "!")
    ]
    assert len(bag("서울에서")) == 4  # the word and its pairs of characters
    assert len({*bag("서울에서")} & {*bag("서울에")}) == 2
    assert words("가") == words("\u1100\u1161")  # decomposed


@pytest.mark.parametrize("seed", range(3))
def test_of_several_labels_each_is_the_naive_bayes_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    rows, first = texts(rng, 120, 4)
    others, _ = texts(rng, 150, 4)
    labels = [sorted({label, int(extra)} - {3}) for label, extra in zip(first, rng.integers(0, 4, 120), strict=True)]
    found = baselines(Several(list("abc")), examples(rows, labels), others)["bag_of_words"]
    seen = np.unique(counted(rows).indices)
    for label in range(3):
        model = MultinomialNB(alpha=1.0).fit(counted(rows)[:, seen], [label in marked for marked in labels])
        assert found[:, label].tolist() == model.predict(counted(others)[:, seen]).tolist()


def test_the_majority_of_labels_are_those_that_most_texts_have():
    train = examples([[1], [2], [3]], [[0, 1], [0], []])
    assert baselines(Several(["a", "b"]), train, [[1], [2]])["majority"].tolist() == [[True, False]] * 2


def test_of_numbers_the_mean_and_the_words_of_those_that_are_far_from_it():
    rng = np.random.default_rng(2)
    targets = Numbers(mean=50.0, deviation=10.0)
    rows = [rng.integers(0, 20, size=6).tolist() for _ in range(300)]
    numbers = [50 + 4 * (sum(row) / 6 - 9.5) for row in rows]
    stored = [targets.stored(Labelled("", None, repr(n), "")) for n in numbers[:250]]
    train = examples(rows[:250], stored)
    found = baselines(targets, train, rows[250:] + [[99]])
    assert found["mean"].tolist() == [50.0] * 51
    assert found["bag_of_words"][-1] == 50.0  # of what it does not know it says the mean
    assert np.corrcoef(found["bag_of_words"][:-1], numbers[250:])[0, 1] > 0.8
    assert baselines(targets, train, [])["bag_of_words"].tolist() == []


def test_what_is_counted_in_parts_is_what_is_counted_at_once(monkeypatch):
    rng = np.random.default_rng(4)
    rows, labels = texts(rng, 120, 4)
    several = [sorted({label, 2}) for label in labels]
    asked = texts(rng, 50, 4)[0]
    once = [baselines(Classes(list("abcd")), examples(rows, labels), asked)["bag_of_words"].tolist()]
    once.append(baselines(Several(list("abcd")), examples(rows, several), asked)["bag_of_words"].tolist())
    monkeypatch.setattr("jumok.tasks.baseline._AT_ONCE", 50)
    assert baselines(Classes(list("abcd")), examples(rows, labels), asked)["bag_of_words"].tolist() == once[0]
    assert baselines(Several(list("abcd")), examples(rows, several), asked)["bag_of_words"].tolist() == once[1]


@pytest.mark.parametrize(("kind", "expected"), [(Classes, [7, 3990]), (Several, [[False] * 4000] * 2)])
def test_thousands_of_labels_take_no_table_of_all_words(kind, expected):
    """A table of 4,000 labels and all buckets would have 8 GB. One text in 4,000 makes no label likely by itself."""
    targets = kind([str(label) for label in range(4000)])
    train = examples([[label, label + 1] for label in range(4000)], [[label] for label in range(4000)])
    tracemalloc.start()
    found = baselines(targets, train, [[7, 8], [3990, 3991]])["bag_of_words"]
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()
    assert found.tolist() == expected


def test_a_label_of_which_nothing_is_left_is_never_said():
    """All texts of it were empty."""
    found = baselines(Classes(["a", "b"]), examples([[1], [2]], [0, 0]), [[1], [7]])
    assert {name: decided.tolist() for name, decided in found.items()} == {"majority": [0, 0], "bag_of_words": [0, 0]}


# of pairs: what they have in common


def test_what_a_pair_has_in_common_is_counted_once_and_without_punctuation():
    assert share_in_common("A a b.", "b c.") == 1 / 3
    assert share_in_common("", "") == 0
    assert share_in_common("...", "...") == 0
    assert share_in_common("서울에서", "서울에는") == 2 / 4  # of its pairs: 서울, 울에, 에서, 에는


def test_the_overlap_of_classes_is_told_by_the_most_frequent_one_of_pairs_that_share_as_much():
    shares = np.linspace(0, 1, 200)
    labels = [0 if share < 0.3 else 1 if share < 0.6 else 0 for share in shares]
    found = overlap(Classes(["a", "b"]), [*zip(shares, [[label] for label in labels], strict=True)], [0.1, 0.45, 0.9])
    assert found.tolist() == [0, 1, 0]
    several = [[0, 1] if share < 0.3 else [1] for share in shares]
    found = overlap(Several(["a", "b"]), [*zip(shares, several, strict=True)], [0.1, 0.9])
    assert found.tolist() == [[True, True], [False, True]]


def test_the_overlap_of_numbers_rises_as_they_do():
    targets = Numbers(mean=2.5, deviation=1.5)
    rng = np.random.default_rng(3)
    shares = rng.uniform(0, 1, 400)
    numbers = 5 * shares**2 + rng.normal(0, 0.2, 400)
    train = [(s, targets.stored(Labelled("", "", repr(float(n)), ""))) for s, n in zip(shares, numbers, strict=True)]
    asked = np.linspace(0.05, 0.95, 50)
    found = overlap(targets, train, asked.tolist())
    assert found == pytest.approx(5 * asked**2, abs=0.25)
    assert (np.diff(found) > 0).all()
    assert overlap(targets, train, []).tolist() == []


def test_pairs_that_share_the_same_are_judged_together():
    """Nine in ten have nothing in common: they are one part, whatever their order."""
    train = [(0.0, [i % 3 // 2]) for i in range(90)] + [(1.0, [1])] * 10
    for order in (train, train[::-1]):
        assert overlap(Classes(["a", "b"]), order, [0.0, 1.0]).tolist() == [0, 1]
    assert overlap(Classes(["a", "b"]), [(0.5, [1])], [0.0, 0.5]).tolist() == [1, 1]


def test_pairs_have_a_baseline_of_what_they_share(tree, tmp_path):
    pairs = [(i % 8, (i + i // 8 % 2) % 8) for i in range(200)]
    rows = "".join(f"w{a} x{i}\tw{b} y{i}\t{a == b}\n" for i, (a, b) in enumerate(pairs))
    (tmp_path / "a.tsv").write_text("text\tother\tlabel\n" + rows, "utf-8")
    data = {
        "kind": "labelled",
        "train": [str(tmp_path / "a.tsv")],
        "pair": "other",
        "test_share": 0.3,
        "dev_share": 0.1,
    }
    data = parse_recipe({**tree("classification"), "data": data}, where="test").data
    train, test = ([*data.read(split, seed=1)] for split in ("train", "test"))
    found = learn_baselines(Classes(["False", "True"]), train)(test)
    assert found["overlap"].values()["accuracy"] == 100
    assert found["bag_of_words"].values()["accuracy"] < 90


def test_two_runs_on_the_same_data_have_the_same_baselines(tree, held_out):
    """Whatever their vocabularies: nothing of a run goes in."""
    data = parse_recipe(tree("classification"), where="x").data
    test, train = held_out("classification"), [*data.read("train", seed=1)]
    targets = Classes(sorted({example.gold for example in train}))
    scores = {name: found.values() for name, found in learn_baselines(targets, train)(test).items()}
    assert scores["bag_of_words"]["accuracy"] > 95  # a keyword is a bag of words
    gold, labels = [example.label for example in test], [example.label for example in train]
    most = max(set(labels), key=labels.count)
    assert scores["majority"]["accuracy"] == pytest.approx(100 * gold.count(most) / len(gold))
