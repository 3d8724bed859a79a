"""Where tags meet pieces: by characters, whatever the script, once for every unit."""

import itertools
import json
import unicodedata
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jumok.engines.torch import TorchEngine
from jumok.errors import CheckpointError, DataError
from jumok.examples.made.annotated import marked_names
from jumok.examples.spans import Spans
from jumok.models.rnn import RnnConfig, RnnTagger
from jumok.tasks.tagging import TaggingFacts
from jumok.tasks.tagging.predictor import Tagger
from jumok.tasks.tagging.units import (
    Endings,
    Units,
    gold_tags,
    is_peeled,
    particles_of,
    read_pieces,
    read_words,
    split_words,
    tags_of,
    windows_of,
)
from jumok.tasks.windows import LongTexts, WindowRule
from jumok.text.span import Span
from jumok.text.tags import in_characters, places_of, spans
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import BERT, MARIAN, TokenizerConfig

LINES = ["김민서는 서울에서 일한다. 부산까지 걸어간 이지우도", "Ada lives in Oslo, near the sea; Zoë too."] * 4
TOKENIZERS = {
    kind: Tokenizer.train(TokenizerConfig(kind=kind, vocab_size=size), LINES, BERT if kind == "wordpiece" else MARIAN)
    for kind, size in {"character": 340, "bpe": 360, "word": 30, "wordpiece": 120}.items()
}
LETTERS, WORDS = TOKENIZERS["character"], TOKENIZERS["word"]
HOSTILE = [
    "",
    " \t\u3000\n",
    "👩‍👩‍👧 in 서울😀에서",
    "\u0301\u0302 a\u0301\u0323\u0301b",
    "a\x00b\x1f\x7fc\u200b\ufeff",
    unicodedata.normalize("NFD", "김민서는 Zoë 서울"),
    "ﬁne ½ Ⅳ ㎏ 한글",
    "$#[CLS] </s> <pad> [SEP]##a",
]
each_tokenizer = pytest.mark.parametrize("tokenizer", TOKENIZERS.values(), ids=TOKENIZERS)
texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from(HOSTILE)


def aligned(tokenizer, example, particles=()):
    """The pieces of a marked text, their tags, and how many of its spans do not fit them."""
    units = Units(of="pieces", particles=frozenset(particles))
    read = units.read(tokenizer, example.text)
    return read, *gold_tags(example, read, units)


# units


@each_tokenizer
@given(text=texts)
def test_pieces_are_units_in_order_that_never_overlap(tokenizer, text):
    read = read_pieces(tokenizer, text)
    ends = [0, *(end for _, end in read.units)]
    assert all(before <= start < end for before, (start, end) in zip(ends, read.units, strict=False))
    assert ends[-1] <= len(text)
    assert read.firsts == sorted(set(read.firsts))
    assert all(0 <= first < len(read.ids) for first in read.firsts)
    assert read.ids == tokenizer.encode(text)


@pytest.mark.parametrize("kind", ["character", "bpe"])
@given(text=texts)
def test_no_character_is_without_a_unit_where_every_character_is_known(kind, text):
    covered = {i for start, end in read_pieces(TOKENIZERS[kind], text).units for i in range(start, end)}
    assert {i for i, character in enumerate(text) if not character.isspace()} <= covered


def test_a_character_of_several_pieces_is_one_unit():
    read = read_pieces(LETTERS, "😀a")
    assert len(read.ids) > 4  # bytes
    assert read.units == [(0, 1), (1, 2)]


@each_tokenizer
@given(text=texts)
def test_words_are_units_and_each_has_a_piece_of_its_own(tokenizer, text):
    words = split_words(text, peel=True)
    read = read_words(tokenizer, text, words)
    assert read.units == words
    assert len(set(read.firsts)) == len(words)
    assert read.firsts == sorted(read.firsts)
    assert all(first < len(read.ids) for first in read.firsts)


