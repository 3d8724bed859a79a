"""Which columns of a table are texts, and which is the label: from their names and values."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal

from jumok.errors import DataError, InputError, listed
from jumok.examples.faults import suffix_of
from jumok.examples.labelled import are_numbers, number_of
from jumok.examples.objects import as_json, read_objects
from jumok.examples.tables import rows_of
from jumok.findings import count_words
from jumok.new import Ask, Question, Told
from jumok.new.files import LANGUAGES

LOOKED_AT = 200_000  # rows of a table: many are sorted by their label
_MOST_CLASSES = 200
# fmt: off
_LABEL_WORDS = (
    "label labels class classes category categories sentiment polarity emotion topic intent tag tags target y genre"
    " score rating stars similarity relatedness gold gold_label is_duplicate quality 라벨 레이블 분류 감정 감성 주제"
    " 카테고리 점수 평점 별점 의도"
)
_TEXT_WORDS = (
    "text sentence review comment document content contents body message title headline question utterance tweet post"
    " abstract description query 텍스트 문장 리뷰 내용 본문 제목 댓글 질문 발화"
)
_ID_WORDS = "id idx index no num number guid uid uuid key pairid promptid url link date time 번호"
_LABEL_NAMES, _TEXT_NAMES, _ID_NAMES = (frozenset(w.split()) for w in (_LABEL_WORDS, _TEXT_WORDS, _ID_WORDS))
_PAIR_NAMES = ("text_a text_b", "sentence1 sentence2", "sentence_1 sentence_2", "question1 question2", "text1 text2",
               "premise hypothesis", "question sentence", "#1 string #2 string", "sentence_a sentence_b", "문장1 문장2")
_REPLY_NAMES = ("source target", "src tgt", "src trg", "input output", "prompt response", "question answer",
                "query reply", "q a", "질문 답변", "원문 번역", "text translation", "text summary", "document summary")
# fmt: on
_NAME = re.compile(r"[^\W\d][\w .#/()-]{0,30}|#[12] String")
Form = Literal["class", "labels", "number"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, and what its values look like."""

    name: str
    values: list[str] = field(repr=False)
    counts: Counter[str] = field(repr=False)

    @property
    def filled(self) -> list[str]:
        return [value for value in self.values if value.strip()]

    @property
    def is_id(self) -> bool:
        name = self.name.lower()
        if name in _ID_NAMES or name.endswith(("_id", " id")):
            return True
        whole = all(value.isdecimal() for value in self.filled)
        return whole and len(self.counts) > max(0.9 * len(self.filled), 20)

    @property
    def words(self) -> float:
        """Words of a value, on average."""
        return sum(map(count_words, self.filled)) / max(len(self.filled), 1)

    @property
    def form(self) -> Form | None:
        """How its values would be read as labels; None if they are none."""
        filled = [value.strip() for value in self.filled]
        if len(filled) < 2 or len(self.counts) < 2:
            return None
        if are_numbers(filled):
            return "number"
        parts = Counter(part.strip() for value in self.counts for part in value.split("|"))
        if any("|" in value for value in self.counts) and _are_few(len(parts), len(filled)):
            return "labels"
        return "class" if _are_few(len(self.counts), len(filled)) and self.words < 6 else None

    @property
    def is_text(self) -> bool:
        """Whether its values are texts: mostly different, and not all of them numbers."""
        if not self.filled or self.is_id:
            return False
        numbers = sum(number_of(value.strip()) is not None for value in self.filled)
        if numbers > 0.9 * len(self.filled):
            return False
        return self.words >= 2 or len(self.counts) > 0.5 * len(self.filled)

    @property
    def shown(self) -> str:
        """Its values and their shares."""
        n = self.counts.total()
        shares = [f"{_short(value)} {100 * count / n:.0f} %" for value, count in self.counts.most_common()]
        return listed(shares, 5)


