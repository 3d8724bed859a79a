"""Draw the pictures of the documentation from a trained run.

python docs/pictures.py runs/en-de "A man in a blue shirt is standing on a ladder cleaning a window."
"""

import json
import sys
from pathlib import Path

from jumok.look import draw_attention
from jumok.picture import draw_curves

FOLDER = Path(__file__).parent / "pictures"


def main(run: Path, text: str) -> None:
    draw_attention(run, text, FOLDER / "alignment.png")
    draw_curves(map(json.loads, (run / "events.jsonl").read_text("utf-8").splitlines()), FOLDER / "curve.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
