"""Labelled tables and tagged columns: what is read, and the place of what cannot be."""

import gzip
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumok.errors import DataError
from jumok.examples.labelled import Labelled, LabelledData, read_labelled
from jumok.examples.plain import DocumentData
from jumok.examples.spans import Spans, read_tagged

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
    return [(sentence.words or [], sentence.gold_tags) for sentence in read_tagged(path)]


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
    ("content", "missing", "right"),
    [
        ("one\ta\ntwo\tb\n", "text, label", "one, a"),
        ("text\tLabel\none\ta\n", "label", "text, Label"),
        ("text label\none a\n", "text, label", "text label"),
        ("\ntext\tlabel\n", "text, label", "header"),
    ],
    ids=["none", "one is spelt otherwise", "no tabs", "an empty line first"],
)
def test_a_header_without_the_columns(write: Write, content: str, missing: str, right: str) -> None:
    path = write(content)
    error = wrong(labelled, path)
    assert (error.code, error.where) == ("data.columns", f"{path}:1")
    assert error.what.endswith(missing)
    assert right in (error.hint or "")


def test_the_column_of_the_second_text_is_missing(write: Write) -> None:
    path = write("text\tlabel\na\tb\n")
    with pytest.raises(DataError) as caught:
        labelled(path, pair="other")
    assert caught.value.code == "data.columns"
    assert caught.value.what.endswith("other")


@pytest.mark.parametrize(
    ("line", "columns"), [("two", 1), ("two\tb\tc", 3), (" ", 1)], ids=["too few", "too many", "a space"]
)
def test_a_line_with_another_number_of_columns(write: Write, line: str, columns: int) -> None:
    path = write(f"text\tlabel\none\ta\n{line}\nthree\tc\n")
    error = wrong(labelled, path)
    assert (error.code, error.where) == ("data.columns", f"{path}:3")
    assert str(columns) in error.what
    assert "2" in (error.hint or "")


def test_an_empty_line_is_no_row(write: Write) -> None:
    assert [e.where[-2:] for e in labelled(write("text\tlabel\none\ta\n\ntwo\tb\n\n"))] == [":2", ":4"]


def test_a_column_is_there_once(write: Write) -> None:
    path = write("text\tlabel\tlabel\none\ta\tb\n")
    error = wrong(labelled, path)
    assert (error.code, error.where) == ("data.columns", f"{path}:1")
    assert "label" in error.what


def test_a_label_is_what_is_seen_of_it(write: Write) -> None:
    path = write("text\tlabel\none\tcaf\u00e9\ntwo\tcafe\u0301\n")
    assert {e.label for e in labelled(path)} == {"caf\u00e9"}
    path = write("a B-caf\u00e9\nb I-cafe\u0301\n", "a.conll")
    assert sentences(path) == [(["a", "b"], ["B-caf\u00e9", "I-caf\u00e9"])]


@pytest.mark.parametrize("label", ["", "  "])
def test_an_empty_label(write: Write, label: str) -> None:
    path = write(f"text\tlabel\none\ta\ntwo\t{label}\n")
    error = wrong(labelled, path)
    assert (error.code, error.where) == ("data.no_label", f"{path}:3")


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


# one example


@pytest.mark.parametrize(
    ("line", "mapping"),
    [
        ("좋은 영화", {"text": "좋은 영화"}),
        ("a cat\tan animal", {"text": "a cat", "pair": "an animal"}),
        ("a\t", {"text": "a", "pair": ""}),
        ("a\tb\tc", {"text": "a", "pair": "b\tc"}),
        ("", {"text": "", "pair": None, "label": None, "id": 7}),
    ],
)
def test_a_line_and_a_mapping_are_the_same(line: str, mapping: dict[str, Any]) -> None:
    assert Labelled.parse(line, "line 3") == Labelled.parse(mapping, "line 3")
    found = Labelled.parse(line, "line 3")
    assert (found.text, found.pair, found.label, found.where) == (mapping["text"], mapping.get("pair"), None, "line 3")


