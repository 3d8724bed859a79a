"""`jumok predict --out`: a file in, a file of the same format out, with the model's answers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumok.cli.arguments import run_recipe, talk
from jumok.errors import InputError, JumokError

if TYPE_CHECKING:
    from jumok.engines import Done
    from jumok.tasks.protocol import Predictor

AT_ONCE = 128
"""examples per call of the predictor; progress is reported at least as often"""


def refuse_out(out: Path, beside: Mapping[str, Any]) -> None:
    """Reject an unusable --out before predicting anything."""
    if given := ", ".join(option for option, value in beside.items() if value):
        hint = f"drop --out, or drop {given}"
        raise InputError(f"--out cannot be combined with {given}", where="--out", hint=hint, code="input.options")
    for path in [out] if out.parent.is_dir() else map(Path, str(out).split(",")):
        if path.is_dir() or not path.parent.is_dir():
            what = "this is a folder" if path.is_dir() else f"there is no folder {path.parent}"
            hint = "name a file in a folder that exists"
            raise InputError(what, where=f"--out {path}", hint=hint, code="input.out")


def write_answers(
    predictor: "Predictor[Any, Any]",
    run: Path,
    examples: Sequence[Any],
    answers: "Callable[[Done], Iterator[tuple[Any, Any]]]",
    out: Path,
) -> int:
    """Write examples with the outputs as their answers; return how many could not be answered or written.

    `answers` yields every example with its output, and reports progress. Failures are reported and left out of the
    file; if every example fails, nothing is written.
    """
    from jumok.cli.report import progress_bar
    from jumok.tasks.protocol import Failure, NoteCounter

    data = _data(predictor, run)
    notes, errors = NoteCounter(), list[JumokError]()

    def fail(error: JumokError) -> None:
        errors.append(error)
        talk.print(f"error: {error}")

    def completed(done: "Done") -> Iterator[Any]:
        for example, output in answers(done):
            notes.add(output)
            if isinstance(output, Failure):
                fail(output.error())
            else:
                yield predictor.completed(predictor.parse(example, example.where), output)
        if examples and len(errors) == len(examples):
            what = f"none of {len(examples):,} examples could be answered: nothing written"
            raise InputError(what, where=out, hint="see the errors above", code="input.nothing_answered")

    with progress_bar(talk, str(run), len(examples)) as done:
        data.write(out, completed(done), wrong=fail)
    for note in notes.told():
        talk.print(f"note: {note}")
    left_out = f", {len(errors):,} failed and skipped" if errors else ""
    talk.print(f"{out}: {len(examples) - len(errors):,} of {len(examples):,} examples{left_out}")
    return len(errors)


def _data(predictor: "Predictor[Any, Any]", run: Path) -> Any:
    """The run's data, which writes the format it reads; for an imported model, the data of its task."""
    from jumok.examples.pairs import ParallelData
    from jumok.tasks import task_named
    from jumok.train.folder import RunFolder

    if RunFolder(run).stored() is not None:
        return run_recipe(run).data
    kinds = task_named(predictor.kind).data
    if not kinds:
        what = f"{predictor.kind} has no file format for examples"
        raise InputError(what, where="--out", hint="use --json, or lines on stdout", code="input.no_file")
    if kinds[0] is ParallelData:
        languages: Any = predictor
        return ParallelData(source=languages.source or "source", target=languages.target or "target")
    return kinds[0]()
