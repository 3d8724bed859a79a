"""The doctor on labelled, tagged and plain text: each planted fault is found at its place, and clean text has none."""

import json
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checked import examine
from jumok.cli import main
from jumok.doctor import examine_data
from jumok.doctor.faults import examine_bytes
from jumok.examples.choices import Choice
from jumok.examples.labelled import Labelled
from jumok.examples.made.data import ToyChoices, ToyJosa, ToyQuestions, ToyRelations, ToyTopics
from jumok.examples.plain import Text, TextData
from jumok.examples.questions import Question
from jumok.examples.relations import Related
from jumok.examples.spans import Spans
from jumok.findings import Finding
from jumok.text.span import Span

OPINIONS = [
    ("A film of rare warmth.", "good"),
    ("The plot falls apart at once.", "bad"),
    ("I laughed all evening.", "good"),
    ("Nobody should have to sit through this.", "bad"),
]
PROSE = [
    "The old bridge is closed for the winter.",
    "She has lost her keys in the garden.",
    "They were waiting for the bus in the rain.",
]


def opinions(rows: Iterable[tuple[str, str]], file: str = "train.tsv") -> list[Any]:
    return [Labelled(text, None, label, f"{file}:{line}") for line, (text, label) in enumerate(rows, start=2)]


def sentences(*rows: str, file: str = "train.conll") -> list[Any]:
    """Each written as "word/TAG word/TAG"."""
    split = [[token.rsplit("/", 1) for token in row.split()] for row in rows]
    return [
        Spans.of_words([word for word, _ in row], [tag for _, tag in row], f"{file}:{i}")
        for i, row in enumerate(split, start=1)
    ]


def prose(rows: Iterable[str], file: str = "train.txt") -> list[Any]:
    return [Text(line, None, f"{file}:{number}") for number, line in enumerate(rows, start=1)]


def faults(findings: Iterable[Finding]) -> list[Finding]:
    """What is not said of every text."""
    return [f for f in findings if f.code != "data.counts" and (f.code, f.severity) != ("data.labels", "note")]


def only(findings: Iterable[Finding], code: str) -> Finding:
    (found,) = (finding for finding in findings if finding.code == code)
    return found


def places(finding: Finding) -> list[str]:
    return [example.split("  ")[0] for example in finding.examples]


@pytest.mark.parametrize(
    "texts", [opinions(OPINIONS), sentences("Ada/B-PER Kim/I-PER sings/O", "In/O Oslo/B-LOC"), prose(PROSE)]
)
def test_clean_text_has_counts_and_nothing_else(texts: list[Any]) -> None:
    findings = examine({"train": texts}, language="en")
    assert faults(findings) == []
    assert only(findings, "data.counts").count == len(texts)


def test_counts_lengths_and_labels_are_told() -> None:
    rows = [*(("a b c", "good") for _ in range(19)), ("one two three four five six", "bad")]
    findings = examine({"train": opinions(rows)})
    said = (
        "train: 20 texts. Words: median 3, 95 % at most 3, longest 6. Characters: median 5, 95 % at most 6, longest 27."
    )
    assert only(findings, "data.counts").message == said
    assert only(findings, "data.labels").message == "train: labels: good 19 (95.0 %), bad 1 (5.0 %)."


@pytest.mark.parametrize(
    ("kind", "severity", "planted", "line"),
    [
        ("data.empty", "error", (" \u3000", "good"), 6),
        ("data.damaged", "error", ("A gr\ufffd\ufffdt film.", "good"), 6),
        ("data.decomposed", "note", (unicodedata.normalize("NFD", "Très bon."), "good"), 6),
        ("data.duplicate", "warning", ("A film  of rare warmth. ", "good"), 6),
        ("data.contradiction", "error", ("A film of rare warmth.", "bad"), 6),
        ("data.too_long", "warning", ("so " * 21, "bad"), 6),
        ("data.wrong_language", "warning", ("정말 재미있는 영화였어요", "good"), 6),
        ("data.wrong_language", "warning", ("ein Film, der für die Familie ist", "good"), 6),
    ],
)
def test_planted_faults_of_labelled_texts(kind: str, severity: str, planted: tuple[str, str], line: int) -> None:
    (finding,) = faults(examine({"train": opinions([*OPINIONS, planted])}, language="en", max_words=20))
    assert (finding.code, finding.severity, finding.count, finding.share) == (kind, severity, 1, 0.2)
    assert places(finding) == [f"train.tsv:{line}"]
    assert "1 of 5 (20.0 %)" in finding.message


