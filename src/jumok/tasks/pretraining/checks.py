"""The doctor's rules for pre-training: passages, pairs and masking, measured on a sample.

The sample is read by training's own code: the rates reported here are those that a model will see.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import sqrt

import numpy as np

from jumok.data.packing import Packed, Reader
from jumok.data.passages import FRAME_OF_PAIR, read_passages
from jumok.examples.documents import Sentence
from jumok.findings import Finding, Severity, finding, quartiles
from jumok.tasks.checks import DocumentChecks
from jumok.tasks.pretraining import PretrainingConfig, extended_tokenizer
from jumok.text.tokenizer import Tokenizer

TEXTS = 1000  # of the sample, read as in training
SIGMAS, ENOUGH = 4, 10  # a count this far from its expectation is not chance, unless the variance is too small
UNPAIRED = 0.75  # next-sentence prediction hardly learns if more texts than this cannot be split in two
FOUR = 4  # longer words, in tokens, are counted with these

# fmt: off
_MESSAGES = {
    "passages": "Passages per document at data.max_len = {max_len}: {per_document}. They have {mean:.0f} tokens on"
        " average. Packed, they fill {packed:.1f} % of a batch; one per row would fill {alone:.1f} %, and the rest"
        " would be padding.",
    "no_pairs": "No two passages of at least two sentences have second parts of the same length. Next-sentence"
        " prediction needs some, so training will refuse this: set task.next_sentence = false, or check data.format and"
        " data.split_sentences.",
    "pairs": "Next-sentence prediction: {unpaired:.1f} % of the passages are not pairs, because they are a single"
        " sentence or no other second part is as long as theirs. In {follow:.1f} % of {n:,} pairs B follows A (50 %"
        " expected).",
    "few_pairs": " So few pairs teach little: set task.next_sentence = false, or check whether headings and lines are"
        " read as documents (data.format).",
    "one_document": "There is only one document, so a B that does not follow A comes from the same document and is"
        " hard to recognise. Check data.format, or set task.next_sentence = false.",
    "masking": "Of {tokens:,} tokens {masked:.2f} % are masked ({wanted:g} % expected); {hidden:.1f} % of these become"
        " [MASK], {other:.1f} % another token, {same:.1f} % stay (80, 10 and 10 expected).",
    "whole_words": " Masked words by their number of tokens: {rates}.",
    "not_chance": " This is not chance ({what}) but a bug in jumok: please report it.",
}
# fmt: on


class PretrainingChecks(DocumentChecks):
    cached_as = "documents"

    def extended(self, tokenizer: Tokenizer, texts: Iterable[str]) -> Tokenizer:
        return extended_tokenizer(tokenizer, texts, self.config.new_pieces)

    def examine_sample(
        self, sample: Sequence[Sentence], tokenizer: Tokenizer, *, seed: int, batch_tokens: int, documents: int
    ) -> list[Finding]:
        config: PretrainingConfig = self.config
        passages = read_passages(sample, tokenizer, self.data.max_len)
        reader = Reader(config, tokenizer, passages, max_len=self.data.max_len, seed=seed)
        if config.next_sentence and not reader.pairs.possible:
            return [finding("data.next_sentence", "error", 0, 1, _MESSAGES["no_pairs"])]
        batches = read_batches(reader, batch_tokens)
        findings = [_passages(reader, batches), Masked.of(reader, batches).finding(config)]
        return findings + (_pairs(reader, batches, documents) if config.next_sentence else [])


def read_batches(reader: Reader, batch_tokens: int) -> list[Packed]:
    """TEXTS texts as training reads them; a small corpus is read for several epochs, each with its own masks."""
    n = len(reader.passages)
    order = np.random.default_rng(0).permutation(n)
    numbers = np.array([(order[k % n], k // n) for k in range(TEXTS)])
    sizes = reader.passages.text.lengths(numbers[:, 0]) + FRAME_OF_PAIR
    batch = np.cumsum(sizes) // batch_tokens
    return [reader.read((i, epoch) for i, epoch in numbers[batch == b].tolist()) for b in np.unique(batch)]


def _passages(reader: Reader, batches: Sequence[Packed]) -> Finding:
    passages, n = reader.passages, len(reader.passages)
    per_document = Counter(Counter(passages.document(i) for i in range(n)).values())
    full = batches[:-1] or batches  # the last one may not be
    facts = {
        "max_len": reader.max_len,
        "per_document": quartiles(per_document),
        "mean": len(passages.text.tokens) / n,
        "packed": 100 * sum(b.tokens for b in full) / sum(b.ids.size for b in full),
        "alone": 100 * sum(b.tokens for b in batches) / (TEXTS * reader.max_len),
    }
    return finding("data.passages", "note", n, n, _MESSAGES["passages"].format(**facts))


def _pairs(reader: Reader, batches: Sequence[Packed], documents: int) -> list[Finding]:
    """The shares of texts that are pairs, and of pairs in which B follows A."""
    asked = sum(len(b.follows) for b in batches)
    follow = asked - sum(int(b.follows.sum()) for b in batches)
    unpaired = 1 - asked / TEXTS
    n = max(asked, 1)
    message = _MESSAGES["pairs"].format(unpaired=100 * unpaired, n=asked, follow=100 * follow / n)
    severity: Severity = "note"
    if unpaired > UNPAIRED:
        severity, message = "warning", message + _MESSAGES["few_pairs"]
    if is_off(follow, 0.5, asked):
        severity, message = "error", message + _MESSAGES["not_chance"].format(what="pairs in which B follows A")
    findings = [finding("data.next_sentence", severity, follow, n, message)]
    if documents == 1:
        findings.append(finding("data.one_document", "warning", 1, 1, _MESSAGES["one_document"]))
    return findings


@dataclass(slots=True)
class Masked:
    """Counts of masked tokens in some batches; each token counts as a word unless whole words are masked."""

    vocabulary: int
    """number of ordinary tokens, from which random ones are drawn"""
    tokens: int = 0
    masked: int = 0
    hidden: int = 0
    """replaced by [MASK]"""
    same: int = 0
    words: Counter[int] = field(default_factory=Counter)
    """by their number of tokens"""
    chosen: Counter[int] = field(default_factory=Counter)
    impossible: int = 0
    """masked special tokens, and partly masked words"""

    @staticmethod
    def of(reader: Reader, batches: Sequence[Packed]) -> "Masked":
        found = Masked(len(reader.masking.ordinary))
        for batch in batches:
            found._add(reader, batch)
        return found

    def _add(self, reader: Reader, batch: Packed) -> None:
        given, at, original = batch.ids.flatten(), batch.masked, batch.targets
        ids, is_masked = given.copy(), np.zeros(len(given), dtype=bool)
        ids[at], is_masked[at] = original, True
        ordinary = np.isin(ids, reader.masking.ordinary)
        goes_on = np.zeros_like(ordinary) if reader.masking.goes_on is None else reader.masking.goes_on[ids]
        starts = ordinary & ~(goes_on & np.roll(ordinary, 1))
        word = np.cumsum(starts)[ordinary] - 1
        sizes, hits = np.bincount(word), np.bincount(word, weights=is_masked[ordinary])
        self.tokens += len(word)
        self.masked += len(at)
        self.hidden += int((given[at] == reader.masking.mask_id).sum())
        self.same += int((given[at] == original).sum())
        self.impossible += int((is_masked & ~ordinary).sum() + ((hits > 0) & (hits < sizes)).sum())
        sizes = np.minimum(sizes, FOUR)
        self.words.update(sizes.tolist())
        self.chosen.update(sizes[hits > 0].tolist())

    def off(self, share: float) -> list[str]:
        """The rates that differ from their expectation by more than chance."""
        n, luck = self.masked, 0.1 / self.vocabulary  # a random token may be the right one
        wanted = [("masked", self.chosen.total(), share, self.words.total()), ("[MASK]", self.hidden, 0.8, n)]
        wanted += [("another token", n - self.hidden - self.same, 0.1 - luck, n)]
        wanted += [(f"words of {k} tokens", self.chosen[k], share, self.words[k]) for k in sorted(self.words)]
        found = [name for name, count, p, of in wanted if is_off(count, p, of)]
        return found + (["special tokens, or parts of words"] if self.impossible else [])

    def finding(self, config: PretrainingConfig) -> Finding:
        n, m = max(self.tokens, 1), max(self.masked, 1)
        facts = {"tokens": self.tokens, "masked": 100 * self.masked / n, "wanted": 100 * config.mask_share}
        facts |= {"hidden": 100 * self.hidden / m, "same": 100 * self.same / m}
        message = _MESSAGES["masking"].format(other=100 * (self.masked - self.hidden - self.same) / m, **facts)
        if config.whole_words:
            names = {k: f"{k} or more" if k == FOUR else f"{k}" for k in sorted(self.words)}
            rates = [f"{name}: {100 * self.chosen[k] / self.words[k]:.1f} %" for k, name in names.items()]
            message += _MESSAGES["whole_words"].format(rates=", ".join(rates))
        off = self.off(config.mask_share)
        message += _MESSAGES["not_chance"].format(what=", ".join(off)) if off else ""
        return finding("data.masking", "error" if off else "note", self.masked, n, message)


def is_off(count: int, share: float, n: int) -> bool:
    """Whether a count is farther from its share of n than chance allows."""
    variance = n * share * (1 - share)
    return variance >= ENOUGH and abs(count - n * share) > SIGMAS * sqrt(variance)
