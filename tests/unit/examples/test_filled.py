"""Files out as they came in: what is filled, and that every other byte stays."""

import codecs
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from jumok.errors import DataError
from jumok.examples.filled import Answer
from jumok.examples.filled.plurals import plural_forms
from jumok.examples.filled.po import po_pieces
from jumok.examples.filled.rows import Objects, Plain, Table, Words, row_pieces
from jumok.examples.filled.tmx import tmx_pieces
from jumok.examples.gettext import read_po
from jumok.examples.labelled import LabelledData
from jumok.examples.pairs import ParallelData
from jumok.examples.spans import TaggedData
from msgfmt import msgfmt

HEADER = """\
# The translators.
msgid ""
msgstr ""
"Project-Id-Version: hairy 1\\n"
"Language: {language}\\n"
"Content-Type: text/plain; charset={charset}\\n"
"Plural-Forms: {plurals}\\n"
"X-Long: one two three "
"four\\n"
"""
KOREAN = HEADER.format(language="ko", charset="UTF-8", plurals="nplurals=1; plural=0;")
MESSAGES = """
# A translator's remark.
#. For translators
#: a.c:1 a.c:2
#, python-format
msgid "Hello %(name)s"
msgstr ""

#: b.c:7
msgctxt "menu"
msgid "Hello %(name)s"
msgstr "안녕 %(name)s"

#, fuzzy
#| msgid "Fil"
msgid "File"
msgstr "파일"

#| msgid "Before"
msgid ""
"\\n"
"  The first line.\\n"
"The second \\"line\\".\\n"
msgstr ""

msgid "one cat"
msgid_plural "%d cats"
msgstr[0] ""
msgstr[1] ""

msgid "done"
msgstr ""
"완"
"료"

#~ msgid "old"
#~ msgstr "낡은"

#, fuzzy
#~ msgid "older"
#~ msgstr "더 낡은"
"""


def shout(text):
    return text.upper()


def filled(pieces, say=shout, remark=""):
    return b"".join(
        piece.written([None if (said := say(asked.source)) is None else Answer(said, remark=remark)
                       for asked in piece.asked])
        for piece in pieces
    )  # fmt: skip


@pytest.fixture
def po(tmp_path):
    def fill(text, target="ko", **options):
        path = tmp_path / "a.po"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        keep = {key: options.pop(key) for key in ("say", "remark") if key in options}
        return filled(po_pieces(path, target=target, **options), **keep).decode()

    return fill


def checked(tmp_path, text):
    path = tmp_path / "checked.po"
    path.write_bytes(text.encode())
    msgfmt(path)
    msgfmt(path, "--use-fuzzy")
    return path


def test_only_the_empty_messages_of_a_catalogue_change(po, tmp_path):
    found = po(KOREAN + MESSAGES)
    expected = (KOREAN + MESSAGES).replace(
        '#, python-format\nmsgid "Hello %(name)s"\nmsgstr ""',
        '#, fuzzy, python-format\nmsgid "Hello %(name)s"\nmsgstr "HELLO %(NAME)S"',
    )
    expected = expected.replace('#| msgid "Before"', '#, fuzzy\n#| msgid "Before"')
    expected = expected.replace(
        '"The second \\"line\\".\\n"\nmsgstr ""\n',
        '"The second \\"line\\".\\n"\nmsgstr ""\n"\\n"\n"  THE FIRST LINE.\\n"\n"THE SECOND \\"LINE\\".\\n"\n',
    )
    expected = expected.replace('msgid "one cat"', '#, fuzzy\nmsgid "one cat"')
    expected = expected.replace('msgstr[0] ""\nmsgstr[1] ""', 'msgstr[0] "%D CATS"')
    head, tail = expected.split('"four\\n"\n')
    added = '"MIME-Version: 1.0\\n"\n"Content-Transfer-Encoding: 8bit\\n"\n'
    assert found == f'{head}"four\\n"\n{added}{tail}'


def test_what_is_filled_passes_msgfmt_even_where_it_counts_fuzzy_messages(po, tmp_path):
    # Placeholders are kept here, which msgfmt requires of messages that are in use.
    path = checked(tmp_path, po(KOREAN + MESSAGES, say=lambda text: text.replace("Hello", "안녕")))
    assert [(source, target) for source, target, _ in read_po(path)] == [
        ("Hello %(name)s", "안녕 %(name)s"),
        ("done", "완료"),
    ]


