"""Whole files through `jumok predict`: taken apart, put together again, and gone on with after a kill."""

import gzip
import json
import os
import signal
import tracemalloc
from dataclasses import replace

import pytest
import typer
from test_written import jumok  # noqa: F401 - fixture

from jumok.cli import journal
from jumok.cli.written import Writer
from jumok.errors import InputError
from jumok.examples.gettext import read_po
from jumok.examples.labelled import LabelledData
from jumok.examples.pairs import Excerpt, ParallelData
from jumok.tasks.classification.predictor import Classified
from jumok.tasks.protocol import Failure, Note
from jumok.tasks.translation import documents
from jumok.tasks.translation.predictor import Translation
from msgfmt import msgfmt

PO = """\
msgid ""
msgstr ""
"Language: ko\\n"
"Content-Type: text/plain; charset=UTF-8\\n"

# one
msgid "the cat\\n"
"\\n"
"  a dog here\\n"
msgstr ""

#, c-format
msgid "%d cat"
msgid_plural "%d cats today"
msgstr[0] ""
msgstr[1] ""

msgid "the dog"
msgstr "이미"
"""


class Fake:
    """Answers without a model, and counts; stops by itself after some calls."""

    def __init__(self, stop=None, after=10**9):
        self.asked, self.calls, self.stop, self.after = [], 0, stop, after

    def __call__(self, examples, done):
        self.calls += 1
        if self.calls > self.after:
            self.stop()
        self.asked += [getattr(example, "text", example) for example in examples]
        done(len(examples))
        return [Classified(str(example.text)[::-1], 0.5, notes=[Note("x", "noted")]) for example in examples]


class Stopped(Exception):
    pass


def stop():
    raise Stopped


def table(path, n):
    path.write_text("text\n" + "".join(f"line {i}\n" for i in range(n)), "utf-8")
    return path


@pytest.fixture
def write(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "SECONDS", 0.0)

    def call(file, out, fake, key="same"):
        predictor = runs("classification").predictor
        return Writer(predictor, LabelledData(), fake, {"the model": key}).write(file, tmp_path / out, "run")

    return call


def test_a_killed_command_goes_on_where_it_was(write, tmp_path, capsys):
    file = table(tmp_path / "a.tsv", 1000)
    write(file, "whole.tsv", Fake())
    with pytest.raises(Stopped):
        write(file, "b.tsv", Fake(stop, after=3))
    assert not (tmp_path / "b.tsv").exists()
    assert (tmp_path / ".b.tsv.part").is_dir()
    capsys.readouterr()
    rest = Fake()
    assert write(file, "b.tsv", rest) == 0
    assert rest.asked == [f"line {i}" for i in range(3 * 128, 1000)]
    assert (tmp_path / "b.tsv").read_bytes() == (tmp_path / "whole.tsv").read_bytes()
    said = capsys.readouterr().err
    assert "384 of 1,000" in said
    assert "1,000 of 1,000: noted" in said
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("other", ["input", "model", "damaged"])
def test_what_another_input_or_model_has_left_is_not_gone_on_with(write, tmp_path, capsys, other):
    file = table(tmp_path / "a.tsv", 500)
    with pytest.raises(Stopped):
        write(file, "b.tsv", Fake(stop, after=2))
    if other == "input":
        table(file, 501)
    if other == "damaged":
        (tmp_path / ".b.tsv.part" / "progress.json").write_text("{")
    fake = Fake()
    write(file, "b.tsv", fake, "another" if other == "model" else "same")
    assert len(fake.asked) == 500 + (other == "input")
    assert (f"the {other} changed" in capsys.readouterr().err) == (other != "damaged")


