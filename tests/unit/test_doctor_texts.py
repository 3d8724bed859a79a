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

from jumok.cli import main
from jumok.data.made import ToyChoices, ToyJosa, ToyQuestions, ToyRelations, ToyTopics
from jumok.data.sources import TextData
from jumok.doctor import Finding, examine_data, examine_texts
from jumok.doctor.faults import examine_bytes
from jumok.doctor.texts import OneText, PlainLine, texts_of
from jumok.text.annotated import Choice, Entity, Mark, Marked, Question, Related
from jumok.text.labelled import Labelled, Tagged

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


def opinions(rows: Iterable[tuple[str, str]], file: str = "train.tsv") -> list[OneText]:
    return [Labelled(text, None, label, f"{file}:{line}") for line, (text, label) in enumerate(rows, start=2)]


def sentences(*rows: str, file: str = "train.conll") -> list[OneText]:
    """Each written as "word/TAG word/TAG"."""
    split = [[token.rsplit("/", 1) for token in row.split()] for row in rows]
    return [
        Tagged([word for word, _ in row], [tag for _, tag in row], f"{file}:{i}")
        for i, row in enumerate(split, start=1)
    ]


def prose(rows: Iterable[str], file: str = "train.txt") -> list[OneText]:
    return [PlainLine(line, f"{file}:{number}") for number, line in enumerate(rows, start=1)]


def faults(findings: Iterable[Finding]) -> list[Finding]:
    """What is not said of every text."""
    return [f for f in findings if f.kind != "counts" and (f.kind, f.severity) != ("labels", "note")]


def only(findings: Iterable[Finding], kind: str) -> Finding:
    (found,) = (finding for finding in findings if finding.kind == kind)
    return found


def places(finding: Finding) -> list[str]:
    return [example.split("  ")[0] for example in finding.examples]


@pytest.mark.parametrize(
    "texts", [opinions(OPINIONS), sentences("Ada/B-PER Kim/I-PER sings/O", "In/O Oslo/B-LOC"), prose(PROSE)]
)
def test_clean_text_has_counts_and_nothing_else(texts: list[OneText]) -> None:
    findings = examine_texts({"train": texts}, language="en")
    assert faults(findings) == []
    assert only(findings, "counts").count == len(texts)


def test_counts_lengths_and_labels_are_told() -> None:
    rows = [*(("a b c", "good") for _ in range(19)), ("one two three four five six", "bad")]
    findings = examine_texts({"train": opinions(rows)})
    said = (
        "train: 20 texts. Words: median 3, 95 % at most 3, longest 6. Characters: median 5, 95 % at most 6, longest 27."
    )
    assert only(findings, "counts").message == said
    assert only(findings, "labels").message == "train: labels: good 19 (95.0 %), bad 1 (5.0 %)."


@pytest.mark.parametrize(
    ("kind", "severity", "planted", "line"),
    [
        ("empty", "error", (" \u3000", "good"), 6),
        ("damaged", "error", ("A gr\ufffd\ufffdt film.", "good"), 6),
        ("decomposed", "note", (unicodedata.normalize("NFD", "Très bon."), "good"), 6),
        ("duplicate", "warning", ("A film  of rare warmth. ", "good"), 6),
        ("contradiction", "error", ("A film of rare warmth.", "bad"), 6),
        ("over_long", "warning", ("so " * 21, "bad"), 6),
        ("wrong_language", "warning", ("정말 재미있는 영화였어요", "good"), 6),
        ("wrong_language", "warning", ("ein Film, der für die Familie ist", "good"), 6),
    ],
)
def test_planted_faults_of_labelled_texts(kind: str, severity: str, planted: tuple[str, str], line: int) -> None:
    (finding,) = faults(examine_texts({"train": opinions([*OPINIONS, planted])}, language="en", max_words=20))
    assert (finding.kind, finding.severity, finding.count, finding.share) == (kind, severity, 1, 0.2)
    assert places(finding) == [f"train.tsv:{line}"]
    assert "1 of 5 (20.0 %)" in finding.message


