"""What is written of examples is read back as it was, in every format; what a format cannot say is refused."""

import gzip
import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jumok.errors import DataError, RunError
from jumok.examples.choices import Choice, ChoiceData, read_choices, write_choices
from jumok.examples.documents import Sentence, read_documents, write_documents
from jumok.examples.labelled import Labelled, LabelledData, read_labelled, write_labelled
from jumok.examples.made.data import SyntheticData, ToyJosa
from jumok.examples.pairs import Pair, ParallelData, read_pairs, write_pairs
from jumok.examples.plain import DocumentData, Text, TextData, read_texts, write_plain
from jumok.examples.questions import Question, QuestionData, read_questions, write_questions
from jumok.examples.relations import Related, RelationData, read_related, write_relations
from jumok.examples.spans import Spans, TaggedData, read_marked, read_tagged, write_spans
from jumok.text.lines import read_lines
from jumok.text.normalise import clean_label
from jumok.text.span import Span

SAMPLES = [
    "",
    "한국어 문장",
    unicodedata.normalize("NFD", "가나 é"),
    "🙂👩‍👩‍👧 🇰🇷",
    "\"quoted, 'text'\"",
    "\\n \\",
    "\ufeffx",
    "# no comment",
]
SAMPLES += ["<b>&amp;", " x ", "\u2028", "a\rb", "{}", "text", "-DOCSTART-", "\x85\x1c"]
# Anything that UTF-8 can hold, and what tends to go wrong.
any_text = st.one_of(st.sampled_from(SAMPLES), st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
line = any_text.filter(lambda text: "\n" not in text and not text.endswith("\r"))
cell = line.filter(lambda text: "\t" not in text and not text.endswith("\r"))
label = cell.map(clean_label).filter(lambda text: text and text == clean_label(text) and "\r" not in text)
xml_text = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), min_size=1)
xml_text |= st.sampled_from([sample for sample in SAMPLES if sample and sample.isprintable()] + ["a\r\nb\tc"])
packed = st.sampled_from(["", ".gz"])


def placeless(examples: Iterable[Any]) -> list[Any]:
    return [replace(example, where="") for example in examples]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("written")


def assert_written_back(
    write: Callable[..., None], read: Callable[[Path], Iterable[Any]], examples: Sequence[Any], path: Path
) -> None:
    write(path, examples)
    assert path.read_bytes().startswith(b"\x1f\x8b") == path.name.endswith(".gz")
    assert placeless(read(path)) == list(examples)
    assert not list(path.parent.glob("*.tmp-*"))


@given(st.lists(st.tuples(line, line), max_size=4), packed)
def test_line_aligned_pairs(folder: Path, texts: list[tuple[str, str]], pack: str) -> None:
    paths = [folder / f"a.{side}{pack}" for side in ("en", "ko")]
    pairs = [Pair(*both) for both in texts]
    write_pairs(paths, pairs)
    assert placeless(read_pairs(paths, source="en", target="ko")) == pairs


@given(st.lists(st.tuples(cell, cell), max_size=4), packed, st.booleans())
def test_pairs_in_a_table(folder: Path, texts: list[tuple[str, str]], pack: str, header: bool) -> None:
    columns = ("source", "target") if header else None
    data = ParallelData(source="en", target="ko", columns=columns)
    names = {text.strip(' "').lower() for text in texts[0]} if texts and not header else set()
    assume(not names & {"text", "id", "source", "en", "ko"})
    assert_written_back(
        data.write,
        lambda path: data.for_files([str(path)]).read("test", seed=1),
        [Pair(*both) for both in texts],
        folder / f"a.tsv{pack}",
    )


@given(st.lists(st.tuples(any_text.filter(bool), any_text.filter(bool)), max_size=4), packed)
def test_pairs_in_a_po_file(folder: Path, texts: list[tuple[str, str]], pack: str) -> None:
    """The same source twice, too, which needs a context there."""
    pairs = [Pair(*both) for both in [*texts, *texts[:1]]]
    read = partial(read_pairs, source="en", target="ko")
    assert_written_back(
        lambda path, found: write_pairs([path], found), lambda p: read([p]), pairs, folder / f"a.po{pack}"
    )


