"""The doctor on documents: each planted fault is found at its place, nothing is held that need not be."""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.doctor import documents, examine_data, examine_documents
from jumok.doctor.documents import Sample, Survey
from jumok.examples.documents import Sentence
from jumok.examples.made.data import ToyStories
from jumok.examples.plain import DocumentData
from jumok.findings import Finding, quartiles

LONG_ENOUGH = "the boat has come back to the harbour"


def prose(n: int, words: str = "river mill {} turns its wheel all day") -> list[str]:
    """So many sentences of eight words, none like another."""
    return [words.format(f"{chr(97 + i // 26 % 26)}{chr(97 + i % 26)}{i // 676}x") for i in range(n)]


def stream(*texts: Iterable[str], file: str = "train.txt") -> list[Sentence]:
    found = [(text, k == 0) for document in texts for k, text in enumerate(document)]
    return [Sentence(text, first, f"{file}:{line}") for line, (text, first) in enumerate(found, start=1)]


def surveyed(*texts: Iterable[str], split: str = "train", earlier: dict[str, Survey] | None = None, **options: object):
    survey = Survey(earlier=earlier, **options)  # type: ignore[arg-type]
    survey.read(stream(*texts, file=f"{split}.txt"))
    return survey


def faults(survey: Survey, split: str = "train") -> list[Finding]:
    return [found for found in survey.findings(split) if found.code not in ("data.counts", "data.one_sentence")]


def only(findings: Iterable[Finding], code: str) -> Finding:
    (found,) = (finding for finding in findings if finding.code == code)
    return found


def places(finding: Finding) -> list[str]:
    return [example.split("  ")[0] for example in finding.examples]


class TestCounts:
    def test_documents_sentences_words_and_characters_are_told_with_their_lengths(self) -> None:
        survey = surveyed(["one two three", "four"], ["five six", "seven eight", "비가 온다"], ["nine"])
        assert (survey.documents, survey.sentences, survey.words, survey.characters) == (3, 6, 11, 45)
        (counts, alone) = survey.findings("train")
        assert counts.message == (
            "train: 3 documents, 6 sentences, 11 words, 45 characters. Words per sentence: quartiles 1, 2, 2, most 3."
            " Sentences per document: quartiles 1, 2, 3, most 3. Scripts: Latin 83.3 %, Hangul 16.7 %."
        )
        assert (alone.code, alone.severity, alone.count, alone.share) == ("data.one_sentence", "note", 1, 1 / 3)
        assert places(alone) == ["train.txt:6"]

    def test_lines_that_are_not_cut_are_lines(self) -> None:
        message = surveyed(["a b"], is_cut=False).findings("train")[0].message
        assert "1 document, 1 lines" in message
        assert "Words per line: always 2. Lines per document: always 1." in message

    def test_sentences_without_letters_have_no_script(self) -> None:
        assert "Scripts: none." in surveyed(["1", "2"]).findings("train")[0].message

    @pytest.mark.parametrize(("values", "said"), [("1", "always 1"), ("1234", "quartiles 1, 2, 3, most 4")])
    def test_quartiles(self, values: str, said: str) -> None:
        assert quartiles(Counter(map(int, values))) == said

    def test_all_in_one_document_is_said(self) -> None:
        (finding,) = faults(surveyed(prose(20)))
        assert (finding.code, finding.severity) == ("data.one_document", "note")
        assert "data.format" in finding.message
        assert faults(surveyed(prose(9))) == []


@pytest.mark.parametrize(
    ("kind", "planted"),
    [
        ("data.damaged", "the m\ufffd\ufffdn is up"),
        ("data.control_characters", "the moon\x85 is up"),
        ("data.control_characters", "the \x00moon is up"),
        ("data.no_letters", "1984 — 42"),
        ("data.too_long", "so " * 251),
        ("data.wrong_language", "정말 재미있는 영화였어요"),
        ("data.wrong_language", "Ein Mann und eine Frau sitzen auf der Bank"),
        ("data.wrong_language", "Un homme est assis sur le banc avec une femme"),
    ],
)
def test_planted_faults_are_found_at_their_place(kind: str, planted: str) -> None:
    clean = prose(9)
    assert faults(surveyed(clean[:5], clean[5:], language="en")) == []
    (finding,) = faults(surveyed(clean[:5], [planted, *clean[5:]], language="en"))
    assert (finding.code, finding.count, finding.share, places(finding)) == (kind, 1, 0.1, ["train.txt:6"])
    assert finding.severity == ("error" if kind in ("data.damaged", "data.control_characters") else "warning")
    (finding,) = faults(surveyed(prose(5000), [planted], language="en"))
    assert finding.severity == "note"


