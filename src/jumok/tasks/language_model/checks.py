"""The doctor's rules for plain text, one example per line; for documents this task has no rules of its own."""

from math import inf

from jumok.examples.plain import Text
from jumok.findings import Rule
from jumok.tasks.checks import TextChecks, View

# fmt: off
_RULES: dict[str, Rule] = {
    "empty": ("data.empty", inf, inf, "empty lines", "Training skips them"),
    "over_long": ("data.too_long", inf, inf, "lines of more than {max_words} words", "Training splits a line into"
        " parts of data.max_len tokens, which is fine for paragraphs"),
}
# fmt: on


class LineChecks(TextChecks):
    things = "lines"
    rules = _RULES
    may_recur = True

    def view(self, example: Text) -> View:
        return View((example.text,), things="lines")
