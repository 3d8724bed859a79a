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
    """the text that it belongs to"""
    start: int
    """its first character in the text"""
    text: str
    pieces: Pieces


def entities_of(
    sentences: Sequence[Sentence], taggers: Sequence[Predictor[Any, Any]], types: Mapping[str, str]
) -> tuple[list[list[Span]], dict[int, Failure], dict[int, dict[Note, None]]]:
    """What all taggers find in each sentence, in its order; of the same characters what the surest says.

    With it the texts that a tagger cannot read, and what the taggers note of the others.
    """
    surest: list[dict[tuple[int, int], Span]] = [{} for _ in sentences]
    failures: dict[int, Failure] = {}
    notes: dict[int, dict[Note, None]] = {}
    given = [{"text": sentence.text} for sentence in sentences]  # a text that looks like JSON is a text, too
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
