"""What the command line's arguments stand for: runs, splits, columns, options, lines of input."""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from io import BufferedReader
from pathlib import Path
from typing import Any, cast

from jumok.data.corpus import SPLITS, Corpus
from jumok.data.files import FileData
from jumok.data.shards import in_chunks
from jumok.data.sources import other_files
from jumok.doctor import JUDGED, Finding, examine_judgements, examine_outputs
from jumok.errors import CheckpointError, DataError, InputError, JumokError
from jumok.predictor import Classifier, Generator, Predictor, RelatedText, Relater, TaggedText, Tagger, Translator, load
from jumok.prepare import read_split
from jumok.recipe import Recipe, asked_options, parse_recipe
from jumok.series import parts_of
from jumok.tasks.predict import Line, Notes, note_long, noted_later
from jumok.tasks.tagger import Found
from jumok.tasks.targets import Several
from jumok.text.formats import Pair, decoded, read_lines
from jumok.text.inputs import (
    lines_of_choices,
    lines_of_marked,
    lines_of_questions,
    lines_of_table,
    words_of_columns,
)
from jumok.train.folder import RunFolder

_ENTITY = ("type", "text", "start", "end")
ENTITY_COLUMNS = (*_ENTITY, "score")
RELATION_COLUMNS = ("relation", "probability", *(f"{side}_{c}" for side in ("head", "tail") for c in _ENTITY))


def run_recipe(run: Path) -> Recipe:
    stored = RunFolder(run).stored()
    if stored is None:
        imported = (run / "model" / "config.json").exists()
        what = "an imported model has no recipe" if imported else "not a run folder: there is no recipe.json"
        raise CheckpointError(what, where=run, right="a folder of `jumok train`")
    return parse_recipe(stored["recipe"], where=str(run / "recipe.json"))


def splits(run: Path, data: list[str] | None) -> dict[str, list[Any]]:
    """The examples to evaluate on: the recipe's dev and test, or what --data says."""
    recipe = run_recipe(run)
    if not data:
        corpora: list[Corpus[Any]] = [Corpus(recipe.data, split, seed=recipe.seed) for split in SPLITS[1:]]
        corpora = [corpus for corpus in corpora if corpus.exists()]
        _refuse_other_parts(run, recipe, corpora)
        return {corpus.split: read_split(corpus) for corpus in corpora}
    found: dict[str, list[Any]] = {}
    for entry in data:
        split, _, files = entry.partition("=")
        if not split or not files or split in found:
            problem = f"{split} is given twice" if split in found else f"not a split: {entry}"
            raise InputError(problem, where="--data", right="--data test=a.en,a.de, each split once")
        found[split] = list(other_files(recipe.data, files.split(",")).read("test", seed=recipe.seed))
        if not found[split]:
            raise DataError("nothing to evaluate on", where=files)
    return found


def _refuse_other_parts(run: Path, recipe: Recipe, corpora: list[Corpus[Any]]) -> None:
    """What was held out of the training files has to be what is taken out of them now: else some was learned."""
    held_out = [c for c in corpora if isinstance(recipe.data, FileData) and recipe.data.share(c.split)]
    known = (RunFolder(run).stored() or {"data": {}})["data"]
    if changed := [c.split for c in held_out if known.get(c.split) != c.fingerprint()]:
        raise CheckpointError(
            f"the training files, or how {' and '.join(changed)} are taken out of them, changed since the run began",
            where=run,
            right="the files and the version of jumok that it began with, or --data test=FILE",
        )


def two_columns(columns: str | None) -> tuple[str, str] | None:
    if columns is None:
        return None
    names = columns.split(",")
    if len(names) != 2 or not all(names):
        raise InputError(f"not two columns: {columns}", where="--columns", right="two names, e.g. --columns en,ko")
    return names[0], names[1]


def options(overrides: list[str] | None) -> dict[str, Any]:
    return asked_options(overrides or [])


