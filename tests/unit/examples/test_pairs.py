"""Every rule of the text readers: what they give, and what they say of a file they cannot read."""

import gettext
import gzip
import io
import itertools
import os
import struct
import time
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumok.errors import DataError
from jumok.examples.gettext import read_mo, read_po
from jumok.examples.pairs import Pair, ParallelData, read_pairs, read_parallel, read_tsv
from jumok.examples.pairs import read_tmx as read_tmx_of
from jumok.examples.plain import DocumentData, Text, TextData
from jumok.text.lines import read_lines

Write = Callable[[str, str | bytes], Path]
Read = Callable[[Path], Iterable[object]]

# The examples of a property share one folder; each of them writes its file anew.
in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
cells = st.text(st.characters(exclude_characters="\t\n", exclude_categories=["Cs"])).filter(
    lambda text: not text.endswith("\r") and not text.startswith("\ufeff")
)
messages = st.text(st.characters(exclude_characters="\0\x04", exclude_categories=["Cs"]), min_size=1)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(name: str, content: str | bytes) -> Path:
        data = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.lower().endswith(".gz") else data)
        return path

    return write_file


def texts(pairs: Iterable[Pair]) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) if isinstance(pair, Pair) else pair[:2] for pair in pairs]


def refused(reader: Iterable[object], code: str, where: str | Path = "", fact: str = "") -> None:
    with pytest.raises(DataError) as caught:
        list(reader)
    assert (caught.value.code, caught.value.where) == (f"data.{code}", str(where or caught.value.where))
    assert fact in str(caught.value)
    assert caught.value.hint


def read_tmx(path: Path, source: str = "en", target: str = "ko") -> Iterable[Pair]:
    return read_tmx_of(path, source=source, target=target)


class TestLines:
    @pytest.mark.parametrize("name", ["a.txt", "a.gz", ".gz", "A.TXT.GZ"])
    def test_only_newlines_end_a_line(self, write: Write, name: str) -> None:
        path = write(name, "one\r\ntwo\x0b\x0c\x1c\x85\u2028still\rtwo\n\nr\r\r\nlast\r")
        assert list(read_lines(path)) == ["one", "two\x0b\x0c\x1c\x85\u2028still\rtwo", "", "r\r", "last\r"]

    def test_a_byte_order_mark_is_no_text(self, write: Write) -> None:
        assert list(read_lines(write("a.txt", "\ufeffa\n\ufeffb\n"))) == ["a", "\ufeffb"]
        assert list(read_lines(write("a.gz", "\ufeff"))) == []

    @pytest.mark.parametrize("name", ["a.txt", "a.gz"])
    @pytest.mark.parametrize(
        ("content", "code"),
        [
            (b"text\tlabel\rgood\t1\rbad\t0", "line_ends"),
            (b"one\rtwo\r", "line_ends"),
            ("\ufeff가\n나\n".encode("utf-16-le"), "encoding"),
            ("\ufeffa\n".encode("utf-16-be"), "encoding"),
        ],
    )
    def test_a_file_without_lines_to_begin_with(self, write: Write, name: str, content: bytes, code: str) -> None:
        path = write(name, content)
        refused(read_lines(path), code, path)

    def test_a_carriage_return_within_the_only_line_is_text(self, write: Write) -> None:
        assert list(read_lines(write("a.txt", "so\rit is"))) == ["so\rit is"]
        assert list(read_lines(write("b.txt", "so\rit\ris\nhere"))) == ["so\rit\ris", "here"]

    def test_korean_stays_decomposed(self, write: Write) -> None:
        decomposed = unicodedata.normalize("NFD", "한국어")
        assert list(read_lines(write("a.txt", decomposed))) == [decomposed] != ["한국어"]

    @pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
    def test_invalid_utf8_is_named_to_the_byte(self, write: Write, name: str) -> None:
        path = write(name, "좋다\n".encode() * 5000 + "가".encode() + b"\xffx\n" + b"good\n" * 5000)
        lines = read_lines(path)
        assert next(lines) == "좋다"
        refused(lines, "encoding", f"{path}:5001, byte 4", "0xff")

    @in_one_folder
    @given(st.lists(cells), st.sampled_from(["\n", "\r\n"]), st.sampled_from(["a.txt", "a.gz"]))
    def test_round_trip(self, write: Write, lines: list[str], end: str, name: str) -> None:
        assert list(read_lines(write(name, "".join(line + end for line in lines)))) == lines

    @pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files cannot be counted here")
    def test_a_reader_left_early_closes_its_file(self, write: Write) -> None:
        path, packed = write("a.txt", "a\nb\n"), write("a.gz", "a\nb\n")
        before = len(os.listdir("/proc/self/fd"))
        readers = [read_lines(packed), read_parallel(path, packed)]
        assert [next(reader) for reader in readers] == ["a", Pair("a", "a", f"{path}:1")]
        assert len(os.listdir("/proc/self/fd")) == before + 3
        readers.clear()
        assert len(os.listdir("/proc/self/fd")) == before

    def test_alien_and_torn_gzip(self, tmp_path: Path) -> None:
        path = tmp_path / "a.gz"
        whole = gzip.compress(os.urandom(4000).hex("\n").encode())
        wrong_checksum, scrambled = whole[:-8] + bytes(8), whole[:2000] + bytes(500) + whole[2500:]
        for torn in (b"plain text\n", whole[:-900], whole[:-4], whole[:5], wrong_checksum, scrambled):
            path.write_bytes(torn)
            refused(read_lines(path), "torn", path)