@given(st.lists(st.tuples(xml_text, xml_text), max_size=4), packed)
def test_pairs_in_a_tmx_file(folder: Path, texts: list[tuple[str, str]], pack: str) -> None:
    data = ParallelData(source="en", target="ko")
    assert_written_back(
        data.write,
        lambda path: data.for_files([str(path)]).read("test", seed=1),
        [Pair(*both) for both in texts],
        folder / f"a.tmx{pack}",
    )


@given(st.lists(st.tuples(cell, cell, label), max_size=4), st.booleans(), st.booleans(), packed)
def test_labelled_texts(folder: Path, rows: list[tuple[str, str, str]], pairs: bool, labelled: bool, pack: str) -> None:
    examples = [Labelled(text, pair if pairs else None, mark if labelled else None) for text, pair, mark in rows]
    read = partial(read_labelled, text="text", pair="pair" if pairs and rows else None, label="label")
    path = folder / f"a.tsv{pack}"
    if labelled and rows:
        assert_written_back(write_labelled, read, examples, path)
    else:
        assert_written_back(write_labelled, partial(read, labelled=False), examples, path)
        assert "label" not in next(read_lines(path)).split("\t")


@given(st.lists(st.tuples(cell, label), min_size=1, max_size=4))
def test_labelled_texts_in_the_columns_of_a_recipe(folder: Path, rows: list[tuple[str, str]]) -> None:
    """CoLA's, which have no header and more columns than are read."""
    data = LabelledData(text="sentence", header=["source", "label", "mark", "sentence"], train=["x.tsv"])
    assert_written_back(
        data.write,
        lambda path: data.for_files([str(path)]).read("test", seed=1),
        [Labelled(text, None, mark) for text, mark in rows],
        folder / "cola.tsv",
    )


word = cell.filter(lambda text: bool(text.strip()) and text != "-DOCSTART-")
tag = st.sampled_from(["O", "B-PER", "I-PER", "S-날짜", "B-a b", "NN"])
sentence = st.lists(st.tuples(word, tag), min_size=1, max_size=4)


@given(st.lists(sentence, max_size=3), st.booleans(), packed)
def test_words_with_tags(folder: Path, sentences: list[list[tuple[str, str]]], tagged: bool, pack: str) -> None:
    examples = [Spans.of_words([w for w, _ in some], [t for _, t in some] if tagged else None) for some in sentences]
    assert_written_back(write_spans, partial(read_tagged, labelled=tagged), examples, folder / f"a.conll{pack}")
    assert_written_back(write_spans, partial(read_marked, labelled=False), examples, folder / f"a.jsonl{pack}")


@st.composite
def marked_texts(draw: st.DrawFn) -> Spans:
    """Entities that are words, with any text between them."""
    text, spans = "", []
    for kind in draw(st.lists(st.none() | label, max_size=4)):
        piece = draw(
            st.sampled_from(["한국어", "ab", unicodedata.normalize("NFD", "가나"), "🙂", '"x"', "a\nb"])
            if kind
            else any_text
        )
        if kind:
            spans.append(Span(len(text) + 1, len(text) + 1 + len(piece), kind))
            piece = f" {piece} "
        text += piece
    return Spans(text, spans)


@given(st.lists(marked_texts(), max_size=4), packed)
def test_texts_with_spans(folder: Path, examples: list[Spans], pack: str) -> None:
    path = folder / f"a.jsonl{pack}"
    assert_written_back(write_spans, read_marked, examples, path)
    assert_written_back(write_spans, partial(read_marked, labelled=False), examples, path)
    unknown = [Spans(example.text) for example in examples]
    assert_written_back(write_spans, partial(read_marked, labelled=False), unknown, path)


