"""Corpora: known by their content, tokenised once, with every pair that is left out counted."""

import hashlib
import os
import shutil
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from jumok.config import read_config
from jumok.data.corpus import (
    SPLITS,
    Corpus,
    DataConfig,
    DocumentData,
    LabelledData,
    ParallelData,
    TaggedData,
    TextData,
    Texts,
    open_shards,
    other_files,
)
from jumok.data.made import SyntheticData
from jumok.data.shards import Shards
from jumok.data.synthetic import Split, generate
from jumok.errors import DataError, RecipeError
from jumok.prepare import cache_folder
from jumok.tasks.translation import encode_pairs
from jumok.text.formats import Pair
from jumok.text.labelled import Labelled, Tagged
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import EOS_ID, TokenizerConfig

ENGLISH = "the fox\nthe dog\na fox and a dog\n"
KOREAN = "여우\n개\n여우와 개\n"
Prepare = Callable[..., Shards]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))
    return cache_folder()


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "train.en").write_text(ENGLISH, "utf-8")
    (tmp_path / "train.ko").write_text(KOREAN, "utf-8")
    return [str(tmp_path / "train.en"), str(tmp_path / "train.ko")]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TokenizerConfig(kind="character", vocab_size=400), [ENGLISH, KOREAN])


@pytest.fixture
def prepare(tokenizer: Tokenizer, cache: Path) -> Prepare:
    def open_with(corpus: Corpus[Pair], source: Tokenizer = tokenizer) -> Shards:
        both = Tokenizers(source, tokenizer)
        max_len = corpus.data.max_len  # type: ignore[attr-defined]
        return open_shards(
            cache,
            [corpus.fingerprint(), source.sha256, tokenizer.sha256, max_len],
            lambda facts: encode_pairs(corpus, both, max_len, facts),
            fields=("source", "target"),
            vocab_size=tokenizer.vocab_size,
        )

    return open_with


def parallel(*corpora: list[str], **options: object) -> ParallelData:
    return ParallelData(source="en", target="ko", train=list(corpora), **options)  # type: ignore[arg-type]


def corpus_of(data: ParallelData | SyntheticData, split: Split = "train", seed: int = 1) -> Corpus[Pair]:
    return Corpus(data, split, seed=seed)


def fingerprint(data: ParallelData | SyntheticData, split: Split = "train", seed: int = 1) -> str:
    return corpus_of(data, split, seed).fingerprint()


# pairs


def test_pairs_of_files_in_order(files: list[str]) -> None:
    corpus = corpus_of(parallel(files, files[::-1]))
    pairs = [(pair.source, pair.target) for pair in corpus]
    forth = list(zip(ENGLISH.splitlines(), KOREAN.splitlines(), strict=True))
    assert pairs == forth + [(target, source) for source, target in forth]
    assert [(pair.source, pair.target) for pair in corpus] == pairs  # it can be read again
    assert files[0] in corpus.name
    assert files[1] in corpus.name


def test_splits_have_their_files(files: list[str]) -> None:
    data = parallel(files, dev=files[::-1])
    assert [pair.source for pair in corpus_of(data, "dev")] == KOREAN.splitlines()
    assert list(corpus_of(data, "test")) == []


def test_a_split_without_files_or_pairs_does_not_exist(files: list[str]) -> None:
    parts: tuple[Split, ...] = ("train", "dev", "test")
    assert [corpus_of(parallel(files, dev=files), split).exists() for split in parts] == [True, True, False]
    synthetic = SyntheticData(problem="copy", n_train=0, n_dev=1, n_test=0)
    assert [corpus_of(synthetic, split).exists() for split in parts] == [False, True, False]


def test_synthetic_pairs_are_the_generators() -> None:
    data = SyntheticData(problem="reverse", n_train=7, n_dev=3, n_test=4, length=5)
    for split, n in (("train", 7), ("dev", 3), ("test", 4)):
        pairs = [(pair.source, pair.target) for pair in corpus_of(data, split, seed=9)]  # type: ignore[arg-type]
        assert pairs == list(generate("reverse", split, n=n, seed=9, max_len=5))  # type: ignore[arg-type]
        assert len(pairs) == n


def test_texts_of_a_side_or_both(files: list[str]) -> None:
    corpus = corpus_of(parallel(files))
    english, korean = ENGLISH.splitlines(), KOREAN.splitlines()
    assert list(Texts(corpus, lambda pair: [pair.source])) == english
    assert list(Texts(corpus, lambda pair: [pair.target])) == korean
    both = Texts(corpus, lambda pair: [pair.source, pair.target])
    assert list(both) == list(both) == [text for pair in zip(english, korean, strict=True) for text in pair]


