"""Checkpoints: exact, whole or not there, and never trusted when a byte of them is not the one that was written."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError
from torch import Tensor, nn

from jumok.errors import CheckpointError, RunError
from jumok.files import verify_folder, write_atomically
from jumok.models.weights import load_tensors, unique_tensors
from jumok.train import checkpoint
from jumok.train.checkpoint import Checkpoints
from jumok.train.optimizer import OptimizerConfig, make_optimizer

FILES = ["weights.safetensors", "optimizer.safetensors", "progress.json", "manifest.json"]
PROGRESS = {"step": 3, "epoch": 1, "batch": 2, "best": 0.1 + 0.2, "best_step": None, "worse": 0, "finished": False}


class Net(nn.Module):
    """Tied weights, a buffer that is part of the state and one that is not."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = nn.Embedding(7, 4)
        self.hidden = nn.Linear(4, 4)
        self.output = nn.Linear(4, 7, bias=False)
        self.output.weight = self.embedding.weight
        self.register_buffer("mean", torch.randn(4))
        self.register_buffer("scratch", torch.randn(4), persistent=False)


def trained(seed: int = 0, steps: int = 3) -> tuple[Net, torch.optim.Optimizer]:
    net = Net(seed)
    optimizer = make_optimizer(net, OptimizerConfig(schedule="constant", learning_rate=0.01))
    for group in optimizer.param_groups:
        group["lr"] = 0.01
    for _ in range(steps):
        train_once(net, optimizer)
    return net, optimizer


def train_once(net: Net, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    hidden = net.hidden(net.embedding(torch.arange(7))).tanh() + net.mean
    net.output(hidden).square().sum().backward()
    optimizer.step()


def save(checkpoints: Checkpoints, *steps: int) -> None:
    for step in steps:
        net, optimizer = trained(seed=step)
        checkpoints.save(step, net, optimizer, {**PROGRESS, "step": step})


def same(one: nn.Module, other: nn.Module) -> bool:
    pairs = zip(unique_tensors(one).items(), unique_tensors(other).items(), strict=True)
    return all(a == b and torch.equal(x, y) for (a, x), (b, y) in pairs)


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path / "checkpoints")


# round trip


def test_who_may_read_one_file_of_a_checkpoint_may_read_all(checkpoints: Checkpoints) -> None:
    folder = checkpoints.save(3, *trained(), PROGRESS)
    modes = {path.name: path.stat().st_mode for path in folder.iterdir()}
    (folder / "new").write_text("")
    assert set(modes.values()) == {(folder / "new").stat().st_mode}


def test_round_trip_is_exact(checkpoints: Checkpoints) -> None:
    net, optimizer = trained()
    folder = checkpoints.save(3, net, optimizer, PROGRESS)
    assert folder == checkpoints.path(3)
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    other = Net(seed=99)
    other_optimizer = make_optimizer(other, OptimizerConfig())
    assert not same(net, other)
    assert checkpoints.restore(other, other_optimizer) == PROGRESS
    assert same(net, other)
    assert not torch.equal(net.scratch, other.scratch)
    for mine, theirs in zip(net.parameters(), other.parameters(), strict=True):
        assert optimizer.state[mine].keys() == other_optimizer.state[theirs].keys()
        for name, value in optimizer.state[mine].items():
            assert torch.equal(value, other_optimizer.state[theirs][name])


def test_training_goes_on_as_if_nothing_had_happened(checkpoints: Checkpoints) -> None:
    net, optimizer = trained()
    checkpoints.save(3, net, optimizer, PROGRESS)
    other, other_optimizer = trained(seed=5, steps=0)
    checkpoints.restore(other, other_optimizer)
    for _ in range(3):
        train_once(net, optimizer)
        train_once(other, other_optimizer)
    assert same(net, other)


def test_tied_weights_are_saved_once(checkpoints: Checkpoints) -> None:
    save(checkpoints, 1)
    assert sorted(checkpoints.weights(1)) == ["embedding.weight", "hidden.bias", "hidden.weight", "mean"]


def test_before_the_first_step_there_are_no_moments(checkpoints: Checkpoints) -> None:
    net, optimizer = trained(steps=0)
    progress = {**PROGRESS, "step": 0}
    checkpoints.save(0, net, optimizer, progress)
    other, other_optimizer = trained(seed=5, steps=0)
    assert checkpoints.restore(other, other_optimizer) == progress
    assert not other_optimizer.state


