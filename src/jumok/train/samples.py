"""What a model in training answers to a few dev examples: somebody who watches sees it getting better."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jumok.examples.length import texts_of
from jumok.examples.plain import Text
from jumok.examples.relations import Related
from jumok.train.loop import Evaluated, Event, Step

MOST = 6
LONGEST = 400
"""characters of a text that is shown"""
PROMPT, MORE = 5, 40
"""words that a language model continues, and tokens that it may add"""


@dataclass(frozen=True, slots=True)
class Sample:
    source: str
    gold: str
    output: str


@dataclass(frozen=True, slots=True)
class Sampled:
    """Written after every evaluation, and a few times before the first."""

    step: int
    samples: list[Sample]


def with_samples(
    events: Iterable[Event], samples: Callable[[], list[Sample]], *, every: int
) -> Iterator[Event | Sampled]:
    """The events, and samples where they are due."""
    early = {every // 2**k for k in range(1, 6)}  # most is learned in the beginning
    for event in events:
        yield event
        is_due = isinstance(event, Evaluated) or (isinstance(event, Step) and event.step in early)
        if is_due and (found := samples()):
            yield Sampled(event.step, found)


def chosen(dev: Any) -> list[Any]:
    """The first examples of dev whose answer is a text; of plain texts, their beginnings. None of dev data that is no
    list of examples, such as the passages of pretraining."""
    found: list[Any] = []
    if not isinstance(dev, Sequence):
        return found
    for example in dev[:MOST]:
        if isinstance(getattr(example, "gold", None), str):
            found.append(example)
        elif isinstance(example, Text) and len(words := example.text.split()) > PROMPT:
            found.append(replace(example, text=" ".join(words[:PROMPT])))
    return found


def answers(predictor: Any, examples: Sequence[Any]) -> list[Sample]:
    """The examples with what the predictor answers to them now."""
    options = {"max_extra": MORE} if predictor.kind == "language_model" else {}
    outputs = predictor.predict(examples, **options)
    return [
        Sample(_source(example), _short(getattr(example, "gold", "")), _short(str(output.text)))
        for example, output in zip(examples, outputs, strict=True)
    ]


def _source(example: Any) -> str:
    """The texts of an example without its answer; of a relation, its text and the two entities."""
    if isinstance(example, Related):
        return _short(
            " · ".join([example.text, *(example.text[e.start : e.end] for e in (example.head, example.tail))])
        )
    texts = texts_of(example)
    return _short(" · ".join(texts[:-1] if getattr(example, "gold", None) else texts))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