def test_nothing_is_changed_where_nothing_is_missing(po):
    complete = KOREAN + '"MIME-Version: 1.0\\n"\n"Content-Transfer-Encoding: 8bit\\n"\n\nmsgid "a"\nmsgstr "가"'
    assert po(complete) == complete
    windows = complete.replace("\n", "\r\n")
    assert po(windows) == windows


def test_line_ends_and_a_missing_last_one_stay(po):
    text = (KOREAN + '\nmsgid "a"\nmsgstr ""').replace("\n", "\r\n")
    found = po(text)
    assert found.endswith('\r\n\r\n#, fuzzy\r\nmsgid "a"\r\nmsgstr "A"')
    assert "\n" not in found.replace("\r\n", "")


def test_a_bom_is_dropped_because_gettext_refuses_it(po, tmp_path):
    checked(tmp_path, po(codecs.BOM_UTF8 + (KOREAN + MESSAGES).encode(), say=lambda text: text))


def test_a_template_becomes_a_catalogue_of_its_language(po, tmp_path):
    header = HEADER.format(language="", charset="CHARSET", plurals="nplurals=INTEGER; plural=EXPRESSION;")
    found = po(header.replace("msgid", "#, fuzzy\nmsgid", 1) + MESSAGES, "ru", say=lambda text: text)
    checked(tmp_path, found.replace("안녕", "a"))
    header = found.split("\n\n")[0]
    assert "fuzzy" not in header
    assert '"Language: ru\\n"' in header
    assert '"Content-Type: text/plain; charset=UTF-8\\n"' in header
    assert '"Plural-Forms: nplurals=3; plural=(n%10==1 &&' in header
    assert 'msgstr[0] "one cat"\nmsgstr[1] "%d cats"\nmsgstr[2] "%d cats"\n' in found


def test_a_catalogue_without_a_header_gets_one(po, tmp_path):
    found = po('# only\nmsgid "a"\nmsgstr ""\n')
    checked(tmp_path, found)
    assert found.startswith('msgid ""\nmsgstr ""\n"Language: ko\\n"\n')
    assert found.endswith('\n\n# only\n#, fuzzy\nmsgid "a"\nmsgstr "A"\n')


def test_another_charset_becomes_utf_8(po, tmp_path):
    old = HEADER.format(language="fr", charset="ISO-8859-1", plurals="nplurals=2; plural=(n > 1);")
    text = old + '\n# é\nmsgid "caf\\351"\nmsgstr "café \\\\351"\n\nmsgid "a"\nmsgstr ""\n'
    found = po(text.encode("latin-1"), "fr")
    checked(tmp_path, found)
    assert "charset=UTF-8" in found
    assert '# é\nmsgid "café"\nmsgstr "café \\\\351"' in found


def test_forms_that_a_translator_has_written_stay(po):
    header = HEADER.format(language="de", charset="UTF-8", plurals="nplurals=2; plural=(n != 1);")
    message = '\nmsgid "a cat"\nmsgid_plural "cats"\nmsgstr[0] "eine"\nmsgstr[1] ""\n'
    assert po(header + message, "de").endswith('\n#, fuzzy\nmsgid "a cat"\nmsgid_plural "cats"\n'
                                               'msgstr[0] "eine"\nmsgstr[1] "CATS"\n')  # fmt: skip
    assert po(header + message, "de", again=True).endswith('msgstr[0] "A CAT"\nmsgstr[1] "CATS"\n')


def test_all_asks_for_translated_messages_too(po):
    found = po(KOREAN + MESSAGES, again=True)
    assert 'msgctxt "menu"\nmsgid "Hello %(name)s"\nmsgstr "HELLO %(NAME)S"' in found
    assert '#, fuzzy\n#| msgid "Fil"\nmsgid "File"\nmsgstr "FILE"' in found
    assert found.endswith(MESSAGES[MESSAGES.index("#~") :])


def test_a_remark_is_a_translators_comment(po, tmp_path):
    found = po(KOREAN + MESSAGES, say=lambda text: text, remark="missing: %d")
    checked(tmp_path, found)
    assert "# A translator's remark.\n# jumok: missing: %d\n#. For translators\n" in found
    assert '\n\n# jumok: missing: %d\n#, fuzzy\nmsgid "one cat"' in found