@pytest.mark.parametrize("files", [["a", "b", "c"], ["a", "b", "c", "d"]])
def test_a_corpus_is_one_file_or_two(files: list[str]) -> None:
    said = {"source": "en", "target": "ko"}
    with pytest.raises(RecipeError, match="train.1: must have at most 2 items") as caught:
        read_config(ParallelData, {**said, "train": [["x"], files], "dev": files}, what="[data]")
    assert "dev: must have at most 2 items" in str(caught.value)
    with pytest.raises(DataError, match="no known format"):  # files that no recipe names, such as the doctor's
        next(iter(corpus_of(parallel(files))))


def test_impossible_lengths_are_refused() -> None:
    with pytest.raises(RecipeError, match="max_len: must be at least 1"):
        read_config(ParallelData, {"source": "en", "target": "ko", "max_len": 0}, what="[data]")


# fingerprints


def test_fingerprint_follows_the_bytes(files: list[str]) -> None:
    before = fingerprint(parallel(files))
    for file in files:
        content = Path(file).read_bytes()
        Path(file).write_bytes(content.replace(b"\n", b".\n", 1))
        assert fingerprint(parallel(files)) != before
        Path(file).write_bytes(content)
    assert fingerprint(parallel(files)) == before


def test_fingerprint_does_not_follow_the_path(files: list[str], tmp_path: Path) -> None:
    before = fingerprint(parallel(files))
    moved = [str(shutil.copy(file, tmp_path / f"moved{Path(file).suffix}")) for file in files]
    os.utime(moved[0], (0, 0))
    assert fingerprint(parallel(moved)) == before


def test_fingerprint_follows_what_is_read_from_the_files(files: list[str]) -> None:
    data = parallel(files)
    others = [
        parallel(files[::-1]),
        parallel(files, files),
        replace(data, source="de"),
        replace(data, columns=("a", "b")),
    ]
    assert len({fingerprint(other) for other in [data, *others]}) == len(others) + 1
    assert fingerprint(replace(data, max_len=3)) == fingerprint(data)  # asked for by the shards' own key


def test_two_files_of_pairs_are_not_a_pair_of_files(tmp_path: Path) -> None:
    first, second = tmp_path / "a.tsv", tmp_path / "b.tsv"
    first.write_text("the fox\t여우\n", "utf-8")
    second.write_text("the dog\t개\n", "utf-8")
    one_by_one, side_by_side = parallel([str(first)], [str(second)]), parallel([str(first), str(second)])
    assert [pair.source for pair in corpus_of(one_by_one)] != [pair.source for pair in corpus_of(side_by_side)]
    assert fingerprint(one_by_one) != fingerprint(side_by_side)


def test_fingerprint_of_synthetic_data() -> None:
    data = SyntheticData(problem="reverse", n_train=10, n_dev=5)
    assert fingerprint(data) == fingerprint(replace(data, n_dev=6))
    assert fingerprint(data) != fingerprint(replace(data, n_train=11))
    assert fingerprint(data) != fingerprint(replace(data, problem="copy"))
    assert fingerprint(data) != fingerprint(replace(data, length=5))
    assert fingerprint(data) != fingerprint(data, seed=2)
    # Held-out sets are the same for every seed.
    assert fingerprint(data, "dev") == fingerprint(data, "dev", seed=2)
    assert fingerprint(data, "dev") != fingerprint(replace(data, n_dev=6), "dev")
    assert len({fingerprint(replace(data, n_dev=10, n_test=10), split) for split in ("train", "dev", "test")}) == 3


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        fingerprint(parallel([str(tmp_path / "nowhere.tsv")]))
    assert caught.value.where == str(tmp_path / "nowhere.tsv")


# shards


def test_shards_hold_the_pieces_and_the_end(files: list[str], tokenizer: Tokenizer, prepare: Prepare) -> None:
    shards = prepare(corpus_of(parallel(files)))
    assert len(shards) == 3
    for i, (english, korean) in enumerate(zip(ENGLISH.splitlines(), KOREAN.splitlines(), strict=True)):
        assert shards.fields["source"][i].tolist() == [*tokenizer.encode(english), EOS_ID]
        assert shards.fields["target"][i].tolist() == [*tokenizer.encode(korean), EOS_ID]
    assert shards.facts == {"read": 3, "empty": 0, "too_long": 0, "longest": 17}