def test_nothing_to_restore(checkpoints: Checkpoints) -> None:
    net, optimizer = trained()
    assert checkpoints.steps() == []
    assert checkpoints.restore(net, optimizer) is None
    checkpoints.folder.mkdir()
    assert checkpoints.restore(net, optimizer) is None


def test_the_newest_by_number_is_restored(checkpoints: Checkpoints) -> None:
    save(checkpoints, 2, 10, 9)
    assert checkpoints.steps() == [2, 9, 10]
    net, optimizer = trained(steps=0)
    progress = checkpoints.restore(net, optimizer)
    assert progress is not None
    assert progress["step"] == 10
    assert same(net, trained(seed=10)[0])


def test_prune(checkpoints: Checkpoints) -> None:
    save(checkpoints, 1, 2, 3, 4)
    checkpoints.prune(keep={2, 4, 99})
    assert checkpoints.steps() == [2, 4]


def test_saving_a_step_again_replaces_it(checkpoints: Checkpoints) -> None:
    save(checkpoints, 3)
    net, optimizer = trained(seed=8)
    checkpoints.save(3, net, optimizer, PROGRESS)
    assert [path.name for path in checkpoints.folder.iterdir()] == ["step-3"]
    assert torch.equal(checkpoints.weights(3)["mean"], net.mean)


