"""One picture of the predictions for many texts, drawn when all are answered."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumok.errors import InputError

if TYPE_CHECKING:
    from jumok.tasks.passage import Passage
    from jumok.tasks.protocol import Predictor


def drawn_in_the_end(
    predictor: "Predictor[Any, Any]", answers: Iterable[tuple[Any, Any]], picture: Path
) -> Iterator[tuple[Any, Any]]:
    """Pass on every example with its output, and finally draw the entities, relations or answers in all of them."""
    if not predictor.marks:
        what = f"{predictor.kind} marks nothing in a text"
        hint = "use a tagging, relation or answering run"
        raise InputError(what, where="--picture", hint=hint, code="input.picture")
    return _collected(predictor, answers, picture)


def _collected(
    predictor: "Predictor[Any, Any]", answers: Iterable[tuple[Any, Any]], picture: Path
) -> Iterator[tuple[Any, Any]]:
    from jumok.picture import MOST_PASSAGES, draw_marks
    from jumok.tasks.protocol import Failure

    passages: dict[int, Passage] = {}
    first = 1
    for number, (given, output) in enumerate(answers, start=1):
        yield given, output
        if isinstance(output, Failure):
            continue
        passage: Passage = predictor.passage(given, output)
        before = passages.get(first)
        if before and before.text == passage.text and passage.relations:  # other entities of the same text
            entities, relations = [*before.entities, *passage.entities], [*before.relations, *passage.relations]
            passage = replace(passage, entities=entities, relations=relations)
        else:
            first = number
        passages[first] = passage
        if len(passages) > MOST_PASSAGES:
            hint = f"draw at most {MOST_PASSAGES}, fewer if they are long"
            raise InputError("too many texts for one picture", where=picture, hint=hint, code="input.picture")
    if len(passages) > 1:
        titles = {n: f"line {n}" + (f": {passage.title}" if passage.title else "") for n, passage in passages.items()}
        passages = {n: replace(passage, title=titles[n]) for n, passage in passages.items()}
    draw_marks([*passages.values()], picture)
