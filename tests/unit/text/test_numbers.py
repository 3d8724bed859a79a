"""Numbers that a translation has changed, and those that it may write in another way."""

import pytest

from jumok.text.numbers import changed_numbers


@pytest.mark.parametrize(
    ("source", "target", "missing", "extra"),
    [
        ("most RFC 1345 sets", "대부분의 RFC 1354 집합", ["1345"], ["1354"]),
        ("error 404 occurred", "오류가 발생했습니다", ["404"], []),
        ("a small sound", "15 Hz 의 소리", [], ["15"]),
        ("It fell 0.48 percent.", "0.78% 하락했다.", ["0.48"], ["0.78"]),
        ("since 1998-08-01", "seit dem 01.08.1999", ["1998"], ["01.08.1999"]),
    ],
)
def test_a_number_that_is_lost_or_changed(source, target, missing, extra):
    assert changed_numbers(source, target) == (missing, extra)
    assert changed_numbers(target, source) == (extra, missing)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("20 men", "이십 명"),
        ("24 hours", "스물네 시간"),
        ("Twenty-four hours", "24시간"),
        ("two of 3", "2 von drei"),
        ("1,000 users, 12,582 words", "1000 Benutzer, 12.582 Wörter"),
        ("12582 words", "12\u202f582 mots, 12 582"),
        ("1.5 million people", "150만 명"),
        ("30 billion won", "300억 원"),
        ("On May 31, 2011", "2011년 5월 31일에"),
        ("2011-05-31", "31.05.2011"),
        ("3:15 p.m.", "15시 15분"),
        ("RFC822 parser, Q16", "analyseur RFC 822, Q 16"),
        ("the 1940s", "die 40er"),
        ("a hexadecimal number", "16진수 숫자"),
        ("&#8212; here", "— 여기"),
        ("１２３", "123"),
        ("no numbers", "숫자 없음"),
        ("", ""),
    ],
)
def test_a_number_that_is_written_in_another_way(source, target):
    assert changed_numbers(source, target) == ([], [])
    assert changed_numbers(target, source) == ([], [])
