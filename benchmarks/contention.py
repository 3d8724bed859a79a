"""Training beside other programs that want the processor.

    python benchmarks/contention.py [--rounds 3] [--seconds 20]

The quickstart trains in processes of its own, for some seconds each, in turns: as jumok sets itself up (spinning
briefly, as many threads as there are free cores), and as torch would (threads for all cores, spinning as long as OpenMP
likes). Each with an idle machine, with one busy neighbour and with four: processes that only count. Speed is tokens per
second of the training loop after its first seconds, from the events of the run.
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import sleep

from interleave import Row, middle, write

ROOT = Path(__file__).parents[1]
WAYS: dict[str, tuple[dict[str, str], list[str]]] = {
    "jumok": ({}, []),
    # As torch does by itself: all cores, and the spin that libgomp chooses where nothing is set (300,000 turns).
    "fixed threads": ({"GOMP_SPINCOUNT": "300000"}, [f"train.threads={len(os.sched_getaffinity(0))}"]),
}
TARGETS = {("jumok", 1): 0.5, ("jumok", 4): 0.2}


def speed(way: str, folder: Path, seconds: float) -> float:
    """Tokens a second of a training that is stopped after so many seconds; its first third is not counted."""
    environment, overrides = WAYS[way]
    environment = {**os.environ, "JUMOK_CACHE": str(folder / "cache"), **environment}
    environment.pop("OMP_NUM_THREADS", None)
    out = folder / "run"
    shutil.rmtree(out, ignore_errors=True)
    sets = [f"--set={override}" for override in ("train.evaluate_every=100000", "train.save_every=100000", *overrides)]
    recipe = str(ROOT / "recipes/quickstart.toml")
    command = [sys.executable, "-m", "jumok", "train", recipe, "--out", str(out), *sets]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    events = out / "events.jsonl"
    while process.poll() is None and not (events.exists() and events.stat().st_size):
        sleep(0.05)
    sleep(seconds)
    process.send_signal(signal.SIGTERM)
    process.wait()
    found = [json.loads(line) for line in events.read_text("utf-8").splitlines()]
    steps = [event for event in found if event["event"] == "step"]
    begin = steps[0]["time"] + seconds / 3
    kept = [event for event in steps if event["time"] >= begin]
    return float(sum(event["tokens"] for event in kept[1:]) / max(kept[-1]["time"] - kept[0]["time"], 1e-9))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--seconds", type=float, default=20.0)
    asked = arguments.parse_args()
    speeds: dict[tuple[str, int], list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for way in WAYS:
            speed(way, folder, 3)  # the data is prepared, the files are in memory
        for _ in range(asked.rounds):
            for neighbours in (0, 1, 4):
                for way in WAYS:
                    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(neighbours)]
                    try:
                        speeds.setdefault((way, neighbours), []).append(speed(way, folder, asked.seconds))
                    finally:
                        for other in others:
                            other.kill()
                            other.wait()
    rows = []
    for (way, neighbours), found in speeds.items():
        base = speeds["fixed threads", 0] if neighbours == 0 else speeds[way, 0]
        if (way, neighbours) == ("fixed threads", 0):
            continue
        ratio, low, high = middle([one / other for one, other in zip(found, base, strict=True)])
        against = "fixed threads, idle" if neighbours == 0 else f"{way}, idle"
        work = f"quickstart training, {way}, {neighbours} busy neighbours"
        target = 0.97 if neighbours == 0 else TARGETS.get((way, neighbours))
        units = [f"{statistics.median(values):,.0f} tokens/s" for values in (found, base)]
        rows.append(
            Row(
                work=work,
                against=against,
                ratio=ratio,
                low=low,
                high=high,
                target=target,
                unit_jumok=units[0],
                unit_peer=units[1],
            )
        )
    write("contention", rows)


if __name__ == "__main__":
    main()
