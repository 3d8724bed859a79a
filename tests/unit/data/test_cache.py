"""The shared cache: built once, by whoever comes first, rebuilt when damaged, swept of what the dead left behind."""

import fcntl
import multiprocessing
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from jumok.data.cache import Cache, RebuiltWarning
from jumok.data.shards import Shards, build_shards
from jumok.errors import RunError
from jumok.tasks.prepare import prepare_tokenizer
from jumok.text.tokenizer import Tokenizer
from jumok.text.vocabulary import TokenizerConfig

ROWS = [([n, n + 1, 7],) for n in range(300)]
TEXTS = ["the cat sat on the mat", "the dog sat on the cat"]


class Corpus:
    """Enough of one for a vocabulary."""

    name = "made"

    def fingerprint(self) -> str:
        return "0"


def shards(cache: Cache, rows: object = ROWS) -> Shards:
    def build(folder: Path) -> None:
        polled = cache.polled(rows)  # type: ignore[arg-type]
        build_shards(folder, polled, fields=("text",), vocab_size=1000, facts={})

    return cache.entry("shards", ["key"], read=Shards, build=build)


def tokenizer(cache: Cache) -> Tokenizer:
    config = TokenizerConfig(kind="word", vocab_size=12)
    return prepare_tokenizer(config, TEXTS, ["text"], Corpus(), cache)  # type: ignore[arg-type]


def texts(found: Shards) -> list[list[int]]:
    return [found.fields["text"][i].tolist() for i in range(len(found))]


def in_lockstep(folder: Path, barrier: "multiprocessing.synchronize.Barrier", told: "multiprocessing.Queue") -> None:
    def rows() -> Iterator[tuple[list[int]]]:
        """All have found nothing when the first one builds, and all are done with building at once."""
        barrier.wait(30)
        yield from ROWS
        barrier.wait(30)

    try:
        found = texts(shards(Cache(folder), rows()))
        told.put(found == [row[0] for row in ROWS])
    except BaseException as error:
        told.put(repr(error))


def test_processes_that_prepare_the_same_thing_do_not_break_each_other(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    for round_ in range(5):
        folder, n = tmp_path / str(round_), 4
        barrier, told = context.Barrier(n), context.Queue()
        started = [context.Process(target=in_lockstep, args=(folder, barrier, told)) for _ in range(n)]
        for process in started:
            process.start()
        assert [told.get(timeout=60) for _ in started] == [True] * n
        for process in started:
            process.join()
        assert len(list((folder / "shards").iterdir())) == 1


@pytest.mark.parametrize("name", ["text.tokens", "text.offsets", "index.json", "manifest.json"])
def test_a_damaged_entry_is_built_again_and_said_so(name: str, tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    path = shards(cache).folder / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.warns(RebuiltWarning, match=str(path.parent)):
        assert texts(shards(cache)) == [row[0] for row in ROWS]
    assert texts(shards(cache)) == [row[0] for row in ROWS]


def test_a_vocabulary_with_two_tokens_swapped_is_built_again(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    found = tokenizer(cache)
    (path,) = (tmp_path / "tokenizers").rglob("tokenizer.json")
    path.write_text(path.read_text().replace('cat"', '?"').replace('sat"', 'cat"').replace('?"', 'sat"'))
    assert Tokenizer.load(path).sha256 != found.sha256
    with pytest.warns(RebuiltWarning):
        assert tokenizer(cache).sha256 == found.sha256


def test_what_the_dead_left_is_swept_and_what_the_living_write_is_not(tmp_path: Path) -> None:
    (tmp_path / "shards" / "a.tmp-1-0").mkdir(parents=True)
    (tmp_path / "shards" / "a.tmp-1-0" / "text.tokens").write_bytes(b"half")
    living = tmp_path / "shards" / "b.tmp-2-0"
    living.mkdir()
    held = os.open(living, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_SH)
    found = shards(Cache(tmp_path))
    assert {path.name for path in (tmp_path / "shards").iterdir()} == {found.folder.name, "b.tmp-2-0"}
    os.close(held)


def test_whoever_is_asked_to_stop_leaves_nothing_behind(tmp_path: Path) -> None:
    left = 3

    def poll() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise RunError("asked to stop")

    with pytest.raises(RunError):
        shards(Cache(tmp_path, poll))
    assert list((tmp_path / "shards").iterdir()) == []
    assert len(shards(Cache(tmp_path))) == len(ROWS)
