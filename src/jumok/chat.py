"""Chat with a model, line by line: replies go to stdout, everything else to stderr.

Only /quit, the end of the input and Ctrl-C end the chat; a line that cannot be answered gets an explanation.
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

LONGEST = 1000  # characters; time and memory of a reply grow quadratically
PROMPT = "> "
HELP = """\
/again     sample another reply to the last line
/history   show the conversation so far
/help      show this help
/quit      quit, as do Ctrl-D and Ctrl-C"""

_COMMAND = re.compile(r"/[a-z]+", re.IGNORECASE)
_HALF_PAIR = re.compile("[\ud800-\udfff]")
# Control characters and Unicode's line separators: they would move the cursor or break the reply's line.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_TRIES = 5


class Predictor(Protocol):
    """The part of a predictor that a chat uses."""

    def predict(self, examples: Any, **options: Any) -> Sequence[Any]:
        """For each example an output with a `text`, or a Failure."""
        ...

    def wanted(self, options: Mapping[str, Any], /) -> Any:
        """Check the options; raises an error if they cannot be used."""
        ...


class Talk:
    """The conversation so far; replies to the next line."""

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
        """Replace the last reply with another one."""
        if not self.exchanges:
            what = "nothing to answer again yet"
            raise InputError(what, hint="write a line of text first", code="input.nothing_yet")
        *earlier, (text, last) = self.exchanges
        reply = last
        for _ in range(_TRIES):  # likely replies are drawn often, and the user wants another one
            self._drawn += 1
            seed = (self._options.get("seed", 1) + self._drawn) % 2**63
            drawn = {"method": "sample", "n_best": 1, "seed": seed}
            # The tail of the distribution is mostly nonsense: cut it off unless the options say otherwise.
            reply = self._answer(text, earlier, {"top_p": 0.9, **self._options, **drawn})
            if reply != last:
                break
        self.exchanges[-1] = text, reply
        return reply

    def _answer(self, text: str, exchanges: Sequence[tuple[str, str]], options: Mapping[str, Any]) -> str:
        """The model's reply to the text, which follows as many of the last `history` exchanges as fit."""
        if len(text) > LONGEST:
            hint = f"write at most {LONGEST} characters per line"
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
            del earlier[0]  # the model may have room for fewer tokens


def converse(
    predictor: Predictor,
    lines: Iterable[str],
    say: Callable[[str], None],
    note: Callable[[str], None],
    *,
    history: int = 0,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Answer lines until they end or /quit: replies go to `say`, everything else to `note`.

    The last `history` exchanges precede each input. `options` are passed to `predict`; only an error in them is
    raised, because it would recur with every line.
    """
    predictor.wanted(options or {})
    talk = Talk(predictor, history=history, options=options)
    for line in lines:
        whole, n_halves = _HALF_PAIR.subn("\ufffd", line)
        if n_halves:
            note(f"the line is not valid Unicode: {n_halves} places in it were replaced by \ufffd")
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
                    note(f"there is no {command}; the commands are:\n{HELP}")
        except (JumokError, MemoryError, RuntimeError) as error:  # torch runs out of memory with a RuntimeError
            note(f"no reply: {str(error) or type(error).__name__}")


def chat_in_terminal(predictor: Predictor, *, history: int, options: Mapping[str, Any]) -> None:
    """Chat over stdin and stdout, with a prompt if stdin is a terminal; notes go to stderr."""
    somebody = sys.stdin.isatty()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that is not UTF-8 cannot show everything a model writes

    def note(text: str) -> None:
        typer.echo(text, err=True)

    if somebody:
        note("Write something, or /help for the commands.")
    with suppress(KeyboardInterrupt):
        converse(predictor, _typed(prompt=somebody), typer.echo, note, history=history, options=options)
    if somebody:
        note("\nBye.")


def _typed(*, prompt: bool) -> Iterator[str]:
    """The lines of stdin as they arrive; bytes that are not UTF-8 become lone surrogates."""
    if prompt and sys.stdout.isatty() and isinstance(sys.stdin, TextIOWrapper):
        with suppress(ImportError):
            import readline  # noqa: F401 - gives input() arrow keys, and a backspace over whole syllables
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
