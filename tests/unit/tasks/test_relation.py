"""Relations: the markers are where the entities are, the direction matters, and long texts keep both."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jumok.errors import DataError, InputError
from jumok.models import BertConfig, BertRelation, RnnClassifier, RnnConfig
from jumok.prepare import prepare
from jumok.recipe import parse_recipe
from jumok.tasks.predict import LongTextWarning
from jumok.tasks.relater import Relater
from jumok.tasks.relation import Admissible, Pieces, encode_related, make_relation_page, markers, relate
from jumok.tasks.tagger import Found, TaggedText
from jumok.tasks.targets import Classes
from jumok.tasks.windows import LongTexts
from jumok.text.annotated import Entity, Related
from jumok.text.tokenizer import Tokenizer
from jumok.text.vocabulary import BERT, TokenizerConfig

LINES = ["a b c d e f g h i j $ # 가 나"] * 3
WORDS = Tokenizer.train(TokenizerConfig(kind="word", vocab_size=40), LINES)
PIECES = Tokenizer.train(TokenizerConfig(kind="wordpiece", vocab_size=80), LINES, BERT)
LETTERS = Tokenizer.train(TokenizerConfig(kind="character", vocab_size=300), LINES)
LONG = LongTexts(100)
LABELS = ["none", "r(e1,e2)", "r(e2,e1)"]


def example(text, head, tail, label="none", where=""):
    return Related(text, Entity(*head, "X"), Entity(*tail, "Y"), label, where)


def said(tokenizer, row):
    """The words of a row, without what frames it."""
    pieces = [piece.removeprefix("▁") for piece in tokenizer.pieces(row.ids)]
    return " ".join(filter(None, pieces[len(tokenizer.frame([])) - 1 : -1]))


def part(tokenizer, row, place):
    return " ".join(piece.removeprefix("▁") for piece in tokenizer.pieces(row.ids[slice(*place)]))


# markers


@pytest.mark.parametrize("tokenizer", [WORDS, PIECES], ids=["word", "wordpiece"])
@pytest.mark.parametrize(
    ("text", "head", "tail", "marked"),
    [
        ("a b c d e", (2, 3), (6, 7), "a $ b $ c # d # e"),
        ("a b c d e", (6, 7), (2, 3), "a # b # c $ d $ e"),
        ("a b c", (0, 1), (4, 5), "$ a $ b # c #"),  # at the very beginning and the very end
        ("a b c", (4, 5), (0, 1), "# a # b $ c $"),
        ("a b c", (0, 1), (2, 3), "$ a $ # b # c"),  # side by side
        ("a b c", (2, 3), (0, 1), "# a # $ b $ c"),
        ("a b c d", (0, 5), (2, 3), "$ a # b # c $ d"),  # one in the other
        ("a b c d", (2, 3), (0, 5), "# a $ b $ c # d"),
        ("a b c d", (0, 5), (0, 1), "$ # a # b c $ d"),  # with the same beginning
        ("a b c d", (0, 1), (0, 5), "# $ a $ b c # d"),
        ("a b c d", (0, 5), (4, 5), "$ a b # c # $ d"),  # with the same end
        ("a b c d", (4, 5), (0, 5), "# a b $ c $ # d"),
        ("a", (0, 1), (0, 1), "$ # a # $"),
        ("$ # a $ b #", (4, 5), (8, 9), "$ # $ a $ $ # b # #"),  # the text has them, too
        ("$ a", (0, 1), (2, 3), "$ $ $ # a #"),
    ],
)
def test_the_markers_stand_around_their_entities(tokenizer, text, head, tail, marked):
    row = encode_related(tokenizer, example(text, head, tail), LONG)
    assert said(tokenizer, row) == marked
    assert not row.long
    inside = part(tokenizer, row, row.head).split()
    assert [word for word in inside if word not in "$#" or word in text] != []
    for place, (start, end) in ((row.head, head), (row.tail, tail)):
        words = [word for word in part(tokenizer, row, place).split() if word in text[start:end].split()]
        assert words == text[start:end].split()
        before, after = row.ids[place[0] - 1], row.ids[place[1]]
        assert before == after == markers(tokenizer)[0 if place is row.head else 1]


def test_an_entity_may_be_a_part_of_a_word():
    text = "가나는 abc"
    row = encode_related(LETTERS, example(text, (0, 2), (5, 6)), LONG)
    pieces = "".join(LETTERS.pieces(row.ids[:-1])).replace("▁", " ")
    assert pieces == " $가나$<0xEB><0x8A><0x94> a#b#c"
    assert "".join(LETTERS.pieces(row.ids[slice(*row.head)])) == "가나"
    assert "".join(LETTERS.pieces(row.ids[slice(*row.tail)])) == "b"


def test_two_entities_of_one_piece_are_marked_one_in_the_other():
    """Neither is closed while the other, opened later, is open."""
    row = encode_related(WORDS, example("xy", (0, 1), (1, 2)), LONG)
    assert said(WORDS, row) == "$ # <unk> # $"
    assert row.head[0] < row.head[1]
    assert row.ids[slice(*row.tail)] == [WORDS.unk_id]


def test_an_entity_without_a_piece_has_its_markers():
    row = encode_related(WORDS, example("a \u3000 b", (2, 3), (4, 5)), LONG)
    assert said(WORDS, row) == "a $ $ # b #"
    assert row.ids[slice(*row.head)] == [markers(WORDS)[0]]


@given(data=st.data())
def test_whatever_the_entities_the_text_is_still_there(data):
    words = data.draw(st.lists(st.sampled_from("abcdefghij"), min_size=2, max_size=12))
    text = " ".join(words)
    places = [(2 * i, 2 * j + 1) for i in range(len(words)) for j in range(i, len(words))]
    head, tail = data.draw(st.sampled_from(places)), data.draw(st.sampled_from(places))
    crossing = head[0] < tail[0] < head[1] < tail[1] or tail[0] < head[0] < tail[1] < head[1]
    row = encode_related(WORDS, example(text, head, tail), LONG)
    out = said(WORDS, row).split()
    assert [word for word in out if word not in "$#"] == words
    assert (out.count("$"), out.count("#")) == (2, 2)
    for mark, (start, end) in (("$", head), ("#", tail)):
        first = out.index(mark)
        last = len(out) - 1 - out[::-1].index(mark)
        assert [word for word in out[first:last] if word not in "$#"] == text[start:end].split()
    order = "".join(word for word in out if word in "$#")
    if not crossing:
        assert order in ("$$##", "##$$", "$##$", "#$$#")
    swapped = encode_related(WORDS, example(text, tail, head), LONG)
    assert swapped.ids != row.ids or head == tail


def test_a_vocabulary_without_markers_is_refused():
    for lines in (["a b c"] * 3, ["a b $"] * 3):
        poor = Tokenizer.train(TokenizerConfig(kind="word", vocab_size=40), lines)
        with pytest.raises(DataError, match="no pieces for the markers") as caught:
            markers(poor)
        assert "$ and #" in (caught.value.right or "")


# long texts


@pytest.mark.parametrize("rule", ["windows", "truncate"])
@pytest.mark.parametrize(("head", "tail"), [(3, 4), (0, 59), (59, 0), (10, 50), (58, 59), (0, 1)])
def test_of_a_long_text_both_entities_are_kept(rule, head, tail):
    words = ["a", "b", "c", "d", "e"] * 12
    words[head], words[tail] = "i", "j"
    long = example(" ".join(words), (2 * head, 2 * head + 1), (2 * tail, 2 * tail + 1))
    row = encode_related(WORDS, long, LongTexts(16, rule))
    assert row.long
    assert len(row.ids) == 16
    assert part(WORDS, row, row.head) == "i"
    assert part(WORDS, row, row.tail) == "j"
    out = said(WORDS, row)
    assert "$ i $" in out
    assert "# j #" in out
    kept = [word for word in out.split() if word not in "$#ij"]
    assert kept != sorted(kept) or len(kept) < 6  # neighbours in their order, not a bag


def test_an_entity_longer_than_the_room_is_not_all_there_is():
    text = " ".join(["a"] * 40 + ["j"])
    row = encode_related(WORDS, example(text, (0, 79), (80, 81)), LongTexts(12))
    assert len(row.ids) == 12
    assert set(row.ids[slice(*row.head)]) == set(WORDS.encode("a"))
    assert row.ids[row.tail[0]] in (markers(WORDS)[1], WORDS.encode("j")[0])
    assert row.tail[0] >= row.head[1]


def test_a_long_text_may_be_refused():
    long = example("a " * 30, (0, 1), (4, 5), where="train.jsonl:8")
    with pytest.raises(DataError, match="a text of 34 pieces, where there is room for 15") as caught:
        encode_related(WORDS, long, LongTexts(16, "refuse"))
    assert caught.value.where == "train.jsonl:8"


# models


def test_bert_looks_at_the_pieces_of_the_entities():
    places = [((0, 3), (6, 7)), ((2, 3), (0, 1))]
    rows = [encode_related(PIECES, example("a b c d", *both), LONG) for both in places]
    page, head, tail = make_relation_page([r.ids for r in rows], [r.head for r in rows], [r.tail for r in rows], PIECES)
    for i, row in enumerate(rows):
        assert page.ids[i][head[i]].tolist() == row.ids[slice(*row.head)]
        assert page.ids[i][tail[i]].tolist() == row.ids[slice(*row.tail)]
    assert PIECES.pieces(page.ids[0][head[0]].tolist()) == ["a", "b"]
    assert PIECES.pieces(page.ids[1][tail[1]].tolist()) == ["a"]


@pytest.mark.parametrize("kind", ["bert", "rnn"])
def test_batches_change_nothing(kind):
    torch.manual_seed(1)
    tokenizer = PIECES if kind == "bert" else WORDS
    if kind == "bert":
        config = BertConfig(d_model=16, d_ff=16, n_heads=2, n_layers=1, max_len=40)
        model = BertRelation(config, vocab=tokenizer.vocab_size, n_labels=3).eval()
    else:
        config = RnnConfig(cell="gru", d_embedding=8, d_hidden=8)
        model = RnnClassifier(config, vocab=tokenizer.vocab_size, n_labels=3).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(5)
    examples = [example("a b c d e f"[: 2 * n + 1], (0, 1), (2 * n, 2 * n + 1)) for n in range(1, 6)]
    rows = [encode_related(tokenizer, e, LONG) for e in examples]
    told = []
    together = relate([model], tokenizer, rows, Classes(LABELS), done=told.append)
    assert sum(told) == 5
    assert together.sum(axis=1) == pytest.approx(np.ones(5))
    alone = np.concatenate([relate([model], tokenizer, [row], Classes(LABELS)) for row in rows])
    assert alone == pytest.approx(together, abs=1e-5)
    assert relate([model], tokenizer, rows[::-1], Classes(LABELS)) == pytest.approx(together[::-1], abs=1e-5)
    assert np.ptp(together, axis=0).max() > 1e-3
    assert relate([model], tokenizer, [], Classes(LABELS)).shape == (0, 3)


def test_who_beats_whom_is_learned(runs, held_out):
    predictor, found = runs("relation").predictor, held_out("relation")
    scores = predictor.score(found)[0]["scores"]
    assert scores["macro_f1"]["value"] > 95
    assert predictor.no_relation == "none"
    assert "f1_none" not in scores
    turned = [replace(e, head=e.tail, tail=e.head, label=other(e.label)) for e in found]
    assert predictor.score(turned)[0]["scores"]["accuracy"]["value"] > 95


def other(label):
    return {"beats(e1,e2)": "beats(e2,e1)", "beats(e2,e1)": "beats(e1,e2)"}.get(label, label)


def test_a_line_of_json_is_answered(runs):
    ask = {"text": "a dog Ada beats Bo today", "head": {"start": 6, "end": 9}, "tail": {"start": 16, "end": 18}}
    back = {**ask, "head": ask["tail"], "tail": ask["head"]}
    predictor = runs("relation").predictor
    forth, turned = predictor.predict([json.dumps(ask), json.dumps(back)])
    assert (forth.text, turned.text) == ("beats(e1,e2)", "beats(e2,e1)")
    assert [entity.text for entity in forth.entities] == ["Ada", "Bo"]
    assert forth.relations[0].probability > 0.5
    json.dumps(predictor.plain("", forth))
    with pytest.raises(DataError, match="and the text has 24 characters") as caught:
        predictor.predict([json.dumps(ask), json.dumps({**ask, "tail": {"start": 16, "end": 99}})])
    assert "line 2" in str(caught.value.where)
    with pytest.raises((DataError, InputError)):
        predictor.predict(["a plain text"])


def test_a_label_that_was_never_trained_on_cannot_be_scored(runs, held_out):
    strange = replace(held_out("relation")[0], label="likes", where="test.jsonl:1")
    with pytest.raises(DataError, match="the label 'likes' does not occur") as caught:
        runs("relation").predictor.score([strange])
    assert caught.value.where == "test.jsonl:1"


def test_a_long_text_is_said(runs):
    predictor = runs("relation").predictor
    long = example("the dog " * 30 + "Ada beats Bo", (240, 243), (250, 252), "beats(e1,e2)")
    assert long.text[240:243] == "Ada"
    with pytest.warns(LongTextWarning, match="1 of 1 texts have more than 24 pieces"):
        assert predictor.score([long])[1][0] in predictor.labels


@pytest.mark.parametrize("split", ["dev", "test"])
def test_an_unknown_label_is_named_before_the_training(tree, tmp_path, split):
    path = tmp_path / "held_out.jsonl"
    line = {"text": "Ada likes Bo", "head": {"start": 0, "end": 3}, "tail": {"start": 10, "end": 12}, "label": "likes"}
    path.write_text(json.dumps(line), "utf-8")
    with pytest.raises(DataError, match="the label 'likes' does not occur") as caught:
        prepare(parse_recipe(tree("relation", data={split: [str(path)]}), where="test"), tmp_path)
    assert str(caught.value.where).startswith(f"{path}:1")


def test_a_label_for_no_relation_has_to_be_there(tree, tmp_path):
    with pytest.raises(DataError, match="no example has the label nothing") as caught:
        prepare(parse_recipe(tree("relation", task={"no_relation": "nothing"}), where="test"), tmp_path)
    assert caught.value.where == "task.no_relation"


def test_a_recurrent_model_tells_relations_too(tree, train, tmp_path):
    rnn = {"kind": "rnn", "cell": "gru", "d_embedding": 12, "d_hidden": 16, "dropout": 0.0}
    wanted = {**tree("relation", tokenizer={"kind": "word", "vocab_size": 60}), "model": rnn}
    wanted["train"]["optimizer"]["learning_rate"] = 0.02
    wanted["train"]["steps"] = 60
    train(wanted, tmp_path / "run")
    scores = json.loads((tmp_path / "run/scores.json").read_text())["test"]["scores"]
    assert scores["macro_f1"]["value"] > 90


# entities that a tagger finds


class Capitals:
    """Says of every capitalised word that it is a person, and of a number that it is one."""

    def predict(self, texts, **_):
        found = []
        for text in texts:
            entities, at = [], 0
            for word in text.split():
                at = text.index(word, at)
                kind = "P" if word[0].isupper() else "N" if word[0].isdecimal() else None
                if kind:
                    entities.append(Found(at, at + len(word), kind, word, 0.9))
                at += len(word)
            found.append(TaggedText("", [], [], [], entities))
        return found


def test_every_pair_is_asked_whose_types_training_had(runs):
    predictor = runs("relation").predictor
    assert predictor.pairs == {("p", "p")}
    texts = ["the dog Ada beats Bo today", "nobody is here 7", "a Cy meets 12 Dee here"]
    found = predictor.predict(texts, taggers=[Capitals()])
    assert [len(output.entities) for output in found] == [2, 1, 3]
    for text, output in zip(texts, found, strict=True):
        for relation in output.relations:
            assert (relation.head.label, relation.tail.label) == ("P", "P")
            assert text[relation.head.start : relation.head.end] == relation.head.text
            assert relation.label != "none"
    said = {(r.head.text, r.label, r.tail.text) for r in found[0].relations}
    assert said == {("Ada", "beats(e1,e2)", "Bo")}  # once: the label says the direction
    assert "Ada | beats(e1,e2) | Bo" in found[0].text
    assert found[1].relations == []
    untyped = Relater(predictor.models, predictor.tokenizer, {"task": {}, "labels": predictor.labels, "max_len": 24})
    pairs = {frozenset((r.head.text, r.tail.text)) for r in untyped.predict(texts, taggers=[Capitals()])[2].relations}
    assert pairs == {frozenset(pair) for pair in (("Cy", "12"), ("Cy", "Dee"), ("12", "Dee"))}


class Twice(Capitals):
    """Calls everything something else, and its end with what follows, too."""

    def __init__(self, score):
        self.score = score

    def predict(self, texts, **_):
        found = super().predict(texts)
        for tagged in found:
            again = [replace(entity, label="Q", score=self.score) for entity in tagged.entities]
            tagged.entities[:] = [*again, *(replace(e, start=e.start + 1, end=e.end + 2) for e in again)]
        return found


@pytest.mark.parametrize(("score", "kept"), [(0.8, "P"), (0.95, "Q")])
def test_two_taggers_may_disagree(runs, score, kept):
    """Of the same characters the surest is believed; entities that cross are not asked about."""
    predictor = runs("relation").predictor
    asks_all = Relater(predictor.models, predictor.tokenizer, {"task": {}, "labels": predictor.labels, "max_len": 24})
    (found,) = asks_all.predict(["the Ada beats Bo now"], taggers=[Capitals(), Twice(score)])
    assert [entity.label for entity in found.entities] == [kept, "Q", kept, "Q"]
    pairs = [sorted([(r.head.start, r.head.end), (r.tail.start, r.tail.end)]) for r in found.relations]
    assert pairs
    assert all(one[1] <= other[0] for one, other in pairs)


class Nested:
    """A name, and the longer name that it begins."""

    def predict(self, texts, **_):
        names = [Found(0, 7, "P", "insulin", 0.9), Found(0, 16, "P", "insulin receptor", 0.9)]
        return [TaggedText("", [], [], [], names) for _ in texts]


@pytest.mark.parametrize(("order", "asked"), [("head_first", [(7, 16)]), ("tail_first", [(16, 7)])])
def test_where_the_text_has_an_order_entities_that_begin_together_have_one(runs, order, asked):
    predictor = runs("relation").predictor
    facts = {"task": {"no_relation": "nothing"}, "order": order, "max_len": 24, "labels": predictor.labels}
    relater = Relater(predictor.models, predictor.tokenizer, facts)
    relater.directed = False
    (found,) = relater.predict(["insulin receptor"], taggers=[Nested()])
    assert [(relation.head.end, relation.tail.end) for relation in found.relations] == asked


def test_a_name_within_a_name_is_asked_about_where_training_has_such(runs):
    predictor = runs("relation").predictor
    asked = {}
    for nested in (True, False):
        facts = {"task": {}, "nested": nested, "max_len": 24, "labels": predictor.labels}
        (found,) = Relater(predictor.models, predictor.tokenizer, facts).predict(
            ["insulin receptor"], taggers=[Nested()]
        )
        asked[nested] = len(found.relations)
    assert asked[True] > 0 == asked[False]


def test_what_training_has_relations_of():
    apart = Related("Ada beats Bo", Entity(0, 3, "P"), Entity(10, 12, "Q"), "beats", "train.jsonl:1")
    within = Related("insulin receptor", Entity(0, 16, "Q"), Entity(0, 7, "P"), "binds", "train.jsonl:2")
    assert Admissible.of([apart]) == Admissible([["P", "Q"]], "head_first", nested=False)
    assert Admissible.of([apart, within]) == Admissible([["P", "Q"], ["Q", "P"]], "any", nested=True)


def test_a_comparison_names_labels_that_training_does_not_know(runs):
    predictor = runs("relation").predictor
    example = Related("Ada beats Bo", Entity(0, 3, "P"), Entity(10, 12, "P"), "beats", "test.jsonl:4")
    with pytest.raises(DataError, match="'beats' does not occur") as caught:
        predictor.compare(predictor, [example])
    assert caught.value.where == "test.jsonl:4"


def test_runs_with_another_rule_are_not_compared(runs):
    predictor = runs("relation").predictor
    other = Relater(predictor.models, predictor.tokenizer, {"task": {}, "labels": predictor.labels, "max_len": 24})
    other.no_relation = "something else"
    with pytest.raises(InputError, match="the runs differ in no_relation"):
        predictor.compare(other, [])
    other.labels = predictor.labels[::-1]
    with pytest.raises(InputError, match="the runs differ in labels"):
        predictor.compare(other, [])


@pytest.mark.filterwarnings("ignore::jumok.tasks.predict.LongTextWarning")
def test_of_a_long_text_it_is_said_that_a_part_was_not_read(runs):
    predictor = runs("relation").predictor
    long = "Ada beats Bo" + " and so on" * 40
    given = [
        json.dumps({"text": text, "head": {"start": 0, "end": 3}, "tail": {"start": 10, "end": 12}})
        for text in ("Ada beats Bo", long)
    ]
    for found in (predictor.predict(given), predictor.predict(["Ada beats Bo", long], taggers=[Capitals()])):
        assert [output.truncated for output in found] == [False, True]
        assert ["truncated" in predictor.plain("", output) for output in found] == [False, True]


@pytest.mark.filterwarnings("ignore::jumok.tasks.predict.LongTextWarning")
def test_pairs_that_no_window_holds_are_not_asked(runs, monkeypatch):
    predictor = runs("relation").predictor
    monkeypatch.setattr("jumok.tasks.relater.PAIRS_AT_ONCE", 3)
    monkeypatch.setattr(predictor, "no_relation", "nothing that is said")
    far = " and".join([" Ada"] * 40)
    (found,) = predictor.predict([far], taggers=[Capitals()])
    starts = [entity.start for entity in found.entities]
    asked = [(starts.index(r.head.start), starts.index(r.tail.start)) for r in found.relations]
    apart = len(predictor.tokenizer.encode(" Ada and Ada and")) // 2  # pieces from a name to the next
    near = (predictor.long_texts.max_len - 1) // apart
    assert len(starts) == 40
    assert sorted(asked) == [(i, j) for i in range(40) for j in range(i + 1, min(i + near + 1, 40))]


@pytest.mark.filterwarnings("ignore::jumok.tasks.predict.LongTextWarning")
def test_a_sentence_is_cut_into_pieces_once_whatever_is_asked_of_it(runs, monkeypatch):
    predictor = runs("relation").predictor
    cut = predictor.tokenizer.encode_with_offsets
    texts = []
    monkeypatch.setattr(predictor.tokenizer, "encode_with_offsets", lambda text: texts.append(text) or cut(text))
    sentence = " and".join([" Ada"] * 40)
    (found,) = predictor.predict([sentence], taggers=[Capitals()])
    assert len(found.entities) == 40
    assert len(texts) == 1


@given(st.integers(2, 60), st.data())
def test_of_a_long_text_the_nearest_pieces_are_kept(n, data):
    text = " ".join(data.draw(st.lists(st.sampled_from("abcdefghij"), min_size=n, max_size=n)))
    word = st.integers(0, n - 1).map(lambda i: (2 * i, 2 * i + 1))
    asked, rule = example(text, data.draw(word), data.draw(word)), LongTexts(data.draw(st.integers(8, 80)))
    row = encode_related(WORDS, asked, rule)
    whole = said(WORDS, encode_related(WORDS, asked, LONG)).split()
    spans = [[i for i, piece in enumerate(whole) if piece == mark] for mark in "$#"]

    def distance(i):
        return min(max(first - i, i - last, 0) for first, last in spans)

    nearest = sorted(range(len(whole)), key=lambda i: (distance(i), i))[: rule.max_len - len(WORDS.frame([]))]
    assert said(WORDS, row).split() == [whole[i] for i in sorted(nearest)]
    assert row.long == (len(nearest) < len(whole))
    assert encode_related(WORDS, asked, rule, Pieces.of(WORDS, text)) == row
