"""Loss curves made up for tests: recipes, and the events of runs that follow a shape."""

from collections.abc import Callable
from typing import Any

import numpy as np

from jumok.doctor.curve import Ground
from jumok.recipe import Recipe, parse_recipe

FLOOR = 6.9
GROUND = Ground(floor=FLOOR, vocabulary=8000, used=0.95, unknown=0.0, repeated=0.001)
Events = list[dict[str, Any]]
Shape = Callable[[float], float]
"""the masked loss as a function of the share of the steps that is over"""


def recipe(steps: int = 4000, warmup: int = 40, **parts: Any) -> Recipe:
    optimizer = {"kind": "adamw", "schedule": "linear", "learning_rate": 1e-3, "warmup": warmup}
    tree: dict[str, Any] = {
        "task": {"kind": "pretraining"},
        "data": {"kind": "toy_stories", "n_train": 50, "n_dev": 5, "n_test": 5, "max_len": 64},
        "tokenizer": {"kind": "wordpiece", "vocab_size": 100},
        "model": {"kind": "bert", "d_model": 64, "d_ff": 64, "n_heads": 2, "n_layers": 2, "max_len": 64},
        "train": {"steps": steps, "metric": "masked_accuracy", "optimizer": optimizer},
    }
    return parse_recipe({key: {**value, **parts.get(key, {})} for key, value in tree.items()}, where="test")


def falls_to(low: float) -> Shape:
    """From ln 8,000 down, fast at first."""
    return lambda t: low + (8.99 - low) * float(np.exp(-8 * t))


HEALTHY, AT_FLOOR = falls_to(3.0), falls_to(FLOOR)


def run(
    shape: Shape, n: int = 4000, *, pairs: Shape | None = lambda t: 0.6 - 0.3 * t, noise: float = 0.1, **columns: Any
) -> Events:
    """The steps of a run; other columns are values, or functions of the share of the steps that is over."""
    rng = np.random.default_rng(0)
    events: Events = []
    for step in range(1, n + 1):
        t = step / n
        masked = shape(t) + noise * rng.normal()
        parts = {"masked": masked, "next_sentence": pairs(t) + 0.02 * rng.normal()} if pairs else {}
        event = {"event": "step", "step": step, "epoch": step // 100, "loss": sum(parts.values()) or masked}
        event |= {"learning_rate": 1e-3, "grad_norm": 1.5, "tokens": 4096, "seconds": 0.5, "parts": parts}
        events.append(event | {name: value(t) if callable(value) else value for name, value in columns.items()})
    return events


def evaluated(step: int, masked_loss: float, pairs: float = 80.0) -> dict[str, Any]:
    scores = {"masked_loss": masked_loss, "perplexity": 1.0, "masked_accuracy": 40.0}
    scores |= {"next_sentence_accuracy": pairs, "next_sentence_majority": 52.0}
    return {"event": "evaluated", "step": step, "scores": scores, "best": False}


def finished(step: int) -> dict[str, Any]:
    return {"event": "finished", "step": step, "reason": "steps"}


def language_model(kind: str, data: dict[str, Any] | None = None) -> Recipe:
    wide = {"d_embedding": 64, "d_hidden": 64} if kind == "elmo" else {"d_model": 64, "d_ff": 64, "n_heads": 2}
    tree = {
        "task": {"kind": "language_model"},
        "data": data or {"kind": "toy_grammar", "n_train": 50, "n_dev": 5, "n_test": 5},
        "tokenizer": {"kind": "byte_bpe" if kind == "gpt" else "word", "vocab_size": 300},
        "model": {"kind": kind, **wide},
        "train": {"steps": 4000, "metric": "perplexity"},
    }
    return parse_recipe(tree, where="test")
