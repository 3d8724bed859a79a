"""Examples that cannot be read: a reader stops at the first of them, the doctor counts them all."""

from collections import Counter, defaultdict
from math import inf
from pathlib import Path

from jumok.doctor.findings import Finding, Rule, Tally, judge
from jumok.errors import DataError, OffsetError
from jumok.text.formats import read_lines
from jumok.text.labelled import tag_columns, tagged_lines

_CHARACTERS = "characters from 0, and neither bytes nor UTF-16 units"

# fmt: off
_RULES: dict[str, Rule] = {
    "not_utf8": ("unreadable", 0, 0, "lines of {file} that are not UTF-8", "Nothing can read them: convert the file"
        " from the encoding that it was written in, e.g. with iconv -f CP949 -t UTF-8"),
    "columns": ("columns", 0, 0.5, "lines of {file} with another number of columns than {usual}, which is usual there",
        "The first is taken for the word and the last for its tag, the rest is lost: join words that have a space in"
        " them, or separate the columns by tabs"),
    "unreadable": ("unreadable", 0, 0, "{things} that cannot be read", "Training stops at the first: mend them, or"
        " leave them out. Right would be {right}"),
    "skipped": ("unreadable", 0.05, inf, "{things} that cannot be read", "Training leaves them out, as data.when_wrong"
        " says. Right would be {right}"),
    "offsets": ("offsets", 0, 0, "{things} whose offsets do not fit the text", "Training stops at the first: count"
        f" {_CHARACTERS}, end exclusive, in the text as the file has it, or leave them out"),
    "shifted_offsets": ("offsets", 0, 0, "{things} whose marked words stand elsewhere in the text ({shifts})",
        f"Training stops at the first: move their offsets, which count {_CHARACTERS}, in the text as the file has it"),
    "answers": ("answers", 0, 0, "{things} with an answer that is nowhere in the context, or parts a character of it",
        "Training stops at the first: an answer is copied from the context, letter by letter with their accents; a"
        ' question that has none says "is_impossible": true'),
    "shifted_answers": ("answers", 0, 0, "{things} whose answer stands elsewhere in the context ({shifts})", "Training"
        f" stops at the first: move answer_start, which counts {_CHARACTERS}, in the context as the file has it"),
}
# fmt: on
_THINGS = {
    "labelled": "rows",
    "tagged": "sentences",
    "relations": "pairs of entities",
    "questions": "questions",
    "choices": "choices",
}


class Faults:
    """The examples that cannot be read, of one split or of several that are read from the same files."""

    def __init__(self, kind: str, hint: str = "", *, skipped: bool = False) -> None:
        """`skipped` are those that training leaves out."""
        self._kind, self._hint, self._rule = kind, hint, "skipped" if skipped else "unreadable"
        self._known: set[tuple[str | None, str]] = set()
        self._tallies: dict[tuple[str, str], Tally] = defaultdict(Tally)
        self._shifts: Counter[int] = Counter()

    def add(self, error: DataError) -> None:
        # What is held out by a hash is read from the files of train: the same fault comes again.
        if (key := (error.where, error.what)) in self._known:
            return
        self._known.add(key)
        rule, right, what = self._rule, error.right or "", error.what
        if isinstance(error, OffsetError):
            rule, right = "answers" if self._kind == "questions" else "offsets", ""
            if error.shift is not None:
                rule, what = f"shifted_{rule}", f"{what}: off by {error.shift:+d}"
                self._shifts[error.shift] += 1
        tally = self._tallies[rule, right]
        tally.count += 1
        if len(tally.examples) < 5:
            tally.examples.append(f"{error.where}  {_both_ends(what)}")

    def examine(self, name: str, n: int) -> list[Finding]:
        """What was found since the last time, beside n examples that could be read."""
        total = n + sum(tally.count for tally in self._tallies.values())
        distances = [f"off by {shift:+d}: {count:,}" for shift, count in self._shifts.most_common()]
        shifts = ", ".join(distances[:3]) + (f" and {len(distances) - 3:,} other distances" if distances[3:] else "")
        findings: list[Finding] = []
        for (rule, right), tally in self._tallies.items():
            facts = {"things": _THINGS[self._kind], "right": right + self._hint, "shifts": shifts}
            findings += judge(_RULES[rule], tally, total, facts, begin=f"{name}: ")
        self._tallies.clear()
        self._shifts.clear()
        return findings


def _both_ends(what: str) -> str:
    """What is wrong is said at the beginning and at the end; in between there may be a long text."""
    what = " ".join(what.split())
    return what if len(what) <= 160 else f"{what[:80]} … {what[-75:]}"


def examine_bytes(path: Path) -> list[Finding]:
    """Whether every line of a file is UTF-8; a reader stops at the first that is not, and says nothing of the rest."""
    tally, n = Tally(), 0
    for line in read_lines(path, charset="latin-1"):  # which takes any byte
        n += 1
        written = line.encode("latin-1")
        try:
            written.decode()
        except UnicodeDecodeError:
            tally.add(f"{path}:{n}", written.decode(errors="replace"))
    return judge(_RULES["not_utf8"], tally, n, {"file": str(path)})


def examine_columns(path: Path) -> list[Finding]:
    """Whether all lines of a CoNLL file have as many columns; those with one only cannot be read anyway."""
    tallies: dict[int, Tally] = defaultdict(Tally)
    for sentence in tagged_lines(path):
        for number, line in sentence:
            if (columns := len([*filter(None, tag_columns(line.strip()))])) > 1:
                tallies[columns].add(f"{path}:{number}", line)
    if len(tallies) < 2:
        return []
    usual = max(tallies, key=lambda columns: tallies[columns].count)
    n = sum(tally.count for tally in tallies.values())
    odd = [tally for columns, tally in sorted(tallies.items()) if columns != usual]
    tally = Tally(sum(tally.count for tally in odd), [shown for tally in odd for shown in tally.examples][:5])
    return judge(_RULES["columns"], tally, n, {"file": str(path), "usual": str(usual)})
