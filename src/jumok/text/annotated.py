"""Readers of texts in which people have marked something: spans, relations, answers, and endings that fit.

Like the other readers they leave the text as it was written and name the place of what is wrong. Offsets count
characters (code points), end exclusive, and never stand inside what a reader sees as one character.
"""

import csv
import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count, pairwise, takewhile
from pathlib import Path

from jumok.errors import DataError, OffsetError
from jumok.text.faults import Wrong, read_each, refuse
from jumok.text.formats import read_lines
from jumok.text.normalise import clean_label, is_inside_character
from jumok.text.objects import Object, parse_object, read_objects


@dataclass(frozen=True, slots=True)
class Mark:
    """A span of characters, end exclusive."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class Marked:
    """A text whose entities are marked by character offsets; no two overlap, and they are in the order of the text."""

    text: str
    marks: list[Mark]
    where: str


@dataclass(frozen=True, slots=True)
class Entity:
    """A span of characters, end exclusive, and its type, "" if none is given."""

    start: int
    end: int
    type: str


@dataclass(frozen=True, slots=True)
class Related:
    """A text with two entities, and how they are related."""

    text: str
    head: Entity
    tail: Entity
    label: str
    where: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the text that it is asked of; if there are no answers, the text does not answer it."""

    id: str
    question: str
    context: str
    answers: list[tuple[str, int]]
    """text and its first character in the context"""
    where: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A beginning and several endings, one of which fits; a label of -1 says that it is not known which."""

    context: str
    endings: list[str]
    label: int
    where: str


_OFFSETS = "offsets count characters, end exclusive"
_MARKED = f'{{"text": "...", "spans": [{{"start": 0, "end": 4, "label": "..."}}]}}, {_OFFSETS}'
_PAIR = '"text": "...", "head": {"start": 0, "end": 4}, "tail": {"start": 9, "end": 12}'
_RELATED = f'{{{_PAIR}, "label": "..."}}, {_OFFSETS}'
_TO_RELATE = f"{{{_PAIR}}}, {_OFFSETS}; or plain text and runs that find its entities: --entities RUN"
_SQUAD = 'the form of SQuAD: {"data": [{"paragraphs": [{"context": "...", "qas": [{"id": "...", "question": "...",'
_SQUAD += (
    ' "answers": [{"text": "...", "answer_start": 0}]}]}]}]}; a question without answers has "is_impossible": true'
)
_QUESTION = '{"question": "...", "context": "..."}, and "id" if there is one'
_CHOICE = '{"context": "...", "endings": ["...", "..."], "label": 0}, the label being the place of the right ending'
_TO_CHOOSE = '{"context": "...", "endings": ["...", "..."]}'
_SWAG = "the columns sent1, sent2, ending0, ending1 and so on, and label, as in train.csv of SWAG"
SWAG_COLUMNS = ("sent1", "sent2", "ending0", "ending1", "label")
SHAPES = {"texts with spans": _MARKED, "relations": _RELATED, "choices": _CHOICE, "questions": _SQUAD, "SWAG": _SWAG}


def read_marked(path: Path, *, wrong: Wrong = refuse) -> Iterator[Marked]:
    """A JSONL file of texts with spans; "entities" is as good as "spans", and "type" as "label"."""
    return read_objects(path, _marked, right=_MARKED, wrong=wrong)


def read_related(path: Path, *, wrong: Wrong = refuse) -> Iterator[Related]:
    """A JSONL file of texts with a head, a tail and a label."""
    return read_objects(path, partial(_related, labelled=True), right=_RELATED, wrong=wrong)


def parse_related(line: str, where: str) -> Related:
    """Two entities whose relation has yet to be predicted: a line of such a file, whose label is not looked at."""
    return _related(parse_object(line, where=where, right=_TO_RELATE), labelled=False)


def read_questions(path: Path, *, wrong: Wrong = refuse) -> Iterator[Question]:
    """A JSON file of the form of SQuAD 1.1 or 2.0."""
    seen: set[str] = set()

    def paragraphs(article: Object) -> list[Object]:
        return [*article.objects("paragraphs", "paragraph")]

    def paragraph(found: Object) -> tuple[str, list[Object]]:
        return found.text("context"), [*found.objects("qas", "question")]

    whole = parse_object("\n".join(read_lines(path)), where=str(path), right=_SQUAD)
    articles = read_each(whole.objects("data", "article"), paragraphs, wrong)
    for context, asked in read_each(chain.from_iterable(articles), paragraph, wrong):
        yield from read_each(asked, partial(_question, context=context, path=path, seen=seen), wrong)


def squad_questions(path: Path) -> Iterator[tuple[str, str, str, str]]:
    """Id, question, context and place of every question of such a file, whose answers are not looked at."""
    whole = parse_object("\n".join(read_lines(path)), where=str(path), right=_SQUAD)
    for article in whole.objects("data", "article"):
        for paragraph in article.objects("paragraphs", "paragraph"):
            for asked in paragraph.objects("qas", "question"):
                identity = asked.text("id")
                yield identity, asked.text("question"), paragraph.text("context"), f"{path}, question {identity}"


def parse_question(line: str, where: str) -> Question:
    """A question that has yet to be answered, as JSON."""
    found = parse_object(line, where=where, right=_QUESTION)
    identity = found.text("id") if "id" in found else ""
    return Question(identity, found.text("question"), found.text("context"), [], where)


def read_choices(path: Path, *, wrong: Wrong = refuse) -> Iterator[Choice]:
    """A CSV file as SWAG has them, or a JSONL file; all examples of it have as many endings."""
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".csv"):
        found = _read_swag(path, wrong)
    elif name.endswith(".jsonl"):
        found = read_objects(path, partial(_choice, labelled=True), right=_CHOICE, wrong=wrong)
    else:
        right = "a .csv file as SWAG has them, or a .jsonl file (each also .gz)"
        raise DataError("no known format of choices", where=path, right=right)
    endings = 0
    for choice in found:
        endings = endings or len(choice.endings)
        if len(choice.endings) != endings:
            right = f"{endings}, as many as the others of the file"
            wrong(DataError(f"{len(choice.endings)} endings", where=choice.where, right=right))
            continue
        yield choice


def parse_choice(line: str, where: str) -> Choice:
    """A choice that has yet to be made: a line of a JSONL file, the label of which is not looked at."""
    return _choice(parse_object(line, where=where, right=_TO_CHOOSE), labelled=False)


def _marked(found: Object) -> Marked:
    text = found.text("text")
    if "spans" in found and "entities" in found:
        raise found.error('both "spans" and "entities"')
    spans = found.objects("entities" if "entities" in found else "spans", "span")
    marks = sorted((_mark(span, text) for span in spans), key=lambda mark: mark.start)
    for one, other in pairwise(marks):
        if other.start < one.end:
            raise found.misplaced(f"two spans overlap: {_shown(text, one)} and {_shown(text, other)}")
    return Marked(text, marks, found.where)


def _mark(span: Object, text: str) -> Mark:
    mark = Mark(*_offsets(span, text), _label(span, "type" if "type" in span and "label" not in span else "label"))
    if (marked := text[mark.start : mark.end]) != marked.strip():  # no tagger would ever say so
        raise span.misplaced(f"white space at an edge: {_shown(text, mark)}")
    return mark


def _offsets(span: Object, text: str) -> tuple[int, int]:
    start, end = span.whole("start"), span.whole("end")
    marked = span.values.get("text")  # many files also say what stands there: then it is known what offsets should be
    if isinstance(marked, str) and _folded(marked) != _folded(text[start:end]):
        if start >= 0 and marked and text.startswith(marked, start):
            right_end = start + len(marked)
            raise span.misplaced(f"{marked!r} ends at {right_end} of the text, and the span at {end}")
        raise _elsewhere(span, marked, text, start, "the text")
    if start < 0 or end > len(text):
        raise span.misplaced(f"from {start} to {end}, and the text has {len(text)} characters")
    if start >= end:
        raise span.misplaced(f"empty, from {start} to {end}")
    if text[start:end].isspace():
        raise span.misplaced(f"nothing but white space from {start} to {end}")
    _require_whole_characters(span, text, start, end)
    return start, end


def _require_whole_characters(found: Object, text: str, *offsets: int) -> None:
    for offset in offsets:
        if is_inside_character(text, offset):
            before, after = (f"U+{ord(character):04X}" for character in text[offset - 1 : offset + 1])
            raise found.misplaced(f"offset {offset} is inside a character, between {before} and {after}")


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _elsewhere(found: Object, wanted: str, text: str, start: int, called: str) -> OffsetError:
    """The error of offsets at which a text does not have what it should, with the nearest place that has it."""
    places = (match.start() for match in re.finditer(f"(?={re.escape(wanted)})", text))
    nearest = min(places, key=lambda place: abs(place - start), default=None)
    instead = f"nowhere in {called}" if nearest is None else f"at {nearest}"
    what = f"{wanted!r} is not at {start} of {called}, but {instead}"
    return found.misplaced(what, shift=None if nearest is None else nearest - start)


def _label(found: Object, key: str = "label") -> str:
    label = clean_label(found.text(key))
    if not label:
        raise found.error(f'an empty "{key}"')
    return label


def _shown(text: str, span: Mark | Entity) -> str:
    return f"{text[span.start : span.end]!r} ({span.start} to {span.end})"


def _related(found: Object, labelled: bool) -> Related:
    text = found.text("text")
    head, tail = (
        Entity(*_offsets(entity, text), clean_label(entity.text("type")) if "type" in entity else "")
        for entity in (found.object("head"), found.object("tail"))
    )
    if cannot_be_related(head, tail):
        same = (head.start, head.end) == (tail.start, tail.end)
        how = f"are the same: {_shown(text, head)}" if same else f"cross: {_shown(text, head)} and {_shown(text, tail)}"
        raise found.misplaced(f"head and tail {how}")
    return Related(text, head, tail, _label(found) if labelled else "", found.where)


def cannot_be_related(head: Entity, tail: Entity) -> bool:
    """Because they are the same characters, or cross, which is a wrong offset.

    A name may well be part of another, as "insulin" is of "insulin receptor".
    """
    first, second = sorted((head, tail), key=lambda entity: (entity.start, -entity.end))
    same = (first.start, first.end) == (second.start, second.end)
    return same or first.start < second.start < first.end < second.end


def _question(asked: Object, *, context: str, path: Path, seen: set[str]) -> Question:
    identity = asked.text("id")
    if identity in seen:
        raise asked.error(f"the id {identity} has been there before")
    seen.add(identity)
    asked = replace(asked, name="", where=f"{path}, question {identity}")
    return Question(identity, asked.text("question"), context, _answers(asked, context), asked.where)


def _answers(asked: Object, context: str) -> list[tuple[str, int]]:
    impossible = "is_impossible" in asked and asked.truth("is_impossible")
    answers = []
    for answer in asked.objects("answers", "answer") if "answers" in asked or not impossible else ():
        text, start = answer.text("text"), answer.whole("answer_start")
        if not text.strip():
            raise answer.error("no text")
        if start < 0 or not context.startswith(text, start):
            raise _elsewhere(answer, text, context, start, "the context")
        _require_whole_characters(answer, context, start, start + len(text))
        answers.append((text, start))
    if impossible and answers:
        raise asked.error('answers, though "is_impossible" is true')
    if not impossible and not answers:
        raise asked.error('no answers, though "is_impossible" is not true')
    return answers


def _choice(found: Object, labelled: bool) -> Choice:
    endings = found.texts("endings")
    if len(endings) < 2:
        raise found.error(f"{len(endings)} endings to choose from")
    label = found.whole("label") if labelled else -1
    if labelled and not 0 <= label < len(endings):
        raise found.error(f"the label is {label}, and there are {len(endings)} endings, from 0")
    return Choice(found.text("context"), endings, label, found.where)


def _read_swag(path: Path, wrong: Wrong) -> Iterator[Choice]:
    def read(row: tuple[str, list[str], list[str]]) -> Choice:
        where, cells, endings = _swag_endings(*row)
        labels = [str(i) for i in range(len(endings))]
        if cells["label"] not in labels:
            right = f"the place of the right ending, one of {', '.join(labels)}"
            raise DataError(f"the label is {cells['label']!r}", where=where, right=right)
        return Choice(cells["sent1"], endings, int(cells["label"]), where)

    return read_each(_swag_rows(path, SWAG_COLUMNS), read, wrong)


def read_swag_endings(path: Path) -> Iterator[tuple[str, list[str], str]]:
    """Context, endings and place of every row of such a file, which need not have labels."""
    for row in _swag_rows(path, [name for name in SWAG_COLUMNS if name != "label"]):
        where, cells, endings = _swag_endings(*row)
        yield cells["sent1"], endings, where


def _swag_endings(where: str, header: list[str], values: list[str]) -> tuple[str, dict[str, str], list[str]]:
    """The place of a row, its cells by name, and the endings, each of which begins as the second sentence does."""
    if len(values) != len(header):
        raise DataError(f"{len(values)} columns", where=where, right=f"{len(header)} as in the header")
    cells = dict(zip(header, values, strict=True))
    begin = f"{cells['sent2']} " if cells["sent2"] else ""
    names = takewhile(cells.__contains__, (f"ending{i}" for i in count()))
    return where, cells, [begin + cells[name] for name in names]


def _swag_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, list[str], list[str]]]:
    """The place of each row, the header, and the cells of the row."""
    csv.field_size_limit(sys.maxsize)  # a text may be of any length
    rows = csv.reader((f"{line}\n" for line in read_lines(path)), strict=True)
    header: list[str] = []
    first = 1  # line of the row
    try:
        for row in rows:
            where = f"{path}:{first}"
            first = rows.line_num + 1
            if header:
                if row:  # an empty line is none
                    yield where, header, row
                continue
            header = row
            if missing := ", ".join(name for name in columns if name not in header):
                raise DataError(f"no column {missing}", where=where, right=_SWAG)
            if several := ", ".join(name for name in dict.fromkeys(header) if name and header.count(name) > 1):
                raise DataError(f"more than one column {several}", where=where, right="a name of its own for each")
    except csv.Error as error:
        raise DataError(f"not CSV: {error}", where=f"{path}:{rows.line_num}", right=_SWAG) from error
