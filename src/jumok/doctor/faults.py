"""Examples that cannot be read: training stops at the first, the doctor counts them all."""

from collections import Counter, defaultdict
from math import inf
from pathlib import Path

from jumok.errors import DataError, OffsetError
from jumok.findings import Finding, Rule, Tally, finding, judge
from jumok.tasks.checks import TextChecks
from jumok.text.lines import numbered_lines

_CHARACTERS = "Count characters from 0 in the text as the file has it, not bytes or UTF-16 units"

# fmt: off
_RULES: dict[str, Rule] = {
    "not_utf8": ("data.encoding", 0, 0, "lines of {file} that are not UTF-8", "Convert the file from its encoding, e.g."
        " with iconv -f CP949 -t UTF-8"),
    "unreadable": ("data.unreadable", 0, 0, "{things} that cannot be read", "Training stops at the first: correct them"
        " or leave them out. Hint: {right}"),
    "skipped": ("data.unreadable", 0.05, inf, "{things} that cannot be read", "Training skips them, because of"
        " data.when_wrong. Hint: {right}"),
    "offsets": ("data.offsets", 0, 0, "{things} whose offsets do not fit the text", "Training stops at the first:"
        f" correct them or leave them out. {_CHARACTERS}, end exclusive"),
    "shifted_offsets": ("data.offsets", 0, 0, "{things} whose offsets are shifted ({shifts})", "Training stops at the"
        f" first: correct them. {_CHARACTERS}"),
}
# fmt: on


class Faults:
    """Examples that cannot be read, of one split or of several splits read from the same files."""

    def __init__(self, checks: TextChecks) -> None:
        self._checks = checks
        self._known: set[tuple[str | None, str]] = set()
        self._tallies: dict[tuple[str, str], Tally] = defaultdict(Tally)
        self._shifts: Counter[int] = Counter()

    def add(self, error: DataError) -> None:
        # Splits held out by a hash are read from the training files, so the same fault occurs again.
        if (key := (error.where, error.what)) in self._known:
            return
        self._known.add(key)
        rule, right, what = "skipped" if self._checks.skips else "unreadable", error.hint or "", error.what
        if isinstance(error, OffsetError):
            rule, right = "offsets", ""
            if error.shift is not None:
                rule, what = "shifted_offsets", f"{what}: off by {error.shift:+d}"
                self._shifts[error.shift] += 1
        tally = self._tallies[rule, right]
        tally.count += 1
        if len(tally.examples) < 5:
            tally.examples.append(f"{error.where}  {_both_ends(what)}")

    def examine(self, name: str, n: int) -> list[Finding]:
        """Report the faults added since the last call; n examples could be read."""
        total = n + sum(tally.count for tally in self._tallies.values())
        distances = [f"off by {shift:+d}: {count:,}" for shift, count in self._shifts.most_common()]
        shifts = ", ".join(distances[:3]) + (f" and {len(distances) - 3:,} other distances" if distances[3:] else "")
        findings: list[Finding] = []
        for (rule, right), tally in self._tallies.items():
            facts = {"things": self._checks.things, "right": right + self._checks.hint, "shifts": shifts}
            findings += judge(self._checks.rules.get(rule, _RULES[rule]), tally, total, facts, begin=f"{name}: ")
        self._tallies.clear()
        self._shifts.clear()
        return findings


def _both_ends(what: str) -> str:
    """Shorten a message in the middle, where it may quote a long text."""
    what = " ".join(what.split())
    return what if len(what) <= 160 else f"{what[:80]} … {what[-75:]}"


def unreadable(name: str, error: DataError, n: int) -> Finding:
    """Report that reading a split stopped after n examples."""
    message = f"{name}: {error.what}. Hint: {error.hint}. The rest was not examined."
    return finding("data.unreadable", "error", 1, n + 1, message, [error.where or ""])


def examine_bytes(path: Path) -> list[Finding]:
    """Count the lines of a file that are not UTF-8; a reader stops at the first."""
    tally, n = Tally(), 0
    # latin-1 accepts any byte; a line that is too long is reported by whoever reads it as data.
    for n, line in numbered_lines(path, charset="latin-1", wrong=lambda error: None):
        written = line.encode("latin-1")
        try:
            written.decode()
        except UnicodeDecodeError:
            tally.add(f"{path}:{n}", written.decode(errors="replace"))
    return judge(_RULES["not_utf8"], tally, n, {"file": str(path)})
