"""Where sentences end: cases written by hand, what is true of any text, and plausible lengths in real text."""

import os
import subprocess
import sys
import time
import unicodedata
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jumok.examples.labelled import read_labelled
from jumok.text.lines import read_lines
from jumok.text.sentences import sentence_spans, split_sentences

# Each case is a text with a bar wherever a sentence ends. The bar stands beside a blank, or for nothing.
ENGLISH = """
It rained. |We stayed.
It rained! |We stayed? |Yes.
Really?! |Yes!!! |No...
He left.  |She stayed.
Only one sentence without an end
"It rained." |She shut the window.
“It rained.” |“It did.”
He said (and meant it.) |She agreed.
She agreed (he did not). |They left.
He asked, "Why?" and left.
She shouted "no!" at him. |He left.
Mr. Smith met Dr. Jones and Prof. Lee. |They spoke.
Mrs. A. Brown and Ms. B. C. White left. |He did not.
J. Smith wrote it. |J. R. R. Tolkien did not.
John F. Kennedy spoke. |George W. Bush did too.
Use a tool, e.g. Python, i.e. what you know. |Go on.
Smith et al. (1998) showed it. |Jones et al. did not.
It was shown by Smith et al. |We show more.
See Fig. 3 and Eq. 4 on pp. 12 of vol. 2. |Then read on.
He is No. 1 in the U.S. Army. |She is not.
They live in the U.S. |They like it.
No. |He did not. |No. 5 did.
It opened on Jan. 5 and closed in Dec. 2014. |Nobody came.
England vs. France was at 5 p.m. on Sunday. |We lost.
It began at 5 p.m. |We were late.
Pi is 3.14 and e is 2.72. |Both are numbers.
It costs $3.50. |That is cheap.
It grew by 3.5%. |5 of us left.
In 1994 there were 12. |The rest had died.
It ended in 1994. |August was hot.
1. First comes the name. |2. Then comes the age.
There are two: 1. Read it. |2. Write it.
A. The first answer. |B. The second answer.
1.2. A heading |
Well... maybe not. |Wait.
I think so... |But who knows.
I think … |But who knows.
Um... I do not know.
… and then it rained. |We stayed.
See www.example.com/a.html. |It is there.
Write to a.b@example.com or c@example.org. |We answer.
Open main.py and README.md. |Then run it.
Node.js and .NET are not ends. |Version 2.0.1 is none.
He works at Smith Inc. in Dallas. |She works at Smith Inc. |They met there.
Apples, pears, etc. are fruit. |Carrots, etc. |They are not.
He lived on St. John St. until he died.
Within brackets (Proc. Natl. Acad. Sci. USA 86, 53) it goes on. |Then it ends.
They used it [see Cao et al., J. Virol. Methods (1989) 5]. |We did not.
This is sad :( and ends. |Then :) it does not.
He took vitamin C. |Patients did not.
It took 24 h. |Cells were counted.
It binds the cells. |p53 does not, and mRNA is low. |mRNA is high.
It ended. and then it went on without a capital.
Is it? |Yes, it is! |Good!😀 |Next.
It ended. |😀 was the answer.
It ended. 😀
"Yes." |"No."
It ended. |(But not really.) |Then it did.
It ended. |[A note. And more] |
It ended. |$5 was the price. |'Tis true. |<b>So</b> it ends. |#1 was he.
It ended. |– No, it did not.
It ended. |**Bold** text follows. |* An item.
He was born c. 1950 in Ely. |He died.
Tom knows what you don't. |Mary doesn't. |Tom's is Tom's. |End.
Ph.D. students of M.I.T. know this. |Others do not.
"""
TOKENISED = """
 He left . |She stayed . 
He said , " I left . " |She stayed .
He said , " I left . |I came back . " |She stayed .
" I left " , he said . |" I stayed " , she said .
They sold 3 @.@ 5 million . |The U.S. Army did not .
<unk> left . |<unk> stayed .
He left ( and came back . ) |She stayed .
See vol . 3 , no . 4 . |It is there .
"""
GERMAN = """
Es regnete. |Wir blieben zu Hause.
Herr Dr. Müller kam. |Frau Prof. Schmidt ging.
Es gibt viele Tiere, z. B. Hunde, z.B. Katzen, d. h. Haustiere. |Das ist gut.
Hunde, Katzen usw. sind Tiere. |Blumen usw. |Die sind es nicht.
Am 3. Oktober 1990 war es soweit. |Am 4. war alles vorbei.
Der 2. Weltkrieg endete im 20. Jahrhundert. |Danach kam Frieden.
Er wurde am 3. 10. 1990 geboren. |Sie nicht.
Das kostet ca. 30 Euro bzw. 40 Dollar. |Das ist viel.
Er kam als 3. ins Ziel. |Sie wurde Erste.
„Es regnet.“ |Er ging hinein.
»Kommst du?« |»Nein.« |Sie schwieg.
Vgl. Abb. 3 und Nr. 4 auf S. 12. |Siehe auch Kap. 5.
Es waren 30. |Die anderen fehlten.
Geht das? |– Nein.
Äpfel sind gut! |Österreich auch.
"""
KOREAN = """
비가 왔다. |우리는 집에 있었다.
비가 왔다.|그는 집에 있었다.
비가 왔어요. |집에 있었죠. |왜 그랬을까? |모르겠음. |끝!
정말?|그래!|좋아.
그는 "비가 온다."라고 말했다. |나는 웃었다.
그는 "비가 온다." 라고 말했다. |나는 웃었다.
“비가 온다.” |그가 말했다.
비가 왔다... |그래도 갔다.
음... 그게 뭐지
비가 왔다..|그래도 갔다.
그러니까…그게 뭐냐고
원주율은 3.14이다. |그것은 숫자다.
1. 첫째는 이름이다. |2. 둘째는 나이다.
가. 첫째는 이름이다. |나. 둘째는 나이다.
네. |알겠습니다.
2024. 3. 5. 서울에서 열렸다. |사람이 많았다.
pip을 씁니다. |pip은 도구입니다. |*name*은 이름입니다.
재밌다ㅋㅋ. |또 보자. ㅋㅋㅋ
재밌다!ㅋㅋ |또 보자.
(비가 왔다.) |우리는 집에 있었다.
3.1운동은 1919년에 일어났다. |독립을 외쳤다.
이메일은 a.b@example.com이다. |주소는 www.example.com이다.
"""
CHINESE_AND_JAPANESE = """
下雨了。|我们在家。
雨が降った。|家にいた！|なぜ？
「行く。」と言った。|彼は行った。
"""
CASES = [
    line for lines in (ENGLISH, TOKENISED, GERMAN, KOREAN, CHINESE_AND_JAPANESE) for line in lines.split("\n") if line
]


