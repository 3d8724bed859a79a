"""What the command line's arguments stand for: runs, splits, columns, options, lines of input."""

import sys
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, cast

from jumok.data.corpus import SPLITS, Corpus, other_files
from jumok.data.shards import in_chunks
from jumok.errors import CheckpointError, DataError, InputError
from jumok.predictor import Generator, Predictor
from jumok.prepare import read_split
from jumok.recipe import Recipe, asked_options, parse_recipe
from jumok.text.formats import decoded, read_lines
from jumok.train.folder import RunFolder


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
        return {corpus.split: read_split(corpus) for corpus in corpora if corpus.exists()}
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


def two_columns(columns: str | None) -> tuple[str, str] | None:
    if columns is None:
        return None
    names = columns.split(",")
    if len(names) != 2 or not all(names):
        raise InputError(f"not two columns: {columns}", where="--columns", right="two names, e.g. --columns en,ko")
    return names[0], names[1]


def options(overrides: list[str] | None) -> dict[str, Any]:
    return asked_options(overrides or [])


def input_batches(file: Path | None, size: int = 512) -> Iterator[list[str]]:
    """Lines of a file, or of stdin as they arrive: whoever writes a line there is answered before the next one."""
    if file is not None:
        yield from in_chunks(read_lines(file), size)
        return
    rest, first = b"", 1
    stdin = cast(BufferedReader, sys.stdin.buffer)
    while block := stdin.read1(1 << 16):
        *lines, rest = (rest + block).split(b"\n")
        yield from in_chunks(decoded([line + b"\n" for line in lines], "stdin", first=first), size)
        first += len(lines)
    if rest:
        yield list(decoded([rest], "stdin", first=first))


def stream_to_stdout(predictor: Predictor, batches: Iterator[list[str]], asked: dict[str, Any]) -> None:
    """Every line and what comes after it, bit by bit as it is written."""
    if not isinstance(predictor, Generator):
        raise InputError("only a language model writes on bit by bit", where="--stream", right="a run of one")
    for lines in batches:
        for line in lines:
            sys.stdout.write(line)
            for bit in predictor.stream(line, **asked):
                sys.stdout.write(bit.replace("\n", " "))
                sys.stdout.flush()
            sys.stdout.write("\n")
            sys.stdout.flush()
