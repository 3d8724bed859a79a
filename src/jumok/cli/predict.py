"""jumok predict: a line in, a line out; or a file in the format of the training data in, a file of that format out."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from jumok.cli.arguments import AsJson, Asked, Ensemble, RunArgument, options, print_json, talk
from jumok.errors import DataError, InputError

if TYPE_CHECKING:
    from jumok.tasks.protocol import Predictor

AT_ONCE = 512
"""examples per call of the predictor"""
Answered = tuple[Any, Any]
"""an example as given, and its output"""


def predict(
    run: RunArgument,
    file: Annotated[Path | None, typer.Argument(help="Lines, or data in the training format; default: stdin.")] = None,
    ensemble: Ensemble = None,
    prefix: Annotated[str | None, typer.Option(help="Text that every output must begin with.")] = None,
    stream: Annotated[bool, typer.Option("--stream", help="Show text while it is generated.")] = False,
    entities: Annotated[
        list[Path] | None, typer.Option(metavar="RUN", help="Relations: runs that find the entities in raw text.")
    ] = None,
    types: Annotated[
        list[str] | None, typer.Option(metavar="FOUND=MEANT", help="Relations: rename entity types, e.g. protein=GENE.")
    ] = None,
    table: Annotated[
        Literal["tsv", "jsonl"] | None, typer.Option(help="Print entities or relations as rows of a table.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw entities, relations or answers: a .png or .svg.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the examples with their answers; the file name sets the format."),
    ] = None,
    overrides: Asked = None,
    as_json: AsJson = False,
) -> None:
    """Predict line by line; with --out, read a file and write one of the same format.

    With --json, print all fields of each output; docs/outputs.md lists them.
    """
    from jumok.cli.pictures import drawn_in_the_end
    from jumok.cli.relations import relating
    from jumok.cli.written import refuse_out
    from jumok.predictor import load

    if table and as_json:
        hint = "use --table jsonl, or --json alone"
        raise InputError("--json cannot be combined with --table", where="--json", hint=hint, code="input.options")
    if out is not None:
        others = {"--table": table, "--stream": stream, "--picture": picture, "--entities": entities, "--types": types}
        refuse_out(out, {"--json": as_json, **others})
    if picture is not None:
        from jumok.picture import refuse_undrawable

        refuse_undrawable(picture)
    predictor = load(run, *(ensemble or []))
    asked = options(overrides) | ({} if prefix is None else {"prefix": prefix})
    predictor.wanted(asked)  # reject wrong options before reading anything
    batches = input_batches(file, run)
    if out is not None:
        if _write(predictor, run, list(chain.from_iterable(batches)), asked, out):
            raise typer.Exit(2)
        return
    if stream:
        beside = {"--json": as_json, "--prefix": prefix, "--table": table, "--picture": picture}
        _stream(predictor, batches, asked, beside=beside)
        return
    answer = relating(predictor, entities, types) if entities or types else partial(predictor.predict, **asked)
    answers = _answers(answer, batches)
    if picture is not None:
        answers = drawn_in_the_end(predictor, answers, picture)
    failed = _print(predictor, run, answers, table=table, as_json=as_json)
    if failed:
        raise typer.Exit(2)


def input_batches(file: Path | None, run: Path | None = None) -> Iterator[list[Any]]:
    """Yield examples of a file, or lines of stdin as they arrive, so that each is answered before the next."""
    from jumok.data.shards import in_chunks
    from jumok.text.lines import decoded, read_lines

    if file is not None:
        found = _as_trained(file, run)
        yield from in_chunks(_numbered(read_lines(file), f"{file}:") if found is None else found, AT_ONCE)
        return
    rest, first = b"", 1
    stdin = cast(BufferedReader, sys.stdin.buffer)
    while block := stdin.read1(1 << 16):
        *lines, rest = (rest + block).split(b"\n")
        texts = decoded([line + b"\n" for line in lines], "stdin", first=first)
        yield from in_chunks(_numbered(texts, "line ", first), AT_ONCE)
        first += len(lines)
    if rest:
        yield list(_numbered(decoded([rest], "stdin", first=first), "line ", first))


class Line(str):
    """An input line that knows its location."""

    where: str


def _numbered(texts: Iterable[str], source: str, first: int = 1) -> Iterator[Line]:
    for number, text in enumerate(texts, start=first):
        line = Line(text)
        line.where = f"{source}{number}"
        yield line


def _as_trained(file: Path, run: Path | None) -> Iterator[Any] | None:
    """The examples of a file in the training format, a Failure for each invalid one; None if in another format."""
    from jumok.cli.arguments import run_recipe
    from jumok.train.folder import RunFolder

    if run is None or RunFolder(run).stored() is None:
        return None
    wrong: list[DataError] = []
    found = run_recipe(run).data.read_unlabelled(file, wrong=wrong.append)
    return None if found is None else _with_failures(found, wrong)


def _with_failures(examples: Iterable[Any], wrong: list[DataError]) -> Iterator[Any]:
    """Yield examples and, in their places, failures for the errors that reading appends to `wrong`."""
    from jumok.tasks.protocol import Failure

    def failed() -> list[Failure]:
        failures = [Failure.of(error) for error in wrong]
        wrong.clear()
        return failures

    for example in examples:
        yield from failed()
        yield example
    yield from failed()


def _answers(answer: Callable[[list[Any]], list[Any]], batches: Iterator[list[Any]]) -> Iterator[Answered]:
    """Yield every example with its output; an example that could not be read is already a Failure."""
    from jumok.tasks.protocol import Failure

    for examples in batches:
        outputs = iter(answer([example for example in examples if not isinstance(example, Failure)]))
        yield from ((example, example if isinstance(example, Failure) else next(outputs)) for example in examples)


def _write(predictor: "Predictor[Any, Any]", run: Path, examples: list[Any], asked: dict[str, Any], out: Path) -> int:
    """Write the answered examples to a file; return the number of failures."""
    from jumok.cli.written import AT_ONCE, write_answers
    from jumok.data.shards import in_chunks

    def answers(done: Callable[[int], None]) -> Iterator[Answered]:
        return _answers(partial(predictor.predict, done=done, **asked), in_chunks(examples, AT_ONCE))

    return write_answers(predictor, run, examples, answers, out)


def _print(
    predictor: "Predictor[Any, Any]",
    run: Path,
    answers: Iterable[Answered],
    *,
    table: Literal["tsv", "jsonl"] | None,
    as_json: bool,
) -> int:
    """Print outputs as they arrive, failures and notes to stderr; return the number of failures."""
    from jumok.tasks.protocol import Failure, NoteCounter, plain

    if table and not predictor.table_columns:
        what = f"{predictor.kind} has no rows for a table"
        raise InputError(what, where="--table", hint="use a tagging or relation run", code="input.table")
    if table == "tsv":  # even if nothing is found: an empty table has columns, too
        typer.echo("\t".join(["line", *predictor.table_columns]))
    notes, found, failed = NoteCounter(), list[dict[str, Any]](), 0
    for number, (given, output) in enumerate(answers, start=1):
        notes.add(output)
        if isinstance(output, Failure):
            failed += 1
            talk.print(f"error: {output.error()}")
        if as_json and given is output:  # the input could not be read
            found.append(plain(output))
        elif as_json:
            asked = given if isinstance(given, str) else plain(given)
            found.append({"input": asked, **plain(output)})
        elif table:
            for row in [] if isinstance(output, Failure) else predictor.table(output) or []:
                typer.echo(_row(number, row, table))
        else:
            typer.echo(output.text.replace("\n", " "))
    if as_json:
        print_json({"run": str(run), "predictions": found})
    for note in notes.told():
        talk.print(f"note: {note}")
    return failed


def _row(number: int, row: dict[str, Any], form: Literal["tsv", "jsonl"]) -> str:
    if form == "jsonl":
        return json.dumps({"line": number, **row}, ensure_ascii=False)
    return "\t".join(re.sub(r"[\t\r\n]", " ", str(value)) for value in (number, *row.values()))


def _stream(
    predictor: "Predictor[Any, Any]", batches: Iterator[list[Any]], asked: dict[str, Any], *, beside: dict[str, Any]
) -> None:
    """Print every line and its continuation while it is generated; rejects the options `beside`."""
    if given := ", ".join(option for option, value in beside.items() if value):
        what = f"--stream cannot be combined with {given}"
        raise InputError(what, where="--stream", code="input.options")
    write = getattr(predictor, "stream", None)
    if write is None:
        what = f"{predictor.kind} cannot stream its output"
        raise InputError(what, where="--stream", hint="use a language model run", code="input.stream")
    for lines in batches:
        for line in lines:
            bits = write(line, **asked)
            begun = next(bits, "")  # raise any error before writing anything
            sys.stdout.write(line + begun.replace("\n", " "))
            sys.stdout.flush()
            for bit in bits:
                sys.stdout.write(bit.replace("\n", " "))
                sys.stdout.flush()
            sys.stdout.write("\n")
            sys.stdout.flush()
