"""Search over a decoder's `step` and its state's `select`.

A state has one row per hypothesis, and hypotheses are picked by selecting rows. No row depends on another
sentence's rows, so a sentence's output does not depend on the batch it is in. Beam search itself is in beam.py.

V vocabulary, S source positions.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Any, Protocol

import torch
from torch import Tensor

from jumok.decode.beam import beam_search
from jumok.decode.options import NO_TOKEN, DecodeConfig, Hypothesis, Request, damaged
from jumok.errors import InputError

Tick = Callable[[], None]
"""called before every step; may raise to stop the search"""


class State(Protocol):
    def select(self, rows: Tensor) -> Any: ...


class Decoder(Protocol):
    """The interface that search needs from a model."""

    start_id: int

    @property
    def device(self) -> torch.device: ...

    def step(self, tokens: Tensor, state: Any, *, attention: list[Tensor] | None = None) -> tuple[Tensor, Any]:
        """Map tokens [N] to logits [N, V] and the next state; append attention [N, S] if a list is given."""
        ...


@dataclass(frozen=True, slots=True)
class Read:
    """What a state has read of each request's prefix: all tokens but the last, which is the next to be read."""

    tokens: Tensor
    """[B]: those; the start token of an empty prefix"""
    lengths: list[int]
    log_probs: list[float]
    """of the prefixes"""

    @staticmethod
    def nothing(decoder: Decoder, rows: int) -> "Read":
        return Read(torch.full((rows,), decoder.start_id, device=decoder.device), [0] * rows, [0.0] * rows)


@torch.inference_mode()
def search(
    decoder: Decoder,
    state: State,
    requests: Sequence[Request],
    config: DecodeConfig,
    *,
    eos_id: int,
    tick: Tick = lambda: None,
    read: Read | None = None,
    continues: bool = False,
) -> list[list[Hypothesis]]:
    """Return the hypotheses of each row of `state`, best first; `read` says how much of the prefixes it has read.

    The log-probability is that of the whole text, or, if the search `continues` texts one token at a time, that of the
    tokens it chose: neither of the prefix nor of an end forced by the limit.
    """
    read = read or Read.nothing(decoder, len(requests))
    following = partial(follow, eos_id=eos_id, tick=tick, read=read, only_chosen=continues)
    match config.method:
        case "beam":
            found = beam_search(decoder, state, requests, config, eos_id=eos_id, tick=tick, read=read)
        case "greedy":
            found = following(decoder, state, requests, _likeliest)
        case "sample":
            choose = _Sampler(requests, config, read.lengths)
            found = following(decoder, state, requests, choose)
    if not all(hypotheses and isfinite(hypotheses[0].log_prob) for hypotheses in found):
        raise damaged()
    return found


Choose = Callable[[Tensor, list[int]], Tensor]


def follow(
    decoder: Decoder,
    state: State,
    requests: Sequence[Request],
    choose: Choose,
    *,
    eos_id: int,
    read: Read,
    tick: Tick = lambda: None,
    only_chosen: bool = False,
) -> list[list[Hypothesis]]:
    """One hypothesis per sentence, extended by the token that `choose(log_probs, sentences)` picks.

    Its log-probability is that of the whole text, or that of the tokens that were not forced.
    """
    alive = list(range(len(requests)))
    ids = [list(request.prefix[:n]) for request, n in zip(requests, read.lengths, strict=True)]
    log_prob = [0.0] * len(requests) if only_chosen else list(read.log_probs)
    tokens, at = read.tokens, list(read.lengths)
    while alive:
        tick()
        logits, state = decoder.step(tokens, state)
        log_probs = logits.float().log_softmax(dim=-1)
        forced = torch.tensor([requests[i].forced(at[i], eos_id) for i in alive], device=decoder.device)
        tokens = torch.where(forced == NO_TOKEN, choose(log_probs, alive), forced)
        gains = log_probs.gather(1, tokens[:, None])[:, 0]
        if only_chosen:
            gains = gains * (forced == NO_TOKEN)
        unfinished = []
        for row, (i, token, gain) in enumerate(zip(alive, tokens.tolist(), gains.tolist(), strict=True)):
            log_prob[i] += gain
            if token != eos_id:
                ids[i].append(token)
            if not requests[i].heard(at[i], token, gain) and token != eos_id:
                unfinished.append(row)
            at[i] += 1
        if len(unfinished) < len(alive):
            alive = [alive[row] for row in unfinished]
            rows = torch.tensor(unfinished, dtype=torch.long, device=decoder.device)
            tokens, state = tokens[rows], state.select(rows) if unfinished else state
    return [[Hypothesis(ids[i], log_prob[i], log_prob[i])] for i in range(len(requests))]


