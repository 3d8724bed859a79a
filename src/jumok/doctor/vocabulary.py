"""Examine the vocabulary of training on a sample of the text: known and unknown tokens, and the unigram floor."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from math import exp, log

import numpy as np
import numpy.typing as npt

from jumok.data.cache import Cache
from jumok.data.corpus import Corpus, Texts
from jumok.doctor.curve import IDLE, UNKNOWN, USED, Ground
from jumok.doctor.documents import Survey
from jumok.examples.documents import Sentence
from jumok.examples.plain import Text
from jumok.findings import Finding, Severity, count_words, example, finding
from jumok.recipe import Recipe
from jumok.tasks.checks import DocumentChecks
from jumok.tasks.prepare import LAYOUTS, prepare_tokenizer
from jumok.text.tokenizer import Tokenizer
from jumok.text.vocabulary import MARIAN

PER_WORD = 2.5  # tokens; more are worth a warning
OFTEN = 50  # tokens of text per entry of the vocabulary, from which unused entries are worth a warning
Ids = npt.NDArray[np.int64]

# fmt: off
_MESSAGES = {
    "vocabulary.size": "The vocabulary has {size:,} tokens{learned}; {used:.1f} % of them occur in a sample of {n:,}. A"
        " word has {per_word:.2f} tokens on average; {unknown:.2f} % of the tokens are unknown.",
    "vocabulary.unknown": "{unknown:.1f} % of the tokens are {name}, about which nothing is learned: check for text in"
        " other scripts; a larger tokenizer.vocab_size covers more characters.",
    "vocabulary.fragmented": "A word has {per_word:.2f} tokens on average. A larger tokenizer.vocab_size would split"
        " fewer words and make texts shorter.",
    "vocabulary.unused": "Only {used:.0f} % of the vocabulary occurs in the training text; the weights of the rest are"
        " never trained. A smaller tokenizer.vocab_size is faster.",
    "data.unigram_floor": "The unigram floor is {floor:.2f} nats (perplexity {perplexity:,.0f}): the loss of a"
        " model that knows the frequency of every token and nothing else. A loss that stays there means that the model"
        " has not learned to use the context.",
    "begins": " Training starts near ln V = {ln_v:.2f}.",
}
# fmt: on


@dataclass(frozen=True, slots=True)
class Pieces:
    """A sample of the training text, tokenized as in training."""

    tokenizer: Tokenizer
    sample: Sequence[Sentence]
    ids: Ids
    is_final: bool
    """the vocabulary is the one of training, not one learned from the sample alone"""
    ends: int | None
    """number of text ends, which are predicted like tokens; None if only masked tokens are predicted"""

    @property
    def unknown(self) -> float:
        return float(np.mean(self.ids == self.tokenizer.unk_id)) if len(self.ids) else 0.0

    @property
    def per_word(self) -> float:
        breaks = 0 if self.ends is None else sum(not sentence.first for sentence in self.sample)
        n = len(self.ids) - breaks * len(self.tokenizer.encode("\n"))
        return n / max(sum(count_words(sentence.text) for sentence in self.sample), 1)

    def counts(self) -> Ids:
        """Frequency of each token in the sample; tokens that are never predicted count as 0."""
        counts = np.bincount(self.ids, minlength=self.tokenizer.vocab_size)
        if self.ends is None:
            counts[self.tokenizer.special_ids] = 0
        else:
            counts[self.tokenizer.end_id] += self.ends
        return counts

    def ground(self, survey: Survey) -> Ground:
        counts = self.counts()
        shares = counts[counts > 0] / max(counts.sum(), 1)
        return Ground(
            floor=float(-(shares * np.log(shares)).sum()),
            vocabulary=self.tokenizer.vocab_size,
            used=len(shares) / self.tokenizer.vocab_size,
            unknown=self.unknown,
            repeated=survey.repeated,
        )


def read_pieces(recipe: Recipe, survey: Survey, tokenizer: Tokenizer | None = None) -> Pieces:
    """Tokenize the sample with the given tokenizer, or with the one of training.

    The latter is loaded from the cache, or trained and cached for training. If the text is so large that only part of
    it was examined, the vocabulary is learned from the sample.
    """
    sample = list(survey.sample)
    texts = [sentence.text for sentence in sample]
    is_final = tokenizer is not None or recipe.init is not None or survey.is_whole
    tokenizer = tokenizer or _tokenizer(recipe, survey, texts)
    if not (is_masked := recipe.kind.learns_from_text == "masked"):  # line breaks and text ends are predicted too
        texts = [sentence.text if sentence.first else f"\n{sentence.text}" for sentence in sample]
    rows = tokenizer.encode_batch(texts)
    ids = [i for row in rows for i in row]
    ends = None if is_masked else sum(sentence.first and bool(row) for sentence, row in zip(sample, rows, strict=True))
    return Pieces(tokenizer, sample, np.array(ids, dtype=np.int64), is_final, ends)


def _tokenizer(recipe: Recipe, survey: Survey, sample: Sequence[str]) -> Tokenizer:
    layout = LAYOUTS.get(recipe.model.kind, MARIAN)
    if recipe.init is None and not survey.is_whole:
        return Tokenizer.train(recipe.tokenizer, sample, layout)
    checks = recipe.kind.checks(recipe.task, recipe.data)
    corpus = Corpus[Sentence | Text](recipe.data, "train", seed=recipe.seed)
    texts, key = Texts(corpus, lambda example: [example.text]), [checks.cached_as]
    found = prepare_tokenizer(recipe.tokenizer, texts, key, corpus, Cache.of_user(), layout=layout, start=recipe.init)
    return checks.extended(found, texts if survey.is_whole else sample)


def examine_vocabulary(recipe: Recipe, survey: Survey, checks: DocumentChecks) -> list[Finding]:
    """Examine the documents as training with this recipe will see them."""
    pieces = read_pieces(recipe, survey)
    findings = [*_vocabulary(pieces, recipe), _floor(pieces.ground(survey), recipe)]
    return findings + checks.examine_sample(
        pieces.sample,
        pieces.tokenizer,
        seed=recipe.seed,
        batch_tokens=recipe.train.batch_tokens,
        documents=survey.documents,
    )


def _vocabulary(pieces: Pieces, recipe: Recipe) -> list[Finding]:
    n, size, used = len(pieces.ids), pieces.tokenizer.vocab_size, int((pieces.counts() > 0).sum())
    n_unknown = int((pieces.ids == pieces.tokenizer.unk_id).sum())
    facts = {"size": size, "n": n, "used": 100 * used / size}
    facts |= {"per_word": pieces.per_word, "unknown": 100 * pieces.unknown}
    names = {
        "name": pieces.tokenizer.layout.unknown,
        "learned": "" if pieces.is_final else ", learned from the sample alone",
    }

    def about(code: str, severity: Severity, count: int, of: int, examples: Sequence[str] = ()) -> Finding:
        return finding(code, severity, count, max(of, 1), _MESSAGES[code].format(**facts, **names), examples)

    findings = [about("vocabulary.size", "note", used, size)]
    if pieces.unknown > UNKNOWN:
        findings.append(about("vocabulary.unknown", "warning", n_unknown, n, _with_unknown(pieces)))
    if pieces.per_word > PER_WORD:
        findings.append(about("vocabulary.fragmented", "warning", n, n))
    is_own = recipe.init is None
    if is_own and used < USED * size and n > OFTEN * size and size - used > IDLE:
        findings.append(about("vocabulary.unused", "warning", size - used, size))
    return findings


def _with_unknown(pieces: Pieces) -> list[str]:
    unknown, encode = pieces.tokenizer.unk_id, pieces.tokenizer.encode
    found = (sentence for sentence in pieces.sample if unknown in encode(sentence.text))
    return [example(sentence.where, sentence.text) for sentence in islice(found, 5)]


def _floor(ground: Ground, recipe: Recipe) -> Finding:
    message = _MESSAGES["data.unigram_floor"].format(floor=ground.floor, perplexity=exp(ground.floor))
    message += _MESSAGES["begins"].format(ln_v=log(ground.vocabulary)) if recipe.init is None else ""
    return finding("data.unigram_floor", "note", 1, 1, message)