def test_decomposed_characters_and_long_lines_are_only_noted() -> None:
    decomposed = unicodedata.normalize("NFD", "Très bon.")
    (finding,) = faults(surveyed([decomposed], [decomposed]))
    assert (finding.code, finding.severity, finding.count) == ("data.decomposed", "note", 2)
    (finding,) = faults(surveyed(["so " * 251], is_cut=False))
    assert (finding.code, finding.severity) == ("data.too_long", "note")


class TestRepetition:
    def test_repeated_sentences_are_counted_with_their_share_of_the_words(self) -> None:
        texts = prose(94)
        again = surveyed(texts[:50], [LONG_ENOUGH, *texts[50:], f"{LONG_ENOUGH} "], [LONG_ENOUGH] * 4)
        (finding,) = faults(again)
        assert (finding.code, finding.severity, finding.count, finding.share) == ("data.duplicate", "warning", 5, 0.05)
        assert places(finding) == [f"train.txt:{line}" for line in (96, 97, 98, 99, 100)]
        assert "repeat an earlier one, with 5.0 % of all words" in finding.message
        assert again.repeated == 0.05

    def test_a_few_are_a_note_and_short_ones_none(self) -> None:
        texts = prose(200)
        (finding,) = faults(surveyed([*texts, texts[3]], [texts[5]]))
        assert (finding.severity, finding.count) == ("note", 2)
        assert (
            faults(surveyed(["= = History = ="], ["= = History = ="], ["So it goes, 1984 ."], ["So it goes, 1984 ."]))
            == []
        )

    def test_a_repeated_document_is_one_finding_and_not_one_for_each_of_its_sentences(self) -> None:
        poem = [f"{LONG_ENOUGH} {word}" for word in ("now", "late", "soon", "never")]
        (finding,) = faults(surveyed(poem, prose(12), poem))
        assert (finding.code, finding.severity, finding.count, finding.share) == ("data.duplicate", "warning", 1, 1 / 3)
        assert places(finding) == ["train.txt:17"]
        assert "documents that repeat an earlier one, with 21.4 % of all words" in finding.message  # 36 of 168

    def test_documents_of_many_short_lines_are_compared_too(self) -> None:
        (finding,) = faults(
            surveyed(["Tyger Tyger", "burning bright", "in the"], ["x"], ["Tyger Tyger", "burning bright", "in the"])
        )
        assert (finding.code, places(finding)) == ("data.duplicate", ["train.txt:5"])

    def test_boilerplate_stands_in_many_documents(self) -> None:
        texts = [[text, "Share this page", *(["Read more"] * (i < 10))] for i, text in enumerate(prose(30))]
        finding = only(faults(surveyed(*texts)), "data.boilerplate")
        assert (finding.severity, finding.count, finding.share) == ("warning", 40, 40 / 70)
        assert finding.examples == ["in 30 documents  Share this page", "in 10 documents  Read more"]
        assert "in at least 10 documents" in finding.message

    def test_repetition_weighs_by_its_words(self) -> None:
        texts = [["Amen", f"{text} {'and so on ' * 40}"] for text in prose(12)]
        (finding,) = faults(surveyed(*texts))
        assert (finding.code, finding.severity, finding.share) == ("data.boilerplate", "note", 0.5)
        assert "with 0.8 % of all words" in finding.message

    def test_what_recurs_within_a_document_or_in_few_is_none(self) -> None:
        assert faults(surveyed(["Amen"] * 50, ["Amen"] * 49)) == []
        rare = [[text, *(["Amen"] * (i < 20))] for i, text in enumerate(prose(5000))]
        assert faults(surveyed(*rare)) == []  # 20 of 5,000 documents are fewer than one in 200

    def test_made_sentences_recur_and_that_is_meant(self) -> None:
        texts = [[f"the cat sleeps on mat {i}", "the dog barks at the cat"] for i in range(20)]
        assert [found.code for found in faults(surveyed(*texts))] == ["data.duplicate", "data.boilerplate"]
        assert faults(surveyed(*texts, is_made=True)) == []
        assert [found.code for found in faults(surveyed(*texts, texts[0], is_made=True))] == ["data.duplicate"]


class TestSplits:
    def test_documents_and_sentences_of_train_in_dev_are_found(self) -> None:
        texts = prose(20)
        train = surveyed(texts[:10], texts[10:])
        dev = surveyed(texts[:10], [LONG_ENOUGH, texts[15]], split="dev", earlier={"train": train})
        document, sentence = faults(dev, "dev")
        assert (document.code, document.severity, document.count, document.share) == ("data.overlap", "error", 1, 0.5)
        assert (sentence.code, sentence.count, places(sentence)) == ("data.overlap", 1, ["dev.txt:12"])
        assert "also in train, shared documents not counted: 1 of 12" in sentence.message

    def test_of_dev_only_what_matters_is_said(self) -> None:
        planted = ["1984", *prose(99)]
        assert [f.code for f in faults(surveyed(planted[:50], planted[50:]))] == ["data.no_letters"]
        assert faults(surveyed(planted[:50], planted[50:]), "dev") == []


