"""Linear-chain CRF (Lafferty et al. 2001) over a network's tag scores at each position.

Huang et al. 2015; Lample et al. 2016, section 2.2. A path y of tags is scored as a whole, not tag by tag:

    s(e, y)  = starts[y_1] + sum_t e_t[y_t] + sum_t transitions[y_{t-1}, y_t] + ends[y_T]
    p(y | e) = exp(s(e, y)) / Z      Z = sum_{y'} exp(s(e, y'))

Z and the best path are computed left to right, because a path's future depends on its last tag alone:

    alpha_t[j] = e_t[j] + log sum_i exp(alpha_{t-1}[i] + transitions[i, j])      all paths ending in j
    beta_t[i]  = log sum_j exp(transitions[i, j] + e_{t+1}[j] + beta_{t+1}[j])   all paths continuing from i
    delta_t[j] = e_t[j] + max_i (delta_{t-1}[i] + transitions[i, j])             the best path ending in j (Viterbi)

B batch, T positions (at least one), L tags. Masks are bool, True = a real position; real positions come first in their
row, which may have none.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn


class Crf(nn.Module):
    """Transition, start and end scores; the network below supplies each tag's own score e."""

    def __init__(self, n_labels: int) -> None:
        super().__init__()
        # At zero, all tag orders are equally likely and p(y | e) is a softmax at each position: training starts where a
        # tagger without a CRF does. There is no symmetry for noise to break.
        self.transitions = nn.Parameter(torch.zeros(n_labels, n_labels))
        self.starts = nn.Parameter(torch.zeros(n_labels))
        self.ends = nn.Parameter(torch.zeros(n_labels))

    def log_likelihood(self, e: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """log p(tags | e), [B]; e [B, T, L], tags [B, T], arbitrary at padding. A row without positions gets 0."""
        *_, last = self._alphas(e, mask)
        log_z = (last + self.ends).logsumexp(dim=-1)
        return (self._score(e, tags.masked_fill(~mask, 0), mask) - log_z).masked_fill(~mask[:, 0], 0.0)

    def marginals(self, e: Tensor, mask: Tensor) -> Tensor:
        """p(y_t = j | e), [B, T, L], zero at padding: exp(alpha_t + beta_t) / Z, with Z its sum over tags at any t."""
        paths = torch.zeros_like(e)  # one tensor: a list of a million would take a gigabyte
        for t, alpha in enumerate(self._alphas(e, mask)):
            paths[:, t] = alpha
        beta = self.ends.expand_as(e[:, 0])
        for t in range(e.shape[1] - 1, -1, -1):
            paths[:, t] += beta
            beta = torch.where(mask[:, t, None], (self.transitions + (e[:, t] + beta)[:, None]).logsumexp(dim=2), beta)
        return paths.softmax(dim=-1).masked_fill(~mask[..., None], 0.0)

    def best(self, e: Tensor, mask: Tensor) -> Tensor:
        """The highest-scoring path, [B, T]; padding repeats its last tag."""
        delta, stay = self.starts + e[:, 0], torch.arange(e.shape[2], device=e.device)
        back = torch.zeros(e.shape, dtype=torch.long, device=e.device)
        for t in range(1, e.shape[1]):
            real = mask[:, t, None]
            most, previous = (delta[:, :, None] + self.transitions).max(dim=1)
            delta = torch.where(real, most + e[:, t], delta)
            back[:, t] = torch.where(real, previous, stay)
        y = (delta + self.ends).argmax(dim=-1, keepdim=True).repeat(1, e.shape[1])
        for t in range(e.shape[1] - 1, 0, -1):
            y[:, t - 1] = back[:, t].gather(1, y[:, t, None])[:, 0]
        return y

    def _score(self, e: Tensor, y: Tensor, mask: Tensor) -> Tensor:
        """s(e, y), [B]."""
        at = e.gather(2, y[..., None])[..., 0] * mask
        between = self.transitions[y[:, :-1], y[:, 1:]] * mask[:, 1:]
        last = y.gather(1, (mask.sum(dim=1, keepdim=True) - 1).clamp(min=0))[:, 0]
        return self.starts[y[:, 0]] + at.sum(dim=1) + between.sum(dim=1) + self.ends[last]

    def _alphas(self, e: Tensor, mask: Tensor) -> Iterator[Tensor]:
        """alpha_1 .. alpha_T, [B, L] each; padding repeats the last real one."""
        alpha = self.starts + e[:, 0]
        yield alpha
        for t in range(1, e.shape[1]):
            reached = (alpha[:, :, None] + self.transitions).logsumexp(dim=1) + e[:, t]
            alpha = torch.where(mask[:, t, None], reached, alpha)
            yield alpha
