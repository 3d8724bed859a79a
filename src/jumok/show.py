"""The cost of a recipe or a run: parameters, memory, FLOPs and time, before anything is trained."""

import re
from collections import Counter
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from jumok.models.bert import BertConfig
from jumok.models.build import ModelConfig, shapes_of
from jumok.models.elmo import ElmoConfig
from jumok.models.gpt import GptConfig
from jumok.models.head import Head
from jumok.models.seq2seq import Seq2SeqConfig
from jumok.models.transformer import TransformerConfig
from jumok.recipe import Recipe
from jumok.tasks.protocol import TaskKind
from jumok.tasks.stored import read_start
from jumok.train.folder import RunFolder
from jumok.train.layers import Layers
from jumok.train.length import as_planned, pace_of, seconds_of, stretches

EMBEDDINGS = re.compile(r"embedding|positions|segments")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Cost of one model and its training."""

    parameters: dict[str, int]
    """by part, with their sum as "total\""""
    flops_per_pair_of_tokens: int
    """forward and backward, for one source and one target token, or one token of one text, at 30 tokens per sentence"""
    training_flops: float | None
    """None if the recipe sets epochs or minutes: their number of steps depends on data or machine"""
    training_bytes: int
    """weights, and gradients and Adam's two moments of those that learn, in float32; without activations"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Time:
    """How long a training takes, or has taken."""

    minutes: float | None
    """in all; None if the number of steps depends on the data"""
    spent: float
    """minutes so far"""
    steps: int | None
    seconds_per_step: float
    is_measured: bool
    """by the run itself, rather than estimated from the FLOPs and the speed of this machine"""


def time(recipe: Recipe, cost: Cost, folder: RunFolder | None = None) -> Time:
    """The time that a run tells, or an estimate."""
    stored = folder.stored() if folder else None
    train = as_planned(recipe.train, stored or {})
    is_known = bool(stretches(stored or {})) or train.length[0] == "steps"
    steps = train.steps if is_known else None
    if folder is not None and (found := pace_of(history := folder.history())):
        pace, spent = found
        taken = max(int(event.get("step", 0)) for event in history)
        last = history[-1]
        left = 0.0 if last.get("event") == "finished" and last.get("reason") != "interrupted" else None
        if left is None and steps is not None:
            left = seconds_of(max(steps - taken, 0), pace, train.evaluate_every)
        minutes = None if left is None else (spent + left) / 60
        return Time(minutes=minutes, spent=spent / 60, steps=steps, seconds_per_step=pace.step, is_measured=True)
    seconds = cost.flops_per_pair_of_tokens * train.batch_tokens * train.accumulate / flops_per_second()
    minutes = train.minutes if steps is None else steps * seconds / 60
    if minutes is not None and steps is None:
        steps = int(60 * minutes / seconds)
    return Time(minutes=minutes, spent=0.0, steps=steps, seconds_per_step=seconds, is_measured=False)


def flops_per_second(n: int = 512, times: int = 12) -> float:
    """The speed of matrix products here, at best: others may be using the machine for a moment.

    A training reaches about the same number of the FLOPs that `Cost` counts: it does more than matrix products, and its
    batches are not full.
    """
    a, b = torch.zeros(4 * n, n), torch.zeros(n, n)
    seconds = []
    for _ in range(times):
        began = perf_counter()
        torch.mm(a, b)
        seconds.append(perf_counter() - began)
    return 2 * 4 * n**3 / min(seconds)


def cost(recipe: Recipe, *, source_vocab: int | None = None, target_vocab: int | None = None) -> Cost:
    target = target_vocab or recipe.tokenizer.vocab_size
    head = recipe.kind.head(asdict(recipe.task), _two_labels(recipe.kind))
    model = shapes_of(recipe.model, head, source_vocab=source_vocab or target, target_vocab=target)
    parts = {name: sum(p.numel() for p in part.parameters()) for name, part in model.named_children()}
    parts |= {name: p.numel() for name, p in model.named_parameters(recurse=False)}
    parts = {name: n for name, n in parts.items() if n}
    total = sum(p.numel() for p in model.parameters())
    if recipe.train.transfer.mode == "frozen":
        Layers(model, recipe.train.transfer).at(1)
    learning = sum(p.numel() for p in model.parameters() if p.requires_grad)
    predicts_pieces = head.asks in ("words", "masked")
    flops = 6 * _products_per_pair_of_tokens(recipe.model, target if predicts_pieces else 0)
    tokens = recipe.train.steps * recipe.train.batch_tokens * recipe.train.accumulate
    return Cost(
        parameters={**parts, "total": total},
        flops_per_pair_of_tokens=flops,
        training_flops=None if recipe.train.length[0] != "steps" else float(flops) * tokens,
        training_bytes=4 * total + 12 * learning,
    )


def _two_labels(kind: TaskKind) -> Any:
    """Facts with two labels, if the task has labels: how many there will be depends on the data."""
    known = {field.name for field in fields(kind.facts)}
    return kind.facts(labels=["0", "1"]) if "labels" in known else None


def imported(run: Path) -> dict[str, Any]:
    """Task, config and parameters of an imported model, which has no recipe; tied weights count once."""
    model = read_start(str(run))
    parts = Counter[str]()
    for name, tensor in model.tensors.items():
        parts[name.partition(".")[0]] += tensor.numel()
    return {
        "task": model.facts["task"],
        "model": asdict(model.config),
        "vocabulary": model.tokenizers.sizes,
        "parameters": {**parts, "total": parts.total()},
    }


def _products_per_pair_of_tokens(c: ModelConfig, vocab: int, n: int = 30) -> int:
    """Multiply-adds of the forward pass; with the backward pass, each costs six operations."""
    match c:
        case TransformerConfig():
            s = c.stack(cross=True)
            projections = s.d_model * s.n_heads * (2 * s.d_k + 2 * s.d_v)
            attending = n * s.n_heads * (s.d_k + s.d_v)
            feed_forward = 2 * s.d_model * s.d_ff
            return s.n_layers * (3 * (projections + attending) + 2 * feed_forward) + s.d_model * vocab
        case BertConfig() | GptConfig() | ElmoConfig():
            model = shapes_of(c, Head(asks="nothing", pooler=False), source_vocab=2, target_vocab=2)
            weights = sum(
                p.numel() for name, p in model.named_parameters() if p.ndim > 1 and not EMBEDDINGS.search(name)
            )
            attending = 0 if isinstance(c, ElmoConfig) else 2 * n * c.d_model * c.n_layers
            # BERT predicts masked tokens only, ELMo every token twice.
            predicted = {"bert": 0.15, "gpt": 1.0, "elmo": 2.0}[c.kind]
            return weights + attending + int(predicted * c.d_model * vocab)
        case Seq2SeqConfig():
            scores_and_context = 0 if c.attention == "none" else 2 * n * c.d_hidden
            return _in_matrices(c) + scores_and_context + c.d_hidden * vocab
        case _:
            return _in_matrices(c)


def _in_matrices(c: ModelConfig) -> int:
    """Weights that each token is multiplied by."""
    model = shapes_of(c, Head(asks="text", n_labels=2), source_vocab=2, target_vocab=2)
    return sum(p.numel() for name, p in model.named_parameters() if p.ndim > 1 and "embedding" not in name)