class TestFiles:
    def data(self, tmp_path: Path, content: bytes, **options: object) -> DocumentData:
        (tmp_path / "a.txt").write_bytes(content)
        return DocumentData(train=[str(tmp_path / "a.txt")], **options)  # type: ignore[arg-type]

    def test_a_text_file_is_read_as_documents(self, tmp_path: Path) -> None:
        text = "It rains. It pours.\n\nThe sun is out again today.\nThe sun is out again today.\n"
        self.data(tmp_path, text.encode())
        counts, repeated = sorted(examine_data([tmp_path / "a.txt"]), key=lambda found: found.code)
        assert counts.message.startswith("train: 2 documents, 4 sentences, 16 words, ")
        assert (repeated.code, repeated.severity, places(repeated)) == (
            "data.duplicate",
            "warning",
            [f"{tmp_path}/a.txt:4"],
        )

    def test_lines_that_are_not_utf8_are_all_counted(self, tmp_path: Path) -> None:
        lines = "".join(f"{text}.\n\n" for text in prose(40)).encode() + "한글\n".encode("cp949") * 3
        findings, survey = examine_documents(self.data(tmp_path, lines), seed=1)
        assert survey is not None
        assert only(findings, "data.encoding").count == 3
        assert only(findings, "data.counts").count == survey.sentences  # what was read before them is looked at

    def test_what_cannot_be_read_or_is_empty_is_an_error(self, tmp_path: Path) -> None:
        missing = DocumentData(train=[str(tmp_path / "none.txt")])
        ((finding,), survey) = examine_documents(missing, seed=1)
        assert (finding.code, finding.severity, survey) == ("data.unreadable", "error", None)
        both = DocumentData(train=[str(tmp_path / "a.txt")], dev=[str(tmp_path / "empty.txt")])
        self.data(tmp_path, b"It rains.\n")
        (tmp_path / "empty.txt").write_bytes(b"\n \n")
        findings, _ = examine_documents(both, seed=1)
        assert only(findings, "data.empty").message.startswith("dev: no documents")

    def test_toy_stories_are_healthy(self) -> None:
        findings, survey = examine_documents(ToyStories(n_train=500, n_dev=20, n_test=20), seed=1)
        assert {found.severity for found in findings} == {"note"}
        assert survey is not None
        assert survey.documents == 500


class TestLargeTexts:
    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(documents, "MOST", 1000)
        monkeypatch.setattr(documents, "SAMPLE", 5000)
        monkeypatch.setattr(documents, "STRETCH", 500)

    def endless(self) -> Iterator[Sentence]:
        for i in count():
            yield Sentence(f"sentence {i} of a text without end", i % 4 == 0, f"endless:{i}")

    def test_no_more_than_the_cap_is_read(self) -> None:
        survey = Survey()
        source = self.endless()
        survey.read(source)
        assert (survey.sentences, survey.is_whole) == (1000, False)
        assert next(source).where == "endless:1001"  # one more, to know that there are more
        assert "first 1,000 sentences were examined: 250 documents" in survey.findings("train")[0].message
        survey = Survey()
        survey.read(islice(self.endless(), 1000))
        assert survey.is_whole

    def test_the_sample_is_bounded_and_has_whole_documents_of_all_parts(self) -> None:
        survey = Survey()
        survey.read(self.endless())
        kept = list(survey.sample)
        assert 1500 < sum(len(sentence.text) for sentence in kept) <= 5000
        assert [sentence.first for sentence in kept] == [True, False, False, False] * (len(kept) // 4)
        numbers = [int(sentence.where.split(":")[1]) for sentence in kept]
        assert numbers == sorted(numbers)
        assert min(numbers) < 250 < 750 < max(numbers)

    def test_a_long_document_is_held_in_parts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        parts: list[int] = []
        monkeypatch.setattr(Sample, "add", lambda _, part: parts.append(sum(len(s.text) for s in part)))
        survey = Survey()
        survey.read(stream(prose(900)))
        assert (survey.documents, survey.sentences) == (1, 900)
        assert max(parts) < 500 + 40
        assert "Sentences per document: always 900." in survey.findings("train")[0].message

    def test_a_small_text_is_its_own_sample(self) -> None:
        texts = stream(prose(10), prose(5))
        survey = Survey()
        survey.read(texts)
        assert list(survey.sample) == texts


any_text = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(st.lists(any_text, min_size=1), max_size=8), st.sampled_from(["", "en", "ko", "xx"]))
def test_any_text_can_be_examined(texts: list[list[str]], language: str) -> None:
    train = surveyed(*texts, language=language)
    dev = surveyed(*texts[::2], split="dev", earlier={"train": train}, language=language)
    for finding in [*(train.findings("train") if texts else []), *(dev.findings("dev") if texts else [])]:
        assert 0 <= finding.share <= 1
    assert 0 <= train.repeated <= 1
