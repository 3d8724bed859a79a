"""A line that is wrong fails alone and is named; what became of texts that are too long is said, every time."""

import copy
import io
import json
import re
import sys
from dataclasses import replace

import pytest
import torch
from typer.testing import CliRunner

from jumok.assemble import assemble
from jumok.cli import app, inputs, main
from jumok.cli.inputs import Line, input_batches
from jumok.data.cache import Cache
from jumok.decode.options import DecodeConfig
from jumok.engines.torch import TorchEngine
from jumok.errors import DataError
from jumok.examples.plain import Text
from jumok.models.gpt import Gpt, GptConfig
from jumok.models.transformer import Transformer, TransformerConfig
from jumok.recipe import parse_recipe
from jumok.tasks.language_model import LanguageModelFacts
from jumok.tasks.language_model.predictor import Generator
from jumok.tasks.protocol import Failure, plain
from jumok.tasks.translation import TranslationFacts
from jumok.tasks.translation.predictor import Translator
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


def placed(text, where):
    line = Line(text)
    line.where = where
    return line


def prepare(recipe, cache):
    return recipe.kind.prepare(recipe, Cache(cache))


@pytest.fixture
def ruled(runs):
    """The predictor of a task with another rule for long texts."""

    def with_rule(task, rule, max_len=24):
        predictor = copy.copy(runs(task).predictor)
        predictor.long_texts = LongTexts(max_len, rule, 4)
        if hasattr(predictor, "facts"):  # what training has seen is not asked here
            predictor.facts = replace(predictor.facts, longest=None)
        return predictor

    return with_rule


