"""Relations: the markers are where the entities are, the direction matters, and long texts keep both."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jumok.data.cache import Cache
from jumok.engines.torch import TorchEngine
from jumok.errors import DataError, InputError
from jumok.examples.relations import Related
from jumok.models.bert import BertConfig
from jumok.models.bert_heads import BertRelation
from jumok.models.rnn import RnnClassifier, RnnConfig
from jumok.recipe import parse_recipe
from jumok.tasks.protocol import Failure, Note, adapter, plain
from jumok.tasks.relation import RelationFacts
from jumok.tasks.relation.markers import Pieces, encode_related, markers
from jumok.tasks.relation.pairs import admissible
from jumok.tasks.relation.predictor import RelatedText, Relater, Relation
from jumok.tasks.relation.task import make_relation_page, prepare
from jumok.tasks.windows import LongTexts, WindowRule
from jumok.text.span import Span
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import BERT, TokenizerConfig

LINES = ["a b c d e f g h i j $ # 가 나"] * 3
WORDS = Tokenizer.train(TokenizerConfig(kind="word", vocab_size=40), LINES)
PIECES = Tokenizer.train(TokenizerConfig(kind="wordpiece", vocab_size=80), LINES, BERT)
LETTERS = Tokenizer.train(TokenizerConfig(kind="character", vocab_size=300), LINES)
LONG = LongTexts(100)
LABELS = ["none", "r(e1,e2)", "r(e2,e1)"]


def example(text, head, tail, label="none", where=""):
    return Related(text, Span(*head, "X"), Span(*tail, "Y"), label, where)


def relater(model, tokenizer, labels=tuple(LABELS), no_relation=None, **facts):
    tokenizers = Tokenizers(tokenizer, tokenizer)
    facts = RelationFacts(labels=list(labels), **{"max_len": 100, **facts})
    return Relater(TorchEngine([model], tokenizers), tokenizers, facts, no_relation=no_relation)


def like(predictor, no_relation=None, **facts):
    """The same model with other facts."""
    facts = RelationFacts(labels=predictor.labels, **{"max_len": 24, **facts})
    return Relater(predictor.engine, predictor.tokenizers, facts, no_relation=no_relation)


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
        with pytest.raises(DataError) as caught:
            markers(poor)
        assert caught.value.code == "data.no_markers"
        assert "$ and #" in (caught.value.hint or "")


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
    with pytest.raises(DataError) as caught:
        encode_related(WORDS, long, LongTexts(16, "refuse"))
    assert (caught.value.code, caught.value.where) == ("data.too_long", "train.jsonl:8")
    assert {"34", "15"} <= set(caught.value.what.replace(",", " ").split())


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
    predictor = relater(model, tokenizer)
    examples = [example("a b c d e f"[: 2 * n + 1], (0, 1), (2 * n, 2 * n + 1)) for n in range(1, 6)]
    rows = [encode_related(tokenizer, e, LONG) for e in examples]
    told = []
    together = predictor.believed(rows, done=told.append)
    assert sum(told) == 5
    assert together.sum(axis=1) == pytest.approx(np.ones(5))
    alone = np.concatenate([predictor.believed([row]) for row in rows])
    assert alone == pytest.approx(together, abs=1e-5)
    assert predictor.believed(rows[::-1]) == pytest.approx(together[::-1], abs=1e-5)
    assert np.ptp(together, axis=0).max() > 1e-3
    assert predictor.believed([]).shape == (0, 3)


def test_an_ensemble_is_the_mean_of_the_probabilities():
    torch.manual_seed(2)
    config = RnnConfig(cell="gru", d_embedding=8, d_hidden=8)
    models = [RnnClassifier(config, vocab=WORDS.vocab_size, n_labels=3).eval() for _ in range(2)]
    tokenizers = Tokenizers(WORDS, WORDS)
    both = Relater(TorchEngine(models, tokenizers), tokenizers, RelationFacts(labels=LABELS, max_len=100))
    rows = [encode_related(WORDS, example("a b c", (0, 1), (4, 5)), LONG)]
    mean = np.mean([relater(model, WORDS).believed(rows) for model in models], axis=0)
    assert both.believed(rows) == pytest.approx(mean, abs=1e-9)


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
    assert adapter(RelatedText).validate_python(plain(forth)) == forth
    good, outside, text = predictor.predict([ask, {**ask, "tail": {"start": 16, "end": 99}}, "a plain text"])
    assert good == forth  # a mapping is as good as its JSON
    assert isinstance(outside, Failure)
    assert (outside.code, outside.where, "99" in outside.what) == ("data.offsets", "line 2", True)
    assert isinstance(text, Failure)
    assert (text.code, text.where, "--entities" in text.hint) == ("data.not_json", "line 3", True)
    with pytest.raises(InputError) as caught:
        predictor(["a plain text"])
    assert caught.value.code == "data.not_json"


def test_an_example_as_json_is_the_same_example(runs, held_out):
    predictor = runs("relation").predictor
    for asked in held_out("relation")[:5]:
        assert Related.parse(plain(asked), asked.where) == asked
        assert predictor.predict(plain(asked)) == predictor.predict(asked)


def test_relations_make_rows_of_a_table_and_a_passage(runs):
    predictor = runs("relation").predictor
    head, tail = Span(0, 3, "P", "Ada"), Span(10, 12, "Q", "Bo")
    found = RelatedText("beats", [head, tail], [Relation(head, tail, "beats", 0.75)])
    (row,) = predictor.table(found)
    assert tuple(row) == predictor.table_columns
    assert [*row.values()] == ["beats", 0.75, "P", "Ada", 0, 3, "Q", "Bo", 10, 12]
    assert predictor.table(RelatedText("", [head], [])) == []
    pair = Related("Ada beats Bo", head, tail)
    for asked in (pair, plain(pair), json.dumps(plain(pair)), "Ada beats Bo"):
        drawn = predictor.passage(asked, found)
        assert (drawn.text, drawn.entities, drawn.relations) == ("Ada beats Bo", found.entities, found.relations)
    for raw in ("nobody is here", "{", '{"text": "x"}'):
        assert predictor.passage(raw, RelatedText("", [], [])).text == raw


def test_a_label_that_was_never_trained_on_cannot_be_scored(runs, held_out):
    strange = replace(held_out("relation")[0], label="likes", where="test.jsonl:1")
    with pytest.raises(DataError) as caught:
        runs("relation").predictor.score([strange])
    assert (caught.value.where, "'likes'" in caught.value.what) == ("test.jsonl:1", True)
    with pytest.raises(DataError) as caught:
        runs("relation").predictor.score([replace(strange, label=None)])
    assert (caught.value.where, caught.value.code) == ("test.jsonl:1", "data.no_label")


def test_a_long_text_is_said(runs):
    predictor = runs("relation").predictor
    long = example("the dog " * 30 + "Ada beats Bo", (240, 243), (250, 252), "beats(e1,e2)")
    assert long.text[240:243] == "Ada"
    assert predictor.score([long])[1][0] in predictor.labels
    short, found = predictor.predict([example("Ada beats Bo", (0, 3), (10, 12)), long])
    assert short.notes == []
    assert [note.code for note in found.notes] == ["text.windows"]
    assert {"24", "entities"} <= set(found.notes[0].text.split())


@pytest.mark.parametrize("split", ["dev", "test"])
def test_an_unknown_label_is_named_before_the_training(tree, tmp_path, split):
    path = tmp_path / "held_out.jsonl"
    line = {"text": "Ada likes Bo", "head": {"start": 0, "end": 3}, "tail": {"start": 10, "end": 12}, "label": "likes"}
    path.write_text(json.dumps(line), "utf-8")
    recipe = parse_recipe(tree("relation", data={split: [str(path)]}), where="test")
    with pytest.raises(DataError) as caught:
        prepare(recipe, Cache(tmp_path))
    assert (caught.value.where, "'likes'" in caught.value.what) == (f"{path}:1", True)
    assert prepare(recipe, Cache(tmp_path), fresh=False).labels == ["beats(e1,e2)", "beats(e2,e1)", "none"]


def test_a_label_for_no_relation_has_to_be_there(tree, tmp_path):
    with pytest.raises(DataError) as caught:
        prepare(parse_recipe(tree("relation", task={"no_relation": "nothing"}), where="test"), Cache(tmp_path))
    assert (caught.value.code, caught.value.where) == ("data.unknown_label", "task.no_relation")


def test_a_run_that_goes_on_has_what_was_learned_from_its_shards(tree, tmp_path, monkeypatch):
    recipe = parse_recipe(tree("relation"), where="test")
    first = prepare(recipe, Cache(tmp_path))
    monkeypatch.setattr("jumok.tasks.relation.task.learned", None)
    again = prepare(recipe, Cache(tmp_path), fresh=False)
    assert again.facts == first.facts
    assert first.facts == RelationFacts(
        labels=["beats(e1,e2)", "beats(e2,e1)", "none"],
        max_len=24,
        long_texts=WindowRule(rule="windows", stride=64),
        pairs=[["P", "P"]],
        order="any",
        nested=False,
    )


def test_a_recurrent_model_tells_relations_too(tree, train, tmp_path):
    rnn = {"kind": "rnn", "cell": "gru", "d_embedding": 12, "d_hidden": 16, "dropout": 0.0}
    wanted = {**tree("relation", tokenizer={"kind": "word", "vocab_size": 60}), "model": rnn}
    wanted["train"]["optimizer"]["learning_rate"] = 0.02
    wanted["train"]["steps"] = 60
    train(wanted, tmp_path / "run")
    scores = json.loads((tmp_path / "run/scores.json").read_text())["test"]["scores"]
    assert scores["macro_f1"]["value"] > 90


# entities that a tagger finds


def tagged(entities, notes=()):
    return SimpleNamespace(entities=entities, notes=list(notes))


class Capitals:
    """Says of every capitalised word that it is a person, and of a number that it is one."""

    def predict(self, examples, **_):
        found = []
        for text in (example["text"] for example in examples):
            entities, at = [], 0
            for word in text.split():
                at = text.index(word, at)
                kind = "P" if word[0].isupper() else "N" if word[0].isdecimal() else None
                if kind:
                    entities.append(Span(at, at + len(word), kind, word, 0.9))
                at += len(word)
            found.append(tagged(entities))
        return found


def test_every_pair_is_asked_whose_types_training_had(runs):
    predictor = runs("relation").predictor
    assert predictor.pairs == {("p", "p")}
    texts = ["the dog Ada beats Bo today", "nobody is here 7", "a Cy meets 12 Dee here"]
    found = predictor.relate_texts(texts, [Capitals()])
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
    untyped = like(predictor)
    assert (predictor.typed, untyped.typed) == (True, False)
    pairs = {frozenset((r.head.text, r.tail.text)) for r in untyped.relate_texts(texts, [Capitals()])[2].relations}
    assert pairs == {frozenset(pair) for pair in (("Cy", "12"), ("Cy", "Dee"), ("12", "Dee"))}


class Twice(Capitals):
    """Calls everything something else, and its end with what follows, too."""

    def __init__(self, score):
        self.score = score

    def predict(self, examples, **_):
        found = super().predict(examples)
        for each in found:
            again = [replace(entity, label="Q", score=self.score) for entity in each.entities]
            each.entities[:] = [*again, *(replace(e, start=e.start + 1, end=e.end + 2) for e in again)]
        return found


@pytest.mark.parametrize(("score", "kept"), [(0.8, "P"), (0.95, "Q")])
def test_two_taggers_may_disagree(runs, score, kept):
    """Of the same characters the surest is believed; entities that cross are not asked about."""
    asks_all = like(runs("relation").predictor)
    (found,) = asks_all.relate_texts(["the Ada beats Bo now"], [Capitals(), Twice(score)])
    assert [entity.label for entity in found.entities] == [kept, "Q", kept, "Q"]
    pairs = [sorted([(r.head.start, r.head.end), (r.tail.start, r.tail.end)]) for r in found.relations]
    assert pairs
    assert all(one[1] <= other[0] for one, other in pairs)


class Nested:
    """A name, and the longer name that it begins."""

    def predict(self, examples, **_):
        names = [Span(0, 7, "P", "insulin", 0.9), Span(0, 16, "P", "insulin receptor", 0.9)]
        return [tagged(names) for _ in examples]


class Refuses(Capitals):
    """Cannot read texts with a 7 in them, and says so of others that it did."""

    def predict(self, examples, **_):
        found = super().predict(examples)
        return [
            Failure("data.too_long", "too long", where=f"line {number}")
            if "7" in example["text"]
            else tagged(each.entities, [Note("text.cut", "cut")])
            for number, (example, each) in enumerate(zip(examples, found, strict=True), start=1)
        ]


def test_a_text_that_a_tagger_cannot_read_fails_alone(runs):
    texts = ["The Ada beats Bo. The dog sits here.", "One is here. There are 7 of them.", "Cy meets Dee"]
    first, second, third = runs("relation").predictor.relate_texts(texts, [Refuses()])
    assert isinstance(second, Failure)
    assert (second.code, second.where) == ("data.too_long", "line 2")
    given = Related(texts[1], Span(0, 3), Span(4, 6), where="a.jsonl:9")  # whose entities are not looked at
    (known,) = runs("relation").predictor.relate_texts([given], [Refuses()])
    assert (known.code, known.where) == ("data.too_long", "a.jsonl:9")
    for found in (first, third):
        assert [note.code for note in found.notes] == ["text.cut"]  # once, whatever the number of sentences
    for alone in (texts[2], texts[2:]):
        assert runs("relation").predictor.relate_texts(alone, [Refuses()]) == [third]


def test_a_text_that_is_too_long_may_be_refused_alone(runs):
    rule = WindowRule(rule="refuse")
    narrow = like(runs("relation").predictor, long_texts=rule)
    long, short = narrow.relate_texts(["Ada beats Bo" + " and so on" * 40, "Ada beats Bo"], [Capitals()])
    assert isinstance(long, Failure)
    assert (long.code, long.where) == ("data.too_long", "line 1")
    assert [(relation.head.text, relation.tail.text) for relation in short.relations] == [("Ada", "Bo")]


def test_types_may_have_other_names(runs):
    predictor = runs("relation").predictor
    (found,) = predictor.relate_texts(["Ada meets 12 and 7"], [Capitals()], {"N": "p", "P": "Q"})
    assert [entity.label for entity in found.entities] == ["Q", "p", "p"]
    texts = {r.head.text for r in found.relations} | {r.tail.text for r in found.relations}
    assert "Ada" not in texts


@pytest.mark.parametrize(("order", "asked"), [("head_first", [(7, 16)]), ("tail_first", [(16, 7)])])
def test_where_the_text_has_an_order_entities_that_begin_together_have_one(runs, order, asked):
    asks = like(runs("relation").predictor, no_relation="nothing", order=order)
    asks.asks.directed = False
    (found,) = asks.relate_texts(["insulin receptor"], [Nested()])
    assert [(relation.head.end, relation.tail.end) for relation in found.relations] == asked


def test_a_name_within_a_name_is_asked_about_where_training_has_such(runs):
    predictor = runs("relation").predictor
    asked = {}
    for nested in (True, False):
        (found,) = like(predictor, nested=nested).relate_texts(["insulin receptor"], [Nested()])
        asked[nested] = len(found.relations)
    assert asked[True] > 0 == asked[False]


def test_what_training_has_relations_of():
    apart = Related("Ada beats Bo", Span(0, 3, "P"), Span(10, 12, "Q"), "beats", "train.jsonl:1")
    within = Related("insulin receptor", Span(0, 16, "Q"), Span(0, 7, "P"), "binds", "train.jsonl:2")
    assert admissible([apart]) == {"pairs": [["P", "Q"]], "order": "head_first", "nested": False}
    assert admissible([apart, within]) == {"pairs": [["P", "Q"], ["Q", "P"]], "order": "any", "nested": True}


def test_a_comparison_names_labels_that_training_does_not_know(runs):
    predictor = runs("relation").predictor
    example = Related("Ada beats Bo", Span(0, 3, "P"), Span(10, 12, "P"), "beats", "test.jsonl:4")
    with pytest.raises(DataError) as caught:
        predictor.compare(predictor, [example])
    assert (caught.value.where, "'beats'" in caught.value.what) == ("test.jsonl:4", True)


def test_runs_with_another_rule_are_not_compared(runs):
    predictor = runs("relation").predictor
    with pytest.raises(InputError) as caught:
        predictor.compare(like(predictor, no_relation="something else"), [])
    assert (caught.value.code, "no_relation" in caught.value.what) == ("input.other_rule", True)
    facts = RelationFacts(labels=predictor.labels[::-1], max_len=24)
    other = Relater(predictor.engine, predictor.tokenizers, facts, no_relation="none")
    with pytest.raises(InputError) as caught:
        predictor.compare(other, [])
    assert (caught.value.code, "labels" in caught.value.what) == ("input.other_rule", True)


def test_there_are_no_options(runs, held_out):
    predictor = runs("relation").predictor
    asks = (
        lambda: predictor.predict([], n_best=2),
        lambda: predictor.score(held_out("relation"), n_best=2),
        lambda: predictor.compare(predictor, held_out("relation"), n_best=2),
    )
    for ask in asks:
        with pytest.raises(InputError) as caught:
            ask()
        assert caught.value.code == "input.unknown_option"


def test_of_a_long_text_it_is_said_that_a_part_was_not_read(runs):
    predictor = runs("relation").predictor
    long = "Ada beats Bo" + " and so on" * 40
    given = [
        json.dumps({"text": text, "head": {"start": 0, "end": 3}, "tail": {"start": 10, "end": 12}})
        for text in ("Ada beats Bo", long)
    ]
    for found in (predictor.predict(given), predictor.relate_texts(["Ada beats Bo", long], [Capitals()])):
        assert [output.truncated for output in found] == [False, True]
        assert [[note.code for note in output.notes] for output in found] == [[], ["text.windows"]]


def test_pairs_that_no_window_holds_are_not_asked(runs, monkeypatch):
    predictor = runs("relation").predictor
    monkeypatch.setattr("jumok.tasks.relation.predictor.PAIRS_AT_ONCE", 3)
    far = " and".join([" Ada"] * 40)
    (found,) = like(predictor, "nothing that is said", nested=False).relate_texts([far], [Capitals()])
    starts = [entity.start for entity in found.entities]
    asked = [(starts.index(r.head.start), starts.index(r.tail.start)) for r in found.relations]
    apart = len(predictor.tokenizer.encode(" Ada and Ada and")) // 2  # pieces from a name to the next
    near = (predictor.long_texts.max_len - 1) // apart
    assert len(starts) == 40
    assert sorted(asked) == [(i, j) for i in range(40) for j in range(i + 1, min(i + near + 1, 40))]


def test_a_sentence_is_cut_into_pieces_once_whatever_is_asked_of_it(runs, monkeypatch):
    predictor = runs("relation").predictor
    cut = predictor.tokenizer.encode_with_offsets
    texts = []
    monkeypatch.setattr(predictor.tokenizer, "encode_with_offsets", lambda text: texts.append(text) or cut(text))
    sentence = " and".join([" Ada"] * 40)
    (found,) = predictor.relate_texts([sentence], [Capitals()])
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


def test_weights_of_relations_reach_the_loss(tree, tmp_path):
    plain = prepare(parse_recipe(tree("relation"), where="test"), Cache(tmp_path))
    wanted = tree("relation", task={"class_weights": {"none": 3.0}})
    found = prepare(parse_recipe(wanted, where="test"), Cache(tmp_path))
    assert (plain.weights, found.weights) == (None, [3.0 if label == "none" else 1.0 for label in found.labels])
    assert found.train.folder == plain.train.folder
    torch.manual_seed(1)
    config = RnnConfig(cell="gru", pool="mean", d_embedding=8, d_hidden=8)
    model = RnnClassifier(config, vocab=found.tokenizer.vocab_size, n_labels=found.width).eval()
    batch = found.batch(np.arange(30))
    with torch.no_grad():
        logits = model(batch.page.ids, batch.page.segments, batch.page.mask)
        total = float(found.loss(model, batch, done=0.0).total)
    weights = torch.tensor(found.weights)
    expected = torch.nn.CrossEntropyLoss(weight=weights, reduction="sum")(logits, batch.labels)
    assert total == pytest.approx(float(expected), rel=1e-6)
    with pytest.raises(DataError) as caught:
        prepare(parse_recipe(tree("relation", task={"class_weights": {"nobody": 2.0}}), where="test"), Cache(tmp_path))
    assert (caught.value.code, caught.value.where) == ("data.unknown_label", "task.class_weights")
