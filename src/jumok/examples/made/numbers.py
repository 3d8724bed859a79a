"""Exact parallel text, generated on the fly: numbers, dates and amounts in English and Korean, and digit toys."""

from collections.abc import Iterator
from datetime import date
from hashlib import blake2b
from random import Random
from typing import Literal, TypedDict, get_args

from jumok.errors import RecipeError
from jumok.examples import Split

VERSION = 1
"""Increased when the same arguments give different pairs, so that data and runs from the old ones are recognised."""


Problem = Literal["korean_numbers", "reverse", "copy"]


_Meaning = (
    tuple[Literal["number"], int]
    | tuple[Literal["date"], int, int, int]
    | tuple[Literal["amount"], str, int, int]
    | tuple[Literal["digits"], str]
)


_LARGEST = 999_999_999


_SHORTEST_SEQUENCE = 3


_FIRST_DAY, _LAST_DAY = date(1900, 1, 1).toordinal(), date(2099, 12, 31).toordinal()


# One meaning in fifty is for test, and one in fifty for dev.
_SPLIT_BUCKETS = 50


# After this many draws in a row without a new held-out meaning, meanings may repeat.
_PATIENCE = 200_000


# fmt: off
_BELOW_TWENTY = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)


_TENS = ("", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


_MONTHS = (
    "", "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)


# fmt: on
_IRREGULAR_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
    "twenty": "twentieth",
    "thirty": "thirtieth",
}


_KOREAN_DIGITS = ("", *"일이삼사오육칠팔구")


_IRREGULAR_KOREAN_MONTHS = {6: "유", 10: "시"}


_PLURAL_AND_KOREAN = {
    "won": ("won", "원"),
    "dollar": ("dollars", "달러"),
    "euro": ("euros", "유로"),
    "yen": ("yen", "엔"),
    "pound": ("pounds", "파운드"),
    "cent": ("cents", "센트"),
}


_CURRENCIES = [unit for unit in _PLURAL_AND_KOREAN if unit != "cent"]


class _Style(TypedDict):
    """The keyword arguments of `english_number`: one way of wording numbers."""

    conjunction: bool
    hyphen: bool
    article: bool


def generate(problem: Problem, split: Split, *, n: int, seed: int, max_len: int = 12) -> Iterator[tuple[str, str]]:
    """Yield `n` pairs (source, target), a pure function of the arguments.

    Every pair expresses a meaning: a number, a date, an amount of money or a sequence of digits. A hash of the meaning,
    not of its wording, decides its split, so no wording of a held-out meaning is ever trained on. The dev and test sets
    are the same for every `seed`, and their meanings are distinct until no new one can be found; then they repeat.
    `max_len` is the maximum length of a `reverse` or `copy` sequence.
    """
    for what, value, known in (("problem", problem, get_args(Problem)), ("split", split, get_args(Split))):
        if value not in known:
            raise RecipeError(
                f"unknown synthetic {what} {value!r}", hint=f"use one of {', '.join(known)}", code="recipe.value"
            )
    if max_len < _SHORTEST_SEQUENCE:
        raise RecipeError(f"max_len is {max_len}", hint=f"set at least {_SHORTEST_SEQUENCE}", code="recipe.value")
    return _pairs(problem, split, n, Random(f"{problem}/{split}/{seed if split == 'train' else 0}"), max_len)


def english_number(n: int, *, conjunction: bool = False, hyphen: bool = True, article: bool = False) -> str:
    """Name `n` in English: 1234 is "one thousand two hundred thirty-four".

    `conjunction` adds "and" before the tens and ones, `hyphen` joins "thirty-four", and `article` starts with "a
    hundred" or "a thousand" rather than "one".
    """
    _check_range(n)
    groups: list[str] = []
    for scale, name in ((1_000_000, " million"), (1_000, " thousand"), (1, "")):
        hundreds, rest = divmod(n // scale % 1000, 100)
        words = [f"{_BELOW_TWENTY[hundreds]} hundred"] if hundreds else []
        if rest:
            if conjunction and (hundreds or (groups and scale == 1)):
                words.append("and")
            words.append(_below_hundred(rest, hyphen))
        if words:
            groups.append(" ".join(words) + name)
    text = " ".join(groups) or _BELOW_TWENTY[0]
    # A leading "one" followed by a word always counts hundreds, thousands or millions.
    return "a" + text.removeprefix("one") if article and text.startswith("one ") else text


def korean_number(n: int) -> str:
    """Name `n` in Sino-Korean, grouped by 만 as the orthography requires: 234506 is "이십삼만 사천오백육"."""
    _check_range(n)
    groups: list[str] = []
    for scale, name in ((100_000_000, "억"), (10_000, "만"), (1, "")):
        value = n // scale % 10_000
        if not value:
            continue
        words = ""
        for power, unit in ((1000, "천"), (100, "백"), (10, "십"), (1, "")):
            digit = value // power % 10
            if digit:
                words += unit if digit == 1 and unit else _KOREAN_DIGITS[digit] + unit
        leading_man = name == "만" and value == 1 and not groups
        groups.append(name if leading_man else words + name)
    return " ".join(groups) or "영"


def _pairs(problem: Problem, split: Split, n: int, rng: Random, max_len: int) -> Iterator[tuple[str, str]]:
    given: set[_Meaning] = set()
    made = misses = 0
    while made < n:
        if problem == "korean_numbers":
            meaning = _draw_korean(rng)
        else:
            meaning = _draw_digits(rng, max_len)
        if _split_of(meaning) != split or meaning in given:
            misses += 1
            if misses == _PATIENCE:
                given.clear()
                misses = 0
            continue
        misses = 0
        if split != "train":
            given.add(meaning)
        yield _say(meaning, problem, rng)
        made += 1


def _split_of(meaning: _Meaning) -> Split:
    # Small numbers are the words that all others are made of: training must see every one.
    if (meaning[0] == "number" and meaning[1] < 100) or (meaning[0] == "amount" and meaning[2] < 100):
        return "train"
    digest = blake2b(repr(meaning).encode(), digest_size=8).digest()
    bucket = int.from_bytes(digest, "big") % _SPLIT_BUCKETS
    return "test" if bucket == 0 else "dev" if bucket == 1 else "train"


def _draw_korean(rng: Random) -> _Meaning:
    kind = rng.random()
    if kind < 0.6:
        return "number", _draw_number(rng)
    if kind < 0.8:
        day = date.fromordinal(rng.randint(_FIRST_DAY, _LAST_DAY))
        return "date", day.year, day.month, day.day
    currency = rng.choice(_CURRENCIES)
    cents = rng.randint(1, 99) if currency == "dollar" and rng.random() < 0.3 else 0
    return "amount", currency, max(1, _draw_number(rng)), cents


def _draw_number(rng: Random) -> int:
    length = rng.randint(1, 9)
    digits = str(rng.randrange(10 ** (length - 1) if length > 1 else 0, 10**length))
    # Uniformly drawn digits rarely give the round numbers and inner zeros that people use most.
    shape = rng.random()
    if shape < 0.2:
        kept = rng.randint(1, length)
        return int(digits[:kept].ljust(length, "0"))
    if shape < 0.4:
        return int(digits[0] + "".join(digit if rng.random() < 0.5 else "0" for digit in digits[1:]))
    return int(digits)


def _draw_digits(rng: Random, max_len: int) -> _Meaning:
    length = rng.randint(_SHORTEST_SEQUENCE, max_len)
    return "digits", f"{rng.randrange(10**length):0{length}d}"


def _say(meaning: _Meaning, problem: Problem, rng: Random) -> tuple[str, str]:
    if meaning[0] == "digits":
        digits = meaning[1]
        return " ".join(digits), " ".join(reversed(digits) if problem == "reverse" else digits)
    style = _Style(conjunction=rng.random() < 0.5, hyphen=rng.random() < 0.85, article=rng.random() < 0.3)
    if meaning[0] == "number":
        source, target = english_number(meaning[1], **style), korean_number(meaning[1])
    elif meaning[0] == "date":
        _, year, month, day = meaning
        source, target = _say_date(year, month, day, style, rng)
    else:
        _, currency, value, cents = meaning
        source, target = _say_amount(currency, value, style)
        if cents:
            english_cents, korean_cents = _say_amount("cent", cents, style)
            source, target = f"{source} and {english_cents}", f"{target} {korean_cents}"
    if rng.random() < 0.2:
        source = source[0].upper() + source[1:]
    return source, target


def _say_date(year: int, month: int, day: int, style: _Style, rng: Random) -> tuple[str, str]:
    name = _MONTHS[month]
    if rng.random() < 0.5:
        source = rng.choice((f"{name} {day}, {year}", f"{day} {name} {year}"))
        return source, f"{year}년 {month}월 {day}일"
    ordinal = _english_ordinal(day, style["hyphen"])
    korean_month = _IRREGULAR_KOREAN_MONTHS.get(month) or korean_number(month)
    source = rng.choice((f"the {ordinal} of {name}", f"{name} {ordinal}")) + f", {_english_year(year, style)}"
    return source, f"{korean_number(year)}년 {korean_month}월 {korean_number(day)}일"


def _english_ordinal(day: int, hyphen: bool) -> str:
    cardinal = _below_hundred(day, hyphen)
    last = cardinal.replace("-", " ").split(" ")[-1]
    return cardinal.removesuffix(last) + _IRREGULAR_ORDINALS.get(last, f"{last}th")


def _english_year(year: int, style: _Style) -> str:
    century, rest = divmod(year, 100)
    if century == 20 and rest < 10:
        return english_number(year, **style)
    if rest == 0:
        ending = "hundred"
    elif rest < 10:
        ending = f"oh {_BELOW_TWENTY[rest]}"
    else:
        ending = _below_hundred(rest, style["hyphen"])
    return f"{_below_hundred(century, style['hyphen'])} {ending}"


def _say_amount(unit: str, value: int, style: _Style) -> tuple[str, str]:
    plural, korean = _PLURAL_AND_KOREAN[unit]
    counted = unit if value == 1 else plural
    return f"{english_number(value, **style)} {counted}", f"{korean_number(value)} {korean}"


def _below_hundred(n: int, hyphen: bool) -> str:
    if n < 20:
        return _BELOW_TWENTY[n]
    tens, ones = divmod(n, 10)
    return _TENS[tens] + (("-" if hyphen else " ") + _BELOW_TWENTY[ones] if ones else "")


def _check_range(n: int) -> None:
    if not 0 <= n <= _LARGEST:
        raise ValueError(f"n must be from 0 to {_LARGEST:,} (got {n:,})")
