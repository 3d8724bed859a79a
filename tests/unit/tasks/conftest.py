"""Tiny runs of every task over one text, trained in this process, once a session."""

import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from jumok.predictor import load
from jumok.recipe import parse_recipe
from jumok.training import run_training

FILLERS = ["a", "the", "dog", "cat", "runs", "sits", "today", "here", "slowly", "비", "바람"]
LINE = "the cat sat on the mat and the dog lay by the door"


def labelled(n, seed):
    """A text is good if the word sun is in it."""
    rng = random.Random(seed)
    rows = ["text\tlabel"]
    for _ in range(n):
        words = rng.choices(FILLERS, k=rng.randint(1, 6))
        label = rng.choice(["good", "bad"])
        if label == "good":
            words[rng.randrange(len(words))] = "sun"
        rows.append(f"{' '.join(words)}\t{label}")
    return "\n".join(rows) + "\n"


def tagged(n, seed):
    """Capitalised words are names, and neighbours are one name."""
    rng = random.Random(seed)
    lines = []
    for _ in range(n):
        before = "O"
        for _ in range(rng.randint(1, 6)):
            word = "".join(rng.choices("abcdef", k=rng.randint(1, 3)))
            name = rng.random() < 0.4
            before = "O" if not name else "B-NAME" if before == "O" else "I-NAME"
            lines.append(f"{word.capitalize() if name else word} {before}")
        lines.append("")
    return "\n".join(lines) + "\n"


def plain(n, seed):
    return f"{LINE}\n" * n


TASKS = {
    "classification": {
        "data": ("labelled", labelled),
        "tokenizer": {"kind": "word", "vocab_size": 40},
        "model": {"kind": "rnn", "cell": "gru", "pool": "attention", "d_embedding": 12, "d_hidden": 12},
        "train": {"steps": 60, "batch_tokens": 256, "metric": "accuracy"},
    },
    "tagging": {
        "data": ("tagged", tagged),
        "tokenizer": {"kind": "character", "vocab_size": 300},
        "model": {"kind": "rnn", "cell": "gru", "bidirectional": True, "d_embedding": 16, "d_hidden": 32},
        "train": {"steps": 90, "batch_tokens": 512, "metric": "span_f1"},
    },
    "language_model": {
        "data": ("text", plain),
        "tokenizer": {"kind": "word", "vocab_size": 40},
        "model": {"kind": "rnn", "cell": "lstm", "d_embedding": 16, "d_hidden": 16},
        "train": {"steps": 80, "batch_tokens": 128, "metric": "bits_per_byte"},
        "decode": {"method": "greedy", "max_extra": 20},
    },
}


class Silent:
    """A watcher that may speak up at an event."""

    def __init__(self, at):
        self.at = at
        self.events = []

    def began(self, run):
        pass

    def watch(self, event):
        self.events.append(event)
        self.at(event)

    def stopping(self):
        pass

    @contextmanager
    def scoring(self, split: str, sentences: int) -> Iterator[Callable[[int], None]]:
        yield lambda n: None


@pytest.fixture(scope="session")
def tree(tmp_path_factory):
    """The recipe of a task as a dict, its files written; sections can be changed."""
    folder = tmp_path_factory.mktemp("data")

    def tree_of(task, **sections):
        found = {"task": {"kind": task}, **TASKS[task]}
        kind, write = found["data"]
        found["data"] = {"kind": kind}
        for seed, (split, n) in enumerate({"train": 300, "dev": 40, "test": 60}.items()):
            path = folder / f"{task}.{split}"
            if not path.exists():
                path.write_text(write(n, seed), "utf-8")
            found["data"][split] = [str(path)]
        found["model"] = {"dropout": 0.0, **found["model"]}
        optimizer = {"schedule": "linear", "learning_rate": 0.02, "warmup": 5, "clip_norm": 1.0}
        found["train"] = {"evaluate_every": 1000, "save_every": 1000, "final": "last", **found["train"]}
        found["train"] |= {"device": "cpu", "optimizer": optimizer}
        for section, keys in sections.items():
            found[section] = {**found.get(section, {}), **keys}
        return found

    return tree_of


@pytest.fixture(scope="session")
def train(tmp_path_factory):
    """Train a recipe into a folder; `at` is told every event."""
    cache = tmp_path_factory.mktemp("cache")

    def train_into(tree, out, at=lambda event: None):
        watcher = Silent(at)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("JUMOK_CACHE", str(cache))
            outcome = run_training(parse_recipe(json.loads(json.dumps(tree)), where="test"), out, watcher)
        return outcome, watcher.events

    return train_into


@pytest.fixture(scope="session")
def runs(tree, train, tmp_path_factory):
    """The run folder of a task, and its predictor, trained when it is asked for first."""
    folder, done = tmp_path_factory.mktemp("runs"), {}

    def run_of(task):
        if task not in done:
            train(tree(task), folder / task)
            done[task] = SimpleNamespace(folder=folder / task, predictor=load(folder / task, device="cpu"))
        return done[task]

    return run_of


@pytest.fixture(scope="session")
def held_out(tree):
    """The examples of a task's test split."""

    def examples_of(task):
        recipe = parse_recipe(tree(task), where="test")
        return list(recipe.data.read("test", seed=1))

    return examples_of