def test_shards_are_built_once(files: list[str], prepare: Prepare, cache: Path) -> None:
    first = prepare(corpus_of(parallel(files)))
    assert first.folder.is_relative_to(cache)
    before = {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in first.folder.iterdir()}
    again = prepare(corpus_of(parallel(files)))
    assert again.folder == first.folder
    assert {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in again.folder.iterdir()} == before
    assert [path.name for path in (cache / "shards").iterdir()] == [first.folder.name]


def test_shards_are_built_anew_when_anything_changes(files: list[str], prepare: Prepare) -> None:
    folders = [prepare(corpus_of(parallel(files))).folder]
    folders.append(prepare(corpus_of(parallel(files, max_len=20))).folder)
    other = Tokenizer.train(TokenizerConfig(kind="character", vocab_size=400), ["another"])
    folders.append(prepare(corpus_of(parallel(files)), other).folder)
    Path(files[0]).write_text(ENGLISH.replace("fox", "cat"), "utf-8")
    folders.append(prepare(corpus_of(parallel(files))).folder)
    assert len(set(folders)) == 4


def test_what_is_left_out_is_counted(files: list[str], prepare: Prepare) -> None:
    Path(files[0]).write_text("ok\n\n   \nwords and words\nfine\n", "utf-8")
    Path(files[1]).write_text("좋다\n비었다\n비었다\n길다\n\n", "utf-8")
    shards = prepare(corpus_of(parallel(files, max_len=8)))
    assert len(shards) == 1
    assert shards.facts == {"read": 5, "empty": 3, "too_long": 1, "longest": 4}


def test_the_longest_allowed_pair_stays(files: list[str], tokenizer: Tokenizer, prepare: Prepare) -> None:
    longest = max(len(tokenizer.encode(line)) for line in [*ENGLISH.splitlines(), *KOREAN.splitlines()])
    assert prepare(corpus_of(parallel(files, max_len=longest))).facts["too_long"] == 0
    assert prepare(corpus_of(parallel(files, max_len=longest - 1))).facts["too_long"] == 1


@pytest.mark.parametrize(
    ("english", "korean", "max_len"),
    [("", "", 9), ("\n \n", "가\n나\n", 9), ("long enough\n", "길다\n", 2)],
    ids=["no lines", "no text", "all too long"],
)
def test_an_empty_corpus_is_refused(
    english: str, korean: str, max_len: int, files: list[str], prepare: Prepare, cache: Path
) -> None:
    Path(files[0]).write_text(english, "utf-8")
    Path(files[1]).write_text(korean, "utf-8")
    with pytest.raises(DataError, match="empty corpus") as caught:
        prepare(corpus_of(parallel(files, max_len=max_len)))
    assert files[0] in str(caught.value)
    assert list((cache / "shards").iterdir()) == []


def test_synthetic_shards(prepare: Prepare, cache: Path) -> None:
    shards = prepare(corpus_of(SyntheticData(problem="reverse", n_train=50, length=6)))
    assert len(shards) == 50
    assert prepare(corpus_of(SyntheticData(problem="reverse", n_train=50, length=6))).folder == shards.folder
    assert len(list((cache / "shards").iterdir())) == 1


@pytest.mark.parametrize("options", [{"n_train": -1}, {"n_dev": -1}, {"n_test": -1}, {"length": 2}, {"max_len": 0}])
def test_impossible_synthetic_data_is_refused(options: dict[str, int]) -> None:
    with pytest.raises(RecipeError, match=next(iter(options))):
        read_config(SyntheticData, {"problem": "reverse", **options}, what="[data]")


# labelled, tagged and plain text


def written(path: Path, kind: str, texts: list[str]) -> str:
    """A file of the kind with these texts (words without tabs), the label or tag being the number of the text."""
    match kind:
        case "parallel":
            content = "".join(f"{text}\t{i}\n" for i, text in enumerate(texts))
        case "labelled":
            content = "label\ttext\n" + "".join(f"{i}\t{text}\n" for i, text in enumerate(texts))
        case "tagged":
            content = "".join("".join(f"{word}\t{i}\n" for word in text.split()) + "\n" for i, text in enumerate(texts))
        case _:
            content = "".join(f"{text}\n" for text in texts)
    path.write_text(content, "utf-8")
    return str(path)


