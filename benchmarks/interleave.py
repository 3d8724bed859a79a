"""Measure several things in turns, so that a noisy machine is noisy for all of them, and write the ratios down."""

import json
import resource
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, kw_only=True)
class Row:
    work: str
    against: str
    ratio: float
    low: float
    high: float
    target: float | None
    unit_jumok: str
    unit_peer: str
    rss_jumok: float | None = None
    rss_peer: float | None = None


def seconds(work: Callable[[], object], repeat: int = 1) -> float:
    began = perf_counter()
    for _ in range(repeat):
        work()
    return (perf_counter() - began) / repeat


def interleave(
    works: dict[str, Callable[[], object]], *, rounds: int, repeat: dict[str, int]
) -> dict[str, list[float]]:
    """Seconds of each work in each round, after a warm-up."""
    for work in works.values():
        work()
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            times[name].append(seconds(work, repeat.get(name, 1)))
    return times


def middle(ratios: list[float]) -> tuple[float, float, float]:
    """Median and quartiles of the rounds' ratios."""
    low, mid, high = statistics.quantiles(ratios if len(ratios) > 1 else ratios * 2, n=4)
    return mid, low, high


def peak_memory() -> float:
    """Megabytes resident at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def write(name: str, rows: list[Row], *, keep: bool = False) -> None:
    """Print the rows and store them; with `keep`, beside those of works that were not measured this time."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    works = {row.work for row in rows}
    known = json.loads(path.read_text("utf-8")) if keep and path.exists() else []
    stored = [row for row in known if row["work"] not in works] + [asdict(row) for row in rows]
    path.write_text(json.dumps(stored, indent=1) + "\n", "utf-8")
    for row in rows:
        goal = "" if row.target is None else f"  target {row.target:g}"
        print(f"{row.work} against {row.against}: {row.ratio:.3f} ({row.low:.3f} to {row.high:.3f}){goal}")
        print(f"    {row.unit_jumok}; {row.unit_peer}")
