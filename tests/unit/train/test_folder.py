"""The run folder: one process, one recipe, every event."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jumok.errors import CheckpointError, RunError
from jumok.train.folder import RunFolder, refuse_other_recipe
from jumok.train.loop import Evaluated, Finished, Resumed, Saved, Step

EVENTS = [
    Resumed(3),
    Step(4, 1, 0.1 + 0.2, 1e-9, 3.5, 100, 0.25),
    Evaluated(4, {"perplexity": 7.5, "bleu": 1.0}, best=True),
    Saved(4, "run/checkpoints/step-4"),
    Finished(4, "steps"),
]
HOLD = (
    "import sys; from pathlib import Path; from jumok.train.folder import RunFolder\n"
    "folder = RunFolder(Path(sys.argv[1])); folder.lock()\n"
    "sys.stdout.write('held\\n'); sys.stdout.flush(); sys.stdin.read()\n"
)


@contextmanager
def held_by_another_process(path: Path) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    (tmp_path / "run").mkdir()
    return RunFolder(tmp_path / "run")


# lock


def test_a_second_process_is_refused_and_a_killed_one_lets_go(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "deep" / "run")
    with held_by_another_process(folder.path) as holder:
        with pytest.raises(CheckpointError) as caught:
            folder.lock()
        assert (caught.value.code, caught.value.where) == ("checkpoint.in_use", str(folder.path))
        assert f"process {holder.pid}" in caught.value.what
        assert "--out" in (caught.value.hint or "")
        os.kill(holder.pid, signal.SIGKILL)
        assert holder.wait() == -signal.SIGKILL
        folder.lock()
    assert (folder.path / "lock").read_text() == f"process {os.getpid()}"
    folder.unlock()


def test_a_refused_process_does_not_harm_the_holder(folder: RunFolder) -> None:
    folder.lock()
    other = RunFolder(folder.path)
    for _ in range(2):
        with pytest.raises(CheckpointError) as caught:
            other.lock()
        assert caught.value.code == "checkpoint.in_use"
        assert f"process {os.getpid()}" in caught.value.what
    folder.unlock()
    other.lock()
    with pytest.raises(CheckpointError) as caught:
        folder.lock()
    assert caught.value.code == "checkpoint.in_use"
    other.unlock()
    other.unlock()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(CheckpointError) as caught:
        RunFolder(tmp_path / "file" / "run").lock()
    assert (caught.value.code, caught.value.where) == ("checkpoint.cannot_make", str(tmp_path / "file" / "run"))


# recipe


def test_stored_facts_come_back(folder: RunFolder) -> None:
    assert folder.stored() is None
    facts = {"recipe": {"description": "한국어", "seed": 1}, "data": {"train": "abc"}}
    folder.store(facts)
    assert folder.stored() == facts
    assert "한국어" in folder.recipe.read_text("utf-8")
    folder.store({**facts, "torch": "2"})
    assert folder.stored() == {**facts, "torch": "2"}
    assert [path.name for path in folder.path.iterdir()] == ["recipe.json"]


TORN = [b"", b'{"recipe": {', b"\xff\xfe", b"[" * 100_000, b'{"recipe": ' + b"9" * 5000]


@pytest.mark.parametrize("content", TORN, ids=range(5))
def test_a_torn_recipe_is_named(content: bytes, folder: RunFolder) -> None:
    folder.recipe.write_bytes(content)
    with pytest.raises(CheckpointError) as caught:
        folder.stored()
    assert (caught.value.code, caught.value.where) == ("checkpoint.unreadable", str(folder.recipe))


def test_the_same_recipe_is_welcome(tmp_path: Path) -> None:
    tree = {"seed": 1, "train": {"steps": 2, "optimizer": {"warmup": 3}}, "files": [["a", "b"]]}
    assert refuse_other_recipe(tree, json.loads(json.dumps(tree)), where=tmp_path) is None


def test_another_recipe_is_refused_with_the_keys_that_differ(tmp_path: Path) -> None:
    stored = {"seed": 1, "model": {"d_model": 64, "norm": "pre"}, "train": {"optimizer": {"warmup": 3, "beta1": 0.9}}}
    wanted = {"seed": 1, "model": {"d_model": 128, "norm": "pre"}, "train": {"optimizer": {"beta1": 0.9}}, "new": [1]}
    with pytest.raises(CheckpointError) as caught:
        refuse_other_recipe(stored, wanted, where=tmp_path)
    assert (caught.value.code, caught.value.where) == ("checkpoint.other_recipe", str(tmp_path))
    assert caught.value.what.split(": ", 1)[1].split("; ") == [
        "model.d_model was 64 and is 128",
        "new was None and is [1]",
        "train.optimizer.warmup was 3 and is None",
    ]
    assert caught.value.where == str(tmp_path)


# events


def test_every_event_is_kept(folder: RunFolder) -> None:
    assert folder.history() == []
    for event in EVENTS:
        folder.append(event)
    history = folder.history()
    assert [line["event"] for line in history] == ["resumed", "step", "evaluated", "saved", "finished"]
    assert all(line["time"] > 1.7e9 for line in history)
    assert history[1] | {"time": 0} == {
        "event": "step",
        "time": 0,
        "step": 4,
        "epoch": 1,
        "loss": 0.1 + 0.2,
        "learning_rate": 1e-9,
        "grad_norm": 3.5,
        "tokens": 100,
        "seconds": 0.25,
        "parts": {},
    }
    assert history[2]["scores"] == {"perplexity": 7.5, "bleu": 1.0}
    assert len(folder.events.read_bytes().splitlines()) == len(EVENTS)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is always full")
def test_a_full_disk_is_said_so(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    monkeypatch.setattr("jumok.train.folder.os.open", lambda *_: full)
    with pytest.raises(RunError) as caught:
        folder.append(EVENTS[0])
    assert (caught.value.code, caught.value.where) == ("run.disk_full", str(folder.events))


@pytest.mark.parametrize("torn", [1, 5, 20, -2])
def test_a_torn_last_line_is_mended_and_skipped(torn: int, folder: RunFolder) -> None:
    for event in EVENTS:
        folder.append(event)
    lines = folder.events.read_bytes().splitlines(keepends=True)
    folder.events.write_bytes(b"".join(lines[:-1]) + lines[-1][:torn])
    assert len(folder.history()) == len(EVENTS) - 1
    folder.mend_events()
    folder.append(EVENTS[0])
    assert [line["event"] for line in folder.history()] == ["resumed", "step", "evaluated", "saved", "resumed"]


def test_a_line_that_only_lacks_its_end_is_kept(folder: RunFolder) -> None:
    for event in EVENTS[:2]:
        folder.append(event)
    folder.events.write_bytes(folder.events.read_bytes()[:-1])
    folder.mend_events()
    folder.append(EVENTS[2])
    assert [line["event"] for line in folder.history()] == ["resumed", "step", "evaluated"]


def test_bytes_that_are_no_text_are_skipped(folder: RunFolder) -> None:
    folder.append(EVENTS[0])
    with folder.events.open("ab") as file:
        file.write(b"\xff\x00\xfe")
    folder.mend_events()
    folder.append(EVENTS[1])
    assert [line["event"] for line in folder.history()] == ["resumed", "step"]


@pytest.mark.parametrize("content", [None, b"", b'{"event": "step"}\n'])
def test_whole_files_are_not_touched(content: bytes | None, folder: RunFolder) -> None:
    if content is not None:
        folder.events.write_bytes(content)
    folder.mend_events()
    assert (folder.events.read_bytes() if folder.events.exists() else None) == content


# what others left, or put there


def test_leftovers_of_a_killed_process_lock_nobody_out(folder: RunFolder) -> None:
    (folder.path / "recipe.json.tmp-123-0").write_text("{")
    (folder.path / "recipe.json.tmp-123").write_text("{")
    folder.checkpoints.folder.mkdir()
    (folder.path / "model.old-7").mkdir()
    folder.recipe.write_text("{}")
    (folder.checkpoints.folder / "step-6.tmp-123-4").mkdir()
    (folder.checkpoints.folder / "step-6.tmp-123-4" / "weights.safetensors").write_bytes(b"half")
    folder.lock()
    assert sorted(path.name for path in folder.path.rglob("*")) == ["checkpoints", "lock", "recipe.json"]
    folder.unlock()


def test_leftovers_alone_are_an_empty_folder(folder: RunFolder) -> None:
    (folder.path / "recipe.json.tmp-123-0").write_text("{")
    folder.lock()
    assert [path.name for path in folder.path.iterdir()] == ["lock"]
    folder.unlock()


@pytest.mark.parametrize("name", ["lock", "checkpoints", "events.jsonl", "recipe.json", "scores.json", "model"])
def test_links_are_not_followed(name: str, folder: RunFolder, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "step-1.tmp-5").write_text("mine")
    (folder.path / name).symlink_to(victim if name in ("checkpoints", "model") else victim / "step-1.tmp-5")
    with pytest.raises(CheckpointError) as caught:
        folder.lock()
    assert (caught.value.code, caught.value.where) == ("checkpoint.link", str(folder.path / name))
    assert (victim / "step-1.tmp-5").read_text() == "mine"


def test_a_link_among_leftovers_is_removed_and_its_target_is_not(folder: RunFolder, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "kept").write_text("mine")
    (folder.path / "x.tmp-1").symlink_to(victim)
    folder.lock()
    folder.unlock()
    assert not (folder.path / "x.tmp-1").is_symlink()
    assert (victim / "kept").read_text() == "mine"


@pytest.mark.parametrize("replaced", [False, True])
def test_a_folder_that_is_gone_is_not_written_into(replaced: bool, folder: RunFolder) -> None:
    folder.lock()
    folder.append(EVENTS[0])
    folder.path.rename(folder.path.with_name("elsewhere"))
    if replaced:
        folder.path.mkdir()
        (folder.path / "lock").write_text("")
    with pytest.raises(RunError) as caught:
        folder.append(EVENTS[1])
    assert (caught.value.code, caught.value.where) == ("run.folder_gone", str(folder.path))
    folder.unlock()


def test_events_are_strict_json(folder: RunFolder) -> None:
    folder.append(Step(1, 0, float("inf"), 1e-3, float("nan"), 5, 0.1, {"mlm": float("nan")}))
    line = folder.events.read_text()
    assert json.loads(line, parse_constant=pytest.fail)["loss"] is None
    assert "NaN" not in line
    assert "Infinity" not in line


@pytest.mark.parametrize("name", ["events.jsonl", "scores.json"])
def test_a_folder_in_the_place_of_a_file_is_named(tmp_path, name):
    (tmp_path / "recipe.json").write_text("{}", "utf-8")
    (tmp_path / name).mkdir()
    with pytest.raises(CheckpointError) as caught:
        RunFolder(tmp_path).lock()
    assert (caught.value.code, caught.value.where) == ("checkpoint.unreadable", str(tmp_path / name))
    assert "remove it" in caught.value.hint
