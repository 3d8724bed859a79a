"""Corpora: known by their content, tokenised once, with every pair that is left out counted."""

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jumok.config import read_config
from jumok.data.cache import Cache
from jumok.data.corpus import Corpus, Texts
from jumok.data.shards import Shards
from jumok.errors import DataError, RecipeError
from jumok.examples import Split
from jumok.examples.made.data import SyntheticData
from jumok.examples.made.numbers import generate
from jumok.examples.pairs import Pair, ParallelData
from jumok.tasks.prepare import Recorded, prepare_shards
from jumok.tasks.translation.task import encode_pairs
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import EOS_ID, TokenizerConfig

ENGLISH = "the fox\nthe dog\na fox and a dog\n"
KOREAN = "여우\n개\n여우와 개\n"
Prepare = Callable[..., Shards]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))
    return Cache.of_user()


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "train.en").write_text(ENGLISH, "utf-8")
    (tmp_path / "train.ko").write_text(KOREAN, "utf-8")
    return [str(tmp_path / "train.en"), str(tmp_path / "train.ko")]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TokenizerConfig(kind="character", vocab_size=400), [ENGLISH, KOREAN])


@pytest.fixture
def prepare(tokenizer: Tokenizer, cache: Cache) -> Prepare:
    def open_with(corpus: Corpus[Pair], source: Tokenizer = tokenizer) -> Shards:
        both = Tokenizers(source, tokenizer)
        max_len = corpus.data.max_len  # type: ignore[attr-defined]

        def write() -> Recorded:
            facts: dict[str, Any] = {}
            rows = encode_pairs(corpus, both, max_len, facts)
            return Recorded(rows, ("source", "target"), tokenizer.vocab_size, facts)

        return prepare_shards(cache, [corpus.fingerprint(), source.sha256, tokenizer.sha256, max_len], write)

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
    with pytest.raises(RecipeError) as caught:
        read_config(ParallelData, {**said, "train": [["x"], files], "dev": files}, what="[data]")
    assert [(mistake.key, mistake.code) for mistake in caught.value.mistakes] == [
        ("train.1", "recipe.value"),
        ("dev", "recipe.value"),
    ]
    with pytest.raises(DataError) as unknown:  # files that no recipe names, such as the doctor's
        next(iter(corpus_of(parallel(files))))
    assert (unknown.value.code, unknown.value.where) == ("data.format", ", ".join(files))


def test_impossible_lengths_are_refused() -> None:
    with pytest.raises(RecipeError) as caught:
        read_config(ParallelData, {"source": "en", "target": "ko", "max_len": 0}, what="[data]")
    assert [(mistake.key, mistake.code) for mistake in caught.value.mistakes] == [("max_len", "recipe.value")]


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


def test_shards_are_built_once(files: list[str], prepare: Prepare, cache: Cache) -> None:
    first = prepare(corpus_of(parallel(files)))
    assert first.folder.is_relative_to(cache.folder)
    before = {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in first.folder.iterdir()}
    again = prepare(corpus_of(parallel(files)))
    assert again.folder == first.folder
    assert {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in again.folder.iterdir()} == before
    assert [path.name for path in (cache.folder / "shards").iterdir()] == [first.folder.name]


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
    english: str, korean: str, max_len: int, files: list[str], prepare: Prepare, cache: Cache
) -> None:
    Path(files[0]).write_text(english, "utf-8")
    Path(files[1]).write_text(korean, "utf-8")
    with pytest.raises(DataError) as caught:
        prepare(corpus_of(parallel(files, max_len=max_len)))
    assert (caught.value.code, caught.value.where) == ("data.empty", ", ".join(files))
    assert list((cache.folder / "shards").iterdir()) == []


def test_synthetic_shards(prepare: Prepare, cache: Cache) -> None:
    shards = prepare(corpus_of(SyntheticData(problem="reverse", n_train=50, length=6)))
    assert len(shards) == 50
    assert prepare(corpus_of(SyntheticData(problem="reverse", n_train=50, length=6))).folder == shards.folder
    assert len(list((cache.folder / "shards").iterdir())) == 1


@pytest.mark.parametrize("options", [{"n_train": -1}, {"n_dev": -1}, {"n_test": -1}, {"length": 2}, {"max_len": 0}])
def test_impossible_synthetic_data_is_refused(options: dict[str, int]) -> None:
    with pytest.raises(RecipeError) as caught:
        read_config(SyntheticData, {"problem": "reverse", **options}, what="[data]")
    assert [(mistake.key, mistake.code) for mistake in caught.value.mistakes] == [(next(iter(options)), "recipe.value")]


def test_a_side_with_far_too_many_characters_is_not_tokenized(files: list[str], tokenizer: Tokenizer) -> None:
    class Short(Tokenizer):
        def encode_batch(self, texts: Sequence[str], **more: Any) -> list[list[int]]:
            assert max(map(len, texts)) <= 64 * max_len
            return super().encode_batch(texts, **more)

    max_len = 20
    for file in files:
        with Path(file).open("a", encoding="utf-8") as stream:
            stream.write("x" * (64 * max_len) + "\n" + "x" * (64 * max_len + 1) + "\n")
    careful, facts = Short.from_json(tokenizer.to_json()), dict[str, Any]()
    rows = list(encode_pairs(corpus_of(parallel(files)), Tokenizers(careful, careful), max_len, facts))
    assert (len(rows), facts["read"], facts["too_long"]) == (3, 5, 2)
