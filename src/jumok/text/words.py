"""Parts of a text that a pipeline treats alike wherever they stand, so that it has to see each of them only once.

Most words of a corpus are repetitions. A pipeline of the `tokenizers` library normalises a text and cuts it into words
before its model sees them; if it does the same to the parts of a text as to the whole, looking up the parts that were
seen before saves most of its work and changes no id.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from tokenizers import normalizers, pre_tokenizers

from jumok.text.slots import SLOTS

Cut = Callable[[str], list[str]]

# Unicode's White_Space, which the pipeline collapses; str.isspace() also counts four control characters.
WHITE_SPACE = frozenset(chr(c) for c in range(0x3001) if chr(c).isspace() and not 0x1C <= c <= 0x1F)
_BLANK = re.escape("".join(sorted(WHITE_SPACE)))
_WITH_BLANKS = re.compile(f"[{_BLANK}]*[^{_BLANK}]+|[{_BLANK}]+")

_COLLAPSE = [
    {"type": "NFC"},
    {"type": "Replace", "pattern": {"String": "▁"}, "content": "_"},
    {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "},
    {"type": "Strip", "strip_left": True, "strip_right": True},
]
_LOWERCASE = {"type": "Lowercase"}
_MARKED = [
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    {"type": "Punctuation", "behavior": "Isolated"},
]
_SLOTTED = [
    *_MARKED,
    {"type": "Split", "pattern": {"Regex": f"[{SLOTS}]"}, "behavior": "Isolated", "invert": False},
]
_BERT = [{"type": "BertPreTokenizer"}]
_BYTES = [{"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}]


def at_spaces(text: str) -> list[str]:
    """The parts between spaces. Other white space stays: BERT's normaliser joins what some of it separates."""
    return text.split(" ")


def with_blanks(text: str) -> list[str]:
    """Words with all white space before them, which GPT's rule for words divides without looking further."""
    return _WITH_BLANKS.findall(text)


def cut_of(pipeline: dict[str, Any]) -> Cut | None:
    """How to cut a text for a pipeline, given as JSON; None if only the whole text will do.

    No character composes with a space, or is replaced or lowercased differently next to one.
    """
    if not all(token["special"] for token in pipeline["added_tokens"]):
        return None  # they are found anywhere in a text, across words too
    steps = _parts(pipeline["normalizer"], "normalizers")
    match _parts(pipeline["pre_tokenizer"], "pretokenizers"):
        case rule if rule in (_MARKED, _SLOTTED):
            return at_spaces if steps in (_COLLAPSE, [_LOWERCASE, *_COLLAPSE]) else None
        case rule if rule == _BERT:
            known = all(step in (_LOWERCASE, *_COLLAPSE) or step["type"] == "BertNormalizer" for step in steps)
            return at_spaces if known else None
        case rule if rule == _BYTES:
            return with_blanks if all(step in (_LOWERCASE, _COLLAPSE[0]) for step in steps) else None
    return None


def _parts(part: dict[str, Any] | None, sequence: str) -> list[dict[str, Any]]:
    """The steps of a part of a pipeline, whether it has none, one or several."""
    if part is None:
        return []
    return [step for inner in part[sequence] for step in _parts(inner, sequence)] if sequence in part else [part]


def count(lines: Iterable[str], cut: Cut, normalizer: normalizers.Normalizer) -> Counter[str]:
    """How often each part occurs in the lines, normalised."""
    counts: Counter[str] = Counter()
    for part, n in Counter(chain.from_iterable(map(cut, lines))).items():
        counts[normalizer.normalize_str(part)] += n
    return counts


def count_characters(parts: Counter[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for part, n in parts.items():
        for character in part:
            counts[character] += n
    return counts


def count_words(parts: Counter[str], rule: pre_tokenizers.PreTokenizer) -> Counter[str]:
    """How often each word occurs in the parts; a rule may divide them further, as at punctuation."""
    counts: Counter[str] = Counter()
    for part, n in parts.items():
        for word, _ in rule.pre_tokenize_str(part):
            counts[word] += n
    return counts
