"""The synthetic problems: exact wording, splits that share no meaning, the same text everywhere."""

import os
import re
import subprocess
import sys
from datetime import date
from random import Random
from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jumok.errors import RecipeError
from jumok.examples.made.numbers import (
    _draw_korean,
    _Meaning,
    _say,
    _say_date,
    _split_of,
    _Style,
    english_number,
    generate,
    korean_number,
)

PLAIN = _Style(conjunction=False, hyphen=True, article=False)
BRITISH = _Style(conjunction=True, hyphen=True, article=False)
NUMBERS = st.one_of(
    st.integers(0, 999_999_999),
    # Zeros in the middle, where names are irregular, are rare among integers drawn evenly.
    st.text("01", min_size=1, max_size=9).map(int),
    st.builds(lambda digit, power: digit * 10**power, st.integers(0, 9), st.integers(0, 8)),
)


@pytest.mark.parametrize(
    ("number", "english", "korean"),
    [
        (0, "zero", "영"),
        (1, "one", "일"),
        (10, "ten", "십"),
        (11, "eleven", "십일"),
        (12, "twelve", "십이"),
        (19, "nineteen", "십구"),
        (20, "twenty", "이십"),
        (34, "thirty-four", "삼십사"),
        (40, "forty", "사십"),
        (100, "one hundred", "백"),
        (101, "one hundred one", "백일"),
        (110, "one hundred ten", "백십"),
        (111, "one hundred eleven", "백십일"),
        (206, "two hundred six", "이백육"),
        (1_000, "one thousand", "천"),
        (1_005, "one thousand five", "천오"),
        (1_111, "one thousand one hundred eleven", "천백십일"),
        (2_024, "two thousand twenty-four", "이천이십사"),
        (10_000, "ten thousand", "만"),
        (10_001, "ten thousand one", "만 일"),
        (11_000, "eleven thousand", "만 천"),
        (15_000, "fifteen thousand", "만 오천"),
        (20_000, "twenty thousand", "이만"),
        (100_000, "one hundred thousand", "십만"),
        (110_000, "one hundred ten thousand", "십일만"),
        (234_506, "two hundred thirty-four thousand five hundred six", "이십삼만 사천오백육"),
        (1_000_000, "one million", "백만"),
        (2_010_000, "two million ten thousand", "이백일만"),
        (10_000_000, "ten million", "천만"),
        (100_000_000, "one hundred million", "일억"),
        (100_010_000, "one hundred million ten thousand", "일억 일만"),
        (100_000_001, "one hundred million one", "일억 일"),
        (210_001_000, "two hundred ten million one thousand", "이억 천만 천"),
        (
            999_999_999,
            "nine hundred ninety-nine million nine hundred ninety-nine thousand nine hundred ninety-nine",
            "구억 구천구백구십구만 구천구백구십구",
        ),
    ],
)
def test_number_names(number: int, english: str, korean: str) -> None:
    assert english_number(number) == english
    assert korean_number(number) == korean


def test_english_number_variants() -> None:
    assert english_number(206, conjunction=True) == "two hundred and six"
    assert english_number(1_005, conjunction=True) == "one thousand and five"
    assert english_number(1_000_034, conjunction=True, hyphen=False) == "one million and thirty four"
    assert english_number(112_300, conjunction=True) == "one hundred and twelve thousand three hundred"
    assert english_number(5_000, conjunction=True) == "five thousand"
    assert english_number(134, hyphen=False, article=True) == "a hundred thirty four"
    assert english_number(100_000, article=True) == "a hundred thousand"
    assert english_number(1, article=True) == "one"
    assert english_number(100_100, article=True) == "a hundred thousand one hundred"


@pytest.mark.parametrize("name", [english_number, korean_number])
@pytest.mark.parametrize("number", [-1, 1_000_000_000])
def test_numbers_out_of_range(name, number) -> None:
    with pytest.raises(ValueError, match="from 0 to 999,999,999"):
        name(number)


