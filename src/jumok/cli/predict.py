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

from jumok.cli.arguments import AsJson, Asked, Engine, Ensemble, MaxCharacters, RunArgument, options, run_data, talk
from jumok.cli.engine import ensure_engine
from jumok.errors import DataError, InputError

if TYPE_CHECKING:
    from jumok.tasks.protocol import Predictor

AT_ONCE = 512
"""examples per call of the predictor"""
CHARACTERS_AT_ONCE = 1 << 20
"""and characters, so that memory does not depend on the number of long texts"""
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
    max_characters: MaxCharacters = None,
    engine: Engine = None,
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
    if engine != "torch" and not ensemble:
        ensure_engine(run, talk.print)
    predictor = load(run, *(ensemble or []), max_characters=max_characters, engine=engine)
    asked = options(overrides) | ({} if prefix is None else {"prefix": prefix})
    predictor.wanted(asked)  # reject wrong options before reading anything
    batches = input_batches(file, run)
    if out is not None:
        if _write(predictor, run, list(chain.from_iterable(batches)), asked, out):
            raise typer.Exit(2)
        return
    if stream:
        beside = {"--json": as_json, "--prefix": prefix, "--table": table, "--picture": picture}
        if _stream(predictor, batches, asked, beside=beside):
            raise typer.Exit(2)
        return
    answer = relating(predictor, entities, types) if entities or types else partial(predictor.predict, **asked)
    answers = _answers(answer, batches)
    if picture is not None:
        answers = drawn_in_the_end(predictor, answers, picture)
    failed = _print(predictor, run, answers, table=table, as_json=as_json)
    if failed:
        raise typer.Exit(2)


def input_batches(file: Path | None, run: Path | None = None) -> Iterator[list[Any]]:
    """Yield examples of a file, or lines of stdin as they arrive, so that each is answered before the next.

    What cannot be read is a Failure in its place.
    """
    from jumok.text.lines import decoded, numbered_lines, split_lines

    wrong: list[DataError] = []
    if file is not None:
        found = _as_trained(file, run, wrong)
        lines = _lines(numbered_lines(file, wrong=wrong.append), f"{file}:")
        yield from _batches(lines if found is None else found, wrong)
        return
    stdin, first = cast(BufferedReader, sys.stdin.buffer), 1
    for arrived in split_lines(iter(lambda: stdin.read1(1 << 16), b"")):
        numbered = decoded(arrived, "stdin", first=first, wrong=wrong.append)
        yield from _batches(_lines(numbered, "line "), wrong)
        first += len(arrived)


class Line(str):
    """An input line that knows its location."""

    where: str


def _lines(numbered: Iterable[tuple[int, str]], source: str) -> Iterator[Line]:
    for number, text in numbered:
        line = Line(text)
        line.where = f"{source}{number}"
        yield line


def _as_trained(file: Path, run: Path | None, wrong: list[DataError]) -> Iterator[Any] | None:
    """The examples of a file in the training format; None if it is in another."""
    if run is None or (data := run_data(run)) is None:
        return None
    found: Iterator[Any] | None = data.read_unlabelled(file, wrong=wrong.append)
    return found


def _batches(examples: Iterable[Any], wrong: list[DataError]) -> Iterator[list[Any]]:
    """Lists of at most `AT_ONCE` examples, and of fewer if they are long: no more than `CHARACTERS_AT_ONCE` and one."""
    from jumok.data.shards import in_chunks
    from jumok.examples.length import characters

    share = CHARACTERS_AT_ONCE // AT_ONCE
    return in_chunks(_with_failures(examples, wrong), AT_ONCE, weight=lambda one: 1 + characters(one) // share)


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
    from jumok.cli.written import write_answers

    def answers(done: Callable[[int], None]) -> Iterator[Answered]:
        return _answers(partial(predictor.predict, done=done, **asked), _batches(examples, []))

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
    if as_json:
        typer.echo(f'{{\n  "run": {json.dumps(str(run), ensure_ascii=False)},\n  "predictions": [', nl=False)
    notes, number, failed = NoteCounter(), 0, 0
    for number, (given, output) in enumerate(answers, start=1):
        notes.add(output)
        if isinstance(output, Failure):
            failed += 1
            talk.print(f"error: {output.error()}")
        if as_json:
            unread = given is output
            asked = {} if unread else {"input": given if isinstance(given, str) else plain(given)}
            # One of many, so that they need not all be held to be printed as one object.
            found = json.dumps({**asked, **plain(output)}, ensure_ascii=False, indent=2).replace("\n", "\n    ")
            typer.echo(f"{',' if number > 1 else ''}\n    {found}", nl=False)
        elif table:
            for row in [] if isinstance(output, Failure) else predictor.table(output) or []:
                typer.echo(_row(number, row, table))
        else:
            typer.echo(output.text.replace("\n", " "))
    if as_json:
        typer.echo("\n  ]\n}" if number else "]\n}")
    for note in notes.told():
        talk.print(f"note: {note}")
    return failed


def _row(number: int, row: dict[str, Any], form: Literal["tsv", "jsonl"]) -> str:
    if form == "jsonl":
        return json.dumps({"line": number, **row}, ensure_ascii=False)
    return "\t".join(re.sub(r"[\t\r\n]", " ", str(value)) for value in (number, *row.values()))


def _stream(
    predictor: "Predictor[Any, Any]", batches: Iterator[list[Any]], asked: dict[str, Any], *, beside: dict[str, Any]
) -> int:
    """Print every line and its continuation while it is generated, and return the number of failures.

    Rejects the options `beside`.
    """
    from jumok.tasks.protocol import Failure

    if given := ", ".join(option for option, value in beside.items() if value):
        what = f"--stream cannot be combined with {given}"
        raise InputError(what, where="--stream", code="input.options")
    write = getattr(predictor, "stream", None)
    if write is None:
        what = f"{predictor.kind} cannot stream its output"
        raise InputError(what, where="--stream", hint="use a language model run", code="input.stream")
    failed = 0
    for line in chain.from_iterable(batches):
        try:
            if isinstance(line, Failure):
                raise line.error()
            bits = write(line, **asked)
            said = line + next(bits, "").replace("\n", " ")  # raise any error before writing anything
        except InputError as error:
            failed += 1
            talk.print(f"error: {error}")
            said, bits = "", iter(())
        typer.echo(said, nl=False)
        for bit in bits:
            typer.echo(bit.replace("\n", " "), nl=False)
        typer.echo()
    return failed