@pytest.mark.parametrize(
    ("given", "label"), [(" good ", "good"), (3, "3"), (2.5, "2.5"), ("", None), (True, None), (["a"], None)]
)
def test_the_label_of_a_mapping(given: Any, label: str | None) -> None:
    assert Labelled.parse({"text": "a", "label": given}).label == label


@pytest.mark.parametrize("given", [{}, {"text": 5}, {"text": None}, {"text": "a", "pair": ["b"]}, {"text": "\ud800"}])
def test_a_mapping_without_texts(given: dict[str, Any]) -> None:
    with pytest.raises(DataError) as caught:
        Labelled.parse(given, "line 3")
    assert (caught.value.code, caught.value.where) == ("data.json", "line 3")


def test_a_label_that_is_needed_and_not_there() -> None:
    assert Labelled("a", label="x").gold == "x"
    with pytest.raises(DataError) as caught:
        _ = Labelled("a", where="file.tsv:3").gold
    assert (caught.value.code, caught.value.where) == ("data.no_label", "file.tsv:3")


# columns with a tag


def test_sentences_end_at_an_empty_line(write: Write) -> None:
    path = write("Anna B-PER\nslept O\n\n\n서울 B-LOC\n\n")
    assert list(read_tagged(path)) == [
        Spans.of_words(["Anna", "slept"], ["B-PER", "O"], f"{path}:1"),
        Spans.of_words(["서울"], ["B-LOC"], f"{path}:5"),
    ]


def test_the_first_column_is_the_word_and_the_last_the_tag(write: Write) -> None:
    assert sentences(write("EU NNP B-NP B-ORG\nrejects VBZ B-VP O\n")) == [(["EU", "rejects"], ["B-ORG", "O"])]


@pytest.mark.parametrize("between", [" ", "\t", "  ", "\t\t"])
def test_tabs_and_spaces(write: Write, between: str) -> None:
    assert sentences(write(f"a{between}O\nb{between}B-X\n")) == [(["a", "b"], ["O", "B-X"])]


def test_where_there_is_a_tab_a_word_may_have_a_space(write: Write) -> None:
    assert sentences(write("New York\tB-LOC\nsleeps O\n")) == [(["New York", "sleeps"], ["B-LOC", "O"])]


def test_comments_before_a_sentence_are_no_words(write: Write) -> None:
    path = write("# id = 5\n# text = a b\na O\nb B-X\n\n# O\nis O\n\na O\n# B-X\n# 3 O\n", "a.conll")
    assert sentences(path) == [
        (["a", "b"], ["O", "B-X"]),
        (["#", "is"], ["O", "O"]),  # as many columns as the others: a word
        (["a", "#", "#"], ["O", "B-X", "O"]),
    ]
    assert [sentence.where[-2:] for sentence in read_tagged(path)] == [":3", ":6", ":9"]


