"""Which parts of a text are placeholders and markup, and what a translation has not kept of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.text.placeholders import differences, find_units

UNITS = {
    "Cannot open file '%s': %d errors": ["%s", "%d"],
    "%s을(를) 열 수 없습니다": ["%s"],
    "%(name)s has %(n)d of %(size).2f": ["%(name)s", "%(n)d", "%(size).2f"],
    "%1$s and %2$d, %5.2f, %-10s, %08x, %.*f": ["%1$s", "%2$d", "%5.2f", "%-10s", "%08x", "%.*f"],
    "%lu %lld %zu %hhx %p": ["%lu", "%lld", "%zu", "%hhx", "%p"],
    "%dx%d, %ss": ["%d", "%d", "%s"],
    "%d%% done": ["%d", "%%"],
    "%s: %m": ["%s", "%m"],
    "%1 of %2, %n file(s)": ["%1", "%2", "%n"],
    "%Y-%m-%d %H:%M": ["%Y", "%m", "%d", "%H", "%M"],
    "%@ is gone": ["%@"],
    "C:\\%s": ["%s"],
    "{0} and {name}, {0:.2f} {x!r} {a[0]} {a.b}": ["{0}", "{name}", "{0:.2f}", "{x!r}", "{a[0]}", "{a.b}"],
    "Found {} errors, {:>10}": ["{}", "{:>10}"],
    "Hello {{name}}, {{ user.name }}": ["{{name}}", "{{ user.name }}"],
    "%{count} of #{total}": ["%{count}", "#{total}"],
    "${HOME}/x, $HOME, $(DESTDIR), %APPDATA%": ["${HOME}", "$HOME", "$(DESTDIR)", "%APPDATA%"],
    "<b>bold</b> and <a href=\"%s\" class='x'>here</a><br/>": [
        "<b>",
        "</b>",
        "<a href=\"%s\" class='x'>",
        "</a>",
        "<br/>",
    ],
    "<emphasis>no HTML</emphasis>, <0>nor this</0>": ["<emphasis>", "</emphasis>", "<0>", "</0>"],
    "R&amp;D &#160; &#xA0;": ["&amp;", "&#160;", "&#xA0;"],
    "&File": ["&"],
    "E&xit": ["&"],
    "Save &As...": ["&"],
    "파일(&F)": ["(&F)"],
    "see https://a.org/x?y=1#z.": ["https://a.org/x?y=1#z"],
    "(https://a.org/b_(c)) or www.example.org/x": ["https://a.org/b_(c)", "www.example.org/x"],
    "https://a.org/에서": ["https://a.org/"],
    "write to jane.doe+x@mail.example.org.": ["jane.doe+x@mail.example.org"],
    ":meth:`~str.casefold`\\를, :c:func:`PyList_New`": [":meth:`~str.casefold`", ":c:func:`PyList_New`"],
    "``NULL``\\이면 ``a b``": ["``NULL``", "``a b``"],
    "the `name` of it": ["`name`"],
    # What is said of a role's target is translated, and the target is not.
    ":ref:`Using queues <asyncio-queue>` 참조": [":ref:`", "<asyncio-queue>`"],
    ":term:`코루틴 <coroutine>`": [":term:`", "<coroutine>`"],
    ":dfn:`negative lookbehind`": [":dfn:`"],
    "`IEEE 754 <https://ieee.org>`_ 표준": ["<https://ieee.org>`_"],
}
NONE = [
    "100 % sure",
    "100% sure",
    "50 %",
    "50%, 10%-20%",
    "50%off, 30%discount",
    "100% of it",
    "%-formatting",
    "for (;;) {}",
    "f() {} and x = {}",
    '{"a": 1}',
    "{a, plural, one {# file} other {# files}}",
    "I <3 you",
    "a < b and c > d",
    "a <b and c> d",
    "usage: cp <file> <target>",
    "R&D, AT&T and Q&A",
    "AT&T",
    "R&D",
    "Tom & Jerry",
    "a&b",
    "int *p = &x; y = &z;",
    "a && b",
    "C:\\Users\\new\\file.txt",
    "3 @ 5, @someone",
    "$5 or US$ 10",
    "at 12:30: now",
    "`foo' and `bar'",
    "*emphasis* and **strong**",
    "",
]


@pytest.mark.parametrize(("text", "units"), UNITS.items())
def test_units_are_found(text, units):
    found = find_units(text)
    assert [unit.text for unit in found] == units
    assert all(text[unit.start : unit.end] == unit.text for unit in found)


@pytest.mark.parametrize("text", NONE)
def test_other_text_is_none(text):
    assert find_units(text) == []


def test_an_accelerator_is_the_only_one_of_a_label():
    assert find_units("&Save && &Load") == []
    assert find_units("this sentence has far too many words to be the label of a &button in a window") == []


@given(
    st.lists(st.sampled_from([*UNITS, *NONE, "%", "&", "<", "`", ":a:`", "{", "한글", " "]), max_size=6).map("".join)
)
def test_units_are_in_order_and_do_not_overlap(text):
    found = find_units(text)
    assert all(text[unit.start : unit.end] == unit.text for unit in found)
    assert all(one.end <= other.start for one, other in zip(found, found[1:], strict=False))


KEPT = [
    ("%s: %d", "%d: %s", False),  # prints a number as a text
    ("%s: %d", "%2$d: %1$s", True),
    ("%1$s %2$s", "%2$s %1$s", True),
    ("%1$s %2$d", "%1$d %2$s", False),
    ("%s %s", "%s %s", True),
    ("%(a)s %(b)d", "%(b)d %(a)s", True),
    ("{a} {b}", "{b} {a}", True),
    ("&File", "파일(&F)", True),
    ("&File", "&Datei", True),
    (":term:`coroutine`", ":term:`코루틴 <coroutine>`", True),
    (":term:`Coroutines <coroutine>`", ":term:`코루틴 <coroutine>`", True),
    (":ref:`Queues <queue>`", ":ref:`큐 <queues>`", False),
    (":class:`Process`", ":class:`프로세스 <Process>`", True),
    (":dfn:`thing`", ":dfn:`것`", True),
    ("see `the docs <a.html>`_", "`문서 <a.html>`_ 참조", True),
    ("see `the docs <a.html>`_", "`문서 <b.html>`_ 참조", False),
    ("100 % of 5", "5 가운데 100 %", True),
]


@pytest.mark.parametrize(("source", "target", "kept"), KEPT)
def test_a_translation_keeps_what_its_program_needs(source, target, kept):
    assert bool(differences(source, target)) is not kept
    assert not differences(source, source)


def test_what_is_missing_and_what_is_too_many_is_told():
    found = differences("Cannot open file '%s': %d errors", "파일 '%s': '%s'%s'%d")
    assert (found.missing, found.extra, found.count) == ([], ["%s", "%s"], 2)
    found = differences("<b>{name}</b>", "<b>{nmae}")
    assert (found.missing, found.extra) == (["{name}", "</b>"], ["{nmae}"])
    found = differences("%s: %d", "%d: %s")
    assert (found.missing, found.extra, found.order, found.reordered) == ([], [], ["%d", "%s"], True)
