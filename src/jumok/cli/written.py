"""`jumok predict --out`: a file in, the same file out, with the model's answers in it.

Where input and output are of one kind, everything of the input stays and answers are added. Else the examples are
written anew in the format of the output. Either way the file is read in pieces, and what has been answered is kept
beside the output: a killed command goes on from there.
"""

import hashlib
import json
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

from jumok.cli.ahead import answered_ahead
from jumok.cli.arguments import talk
from jumok.cli.inputs import CHARACTERS_AT_ONCE, file_examples, lines_of
from jumok.cli.journal import Journal, Progress, journal, journal_folder
from jumok.errors import DataError, InputError, JumokError
from jumok.examples.faults import suffix_of
from jumok.examples.filled import Answer, Piece
from jumok.examples.filled.po import po_pieces
from jumok.examples.filled.rows import Objects, Plain, Rows, Table, Words, row_pieces
from jumok.examples.filled.tmx import tmx_pieces
from jumok.version import __version__

if TYPE_CHECKING:
    from jumok.engines import Done
    from jumok.tasks.protocol import Predictor

AT_ONCE = 128
"""examples per call of the predictor, after which they are kept; progress is reported at least as often"""
_UNASKED = 64
"""pieces without an example that weigh as much as one with an example"""
_CATALOGUES = ("po", "pot")
_DOCUMENTS = (*_CATALOGUES, "mo", "tmx")


def refuse_out(out: Path, beside: Mapping[str, Any]) -> None:
    """Reject an unusable --out before predicting anything."""
    if given := ", ".join(option for option, value in beside.items() if value):
        hint = f"drop --out, or drop {given}"
        raise InputError(f"--out cannot be combined with {given}", where="--out", hint=hint, code="input.options")
    for path in _files(out):
        if path.is_dir() or not path.parent.is_dir():
            what = "this is a folder" if path.is_dir() else f"there is no folder {path.parent}"
            hint = "name a file in a folder that exists"
            raise InputError(what, where=f"--out {path}", hint=hint, code="input.out")


def _files(out: Path) -> list[Path]:
    return [out] if out.parent.is_dir() else [Path(name) for name in str(out).split(",")]


@dataclass(frozen=True, slots=True)
class _Way:
    """How an input becomes the output."""

    pieces: Callable[[], Iterator[Piece]]
    finish: Callable[[Path], None]
    """make the output of the contents of all pieces"""
    answer: Callable[[Any, Any], Answer]
    """what a piece gets for an example and its output"""


