"""HTML with other sentences in it: balanced, no text lost, no tag inside a word, whatever comes in."""

import re
from html.parser import HTMLParser
from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.text.markup import read_html, read_lines
from jumok.text.projection import Aligned, units_of

LEFT_OUT = {"p", "li"}
CUTS = {"p", "div", "li", "h1", "br", "pre"}
VOID = {"br", "img", "wbr", "hr"}


def identity(sentence: str) -> Aligned:
    units = units_of(sentence)
    return Aligned(sentence, units, units, np.eye(len(units)))


def backwards(sentence: str) -> Aligned:
    """The words from last to first, aligned as they are."""
    words = [(m.start(), m.end()) for m in re.finditer(r"\S+", sentence)]
    text, target, at = " ".join(sentence[a:b] for a, b in reversed(words)), [], 0
    for a, b in reversed(words):
        target.append((at, at + b - a))
        at += b - a + 1
    return Aligned(text, target, words, np.eye(len(words))[::-1])


def unaligned(sentence: str) -> Aligned:
    return Aligned(sentence.upper())


WAYS = (identity, backwards, unaligned)


def translated(document: str, way=identity) -> str:
    markup = read_html(document)
    assert len(markup.aligned) == len(markup.sentences)
    return markup.filled([way(sentence) for sentence in markup.sentences])