@pytest.mark.parametrize("words", [["Ada", "는", "서울"], ["a"], []])
def test_the_first_piece_speaks_for_a_word(words):
    read = read_words(LETTERS, " ".join(words), places_of(words))
    pieces = [LETTERS.encode(word) for word in words]
    assert read.ids == [piece for word in pieces for piece in word]
    assert read.firsts == [sum(map(len, pieces[:i])) for i in range(len(words))]
    assert read.ids == LETTERS.encode(" ".join(words))  # as in a text
    assert [" ".join(words)[slice(*unit)] for unit in read.units] == words


def test_every_word_has_a_piece():
    words = ["Ada", "\u3000", "nobody", "lives"]  # one that is nothing but space, one unknown
    read = read_words(WORDS, " ".join(words), places_of(words))
    assert read.firsts == [0, 1, 2, 3]
    assert read.ids[1:3] == [WORDS.unk_id, WORDS.unk_id]


@given(words=st.lists(st.text(min_size=1, max_size=5), max_size=8))
def test_words_stand_where_a_space_is_between_any_two(words):
    text = " ".join(words)
    assert [text[start:end] for start, end in places_of(words)] == words


# words of a text


@given(text=texts, peel=st.booleans())
def test_no_character_is_lost_between_words(text, peel):
    found = split_words(text, peel=peel)
    assert all(start < end for start, end in found)
    covered = [i for start, end in found for i in range(start, end)]
    assert covered == [i for i, character in enumerate(text) if not character.isspace()]
    if not peel:
        assert [text[start:end] for start, end in found] == text.split()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('He said: "No, never."', ["He", "said", ":", '"', "No", ",", "never", ".", '"']),
        ("the U.S. and Mr. Lee (left)", ["the", "U.S.", "and", "Mr", ".", "Lee", "(", "left", ")"]),
        ("IL-2 3.5% ...", ["IL-2", "3.5", "%", ".", ".", "."]),
        ("서울, 부산.", ["서울", ",", "부산", "."]),
        ("—", ["—"]),
        ("👨‍👩‍👧‍👦는 🇰🇷🇰🇷에서 (👍🏽)", ["👨‍👩‍👧‍👦", "는", "🇰🇷", "🇰🇷", "에서", "(", "👍🏽", ")"]),
    ],
)
def test_punctuation_is_peeled_off_as_corpora_have_it(text, words):
    assert [text[start:end] for start, end in split_words(text, peel=True)] == words
    assert [text[start:end] for start, end in split_words(text, peel=False)] == text.split()


def test_a_word_with_very_much_punctuation_is_read_in_time():
    assert len(split_words("a" + "!" * 400_000, peel=True)) == 400_001
    assert len(split_words("🇰🇷" * 200_000 + "는", peel=True)) == 200_001
    assert len(split_words("!" * 400_000 + "a.", peel=True)) == 400_002


def test_punctuation_is_counted_where_it_stands():
    assert is_peeled(["He", "said", ":", "no", "."]) == (0, 2)
    assert is_peeled(["He", "said:", "no."]) == (2, 0)


# tags


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("seed", range(8))
def test_names_end_before_their_particles(form, seed):
    """Marks of characters become tags of pieces and come back; the particle is no part of the name."""
    made = marked_names(Random(seed))
    text, marks = "", []
    at = 0
    for mark in made.marked:  # the same text in another form, with its offsets
        text += unicodedata.normalize(form, made.text[at : mark.start])
        name = unicodedata.normalize(form, made.text[mark.start : mark.end])
        marks.append(Span(len(text), len(text) + len(name), mark.label))
        text, at = text + name, mark.end
    text += unicodedata.normalize(form, made.text[at:])
    read, tags, inexact = aligned(LETTERS, Spans(text, marks))
    assert inexact == 0
    assert in_characters(tags, read.units) == [(mark.label, mark.start, mark.end) for mark in marks]
    names = [unicodedata.normalize("NFC", text[start:end]) for _, start, end in in_characters(tags, read.units)]
    assert names == [made.text[mark.start : mark.end] for mark in made.marked]