def test_few_contradictions_are_a_note_and_the_language_is_looked_at_only_if_it_is_known() -> None:
    many = [(f"Number {i} is a film.", "good" if i % 2 else "bad") for i in range(200)]
    (finding,) = faults(examine({"train": opinions([*many, (many[0][0], "good")])}))
    assert (finding.code, finding.severity, finding.examples) == (
        "data.contradiction",
        "note",
        ["train.tsv:202  Number 0 is a film. ||| good"],
    )
    assert faults(examine({"train": opinions([*OPINIONS, ("정말 재미있는 영화였어요", "good")])})) == []


def test_both_texts_of_a_pair_count() -> None:
    rows = [("a", "b", "x"), ("a", "c", "y"), ("a", "b", "y"), ("b", "", "x")]
    pairs: list[Any] = [Labelled(*row, f"p.tsv:{line}") for line, row in enumerate(rows, start=2)]
    found = {finding.code: finding.examples for finding in faults(examine({"train": pairs}))}
    assert found == {"data.contradiction": ["p.tsv:4  a ||| b ||| y"], "data.empty": ["p.tsv:5  b |||  ||| x"]}


def test_text_of_train_in_test_is_found_even_if_it_is_short() -> None:
    held_out = [("A film of rare warmth.", "good"), ("I laughed all evening.", "bad"), ("Awful.", "bad")]
    splits = {"test": opinions(held_out, "test.tsv"), "train": opinions([*OPINIONS, ("Awful.", "bad")])}
    same, other = faults(examine(splits))
    assert (same.code, same.severity, places(same)) == ("data.overlap", "error", ["test.tsv:2", "test.tsv:4"])
    assert same.message.startswith("test texts that are also in train: 2 of 3")
    assert (other.code, other.severity, places(other)) == ("data.overlap", "warning", ["test.tsv:3"])
    assert "in train with another label: 1 of 3" in other.message


@pytest.mark.parametrize("kind", ["tagged", "text"])
def test_only_whole_sentences_are_compared_where_headings_recur(kind: str) -> None:
    long, short = "it was late and the door was locked", "= = History 1996 = ="

    def made(rows: Sequence[str], file: str) -> list[Any]:
        if kind == "text":
            return prose(rows, file)
        return sentences(*(" ".join(f"{word}/O" for word in f"{row} Oslo".split()) for row in rows), file=file)

    splits = {"train": made([long, short, short], "train"), "dev": made([short, long], "dev")}
    found = [finding for finding in faults(examine(splits)) if finding.code in ("data.overlap", "data.duplicate")]
    expected = [("data.overlap", "error", ["dev:1"])] if kind == "tagged" else []  # half of dev: not by chance any more
    expected.append(("data.overlap", "error", ["dev:2"]))
    assert [(finding.code, finding.severity, places(finding)) for finding in found] == expected


def test_empty_and_long_lines_of_plain_text_are_only_noted() -> None:
    findings = faults(examine({"train": prose(["", *PROSE, " ", "so " * 21])}, max_words=20))
    assert [(finding.code, finding.severity, finding.count) for finding in findings] == [
        ("data.empty", "note", 2),
        ("data.too_long", "note", 1),
    ]


class TestLabels:
    @pytest.mark.parametrize(("rare", "found"), [(9, True), (10, False)])
    def test_a_rare_label_is_said(self, rare: int, found: bool) -> None:
        rows = [(f"good film {i}", "good") for i in range(100 - rare)] + [(f"bad film {i}", "bad") for i in range(rare)]
        findings = faults(examine({"train": opinions(rows)}))
        assert [(finding.code, finding.severity, finding.count) for finding in findings] == (
            [("data.imbalanced", "warning", rare)] * found
        )
        if found:
            assert findings[0].message.startswith("train: rare labels (bad): 9 of 100 (9.0 %)")
            assert findings[0].examples == ["train.tsv:93  bad"]

    def test_one_label_alone_is_an_error(self) -> None:
        (finding,) = faults(examine({"train": opinions([("a", "good"), ("b", "good")])}))
        assert (finding.code, finding.severity, finding.count) == ("data.one_label", "error", 2)
        assert "train: good is the only one" in finding.message

    def test_labels_that_a_split_lacks_or_has_alone(self) -> None:
        splits = {"train": opinions(OPINIONS), "dev": opinions([("Fine.", "good"), ("So so.", "fair")], "dev.tsv")}
        unknown, missing = faults(examine(splits))
        assert (unknown.code, unknown.severity, unknown.examples) == (
            "data.unknown_label",
            "error",
            ["dev.tsv:3  fair"],
        )
        assert "(fair): 1 of 2" in unknown.message
        assert (missing.code, missing.severity) == ("data.missing_label", "warning")
        assert "(bad): 1 of 2" in missing.message

    def test_many_labels_are_cut_short(self) -> None:
        rows = [(f"text {i}", f"label{i:02}") for i in range(30)]
        message = only(examine({"train": opinions(rows)}), "data.labels").message
        assert (message.count("label0"), message[-12:]) == (10, "and 20 more.")