def test_few_contradictions_are_a_note_and_the_language_is_looked_at_only_if_it_is_known() -> None:
    many = [(f"Number {i} is a film.", "good" if i % 2 else "bad") for i in range(200)]
    (finding,) = faults(examine_texts({"train": opinions([*many, (many[0][0], "good")])}))
    assert (finding.kind, finding.severity, finding.examples) == (
        "contradiction",
        "note",
        ["train.tsv:202  Number 0 is a film. ||| good"],
    )
    assert faults(examine_texts({"train": opinions([*OPINIONS, ("정말 재미있는 영화였어요", "good")])})) == []


def test_both_texts_of_a_pair_count() -> None:
    rows = [("a", "b", "x"), ("a", "c", "y"), ("a", "b", "y"), ("b", "", "x")]
    pairs: list[OneText] = [Labelled(*row, f"p.tsv:{line}") for line, row in enumerate(rows, start=2)]
    found = {finding.kind: finding.examples for finding in faults(examine_texts({"train": pairs}))}
    assert found == {"contradiction": ["p.tsv:4  a ||| b ||| y"], "empty": ["p.tsv:5  b |||  ||| x"]}


def test_text_of_train_in_test_is_found_even_if_it_is_short() -> None:
    held_out = [("A film of rare warmth.", "good"), ("I laughed all evening.", "bad"), ("Awful.", "bad")]
    splits = {"test": opinions(held_out, "test.tsv"), "train": opinions([*OPINIONS, ("Awful.", "bad")])}
    same, other = faults(examine_texts(splits))
    assert (same.kind, same.severity, places(same)) == ("overlap", "error", ["test.tsv:2", "test.tsv:4"])
    assert same.message.startswith("test texts that are also in train: 2 of 3")
    assert (other.kind, other.severity, places(other)) == ("overlap", "warning", ["test.tsv:3"])
    assert "in train with another label: 1 of 3" in other.message


@pytest.mark.parametrize("kind", ["tagged", "text"])
def test_only_whole_sentences_are_compared_where_headings_recur(kind: str) -> None:
    long, short = "it was late and the door was locked", "= = History 1996 = ="

    def made(rows: Sequence[str], file: str) -> list[OneText]:
        if kind == "text":
            return prose(rows, file)
        return sentences(*(" ".join(f"{word}/O" for word in f"{row} Oslo".split()) for row in rows), file=file)

    splits = {"train": made([long, short, short], "train"), "dev": made([short, long], "dev")}
    found = [finding for finding in faults(examine_texts(splits)) if finding.kind in ("overlap", "duplicate")]
    expected = [("overlap", "error", ["dev:1"])] if kind == "tagged" else []  # half of dev: not by chance any more
    expected.append(("overlap", "error", ["dev:2"]))
    assert [(finding.kind, finding.severity, places(finding)) for finding in found] == expected


def test_empty_and_long_lines_of_plain_text_are_only_noted() -> None:
    findings = faults(examine_texts({"train": prose(["", *PROSE, " ", "so " * 21])}, max_words=20))
    assert [(finding.kind, finding.severity, finding.count) for finding in findings] == [
        ("empty", "note", 2),
        ("over_long", "note", 1),
    ]


class TestLabels:
    @pytest.mark.parametrize(("rare", "found"), [(9, True), (10, False)])
    def test_a_rare_label_is_said(self, rare: int, found: bool) -> None:
        rows = [(f"good film {i}", "good") for i in range(100 - rare)] + [(f"bad film {i}", "bad") for i in range(rare)]
        findings = faults(examine_texts({"train": opinions(rows)}))
        assert [(finding.kind, finding.severity, finding.count) for finding in findings] == (
            [("imbalanced", "warning", rare)] * found
        )
        if found:
            assert findings[0].message.startswith("train: rare labels (bad): 9 of 100 (9.0 %)")
            assert findings[0].examples == ["train.tsv:93  bad"]

    def test_one_label_alone_is_an_error(self) -> None:
        (finding,) = faults(examine_texts({"train": opinions([("a", "good"), ("b", "good")])}))
        assert (finding.kind, finding.severity) == ("labels", "error")
        assert "nothing to tell apart" in finding.message

    def test_labels_that_a_split_lacks_or_has_alone(self) -> None:
        splits = {"train": opinions(OPINIONS), "dev": opinions([("Fine.", "good"), ("So so.", "fair")], "dev.tsv")}
        unknown, missing = faults(examine_texts(splits))
        assert (unknown.kind, unknown.severity, unknown.examples) == ("unknown_label", "error", ["dev.tsv:3  fair"])
        assert "train does not have (fair): 1 of 2" in unknown.message
        assert (missing.kind, missing.severity) == ("missing_label", "warning")
        assert "labels of train that are missing (bad): 1 of 2" in missing.message

    def test_many_labels_are_cut_short(self) -> None:
        rows = [(f"text {i}", f"label{i:02}") for i in range(30)]
        message = only(examine_texts({"train": opinions(rows)}), "labels").message
        assert (message.count("label0"), message[-12:]) == (10, "and 20 more.")


