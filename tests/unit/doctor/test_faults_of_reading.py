"""Examples that cannot be read: all are counted, each with its place, and the others are examined all the same."""

import csv
import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from jumok.doctor import examine_data
from jumok.errors import DataError, InputError, OffsetError
from jumok.examples.relations import read_related
from jumok.examples.spans import read_marked
from jumok.findings import Finding

Write = Callable[..., Path]
CONTEXT = "Mina lives in Oslo, and Omar in Bergen."


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(name: str, content: Any) -> Path:
        if isinstance(content, list):
            content = "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in content)
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def only(findings: Iterable[Finding], code: str) -> Finding:
    (found,) = (finding for finding in findings if finding.code == code)
    return found


def places(finding: Finding) -> list[str]:
    return [example.split("  ")[0] for example in finding.examples]


def span(start: int, end: int, text: str | None = None, label: str = "PER") -> dict[str, Any]:
    return {"start": start, "end": end, "label": label, **({} if text is None else {"text": text})}


def squad(*asked: dict[str, Any], context: str = CONTEXT) -> str:
    return json.dumps({"data": [{"paragraphs": [{"context": context, "qas": list(asked)}]}]})


def asked(identity: str, *answers: tuple[str, int], **more: Any) -> dict[str, Any]:
    written = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": identity, "question": f"Who or where is {identity}?", "answers": written, **more}


class TestOffsets:
    def test_every_wrong_span_is_counted_and_the_good_ones_are_examined(self, write: Write) -> None:
        good = [{"text": f"{CONTEXT} {i}", "spans": [span(0, 4), span(14, 18, label="LOC")]} for i in range(4)]
        wrong = [{"text": CONTEXT, "spans": [span(0, start)]} for start in (99, 0)]
        wrong += [{"text": CONTEXT, "spans": [span(0, 8), span(5, 10)]}]
        path = write("a.jsonl", [good[0], *wrong[:2], *good[1:], *wrong[2:]])
        findings = examine_data([path])
        found = only(findings, "data.offsets")
        assert (found.severity, found.count, found.share) == ("error", 3, 3 / 7)
        assert places(found) == [f"{path}:{line}" for line in (2, 3, 7)]
        assert "from 0 to 99, but the text has 39 characters" in found.examples[0]
        assert "3 of 7 (42.9 %)" in found.message
        assert only(findings, "data.counts").count == 4

    def test_only_five_are_shown_of_many(self, write: Write) -> None:
        path = write("a.jsonl", [{"text": "ab", "spans": [span(0, 9)]}] * 12)
        findings = examine_data([path])
        assert (only(findings, "data.offsets").count, len(only(findings, "data.offsets").examples)) == (12, 5)
        assert only(findings, "data.empty").message.startswith("train: no examples")

    def test_what_a_span_says_of_its_text_has_to_stand_there(self, write: Write) -> None:
        rows = [
            {"text": CONTEXT, "spans": [span(1, 5, "Mina")]},
            {"text": CONTEXT, "spans": [span(13, 17, "Oslo")]},
            {"text": CONTEXT, "spans": [span(13, 17, "Paris")]},
            {"text": CONTEXT, "spans": [span(0, 4, "Mina")]},
        ]
        path = write("a.jsonl", rows)
        absent, shifted = sorted((f for f in examine_data([path]) if f.code == "data.offsets"), key=lambda f: f.count)
        assert "(off by -1: 1, off by +1: 1): 2 of 4" in shifted.message
        assert shifted.examples[0] == f"{path}:1  span 1: 'Mina' is not at 1 of the text, but at 0: off by -1"
        assert "'Paris' is not at 13 of the text, but nowhere" in absent.examples[0]
        with pytest.raises(OffsetError) as caught:
            list(read_marked(path))
        assert (caught.value.code, caught.value.where, caught.value.shift) == ("data.offsets", f"{path}:1", -1)
        assert "'Mina'" in caught.value.what

    def test_a_span_that_ends_elsewhere_is_not_shifted(self, write: Write) -> None:
        """A particle that was taken for a part of the name."""
        path = write("a.jsonl", [{"text": "민아는 서울에", "spans": [span(0, 3, "민아")]}])
        found = only(examine_data([path]), "data.offsets")
        assert found.examples == [f"{path}:1  span 1: '민아' ends at 2 of the text, but the span ends at 3"]
        assert "off by" not in found.message

    def test_how_the_text_of_a_span_is_composed_does_not_matter(self, write: Write) -> None:
        path = write("a.jsonl", [{"text": "Jose\u0301  Kim sings", "spans": [span(0, 10, "José Kim")]}])
        assert [mark.end for found in read_marked(path) for mark in found.marked] == [10]

    def test_entities_of_relations(self, write: Write) -> None:
        def row(head: dict[str, Any]) -> dict[str, Any]:
            return {"text": CONTEXT, "head": head, "tail": span(14, 18), "label": "lives_in"}

        path = write("a.jsonl", [row(span(0, 4)), row(span(14, 18)), row(span(10, 16)), row(span(2, 6, "Mina"))])
        found = [finding for finding in examine_data([path]) if finding.code == "data.offsets"]
        assert sorted(line for finding in found for line in places(finding)) == [f"{path}:{i}" for i in (2, 3, 4)]
        assert all("pairs of entities" in finding.message for finding in found)
        with pytest.raises(OffsetError) as caught:
            list(read_related(path))
        assert (caught.value.code, caught.value.where, caught.value.shift) == ("data.offsets", f"{path}:2", None)
        assert "'Oslo' (14 to 18)" in caught.value.what


