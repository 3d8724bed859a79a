"""Kills, signals, full disks and wrong input: nothing is lost, and every error says what would be right."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from once import once

SMALL = ["--set", "train.steps=60", "--set", "train.save_every=10", "--set", "train.evaluate_every=30"]
SMALL += [
    "--set",
    "data.n_train=3000",
    "--set",
    "data.n_dev=20",
    "--set",
    "data.n_test=20",
    "--set",
    "model.dropout=0.1",
]
TWO = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")


def steps_saved(out: Path) -> list[int]:
    folder = out / "checkpoints"
    return sorted(int(p.name[5:]) for p in folder.glob("step-*") if "." not in p.name) if folder.exists() else []


def wait_for_step(out: Path, step: int, process) -> None:
    deadline = time.time() + 120
    while max(steps_saved(out), default=0) < step:
        assert process.poll() is None, process.stderr.read().decode()
        assert time.time() < deadline, "no checkpoint in time"
        time.sleep(0.02)


def losses(out: Path) -> dict[int, float]:
    """Every logged step; one logged twice must have been the same twice."""
    found: dict[int, float] = {}
    for line in (out / "events.jsonl").read_text("utf-8").splitlines():
        event = json.loads(line)
        if event["event"] == "step":
            assert found.setdefault(event["step"], event["loss"]) == event["loss"]
    return found


@pytest.fixture(scope="module")
def calm(jumok, recipes, tmp_path_factory) -> Path:
    command = ("train", recipes / "toy/reverse.toml", *SMALL)
    return once(tmp_path_factory, jumok.folder / "calm", lambda out: jumok(*command, "--out", out))


def test_killed_twice_and_started_again_ends_with_the_same_bytes(jumok, recipes, calm):
    out = jumok.folder / "killed"
    for step in (10, 40):
        process = jumok.start("train", recipes / "toy/reverse.toml", "--out", out, *SMALL)
        wait_for_step(out, step, process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    jumok("train", recipes / "toy/reverse.toml", "--out", out, *SMALL)
    for file in ("model/model.safetensors", "model/tokenizer.json", "scores.json"):
        assert (out / file).read_bytes() == (calm / file).read_bytes(), file
    assert losses(out) == losses(calm)


def test_a_killed_pretraining_ends_with_the_same_bytes(jumok, recipes):
    """Pairs and masks are drawn anew in every epoch, and are the same after going on."""
    options = ["--set", "data.n_train=200", "--set", "train.steps=60", "--set", "train.save_every=7"]
    options += ["--set", "train.evaluate_every=30", "--set", "train.batch_tokens=512", "--set", "train.threads=1"]
    calm, killed = jumok.folder / "bert-calm", jumok.folder / "bert-killed"
    jumok("train", recipes / "toy/bert.toml", "--out", calm, *options)
    process = jumok.start("train", recipes / "toy/bert.toml", "--out", killed, *options)
    wait_for_step(killed, 25, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    jumok("train", recipes / "toy/bert.toml", "--out", killed, *options)
    for file in ("model/model.safetensors", "scores.json"):
        assert (killed / file).read_bytes() == (calm / file).read_bytes(), file
    assert losses(killed) == losses(calm)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop_it_saves_and_goes_on_later(jumok, recipes, calm, number):
    out = jumok.folder / f"stopped-{int(number)}"
    process = jumok.start("train", recipes / "toy/reverse.toml", "--out", out, *SMALL)
    wait_for_step(out, 10, process)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "saved at step" in err.decode()
    jumok("train", recipes / "toy/reverse.toml", "--out", out, *SMALL)
    assert (out / "model/model.safetensors").read_bytes() == (calm / "model/model.safetensors").read_bytes()


def test_second_process_on_the_same_folder_is_refused(jumok, recipes):
    out = jumok.folder / "busy"
    command = ("train", recipes / "toy/reverse.toml", "--out", out, *SMALL, "--set", "train.steps=100000")
    process = jumok.start(*command)
    try:
        wait_for_step(out, 10, process)
        err = jumok(*command, code=2).stderr
        assert "in use by process" in err
    finally:
        process.kill()
        process.communicate()


def test_two_processes_have_the_losses_of_one(jumok, recipes):
    """torchrun with the same global batch; without dropout, whose masks differ by process."""
    options = [*SMALL[:-1], "model.dropout=0.0", "--set", "train.steps=15", "--set", "train.accumulate=2"]
    one, two = jumok.folder / "one", jumok.folder / "two"
    jumok("train", recipes / "toy/reverse.toml", "--out", one, *options)
    jumok("train", recipes / "toy/reverse.toml", "--out", two, *options, launcher=TWO)
    assert losses(two) == pytest.approx(losses(one), abs=1e-5)
    assert (two / "scores.json").exists()


def test_two_processes_have_both_losses_of_bert(jumok, recipes):
    """Each of the two means is over all processes, however the pairs fall to them."""
    options = ["--set", "data.n_train=300", "--set", "train.steps=8", "--set", "model.dropout=0.0"]
    options += ["--set", "train.batch_tokens=512", "--set", "train.threads=1", "--set", "data.n_dev=20"]
    one, two = jumok.folder / "bert-one", jumok.folder / "bert-two"
    jumok("train", recipes / "toy/bert.toml", "--out", one, *options)
    jumok("train", recipes / "toy/bert.toml", "--out", two, *options, launcher=TWO)
    assert losses(two) == pytest.approx(losses(one), abs=1e-5)


def test_a_process_that_dies_is_named_by_the_other(jumok, recipes):
    """With one line, in place of the many of the library beneath; torchrun reports the dead one in its own words."""
    out = jumok.folder / "lost"
    options = ["--out", out, *SMALL, "--set", "train.steps=100000"]
    process = jumok.start("train", recipes / "toy/reverse.toml", *options, launcher=TWO)
    wait_for_step(out, 20, process)
    first, second = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    ranks = {
        Path(f"/proc/{pid}/environ").read_bytes().partition(b"\0RANK=")[2][:1]: int(pid) for pid in (first, second)
    }
    os.kill(ranks[b"1"], signal.SIGKILL)
    _, err = process.communicate(timeout=120)
    ours = [line for line in err.decode().splitlines() if line.startswith("error:")]
    assert process.returncode != 0
    assert ours == ["error: process 1 of 2 no longer responds; process 0 ends, too"]
    assert "gloo" not in err.decode()


def test_a_process_that_left_its_group_has_none_of_its_threads(jumok):
    """They would end it with SIGABRT now and then; the first step of an optimizer imports what could keep them."""
    script = jumok.folder / "leaves.py"
    script.write_text(
        "import pathlib, torch\n"
        "from jumok.train.distributed import join_group, leave_group\n"
        "def count():\n"
        "    names = [p.read_text() for p in pathlib.Path('/proc/self/task').glob('*/comm')]\n"
        "    return sum('gloo' in name for name in names)\n"
        "group = join_group(torch.device('cpu'))\n"
        "weight = torch.nn.Parameter(torch.ones(2))\n"
        "(weight.sum() * group.sum(1.0)).backward()\n"
        "group.sum_gradients([weight])\n"
        "torch.optim.AdamW([weight]).step()\n"
        "before = count()\n"
        "group.sum(0.0)\n"
        "leave_group(group)\n"
        "print(f'{before > 0} {count()}\\n', end='', flush=True)\n",
        "utf-8",
    )
    command = [sys.executable, *TWO, str(script)]
    done = subprocess.run(command, env=jumok.environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["True 0", "True 0"]


def test_output_folder_of_another_recipe_is_refused(here, recipes, calm):
    err = here("train", recipes / "toy/copy.toml", "--out", calm, *SMALL, code=2).stderr
    assert "belongs to another recipe" in err
    assert "data.problem" in err


def test_altered_checkpoint_is_named_and_the_one_before_offered(jumok, recipes):
    out = jumok.folder / "altered"
    process = jumok.start("train", recipes / "toy/reverse.toml", "--out", out, *SMALL)
    wait_for_step(out, 30, process)
    process.kill()
    process.communicate()
    newest = steps_saved(out)[-1]
    path = out / "checkpoints" / f"step-{newest}" / "weights.safetensors"
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    err = jumok("train", recipes / "toy/reverse.toml", "--out", out, *SMALL, code=2).stderr
    assert f"step-{newest}" in err
    assert f"resumes from step {steps_saved(out)[-2]}" in err


def parallel_recipe(folder: Path, **files: str | bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(f"{i} house {'big ' * (i % 5)}" for i in range(200)) + "\n"
    contents = {"train.en": text, "train.ko": text, "dev.en": "1 house\n", "dev.ko": "1 house\n"}
    contents |= {name.replace("_", "."): value for name, value in files.items()}
    for name, content in contents.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "recipe.toml").write_text(
        'data = { kind = "parallel", source = "en", target = "ko", train = [["train.en", "train.ko"]],'
        ' dev = ["dev.en", "dev.ko"] }\n'
        'tokenizer = { kind = "bpe", vocab_size = 300 }\n'
        "model = { d_model = 16, d_ff = 32, n_heads = 2, n_layers = 1 }\n"
        "train = { steps = 4, batch_tokens = 200, evaluate_every = 2, save_every = 2 }\n",
        "utf-8",
    )
    return folder / "recipe.toml"


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"train_en": "one\ntwo\n", "train_ko": "하나\n"}, ["train.en", "2 and 1", "line counts"]),
        ({"train_en": b"one\ntw\xff\n", "train_ko": "하나\n둘\n"}, ["UTF-8", "train.en:2", "0xff"]),
        ({"train_en": "", "train_ko": ""}, ["empty corpus"]),
        ({"train_en": "\n\n", "train_ko": "\n\n"}, ["empty corpus"]),
    ],
)
def test_wrong_data_is_named(here, tmp_path, files, words):
    recipe = parallel_recipe(tmp_path, **files)
    err = here("train", recipe, "--out", tmp_path / "run", code=2).stderr
    for word in words:
        assert word in err
    assert "Traceback" not in err


def test_missing_data_and_misspelt_keys_are_named_all_at_once(here, tmp_path):
    recipe = tmp_path / "r.toml"
    recipe.write_text(
        'data = { kind = "parallel", source = "en", target = "de", train = [["no.en", "no.de"]] }\n'
        "[model]\nd_modle = 3\nn_heads = 0\n[train]\nsteps = 'many'\n",
        "utf-8",
    )
    err = here("train", recipe, code=2).stderr
    for word in ("model.d_modle", "train.steps", "did you mean d_model?"):
        assert word in err
    recipe.write_text('data = { kind = "parallel", source = "en", target = "de", train = [["no.en", "no.de"]] }\n')
    err = here("train", recipe, code=2).stderr
    assert "no.en" in err
    assert "JUMOK_DATA" in err
    assert "cannot be read" in here("train", tmp_path / "absent.toml", code=2).stderr


def test_changed_data_is_refused_unless_told(here):
    recipe = parallel_recipe(here.folder / "changing")
    out = here.folder / "changing-run"
    here("train", recipe, "--out", out)
    parallel_recipe(here.folder / "changing", dev_en="2 house\n")
    err = here("train", recipe, "--out", out, code=2).stderr
    assert "data has changed" in err
    here("train", recipe, "--out", out, "--set", "data.when_changed=accept")


def test_a_mended_start_is_not_locked_out(here, tmp_path):
    recipe = parallel_recipe(tmp_path, train_en=b"one \xff\n", train_ko="하나\n")
    here("train", recipe, "--out", tmp_path / "run", code=2)
    parallel_recipe(tmp_path)
    here("train", recipe, "--out", tmp_path / "run")
    assert (tmp_path / "run" / "model" / "model.safetensors").exists()


def test_another_vocabulary_is_refused_even_when_changes_are_accepted(here, tmp_path):
    recipe = parallel_recipe(tmp_path)
    here("train", recipe, "--out", tmp_path / "run")
    parallel_recipe(tmp_path, train_en="other words altogether\n" * 50, train_ko="다른 말\n" * 50)
    told = ("--set", "data.when_changed=accept")
    assert "tokenizer does not fit" in here("train", recipe, "--out", tmp_path / "run", *told, code=2).stderr
    parallel_recipe(tmp_path)
    here("train", recipe, "--out", tmp_path / "run")  # what was refused has changed nothing


def test_full_disk_leaves_the_old_checkpoint_good(jumok, recipes):
    """A file-size limit stands in for a full disk: every write beyond it fails in the kernel."""
    import resource

    out = jumok.folder / "full"
    process = jumok.start("train", recipes / "toy/reverse.toml", "--out", out, *SMALL)
    wait_for_step(out, 10, process)
    process.kill()
    process.communicate()
    before = steps_saved(out)

    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    process = jumok.start("train", recipes / "toy/reverse.toml", "--out", out, *SMALL, preexec_fn=small_files)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1, err.decode()
    assert "while saving" in err.decode()
    assert steps_saved(out) == before
    jumok("train", recipes / "toy/reverse.toml", "--out", out, *SMALL)


def test_predict_refuses_what_is_no_run_and_what_is_no_text(here, reversed_run, tmp_path):
    assert "not a run or model folder" in here("predict", tmp_path, code=2).stderr
    err = here("predict", reversed_run, stdin=b"1 2\n\xff\xfe\n", code=2).stderr
    assert "stdin:2, byte 1" in err
    assert "beam: must be" in here("predict", reversed_run, "--set", "beam=0", stdin="1\n", code=2).stderr
    assert "unknown option done" in here("evaluate", reversed_run, "--set", "done=1", code=2).stderr


def test_tokenizer_that_does_not_fit_is_refused(here, reversed_run, tmp_path):
    import shutil

    from jumok.text.tokenizer import Tokenizer
    from jumok.text.vocabulary import TokenizerConfig

    shutil.copytree(reversed_run / "model", tmp_path / "model")
    (tmp_path / "model" / "manifest.json").unlink()
    other = Tokenizer.train(TokenizerConfig(kind="word", vocab_size=64), ["some other words here"])
    (tmp_path / "model" / "tokenizer.json").write_text(other.to_json(), "utf-8")
    assert "7 tokens" in here("predict", tmp_path / "model", stdin="1\n", code=2).stderr
