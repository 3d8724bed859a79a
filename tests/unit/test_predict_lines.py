"""Lines of input that go together, and one of them that cannot be answered."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from jumok.cli import app
from jumok.engines import Done
from jumok.errors import InputError
from jumok.examples.plain import Text
from jumok.tasks.protocol import Failure, Note, Predictor, plain

Predict = Callable[..., Result]


@dataclass(frozen=True, slots=True)
class Capitals:
    text: str
    notes: list[Note] = field(default_factory=list)


class Echo(Predictor[Text, Capitals]):
    """Answers everything but what is odd, in capitals."""

    kind = "echo"
    example = Text
    answers = Capitals
    engine: Any = SimpleNamespace(workers=1)

    def encode(self, example: Text, options: Any) -> str:
        if "odd" in example.text:
            raise InputError("nothing to say", where=example.where, code="text.odd")
        return example.text.upper()

    def answer(self, examples: Sequence[Text], read: Sequence[str], options: Any, done: Done) -> Iterator[Capitals]:
        done(len(read))
        return (Capitals(text, [Note("text.long", "long")] if len(text) > 3 else []) for text in read)

    def measure(self, examples: Any, **options: Any) -> Any:
        raise NotImplementedError


@pytest.fixture
def predict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Predict:
    """`jumok predict` of a predictor that echoes, on a file of these lines, or on stdin."""
    monkeypatch.setattr("jumok.predictor.load", lambda *runs, **_: Echo())

    def call(*lines: str, options: Sequence[str] = (), stdin: bool = False) -> Result:
        content, file = "".join(f"{line}\n" for line in lines), tmp_path / "lines.txt"
        file.write_text(content, "utf-8")
        arguments = ["predict", str(tmp_path / "run"), *([] if stdin else [str(file)]), *options]
        return CliRunner().invoke(app, arguments, input=content if stdin else None)

    return call


def test_a_bad_example_fails_alone_in_its_place() -> None:
    told: list[int] = []
    found = Echo().predict(["a", "odd", {"text": "b"}, {"txt": "c"}, 7, Text("odd", None, "here")], done=told.append)
    assert found[0] == Capitals("A")
    assert found[2] == Capitals("B")
    failures = [output for output in found if isinstance(output, Failure)]
    assert [(failure.code, failure.where) for failure in failures] == [
        ("text.odd", "line 2"),
        ("data.json", "line 4"),
        ("input.example", "line 5"),
        ("text.odd", "here"),
    ]
    assert sum(told) == 6
    with pytest.raises(InputError) as caught:
        Echo()(["a", "odd"])
    assert (caught.value.code, caught.value.where) == ("text.odd", "line 2")


@pytest.mark.parametrize("stdin", [False, True])
def test_all_lines_but_one_that_cannot_be_answered_are(predict: Predict, tmp_path: Path, stdin: bool) -> None:
    said = predict("a", "b", "odd", "c", stdin=stdin)
    assert said.stdout == "A\nB\n\nC\n"
    assert said.exit_code == 2
    assert ("line 3" if stdin else f"{tmp_path / 'lines.txt'}:3") in said.stderr
    good = predict("a", "c", stdin=stdin)
    assert (good.stdout, good.exit_code, good.stderr) == ("A\nC\n", 0, "")


def test_a_failure_in_json(predict: Predict) -> None:
    found = json.loads(predict("a", "odd", options=["--json"]).stdout)["predictions"]
    assert found[0] == {"input": "a", "text": "A", "notes": []}
    assert (found[1]["input"], found[1]["error"]["code"]) == ("odd", "text.odd")


def test_what_is_noted_of_many_lines_is_said_once(predict: Predict) -> None:
    said = predict("long line", "a", "odd", "another one")
    assert [line for line in said.stderr.splitlines() if line.startswith("note")] == ["note: 2 of 4: long"]


@pytest.mark.parametrize("options", [["--prefix", "x"], ["--set", "beam=2"]])
def test_options_that_a_task_does_not_have_are_named(predict: Predict, options: list[str]) -> None:
    said = predict("a", options=options)
    assert isinstance(said.exception, InputError)
    assert said.exception.code == "input.unknown_option"
    assert said.stdout == ""


def test_what_does_not_go_with_a_stream_is_named(predict: Predict) -> None:
    said = predict("a", options=["--stream", "--json"])
    assert isinstance(said.exception, InputError)
    assert (said.exception.code, said.exception.where) == ("input.options", "--stream")
    assert "--json" in said.exception.what
    alone = predict("a", options=["--stream"])
    assert isinstance(alone.exception, InputError)
    assert (alone.exception.code, alone.exception.where) == ("input.stream", "--stream")


@pytest.mark.parametrize("stdin", [False, True])
def test_a_line_that_cannot_be_read_fails_alone(
    predict: Predict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stdin: bool
) -> None:
    monkeypatch.setenv("JUMOK_MAX_LINE", "9")
    content = b"a\nb\xff\nc\n" + b"d" * 10 + b"\ne\n"
    file = tmp_path / "bytes.txt"
    file.write_bytes(content)
    arguments = ["predict", str(tmp_path / "run"), *([] if stdin else [str(file)])]
    said = CliRunner().invoke(app, arguments, input=content if stdin else None)
    assert (said.stdout, said.exit_code) == ("A\n\nC\n\nE\n", 2)
    source = "stdin" if stdin else str(file)
    assert f"{source}:2, byte 2" in said.stderr
    assert f"{source}:4" in said.stderr
    found = json.loads(CliRunner().invoke(app, [*arguments, "--json"], input=content if stdin else None).stdout)
    codes = [one.get("error", {}).get("code") for one in found["predictions"]]
    assert codes == [None, "data.encoding", None, "data.line_too_long", None]


def test_a_text_with_too_many_characters_is_a_failure() -> None:
    echo = Echo()
    echo.max_characters = 3
    first, too_long, pair, last = echo.predict(["abc", "abcd", Text("a", "abcde"), "c"])
    assert (first, last) == (Capitals("ABC"), Capitals("C"))
    assert isinstance(too_long, Failure)
    assert (too_long.code, too_long.where) == ("text.too_long", "line 2")
    assert "4" in too_long.what
    assert "3" in too_long.what
    assert isinstance(pair, Failure)
    assert "5" in pair.what
    assert Echo.max_characters == 1_000_000


@pytest.mark.parametrize("lines", [(), ("a",), ("a", "odd", "b\u2028c\x85")])
def test_json_is_one_object_printed_bit_by_bit(predict: Predict, lines: Sequence[str]) -> None:
    said = predict(*lines, options=["--json"]).stdout
    assert said == json.dumps(json.loads(said), ensure_ascii=False, indent=2) + "\n"
    assert len(json.loads(said)["predictions"]) == len(lines)


def test_outputs_in_json_are_printed_before_the_next_are_computed(
    predict: Predict, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many lines there are, the outputs of a few are all that is held."""
    printed: list[int] = []

    class Watching(Echo):
        def answer(self, *given: Any) -> Iterator[Capitals]:
            sys.stdout.flush()
            printed.append(sys.stdout.buffer.tell())
            return super().answer(*given)

    monkeypatch.setattr("jumok.predictor.load", lambda *runs, **_: Watching())
    monkeypatch.setattr("jumok.cli.inputs.AT_ONCE", 2)
    assert predict(*"abcdef", options=["--json"]).exit_code == 0
    assert len({*printed}) == len(printed) == 3


def test_a_closed_stdout_ends_the_command_quietly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: Any, **__: Any) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("jumok.predictor.load", lambda *runs, **_: Echo())
    monkeypatch.setattr("jumok.cli.predict.typer.echo", closed)
    with (tmp_path / "out").open("w") as stdout:
        monkeypatch.setattr("sys.stdout", stdout)
        file = tmp_path / "lines.txt"
        file.write_text("a\n", "utf-8")
        with pytest.raises(SystemExit) as ended:
            app(["predict", str(tmp_path / "run"), str(file)])
    assert ended.value.code == 141


def test_numbers_in_json_have_six_digits() -> None:
    @dataclass(frozen=True)
    class Numbers:
        one: float
        many: list[float]
        named: dict[str, float]
        whole: int

    found = plain(Numbers(0.123456789, [1e-9 / 3, 123456.789], {"a": 2 / 3}, 1234567))
    assert found == {"one": 0.123457, "many": [3.33333e-10, 123457.0], "named": {"a": 0.666667}, "whole": 1234567}
