"""Numbers that a text and its translation do not share.

Translations may spell a number out, regroup its digits or give its date another order, so only what can hardly be
meant is a difference: a number of two digits or more that is no round one, which the other text has neither in digits
nor, as far as its words tell, in letters.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from unicodedata import normalize

# fmt: off
# Digits after a letter or in a character reference are part of a name, and 16진 is Korean for hexadecimal.
_NUMBER = re.compile(
    r"(?<![^\W\d_])(?<!&#)(?<!\d)\d+(?:[.,'’]\d+|\s\d{3}(?!\d))*(?!\d)(?!\s?진)(?:\s?(?P<scale>[^\W\d_]+))?"
)
_DIGITS = re.compile(r"\d+")
_SCALES = {
    "hundred": 2, "thousand": 3, "million": 6, "millions": 6, "billion": 9, "billions": 9, "trillion": 12, "k": 3,
    "hundert": 2, "tausend": 3, "millionen": 6, "milliarde": 9, "milliarden": 9, "cent": 2, "mille": 3,
    "milliard": 9, "milliards": 9, "백": 2, "천": 3, "만": 4, "십만": 5, "백만": 6, "천만": 7, "억": 8, "조": 12,
}
_KOREAN_SCALE = re.compile("[십백천만억조]+")
# Number words; a text that has one may spell out what the other has in digits.
_SPELLED = re.compile(
    r"\b(?:eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty"
    r"|seventy|eighty|ninety|hundreds?|thousands?|dozens?|half|quarter|elf|zwölf|dreizehn|vierzehn|fünfzehn|sechzehn"
    r"|siebzehn|achtzehn|neunzehn|onze|douze|treize|quatorze|quinze|seize|vingt|trente|quarante|cinquante|soixante|cent)"
    r"|\w*(?:zwanzig|dreißig|vierzig|fünfzig|sechzig|siebzig|achtzig|neunzig|hundert|tausend)|\bdix-"
    r"|[일이삼사오육칠팔구]?[십백][일이삼사오육칠팔구]|(?<![가-힣])[일이삼사오육칠팔구수몇]?[십백천만](?![가-힣]{2})"
    r"|(?:열|스물|서른|마흔|쉰|예순|일흔|여든|아흔)(?:하나|한|둘|두|셋|세|넷|네|다섯|여섯|일곱|여덟|아홉)?|스무",
    re.IGNORECASE,
)
_AFTERNOON = re.compile(r"\d\s?p\.?\s?m\b|오후|저녁|밤", re.IGNORECASE)
# fmt: on


def changed_numbers(source: str, target: str) -> tuple[list[str], list[str]]:
    """The numbers that only the source has, and those that only its translation has, where neither can be meant."""
    source, target = normalize("NFKC", source), normalize("NFKC", target)
    ours, theirs = [*_numbers(source)], [*_numbers(target)]
    lost, added = _unmatched(ours, theirs, target), _unmatched(theirs, ours, source)
    if (lost or added) and (_AFTERNOON.search(source) or _AFTERNOON.search(target)):
        lost, added = [n for n in lost if not _is_hour(n)], [n for n in added if not _is_hour(n)]
    if not lost or _SPELLED.search(target):
        lost = []
    if not added or _SPELLED.search(source):
        added = []
    return lost, added


@dataclass(frozen=True, slots=True)
class _Number:
    written: str
    forms: set[str]
    """the digits that may stand for it: all of them, or its value with its scale"""
    parts: set[str]
    """as of a date, whose order another language changes"""


def _numbers(text: str) -> Iterator[_Number]:
    for found in _NUMBER.finditer(text):
        scale = found["scale"] or ""
        written = found[0][: len(found[0]) - len(scale)].strip()
        digits = _DIGITS.findall(written)
        forms = {"".join(digits).lstrip("0")}
        if re.fullmatch(r"19\d0", written):
            forms.add(written[2:])  # a decade
        korean = _KOREAN_SCALE.match(scale)
        power = _SCALES.get(korean[0] if korean else scale.lower())
        if power is not None:
            whole, _, rest = written.replace(",", "").partition(".")
            forms.add((whole + rest.ljust(power, "0")).lstrip("0") if rest.isdigit() or not rest else "")
        yield _Number(written, forms - {""}, {part.lstrip("0") for part in digits} - {""})


def _unmatched(ours: list[_Number], theirs: list[_Number], other: str) -> list[str]:
    """Our numbers that the `other` text, with their numbers, does not have in any form."""
    forms = {form for number in theirs for form in number.forms | number.parts}
    return [
        number.written
        for number in ours
        if _is_sure(number.written) and not (number.forms & forms or number.parts <= forms or number.written in other)
    ]


def _is_sure(written: str) -> bool:
    """Whether nobody writes this number in letters: more than 12, and not 20, 300 or the like."""
    digits = "".join(_DIGITS.findall(written)).lstrip("0")
    return len(digits) > 1 and len(digits.rstrip("0")) > 1 and digits not in ("11", "12")


def _is_hour(written: str) -> bool:
    return written.isdigit() and 12 < int(written) <= 24