any_text = st.text(st.characters(exclude_categories=["Cs"]))
tags = st.sampled_from(["O", "B-X", "I-X", "E-X", "S-X", "I-Y", "NN", "B-", "-", "B"])


@given(
    st.lists(st.tuples(any_text, st.lists(st.tuples(st.text(min_size=1), tags), min_size=1)), max_size=12),
    st.sampled_from(["", "en", "ko"]),
)
def test_any_text_can_be_examined(rows: list[tuple[str, list[tuple[str, str]]]], language: str) -> None:
    kinds: list[list[Any]] = [
        [Text(text, None, "a") for text, _ in rows],
        [Labelled(text, None, row[0][1], "a") for text, row in rows],
        [Spans.of_words([word for word, _ in row], [tag for _, tag in row], "a") for _, row in rows],
    ]
    for texts in kinds:
        for finding in examine({"train": texts, "test": texts[::2]}, language=language):
            assert 0 <= finding.share <= 1


class TestFiles:
    def test_every_line_that_is_not_utf8_is_counted(self, tmp_path: Path) -> None:
        path = tmp_path / "a.txt"
        path.write_bytes(b"".join("한글\n".encode("cp949" if i % 2 else "utf-8") for i in range(20)))
        (finding,) = examine_bytes(path)
        assert (finding.code, finding.severity, finding.count, finding.share) == ("data.encoding", "error", 10, 0.5)
        assert places(finding) == [f"{path}:{line}" for line in (2, 4, 6, 8, 10)]
        assert examine_data([path]) == [finding]
        path.write_bytes("\ufeff한글\n".encode())
        assert examine_bytes(path) == []

    def test_what_stands_around_a_wrong_row_is_looked_at(self, tmp_path: Path) -> None:
        path = tmp_path / "a.tsv"
        path.write_text("text\tlabel\na\tx\n\ty\nb\n c\tx\n", "utf-8")
        findings = examine_data([path])
        wrong = only(findings, "data.unreadable")
        assert (wrong.severity, wrong.count, wrong.examples) == ("error", 1, [f"{path}:4  1 columns"])
        assert "train: rows that cannot be read: 1 of 4 (25.0 %)." in wrong.message
        assert "2 columns, as in the header" in wrong.message
        assert (only(findings, "data.empty").examples, only(findings, "data.counts").count) == (
            [f"{path}:3   ||| y"],
            3,
        )

    def test_a_divided_text_keeps_the_numbers_of_its_lines(self, tmp_path: Path) -> None:
        path = tmp_path / "a.txt"
        path.write_text("".join(f"line {i}\n" for i in range(200)), "utf-8")
        data = TextData(train=[str(path)], dev_share=0.3)
        found = [(e.text, e.where) for split in ("train", "dev") for e in data.read(split, seed=1)]
        assert sorted(found) == sorted((f"line {i}", f"{path}:{i + 1}") for i in range(200))
        assert [text for text, _ in found] == [line.text for s in ("train", "dev") for line in data.read(s, seed=1)]

    def test_an_empty_split_is_an_error(self, tmp_path: Path) -> None:
        path = tmp_path / "a.conll"
        path.write_text("", "utf-8")
        (finding,) = examine_data([path])
        assert (finding.code, finding.severity, finding.message[:18]) == ("data.empty", "error", "train: no examples")


Jumok = Callable[..., tuple[int, str, str]]


@pytest.fixture
def jumok(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Jumok:
    """The command line in a folder with a few files."""
    monkeypatch.chdir(tmp_path)
    files = {
        "reviews.tsv": "id\ttext\tlabel\n1\tgood film\t1\n2\tbad film\t0\n",
        "pairs.tsv": "text_a\ttext_b\tlabel\na dog runs\ta dog\tyes\na dog\ta cat\tno\n",
        "chat.tsv": "question\tanswer\tlabel\nhello\thi\t0\n",
        "names.conll": "Ada B-PER\nsings O\n\nin O\nOslo I-LOC\n",
        "prose.txt": "It rains.\n정말 재미있는 영화였어요\n",
        "r.toml": 'task = { kind = "tagging" }\nmodel = { kind = "rnn" }\n'
        'data = { kind = "tagged", train = ["names.conll"], test = ["names.conll"] }\n',
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content, "utf-8")

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["jumok", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        said = capsys.readouterr()
        return int(stopped.value.code or 0), said.out, said.err

    return call


@pytest.mark.parametrize(
    ("arguments", "code", "kinds"),
    [
        ("reviews.tsv", 0, ["data.counts", "data.labels"]),
        ("pairs.tsv", 0, ["data.counts", "data.labels"]),
        ("names.conll", 2, ["data.invalid_tags", "data.counts", "data.labels"]),
        ("prose.txt", 0, ["data.counts"]),
        ("prose.txt --source en", 2, ["data.wrong_language", "data.counts"]),
        (
            "r.toml",
            2,
            ["data.overlap", "data.invalid_tags"] + ["data.counts", "data.labels"] * 2 + ["vocabulary.lengths"],
        ),
        ("chat.tsv --columns question,answer", 0, []),
    ],
)
def test_the_doctor_tells_the_kind_of_a_file(jumok: Jumok, arguments: str, code: int, kinds: list[str]) -> None:
    stopped, out, err = jumok("doctor", *arguments.split(), "--json")
    assert (stopped, err) == (code, "")
    assert [finding["code"] for finding in json.loads(out)["findings"]] == kinds


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("prose.txt --target ko", ["no target", "where: prose.txt", "--source"]),
        ("names.conll --columns a,b", ["--columns", "one .tsv file"]),
        ("chat.tsv", ["looks like a header: question, answer, label", "where: chat.tsv:1", "--columns"]),
    ],
)
def test_the_doctor_refuses_options_that_do_not_fit(jumok: Jumok, arguments: str, words: list[str]) -> None:
    code, out, err = jumok("doctor", *arguments.split())
    assert (code, out) == (2, "")
    assert [word for word in words if word not in err] == []


