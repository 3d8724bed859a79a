"""What `jumok new` writes against the recipes that were written by hand, trained for the same minutes.

    JUMOK_DATA=... python benchmarks/new.py --minutes 30 [--only nsmc] [--runs runs/new]

Six corpora, one of them in both directions, one seed, one thread each, one after the other. The recipes by hand get
`train.minutes`, too. A training that was stopped goes on when the command is run again, and one that has finished is
not repeated. The ratio in benchmarks/results/new.json is the test score of ours over theirs (theirs over ours where
less is better); the target is two points below theirs.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

RECIPES = Path(__file__).parent.parent / "recipes"
RESULTS = Path(__file__).parent / "results" / "new.json"
CORPORA = {
    "nsmc": ("nsmc", "nsmc/attentive-bilstm.toml", "accuracy", []),
    "conll2003": ("conll2003_en", "conll2003/scratch.toml", "span_f1", []),
    "pydocs-ko-en": ("pydocs_ko_en", "pydocs/ko-en.toml", "bleu", ["--source", "ko"]),
    "pydocs-en-ko": ("pydocs_ko_en", "pydocs/en-ko.toml", "bleu", ["--source", "en"]),
    "semeval2010_task8": ("semeval2010_task8", "semeval2010_task8/scratch.toml", "macro_f1", []),
    "wikitext2": ("wikitext2", "wikitext2/gpt-4-256.toml", "bits_per_byte", []),
    "question_pair_ko": ("question_pair_ko", "question_pair_ko/scratch.toml", "accuracy", []),
}
"""name: folder of the data, recipe by hand, metric, and what `jumok new` is told"""
LESS_IS_BETTER = {"bits_per_byte"}
POINTS = 2.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--only", action="append", choices=CORPORA, help="a corpus; can be repeated")
    parser.add_argument("--runs", type=Path, default=Path("runs/new"))
    given = parser.parse_args()
    given.runs.mkdir(parents=True, exist_ok=True)
    data = Path(os.environ["JUMOK_DATA"])
    rows = []
    for name in given.only or CORPORA:
        folder, by_hand, metric, told = CORPORA[name]
        ours = given.runs / f"{name}.toml"
        if not ours.exists():
            jumok("new", data / folder, "--minutes", given.minutes, "--out", ours, "--yes", *told)
        theirs = given.runs / f"{name}-by-hand.toml"
        theirs.write_text(for_minutes((RECIPES / by_hand).read_text("utf-8"), given.minutes), "utf-8")
        scores = [trained(recipe, metric) for recipe in (ours, theirs)]
        rows.append(compared(name, by_hand, metric, *scores))
        print(f"{name}: {metric} {scores[0]['value']:.2f}, by hand {scores[1]['value']:.2f}", flush=True)
        write(rows)


def for_minutes(recipe: str, minutes: float) -> str:
    """The recipe with the minutes instead of its own length, and shares of it instead of steps."""
    recipe = re.sub(r"^(steps|epochs) = .*$", f"minutes = {minutes}", recipe, flags=re.MULTILINE)
    recipe = re.sub(r"^evaluate_every = \d+$", "evaluate_every = 0.25", recipe, flags=re.MULTILINE)
    recipe = re.sub(r"^save_every = \d+$", "save_every = 0.03", recipe, flags=re.MULTILINE)
    return re.sub(r"warmup = \d{2,}\b", "warmup = 0.1", recipe)


def trained(recipe: Path, metric: str) -> dict[str, Any]:
    """The score of a recipe on test, trained now if it was not before."""
    run = recipe.with_suffix("")
    if not (run / "scores.json").exists():
        jumok("train", recipe, "--out", run, "--set", "train.threads=1", "--set", "seed=1")
    scores: dict[str, Any] = json.loads((run / "scores.json").read_text("utf-8"))["test"]["scores"][metric]
    return scores


def jumok(*arguments: object) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-m", "jumok", *map(str, arguments)], env=environment, check=True)


def compared(name: str, by_hand: str, metric: str, ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    a, b = ours["value"], theirs["value"]
    worse = b / a if metric in LESS_IS_BETTER else a / b
    least = 1 - POINTS / 100 if metric in LESS_IS_BETTER else (b - POINTS) / b
    low, high = (ours.get(bound, a) for bound in ("low", "high"))
    ratios = sorted(b / one if metric in LESS_IS_BETTER else one / b for one in (low, high))
    return {
        "work": f"{name}, {metric} on test",
        "against": f"recipes/{by_hand}, as many minutes",
        "ratio": worse,
        "low": ratios[0],
        "high": ratios[1],
        "target": least,
        "unit_jumok": f"{a:.2f}",
        "unit_peer": f"{b:.2f}",
        "rss_jumok": None,
        "rss_peer": None,
    }


def write(rows: list[dict[str, Any]]) -> None:
    """Rows of other corpora stay."""
    known = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else []
    done = {row["work"] for row in rows}
    rows = [*(row for row in known if row["work"] not in done), *rows]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(rows, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
