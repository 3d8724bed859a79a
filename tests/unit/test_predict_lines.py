"""Lines of input that go together, and one of them that cannot be answered."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from jumok.cli import app
from jumok.engines import Done
from jumok.errors import InputError
from jumok.examples.plain import Text
from jumok.tasks.protocol import Failure, Note, Predictor

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