# spans, relations, questions and choices


def relation(head: tuple[int, int], tail: tuple[int, int], label: str, line: int = 1) -> Related:
    ends = [Span(start, end, "") for start, end in (head, tail)]
    return Related("Vela pays Mina and Omar", ends[0], ends[1], label, f"train.jsonl:{line}")


def asked(question: str, answers: list[tuple[str, int]], line: int = 1) -> Question:
    return Question(f"q{line}", question, "Mina lives in Oslo.", answers, f"train.json, question q{line}")


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ([Spans("민아는 서울에서 일한다", [Span(0, 2, "PER"), Span(4, 6, "LOC")], where="a.jsonl:1")], "1 texts"),
        ([relation((0, 4), (10, 14), "pays"), relation((0, 4), (19, 23), "other", 2)], "2 pairs of entities"),
        ([asked("Where does she live?", [("Oslo", 14)]), asked("Since when?", [], 2)], "2 questions"),
        ([Choice("Mina is tired.", ["She sleeps.", "She flies."], i, f"a.jsonl:{i}") for i in (0, 1)][:1], "1 choices"),
    ],
    ids=["spans", "relations", "questions", "choices"],
)
def test_annotated_text_has_counts_and_no_faults_of_its_own(texts: list[Any], said: str) -> None:
    kinds = {finding.code for finding in faults(examine({"train": texts}))}
    assert kinds <= {"data.labels", "data.answers"}
    assert said in only(examine({"train": texts}), "data.counts").message


def test_one_pair_of_entities_with_two_labels_contradicts_itself() -> None:
    """ChemProt has some fifty of them."""
    texts: list[Any] = [relation((0, 4), (10, 14), "pays"), relation((0, 4), (10, 14), "knows", 2)]
    found = only(examine({"train": texts}), "data.contradiction")
    assert places(found) == ["train.jsonl:2"]
    texts = [relation((0, 4), (10, 14), "pays"), relation((10, 14), (0, 4), "is paid", 2)]
    assert "data.contradiction" not in {finding.code for finding in examine({"train": texts})}


def test_a_question_with_two_answers_contradicts_itself() -> None:
    texts: list[Any] = [asked("Who?", [("Mina", 0)]), asked("Who?", [], 2), asked("Who?", [("Mina", 0)], 3)]
    findings = examine({"train": texts})
    assert places(only(findings, "data.contradiction")) == ["train.json, question q2"]
    assert places(only(findings, "data.duplicate")) == ["train.json, question q3"]


def test_types_of_marked_spans_are_counted_and_compared() -> None:
    splits: dict[str, list[Any]] = {
        "train": [Spans("민아는 서울에서 일한다", [Span(0, 2, "PER"), Span(4, 6, "LOC")], where="train.jsonl:1")],
        "dev": [Spans("빛나에서 민아가 일한다", [Span(0, 2, "ORG")], where="dev.jsonl:1")],
    }
    findings = examine(splits)
    messages = [finding.message for finding in findings if finding.code == "data.labels"]
    assert any("span types: PER 1 (50.0 %), LOC 1 (50.0 %)" in message for message in messages)
    assert "(ORG)" in only(findings, "data.unknown_label").message


@pytest.mark.parametrize("toy", [ToyTopics, ToyJosa, ToyRelations, ToyQuestions, ToyChoices])
def test_toys_are_examined_as_data_in_files_is(toy: Any) -> None:
    data = toy(n_train=300, n_dev=50, n_test=0)
    findings = examine({split: data.read(split, seed=1) for split in ("train", "dev")})
    assert {finding.count for finding in findings if finding.code == "data.counts"} == {300, 50}
    assert not [finding for finding in findings if finding.severity == "error"]