@pytest.mark.parametrize("read", [read_lines, read_tsv, read_po, read_mo, read_tmx])
class TestEveryReader:
    def test_an_empty_file_has_nothing(self, write: Write, tmp_path: Path, read: Read) -> None:
        (tmp_path / "bare.gz").touch()
        for path in (write("a", ""), write("a.gz", ""), tmp_path / "bare.gz"):
            assert list(read(path)) == []

    def test_closed_doors(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Read) -> None:
        absent = tmp_path / "absent"
        refused(read(absent), "unreadable", absent, "a file that exists")
        refused(read(tmp_path), "unreadable", tmp_path, "not of a folder")
        # Not by file modes, which do not bind the superuser.
        monkeypatch.setattr(Path, "open", Mock(side_effect=PermissionError(13, "Permission denied")))
        refused(read(absent), "unreadable", absent, "Permission denied")


class TestParallel:
    def test_lines_are_paired(self, write: Write) -> None:
        source, target = write("train.en", "a\n\n"), write("train.ko.gz", "가\r\n나\r\n")
        first, second = read_parallel(source, target)
        assert (first, second) == (Pair("a", "가", f"{source}:1"), Pair("", "나", f"{source}:2"))

    @pytest.mark.parametrize(("left", "right"), [(3, 7), (7, 3), (0, 2), (1, 0), (2, 3)])
    def test_different_counts_are_both_told(self, write: Write, left: int, right: int) -> None:
        source, target = write("train.en", "a\n" * left), write("train.ko", "b\n" * right)
        pairs = read_parallel(source, target)
        assert len(list(itertools.islice(pairs, min(left, right)))) == min(left, right)
        refused(pairs, "line_counts", f"{source} and {target}", f"{left} and {right}\n")