@given(st.lists(st.tuples(any_text, st.just("") | label, st.none() | label), max_size=4), packed)
def test_relations(folder: Path, found: list[tuple[str, str, str | None]], pack: str) -> None:
    examples = []
    for text, kind, mark in found:
        spans = Span(0, 2, kind), Span(5, 7, kind)
        examples.append(Related(f"한국 - 東京 {text}", *(spans if kind else spans[::-1]), mark))
    path = folder / f"a.jsonl{pack}"
    assert_written_back(write_relations, partial(read_related, labelled=False), examples, path)
    labelled = [replace(example, label=example.label or "none") for example in examples]
    assert_written_back(write_relations, read_related, labelled, path)


answers = st.none() | st.sampled_from([[], [("한국", 0)], [("서울 \n", 3), ("한국", 0)]])


@given(st.lists(st.tuples(any_text, any_text, answers), max_size=5), st.booleans(), packed)
def test_questions(folder: Path, asked: list[tuple[str, str, Any]], same: bool, pack: str) -> None:
    examples = [
        Question(f"{i}'\"가", question, f"한국 서울 \n{'' if same else context}", found)
        for i, (question, context, found) in enumerate(asked)
    ]
    path = folder / f"a.json{pack}"
    assert_written_back(write_questions, partial(read_questions, labelled=False), examples, path)
    assert_written_back(write_questions, read_questions, [q for q in examples if q.answers is not None], path)
    whole = json.loads("\n".join(read_lines(path)))
    none = any(found == [] for _, _, found in asked)
    assert whole["version"] == ("v2.0" if none else "1.1")
    if same:
        assert len(whole["data"][0]["paragraphs"]) == bool([found for *_, found in asked if found is not None])


no_crlf = any_text.filter(lambda text: "\r" not in text)


@given(st.lists(st.tuples(no_crlf, no_crlf, no_crlf, st.sampled_from([None, 0, 2])), max_size=4), packed)
def test_choices(folder: Path, found: list[tuple[str, str, str, int | None]], pack: str) -> None:
    examples = [Choice(context, [one, other, "x"], number) for context, one, other, number in found]
    for suffix in ("jsonl", "csv"):
        path = folder / f"a.{suffix}{pack}"
        assert_written_back(write_choices, partial(read_choices, labelled=False), examples, path)
        labelled = [replace(example, label=example.label or 0) for example in examples]
        assert_written_back(write_choices, read_choices, labelled, path)


@given(st.lists(line, max_size=5), packed)
def test_plain_texts(folder: Path, lines: list[str], pack: str) -> None:
    assert_written_back(write_plain, read_texts, [Text(text) for text in lines], folder / f"a.txt{pack}")


@given(st.lists(st.tuples(line.map(str.strip).filter(bool), st.booleans()), max_size=6), packed)
def test_documents(folder: Path, found: list[tuple[str, bool]], pack: str) -> None:
    sentences = [Sentence(text, first or i == 0) for i, (text, first) in enumerate(found)]
    read = partial(read_documents, form="blank_line", split=False)
    assert_written_back(write_documents, read, sentences, folder / f"a.txt{pack}")