@dataclass(slots=True)
class Writer:
    """Writes the answers of one predictor to files."""

    predictor: "Predictor[Any, Any]"
    data: Any
    answer: "Callable[[list[Any], Done], list[Any]]"
    """the outputs of some examples"""
    key: Mapping[str, str]
    """what decides the outputs"""
    again: bool = False
    """fill what has been filled, too"""

    def write(self, file: Path | None, out: Path, name: str) -> int:
        """Write a file, or stdin, with its answers; return how many examples could not be answered or written.

        Failures are reported. If every example fails, nothing is written.
        """
        with journal(journal_folder(out)) as folder:
            given = _kept(folder) if file is None else file
            errors: list[JumokError] = []
            way = self._way(given, out, stdin=file is None, errors=errors)
            total = sum(len(piece.asked) for piece in way.pieces())  # and what is no file of its kind is an error now
            kept = Journal(folder, {"the input": _sha256(given), **self.key, "the output": out.name})
            self._tell_beginning(kept, total)
            self._answer(kept, way, total, name)
            if total and kept.progress.failed == total:
                raise _nothing_answered(total, out)
            way.finish(kept.content)
        progress = kept.progress
        for note, n in sorted(progress.notes.items(), key=lambda item: -item[1]):
            talk.print(f"note: {n:,} of {total:,}: {note}")
        failed = progress.failed + len(errors)
        skipped = f", {failed:,} failed" if failed else ""
        flagged = f"; {progress.flagged:,} with other placeholders than their text" if progress.flagged else ""
        talk.print(f"{out}: {total - failed:,} of {total:,} examples{skipped}{flagged}")
        return failed

    def _tell_beginning(self, kept: Journal, total: int) -> None:
        if kept.others:
            talk.print(f"note: {' and '.join(kept.others)} changed since an earlier command stopped: starting anew")
        if kept.progress.pieces:
            talk.print(f"resuming after {kept.progress.examples:,} of {total:,} examples")

    def _answer(self, kept: Journal, way: _Way, total: int, name: str) -> None:
        """Answer the pieces that an earlier command has not, and keep each chunk of them."""
        from jumok.cli.report import progress_bar
        from jumok.data.shards import in_chunks

        progress, pieces = kept.progress, way.pieces()
        for _ in islice(pieces, progress.pieces):
            pass
        with interrupting() as stopped:
            try:
                with progress_bar(talk, name, total - progress.examples) as done:
                    chunks = in_chunks(pieces, AT_ONCE * _UNASKED, weight=_weight)
                    answered = partial(self._answered, done=done)
                    for chunk, outputs in answered_ahead(self.predictor.engine, answered, chunks):
                        content = self._filled(chunk, outputs, way, progress)
                        progress.pieces += len(chunk)
                        kept.add(content)
            except KeyboardInterrupt:
                talk.print(f"stopped after {progress.examples:,} of {total:,} examples: run the same command to go on")
                raise typer.Exit(128 + (stopped or [signal.SIGINT])[0]) from None
            finally:
                kept.flush()

    def _answered(self, chunk: Sequence[Piece], done: "Done") -> list[Any]:
        """The outputs for what can be read of the pieces."""
        asked = [example for piece in chunk for example in piece.asked]
        good = [example for example in asked if not isinstance(example, DataError)]
        outputs = self.answer(good, done) if good else []
        done(len(asked) - len(good))
        return outputs

    def _filled(self, chunk: Sequence[Piece], answered: Sequence[Any], way: _Way, progress: Progress) -> bytes:
        from jumok.tasks.protocol import Failure

        asked = [example for piece in chunk for example in piece.asked]
        outputs = iter(answered)
        found: list[Answer | None] = []
        failed = flagged = 0
        notes: list[str] = []
        for example in asked:
            output = Failure.of(example) if isinstance(example, DataError) else next(outputs)
            if isinstance(output, Failure):
                failed += 1
                talk.print(f"error: {output.error()}")
                found.append(None)
                continue
            found.append(answer := way.answer(example, output))
            flagged += bool(answer.remark)
            notes += [note.text for note in getattr(output, "notes", ())]
        answers = iter(found)
        content = b"".join(piece.written([*islice(answers, len(piece.asked))]) for piece in chunk)
        progress.examples += len(asked)
        progress.failed += failed
        progress.flagged += flagged
        for note in notes:
            progress.notes[note] = progress.notes.get(note, 0) + 1
        return content

    def _added(self, given: Any, output: Any) -> Answer:
        """The answer as it is added to a file."""
        example = given if isinstance(given, self.predictor.example) else self.predictor.parse(given, given.where)
        return Answer(output.text, self.predictor.cells(example, output), _remark(example, output))

    def _completed(self, given: Any, output: Any) -> Answer:
        """The example with its answer, as a line of JSON."""
        from jumok.tasks.protocol import adapter

        example = given if isinstance(given, self.predictor.example) else self.predictor.parse(given, given.where)
        whole = self.predictor.completed(example, output)
        return Answer(adapter(self.predictor.example).dump_json(whole, warnings=False).decode())

    def _way(self, file: Path, out: Path, *, stdin: bool, errors: list[JumokError]) -> _Way:
        before, after = ("" if stdin else _suffix(file)), _suffix(out)
        same = before == after or (before in _CATALOGUES and after in _CATALOGUES)
        copied = partial(_copy, out=out)
        kind = self.predictor.kind
        if kind == "translation" and before in _DOCUMENTS:
            languages = {"source": self.data.source, "target": self.data.target}
            if not same or before == "mo":
                hint = "translate the .po file, and compile it" if before == "mo" else f"name it .{before}"
                what = f"a .{before} file cannot be written" + ("" if before == "mo" else f" as .{after}")
                raise InputError(what, where=f"--out {out}", hint=hint, code="data.format")
            if before == "tmx":
                return _Way(lambda: tmx_pieces(file, **languages, again=self.again), copied, self._added)
            return _Way(lambda: po_pieces(file, target=languages["target"], again=self.again), copied, self._added)
        if not stdin and (rows := self._rows(file, before, after)):
            return _Way(lambda: row_pieces(file, file_examples(file, self.data, kind), rows), copied, self._added)
        self._refuse_unknown(out)
        given = partial(lines_of, file, kind, stdin=True) if stdin else partial(file_examples, file, self.data, kind)
        return _Way(lambda: map(_anew, given()), partial(self._converted, out=out, errors=errors), self._completed)

    def _rows(self, file: Path, before: str, after: str) -> Rows | None:
        """How the lines of a file take answers; None if its examples are to be written anew."""
        from jumok.examples.spans import TaggedData
        from jumok.examples.tables import delimiter_of

        columns = self.predictor.columns
        plain = self.data is None or self.data.read_unlabelled(file) is None
        if plain and before not in ("tsv", "csv"):
            single = after in ("txt", getattr(self.data, "target", None))  # a.en becomes a.ko
            return Plain(columns) if before == after or single else None
        if before != after or before == "json":
            return None
        if before == "jsonl":
            return Objects(columns)
        if isinstance(self.data, TaggedData):
            return None if plain else Words(columns)
        if before == "csv":
            return Table(columns, delimiter_of(file), quoting=True)
        return Table(columns, "\t", quoting=False)

    def _refuse_unknown(self, out: Path) -> None:
        """Reject a format that cannot be written before the model is asked, by writing nothing in it."""
        if self.data is None:
            what = f"{self.predictor.kind} has no file format for examples"
            raise InputError(what, where="--out", hint="use --json, or lines on stdout", code="input.no_file")
        with TemporaryDirectory() as folder:
            trial = ",".join(str(Path(folder) / path.name) for path in _files(out))
            try:
                self.data.write(Path(trial), [])
            except DataError as error:
                raise DataError(error.what, where=out, hint=error.hint, code=error.code) from None

    def _converted(self, content: Path, *, out: Path, errors: list[JumokError]) -> None:
        def fail(error: JumokError) -> None:
            errors.append(error)
            talk.print(f"error: {error}")

        self.data.write(out, _examples(content, self.predictor.example), wrong=fail)