def data_of(kind: str, train: list[str], dev: str | None = None, test: str | None = None, **options: Any) -> DataConfig:
    held_out = {split: [file] for split, file in (("dev", dev), ("test", test)) if file}
    match kind:
        case "parallel":
            corpora = [[file] for file in train]
            return ParallelData(source="en", target="ko", train=corpora, **held_out, **options)
        case "labelled":
            return LabelledData(train=train, **held_out, **options)
        case "tagged":
            return TaggedData(train=train, **held_out, **options)
        case _:
            return TextData(train=train, **held_out, **options)


def texts_of(data: DataConfig, split: Split) -> list[str]:
    def text(example: Any) -> str:
        match example:
            case Pair():
                return example.source
            case Labelled():
                return example.text
            case Tagged():
                return " ".join(example.words)
            case _:
                return str(example)

    return [text(example) for example in Corpus(data, split, seed=1)]


def many(n: int, seed: int = 1) -> list[str]:
    """Texts of a few words; some of them occur more than once."""
    rng = Random(seed)
    words = ["여우", "개", "fox", "dog", "café", "näive", *map(str, range(60))]
    return [" ".join(rng.choices(words, k=rng.randint(1, 4))) for _ in range(n)]


each_kind = pytest.mark.parametrize("kind", ["parallel", "labelled", "tagged", "text"])
SHARES: list[dict[str, float]] = [{"dev_share": 0.2, "test_share": 0.3}, {"dev_share": 0.2}, {"test_share": 0.3}]
SIDES: tuple[Split, ...] = ("train", "dev", "test")


def test_labelled_data_reads_the_columns_it_names(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tb\tc\none\ttwo\t3\n", "utf-8")
    data = LabelledData(train=[str(tmp_path / "a.tsv")], text="b", pair="a", label="c")
    assert list(Corpus(data, "train", seed=1)) == [Labelled("two", "one", "3", f"{tmp_path / 'a.tsv'}:2")]
    prints = {Corpus(replace(data, **change), "train", seed=1).fingerprint() for change in CHANGES}
    assert len(prints) == len(CHANGES)


CHANGES: list[dict[str, Any]] = [{}, {"text": "a"}, {"pair": None}, {"label": "b"}]


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


@pytest.mark.parametrize("kind", [ParallelData, LabelledData, TaggedData, TextData])
@pytest.mark.parametrize("split", ["dev", "test"])
def test_files_and_a_share_for_one_split_are_refused(kind: type, split: str) -> None:
    said: dict[str, Any] = {"source": "en", "target": "ko"} if kind is ParallelData else {}
    with pytest.raises(RecipeError, match=f"{split} has files: {split}_share would"):
        read_config(kind, {**said, split: ["a"], f"{split}_share": 0.1}, what="[data]")
    other = "test" if split == "dev" else "dev"
    assert read_config(kind, {**said, split: ["a"], f"{other}_share": 0.1}, what="[data]").share(other) == 0.1
    with pytest.raises(RecipeError, match="leave nothing to train on"):
        read_config(kind, {**said, "dev_share": 0.5, "test_share": 0.5}, what="[data]")
    with pytest.raises(RecipeError, match=f"{split}_share: must be below 1"):
        read_config(kind, {**said, f"{split}_share": 1.0}, what="[data]")


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
    assert fingerprint(parallel([str(one)])) == hashlib.sha256(f"{said}one file of pairs {sha[0]}".encode()).hexdigest()
    both = parallel([str(one), str(other)])
    assert fingerprint(both) == hashlib.sha256(f"{said}{sha[0]}{sha[1]}".encode()).hexdigest()


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
    found = other_files(data, [other])
    assert type(found) is type(data)
    assert texts_of(found, "test") == ["한글", "other words"]  # all of them: nothing is divided
    assert not found.exists("train")
    assert not found.exists("dev")
    assert found.max_len == 7
    assert texts_of(other_files(data_of(kind, [train], dev=train, test=train), [other]), "test") == texts_of(
        found, "test"
    )


def test_other_files_keep_the_columns(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tb\nx\ty\n", "utf-8")
    found = other_files(LabelledData(text="b", label="a"), [str(tmp_path / "a.tsv")])
    assert [(e.text, e.label) for e in Corpus(found, "test", seed=1)] == [("y", "x")]


def test_other_files_for_synthetic_data_are_pairs(tmp_path: Path) -> None:
    file = written(tmp_path / "a.tsv", "parallel", ["1 2"])
    found = other_files(SyntheticData(problem="copy", source="x", target="y"), [file])
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