REFUSED: list[tuple[Any, str, Any, str]] = [
    (LabelledData(), "a.tsv", Labelled("a\tb", None, "x", "f:3"), "data.tab"),
    (LabelledData(), "a.tsv", Labelled("a\nb", None, "x", "f:3"), "data.line_break"),
    (LabelledData(), "a.tsv", Labelled("a", "b\t", "x", "f:3"), "data.tab"),
    (LabelledData(), "a.tsv", Labelled("a", None, "\ud800", "f:3"), "data.encoding"),
    (LabelledData(header=["text", "label"]), "a.tsv", Labelled("text", None, "label", "f:3"), "data.columns"),
    (ParallelData(source="en", target="ko"), "a.tsv", Pair("a\tb", "c", "f:3"), "data.tab"),
    (ParallelData(source="en", target="ko"), "a.tsv", Pair("EN", "ko", "f:3"), "data.header"),
    (ParallelData(source="en", target="ko"), "a.tsv", Pair("a", None, "f:3"), "data.no_label"),
    (ParallelData(source="en", target="ko"), "a.en,a.ko", Pair("a", "b\n", "f:3"), "data.line_break"),
    (ParallelData(source="en", target="ko"), "a.po", Pair("a", "", "f:3"), "data.empty_text"),
    (ParallelData(source="en", target="ko"), "a.tmx", Pair("a\x01", "b", "f:3"), "data.encoding"),
    (TaggedData(), "a.conll", Spans("a b", [], where="f:3"), "data.words"),
    (TaggedData(), "a.conll", Spans.of_words([], [], "f:3"), "data.words"),
    (TaggedData(), "a.conll", Spans.of_words(["a", "-DOCSTART-"], ["O", "O"], "f:3"), "data.words"),
    (TaggedData(), "a.conll", Spans.of_words(["a\tb"], ["O"], "f:3"), "data.words"),
    (TaggedData(), "a.conll", Spans.of_words(["a"], ["\t"], "f:3"), "data.tag"),
    (TaggedData(), "a.jsonl", Spans("\udc00", where="f:3"), "data.encoding"),
    (RelationData(), "a.jsonl", Related("a \ud800", Span(0, 1), Span(2, 3), None, "f:3"), "data.encoding"),
    (QuestionData(), "a.json", Question("1", "\ud800", "b", None, "f:3"), "data.encoding"),
    (ChoiceData(), "a.csv", Choice("a", ["b", "c\r\nd"], 0, "f:3"), "data.line_break"),
    (ChoiceData(), "a.jsonl", Choice("a", ["b"], 0, "f:3"), "data.endings"),
    (TextData(), "a.txt", Text("a\nb", None, "f:3"), "data.line_break"),
    (TextData(), "a.txt", Text("a", "b", "f:3"), "data.pair"),
    (DocumentData(), "a.txt", Sentence(" a", True, "f:3"), "data.white_space"),
]


@pytest.mark.parametrize(("data", "name", "example", "code"), REFUSED, ids=[f"{n}-{c}" for _, n, _, c in REFUSED])
def test_what_a_format_cannot_say_is_refused_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: Any, name: str, example: Any, code: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as caught:
        data.write(Path(name), [example])
    assert (caught.value.code, caught.value.where) == (code, "f:3")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (LabelledData(train=["x.csv.gz"]), "a.json"),
        (ParallelData(source="en", target="ko"), "a.ko"),
        (ParallelData(source="en", target="ko"), "a.mo"),
        (ParallelData(source="en", target="ko"), "a.en,b.en,c.en"),
        (TaggedData(train=["x.ner"]), "a.tsv"),
        (RelationData(), "a.json"),
        (QuestionData(), "a.jsonl"),
        (ChoiceData(), "a.json"),
        (DocumentData(format="line"), "a.txt"),
    ],
)
def test_an_unknown_format_is_refused_before_an_example_is_asked_for(tmp_path: Path, data: Any, name: str) -> None:
    asked = []

    def examples() -> Iterator[Any]:
        asked.append(name)
        yield None

    with pytest.raises(DataError) as caught:
        data.write(tmp_path / name, examples())
    assert caught.value.code == "data.format"
    assert name.split(",")[0] in str(caught.value.where)
    assert not asked


def test_names_of_training_files_are_known_formats(tmp_path: Path) -> None:
    LabelledData(train=["x.table.gz"]).write(tmp_path / "a.table", [Labelled("a", None, "x")])
    TaggedData(train=["x.ner"]).write(tmp_path / "a.ner", [Spans.of_words(["a"], ["O"])])
    assert (tmp_path / "a.table").read_text("utf-8") == "text\tlabel\na\tx\n"
    assert (tmp_path / "a.ner").read_text("utf-8") == "a O\n\n"


