"""Every benchmark that this machine can run, one after the other, and the tables that show their results.

    python benchmarks/all.py [--only NAME,…] [--weights RUN] [--joeynmt PYTHON]

Peers stand beside jumok in the same run, in turns. Those on real corpora run if JUMOK_DATA names their folder,
fine-tuning if RUN holds imported BERT weights. Results are written to benchmarks/results, and the tables in README.md
and docs/results.md are made of them (benchmarks/table.py).
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter

FOLDER = Path(__file__).parent
MINUTES = {
    "prediction": 25,
    "encoders": 10,
    "preparation": 4,
    "serving": 8,
    "training": 3,
    "recurrent": 10,
    "memory": 3,
    "contention": 3,
}
"""roughly, on two cores"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names, separated by commas")
    parser.add_argument("--weights", type=Path, help="a run of `jumok import`")
    parser.add_argument("--joeynmt", type=Path, help="the Python of an environment with JoeyNMT")
    given = parser.parse_args()
    wanted: dict[str, list[str]] = {name: [] for name in MINUTES}
    if given.joeynmt:
        probe = subprocess.run([given.joeynmt, "-c", "import joeynmt.search"], capture_output=True)
        wanted["prediction"] = [] if probe.returncode else ["--joeynmt", str(given.joeynmt)]
    if os.environ.get("JUMOK_DATA"):
        wanted["pretraining"] = []
        if given.weights is not None:
            wanted["finetuning"] = [str(given.weights)]
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


if __name__ == "__main__":
    main()