def test_a_message_without_an_answer_stays_empty(po, tmp_path):
    found = po(KOREAN + MESSAGES, say=lambda text: None)
    checked(tmp_path, found)
    assert found.endswith(MESSAGES)


def test_plural_forms_are_those_of_the_language():
    assert plural_forms("ko") == "nplurals=1; plural=0;"
    assert plural_forms("pt_BR") != plural_forms("pt")
    assert plural_forms("de-AT") == plural_forms("de")
    assert plural_forms("xx") is None


TMX = """<?xml version="1.0"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"/>
  <body>
    <!-- <tu><tuv xml:lang="en"><seg>no unit</seg></tuv></tu> -->
    <tu tuid="1">
      <note>kept</note>
      <tuv xml:lang="en-US"><seg>Press <bpt i="1">&lt;b></bpt>OK<ept i="1">&lt;/b></ept> &amp; wait</seg></tuv>
    </tu>
    <tu><tuv xml:lang="EN"><seg>there</seg></tuv><tuv xml:lang="ko"><seg>있음</seg></tuv></tu>
    <tu><tuv lang="en"><seg>empty</seg></tuv>
        <tuv lang="ko" creationid="me"><seg/></tuv></tu>
    <tu><tuv xml:lang="de"><seg>nein</seg></tuv></tu>
  </body>
</tmx>
"""


def tmx(path, text, **options):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return b"".join(
        piece.written([Answer(f"<it>{asked.source}</it>") for asked in piece.asked])
        for piece in tmx_pieces(path, source="en", target="ko", **options)
    )


def test_units_without_the_language_get_it_and_nothing_else_changes(tmp_path):
    found = tmx(tmp_path / "a.tmx", TMX).decode()
    segment = 'Press <bpt i="1">&lt;b></bpt>OK<ept i="1">&lt;/b></ept> &amp; wait'
    tuv = f'\n      <tuv xml:lang="ko" creationtool="jumok"><seg><it>{segment}</it></seg></tuv>'
    expected = TMX.replace(f"{segment}</seg></tuv>", f"{segment}</seg></tuv>{tuv}")
    expected = expected.replace('"me"><seg/>', '"me"><seg><it>empty</it></seg>')
    assert found == expected
    assert len([*ElementTree.fromstring(found).iter("tu")]) == 4


def test_all_replaces_translations_of_units(tmp_path):
    found = tmx(tmp_path / "a.tmx", TMX, again=True).decode()
    assert '<tuv xml:lang="ko"><seg><it>there</it></seg></tuv></tu>' in found


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1", "utf-8-sig"])
def test_the_encoding_of_a_tmx_file_stays(tmp_path, encoding):
    text = TMX.replace('"1.0"', f'"1.0" encoding="{encoding.removesuffix("-sig")}"').replace("있음", "dort")
    found = tmx(tmp_path / "a.tmx", text.encode(encoding))
    assert found.decode(encoding).replace("<it>empty</it></seg>", "").count("<it>") == 1
    assert [*ElementTree.fromstring(found).iter("seg")][-2].find("it").text == "empty"


def test_units_may_lie_across_the_blocks_that_are_read(tmp_path):
    unit = '<tu><tuv xml:lang="en"><seg>w{}</seg></tuv></tu>'
    units = "".join(unit.format(i) for i in range(5000))
    found = tmx(tmp_path / "a.tmx", f'<tmx version="1.4"><header/><body>{units}</body></tmx>').decode()
    texts = [seg.findtext("it") for seg in ElementTree.fromstring(found).iter("seg") if len(seg)]
    assert texts == [f"w{i}" for i in range(5000)]


def test_a_dtd_of_its_own_is_refused(tmp_path):
    with pytest.raises(DataError) as caught:
        tmx(tmp_path / "a.tmx", '<!DOCTYPE tmx [<!ENTITY a "b">]><tmx/>')
    assert caught.value.code == "data.dtd"


def rows(path, examples, how, cells=("x", 0.5)):
    pieces = row_pieces(path, examples, how)
    return b"".join(
        piece.written([
            None if isinstance(asked, DataError) or "fail" in str(asked)
            else Answer(cells[0], {"label": cells[0], "probability": cells[1], "tags": ["O"] * 2})
            for asked in piece.asked
        ])
        for piece in pieces
    )  # fmt: skip


def examples(data, path):
    wrong = []
    for example in data.read_unlabelled(path, wrong=wrong.append):
        yield from wrong
        wrong.clear()
        yield example
    yield from wrong


