"""The prefixes of texts that a language model continues: read in one pass, and each of them once."""

from collections.abc import Sequence

import torch

from jumok.data.pages import pad
from jumok.decode.options import Request
from jumok.decode.search import Read
from jumok.models.gpt import Gpt, GptState

STATES = 1024  # projected at once: each has as many logits as the vocabulary


def read_prefixes(
    model: Gpt, requests: Sequence[Request], *, end_id: int, probabilities: bool = True
) -> tuple[GptState, Read]:
    """The state after all tokens of each prefix but the last.

    Their log-probabilities, which belong to those of the texts, may be left out.
    """
    prefixes = [_until(request.prefix, end_id) for request in requests]
    order = {prefix: i for i, prefix in enumerate(dict.fromkeys(prefixes))}
    different = list(order)
    tokens = torch.tensor([prefix[-1] if prefix else model.start_id for prefix in prefixes], device=model.device)
    lengths = torch.tensor([len(prefix) for prefix in different], device=model.device)
    log_probs = torch.zeros(len(different), dtype=torch.double, device=model.device)
    if not any(different):
        return model.start(len(requests)), Read(tokens, [0] * len(requests), [0.0] * len(requests))
    out = pad(different, model.start_id).to(model.device)
    ids = out.roll(1, dims=1)
    ids[:, 0] = model.start_id
    states, state = model.read(ids, lengths)
    if probabilities:
        real = torch.arange(ids.shape[1], device=model.device) < lengths[:, None]
        states, owners, targets = states[real], real.nonzero()[:, 0], out[real][:, None]
        for first in range(0, len(owners), STATES):
            some = slice(first, first + STATES)
            logits = model.logits(states[some]).float()
            gains = logits.gather(1, targets[some])[:, 0] - logits.logsumexp(dim=-1)
            log_probs.index_add_(0, owners[some], gains.double())
    rows = [order[prefix] for prefix in prefixes]
    if len(different) < len(prefixes):
        state = state.select(torch.tensor(rows, device=model.device))
    sums = log_probs.tolist()
    return state, Read(tokens, [len(prefix) for prefix in prefixes], [sums[row] for row in rows])


def _until(prefix: Sequence[int], end_id: int) -> tuple[int, ...]:
    """A text ends where its prefix has an end token: the search sees to that."""
    return tuple(prefix[: prefix.index(end_id)] if end_id in prefix else prefix)
