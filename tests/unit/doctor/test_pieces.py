"""Lengths in pieces of the vocabulary that training will use, and one that spells the language letter by letter."""

from dataclasses import replace
from pathlib import Path

import pytest

from jumok.doctor import examine_data
from jumok.doctor.pieces import examine_pieces
from jumok.recipe import load_recipe
from jumok.text.tokenizer import Tokenizer
from jumok.text.vocabulary import TokenizerConfig

ENGLISH = ["the old bridge is closed", "a boat lies at the quay", "she reads by the window"] * 20
KOREAN = ["오래된 다리는 닫혀 있다", "배 한 척이 부두에 있다", "그녀는 창가에서 책을 읽는다"] * 20


def recipe(folder: Path, texts: list[str], language: str, **more: str) -> Path:
    for split in ("train", "dev", "test"):
        rows = "".join(f"{text} {split}\t{n % 2}\n" for n, text in enumerate(texts))
        (folder / f"{split}.tsv").write_text("text\tlabel\n" + rows, "utf-8")
    lines = ["[data]", 'kind = "labelled"', f'language = "{language}"', "max_len = 16"]
    lines += [f'{split} = ["{folder / split}.tsv"]' for split in ("train", "dev", "test")]
    lines += [f"{key} = {value}" for key, value in more.items()]
    lines += ["[task]", 'kind = "classification"', "[model]", 'kind = "rnn"', "[train]", "steps = 1"]
    lines += ["[tokenizer]", "vocab_size = 400"]
    path = folder / "r.toml"
    path.write_text("\n".join(lines), "utf-8")
    return path


@pytest.mark.parametrize(("texts", "language"), [(ENGLISH, "en"), (KOREAN, "ko")])
def test_lengths_are_told_in_pieces_for_every_split(tmp_path: Path, texts: list[str], language: str) -> None:
    found = {finding.code: finding for finding in examine_data([recipe(tmp_path, texts, language)])}
    lengths = found["vocabulary.lengths"]
    assert lengths.severity == "note"
    assert all(f"{split} median" in lengths.message for split in ("train", "dev", "test"))
    assert "vocabulary.letters" not in found


def test_an_english_vocabulary_spells_korean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As MiniLM's does; what to import instead is told."""
    english = Tokenizer.train(TokenizerConfig(kind="bpe", vocab_size=400), ENGLISH)
    monkeypatch.setattr("jumok.doctor.pieces._imported", lambda start: english)
    for texts, language, spelled in ((KOREAN, "ko", True), (ENGLISH, "en", False)):
        known = replace(load_recipe(recipe(tmp_path, texts, language)), init=str(tmp_path))
        checks = known.kind.checks(known.task, known.data)
        found = {finding.code: finding for finding in examine_pieces(known, checks)}
        assert ("vocabulary.letters" in found) == spelled
        if spelled:
            assert "klue/bert-base" in found["vocabulary.letters"].message
            assert found["vocabulary.lengths"].count > 0  # longer than data.max_len
            assert found["vocabulary.lengths"].severity == "note"  # read in windows


def test_texts_that_are_cut_are_a_warning(tmp_path: Path) -> None:
    texts = [" ".join(ENGLISH[:4])] * 40
    found = {f.code: f for f in examine_data([recipe(tmp_path, texts, "en", long_texts='"truncate"')])}
    assert (found["vocabulary.lengths"].severity, found["vocabulary.lengths"].count) == ("warning", 120)
