"""Sentence boundaries in English, German and Korean: rules and short word lists, nothing learned.

A stop ends a sentence if the text after it can start one and the stop is not part of an abbreviation, an initial, an
item number or a date. In doubt it does not: two merged sentences do less harm than half a sentence.
"""

import re
import unicodedata
from collections.abc import Iterator

# Quotes that close in one language and open in another are in both. Dashes open speech; the last group is markup.
_OPENING = "\"'‘’“”„‚«»‹›" + "(\\[{「『《〈【（" + "¿¡–—\\-" + "*_`:"
_CLOSING = "\"'‘’“”«»‹›" + ")\\]}」』》〉】）"
_LAUGHS_AND_SMILEYS = "ㄱ-ㅣ^~\u2600-\u27bf\ufe0f\u200d\U0001f000-\U0001faff"

# A stop includes the quotes and brackets that close behind it, and trailing laughs and smileys. In tokenised text,
# brackets also close after a blank; a lone straight quote may open or close, so these are counted. Nothing ends inside
# brackets, as in (Proc. Natl. Acad. Sci. 86, 53), unless a stop is the last thing in them; a sad smiley is no bracket.
_STOP = re.compile(
    r'(?=[.!?…。！？"(\[])(?:'  # possible first characters: only for speed
    rf"(?P<marks>[.!?…。！？]+)(?P<closing>[{_CLOSING}]*(?:\s[)\]}}”])*)[{_LAUGHS_AND_SMILEYS}]*"
    r'|(?P<quote>(?<!\S)"(?!\S))'
    r"|(?<![:;=`'\"])\((?:[^()]{1,300}+(?:\([^()]{0,60}\))?){1,4}+(?<![.!?…])(?<![.!?…]\s)\)"
    r"|\[[^\[\]]{1,600}+(?<![.!?…])(?<![.!?…]\s)\]"
    r")"
)
_LONE_QUOTE = re.compile(r'\s"(?!\S)')
_NEXT = re.compile(rf"(\s*)((?:[{_OPENING}]\s*)*)(?=(?P<first>\S))([^\W\d_]*)")
_INK = re.compile(r"\S")
_WORD = re.compile(r"[^\W_ㄱ-ㅣ]")
_HANGUL = re.compile("[가-힣ᄀ-ᇿ]")
_NAME = re.compile(r"[a-z]{1,4}-?[A-Z0-9]")  # p53, mRNA, c-Fos, iPhone: these may start a sentence in lower case
_QUOTATIVE = re.compile(r"이?라[고는며면던]|하[고며는자]|[고며란는]\b")  # "…" 라고 했다: the sentence continues
_KOREAN_ENDING = re.compile(r"[가-힣](?:[다요죠네음함임됨냐듯군]|(?<!니)까)$")

_LOOK_BACK = 32  # characters: more than these patterns need, and a bound that keeps the time linear
_ITEM = re.compile(r"\W*(?:\d{1,3}(?:\.\d{1,3})*|[A-Za-z가나다라마바사아자차카타파하]|[ivxIVX]{1,4})")
_ITEM_OR_DATE = re.compile(r"[:;]\s\d{1,2}$|(?<!\d)\d{1,4}\.\s\d{1,2}$")  # "these: 1. …", "3. 10. 1990", "2024. 3. 5."
_ORDINAL = re.compile(
    r"\b(?:a[bm]|beim|bis|d(?:as|e[mnrs]|ie)|im|jede[rs]?|seit|und|vom|zu[mr])\s\d{1,3}$", re.IGNORECASE
)
_DAY = re.compile(r"(?<!\S)\d{1,2}$")
_DAY_OR_YEAR = re.compile(r"(?<!\S)\d{1,4}$")
_REST_OF_DATE = re.compile(r"\d{1,2}\.\s\d")
# Includes single letters before it, as in "J. R. R" and "z. B"; Korean has no abbreviations of this kind.
_LAST_WORD = re.compile(r"(?<![^\s(\[\"“„«])(?:[^\W\d_]\.[\s-]?)*[^\W\d_ᄀ-ᇿ가-힣]+$")
# Letters that are not initials: 24 h, vitamin C.
_LAST_LETTER = re.compile(r"\d\s[a-z]$|\b(?:class|grade|group|hepatitis|kappa|kinase|part|plan|type|vitamin)\s[A-Z]$")

