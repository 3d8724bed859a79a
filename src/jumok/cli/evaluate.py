"""jumok evaluate: scores with intervals and signatures."""

import sys
from dataclasses import asdict
from typing import Any

from rich.console import Console

from jumok.cli.arguments import (
    AsJson,
    Asked,
    Engine,
    Ensemble,
    OtherData,
    RunArgument,
    options,
    print_json,
    splits,
    still_against,
    stored_beside,
    talk,
)


def evaluate(
    run: RunArgument,
    data: OtherData = None,
    ensemble: Ensemble = None,
    engine: Engine = "torch",
    overrides: Asked = None,
    as_json: AsJson = False,
) -> None:
    """Score a run on its dev and test data, with intervals and signatures."""
    from jumok.cli.report import print_findings, progress_bar
    from jumok.cli.scores import print_all_scores, print_which_model
    from jumok.doctor import examined, told_once
    from jumok.predictor import load
    from jumok.series import refuse_other_test_data

    for other in ensemble or [] if not data else []:
        refuse_other_test_data(run, other)
    print_which_model(talk, run)
    predictor = load(run, *(ensemble or []), max_characters=sys.maxsize, engine=engine)
    asked = options(overrides)
    predictor.wanted(asked)
    results: dict[str, Any] = {}
    findings = {}
    for split, held_out in splits(run, data).items():
        examples = held_out.examples
        with progress_bar(talk, split, len(examples), quiet=as_json) as done:
            results[split], outputs = predictor.score(examples, done=done, **asked)
        results[split] |= held_out.facts()
        if held_out.as_trained:
            results[split] |= stored_beside(run, split)
        for note in results[split].get("notes", []):
            talk.print(f"note: {note}")
        if held_out.as_trained and not (asked or ensemble):
            results[split] |= still_against(run, split, results[split])
        findings[split] = examined(predictor, examples, outputs, results[split], "" if as_json else split)
        results[split]["findings"] = [asdict(finding) for finding in findings[split]]
    if as_json:
        print_json({"run": str(run), "splits": results})
        return
    console = Console(soft_wrap=True)
    print_all_scores(console, results)
    print_findings(console, told_once([finding for found in findings.values() for finding in found]))