LABEL = ("label", "probability")


def test_a_table_gets_columns_at_its_end(tmp_path):
    (path := tmp_path / "a.tsv").write_bytes("id\ttext\tlabel\r\n1\t가\tgood\r\n\r\nragged\r\n2\tfail\tbad".encode())
    found = rows(path, examples(LabelledData(), path), Table(LABEL, "\t", quoting=False))
    expected = "id\ttext\tlabel\tpredicted_label\tprobability\r\n1\t가\tgood\tx\t0.5\r\n\r\nragged\r\n2\tfail\tbad\t\t"
    assert found.decode() == expected


def test_a_csv_keeps_quotes_delimiter_bom_and_line_breaks(tmp_path):
    text = '\ufeff"id";text\r\n1;"a ""b""\nc; d"\r\n2;  5" \r\n3;f\r\n'
    (path := tmp_path / "a.csv").write_bytes(text.encode())
    found = rows(path, examples(LabelledData(), path), Table(LABEL, ";", quoting=True), ('y;"z"', 1))
    added = ';"y;""z""";1'
    expected = f'\ufeff"id";text;label;probability\r\n1;"a ""b""\nc; d"{added}\r\n2;  5" {added}\r\n3;f{added}\r\n'
    assert found.decode() == expected


def test_objects_get_keys_at_their_end(tmp_path):
    lines = ['{"id": 1.50, "text": "a\\u00e9", "label":"old" }  ', "", "{", '{"text":"fail"}', '{"text": "b"}']
    (path := tmp_path / "a.jsonl").write_bytes("\n".join(lines).encode())
    found = rows(path, examples(LabelledData(), path), Objects(LABEL)).decode().split("\n")
    added = ', "probability": 0.5, "tags": ["O", "O"]}'
    assert found[0] == lines[0].replace(" }", f' , "predicted_label": "x"{added}')
    assert found[1:4] == lines[1:4]
    assert json.loads(found[4])["label"] == "x"


def test_columns_of_words_get_one_more_for_the_tags(tmp_path):
    text = "-DOCSTART- O\n\n# comment\nA NN B-X\nb NN O\n\n\nc\tNN\nd\tNN"
    (path := tmp_path / "a.conll").write_text(text, "utf-8")
    found = rows(path, examples(TaggedData(), path), Words(("tags",))).decode()
    assert found == "-DOCSTART- O\n\n# comment\nA NN B-X O\nb NN O O\n\n\nc\tNN\tO\nd\tNN\tO"


def test_a_line_that_cannot_be_read_is_an_empty_one(tmp_path):
    from jumok.cli.inputs import lines_of

    (path := tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfa\r\n\xff\n\nfail\nb")
    assert rows(path, lines_of(path, ""), Plain(LABEL)) == b"\xef\xbb\xbfx\r\n\nx\n\nx"


@pytest.mark.parametrize(
    ("name", "text", "sources"),
    [
        ("a.tsv", "두 열\ttwo columns\n셋\tthree\n", ["두 열", "셋"]),
        ("a.tsv", "id\ten\tko\n1\thi\t안녕\n", ["hi"]),
        ("a.csv", 'id,Source\n1,"a\nb"\n', ["a\nb"]),
        ("a.jsonl", '{"source": "a"}\n{"text": "b"}\n', ["a", "b"]),
        ("a.pot", MESSAGES, ["Hello %(name)s", "Hello %(name)s", "File", "\n  The first line.\n", "%d cats", "done"]),
        ("a.tmx", TMX, ["Press", "there", "empty"]),
    ],
)
def test_texts_to_translate_are_taken_out(tmp_path, name, text, sources):
    (path := tmp_path / name).write_text(text, "utf-8")
    found = [*(ParallelData(source="en", target="ko").read_unlabelled(path) or ())]
    assert [text.source.startswith(source) for text, source in zip(found, sources, strict=True)] == [True] * len(found)
    assert all(Path(text.where.rpartition(":")[0]) == path for text in found)


def test_a_csv_without_a_column_of_texts_is_refused(tmp_path):
    (path := tmp_path / "a.csv").write_text("id,english\n1,hi\n", "utf-8")
    with pytest.raises(DataError) as caught:
        [*(ParallelData(source="en", target="ko").read_unlabelled(path) or ())]
    assert (caught.value.code, caught.value.where) == ("data.columns", f"{path}:1")
