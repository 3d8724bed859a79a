"""What files hold: the task, the [data] that reads them, and why; then their sizes and languages, from reading them."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from jumok.errors import DataError, InputError, listed
from jumok.examples import SPLITS
from jumok.examples.choices import SWAG_COLUMNS, ChoiceData
from jumok.examples.faults import suffix_of
from jumok.examples.labelled import LabelledData
from jumok.examples.pairs import ParallelData
from jumok.examples.plain import DocumentData
from jumok.examples.questions import QuestionData
from jumok.examples.relations import RelationData
from jumok.examples.spans import TaggedData
from jumok.examples.tables import first_row
from jumok.new import Ask, Told
from jumok.new.columns import Roles, Table, find_roles, read_table
from jumok.new.files import Files, find_files
from jumok.new.found import LOOKED_AT, MOST, Found, clear_language, language_of, languages_of, size_of
from jumok.new.parallel import files_of_pairs, look_at_parallel, translation_of
from jumok.text.lines import read_lines
from jumok.text.placeholders import find_units
from jumok.text.tags import in_characters

_MARKED = 0.2  # share of texts with placeholders or markup, from which on they matter
_NO_RELATION = re.compile(r"other|none|na|n/a|false|no[ _-]?relation|unrelated|없음|무관|관계[ _]?없음", re.IGNORECASE)


def look(given: Sequence[Path], told: Told, ask: Ask) -> Found:
    """Find out what the files hold."""
    files = find_files(given)
    found = _LOOKERS[files.kind](files, told, ask)
    found.name = name_of(given)
    if told.task and told.task != found.task:
        what = f"these files are for {found.task}, not {told.task}"
        where = ", ".join(part.name for part in files.of("train"))
        raise InputError(what, where=where, hint="leave out --task", code="input.task")
    if files.ignored:
        found.why.append(f"Ignored: {listed([path.name for path in files.ignored])}.")
    _measure(found, files, told)
    return found


def name_of(given: Sequence[Path]) -> str:
    """A name for a recipe: that of the only folder, of the only file, or of the folder of several files."""
    first = given[0].absolute()
    stem = first.name.removesuffix(".gz").rsplit(".", 1)[0] if first.is_file() else first.name
    generic = re.fullmatch(r"(train|data|input|text|corpus|all)\w*|[a-z]{2}", stem, re.IGNORECASE)
    if first.is_file() and (len(given) > 1 or generic):
        stem = first.parent.name or stem
    return re.sub(r"[^\w.-]+", "-", stem) or "recipe"


def _files(files: Files) -> dict[str, Any]:
    return {split: [str(p.paths[0]) for p in files.of(split)] for split in SPLITS if files.of(split)}


def _table(files: Files, told: Told, ask: Ask) -> Found:
    path = files.of("train")[0].paths[0]
    if suffix_of(path) == "csv" and set(SWAG_COLUMNS) <= set(first_row(path)):
        return _choices(files, told, ask)
    table = read_table(path)
    roles = find_roles(table, told, ask)
    if roles.reply:
        return _pairs_of_columns(files, table, roles, told)
    if told.task in ("language_model", "pretraining") or roles.label is None:
        return _column_of_texts(files, table, roles, told)
    return _labelled(files, table, roles)


def _labelled(files: Files, table: Table, roles: Roles) -> Found:
    label, text = roles.label, roles.texts[0]
    assert label is not None
    data: dict[str, Any] = {**_files(files), "text": text.name}
    data |= {"pair": roles.texts[1].name} if len(roles.texts) > 1 else {}
    data["label"] = label.name
    data |= {"header": table.header} if table.header else {}
    data |= {"skip_labels": ["-"]} if label.name == "gold_label" else {}
    form, different = roles.form or "class", len(label.counts)
    read = f"the column {text.name}" if len(roles.texts) == 1 else f"the columns {text.name} and {roles.texts[1].name}"
    reasons = {
        "class": f"{label.name} has {different} different values ({label.shown})",
        "number": f"{label.name} has {different} different numbers",
        "labels": f"{label.name} has several labels for a text, with | between them",
    }
    why = [f"Task: classification of {read}, because {reasons[form]}."]
    if table.header:
        why.append(
            f"The first row is a row like the others, not a header: columns are called {', '.join(table.header)}."
        )
    if ignored := [c.name for c in table.columns if c not in (label, *roles.texts)]:
        why.append(f"Columns that are not read: {', '.join(ignored)}.")
    remark = {"class": f"{different} classes: {label.shown}", "number": "numbers", "labels": "several labels"}[form]
    return Found(
        task="classification",
        kind=LabelledData,
        data=data,
        settings={} if form == "class" else {"predicts": form},
        metric={"class": "accuracy", "number": "spearman", "labels": "micro_f1"}[form],
        why=why,
        remarks={"label": remark},
    )


def _column_of_texts(files: Files, table: Table, roles: Roles, told: Told) -> Found:
    task = told.task or "language_model"
    if task not in ("language_model", "pretraining"):
        what = f"no column looks like a label: {', '.join(column.name for column in table.columns)}"
        raise InputError(what, where=table.path, hint="name it with --label", code="data.no_label")
    if table.header:
        what, hint = "a table without a header, whose texts cannot be named", "add a header line, e.g. text"
        raise InputError(what, where=f"{table.path}:1", hint=hint, code="data.header")
    name = roles.texts[0].name
    why = [f"Task: {_said(task)} on the column {name}, because no column looks like a label."]
    return _documents(task, {**_files(files), "column": name, "format": "line"}, why)


def _pairs_of_columns(files: Files, table: Table, roles: Roles, told: Told) -> Found:
    names = [column.name for column in roles.texts]
    if table.header and [column.name for column in table.columns[:2]] != names:
        what, hint = "a table without a header, whose texts are not the first two columns", "add a header line"
        raise InputError(what, where=f"{table.path}:1", hint=hint, code="data.header")
    seen = [language_of(column.filled) for column in roles.texts]
    by_name = [name.lower() if re.fullmatch(r"[a-z]{2}([-_][a-z]{2})?", name.lower()) else "" for name in names]
    told_languages = [None if side in names else side for side in (told.source, told.target)]
    source, target = (told_languages[i] or by_name[i] or seen[i] or ("source", "target")[i] for i in (0, 1))
    data = {
        "source": source,
        "target": target,
        **files_of_pairs([(p.split or "train", [p.paths[0]]) for p in files.parts]),
    }
    data |= {} if table.header else {"columns": names}
    why = [f"Task: translation, from {names[0]} to {names[1]}: two texts in a row, and no label that is asked for."]
    return translation_of(data, why)


def _objects(files: Files, told: Told, ask: Ask) -> Found:
    """JSONL: what its first object has decides."""
    path = files.of("train")[0].paths[0]
    keys = set(first_row(path))
    if {"head", "tail"} <= keys:
        return _relations(files, told)
    if "spans" in keys or "entities" in keys:
        return _tags(files, told, ask)
    if "endings" in keys:
        return _choices(files, told, ask)
    return _table(files, told, ask)


def _relations(files: Files, told: Told) -> Found:
    data = _files(files)
    labels = Counter(e.gold for e in islice(RelationData(**data).read("train", seed=1), MOST))
    if not labels:
        raise _empty(files)
    none = next((label for label, _ in labels.most_common() if _NO_RELATION.fullmatch(label)), None)
    shown = listed([label for label, _ in labels.most_common()])
    return Found(
        task="relation",
        kind=RelationData,
        data=data,
        settings={"no_relation": none} if none else {},
        metric="macro_f1" if none else "micro_f1",
        why=[
            f"Task: relation, because each text has a head, a tail and one of {len(labels)} labels ({shown}).",
            *([f"The label {none} stands for no relation, and F1 does not count it."] if none else []),
        ],
        remarks={"no_relation": "does not count for F1"},
    )


def _tags(files: Files, told: Told, ask: Ask) -> Found:
    data = _files(files)
    types = Counter[str]()
    n = 0
    for example in islice(TaggedData(**data).read("train", seed=1), MOST):
        n += 1
        spans = in_characters(example.tags, [(i, i + 1) for i in range(len(example.tags))]) if example.tags else None
        types.update(label for label, _, _ in spans) if spans is not None else types.update(
            span.label for span in example.spans or []
        )
    if not n:
        raise _empty(files)
    if not types:
        tags = Counter(tag for e in islice(TaggedData(**data).read("train", seed=1), 1000) for tag in e.tags or [])
        shown = f"each word has one of {len(tags)} tags ({listed([tag for tag, _ in tags.most_common()])})"
        metric = "tag_accuracy"
    else:
        shown, metric = f"entities are marked ({listed([label for label, _ in types.most_common()], 20)})", "span_f1"
    return Found(task="tagging", kind=TaggedData, data=data, metric=metric, why=[f"Task: tagging, because {shown}."])


def _questions(files: Files, told: Told, ask: Ask) -> Found:
    data = _files(files)
    read = islice(QuestionData(**data).read("train", seed=1), MOST)
    without = sum(not example.gold for example in read)
    why = ["Task: answering, because the file is in the format of SQuAD: questions, and answers in a text."]
    if without:
        why.append(f"Questions without an answer: {without:,}.")
    settings = {"no_answer": True} if without else {}
    return Found(task="answering", kind=QuestionData, data=data, settings=settings, metric="answer_f1", why=why)


def _choices(files: Files, told: Told, ask: Ask) -> Found:
    why = ["Task: choice, because each context has several endings, one of them right."]
    return Found(task="choice", kind=ChoiceData, data=_files(files), metric="accuracy", why=why)


def _classes(files: Files, told: Told, ask: Ask) -> Found:
    folder = files.of("train")[0].paths[0]
    if told.task in ("language_model", "pretraining"):
        return _text(files, told, ask)
    names = sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    why = [f"Task: classification, because {folder.name} has a folder of texts for each of {len(names)} classes"]
    why[0] += f" ({listed(names)})."
    remarks = {"train": f"a folder for each class: {listed(names)}"}
    return Found(
        task="classification", kind=LabelledData, data=_files(files), metric="accuracy", why=why, remarks=remarks
    )


def _text(files: Files, told: Told, ask: Ask) -> Found:
    task = told.task or "language_model"
    if task not in ("language_model", "pretraining"):
        what, hint = f"plain text has nothing to learn {task} from", "use --task language_model or pretraining"
        where = ", ".join(part.name for part in files.of("train"))
        raise InputError(what, where=where, hint=hint, code="input.task")
    first = files.of("train")[0]
    if first.paths[0].is_dir():
        form, shown = "file", "each file is a document"
    else:
        lines = [*islice(read_lines(first.paths[0], wrong=lambda error: None), MOST)]
        inner = " ".join(line.strip() and "x" for line in lines).strip()
        form = "blank_line" if "x  " in inner else "line"
        shown = "blank lines separate documents" if form == "blank_line" else "each line is a document"
    why = [f"Task: {_said(task)}, because this is plain text without labels; {shown}."]
    return _documents(task, {**_files(files), "format": form}, why)


def _documents(task: str, data: dict[str, Any], why: list[str]) -> Found:
    metric = "bits_per_byte" if task == "language_model" else "masked_accuracy"
    data |= {"split_sentences": False} if task == "language_model" else {}
    return Found(task=task, kind=DocumentData, data=data, metric=metric, why=why)


def _said(task: str) -> str:
    return {"language_model": "language model", "pretraining": "pre-training"}[task]


def _empty(files: Files) -> DataError:
    where = ", ".join(part.name for part in files.of("train"))
    return DataError("the file is empty", where=where, hint="add examples", code="data.empty")


_LOOKERS: dict[str, Callable[[Files, Told, Ask], Found]] = {
    "lines": look_at_parallel,
    "catalogue": look_at_parallel,
    "tmx": look_at_parallel,
    "table": _table,
    "objects": _objects,
    "tags": _tags,
    "questions": _questions,
    "text": _text,
    "folder": _text,
    "classes": _classes,
}


def _measure(found: Found, files: Files, told: Told) -> None:
    """Read the files: their sizes, the language of the texts, and rows that cannot be read."""
    lengths: list[int] = []
    texts: list[str] = []
    for split in SPLITS:
        if split not in found.data:
            continue
        wrong: list[DataError] = []
        for example in islice(_examples(found, split, wrong), MOST):
            found.sizes[split] = found.sizes.get(split, 0) + 1
            if split == "train":
                read = _texts_of(example)
                sizes = [size_of(text) for text in read]
                lengths.append(max(sizes) if found.kind is ParallelData else sum(sizes))
                found.characters += sum(map(len, read))
                found.size += sum(sizes)
                if len(texts) < LOOKED_AT:
                    texts.append(read[0])
        if split not in found.sizes:
            raise wrong[0] if wrong else _empty(files)
        if wrong:
            found.data["when_wrong"] = "skip"
            found.remarks["when_wrong"] = "rows that cannot be read are skipped and counted"
            first = f"{wrong[0].what}, {wrong[0].where}"
            found.why.append(f"{split}: {len(wrong):,} rows cannot be read and will be skipped; the first: {first}.")
    found.long = sorted(lengths)[int(0.9 * (len(lengths) - 1))]
    if found.kind is ParallelData:
        marked = sum(bool(find_units(text)) for text in texts)
        found.placeholders = files.kind == "catalogue" or marked > _MARKED * len(texts)
    else:
        votes = languages_of(texts)
        found.language = told.source or clear_language(votes)
        if found.language:
            found.data["language"] = found.language
        elif len(votes) > 1:
            shares = [f"{code} {100 * n / votes.total():.0f} %" for code, n in votes.most_common()]
            found.why.append(f"The texts are in several languages: {listed(shares)}.")


def _examples(found: Found, split: str, wrong: list[DataError]) -> Iterator[Any]:
    """The examples of a split; of labelled rows, some may be wrong, but not many."""
    data = found.kind(**found.data)
    if found.kind is not LabelledData:
        yield from data.read(split, seed=1)
        return
    n = 0
    for n, example in enumerate(data.read(split, seed=1, wrong=wrong.append), start=1):
        if len(wrong) > max(0.2 * n, 20):
            raise wrong[0]
        yield example
    if len(wrong) > 0.2 * n:
        raise wrong[0]


def _texts_of(example: Any) -> list[str]:
    """The texts of an example that a model reads, or reads and writes."""
    names = ("source", "target", "context", "question", "text", "pair", "endings")
    found = [value for name in names if (value := getattr(example, name, None))]
    return [" ".join(value) if isinstance(value, list) else value for value in found] or [""]
