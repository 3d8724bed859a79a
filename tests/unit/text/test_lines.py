"""Lines of files: how long they may be, and one that cannot be read among others."""

import gzip
import io
import tracemalloc
from pathlib import Path

import pytest

from jumok.errors import DataError, InputError
from jumok.examples.choices import read_choices
from jumok.examples.gettext import read_po
from jumok.examples.labelled import LabelledData, read_labelled
from jumok.examples.pairs import read_tmx
from jumok.examples.questions import read_questions
from jumok.examples.spans import read_tagged
from jumok.text.lines import MAX_LINE, MAX_LINES, max_line, numbered_lines, read_lines, read_text, split_lines

LIMIT = 10


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMOK_MAX_LINE", str(LIMIT))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.txt"


def code_and_where(error: DataError) -> tuple[str, str | None]:
    return error.code, error.where


def test_the_limit_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert max_line() == LIMIT
    monkeypatch.delenv("JUMOK_MAX_LINE")
    assert max_line() == MAX_LINE
    for wrong in ("0", "many", "-1", "1e6"):
        monkeypatch.setenv("JUMOK_MAX_LINE", wrong)
        with pytest.raises(InputError) as caught:
            max_line()
        assert (caught.value.code, caught.value.where) == ("input.limit", "JUMOK_MAX_LINE")


@pytest.mark.parametrize("letter", ["a", "é", "가", "😀"])
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_line_may_have_as_many_characters_as_the_limit(path: Path, letter: str, end: str) -> None:
    path.write_bytes(f"\ufeff{letter * LIMIT}{end}".encode())
    assert list(read_lines(path)) == [letter * LIMIT]
    path.write_bytes(f"{letter * (LIMIT + 1)}{end}".encode())
    with pytest.raises(DataError) as caught:
        list(read_lines(path))
    assert code_and_where(caught.value) == ("data.line_too_long", f"{path}:1")
    assert str(LIMIT) in caught.value.what
    assert "JUMOK_MAX_LINE" in str(caught.value.hint)


@pytest.mark.parametrize("length", [LIMIT + 1, 4 * LIMIT + 6, 300_000])
def test_lines_after_one_that_cannot_be_read_keep_their_numbers(path: Path, length: int) -> None:
    path.write_bytes(b"one\n" + b"x" * length + b"\nthree\nf\xffur\nfive")
    wrong: list[DataError] = []
    assert list(numbered_lines(path, wrong=wrong.append)) == [(1, "one"), (3, "three"), (5, "five")]
    assert [code_and_where(error) for error in wrong] == [
        ("data.line_too_long", f"{path}:2"),
        ("data.encoding", f"{path}:4, byte 2"),
    ]


def test_lines_are_the_same_however_they_arrive() -> None:
    content = b"one\r\n\ntwo\n" + b"x" * 99 + b"\nlast"
    whole = [line for lines in split_lines([content]) for line in lines]
    assert [line[:4] for line in whole] == [b"one\r", b"\n", b"two\n", b"xxxx", b"last"]
    for size in (1, 2, 3, 7):
        stream = io.BytesIO(content)
        parts = [line for lines in split_lines(iter(lambda: stream.read(size), b"")) for line in lines]  # noqa: B023
        assert [line[: 4 * LIMIT] for line in parts] == [line[: 4 * LIMIT] for line in whole]
    assert list(split_lines([b"one\ntw", b"o\n"])) == [[b"one\n"], [b"two\n"]]


def test_a_long_line_is_never_held_whole(path: Path, tmp_path: Path) -> None:
    packed = tmp_path / "b.txt.gz"
    with gzip.open(packed, "wb", compresslevel=1) as file:
        for _ in range(16):
            file.write(bytes(1 << 20))
        file.write(b"\nlast\n")
    wrong: list[DataError] = []
    tracemalloc.start()
    try:
        assert list(numbered_lines(packed, wrong=wrong.append)) == [(2, "last")]
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    assert [error.code for error in wrong] == ["data.line_too_long"]