@st.composite
def fitting(draw):
    """Marks that begin and end where units do."""
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=12))
    gaps = draw(st.lists(st.integers(0, 2), min_size=len(lengths), max_size=len(lengths)))
    units, at = [], 0
    for gap, length in zip(gaps, lengths, strict=True):
        units.append((at + gap, at + gap + length))
        at += gap + length
    cuts = sorted(draw(st.sets(st.integers(0, len(units)))))
    marks = [
        Span(units[first][0], units[after - 1][1], draw(st.sampled_from(["PER", "LOC"])))
        for first, after in zip(cuts[::2], cuts[1::2], strict=False)
    ]
    return units, marks


@given(fitting())
def test_marks_that_fit_the_units_come_back(made):
    units, marks = made
    tags, inexact = tags_of(marks, units)
    assert inexact == 0
    assert in_characters(tags, units) == [(mark.label, mark.start, mark.end) for mark in marks]
    assert len(spans(tags)) == len(marks)


@pytest.mark.parametrize(
    ("mark", "tags", "inexact"),
    [
        ((0, 4), ["B-X", "I-X", "O"], 0),
        ((1, 4), ["B-X", "I-X", "O"], 1),  # begins inside a unit
        ((0, 3), ["B-X", "I-X", "O"], 1),  # ends inside one
        ((2, 7), ["O", "B-X", "I-X"], 0),
        ((2, 5), ["O", "B-X", "O"], 1),  # ends in the space after one
        ((4, 5), ["O", "O", "O"], 1),  # has none
    ],
)
def test_a_mark_that_does_not_fit_gets_whole_units_and_is_counted(mark, tags, inexact):
    assert tags_of([Span(*mark, "X")], [(0, 2), (2, 4), (5, 7)]) == (tags, inexact)


def test_two_marks_in_one_unit_are_one_and_counted():
    tags, inexact = tags_of([Span(0, 1, "X"), Span(1, 2, "Y")], [(0, 2)])
    assert (tags, inexact) == (["B-X"], 2)


def test_examples_are_read_as_they_are_marked():
    marked = Spans("Ada는", [Span(0, 3, "PER")])
    pieces = Units(of="pieces").read(LETTERS, marked.text, marked.words)
    assert pieces == read_pieces(LETTERS, "Ada는")
    assert gold_tags(marked, pieces, Units(of="pieces")) == (["B-PER", "I-PER", "I-PER", "O"], 0)
    tagged = Spans.of_words(["Ada", "lives."], ["B-PER", "O"])
    words = Units().read(LETTERS, tagged.text, tagged.words)
    assert words == read_words(LETTERS, "Ada lives.", [(0, 3), (4, 10)])
    assert gold_tags(tagged, words, Units()) == (["B-PER", "O"], 0)


def test_examples_of_the_other_kind_are_read_as_raw_text():
    """A model of pieces takes no notice of words, and one of words finds them itself where nobody did."""
    tagged, marked = Spans.of_words(["Ada", "lives."], ["B-PER", "O"]), Spans("Ada lives.", [Span(0, 3, "PER")])
    for units in (Units(), Units(of="pieces")):
        read = units.read(LETTERS, marked.text)
        assert gold_tags(marked, read, units)[0][0] == "B-PER"
    assert Units(of="pieces").read(LETTERS, tagged.text, tagged.words) == read_pieces(LETTERS, "Ada lives.")
    assert len(Units().read(LETTERS, marked.text, marked.words).units) == 3


# capitals

FOLDED = Tokenizer.train(TokenizerConfig(kind="wordpiece", vocab_size=120, lowercase=True), [*LINES, *"^" * 50], BERT)


@pytest.mark.parametrize(
    ("text", "words", "pieces"),
    [
        ("Ada lives in OSLO", "ada ^ lives in oslo ^ ^", "ada ^ lives in oslo ^ ^"),
        ("a sea", "a sea", "a sea"),
        ("A I", "a ^ i ^", "a ^ i ^"),
        (
            "U.S. IL-2",
            "u . s . ^ ^ il - 2 ^ ^",
            "u ^ . s ^ . il ^ ^ - 2",
        ),  # words as they are given, or runs of letters
        ("김민서는 Ada는", None, "김민서는 ada는 ^"),
        ("Zoe\u0308", "zoë ^", "zoë ^"),
        ("", "", ""),
    ],
)
def test_capitals_are_marked(text, words, pieces):
    """Each expected text, cut into pieces without marks, is what the other is with them."""
    for of, expected in (("words", words), ("pieces", pieces)):
        if expected is not None:
            read = Units(of=of, peel=False, capitals=True).read(FOLDED, text)
            assert read.ids == FOLDED.encode(expected)
            plain = Units(of=of, peel=False).read(FOLDED, text)
            assert read.units == plain.units
            assert [read.ids[i] for i in read.firsts] == [plain.ids[i] for i in plain.firsts]