@pytest.mark.parametrize("case", CASES)
def test_sentences_end_where_they_should(case: str) -> None:
    assert split_sentences(case.replace("|", "")) == [piece.strip() for piece in case.split("|") if piece.strip()]


def test_nothing_is_no_sentence() -> None:
    assert split_sentences("") == split_sentences(" \t\n\u3000") == []


def test_what_has_no_words_is_no_sentence_of_its_own() -> None:
    assert split_sentences("... ! ? ( ) ㅋㅋ 😀") == ["... ! ? ( ) ㅋㅋ 😀"]
    assert split_sentences("!!! Well. 😀! ㅋㅋ. Yes. ?") == ["!!! Well. 😀! ㅋㅋ.", "Yes. ?"]


def test_line_breaks_are_white_space() -> None:
    assert split_sentences("It\nrained.\nWe\r\nstayed.\n\n") == ["It\nrained.", "We\r\nstayed."]


def test_decomposed_hangul_is_hangul() -> None:
    decomposed = unicodedata.normalize("NFD", "비가 왔다.그는 갔다. abc도 갔다.")
    assert [unicodedata.normalize("NFC", sentence) for sentence in split_sentences(decomposed)] == [
        "비가 왔다.",
        "그는 갔다.",
        "abc도 갔다.",
    ]