def _anew(example: Any) -> Piece:
    """An example that is kept as a line of JSON until all are answered."""
    return Piece([example], lambda answers: b"" if answers[0] is None else f"{answers[0].text}\n".encode())


def _examples(content: Path, kind: type[Any]) -> Iterator[Any]:
    from jumok.tasks.protocol import adapter

    with content.open("rb") as lines:
        for line in lines:
            yield adapter(kind).validate_json(line)


def _remark(example: Any, output: Any) -> str:
    """What a translation has not kept of its text's placeholders."""
    from jumok.examples.pairs import Pair
    from jumok.text.placeholders import differences

    if not isinstance(example, Pair):
        return ""
    found = differences(example.source, output.text)
    said = [f"missing: {' '.join(found.missing)}"] if found.missing else []
    said += [f"added: {' '.join(found.extra)}"] if found.extra else []
    return "; ".join([*said, *(["arguments in another order"] if found.reordered else [])])


def _suffix(path: Path) -> str:
    return suffix_of(path) if "." in path.name else ""


def _weight(piece: Piece) -> int:
    from jumok.examples.length import characters

    share = CHARACTERS_AT_ONCE // AT_ONCE
    return sum(_UNASKED * (1 + characters(example) // share) for example in piece.asked) or 1


def _kept(folder: Path) -> Path:
    """A copy of stdin, which cannot be read again."""
    with (folder / "stdin").open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return folder / "stdin"


def _copy(content: Path, *, out: Path) -> None:
    """The contents of the journal as the output, gzipped if its name ends in .gz."""
    from jumok.files import write_through

    with content.open("rb") as file:
        write_through(out, file, packed=out.name.lower().endswith(".gz"))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def model_key(runs: Iterable[Path], options: Mapping[str, Any]) -> dict[str, str]:
    """What decides the outputs of models besides their inputs."""
    from jumok.hub.files import model_folder

    models = []
    for folder in (model_folder(run) for run in runs):
        manifest = folder / "manifest.json"
        files = [manifest] if manifest.exists() else sorted(path for path in folder.iterdir() if path.is_file())
        models.append([_sha256(path) for path in files])
    return {
        "the model": json.dumps(models),
        "the options": json.dumps(dict(options), sort_keys=True, default=str),
        "the version of jumok": __version__,
    }


def _nothing_answered(total: int, out: Path) -> InputError:
    what = f"none of {total:,} examples could be answered: nothing written"
    return InputError(what, where=out, hint="see the errors above", code="input.nothing_answered")


@contextmanager
def interrupting() -> Iterator[list[int]]:
    """Let SIGTERM and SIGHUP interrupt as Ctrl-C does; the list gets the signal's number."""
    received: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        received.append(number)
        raise KeyboardInterrupt

    heard = [n for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
    old = {number: signal.signal(number, interrupt) for number in heard}
    try:
        yield received
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
