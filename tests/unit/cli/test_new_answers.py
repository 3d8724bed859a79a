"""What `jumok new` asks, and who answers."""

import sys
from pathlib import Path

import pytest

from jumok.cli.new import Answers
from jumok.cli.train import train
from jumok.errors import InputError
from jumok.new import Question

WHICH = Question("--label", "Which column is the label?", "a", ("a", "b"), "several could be")


def test_a_person_is_asked_until_the_answer_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    given = iter(["c", "b"])
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("typer.prompt", lambda *args, **options: next(given))
    answers = Answers(yes=False)
    assert answers.ask(WHICH) == "b"
    answers.refuse_unknown([])


def test_the_guess_is_taken_and_told() -> None:
    answers = Answers(yes=True)
    assert answers.ask(WHICH) == "a"
    assert "--label a" in answers.taken[0]


def test_nobody_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False)
    answers = Answers(yes=False)
    answers.ask(WHICH)
    with pytest.raises(InputError) as caught:
        answers.refuse_unknown([Path("x.tsv")])
    assert (caught.value.code, caught.value.exit_code) == ("input.unclear", 2)
    assert "--label a" in (caught.value.hint or "")


def test_minutes_of_a_recipe_are_in_the_recipe() -> None:
    with pytest.raises(InputError) as caught:
        train([Path("x.toml")], minutes=3)
    assert caught.value.code == "input.options"
