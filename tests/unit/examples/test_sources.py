"""Data in files: what is read for each split, how splits are held out, and what the data is known by."""

import gzip
import hashlib
import json
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations, count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from jumok.config import read_config
from jumok.data.corpus import Corpus
from jumok.errors import DataError, RecipeError
from jumok.examples import SPLITS, Split
from jumok.examples.choices import Choice, ChoiceData
from jumok.examples.documents import Sentence
from jumok.examples.labelled import Labelled, LabelledData
from jumok.examples.made.data import (
    SyntheticData,
    ToyChoices,
    ToyGrammar,
    ToyJosa,
    ToyNames,
    ToyQuestions,
    ToyRelations,
    ToyReviews,
    ToySimilarity,
    ToyStories,
    ToyTopics,
)
from jumok.examples.pairs import Pair, ParallelData
from jumok.examples.plain import DocumentData, Text, TextData
from jumok.examples.questions import Question, QuestionData
from jumok.examples.relations import Related, RelationData
from jumok.examples.spans import Spans, TaggedData
from jumok.text.span import Span

EVERY_DATA = [ParallelData, LabelledData, TaggedData, RelationData, QuestionData, ChoiceData, TextData, DocumentData]
PAIR = " a b"
"""what a text with two entities ends in here"""


def fingerprint(data: Any, split: Split = "train") -> str:
    return Corpus(data, split, seed=1).fingerprint()


def lines_of(objects: Iterable[object]) -> str:
    return "".join(json.dumps(each) + "\n" for each in objects)


def written(path: Path, kind: str, texts: list[str]) -> str:
    """A file of the kind with these texts (words without tabs), the label or tag being the number of the text."""
    path = path.with_suffix({"marked": ".jsonl", "choices": ".jsonl", "questions": ".json"}.get(kind, ".tsv"))
    match kind:
        case "parallel":
            content = "".join(f"{text}\t{i}\n" for i, text in enumerate(texts))
        case "marked":
            spans = [[{"start": 0, "end": len(text.split(" ")[0]), "label": str(i)}] for i, text in enumerate(texts)]
            content = lines_of({"text": text, "spans": marks} for text, marks in zip(texts, spans, strict=True))
        case "relations":
            ends = [(f"{text}{PAIR}", len(text)) for text in texts]
            content = lines_of(
                {
                    "text": text,
                    "head": {"start": n + 1, "end": n + 2},
                    "tail": {"start": n + 3, "end": n + 4},
                    "label": "x",
                }
                for text, n in ends
            )
        case "questions":
            asked = [
                {"id": f"{i}", "question": "What?", "answers": [], "is_impossible": True} for i in range(len(texts))
            ]
            paragraphs = [{"context": text, "qas": [qas]} for text, qas in zip(texts, asked, strict=True)]
            content = json.dumps({"version": "v2.0", "data": [{"title": "t", "paragraphs": paragraphs}]})
        case "choices":
            content = lines_of({"context": text, "endings": ["a", "b"], "label": i % 2} for i, text in enumerate(texts))
        case "labelled":
            content = "label\ttext\n" + "".join(f"{i}\t{text}\n" for i, text in enumerate(texts))
        case "tagged":
            content = "".join("".join(f"{word}\t{i}\n" for word in text.split()) + "\n" for i, text in enumerate(texts))
        case _:
            content = "".join(f"{text}\n" for text in texts)
    path.write_text(content, "utf-8")
    return str(path)


def data_of(kind: str, train: list[str], dev: str | None = None, test: str | None = None, **options: Any) -> Any:
    held_out = {split: [file] for split, file in (("dev", dev), ("test", test)) if file}
    match kind:
        case "parallel":
            corpora = [[file] for file in train]
            return ParallelData(source="en", target="ko", train=corpora, **held_out, **options)
        case "labelled":
            return LabelledData(train=train, **held_out, **options)
        case "tagged" | "marked":
            return TaggedData(train=train, **held_out, **options)
        case "relations":
            return RelationData(train=train, **held_out, **options)
        case "questions":
            return QuestionData(train=train, **held_out, **options)
        case "choices":
            return ChoiceData(train=train, **held_out, **options)
        case _:
            return TextData(train=train, **held_out, **options)


def texts_of(data: Any, split: Split) -> list[str]:
    def text(example: Any) -> str:
        match example:
            case Pair():
                return example.source
            case Labelled() | Spans() | Text():
                return example.text
            case Related():
                return example.text.removesuffix(PAIR)
            case Question() | Choice():
                return example.context
            case _:
                return str(example)

    return [text(example) for example in Corpus(data, split, seed=1)]


def many(n: int, seed: int = 1) -> list[str]:
    """Texts of a few words; some of them occur more than once."""
    rng = Random(seed)
    words = ["여우", "개", "fox", "dog", "café", "näive", *map(str, range(60))]
    return [" ".join(rng.choices(words, k=rng.randint(1, 4))) for _ in range(n)]