class TestAnswers:
    def test_answers_elsewhere_and_answers_nowhere(self, write: Write) -> None:
        path = write(
            "a.json",
            squad(
                asked("good", ("Oslo", 14)),
                asked("late", ("Oslo", 15)),
                asked("later", ("Omar", 23)),
                asked("gone", ("Paris", 14)),
            ),
        )
        findings = examine_data([path])
        shifted, absent = (f for f in findings if (f.code, f.severity) == ("data.answer_offsets", "error"))
        assert (shifted.count, shifted.share, absent.count) == (2, 0.5, 1)
        assert "(off by -1: 1, off by +1: 1): 2 of 4" in shifted.message
        assert shifted.examples[0].startswith(f"{path}, question late  answer 1: 'Oslo' is not at 15")
        assert shifted.examples[0].endswith("but at 14: off by -1")
        assert absent.examples[0].endswith("but nowhere in the context")
        assert '"is_impossible": true' in absent.message

    def test_an_answer_that_parts_a_character(self, write: Write) -> None:
        context = "cafe\u0301 x"
        path = write("a.json", squad(asked("whole", ("cafe\u0301", 0)), asked("part", ("cafe", 0)), context=context))
        (found,) = (f for f in examine_data([path]) if (f.code, f.severity) == ("data.answer_offsets", "error"))
        assert (found.count, found.share) == (1, 0.5)
        assert found.examples[0].startswith(f"{path}, question part  answer 1: offset 4 is inside a character")
        assert ": 1 of 2 (50.0 %)" in found.message

    def test_a_paragraph_without_a_context_does_not_hide_the_next(self, write: Write) -> None:
        paragraphs = [{"qas": []}, {"context": CONTEXT, "qas": [asked("a", ("Oslo", 14)), 3]}]
        paragraphs.append({"context": CONTEXT, "qas": [asked("b", ("Omar", 24)), asked("b", ("Omar", 24))]})
        findings = examine_data([write("a.json", json.dumps({"data": [{"paragraphs": paragraphs}, {}]}))])
        wrong = only(findings, "data.unreadable")
        assert (wrong.count, only(findings, "data.counts").count) == (4, 1)
        assert [text for text in ('no "context"', "question 2 is a whole", 'no "paragraphs"', "duplicate id b")
                if text not in " ".join(wrong.examples)] == []  # fmt: skip


class TestTables:
    def test_rows_with_lost_cells_and_rows_without_a_label(self, write: Write) -> None:
        path = write("a.tsv", "text\tlabel\ngood film\t1\nlost\nbad film\t0\nno label\t \nmore\tcells\t1\n")
        findings = [finding for finding in examine_data([path]) if finding.code == "data.unreadable"]
        assert sorted(places(finding) for finding in findings) == [[f"{path}:3", f"{path}:6"], [f"{path}:5"]]
        assert {finding.share for finding in findings} == {2 / 5, 1 / 5}

    def test_sentences_with_a_word_that_has_no_tag(self, write: Write) -> None:
        path = write("a.conll", "Ada B-PER\nsings\n\nin O\nOslo B-LOC\n\n O\nsings O\n")
        found = only(examine_data([path]), "data.unreadable")
        assert (found.count, found.share, places(found)) == (2, 2 / 3, [f"{path}:2", f"{path}:7"])
        assert "sentences that cannot be read" in found.message

    def test_a_word_with_a_space_in_it_is_another_number_of_columns(self, write: Write) -> None:
        rows = ["Ada B-PER", "sings O", "", "in O", "New York B-LOC", "now O"]
        path = write("a.conll", "\n".join(rows))
        found = only(examine_data([path]), "data.columns")
        assert (found.severity, found.count, found.examples) == ("warning", 1, [f"{path}:5  New York B-LOC"])
        assert "2 columns" in found.message
        assert "data.columns" not in {f.code for f in examine_data([write("b.conll", "Ada  NN B-PER\nsings VB  O\n")])}

    def test_choices_of_swag_and_of_jsonl(self, write: Write) -> None:
        header = ["sent1", "sent2", "ending0", "ending1", "label"]
        rows = [
            header,
            ["It rains.", "She", "runs.", "flies.", "0"],
            ["It rains.", "He", "runs.", "flies.", "7"],
            ["a"],
        ]
        file = io.StringIO()
        csv.writer(file, lineterminator="\n").writerows(rows)
        found = [f for f in examine_data([write("a.csv", file.getvalue())]) if f.code == "data.unreadable"]
        assert sum(finding.count for finding in found) == 2
        good = {"context": "It rains.", "endings": ["a", "b"], "label": 1}
        path = write("a.jsonl", [good, {**good, "label": 2}, {**good, "endings": ["a", "b", "c"]}])
        found = [f for f in examine_data([path]) if f.code == "data.unreadable"]
        assert sorted(line for finding in found for line in places(finding)) == [f"{path}:2", f"{path}:3"]


