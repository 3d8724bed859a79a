"""Draw the pictures of the documentation from a trained run.

python docs/pictures.py runs/en-de "A man in a blue shirt is standing on a ladder cleaning a window."
python docs/pictures.py runs/stories        # the curve of a pre-training, with its unigram floor
"""

import sys
from pathlib import Path

import jumok
from jumok.doctor.runs import ground_of_run
from jumok.picture import draw_curves
from jumok.train.folder import RunFolder

FOLDER = Path(__file__).parent / "pictures"


def main(run: Path, text: str | None = None) -> None:
    events = RunFolder(run).history()
    if text is None:
        draw_curves(events, FOLDER / "pretraining.png", floor=ground_of_run(run).floor)
    else:
        jumok.load(run).draw_attention(text, FOLDER / "alignment.png")
        draw_curves(events, FOLDER / "curve.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