class TestTags:
    @pytest.mark.parametrize(
        ("planted", "line"),
        [("to/O Oslo/I-LOC", 12), ("Oslo/I-LOC", 11), ("Ada/B-PER Oslo/I-LOC", 12)],
    )
    def test_a_span_that_begins_in_its_middle(self, planted: str, line: int) -> None:
        """The sentence begins in line 11, and has a word a line."""
        good = ["Ada/B-PER Kim/I-PER sings/O in/O Oslo/B-LOC"] * 10
        finding = only(examine_texts({"train": sentences(*good, planted)}), "impossible_tags")
        assert (finding.severity, finding.count) == ("warning", 1)
        assert finding.examples == [f"train.conll:{line}  {planted}"]

    def test_many_of_them_are_an_error(self) -> None:
        rows = ["Ada/B-PER sings/O in/O Oslo/B-LOC"] * 5 + ["in/O Oslo/I-LOC"]
        assert only(examine_texts({"train": sentences(*rows)}), "impossible_tags").severity == "error"

    @pytest.mark.parametrize(
        "rows",
        [
            ["Ada/I-PER Kim/I-PER sings/O", "Ada/I-PER Ben/B-PER sing/O in/O Oslo/I-LOC"],  # IOB1
            ["Ada/B-PER Kim/E-PER sings/O", "in/O Oslo/S-LOC", "Ada/B-PER de/I-PER Kim/E-PER"],  # IOBES
            ["she/PRP sings/VBZ", "a/DT song/NN"],  # parts of speech
        ],
    )
    def test_other_schemes_are_no_faults(self, rows: list[str]) -> None:
        assert faults(examine_texts({"train": sentences(*rows)})) == []

    def test_spans_have_to_end_where_ends_are_marked(self) -> None:
        rows = ["Ada/B-PER Kim/E-PER sings/O in/O Oslo/S-LOC"] * 3 + ["Ada/B-PER sings/O"]
        finding = only(examine_texts({"train": sentences(*rows)}), "impossible_tags")
        assert (finding.count, finding.share, finding.examples) == (1, 1 / 7, ["train.conll:5  Ada/B-PER sings/O"])

    def test_the_scheme_of_train_holds_for_all(self) -> None:
        """A sentence with marked ends in dev makes no fault of those without."""
        splits = {
            "train": sentences("Ada/B-PER sings/O today/O", "in/O Oslo/B-LOC today/O"),
            "dev": sentences("Ben/B-PER sings/O today/O", "in/O Rome/S-LOC today/O", "Ben/B-PER Kim/E-PER sings/O"),
        }
        assert "impossible_tags" not in {finding.kind for finding in examine_texts(splits)}
        splits = {
            "train": sentences("Ada/I-PER Ben/B-PER sing/O", "in/O Oslo/I-LOC"),
            "dev": sentences("Cy/B-PER sings/O in/O Oslo/I-LOC"),
        }
        assert "impossible_tags" not in {finding.kind for finding in examine_texts(splits)}

    def test_tags_of_no_known_form_among_others(self) -> None:
        finding = only(examine_texts({"train": sentences("Ada/B-PER in/O Oslo/LOC_B")}), "unknown_tags")
        assert (finding.severity, finding.examples) == ("warning", ["train.conll:3  in/O Oslo/LOC_B"])

    def test_types_are_compared_between_splits(self) -> None:
        splits = {
            "train": sentences("Ada/B-PER sings/O in/O Oslo/B-LOC"),
            "dev": sentences("it/O rains/O"),
            "test": sentences("Ada/B-PER eats/O Snickers/B-MISC"),
        }
        found = [
            (finding.kind, finding.severity, finding.message.split(":")[0]) for finding in faults(examine_texts(splits))
        ]
        assert sorted(found) == [
            ("missing_label", "warning", "dev"),
            ("missing_label", "warning", "test"),
            ("unknown_label", "warning", "test"),
        ]

    def test_the_same_sentence_with_other_tags(self) -> None:
        rows = ["Paris/B-PER met/O all/O her/O friends/O", "Paris/B-LOC met/O all/O her/O friends/O"]
        finding = only(examine_texts({"train": sentences(*rows)}), "contradiction")
        assert (places(finding), "another sequence of tags" in finding.message) == (["train.conll:2"], True)


