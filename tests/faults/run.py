"""make faults: what goes wrong, how often it was tried, whether it was survived, and what work was lost.

python tests/faults/run.py [--quick] [--only WORDS] [--write docs/reliability.md]
"""

import argparse
import multiprocessing
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random

import folders
import inputs
import training
from shop import Fault, Shop

FAULTS: list[Fault] = [*training.FAULTS, *folders.FAULTS, *inputs.FAULTS]


@dataclass
class Row:
    name: str
    times: int = 0
    survived: int = 0
    lost: int = 0
    first: str = ""
    """why the first one that was not survived was not"""


def attempt(number: int, times: int, folder: Path, seed: int) -> Row:
    fault = FAULTS[number]
    shop, row = Shop(folder), Row(fault.name)
    for again in range(times):
        row.times += 1
        try:
            row.lost = max(row.lost, fault.once(shop, Random(f"{seed} {fault.name} {again}")))
            row.survived += 1
        except Exception as error:
            row.first = row.first or f"{type(error).__name__}: {error}"[:600]
    return row


def table(rows: list[Row]) -> str:
    lines = ["| fault | tried | survived | steps lost, at most |", "|---|--:|--:|--:|"]
    lines += [f"| {row.name} | {row.times} | {row.survived} | {row.lost} |" for row in rows]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    wanted = [
        number
        for number, fault in enumerate(FAULTS)
        if asked.only.lower() in fault.name.lower() and (fault.quick or not asked.quick)
    ]
    rows, began = [], time.monotonic()
    # Two at a time, in processes that fork: torch is imported once.
    pool = ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork"))
    with tempfile.TemporaryDirectory() as folder, pool:
        tried = [
            pool.submit(attempt, n, 1 if asked.quick else FAULTS[n].times, Path(folder) / str(n), asked.seed)
            for n in wanted
        ]
        for row in (future.result() for future in tried):
            rows.append(row)
            passed = time.monotonic() - began
            sys.stdout.write(f"{passed:6.0f} s  {row.survived}/{row.times}  {row.name}\n")
            sys.stdout.write(f"          {row.first}\n" if row.first else "")
            sys.stdout.flush()
    sys.stdout.write(f"\n{table(rows)}\n")
    if asked.write is not None:
        page = asked.write.read_text("utf-8")
        head, tail = page.split("<!-- table -->")[0], page.split("<!-- end -->")[1]
        asked.write.write_text(f"{head}<!-- table -->\n\n{table(rows)}\n\n<!-- end -->{tail}", "utf-8")
    return int(any(row.survived < row.times for row in rows))


if __name__ == "__main__":
    sys.exit(main())
