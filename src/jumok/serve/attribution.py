"""What decided an output: occlusion, gradients, integrated gradients."""

from dataclasses import replace
from typing import Any

import numpy as np

from jumok.engines import Array, Asked
from jumok.errors import InputError
from jumok.serve.models import Served
from jumok.serve.reading import Reading, Side
from jumok.tasks.language_model.predictor import Generator
from jumok.tasks.protocol import rounded
from jumok.text.vocabulary import EOS_ID


def attribute(served: Served, reading: Reading, asked: dict[str, Any]) -> dict[str, Any]:
    """The share of every token and word in an output, by the method that was asked for."""
    engine = served.predictor.engine
    if reading.asked is None:
        raise InputError("the model's outputs cannot be attributed", code="input.no_inside")
    wanted, source, target = _wanted(reading, served, asked)
    row, written = source, target
    if asked["method"] == "occlusion":
        shares, value = _occluded(served, reading, wanted, row, written)
        found = {"value": value, "baseline": None, "gap": None}
    elif asked["method"] in ("gradient", "integrated"):
        steps = min(max(asked["steps"], 1), 512)
        made = engine.attribute(row, wanted, target=written, method=asked["method"], steps=steps)
        shares = {"source": made.source} if written is None else {"source": made.source, "read": made.target}
        integrated = asked["method"] == "integrated"
        found = {"value": made.value, "baseline": made.baseline, "gap": made.gap if integrated else None}
    else:
        raise InputError("the methods are occlusion, gradient and integrated", code="input.no_such_part")
    words = {name: _by_word(reading.sides[name], values) for name, values in shares.items()}
    tokens = {name: values.tolist() for name, values in shares.items()}
    answer: dict[str, Any] = rounded({**reading.plain(), **found, "tokens": tokens, "words": words})
    return answer


def _wanted(reading: Reading, served: Served, asked: dict[str, Any]) -> tuple[Asked, list[int], list[int] | None]:
    """The output to explain, and what was read and written before it."""
    step, label = asked["step"], asked["label"]
    assert reading.asked is not None
    wanted = reading.asked
    if label is not None:
        wanted = replace(wanted, wanted=_label(reading, label))
    if reading.target is not None:
        written = [*reading.target, EOS_ID]
        step = _index(step, len(written))
        return replace(wanted, wanted=written[step]), reading.source, reading.target[:step]
    if isinstance(served.predictor, Generator):
        step = _index(len(reading.source) - 1 if step is None else step, len(reading.source))
        return replace(wanted, wanted=reading.source[step]), reading.source[:step], None
    if wanted.position is not None and step is not None:
        wanted = replace(wanted, position=_index(step, len(reading.source)))
    return wanted, reading.source, None


def _label(reading: Reading, label: Any) -> int:
    if label not in reading.labels:
        raise InputError(f"the labels are {', '.join(reading.labels)}", code="input.no_such_part")
    return reading.labels.index(label)


def _index(step: Any, n: int) -> int:
    step = 0 if step is None else step
    if not isinstance(step, int) or not 0 <= step < n:
        raise InputError(f"steps are numbered from 0 to {n - 1}", code="input.no_such_part")
    return step


def _occluded(
    served: Served, reading: Reading, wanted: Asked, row: list[int], written: list[int] | None
) -> tuple[dict[str, Array], float]:
    """How much less likely the output is without each word of the source, which an unknown word replaces."""
    engine, tokenizer = served.predictor.engine, served.predictor.tokenizer
    blank = tokenizer.unk_id if tokenizer.mask_id is None else tokenizer.mask_id
    side = reading.sides["source"]
    shift = len(side.ids) - len(reading.source)  # the start token of a language model
    words = np.array(side.word[shift : shift + len(row)], dtype=np.int64)
    n = int(words.max(initial=-1)) + 1
    rows = [list(row)] + [[blank if of == w else i for i, of in zip(row, words, strict=True)] for w in range(n)]
    targets = None if written is None else [written] * len(rows)
    values = engine.values(rows, wanted, targets=targets)
    found = np.zeros(len(side.ids))
    for w in range(n):
        places = np.flatnonzero(words == w)
        found[shift + places] = (values[0] - values[1 + w]) / len(places)
    return {"source": found}, float(values[0])


def _by_word(side: Side, values: Array) -> list[float]:
    sums = np.zeros(len(side.words))
    for word, value in zip(side.word, values, strict=False):
        if word >= 0:
            sums[word] += value
    found: list[float] = sums.tolist()
    return found