class TestTsv:
    def test_first_two_columns_and_no_quoting(self, write: Write) -> None:
        path = write("a.tsv", 'one "\t"하나\tnote\r\n\t둘\n')
        assert list(read_tsv(path)) == [Pair('one "', '"하나', f"{path}:1"), Pair("", "둘", f"{path}:2")]

    def test_named_columns(self, write: Write) -> None:
        path = write("a.tsv", "id\tko\ten\n7\t하나\tone\textra\n")
        assert list(read_tsv(path, columns=("en", "ko"))) == [Pair("one", "하나", f"{path}:2")]
        refused(read_tsv(path, columns=("en", "de")), "columns", f"{path}:1", "id, ko, en")

    def test_a_short_row_is_named(self, write: Write) -> None:
        for row in ("alone", ""):
            path = write("a.tsv", f"a\tb\n{row}\nc\td\n")
            refused(read_tsv(path), "columns", f"{path}:2", "columns: 1")
        path = write("a.tsv", "id\ten\tko\n1\tone\n")
        refused(read_tsv(path, columns=("en", "ko")), "columns", f"{path}:2", "at least 3")

    @pytest.mark.parametrize(
        "header", ["source\ttarget", "Question\tAnswer\tlabel", '"src"\t"tgt"', "id\tko\ten", "ko\ten", "text\tlabel"]
    )
    def test_a_header_is_not_taken_for_a_pair(self, write: Write, header: str) -> None:
        path = write("a.tsv", f"{header}\n하나\tone\t1\n")
        found = read_pairs([path], source="ko", target="en")
        refused(found, "header", f"{path}:1", header.replace("\t", ", "))
        refused(read_pairs([path], source="ko", target="en"), "header", f"{path}:1", "columns in [data]")

    @pytest.mark.parametrize(
        "pair",
        [
            ("question", "question"),
            ("source", "원천"),
            ("Where is the source?", "target"),
            ("de", "en"),  # no codes of this recipe
            ("ko", "Korean"),
            ("", "target"),
        ],
    )
    def test_a_pair_is_not_taken_for_a_header(self, write: Write, pair: tuple[str, str]) -> None:
        path = write("a.tsv", "\t".join(pair) + "\nsource\ttarget\n")
        assert texts(read_pairs([path], source="ko", target="en")) == [pair, ("source", "target")]

    @in_one_folder
    @given(st.lists(st.tuples(cells, cells)))
    def test_round_trip(self, write: Write, rows: list[tuple[str, str]]) -> None:
        path = write("a.tsv", "".join(f"{source}\t{target}\n" for source, target in rows))
        assert texts(read_tsv(path)) == rows


PO = r"""# A translator's remark with "quotes".
#, fuzzy
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
#: src/main.c:12
#, c-format
msgid "Open %s"
msgstr "%s 열기"
#, c-format, fuzzy
#| msgid "Closed"
msgid "Close"
msgstr "닫기?"
msgid "Not yet"
msgstr ""
msgctxt "month"
msgid "May"
msgstr "5월"
msgid ""
"two\n"
"lines\tand \"quotes\" \\n " "in one"
msgstr "두\n"
"줄\303\251\x41\101\a"
msgid "%d file"
msgid_plural "%d files"
msgstr[0] "파일 하나"
msgstr[1] "두 파일"
msgstr[2] "파일 %d개"
#, fuzzy
#~ msgid "gone"
#~ msgstr "사라짐"
msgid "after the obsolete"
msgstr "뒤"
"""


def po_header(charset: str, translator: str = "") -> str:
    return f'# {translator}\nmsgid ""\nmsgstr "By: {translator}\\n"\n"Content-Type: ; charset={charset}\\n"\n'


