"""Placeholders in slots: nothing is lost, offsets are those of the text, translations use their source's numbers."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from jumok.config import read_config
from jumok.errors import RecipeError
from jumok.text.placeholders import find_units
from jumok.text.slots import SLOTS, fill, hide
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import TokenizerConfig
from jumok.text.words import at_spaces

LINES = [
    "Cannot open file '%s': %d errors",
    "파일 '%s'을(를) 열 수 없습니다: 오류 %d개",
    "see :meth:`foo.bar`\\를 <b>굵게</b> at https://a.org/x",
    "&File 파일(&F) {name}",
]
CONFIG = TokenizerConfig(vocab_size=400, placeholders=True)
BPE = Tokenizer.train(CONFIG, LINES)
WITHOUT = Tokenizer.train(TokenizerConfig(vocab_size=400), LINES)
MANY = " ".join(f"{{a{i}}}" for i in range(len(SLOTS) + 4))

pieces = st.sampled_from(
    ["%s", "%d", "%1$s", "{0}", "{name}", "{{ a }}", "<b>", "</b>", '<a href="x y">', "https://a.org/x", "me@a.org"]
    + [":meth:`a.b`", ":ref:`이름 <a>`", "``a  b``", "&amp;", "$HOME", "&File", "(&F)", "을", "를", "(", "'", "a", " "]
    + ["e\u0301", "\u1112\u1161\u11ab", "한글", ".", "😀", "\t", "▁"]
)
texts = st.lists(pieces, max_size=9).map("".join)
many = settings(max_examples=200, deadline=None)


def folded(text):
    """Around placeholders, blanks are folded and the mark of spaces is taken away, as without slots."""
    hidden = hide(text)
    return fill(WITHOUT.decode(WITHOUT.encode(hidden.text)), hidden.fillings)


@many
@given(texts)
@example(MANY)
@example(SLOTS)
def test_what_is_encoded_comes_back(text):
    bound = BPE.filled(text)
    assert bound.decode(bound.encode(text)) == folded(text)


@many
@given(texts)
def test_placeholders_come_back_exactly(text):
    bound = BPE.filled(text)
    found = bound.decode(bound.encode(text))
    assert all(unit.text in found for unit in find_units(text) if "\t" not in unit.text)


@many
@given(texts)
def test_offsets_are_those_of_the_text(text):
    bound = BPE.filled(text)
    encoded = bound.encode_with_offsets(text)
    assert encoded.ids == bound.encode(text) == BPE.encode(text) == BPE.encode_batch([text])[0]
    starts = [start for start, _ in encoded.offsets]
    assert starts == sorted(starts)
    assert all(0 <= start <= end <= len(text) for start, end in encoded.offsets)
    for number, (start, end) in zip(encoded.ids, encoded.offsets, strict=True):
        if number in bound.slot_ids and not re.search("[\u0300-\u036f]", text):
            assert any((unit.start, unit.end) == (start, end) for unit in find_units(text))


@many
@given(texts, texts)
def test_a_target_is_read_with_the_numbers_of_its_source(source, target):
    bound = BPE.filled(source)
    ids = bound.encode(target)
    assert ids == BPE.encode_batch([target], sources=[source])[0]
    hidden = hide(target, hide(source).fillings)
    assert fill(hidden.text, hidden.fillings) == target.translate(dict.fromkeys(map(ord, SLOTS), "\ufffd"))


def test_equal_placeholders_share_a_slot():
    assert hide("%s of %s and %d").text == f"{SLOTS[0]} of {SLOTS[0]} and {SLOTS[1]}"
    assert hide("%d, not %i, %s", hide("%s, %d").fillings).text == f"{SLOTS[1]}, not %i, {SLOTS[0]}"


def test_those_beyond_the_last_slot_are_spelled():
    hidden = hide(MANY)
    assert len(hidden.fillings) == len(SLOTS)
    assert hidden.text.endswith(f"{SLOTS[-1]} {{a16}} {{a17}} {{a18}} {{a19}}")
    assert BPE.filled(MANY).decode(BPE.encode(MANY)) == MANY


def test_an_accelerator_takes_the_form_of_its_place():
    fillings = hide("&File").fillings
    assert hide("파일(&F)", fillings).text == f"파일{SLOTS[0]}"
    assert [fill(f"파일{SLOTS[0]}...", fillings), fill(f"{SLOTS[0]}Datei", fillings)] == ["파일(&F)...", "&Datei"]
    assert hide("파일(&I)", fillings).text == "파일(&I)"  # another letter is not the source's


def test_characters_that_no_text_has_are_not_taken_for_slots():
    assert hide(f"a{SLOTS[2]}b").text == "a\ufffdb"


def test_slots_show_what_they_stand_for():
    ids = BPE.encode("open %s")
    assert BPE.filled("open %s").pieces(ids)[-1] == "%s"
    assert BPE.pieces(ids)[-1] == "⟦1⟧"
    assert BPE.decode(ids) == "open ⟦1⟧"
    assert BPE.filled("nothing").decode(ids).strip() == "open"
    assert len(set(BPE.pieces(range(BPE.vocab_size)))) == BPE.vocab_size
    assert BPE.filled("%s").empty_slots == BPE.slot_ids[1:]


def test_words_beside_slots_are_still_looked_up_once():
    assert BPE._cut is at_spaces
    assert Tokenizer.from_json(BPE.to_json())._cut is at_spaces


@pytest.mark.parametrize("kind", ["bpe", "character", "word"])
def test_transformers_reads_a_text_with_slots_as_we_do(kind, tmp_path):
    ours = Tokenizer.train(TokenizerConfig(kind=kind, vocab_size=400, placeholders=True), LINES)
    ours.save(tmp_path / "tokenizer.json")
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    for line in LINES:
        ids = theirs(hide(line).text, add_special_tokens=False)["input_ids"]
        assert ids == ours.encode(line) == again.encode(line)
        assert set(ids) & set(again.slot_ids)


def test_a_vocabulary_without_the_option_is_as_before():
    assert WITHOUT.slot_ids == []
    assert WITHOUT.filled("%s") is WITHOUT
    assert Tokenizers(WITHOUT, WITHOUT).filled("%s").source is WITHOUT
    assert not set(SLOTS) & set("".join(WITHOUT.pieces(range(WITHOUT.vocab_size))))


@pytest.mark.parametrize("tree", [{"kind": "wordpiece"}, {"kind": "byte_bpe"}, {"vocab_size": 262}])
def test_vocabularies_that_cannot_have_slots_are_refused(tree):
    with pytest.raises(RecipeError) as caught:
        read_config(TokenizerConfig, {"placeholders": True, **tree}, what="the recipe", path="tokenizer")
    assert caught.value.code == "recipe.mismatch"
