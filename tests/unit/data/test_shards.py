"""Token shards: what was written is what is read, or an error that names the file."""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumok.data import shards as shards_module
from jumok.data.shards import Shards, build_shards, in_chunks
from jumok.errors import CheckpointError, DataError, RunError

EXAMPLES = [([5, 6, 7], [1]), ([], [9, 8]), ([4], []), ([2, 2, 2, 2], [3, 1])]
FILES = ["source.tokens", "source.offsets", "target.tokens", "target.offsets"]
sequences = st.lists(st.integers(0, 999), max_size=8)


def build(folder: Path, examples: object = EXAMPLES, *, vocab_size: int = 1000, **facts: object) -> Shards:
    build_shards(folder, examples, fields=("source", "target"), vocab_size=vocab_size, facts=facts)  # type: ignore[arg-type]
    return Shards(folder)


def read(shards: Shards) -> list[tuple[list[int], list[int]]]:
    return [(shards.fields["source"][i].tolist(), shards.fields["target"][i].tolist()) for i in range(len(shards))]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(examples=st.lists(st.tuples(sequences, sequences), max_size=12))
def test_round_trip(examples: list[tuple[list[int], list[int]]], tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    shutil.rmtree(folder, ignore_errors=True)
    built = build(folder, examples, read=len(examples))
    assert read(built) == examples
    assert len(built) == len(examples)
    assert built.facts == {"read": len(examples)}
    everything = np.arange(len(examples))
    assert built.fields["source"].lengths(everything).tolist() == [len(source) for source, _ in examples]


@pytest.mark.parametrize("together", [1, 4, 1 << 17])
def test_how_many_are_written_together_changes_nothing(
    together: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards_module, "WRITTEN_TOGETHER", together)
    assert read(build(tmp_path / "shards")) == EXAMPLES
    found = {name: (tmp_path / "shards" / name).read_bytes() for name in FILES}
    expected = [np.array([5, 6, 7, 4, 2, 2, 2, 2], "<u2"), np.array([0, 3, 3, 4, 8], "<i8")]
    expected += [np.array([1, 9, 8, 3, 1], "<u2"), np.array([0, 1, 3, 3, 5], "<i8")]
    assert found == {name: array.tobytes() for name, array in zip(FILES, expected, strict=True)}


def test_pages_can_be_given_back_and_read_again(tmp_path: Path) -> None:
    shards = build(tmp_path / "shards")
    before = read(shards)
    shards.release_pages()
    assert read(shards) == before == EXAMPLES


@pytest.mark.parametrize(("vocab_size", "width"), [(300, 2), (1 << 16, 2), ((1 << 16) + 1, 4)])
def test_width_follows_the_vocabulary(vocab_size: int, width: int, tmp_path: Path) -> None:
    last = vocab_size - 1
    shards = build(tmp_path / "shards", [([0, last], [last])], vocab_size=vocab_size)
    assert shards.fields["source"].tokens.dtype.itemsize == width
    assert (tmp_path / "shards" / "source.tokens").stat().st_size == 2 * width
    assert read(shards) == [([0, last], [last])]


def test_an_id_that_does_not_fit_is_not_wrapped_around(tmp_path: Path) -> None:
    with pytest.raises(OverflowError):
        build(tmp_path / "shards", [([1 << 16], [1])])
    assert list(tmp_path.iterdir()) == []


def test_facts_are_read_after_the_last_example(tmp_path: Path) -> None:
    facts = {"read": 0}

    def counting() -> Iterator[Sequence[Sequence[int]]]:
        for example in EXAMPLES:
            facts["read"] += 1
            yield example

    build_shards(tmp_path / "s", counting(), fields=("source", "target"), vocab_size=99, facts=facts)
    assert Shards(tmp_path / "s").facts == {"read": len(EXAMPLES)}


# damage


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def extend(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def delete(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("damage", [flip, truncate, extend, empty, delete])
@pytest.mark.parametrize("name", [*FILES, "index.json"])
def test_a_damaged_file_is_named(name: str, damage: object, tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    build(folder)
    damage(folder / name)  # type: ignore[operator]
    with pytest.raises(CheckpointError) as caught:
        Shards(folder)
    assert caught.value.where == str(folder / name)
    assert caught.value.code == ("checkpoint.torn" if damage is delete else "checkpoint.altered")


@pytest.mark.parametrize("manifest", [b"", b"{}", b"[]", b"\xff\xfe", b'{"index.json": 1}', b"[" * 100_000])
def test_a_manifest_that_verifies_nothing_is_refused(manifest: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    build(folder)
    (folder / "manifest.json").write_bytes(manifest)
    with pytest.raises(CheckpointError) as caught:
        Shards(folder)
    assert caught.value.code in ("checkpoint.torn", "checkpoint.altered")


def rewrite_index(folder: Path, **changes: object) -> None:
    """As another program would have written it, hashes included."""
    index = json.loads((folder / "index.json").read_text())
    (folder / "index.json").write_text(json.dumps({**index, **changes}))
    manifest = json.loads((folder / "manifest.json").read_text())
    content = (folder / "index.json").read_bytes()
    manifest["index.json"] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_another_format_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    build(folder)
    rewrite_index(folder, format=999)
    with pytest.raises(DataError) as caught:
        Shards(folder)
    assert (caught.value.code, caught.value.where) == ("data.shard_format", str(folder / "index.json"))
    assert "999" in caught.value.what


def test_a_count_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    build(folder)
    rewrite_index(folder, count=3)
    with pytest.raises(DataError) as caught:
        Shards(folder)
    assert (caught.value.code, caught.value.where) == ("data.shard_torn", str(folder / "source.offsets"))


# half-built


def breaking() -> Iterator[Sequence[Sequence[int]]]:
    yield from EXAMPLES
    raise RuntimeError("in the middle")


def test_a_failure_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="in the middle"):
        build(tmp_path / "cache" / "shards", breaking())
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_failure_in_the_middle_leaves_the_old_ones(tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    build(folder)
    with pytest.raises(RuntimeError, match="in the middle"):
        build(folder, breaking())
    assert read(Shards(folder)) == EXAMPLES
    assert [path.name for path in tmp_path.iterdir()] == ["shards"]


def test_a_full_disk_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shards_module, "_write_fields", full_disk)
    with pytest.raises(RunError) as caught:
        build(tmp_path / "shards")
    assert (caught.value.code, caught.value.where) == ("run.disk_full", str(tmp_path / "shards"))
    assert list(tmp_path.iterdir()) == []


def test_nothing_has_its_name_before_it_is_whole(tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    seen: list[bool] = []

    def watching() -> Iterator[Sequence[Sequence[int]]]:
        for example in EXAMPLES:
            seen.append(folder.exists())
            yield example

    build(folder, watching())
    assert seen == [False] * len(EXAMPLES)
    assert folder.exists()


def test_whoever_is_done_first_wins(tmp_path: Path) -> None:
    build(tmp_path / "shards")
    assert read(build(tmp_path / "shards", [([1], [2])])) == EXAMPLES
    assert [path.name for path in tmp_path.iterdir()] == ["shards"]


@given(st.lists(st.integers()), st.integers(1, 5))
@settings(deadline=None)
def test_chunks_are_the_items_in_order(items: list[int], size: int) -> None:
    chunks = list(in_chunks(iter(items), size))
    assert [item for chunk in chunks for item in chunk] == items
    assert all(len(chunk) == size for chunk in chunks[:-1])
    assert all(1 <= len(chunk) <= size for chunk in chunks)


@given(st.lists(st.integers(1, 20)), st.integers(1, 30))
@settings(deadline=None)
def test_chunks_of_items_with_weights(items: list[int], size: int) -> None:
    chunks = list(in_chunks(iter(items), size, weight=lambda item: item))
    assert [item for chunk in chunks for item in chunk] == items
    assert all(sum(chunk) >= size for chunk in chunks[:-1])
    assert all(sum(chunk[:-1]) < size for chunk in chunks)