@pytest.fixture
def heard():
    """What hears the signals before and after; a process in the background of a shell ignores some."""

    def hear(number, frame):
        pytest.fail(f"signal {number}")

    old = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    yield hear
    for number, handler in old.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_a_command_that_says_how_to_go_on(write, tmp_path, capsys, heard, number, code):
    file = table(tmp_path / "a.tsv", 500)
    with pytest.raises(typer.Exit) as stopped:
        write(file, "b.tsv", Fake(lambda: os.kill(os.getpid(), number), after=1))
    assert stopped.value.exit_code == code
    assert "128 of 500" in capsys.readouterr().err
    assert signal.getsignal(number) is heard
    rest = Fake()
    write(file, "b.tsv", rest)
    assert len(rest.asked) == 500 - 128


def test_two_commands_do_not_write_one_file(write, tmp_path):
    file = table(tmp_path / "a.tsv", 10)
    found = []

    def again():
        with pytest.raises(InputError) as caught:
            write(file, "b.tsv", Fake())
        found.append(caught.value.code)

    fake = Fake(again, after=0)
    assert write(file, "b.tsv", fake) == 0
    assert found == ["input.out"]


def test_memory_does_not_depend_on_the_size_of_a_file(write, tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "SECONDS", 0.2)

    class Forgetful(Fake):
        def __call__(self, examples, done):
            found = super().__call__(examples, done)
            self.asked.clear()
            return found

    def peak(n):
        file = table(tmp_path / "a.tsv", n)
        tracemalloc.start()
        write(file, "b.tsv", Forgetful())
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(300)  # what is imported
    small, large = peak(1000), peak(20_000)
    assert large < 1.5 * small + 1_000_000  # the file itself has 12 MB as objects


def test_a_gzipped_file_is_gzipped_again(write, tmp_path):
    file = tmp_path / "a.tsv.gz"
    file.write_bytes(gzip.compress(b"text\nab\n"))
    write(file, "b.tsv.gz", Fake())
    assert gzip.decompress((tmp_path / "b.tsv.gz").read_bytes()) == b"text\tlabel\tprobability\nab\tba\t0.5\n"


def test_a_catalogue_is_translated_and_marked(jumok, runs, tmp_path):  # noqa: F811
    file, out = tmp_path / "a.po", tmp_path / "b.po"
    file.write_text(PO, "utf-8")
    said = jumok("predict", runs("translation").folder, file, "--out", out)
    assert (said.code, said.error) == (0, None)
    translate = runs("translation").predictor
    first, second, third = translate(["the cat", "a dog here", "%d cats today"])
    text = out.read_text("utf-8")
    filled = f'msgstr ""\n"{first}\\n"\n"\\n"\n"  {second}\\n"\n'
    assert f'# one\n#, fuzzy\nmsgid "the cat\\n"\n"\\n"\n"  a dog here\\n"\n{filled}' in text
    assert text.endswith('\n\nmsgid "the dog"\nmsgstr "이미"\n')
    assert [pair[:2] for pair in read_po(out)] == [("the dog", "이미")]
    if "%d" not in third:
        assert "# jumok: missing: %d\n" in text
        assert "1 with other placeholders" in said.err
    msgfmt(out)


def test_the_texts_of_a_catalogue_are_printed_one_by_one(jumok, runs, tmp_path):  # noqa: F811
    (file := tmp_path / "a.po").write_text(PO, "utf-8")
    run = runs("translation")
    said = jumok("predict", run.folder, file, "--json")
    found = json.loads(said.out)["predictions"]
    assert [one["input"]["source"] for one in found] == [
        "the cat\n\n  a dog here\n",
        "%d cats today",
        "the dog",
    ]
    assert found[0]["text"] == "{}\n\n  {}\n".format(*run.predictor(["the cat", "a dog here"]))
    assert len(jumok("predict", run.folder, file).out.splitlines()) == 3


@pytest.mark.parametrize("name", ["a.html", "a.docx", "a.json", "a.xlf.gz"])
def test_files_whose_lines_are_no_texts_are_refused(jumok, runs, tmp_path, name):  # noqa: F811
    (file := tmp_path / name).write_bytes(gzip.compress(b"<p>the cat</p>") if name.endswith("gz") else b"<p>")
    for more in ((), ("--out", tmp_path / f"out.{name}")):
        said = jumok("predict", runs("translation").folder, file, *more)
        assert (said.code, said.error.code, said.error.where) == (2, "data.format", str(file))
        assert ".po" in said.error.hint


