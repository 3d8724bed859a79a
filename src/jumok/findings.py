"""Findings: faults counted, rated by their share, and shown with a few examples."""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import zip_longest
from typing import Any, Literal

from jumok.text.normalise import compose

Severity = Literal["error", "warning", "note"]
Rule = tuple[str, float, float, str, str]
"""code of its findings, shares from which they are a warning and an error, what was found, what to do about it"""

_UNSEGMENTED = re.compile("[ぁ-ヿ㐀-鿿\u0e00-\u0e7f]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One kind of fault: how often it was found, what to do about it, and where to look."""

    code: str
    """stable, for programs: data.duplicate"""
    severity: Severity
    count: int
    share: float
    """of all examples, lines or steps that were examined"""
    message: str
    examples: list[str]
    """up to five: "file:line  source ||| target", long texts shortened"""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """what its message fills in, for whoever words it anew, as the page does in Korean; of findings on a curve, and of
    those that name a split, which can be told together"""


@dataclass(slots=True)
class Tally:
    """How often a fault was found, and the first few places."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, where: str, *texts: str) -> None:
        self.count += 1
        if len(self.examples) < 5:
            self.examples.append(example(where, *texts))


def judge(
    rule: Rule, tally: Tally, n: int, facts: Mapping[str, str], *, begin: str = "", weight: float | None = None
) -> list[Finding]:
    """Apply a rule to a fault found in `tally.count` of n places; empty if the count is zero.

    The severity depends on the share of places, or on `weight` if places weigh differently.
    """
    if not tally.count:
        return []
    share = tally.count / n
    weight = share if weight is None else weight
    code, warning_from, error_from, what, advice = rule
    severity: Severity = "error" if weight >= error_from else "warning" if weight >= warning_from else "note"
    what, advice = what.format(**facts), advice.format(**facts)
    message = f"{begin}{what}: {_of_all(tally.count, n)}. {advice}."
    split = begin.removesuffix(": ")
    more = {"split": split, "what": what, "advice": advice, "n": n} if split else {}
    return [finding(code, severity, tally.count, n, message, tally.examples, more)]


def told_once(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, those that differ only in their split as one, which is as severe as the worst."""
    told: dict[Any, list[Finding]] = {}
    for number, found in enumerate(findings):
        same = (found.code, found.facts["what"], found.facts["advice"]) if "split" in found.facts else number
        told.setdefault(same, []).append(found)
    return worst_first([_together(some) if len(some) > 1 else some[0] for some in told.values()])


def _together(findings: Sequence[Finding]) -> Finding:
    order = {"train": 0, "dev": 1, "test": 2}
    findings = sorted(findings, key=lambda found: order.get(found.facts["split"], 3))
    first = worst_first([*findings])[0]
    numbers = {found.facts["split"]: (found.count, found.facts["n"]) for found in findings}
    counts = ", ".join(f"{split} {_of_all(*both)}" for split, both in numbers.items())
    what, advice = first.facts["what"], first.facts["advice"]
    count, n = (sum(both) for both in zip(*numbers.values(), strict=True))
    # A few places of each split, rather than five of the first.
    shown = [one for each in zip_longest(*(found.examples for found in findings)) for one in each if one is not None]
    return finding(first.code, first.severity, count, n, f"{what}: {counts}. {advice}.", shown[:5])


def _of_all(count: int, n: int) -> str:
    share = count / n
    percent = "below 0.1 %" if share < 0.001 else f"{100 * share:.1f} %"
    return f"{count:,} of {n:,} ({percent})"


def finding(
    code: str,
    severity: Severity,
    count: int,
    n: int,
    message: str,
    examples: Sequence[str] = (),
    facts: Mapping[str, Any] | None = None,
) -> Finding:
    share, facts = count / n, facts or {}
    return Finding(
        code=code, severity=severity, count=count, share=share, message=message, examples=list(examples), facts=facts
    )


def example(where: str, *texts: str) -> str:
    return f"{where}  {' ||| '.join(map(_shortened, texts))}"


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 80 else f"{text[:79]}…"


def worst_first(findings: list[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: (("error", "warning", "note").index(finding.severity), -finding.share))


def folded(text: str) -> str:
    return " ".join(compose(text).split())


def is_decomposed(text: str) -> bool:
    # Only composition makes a text shorter: NFC also replaces a few characters, and decomposes a few.
    return not unicodedata.is_normalized("NFC", text) and len(compose(text)) < len(text)


def hash_of(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())


def count_words(text: str) -> int:
    """Whitespace-separated words; in scripts without spaces, two characters count as one."""
    return max(text.count(" ") + 1, len(_UNSEGMENTED.findall(text)) // 2)


def quartiles(counted: Counter[int]) -> str:
    """The quartiles and the maximum of counted values."""
    if len(counted) == 1:
        return f"always {max(counted):,}"
    found: list[str] = []
    total, below = counted.total(), 0
    for value in sorted(counted):
        below += counted[value]
        found += [f"{value:,}"] * (sum(4 * below >= k * total for k in (1, 2, 3)) - len(found))
    return f"quartiles {', '.join(found)}, most {max(counted):,}"
