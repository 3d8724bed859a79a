"""Relations in raw text: the runs that find its entities, and the mapping of their types."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumok.errors import InputError, nearest

if TYPE_CHECKING:
    from jumok.tasks.protocol import Failure
    from jumok.tasks.relation.predictor import RelatedText, Relater
    from jumok.tasks.tagging.predictor import Tagger


def relating(
    predictor: Any, entities: list[Path] | None, types: list[str] | None
) -> "Callable[[list[Any]], list[RelatedText | Failure]]":
    """A function that finds the relations in each text, between the entities that other runs find."""
    from jumok.tasks.relation.predictor import Relater

    if not entities:
        what = "--types needs --entities"
        raise InputError(what, where="--types", hint="add --entities RUN", code="input.options")
    if not isinstance(predictor, Relater):
        what = f"--entities is for relation runs, but the run's task is {predictor.kind}"
        raise InputError(what, where="--entities", hint="use a relation run", code="input.options")
    taggers = [_tagger(run, predictor.max_characters) for run in entities]
    named = dict(entry.partition("=")[::2] for entry in types or [])
    if not all(named.values()):
        hint = "write --types FOUND=MEANT, e.g. --types protein=GENE"
        raise InputError("not a type mapping", where="--types", hint=hint, code="input.options")
    _refuse_types_that_never_meet(predictor, sorted({kind for tagger in taggers for kind in tagger.types}), named)
    return partial(predictor.relate_texts, taggers=taggers, types=named)


def _tagger(run: Path, max_characters: int) -> "Tagger":
    from jumok.predictor import load
    from jumok.tasks.tagging.predictor import Tagger

    return load(run, task=Tagger, max_characters=max_characters)


def _refuse_types_that_never_meet(relater: "Relater", found: Sequence[str], named: dict[str, str]) -> None:
    """Reject types that form none of the pairs in the relation data: no relation could ever be found."""
    if unknown := [kind for kind in named if kind not in found]:
        hint = nearest(unknown[0], found) or f"use one of {', '.join(found)}"
        what = f"no entities of type {unknown[0]}"
        raise InputError(what, where="--types", hint=hint, code="input.unknown_type")
    meant = {named.get(kind, kind).casefold() for kind in found}
    if relater.typed and not any(meant >= {*pair} for pair in relater.pairs):
        wanted = ", ".join(sorted(f"{head} and {tail}" for head, tail in relater.pairs))
        raise InputError(
            f"the entities are {', '.join(found)}, but relations are between {wanted}",
            where="--entities",
            hint="map them with --types FOUND=MEANT, e.g. --types protein=GENE",
            code="input.types",
        )
