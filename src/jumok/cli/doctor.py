"""jumok doctor: diagnose data or a run."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from jumok.cli import completion
from jumok.cli.arguments import AsJson, Overrides, print_json, splits, stored_beside, talk
from jumok.errors import InputError
from jumok.shipped import find_recipe, shipped_names

if TYPE_CHECKING:
    from jumok.doctor import Finding


def doctor(
    what: Annotated[
        list[Path],
        typer.Argument(metavar="RECIPE|RUN|FILE...", help="What to check.", autocompletion=completion.recipes_and_runs),
    ],
    source: Annotated[str | None, typer.Option(help="Language of the source, or of the only text, for files.")] = None,
    target: Annotated[str | None, typer.Option(help="Language of the target, for files.")] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="SOURCE,TARGET", help="Columns of a TSV file with a header.")
    ] = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Diagnose data, or the outputs or training curve of a run. Exit code 2 if something must be fixed."""
    from jumok.cli.report import print_findings
    from jumok.doctor import examine_data, refuse_a_mixture

    if len(what) == 1 and what[0].as_posix() in shipped_names():
        what = [find_recipe(what[0])]
    refuse_a_mixture(what, told=bool(source or target or columns), overridden=bool(overrides))
    if what[0].is_dir():
        findings = _examined_run(what[0], quiet=as_json)
    else:
        with talk.status("reading"):
            named, keys = _two_columns(columns), overrides or []
            findings = examine_data(what, source=source, target=target, columns=named, overrides=keys)
    if as_json:
        print_json({"findings": [asdict(finding) for finding in findings]})
    else:
        print_findings(Console(soft_wrap=True), findings, all_well="no problems found")
    if any(finding.severity == "error" for finding in findings):
        raise typer.Exit(2)


def _two_columns(columns: str | None) -> tuple[str, str] | None:
    if columns is None:
        return None
    names = columns.split(",")
    if len(names) != 2 or not all(names):
        hint = "give two names, e.g. --columns en,ko"
        raise InputError(f"not two columns: {columns}", where="--columns", hint=hint, code="input.columns")
    return names[0], names[1]


def _examined_run(run: Path, *, quiet: bool) -> "list[Finding]":
    """Findings on the training curve of a pre-training run (GPT and ELMo included), or on a run's outputs."""
    from jumok.cli.report import progress_bar
    from jumok.doctor import Finding, examined, worst_first
    from jumok.doctor.runs import examine_run
    from jumok.predictor import load

    with talk.status("reading"):
        found = examine_run(run)
    if found is not None:
        return found
    predictor, findings = load(run, max_characters=sys.maxsize, engine="torch"), list[Finding]()
    for split, held_out in splits(run, None).items():
        examples = held_out.examples
        with progress_bar(talk, f"decoding {split}", len(examples), quiet=quiet) as done:
            result, outputs = predictor.score(examples, done=done)
        findings += examined(predictor, examples, outputs, result | stored_beside(run, split), split)
    return worst_first(findings)
