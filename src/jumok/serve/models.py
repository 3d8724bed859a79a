"""The runs that a server answers for: loaded at the start, or when they are first asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any

from jumok.engines import Done
from jumok.errors import InputError
from jumok.examples.length import texts_of
from jumok.files import is_leftover
from jumok.predictor import load
from jumok.serve.queue import Job, Queue
from jumok.serve.runs import Run
from jumok.tasks.protocol import Failure, Predictor

INTERACTIVE = 16
"""inputs of a request up to which it counts as interactive"""


class Served:
    """One run behind the queue."""

    def __init__(self, name: str, predictor: Predictor[Any, Any], queue: Queue) -> None:
        self.name, self.predictor, self.queue = name, predictor, queue

    def jobs(self, examples: Sequence[Any], options: Mapping[str, Any]) -> list[Job | Failure]:
        """A job for each example, or a Failure for one that cannot be read."""
        self.predictor.wanted(options)
        key = (self.name, *sorted((name, repr(value)) for name, value in options.items()))
        interactive = len(examples) <= INTERACTIVE

        def answer(batch: Sequence[Any], wanted: Done) -> Sequence[Any]:
            return self.predictor.predict(batch, done=wanted, **options)

        began = monotonic()
        found: list[Job | Failure] = []
        for number, given in enumerate(examples):
            where = f"examples[{number}]"
            try:
                example = self.predictor.parse(given, where)
                tokens = sum(map(len, self.predictor.tokenizer.encode_batch(texts_of(example)))) + 1
            except InputError as error:
                found.append(Failure.of(error, where))
            else:
                found.append(Job(key, answer, example, tokens, interactive))
        self.queue.tokenised(monotonic() - began)
        return found

    def facts(self) -> dict[str, Any]:
        """What a client has to know to ask."""
        kinds = self.predictor.options
        known: dict[str, Any] = {"name": self.name, "task": self.predictor.kind}
        known |= {"options": [field.name for field in fields(kinds)] if kinds else []}
        for name in ("source", "target", "labels"):
            if found := getattr(self.predictor, name, None):
                known[name] = found
        return {**known, "max_characters": self.predictor.max_characters, **self.predictor.about()}


class Models:
    """Served runs by name. A name is one that was given at the start, or that of a folder in `folder`: never a path."""

    def __init__(self, runs: Sequence[Path], folder: Path | None, queue: Queue) -> None:
        self.queue, self.folder = queue, folder
        self._lock = Lock()
        self._given: dict[str, Run] = {}
        self._served: dict[str, tuple[Served, tuple[int, ...]]] = {}
        for path in runs:
            run = Run(path.resolve().name, path)
            if run.name in self._given:
                what, hint = f"two runs are called {run.name}", "rename one of the folders"
                raise InputError(what, where=path, hint=hint, code="input.run_names")
            self._given[run.name] = run
            self._load(run)

    def runs(self) -> list[Run]:
        """All runs by name, those that cannot be used yet included."""
        found = dict(self._given)
        if self.folder is not None and self.folder.is_dir():
            below = [Run(path.name, path) for path in self.folder.iterdir() if not is_leftover(path.name)]
            found = {run.name: run for run in below if run.exists} | found
        return [found[name] for name in sorted(found)]

    def loaded(self) -> list[Served]:
        """Runs that have been loaded, by name."""
        return [served for _, (served, _) in sorted(self._served.items())]

    def names(self) -> list[str]:
        """Names of the runs that can be used."""
        return [run.name for run in self.runs() if run.usable]

    def run(self, name: str) -> Run | None:
        return next((run for run in self.runs() if run.name == name), None)

    def get(self, name: str) -> Served | None:
        """A run, loaded on first use and again when it was trained on; None if there is no run of that name to use."""
        run = self.run(name)
        if run is None or not (run.usable or name in self._served):
            return None
        if (ready := self._ready(run)) is not None:  # without the lock: nobody waits while another run loads
            return ready
        with self._lock:
            return self._ready(run) or self._load(run)

    def ready(self, name: str) -> Served | None:
        """A run that is loaded and has not changed since: a few looks at its folder, and no waiting."""
        if name not in self._served:
            return None
        known = self._given.get(name)
        if known is None and self.folder is not None:
            known = Run(name, self.folder / name)
        return None if known is None else self._ready(known)

    def _ready(self, run: Run) -> Served | None:
        served, stamp = self._served.get(run.name, (None, ()))
        return served if run.stamp() in (stamp, ()) else None  # a model goes on when its folder has gone

    def _load(self, run: Run) -> Served:
        stamp = run.stamp()
        served = Served(run.name, load(run.path), self.queue)
        self._served[run.name] = (served, stamp)
        return served
