"""Every benchmark that this machine can run, one after the other, and the tables that show their results.

    python benchmarks/all.py [--only NAME,…] [--weights RUN] [--runs DIR] [--joeynmt PYTHON]

Peers stand beside jumok in the same run, in turns. Those on real corpora run if JUMOK_DATA names their folder,
fine-tuning if RUN holds imported BERT weights. DIR has the ladder's German translators, de-en-transformer and
de-en-bahdanau, whose predictions are then measured, too; engines are built there. Results are written to
benchmarks/results, and the tables in README.md and docs/results.md are made of them (benchmarks/table.py).
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

FOLDER = Path(__file__).parent
MINUTES = {
    "prediction": 22,
    "encoders": 7,
    "preparation": 3,
    "serving": 5,
    "training": 2,
    "recurrent": 6,
    "memory": 2,
    "contention": 10,
}
"""roughly, on two cores"""
EARLIER = "044dc05"
"""the last commit before there were fast engines"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names, separated by commas")
    parser.add_argument("--weights", type=Path, help="a run of `jumok import`")
    parser.add_argument("--runs", type=Path, help="a folder with de-en-transformer and de-en-bahdanau")
    parser.add_argument("--joeynmt", type=Path, help="the Python of an environment with JoeyNMT")
    given = parser.parse_args()
    wanted: dict[str, list[str]] = {name: [] for name in MINUTES}
    if given.joeynmt:
        probe = subprocess.run([given.joeynmt, "-c", "import joeynmt.search"], capture_output=True)
        wanted["prediction"] = [] if probe.returncode else ["--joeynmt", str(given.joeynmt)]
    if data := os.environ.get("JUMOK_DATA"):
        wanted["pretraining"] = []
        if given.weights is not None:
            wanted["finetuning"] = [str(given.weights)]
        if given.runs is not None:
            german = Path(data, "multi30k", "test.de")
            wanted["prediction"] += ["--run", str(given.runs / "de-en-transformer"), "--text", str(german)]
            if given.weights is not None:
                wanted["reference"] = [
                    *("--before", str(earlier()), "--run", str(given.runs / "de-en-bahdanau"), "--file", str(german)),
                    *("--weights", str(given.weights / "model"), "--texts", str(Path(data, "sst2", "test.tsv"))),
                ]
    if given.only:
        wanted = {name: wanted.get(name, []) for name in given.only.split(",")}
    failed = []
    for n, (name, arguments) in enumerate(wanted.items()):
        left = sum(MINUTES.get(other, 10) for other in list(wanted)[n:])
        print(f"{name}, {n + 1} of {len(wanted)}; about {left} minutes left", flush=True)
        began = perf_counter()
        if subprocess.run([sys.executable, FOLDER / f"{name}.py", *arguments]).returncode:
            failed.append(name)
        print(f"{name}: {(perf_counter() - began) / 60:.1f} minutes", flush=True)
    subprocess.run([sys.executable, FOLDER / "table.py"], check=True)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


def earlier() -> Path:
    """The source tree before there were fast engines."""
    tree = Path(tempfile.gettempdir(), f"jumok-{EARLIER}")
    if not tree.exists():
        subprocess.run(["git", "-C", FOLDER, "worktree", "add", "--detach", "--force", tree, EARLIER], check=True)
    return tree / "src"


if __name__ == "__main__":
    main()
