"""What was found in files: the task, the [data] that reads them, sizes and languages."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from jumok.text.language import likeliest

MOST = 300_000
"""examples of a split that are read to measure it"""
LOOKED_AT = 2_000
"""texts that decide a language"""
_CLEAR = 0.8  # share of the texts that agree
_DENSE = re.compile("[\u0e00-\u0e7f\u1100-\u11ff\u3040-\u318f\u3400-\u9fff\uac00-\ud7af]")
"""Thai, Hangul, Kana, Han"""
_NAMES = {
    "ko": "Korean", "en": "English", "de": "German", "fr": "French", "es": "Spanish", "it": "Italian", "nl": "Dutch",
    "pt": "Portuguese", "ja": "Japanese", "zh": "Chinese", "ru": "Russian", "uk": "Ukrainian", "el": "Greek",
    "he": "Hebrew", "ar": "Arabic", "th": "Thai", "hi": "Hindi",
}  # fmt: skip


@dataclass(slots=True, kw_only=True)
class Found:
    """What the files hold."""

    task: str
    kind: Any
    """class of the [data]"""
    data: dict[str, Any]
    """keys of [data], in the order in which they are written"""
    settings: dict[str, Any] = field(default_factory=dict)
    """keys of [task]"""
    metric: str = ""
    why: list[str] = field(default_factory=list)
    """what was found, and the reasons, a sentence each"""
    remarks: dict[str, str] = field(default_factory=dict)
    """comments on keys of [data] and [task] in the recipe"""
    name: str = ""
    sizes: dict[str, int] = field(default_factory=dict)
    """examples of each split that has files"""
    characters: int = 0
    """of the training texts"""
    size: int = 0
    """the same, as `size_of` counts them"""
    long: int = 0
    """size that nine of ten training texts do not exceed"""
    language: str = ""
    """of the texts, or of the target"""
    reply: bool = False
    """whether source and target are in the same language"""
    placeholders: bool = False
    """whether the sources have placeholders or markup, as those of catalogues do"""

    @property
    def many(self) -> bool:
        """Whether there were more examples than were read."""
        return self.sizes.get("train", 0) >= MOST


def size_of(text: str) -> int:
    """Characters, those of scripts that say more with each of them twice: a token has half as many."""
    return len(text) + len(_DENSE.findall(text))


def language_of(texts: Iterable[str]) -> str:
    """The language that most of the texts are in; empty if they are in several, or it cannot be told."""
    return clear_language(languages_of(texts))


def languages_of(texts: Iterable[str]) -> Counter[str]:
    return Counter(filter(None, map(likeliest, islice(texts, LOOKED_AT))))


def clear_language(votes: Counter[str]) -> str:
    ((code, n),) = votes.most_common(1) or [("", 0)]
    return code if n and n >= _CLEAR * votes.total() else ""


def counted(found: Found) -> str:
    """Sizes and language in words."""
    things = {
        "translation": "pairs of texts",
        "answering": "questions",
        "tagging": "sentences",
        "language_model": "lines",
    }
    things |= {"pretraining": "sentences"}
    thing = things.get(found.task, "texts")
    language = found.data.get("language", "")
    said = f" in {_NAMES.get(language, language)}" if language else ""
    sizes = [f"{split} {n:,}{'+' if n >= MOST else ''}" for split, n in found.sizes.items()]
    return f"{', '.join(sizes)} {thing}{said}, {found.characters:,} characters to train on"