def parse_english(text: str) -> int:
    total = group = 0
    small = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    values = {word: value for value, word in enumerate(small.split())}
    values |= {"sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "a": 1, "and": 0}
    values |= {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60}
    values |= {"seventy": 70, "eighty": 80, "ninety": 90}
    for word in re.split("[ -]", text):
        if word == "hundred":
            group *= 100
        elif word in ("thousand", "million"):
            total += group * (1_000 if word == "thousand" else 1_000_000)
            group = 0
        else:
            group += values[word]
    return total + group


def parse_korean(text: str) -> int:
    total = group = digit = 0
    for letter in text.replace(" ", ""):
        if letter in "십백천":
            group += (digit or 1) * 10 ** ("십백천".index(letter) + 1)
            digit = 0
        elif letter in "만억":
            total += (group + digit or 1) * (10_000 if letter == "만" else 100_000_000)
            group = digit = 0
        else:
            assert digit == 0
            digit = "영일이삼사오육칠팔구".index(letter)
    return total + group + digit


@given(NUMBERS)
@example(0)
@example(10_000)
@example(100_010_000)
def test_korean_number_parses_back(number: int) -> None:
    text = korean_number(number)
    assert parse_korean(text) == number
    assert not re.search("일[십백천]|^일만", text)
    assert re.fullmatch(r"(\S+억)?( ?\S*만)?( ?[^만억 ]+)?", text)


@given(NUMBERS, st.booleans(), st.booleans(), st.booleans())
def test_english_number_parses_back(number: int, conjunction: bool, hyphen: bool, article: bool) -> None:
    text = english_number(number, conjunction=conjunction, hyphen=hyphen, article=article)
    assert parse_english(text) == number
    assert text == " ".join(text.split())
    assert conjunction or "and" not in text.split()
    assert hyphen or "-" not in text


def wordings(meaning: _Meaning) -> dict[str, str]:
    return dict(_say(meaning, "korean_numbers", Random(seed)) for seed in range(400))


def test_dates_in_digits_and_words() -> None:
    said = wordings(("date", 1999, 3, 5))
    digits, words = "1999년 3월 5일", "천구백구십구년 삼월 오일"
    assert said["March 5, 1999"] == said["5 March 1999"] == digits
    assert said["the fifth of March, nineteen ninety-nine"] == words
    assert said["March fifth, nineteen ninety nine"] == said["March fifth, nineteen ninety-nine"] == words
    assert said["The fifth of March, nineteen ninety-nine"] == words


@pytest.mark.parametrize(
    ("day", "style", "ending", "korean"),
    [
        (date(2000, 1, 1), PLAIN, "first, two thousand", "이천년 일월 일일"),
        (date(1900, 6, 6), PLAIN, "sixth, nineteen hundred", "천구백년 유월 육일"),
        (date(1905, 10, 10), PLAIN, "tenth, nineteen oh five", "천구백오년 시월 십일"),
        (date(1908, 9, 8), PLAIN, "eighth, nineteen oh eight", "천구백팔년 구월 팔일"),
        (date(1913, 4, 3), PLAIN, "third, nineteen thirteen", "천구백십삼년 사월 삼일"),
        (date(1950, 7, 22), PLAIN, "twenty-second, nineteen fifty", "천구백오십년 칠월 이십이일"),
        (date(2005, 11, 12), PLAIN, "twelfth, two thousand five", "이천오년 십일월 십이일"),
        (date(2005, 12, 20), BRITISH, "twentieth, two thousand and five", "이천오년 십이월 이십일"),
        (date(2010, 5, 30), BRITISH, "thirtieth, twenty ten", "이천십년 오월 삼십일"),
        (date(2024, 2, 29), PLAIN, "twenty-ninth, twenty twenty-four", "이천이십사년 이월 이십구일"),
        (date(2099, 8, 31), PLAIN, "thirty-first, twenty ninety-nine", "이천구십구년 팔월 삼십일일"),
    ],
)
def test_dates_as_people_say_them(day: date, style: _Style, ending: str, korean: str) -> None:
    pairs = dict(_say_date(day.year, day.month, day.day, style, Random(seed)) for seed in range(100))
    ordinal, year = ending.split(", ")
    month = day.strftime("%B")
    assert pairs[f"{month} {ending}"] == pairs[f"the {ordinal} of {month}, {year}"] == korean
    assert pairs[f"{month} {day.day}, {day.year}"] == f"{day.year}년 {day.month}월 {day.day}일"


@pytest.mark.parametrize(
    ("meaning", "english", "korean"),
    [
        (("amount", "won", 12_000, 0), "twelve thousand won", "만 이천 원"),
        (("amount", "won", 1, 0), "one won", "일 원"),
        (("amount", "won", 1_000, 0), "a thousand won", "천 원"),
        (("amount", "dollar", 1, 0), "one dollar", "일 달러"),
        (("amount", "dollar", 5, 0), "five dollars", "오 달러"),
        (("amount", "dollar", 3, 20), "three dollars and twenty cents", "삼 달러 이십 센트"),
        (("amount", "dollar", 1, 1), "one dollar and one cent", "일 달러 일 센트"),
        (("amount", "euro", 1, 0), "one euro", "일 유로"),
        (("amount", "euro", 2, 0), "two euros", "이 유로"),
        (("amount", "yen", 1, 0), "one yen", "일 엔"),
        (("amount", "yen", 100_000_000, 0), "one hundred million yen", "일억 엔"),
        (("amount", "pound", 1, 0), "one pound", "일 파운드"),
        (("amount", "pound", 206, 0), "Two hundred and six pounds", "이백육 파운드"),
    ],
)
def test_amounts(meaning: _Meaning, english: str, korean: str) -> None:
    said = wordings(meaning)
    assert said[english] == korean
    assert set(said.values()) == {korean}


def test_mix_of_kinds_and_magnitudes() -> None:
    rng = Random("mix")
    drawn = [_draw_korean(rng) for _ in range(20_000)]
    for kind, share in (("number", 0.6), ("date", 0.2), ("amount", 0.2)):
        assert sum(meaning[0] == kind for meaning in drawn) / len(drawn) == pytest.approx(share, abs=0.02)
    lengths = [len(str(meaning[1])) for meaning in drawn if meaning[0] == "number"]
    for length in range(1, 10):
        assert lengths.count(length) / len(lengths) == pytest.approx(1 / 9, abs=0.02)
    assert {meaning[1] for meaning in drawn if meaning[0] == "number"} >= {10_000, 100_000_000}


def test_dates_are_calendar_days() -> None:
    dates = [
        tuple(map(int, match.groups()))
        for _, target in generate("korean_numbers", "train", n=20_000, seed=3)
        if (match := re.fullmatch(r"(\d+)년 (\d+)월 (\d+)일", target))
    ]
    assert len(dates) > 1_500
    assert all(1900 <= date(*parts).year <= 2099 for parts in dates)


@pytest.mark.parametrize("problem", ["korean_numbers", "reverse", "copy"])
def test_splits_share_no_meaning(problem) -> None:
    pairs = {
        split: list(generate(problem, split, n=n, seed=1))
        for split, n in (("train", 20_000), ("dev", 1_000), ("test", 1_000))
    }
    sources = {split: {source.lower() for source, _ in rows} for split, rows in pairs.items()}
    # A target says its meaning exactly (only dates have two targets), so equal targets are equal meanings.
    targets = {split: {target for _, target in rows} for split, rows in pairs.items()}
    for one, other in (("train", "dev"), ("train", "test"), ("dev", "test")):
        assert not sources[one] & sources[other]
        assert not targets[one] & targets[other]
    assert len(targets["dev"]) == len(targets["test"]) == 1_000


def test_a_date_held_out_in_digits_is_held_out_in_words() -> None:
    def days(split) -> set[tuple[str, ...]]:
        found = set()
        for _, target in generate("korean_numbers", split, n=20_000 if split == "train" else 1_000, seed=1):
            if match := re.fullmatch(r"(\S+)년 (\S+)월 (\S+)일", target):
                year, month, day = match.groups()
                month = {"유": "육", "시": "십"}.get(month, month)
                found.add(tuple(p if p.isdigit() else str(parse_korean(p)) for p in (year, month, day)))
        return found

    assert len(days("test")) > 150
    assert not days("test") & days("train")


def test_small_numbers_are_always_trained_on() -> None:
    assert {_split_of(("number", number)) for number in range(100)} == {"train"}
    assert {_split_of(("amount", "dollar", number, 0)) for number in range(100)} == {"train"}
    held_out = [_split_of(("number", number)) for number in range(100, 10_100)]
    assert held_out.count("dev") == pytest.approx(200, abs=50)
    assert held_out.count("test") == pytest.approx(200, abs=50)


def test_training_knows_every_word_of_the_held_out_sets() -> None:
    def words(split, n: int) -> set[str]:
        return {word for pair in generate("korean_numbers", split, n=n, seed=5) for word in pair[0].split(" ")}

    assert words("dev", 1_000) | words("test", 1_000) <= words("train", 50_000)


@pytest.mark.parametrize("problem", ["korean_numbers", "reverse", "copy"])
def test_only_training_depends_on_the_seed(problem) -> None:
    for split in ("train", "dev", "test"):
        first = list(generate(problem, split, n=50, seed=1))
        assert first == list(generate(problem, split, n=50, seed=1))
        assert first[:20] == list(generate(problem, split, n=20, seed=1))
        assert (first == list(generate(problem, split, n=50, seed=2))) == (split != "train")


def test_the_same_text_in_every_process() -> None:
    script = (
        "from jumok.examples.made.numbers import generate\n"
        "for problem in ('korean_numbers', 'reverse', 'copy'):\n"
        "    for split in ('train', 'dev', 'test'):\n"
        "        print(ascii(list(generate(problem, split, n=50, seed=7))))\n"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert outputs[0].count("\n") == 9


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_reverse_and_copy(split) -> None:
    for problem, expected in (("reverse", lambda source: source[::-1]), ("copy", lambda source: source)):
        pairs = list(generate(problem, split, n=500, seed=1, max_len=6))
        assert all(re.fullmatch(r"\d( \d){2,5}", source) for source, _ in pairs)
        assert all(target == expected(source) for source, target in pairs)
        # Held-out sets of the shortest sequences are small, so only the longest must be reached in all.
        assert max(len(source.split()) for source, _ in pairs) == 6


def test_held_out_sets_start_over_when_all_are_given() -> None:
    available = sum(_split_of(("digits", f"{number:03d}")) == "test" for number in range(1_000))
    sources = [source for source, _ in generate("copy", "test", n=available + 5, seed=1, max_len=3)]
    assert len(set(sources[:available])) == available
    assert len(sources) == available + 5


def test_a_wrong_argument_says_what_would_be_right() -> None:
    # Raised by the call itself: a generator would hide the mistake until its first item.
    with pytest.raises(RecipeError) as unknown_problem:
        generate("sort", "train", n=1, seed=1)  # type: ignore[arg-type]
    assert unknown_problem.value.code == "recipe.value"
    assert "'sort'" in unknown_problem.value.what
    assert unknown_problem.value.hint == "use one of korean_numbers, reverse, copy"
    with pytest.raises(RecipeError) as unknown_split:
        generate("copy", "valid", n=1, seed=1)  # type: ignore[arg-type]
    assert unknown_split.value.code == "recipe.value"
    assert unknown_split.value.hint == "use one of train, dev, test"
    with pytest.raises(RecipeError) as too_short:
        generate("copy", "train", n=1, seed=1, max_len=2)
    assert too_short.value.code == "recipe.value"
    assert "3" in str(too_short.value.hint)


def test_it_is_fast() -> None:
    start = process_time()
    assert sum(1 for _ in generate("korean_numbers", "train", n=100_000, seed=1)) == 100_000
    assert process_time() - start < 4
