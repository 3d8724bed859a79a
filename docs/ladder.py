"""The ladder of docs/results.md from its trained runs: a table, the gap between attention and none, and a picture.

python docs/ladder.py de-en runs/ladder     # runs/ladder/de-en-lstm, de-en-gru, ...

Each run's test set is decoded again, and BLEU taken by source length, in buckets that suit captions.
"""

import json
import sys
from pathlib import Path

from jumok.arguments import splits
from jumok.hub.folder import read_model
from jumok.picture import draw_bleu_by_length
from jumok.predictor import load
from jumok.score.translation import bleu_by_length, compare_translations
from jumok.text.formats import Pair

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


def main(direction: str, folder: Path) -> None:
    runs = {rung: folder / f"{direction}-{rung}" for rung in RUNGS}
    runs = {rung: run for rung, run in runs.items() if (run / "scores.json").exists()}
    pairs: list[Pair] = splits(next(iter(runs.values())), None)["test"]
    outputs = {rung: load(runs[rung])([pair.source for pair in pairs]) for rung in DRAWN if rung in runs}
    lines = ["| rung | parameters | test BLEU | interval | chrF | dev BLEU | steps |", "|---|--:|--:|--:|--:|--:|--:|"]
    lines += [row(rung, run) for rung, run in runs.items()]
    lines += ["", f"| source words | sentences | {FIXED} | {ATTENDING} | gap | interval |", "|---|--:|--:|--:|--:|--:|"]
    lines += gaps(pairs, outputs, direction.partition("-")[2])
    sys.stdout.write("\n".join(lines) + "\n")
    draw(pairs, outputs, direction)


def row(rung: str, run: Path) -> str:
    scores = json.loads((run / "scores.json").read_text("utf-8"))
    bleu, chrf = scores["test"]["scores"]["bleu"], scores["test"]["scores"]["chrf"]
    steps = json.loads((run / "recipe.json").read_text("utf-8"))["recipe"]["train"]["steps"]
    parameters = sum(tensor.numel() for tensor in read_model(run / "model").tensors.values()) / 1e6
    return (
        f"| {rung} | {parameters:.2f}M | {bleu['value']:.1f} | {bleu['low']:.1f} – {bleu['high']:.1f}"
        f" | {chrf['value']:.1f} | {scores['dev']['scores']['bleu']['value']:.1f} | {steps:,} |"
    )


def gaps(pairs: list[Pair], outputs: dict[str, list[str]], target: str) -> list[str]:
    """By source length: what attention adds to a fixed vector, with paired bootstrap intervals."""
    lines = []
    for low, high in zip((0, *(edge + 1 for edge in EDGES)), (*EDGES, None), strict=True):
        here = [i for i, pair in enumerate(pairs) if low <= len(pair.source.split()) <= (high or sys.maxsize)]
        fixed, attending = ([outputs[rung][i] for i in here] for rung in (FIXED, ATTENDING))
        references = [pairs[i].target for i in here]
        bleu = compare_translations(fixed, attending, references, target_language=target)[0]
        words = f"{low} or more" if high is None else f"{low} to {high}"
        interval = f"{bleu.low:+.1f} – {bleu.high:+.1f}"
        lines.append(f"| {words} | {len(here)} | {bleu.a:.1f} | {bleu.b:.1f} | {bleu.difference:+.1f} | {interval} |")
    return lines


def draw(pairs: list[Pair], outputs: dict[str, list[str]], direction: str) -> None:
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    scores = {}
    for rung, texts in outputs.items():
        target = direction.partition("-")[2]
        found = bleu_by_length(texts, references, sources, edges=EDGES, target_language=target)
        scores[rung] = [bucket.score.plain() for bucket in found]
    draw_bleu_by_length(scores, Path(__file__).parent / "pictures" / f"ladder-{direction}.png")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
