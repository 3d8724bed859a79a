"""events.jsonl as the page reads it: its new lines, or a long history in few points."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jumok.files import parse_json

MOST_BYTES = 1 << 20
"""of events in one answer"""
Event = dict[str, Any]


def new_events(file: Path, start: int) -> dict[str, Any]:
    """Events from a byte on, as many as fit into an answer. An incomplete last line is left for the next time; a file
    shorter than `start` was begun anew, and is read from its beginning."""
    try:
        size = file.stat().st_size
        restarted = start > size
        start = 0 if restarted else start
        with file.open("rb") as opened:
            opened.seek(start)
            content = opened.read(MOST_BYTES)
            if b"\n" not in content and len(content) == MOST_BYTES:
                content += opened.readline()  # one event larger than an answer may be
    except OSError:
        return {"events": [], "next": 0, "restarted": start > 0, "more": False}
    content = content[: content.rfind(b"\n") + 1]
    end = start + len(content)
    more = len(content) > 0 and end + MOST_BYTES // 2 < size
    return {"events": _parsed(content), "next": end, "restarted": restarted, "more": more}


def history(file: Path, points: int) -> dict[str, Any]:
    """All events so far, each step told once, its steps thinned out to about so many."""
    try:
        content = file.read_bytes()
    except OSError:
        return {"events": [], "next": 0, "restarted": False, "more": False}
    content = content[: content.rfind(b"\n") + 1]
    events = thinned(told_once(_parsed(content)), points)
    return {"events": events, "next": len(content), "restarted": False, "more": False}


def told_once(events: Sequence[Event]) -> list[Event]:
    """Without what a resumed run told again: the later event counts."""
    kept: list[Event] = []
    for event in events:
        if event["event"] == "resumed":
            kept = [one for one in kept if one["event"] == "resumed" or one.get("step", 0) <= event["step"]]
            if any(one["event"] == "finished" for one in kept):
                kept = [one for one in kept if one["event"] != "finished"]
        kept.append(event)
    return kept


def thinned(events: Sequence[Event], points: int) -> list[Event]:
    """At most about `points` steps: of each bucket those with the lowest, the median and the highest
    loss, so that no spike is lost and a median over them stays about the same. Other events all stay."""
    steps = [i for i, event in enumerate(events) if event["event"] == "step"]
    if len(steps) <= points:
        return list(events)
    buckets = max(points // 3, 1)
    kept = {steps[0], steps[-1]}
    for bucket in range(buckets):
        inside = steps[bucket * len(steps) // buckets : (bucket + 1) * len(steps) // buckets]
        lost = [i for i in inside if not isinstance(events[i].get("loss"), int | float)]
        finite = sorted((i for i in inside if isinstance(events[i].get("loss"), int | float)), key=_loss_of(events))
        kept.update(lost[:1])
        if finite:
            kept |= {finite[0], finite[len(finite) // 2], finite[-1]}
    return [event for i, event in enumerate(events) if event["event"] != "step" or i in kept]


def _loss_of(events: Sequence[Event]) -> Callable[[int], float]:
    return lambda i: float(events[i]["loss"])


def _parsed(content: bytes) -> list[Event]:
    """The events of complete lines; a line that a killed process left torn is passed over."""
    events = []
    for line in content.split(b"\n"):
        try:
            event = parse_json(line) if line else None
        except ValueError:
            continue
        if isinstance(event, dict) and isinstance(event.get("event"), str):
            events.append(event)
    return events