# fmt: off
_NEVER_LAST, _SELDOM_LAST, _BEFORE_NUMBERS, _FIRST_WORDS, _GERMAN_MONTHS = (frozenset(words.split()) for words in (
    # Abbreviations, without the last full stop, that never end a sentence.
    "mr mrs ms dr prof messrs mme mlle e.g i.e eg ie vs viz cf approx ca resp"
    " z.b d.h u.u m.e i.d.r v.a bzw bspw vgl ggf evtl inkl exkl zzgl sog",
    # Those that end one only if a first word follows. The same goes for single letters, and for letters with full
    # stops: J. Smith, the U.S. Army.
    "al etc est inc ltd co corp bros jr sr esq st mt ave blvd dept univ incl excl sp spp ssp var lit"
    " Gen Col Capt Lt Sgt Sen Rep Gov Rev Hon Maj Adm Pres Ed Eds"
    " usw usf str tel geb gest mio mrd jh jhd hrsg aufl anm engl lat dt franz griech ehem urspr bes allg einschl dipl"
    " ing hl fr",
    # Those that precede a number.
    "no nos nr op vol vols pp ch chap art fig figs eq eqs ref refs sec tab ver ex min max abb abs kap bd"
    " Jan Feb Mar Mär Apr Jun Jul Aug Sep Sept Oct Okt Nov Dec Dez",
    # Words that are hardly ever capitalised except at the start of a sentence.
    "The A An This That These Those It Its He She They We I You My Our His Her Their Your There Here In On Of At By"
    " For From With Without Within Under Upon To As If When While Where Why How What Who After Before Although Though"
    " Because Since Until However Moreover Furthermore Therefore Thus Then Also And But Or So Yet Not No Yes Some Many"
    " Most Both Each Every All Such Another Several Neither Only Even Just Now Later Finally During Between Among"
    " Despite Unlike Instead Meanwhile Nevertheless Further Similar Similarly Recent Recently Previously Subsequently"
    " Overall Interestingly Additionally Collectively Taken Using Is Are Was Were Do Does Did Can Could Will Would"
    " Should Let Please"
    " Der Die Das Den Dem Ein Eine Einen Einem Einer Er Sie Es Wir Ich Ihr Man Mein Meine Sein Seine Ihre Dies Diese"
    " Dieser Dieses Im Am An Auf Aus Bei Beim Mit Nach Vom Vor Zum Zur Für Über Unter Durch Gegen Ohne Seit Bis Während"
    " Wegen Trotz Und Oder Aber Doch Denn Weil Wenn Als Ob Dann Danach Dort Hier Heute Gestern Jetzt Nun Auch Nur Noch"
    " Wie Was Wer Wo Warum Wann Viele Einige Jeder Jede Kein Keine Nicht Nein Ja Außerdem Daher Deshalb Dabei Damit"
    " Dazu Jedoch Allerdings Später Schließlich Bereits",
    "Januar Jänner Februar März April Mai Juni Juli August September Oktober November Dezember",
))
# fmt: on


def split_sentences(text: str) -> list[str]:
    """Split a paragraph into sentences, stripped of white space; line breaks count as white space."""
    return [text[start:end] for start, end in sentence_spans(text)]


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return the sentence spans in order, with only white space between them, in linear time."""
    return list(iter_spans(text))


def iter_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans one by one. Parts without a letter or digit are merged: each span has one if the text does."""
    span: tuple[int, int] | None = None
    has_words = False
    for start, end in _pieces(text):
        words = bool(_WORD.search(text, start, end))
        if span and words and has_words:
            yield span
            span = None
        span = (span[0] if span else start, end)
        has_words |= words
    if span:
        yield span


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    start = _skip_blanks(text, 0)
    in_quotes = False
    for stop in _STOP.finditer(text):
        if not stop["marks"]:
            in_quotes ^= bool(stop["quote"])
            continue
        end = stop.end()
        if in_quotes and (quote := _LONE_QUOTE.match(text, end)):
            end = quote.end()
        if _is_end(text, start, stop, end):
            yield start, end
            start = _skip_blanks(text, end)
    if start < len(text):
        yield start, len(text.rstrip())


def _skip_blanks(text: str, place: int) -> int:
    found = _INK.search(text, place)
    return found.start() if found else len(text)


def _is_end(text: str, start: int, stop: re.Match[str], end: int) -> bool:
    """Whether the sentence from `start` ends with this stop and its closing marks, up to `end`."""
    following = _NEXT.match(text, end)
    if not following:
        return False
    marks, closing = stop["marks"], stop["closing"]
    blank, opening, first, word = following.groups()
    place = following.start("first")
    before = text[max(stop.start() - 3, 0) : stop.start()]
    korean = bool(_HANGUL.match(before[-1:]))
    if not blank:
        # Chinese and Japanese have no blanks; Korean often omits them, but also attaches particles: "…다."라고
        if closing or not (marks[-1] in "。！？" or (korean and not opening and _HANGUL.match(first))):
            return False
    elif closing and _QUOTATIVE.match(text, place):
        return False
    if first.islower():
        # A Korean sentence may start with any foreign word.
        if not (korean or _NAME.match(text, place)):
            return False
    elif not (first.isalnum() or first in "<#@§" or unicodedata.category(first) in ("So", "Sc")):
        return False
    if marks == ".":
        return not _goes_on(text, start, stop.start(), place, word)
    if marks.strip(".…"):
        return True
    if korean:
        return bool(_KOREAN_ENDING.search(before))
    return first.isupper() and word != "I"


def _goes_on(text: str, start: int, stop: int, place: int, word: str) -> bool:
    """Whether a single full stop belongs to the text before it; `word` is the next word, at `place`."""
    before = text[max(start, stop - _LOOK_BACK) : stop]
    if stop - start <= _LOOK_BACK and _ITEM.fullmatch(before.strip()):
        return True
    # Before a full stop it is an initial (A. Smith), before a hyphen part of a name (All-Stars).
    begins = word in _FIRST_WORDS and not text.startswith((".", "-"), place + len(word))
    if before[-1:].isdigit():
        return bool(
            _ITEM_OR_DATE.search(before)
            or (_DAY.search(before) and word in _GERMAN_MONTHS)
            or (_DAY_OR_YEAR.search(before) and _REST_OF_DATE.match(text, place))
            or (_ORDINAL.search(before) and word and not begins)
        )
    last = _LAST_WORD.search(before.rstrip())
    if not last:
        return False
    name = "".join(last[0].split())
    forms = {name} if name.isupper() else {name, name.lower()}  # MR and SR are not titles
    if forms & _NEVER_LAST:
        return True
    if forms & _BEFORE_NUMBERS:
        return text[place].isdigit() or (len(word) <= 2 and not begins)
    if begins or before[-1].isspace() or _LAST_LETTER.search(before):
        return False
    return len(name) == 1 or "." in name or bool(forms & _SELDOM_LAST)
