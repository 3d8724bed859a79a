"""The tables of fine-tuning in docs/results.md from trained runs: a row for each, sets together.

python docs/finetuning.py runs/finetuning     # runs/finetuning/SET/BODY, e.g. sst2/minilm, sst2/scratch

The metric is the one by which the recipe chose its model. Of several seeds the value is their mean and the interval
Student's, of one run it is the test set's bootstrap.
"""

import json
import sys
from pathlib import Path
from typing import Any


def main(folder: Path) -> None:
    lines = ["| set | metric | body | seeds | test | interval | dev | majority | bag of words | overlap |"]
    lines += ["|---|---|---|--:|--:|--:|--:|--:|--:|--:|"]
    lines += [row(scores.parent) for scores in sorted(folder.glob("*/*/scores.json"))]
    sys.stdout.write("\n".join(lines) + "\n")


def row(run: Path) -> str:
    scores = json.loads((run / "scores.json").read_text("utf-8"))
    metric = json.loads((run / "recipe.json").read_text("utf-8"))["recipe"]["train"]["metric"]
    test = scores.get("test", scores["dev"])
    found, seeds = test["scores"][metric], len(test.get("parts", [run]))
    cells = [
        run.parent.name + ("" if "test" in scores else " (dev)"),
        metric.replace("_", " "),
        run.name,
        str(seeds),
        f"**{found['value']:.2f}**",
        f"{found['low']:.2f} – {found['high']:.2f}",
        f"{scores['dev']['scores'][metric]['value']:.2f}",
        *(baseline(test, name, metric) for name in ("majority", "bag_of_words", "overlap")),
    ]
    return f"| {' | '.join(cells)} |"


def baseline(result: dict[str, Any], name: str, metric: str) -> str:
    value = result.get("baselines", {}).get(name, {}).get(metric)
    return "–" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
