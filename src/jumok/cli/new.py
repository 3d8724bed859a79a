"""jumok new: look at data, and write a recipe that fits it."""

import shlex
import sys
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from jumok.cli.arguments import talk
from jumok.errors import InputError

if TYPE_CHECKING:
    from jumok.new import Question, Told
    from jumok.new.found import Found
    from jumok.new.plan import Plan

MINUTES = 30.0
TaskName = Literal[
    "translation", "classification", "tagging", "relation", "answering", "choice", "language_model", "pretraining"
]
Minutes = Annotated[float, typer.Option(min=0.05, metavar="N", help="Minutes that training may take.")]
From = Annotated[
    Path | None,
    typer.Option("--from", metavar="RUN|FOLDER", help="Start from these weights: a run, or a model folder."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Take the guess instead of asking.")]


def new(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Data: files, or a folder of them.")],
    minutes: Minutes = MINUTES,
    out: Annotated[Path | None, typer.Option(metavar="RECIPE", help="The recipe; default: NAME.toml.")] = None,
    task: Annotated[TaskName | None, typer.Option(help="The task, where the data fits several.")] = None,
    text: Annotated[
        str | None, typer.Option(metavar="COLUMN[,COLUMN]", help="Column of the text, or of a pair of texts.")
    ] = None,
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of the label.")] = None,
    source: Annotated[
        str | None, typer.Option(help="Language, or column, of the source; language of the only text.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Language, or column, of the target.")] = None,
    weights: From = None,
    yes: Yes = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the recipe if it exists.")] = False,
) -> None:
    """Look at data, and write a commented recipe that fits it, the machine and the time."""
    from jumok.new import Told
    from jumok.new.corpus import name_of

    told = Told(task=task, text=text, label=label, source=source, target=target)
    out = out or Path(f"{name_of(files)}.toml")
    answers = Answers(yes=yes)
    if (
        out.exists()
        and not force
        and not (answers.somebody and typer.confirm(f"{out} exists. Overwrite it?", err=True))
    ):
        hint = "pass --force to overwrite it, or --out for another name"
        raise InputError("the recipe exists", where=out, hint=hint, code="input.exists")
    found, plan = write(files, out, told, answers, minutes=minutes, weights=weights)
    typer.echo(f"{out}: {expected(plan)}")
    typer.echo(f"next: jumok train {shlex.quote(str(out))} --out {shlex.quote(f'runs/{found.name}')}")


def write(
    files: list[Path], out: Path, told: "Told", answers: "Answers", *, minutes: float, weights: Path | None
) -> "tuple[Found, Plan]":
    """Look at files, say what they are, and write a recipe."""
    from jumok.files import write_together
    from jumok.new.corpus import look
    from jumok.new.found import counted

    with nullcontext() if answers.somebody else talk.status("reading"):
        found = look(files, told, answers.ask)
    answers.refuse_unknown(files)
    with talk.status("measuring this machine"):
        from jumok.new.plan import machine_speed, make_plan
        from jumok.new.written import recipe_text

        plan = make_plan(found, minutes=minutes, speed=machine_speed(), weights=weights)
    if not out.parent.is_dir():
        hint = "name a file in a folder that exists"
        raise InputError(f"there is no folder {out.parent}", where=f"--out {out}", hint=hint, code="input.out")
    words = ["jumok", "new", *map(str, files), f"--minutes {minutes:g}"]
    write_together({out: recipe_text(found, plan, out, " ".join(words)).encode()})
    typer.echo(f"{', '.join(map(str, files))}: {counted(found)}")
    for sentence in [*found.why, *plan.why, *answers.taken]:
        typer.echo(f"  {sentence}")
    return found, plan


def is_data(what: list[Path]) -> bool:
    """Whether `jumok train` was given data, rather than a recipe."""
    return len(what) > 1 or (what[0].suffix != ".toml" and what[0].exists())


def recipe_of_data(files: list[Path], out: Path | None, *, minutes: float, weights: Path | None) -> tuple[Path, Path]:
    """The recipe that is written beside the run folder of these files, or was when the run began; and the folder."""
    from jumok.new import Told
    from jumok.new.corpus import name_of

    out = out or Path("runs", name_of(files))
    recipe = out.with_name(f"{out.name}.toml")
    if recipe.exists():
        talk.print(f"{recipe} is there already: training goes on with it")
        return recipe, out
    out.parent.mkdir(parents=True, exist_ok=True)
    answers = Answers(yes=not sys.stdin.isatty())
    _, plan = write(files, recipe, Told(), answers, minutes=minutes, weights=weights)
    typer.echo(f"{recipe}: {expected(plan)}")
    return recipe, out


def expected(plan: "Plan") -> str:
    """What to expect of a recipe."""
    size = f"{plan.cost.parameters['total']:,} parameters"
    return f"{size}, about {plan.steps:,} steps and {max(plan.minutes, 0.1):.2g} minutes on this machine"


@dataclass(slots=True)
class Answers:
    """Answers what files do not tell: somebody at the terminal, or the guess with --yes; else it must be given."""

    yes: bool
    taken: list[str] = field(default_factory=list)
    """guesses, and what to pass for another answer"""
    unknown: "list[Question]" = field(default_factory=list)

    @property
    def somebody(self) -> bool:
        return not self.yes and sys.stdin.isatty()

    def ask(self, question: "Question") -> str:
        if self.somebody:
            return self._prompt(question)
        if self.yes:
            others = f" (or {', '.join(one for one in question.choices if one != question.guess)})"
            said = f"Guessed: {question.option} {question.guess}{others if question.choices else ''}, because"
            self.taken.append(f"{said} {question.why}.")
        else:
            self.unknown.append(question)
        return question.guess

    def _prompt(self, question: "Question") -> str:
        typer.echo(f"{question.why[:1].upper()}{question.why[1:]}.", err=True)
        shown = f"{question.asks} [{', '.join(question.choices)}]" if question.choices else question.asks
        while True:
            answer = str(typer.prompt(shown, default=question.guess, err=True)).strip()
            if not question.choices or answer in question.choices:
                return answer
            typer.echo(f"{answer} is none of {', '.join(question.choices)}", err=True)

    def refuse_unknown(self, files: list[Path]) -> None:
        """Refuse to guess where nobody can be asked."""
        if not self.unknown:
            return
        needed = "; ".join(f"{question.option} ({question.why})" for question in self.unknown)
        given = " ".join(f"{question.option} {shlex.quote(question.guess)}" for question in self.unknown)
        raise InputError(
            f"the files do not tell: {needed}",
            where=", ".join(map(str, files)),
            hint=f"pass {given}, or another value, or --yes to take this guess",
            code="input.unclear",
        )
