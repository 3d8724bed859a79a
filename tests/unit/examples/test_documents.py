"""Documents: where they begin, what their sentences are, in whatever files, and that memory stays small."""

import gzip
import os
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from jumok.errors import DataError
from jumok.examples.documents import DocumentFormat, Sentence, read_documents
from jumok.text.lines import read_lines
from jumok.text.sentences import split_sentences

Write = Callable[..., Path]
FORMS: tuple[DocumentFormat, ...] = ("blank_line", "line", "file")


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(content: str | bytes, name: str = "file.txt") -> Path:
        data = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write_file


def documents(path: Path, form: DocumentFormat, *, split: bool = False) -> list[list[str]]:
    found: list[list[str]] = []
    for sentence in read_documents(path, form, split=split):
        if sentence.first:
            found.append([])
        found[-1].append(sentence.text)
    return found


def wrong(path: Path, form: DocumentFormat = "line") -> DataError:
    with pytest.raises(DataError) as caught:
        list(read_documents(path, form, split=True))
    assert caught.value.hint
    return caught.value


TEXT = "One. Two.\nThree.\n\n \t\n= Four =\nFive? Six!\n"


# the three forms


def test_blank_lines_between_documents(write: Write) -> None:
    path = write(TEXT)
    assert documents(path, "blank_line") == [["One. Two.", "Three."], ["= Four =", "Five? Six!"]]
    assert documents(path, "blank_line", split=True) == [["One.", "Two.", "Three."], ["= Four =", "Five?", "Six!"]]


def test_a_document_a_line(write: Write) -> None:
    path = write(TEXT)
    assert documents(path, "line") == [["One. Two."], ["Three."], ["= Four ="], ["Five? Six!"]]
    assert documents(path, "line", split=True) == [["One.", "Two."], ["Three."], ["= Four ="], ["Five?", "Six!"]]


def test_a_document_a_file(write: Write) -> None:
    path = write(TEXT)
    assert documents(path, "file") == [["One. Two.", "Three.", "= Four =", "Five? Six!"]]
    assert documents(path, "file", split=True) == [["One.", "Two.", "Three.", "= Four =", "Five?", "Six!"]]


