"""Texts as training will see them: their lengths in pieces of its vocabulary, and a vocabulary of another language."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from jumok.data.corpus import Corpus
from jumok.errors import JumokError
from jumok.examples import SPLITS
from jumok.examples.pairs import Pair
from jumok.findings import Finding, finding
from jumok.hub.files import model_folder
from jumok.hub.tokenizer import read_tokenizers
from jumok.recipe import Recipe
from jumok.tasks.checks import Checks, TextChecks
from jumok.tasks.prepare import LAYOUTS
from jumok.text.language import WORD
from jumok.text.normalise import compose
from jumok.text.tokenizer import Tokenizer
from jumok.text.vocabulary import MARIAN

SAMPLE = 10_000
"""texts of a split that are read"""
WORDS = 2_000
"""texts whose words are counted, too"""
SPELLED = 0.9
"""pieces for each letter of a word, from which a vocabulary spells; learned vocabularies have half of that or less"""
LONG = 0.05
"""share of texts longer than the model reads at once that is worth a warning where they are skipped or cut"""
_HAN_OR_KANA = re.compile("[ぁ-ヿ㐀-鿿]")
_KNOWS = {"ko": "klue/bert-base"}
"""for a language, a model of the hub whose vocabulary was learned from it"""

# fmt: off
_MESSAGES = {
    "lengths": "{splits}. A word has {per_word:.2f} pieces on average with {vocabulary}; the model reads {max_len} at"
        " once.",
    "long": " Longer texts: {long}, which are {fate}.",
    "letters": "The vocabulary of {vocabulary} spells {texts} letter by letter: {per_letter:.1f} pieces for a letter of"
        " their words. Its weights know nothing of these words, and texts become several times longer. Import a model"
        " whose vocabulary was learned from this language ({model}), or pre-train one.",
}
# fmt: on


@dataclass(frozen=True, slots=True)
class _Side:
    """Texts that share a vocabulary: all of them, or one side of pairs."""

    name: str
    language: str
    tokenizer: Tokenizer
    splits: Mapping[str, Sequence[str]]


def examine_pieces(recipe: Recipe, checks: Checks, features: str | None = None) -> list[Finding]:
    """Lengths in pieces of the vocabulary that training will use; one that is learned is learned from a sample here.

    `features` are those that the file of the recipe names: where they are missing, the recipe is read without them.
    """
    if not isinstance(checks, TextChecks) and recipe.task.kind != "translation":
        return []
    start = recipe.init or recipe.features or features
    if start is not None and not Path(start).is_dir():
        message = f"The weights to start from ({start}) are missing: their vocabulary was not tried on the texts."
        return [finding("recipe.weights", "note", 0, 1, message)]
    try:
        sides = [*_sides(recipe, checks, start)]
    except JumokError:
        return []  # what is wrong with the vocabulary or the data is told elsewhere
    return [found for side in sides for found in _examine(side, recipe, start)]


def _sides(recipe: Recipe, checks: Checks, start: str | None) -> Iterator[_Side]:
    splits: dict[str, list[Any]] = {}
    for split in SPLITS:
        corpus = Corpus[Any](recipe.data, split, seed=recipe.seed)
        splits[split] = [*islice(corpus, SAMPLE)] if corpus.exists() else []
    layout = LAYOUTS.get(recipe.model.kind, MARIAN)

    def tokenizer(texts: Iterable[str]) -> Tokenizer:
        if start is not None:
            return _imported(start)
        return Tokenizer.train(recipe.tokenizer, texts, layout)

    if isinstance(checks, TextChecks):
        texts = {split: [" ".join(checks.view(example).texts) for example in some] for split, some in splits.items()}
        yield _Side("texts", recipe.data.language, tokenizer(texts["train"]), texts)
        return
    pairs: dict[str, list[Pair]] = splits
    sources = {split: [pair.source for pair in some] for split, some in pairs.items()}
    targets = {split: [pair.gold for pair in some] for split, some in pairs.items()}
    if recipe.tokenizer.joint:
        one = other = tokenizer([*sources["train"], *targets["train"]])
    else:
        one, other = tokenizer(sources["train"]), tokenizer(targets["train"])
    yield _Side("sources", recipe.data.source, one, sources)
    yield _Side("targets", recipe.data.target, other, targets)


def _imported(start: str) -> Tokenizer:
    return read_tokenizers(model_folder(Path(start))).source


def _examine(side: _Side, recipe: Recipe, start: str | None) -> Iterator[Finding]:
    max_len = recipe.data.max_len
    vocabulary = start or f"the vocabulary of {side.tokenizer.vocab_size:,} pieces that training learns"
    lengths = {
        split: np.array([len(ids) for ids in side.tokenizer.encode_batch([*texts])])
        for split, texts in side.splits.items()
        if texts
    }
    n = sum(map(len, lengths.values()))
    if not n:
        return
    words = sum(len(text.split()) for texts in side.splits.values() for text in texts)
    said = f"Pieces of the {side.name}: " + "; ".join(_quantiles(split, found) for split, found in lengths.items())
    facts: dict[str, Any] = {"splits": said, "vocabulary": vocabulary, "max_len": max_len}
    facts["per_word"] = sum(int(found.sum()) for found in lengths.values()) / max(words, 1)
    long = {split: int((found > max_len).sum()) for split, found in lengths.items()}
    message, total = _MESSAGES["lengths"].format(**facts), sum(long.values())
    rule = getattr(recipe.data, "long_texts", "skip")
    if total:
        shown = ", ".join(f"{split} {count:,} of {len(lengths[split]):,}" for split, count in long.items() if count)
        fate = {"windows": "read in windows", "truncate": "cut there", "refuse": "refused"}
        message += _MESSAGES["long"].format(long=shown, fate=fate.get(rule, "left out of training"))
    lost = total > LONG * n and rule != "windows"
    yield finding("vocabulary.lengths", "warning" if lost else "note", total, n, message)
    if start is not None:
        yield from _spelled(side, vocabulary)


def _quantiles(split: str, lengths: Any) -> str:
    half, most, longest = (int(value) for value in np.percentile(lengths, [50, 95, 100]))
    first = f" (the first {SAMPLE:,})" if len(lengths) == SAMPLE else ""
    return f"{split}{first} median {half:,}, 95 % at most {most:,}, longest {longest:,}"


def _spelled(side: _Side, vocabulary: str) -> Iterator[Finding]:
    """Whether imported pieces spell words that they were not made for: MiniLM's has no Korean beyond its letters."""
    texts = [" ".join(WORD.findall(compose(text))) for text in next(filter(None, side.splits.values()))[:WORDS]]
    letters = sum(len(text) - text.count(" ") for text in texts)
    if side.tokenizer.kind == "character" or not letters:
        return
    if sum(len(_HAN_OR_KANA.findall(text)) for text in texts) > letters / 2:
        return  # where a letter is a word
    pieces = sum(map(len, side.tokenizer.encode_batch(texts)))
    if pieces < SPELLED * letters:
        return
    model = _KNOWS.get(side.language, "google-bert/bert-base-multilingual-cased")
    language = f"{side.name} in {side.language}" if side.language else f"the {side.name}"
    facts = {"vocabulary": vocabulary, "texts": language, "per_letter": pieces / letters, "model": model}
    yield finding("vocabulary.letters", "warning", len(texts), len(texts), _MESSAGES["letters"].format(**facts))