def _are_few(different: int, n: int) -> bool:
    """Whether values are few enough to be classes: each of them recurs."""
    return different <= min(_MOST_CLASSES, max(n // 2, 2) if n < 40 else n // 8)


def _short(value: str) -> str:
    return value if len(value) <= 24 else f"{value[:23]}…"


@dataclass(frozen=True, slots=True)
class Table:
    """The columns of a table, from its first rows."""

    path: Path
    columns: list[Column]
    header: list[str] | None
    """names made up for the columns of a file without a header line"""

    def named(self, name: str, option: str) -> Column:
        if found := next((column for column in self.columns if column.name == name), None):
            return found
        hint = f"choose from {', '.join(column.name for column in self.columns)}"
        raise InputError(f"no column {name}", where=f"{option}, {self.path}", hint=hint, code="data.columns")


@dataclass(frozen=True, slots=True)
class Roles:
    """What the columns of a table are."""

    texts: list[Column]
    """one or two"""
    label: Column | None = None
    form: Form | None = None
    reply: bool = False
    """whether the second text is written in answer to the first, or is its translation"""


def read_table(path: Path) -> Table:
    """Read the first rows of a table; find out whether the first is a header."""
    if suffix_of(path) == "jsonl":
        return _of_objects(path)
    skipped: list[DataError] = []
    rows = [cells for _, cells in islice(rows_of(path, wrong=skipped.append), LOOKED_AT + 1) if cells]
    if not rows:
        raise (
            skipped[0]
            if skipped
            else DataError("the file is empty", where=path, hint="add a header and rows", code="data.empty")
        )
    width, _ = Counter(map(len, rows)).most_common(1)[0]
    if width == 1:
        what, between = "only one column", "a comma" if suffix_of(path) == "csv" else "a tab"
        hint = (
            f"write a text and its label (or its translation) with {between} between them, or rename the file to .txt"
        )
        raise DataError(what, where=f"{path}:1", hint=hint, code="data.columns")
    same = [row for row in rows if len(row) == width]
    if _is_header(same) and len(rows[0]) == width:
        if len(same) == 1:
            raise DataError("a header, and no rows", where=path, hint="add rows", code="data.empty")
        return Table(path, [_column(name, [row[i] for row in same[1:]]) for i, name in enumerate(same[0])], None)
    names = [f"column{i + 1}" for i in range(width)]
    return Table(path, [_column(name, [row[i] for row in same]) for i, name in enumerate(names)], names)


def _of_objects(path: Path) -> Table:
    def row(values: dict[str, object], where: str) -> dict[str, str]:
        cells = {}
        for key, value in values.items():
            if isinstance(value, list) and all(isinstance(one, str) for one in value):
                cells[key] = "|".join(value) or "|"
            elif value is not None:
                cells[key] = value if isinstance(value, str) else as_json(value, where)
        return cells

    hint = "write each line as an object in braces"
    rows = [*islice(read_objects(path, lambda found: row(found.values, found.where), hint=hint), LOOKED_AT)]
    if not rows:
        raise DataError("the file is empty", where=path, hint="add a line for each example", code="data.empty")
    keys = dict.fromkeys(key for row in rows for key in row)
    return Table(path, [_column(key, [row.get(key, "") for row in rows]) for key in keys], None)


def _column(name: str, values: list[str]) -> Column:
    return Column(name, values, Counter(value.strip() for value in values if value.strip()))


def _is_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row has names: those that are common, or what none of the rows below has."""
    first, *others = ([cell.strip() for cell in row] for row in rows)
    lower = [cell.lower() for cell in first]
    known = (
        _LABEL_NAMES
        | _TEXT_NAMES
        | _ID_NAMES
        | {name for pair in (*_PAIR_NAMES, *_REPLY_NAMES) for name in pair.split()}
    )
    if len(set(first)) < len(first) or not all(first):
        return False
    if sum(name in known for name in lower) * 2 >= len(first) or LANGUAGES.issuperset(lower):
        return True
    if not all(map(_NAME.fullmatch, first)):
        return False
    for i, name in enumerate(first):
        below = [row[i] for row in others]
        if below and number_of(name) is None and all(number_of(cell) is not None for cell in below):
            return True
        if len(below) > 5 and name not in below and len(set(below)) <= max(len(below) // 4, 2):
            return True  # a name above labels, which recur
    return False


def find_roles(table: Table, told: Told, ask: Ask) -> Roles:
    """Tell texts and label apart, and ask where several columns could be either."""
    columns = [column for column in table.columns if not column.is_id]
    texts = _told_texts(table, told)
    if told.task == "translation" or (told.source and any(c.name == told.source for c in columns)):
        return _pairs(table, columns, told, texts, ask)
    label = _label(table, columns, texts, told, ask)
    rest = [column for column in columns if column is not label and column.is_text]
    if label is None and not texts and len(rest) == 2 and told.task in (None, "translation"):
        return Roles(rest, reply=True)
    texts = texts or _texts(table, rest, label, told, ask)
    if told.task in (None, "translation") and not told.text and not told.label and _is_reply(texts):
        guess = "translation"
        answer = ask(
            Question(
                "--task",
                f"Should a model write {texts[1].name} for {texts[0].name} (translation), or predict"
                f" {label.name if label else 'a label'} (classification)?",
                guess,
                ("translation", "classification"),
                f"the table has {', '.join(column.name for column in table.columns)}, which could be for either",
            )
        )
        if answer == guess:
            return Roles(texts, reply=True)
    return Roles(texts, label, _form_of(label) if label else None)


def _form_of(label: Column) -> Form:
    """How the values of a label are read, however many there are."""
    return label.form or ("labels" if any("|" in value for value in label.counts) else "class")


def _told_texts(table: Table, told: Told) -> list[Column]:
    if told.text is None:
        return []
    if any(column.name == told.text for column in table.columns):
        return [table.named(told.text, "--text")]
    names = told.text.split(",")
    if len(names) > 2:
        hint = "name one column, or two with a comma between them"
        raise InputError(f"{len(names)} texts", where="--text", hint=hint, code="input.columns")
    return [table.named(name, "--text") for name in names]


def _label(table: Table, columns: list[Column], texts: list[Column], told: Told, ask: Ask) -> Column | None:
    if told.label is not None:
        return table.named(told.label, "--label")
    if told.task in ("language_model", "pretraining"):
        return None
    # Columns that are named as texts are none, however few values a small file has.
    known = [*texts, *_pair_of(columns, _REPLY_NAMES), *_pair_of(columns, _PAIR_NAMES)]
    columns = [column for column in columns if column not in known and column.name.lower() not in _TEXT_NAMES]
    possible = [column for column in columns if column.form]
    named = [c for c in columns if c.name.lower() in _LABEL_NAMES and (c.form or c.words < 4)]
    # A label has a name as such, or is not a text: of two columns, one has to be the text.
    clear = named or [column for column in possible if not (column.is_text and column.words >= 3)]
    if len(clear) < 2:
        return clear[0] if clear else None
    guess = next((column for column in named if column.name.lower().startswith("label")), clear[-1])
    why = "; ".join(f"{column.name}: {len(column.counts)} values" for column in clear)
    names = tuple(column.name for column in clear)
    answer = ask(Question("--label", "Which column is the label?", guess.name, names, f"several could be: {why}"))
    return table.named(answer, "--label")


def _texts(table: Table, rest: list[Column], label: Column | None, told: Told, ask: Ask) -> list[Column]:
    """The column of the text, or the two of a pair."""
    if not rest:
        names = ", ".join(column.name for column in table.columns)
        hint = f"name it with --text; the columns are {names}"
        raise InputError("no column looks like a text", where=table.path, hint=hint, code="data.no_text")
    if len(rest) == 1 or _pair_of(rest, _PAIR_NAMES):
        return _pair_of(rest, _PAIR_NAMES) or rest
    if _pair_of(rest, _REPLY_NAMES):
        return _pair_of(rest, _REPLY_NAMES)
    named = [column for column in rest if column.name.lower() in _TEXT_NAMES]
    guess = named[:1] or [max(rest, key=lambda column: column.words)]
    if len(rest) == 2 and not named:
        guess = rest
    why = f"several columns hold texts: {', '.join(column.name for column in rest)}"
    answer = ask(
        Question(
            "--text",
            "Which column is the text? Name two, with a comma between them, if a model should read a pair.",
            ",".join(column.name for column in guess),
            (),
            why,
        )
    )
    return _told_texts(table, Told(text=answer))


def _pair_of(columns: list[Column], known: Sequence[str]) -> list[Column]:
    """The two columns that are named like one of the known pairs."""
    by_name = {column.name.lower(): column for column in columns}
    for pair in known:
        half = len(pair.split()) // 2
        first, second = " ".join(pair.split()[:half]), " ".join(pair.split()[half:])
        if first in by_name and second in by_name:
            return [by_name[first], by_name[second]]
    return []


def _is_reply(texts: list[Column]) -> bool:
    return len(texts) == 2 and bool(_pair_of(texts, _REPLY_NAMES))


def _pairs(table: Table, columns: list[Column], told: Told, texts: list[Column], ask: Ask) -> Roles:
    """The columns of source and target."""
    if told.source and told.target and {told.source, told.target} <= {column.name for column in table.columns}:
        return Roles([table.named(told.source, "--source"), table.named(told.target, "--target")], reply=True)
    rest = texts or [column for column in columns if column.is_text]
    texts = rest if len(rest) == 2 else _pair_of(rest, _REPLY_NAMES) or _texts(table, rest, None, told, ask)
    if len(texts) != 2:
        hint = "name two columns: --source COLUMN --target COLUMN"
        raise InputError("a translation needs two texts", where=table.path, hint=hint, code="data.no_text")
    return Roles(texts, reply=True)
