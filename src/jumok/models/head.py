"""The head of a model."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """The head that a task needs on a model's body."""

    asks: Literal["text", "pieces", "entities", "words", "masked", "nothing"]
    """one output per text, per token, or per pair of entities; the next word, or the words of a target; masked words;
    or the body's states"""
    n_labels: int = 1
    crf: bool = False
    """pieces: a CRF over the tags"""
    next_sentence: bool = True
    """masked: also predict whether B follows A"""
    pooler: bool = True
    """nothing: with BERT's pooler over the state of `[CLS]`"""
