"""Draw the pictures of the documentation from a trained run.

python docs/pictures.py runs/en-de "A man in a blue shirt is standing on a ladder cleaning a window."
"""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import jumok

FOLDER = Path(__file__).parent / "pictures"


def alignment(run: Path, text: str) -> None:
    """Attention of each piece of the output over the pieces of the input."""
    predictor = jumok.load(run)
    (output,) = predictor([text])
    found = predictor.align(text, output)
    if found is None:
        sys.exit(f"{run} does not attend")
    figure, axes = plt.subplots(figsize=(8, 6.2), layout="constrained")
    image = axes.imshow(found.weights, cmap="viridis", aspect="auto", vmin=0)
    names = [[piece.replace("▁", " ").strip() or "·" for piece in pieces] for pieces in (found.source, found.target)]
    axes.set_xticks(range(len(names[0])), names[0], rotation=60, ha="right")
    axes.set_yticks(range(len(names[1])), names[1])
    axes.set_xlabel("looked at")
    axes.set_ylabel("written")
    figure.colorbar(image, label="attention, mean over layers and heads")
    figure.savefig(FOLDER / "alignment.png", dpi=110)


def curve(run: Path) -> None:
    """Training loss and the scores on dev against the step."""
    events = [json.loads(line) for line in (run / "events.jsonl").read_text("utf-8").splitlines()]
    steps = {e["step"]: e for e in events if e["event"] == "step"}
    evaluated = {e["step"]: e for e in events if e["event"] == "evaluated"}
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    numbers = sorted(steps)
    window = 50
    smooth = [
        sum(steps[n]["loss"] for n in numbers[i : i + window]) / len(numbers[i : i + window])
        for i in range(0, len(numbers), window)
    ]
    left.plot(numbers[::window], smooth, label="training loss (smoothed labels)")
    left.set_xlabel("step")
    left.legend()
    right.plot(sorted(evaluated), [evaluated[n]["scores"]["bleu"] for n in sorted(evaluated)], marker="o", ms=3)
    right.set_xlabel("step")
    right.set_ylabel("dev BLEU, greedy")
    figure.savefig(FOLDER / "curve.png", dpi=110)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    alignment(Path(sys.argv[1]), sys.argv[2])
    curve(Path(sys.argv[1]))
