"""Texts with entities: words with tags in CoNLL columns, or character spans in JSONL."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import dropwhile, pairwise
from pathlib import Path
from typing import Any, Literal, Self

from jumok.errors import DataError, Wrong, refuse
from jumok.examples import Split
from jumok.examples.faults import read_each, say_each, suffix_of, unknown_format
from jumok.examples.files import WindowedData
from jumok.examples.objects import Object, as_json, as_object, is_object, parse_object, read_objects
from jumok.examples.offsets import OFFSETS, label_of, offsets_of, shown
from jumok.text.lines import as_line, max_line, numbered_lines, write_lines
from jumok.text.normalise import clean_label
from jumok.text.span import Span
from jumok.text.tags import in_characters, places_of

SHAPE = f'{{"text": "...", "spans": [{{"start": 0, "end": 4, "label": "..."}}]}} ({OFFSETS})'
COLUMNS = "write a word, optional columns and a tag, separated by spaces or tabs"
COLUMN_SUFFIXES = ("conll", "iob", "iob2", "bio")
_TO_TAG = 'use {"text": "..."} or {"words": ["...", "..."]}'


@dataclass(frozen=True, slots=True)
class Spans:
    """A text and its entities, as character spans or a tag for each word; without either, they are not known."""

    text: str
    """the text"""
    spans: list[Span] | None = None
    """in the order of the text, without overlap"""
    words: list[str] | None = None
    """if known; the text is the words joined by single spaces"""
    tags: list[str] | None = None
    """one per word"""
    where: str = ""

    @classmethod
    def of_words(cls, words: list[str], tags: list[str] | None = None, where: str = "") -> Self:
        return cls(" ".join(words), None, words, tags, where)

    @property
    def marked(self) -> list[Span]:
        """The entities as character spans; they must be known."""
        if self.spans is not None:
            return self.spans
        if self.words is not None and self.tags is not None:
            found = in_characters(self.tags, places_of(self.words))
            return [Span(start, end, label) for label, start, end in found]
        raise self._unknown("entities", f"use {SHAPE}")

    @property
    def gold_tags(self) -> list[str]:
        """The tags, which must be known."""
        if self.tags is None:
            raise self._unknown("tags", COLUMNS)
        return self.tags

    def _unknown(self, answer: str, hint: str) -> DataError:
        return DataError(f"the {answer} of this text are not known", where=self.where, hint=hint, code="data.no_label")

    @classmethod
    def parse(cls, given: str | Mapping[str, Any], where: str = "") -> Self:
        """Parse a text, or a mapping with `text` or `words`. JSON is a mapping if it has `text`, else a text."""
        if isinstance(given, str):
            found = _object_with_text(given, where)
            return cls(given, where=where) if found is None else cls._read(found, labelled=False)
        return cls._read(as_object(given, where=where, hint=_TO_TAG), labelled=False)

    @classmethod
    def _read(cls, found: Object, *, labelled: bool) -> Self:
        if labelled:
            text = found.text("text")
            return cls(text, _spans(found, text), where=found.where)
        if "words" in found:
            return cls._read_words(found)
        text, spans = found.text("text"), None
        if "spans" in found or "entities" in found:
            with suppress(DataError):  # not needed to predict
                spans = _spans(found, text)
        return cls(text, spans, where=found.where)

    @classmethod
    def _read_words(cls, found: Object) -> Self:
        words = found.texts("words")
        if not all(map(str.strip, words)):
            raise found.error("a word is empty", code="data.words")
        if "text" in found and found.text("text") != " ".join(words):
            raise found.error('"text" is not "words" joined by spaces', code="data.words")
        tags = found.values.get("tags")
        fit = isinstance(tags, list) and len(tags) == len(words) and all(isinstance(tag, str) for tag in tags)
        return cls.of_words(words, tags if fit else None, found.where)


def _object_with_text(line: str, where: str) -> Object | None:
    try:
        found = parse_object(line, where=where, hint=_TO_TAG) if is_object(line) else None
    except DataError:
        return None
    return found if found is not None and "text" in found else None


def read_marked(path: Path, *, labelled: bool = True, wrong: Wrong = refuse) -> Iterator[Spans]:
    """Read a JSONL file of texts with spans; "entities" is accepted for "spans", and "type" for "label"."""
    hint = f"use {SHAPE}" if labelled else _TO_TAG
    return read_objects(path, partial(Spans._read, labelled=labelled), hint=hint, wrong=wrong)


def _spans(found: Object, text: str) -> list[Span]:
    if "spans" in found and "entities" in found:
        raise found.error('both "spans" and "entities"')
    given = found.objects("entities" if "entities" in found else "spans", "span")
    spans = sorted((_span(each, text) for each in given), key=lambda span: span.start)
    for one, other in pairwise(spans):
        if other.start < one.end:
            raise found.misplaced(f"two spans overlap: {shown(text, one)} and {shown(text, other)}")
    return spans


def _span(given: Object, text: str) -> Span:
    key = "type" if "type" in given and "label" not in given else "label"
    span = Span(*offsets_of(given, text), label_of(given, key))
    if span.of(text) != span.of(text).strip():  # no tagger would predict such a span
        raise given.misplaced(f"white space at an edge: {shown(text, span)}")
    return span


def read_tagged(path: Path, *, labelled: bool = True, wrong: Wrong = refuse) -> Iterator[Spans]:
    """Read CoNLL columns: the first is the word, the last the tag; an empty line ends a sentence.

    -DOCSTART- lines are skipped, and so are lines before a sentence that start with #, unless they have as many
    columns. Unless `labelled`, only the words are read.
    """

    def read(sentence: list[tuple[int, str]]) -> Spans:
        words, tags = [], []
        for number, line in sentence:
            columns = tag_columns(line)
            if not columns[0].strip() or (labelled and (len(columns) < 2 or not columns[-1].strip())):
                what = f"no word{' with a tag' if labelled else ''}: {line[:60]!r}"
                raise DataError(what, where=f"{path}:{number}", hint=COLUMNS, code="data.columns")
            words.append(columns[0])
            tags.append(_tag(columns[-1], f"{path}:{number}") if labelled else "")
        return Spans.of_words(words, tags if labelled else None, f"{path}:{sentence[0][0]}")

    return read_each(tagged_lines(path, wrong=wrong), read, wrong)


def _tag(written: str, where: str) -> str:
    tag = clean_label(written)
    if tag in ("B-", "I-", "E-", "S-"):
        raise DataError(f"the tag {tag} has no type", where=where, hint=f"write e.g. {tag}PER, or O", code="data.tag")
    return tag


def tagged_lines(path: Path, *, wrong: Wrong = refuse) -> Iterator[list[tuple[int, str]]]:
    """Yield the sentences of a CoNLL file as numbered lines; one with a line that cannot be read is skipped whole."""
    sentence: list[tuple[int, str]] = []
    size, last, broken = 0, 0, False
    for number, line in numbered_lines(path, wrong=wrong):
        broken |= number != last + 1
        last = number
        if line.strip() and tag_columns(line)[0] != "-DOCSTART-":
            size += len(line)
            if size > max_line() and not broken:
                wrong(_long_sentence(f"{path}:{sentence[0][0]}"))
                broken = True
            if broken:
                sentence.clear()
            else:
                sentence.append((number, line))
            continue
        if sentence and not broken:
            yield _without_comments(sentence)
        sentence, size, broken = [], 0, False
    if sentence:
        yield _without_comments(sentence)


def _long_sentence(where: str) -> DataError:
    hint = "put an empty line between sentences, or set JUMOK_MAX_LINE"
    what = f"a sentence of more than {max_line():,} characters"
    return DataError(what, where=where, hint=hint, code="data.sentence_too_long")


def _without_comments(sentence: list[tuple[int, str]]) -> list[tuple[int, str]]:
    columns = len(tag_columns(sentence[-1][1]))
    return [*dropwhile(lambda line: line[1].startswith("#") and len(tag_columns(line[1])) != columns, sentence)]


def tag_columns(line: str) -> list[str]:
    return line.split("\t") if "\t" in line else line.split(" ")


def write_spans(
    path: Path, examples: Iterable[Spans], *, suffixes: Iterable[str] = COLUMN_SUFFIXES, wrong: Wrong = refuse
) -> None:
    """Write texts and all that is known about them as JSONL, or as CoNLL columns, which need words.

    Columns are separated by spaces, or by tabs if a word or a tag has a space; without tags, only words are written.
    `suffixes` are the file suffixes for CoNLL columns (.gz too).
    """
    suffix = suffix_of(path)
    if suffix == "jsonl":
        write_lines(path, say_each(examples, _json_line, wrong))
        return
    if suffix not in suffixes:
        hint = f"use a .jsonl file, or a .{' or .'.join(suffixes)} file for CoNLL columns (.gz too)"
        raise unknown_format("texts with entities", path, hint)
    found = list(examples)
    spaces = any(" " in cell for example in found for cell in [*(example.words or []), *(example.tags or [])])
    sentences = say_each(found, partial(_columns, between="\t" if spaces else " "), wrong)
    write_lines(path, [line for sentence in sentences for line in [*sentence, ""]])


def _json_line(example: Spans) -> str:
    """Write words and tags as spans too, because training reads spans."""
    values: dict[str, Any] = {"text": example.text}
    values |= {} if example.words is None else {"words": example.words}
    values |= {} if example.tags is None else {"tags": example.tags}
    if example.spans is not None or (example.words is not None and example.tags is not None):
        values["spans"] = [{"start": span.start, "end": span.end, "label": span.label} for span in example.marked]
    return as_json(values, example.where)


def _columns(example: Spans, *, between: str) -> list[str]:
    """Write a line for each word; a separating tab is written even if no tag follows it."""
    if not example.words:
        hint = "add words with a tag each, or write a .jsonl file"
        raise DataError("the words of this text are not known", where=example.where, hint=hint, code="data.words")
    tags = example.tags
    if tags is None:
        tags = [""] * len(example.words)
    lines = []
    for word, tag in zip(example.words, tags, strict=True):
        if not word.strip() or "\t" in word or word == "-DOCSTART-":
            what = f"CoNLL columns cannot hold the word {word!r}"
            raise DataError(what, where=example.where, hint="change it, or write a .jsonl file", code="data.words")
        if "\t" in tag or (example.tags is not None and not tag.strip()):
            what = f"CoNLL columns cannot hold the tag {tag!r}"
            raise DataError(what, where=example.where, hint="use a tag such as O or B-PER", code="data.tag")
        lines.append(as_line(f"{word}{between}{tag}" if tag or between == "\t" else word, example.where))
    return lines


@dataclass(frozen=True, kw_only=True, slots=True)
class TaggedData(WindowedData):
    """Words with a tag each, or texts with marked spans.

    CoNLL files have one word and its tag per line, and an empty line between sentences; before a sentence there may be
    comments, which start with # and have a different number of columns. JSONL files (.jsonl) have one text per line,
    `{"text": ..., "spans": [{"start", "end", "label"}]}`, with offsets in characters, end exclusive; a span may end
    within a word. All files must be of the same kind (.gz too).
    """

    kind: Literal["tagged"] = "tagged"

    def __post_init__(self) -> None:
        self._require_one_way(dev=bool(self.dev), test=bool(self.test))
        files = [*self.train, *self.dev, *self.test]
        if len({_marks(file) for file in files}) > 1:
            odd = next(file for file in files if _marks(file) != _marks(files[0]))
            raise ValueError(f"{files[0]} and {odd} are mixed: use .jsonl files only, or CoNLL files only")

    def read(self, split: Split, *, seed: int, wrong: Wrong = refuse) -> Iterator[Spans]:
        return self._read(split, partial(_read_tags, wrong=wrong), lambda example: example.text)

    def read_unlabelled(self, path: Path, *, wrong: Wrong = refuse) -> Iterator[Spans] | None:
        """Read a file to predict on, if it is in a format of this data; None for plain lines."""
        suffix = suffix_of(path)
        if suffix == "jsonl":
            return read_marked(path, labelled=False, wrong=wrong)
        return read_tagged(path, labelled=False, wrong=wrong) if suffix in self._column_suffixes() else None

    def write(self, path: Path, examples: Iterable[Spans], *, wrong: Wrong = refuse) -> None:
        """Write a format of this data; a name that ends like the training files also means CoNLL columns."""
        write_spans(path, examples, suffixes=self._column_suffixes(), wrong=wrong)

    def _column_suffixes(self) -> tuple[str, ...]:
        return (*COLUMN_SUFFIXES, *sorted({suffix_of(Path(file)) for file in self.train} - {"jsonl", *COLUMN_SUFFIXES}))

    def identity(self, split: Split, *, seed: int) -> bytes:
        return self._identity(split, self.kind, *(["marked"] if any(map(_marks, self.files(split))) else []))


def _marks(file: str) -> bool:
    """Whether a file has character spans, according to its name."""
    return file.lower().endswith((".jsonl", ".jsonl.gz"))


def _read_tags(path: Path, *, wrong: Wrong) -> Iterator[Spans]:
    return read_marked(path, wrong=wrong) if _marks(path.name) else read_tagged(path, wrong=wrong)
