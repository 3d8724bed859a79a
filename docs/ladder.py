"""The ladder of docs/results.md from its trained runs: a table, the gap between attention and none, and a picture.

python docs/ladder.py de-en runs/ladder     # runs/ladder/de-en-lstm, de-en-gru, ...

Each run's test set is decoded again, and BLEU taken by source length, in buckets that suit captions. The time to a dev
BLEU is the target tokens until then, evaluations joined by straight lines, at the speed that benchmarks/recurrent.py
measured for all rungs in one run: what the runs themselves took depends on what else the machine had to do.
"""

import json
import sys
from pathlib import Path

from jumok.cli.arguments import splits
from jumok.examples.pairs import Pair
from jumok.picture import draw_bleu_by_length
from jumok.predictor import load
from jumok.score.significance import Metrics
from jumok.score.translation import bleu_by_length, translation_metrics
from jumok.tasks.stored import read_model

RUNGS = (
    "lstm",
    "lstm-reversed",
    "gru",
    "bahdanau",
    "luong-dot",
    "luong-general",
    "luong-concat",
    "luong-local-m",
    "luong-local-p",
    "luong-input-feeding",
    "transformer",
    "transformer-longer",
)
FIXED, ATTENDING = "gru", "bahdanau"
DRAWN = ("lstm", FIXED, ATTENDING, "luong-general", "transformer")
EDGES = (7, 10, 13, 17)
GOALS = (20, 30)


def main(direction: str, folder: Path) -> None:
    runs = {rung: folder / f"{direction}-{rung}" for rung in RUNGS}
    runs = {rung: run for rung, run in runs.items() if (run / "scores.json").exists()}
    pairs: list[Pair] = splits(next(iter(runs.values())), None)["test"].examples
    outputs = {rung: load(runs[rung])([pair.source for pair in pairs]) for rung in DRAWN if rung in runs}
    goals = "".join(f" seconds to {goal} |" for goal in GOALS)
    lines = [f"| rung | parameters | test BLEU | interval | chrF | dev BLEU | steps |{goals}"]
    lines += ["|---|--:|--:|--:|--:|--:|--:|" + "--:|" * len(GOALS)]
    lines += [row(rung, run) for rung, run in runs.items()]
    lines += ["", f"| source words | sentences | {FIXED} | {ATTENDING} | gap | interval |", "|---|--:|--:|--:|--:|--:|"]
    target = direction.partition("-")[2]
    by_length = {rung: bleu_of(pairs, texts, target) for rung, texts in outputs.items()}
    lines += gaps(by_length[FIXED], by_length[ATTENDING])
    sys.stdout.write("\n".join(lines) + "\n")
    scores = {rung: [score.plain() for score in bleu.scores()] for rung, bleu in by_length.items()}
    draw_bleu_by_length(scores, Path(__file__).parent / "pictures" / f"ladder-{direction}.png")


def row(rung: str, run: Path) -> str:
    scores = json.loads((run / "scores.json").read_text("utf-8"))
    bleu, chrf = scores["test"]["scores"]["bleu"], scores["test"]["scores"]["chrf"]
    steps = json.loads((run / "recipe.json").read_text("utf-8"))["recipe"]["train"]["steps"]
    parameters = sum(tensor.numel() for tensor in read_model(run / "model").tensors.values()) / 1e6
    return (
        f"| {rung} | {parameters:.2f}M | {bleu['value']:.1f} | {bleu['low']:.1f} – {bleu['high']:.1f}"
        f" | {chrf['value']:.1f} | {scores['dev']['scores']['bleu']['value']:.1f} | {steps:,} |"
        + "".join(f" {seconds_to(goal, rung, run)} |" for goal in GOALS)
    )


def seconds_to(goal: float, rung: str, run: Path) -> str:
    """Training time until dev BLEU reaches the goal; a dash if it never does."""
    tokens, before = 0.0, (0.0, 0.0)
    for line in (run / "events.jsonl").read_text("utf-8").splitlines():
        event = json.loads(line)
        if event["event"] == "step":
            tokens += event["tokens"]
        if event["event"] == "evaluated":
            bleu = event["scores"]["bleu"]
            if bleu >= goal:
                at = before[0] + (tokens - before[0]) * (goal - before[1]) / (bleu - before[1])
                return f"{at / speed(rung):.0f}"
            before = tokens, bleu
    return "–"


def speed(rung: str) -> float:
    """Target tokens a second."""
    rows = json.loads((Path(__file__).parents[1] / "benchmarks/results/recurrent.json").read_text("utf-8"))
    for row in rows:
        if f"ladder {rung}," in row["work"]:
            return float(row["unit_jumok"].split()[0])
        if rung.startswith("transformer") and "ladder lstm," in row["work"]:
            return float(row["unit_peer"].split()[0])
    raise KeyError(rung)


def bleu_of(pairs: list[Pair], outputs: list[str], target: str) -> Metrics:
    """BLEU by source length."""
    metrics = translation_metrics(outputs, [pair.gold for pair in pairs], target_language=target)
    return bleu_by_length(metrics, [pair.source for pair in pairs], edges=EDGES)


def gaps(fixed: Metrics, attending: Metrics) -> list[str]:
    """By source length: the gain of attention over a fixed vector, with paired bootstrap intervals."""
    lines = []
    for bleu in fixed.against(attending):
        words = bleu.metric.removeprefix("bleu_").removesuffix("_words").replace("_", " ")
        interval = f"{bleu.low:+.1f} – {bleu.high:+.1f}"
        lines.append(f"| {words} | {bleu.n} | {bleu.a:.1f} | {bleu.b:.1f} | {bleu.difference:+.1f} | {interval} |")
    return lines


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