@torch.inference_mode()
def follow_one(
    decoder: Decoder, state: State, request: Request, config: DecodeConfig, *, eos_id: int, read: Read | None = None
) -> Iterator[int]:
    """Yield the tokens of one hypothesis after its prefix, each as soon as it is chosen."""
    if config.method == "beam":
        raise InputError(
            "beam search cannot stream: its first token is known only after its last",
            hint='set decode.method = "sample" or "greedy"',
            code="input.stream",
        )
    read = read or Read.nothing(decoder, 1)
    choose: Choose = _likeliest if config.method == "greedy" else _Sampler([request], config, read.lengths)
    tokens = read.tokens
    for t in range(read.lengths[0], request.max_len):
        logits, state = decoder.step(tokens, state)
        forced = request.forced(t, eos_id)
        log_probs = logits.float().log_softmax(dim=-1)
        if log_probs.isnan().any():
            raise damaged()
        tokens = choose(log_probs, [0])  # also where it is forced: draws as `follow` does
        if forced != NO_TOKEN:
            tokens = torch.full_like(tokens, forced)
        elif int(tokens) == eos_id:
            return
        else:
            yield int(tokens)


def _likeliest(log_probs: Tensor, _: list[int]) -> Tensor:
    return log_probs.argmax(dim=-1)


class Ensemble:
    """Several decoders with one vocabulary, combined by the mean of their probabilities."""

    def __init__(self, decoders: Sequence[Decoder]) -> None:
        self.decoders = decoders
        self.start_id = decoders[0].start_id
        self.device = decoders[0].device

    def step(
        self, tokens: Tensor, state: "EnsembleState", *, attention: list[Tensor] | None = None
    ) -> tuple[Tensor, "EnsembleState"]:
        log_probs, states, seen = [], [], []
        for decoder, part in zip(self.decoders, state.parts, strict=True):
            looked_at: list[Tensor] | None = None if attention is None else []
            logits, part = decoder.step(tokens, part, attention=looked_at)
            log_probs.append(logits.float().log_softmax(dim=-1))
            states.append(part)
            seen += looked_at or []
        if attention is not None:
            attention.append(torch.stack(seen).mean(dim=0))
        return torch.stack(log_probs).logsumexp(dim=0), EnsembleState(states)


@dataclass(frozen=True, slots=True)
class EnsembleState:
    parts: list[Any]

    def select(self, rows: Tensor) -> "EnsembleState":
        return EnsembleState([part.select(rows) for part in self.parts])


class _Sampler:
    """Sample with one generator per sentence, so that sampled output does not depend on the batch either."""

    def __init__(self, requests: Sequence[Request], config: DecodeConfig, read: Sequence[int]) -> None:
        """`read` tokens of each prefix are not drawn again, but each took a number of the generator."""
        self.config = config
        self.generators = [torch.Generator().manual_seed(request.seed) for request in requests]
        for generator, n in zip(self.generators, read, strict=True):
            torch.rand(n, generator=generator)

    def __call__(self, log_probs: Tensor, sentences: list[int]) -> Tensor:
        p, ids = (log_probs / self.config.temperature).softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
        below = p.cumsum(dim=-1) - p  # total probability of the likelier tokens
        keep = below < self.config.top_p
        if self.config.top_k:
            keep[:, self.config.top_k :] = False
        p = p * keep
        u = torch.stack([torch.rand(1, generator=self.generators[i]) for i in sentences]).to(p)
        pick = (p.cumsum(dim=-1) < u * p.sum(dim=-1, keepdim=True)).sum(dim=-1, keepdim=True)
        pick = torch.minimum(pick, keep.sum(dim=-1, keepdim=True) - 1).clamp(min=0)  # NaN keeps none
        return ids.gather(1, pick)[:, 0]