class TestPo:
    def test_what_a_localiser_expects(self, write: Write) -> None:
        path = write("ko.po", PO)
        assert list(read_po(path)) == [
            ("Open %s", "%s 열기", f"{path}:8"),
            ("May", "5월", f"{path}:17"),
            ('two\nlines\tand "quotes" \\n in one', "두\n줄éAA\a", f"{path}:19"),
            ("%d file", "파일 하나", f"{path}:24"),
            ("%d files", "파일 %d개", f"{path}:24"),
            ("after the obsolete", "뒤", f"{path}:32"),
        ]
        assert texts(read_po(write("b.po.gz", "\ufeff" + PO.replace("\n", "\r\n")))) == texts(read_po(path))

    def test_few_plural_forms(self, write: Write) -> None:
        day = 'msgid "day"\nmsgid_plural "days"\nmsgstr[0] "일"\n'
        assert texts(read_po(write("ko.po", day))) == [("day", "일"), ("days", "일")]
        assert texts(read_po(write("ko.po", day + 'msgstr[1] ""'))) == [("day", "일")]

    def test_the_declared_charset_is_honoured(self, write: Write) -> None:
        for charset, word in [("ISO-8859-1", "Größe"), ("EUC-KR", "크기"), ("CHARSET", "é")]:
            content = po_header(charset, word) + f'msgid "size"\nmsgstr "{word}"\n'
            path = write("a.po", content.encode("utf-8" if charset == "CHARSET" else charset))
            assert texts(read_po(path)) == [("size", word)]
        # The second byte of this word is a backslash to whoever does not know the charset.
        path = write("a.po", (po_header("Shift_JIS") + 'msgid "size"\nmsgstr "表"\n').encode("shift_jis"))
        assert texts(read_po(path)) == [("size", "表")]
        path = write("a.po", po_header("latin1") + 'msgid "size"\nmsgstr "Gr\\xf6\\337e"\n')
        assert texts(read_po(path)) == [("size", "Größe")]
        for charset in ("x-klingon", "UTF-16", "hex", "cp037"):
            refused(read_po(path := write("a.po", po_header(charset))), "encoding", path, f'"{charset}"')

    def test_utf8_is_meant_where_nothing_is_declared(self, write: Write) -> None:
        entry = 'msgid "a"\nmsgstr "é"\n'
        assert texts(read_po(write("a.po", entry))) == [("a", "é")]
        refused(read_po(path := write("a.po", entry.encode("latin-1"))), "encoding", f"{path}:2, byte 9", "0xe9")

    @pytest.mark.parametrize(
        ("content", "line", "code"),
        [
            ('msgid "a"\nmsgstr "b\n', 2, "not_po"),
            ('msgid "a"\n<<<<<<< HEAD\nmsgstr "b"\n', 2, "not_po"),
            ('msgid "a"\nmsgstr "b"\nmsgstr "c"\n', 3, "not_po"),
            ('msgctxt "a"\nmsgstr "b"\n', 2, "not_po"),
            ('"floating"\n', 1, "not_po"),
            ('msgid "a"\nmsgstr[0] "b"\n', 2, "not_po"),
            ('msgid "a"\nmsgid_plural "b"\nmsgstr "c"\n', 3, "not_po"),
            ('msgid "a"\nmsgid_plural "b"\nmsgstr[0] "c"\nmsgstr[2] "d"\n', 4, "not_po"),
            ('msgid "a"\n\n', 2, "torn"),
            ('msgid "a"\nmsgstr "\\q"\n', 2, "escape"),
            ('msgid "a"\nmsgstr "\\777"\n', 2, "escape"),
            ('msgid "x"\nmsgstr "y"\nmsgid "a"\nmsgstr "\\xff"\n', 4, "escape"),
        ],
    )
    def test_a_syntax_error_names_its_line(self, write: Write, content: str, line: int, code: str) -> None:
        path = write("a.po", content)
        refused(read_po(path), code, f"{path}:{line}")

    def test_entries_come_before_the_end_is_read(self, write: Write) -> None:
        pairs = read_po(write("a.po", 'msgid "a"\nmsgstr "b"\n' * 2 + "not PO\n"))
        assert next(pairs)[0] == "a"
        refused(pairs, "not_po")


def compiled(messages: dict[str, str], order: str = "<", charset: str = "UTF-8", declared: str = "") -> bytes:
    """An MO file: the header, a table of originals, a table of translations, then the strings."""
    messages = {"": f"Content-Type: text/plain; charset={declared or charset}\n", **messages}
    rows = sorted((source.encode(charset), target.encode(charset)) for source, target in messages.items())
    tables, strings = b"", b""
    for text in itertools.chain(*zip(*rows, strict=True)):
        tables += struct.pack(f"{order}2I", len(text), 28 + 16 * len(rows) + len(strings))
        strings += text + b"\0"
    header = struct.pack(f"{order}7I", 0x950412DE, 0, len(rows), 28, 28 + 8 * len(rows), 0, 0)
    return header + tables + strings


