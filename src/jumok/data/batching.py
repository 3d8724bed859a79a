"""Batching by length with a token budget, in an order that is a function of (seed, epoch).

The order does not depend on the number of processes, and planning holds one pool of examples in memory, whatever the
size of the corpus.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from jumok.data.shards import Shards

Indices = npt.NDArray[np.int64]
POOL = 1 << 16

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def epoch_batches(
    n: int,
    *,
    lengths: Callable[[Indices], npt.NDArray[np.int64]],
    batch_tokens: int,
    seed: int,
    epoch: int,
    pool: int = POOL,
) -> Iterator[Indices]:
    """Yield the batches of one epoch; each example occurs once.

    `lengths(examples)` returns one row per example and one column per padded field. A batch of B examples costs
    B x (the longest sequence of any field) tokens, padding included.
    """
    for start in range(0, n, pool):
        examples = permute(np.arange(start, min(start + pool, n)), n, seed=seed, epoch=epoch)
        sizes = lengths(examples)
        # Sort by the longest field, then by the others: neighbours are similar in every field, so padding is small.
        by_size = np.lexsort([*sizes.T, sizes.max(axis=1)])
        batches = list(_fill(examples[by_size], sizes[by_size].max(axis=1), batch_tokens))
        rng = np.random.Generator(np.random.PCG64([seed, epoch, start]))
        for i in rng.permutation(len(batches)):
            yield batches[i]


def _fill(examples: Indices, sizes: npt.NDArray[np.int64], batch_tokens: int) -> Iterator[Indices]:
    """Yield consecutive runs of ascending size within the budget; an example over the budget stands alone."""
    start = 0
    for end in range(1, len(examples) + 1):
        if end == len(examples) or sizes[end] * (end + 1 - start) > batch_tokens:
            yield examples[start:end]
            start = end


def sorted_batches(sizes: npt.NDArray[np.int64], batch_tokens: int) -> list[Indices]:
    """Batches for evaluation and prediction: deterministic, longest first so that peak memory is reached early."""
    order = np.argsort(sizes, kind="stable").astype(np.int64)
    return list(_fill(order, sizes[order], batch_tokens))[::-1]


def permute(indices: Indices, n: int, *, seed: int, epoch: int) -> Indices:
    """A bijection of 0..n-1 computed element by element: shuffling without an array of size n.

    A Feistel network over the smallest even number of bits that holds n; values outside the range walk along their
    cycle until they fall inside.
    """
    half = max(1, (max(n - 1, 1).bit_length() + 1) // 2)
    mask = np.uint64((1 << half) - 1)
    shift = np.uint64(half)
    keys = np.random.Generator(np.random.PCG64([seed, epoch])).integers(0, 1 << 63, size=6, dtype=np.uint64)
    values = indices.astype(np.uint64)
    outside = np.ones(len(values), dtype=bool)
    while outside.any():
        x = values[outside]
        left, right = x >> shift, x & mask
        for key in keys:
            left, right = right, left ^ (_mix(right, key) & mask)
        values[outside] = (left << shift) | right
        outside = values >= np.uint64(n)
    return values.astype(np.int64)


def _mix(x: npt.NDArray[np.uint64], key: np.uint64) -> npt.NDArray[np.uint64]:
    """A 64-bit finaliser: every input bit affects every output bit."""
    with np.errstate(over="ignore"):
        x = (x + key) * _GOLDEN
        x = (x ^ (x >> np.uint64(32))) * _GOLDEN
    return x ^ (x >> np.uint64(29))


def shuffled_batches(
    shards: Shards, fields: Sequence[str], *, batch_tokens: int, seed: int, epoch: int
) -> Iterator[Indices]:
    """Yield the batches of one epoch of token shards; `fields` are the padded ones."""
    padded = [shards.fields[name] for name in fields]
    taken = 0
    for examples in epoch_batches(
        len(shards),
        lengths=lambda examples: np.stack([field.lengths(examples) for field in padded], axis=1),
        batch_tokens=batch_tokens,
        seed=seed,
        epoch=epoch,
    ):
        yield examples
        taken += len(examples)
        if taken >= POOL:
            shards.release_pages()
            taken = 0