def test_a_file_that_is_read_as_a_whole_has_a_limit(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbf" + b"x" * (MAX_LINES * LIMIT - 3))
    assert read_text(path) == "x" * (MAX_LINES * LIMIT - 3)
    path.write_bytes(b"x" * (MAX_LINES * LIMIT + 1))
    for read in (read_text, lambda path: list(read_questions(path))):
        with pytest.raises(DataError) as caught:
            read(path)
        assert code_and_where(caught.value) == ("data.file_too_large", str(path))


def test_a_wrong_byte_of_a_whole_file_is_at_its_line(path: Path) -> None:
    path.write_bytes(b'{"a":\n"b\xff"}')
    with pytest.raises(DataError) as caught:
        read_text(path)
    assert code_and_where(caught.value) == ("data.encoding", f"{path}:2, byte 3")


# rows and sentences of several lines


def test_a_sentence_with_a_line_that_cannot_be_read_is_skipped_whole(path: Path) -> None:
    path.write_bytes(b"a O\nb O\n\nc O\n\xff O\nd O\n\ne O\n\n\xff O\n\nf O\n")
    wrong: list[DataError] = []
    assert [example.words for example in read_tagged(path, wrong=wrong.append)] == [["a", "b"], ["e"], ["f"]]
    assert [error.where for error in wrong] == [f"{path}:5, byte 1", f"{path}:10, byte 1"]


def test_a_sentence_that_never_ends_is_refused(path: Path) -> None:
    path.write_text("a O\n" * 9 + "\nb O\n", "utf-8")
    wrong: list[DataError] = []
    assert [example.words for example in read_tagged(path, wrong=wrong.append)] == [["b"]]
    assert [code_and_where(error) for error in wrong] == [("data.sentence_too_long", f"{path}:1")]


def test_rows_around_one_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMOK_MAX_LINE", "60")
    tsv, csv = tmp_path / "a.tsv", tmp_path / "a.csv"
    tsv.write_bytes(b"text\tlabel\na\tx\n\xff\tx\n" + b"b" * 70 + b"\tx\nc\tx\n")
    csv.write_bytes(b"sent1,sent2,ending0,ending1,label\na,b,c,d,0\n\xff,b,c,d,0\n" + b"x" * 70 + b"\ne,f,g,h,1\n")
    wrong: list[DataError] = []
    labelled = read_labelled(tsv, text="text", label="label", wrong=wrong.append)
    assert [(example.text, example.where) for example in labelled] == [("a", f"{tsv}:2"), ("c", f"{tsv}:5")]
    found = read_choices(csv, wrong=wrong.append)
    assert [(example.context, example.where) for example in found] == [("a", f"{csv}:2"), ("e", f"{csv}:5")]
    assert [error.code for error in wrong] == ["data.encoding", "data.line_too_long"] * 2
    with pytest.warns(UserWarning, match="2 skipped"):
        assert len(list(LabelledData(train=[str(tsv)], when_wrong="skip").read("train", seed=1))) == 2
    with pytest.raises(DataError) as caught:
        list(LabelledData(train=[str(tsv)]).read("train", seed=1))
    assert code_and_where(caught.value) == ("data.encoding", f"{tsv}:3, byte 1")


def test_without_its_header_a_table_has_no_rows(tmp_path: Path) -> None:
    for name, content in (("a.tsv", b"text\tlabel\xff\na\tb\n"), ("a.csv", b"\xff\na,b,c,d,0\n")):
        (tmp_path / name).write_bytes(content)
        wrong: list[DataError] = []
        if name == "a.tsv":
            assert list(read_labelled(tmp_path / name, text="text", label="label", wrong=wrong.append)) == []
        else:
            assert list(read_choices(tmp_path / name, wrong=wrong.append)) == []
        assert [error.code for error in wrong] == ["data.encoding"]


def test_texts_over_several_lines_have_the_same_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMOK_MAX_LINE", "40")
    po, tmx = tmp_path / "a.po", tmp_path / "a.tmx"
    po.write_text('msgid "a"\n' + '"aaaaaaaa"\n' * 9 + 'msgstr "b"\n', "utf-8")
    tmx.write_text(f"<tmx><body><tu><tuv xml:lang='en'><seg>{'a' * 41}</seg></tuv></tu></body></tmx>", "utf-8")
    for read in (lambda: list(read_po(po)), lambda: list(read_tmx(tmx, source="en", target="ko"))):
        with pytest.raises(DataError) as caught:
            read()
        assert caught.value.code == "data.line_too_long"
