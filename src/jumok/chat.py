"""A talk with a model, line by line: replies are the output, everything else is said aside.

Nothing that is typed ends it but /quit, the end of the input and Ctrl-C: what cannot be answered is explained.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from io import TextIOWrapper
from typing import Any, Protocol

import typer

from jumok.errors import InputError, JumokError
from jumok.tasks.protocol import Failure

LONGEST = 1000  # characters; the time and memory of a reply grow with the square of it
PROMPT = "> "
HELP = """\
/again     another reply to the last line, drawn at random
/history   the talk so far
/help      these lines
/quit      the end; so are Ctrl-D and Ctrl-C"""

_COMMAND = re.compile(r"/[a-z]+", re.IGNORECASE)
_HALF_PAIR = re.compile("[\ud800-\udfff]")
# Control characters and the two separators of Unicode: they would move the cursor, or break the reply's line.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_TRIES = 5


class Predictor(Protocol):
    """What a chat needs of a loaded run."""

    def predict(self, examples: Any, **options: Any) -> Sequence[Any]:
        """For each text something that has a `text`, or a Failure."""
        ...

    def wanted(self, options: Mapping[str, Any], /) -> Any:
        """An error if the options cannot be used."""
        ...


class Talk:
    """The exchanges so far, and the replies to what comes next."""

    def __init__(self, predictor: Predictor, *, history: int = 0, options: Mapping[str, Any] | None = None) -> None:
        self.exchanges: list[tuple[str, str]] = []
        self._predictor = predictor
        self._history = history
        self._options = dict(options or {})
        self._drawn = 0

    def reply(self, text: str) -> str:
        reply = self._answer(text, self.exchanges, self._options)
        self.exchanges.append((text, reply))
        self._drawn = 0
        return reply

    def again(self) -> str:
        """Another reply to the last text, in the place of the one that it had."""
        if not self.exchanges:
            what = "there is nothing to answer again yet"
            raise InputError(what, hint="a line of text first", code="input.nothing_yet")
        *earlier, (text, last) = self.exchanges
        reply = last
        for _ in range(_TRIES):  # what is likely is drawn often; the same again is not what was asked for
            self._drawn += 1
            seed = (self._options.get("seed", 1) + self._drawn) % 2**63
            drawn = {"method": "sample", "n_best": 1, "seed": seed}
            # The tail of all pieces is mostly nonsense, so it is cut unless it was asked for.
            reply = self._answer(text, earlier, {"top_p": 0.9, **self._options, **drawn})
            if reply != last:
                break
        self.exchanges[-1] = text, reply
        return reply

    def _answer(self, text: str, exchanges: Sequence[tuple[str, str]], options: Mapping[str, Any]) -> str:
        """The model's reply to the text after as many of the last exchanges as are wanted, and as it has room for."""
        if len(text) > LONGEST:
            hint = f"at most {LONGEST} characters in a line"
            raise InputError(f"too long: {len(text)} characters", hint=hint, code="text.too_long")
        earlier = list(exchanges[-self._history :]) if self._history else []
        while True:
            whole = " ".join([*(part for exchange in earlier for part in exchange if part), text])
            if len(whole) <= LONGEST:
                reply = self._predictor.predict([whole], **options)[0]
                if not isinstance(reply, Failure):
                    return _one_line(reply.text)
                if not earlier:
                    raise reply.error()
            del earlier[0]  # the model may have room for fewer pieces


def converse(
    predictor: Predictor,
    lines: Iterable[str],
    say: Callable[[str], None],
    note: Callable[[str], None],
    *,
    history: int = 0,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Answer lines until they end or /quit: replies go to `say`, all else to `note`.

    The last `history` exchanges are put before each input; `options` are those of `predict`, and what is wrong with
    them is the only error that is raised, because it would come back with every line.
    """
    predictor.wanted(options or {})
    talk = Talk(predictor, history=history, options=options)
    for line in lines:
        whole, n_halves = _HALF_PAIR.subn("\ufffd", line)
        if n_halves:
            note(f"the line is not whole Unicode text: {n_halves} places in it were replaced by \ufffd")
        text = _one_line(whole)
        command = text.lower() if _COMMAND.fullmatch(text) else ""
        try:
            match command:
                case "/quit":
                    return
                case "/help":
                    note(HELP)
                case "/history":
                    note("\n".join(f"{PROMPT}{asked}\n{reply}" for asked, reply in talk.exchanges) or "nothing yet")
                case "/again":
                    say(talk.again())
                case "" if text:
                    say(talk.reply(text))
                case "":
                    note("nothing to answer: the line is empty")
                case _:
                    note(f"there is no {command}; these there are:\n{HELP}")
        except (JumokError, MemoryError, RuntimeError) as error:  # torch says with RuntimeError that memory is out
            note(f"no reply: {str(error) or type(error).__name__}")


def chat_in_terminal(predictor: Predictor, *, history: int, options: Mapping[str, Any]) -> None:
    """Talk over stdin and stdout, with a prompt if somebody sits there; notes go to stderr."""
    somebody = sys.stdin.isatty()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that is not UTF-8 cannot show all that a model writes

    def note(text: str) -> None:
        typer.echo(text, err=True)

    if somebody:
        note("Write something; /help says what else there is.")
    with suppress(KeyboardInterrupt):
        converse(predictor, _typed(prompt=somebody), typer.echo, note, history=history, options=options)
    if somebody:
        note("\nBye.")


def _typed(*, prompt: bool) -> Iterator[str]:
    """The lines of stdin as they come; bytes that are not UTF-8 come as halves of surrogate pairs."""
    if prompt and sys.stdout.isatty() and isinstance(sys.stdin, TextIOWrapper):
        with suppress(ImportError):
            import readline  # noqa: F401 - gives input() its arrow keys, and a backspace over whole syllables
        sys.stdin.reconfigure(errors="surrogateescape")
        with suppress(EOFError):
            while True:
                yield input(PROMPT)
        return
    while True:
        if prompt:
            typer.echo(PROMPT, nl=False, err=True)
        line = sys.stdin.buffer.readline()
        if not line:
            return
        yield line.decode(errors="surrogateescape")


def _one_line(text: str) -> str:
    return _CONTROL.sub(" ", text).strip()
