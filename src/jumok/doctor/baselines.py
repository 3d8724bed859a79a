"""A model beside baselines: what is no better than they are, or not by more than chance."""

from collections.abc import Iterator, Mapping
from typing import Any

from jumok.findings import Finding, finding
from jumok.tasks.baseline import LOWER_IS_BETTER, is_better, told_against

_TRIVIAL = {"majority", "mean", "copy", "no_answer", "most_frequent_tag"}
"""baselines that ignore their input, or hardly look at it: to be no better than them is an error"""


def below_baselines(result: Mapping[str, Any], begin: str) -> Iterator[Finding]:
    found = result["scores"]
    told = set()
    for name, scores in result.get("baselines", {}).items():
        pairs = {metric: (found[metric]["value"], than) for metric, than in scores.items() if metric in found}
        no_better = [
            (value >= than) if metric in LOWER_IS_BETTER else (value <= than) for metric, (value, than) in pairs.items()
        ]
        perfect = all(value == 100 for value, _ in pairs.values())  # both may be, on easy data
        if pairs and all(no_better) and not perfect:
            known = ", ".join(f"{metric} {value:.2f} against {than:.2f}" for metric, (value, than) in pairs.items())
            message = f"{begin}the model is no better than the baseline {name.replace('_', ' ')} ({known}). Lower the"
            message += " learning rate, train longer, or use the baseline."
            severe = name in _TRIVIAL
            told.add(name)
            yield finding("output.baseline", "error" if severe else "warning", 1, 1, message)
    against = result.get("against_baseline")
    if against and against["baseline"] not in told and not is_better(against) and against["a"] < 100:
        message = f"{begin}the model is {told_against(against)}. The difference may be chance: use more data, train"
        message += " longer, or use the baseline."
        yield finding("output.baseline", "warning", 1, 1, message)
