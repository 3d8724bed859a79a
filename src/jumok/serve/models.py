"""The runs that a server answers for: loaded at the start, or when they are first asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from threading import Lock
from typing import Any

from jumok.engines import Done
from jumok.errors import InputError
from jumok.examples.length import texts_of
from jumok.predictor import load
from jumok.serve.queue import Job, Queue
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
        self._served: dict[str, Served] = {}
        for run in runs:
            name = run.resolve().name
            if name in self._served:
                what, hint = f"two runs are called {name}", "rename one of the folders"
                raise InputError(what, where=run, hint=hint, code="input.run_names")
            self._served[name] = Served(name, load(run), queue)

    def names(self) -> list[str]:
        found = set(self._served)
        if self.folder is not None and self.folder.is_dir():
            found |= {path.name for path in self.folder.iterdir() if (path / "model" / "config.json").is_file()}
        return sorted(found)

    def get(self, name: str) -> Served | None:
        """A run, loaded on first use; None if there is no run of that name."""
        if name in self._served:  # without the lock: clients of a loaded run do not wait while another one loads
            return self._served[name]
        with self._lock:
            if name not in self._served:
                if self.folder is None or name not in self.names():
                    return None
                self._served[name] = Served(name, load(self.folder / name), self.queue)
            return self._served[name]