def input_batches(file: Path | None, size: int = 512, *, run: Path | None = None) -> Iterator[list[Line]]:
    """Lines of a file, or of stdin as they arrive: whoever writes a line there is answered before the next one.

    A file in the layout of the data that the run was trained on becomes such lines.
    """
    if file is not None:
        yield from in_chunks(_lines(file, run), size)
        return
    rest, first = b"", 1
    stdin = cast(BufferedReader, sys.stdin.buffer)
    while block := stdin.read1(1 << 16):
        *lines, rest = (rest + block).split(b"\n")
        texts = decoded([line + b"\n" for line in lines], "stdin", first=first)
        yield from in_chunks(_numbered(texts, "line ", first), size)
        first += len(lines)
    if rest:
        yield list(_numbered(decoded([rest], "stdin", first=first), "line ", first))


def _lines(file: Path, run: Path | None) -> Iterator[Line]:
    stored = (RunFolder(run).stored() if run else None) or {"recipe": {"data": {}}}
    data: dict[str, Any] = stored["recipe"]["data"]
    suffix = _suffix(file.name)
    as_trained = suffix in {_suffix(name) for name in data.get("train", []) if isinstance(name, str)}
    match data.get("kind"), suffix:
        case "labelled", _ if as_trained or suffix == "tsv":
            placed = lines_of_table(file, data["text"], data["pair"], data["header"])
        case "tagged", "jsonl":
            placed = lines_of_marked(file)
        case "tagged", _ if as_trained or suffix in ("conll", "iob", "iob2", "bio"):
            return (Line.at(" ".join(words), where, words) for words, where in words_of_columns(file))
        case "questions", "json":
            placed = lines_of_questions(file)
        case "choices", "csv":
            placed = lines_of_choices(file)
        case _:
            return _numbered(read_lines(file), f"{file}:")
    return (Line.at(text, where) for text, where in placed)


def _suffix(name: str) -> str:
    return name.lower().removesuffix(".gz").rpartition(".")[2]


def _numbered(texts: Iterator[str], source: str, first: int = 1) -> Iterator[Line]:
    return (Line.at(text, f"{source}{number}") for number, text in enumerate(texts, start=first))


def stream_to_stdout(
    predictor: Predictor, batches: Iterator[Sequence[str]], asked: dict[str, Any], *, beside: dict[str, Any]
) -> None:
    """Every line and what comes after it, bit by bit as it is written, which goes with none of the options `beside`."""
    if given := ", ".join(option for option, value in beside.items() if value):
        raise InputError(f"text that is shown while it is written goes without {given}", where="--stream")
    if not isinstance(predictor, Generator):
        raise InputError("only a language model writes on bit by bit", where="--stream", right="a run of one")
    for lines in batches:
        for line in lines:
            bits = predictor.stream(line, **asked)
            begun = next(bits, "")  # or an error, before anything is written
            sys.stdout.write(line + begun.replace("\n", " "))
            sys.stdout.flush()
            for bit in bits:
                sys.stdout.write(bit.replace("\n", " "))
                sys.stdout.flush()
            sys.stdout.write("\n")
            sys.stdout.flush()


def stored_beside(run: Path, split: str) -> dict[str, Any]:
    """What the baselines scored when the run was trained, and the weights that it began with, if it has any."""
    if any("fold-" in part for part in parts_of(run)):
        return {}  # means of several test sets, of which the model that is scored has one
    path = RunFolder(run).scores
    scores = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return {key: found for key, found in scores.get(split, {}).items() if key in ("baselines", "before")}


def finders(predictor: Predictor, entities: list[Path] | None, types: list[str] | None) -> dict[str, Any]:
    """What finds the entities whose relations are asked for, and what their types are called in the relations' data."""
    if not entities:
        if types:
            raise InputError("types are those of entities that are found", where="--types", right="--entities RUN")
        return {}
    if not isinstance(predictor, Relater):
        raise InputError("only relations are between entities", where="--entities", right="a run of relations")
    taggers: list[Tagger] = []
    for run in entities:
        tagger = load(run)
        if not isinstance(tagger, Tagger):
            raise InputError("the run finds no entities", where=run, right="a run of task.kind = tagging")
        taggers.append(tagger)
    named = dict(entry.partition("=")[::2] for entry in types or [])
    if not all(named.values()):
        raise InputError("not a name for a type", where="--types", right="--types protein=GENE")
    _refuse_types_that_never_meet(predictor, sorted({kind for tagger in taggers for kind in tagger.types}), named)
    return {"taggers": taggers, "types": named}


