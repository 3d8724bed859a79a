"""jumok predict: a line in, a line out; or a file in, and the same file out with the answers in it."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from jumok.cli import arguments
from jumok.cli.ahead import answered_ahead
from jumok.cli.arguments import AsJson, Asked, Ensemble, MaxCharacters, RunArgument, options, talk
from jumok.cli.engine import ensure_engine
from jumok.cli.inputs import data_for, input_batches
from jumok.errors import InputError

if TYPE_CHECKING:
    from jumok.engines import Engine
    from jumok.tasks.protocol import Predictor

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
        typer.Option(metavar="FILE", help="Write the file with the answers in it; run again to resume."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--all", help="PO and TMX with --out: also replace the translations that are there.")
    ] = False,
    max_characters: MaxCharacters = None,
    engine: arguments.Engine = None,
    overrides: Asked = None,
    as_json: AsJson = False,
) -> None:
    """Predict line by line; with --out, read a file and write one of the same format.

    With --json, print all fields of each output; docs/outputs.md lists them.
    """
    from jumok.cli.pictures import drawn_in_the_end
    from jumok.cli.relations import relating
    from jumok.cli.written import Writer, model_key, refuse_out
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
    data = data_for(predictor, run)
    answer = answering(predictor, asked)
    if out is not None:
        more = {"characters": max_characters, "engine": type(predictor.engine).__name__, "all": again}
        key = model_key([run, *(ensemble or [])], asked | more)
        if Writer(predictor, data, answer, key, again).write(file, out, str(run)):
            raise typer.Exit(2)
        return
    batches = input_batches(file, data, predictor.kind)
    if stream:
        beside = {"--json": as_json, "--prefix": prefix, "--table": table, "--picture": picture}
        if _stream(predictor, batches, asked, beside=beside):
            raise typer.Exit(2)
        return
    if entities or types:
        answer = relating(predictor, entities, types)
    answers = _answers(answer, batches, None if file is None else predictor.engine)
    if picture is not None:
        answers = drawn_in_the_end(predictor, answers, picture)
    failed = _print(predictor, run, answers, table=table, as_json=as_json)
    if failed:
        raise typer.Exit(2)


def answering(predictor: "Predictor[Any, Any]", asked: dict[str, Any]) -> Callable[..., list[Any]]:
    """The outputs for examples; texts out of documents are translated sentence by sentence."""
    from jumok.engines import nobody
    from jumok.tasks.translation.predictor import Translator

    if isinstance(predictor, Translator):
        from jumok.tasks.translation.documents import predict as translate

        return lambda examples, done=nobody: translate(predictor, examples, done=done, **asked)
    return lambda examples, done=nobody: predictor.predict(examples, done=done, **asked)


def _answers(
    answer: Callable[[list[Any]], list[Any]], batches: Iterator[list[Any]], ahead: "Engine | None"
) -> Iterator[Answered]:
    """Yield every example with its output; an example that could not be read is already a Failure.

    The engine may answer `ahead`, unless lines are to be answered as they come.
    """
    from jumok.tasks.protocol import Failure

    def answered(examples: list[Any]) -> list[Any]:
        return answer([example for example in examples if not isinstance(example, Failure)])

    each = ((some, answered(some)) for some in batches)
    for examples, found in each if ahead is None else answered_ahead(ahead, answered, batches):
        outputs = iter(found)
        yield from ((example, example if isinstance(example, Failure) else next(outputs)) for example in examples)


def _print(
    predictor: "Predictor[Any, Any]",
    run: Path,
    answers: Iterable[Answered],
    *,
    table: Literal["tsv", "jsonl"] | None,
    as_json: bool,
) -> int:
    """Print outputs as they arrive, failures and notes to stderr; return the number of failures."""
    from jumok.tasks.notes import NoteCounter
    from jumok.tasks.protocol import Failure, plain

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
            said = getattr(line, "text", line) + next(bits, "").replace(
                "\n", " "
            )  # raise any error before writing anything
        except InputError as error:
            failed += 1
            talk.print(f"error: {error}")
            said, bits = "", iter(())
        typer.echo(said, nl=False)
        for bit in bits:
            typer.echo(bit.replace("\n", " "), nl=False)
        typer.echo()
    return failed