KINDS = ["parallel", "labelled", "tagged", "marked", "relations", "questions", "choices", "text"]
each_kind = pytest.mark.parametrize("kind", KINDS)
SHARES: list[dict[str, float]] = [{"dev_share": 0.2, "test_share": 0.3}, {"dev_share": 0.2}, {"test_share": 0.3}]
SIDES: tuple[Split, ...] = ("train", "dev", "test")


def test_labelled_data_reads_the_columns_it_names(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tb\tc\none\ttwo\t3\n", "utf-8")
    data = LabelledData(train=[str(tmp_path / "a.tsv")], text="b", pair="a", label="c")
    assert list(Corpus(data, "train", seed=1)) == [Labelled("two", "one", "3", f"{tmp_path / 'a.tsv'}:2")]
    prints = {Corpus(replace(data, **change), "train", seed=1).fingerprint() for change in CHANGES}
    assert len(prints) == len(CHANGES)


CHANGES: list[dict[str, Any]] = [{}, {"text": "a"}, {"pair": None}, {"label": "d"}]


@each_kind
def test_files_are_read_in_order_and_splits_have_theirs(tmp_path: Path, kind: str) -> None:
    parts = [written(tmp_path / f"{i}.tsv", kind, [f"text {i}", "same"]) for i in range(4)]
    data = data_of(kind, parts[:2], dev=parts[2], test=parts[3])
    assert texts_of(data, "train") == ["text 0", "same", "text 1", "same"]
    assert texts_of(data, "dev") == ["text 2", "same"]
    assert texts_of(data, "test") == ["text 3", "same"]
    assert [data.name(split) for split in SIDES] == [", ".join(parts[:2]), parts[2], parts[3]]
    assert [data_of(kind, parts[:1], test=parts[1]).exists(split) for split in SIDES] == [True, False, True]
    assert list(Corpus(data_of(kind, parts[:1]), "dev", seed=1)) == []


@each_kind
@pytest.mark.parametrize("shares", SHARES, ids=["dev and test", "dev", "test"])
def test_shares_divide_the_training_data_exactly(tmp_path: Path, kind: str, shares: dict[str, float]) -> None:
    texts = many(400)
    assert len(set(texts)) < len(texts)
    files = [written(tmp_path / f"{i}.tsv", kind, texts[i::2]) for i in range(2)]
    data = data_of(kind, files, **shares)
    sides = {split: texts_of(data, split) for split in SIDES}
    assert Counter(sides["train"]) + Counter(sides["dev"]) + Counter(sides["test"]) == Counter(texts)
    assert not set(sides["train"]) & set(sides["dev"])
    assert not set(sides["train"]) & set(sides["test"])
    assert not set(sides["dev"]) & set(sides["test"])
    assert {split for split in SIDES if sides[split]} == {split for split in SIDES if data.exists(split)}
    assert {split for split in SIDES if sides[split]} == {"train", *(name.removesuffix("_share") for name in shares)}


@each_kind
def test_the_side_of_a_text_does_not_follow_its_place(tmp_path: Path, kind: str) -> None:
    texts, shares = many(200), {"dev_share": 0.3, "test_share": 0.2}
    here = data_of(kind, [written(tmp_path / "a.tsv", kind, texts)], **shares)
    there = data_of(kind, [written(tmp_path / "b.tsv", kind, [*many(50, seed=2), *texts[::-1]])], **shares)
    for split in SIDES:
        assert set(texts_of(here, split)) <= set(texts_of(there, split))


@each_kind
def test_a_text_stands_on_one_side_however_it_is_composed(tmp_path: Path, kind: str) -> None:
    texts = [f"한글 café {i}" for i in range(60)]
    decomposed = [unicodedata.normalize("NFD", text) for text in texts]
    assert not set(texts) & set(decomposed)
    data = data_of(kind, [written(tmp_path / "a.tsv", kind, [*texts, *decomposed])], dev_share=0.5)
    for split in SIDES:
        found = texts_of(data, split)
        composed = [text for text in found if text in texts]
        assert [unicodedata.normalize("NFD", text) for text in composed] == [t for t in found if t in decomposed]
    assert 20 < len(texts_of(data, "dev")) < 100


def test_space_around_a_text_does_not_move_it(tmp_path: Path) -> None:
    texts = many(100)
    file = written(tmp_path / "a.txt", "text", [*texts, *(f" {text}  " for text in texts)])
    data = data_of("text", [file], dev_share=0.5)
    assert all({text.strip() for text in texts_of(data, split)} <= set(texts_of(data, split)) for split in SIDES)


def test_the_second_text_of_a_pair_does_not_move_the_first(tmp_path: Path) -> None:
    rows = "".join(f"{text}\t{i}\tx\n" for text in many(50) for i in range(4))
    (tmp_path / "a.tsv").write_text("text\tother\tlabel\n" + rows, "utf-8")
    data = LabelledData(train=[str(tmp_path / "a.tsv")], pair="other", dev_share=0.5)
    assert not set(texts_of(data, "train")) & set(texts_of(data, "dev"))


@each_kind
def test_shares_are_about_as_large_as_asked(tmp_path: Path, kind: str) -> None:
    texts = [f"text {i}" for i in range(5000)]
    data = data_of(kind, [written(tmp_path / "a.tsv", kind, texts)], dev_share=0.1, test_share=0.25)
    # Four standard deviations of a binomial draw.
    assert len(texts_of(data, "dev")) == pytest.approx(500, abs=4 * (5000 * 0.1 * 0.9) ** 0.5)
    assert len(texts_of(data, "test")) == pytest.approx(1250, abs=4 * (5000 * 0.25 * 0.75) ** 0.5)


@each_kind
def test_a_share_takes_nothing_out_of_a_split_with_files(tmp_path: Path, kind: str) -> None:
    texts = many(100)
    train, dev = written(tmp_path / "a.tsv", kind, texts), written(tmp_path / "b.tsv", kind, texts)
    data = data_of(kind, [train], dev=dev, test_share=0.3)
    assert texts_of(data, "dev") == texts
    assert Counter(texts_of(data, "train")) + Counter(texts_of(data, "test")) == Counter(texts)
    assert texts_of(data, "test") != []


@pytest.mark.parametrize("kind", EVERY_DATA)
@pytest.mark.parametrize("split", ["dev", "test"])
def test_files_and_a_share_for_one_split_are_refused(kind: type, split: str) -> None:
    said: dict[str, Any] = {"source": "en", "target": "ko"} if kind is ParallelData else {}
    with pytest.raises(RecipeError) as caught:
        read_config(kind, {**said, split: ["a"], f"{split}_share": 0.1}, what="[data]")
    assert [(mistake.key, mistake.code) for mistake in caught.value.mistakes] == [(split, "recipe.mismatch")]
    assert f"{split}_share" in caught.value.what
    other = "test" if split == "dev" else "dev"
    assert read_config(kind, {**said, split: ["a"], f"{other}_share": 0.1}, what="[data]").share(other) == 0.1
    with pytest.raises(RecipeError) as caught:
        read_config(kind, {**said, "dev_share": 0.5, "test_share": 0.5}, what="[data]")
    assert [(mistake.key, mistake.code) for mistake in caught.value.mistakes] == [("dev_share", "recipe.mismatch")]
    assert "test_share" in caught.value.what
    with pytest.raises(RecipeError) as caught:
        read_config(kind, {**said, f"{split}_share": 1.0}, what="[data]")
    assert [(mistake.key, mistake.code) for mistake in caught.value.mistakes] == [(f"{split}_share", "recipe.value")]


@each_kind
def test_fingerprints_follow_the_shares(tmp_path: Path, kind: str) -> None:
    data = data_of(kind, [written(tmp_path / "a.tsv", kind, many(20))])
    shares = [{}, *SHARES, {"dev_share": 0.3, "test_share": 0.2}]
    divided = [replace(data, **share) for share in shares]
    prints = [Corpus(one, "train", seed=1).fingerprint() for one in divided]
    assert len(set(prints)) == len(shares)
    # Of divided data every side is another corpus, though all are read from the same file.
    assert len({Corpus(divided[1], split, seed=1).fingerprint() for split in SIDES}) == 3


def test_fingerprints_without_shares_are_those_of_before_there_were_any(tmp_path: Path) -> None:
    one, other = (Path(written(tmp_path / name, "parallel", ["a", "b"])) for name in ("a.tsv", "b.tsv"))
    sha = [hashlib.sha256(path.read_bytes()).hexdigest() + "\n" for path in (one, other)]
    said = '["en", "ko", null]'
    alone, both = (
        ParallelData(source="en", target="ko", train=[files]) for files in ([str(one)], [str(one), str(other)])
    )
    assert fingerprint(alone) == hashlib.sha256(f"{said}one file of pairs {sha[0]}".encode()).hexdigest()
    assert fingerprint(both) == hashlib.sha256(f"{said}{sha[0]}{sha[1]}".encode()).hexdigest()


@pytest.mark.parametrize(
    ("kind", "facts"),
    [
        ("labelled", '["labelled", "text", null, "label"]'),
        ("tagged", '["tagged"]'),
        ("text", '["text"]'),
    ],
)
def test_what_data_is_known_by_has_not_changed(tmp_path: Path, kind: str, facts: str) -> None:
    """Prepared data and unfinished runs are found again by it."""
    file = Path(written(tmp_path / "a.tsv", kind, ["a", "b"]))
    sha = hashlib.sha256(file.read_bytes()).hexdigest() + "\n"
    assert fingerprint(data_of(kind, [str(file)])) == hashlib.sha256(f"{facts}{sha}".encode()).hexdigest()
    shared = f'{facts}{sha}["dev", 0.25, 0.0]'
    assert fingerprint(data_of(kind, [str(file)], dev_share=0.25), "dev") == hashlib.sha256(shared.encode()).hexdigest()


@each_kind
def test_fingerprints_of_every_kind_follow_the_bytes(tmp_path: Path, kind: str) -> None:
    file = written(tmp_path / "a.tsv", kind, ["one", "two"])
    before = Corpus(data_of(kind, [file]), "train", seed=1).fingerprint()
    assert Corpus(data_of(kind, [file]), "train", seed=2).fingerprint() == before
    assert Corpus(data_of(kind, [file], max_len=3), "train", seed=1).fingerprint() == before
    assert Corpus(data_of(kind, [file, file]), "train", seed=1).fingerprint() != before
    written(tmp_path / "a.tsv", kind, ["one", "twos"])
    assert Corpus(data_of(kind, [file]), "train", seed=1).fingerprint() != before
    with pytest.raises(DataError) as caught:
        Corpus(data_of(kind, [str(tmp_path / "nowhere.tsv")]), "train", seed=1).fingerprint()
    assert caught.value.where == str(tmp_path / "nowhere.tsv")


# other files than those of the recipe


@each_kind
def test_other_files_are_read_as_the_same_kind_of_data(tmp_path: Path, kind: str) -> None:
    train = written(tmp_path / "a.tsv", kind, many(9))
    other = written(tmp_path / "b.tsv", kind, ["한글", "other words"])
    data = data_of(kind, [train], dev_share=0.5, test_share=0.25, max_len=7)
    found = data.for_files([other])
    assert type(found) is type(data)
    assert texts_of(found, "test") == ["한글", "other words"]  # all of them: nothing is divided
    assert not found.exists("train")
    assert not found.exists("dev")
    assert found.max_len == 7
    assert texts_of(data_of(kind, [train], dev=train, test=train).for_files([other]), "test") == texts_of(found, "test")


def test_other_files_keep_the_columns(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tb\nx\ty\n", "utf-8")
    found = LabelledData(text="b", label="a").for_files([str(tmp_path / "a.tsv")])
    assert [(e.text, e.label) for e in Corpus(found, "test", seed=1)] == [("y", "x")]


def test_other_files_for_synthetic_data_are_pairs(tmp_path: Path) -> None:
    file = written(tmp_path / "a.tsv", "parallel", ["1 2"])
    found = SyntheticData(problem="copy", source="x", target="y").for_files([file])
    assert found == ParallelData(source="x", target="y", test=[file])
    assert texts_of(found, "test") == ["1 2"]


# documents


def test_documents_are_held_out_whole(tmp_path: Path) -> None:
    documents = [f"Document {i} begins.\nIt goes on." for i in range(300)]
    (tmp_path / "d.txt").write_text("\n\n".join(documents), "utf-8")
    data = DocumentData(train=[str(tmp_path / "d.txt")], dev_share=0.2, test_share=0.1)
    found = {split: list(Corpus(data, split, seed=1)) for split in SPLITS}
    assert sum(map(len, found.values())) == 600
    for sentences in found.values():
        assert len(sentences) > 20
        for first, second in zip(sentences[::2], sentences[1::2], strict=True):
            assert (first.first, second.first) == (True, False)


def divided(folder: Path, documents: list[str], **said: Any) -> dict[str, list[str]]:
    """The documents of every side, from one file."""
    (folder / "d.txt").write_text("\n\n".join(documents), "utf-8")
    data = DocumentData(train=[str(folder / "d.txt")], dev_share=0.3, test_share=0.1, **said)
    found: dict[str, list[str]] = {}
    for split in SIDES:
        sides: list[str] = []
        for sentence in data.read(split, seed=1):
            sides = [*sides, sentence.text] if sentence.first else [*sides[:-1], f"{sides[-1]}\n{sentence.text}"]
        found[split] = sides
    return found


@pytest.mark.parametrize("heading", ["BACKGROUND", "개요", "A heading. Of two sentences.\nAnd " + "one more. " * 30])
def test_documents_that_share_a_heading_are_divided(tmp_path: Path, heading: str) -> None:
    documents = [f"{heading}\nCat number {i} sees a thing.\nIt runs." for i in range(200)]
    found = divided(tmp_path, documents, split_sentences=False)
    assert sorted(sum(found.values(), [])) == sorted(line.replace(". \n", ".\n") for line in documents)
    assert len(found["dev"]) == pytest.approx(60, abs=4 * (200 * 0.3 * 0.7) ** 0.5)
    assert len(found["test"]) == pytest.approx(20, abs=4 * (200 * 0.1 * 0.9) ** 0.5)


def test_documents_that_begin_alike_stand_on_one_side_however_they_are_composed(tmp_path: Path) -> None:
    for i in range(20):
        text = f"{i}번째 글입니다.\n" + "긴 문서가 이어집니다.\n" * 200
        versions = [text + "끝.", text + "다른 끝.", unicodedata.normalize("NFD", text)]
        assert sorted(map(len, divided(tmp_path, versions).values())) == [0, 0, 3]


def test_a_divided_document_is_streamed() -> None:
    data = DocumentData(train=["d.txt"], dev_share=0.01)
    endless = (Sentence(f"Sentence {i} of a document.", i == 0, "d.txt:1") for i in count())
    found = data._documents(endless, "train")
    assert [next(found).text for _ in range(500)] == [f"Sentence {i} of a document." for i in range(500)]
    assert next(endless).text == "Sentence 500 of a document."


def test_documents_that_are_divided_otherwise_are_another_corpus(tmp_path: Path, monkeypatch: Any) -> None:
    """Prepared data of another rule has documents that are dev here."""
    (tmp_path / "d.txt").write_text("One.\n\nTwo.\n", "utf-8")
    whole = DocumentData(train=[str(tmp_path / "d.txt")])
    shared = replace(whole, dev_share=0.5)
    before = [fingerprint(data) for data in (whole, shared)]
    monkeypatch.setattr("jumok.examples.plain.BEGINNING", 7)
    after = [fingerprint(data) for data in (whole, shared)]
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, False]


def test_a_folder_that_was_moved_is_the_same_corpus(tmp_path: Path) -> None:
    def corpus(name: str) -> Corpus[Any]:
        return Corpus(DocumentData(train=[str(tmp_path / name)], format="file"), "train", seed=1)

    (tmp_path / "a" / "deep").mkdir(parents=True)
    (tmp_path / "a" / "one.txt").write_text("One.\n", "utf-8")
    (tmp_path / "a" / "deep" / "two.txt").write_text("Two.\n", "utf-8")
    before = corpus("a").fingerprint()
    (tmp_path / "a").rename(tmp_path / "b")
    assert corpus("b").fingerprint() == before
    (tmp_path / "b" / "one.txt").rename(tmp_path / "b" / "three.txt")  # names decide the order
    assert corpus("b").fingerprint() != before


def test_a_folder_of_documents_is_known_by_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One. Two.\n", "utf-8")
    (tmp_path / "b.txt").write_text("Three.\n", "utf-8")
    corpus = Corpus(DocumentData(train=[str(tmp_path)], format="file"), "train", seed=1)
    assert [(s.text, s.first) for s in corpus] == [("One.", True), ("Two.", False), ("Three.", True)]
    before = corpus.fingerprint()
    assert corpus.fingerprint() == before
    (tmp_path / "b.txt").write_text("Four.\n", "utf-8")
    assert corpus.fingerprint() != before


def test_how_documents_are_read_is_part_of_their_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One. Two.\n\nThree.\n", "utf-8")
    prints = {
        Corpus(
            DocumentData(train=[str(tmp_path / "a.txt")], format=form, split_sentences=split), "train", seed=1
        ).fingerprint()
        for form in ("blank_line", "line", "file")
        for split in (True, False)
    }
    assert len(prints) == 6


def test_a_row_of_a_table_is_a_document(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("n\ttext\n1\tOne. Two.\n2\t \n3\tThree.\n", "utf-8")
    (tmp_path / "b.txt").write_text("Four.\n", "utf-8")
    files = [str(tmp_path / "a.tsv"), str(tmp_path / "b.txt")]

    def read(**options: Any) -> list[tuple[str, bool]]:
        data = DocumentData(train=files, **options)
        return [(sentence.text, sentence.first) for sentence in Corpus(data, "train", seed=1)]

    assert read(column="text") == [("One.", True), ("Two.", False), ("Three.", True), ("Four.", True)]
    assert read(column="text", split_sentences=False)[:2] == [("One. Two.", True), ("Three.", True)]
    data = DocumentData(train=files, column="text")
    assert fingerprint(data) != fingerprint(replace(data, column="n"))
    with pytest.raises(DataError) as caught:
        read(column="nothing")
    assert (caught.value.code, caught.value.where) == ("data.columns", f"{files[0]}:1")
    assert "nothing" in caught.value.what


@pytest.mark.parametrize("columns", [{"train": ["a.tsv"]}, {"train": ["a.txt"], "column": "text"}])
def test_the_column_of_documents_goes_with_tables(columns: dict[str, Any]) -> None:
    with pytest.raises(RecipeError) as caught:
        read_config(DocumentData, columns, what="[data]")
    assert [(mistake.key, mistake.code) for mistake in caught.value.mistakes] == [("column", "recipe.mismatch")]


# cross-validation


@each_kind
@pytest.mark.parametrize("dev_share", [0.0, 0.2])
def test_every_text_is_tested_in_one_fold(tmp_path: Path, kind: str, dev_share: float) -> None:
    texts = many(300)
    file = written(tmp_path / "a.tsv", kind, texts)
    tested: Counter[str] = Counter()
    for fold in (1, 2, 3):
        data = data_of(kind, [file], folds=3, fold=fold, dev_share=dev_share)
        sides = {split: texts_of(data, split) for split in SIDES}
        assert Counter(sides["train"]) + Counter(sides["dev"]) + Counter(sides["test"]) == Counter(texts)
        assert not set(sides["train"]) & set(sides["test"])
        assert not set(sides["dev"]) & (set(sides["train"]) | set(sides["test"]))
        assert bool(sides["dev"]) == data.exists("dev") == bool(dev_share)
        assert data.exists("test")
        tested += Counter(sides["test"])
    assert tested == Counter(texts)


@each_kind
def test_folds_and_the_dev_data_of_each_are_about_as_large_as_asked(tmp_path: Path, kind: str) -> None:
    file = written(tmp_path / "a.tsv", kind, [f"text {i}" for i in range(5000)])
    dev = []
    for fold in range(1, 6):
        data = data_of(kind, [file], folds=5, fold=fold, dev_share=0.1)
        assert len(texts_of(data, "test")) == pytest.approx(1000, abs=4 * (5000 * 0.2 * 0.8) ** 0.5)
        dev.append(set(texts_of(data, "dev")))
        assert len(dev[-1]) == pytest.approx(400, abs=4 * (4000 * 0.1 * 0.9) ** 0.5)
    # Dev is drawn by another hash than the folds: what is dev in one fold is so in all, but where it is tested.
    every = set.union(*dev)
    assert all(sum(text in each for each in dev) == 4 for text in every)


def test_every_fold_has_its_share_of_every_label(tmp_path: Path) -> None:
    labels = ["often"] * 52 + ["rare"] * 6 + ["pair"] * 2
    rows = [f"text {i}\t{label}\n" for i, label in enumerate(labels)]
    (tmp_path / "a.tsv").write_text("text\tlabel\n" + "".join(rows[::2]), "utf-8")
    (tmp_path / "b.tsv").write_text("text\tlabel\n" + "".join(rows[1::2]), "utf-8")
    files = [str(tmp_path / "a.tsv"), str(tmp_path / "b.tsv")]
    for fold in range(1, 6):
        data = LabelledData(train=files, folds=5, fold=fold)
        counts = Counter(example.label for example in data.read("test", seed=1))
        assert counts.total() == 12
        assert counts["often"] in (10, 11)
        assert counts["rare"] in (1, 2)
        assert {example.label for example in data.read("train", seed=1)} == {"often", "rare", "pair"}


def test_numbers_are_dealt_out_evenly_and_texts_stay_together(tmp_path: Path) -> None:
    rows = [f"text {i % 25}\t{i / 7}\n" for i in range(50)]
    (tmp_path / "a.tsv").write_text("text\tlabel\n" + "".join(rows), "utf-8")
    folds = [LabelledData(train=[str(tmp_path / "a.tsv")], folds=5, fold=fold) for fold in range(1, 6)]
    for data in folds:
        tested = Counter(example.text for example in data.read("test", seed=1))
        assert sorted(tested.values()) == [2] * 5


def test_rows_that_are_left_out_are_told_once(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("text\tlabel\na\tx\nno label\nb\ty\nc\tx\n", "utf-8")
    data = LabelledData(train=[str(tmp_path / "a.tsv")], folds=2, fold=1, when_wrong="skip")
    with pytest.warns(UserWarning, match="1 skipped") as told:
        sides = [[example.text for example in data.read(split, seed=1)] for split in ("train", "test")]
    assert len(told) == 2  # each side is read
    assert sorted(sides[0] + sides[1]) == ["a", "b", "c"]


def test_dev_files_stay_as_they_are_in_every_fold(tmp_path: Path) -> None:
    texts = many(100)
    train, dev = written(tmp_path / "a.tsv", "text", texts), written(tmp_path / "b.tsv", "text", texts)
    data = data_of("text", [train], dev=dev, folds=4, fold=2)
    assert texts_of(data, "dev") == texts
    assert Counter(texts_of(data, "train")) + Counter(texts_of(data, "test")) == Counter(texts)


def test_documents_are_folded_whole(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_text("\n\n".join(f"Document {i} begins.\nIt goes on." for i in range(99)), "utf-8")
    for fold in (1, 2):
        data = DocumentData(train=[str(tmp_path / "d.txt")], folds=2, fold=fold)
        sentences = list(Corpus(data, "test", seed=1))
        assert len(sentences) > 40
        assert [sentence.first for sentence in sentences] == [True, False] * (len(sentences) // 2)


@pytest.mark.parametrize("kind", EVERY_DATA)
@pytest.mark.parametrize(
    ("said", "key", "code", "fact"),
    [
        ({"folds": 1, "fold": 1}, "folds", "recipe.mismatch", "2"),
        ({"fold": 1}, "fold", "recipe.mismatch", "folds = 0"),
        ({"folds": 5, "fold": 6}, "fold", "recipe.mismatch", "folds = 5 (got 6)"),
        ({"folds": 5, "fold": 0}, "fold", "recipe.value", "1 (got 0)"),
        ({"folds": -1, "fold": 1}, "folds", "recipe.value", "0 (got -1)"),
        ({"folds": 2, "fold": 1, "test": ["a"]}, "folds", "recipe.mismatch", "test files"),
        ({"folds": 2, "fold": 1, "test_share": 0.1}, "folds", "recipe.mismatch", "test_share"),
    ],
)
def test_folds_that_make_no_sense(kind: type, said: dict[str, Any], key: str, code: str, fact: str) -> None:
    needed: dict[str, Any] = {"source": "en", "target": "ko"} if kind is ParallelData else {}
    with pytest.raises(RecipeError) as caught:
        read_config(kind, {**needed, **said}, what="[data]")
    assert [(mistake.key, mistake.code) for mistake in caught.value.mistakes] == [(key, code)]
    assert fact in caught.value.what


@each_kind
def test_fingerprints_follow_the_folds(tmp_path: Path, kind: str) -> None:
    data = data_of(kind, [written(tmp_path / "a.tsv", kind, many(20))])
    folds = [{}, {"folds": 2, "fold": 1}, {"folds": 2, "fold": 2}, {"folds": 3, "fold": 1}]
    divided: list[Any] = [replace(data, **said) for said in folds]
    assert len({fingerprint(each) for each in divided}) == len(folds)
    assert len({fingerprint(divided[1], split) for split in ("train", "test")}) == 2


@each_kind
def test_other_files_are_not_folded(tmp_path: Path, kind: str) -> None:
    file = written(tmp_path / "a.tsv", kind, many(9))
    assert texts_of(data_of(kind, [file], folds=3, fold=1).for_files([file]), "test") == many(9)


# options of the kinds


def test_a_table_without_a_header_and_labels_to_skip(tmp_path: Path) -> None:
    (tmp_path / "cola.tsv").write_text("gj04\t1\t\tThe pond froze.\ngj04\t-\t*\tThey drank the pub.\n", "utf-8")
    names = ["source", "label", "mark", "sentence"]
    data = LabelledData(train=[str(tmp_path / "cola.tsv")], text="sentence", header=names)
    assert [(e.text, e.label) for e in Corpus(data, "train", seed=1)] == [
        ("The pond froze.", "1"),
        ("They drank the pub.", "-"),
    ]
    skipping = replace(data, skip_labels=["-"])
    assert texts_of(skipping, "train") == ["The pond froze."]
    plain = replace(data, header=None)
    assert len({fingerprint(each) for each in (data, skipping, plain)}) == 3
    assert texts_of(skipping.for_files(data.train), "test") == ["The pond froze."]


def test_a_separator_is_not_part_of_what_is_read(tmp_path: Path) -> None:
    file = written(tmp_path / "a.tsv", "labelled", ["one"])
    assert LabelledData().separator == "|"
    assert fingerprint(LabelledData(train=[file], separator=";")) == fingerprint(LabelledData(train=[file]))
    with pytest.raises(RecipeError) as caught:
        read_config(LabelledData, {"separator": " "}, what="[data]")
    assert [(mistake.key, mistake.code) for mistake in caught.value.mistakes] == [("separator", "recipe.mismatch")]


@pytest.mark.parametrize("columns", [{"pair": "label"}, {"text": "label"}])
def test_what_is_to_be_told_is_not_among_what_is_read(columns: dict[str, str]) -> None:
    with pytest.raises(RecipeError) as caught:
        read_config(LabelledData, columns, what="[data]")
    assert [(mistake.key, mistake.code) for mistake in caught.value.mistakes] == [("label", "recipe.mismatch")]


@pytest.mark.parametrize("packed", [False, True])
def test_tagged_files_are_columns_or_marks_by_their_name(tmp_path: Path, packed: bool) -> None:
    line = json.dumps({"text": "서울에서", "spans": [{"start": 0, "end": 2, "label": "LOC"}]}).encode()
    marked = tmp_path / ("a.jsonl.gz" if packed else "a.JSONL")
    marked.write_bytes(gzip.compress(line) if packed else line)
    (tmp_path / "a.conll").write_text("서울 B-LOC\n", "utf-8")
    (found,) = Corpus(TaggedData(train=[str(marked)]), "train", seed=1)
    assert isinstance(found, Spans)
    assert found.spans == found.marked == [Span(0, 2, "LOC")]
    assert texts_of(TaggedData(train=[str(tmp_path / "a.conll")]), "train") == ["서울"]


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_two_kinds_of_tagged_files_are_refused(split: str) -> None:
    files = {"train": ["a.conll"], "dev": ["b.conll"], "test": ["c.conll"]}
    files[split] = [*files[split], "d.jsonl"] if split == "train" else ["d.jsonl"]
    with pytest.raises(RecipeError) as caught:
        read_config(TaggedData, files, what="[data]")
    assert caught.value.code == "recipe.mismatch"
    assert "a.conll and d.jsonl" in caught.value.what


def test_the_same_bytes_as_columns_and_as_marks_are_two_corpora(tmp_path: Path) -> None:
    for name in ("a.conll", "a.jsonl"):
        (tmp_path / name).write_text('{"text": "a", "spans": []}\n', "utf-8")
    prints = {fingerprint(TaggedData(train=[str(tmp_path / name)])) for name in ("a.conll", "a.jsonl")}
    assert len(prints) == 2


def test_a_paragraph_with_all_its_questions_is_on_one_side(tmp_path: Path) -> None:
    paragraphs = [
        {"context": f"Text {i}.", "qas": [asked(f"{i} {k}") for k in range(3)]} for i in [*range(60), *range(30, 90)]
    ]
    for number, paragraph in enumerate(paragraphs):
        for qas in paragraph["qas"]:
            qas["id"] += f" {number}"
    (tmp_path / "a.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}), "utf-8")
    data = QuestionData(train=[str(tmp_path / "a.json")], dev_share=0.3, test_share=0.3)
    sides = [Counter(texts_of(data, split)) for split in SIDES]
    assert sum(sides, Counter()) == Counter({f"Text {i}.": 6 if 30 <= i < 60 else 3 for i in range(90)})
    assert not any(set(one) & set(other) for one, other in combinations(sides, 2))


def asked(identity: str) -> dict[str, Any]:
    return {"id": identity, "question": "What?", "answers": [{"text": "Text", "answer_start": 0}]}


@pytest.mark.parametrize(
    "kind", [LabelledData, TaggedData, RelationData, QuestionData, ChoiceData, ToyReviews, ToyJosa]
)
def test_long_texts_are_read_in_windows_unless_said_otherwise(kind: Any) -> None:
    data = kind()
    assert (data.max_len, data.long_texts, data.stride) == (256, "windows", 64)
    assert read_config(kind, {"long_texts": "refuse", "stride": 0}, what="[data]").long_texts == "refuse"
    with pytest.raises(RecipeError) as caught:
        read_config(kind, {"long_texts": "left out", "stride": -1}, what="[data]")
    rule, stride = caught.value.mistakes
    assert [(rule.key, rule.code), (stride.key, stride.code)] == [
        ("long_texts", "recipe.value"),
        ("stride", "recipe.value"),
    ]
    assert [known for known in ("'windows'", "'truncate'", "'refuse'") if known not in rule.what] == []


def test_text_and_pairs_have_no_windows() -> None:
    for kind in (TextData, DocumentData, ToyGrammar, ToyStories):
        with pytest.raises(RecipeError) as caught:
            read_config(kind, {"stride": 1}, what="[data]")
        assert caught.value.code == "recipe.unknown_key"


@pytest.mark.parametrize(
    ("toy", "kind", "text"),
    [
        (ToyReviews, "labelled", "text"),
        (ToyTopics, "labelled", "text"),
        (ToySimilarity, "labelled", "text_a"),
        (ToyNames, "tagged", None),
        (ToyJosa, "tagged", None),
        (ToyRelations, "relations", None),
        (ToyQuestions, "questions", None),
        (ToyChoices, "choices", None),
        (ToyGrammar, "text", None),
        (ToyStories, "documents", None),
    ],
)
def test_other_files_for_toys(toy: Any, kind: str, text: str | None) -> None:
    found = toy(language="ko").for_files(["a"])
    assert not isinstance(found, SyntheticData | ParallelData)
    assert (found.kind, found.language) == (kind, "ko")
    assert found.exists("test")
    assert not found.exists("train")
    if isinstance(found, LabelledData):
        assert (found.text, found.pair) == (text, "text_b" if text == "text_a" else None)


def test_rows_that_cannot_be_read_are_left_out_if_asked(tmp_path: Path) -> None:
    path = tmp_path / "qqp.tsv"
    path.write_text("text\tlabel\none\t1\ntwo\nthree\t\nfour\t0\n", "utf-8")
    data = LabelledData(train=[str(path)])
    with pytest.raises(DataError) as caught:
        texts_of(data, "train")
    assert (caught.value.code, caught.value.where) == ("data.columns", f"{path}:3")
    lenient = replace(data, when_wrong="skip")
    with pytest.warns(UserWarning, match=r"2 skipped in .*qqp.tsv; the first: 1 columns, .*:3"):
        assert texts_of(lenient, "train") == ["one", "four"]
    assert fingerprint(lenient) != fingerprint(data)
    path.write_text("text\tnothing\none\t1\n", "utf-8")
    with pytest.raises(DataError) as caught:  # the file is wrong, not a row
        texts_of(lenient, "train")
    assert (caught.value.code, caught.value.where) == ("data.columns", f"{path}:1")
