"""Faults of training: deaths, full and broken disks, neighbours, numbers that blow up, clocks that jump."""

import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

from shop import Fault, Shop, die, events_of, fail, next_of, sabotage, steps_of

TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "jumok"]


def killed_anywhere(shop: Shop, random: Random) -> int:
    """SIGKILL at a random moment, from the first import to the last score."""
    out, moment = shop.new(), shop.moment(random)
    child = shop.start(["train", str(shop.recipe), "--out", str(out)])
    time.sleep(moment)
    child.kill()
    ended = shop.end(child)
    assert ended.code in (0, -signal.SIGKILL), ended.err
    return shop.resumes(out)


def operations_of(shop: Shop) -> int:
    """How many operations on files an undisturbed run makes in its folder."""
    record = shop.folder / "operations"
    if not record.exists():
        out = shop.new()
        ended = shop.train(out, before=sabotage(out, -1, lambda: None, record))
        assert ended.code == 0, ended.err
    return len(record.read_text("utf-8").splitlines())


def killed_in_an_operation(shop: Shop, random: Random) -> int:
    """SIGKILL instead of the next of all file operations of a run: every save is cut everywhere."""
    at = next_of(shop, "killed", operations_of(shop))
    out = shop.new()
    ended = shop.train(out, before=sabotage(out, at, die))
    assert ended.code == -signal.SIGKILL, (at, ended.code, ended.err)
    return shop.resumes(out)


def failing_disk(number: int) -> Fault:
    def once(shop: Shop, random: Random) -> int:
        at = next_of(shop, f"errno-{number}", operations_of(shop))
        out = shop.new()
        ended = shop.train(out, before=sabotage(out, at, fail(number)))
        if ended.code:  # an operation that may fail, such as the removal of an old checkpoint, did no harm
            assert ended.refused(), (at, ended.code, ended.err)
        return shop.resumes(out)

    return Fault(f"{errno.errorcode[number]} in a file operation of a run", once, 90, quick=number == errno.ENOSPC)


def full_disk(shop: Shop, random: Random) -> int:
    """Every write beyond a size fails in the kernel, also those of libraries."""
    limit = random.choice([2000, 3000, 6000, 10_000, 15_000, 20_000, 30_000])

    def starve() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    out, log = shop.new(), shop.new("log")
    child = shop.start(["train", str(shop.recipe), "--out", str(out)], before=starve)
    ended = shop.end(child)
    assert ended.code in (0, 1, 2), (limit, ended.code, ended.err)
    assert "Traceback" not in ended.err, (limit, log, ended.err)
    return shop.resumes(out)


def two_trainers(shop: Shop, random: Random) -> int:
    """Two trainings of the same folder: one of them is refused, and the other one is undisturbed."""
    out = shop.new()
    children = [shop.start(["train", str(shop.recipe), "--out", str(out)]) for _ in range(2)]
    ended = [shop.end(child) for child in children]
    codes = sorted(one.code for one in ended)
    assert codes in ([0, 0], [0, 2]), [one.err for one in ended]  # the second may come when the first is done
    for one in ended:
        assert one.code == 0 or "in use" in one.err, one.err
    return shop.resumes(out, lost=0)


def an_empty_cache(shop: Shop, random: Random) -> int:
    """Four trainings start at once and share a cache that is empty."""
    cache = shop.new("cache")
    outs = [shop.new() for _ in range(4)]
    children = [shop.start(["train", str(shop.recipe), "--out", str(out)], cache=cache) for out in outs]
    for child in children:
        ended = shop.end(child)
        assert ended.code == 0, ended.err
    for out in outs:
        shop.resumes(out, lost=0, cache=cache)
    assert not [path for path in cache.rglob("*") if ".tmp-" in path.name]
    return 0