any_text = st.text(st.characters(exclude_categories=["Cs"]))
tags = st.sampled_from(["O", "B-X", "I-X", "E-X", "S-X", "I-Y", "NN", "B-", "-", "B"])


@given(
    st.lists(st.tuples(any_text, st.lists(st.tuples(st.text(min_size=1), tags), min_size=1)), max_size=12),
    st.sampled_from(["", "en", "ko"]),
)
def test_any_text_can_be_examined(rows: list[tuple[str, list[tuple[str, str]]]], language: str) -> None:
    kinds: list[list[OneText]] = [
        [PlainLine(text, "a") for text, _ in rows],
        [Labelled(text, None, row[0][1], "a") for text, row in rows],
        [Tagged([word for word, _ in row], [tag for _, tag in row], "a") for _, row in rows],
    ]
    for texts in kinds:
        for finding in examine_texts({"train": texts, "test": texts[::2]}, language=language):
            assert 0 <= finding.share <= 1


class TestFiles:
    def test_every_line_that_is_not_utf8_is_counted(self, tmp_path: Path) -> None:
        path = tmp_path / "a.txt"
        path.write_bytes(b"".join("한글\n".encode("cp949" if i % 2 else "utf-8") for i in range(20)))
        (finding,) = examine_bytes(path)
        assert (finding.kind, finding.severity, finding.count, finding.share) == ("unreadable", "error", 10, 0.5)
        assert places(finding) == [f"{path}:{line}" for line in (2, 4, 6, 8, 10)]
        assert examine_data([path]) == [finding]
        path.write_bytes("\ufeff한글\n".encode())
        assert examine_bytes(path) == []

    def test_what_stands_around_a_wrong_row_is_looked_at(self, tmp_path: Path) -> None:
        path = tmp_path / "a.tsv"
        path.write_text("text\tlabel\na\tx\n\ty\nb\n c\tx\n", "utf-8")
        findings = examine_data([path])
        wrong = only(findings, "unreadable")
        assert (wrong.severity, wrong.count, wrong.examples) == ("error", 1, [f"{path}:4  1 columns"])
        assert "train: rows that cannot be read: 1 of 4 (25.0 %)." in wrong.message
        assert "Right would be 2 as in the header" in wrong.message
        assert (only(findings, "empty").examples, only(findings, "counts").count) == ([f"{path}:3   ||| y"], 3)

    def test_a_divided_text_keeps_the_numbers_of_its_lines(self, tmp_path: Path) -> None:
        path = tmp_path / "a.txt"
        path.write_text("".join(f"line {i}\n" for i in range(200)), "utf-8")
        data = TextData(train=[str(path)], dev_share=0.3)
        found = [(e.text, e.where) for split in ("train", "dev") for e in texts_of(data, split, seed=1)]
        assert sorted(found) == sorted((f"line {i}", f"{path}:{i + 1}") for i in range(200))
        assert [text for text, _ in found] == [line for s in ("train", "dev") for line in data.read(s, seed=1)]

    def test_an_empty_split_is_an_error(self, tmp_path: Path) -> None:
        path = tmp_path / "a.conll"
        path.write_text("", "utf-8")
        (finding,) = examine_data([path])
        assert (finding.kind, finding.severity, finding.message[:18]) == ("empty", "error", "train: no examples")


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
        ("reviews.tsv", 0, ["counts", "labels"]),
        ("pairs.tsv", 0, ["counts", "labels"]),
        ("names.conll", 2, ["impossible_tags", "counts", "labels"]),
        ("prose.txt", 0, ["counts"]),
        ("prose.txt --source en", 2, ["wrong_language", "counts"]),
        ("r.toml", 2, ["overlap"] + ["impossible_tags"] * 2 + ["counts", "labels"] * 2),
        ("chat.tsv --columns question,answer", 0, []),
    ],
)
def test_the_doctor_tells_the_kind_of_a_file(jumok: Jumok, arguments: str, code: int, kinds: list[str]) -> None:
    stopped, out, err = jumok("doctor", *arguments.split(), "--json")
    assert (stopped, err) == (code, "")
    assert [finding["kind"] for finding in json.loads(out)["findings"]] == kinds


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("prose.txt --target ko", ["no target", "where: prose.txt", "--source alone"]),
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
    ends = [Entity(start, end, "") for start, end in (head, tail)]
    return Related("Vela pays Mina and Omar", ends[0], ends[1], label, f"train.jsonl:{line}")


