"""Of a line that is wrong its place is named; of texts that are too long what became of them is said, every time."""

import copy
import io
import json
import sys
import warnings

import pytest
import torch

from jumok.arguments import input_batches, predictions
from jumok.assemble import assemble
from jumok.cli import main
from jumok.errors import DataError, InputError
from jumok.models import Gpt, GptConfig, Transformer, TransformerConfig
from jumok.predictor import Generator, Translator
from jumok.prepare import prepare
from jumok.recipe import parse_recipe
from jumok.tasks.predict import Line, LongTextWarning, line_places
from jumok.tasks.windows import LongTexts
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import GPT, TokenizerConfig
from jumok.train.folder import RunFolder

LONG = "the dog " * 60
PAIR = {"text": "Ada beats Bo", "head": {"start": 0, "end": 3}, "tail": {"start": 10, "end": 12}}
GOOD = {
    "classification": "the sun",
    "pair": "the sun\ta dog",
    "verbal": "the sun",
    "tagging": "ab Cd",
    "marked": "de ABC",
    "relation": json.dumps(PAIR),
    "answering": "what shines ?\tthe sun",
    "choice": "a dog\tthe sun\tthe cat",
}
TOO_LONG = {
    "classification": LONG,
    "pair": f"{LONG}\ta dog",
    "verbal": LONG,
    "tagging": LONG,
    "marked": LONG,
    "relation": json.dumps({**PAIR, "text": f"Ada beats Bo {LONG}"}),
    "answering": f"what shines ?\t{LONG}",
    "choice": f"{LONG}\tthe sun\tthe cat",
}
WRONG = {"pair": "one text", "relation": '{"text": "Ada"}', "answering": "what shines ?", "choice": "a dog\tthe sun"}
SUFFIXES = {"marked": ".jsonl", "relation": ".jsonl", "answering": ".json", "choice": ".jsonl"}
each_task = pytest.mark.parametrize("task", GOOD)


@pytest.fixture
def ruled(runs):
    """The predictor of a task with another rule for long texts."""

    def with_rule(task, rule, max_len=24):
        predictor = copy.copy(runs(task).predictor)
        predictor.long_texts = LongTexts(max_len, rule, 4)
        predictor.longest = None  # what training has seen is not asked here
        return predictor

    return with_rule


@pytest.fixture
def jumok(monkeypatch, capsys, tmp_path):
    """`jumok predict` with a predictor, on a file or on standard input: its code, output and talk."""

    def call(predictor, lines, *arguments, stdin=False):
        file, text = tmp_path / "many.txt", "".join(f"{line}\n" for line in lines)
        file.write_text(text, "utf-8")
        monkeypatch.setattr("jumok.predictor.load", lambda *_: predictor)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8"))
        monkeypatch.setattr(sys, "argv", ["jumok", "predict", "run", *([] if stdin else [str(file)]), *arguments])
        with warnings.catch_warnings():
            warnings.simplefilter("default")  # as a user has it; here they are errors
            with pytest.raises(SystemExit) as stopped:
                main()
        said = capsys.readouterr()
        return stopped.value.code or 0, said.out, said.err.replace(str(file), "FILE")

    return call


# where a wrong line is


@pytest.mark.parametrize("task", WRONG)
def test_a_wrong_line_is_named_with_its_file_whatever_the_batch(runs, jumok, task):
    lines = [GOOD[task]] * 520 + [WRONG[task], GOOD[task]]
    code, _, talk = jumok(runs(task).predictor, lines)
    assert code == 2
    assert "where: FILE:521" in talk
    _, _, talk = jumok(runs(task).predictor, lines, stdin=True)
    assert "where: line 521" in talk


@each_task
def test_a_line_that_is_refused_is_named_and_nothing_false_is_said_of_it(ruled, jumok, task):
    lines = [GOOD[task]] * 513 + [TOO_LONG[task]]
    code, _, talk = jumok(ruled(task, "refuse"), lines)
    assert (code, "where: FILE:514" in talk, "note:" in talk) == (2, True, False)
    with pytest.raises(DataError, match="where there is room for") as caught:
        ruled(task, "refuse").predict([GOOD[task], TOO_LONG[task]])
    assert caught.value.where == "line 2"


