"""The doctor on what a pre-training will see: its numbers are right, and wrong rates do not escape it."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumok.data.cache import Cache
from jumok.data.masking import Masking
from jumok.data.packing import Reader
from jumok.data.passages import Pairs, TextPair, read_passages
from jumok.doctor import documents, examine_data, examine_documents
from jumok.doctor.documents import Survey
from jumok.doctor.vocabulary import examine_vocabulary, read_pieces
from jumok.errors import DataError
from jumok.findings import Finding
from jumok.recipe import Recipe, load_recipe
from jumok.tasks.checks import DocumentChecks
from jumok.tasks.pretraining import PretrainingConfig
from jumok.tasks.pretraining.checks import Masked, is_off, read_batches

NOUNS = ["harbour", "lantern", "orchard", "violin", "thunder", "meadow", "saddle", "candle", "anchor", "blanket"]
VERBS = ["creaks", "glimmers", "rattles", "wanders", "settles", "trembles", "whistles"]
Write = Callable[..., Recipe]


def story(i: int, n: int = 4) -> list[str]:
    """n sentences about one thing."""
    noun = NOUNS[i % len(NOUNS)]
    return [f"The {noun} {VERBS[(i + 3 * k) % len(VERBS)]} {'again ' * ((i + k) % 3)}today." for k in range(n)]


STORIES = [story(i) for i in range(120)]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """A recipe over documents that are written to a file."""
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))

    def write(
        texts: Iterable[Iterable[str]] = STORIES, vocabulary: int = 120, model: str = "bert", **task: Any
    ) -> Recipe:
        (tmp_path / "a.txt").write_text("\n\n".join("\n".join(text) for text in texts) + "\n", "utf-8")
        (tmp_path / "dev.txt").write_text("A fox.\nIt runs.\n", "utf-8")
        task = {"kind": "pretraining" if model == "bert" else "language_model", **task}
        said = ", ".join(
            f"{key} = {str(value).lower() if value in (True, False) else repr(value)}" for key, value in task.items()
        )
        kind = "wordpiece" if model == "bert" else "byte_bpe"
        (tmp_path / "r.toml").write_text(
            f"""
            task = {{ {said} }}
            data = {{ kind = "documents", train = ["a.txt"], dev = ["dev.txt"], max_len = 48 }}
            tokenizer = {{ kind = "{kind}", vocab_size = {vocabulary} }}
            model = {{ kind = "{model}", d_model = 8, n_heads = 2, d_ff = 8, n_layers = 1, max_len = 48 }}
            train = {{ batch_tokens = 512, metric = "{"masked_accuracy" if model == "bert" else "perplexity"}" }}
            """,
            "utf-8",
        )
        return load_recipe(tmp_path / "r.toml")

    return write


def surveyed(recipe: Recipe) -> Survey:
    _, survey = examine_documents(recipe.data, seed=recipe.seed)  # type: ignore[arg-type]
    assert survey is not None
    return survey


def examined(recipe: Recipe) -> dict[str, Finding]:
    checks = recipe.kind.checks(recipe.task, recipe.data)
    assert isinstance(checks, DocumentChecks)
    findings = examine_vocabulary(recipe, surveyed(recipe), checks)
    assert len({found.code for found in findings}) == len(findings)
    return {found.code: found for found in findings}


def reader_of(recipe: Recipe) -> Reader:
    pieces = read_pieces(recipe, surveyed(recipe))
    assert isinstance(recipe.task, PretrainingConfig)
    passages = read_passages(pieces.sample, pieces.tokenizer, recipe.data.max_len)
    return Reader(recipe.task, pieces.tokenizer, passages, max_len=recipe.data.max_len, seed=1)


def test_a_healthy_text_has_notes_alone(write: Write) -> None:
    found = examined(write())
    assert {finding.severity for finding in found.values()} == {"note"}
    assert set(found) == {
        "vocabulary.size",
        "data.unigram_floor",
        "data.passages",
        "data.masking",
        "data.next_sentence",
    }


class TestVocabulary:
    def test_the_floor_is_the_entropy_of_the_pieces(self, write: Write) -> None:
        recipe = write()
        pieces = read_pieces(recipe, surveyed(recipe))
        counts = Counter(i for text in STORIES for line in text for i in pieces.tokenizer.encode(line))
        n = counts.total()
        floor = -sum(k / n * log(k / n) for k in counts.values())
        ground = pieces.ground(surveyed(recipe))
        assert ground.floor == pytest.approx(floor)
        assert ground.used == len(counts) / pieces.tokenizer.vocab_size
        message = examined(recipe)["data.unigram_floor"].message
        assert f"floor is {floor:.2f} nats" in message
        assert f"ln V = {log(pieces.tokenizer.vocab_size):.2f}" in message

    def test_special_pieces_have_no_part_in_the_floor(self, write: Write) -> None:
        text = [["ab ab 漢 字 ab ab ab ab 한 글", "ab"]] * 2
        recipe = write(text, vocabulary=13, next_sentence=False)  # room for two characters
        pieces = read_pieces(recipe, surveyed(recipe))
        assert pieces.unknown == pytest.approx(4 / 11)
        ground = pieces.ground(surveyed(recipe))
        assert (ground.floor, ground.unknown) == (pytest.approx(0), pieces.unknown)

    def test_unknown_characters_are_found_and_shown(self, write: Write) -> None:
        strange = [[f"{chr(0xAC00 + 7 * i)}{chr(0xB000 + 5 * i)} 온다."] for i in range(60)]
        finding = examined(write([*STORIES, *strange]))["vocabulary.unknown"]
        assert finding.severity == "warning"
        assert 0.01 < finding.share < 0.2
        assert "[UNK]" in finding.message
        assert all("온다" in example for example in finding.examples)

    def test_words_cut_into_many_pieces_are_found(self, write: Write) -> None:
        texts = [[f"{word}{word[::-1]}" for word in NOUNS[i % 5 :]] for i in range(20)]
        found = examined(write(texts, vocabulary=100, next_sentence=False))
        assert found["vocabulary.fragmented"].severity == "warning"
        assert "vocabulary.unknown" not in found

    def test_pieces_that_never_occur_are_found(self, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("jumok.doctor.vocabulary.IDLE", 10)
        monkeypatch.setattr("jumok.doctor.vocabulary.OFTEN", 5)
        recipe = write([["aaaaaaaaaa bbbbbbbbbb."]] * 300, vocabulary=60, next_sentence=False)
        assert examined(recipe)["vocabulary.unused"].severity == "warning"

    def test_the_vocabulary_is_that_of_the_training_and_is_left_for_it(self, write: Write) -> None:
        recipe = write()
        pieces = read_pieces(recipe, surveyed(recipe))
        assert pieces.is_final
        assert recipe.kind.prepare(recipe, Cache.of_user()).tokenizers.source.sha256 == pieces.tokenizer.sha256
        assert len(list((Cache.of_user().folder / "tokenizers").iterdir())) == 1

    def test_of_a_text_too_large_the_sample_is_enough(self, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(documents, "MOST", 100)
        recipe = write()
        finding = examined(recipe)["vocabulary.size"]
        assert "learned from the sample alone" in finding.message
        assert not (Cache.of_user().folder / "tokenizers").exists()


class TestPassages:
    def test_what_packing_fills_and_what_padding_would_waste(self, write: Write) -> None:
        # Of 21 pieces each, with [CLS] and [SEP] 23, so that two stand in a row.
        texts = [[" ".join(["ab"] * 20) + "."] for _ in range(40)]
        message = examined(write(texts, next_sentence=False))["data.passages"].message
        assert "data.max_len = 48: always 1. They have 21 tokens on average." in message
        assert f"one per row would fill {100 * 23 / 48:.1f} %" in message
        packed = re.search(r"Packed, they fill ([\d.]+) % of a batch", message)
        assert packed
        assert 95 < float(packed[1]) < 98  # the last of an odd number has half a row

    def test_documents_of_one_sentence_are_refused_as_the_training_refuses_them(self, write: Write) -> None:
        alone = [text[:1] for text in STORIES]
        recipe = write(alone)
        finding = examined(recipe)["data.next_sentence"]
        assert (finding.severity, "training will refuse" in finding.message) == ("error", True)
        with pytest.raises(DataError) as caught:
            recipe.kind.prepare(recipe, Cache.of_user())
        assert caught.value.code == "data.no_pairs"
        assert "data.next_sentence" not in examined(write(alone, next_sentence=False))

    @pytest.mark.parametrize(("alone", "severity"), [(100, "note"), (500, "warning")])
    def test_how_many_pairs_there_are(self, write: Write, alone: int, severity: str) -> None:
        texts = [*STORIES[:100], *(story(i, n=1) for i in range(alone))]
        finding = examined(write(texts))["data.next_sentence"]
        assert finding.severity == severity
        unasked = re.search(r"([\d.]+) % of the passages are not pairs", finding.message)
        assert unasked
        assert abs(float(unasked[1]) - 100 * alone / (100 + alone)) < 3  # of 1,000 texts, drawn as in training
        assert 0.4 < finding.share < 0.6

    def test_one_document_is_a_warning(self, write: Write) -> None:
        finding = examined(write([[line for text in STORIES for line in text]]))["data.one_document"]
        assert finding.severity == "warning"


def hide_by_piece(self: Masking, ids: Any, *, rng: np.random.Generator) -> Any:
    """What others do: pieces are drawn, and the words that they are of are masked, long ones more often than short."""
    ordinary = np.flatnonzero(self._is_ordinary(ids))
    goes_on = self.goes_on[ids[ordinary]]
    words = np.cumsum(~goes_on) - goes_on[0]
    hit = np.unique(words[rng.random(len(ordinary)) < self.share])
    at = ordinary[np.isin(words, hit)]
    hidden = ids.copy()
    hidden[at] = self.mask_id
    return hidden, at


class TestMasking:
    @pytest.mark.parametrize("whole_words", [False, True])
    @pytest.mark.parametrize("share", [0.15, 0.4])
    def test_right_rates_are_within_chance(self, write: Write, whole_words: bool, share: float) -> None:
        recipe = write(whole_words=whole_words, mask_share=share, vocabulary=60)
        reader = reader_of(recipe)
        counted = Masked.of(reader, read_batches(reader, 512))
        assert counted.off(share) == []
        assert counted.masked == pytest.approx(share * counted.tokens, rel=0.05)
        assert counted.hidden == pytest.approx(0.8 * counted.masked, rel=0.05)
        assert (len(counted.words) > 2) == whole_words
        finding = counted.finding(recipe.task)  # type: ignore[arg-type]
        assert finding.severity == "note"
        assert ("by their number of tokens: 1: " in finding.message) == whole_words

    def test_the_count_is_that_of_a_plain_loop(self, write: Write) -> None:
        reader = reader_of(write(whole_words=True, vocabulary=60))
        batches = read_batches(reader, 512)
        counted = Masked.of(reader, batches)
        words, chosen = Counter[int](), Counter[int]()
        for batch in batches:
            masked = dict(zip(batch.masked.tolist(), batch.targets.tolist(), strict=True))
            word: list[bool] = []
            for at, i in enumerate([*batch.ids.flatten().tolist(), reader.tokenizer.pad_id]):
                (piece,) = reader.tokenizer.pieces([masked.get(at, i)])
                special = masked.get(at, i) in reader.tokenizer.special_ids
                if word and (special or not piece.startswith("##")):
                    words[min(len(word), 4)] += 1
                    chosen[min(len(word), 4)] += all(word)
                    word = []
                word += [] if special else [at in masked]
        assert (counted.words, counted.chosen) == (words, chosen)

    @pytest.mark.parametrize(
        ("changed", "what"),
        [({"share": 0.2}, "masked"), ({"masked": 1.0}, "[MASK]"), ({"masked": 0.9, "random": 0.0}, "another token")],
    )
    def test_wrong_rates_are_an_error(
        self, write: Write, monkeypatch: pytest.MonkeyPatch, changed: dict[str, float], what: str
    ) -> None:
        made = Masking.__init__

        def other(self: Masking, share: float, *rest: Any) -> None:
            made(self, changed.get("share", share), *rest, **{k: v for k, v in changed.items() if k != "share"})

        monkeypatch.setattr(Masking, "__init__", other)
        finding = examined(write())["data.masking"]
        assert finding.severity == "error"
        assert what in finding.message.split("not chance")[1]

    def test_whole_words_that_are_masked_more_the_longer_they_are(
        self, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Masking, "hide", hide_by_piece)
        finding = examined(write(whole_words=True, vocabulary=60))["data.masking"]
        assert finding.severity == "error"
        assert "words of 4 tokens" in finding.message

    @pytest.mark.parametrize("where", [0, 1])
    def test_special_pieces_and_parts_of_words_are_never_masked(
        self, write: Write, monkeypatch: pytest.MonkeyPatch, where: int
    ) -> None:
        hide = Masking.hide

        def wrong(self: Masking, ids: Any, *, rng: np.random.Generator) -> Any:
            hidden, at = hide(self, ids, rng=rng)
            return hidden, np.union1d(at, [0]) if where == 0 else at[:-1]  # [CLS], or a word without its last piece

        monkeypatch.setattr(Masking, "hide", wrong)
        finding = examined(write(whole_words=True, vocabulary=60))["data.masking"]
        assert finding.severity == "error"
        assert "special tokens, or parts of words" in finding.message

    def test_pairs_that_all_follow_are_an_error(self, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
        def follow(self: Pairs, i: int, *, epoch: int) -> TextPair:
            text = self.passages.text[i].tolist()
            return TextPair(text[:5], text[5:], True)

        monkeypatch.setattr(Pairs, "make", follow)
        finding = examined(write())["data.next_sentence"]
        assert (finding.severity, finding.share) == ("error", 1)

    @pytest.mark.parametrize(
        ("count", "share", "n", "off"),
        [
            (150, 0.15, 1000, False),
            (194, 0.15, 1000, False),
            (196, 0.15, 1000, True),
            (104, 0.15, 1000, True),
            (9, 0.1, 20, False),
        ],
    )
    def test_four_standard_deviations_are_chance(self, count: int, share: float, n: int, off: bool) -> None:
        assert is_off(count, share, n) == off


def test_a_language_model_over_documents_has_a_vocabulary_and_a_floor(write: Write) -> None:
    assert set(examined(write(model="gpt", vocabulary=300))) == {"vocabulary.size", "data.unigram_floor"}


def test_the_doctor_takes_the_recipe(write: Write, tmp_path: Path) -> None:
    write()
    findings = examine_data([tmp_path / "r.toml"])
    assert {"data.counts", "data.masking", "data.unigram_floor"} <= {found.code for found in findings}
    order = ["error", "warning", "note"]
    assert [order.index(found.severity) for found in findings] == sorted(order.index(f.severity) for f in findings)


def test_what_cannot_be_read_is_not_learned_from(write: Write, tmp_path: Path) -> None:
    write()
    (tmp_path / "a.txt").write_bytes(b"It rains.\n\n" + "한글\n".encode("cp949"))
    codes = {found.code for found in examine_data([tmp_path / "r.toml"])}
    assert "data.encoding" in codes
    assert "vocabulary.size" not in codes
