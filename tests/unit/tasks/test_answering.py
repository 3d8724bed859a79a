"""Question answering: the answer is what the context says there, in whatever window it stands."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from jumok.data.cache import Cache
from jumok.engines.torch import TorchEngine
from jumok.errors import DataError, InputError, RecipeError
from jumok.examples.questions import Question
from jumok.models.bert import BertConfig
from jumok.models.bert_heads import BertTagger
from jumok.models.rnn import RnnConfig, RnnTagger
from jumok.predictor import load
from jumok.recipe import parse_recipe
from jumok.tasks.answering import AnsweringConfig, AnsweringFacts
from jumok.tasks.answering.places import encode_question
from jumok.tasks.answering.predictor import Answered, Answerer
from jumok.tasks.answering.task import NOWHERE, encode_questions, prepare
from jumok.tasks.protocol import Failure, adapter, plain
from jumok.tasks.windows import LongTexts, WindowRule
from jumok.text.normalise import is_inside_character
from jumok.text.span import Span
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import BERT, TokenizerConfig

LINES = ["a b c d e f g h i j what ? 가나 다"] * 3
WORDS = Tokenizer.train(TokenizerConfig(kind="word", vocab_size=40), LINES)
LETTERS = Tokenizer.train(TokenizerConfig(kind="character", vocab_size=300), LINES)
PIECES = Tokenizer.train(TokenizerConfig(kind="wordpiece", vocab_size=120), LINES, BERT)
LONG = LongTexts(100)
HOSTILE = ["", " ", "\u3000\n", "😀👩‍👩‍👧", "\u0301\u0302", "a\x00b\x1f", "[SEP] </s>", "é가나 다"]


def question(context, asked="what ?", answers=(), where=""):
    return Question("", asked, context, list(answers), where)


class Fake:
    """Starts at the ids that it likes to start at, and ends likewise; the first piece is worth `nothing`."""

    device = torch.device("cpu")
    config = None

    def __init__(self, tokenizer, starts, ends, nothing=0.0):
        self.worth = torch.zeros(2, tokenizer.vocab_size)
        for k, likes in enumerate((starts, ends)):
            for word, value in likes.items():
                self.worth[k, tokenizer.encode(word)[-1]] = value
        self.nothing = nothing

    def __call__(self, ids, segments, mask):
        logits = self.worth[:, ids].permute(1, 2, 0).clone()
        logits[:, 0] = self.nothing / 2
        return logits


def answerer(*models, tokenizer=WORDS, long=LONG, threshold=0.0, **config):
    tokenizers = Tokenizers(tokenizer, tokenizer)
    facts = AnsweringFacts(max_len=long.max_len, long_texts=long.as_fact, threshold=threshold)
    return Answerer(TorchEngine(models, tokenizers), tokenizers, AnsweringConfig(**config), facts)


def answers(model, examples, tokenizer=WORDS, long=LONG, n_best=1, **config):
    windows = [encode_question(tokenizer, example, long).windows for example in examples]
    return answerer(model, tokenizer=tokenizer, long=long, **config).best(windows, n_best=n_best)


def with_facts(predictor, **facts):
    """The same model with other facts."""
    facts = AnsweringFacts(**{"max_len": predictor.long_texts.max_len, **facts})
    return Answerer(predictor.engine, predictor.tokenizers, predictor.config, facts)


# windows


@pytest.mark.parametrize("tokenizer", [WORDS, LETTERS, PIECES], ids=["word", "character", "wordpiece"])
@settings(max_examples=40)
@given(
    n=st.integers(0, 60),
    asked=st.integers(0, 30),
    size=st.integers(8, 40),
    stride=st.integers(0, 20),
    tail=st.booleans(),
)
def test_windows_have_the_question_and_all_of_the_context(tokenizer, n, asked, size, stride, tail):
    context = " ".join("abcdefghij"[i % 10] for i in range(n)) + ("  " if tail else "")
    example = question(context, " ".join(["what"] * asked))
    found = encode_question(tokenizer, example, LongTexts(size, "windows", stride))
    encoded = tokenizer.encode_with_offsets(context)
    room = size - len(tokenizer.frame([], []))
    whole = tokenizer.encode(example.question)
    kept = whole if len(whole) <= room // 2 else whole[: room // 2]
    parts = LongTexts(size, "windows", stride).parts(len(encoded.ids), room - len(kept))
    seen = []
    for window, (start, end) in zip(found.windows, parts, strict=True):
        assert len(window.row) <= size
        assert window.row == tokenizer.frame(kept, encoded.ids[start:end])
        assert window.row[window.first : -1] == encoded.ids[start:end]
        assert window.offsets == encoded.offsets[start:end]
        seen += [offset for offset, best in zip(window.offsets, window.best, strict=True) if best]
    assert seen == encoded.offsets  # each piece is one window's own
    assert found.long == (len(found.windows) > 1)
    assert found.cut == found.truncated == (kept != whole)


def test_a_question_longer_than_half_the_room_is_cut_or_refused():
    example = question("a b c", "what " * 30, where="dev.json, question 7")
    found = encode_question(WORDS, example, LongTexts(22))
    windows = found.windows
    assert (found.long, found.cut, found.truncated) == (False, True, True)
    assert [window.first for window in windows] == [11]  # ten pieces and the end
    assert windows[0].row[:10] == WORDS.encode("what " * 10)
    assert encode_question(WORDS, example, LongTexts(22, "truncate")).windows == windows
    with pytest.raises(DataError) as caught:
        encode_question(WORDS, example, LongTexts(22, "refuse"))
    assert (caught.value.code, caught.value.where) == ("data.too_long", "dev.json, question 7")
    assert {"30", "10"} <= set(caught.value.what.replace(",", " ").split())


def test_a_long_context_may_be_cut_or_refused():
    example = question("a " * 50, where="x")
    found = encode_question(WORDS, example, LongTexts(22, "truncate"))
    assert (found.long, found.cut, found.truncated) == (True, False, True)
    assert [len(window.offsets) for window in found.windows] == [17]
    assert all(found.windows[0].best)
    with pytest.raises(DataError) as caught:
        encode_question(WORDS, example, LongTexts(22, "refuse"))
    assert (caught.value.code, caught.value.where, "50" in caught.value.what) == ("data.too_long", "x", True)


# where an answer is


@pytest.mark.parametrize(
    ("context", "text", "start", "pieces"),
    [
        ("a b c d", "b c", 2, ["b", "c"]),
        ("a b c d", "a", 0, ["a"]),
        ("a b c d", "d", 6, ["d"]),
        ("a b c d", " b ", 1, ["b"]),  # white space has no piece
        ("a b c d", "a b c d", 0, ["a", "b", "c", "d"]),
        ("가나다 b", "가나", 0, ["<unk>"]),  # a part of a piece
    ],
)
def test_an_answer_becomes_its_pieces(context, text, start, pieces):
    example = question(context, answers=[(text, start)])
    ((row, (first, last)),) = encode_questions([example], WORDS, LONG, facts := {})
    assert [piece.removeprefix("▁") for piece in WORDS.pieces(row[first : last + 1])] == pieces
    assert (facts["read"], facts["without"], facts["long"]) == (1, 0, 0)


def test_only_windows_that_have_all_of_an_answer_have_it():
    context = "a b c d e f g h i j " * 4 + "what 가나 a"
    start = context.index("what 가나")
    example = question(context, answers=[("what 가나", start)])
    facts = {}
    rows = list(encode_questions([example], WORDS, LongTexts(16, "windows", 6), facts))
    assert facts["without"] == sum(place == NOWHERE for _, place in rows) == len(rows) - 1
    (row, (first, last)) = next(found for found in rows if found[1] != NOWHERE)
    assert WORDS.decode(row[first : last + 1]) == "what 가나"


def test_the_first_answer_that_a_window_has_is_taken():
    example = question("a b c", answers=[("b", 2), ("b c", 2)])
    ((row, place),) = encode_questions([example], WORDS, LONG, {})
    assert WORDS.decode(row[place[0] : place[1] + 1]) == "b"


def test_no_answer_starts_and_ends_nowhere():
    ((_, place),) = encode_questions([question("a b c")], WORDS, LONG, facts := {})
    assert place == NOWHERE
    assert facts["without"] == 1


# the loss


@pytest.mark.parametrize("kind", ["rnn", "bert"])
def test_the_loss_is_the_mean_of_two_cross_entropies(tree, tmp_path, kind):
    changes = {"tokenizer": {"kind": "wordpiece", "vocab_size": 80}} if kind == "bert" else {}
    wanted = tree("answering", **changes)
    if kind == "bert":
        wanted |= {"model": {"kind": "bert", "max_len": 256, "d_model": 8, "d_ff": 8, "n_heads": 2, "n_layers": 1}}
    found = prepare(parse_recipe(wanted, where="test"), Cache(tmp_path))
    torch.manual_seed(1)
    sizes = {"vocab": found.tokenizer.vocab_size, "n_labels": 2}
    config = BertConfig(d_model=8, d_ff=8, n_heads=2, n_layers=1, max_len=40)
    rnn = RnnConfig(cell="gru", d_embedding=8, d_hidden=8)
    model = (BertTagger(config, **sizes) if kind == "bert" else RnnTagger(rnn, **sizes)).eval()
    examples, total = np.arange(6), 0.0
    for i in examples:
        row, place = (found.train.fields[name][i].tolist() for name in ("text", "place"))
        ids = torch.tensor([row])
        segments = torch.tensor([[int(at > row.index(found.tokenizer.end_id)) for at in range(len(row))]])
        with torch.no_grad():
            logits = model(ids, segments, torch.ones_like(ids, dtype=torch.bool))[0]
        for k in (0, 1):
            total += float(F.cross_entropy(logits[None, :, k], torch.tensor([place[k]]))) / 2
    with torch.no_grad():
        loss = found.loss(model, found.batch(examples), done=0.0)
    assert (float(loss.total), loss.count) == (pytest.approx(total, rel=1e-5), 6)


# answers


def test_the_answer_with_the_best_start_and_end_is_given():
    model = Fake(WORDS, {"b": 3, "e": 2}, {"c": 3, "f": 1})
    ((best,),) = answers(model, [question("a b c d e f")])
    assert (best.of("a b c d e f"), best.score) == ("b c", 6)


def test_an_answer_does_not_end_before_it_starts():
    ((best,),) = answers(Fake(WORDS, {"e": 9}, {"b": 9}), [question("a b c d e f")])
    assert best.of("a b c d e f") in {"e", "e f"} | {"b", "a b"}
    assert best.start < best.end


@pytest.mark.parametrize("longest", [1, 2, 3, 30])
def test_no_answer_is_longer_than_allowed(longest):
    context = "a b c d e f"
    model = Fake(WORDS, {"b": 10}, {"e": 9, "c": 1})
    (found,) = answers(model, [question(context)], max_answer=longest, n_best=40)
    assert max(len(span.of(context).split()) for span in found) == min(longest, 6)
    assert found[0].of(context) == {1: "b", 2: "b c", 3: "b c"}.get(longest, "b c d e")


@pytest.mark.parametrize("tokenizer", [WORDS, LETTERS, PIECES], ids=["word", "character", "wordpiece"])
@settings(max_examples=40)
@given(
    context=st.text(st.sampled_from("abcdj 가나😀\u0301\t"), max_size=60) | st.sampled_from(HOSTILE),
    n_best=st.integers(1, 12),
    no_answer=st.booleans(),
    size=st.integers(12, 60),
)
def test_answers_are_parts_of_the_context_in_their_order(tokenizer, context, n_best, no_answer, size):
    model = Fake(tokenizer, {"a": 2, "b": 1.5, "가": 1}, {"c": 2, "나": 1, "b": 0.5}, nothing=1)
    (found,) = answers(
        model, [question(context)], tokenizer, LongTexts(size, "windows", 4), n_best, no_answer=no_answer, max_answer=5
    )
    assert 1 <= len(found) <= n_best
    assert [span.score for span in found] == sorted((span.score for span in found), reverse=True)
    assert len({(span.start, span.end) for span in found}) == len(found)
    for span in found:
        assert 0 <= span.start <= span.end <= len(context)
        assert not any(is_inside_character(context, offset) for offset in (span.start, span.end))
        if span.start == span.end:
            assert no_answer or not any(end > start for start, end in tokenizer.encode_with_offsets(context).offsets)


@pytest.mark.parametrize("n", [1, 5])
def test_pieces_without_a_character_do_not_crowd_out_answers(n):
    """Of characters the best starts and ends may all be spaces, and an unknown one has many pieces."""
    context = "a 😀 b"
    model = Fake(LETTERS, {"b": 1}, {"b": 1})
    model.worth[:, LETTERS.encode(" ")[:1]] = 50
    model.worth[:, LETTERS.encode("😀")] = 40
    (found,) = answers(model, [question(context)], LETTERS, n_best=n)
    assert len(found) == n
    assert found[0].of(context) == "😀"


# windows of a long context


@pytest.mark.parametrize("tokenizer", [WORDS, PIECES], ids=["word", "wordpiece"])
@pytest.mark.parametrize("at", [0, 7, 25, 33, 58])
def test_an_answer_in_any_window_is_found(tokenizer, at):
    words = ["a", "b", "c"] * 20
    words[at : at + 2] = ["i", "j"]
    context = " ".join(words)
    long = LongTexts(18, "windows", 5)
    found = encode_question(tokenizer, question(context), long)
    assert found.long
    assert len(found.windows) > 4
    ((best,),) = answers(
        Fake(tokenizer, {"i": 5}, {"j": 5}, nothing=3), [question(context)], tokenizer, long, no_answer=True
    )
    assert (best.start, best.end) == (2 * at, 2 * at + 3)


def test_an_answer_is_not_taken_from_where_a_window_begins_if_another_knows_better():
    context = "g " + "a b c d e f " * 8 + "i"
    long = LongTexts(16, "windows", 6)
    assert len(encode_question(WORDS, question(context), long).windows) > 4

    class Rash(Fake):
        def __call__(self, ids, segments, mask):
            logits = super().__call__(ids, segments, mask)
            first = (ids == WORDS.end_id).long().argmax(dim=1) + 1
            for row, place in enumerate(first.tolist()):
                if ids[row, place] != WORDS.encode("g")[0]:
                    logits[row, place] = 50.0
            return logits

    (found,) = answers(Rash(WORDS, {"i": 5}, {"i": 5}), [question(context)], WORDS, long, 20)
    assert found[0].of(context) == "i"
    assert found[0].score == 10


def test_the_same_place_in_two_windows_is_one_answer():
    context = " ".join(["a"] * 8 + ["i"] + ["a"] * 8)
    (found,) = answers(Fake(WORDS, {"i": 5}, {"i": 5}), [question(context)], WORDS, LongTexts(15, "windows", 5), 10)
    assert [span.of(context) for span in found].count("i") == 1


def test_the_ensemble_is_the_mean_of_the_logits():
    one, other = Fake(WORDS, {"a": 4}, {"a": 4}), Fake(WORDS, {"c": 6}, {"c": 6})
    windows = [encode_question(WORDS, question("a b c"), LONG).windows]
    ((best,),) = answerer(one, other).best(windows)
    assert (best.of("a b c"), best.score) == ("c", 6)


# no answer


@pytest.mark.parametrize(("nothing", "said"), [(3.9, "b"), (4.1, "")])
def test_no_answer_is_an_answer_among_others(nothing, said):
    model = Fake(WORDS, {"b": 2}, {"b": 2}, nothing)
    (found,) = answers(model, [question("a b c")], no_answer=True, n_best=3)
    assert found[0].of("a b c") == said
    assert {"b", ""} <= {span.of("a b c") for span in found}
    ((always,),) = answers(model, [question("a b c")])
    assert always.of("a b c") == "b"


def test_the_window_that_is_least_sure_of_no_answer_speaks_for_it():
    context = "a " * 20 + "i"
    long = LongTexts(15, "windows", 3)
    windows = encode_question(WORDS, question(context), long).windows

    class Unsure(Fake):
        def __call__(self, ids, segments, mask):
            logits = super().__call__(ids, segments, mask)
            has = (ids == WORDS.encode("i")[0]).any(dim=1)
            logits[has, 0] = -1.0  # where the answer is, nothing is unlikely
            return logits

    model = Unsure(WORDS, {"i": 0.1}, {"i": 0.1}, nothing=5)
    ((best,),) = answerer(model, no_answer=True).best([windows])
    assert best.of(context) == "i"


@pytest.mark.parametrize("context", ["", "  ", "\u3000\n"])
@pytest.mark.parametrize("no_answer", [False, True])
def test_nothing_answers_nothing(context, no_answer):
    ((best,),) = answers(Fake(WORDS, {}, {}), [question(context)], no_answer=no_answer)
    assert (best.start, best.end) == (0, 0)


def test_questions_without_an_answer_need_a_task_that_has_them(tree, tmp_path):
    with pytest.raises(DataError) as caught:
        prepare(parse_recipe(tree("answering", task={"no_answer": False}), where="test"), Cache(tmp_path))
    assert caught.value.code == "data.no_answer"
    assert "question" in str(caught.value.where)
    assert "no_answer" in (caught.value.hint or "")


# a run


def test_what_shines_is_learned(runs, held_out):
    predictor = runs("answering").predictor
    scores = predictor.score(held_out("answering"))[0]["scores"]
    assert scores["exact_match"]["value"] > 90
    found = predictor.predict(["what shines ?\tthe dog red sun here", "what shines ?\tthe dog runs here today"])
    assert found[0].text == "red sun"
    assert found[1].text == ""


def test_a_threshold_is_found_where_the_model_speaks_too_often(runs, held_out):
    """Its belief in no answer is taken down; the threshold makes up for that, and an answer among others stays one."""
    predictor, examples = load(runs("answering").folder), held_out("answering")
    before = f1(predictor, examples)
    rash = with_facts(predictor, threshold=predictor.threshold - 30)
    assert f1(rash, examples) < before  # it always answers now
    assert f1(with_facts(predictor, threshold=rash.best_threshold(examples)), examples) >= before
    facts = json.loads((runs("answering").folder / "model/config.json").read_text())["jumok"]
    assert facts.get("threshold", 0.0) == load(runs("answering").folder).threshold


def f1(predictor, examples):
    return predictor.score(examples)[0]["scores"]["answer_f1"]["value"]


def test_a_threshold_is_a_fact_that_dev_tells(tree, tmp_path):
    found = prepare(parse_recipe(tree("answering"), where="test"), Cache(tmp_path))
    fake = Fake(found.tokenizer, {"sun": 5}, {"sun": 5}, nothing=30)
    predictor = answerer(fake, tokenizer=found.tokenizer, no_answer=True)
    facts = found.calibrated(predictor, found.dev)
    assert facts == {"threshold": predictor.best_threshold(found.dev)}
    assert facts["threshold"] < 0
    sure = answerer(fake, tokenizer=found.tokenizer)
    assert found.calibrated(sure, found.dev) == {}  # there is always an answer
    assert found.facts == AnsweringFacts(labels=["start", "end"], max_len=256)


def test_a_threshold_is_found_by_the_best_answer_of_all_windows():
    """Where there is an answer, an early window has a lesser candidate; where there is none, that is all there is."""
    words = ["a", "b", "c", "d"] * 12
    answered, silent = (" ".join([*words[:2], *some, *words[2:], *more]) for some, more in (("j", "i"), ("j", "")))
    examples = [question(answered, answers=[("i", answered.index("i"))]), question(silent)]
    model = Fake(WORDS, {"i": 5, "j": 3}, {"i": 5, "j": 3}, nothing=2)
    rule = {"long": LongTexts(18, "windows", 5), "no_answer": True}
    predictor = answerer(model, **rule)
    assert f1(predictor, examples) == 50
    assert f1(answerer(model, threshold=predictor.best_threshold(examples), **rule), examples) == 100


def test_answers_are_shown_with_their_places_and_shares(runs):
    predictor = runs("answering").predictor
    context = "the dog red sun here"
    (found,) = predictor.predict([json.dumps({"question": "what shines ?", "context": context})], n_best=4)
    assert len(found.answers) == 4
    assert all(context[a.start : a.end] == a.text for a in found.answers)
    assert sum(a.score for a in found.answers) == pytest.approx(1, abs=1e-5)
    assert found.answers[0].score == max(a.score for a in found.answers)
    assert found.windows == 1
    (one,) = predictor.predict([f"what shines ?\t{context}"], n_best=1)
    assert [a.score for a in one.answers] == [1.0]
    with pytest.raises(RecipeError) as wrong:
        predictor.predict([f"what ?\t{context}"], n_best=0)
    assert "n_best" in str(wrong.value)
    with pytest.raises(InputError) as caught:
        predictor.predict([f"what ?\t{context}"], beam=2)
    assert (caught.value.code, "beam" in caught.value.what) == ("input.unknown_option", True)


def test_a_passage_has_the_best_answer_marked_and_the_question_above_it():
    model = Fake(WORDS, {"b": 3}, {"c": 3}, nothing=4)
    predictor, asked = answerer(model, no_answer=True), question("a b c d")
    (found,) = predictor.predict(asked)
    for line in (asked, plain(asked), "what ?\ta b c d"):
        drawn = predictor.passage(line, found)
        assert (drawn.text, drawn.title, drawn.relations) == ("a b c d", "what ?", ())
        assert [*drawn.entities] == [Span(2, 5, "answer", "b c", found.answers[0].score)]
    silent = answerer(model, no_answer=True, threshold=9)
    (found,) = silent.predict(asked)
    assert found.text == ""
    assert [*silent.passage(asked, found).entities] == []


def test_a_question_is_answered_alike_however_it_is_asked(runs, held_out):
    predictor = runs("answering").predictor
    for asked in held_out("answering")[:5]:
        assert Question.parse(plain(asked), asked.where) == asked
        mapping = {"question": asked.question, "context": asked.context}
        given = [asked, mapping, json.dumps(mapping), f"{asked.question}\t{asked.context}"]
        found = predictor.predict(given)
        assert found == [found[0]] * 4
        assert adapter(Answered).validate_python(plain(found[0])) == found[0]


def test_a_question_may_begin_like_json(runs):
    predictor = runs("answering").predictor
    given = json.dumps({"question": "{x} ?", "context": "the sun"})
    assert predictor(["{x} ?\tthe sun"]) == predictor([given])
    assert predictor(["what ?\t{ sun"])[0] in "{ sun"
    with pytest.raises(DataError) as caught:
        Question.parse('{"question": "what ?",\t"context": "the sun"')
    assert caught.value.code == "data.not_json"


def test_a_question_without_a_text_is_refused(runs):
    predictor = runs("answering").predictor
    answered, *refused = predictor.predict(["what ?\tsun", "what shines ?", '{"question": "what ?"}'])
    assert isinstance(answered, Answered)
    assert all(isinstance(found, Failure) for found in refused)
    assert [(found.code, found.where) for found in refused] == [("data.no_context", "line 2"), ("data.json", "line 3")]
    assert ("what shines ?" in refused[0].what, "context" in refused[1].what) == (True, True)
    with pytest.raises(InputError) as caught:
        predictor(["what ?\tsun", "what shines ?"])
    assert (caught.value.code, caught.value.where) == ("data.no_context", "line 2")


@pytest.mark.parametrize("text", HOSTILE)
def test_no_string_is_too_strange(runs, text):
    predictor = runs("answering").predictor
    for line, context in ((f"what ?\t{text}", text), (f"{text}\tthe sun", "the sun")):
        (found,) = predictor.predict([line])
        assert all(context[a.start : a.end] == a.text for a in found.answers)
        json.dumps(plain(found))


def test_a_long_context_is_read_in_windows_and_said(runs):
    rule = WindowRule(rule="windows", stride=5)
    narrow = with_facts(runs("answering").predictor, max_len=16, long_texts=rule)
    context = "the dog sits here today " * 12 + "red sun runs"
    long, short = narrow.predict([f"what shines ?\t{context}", "what shines ?\ta sun here"])
    assert ([note.code for note in long.notes], short.notes) == (["text.windows"], [])
    assert "16" in long.notes[0].text
    (cut,) = narrow.predict([f"{'what ' * 30}\ta sun here"])
    assert ([note.code for note in cut.notes], cut.truncated) == (["text.question_cut"], True)
    assert long.windows > 5
    assert long.text == "red sun"
    assert (short.windows, short.text) == (1, "sun")


def test_a_text_of_a_million_characters_is_read_in_time():
    context = "a b c d e " * 100_000
    found = encode_question(WORDS, question(context), LongTexts(256))
    assert found.long
    assert sum(map(sum, (window.best for window in found.windows))) == 500_000


def test_the_answers_of_the_predictor_are_those_of_its_score(runs, held_out):
    predictor, found = runs("answering").predictor, held_out("answering")
    _, outputs = predictor.score(found)
    assert outputs == predictor([f"{e.question}\t{e.context}" for e in found])
    turned = [replace(e, answers=[]) for e in found]
    assert predictor.score(turned)[1] == outputs  # what is right is not looked at
    with pytest.raises(DataError) as caught:
        predictor.score([replace(found[0], answers=None, where="test.json, question 1")])
    assert (caught.value.code, caught.value.where) == ("data.no_label", "test.json, question 1")