@pytest.mark.parametrize(("name", "out"), [("a.mo", "b.mo"), ("a.po", "b.txt"), ("a.tmx", "b.po")])
def test_documents_stay_of_their_kind(jumok, runs, tmp_path, name, out):  # noqa: F811
    (file := tmp_path / name).write_text(PO, "utf-8")
    said = jumok("predict", runs("translation").folder, file, "--out", tmp_path / out)
    assert (said.code, said.error.code) == (2, "data.format")
    assert not (tmp_path / out).exists()


def test_lines_become_lines(jumok, runs, tmp_path):  # noqa: F811
    (file := tmp_path / "a.en").write_bytes(b"the cat\r\n\na dog")
    assert jumok("predict", runs("translation").folder, file, "--out", tmp_path / "a.xx").code == 0
    first, second = runs("translation").predictor(["the cat", "a dog"])
    assert (tmp_path / "a.xx").read_bytes().decode() == f"{first}\r\n\n{second}"


def test_words_get_a_column_of_predicted_tags(jumok, runs, tmp_path):  # noqa: F811
    (file := tmp_path / "a.conll").write_text("-DOCSTART- O\n\nAbc B-NAME\nde O\n", "utf-8")
    assert jumok("predict", runs("tagging").folder, file, "--out", tmp_path / "b.conll").code == 0
    (found,) = runs("tagging").predictor.predict([{"words": ["Abc", "de"]}])
    expected = f"-DOCSTART- O\n\nAbc B-NAME {found.tags[0]}\nde O {found.tags[1]}\n"
    assert (tmp_path / "b.conll").read_text("utf-8") == expected


TMX = '<tmx version="1.4"><header/><body><tu><tuv xml:lang="en"><seg>{}</seg></tuv></tu></body></tmx>'


def test_inline_tags_of_a_segment_are_all_in_its_translation(jumok, runs, tmp_path):  # noqa: F811
    segment = 'the <bpt i="1">&lt;b></bpt>cat<ept i="1">&lt;/b></ept> <ph x="2"/>sits <hi>here</hi>'
    (file := tmp_path / "a.tmx").write_text(TMX.format(segment), "utf-8")
    assert jumok("predict", runs("translation").folder, file, "--out", tmp_path / "b.tmx").code == 0
    text = (tmp_path / "b.tmx").read_text("utf-8")
    said = text.partition('<tuv xml:lang="xx" creationtool="jumok"><seg>')[2].partition("</seg>")[0]
    for tag in ('<bpt i="1">&lt;b></bpt>', '<ept i="1">&lt;/b></ept>', '<ph x="2"/>', "<hi>", "</hi>"):
        assert said.count(tag) == 1
    assert said.index("<bpt") < said.index("<ept")
    assert runs("translation").predictor("the cat sits here")[0].split()[0] in said
    assert list(ParallelData(source="en", target="xx", test=[str(tmp_path / "b.tmx")]).read("test", seed=1))


def test_a_sentence_that_fails_fails_its_text(runs):
    translator = runs("translation").predictor
    texts = [Excerpt("the cat\na dog", None, "f:1"), Excerpt("---\n", None, "f:2"), "here"]
    longest = replace(texts[0], source="the cat\n" + "a" * 30_000)
    first, second, third = documents.predict(translator, texts)
    assert isinstance(documents.predict(translator, [longest])[0], Failure)
    assert first.text == "\n".join(translator(["the cat", "a dog"]))
    assert (second.text, second.score) == ("---\n", 0.0)
    assert isinstance(third, Translation)
    assert third.text == translator("here")[0]


def test_columns_are_those_that_a_predictor_fills(runs):
    for task, text in (("classification", "the sun"), ("labels", "the sun"), ("number", "the sun"), ("pair", "a\tb")):
        predictor = runs(task).predictor
        (output,) = predictor.predict(text)
        assert tuple(predictor.cells(predictor.parse(text), output)) == predictor.columns
