"""What a recipe makes of its documents: pieces, passages, pairs and masks.

They are measured on a sample that the training's own code reads: what is said of it is what will happen.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import exp, log, sqrt
from typing import cast

import numpy as np
import numpy.typing as npt

from jumok.data.corpus import Corpus, Data, Texts
from jumok.doctor.curve import Ground
from jumok.doctor.documents import Survey, quartiles
from jumok.doctor.findings import Finding, Severity, count_words, example, finding
from jumok.prepare import LAYOUTS, cache_folder, prepare_tokenizer
from jumok.recipe import Recipe
from jumok.tasks.pretraining import FRAME_OF_PAIR, Batch, PretrainingConfig, Reader, read_passages
from jumok.text.documents import Sentence
from jumok.text.tokenizer import Tokenizer
from jumok.text.vocabulary import MARIAN
from jumok.transfer import extended_tokenizer

TEXTS = 1000  # that are read as the training reads them
SIGMAS, ENOUGH = 4, 10  # a count so far from what is expected is no chance; a smaller variance tells nothing
UNKNOWN, PER_WORD = 0.01, 2.5  # more than these are worth a warning
USED, OFTEN, IDLE = 0.5, 50, 1000  # a vocabulary of which less is used by so many pieces for each, with so many idle
UNASKED = 0.75  # next-sentence prediction hardly learns if so many texts cannot be cut in two
FOUR = 4  # words of so many pieces or more are counted together
Ids = npt.NDArray[np.int64]

# fmt: off
_SAYS = {
    "vocabulary": "The vocabulary has {size:,} pieces{learned}; {used:.1f} % of them occur in a sample of {n:,}. A"
        " word is {per_word:.2f} pieces on average, and {unknown:.2f} % are unknown.",
    "unknown_pieces": "Of all pieces {unknown:.1f} % are {name}, and nothing is learned of them: look for text in"
        " other scripts; a larger tokenizer.vocab_size has more characters.",
    "many_pieces": "Words are cut into {per_word:.2f} pieces on average. A larger tokenizer.vocab_size keeps them"
        " together, and texts become shorter.",
    "unused_pieces": "Only {used:.0f} % of the vocabulary occur in the training text: the rest has weights that never"
        " learn. A smaller tokenizer.vocab_size is faster.",
    "unigram_floor": "The unigram floor is {floor:.2f} nats (perplexity {perplexity:,.0f}): the loss of a model that"
        " knows how frequent every piece is, and nothing else. A loss that stays there has learned nothing of the"
        " context.",
    "begins": " Training begins near ln V = {ln_v:.2f}.",
    "passages": "Passages of a document at data.max_len = {max_len}: {per_document}. They have {mean:.0f} pieces on"
        " average. Packed they fill {packed:.1f} % of a batch; one in a row would fill {alone:.1f} %, and the rest"
        " would be padding.",
    "no_pairs": "No two passages of two sentences or more have second parts of one length, and next-sentence prediction"
        " needs some: training will refuse this. Set task.next_sentence = false, or check data.format and"
        " data.split_sentences.",
    "pairs": "Next sentence: {unasked:.1f} % of the passages are asked nothing, being one sentence or having a second"
        " part that no other is as long as. Of {asked:,} pairs {follow:.1f} % follow, 50 % being wanted.",
    "few_pairs": " So few pairs teach little: set task.next_sentence = false, or see whether headings and lines are"
        " taken for documents (data.format).",
    "one_document": "There is one document, and what does not follow comes from it, too: that is hard to tell from"
        " what does. Check data.format, or set task.next_sentence = false.",
    "masking": "Masking: of {pieces:,} pieces {masked:.2f} % are masked, {wanted:g} % being wanted; {hidden:.1f} % of"
        " these are [MASK], {other:.1f} % another piece, {same:.1f} % as they were (80, 10 and 10 wanted).",
    "whole_words": " Of words by their pieces: {rates}.",
    "no_chance": " That is no chance ({what}): it is a fault of jumok's, please report it.",
}
# fmt: on


@dataclass(frozen=True, slots=True)
class Pieces:
    """A sample of the training text as a model will read it."""

    tokenizer: Tokenizer
    sample: Sequence[Sentence]
    ids: Ids
    is_final: bool
    """the vocabulary is that of the training, and not one of the sample alone"""
    ends: int | None
    """of texts, where all is guessed and the end as well; None if pieces are masked, and special ones never"""

    @property
    def unknown(self) -> float:
        return float(np.mean(self.ids == self.tokenizer.unk_id)) if len(self.ids) else 0.0

    @property
    def per_word(self) -> float:
        breaks = 0 if self.ends is None else sum(not sentence.first for sentence in self.sample)
        n = len(self.ids) - breaks * len(self.tokenizer.encode("\n"))
        return n / max(sum(count_words(sentence.text) for sentence in self.sample), 1)

    def counts(self) -> Ids:
        """How often each piece stands in the text; those that no model has to guess are left out."""
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
    """The sample in the pieces of a vocabulary: a given one, or that of the training.

    The latter is found in the cache, or learned and left there for the training. Of a text so large that only a part
    of it was looked at, the vocabulary is that of the sample.
    """
    sample = list(survey.sample)
    texts = [sentence.text for sentence in sample]
    is_final = tokenizer is not None or recipe.init is not None or survey.is_whole
    tokenizer = tokenizer or _tokenizer(recipe, survey, texts)
    if not (is_masked := isinstance(recipe.task, PretrainingConfig)):  # line breaks and ends are to be guessed, too
        texts = [sentence.text if sentence.first else f"\n{sentence.text}" for sentence in sample]
    rows = tokenizer.encode_batch(texts)
    ids = [i for row in rows for i in row]
    ends = None if is_masked else sum(sentence.first and bool(row) for sentence, row in zip(sample, rows, strict=True))
    return Pieces(tokenizer, sample, np.array(ids, dtype=np.int64), is_final, ends)


def _tokenizer(recipe: Recipe, survey: Survey, sample: Sequence[str]) -> Tokenizer:
    layout = LAYOUTS.get(recipe.model.kind, MARIAN)
    if recipe.init is None and not survey.is_whole:
        return Tokenizer.train(recipe.tokenizer, sample, layout)
    corpus = Corpus(cast(Data[str | Sentence], recipe.data), "train", seed=recipe.seed)
    texts = Texts(corpus, lambda example: [example if isinstance(example, str) else example.text])
    is_pretraining = isinstance(recipe.task, PretrainingConfig)
    key, cache = ["documents" if is_pretraining else "text"], cache_folder()
    tokenizer = prepare_tokenizer(recipe.tokenizer, texts, key, corpus, cache, layout=layout, start=recipe.init)
    new_pieces = recipe.task.new_pieces if isinstance(recipe.task, PretrainingConfig) else 0
    return extended_tokenizer(tokenizer, texts if survey.is_whole else sample, new_pieces)


def examine_pretraining(recipe: Recipe, survey: Survey) -> list[Finding]:
    """What the training of this recipe will see of its documents."""
    pieces = read_pieces(recipe, survey)
    findings = [*_vocabulary(pieces, recipe), _floor(pieces.ground(survey), recipe)]
    if not isinstance(recipe.task, PretrainingConfig):
        return findings
    passages = read_passages(pieces.sample, pieces.tokenizer, recipe.data.max_len)
    reader = Reader(recipe.task, pieces.tokenizer, passages, max_len=recipe.data.max_len, seed=recipe.seed)
    if recipe.task.next_sentence and not reader.pairs.possible:
        return [*findings, finding("next_sentence", "error", 0, 1, _SAYS["no_pairs"])]
    batches = read_batches(reader, recipe.train.batch_tokens)
    findings += [_passages(reader, batches), Masked.of(reader, batches).finding(recipe.task)]
    return findings + (_pairs(reader, batches, survey) if recipe.task.next_sentence else [])


def _vocabulary(pieces: Pieces, recipe: Recipe) -> list[Finding]:
    n, size, used = len(pieces.ids), pieces.tokenizer.vocab_size, int((pieces.counts() > 0).sum())
    n_unknown = int((pieces.ids == pieces.tokenizer.unk_id).sum())
    facts = {"size": size, "n": n, "used": 100 * used / size}
    facts |= {"per_word": pieces.per_word, "unknown": 100 * pieces.unknown}
    names = {
        "name": pieces.tokenizer.layout.unknown,
        "learned": "" if pieces.is_final else ", learned from the sample alone",
    }

    def about(kind: str, severity: Severity, count: int, of: int, examples: Sequence[str] = ()) -> Finding:
        return finding(kind, severity, count, max(of, 1), _SAYS[kind].format(**facts, **names), examples)

    findings = [about("vocabulary", "note", used, size)]
    if pieces.unknown > UNKNOWN:
        findings.append(about("unknown_pieces", "warning", n_unknown, n, _with_unknown(pieces)))
    if pieces.per_word > PER_WORD:
        findings.append(about("many_pieces", "warning", n, n))
    is_own = recipe.init is None  # others' pieces are theirs
    if is_own and used < USED * size and n > OFTEN * size and size - used > IDLE:
        findings.append(about("unused_pieces", "warning", size - used, size))
    return findings


def _with_unknown(pieces: Pieces) -> list[str]:
    unknown, encode = pieces.tokenizer.unk_id, pieces.tokenizer.encode
    found = (sentence for sentence in pieces.sample if unknown in encode(sentence.text))
    return [example(sentence.where, sentence.text) for sentence in islice(found, 5)]


def _floor(ground: Ground, recipe: Recipe) -> Finding:
    message = _SAYS["unigram_floor"].format(floor=ground.floor, perplexity=exp(ground.floor))
    message += _SAYS["begins"].format(ln_v=log(ground.vocabulary)) if recipe.init is None else ""
    return finding("unigram_floor", "note", 1, 1, message)


def read_batches(reader: Reader, batch_tokens: int) -> list[Batch]:
    """TEXTS texts as the training reads them; a small corpus is read in several epochs, each with masks of its own."""
    n = len(reader.passages)
    order = np.random.default_rng(0).permutation(n)
    numbers = np.array([(order[k % n], k // n) for k in range(TEXTS)])
    sizes = reader.passages.text.lengths(numbers[:, 0]) + FRAME_OF_PAIR
    batch = np.cumsum(sizes) // batch_tokens
    return [reader.read((i, epoch) for i, epoch in numbers[batch == b].tolist()) for b in np.unique(batch)]


def _passages(reader: Reader, batches: Sequence[Batch]) -> Finding:
    passages, n = reader.passages, len(reader.passages)
    per_document = Counter(Counter(passages.document(i) for i in range(n)).values())
    full = batches[:-1] or batches  # the last one is not
    facts = {
        "max_len": reader.max_len,
        "per_document": quartiles(per_document),
        "mean": len(passages.text.tokens) / n,
        "packed": 100 * sum(b.tokens for b in full) / sum(b.ids.numel() for b in full),
        "alone": 100 * sum(b.tokens for b in batches) / (TEXTS * reader.max_len),
    }
    return finding("passages", "note", n, n, _SAYS["passages"].format(**facts))


def _pairs(reader: Reader, batches: Sequence[Batch], survey: Survey) -> list[Finding]:
    """How many texts are pairs, and how many of these follow."""
    asked = sum(len(b.follows) for b in batches)
    follow = asked - sum(int(b.follows.sum()) for b in batches)
    unasked = 1 - asked / TEXTS
    n = max(asked, 1)
    message = _SAYS["pairs"].format(unasked=100 * unasked, asked=asked, follow=100 * follow / n)
    severity: Severity = "note"
    if unasked > UNASKED:
        severity, message = "warning", message + _SAYS["few_pairs"]
    if is_off(follow, 0.5, asked):
        severity, message = "error", message + _SAYS["no_chance"].format(what="pairs that follow")
    findings = [finding("next_sentence", severity, follow, n, message)]
    if survey.documents == 1:
        findings.append(finding("one_document", "warning", 1, 1, _SAYS["one_document"]))
    return findings


@dataclass(slots=True)
class Masked:
    """What became of the pieces of some batches; a piece is a word of its own unless whole words are masked."""

    vocabulary: int
    """ordinary pieces, of which a random one is drawn"""
    pieces: int = 0
    masked: int = 0
    hidden: int = 0
    """behind [MASK]"""
    same: int = 0
    words: Counter[int] = field(default_factory=Counter)
    """by their pieces"""
    chosen: Counter[int] = field(default_factory=Counter)
    impossible: int = 0
    """masked special pieces, and words that are masked in part"""

    @staticmethod
    def of(reader: Reader, batches: Sequence[Batch]) -> "Masked":
        found = Masked(len(reader.masking.ordinary))
        for batch in batches:
            found._add(reader, batch)
        return found

    def _add(self, reader: Reader, batch: Batch) -> None:
        given, at, original = batch.ids.flatten().numpy(), batch.masked.numpy(), batch.targets.numpy()
        ids, is_masked = given.copy(), np.zeros(len(given), dtype=bool)
        ids[at], is_masked[at] = original, True
        ordinary = np.isin(ids, reader.masking.ordinary)
        goes_on = np.zeros_like(ordinary) if reader.masking.goes_on is None else reader.masking.goes_on[ids]
        starts = ordinary & ~(goes_on & np.roll(ordinary, 1))
        word = np.cumsum(starts)[ordinary] - 1
        sizes, hits = np.bincount(word), np.bincount(word, weights=is_masked[ordinary])
        self.pieces += len(word)
        self.masked += len(at)
        self.hidden += int((given[at] == reader.masking.mask_id).sum())
        self.same += int((given[at] == original).sum())
        self.impossible += int((is_masked & ~ordinary).sum() + ((hits > 0) & (hits < sizes)).sum())
        sizes = np.minimum(sizes, FOUR)
        self.words.update(sizes.tolist())
        self.chosen.update(sizes[hits > 0].tolist())

    def off(self, share: float) -> list[str]:
        """The rates that are not what is wanted, by more than chance."""
        n, luck = self.masked, 0.1 / self.vocabulary  # a random piece may be the right one
        wanted = [("masked", self.chosen.total(), share, self.words.total()), ("[MASK]", self.hidden, 0.8, n)]
        wanted += [("another piece", n - self.hidden - self.same, 0.1 - luck, n)]
        wanted += [(f"words of {k} pieces", self.chosen[k], share, self.words[k]) for k in sorted(self.words)]
        found = [name for name, count, p, of in wanted if is_off(count, p, of)]
        return found + (["special pieces, or parts of words"] if self.impossible else [])

    def finding(self, config: PretrainingConfig) -> Finding:
        n, m = max(self.pieces, 1), max(self.masked, 1)
        facts = {"pieces": self.pieces, "masked": 100 * self.masked / n, "wanted": 100 * config.mask_share}
        facts |= {"hidden": 100 * self.hidden / m, "same": 100 * self.same / m}
        message = _SAYS["masking"].format(other=100 * (self.masked - self.hidden - self.same) / m, **facts)
        if config.whole_words:
            names = {k: f"{k} or more" if k == FOUR else f"{k}" for k in sorted(self.words)}
            rates = [f"of {name} {100 * self.chosen[k] / self.words[k]:.1f} %" for k, name in names.items()]
            message += _SAYS["whole_words"].format(rates=", ".join(rates))
        off = self.off(config.mask_share)
        message += _SAYS["no_chance"].format(what=", ".join(off)) if off else ""
        return finding("masking", "error" if off else "note", self.masked, n, message)


def is_off(count: int, share: float, n: int) -> bool:
    """Whether a count is too far from its share of n to be chance."""
    variance = n * share * (1 - share)
    return variance >= ENOUGH and abs(count - n * share) > SIGMAS * sqrt(variance)