def _refuse_types_that_never_meet(relater: Relater, found: Sequence[str], named: dict[str, str]) -> None:
    """Relations are asked of pairs of types only that their data has: if none can be found there is nothing to ask."""
    if unknown := [kind for kind in named if kind not in found]:
        raise InputError(f"no entity is a {unknown[0]}", where="--types", right=f"one of {', '.join(found)}")
    meant = {named.get(kind, kind).casefold() for kind in found}
    if relater.typed and not any(meant >= {*pair} for pair in relater.pairs):
        wanted = ", ".join(sorted(f"{head} and {tail}" for head, tail in relater.pairs))
        raise InputError(
            f"the entities are {', '.join(found)}, and relations are between {wanted}",
            where="--entities",
            right="--types FOUND=MEANT, such as --types protein=GENE",
        )


def predictions(
    predictor: Predictor, batches: Iterator[Sequence[str]], asked: dict[str, Any], *, prefix: str | None = None
) -> Iterator[tuple[str, Any]]:
    """Every line with what comes of it; how many were too long is said once, in the end."""
    if prefix is not None and not isinstance(predictor, Translator):
        raise InputError("only a translator is told how to begin", where="--prefix", right="a run of translation")
    notes: Notes = {}
    try:
        for lines in batches:
            forced: dict[str, Any] = {} if prefix is None else {"prefixes": [prefix] * len(lines)}
            try:
                with noted_later(notes):
                    outputs = predictor.predict(lines, **forced, **asked)
            except JumokError:
                if len(lines) == 1:
                    raise
                # The lines before the one that cannot be answered are.
                yield from predictions(predictor, ([line] for line in lines), asked, prefix=prefix)
                raise
            yield from zip(lines, outputs, strict=True)
    finally:
        for became, (long, n) in notes.items():
            note_long(long, n, became)


def table_lines(predictor: Predictor, predicted: Iterator[tuple[str, Any]], form: str) -> Iterator[str]:
    """The entities of each line, or its relations: a row each, with the line's number and characters."""
    if not isinstance(predictor, Tagger | Relater):
        what = "this run finds neither entities nor relations"
        raise InputError(what, where="--table", right="a run of one of these")
    if form == "tsv":  # also if nothing is found: an empty table has columns, too
        yield "\t".join(["line", *(RELATION_COLUMNS if isinstance(predictor, Relater) else ENTITY_COLUMNS)])
    for number, (_, output) in enumerate(predicted, start=1):
        for row in table_rows(output):
            if form == "jsonl":
                yield json.dumps({"line": number, **row}, ensure_ascii=False)
            else:
                yield "\t".join(re.sub(r"[\t\r\n]", " ", str(value)) for value in (number, *row.values()))


def table_rows(output: TaggedText | RelatedText) -> list[dict[str, Any]]:
    if isinstance(output, TaggedText):
        return [dict(zip(ENTITY_COLUMNS, (*_entity(e), e.score), strict=True)) for e in output.entities]
    return [
        dict(zip(RELATION_COLUMNS, (r.label, r.probability, *_entity(r.head), *_entity(r.tail)), strict=True))
        for r in output.relations
    ]


def _entity(found: Found) -> tuple[str, str, int, int]:
    return found.label, found.text, found.start, found.end


def examined(
    predictor: Predictor, examples: list[Any], outputs: list[str], result: dict[str, Any], split: str = ""
) -> list[Finding]:
    """What the doctor says of the outputs of a predictor, and of their scores with what stands beside them."""
    if all(isinstance(example, JUDGED) for example in examples):
        separator = None
        if isinstance(predictor, Classifier) and isinstance(predictor.targets, Several):
            separator = predictor.separator
        return examine_judgements(examples, outputs, result, split=split, separator=separator)
    if not all(isinstance(example, Pair) for example in examples):
        return []
    return examine_outputs([p.source for p in examples], outputs, [p.target for p in examples], split=split)