def test_a_sentence_tells_its_line(write: Write) -> None:
    path = write(TEXT)
    assert list(read_documents(path, "blank_line", split=True)) == [
        Sentence("One.", True, f"{path}:1"),
        Sentence("Two.", False, f"{path}:1"),
        Sentence("Three.", False, f"{path}:2"),
        Sentence("= Four =", True, f"{path}:5"),
        Sentence("Five?", False, f"{path}:6"),
        Sentence("Six!", False, f"{path}:6"),
    ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("split", [False, True])
def test_without_a_sentence_there_is_no_document(write: Write, form: DocumentFormat, split: bool) -> None:
    for content in ("", "\n", "\n\n \n\t\r\n\u3000\n\x0c\n", "\ufeff", "\ufeff\n"):
        assert documents(write(content), form, split=split) == []
    (document,) = documents(write("\n\n  \nOne.\n\n\n"), form, split=split)
    assert document == ["One."]


# files


@pytest.mark.parametrize("form", FORMS)
def test_gzip_is_unpacked(write: Write, form: DocumentFormat) -> None:
    assert documents(write(TEXT, "a.txt.gz"), form) == documents(write(TEXT), form)


def test_a_file_may_have_any_name(write: Write) -> None:
    assert documents(write("One.", ".hidden"), "line") == documents(write("One.", "corpus"), "line") == [["One."]]


def test_line_ends_and_marks_are_those_of_the_other_readers(write: Write) -> None:
    path = write("\ufeffOne.\r\n\r\n\ufeffTwo\x0cand\x00\rmore\u2028.\r\nno end")
    texts = [text for document in documents(path, "line") for text in document]
    assert texts == [line.strip() for line in read_lines(path) if line.strip()]
    assert texts == ["One.", "\ufeffTwo\x0cand\x00\rmore\u2028.", "no end"]
    assert documents(path, "blank_line") == [["One."], ["\ufeffTwo\x0cand\x00\rmore\u2028.", "no end"]]


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
@pytest.mark.parametrize("bad", [b"\xff", b"\xed\xa0\x80", "다".encode()[:2]])
def test_invalid_utf8_is_named_as_the_other_readers_name_it(write: Write, name: str, bad: bytes) -> None:
    path = write("\ufeff좋다.\n\n가나".encode() + bad + b"\nmore\n", name)
    error = wrong(path)
    assert error.where == f"{path}:3, byte 7"
    with pytest.raises(DataError) as of_lines:
        list(read_lines(path))
    assert (str(error), error.code) == (str(of_lines.value), "data.encoding") == (str(error), of_lines.value.code)
    path = write("\ufeff가나".encode() + bad, name)
    assert wrong(path).where == f"{path}:1, byte 7"


def test_invalid_utf8_deep_in_a_long_line_is_named_to_the_byte(write: Write) -> None:
    good = "가나다 라마바. ".encode() * 200_000
    path = write(b"one\n" + good + b"\xff. more")
    assert wrong(path).where == f"{path}:2, byte {len(good) + 1}"


def test_files_that_cannot_be_read(write: Write, tmp_path: Path) -> None:
    assert "cannot be read" in wrong(tmp_path / "missing.txt").what
    assert "gzip" in wrong(write("no gzip", "a.txt").rename(tmp_path / "b.txt.gz")).what


# folders


def test_a_folder_is_read_in_the_order_of_its_paths(write: Write, tmp_path: Path) -> None:
    for name in ("b.txt", "B.TXT", "a/z.txt", "a/b/c.txt.gz", "a.txt.gz", "c/d.txt"):
        write(f"{name}\n\nend", f"texts/{name}")
    for name in (".hidden.txt", ".git/a.txt", "a/.b/c.txt", "notes.md", "a.gz", "txt", "d.txt.bak"):
        write("no", f"texts/{name}")
    sentences = list(read_documents(tmp_path / "texts", "file", split=True))
    names = ["B.TXT", "a/b/c.txt.gz", "a/z.txt", "a.txt.gz", "b.txt", "c/d.txt"]
    assert [sentence.text for sentence in sentences] == [text for name in names for text in (name, "end")]
    assert [sentence.first for sentence in sentences] == [True, False] * 6
    assert sentences[3].where == f"{tmp_path}/texts/a/b/c.txt.gz:3"
    assert all(sentence.first for sentence in read_documents(tmp_path / "texts", "blank_line", split=True))
    assert list(read_documents(tmp_path / "texts", "file", split=True)) == sentences


@pytest.mark.parametrize("form", FORMS)
def test_no_document_goes_beyond_its_file(write: Write, tmp_path: Path, form: DocumentFormat) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        write("" if name == "b.txt" else name, f"texts/{name}")
    assert documents(tmp_path / "texts", form) == [["a.txt"], ["c.txt"]]


def test_a_folder_without_text_says_what_would_be_text(write: Write, tmp_path: Path) -> None:
    write("no", "texts/notes.md")
    write("no", "texts/.hidden.txt")
    error = wrong(tmp_path / "texts")
    assert (error.code, error.where) == ("data.no_files", str(tmp_path / "texts"))
    assert ".txt.gz" in (error.hint or "")


def test_a_folder_that_cannot_be_listed_is_not_passed_over(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = write("One.", "texts/closed/a.txt").parent
    write("Two.", "texts/b.txt")
    scandir = os.scandir

    def scan(path: str) -> Iterator[os.DirEntry[str]]:
        if Path(path) == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", scan)
    error = wrong(tmp_path / "texts")
    assert (error.code, error.where) == ("data.unreadable", str(closed))


def test_a_broken_link_is_not_passed_over(write: Write, tmp_path: Path) -> None:
    write("One.", "texts/a.txt")
    (tmp_path / "texts/b.txt").symlink_to("nowhere.txt")
    assert wrong(tmp_path / "texts").where == str(tmp_path / "texts/b.txt")


def test_links_to_folders_do_not_go_in_circles(write: Write, tmp_path: Path) -> None:
    write("One.", "texts/a.txt")
    (tmp_path / "texts/again").symlink_to(tmp_path / "texts", target_is_directory=True)
    assert documents(tmp_path / "texts", "line") == [["One."]]


# any text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"))))
@example(["a", "", "b"])
def test_no_text_is_lost_and_every_document_has_a_beginning(write: Write, lines: list[str]) -> None:
    path = write("\n".join(lines))
    read = [line.strip() for line in read_lines(path) if line.strip()]
    for form in FORMS:
        whole, cut = (list(read_documents(path, form, split=split)) for split in (False, True))
        assert [sentence.text for sentence in whole] == read
        assert [sentence.text for sentence in cut] == [text for line in read for text in split_sentences(line)]
        starts = {sentence.where for sentence in whole if sentence.first}
        assert starts == {sentence.where for sentence in cut if sentence.first}
        assert bool(starts) == bool(read)


# lines that do not fit into memory


def sentence_of(number: int) -> str:
    return (
        f"Satz {number} sagt, z. B. über {number} Menschen (ca. 3.5 %), " + "비가 오면 " * (number % 300) + "so ist es."
    )


def test_a_long_line_gives_the_same_sentences_as_a_short_one(write: Write) -> None:
    sentences = [sentence_of(number) for number in range(3000)]
    line = " ".join(sentences)
    assert len(line) > 2.5 * 2**20
    path = write(f"\ufeff{line}\r\n\r\n{line}")
    found = list(read_documents(path, "blank_line", split=True))
    assert [sentence.text for sentence in found] == sentences * 2
    assert [sentence.first for sentence in found] == ([True] + [False] * 2999) * 2
    assert {sentence.where for sentence in found} == {f"{path}:1", f"{path}:3"}
    # Whole lines come in as few pieces as fit, cut between sentences.
    pieces = [sentence.text for sentence in read_documents(path, "line", split=False)]
    assert " ".join(pieces) == f"{line} {line}"
    assert all(piece.endswith("so ist es.") and len(piece) < 2**20 + 2**16 for piece in pieces)
    assert [sentence.first for sentence in read_documents(path, "line", split=False)].count(True) == 2


@pytest.mark.parametrize("split", [False, True])
def test_a_line_without_sentences_is_cut_at_white_space(write: Write, split: bool) -> None:
    words = ["단어" * (number % 7 + 1) for number in range(300_000)]
    (document,) = documents(write(" ".join(words)), "line", split=split)
    assert len(document) == 3
    assert " ".join(document).split() == words


@pytest.mark.parametrize("split", [False, True])
def test_a_line_without_white_space_is_cut_anywhere(write: Write, split: bool) -> None:
    line = "가x😀" * 1_000_000  # pieces of the file end within characters
    (document,) = documents(write(line), "line", split=split)
    assert len(document) == 3
    assert "".join(document) == line


def test_a_long_line_of_blanks_is_a_blank_line(write: Write) -> None:
    path = write(b"One.\n" + b" \t" * 2_000_000 + b"\nTwo.\n" + b" " * 2_000_000 + b"Three." + b" " * 2_000_000)
    assert documents(path, "blank_line", split=True) == [["One."], ["Two.", "Three."]]
    assert documents(path, "line", split=True) == [["One."], ["Two."], ["Three."]]


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
@pytest.mark.parametrize("split", [False, True])
def test_memory_does_not_grow_with_a_line(tmp_path: Path, name: str, split: bool) -> None:
    path = tmp_path / name
    sentence = b"This sentence is rather long, " + b"as long as " * 200 + b"it is. "
    with gzip.open(path, "wb", compresslevel=1) if name.endswith(".gz") else path.open("wb") as file:
        for _ in range(14_000):
            file.write(sentence)
    tracemalloc.start()
    try:
        length = sum(len(sentence.text) + 1 for sentence in read_documents(path, "line", split=split))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert length == 14_000 * len(sentence) > 30_000_000
    assert peak < 8_000_000