def test_others_are_written_if_somebody_is_told_what_is_wrong(tmp_path: Path) -> None:
    wrong: list[DataError] = []
    path = tmp_path / "a.tsv"
    examples = [Labelled("a\t", where="f:1"), Labelled("b", where="f:2"), Labelled("c\n", where="f:3")]
    write_labelled(path, examples, wrong=wrong.append)
    assert [(error.code, error.where) for error in wrong] == [("data.tab", "f:1"), ("data.line_break", "f:3")]
    assert path.read_text("utf-8") == "text\nb\n"
    path.unlink()
    with pytest.raises(DataError) as caught:
        write_labelled(path, examples[::2], wrong=wrong.append)
    assert caught.value.code == "data.nothing_written"
    assert not path.exists()


def test_a_document_begins_where_its_first_sentence_is_left_out(tmp_path: Path) -> None:
    wrong: list[DataError] = []
    sentences = [Sentence("a", True), Sentence("b\nc", True), Sentence("d", False), Sentence("e", False)]
    write_documents(tmp_path / "a.txt", sentences, wrong=wrong.append)
    assert (tmp_path / "a.txt").read_text("utf-8") == "a\n\nd\ne\n"
    assert len(wrong) == 1


def test_questions_without_an_id_get_a_number_and_no_id_stands_twice(tmp_path: Path) -> None:
    wrong: list[DataError] = []
    asked = [Question("", "q", "c", []), Question("1", "q", "c", []), Question("", "r", "c", [])]
    write_questions(tmp_path / "a.json", [*asked, Question("1", "s", "c", [], "f:9")], wrong=wrong.append)
    assert [question.id for question in read_questions(tmp_path / "a.json")] == ["2", "1", "3"]
    assert [(error.code, error.where) for error in wrong] == [("data.same_id", "f:9")]


def test_choices_of_other_counts_do_not_fit_a_table(tmp_path: Path) -> None:
    wrong: list[DataError] = []
    choices = [Choice("a", ["b", "c"], 0), Choice("a", ["b", "c", "d"], 2, "f:2")]
    write_choices(tmp_path / "a.csv", choices, wrong=wrong.append)
    assert [(error.code, error.where) for error in wrong] == [("data.endings", "f:2")]
    write_choices(tmp_path / "a.jsonl", choices)
    assert len([*read_choices(tmp_path / "a.jsonl", labelled=False)]) == 2


def test_texts_for_a_run_of_documents_are_lines(tmp_path: Path) -> None:
    DocumentData().write(tmp_path / "a.txt", [Text("a"), Text("")])
    assert (tmp_path / "a.txt").read_text("utf-8") == "a\n\n"


def test_made_data_is_written_as_data_in_files_is(tmp_path: Path) -> None:
    ToyJosa().write(tmp_path / "a.jsonl", [Spans("a b", [Span(0, 1, "X")])])
    assert placeless(read_marked(tmp_path / "a.jsonl")) == [Spans("a b", [Span(0, 1, "X")])]
    SyntheticData(problem="copy", source="xx").write(tmp_path / "a.tmx", [Pair("a", "b")])
    assert placeless(read_pairs([tmp_path / "a.tmx"], source="xx", target="ko")) == [Pair("a", "b")]


def test_a_file_that_was_there_stays_if_the_writing_fails(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("old\n", "utf-8")
    with pytest.raises(RunError) as caught:
        write_pairs([tmp_path / "a.en", tmp_path / "nowhere" / "a.ko"], [Pair("a", "b")])
    assert caught.value.code == "run.cannot_write"
    assert (tmp_path / "a.en").read_text("utf-8") == "old\n"
    assert {path.name for path in tmp_path.iterdir()} == {"a.en"}


def test_packed_files_of_the_same_examples_are_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_plain(tmp_path / f"{name}.txt.gz", [Text("한국어")])
    assert (tmp_path / "a.txt.gz").read_bytes() == (tmp_path / "b.txt.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.txt.gz").read_bytes()).decode() == "한국어\n"
