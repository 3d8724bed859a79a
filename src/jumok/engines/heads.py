"""BERT's heads in NumPy, without torch: what jumok.models.bert and bert_heads compute from a body's states.

All take the tensors of a model folder under the names of jumok's modules. N texts, S positions, D d_model, L labels,
V vocabulary; float32 in, float32 out.
"""

from collections.abc import Callable, Mapping, Sequence
from math import erf, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from jumok.engines import Part

Floats = NDArray[np.float32]
Tensors = Mapping[str, Floats]

STEP = 1 / 128
"""between the points at which erf is known"""
FAR = 6
"""erf is 1 from here on, to the last digit of a float64"""


def of_text(t: Tensors, first: Floats, *, pooling: str = "tanh") -> Floats:
    """BertClassifier: logits [N, L] from the states of `[CLS]` [N, D]."""
    return _linear(t, "output", _pool(t, first, pooling))


def of_pieces(t: Tensors, states: Floats) -> Floats:
    """BertTagger: logits [S, L], the start and the end of an answer, or the emissions of a CRF."""
    return _linear(t, "output", states)


def of_entities(t: Tensors, states: Floats, head: Part, tail: Part) -> Floats:
    """BertRelation: logits [L] from the states [S, D] of one row and the positions of its two entities."""
    means = np.stack([states[first:end].mean(axis=0) for first, end in (head, tail)])
    text, entities = _linear(t, "w_0", np.tanh(states[0])), _linear(t, "w_1", np.tanh(means))
    return _linear(t, "w_3", np.concatenate([text, entities.ravel()]))


def of_masked(t: Tensors, states: Floats, *, activation: str, norm_eps: float) -> Floats:
    """BertPretraining.logits: [N, V] from the states [N, D] of masked positions."""
    x = activate(_linear(t, "transform", states), activation)
    x = x - x.mean(axis=-1, keepdims=True)
    x /= np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + norm_eps)
    x = x * t["transform_norm.weight"] + t["transform_norm.bias"]
    logits: Floats = x @ t["bert.embedding.weight"].T + t["bias"]
    return logits


def of_next_sentence(t: Tensors, first: Floats, *, pooling: str = "tanh") -> Floats:
    """BertPretraining.follows: logits [N, 2] from the states of `[CLS]`: B follows A (0), or does not (1)."""
    return _linear(t, "next_sentence", _pool(t, first, pooling))


def softmax(x: NDArray[np.floating]) -> NDArray[np.float64]:
    e = np.exp(x - x.max(axis=-1, keepdims=True), dtype=np.float64)
    found: NDArray[np.float64] = e / e.sum(axis=-1, keepdims=True)
    return found


def _linear(t: Tensors, name: str, x: Floats) -> Floats:
    y: Floats = x @ t[f"{name}.weight"].T + t[f"{name}.bias"]
    return y


def _pool(t: Tensors, first: Floats, pooling: str) -> Floats:
    pooled = _linear(t, "bert.pooler", first)
    return np.tanh(pooled) if pooling == "tanh" else activate(pooled, pooling)


# activations


def activate(x: Floats, activation: str) -> Floats:
    """As jumok.nn.transformer.activate."""
    found: Floats = ACTIVATIONS[activation](x).astype(np.float32)
    return found


def gauss_error(x: NDArray[np.floating]) -> NDArray[np.float64]:
    """erf(x), which NumPy lacks, with an error below 1e-9.

    Taylor's series at the nearest of the points 0, 1/128, .. 6, whose values are from `math.erf`:

        erf(a + d) = erf(a) + 2 / sqrt(pi) exp(-a^2) (d - a d^2 + (2 a^2 - 1) d^3 / 3) + ..

    with |d| <= 1/256, so that the next term, of d^4, is below 3e-10.
    """
    size = np.minimum(np.abs(x, dtype=np.float64), FAR)
    nearest = np.rint(size / STEP).astype(np.intp)
    a = nearest * STEP
    d = size - a
    slope = 2 / sqrt(pi) * np.exp(-np.square(a))
    found: NDArray[np.float64] = np.copysign(
        ERF[nearest] + slope * d * (1 + d * (-a + d * (2 * np.square(a) - 1) / 3)), x
    )
    return found


ERF = np.array([erf(i * STEP) for i in range(round(FAR / STEP) + 1)])

ACTIVATIONS: dict[str, Callable[[Floats], NDArray[np.floating]]] = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * (1 + gauss_error(x / sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2,
    "silu": lambda x: x * (1 + np.tanh(x / 2)) / 2,
}


# a CRF over the tags: jumok.nn.crf for texts of one length, e [N, T, L], T at least 1


def crf_marginals(t: Tensors, e: Floats) -> NDArray[np.float64]:
    """p(tag | e) at every position [N, T, L]: forwards and backwards."""
    transitions, starts, ends = (t[f"crf.{name}"] for name in ("transitions", "starts", "ends"))
    paths = np.empty(e.shape, dtype=np.float32)
    paths[:, 0] = starts + e[:, 0]
    for i in range(1, e.shape[1]):
        paths[:, i] = _logsumexp(paths[:, i - 1, :, None] + transitions, axis=1) + e[:, i]
    beta = np.broadcast_to(ends, e[:, 0].shape)
    for i in range(e.shape[1] - 1, -1, -1):
        paths[:, i] += beta
        beta = _logsumexp(transitions + (e[:, i] + beta)[:, None], axis=2)
    return softmax(paths)


def crf_best(t: Tensors, e: Floats) -> NDArray[np.int64]:
    """The highest-scoring paths [N, T] (Viterbi)."""
    transitions, starts, ends = (t[f"crf.{name}"] for name in ("transitions", "starts", "ends"))
    delta, back = starts + e[:, 0], np.zeros(e.shape, dtype=np.int64)
    for i in range(1, e.shape[1]):
        scores = delta[:, :, None] + transitions
        back[:, i] = scores.argmax(axis=1)
        delta = scores.max(axis=1) + e[:, i]
    best = np.empty(e.shape[:2], dtype=np.int64)
    best[:, -1] = (delta + ends).argmax(axis=-1)
    for i in range(e.shape[1] - 1, 0, -1):
        best[:, i - 1] = back[np.arange(len(e)), i, best[:, i]]
    return best


def _logsumexp(x: Floats, axis: int) -> Floats:
    most = x.max(axis=axis, keepdims=True)
    found: Floats = np.log(np.exp(x - most).sum(axis=axis)) + most.squeeze(axis)
    return found


def tags_of(
    t: Tensors, emissions: Sequence[NDArray[np.floating]]
) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """The best tags [U] and all probabilities [U, L] of each text's units, through the CRF if there is one."""
    if "crf.transitions" not in t:
        by_unit = [softmax(e) for e in emissions]
        return [(p.argmax(axis=-1).astype(np.int64), p) for p in by_unit]
    found = [(np.zeros(0, dtype=np.int64), e.astype(np.float64)) for e in emissions]
    by_size: dict[int, list[int]] = {}
    for i, e in enumerate(emissions):
        by_size.setdefault(len(e), []).append(i)
    for size, some in by_size.items():
        if size:
            stacked = np.stack([emissions[i] for i in some]).astype(np.float32)
            for i, best, probabilities in zip(some, crf_best(t, stacked), crf_marginals(t, stacked), strict=True):
                found[i] = best, probabilities
    return found
