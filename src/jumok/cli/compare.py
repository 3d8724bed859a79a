"""jumok compare: is one run better than another?"""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from jumok.cli import completion
from jumok.cli.arguments import AsJson, Asked, OtherData, options, print_json, splits, talk
from jumok.errors import InputError


def compare(
    first: Annotated[
        Path, typer.Argument(metavar="RUN", help="The run to compare with.", autocompletion=completion.runs)
    ],
    second: Annotated[
        Path, typer.Argument(metavar="RUN", help="The run that may be better.", autocompletion=completion.runs)
    ],
    data: OtherData = None,
    overrides: Asked = None,
    as_json: AsJson = False,
) -> None:
    """Is the second run better than the first? Paired tests on the same sentences."""
    from jumok.cli.report import print_comparisons, print_which_model, progress_bar
    from jumok.predictor import load
    from jumok.series import refuse_other_test_data

    if not data:
        refuse_other_test_data(first, second)
    for run in (first, second):
        print_which_model(talk, run)
    a, b = (load(run, max_characters=sys.maxsize, engine="torch") for run in (first, second))
    if type(a) is not type(b):
        what = f"the runs have different tasks: {a.kind} and {b.kind}"
        raise InputError(what, where=f"{first} and {second}", code="input.task")
    asked = options(overrides)
    a.wanted(asked)
    results = {}
    for split, held_out in splits(first, data).items():
        examples = held_out.examples
        with progress_bar(talk, split, 2 * len(examples), quiet=as_json) as done:
            results[split] = a.compare(b, examples, done=done, **asked)
    if as_json:
        plain = {split: [asdict(comparison) for comparison in found] for split, found in results.items()}
        print_json({"runs": [str(first), str(second)], "splits": plain})
        return
    for split, found in results.items():
        print_comparisons(Console(soft_wrap=True), split, found, first=first, second=second)
