"""What a task asks of a network."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """What a task asks of a network, and what stands on its body to answer that."""

    asks: Literal["text", "pieces", "entities", "words", "masked", "nothing"]
    """one output for a text, one for every piece, one for two entities; the next word, or the words of a target; masked
    words; or the states of the body"""
    n_labels: int = 1
    crf: bool = False
    """pieces: tags that follow each other"""
    next_sentence: bool = True
    """masked: whether B follows A, too"""
    pooler: bool = True
    """nothing: with the layer that makes the state of `[CLS]` ready for a decision"""
