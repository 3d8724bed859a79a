"""BLEU, chrF and exact match of translations, with intervals, by source length, and between two systems."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.helpers import extract_all_char_ngrams

from jumok.errors import DataError, InputError
from jumok.score.significance import Comparison, Score, ScoreFunction, Values, compare, score_with_interval

BLEU_ORDER = 4
CHRF_ORDER = 6
CHRF_BETA = 2

# The other tokenizers of sacrebleu download a model or need an extra package.
OFFLINE_TOKENIZERS = ("13a", "zh", "char", "intl", "none")


@dataclass(frozen=True, kw_only=True, slots=True)
class LengthBucket:
    """The score of the sentences with `low` to `high` source words, both included; `high` None: or more."""

    low: int
    high: int | None
    n: int
    score: Score


def bleu_statistics(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    lowercase: bool = False,
    tokenize: str = "13a",
) -> Values:
    """[n, 10]: tokens of the hypothesis and of the reference, matching n-grams ×4, n-grams ×4."""
    pairs = _pairs(hypotheses, references)
    if tokenize not in OFFLINE_TOKENIZERS:
        raise InputError(
            f"BLEU cannot be computed offline with tokenizer {tokenize!r}",
            hint="one of " + ", ".join(OFFLINE_TOKENIZERS),
            code="input.tokenizer",
        )
    # The effective order changes the score of a sentence but not its counts; without it sacrebleu warns.
    metric = BLEU(lowercase=lowercase, tokenize=tokenize, effective_order=True, force=True)
    sentences = (metric.sentence_score(h, [r]) for h, r in pairs)
    return np.array([[s.sys_len, s.ref_len, *s.counts, *s.totals] for s in sentences], dtype=np.float64)


def bleu_from(statistics: Values) -> Values:
    """Corpus BLEU, 0–100, of each row of summed statistics, smoothed by sacrebleu's `exp` rule."""
    hypothesis_length, reference_length = statistics[..., 0], statistics[..., 1]
    correct, total = np.split(statistics[..., 2:], 2, axis=-1)
    unmatched = correct == 0
    # The first order without a match counts as half a match, the second as a quarter, and so on.
    matches = np.where(unmatched, 0.5 ** np.cumsum(unmatched, axis=-1), correct)
    precision = np.exp(np.log(matches / np.maximum(total, 1)).mean(axis=-1))
    brevity = np.exp(np.minimum(0, 1 - reference_length / np.maximum(hypothesis_length, 1)))
    defined = (correct > 0).any(axis=-1) & (total > 0).all(axis=-1)
    return np.where(defined, 100 * brevity * precision, 0.0)


def chrf_statistics(hypotheses: Sequence[str], references: Sequence[str]) -> Values:
    """[n, 18]: for the character n-grams of order 1 … 6: of the hypothesis, of the reference, matching."""
    rows = []
    for hypothesis, reference in _pairs(hypotheses, references):
        row = []
        for ours, theirs in zip(
            extract_all_char_ngrams(hypothesis, CHRF_ORDER),
            extract_all_char_ngrams(reference, CHRF_ORDER),
            strict=True,
        ):
            matching = sum(min(ours[ngram], theirs[ngram]) for ngram in ours.keys() & theirs.keys())
            # As in sacrebleu, a reference too short for an order cannot cost precision in it.
            row += [ours.total() if theirs else 0, theirs.total(), matching]
        rows.append(row)
    return np.array(rows, dtype=np.float64)


def chrf_from(statistics: Values) -> Values:
    """Corpus chrF2, 0–100, of each row of summed statistics."""
    hypothesis, reference, matching = (statistics[..., part::3] for part in range(3))
    usable = (hypothesis > 0) & (reference > 0)
    orders = np.maximum(usable.sum(axis=-1), 1)
    precision = (usable * matching / np.maximum(hypothesis, 1)).sum(axis=-1) / orders
    recall = (usable * matching / np.maximum(reference, 1)).sum(axis=-1) / orders
    weighted = CHRF_BETA**2 * precision + recall
    f_score: Values = (1 + CHRF_BETA**2) * precision * recall / np.where(weighted > 0, weighted, 1)
    return 100 * f_score


def exact_match_statistics(hypotheses: Sequence[str], references: Sequence[str]) -> Values:
    """[n, 2]: equal after whitespace is stripped from both ends, one."""
    equal = [[h.strip() == r.strip(), 1] for h, r in _pairs(hypotheses, references)]
    return np.array(equal, dtype=np.float64)


def exact_match_from(statistics: Values) -> Values:
    """The percentage of equal lines of each row of summed statistics."""
    return 100 * statistics[..., 0] / statistics[..., 1]


def score_translations(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    sources: Sequence[str] | None = None,
    target_language: str | None = None,
    samples: int = 1000,
    seed: int = 12345,
) -> list[Score]:
    """`bleu`, `bleu_lowercase_tokenised`, `chrf` and `exact_match`; with sources also BLEU by source length.

    `bleu` is cased. `bleu_lowercase_tokenised` is the kind of figure the Multi30k papers report; they use
    Moses tokens where this uses 13a, so the last tenths are not comparable.

    BLEU splits Chinese with sacrebleu's `zh`, Japanese into characters and every other language with 13a.
    Korean is one of these, as its morphemes would need an extra package: there chrF is the fairer figure.
    """
    scores = [
        score_with_interval(
            metric.name,
            metric.statistics(hypotheses, references),
            metric.score,
            signature=metric.signature,
            samples=samples,
            seed=seed,
        )
        for metric in _metrics(target_language, samples=samples, seed=seed)
    ]
    if sources is not None:
        buckets = bleu_by_length(
            hypotheses, references, sources, target_language=target_language, samples=samples, seed=seed
        )
        scores += [bucket.score for bucket in buckets]
    return scores