class TestMo:
    @pytest.mark.parametrize("order", ["<", ">"])
    def test_both_byte_orders(self, write: Write, order: str) -> None:
        messages = {"Open": "열기", "a file\0files": "하나\0둘\0파일들", "day\0days": "일", "none": ""}
        path = write("a.mo", compiled({**messages, "month\x04May": "5월"}, order))
        first, *rest = read_mo(path)
        assert first == ("Open", "열기", f"{path}, message 2")
        plurals = [("a file", "하나"), ("files", "파일들"), ("day", "일"), ("days", "일")]
        assert texts(rest) == [*plurals, ("May", "5월")]

    def test_the_declared_charset_is_honoured(self, write: Write) -> None:
        path = write("a.mo", compiled({"size": "한글"}, charset="EUC-KR"))
        assert texts(read_mo(path)) == [("size", "한글")]
        path = write("a.mo", compiled({"size": "한글"}, charset="EUC-KR", declared="UTF-8"))
        refused(read_mo(path), "encoding", f"{path}, message 2, byte 1", "0xc7")

    def test_torn_and_alien_files_are_refused(self, write: Write) -> None:
        # The last byte is only the end mark of the last string, which no length counts.
        whole = compiled({"a": "b"})
        for length in range(1, len(whole) - 1):
            refused(read_mo(write("a.mo", whole[:length])), "not_mo" if length < 4 else "torn")
        huge = struct.pack("<9I", 0x950412DE, 0, 0xFFFFFFFF, 28, 28, 0, 0, 0xFFFFFFF0, 28)
        later = struct.pack("<7I", 0x950412DE, 7 << 16, 0, 28, 28, 0, 0)
        refused(read_mo(write("a.mo", b"%PDF-1.7")), "not_mo")
        refused(read_mo(write("a.mo", huge)), "torn", fact="36 bytes")
        refused(read_mo(write("a.mo", later)), "mo_revision", fact="7")

    @in_one_folder
    @given(st.dictionaries(messages, messages))
    def test_agrees_with_the_standard_library(self, write: Write, catalogue: dict[str, str]) -> None:
        data = compiled(catalogue)
        oracle = gettext.GNUTranslations(io.BytesIO(data))
        pairs = dict(texts(read_mo(write("a.mo", data))))
        assert pairs == catalogue == {source: oracle.gettext(source) for source in catalogue}


def tmx(body: str, prolog: str = '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n') -> str:
    return f'{prolog}<tmx version="1.4"><header srclang="en"/><body>\n{body}\n</body></tmx>'


def unit(*variants: tuple[str, str]) -> str:
    texts = (f'<tuv xml:lang="{language}"><seg>{text}</seg></tuv>' for language, text in variants)
    return f"<tu>{''.join(texts)}</tu>"


