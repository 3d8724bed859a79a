"""Resident memory while training on a corpus, and on one ten times as long.

    python benchmarks/memory.py [--pairs 30000]

Each training is a process of its own, through the command line; VmHWM is the kernel's own record of the most that was
resident. The vocabulary is learned from a fixed number of lines, and the same number of steps is taken.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from interleave import Row, write

RECIPE = """
[data]
kind = "synthetic"
problem = "korean_numbers"
n_train = {pairs}
n_dev = 20
n_test = 20
[tokenizer]
vocab_size = 600
sample_lines = 20000
[model]
d_model = 64
d_ff = 128
n_heads = 4
n_layers = 2
[train]
steps = {steps}
batch_tokens = 2048
evaluate_every = {steps}
save_every = {steps}
"""


def most_resident(pairs: int, steps: int, folder: Path) -> float:
    """Megabytes, read while the process is alive."""
    recipe = folder / f"{pairs}.toml"
    recipe.write_text(RECIPE.format(pairs=pairs, steps=steps), "utf-8")
    environment = {**os.environ, "JUMOK_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "2"}
    command = [sys.executable, "-m", "jumok", "train", str(recipe), "--out", str(folder / f"run-{pairs}")]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    most = 0.0
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            break
        found = re.search(r"VmHWM:\s+(\d+)", status)
        most = max(most, int(found[1]) / 1024) if found else most
        time.sleep(0.2)
    if process.wait():
        sys.exit("a training failed")
    return most


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=30_000)
    parser.add_argument("--steps", type=int, default=400)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        short = most_resident(arguments.pairs, arguments.steps, Path(folder))
        long = most_resident(10 * arguments.pairs, arguments.steps, Path(folder))
    row = Row(
        work=f"resident memory, {10 * arguments.pairs:,} pairs",
        against=f"{arguments.pairs:,} pairs",
        ratio=long / short,
        low=long / short,
        high=long / short,
        target=1.1,
        unit_jumok=f"{long:.0f} MB with ten times the pairs",
        unit_peer=f"{short:.0f} MB",
        rss_jumok=long,
        rss_peer=short,
    )
    write("memory", [row])


if __name__ == "__main__":
    main()