def test_relations_of_raw_text_name_the_line_of_a_sentence_that_is_refused(ruled):
    lines = [Line.at("ab Cd.", "a.txt:6"), Line.at(f"Ab de. {LONG}", "a.txt:7")]
    with pytest.raises(DataError, match="where there is room for") as caught:
        ruled("relation", "refuse").predict(lines, taggers=[ruled("tagging", "refuse")])
    assert caught.value.where == "a.txt:7"


def test_every_line_knows_its_place(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("a\n\nb\r\nc", "utf-8")
    batches = list(input_batches(tmp_path / "a.txt", size=3))
    assert batches == [["a", "", "b"], ["c"]]
    assert [line.where for lines in batches for line in lines] == [f"{tmp_path}/a.txt:{n}" for n in (1, 2, 3, 4)]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\nb\nc"), "utf-8"))
    assert [line.where for lines in input_batches(None) for line in lines] == ["line 1", "line 2", "line 3"]
    assert line_places(["a", Line.at("b", "x:9"), "c"]) == ["line 1", "x:9", "line 3"]
    assert copy.deepcopy(Line.at("b", "x:9")).where == "x:9"


def test_models_that_write_name_the_line_that_is_too_long():
    pieces = Tokenizer.train(TokenizerConfig(kind="byte_bpe", vocab_size=280), ["a b"], GPT)
    torch.manual_seed(1)
    writer = Gpt(GptConfig(d_model=8, d_ff=8, n_heads=2, n_layers=1, max_len=8), vocab=pieces.vocab_size).eval()
    decode = {"method": "greedy", "max_extra": 2}
    generator = Generator([writer], pieces, {"max_len": 8, "decode": decode}, where="")
    words = Tokenizer.train(TokenizerConfig(kind="word", vocab_size=20), ["a b"])
    config = TransformerConfig(d_model=8, d_ff=8, n_heads=2, n_layers=1, positions="learned", max_len=8)
    sizes = {"source_vocab": words.vocab_size, "target_vocab": words.vocab_size}
    facts = {"source": "en", "target": "ko", "decode": {**decode, "method": "beam"}}
    translator = Translator([Transformer(config, **sizes).eval()], Tokenizers(words, words), facts, where="")
    for predictor in (generator, translator):
        with pytest.raises(InputError, match="pieces") as caught:
            predictor.predict([Line.at("a", "x:1"), Line.at("", "x:2"), Line.at("a b " * 9, "x:3")])
        assert caught.value.where == "x:3"


# what is held out is refused before the training


def held_out_file(task, path):
    content = {
        "pair": f"one\tother\tlabel\nsun\ta\tfirst\n{LONG}\tsun\tsecond\n",
        "tagging": "a O\n\n" + "a O\n" * 150,
        "marked": json.dumps({"text": LONG, "spans": []}),
        "relation": json.dumps({**json.loads(TOO_LONG["relation"]), "label": "none"}),
        "answering": json.dumps(
            {
                "data": [
                    {
                        "paragraphs": [
                            {"context": LONG, "qas": [{"id": "1", "question": "what ?", "is_impossible": True}]}
                        ]
                    }
                ]
            }
        ),
        "choice": json.dumps({"context": LONG, "endings": ["a", "b", "c"], "label": 0}),
    }
    path.write_text(content.get(task, f"text\tlabel\nsun\tgood\n{LONG}\tbad\n"), "utf-8")
    return str(path)


@each_task
@pytest.mark.parametrize("split", ["dev", "test"])
def test_held_out_texts_are_refused_before_anything_is_learned(tree, tmp_path, task, split):
    file = held_out_file(task, tmp_path / f"{split}{SUFFIXES.get(task, '')}")
    data = {split: [file], "max_len": 60}
    model = {"model": {"max_len": 60}} if task == "relation" else {}
    prepare(parse_recipe(tree(task, data=data, **model), where="test"), tmp_path)  # in windows they are welcome
    with pytest.raises(DataError, match="where there is room for") as caught:
        prepare(parse_recipe(tree(task, data={**data, "long_texts": "refuse"}, **model), where="test"), tmp_path)
    assert str(caught.value.where).startswith(file)


# what is said of long texts


@each_task
@pytest.mark.parametrize("rule", ["windows", "truncate"])
def test_one_note_in_the_end_counts_all_batches(ruled, jumok, task, rule):
    lines = [GOOD[task]] * 1030
    for i in (0, 3, 1029):
        lines[i] = TOO_LONG[task]
    _, out, talk = jumok(ruled(task, rule), lines)
    assert len(out.splitlines()) == 1030
    (note,) = talk.splitlines()
    assert note.startswith("note: 3 of 1,030 texts have more than 24 pieces and were read ")
    _, _, talk = jumok(ruled(task, rule), [GOOD[task]] * 3)
    assert talk == ""


def test_what_was_cut_is_said_before_an_error_ends_it(ruled, jumok):
    lines = [TOO_LONG["pair"], *[GOOD["pair"]] * 511, WRONG["pair"]]
    _, out, talk = jumok(ruled("pair", "truncate"), lines)
    assert len(out.splitlines()) == 512
    assert talk.startswith(
        "note: 1 of 512 texts have more than 24 pieces and were read at their beginning only\nerror:"
    )


def test_a_second_call_says_it_again(ruled):
    predictor = ruled("tagging", "truncate")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        for _ in range(3):
            predictor.predict([LONG])
    assert [note.category for note in said] == [LongTextWarning] * 3


@pytest.mark.parametrize("task", [task for task in GOOD if task != "relation"])
def test_outputs_say_how_they_were_read(ruled, task):
    lines = [GOOD[task], TOO_LONG[task]]

    def told(rule):
        predictor = ruled(task, rule)
        with pytest.warns(LongTextWarning):
            return [predictor.plain(line, found) for line, found in predictions(predictor, iter([lines]), {})]

    short, long = told("windows")
    assert (short["windows"], long["windows"] > 1) == (1, True)
    assert "truncated" not in short | long
    short, long = told("truncate")
    assert (short["windows"], long["windows"]) == (1, 1)
    assert (short.get("truncated"), long.get("truncated")) == (None, True)


@pytest.mark.parametrize("rule", ["windows", "truncate"])
@pytest.mark.parametrize(
    ("task", "line", "words"),
    [
        ("answering", json.dumps({"question": "who " * 40, "context": "Kim won"}), "questions take"),
        ("choice", f"a dog\tthe sun\t{LONG}", "texts have endings that take"),
    ],
)
def test_what_is_cut_beside_a_short_context_is_said_in_its_own_words(ruled, task, rule, line, words):
    predictor = ruled(task, rule, max_len=12)
    said = f"^1 of 2 {words} more than half of 12 pieces and were cut there$"
    with pytest.warns(LongTextWarning, match=said) as notes:
        short, cut = predictor.predict([GOOD[task], line])
    assert len(notes) == 1  # nothing was read in windows
    assert [(found.windows, found.truncated) for found in (short, cut)] == [(1, False), (1, True)]


@pytest.mark.parametrize(
    ("task", "words"), [("answering", "questions take"), ("choice", "texts have endings that take")]
)
def test_what_is_cut_in_training_is_said(tree, tmp_path, monkeypatch, task, words):
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path))
    question = {"id": "1", "question": "who " * 40, "answers": [{"text": "Kim", "answer_start": 0}]}
    content = {
        "answering": {"data": [{"paragraphs": [{"context": "Kim won", "qas": [question]}]}]},
        "choice": {"context": "Kim", "endings": ["a", "b", "won " * 40], "label": 0},
    }
    file = tmp_path / f"train{SUFFIXES[task]}"
    file.write_text(json.dumps(content[task]), "utf-8")
    recipe = parse_recipe(tree(task, data={"train": [str(file)], "max_len": 12}), where="test")
    folder = RunFolder(tmp_path / "run")
    run = assemble(recipe, folder)
    folder.unlock()
    assert run.warnings == [f"1 of 1 {words} more than half of 12 pieces and were cut there"]