class Seen(HTMLParser):
    """The tags and the text of a document; raises if a tag that must be ended is not, or an end has no start."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(document)
        self.close()
        while self.open and self.open[-1] in LEFT_OUT:
            self.open.pop()
        assert not self.open, document

    def handle_starttag(self, tag, attrs):
        self.tags.append(self.get_starttag_text())
        self.text += " " * (tag in CUTS)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(self.get_starttag_text())

    def handle_endtag(self, tag):
        while self.open and self.open[-1] != tag and self.open[-1] in LEFT_OUT:
            self.open.pop()
        self.text += " " * (tag in CUTS)
        assert self.open, f"</{tag}> without a start"
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


WORDS = st.lists(st.sampled_from(["Mann", "the", "3.5", "서울에서", "don't", "B&amp;B", "x."]), min_size=1, max_size=4)
TEXT = WORDS.map(" ".join)


def inline(children):
    element = st.tuples(st.sampled_from(["b", "i", "a href='x\"y'", 'span class="k"']), children)
    return element.map(lambda found: f"<{found[0]}>{found[1]}</{found[0].split()[0]}>")


PHRASE = st.recursive(TEXT, lambda inner: st.lists(inline(inner) | inner, min_size=1, max_size=3).map(" ".join))
ATOM = st.sampled_from(["<img src=x>", "<code>a b</code>", "<!-- c -->", "<i class=icon></i>", "<x id='1'/>"])
RUNNING = st.lists(PHRASE | ATOM, min_size=1, max_size=4).map(" ".join)
BLOCK = st.tuples(st.sampled_from(["p", "div", "li", "h1"]), RUNNING).map(lambda b: f"<{b[0]}>{b[1]}</{b[0]}>")
DOCUMENT = st.lists(BLOCK | st.sampled_from(["<br>", "\n", "<pre>  a <b>\n</b></pre>"]), max_size=4).map("".join)
SOUP = st.lists(
    st.sampled_from(
        ["<b>", "</b>", "<i>", "</i>", "<p>", "</p>", "<div>", "</div>", "<a href='>'>", "</a>", "<br>", "<img>",
         "word ", "가나", ". ", "Two", "&lt;", "&#0;", "\0", "<code>", "</code>", "<span translate=no>", "</span>",
         "<!-- c -->", "<![CDATA[x]]>", "<", ">", '"', "<a x=", "</", "<script>", "</script>", "<x/>", " ", "\n"]
    ),
    max_size=25,
).map("".join)  # fmt: skip


@given(DOCUMENT)
def test_what_is_not_changed_gives_the_same_document(document: str) -> None:
    assert translated(document) == document


@pytest.mark.parametrize("way", WAYS)
@given(document=DOCUMENT)
def test_tags_are_balanced_none_doubled_and_no_word_lost(way, document: str) -> None:
    before, after = Seen(document), Seen(translated(document, way))
    assert sorted(after.text.upper().split()) == sorted(before.text.upper().split())
    missing = sorted(before.tags)
    for tag in after.tags:
        missing.remove(tag)  # each is there once at most
    assert way is not identity or not missing


@pytest.mark.parametrize("way", WAYS)
@given(document=SOUP)
def test_tag_soup_becomes_balanced(way, document: str) -> None:
    found = translated(document, way)
    Seen(found)
    sentences = [read_html(one).sentences for one in (found, translated(found))]
    assert [one.split() for one in sentences[0]] == [one.split() for one in sentences[1]]
    if not re.search("<(code|script|span)", found):
        assert not re.search(r"\w</?[bi]>\w", found)  # no tag inside a word


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("<b>ab cd</b> ef", "ef <b>cd ab</b>"),
        ("<a href=x><img> ab</a> cd ef", "ef cd <a href=x><img> ab</a>"),
        ("ab <b>cd <i>ef</i></b> gh", "gh <b><i>ef</i> cd</b> ab"),
        ("un<b>believ</b>able cd", "cd <b>unbelievable</b>"),
        ("ab <code>x  y</code> cd", "cd ab <code>x  y</code>"),
        ("<b>Ab cd. Ef</b> gh.", "<b>cd. Ab</b> gh. Ef"),
        (
            "ab <span class='a notranslate'>Name <b>x</span> cd",
            "cd ab <span class='a notranslate'>Name <b>x</b></span>",
        ),
        ("<p>Ab cd<br>ef gh", "<p>cd Ab<br>gh ef"),
        ("<b>ab <i>cd</b> ef</i>", "ef <b><i>cd</i> ab</b>"),
        ("a < b & c", "c &amp; b &lt; a"),
        ("text <b and more", "more and &lt;b text"),
        ("<textarea>a <b> c</textarea>", "<textarea>a <b> c</textarea>"),
    ],
)
def test_tags_follow_their_words(document: str, expected: str) -> None:
    assert translated(document, backwards) == expected


def test_without_alignment_what_is_around_a_sentence_stays_and_nothing_is_lost_but_tags() -> None:
    document = '<p><b>Ab cd.</b> Ef <i>gh</i> <img src="1"> ij.</p>'
    assert translated(document, unaligned) == '<p><b>AB CD.</b> EF GH  IJ. <img src="1"></p>'


def test_what_stands_in_the_sentences_is_unescaped_text() -> None:
    markup = read_html(
        "<p>Caf&eacute;&nbsp;&lt;b&gt; is <em>good</em>. 비가 온다.눈이 온다.</p><script>var x</script>--"
    )
    assert markup.sentences == ["Café\xa0<b> is good.", "비가 온다.", "눈이 온다."]
    assert markup.aligned == [True, False, False]
    found = markup.filled([Aligned("A & B."), Aligned("Rain."), Aligned("Snow.")])
    assert found == "<p>A &amp; B. Rain. Snow.</p><script>var x</script>--"


def test_lines_stay_lines() -> None:
    markup = read_lines("One. Two <b>\r\n\n  three\t4 \n???")
    assert markup.sentences == ["One.", "Two <b>", "three\t4"]
    assert markup.filled([Aligned("1."), Aligned("2 <"), Aligned("3")]) == "1. 2 <\r\n\n  3 \n???"


HOSTILE = [
    *("<b>", "</b>", "<b>w ", "<b></b>", "<p>", "<img>w ", "<b><p>x</i>", "<code><b>"),
    *("<!--", "<![CDATA[", '<a x="', "<a ", "<a =", "</", "<", "&#1", "&", "\0"),
    *("<script>", "<script></scrip", "<textarea></"),
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_documents_take_linear_time(unit: str) -> None:
    document = (unit * 50_000)[:50_000]
    began = process_time()
    found = translated(document, unaligned)
    assert process_time() - began < 20  # they take about one; the standard library's parser has taken ten for comments
    assert len(found) < 6 * len(document) + 100