def asked_to_stop(shop: Shop, random: Random) -> int:
    """A signal to stop at a random moment: saved and resumed, whatever it is doing."""
    number = random.choice([signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
    out, moment = shop.new(), shop.moment(random)
    child = shop.start(["train", str(shop.recipe), "--out", str(out)])
    time.sleep(moment)
    child.kill(number)
    ended = shop.end(child)
    outside = not (out / "lock").exists() or (out / "scores.json").exists()  # before it began, or after it was done
    assert ended.code in (0, 128 + number) or (ended.code == -number and outside), (number, ended.code, ended.err)
    assert "Traceback" not in ended.err, ended.err
    lost = shop.resumes(out)
    assert lost == 0, lost
    return lost


def the_folder_vanishes(shop: Shop, random: Random) -> int:
    """The run folder is removed while it is trained into: an error, and no half of a run in its place."""
    out = shop.new()
    child = shop.start(["train", str(shop.recipe), "--out", str(out), "--set", "train.steps=100000"])
    while steps_of(out) < 5:
        time.sleep(0.01)
    shutil.rmtree(out, ignore_errors=True)
    shutil.rmtree(out, ignore_errors=True)
    ended = shop.end(child)
    assert ended.refused(), (ended.code, ended.err)
    assert not (out / "model").exists()
    shutil.rmtree(out, ignore_errors=True)
    return shop.resumes(out)


def divergence(shop: Shop, random: Random) -> int:
    """A huge rate: nothing that is not finite is saved, and a lower rate resumes."""
    out = shop.new()
    huge = ["train.optimizer.schedule=constant", "train.optimizer.warmup=0", "train.optimizer.learning_rate=1e38"]
    ended = shop.train(out, *(part for key in huge for part in ("--set", key)))
    assert ended.refused(), (ended.code, ended.err)
    assert "not finite" in ended.err
    assert "(best)" not in ended.err
    for line in (out / "events.jsonl").read_text("utf-8").splitlines():
        assert "NaN" not in line
        assert "Infinity" not in line
    lower = [*huge[:2], "train.optimizer.learning_rate=1e-3"]
    ended = shop.train(out, *(part for key in lower for part in ("--set", key)))
    assert ended.code == 0, ended.err
    return 0


def a_clock_that_jumps(shop: Shop, random: Random) -> int:
    """The time of day goes back and forth by years."""
    years = [random.uniform(-50, 50) * 3.15e7 for _ in range(100)]

    def tinker() -> None:
        real = time.time
        time.time = lambda: real() + random.choice(years)

    out = shop.new()
    ended = shop.train(out, before=tinker)
    assert ended.code == 0, ended.err
    return shop.resumes(out, lost=0)


def a_rank_dies(shop: Shop, random: Random) -> int:
    """One of two processes is killed: the other ends with a line that names it; 2 -> 1 -> 2 processes resume."""
    out = shop.new()
    more = ["--set", "train.steps=400", "--set", "train.save_every=20", "--set", "model.dropout=0.0"]
    process = _torchrun(shop, out, more)
    while steps_of(out) < 30 and process.poll() is None:
        time.sleep(0.05)
    assert process.poll() is None, process.communicate()
    workers = _children(process.pid)
    os.kill(random.choice(workers), signal.SIGKILL)
    _, err = process.communicate(timeout=120)
    assert process.returncode != 0
    _named(err)
    reached = steps_of(out)
    ended = shop.train(out, *more, before=lambda: signal.alarm(0))
    assert ended.code == 0, ended.err
    resumed = next(event["step"] for event in events_of(out) if event["event"] == "resumed")
    assert resumed <= reached
    second = _torchrun(shop, out, more)
    second.communicate(timeout=120)
    assert second.returncode == 0
    return reached - resumed


def _named(err: str) -> None:
    """The one that lives ends with one line that names the other, and not with the many of the library beneath."""
    ours = [line for line in err.splitlines() if line.startswith("error:")]
    assert len(ours) <= 1, ours  # torchrun may end it before it has said anything
    assert all("of 2 no longer responds" in line or "of 2 has done nothing" in line for line in ours), ours
    assert "gloo" not in err, err


def a_rank_hangs(shop: Shop, random: Random) -> int:
    """One of two processes is stopped: the watchdog notices, and the run resumes."""
    out = shop.new()
    more = ["--set", "train.steps=4000", "--set", "train.save_every=20", "--set", "train.watchdog=0.05"]
    process = _torchrun(shop, out, more)
    while steps_of(out) < 30 and process.poll() is None:
        time.sleep(0.05)
    stopped = random.choice(_children(process.pid))
    os.kill(stopped, signal.SIGSTOP)
    _, err = process.communicate(timeout=120)
    assert process.returncode != 0
    _named(err)
    assert "error:" in err
    reached, saved = steps_of(out), max(int(path.name[5:]) for path in (out / "checkpoints").glob("step-*"))
    return reached - saved


def _torchrun(shop: Shop, out: Path, more: list[str]) -> "subprocess.Popen[str]":
    command = [sys.executable, *TORCHRUN, "train", str(shop.recipe), "--out", str(out), *more]
    environment = {**os.environ, "JUMOK_CACHE": str(shop.cache)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


FAULTS = [
    Fault("SIGKILL at a random moment of a run", killed_anywhere, 50, quick=True),
    Fault("SIGKILL in each file operation of a run", killed_in_an_operation, 120, quick=True),
    failing_disk(errno.ENOSPC),
    failing_disk(errno.EIO),
    Fault("a full disk (the kernel refuses bytes beyond a size)", full_disk, 16, quick=True),
    Fault("two trainings of one folder", two_trainers, 5, quick=True),
    Fault("four trainings that share an empty cache", an_empty_cache, 10, quick=True),
    Fault("SIGTERM, SIGINT, SIGHUP or SIGUSR1 at a random moment", asked_to_stop, 40, quick=True),
    Fault("the run folder removed during training", the_folder_vanishes, 5, quick=True),
    Fault("a learning rate that makes training diverge", divergence, 3, quick=True),
    Fault("the time of day jumps by years", a_clock_that_jumps, 3),
    Fault("one of two processes killed, then 1 and 2 processes", a_rank_dies, 3),
    Fault("one of two processes stopped (SIGSTOP)", a_rank_hangs, 1),
]