def test_what_is_held_out_of_a_file_does_not_count_its_faults_twice(write: Write, tmp_path: Path) -> None:
    rows = [{"text": f"text {i} Mina", "spans": [span(0, 4)]} for i in range(60)]
    path = write("a.jsonl", [*rows, {"text": "ab", "spans": [span(0, 9)]}])
    recipe = tmp_path / "r.toml"
    lines = ['task = { kind = "tagging" }', 'model = { kind = "rnn" }']
    lines += ['data = { kind = "tagged", train = ["a.jsonl"], dev_share = 0.3 }']
    recipe.write_text("\n".join(lines), "utf-8")
    findings = examine_data([recipe])
    assert (only(findings, "data.offsets").count, places(only(findings, "data.offsets"))) == (1, [f"{path}:61"])
    assert sum(finding.count for finding in findings if finding.code == "data.counts") == 60


class TestKinds:
    @pytest.mark.parametrize(
        ("name", "rows", "said"),
        [
            (
                "a.jsonl",
                [{"text": "ab c", "head": span(0, 2), "tail": span(3, 4), "label": "x"}],
                "1 pairs of entities",
            ),
            ("a.jsonl", [{"text": "ab c", "entities": [span(0, 2)]}], "1 texts"),
            ("a.jsonl", [{"context": "ab", "endings": ["c", "d"], "label": 0}], "1 choices"),
            ("a.json", squad(asked("a", ("Oslo", 14))), "1 questions"),
            ("a.csv", "sent1,sent2,ending0,ending1,label\nIt rains.,She,runs.,flies.,1\n", "1 choices"),
        ],
        ids=["relations", "spans", "choices", "questions", "swag"],
    )
    def test_the_first_object_tells(self, write: Write, name: str, rows: Any, said: str) -> None:
        assert f"train: {said}." in only(examine_data([write(name, rows)]), "data.counts").message

    def test_a_damaged_first_line_is_a_fault_and_does_not_hide_the_kind(self, write: Write) -> None:
        path = write("a.jsonl", '{"text": \n' + json.dumps({"text": "ab", "spans": []}) + "\n")
        findings = examine_data([path])
        assert places(only(findings, "data.unreadable")) == [f"{path}:1"]
        assert only(findings, "data.counts").count == 1

    @pytest.mark.parametrize(
        ("name", "content", "what"),
        [
            ("a.jsonl", [{"sentence": "a", "target": 1}], 'it has "sentence", "target"'),
            ("a.json", '{"context": "a", "question": "b"}', 'it has "context", "question"'),
            ("a.json", '{"text": "a", "spans": []}\n{"text": "b", "spans": []}\n', "one object per line is JSONL"),
            ("a.csv", "texts,labels\na,b\n", "unknown kind of CSV"),
        ],
    )
    def test_no_known_shape_names_those_that_are(self, write: Write, name: str, content: Any, what: str) -> None:
        with pytest.raises(InputError) as caught:
            examine_data([write(name, content)])
        assert what in caught.value.what
        if what.startswith("it has"):
            assert [
                key for key in ('"spans"', '"head"', '"endings"', '"paragraphs"') if key not in str(caught.value)
            ] == []

    @pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
    def test_what_is_no_json(self, write: Write, name: str) -> None:
        path = write(name, "It rains.\n")
        with pytest.raises(DataError) as caught:
            examine_data([path])
        assert (caught.value.code, caught.value.where) == ("data.not_json", f"{path}:1")

    def test_lines_that_are_not_utf8_are_counted_in_json_too(self, write: Write) -> None:
        line = '{"text": "한글", "spans": []}\n'
        found = only(examine_data([write("a.jsonl", line.encode() + line.encode("cp949") * 2)]), "data.encoding")
        assert (found.count, found.share) == (2, 2 / 3)