# What any text may be made of, with everything that a rule looks at.
PIECES = [
    *" .!?…。！？,:;-–()[]{}“”„‘’«»「」'*`<@$#😀ㅋ~^_\n\t\u3000",
    *("..", "...", ". ", "! ", "? ", ".\n", "(a ", "b)", ":(", '"', ' " ', '."'),
    *("The ", "I", "A", "It", "he", "p53", "Mr", "U.S", "e.g", "z. B", "et al", "No", "Jan", "am 3", "Oktober", "24 h"),
    *("1", "3.14", "2024", "10", "가", "다", "라고", "했다", "그는", "음", "雨", "あ"),
]
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=40).map("".join)


@given(texts)
@example("")
def test_spans_are_in_order_and_hold_all_but_white_space(text: str) -> None:
    spans = sentence_spans(text)
    end_before = 0
    for start, end in spans:
        assert start < end
        assert not text[end_before:start].strip()
        assert text[start:end] == text[start:end].strip()
        end_before = end
    assert not text[end_before:].strip()
    assert split_sentences(text) == [text[start:end] for start, end in spans]


@given(texts)
def test_every_sentence_has_a_letter_or_a_digit_if_the_text_has_one(text: str) -> None:
    if any(character.isalnum() and not "ㄱ" <= character <= "ㅣ" for character in text):
        assert all(any(character.isalnum() for character in sentence) for sentence in split_sentences(text))


@given(texts, st.text(" \t\n\u3000", max_size=50), st.text(" \t\n\u3000", max_size=50))
def test_white_space_around_a_text_changes_nothing(text: str, before: str, after: str) -> None:
    assert split_sentences(before + text + after) == split_sentences(text)


@given(texts.map(lambda text: text.replace('"', "")))
def test_a_sentence_is_one_sentence(text: str) -> None:
    # But for straight quotes, of which only those before tell whether one opens or closes.
    for sentence in split_sentences(text):
        assert split_sentences(sentence) == [sentence]


def test_every_process_finds_the_same_sentences() -> None:
    program = "import sys; from jumok.text.sentences import sentence_spans; print(sentence_spans(sys.stdin.read()))"
    text = "\n".join(CASES).replace("|", "")
    for seed in "01":
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"}
        done = subprocess.run(
            [sys.executable, "-c", program],
            input=text,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        assert done.stdout.strip() == str(sentence_spans(text))


@pytest.mark.parametrize("unit", [*'."( 가', ". ", '. " ', "A. ", "(a. ", "((a) ", "가.", "1. 2. "])
def test_a_megabyte_of_anything_takes_seconds(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    began = time.process_time()
    spans = sentence_spans(text)
    assert time.process_time() - began < 20  # a hundred times that, if it were not linear
    assert sum(len("".join(text[start:end].split())) for start, end in spans) == len("".join(text.split()))


# Real text: the lengths of sentences, in words, are what one would expect.


def data(name: str) -> Path:
    folder = os.environ.get("JUMOK_DATA")
    if not folder or not (path := Path(folder) / name).exists():
        pytest.skip(f"JUMOK_DATA names no folder with {name}")
    return path


def lengths(lines: Iterable[str]) -> list[int]:
    return [len(sentence.split()) for line in lines for sentence in split_sentences(line)]


@pytest.mark.parametrize("name", ["wikitext2/valid.txt.gz", "biomed_abstracts/valid.txt"])
def test_english_sentences_are_as_long_as_people_write_them(name: str) -> None:
    words = sorted(lengths(line for line in read_lines(data(name)) if line.strip() and not line.startswith(" =")))
    assert 18 < sum(words) / len(words) < 30
    assert sum(length <= 3 for length in words) < 0.02 * len(words)
    assert sum(length > 80 for length in words) < 0.01 * len(words)


def test_korean_reviews_fall_into_short_sentences() -> None:
    reviews = [row.text for row in read_labelled(data("nsmc/test.tsv.gz"), text="text", label="label")]
    words = lengths(reviews)
    assert 1.2 < len(words) / len(reviews) < 1.7
    assert 4 < sum(words) / len(words) < 7