class TestTmx:
    def test_the_languages_asked_for(self, write: Write) -> None:
        body = [unit(("EN-us", "one"), ("de", "eins"), ("ko_KR", "하나")), unit(("ko", "둘"), ("en", "two"))]
        path = write("a.tmx", tmx("\n".join(body)))
        assert list(read_tmx(path)) == [Pair("one", "하나", f"{path}:4"), Pair("two", "둘", f"{path}:5")]
        assert texts(read_tmx(path, "DE", "en-US")) == [("eins", "one")]
        old = write("a.tmx", tmx(unit(("en", "a"), ("ko", "가")).replace("xml:lang", "lang")))
        assert texts(read_tmx(old)) == [("a", "가")]

    def test_units_without_both_texts_are_skipped(self, write: Write) -> None:
        body = unit(("en", "a"), ("kok", "x")) + unit(("ko", "가")) + unit(("en", "b"), ("ko", "")) + "<tu/>"
        assert list(read_tmx(write("a.tmx", tmx(body)))) == []

    def test_the_first_of_each_language_counts(self, write: Write) -> None:
        body = unit(("en-GB", "lift"), ("en-US", "elevator"), ("ko", "승강기"), ("ko", "엘리베이터"))
        assert texts(read_tmx(write("a.tmx", tmx(body)))) == [("lift", "승강기")]
        path = write("a.tmx", tmx(unit(("pt-BR", "ônibus"), ("pt-PT", "autocarro"))))
        assert texts(read_tmx(path, "pt", "pt-BR")) == [("autocarro", "ônibus")]

    def test_inline_markup_leaves_only_what_is_read(self, write: Write) -> None:
        marked = (
            'A <bpt i="1">&lt;b&gt;</bpt>bold<ept i="1">&lt;/b&gt;</ept>, <ph>{0}<sub>note</sub>{1}</ph>'
            "<it>x</it><ut>y</ut> &amp; <hi>high <ph>z</ph>light</hi> end"
        )
        body = unit(("en", marked), ("ko", "가")).replace("<tu>", "<tu><note>n</note><prop>p</prop>")
        assert texts(read_tmx(write("a.tmx", tmx(body)))) == [("A bold, note & high light end", "가")]

    def test_the_declared_encoding_is_honoured(self, write: Write) -> None:
        for encoding in ("UTF-16", "ISO-8859-1", "windows-1252", "UTF-8"):
            text = tmx(unit(("en", "size"), ("ko", "Größe")), f'<?xml version="1.0" encoding="{encoding}"?>')
            assert texts(read_tmx(write("a.tmx", text.encode(encoding)))) == [("size", "Größe")]
        for encoding in ("x-klingon", "shift_jis"):
            path = write("a.tmx", tmx("", f'<?xml version="1.0" encoding="{encoding}"?>'))
            refused(read_tmx(path), "encoding")

    def test_an_entity_bomb_is_refused_before_it_grows(self, write: Write) -> None:
        levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 30))
        for declarations in (f'<!ENTITY e0 "boom">{levels}', '<!ENTITY e29 SYSTEM "/etc/hostname">'):
            prolog = f"<!DOCTYPE tmx [{declarations}]>\n"
            path = write("a.tmx", tmx(unit(("en", "&e29;"), ("ko", "가")), prolog))
            began = time.perf_counter()
            refused(read_tmx(path), "dtd", f"{path}:1")
            assert time.perf_counter() - began < 1

    def test_an_unknown_entity_is_not_dropped_silently(self, write: Write) -> None:
        for prolog, line in (("", 2), ('<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n', 3)):
            path = write("a.tmx", tmx(unit(("en", "a&nbsp;b"), ("ko", "가")), prolog))
            refused(read_tmx(path), "entity", f"{path}:{line}")

    def test_malformed_xml_names_its_line(self, write: Write) -> None:
        for content, line in [("<tmx>\n<body>\n</tmx>", 3), ("<tmx>\n", 2), ("text", 1), ("<a/>\n<a/>", 2)]:
            path = write("a.tmx", content)
            refused(read_tmx(path), "not_xml", f"{path}:{line}")

    def test_a_large_packed_file_comes_in_pieces(self, write: Write) -> None:
        numbers = [(f"n {n}", f"수 {n}") for n in range(5000)]
        path = write("a.tmx.gz", tmx("\n".join(unit(("en", a), ("ko", b)) for a, b in numbers)) + "<torn>")
        pairs = iter(read_tmx(path))
        assert texts(itertools.islice(pairs, 3000)) == numbers[:3000]
        refused(pairs, "not_xml")