@pytest.fixture
def jumok(monkeypatch, capsys, tmp_path):
    """`jumok predict` with a predictor, on a file or on standard input: its code, output and talk."""

    def call(predictor, lines, *arguments, stdin=False):
        file, text = tmp_path / "many.txt", "".join(f"{line}\n" for line in lines)
        file.write_text(text, "utf-8")
        monkeypatch.setattr("jumok.predictor.load", lambda *_, **__: predictor)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8"))
        monkeypatch.setattr(sys, "argv", ["jumok", "predict", "run", *([] if stdin else [str(file)]), *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        said = capsys.readouterr()
        return stopped.value.code or 0, said.out, said.err.replace(str(file), "FILE")

    return call


# a wrong line fails alone


@pytest.mark.parametrize("task", WRONG)
@pytest.mark.parametrize(("stdin", "where"), [(False, "FILE:521"), (True, "line 521")])
def test_a_wrong_line_fails_alone_and_is_named_whatever_the_batch(runs, jumok, task, stdin, where):
    lines = [GOOD[task]] * 520 + [WRONG[task], GOOD[task]]
    code, out, talk = jumok(runs(task).predictor, lines, stdin=stdin)
    answer = out.splitlines()[0]
    assert (code, answer != "") == (2, True)
    assert out.splitlines() == [answer] * 520 + ["", answer]
    assert re.findall(r"where: (.*)", talk) == [where]


OBJECTS = {
    "choice": ('{"context": "a dog", "endings": ["the sun", "the cat"]}', '{"context": "a dog"}'),
    "relation": (json.dumps(PAIR), '{"text": "Ada"}'),
    "marked": ('{"text": "de ABC"}', '{"texts": "de ABC"}'),
}


@pytest.mark.parametrize("task", OBJECTS)
@pytest.mark.parametrize("wrong_line", [1, 2, 5])
def test_an_example_of_a_file_as_in_training_fails_alone(runs, tmp_path, task, wrong_line):
    good, wrong = OBJECTS[task]
    lines = [good] * 5
    lines[wrong_line - 1] = wrong
    file = tmp_path / "many.jsonl"
    file.write_text("\n".join(lines), "utf-8")
    said = CliRunner().invoke(app, ["predict", str(runs(task).folder), str(file)])
    answers = [bool(line) for line in said.stdout.splitlines()]
    assert (said.exit_code, answers) == (2, [number != wrong_line for number in range(1, 6)])
    assert re.findall(r"where: (.*)", said.stderr) == [f"{file}:{wrong_line}"]
    said = CliRunner().invoke(app, ["predict", str(runs(task).folder), str(file), "--json"])
    found = json.loads(said.stdout)["predictions"]
    assert [("error" in each, "input" in each) for each in found] == [(not answer, answer) for answer in answers]
    assert found[wrong_line - 1]["error"]["where"] == f"{file}:{wrong_line}"


def test_a_row_of_a_table_as_in_training_fails_alone(runs, tmp_path):
    file = tmp_path / "many.tsv"
    file.write_text("one\tother\nthe sun\ta dog\nthe sun\na dog\tthe sun\n", "utf-8")
    said = CliRunner().invoke(app, ["predict", str(runs("pair").folder), str(file)])
    assert (said.exit_code, [bool(line) for line in said.stdout.splitlines()]) == (2, [True, False, True])
    assert re.findall(r"where: (.*)", said.stderr) == [f"{file}:3"]


@each_task
def test_a_line_that_is_refused_is_named_and_nothing_false_is_said_of_it(ruled, jumok, task):
    lines = [GOOD[task]] * 513 + [TOO_LONG[task]]
    code, out, talk = jumok(ruled(task, "refuse"), lines)
    assert (code, re.findall(r"where: (.*)", talk), "note:" in talk) == (2, ["FILE:514"], False)
    assert [bool(line) for line in out.splitlines()] == [True] * 513 + [False]
    good, failed = ruled(task, "refuse").predict([GOOD[task], TOO_LONG[task]])
    assert not isinstance(good, Failure)
    assert (failed.code, failed.where) == ("data.too_long", "line 2")


def test_relations_of_raw_text_name_the_line_of_a_sentence_that_is_refused(ruled):
    lines = [placed("ab Cd.", "a.txt:6"), placed(f"Ab de. {LONG}", "a.txt:7")]
    good, failed = ruled("relation", "refuse").relate_texts(lines, [ruled("tagging", "refuse")])
    assert not isinstance(good, Failure)
    assert (failed.code, failed.where) == ("data.too_long", "a.txt:7")


def test_every_line_knows_its_place(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("a\n\nb\r\nc", "utf-8")
    monkeypatch.setattr(inputs, "AT_ONCE", 3)
    batches = list(input_batches(tmp_path / "a.txt"))
    assert batches == [["a", "", "b"], ["c"]]
    assert [line.where for lines in batches for line in lines] == [f"{tmp_path}/a.txt:{n}" for n in (1, 2, 3, 4)]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\nb\nc"), "utf-8"))
    assert [line.where for lines in input_batches(None) for line in lines] == ["line 1", "line 2", "line 3"]
    assert copy.deepcopy(placed("b", "x:9")).where == "x:9"


def test_an_example_keeps_the_place_that_it_has_and_others_are_counted(runs):
    wrong = WRONG["choice"]
    found = runs("choice").predictor.predict([wrong, placed(wrong, "x:9"), wrong])
    assert [failed.where for failed in found] == ["line 1", "x:9", "line 3"]


def test_models_that_write_name_the_line_that_is_too_long():
    pieces = Tokenizer.train(TokenizerConfig(kind="byte_bpe", vocab_size=280), ["a b"], GPT)
    torch.manual_seed(1)
    writer = Gpt(GptConfig(d_model=8, d_ff=8, n_heads=2, n_layers=1, max_len=8), vocab=pieces.vocab_size).eval()
    tokenizers = Tokenizers(pieces, pieces)
    facts = LanguageModelFacts(max_len=8, decode=DecodeConfig(method="greedy", max_extra=2))
    generator = Generator(TorchEngine([writer], tokenizers), tokenizers, facts)
    words = Tokenizer.train(TokenizerConfig(kind="word", vocab_size=20), ["a b"])
    config = TransformerConfig(d_model=8, d_ff=8, n_heads=2, n_layers=1, positions="learned", max_len=8)
    model = Transformer(config, source_vocab=words.vocab_size, target_vocab=words.vocab_size).eval()
    tokenizers = Tokenizers(words, words)
    facts = TranslationFacts(source="en", target="ko", decode=DecodeConfig(max_extra=2))
    translator = Translator(TorchEngine([model], tokenizers), tokenizers, facts)
    for predictor in (generator, translator):
        *good, failed = predictor.predict([placed("a", "x:1"), placed("", "x:2"), placed("a b " * 9, "x:3")])
        assert not any(isinstance(output, Failure) for output in good)
        assert (failed.code, failed.where) == ("text.too_long", "x:3")
        assert "8" in failed.what or "7" in failed.what  # the positions that there are, or those beside the start
    (failed,) = translator.predict([Text("a b " * 9, None, "x:3")])
    assert failed.code == "input.example"


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
    with pytest.raises(DataError) as caught:
        prepare(parse_recipe(tree(task, data={**data, "long_texts": "refuse"}, **model), where="test"), tmp_path)
    assert caught.value.code == "data.too_long"
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
    assert note.startswith("note: 3 of 1,030: ")
    assert "24 tokens" in note
    _, _, talk = jumok(ruled(task, rule), [GOOD[task]] * 3)
    assert talk == ""


def test_what_was_cut_is_said_beside_a_line_that_is_wrong(ruled, jumok):
    lines = [TOO_LONG["pair"], *[GOOD["pair"]] * 511, WRONG["pair"], GOOD["pair"]]
    code, out, talk = jumok(ruled("pair", "truncate"), lines)
    assert (code, len(out.splitlines())) == (2, 514)
    assert re.findall(r"where: (.*)", talk) == ["FILE:513"]
    assert re.findall(r"^note: (.*?):", talk, re.MULTILINE) == ["1 of 514"]


def test_a_second_call_notes_it_again(ruled):
    predictor = ruled("tagging", "truncate")
    for _ in range(3):
        (found,) = predictor.predict([LONG])
        assert [note.code for note in found.notes] == ["text.cut"]


@pytest.mark.parametrize("task", [task for task in GOOD if task != "relation"])
def test_outputs_say_how_they_were_read(ruled, task):
    def told(rule):
        return [plain(output) for output in ruled(task, rule).predict([GOOD[task], TOO_LONG[task]])]

    short, long = told("windows")
    assert (short["windows"], long["windows"] > 1) == (1, True)
    assert (short["truncated"], long["truncated"]) == (False, False)
    short, long = told("truncate")
    assert (short["windows"], long["windows"]) == (1, 1)
    assert (short["truncated"], long["truncated"]) == (False, True)


@pytest.mark.parametrize("rule", ["windows", "truncate"])
@pytest.mark.parametrize(
    ("task", "line", "things"),
    [
        ("answering", json.dumps({"question": "who " * 40, "context": "Kim won"}), "questions"),
        ("choice", f"a dog\tthe sun\t{LONG}", "endings"),
    ],
)
def test_what_is_cut_beside_a_short_context_is_said_in_its_own_words(ruled, task, rule, line, things):
    short, cut = ruled(task, rule, max_len=12).predict([GOOD[task], line])
    (note,) = cut.notes  # nothing was read in windows
    assert note.code == "text.question_cut"
    assert (things in note.text, "12 tokens" in note.text) == (True, True)
    assert [(found.windows, found.truncated) for found in (short, cut)] == [(1, False), (1, True)]
    assert short.notes == []


@pytest.mark.parametrize(("task", "things"), [("answering", "questions"), ("choice", "endings")])
def test_what_is_cut_in_training_is_said(tree, tmp_path, monkeypatch, task, things):
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
    (note,) = run.notes
    assert note.startswith(f"1 of 1: {things} ")
    assert "12 tokens" in note
