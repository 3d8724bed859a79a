"""What a recipe makes of its documents: pieces, passages, pairs and masks.

They are measured on a sample that the training's own code reads: what is said of it is what will happen.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, log, sqrt

import numpy as np
import numpy.typing as npt

from jumok.data.corpus import Corpus, DocumentData, Texts
from jumok.data.made import ToyStories
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
SIGMAS, ENOUGH = 4, 10  # a count is off if it is so far from what is expected; a smaller variance tells nothing
UNKNOWN, PIECES_PER_WORD = 0.01, 2.5  # more than these are worth a warning
USED, OFTEN, IDLE = 0.5, 50, 1000  # so much of a vocabulary is in use, if a text has so many pieces for each of it
UNASKED = 0.75  # next-sentence prediction hardly learns if so many texts cannot be cut in two
FOUR = 4  # words of so many pieces or more are counted together
Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Pieces:
    """A sample of the training text as the model will read it."""

    tokenizer: Tokenizer
    sample: Sequence[Sentence]
    ids: Ids
    is_final: bool
    """the vocabulary is that of the training, and not one of the sample alone"""

    @property
    def unknown(self) -> float:
        return float(np.mean(self.ids == self.tokenizer.unk_id))

    @property
    def per_word(self) -> float:
        return len(self.ids) / max(sum(count_words(sentence.text) for sentence in self.sample), 1)

    def counts(self) -> Ids:
        """How often each piece stands in the text; special ones, which no model has to guess, do not."""
        counts = np.bincount(self.ids, minlength=self.tokenizer.vocab_size)
        counts[self.tokenizer.special_ids] = 0
        return counts

    def ground(self, survey: Survey) -> Ground:
        counts = self.counts()
        shares = counts[counts > 0] / max(counts.sum(), 1)
        return Ground(
            floor=float(-(shares * np.log(shares)).sum()),
            vocabulary=self.tokenizer.vocab_size,
            used=len(shares) / (self.tokenizer.vocab_size - len(self.tokenizer.special_ids)),
            unknown=self.unknown,
            repeated=survey.repeated,
        )


def read_pieces(recipe: Recipe, survey: Survey, tokenizer: Tokenizer | None = None) -> Pieces:
    """The sample in the pieces of the recipe's vocabulary: a given one, or the training's own.

    That is found in the cache, or learned and left there for the training. Of a text so large that only a part of it
    was looked at, the vocabulary is that of the sample.
    """
    sample = list(survey.sample)
    is_final = tokenizer is not None or recipe.init is not None or survey.is_whole
    if tokenizer is None:
        tokenizer = _tokenizer(recipe, survey, [sentence.text for sentence in sample])
    ids = [i for row in tokenizer.encode_batch([sentence.text for sentence in sample]) for i in row]
    return Pieces(tokenizer, sample, np.array(ids, dtype=np.int64), is_final)


def _tokenizer(recipe: Recipe, survey: Survey, sample: list[str]) -> Tokenizer:
    assert isinstance(recipe.data, DocumentData | ToyStories)
    is_pretraining = isinstance(recipe.task, PretrainingConfig)
    layout = LAYOUTS.get(recipe.model.kind, MARIAN)
    if not survey.is_whole and recipe.init is None:
        return Tokenizer.train(recipe.tokenizer, sample, layout)
    corpus = Corpus(recipe.data, "train", seed=recipe.seed)
    texts = Texts(corpus, lambda sentence: [sentence.text])
    key, start = ["documents" if is_pretraining else "text"], recipe.init
    tokenizer = prepare_tokenizer(recipe.tokenizer, texts, key, corpus, cache_folder(), layout=layout, start=start)
    if isinstance(recipe.task, PretrainingConfig):
        return extended_tokenizer(tokenizer, texts if survey.is_whole else sample, recipe.task.new_pieces)
    return tokenizer


def examine_pretraining(recipe: Recipe, survey: Survey) -> list[Finding]:
    """What the training of this recipe will see of its documents."""
    pieces = read_pieces(recipe, survey)
    findings = [*_vocabulary(pieces), _floor(pieces.ground(survey))]
    if isinstance(recipe.task, PretrainingConfig):
        passages = read_passages(pieces.sample, pieces.tokenizer, recipe.data.max_len)
        if recipe.task.next_sentence and not len(passages.divisible):
            message = "No passage has two sentences, and next-sentence prediction needs some: training will refuse it."
            message += " Set task.next_sentence = false, or check data.format and data.split_sentences."
            return [*findings, finding("next_sentence", "error", 0, 1, message)]
        reader = Reader(recipe.task, pieces.tokenizer, passages, max_len=recipe.data.max_len, seed=recipe.seed)
        batches = read_batches(reader, recipe.train.batch_tokens)
        findings += [_passages(reader, batches), Masked.of(reader, batches).finding(recipe.task)]
        findings += _pairs(reader, batches, survey) if recipe.task.next_sentence else []
    return findings


def _vocabulary(pieces: Pieces) -> list[Finding]:
    n, size = len(pieces.ids), pieces.tokenizer.vocab_size
    used = int((pieces.counts() > 0).sum())
    learned = "" if pieces.is_final else ", learned from the sample alone"
    message = f"The vocabulary has {size:,} pieces{learned}; {100 * used / size:.1f} % of them occur in a sample of {n:,}."
    message += f" A word is {pieces.per_word:.2f} pieces on average, and {100 * pieces.unknown:.2f} % are unknown."
    findings = [finding("vocabulary", "note", used, size, message)]
    if pieces.unknown > UNKNOWN:
        message = f"Of all pieces {100 * pieces.unknown:.1f} % are {pieces.tokenizer.layout.unknown}, and nothing is"
        message += " learned of them: look for text in other scripts; a larger tokenizer.vocab_size has more characters."
        count = int((pieces.ids == pieces.tokenizer.unk_id).sum())
        findings.append(finding("unknown_pieces", "warning", count, n, message, _with_unknown(pieces)))
    if pieces.per_word > PIECES_PER_WORD:
        message = f"Words are cut into {pieces.per_word:.2f} pieces on average. A larger tokenizer.vocab_size keeps them"
        message += " together, and texts become shorter."
        findings.append(finding("many_pieces", "warning", n, n, message))
    if used < USED * size and n > OFTEN * size and size - used > IDLE:
        message = f"Only {100 * used / size:.0f} % of the vocabulary occur in the training text: the rest has weights"
        message += " that never learn. A smaller tokenizer.vocab_size is faster."
        findings.append(finding("unused_pieces", "warning", size - used, size, message))
    return findings


def _with_unknown(pieces: Pieces) -> list[str]:
    unknown = pieces.tokenizer.unk_id
    found = (s for s in pieces.sample if unknown in pieces.tokenizer.encode(s.text))
    return [example(sentence.where, sentence.text) for _, sentence in zip(range(5), found, strict=False)]


def _floor(ground: Ground) -> Finding:
    message = f"The unigram floor is {ground.floor:.2f} nats (perplexity {exp(ground.floor):,.0f}): the loss of a model"
    message += " that knows how frequent every piece is, and nothing else. Training begins near ln V ="
    message += f" {log(ground.vocabulary):.2f}; a loss that stays at the floor has learned nothing of the context."
    return finding("unigram_floor", "note", 1, 1, message)


def read_batches(reader: Reader, batch_tokens: int) -> list[Batch]:
    """TEXTS texts as the training reads them; a small corpus is read in several epochs, each with masks of its own."""
    n = len(reader.passages)
    order = np.random.default_rng(0).permutation(n)
    numbers = np.array([(order[k % n], k // n) for k in range(TEXTS)])
    sizes = reader.passages.text.lengths(numbers[:, 0]) + FRAME_OF_PAIR
    batch = np.cumsum(sizes) // batch_tokens
    return [reader.read(map(tuple, numbers[batch == b].tolist())) for b in np.unique(batch)]


def _passages(reader: Reader, batches: list[Batch]) -> Finding:
    passages = reader.passages
    per_document = Counter(Counter(passages.document(i) for i in range(len(passages))).values())
    whole = batches[:-1] or batches  # the last one is not full
    packed = sum(b.tokens for b in whole) / sum(b.ids.numel() for b in whole)
    alone = sum(b.tokens for b in batches) / (TEXTS * reader.max_len)
    mean = len(passages.text.tokens) / len(passages)
    message = f"Passages of a document at data.max_len = {reader.max_len}: {quartiles(per_document)}; of {mean:.0f} pieces"
    message += f" on average. Packed they fill {100 * packed:.1f} % of a batch; one in a row would fill"
    message += f" {100 * alone:.1f} %, and the rest would be padding."
    return finding("passages", "note", len(passages), len(passages), message)


def _pairs(reader: Reader, batches: list[Batch], survey: Survey) -> list[Finding]:
    """How many texts are pairs, and how many of these follow."""
    asked = sum(len(b.follows) for b in batches)
    follow = asked - sum(int(b.follows.sum()) for b in batches)
    unasked = 1 - len(reader.passages.divisible) / len(reader.passages)
    severity: Severity = "warning" if unasked > UNASKED else "note"
    message = f"Next sentence: {100 * unasked:.1f} % of the passages are one sentence, and nothing is asked of them."
    message += f" Of {asked:,} pairs {100 * follow / max(asked, 1):.1f} % follow, 50 % being wanted."
    if severity == "warning":
        message += " So few pairs teach little: set task.next_sentence = false, or check data.format and the headings."
    if is_off(follow, 0.5, asked):
        severity, message = "error", f"{message} That is no chance: it is a fault of jumok's, please report it."
    findings = [finding("next_sentence", severity, follow, max(asked, 1), message)]
    if survey.documents == 1:
        message = "There is one document, so that the sentences that do not follow come from it, too: they are hard to"
        message += " tell from those that do. Check data.format, or set task.next_sentence = false."
        findings.append(finding("one_document", "warning", 1, 1, message))
    return findings


@dataclass(slots=True)
class Masked:
    """What became of the pieces of some batches; their words are pieces too, unless whole words are masked."""

    pieces: int = 0
    masked: int = 0
    hidden: int = 0
    """behind [MASK]"""
    same: int = 0
    words: Counter[int] = field(default_factory=Counter)
    """by their pieces"""
    chosen: Counter[int] = field(default_factory=Counter)
    impossible: int = 0
    """special pieces that are masked, and words that are masked in part"""
    vocabulary: int = 1
    """pieces that a random one is drawn from"""

    @staticmethod
    def of(reader: Reader, batches: Sequence[Batch]) -> "Masked":
        found = Masked(vocabulary=len(reader.masking.ordinary))
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
        self.pieces += int(ordinary.sum())
        self.masked += len(at)
        self.hidden += int((given[at] == reader.masking.mask_id).sum())
        self.same += int((given[at] == original).sum())
        self.impossible += int((is_masked & ~ordinary).sum() + ((hits > 0) & (hits < sizes)).sum())
        groups = np.minimum(sizes, FOUR)
        self.words.update(groups.tolist())
        self.chosen.update(groups[hits > 0].tolist())

    def finding(self, config: PretrainingConfig) -> Finding:
        share, m, luck = config.mask_share, max(self.masked, 1), 0.1 / self.vocabulary  # a random piece may be the same
        other = self.masked - self.hidden - self.same
        words, chosen = self.words.total(), self.chosen.total()
        wanted = [("masked", chosen, share, words), ("[MASK]", self.hidden, 0.8, m), ("random", other, 0.1 - luck, m)]
        wanted += [(f"masked words of {k} pieces", self.chosen[k], share, self.words[k]) for k in sorted(self.words)]
        off = [name for name, found, p, n in wanted if is_off(found, p, n)]
        off += ["special pieces, or parts of words"] if self.impossible else []
        message = f"Masking: of {self.pieces:,} pieces {100 * self.masked / max(self.pieces, 1):.2f} % are masked,"
        message += f" {100 * share:g} % being wanted; {100 * self.hidden / m:.1f} % of these are [MASK],"
        message += f" {100 * other / m:.1f} % another piece, {100 * self.same / m:.1f} % as they were (80, 10 and 10)."
        if config.whole_words:
            names = {k: f"{k} or more" if k == FOUR else str(k) for k in sorted(self.words)}
            rates = [f"of {name} {100 * self.chosen[k] / self.words[k]:.1f} %" for k, name in names.items()]
            message += f" Of words by their pieces: {', '.join(rates)}."
        if off:
            message += f" That is no chance ({', '.join(off)}): it is a fault of jumok's, please report it."
        return finding("masking", "error" if off else "note", self.masked, max(self.pieces, 1), message)


def is_off(found: int, share: float, n: int) -> bool:
    """Whether a count is too far from its share of n to be chance."""
    variance = n * share * (1 - share)
    return variance >= ENOUGH and abs(found - n * share) > SIGMAS * sqrt(variance)