class TestPairs:
    def test_two_files_or_one_by_its_ending(self, write: Write) -> None:
        po, memory = 'msgid "a"\nmsgstr "가"\n', tmx(unit(("en", "a"), ("ko", "가")))
        contents = {"tsv": "a\t가\n", "po": po, "tmx": memory}
        files = [write("a.mo", compiled({"a": "가"})), write("A.TSV", contents["tsv"])]
        for ending in ("", ".gz", ".GZ"):
            files += [write(f"a.{name}{ending}", content) for name, content in contents.items()]
        for path in files:
            assert texts(read_pairs([path], source="en", target="ko")) == [("a", "가")]
        named = write("a.tsv", "x\tko\ten\n1\t가\ta\n")
        assert texts(read_pairs([named], source="en", target="ko", columns=("en", "ko"))) == [("a", "가")]
        two = [write("a.po", "a\n"), write("b.tsv.gz", "가\n")]
        assert texts(read_pairs(two, source="en", target="ko")) == [("a", "가")]

    @pytest.mark.parametrize("names", [[], ["a.txt"], ["a.mo.gz"], ["a.gz"], ["a.en", "a.ko", "a.de"]])
    def test_anything_else_names_what_is_supported(self, names: list[str]) -> None:
        with pytest.raises(DataError) as caught:
            read_pairs([Path(name) for name in names], source="en", target="ko")
        assert caught.value.code == "data.format"
        assert [known for known in (".tsv", ".po", ".tmx", ".mo") if known not in str(caught.value.hint)] == []


class TestParse:
    """A line, a mapping of a request, and a file give the same example."""

    @pytest.mark.parametrize("line", ["a text", "with\ttabs\t", '{"source": "no JSON here"}', ""])
    def test_a_line_is_the_source_as_it_is(self, line: str) -> None:
        assert Pair.parse(line, "f:1") == Pair(line, None, "f:1")
        assert Text.parse(line, "f:1") == Text(line, None, "f:1")

    def test_a_mapping(self) -> None:
        assert Pair.parse({"source": "a", "target": "b"}, "f:1") == Pair("a", "b", "f:1")
        assert Pair.parse({"text": "a"}) == Pair.parse({"source": "a", "target": None}) == Pair("a")
        assert Text.parse({"text": "a", "pair": "b"}, "f:1") == Text("a", "b", "f:1")
        assert Text.parse({"text": "a", "pair": None}) == Text("a")

    @pytest.mark.parametrize(
        ("kind", "given", "key"),
        [
            (Pair, {"target": "b"}, '"source"'),
            (Pair, {"source": 3}, '"source"'),
            (Pair, {"text": None}, '"source"'),
            (Pair, {"source": "a", "target": ["b"]}, '"target"'),
            (Text, {"pair": "b"}, '"text"'),
            (Text, {"text": "a", "pair": 1.5}, '"pair"'),
            (Text, {"text": "\ud800"}, '"text"'),
        ],
    )
    def test_what_is_wrong_with_a_mapping_is_named(
        self, kind: type[Pair] | type[Text], given: dict[str, object], key: str
    ) -> None:
        with pytest.raises(DataError) as caught:
            kind.parse(given, "request 7")
        assert (caught.value.code, caught.value.where) == ("data.json", "request 7")
        assert key in caught.value.what

    def test_a_translation_is_there_or_missed(self) -> None:
        assert Pair("a", "").gold == ""
        with pytest.raises(DataError) as caught:
            assert Pair("a", None, "f:3").gold
        assert (caught.value.code, caught.value.where) == ("data.no_label", "f:3")


def test_files_to_predict_on_are_plain_lines(write: Write) -> None:
    assert ParallelData(source="en", target="ko").read_unlabelled(write("a.en", "a\tb\n")) is None
    for name in ("a.tsv", "a.txt", "a.po"):
        path = write(name, "a\tb\n")
        assert TextData().read_unlabelled(path) is None
        assert DocumentData().read_unlabelled(path) is None
    objects = write("a.jsonl", '{"text": "a"}\n{"text": "b", "pair": "c"}\n')
    for data in (TextData(), DocumentData()):
        found = [*(data.read_unlabelled(objects) or ())]
        assert [(text.text, text.pair) for text in found] == [("a", None), ("b", "c")]


def test_lines_know_where_they_stand(write: Write) -> None:
    path = write("a.txt.gz", "one\n\nthree\n")
    assert list(TextData(train=[str(path)]).read("train", seed=1)) == [
        Text("one", None, f"{path}:1"),
        Text("", None, f"{path}:2"),
        Text("three", None, f"{path}:3"),
    ]