def asked(question: str, answers: list[tuple[str, int]], line: int = 1) -> Question:
    return Question(f"q{line}", question, "Mina lives in Oslo.", answers, f"train.json, question q{line}")


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ([Marked("민아는 서울에서 일한다", [Mark(0, 2, "PER"), Mark(4, 6, "LOC")], "a.jsonl:1")], "1 texts"),
        ([relation((0, 4), (10, 14), "pays"), relation((0, 4), (19, 23), "other", 2)], "2 pairs of entities"),
        ([asked("Where does she live?", [("Oslo", 14)]), asked("Since when?", [], 2)], "2 questions"),
        ([Choice("Mina is tired.", ["She sleeps.", "She flies."], i, f"a.jsonl:{i}") for i in (0, 1)][:1], "1 choices"),
    ],
    ids=["spans", "relations", "questions", "choices"],
)
def test_annotated_text_has_counts_and_no_faults_of_its_own(texts: list[OneText], said: str) -> None:
    kinds = {finding.kind for finding in faults(examine_texts({"train": texts}))}
    assert kinds <= {"labels", "answers"}
    assert said in only(examine_texts({"train": texts}), "counts").message


def test_one_pair_of_entities_with_two_labels_contradicts_itself() -> None:
    """ChemProt has some fifty of them."""
    texts: list[OneText] = [relation((0, 4), (10, 14), "pays"), relation((0, 4), (10, 14), "knows", 2)]
    found = only(examine_texts({"train": texts}), "contradiction")
    assert places(found) == ["train.jsonl:2"]
    texts = [relation((0, 4), (10, 14), "pays"), relation((10, 14), (0, 4), "is paid", 2)]
    assert "contradiction" not in {finding.kind for finding in examine_texts({"train": texts})}


def test_a_question_with_two_answers_contradicts_itself() -> None:
    texts: list[OneText] = [asked("Who?", [("Mina", 0)]), asked("Who?", [], 2), asked("Who?", [("Mina", 0)], 3)]
    findings = examine_texts({"train": texts})
    assert places(only(findings, "contradiction")) == ["train.json, question q2"]
    assert places(only(findings, "duplicate")) == ["train.json, question q3"]


def test_types_of_marked_spans_are_counted_and_compared() -> None:
    splits: dict[str, list[OneText]] = {
        "train": [Marked("민아는 서울에서 일한다", [Mark(0, 2, "PER"), Mark(4, 6, "LOC")], "train.jsonl:1")],
        "dev": [Marked("빛나에서 민아가 일한다", [Mark(0, 2, "ORG")], "dev.jsonl:1")],
    }
    findings = examine_texts(splits)
    messages = [finding.message for finding in findings if finding.kind == "labels"]
    assert any("types of spans: PER 1 (50.0 %), LOC 1 (50.0 %)" in message for message in messages)
    assert "(ORG)" in only(findings, "unknown_label").message


@pytest.mark.parametrize("toy", [ToyTopics, ToyJosa, ToyRelations, ToyQuestions, ToyChoices])
def test_toys_are_examined_as_data_in_files_is(toy: Any) -> None:
    data = toy(n_train=300, n_dev=50, n_test=0)
    findings = examine_texts({split: texts_of(data, split, seed=1) for split in ("train", "dev")})
    assert {finding.count for finding in findings if finding.kind == "counts"} == {300, 50}
    assert not [finding for finding in findings if finding.severity == "error"]