def test_documents_begin_outside_of_sentences(write: Write) -> None:
    path = write("-DOCSTART- -X- -X- O\n\nEU ORG B-ORG\n-DOCSTART-\tO\nBonn X B-LOC\n")
    assert list(read_tagged(path)) == [
        Spans.of_words(["EU"], ["B-ORG"], f"{path}:3"),
        Spans.of_words(["Bonn"], ["B-LOC"], f"{path}:5"),
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
    assert "a word" in (error.hint or "")


@pytest.mark.parametrize("content", ["", "\n\n", "-DOCSTART- O\n\n"])
def test_no_sentences(write: Write, content: str) -> None:
    assert sentences(write(content)) == []


# tables as GLUE has them

SNLI = "index\tcaptionID\tpairID\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse"
SNLI += "\tsentence1\tsentence2\tlabel1\tlabel2\tlabel3\tlabel4\tlabel5\tgold_label"
MNLI = "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse"
MNLI += "\tsentence2_parse\tsentence1\tsentence2\tlabel1\tlabel2\tlabel3\tlabel4\tlabel5\tgold_label"
COLA = ["source", "label", "mark", "sentence"]


@pytest.mark.parametrize(
    ("content", "columns", "found"),
    [
        (
            "gj04\t1\t\tThe pond froze solid.\ngj04\t0\t*\tThey drank the pub.\n",
            {"text": "sentence", "label": "label", "header": COLA},
            [("The pond froze solid.", None, "1"), ("They drank the pub.", None, "0")],
        ),
        (
            "sentence\tlabel\nhide new secretions \t0\n",
            {"text": "sentence", "label": "label"},
            [("hide new secretions ", None, "0")],
        ),
        (
            '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n1\t70\t71\tHe said "no.\t"No", he said.\r\n',
            {"text": "#1 String", "pair": "#2 String", "label": "Quality"},
            [('He said "no.', '"No", he said.', "1")],
        ),
        (
            "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
            "0\tmain\tMSR\t2012\t1\tnone\tnone\tA plane.\tA 'plane\".\t5.000\n",
            {"text": "sentence1", "pair": "sentence2", "label": "score"},
            [("A plane.", "A 'plane\".", "5.000")],
        ),
        (
            'id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\t"How?\tWhy?\t0\n',
            {"text": "question1", "pair": "question2", "label": "is_duplicate"},
            [('"How?', "Why?", "0")],
        ),
        (
            f"{MNLI}\n0\t1\t1e\tfiction\t( a )\t( b )\t(R a)\t(R b)\ta\tb\tx\tx\tx\tx\tx\tentailment\n",
            {"text": "sentence1", "pair": "sentence2", "label": "gold_label"},
            [("a", "b", "entailment")],
        ),
        (
            "index\tquestion\tsentence\tlabel\n0\tWhen?\tIn May.\tentailment\n",
            {"text": "question", "pair": "sentence", "label": "label"},
            [("When?", "In May.", "entailment")],
        ),
        (
            "index\tsentence1\tsentence2\tlabel\n0\tNo.\tYes.\tnot_entailment\n",
            {"text": "sentence1", "pair": "sentence2", "label": "label"},
            [("No.", "Yes.", "not_entailment")],
        ),
        (
            f"{SNLI}\n" + "".join(f"0\tc\tp\t()\t()\t()\t()\ta\tb\t\t\t\t\t\t{gold}\n" for gold in ("-", "neutral")),
            {"text": "sentence1", "pair": "sentence2", "label": "gold_label", "skip": ["-"]},
            [("a", "b", "neutral")],
        ),
    ],
    ids=["CoLA", "SST-2", "MRPC", "STS-B", "QQP", "MNLI", "QNLI", "RTE and WNLI", "SNLI"],
)
def test_the_tables_of_glue(write: Write, content: str, columns: dict[str, Any], found: list[object]) -> None:
    read = list(read_labelled(write(content), **columns))
    assert [(example.text, example.pair, example.label) for example in read] == found


def test_a_row_of_qqp_that_was_broken_in_two_is_named(write: Write) -> None:
    """Line 97931 of train.tsv is such a one."""
    header = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
    path = write(header + '1\t2\t3\tHow?\tWhy?\t0\n"\tWas he real?\t0\n')
    examples = read_labelled(path, text="question1", pair="question2", label="is_duplicate")
    assert next(examples).text == "How?"
    with pytest.raises(DataError) as caught:
        next(examples)
    assert (caught.value.code, caught.value.where) == ("data.columns", f"{path}:3")
    assert "3" in caught.value.what
    assert "6" in (caught.value.hint or "")


def test_names_for_columns_that_the_file_names_itself(write: Write) -> None:
    path = write("text\tlabel\none\ta\n")
    with pytest.raises(DataError) as caught:
        list(read_labelled(path, text="text", label="label", header=["text", "label"]))
    assert (caught.value.code, caught.value.where) == ("data.columns", f"{path}:1")


def test_names_without_the_columns_that_are_needed(write: Write) -> None:
    with pytest.raises(DataError) as caught:
        list(read_labelled(write("1\tone\n"), text="sentence", label="label", header=["label", "text"]))
    assert caught.value.code == "data.columns"
    assert "sentence" in caught.value.what


@pytest.mark.parametrize("row", ["1", "1\tone\tmore"])
def test_names_for_another_number_of_columns(write: Write, row: str) -> None:
    path = write(f"1\tone\n{row}\n")
    with pytest.raises(DataError) as caught:
        list(read_labelled(path, text="text", label="label", header=["label", "text"]))
    assert (caught.value.code, caught.value.where) == ("data.columns", f"{path}:2")


def test_rows_are_skipped_by_their_whole_label(write: Write) -> None:
    path = write("text\tlabel\na\t-\nb\t - \nc\t--\nd\t\n")
    with pytest.raises(DataError) as caught:
        list(read_labelled(path, text="text", label="label", skip=["-"]))
    assert (caught.value.code, caught.value.where) == ("data.no_label", f"{path}:5")
    kept = read_labelled(path, text="text", label="label", skip=["-", ""])
    assert [example.text for example in kept] == ["c"]


@given(st.binary(max_size=100))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_bytes_are_anything_but_read_or_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.tsv"
    for before in (b"", b"text\tlabel\n"):
        path.write_bytes(before + content)
        with suppress(DataError):
            assert all(example.label for example in labelled(path))
        with suppress(DataError):
            assert all(len(words) == len(tags) for words, tags in sentences(path))


# real sets


def data(name: str) -> Path:
    folder = os.environ.get("JUMOK_DATA")
    if not folder or not (path := Path(folder) / name).exists():
        pytest.skip(f"JUMOK_DATA names no folder with {name}")
    return path


PAIRS = {"text": "text_a", "pair": "text_b"}


@pytest.mark.parametrize(
    ("name", "columns", "rows", "labels"),
    [
        ("nsmc/test.tsv.gz", {"text": "text"}, 49997, 2),
        ("chatbot_ko/chatbot.tsv", {"text": "question", "pair": "answer"}, 11823, 3),
        ("sst2/train.tsv.gz", {"text": "text"}, 67349, 2),
        ("sst2/dev.tsv", {"text": "text"}, 872, 2),
        ("sst2/test.tsv", {"text": "text"}, 1821, 2),
        ("stsb_en/train.tsv", PAIRS, 5749, None),
        ("stsb_en/dev.tsv", PAIRS, 1500, None),
        ("stsb_en/test.tsv", PAIRS, 1379, None),
        ("korsts/train.tsv", PAIRS, 5749, None),
        ("korsts/dev.tsv", PAIRS, 1500, None),
        ("korsts/test.tsv", PAIRS, 1379, None),
        ("kornli_xnli/dev.tsv", PAIRS, 2490, 3),
        ("kornli_xnli/test.tsv.gz", PAIRS, 5010, 3),
        ("question_pair_ko/train.tsv", PAIRS, 6136, 2),
        ("question_pair_ko/dev.tsv", PAIRS, 682, 2),
        ("question_pair_ko/test.tsv", PAIRS, 758, 2),
        ("rte_en/train.tsv", PAIRS, 2490, 2),
        ("rte_en/dev.tsv", PAIRS, 277, 2),
    ],
)
def test_real_tables(name: str, columns: dict[str, str], rows: int, labels: int | None) -> None:
    found = list(read_labelled(data(name), label="label", **columns))
    assert len(found) == rows
    if labels is None:
        assert all(0 <= float(example.label) <= 5 for example in found)
    else:
        assert len({example.label for example in found}) == labels


@pytest.mark.parametrize(
    ("name", "count", "words"),
    [
        ("jnlpba/dev.conll", 1739, 47461),
        ("jnlpba/test.conll", 3856, 101039),
        ("ncbi_disease/train.conll.gz", 5424, 135701),
        ("ncbi_disease/dev.conll", 923, 23969),
        ("ncbi_disease/test.conll", 940, 24497),
        ("bc5cdr/train.conll.gz", 4560, 118170),
        ("bc5cdr/dev.conll.gz", 4581, 117453),
        ("bc5cdr/test.conll.gz", 4797, 124750),
        ("conll2003_en/dev.conll", 3250, 51362),
        ("conll2003_en/test.conll", 3453, 46435),
        ("naver_ner/train.conll.gz", 7000, 82890),
        ("naver_ner/dev.conll", 1000, 11663),
        ("naver_ner/test.conll", 1000, 12343),
    ],
)
def test_real_sentences(name: str, count: int, words: int) -> None:
    found = sentences(data(name))
    assert (len(found), sum(len(sentence) for sentence, _ in found)) == (count, words)


@pytest.mark.parametrize("tag", ["B-", "I-", "E-", "S-"])
def test_a_tag_without_a_type(write: Write, tag: str) -> None:
    path = write(f"a O\nb {tag}\n", "a.conll")
    with pytest.raises(DataError) as caught:
        list(read_tagged(path))
    assert (caught.value.code, caught.value.where) == ("data.tag", f"{path}:2")
    assert tag in caught.value.what


# the same in CSV and JSONL


@pytest.mark.parametrize("between", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_a_csv_with_quotes(write: Write, between: str, name: str) -> None:
    rows = [
        ["id", "text", "label"],
        ["1", f'"one{between} two"', "a"],
        ["2", '"say ""hi""\nthere"', "b"],
        ["3", "x", "a"],
    ]
    content = "\n".join(between.join(row) for row in rows).encode()
    path = write(gzip.compress(content) if name.endswith("gz") else content, name)
    found = [(e.text, e.label, e.where[len(str(path)) :]) for e in labelled(path)]
    assert found == [(f"one{between} two", "a", ":2"), ('say "hi"\nthere', "b", ":3"), ("x", "a", ":5")]


@pytest.mark.parametrize(
    ("content", "code", "line"),
    [
        ('text,label\none,a\n"never closed,b\nthree,c\n', "data.not_csv", 3),
        ('text,label\none,a\n"two" three,b\n', "data.not_csv", 3),
        ("text,label\none,a\ntwo,b,c\n", "data.columns", 3),
        ("text,label\none,a\n\ntwo, \n", "data.no_label", 4),
        ("texts,label\none,a\n", "data.columns", 1),
    ],
)
def test_where_a_csv_is_wrong(write: Write, content: str, code: str, line: int) -> None:
    path = write(content, "a.csv")
    error = wrong(labelled, path)
    assert (error.code, error.where) == (code, f"{path}:{line}")


def test_labels_of_objects(write: Write) -> None:
    lines = [
        '{"label": "a", "text": "one", "n": [1]}',
        "",
        '{"text": "둘\\n셋", "label": 2}',
        '{"text": "4", "label": true}',
    ]
    lines += ['{"text": "5", "label": ["x", "y"]}', '{"text": "6", "label": []}', '{"text": "7", "label": 0.5}']
    found = [(e.text, e.label) for e in labelled(write("\n".join(lines), "a.jsonl"))]
    assert found == [("one", "a"), ("둘\n셋", "2"), ("4", "true"), ("5", "x|y"), ("6", "|"), ("7", "0.5")]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('{"text": "one"}', "data.no_label"),
        ('{"text": "one", "label": null}', "data.no_label"),
        ('{"label": "a"}', "data.json"),
        ('{"text": {"a": 1}, "label": "a"}', "data.json"),
        ('{"text": "one", "label": ["a|b"]}', "data.json"),
        ('{"text": "one", "label": "a"', "data.not_json"),
        ('["one", "a"]', "data.json"),
    ],
)
def test_where_an_object_is_wrong(write: Write, line: str, code: str) -> None:
    path = write(f'{{"text": "a", "label": "b"}}\n{line}\n', "a.jsonl")
    error = wrong(labelled, path)
    assert (error.code, error.where) == (code, f"{path}:2")


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", '"one, or two",\n'), ("a.jsonl", '{"text": "one, or two"}\n')],
)
def test_tables_without_labels_to_predict_on(write: Write, name: str, content: str) -> None:
    header = "text,label\n" if name == "a.csv" else ""
    found = LabelledData(train=[]).read_unlabelled(write(header + content, name))
    assert [(e.text, e.label) for e in found or []] == [("one, or two", None)]


def test_the_texts_of_a_table_are_documents(write: Write) -> None:
    path = write('{"text": "One. Two.\\nThree."}\n{"text": "Four."}\n', "a.jsonl")
    data = DocumentData(train=[str(path)], column="text")
    assert [(s.text, s.first) for s in data.read("train", seed=1)] == [
        ("One.", True),
        ("Two.", False),
        ("Three.", False),
        ("Four.", True),
    ]