def quick_scores(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    target_language: str | None = None,
    lowercase: bool = False,
) -> dict[str, float]:
    """BLEU and exact match as in `score_translations`, without intervals: for a look during training.

    `lowercase` is for models that know no capitals, whose cased scores would say nothing.
    """
    if lowercase:
        hypotheses, references = [h.lower() for h in hypotheses], [r.lower() for r in references]
    return {
        metric.name: float(metric.score(metric.statistics(hypotheses, references).sum(axis=0)))
        for metric in _metrics(target_language, samples=0, seed=0)
        if metric.name in ("bleu", "exact_match")
    }


def bleu_by_length(
    hypotheses: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str],
    *,
    edges: Sequence[int] = (10, 20, 30, 40, 50),
    target_language: str | None = None,
    lowercase: bool = False,
    samples: int = 1000,
    seed: int = 12345,
) -> list[LengthBucket]:
    """BLEU (cased, unless told otherwise) by source length in words, shortest first, without the empty buckets.

    An edge is the largest length of its bucket; the last bucket has no upper end.
    """
    if len(sources) != len(references):
        raise DataError(
            f"{len(sources)} sources, but {len(references)} references",
            hint="one source for every reference, line by line",
            code="data.counts",
        )
    cased, lowered, *_ = _metrics(target_language, samples=samples, seed=seed)
    bleu = lowered if lowercase else cased
    statistics = bleu.statistics(hypotheses, references)
    highs = sorted(set(edges))
    bucket_of = np.searchsorted(highs, [len(source.split()) for source in sources])
    buckets = []
    for index, (low, high) in enumerate(zip([0, *(high + 1 for high in highs)], [*highs, None], strict=True)):
        members = statistics[bucket_of == index]
        if len(members) == 0:
            continue
        score = score_with_interval(
            f"bleu_{low}_or_more_words" if high is None else f"bleu_{low}_to_{high}_words",
            members,
            bleu.score,
            signature=bleu.signature,
            samples=samples,
            seed=seed,
        )
        buckets.append(LengthBucket(low=low, high=high, n=len(members), score=score))
    return buckets


def compare_translations(
    hypotheses_a: Sequence[str],
    hypotheses_b: Sequence[str],
    references: Sequence[str],
    *,
    target_language: str | None = None,
    samples: int = 1000,
    seed: int = 12345,
) -> list[Comparison]:
    """System b against system a in every metric of `score_translations`."""
    return [
        compare(
            metric.statistics(hypotheses_a, references),
            metric.statistics(hypotheses_b, references),
            metric.score,
            metric=metric.name,
            samples=samples,
            seed=seed,
        )
        for metric in _metrics(target_language, samples=samples, seed=seed)
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Metric:
    name: str
    count: Callable[[Sequence[str], Sequence[str]], Values]
    score: ScoreFunction
    signature: str

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> Values:
        """Of both in NFC: decomposed Hangul or accents are the same text, and must not cost a point."""
        return self.count(*([unicodedata.normalize("NFC", line) for line in x] for x in (hypotheses, references)))


def _metrics(target_language: str | None, *, samples: int, seed: int) -> list[_Metric]:
    language = re.split("[-_]", (target_language or "").lower())[0]
    tokenize = {"zh": "zh", "ja": "char"}.get(language, "13a")

    def signature(metric: BLEU | CHRF) -> str:
        metric.corpus_score([""], [[""]])  # a sacrebleu metric has no signature before it has scored something
        facts = metric.get_signature()
        facts.update("bs", samples)
        facts.update("seed", seed)
        return str(facts)

    def bleu(name: str, *, lowercase: bool) -> _Metric:
        return _Metric(
            name=name,
            count=partial(bleu_statistics, lowercase=lowercase, tokenize=tokenize),
            score=bleu_from,
            signature=signature(BLEU(lowercase=lowercase, tokenize=tokenize)),
        )

    return [
        bleu("bleu", lowercase=False),
        bleu("bleu_lowercase_tokenised", lowercase=True),
        _Metric(
            name="chrf",
            count=chrf_statistics,
            score=chrf_from,
            signature=signature(CHRF(char_order=CHRF_ORDER, word_order=0, beta=CHRF_BETA)),
        ),
        _Metric(
            name="exact_match",
            count=exact_match_statistics,
            score=exact_match_from,
            signature=f"equal lines after strip, bootstrap {samples}, seed {seed}, 95%",
        ),
    ]


def _pairs(hypotheses: Sequence[str], references: Sequence[str]) -> list[tuple[str, str]]:
    if len(hypotheses) != len(references):
        raise DataError(
            f"{len(hypotheses)} hypotheses, but {len(references)} references",
            hint="one hypothesis for every reference, line by line",
            code="data.counts",
        )
    if not hypotheses:
        raise DataError("there are no translations to score", hint="at least one line", code="data.empty")
    return list(zip(hypotheses, references, strict=True))
