"""Where faults are made: jumok in forked children that can be killed, starved, sabotaged and measured.

The parent imports torch once; a child starts in milliseconds, so that hundreds of deaths cost minutes.
"""

import builtins
import io
import json
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "COLUMNS": "200"}

# Children have imported what a training asks for on its way, too, which takes longer than all the rest.
import sacrebleu  # noqa: E402, F401
import torch._dynamo  # noqa: E402, F401

import jumok.tasks.translation.task  # noqa: E402, F401
import jumok.training  # noqa: E402, F401
from jumok.cli import main  # noqa: E402

RECIPE = """
seed = 1
[data]
kind = "synthetic"
problem = "copy"
n_train = 120
n_dev = 8
n_test = 8
length = 5
[tokenizer]
kind = "character"
vocab_size = 300
[model]
d_model = 8
d_ff = 16
n_heads = 2
n_layers = 1
[train]
steps = 12
batch_tokens = 64
evaluate_every = 6
save_every = 3
keep_last = 2
device = "cpu"
[decode]
method = "greedy"
max_extra = 3
"""
OPERATIONS = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.chmod"}
GIBIBYTE = 1 << 30


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong: `once` asserts what must hold afterwards, and returns the steps of work lost."""

    name: str
    once: Callable[["Shop", Random], int]
    times: int
    """repetitions in `make faults`"""
    quick: bool = False
    """also part of `make test`, once"""


@dataclass(frozen=True)
class Ended:
    """How a child ended."""

    code: int
    """exit code, or minus the number of a signal"""
    out: str
    err: str
    peak: int
    """resident bytes at most"""

    def refused(self) -> bool:
        """Whether the input was refused as an error of ours should be: named, with exit code 2 or 1, no traceback."""
        return self.code in (1, 2) and self.err.lstrip().rpartition("error:")[1] != "" and "Traceback" not in self.err


@dataclass
class Shop:
    """A folder of its own for each repetition, and one undisturbed run to compare with."""

    folder: Path

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.recipe = self.folder / "recipe.toml"
        self.recipe.write_text(RECIPE, "utf-8")
        self.cache = self.folder / "cache"
        self._n = 0
        self.seconds = 0.0
        """that an undisturbed run takes here and now"""

    def new(self, name: str = "run") -> Path:
        self._n += 1
        return self.folder / f"{name}-{self._n}"

    def undisturbed(self) -> Path:
        out = self.folder / "calm"
        if not out.exists():
            began = time.monotonic()
            ended = self.train(out)
            assert ended.code == 0, ended.err
            self.seconds = time.monotonic() - began
        return out

    def moment(self, random: Random) -> float:
        """Seconds after which a run of the same length is somewhere between its first import and its last score."""
        self.undisturbed()
        return random.uniform(0.0, self.seconds)

    def copy(self) -> Path:
        """The undisturbed run, to be damaged."""
        return Path(shutil.copytree(self.undisturbed(), self.new()))

    def train(self, out: Path, *more: str, **how: Any) -> Ended:
        return self.run(["train", str(self.recipe), "--out", str(out), *more], **how)

    def run(self, arguments: list[str], *, stdin: bytes | Path = b"", **how: Any) -> Ended:
        return self.end(self.start(arguments, stdin=stdin, **how))

    def start(
        self,
        arguments: list[str],
        *,
        stdin: bytes | Path = b"",
        before: Callable[[], object] = lambda: None,
        cache: Path | None = None,
        memory: int | None = None,
    ) -> "Child":
        """jumok in a child; `before` is called in it, to sabotage it."""
        base = self.new("child")
        streams = [base.with_suffix(end) for end in (".out", ".err")]
        given = stdin if isinstance(stdin, Path) else base.with_suffix(".in")
        if isinstance(stdin, bytes):
            given.write_bytes(stdin)
        pid = os.fork()
        if pid == 0:
            code = 74  # as when not even an error can be written
            try:
                code = self._child(arguments, given, streams, before, cache or self.cache, memory)
            finally:
                os._exit(code)
        return Child(pid, streams[0], streams[1])

    def _child(
        self,
        arguments: list[str],
        given: Path,
        streams: list[Path],
        before: Callable[[], object],
        cache: Path,
        memory: int | None,
    ) -> int:
        code = 70
        try:
            os.setsid()
            os.dup2(os.open(given, os.O_RDONLY), 0)
            for number, path in enumerate(streams, start=1):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            sys.stdin = io.TextIOWrapper(os.fdopen(0, "rb"), "utf-8")
            sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb"), "utf-8", line_buffering=True)
            sys.stderr = io.TextIOWrapper(os.fdopen(2, "wb", buffering=0), "utf-8", write_through=True)
            os.environ["JUMOK_CACHE"] = str(cache)
            if memory is not None:
                resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
            sys.argv = ["jumok", *arguments]
            before()
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except (OSError, ValueError):
                    code = code or 74
        return code

    def end(self, child: "Child", seconds: float = 120) -> Ended:
        deadline = time.monotonic() + seconds
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                os.killpg(child.pid, signal.SIGKILL)
                raise AssertionError(
                    f"still running after {seconds} s: {child.err.read_text('utf-8', 'replace')[-500:]}"
                )
            time.sleep(0.005)
        out, err = (path.read_text("utf-8", "replace") for path in (child.out, child.err))
        return Ended(os.waitstatus_to_exitcode(status), out, err, usage.ru_maxrss * 1024)

    # what must hold

    def resumes(self, out: Path, *, lost: int | None = None, cache: Path | None = None) -> int:
        """The same command again ends with the very bytes of the undisturbed run; returns the steps that were lost."""
        reached = steps_of(out)
        ended = self.train(out, cache=cache)
        assert ended.code == 0, ended.err
        for name in ("model/model.safetensors", "scores.json"):
            assert (out / name).read_bytes() == (self.undisturbed() / name).read_bytes(), name
        left = [path.name for path in out.rglob("*") if ".tmp-" in path.name or ".old-" in path.name]
        assert not left, left
        resumed = [event["step"] for event in events_of(out) if event["event"] == "resumed"]
        return max(reached - (resumed[-1] if resumed else 0), 0) if lost is None else lost


@dataclass(frozen=True)
class Child:
    pid: int
    out: Path
    err: Path

    def kill(self, number: int = signal.SIGKILL) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


def events_of(out: Path) -> list[dict[str, Any]]:
    path = out / "events.jsonl"
    found = []
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def steps_of(out: Path) -> int:
    """The last step that was taken."""
    return max((event["step"] for event in events_of(out) if event["event"] == "step"), default=0)


def next_of(shop: Shop, name: str, n: int) -> int:
    """1, 2, ... n, and again from 1."""
    counter = shop.folder / f"next-{name}"
    at = int(counter.read_text()) % n + 1 if counter.exists() else 1
    counter.write_text(str(at))
    return at


def sabotage(folder: Path, at: int, act: Callable[[], object], record: Path | None = None) -> Callable[[], None]:
    """In a child: `act` instead of the at-th operation on files below a folder; `record` counts them."""
    prefix, seen, busy = str(folder), 0, False

    def operation(what: str) -> None:
        nonlocal seen, busy
        if busy:
            return
        seen += 1
        busy = True
        try:
            if record is not None:
                with builtins.open(record, "a", encoding="utf-8") as file:
                    file.write(f"{what}\n")
            if seen == at:
                act()
        finally:
            busy = False

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in OPERATIONS and arguments and str(arguments[0]).startswith(prefix):
            writes = event != "open" or isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            if writes:
                operation(f"{event} {arguments[0]}")

    def install() -> None:
        real = os.fsync

        def fsync(descriptor: int) -> None:
            if os.readlink(f"/proc/self/fd/{descriptor}").startswith(prefix):
                operation("fsync")
            real(descriptor)

        os.fsync = fsync
        sys.addaudithook(hook)

    return install


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail(number: int) -> Callable[[], None]:
    def act() -> None:
        raise OSError(number, os.strerror(number))

    return act
