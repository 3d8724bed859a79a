"""The sentences of raw texts, and the entities that taggers find in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jumok.tasks.protocol import Failure, Note, Predictor
from jumok.tasks.relation.markers import Pieces
from jumok.text.span import Span


@dataclass(frozen=True, slots=True)
class Sentence:
    of: int
    """index of its text"""
    start: int
    """offset of its first character in the text"""
    text: str
    pieces: Pieces


def entities_of(
    sentences: Sequence[Sentence], taggers: Sequence[Predictor[Any, Any]], types: Mapping[str, str]
) -> tuple[list[list[Span]], dict[int, Failure], dict[int, dict[Note, None]]]:
    """The entities that all taggers find in each sentence, in order; for the same characters, the highest score wins.

    Also returns the failures and the notes of the taggers, by text.
    """
    surest: list[dict[tuple[int, int], Span]] = [{} for _ in sentences]
    failures: dict[int, Failure] = {}
    notes: dict[int, dict[Note, None]] = {}
    given = [{"text": sentence.text} for sentence in sentences]  # so that a text that looks like JSON stays a text
    for tagger in taggers:
        for sentence, found, tagged in zip(sentences, surest, tagger.predict(given), strict=True):
            if isinstance(tagged, Failure):
                failures.setdefault(sentence.of, tagged)
                continue
            notes.setdefault(sentence.of, {}).update(dict.fromkeys(tagged.notes))
            for entity in tagged.entities:
                place = entity.start, entity.end
                if place not in found or entity.score > found[place].score:
                    found[place] = replace(entity, label=types.get(entity.label, entity.label))
    in_order = [sorted(found.values(), key=lambda entity: (entity.start, entity.end)) for found in surest]
    return in_order, failures, notes