# damage


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def extend(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 0x10
    path.write_bytes(content)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def delete(path: Path) -> None:
    path.unlink()


def link(path: Path) -> None:
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


@pytest.mark.parametrize("damage", [truncate, extend, flip, empty, delete])
@pytest.mark.parametrize("name", FILES)
def test_damage_is_found_and_named(name: str, damage: Callable[[Path], None], checkpoints: Checkpoints) -> None:
    save(checkpoints, 3, 6)
    damage(checkpoints.path(6) / name)
    net, optimizer = trained(seed=50)
    with pytest.raises(CheckpointError) as caught:
        checkpoints.restore(net, optimizer)
    where = checkpoints.path(6) if name == "manifest.json" else checkpoints.path(6) / name
    torn = name == "manifest.json" or damage is delete
    assert (caught.value.code, caught.value.where) == (f"checkpoint.{'torn' if torn else 'altered'}", str(where))
    assert "step-6" in caught.value.what
    assert f"rm -r {checkpoints.path(6)}" in (caught.value.hint or "")
    assert "step 3" in (caught.value.hint or "")
    assert same(net, trained(seed=50)[0])  # nothing was loaded
    with pytest.raises(CheckpointError):
        checkpoints.weights(6)


def test_a_linked_file_is_not_trusted(checkpoints: Checkpoints) -> None:
    save(checkpoints, 3)
    link(checkpoints.path(3) / "weights.safetensors")
    with pytest.raises(CheckpointError) as caught:
        verify_folder(checkpoints.path(3))
    where = checkpoints.path(3) / "weights.safetensors"
    assert (caught.value.code, caught.value.where) == ("checkpoint.torn", str(where))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_flipped_byte_is_found(data: st.DataObject, tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    if not checkpoints.steps():
        save(checkpoints, 3)
    path = checkpoints.path(3) / data.draw(st.sampled_from(FILES))
    whole = path.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    broken = bytearray(whole)
    broken[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(broken)
    try:
        if path.name == "manifest.json" and means_the_same(broken, whole):
            verify_folder(checkpoints.path(3))
        else:
            with pytest.raises(CheckpointError):
                verify_folder(checkpoints.path(3))
    finally:
        path.write_bytes(whole)


def means_the_same(broken: bytes, whole: bytes) -> bool:
    """One white space for another: the manifest still says what it said."""
    try:
        return bool(json.loads(broken) == json.loads(whole))
    except ValueError:
        return False


def test_without_a_good_one_it_begins_again(checkpoints: Checkpoints) -> None:
    save(checkpoints, 3)
    empty(checkpoints.path(3) / "progress.json")
    with pytest.raises(CheckpointError) as caught:
        checkpoints.restore(*trained())
    assert "the beginning" in (caught.value.hint or "")


def test_following_the_advice_works(checkpoints: Checkpoints) -> None:
    save(checkpoints, 3, 6, 9)
    for step in (6, 9):
        truncate(checkpoints.path(step) / "weights.safetensors")
    with pytest.raises(CheckpointError) as caught:
        checkpoints.restore(*trained())
    # Two are damaged: to go on from step 3 both have to go.
    assert "step 3" in (caught.value.hint or "")
    for step in (6, 9):
        assert str(checkpoints.path(step)) in (caught.value.hint or "")


def test_deleting_the_damaged_one_goes_on_from_the_one_before(checkpoints: Checkpoints) -> None:
    save(checkpoints, 3, 6)
    delete(checkpoints.path(6) / "weights.safetensors")
    checkpoints.prune(keep={3})
    net, optimizer = trained(seed=50)
    progress = checkpoints.restore(net, optimizer)
    assert progress is not None
    assert progress["step"] == 3
    assert same(net, trained(seed=3)[0])


# failing writes


def full_disk(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_disk_of_safetensors(*_: object, **__: object) -> None:
    raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")


def read_only_disk(*_: object, **__: object) -> None:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (full_disk, "run.disk_full"),
        (full_disk_of_safetensors, "run.disk_full"),
        (read_only_disk, "run.cannot_write"),
    ],
)
@pytest.mark.parametrize("step", [3, 6])
def test_a_failing_write_leaves_the_old_ones_good(
    step: int,
    failure: Callable[..., None],
    code: str,
    after: int,
    checkpoints: Checkpoints,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    save(checkpoints, 3)
    before = bytes_of(checkpoints.path(3))
    calls: list[int] = []
    whole = checkpoint.save_file

    def save_file(*arguments: Any, **options: Any) -> None:
        calls.append(1)
        (failure if len(calls) > after else whole)(*arguments, **options)

    monkeypatch.setattr(checkpoint, "save_file", save_file)
    with pytest.raises(RunError) as caught:
        save(checkpoints, step)
    assert (caught.value.code, caught.value.where) == (code, str(checkpoints.path(step)))
    assert len(calls) == after + 1
    assert [path.name for path in checkpoints.folder.iterdir()] == ["step-3"]
    assert bytes_of(checkpoints.path(3)) == before
    monkeypatch.undo()
    net, optimizer = trained(seed=50)
    assert checkpoints.restore(net, optimizer) == PROGRESS
    assert same(net, trained(seed=3)[0])


def test_other_failures_leave_no_trace_either(checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch) -> None:
    save(checkpoints, 3)

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint, "save_file", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save(checkpoints, 6)
    assert [path.name for path in checkpoints.folder.iterdir()] == ["step-3"]


def test_a_failing_rename_leaves_the_old_one_in_place(
    checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(checkpoints, 3)
    before = bytes_of(checkpoints.path(3))
    rename = Path.rename

    def failing(self: Path, target: Path) -> Path:
        return rename(self, target) if ".tmp-" not in self.name else full_disk()  # type: ignore[func-returns-value, return-value]

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(RunError) as caught:
        save(checkpoints, 3)
    assert caught.value.code == "run.disk_full"
    monkeypatch.undo()
    assert [path.name for path in checkpoints.folder.iterdir()] == ["step-3"]
    assert bytes_of(checkpoints.path(3)) == before


def test_a_checkpoint_under_another_name_is_refused(checkpoints: Checkpoints) -> None:
    """Adam counts its updates by the name of the folder."""
    save(checkpoints, 3, 6)
    checkpoints.path(6).rename(checkpoints.path(9))
    with pytest.raises(CheckpointError) as caught:
        checkpoints.restore(*trained())
    assert (caught.value.code, caught.value.where) == ("checkpoint.other_step", str(checkpoints.path(9)))
    assert "step 6" in caught.value.what
    assert f"rm -r {checkpoints.path(9)}" in (caught.value.hint or "")
    assert "step 3" in (caught.value.hint or "")


@pytest.mark.parametrize("manifest", ["{}", '{"progress.json": {}}', "[" * 100_000, '{"../step-3/progress.json": {}}'])
def test_a_manifest_that_verifies_nothing_is_refused(manifest: str, checkpoints: Checkpoints) -> None:
    save(checkpoints, 3)
    (checkpoints.path(3) / "manifest.json").write_text(manifest)
    with pytest.raises(CheckpointError) as caught:
        checkpoints.restore(*trained())
    assert caught.value.code in ("checkpoint.altered", "checkpoint.torn")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_not_finite_are_never_saved(value: float, checkpoints: Checkpoints) -> None:
    save(checkpoints, 3)
    net, optimizer = trained()
    with torch.no_grad():
        next(net.parameters()).view(-1)[0] = value
    with pytest.raises(RunError) as caught:
        checkpoints.save(4, net, optimizer, {**PROGRESS, "step": 4})
    assert caught.value.code == "run.not_finite"
    assert next(iter(dict(net.named_parameters()))) in caught.value.what
    assert checkpoints.steps() == [3]


def test_write_atomically(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "facts.json"
    write_atomically(path, "하나")
    write_atomically(path, "둘")
    assert path.read_text("utf-8") == "둘"
    monkeypatch.setattr("jumok.files._sync", full_disk)
    with pytest.raises(RunError) as caught:
        write_atomically(path, "셋")
    assert (caught.value.code, caught.value.where) == ("run.disk_full", str(path))
    assert path.read_text("utf-8") == "둘"
    assert [file.name for file in tmp_path.iterdir()] == ["facts.json"]


# weights


def test_average_is_the_mean(checkpoints: Checkpoints) -> None:
    save(checkpoints, 1, 2, 5)
    average = checkpoints.average([1, 2, 5])
    weights = [checkpoints.weights(step) for step in (1, 2, 5)]
    assert average.keys() == weights[0].keys()
    for name, tensor in average.items():
        assert tensor.dtype == torch.float32
        expected = torch.stack([w[name].double() for w in weights]).mean(dim=0)
        torch.testing.assert_close(tensor, expected.float(), rtol=0, atol=1e-7)
        assert not torch.equal(tensor, weights[0][name])


def test_average_of_one_is_that_one(checkpoints: Checkpoints) -> None:
    save(checkpoints, 1, 2)
    average = checkpoints.average([2])
    assert all(torch.equal(tensor, average[name]) for name, tensor in checkpoints.weights(2).items())


def test_average_refuses_a_damaged_one(checkpoints: Checkpoints) -> None:
    save(checkpoints, 1, 2)
    flip(checkpoints.path(1) / "weights.safetensors")
    with pytest.raises(CheckpointError) as caught:
        checkpoints.average([1, 2])
    where = checkpoints.path(1) / "weights.safetensors"
    assert (caught.value.code, caught.value.where) == ("checkpoint.altered", str(where))


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"mean": None}, ("mean ", "missing")),
        ({"output.weight": torch.zeros(7, 4)}, ("output.weight ", "unknown")),
        ({"hidden.weight": torch.zeros(4, 5)}, ("hidden.weight ", "[4, 5]", "[4, 4]")),
        ({"hidden.bias": torch.zeros(1)}, ("hidden.bias ", "[1]", "[4]")),
    ],
)
def test_tensors_that_do_not_fit_are_named(
    change: dict[str, Tensor | None], facts: tuple[str, ...], tmp_path: Path
) -> None:
    net = Net()
    tensors = {name: t for name, t in {**unique_tensors(Net(seed=1)), **change}.items() if t is not None}
    with pytest.raises(CheckpointError) as caught:
        load_tensors(net, tensors, where=tmp_path)
    assert (caught.value.code, caught.value.where) == ("checkpoint.tensors", str(tmp_path))
    assert [fact for fact in facts if fact not in caught.value.what] == []
    assert same(net, Net())


def test_all_that_does_not_fit_is_named_at_once(tmp_path: Path) -> None:
    tensors = {**unique_tensors(Net()), "one": torch.zeros(1), "hidden.bias": torch.zeros(2)}
    del tensors["mean"]
    with pytest.raises(CheckpointError) as caught:
        load_tensors(Net(), tensors, where=tmp_path)
    assert caught.value.code == "checkpoint.tensors"
    assert [name for name in ("mean", "one", "hidden.bias") if f" {name} " not in caught.value.what] == []
    with pytest.raises(CheckpointError) as caught:
        load_tensors(Net(), {str(i): torch.zeros(1) for i in range(9)}, where=tmp_path)
    assert caught.value.what.endswith(" 8 more")


def test_loading_keeps_tied_weights_tied(tmp_path: Path) -> None:
    net, source = Net(), Net(seed=1)
    load_tensors(net, unique_tensors(source), where=tmp_path)
    assert same(net, source)
    assert net.output.weight is net.embedding.weight
