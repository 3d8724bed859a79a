"""Labelled tables and tagged columns: what is read, and the place of what cannot be."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from jumok.errors import DataError
from jumok.text.labelled import Labelled, Tagged, read_labelled, read_tagged

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(content: str | bytes, name: str = "file.tsv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


def labelled(path: Path, pair: str | None = None) -> list[Labelled]:
    return list(read_labelled(path, text="text", label="label", pair=pair))


def sentences(path: Path) -> list[tuple[list[str], list[str]]]:
    return [(sentence.words, sentence.tags) for sentence in read_tagged(path)]


def wrong(read: Callable[[Path], object], path: Path) -> DataError:
    with pytest.raises(DataError) as caught:
        read(path)
    return caught.value


# tables with a label


def test_columns_are_found_by_their_names(write: Write) -> None:
    path = write("id\tlabel\ttext\n1\tgood\t좋은 영화\n2\tbad\tboring\n")
    assert labelled(path) == [
        Labelled("좋은 영화", None, "good", f"{path}:2"),
        Labelled("boring", None, "bad", f"{path}:3"),
    ]


def test_other_names_and_a_pair_of_texts(write: Write) -> None:
    path = write("sentence1\tgold\tsentence2\na cat\tyes\tan animal\n")
    (found,) = read_labelled(path, text="sentence1", label="gold", pair="sentence2")
    assert (found.text, found.pair, found.label) == ("a cat", "an animal", "yes")
    (found,) = read_labelled(path, text="sentence2", label="gold")
    assert (found.text, found.pair) == ("an animal", None)


def test_text_stays_as_it_was_written_and_labels_lose_their_spaces(write: Write) -> None:
    path = write('text\tlabel\n  "a ""quote" , \t good \n\tbad\n')
    assert [(e.text, e.label) for e in labelled(path)] == [('  "a ""quote" , ', "good"), ("", "bad")]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False], ids=["ends", "does not end"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["no mark", "byte order mark"])
@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
def test_labelled_files_of_every_make(write: Write, end: str, last: bool, mark: str, name: str) -> None:
    content = (mark + end.join(["text\tlabel", "one\ta", "둘\tb"]) + (end if last else "")).encode()
    path = write(gzip.compress(content) if name.endswith("gz") else content, name)
    assert [(e.text, e.label) for e in labelled(path)] == [("one", "a"), ("둘", "b")]


@pytest.mark.parametrize(
    ("content", "what", "right"),
    [
        ("one\ta\ntwo\tb\n", "no column text, label", "one, a"),
        ("text\tLabel\none\ta\n", "no column label", "text, Label"),
        ("text label\none a\n", "no column text, label", "text label"),
        ("\ntext\tlabel\n", "no column text, label", "header"),
    ],
    ids=["none", "one is spelt otherwise", "no tabs", "an empty line first"],
)
def test_a_header_without_the_columns(write: Write, content: str, what: str, right: str) -> None:
    path = write(content)
    error = wrong(labelled, path)
    assert (error.what, error.where) == (what, f"{path}:1")
    assert right in (error.right or "")


def test_the_column_of_the_second_text_is_missing(write: Write) -> None:
    path = write("text\tlabel\na\tb\n")
    with pytest.raises(DataError, match="no column other"):
        labelled(path, pair="other")


@pytest.mark.parametrize(
    ("line", "columns"), [("two", 1), ("two\tb\tc", 3), ("", 1)], ids=["too few", "too many", "empty"]
)
def test_a_line_with_another_number_of_columns(write: Write, line: str, columns: int) -> None:
    path = write(f"text\tlabel\none\ta\n{line}\nthree\tc\n")
    error = wrong(labelled, path)
    assert (error.what, error.where) == (f"{columns} columns", f"{path}:3")
    assert "2 as in the header" in (error.right or "")


@pytest.mark.parametrize("label", ["", "  "])
def test_an_empty_label(write: Write, label: str) -> None:
    path = write(f"text\tlabel\none\ta\ntwo\t{label}\n")
    error = wrong(labelled, path)
    assert (error.what, error.where) == ("an empty label", f"{path}:3")


def test_reading_is_lazy(write: Write) -> None:
    """What stands before a mistake is read before it is found."""
    examples = read_labelled(write("text\tlabel\none\ta\ntwo\n"), text="text", label="label")
    assert next(examples).text == "one"
    with pytest.raises(DataError):
        next(examples)


def test_a_file_of_a_header_alone_or_of_nothing(write: Write) -> None:
    assert labelled(write("text\tlabel\n")) == []
    assert labelled(write("")) == []


@pytest.mark.parametrize("read", [labelled, sentences], ids=["labelled", "tagged"])
def test_bytes_that_are_no_utf8_are_named(write: Write, read: Callable[[Path], object]) -> None:
    path = write(b"text\tlabel\none\ta\n\xffwo\tb\n")
    assert wrong(read, path).where == f"{path}:3, byte 1"


@pytest.mark.parametrize("read", [labelled, sentences], ids=["labelled", "tagged"])
def test_a_file_that_is_not_there_is_named(tmp_path: Path, read: Callable[[Path], object]) -> None:
    assert wrong(read, tmp_path / "nowhere").where == str(tmp_path / "nowhere")


# columns with a tag


def test_sentences_end_at_an_empty_line(write: Write) -> None:
    path = write("Anna B-PER\nslept O\n\n\n서울 B-LOC\n\n")
    assert list(read_tagged(path)) == [
        Tagged(["Anna", "slept"], ["B-PER", "O"], f"{path}:1"),
        Tagged(["서울"], ["B-LOC"], f"{path}:5"),
    ]


def test_the_first_column_is_the_word_and_the_last_the_tag(write: Write) -> None:
    assert sentences(write("EU NNP B-NP B-ORG\nrejects VBZ B-VP O\n")) == [(["EU", "rejects"], ["B-ORG", "O"])]


@pytest.mark.parametrize("between", [" ", "\t", "  ", "\t\t"])
def test_tabs_and_spaces(write: Write, between: str) -> None:
    assert sentences(write(f"a{between}O\nb{between}B-X\n")) == [(["a", "b"], ["O", "B-X"])]


def test_where_there_is_a_tab_a_word_may_have_a_space(write: Write) -> None:
    assert sentences(write("New York\tB-LOC\nsleeps O\n")) == [(["New York", "sleeps"], ["B-LOC", "O"])]


def test_documents_begin_outside_of_sentences(write: Write) -> None:
    path = write("-DOCSTART- -X- -X- O\n\nEU ORG B-ORG\n-DOCSTART-\tO\nBonn X B-LOC\n")
    assert list(read_tagged(path)) == [
        Tagged(["EU"], ["B-ORG"], f"{path}:3"),
        Tagged(["Bonn"], ["B-LOC"], f"{path}:5"),
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "{end}", "{end}{end}", "{end}  {end}"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["no mark", "byte order mark"])
@pytest.mark.parametrize("name", ["a.conll", "a.conll.gz"])
def test_tagged_files_of_every_make(write: Write, end: str, last: str, mark: str, name: str) -> None:
    content = (mark + end.join(["a O", "", "나 B-X", "b I-X"]) + last.format(end=end)).encode()
    path = write(gzip.compress(content) if name.endswith("gz") else content, name)
    assert sentences(path) == [(["a"], ["O"]), (["나", "b"], ["B-X", "I-X"])]


@pytest.mark.parametrize("line", ["word", " O", "\tO", "word\t", "word\t \t"])
def test_a_line_without_a_word_and_a_tag(write: Write, line: str) -> None:
    path = write(f"a O\n{line}\nb O\n")
    error = wrong(sentences, path)
    assert error.where == f"{path}:2"
    assert repr(line) in error.what
    assert "a word" in (error.right or "")


@pytest.mark.parametrize("content", ["", "\n\n", "-DOCSTART- O\n\n"])
def test_no_sentences(write: Write, content: str) -> None:
    assert sentences(write(content)) == []