@given(text=texts)
def test_marks_of_capitals_carry_no_tag_and_hide_no_piece(text):
    (mark,) = FOLDED.encode("^")
    for of in ("words", "pieces"):
        read, plain = (Units(of=of, peel=False, capitals=capitals).read(FOLDED, text) for capitals in (True, False))
        assert read.units == plain.units
        assert [i for i in read.ids if i != mark] == [i for i in plain.ids if i != mark]
        assert all(0 <= i < len(read.ids) for i in read.firsts)


def test_a_vocabulary_without_the_mark_is_refused():
    with pytest.raises(DataError) as caught:
        Units(capitals=True).read(WORDS, "Ada")
    assert caught.value.code == "data.vocabulary"


@pytest.mark.parametrize(
    "units", [Units(), Units(peel=False, capitals=True), Units(of="pieces", particles=frozenset({"는", "가"}))]
)
def test_units_are_stored_and_found_again(units):
    assert Units.stored(json.loads(json.dumps(units.plain()))) == units
    assert Units.stored({}) == Units()


def test_units_that_nobody_knows_are_refused():
    with pytest.raises(CheckpointError) as caught:
        Units.stored({"units": "letters"})
    assert "jumok.units.of" in str(caught.value)


# particles

PARTICLES = frozenset({"는", "에서", "까지", "의", "이"})
NAMES = Tokenizer.train(TokenizerConfig(kind="wordpiece", vocab_size=200), ["김민서는 서울에서 부산까지"] * 9, BERT)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_piece_never_reaches_from_a_name_into_its_particle(form):
    text = unicodedata.normalize(form, "김민서는 서울에서는 부산까지, 뷁의 의")

    def units(particles):
        read = read_pieces(NAMES, text, particles)
        return [unicodedata.normalize("NFC", text[start:end]) for start, end in read.units], NAMES.pieces(read.ids)

    whole, _ = units(())
    assert whole[:3] == ["김민서는", "서울에서", "는"]
    cut, pieces = units(PARTICLES)
    joined = "|".join(cut)
    for word in ("는|서", "에서|는|", "까지|,", "뷁|의|의"):
        assert word in joined
    assert {"##는", "##까지"} <= {*pieces}  # a part that goes on with its word is marked so
    assert "".join(cut) == unicodedata.normalize("NFC", text).replace(" ", "")


def test_what_follows_names_in_their_words_is_learned_from_the_marks():
    text = "김민서는 서울에서, IL-2의 Ada's 부산"
    marks = [
        Span(text.index(name), text.index(name) + len(name), "X") for name in ("김민서", "서울", "IL-2", "Ada", "부산")
    ]
    assert [*particles_of(Spans(text, marks))] == ["는", "에서", "의"]
    example = Spans(text[:9], marks[:2])
    assert aligned(NAMES, example)[2] == 2
    read, tags, inexact = aligned(NAMES, example, PARTICLES)
    assert (in_characters(tags, read.units), inexact) == ([("X", 0, 3), ("X", 5, 7)], 0)


@each_tokenizer
@given(text=texts)
def test_dividing_pieces_covers_the_same_characters(tokenizer, text):
    def covered(units):
        return {i for start, end in units for i in range(start, end)}

    whole, cut = read_pieces(tokenizer, text), read_pieces(tokenizer, text, PARTICLES | {"a", "b", "글"})
    assert covered(whole.units) == covered(cut.units)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(cut.units))


def test_very_many_particles_are_cut_off_in_time():
    assert len(read_pieces(NAMES, "서" + "는" * 200_000, PARTICLES).units) >= 1


# windows


