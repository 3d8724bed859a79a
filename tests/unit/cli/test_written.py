"""`jumok predict --out`: a file in, a file of its kind out."""

import io
import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from rich.console import Console

from jumok.cli import app, main, report
from jumok.errors import InputError, JumokError
from jumok.examples.pairs import Pair
from jumok.examples.plain import Text
from jumok.predictor import load
from jumok.recipe import parse_recipe
from jumok.tasks.protocol import answered


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str
    error: JumokError | None
    """what the command raised"""


@pytest.fixture
def jumok(monkeypatch, capsys):
    raised = []

    def recorded():
        try:
            app()
        except JumokError as error:
            raised.append(error)
            raise

    monkeypatch.setattr("jumok.cli.app", recorded)

    def call(*arguments, stdin=""):
        raised.clear()
        monkeypatch.setattr(sys, "argv", ["jumok", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8"))
        with pytest.raises(SystemExit) as stopped:
            main()
        said = capsys.readouterr()
        return Said(int(stopped.value.code or 0), said.out, said.err, raised[0] if raised else None)

    return call


def placeless(examples):
    return [replace(example, where="") for example in examples]


FILES = {
    "classification": ("a.tsv", "b.tsv"),
    "labels": ("a.tsv", "b.tsv.gz"),
    "number": ("a.tsv", "b.tsv"),
    "pair": ("a.tsv", "b.tsv"),
    "tagging": ("a.conll", "b.conll"),
    "marked": ("a.jsonl", "b.jsonl.gz"),
    "relation": ("a.jsonl", "b.jsonl"),
    "answering": ("a.json", "b.json"),
    "choice": ("a.jsonl", "b.csv"),
    "translation": ("a.en", "b.tsv"),
}


def without_answers(text, suffix):
    if suffix == ".tsv":
        return "\n".join(line.rpartition("\t")[0] for line in text.splitlines()) + "\n"
    if suffix != ".jsonl":
        return text
    objects = [json.loads(line) for line in text.splitlines()]
    return "".join(f"{json.dumps({k: v for k, v in o.items() if k not in ('label', 'spans')})}\n" for o in objects)


@pytest.mark.parametrize("task", FILES)
def test_what_is_written_is_read_back_as_what_the_predictor_says(jumok, runs, tree, held_out, tmp_path, task):
    run, examples = runs(task), held_out(task)
    data = parse_recipe(tree(task), where="test").data
    file, out = (tmp_path / name for name in FILES[task])
    if task == "translation":
        file.write_text("".join(f"{pair.source}\n" for pair in examples), "utf-8")
    else:
        file.write_text(without_answers(Path(data.test[0]).read_text("utf-8"), file.suffix), "utf-8")
    said = jumok("predict", run.folder, file, "--out", out)
    assert (said.code, said.out, said.error) == (0, "", None)
    assert str(out) in said.err
    assert "60" in said.err
    outputs = answered(load(run.folder).predict(examples))
    expected = [run.predictor.completed(*both) for both in zip(examples, outputs, strict=True)]
    found = list(data.for_files([str(out)]).read("test", seed=1))
    assert placeless(found) == placeless(expected)
    answers = {
        "tagging": lambda e, o: e.tags == o.tags,
        "marked": lambda e, o: [(s.label, s.start, s.end) for s in e.spans] == o.spans,
        "answering": lambda e, o: [text for text, _ in e.answers] == [o.text] * bool(o.text),
        "choice": lambda e, o: e.endings[e.label] == o.text,
        "translation": lambda e, o: e.target == o.text,
        "labels": lambda e, o: e.label == (o.text or "|"),
    }
    told = answers.get(task, lambda e, o: e.label == o.text)
    assert all(told(example, output) for example, output in zip(found, outputs, strict=True))


def test_labels_in_the_file_stay_beside_the_predicted_ones(jumok, runs, tmp_path):
    file, out = tmp_path / "a.tsv", tmp_path / "b.tsv"
    file.write_text("label\ttext\nnonsense\tthe sun\n", "utf-8")
    assert jumok("predict", runs("classification").folder, file, "--out", out).code == 0
    (found,) = answered(runs("classification").predictor.predict("the sun"))
    expected = f"label\ttext\tpredicted_label\tprobability\nnonsense\tthe sun\t{found.text}\t{found.probability}\n"
    assert out.read_text("utf-8") == expected


def test_two_line_aligned_files_are_one_output(jumok, runs, tmp_path):
    out = f"{tmp_path / 'b.en'},{tmp_path / 'b.xx'}"
    said = jumok("predict", runs("translation").folder, "--out", out, stdin="the cat\nhere\n")
    assert said.code == 0
    assert (tmp_path / "b.en").read_text("utf-8") == "the cat\nhere\n"
    translated = runs("translation").predictor(["the cat", "here"])
    assert (tmp_path / "b.xx").read_text("utf-8") == "".join(f"{text}\n" for text in translated)


def test_lines_of_stdin_are_examples(jumok, runs, tmp_path):
    out = tmp_path / "b.txt"
    assert jumok("predict", runs("language_model").folder, "--out", out, stdin="the cat\n").code == 0
    assert out.read_text("utf-8") == f"{runs('language_model').predictor('the cat')[0]}\n"


def test_failures_are_named_left_out_and_counted(jumok, runs, tmp_path):
    out = tmp_path / "b.tsv"
    said = jumok("predict", runs("pair").folder, "--out", out, stdin="a\tb\nalone\nsun\tdog\n")
    assert said.code == 2
    assert "line 2" in said.err
    assert "2 of 3" in said.err
    rows = [line.split("\t") for line in out.read_text("utf-8").splitlines()]
    assert [row[:2] for row in rows] == [["one", "other"], ["a", "b"], ["sun", "dog"]]


def test_what_the_format_cannot_say_is_a_failure_too(jumok, runs, tmp_path):
    out = tmp_path / "b.tsv"
    said = jumok("predict", runs("classification").folder, "--out", out, stdin="the\tsun\na dog\n")
    assert said.code == 2
    assert "line 1" in said.err
    assert [line.split("\t")[0] for line in out.read_text("utf-8").splitlines()] == ["text", "a dog"]


def test_what_cannot_be_read_is_a_failure_too(jumok, runs, tmp_path):
    file, out = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    good = {"context": "a dog", "endings": ["the sun", "the cat", "비"]}
    file.write_text(f"{json.dumps(good)}\n{{\n", "utf-8")
    said = jumok("predict", runs("choice").folder, file, "--out", out)
    assert said.code == 2
    assert f"{file}:2" in said.err
    first, second = out.read_text("utf-8").splitlines()
    assert (json.loads(first)["context"], second) == ("a dog", "{")


@pytest.mark.parametrize(
    ("task", "text", "code"),
    [("pair", "alone\n", "input.nothing_answered"), ("classification", "a\tb\n", "data.nothing_written")],
)
def test_nothing_is_written_if_everything_failed(jumok, runs, tmp_path, task, text, code):
    said = jumok("predict", runs(task).folder, "--out", tmp_path / "b.tsv", stdin=text)
    assert (said.code, said.error.code) == (2, code)
    assert "line 1" in said.err
    assert not list(tmp_path.iterdir())


def test_nothing_in_is_an_empty_file_out(jumok, runs, tmp_path):
    assert jumok("predict", runs("classification").folder, "--out", tmp_path / "b.tsv").code == 0
    assert (tmp_path / "b.tsv").read_text("utf-8") == "text\n"


@pytest.mark.parametrize("option", [["--json"], ["--table", "tsv"], ["--stream"], ["--picture", "a.png"]])
def test_a_file_goes_with_no_other_kind_of_output(jumok, tmp_path, option):
    said = jumok("predict", tmp_path / "run", "--out", tmp_path / "b.tsv", *option)
    assert (said.code, said.error.code) == (2, "input.options")
    assert option[0] in said.error.what


@pytest.mark.parametrize("name", ["nowhere/b.tsv", "folder", "b.en,nowhere/b.ko", "nowhere/b.en,b.ko"])
def test_a_place_that_cannot_be_written_is_refused_first(jumok, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    said = jumok("predict", "run", "--out", name)
    assert (said.code, said.error.code) == (2, "input.out")
    assert "folder" in name or "nowhere" in said.error.what


def test_an_unknown_format_is_refused_before_the_model_is_asked(jumok, runs, tmp_path, monkeypatch):
    kind = type(runs("classification").predictor)
    monkeypatch.setattr(kind, "predict", lambda *_, **__: pytest.fail("nothing should be predicted"))
    said = jumok("predict", runs("classification").folder, "--out", tmp_path / "b.json", stdin="a\n")
    assert (said.code, said.error.code) == (2, "data.format")
    assert "b.json" in said.error.where


def test_what_has_no_place_in_an_example_is_not_written(jumok, runs, tmp_path):
    folder = runs("pretraining").folder
    said = jumok("predict", folder, "--out", tmp_path / "b.txt", "--set", "ask=embedding", stdin="the dog\n")
    assert (said.code, said.error.code, said.error.where) == (2, "input.no_file", "line 1")
    assert jumok("predict", folder, "--out", tmp_path / "b.txt", stdin="the [MASK]\n").code == 0
    assert (tmp_path / "b.txt").read_text("utf-8") == f"{runs('pretraining').predictor('the [MASK]')[0]}\n"


def test_a_model_without_a_recipe_writes_what_its_task_reads(runs, tmp_path):
    from jumok.cli.inputs import data_for

    translator = runs("translation").predictor
    data_for(translator, tmp_path).write(tmp_path / "a.tmx", [Pair("a", "b")])
    assert f'srclang="{translator.source}"' in (tmp_path / "a.tmx").read_text("utf-8")
    data_for(runs("language_model").predictor, tmp_path).write(tmp_path / "a.txt", [Text("a")])
    assert (tmp_path / "a.txt").read_text("utf-8") == "a\n"


def test_tagged_words_stay_words_and_other_texts_keep_their_characters(runs):
    tagger = runs("tagging").predictor
    for text, words in (("Abc de", ["Abc", "de"]), ("Abc  de", None)):
        (output,) = answered(tagger.predict(text))
        found = tagger.completed(tagger.parse(text), output)
        assert (found.text, found.words) == (text, words)
        assert [(span.label, span.start, span.end) for span in found.marked] == output.spans


def test_the_time_left_is_told_in_lines_after_two_seconds(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(report, "perf_counter", lambda: now[0])
    said = io.StringIO()
    with report.progress_bar(Console(file=said, width=120), "run", 1000) as done:
        for _ in range(20):
            now[0] += 1.0
            done(50)
    first, *lines = said.getvalue().splitlines()
    assert "1,000" in first
    assert [line.split(": ", 1)[1].split() for line in lines] == [
        ["100/1,000", "0:18", "left"],
        ["600/1,000", "0:08", "left"],
    ]


def test_nothing_is_told_of_progress_where_it_is_quiet():
    said = io.StringIO()
    with report.progress_bar(Console(file=said), "run", 10, quiet=True) as done:
        done(10)
    assert said.getvalue() == ""


def test_a_predictor_that_completes_nothing_says_so(runs):
    encoder = runs("pretraining").predictor
    (output,) = answered(encoder.predict("the dog\tthe cat"))
    with pytest.raises(InputError) as caught:
        encoder.completed(Text("the dog", "the cat", "f:7"), output)
    assert (caught.value.code, caught.value.where) == ("input.no_file", "f:7")
