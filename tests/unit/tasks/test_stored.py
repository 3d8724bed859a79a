"""Model folders of strangers: what does not fit is refused before anything is built, and links stay inside."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from jumok.errors import CheckpointError
from jumok.exchange import export_folder, import_folder
from jumok.models import build
from jumok.predictor import load
from jumok.tasks.stored import read_start

OLD_RUNS = Path(__file__).parents[2] / "data/old_runs"


@pytest.fixture(params=["copy", "josa"])
def folder(request, tmp_path) -> Path:
    """A model in the layout of Marian, and one in jumok's own; without a manifest, nothing vouches for the files."""
    found = Path(shutil.copytree(OLD_RUNS / request.param / "model", tmp_path / "model"))
    (found / "manifest.json").unlink()
    return found


@pytest.fixture
def own(tmp_path) -> Path:
    found = Path(shutil.copytree(OLD_RUNS / "josa/model", tmp_path / "model"))
    (found / "manifest.json").unlink()
    return found


def change(folder: Path, section: str, **changes: object) -> None:
    tree = json.loads((folder / "config.json").read_text("utf-8"))
    tree["jumok"][section] |= changes
    (folder / "config.json").write_text(json.dumps(tree), "utf-8")


def refused(folder: Path, read=load) -> CheckpointError:
    with pytest.raises(CheckpointError) as caught:
        read(str(folder))
    assert caught.value.where.startswith(str(folder))
    return caught.value


@pytest.mark.parametrize("read", [load, read_start])
@pytest.mark.parametrize(
    ("sizes", "code"),
    [
        ({"d_ff": 10**6, "d_hidden": 10**6}, "tensors"),
        ({"n_layers": 999}, "tensors"),
        ({"n_layers": 10**6}, "value"),
        ({"d_model": 10**9, "d_embedding": 10**9}, "value"),
        ({"n_layers": 10**4000}, "value"),
    ],
    ids=str,
)
def test_sizes_that_are_not_those_of_the_weights(folder, sizes, code, read, monkeypatch):
    """Nothing but the meta device sees them: a model of 4 GB takes no memory."""
    real = build.build_model

    def without_memory(*given, **sizes):
        model = real(*given, **sizes)
        assert all(p.is_meta for p in model.parameters())
        return model

    monkeypatch.setattr(build, "build_model", without_memory)
    model = json.loads((folder / "config.json").read_text("utf-8"))["jumok"]["model"]
    change(folder, "model", **{key: value for key, value in sizes.items() if key in model})
    assert refused(folder, read).code == f"checkpoint.{code}"


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.bool, torch.complex64], ids=str)
def test_weights_that_are_no_real_numbers(folder, dtype):
    tensors = load_file(folder / "model.safetensors")
    name = max(tensors, key=lambda name: tensors[name].numel())
    save_file({**tensors, name: tensors[name].to(dtype)}, folder / "model.safetensors", {"format": "pt"})
    error = refused(folder)
    assert error.code == "checkpoint.dtype"
    assert f"{name} has dtype {str(dtype).removeprefix('torch.')}" in error.what


def test_weights_larger_than_the_memory(own, monkeypatch):
    monkeypatch.setattr("jumok.hub.weights.available_memory", lambda: 1000)
    error = refused(own)
    assert (error.code, error.where) == ("checkpoint.too_large", str(own / "model.safetensors"))


def test_a_task_that_the_model_is_not_for(own):
    change(own, "task", kind="translation")
    error = refused(own)
    assert (error.code, error.where) == ("checkpoint.task", str(own / "config.json"))
    assert all(fact in error.what for fact in ("translation", "rnn", "seq2seq"))


# links


def linked(folder: Path, name: str, target: Path) -> Path:
    path = folder / name
    path.unlink(missing_ok=True)
    path.symlink_to(target)
    return path


def test_a_link_out_of_the_folder_is_refused_by_every_reader(folder, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("private", "utf-8")
    link = linked(folder, "README.md", secret)
    readers = [load, read_start, lambda path: import_folder(Path(path), tmp_path / "run")]
    readers.append(lambda path: export_folder(Path(path), tmp_path / "exported"))
    for read in readers:
        error = refused(folder, read)
        assert (error.code, error.where) == ("checkpoint.link", str(link))
    assert not [path for path in tmp_path.glob("[re]*/**/README.md") if "private" in path.read_text("utf-8")]


def test_a_link_is_no_damage_that_the_manifest_finds_first(tmp_path):
    run = Path(shutil.copytree(OLD_RUNS / "josa", tmp_path / "run"))
    link = linked(run / "model", "model.safetensors", OLD_RUNS / "josa/model/model.safetensors")
    error = refused(run)
    assert (error.code, error.where) == ("checkpoint.link", str(link))


def test_a_run_whose_model_is_elsewhere(own, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    link = linked(run, "model", own)
    error = refused(run)
    assert (error.code, error.where) == ("checkpoint.link", str(link))


def test_links_in_a_circle_lead_nowhere(own):
    linked(own, "a", own / "b")
    linked(own, "b", own / "a")
    assert load(own).kind == "tagging"


def test_links_within_the_folder_are_followed(own):
    (own / "weights").mkdir()
    (own / "model.safetensors").rename(own / "weights/1")
    linked(own, "model.safetensors", Path("weights/1"))
    assert load(own).kind == "tagging"


@pytest.mark.parametrize("through", [None, "best"])
def test_a_snapshot_of_a_hugging_face_cache_links_to_its_blobs(own, tmp_path, through):
    repository = tmp_path / "models--somebody--josa"
    snapshot, blobs = repository / "snapshots/0123", repository / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for number, path in enumerate(sorted(own.iterdir())):
        path.rename(blobs / str(number))
        (snapshot / path.name).symlink_to(f"../../blobs/{number}")
    given = snapshot if through is None else linked(tmp_path, through, snapshot)
    import_folder(given, tmp_path / "run")
    assert load(tmp_path / "run").kind == "tagging"
    linked(snapshot, "README.md", Path("../../refs"))
    assert refused(given).code == "checkpoint.link"


def test_blobs_elsewhere_are_none_of_the_cache(own, tmp_path):
    repository = tmp_path / "models--somebody--josa"
    snapshot = repository / "snapshots/0123"
    snapshot.mkdir(parents=True)
    linked(repository, "blobs", own)
    for path in own.iterdir():
        (snapshot / path.name).symlink_to(f"../../blobs/{path.name}")
    assert os.path.samefile(snapshot / "config.json", own / "config.json")
    assert refused(snapshot).code == "checkpoint.link"


def test_looking_at_shapes_does_not_import_the_compiler_of_torch(folder):
    """It would take a second of every start; in a new process, because others may have imported it."""
    program = (
        "import sys, jumok; jumok.load(sys.argv[1]); print('torch._dynamo' in sys.modules, 'sympy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