@each_tokenizer
@given(n=st.integers(0, 60), size=st.integers(5, 30), stride=st.integers(0, 20), pieces=st.booleans())
def test_every_unit_is_asked_for_once_and_where_its_piece_stands(tokenizer, n, size, stride, pieces):
    text = " ".join(["Ada", "서울에서", "in", "😀"][i % 4] for i in range(n))
    read = read_pieces(tokenizer, text) if pieces else read_words(tokenizer, text, split_words(text, peel=False))
    found = windows_of(read, tokenizer, LongTexts(size, "windows", stride))
    assert sorted(unit for window in found for unit in window.units) == list(range(len(read.units)))
    for window in found:
        assert len(window.row) <= size
        asked = [window.row[place] for place in window.places]
        assert asked == [read.ids[read.firsts[unit]] for unit in window.units]
    cut = windows_of(read, tokenizer, LongTexts(size, "truncate"))
    assert len(cut) == 1
    assert cut[0].units == list(range(len(cut[0].units)))


@pytest.mark.parametrize("rule", ["windows", "truncate"])
@pytest.mark.parametrize("crf", [False, True])
def test_a_text_in_windows_has_as_many_tags_as_one_that_is_read_whole(rule, crf):
    torch.manual_seed(1)
    config = RnnConfig(cell="gru", bidirectional=True, d_embedding=8, d_hidden=8)
    model = RnnTagger(config, vocab=LETTERS.vocab_size, n_labels=3, crf=crf).eval()
    both = Tokenizers(LETTERS, LETTERS)
    texts = [Spans(text) for text in ("Ada lives in Oslo " * 9, "", "서울")]

    def tag(max_len, rule="windows"):
        rules = {"max_len": max_len, "long_texts": WindowRule(rule=rule, stride=8)}
        facts = TaggingFacts(labels=["O", "B-X", "I-X"], units={"units": "pieces"}, **rules)
        tagger = Tagger(TorchEngine([model], both), both, facts)
        return tagger.decide([tagger.encode(text, None) for text in texts])

    whole, parts = tag(1000), tag(20, rule)
    for text, a, b in zip(texts, whole, parts, strict=True):
        n = len(read_pieces(LETTERS, text.text).units)
        assert len(a.best) == len(b.best) == n
        assert a.probabilities.shape == b.probabilities.shape == (n, 3)
        assert b.probabilities.sum(axis=1) == pytest.approx(np.ones(n), abs=1e-5)
    assert parts[2].best.tolist() == whole[2].best.tolist()
    if rule == "truncate":
        assert set(parts[0].best[30:].tolist()) == {0}


def test_a_text_of_a_million_characters_is_cut_into_windows_in_time():
    text = "Ada lives in Oslo, near the sea. " * 30_000
    assert len(text) > 900_000
    read = read_pieces(TOKENIZERS["wordpiece"], text)
    found = windows_of(read, TOKENIZERS["wordpiece"], LongTexts(128))
    assert sum(len(window.units) for window in found) == len(read.units) > 100_000


# endings, as a corpus of words splits them


def learned(*lines):
    endings = Endings()
    for line in lines:
        endings.add(line.split())
    return endings.learned()


def test_raw_text_is_split_as_its_corpus_is():
    endings = learned(*["He does n't know Ada 's dog , 'cause it 's old"] * 3, "ca n't", "Don't")
    assert endings == {"n't", "'s"}
    text = "He doesn't, and Ada’s DOG'S 's isn't 5's"
    words = [text[start:end] for start, end in split_words(text, peel=True, endings=endings)]
    assert words == ["He", "does", "n't", ",", "and", "Ada", "’s", "DOG", "'S", "'", "s", "is", "n't", "5's"]
    plain = [text[start:end] for start, end in split_words(text, peel=True)]
    assert plain[:4] == ["He", "doesn't", ",", "and"]


def test_a_corpus_that_keeps_its_endings_teaches_none():
    assert learned(*["She doesn't know Ada's dog"] * 5, "it 's") == frozenset()
    assert learned("it 's", "it 's") == frozenset()  # too few to tell
    units = Units(endings=frozenset({"n't"}))
    assert Units.stored(units.plain()) == units
    assert "endings" not in Units().plain()  # as the folders of earlier versions
