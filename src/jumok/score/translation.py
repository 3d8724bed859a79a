"""BLEU, chrF and exact match of translations, and BLEU by source length."""

import re
from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.helpers import extract_all_char_ngrams

from jumok.errors import InputError
from jumok.score.significance import Metric, Metrics, Values, require_pairs
from jumok.text.normalise import compose

BLEU_ORDER = 4
CHRF_ORDER = 6
CHRF_BETA = 2

# sacrebleu's other tokenizers download a model or need an extra package, as ko-mecab does, which may be installed.
OFFLINE_TOKENIZERS = ("13a", "zh", "char", "intl", "none", "ko-mecab")


def bleu_statistics(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    lowercase: bool = False,
    tokenize: str = "13a",
) -> Values:
    """[n, 10]: length of hypothesis and reference in tokens, then for n = 1 … 4 matching n-grams and all n-grams."""
    require_pairs(hypotheses, references, what="hypotheses", of="references")
    if tokenize not in OFFLINE_TOKENIZERS:
        raise InputError(
            f"BLEU cannot be computed offline with tokenizer {tokenize!r}",
            hint=f"use one of {', '.join(OFFLINE_TOKENIZERS)}",
            code="input.tokenizer",
        )
    # The effective order changes a sentence's score but not its counts; without it sacrebleu warns.
    metric = BLEU(lowercase=lowercase, tokenize=tokenize, effective_order=True, force=True)
    sentences = (metric.sentence_score(h, [r]) for h, r in zip(hypotheses, references, strict=True))
    return np.array([[s.sys_len, s.ref_len, *s.counts, *s.totals] for s in sentences], dtype=np.float64)


def bleu_from(statistics: Values) -> Values:
    """Corpus BLEU, 0–100, with sacrebleu's `exp` smoothing."""
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
    """[n, 18]: for n = 1 … 6, character n-grams of the hypothesis, of the reference, and matching ones."""
    require_pairs(hypotheses, references, what="hypotheses", of="references")
    rows = []
    for hypothesis, reference in zip(hypotheses, references, strict=True):
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
    """Corpus chrF2, 0–100."""
    hypothesis, reference, matching = (statistics[..., part::3] for part in range(3))
    usable = (hypothesis > 0) & (reference > 0)
    orders = np.maximum(usable.sum(axis=-1), 1)
    precision = (usable * matching / np.maximum(hypothesis, 1)).sum(axis=-1) / orders
    recall = (usable * matching / np.maximum(reference, 1)).sum(axis=-1) / orders
    weighted = CHRF_BETA**2 * precision + recall
    f_score: Values = (1 + CHRF_BETA**2) * precision * recall / np.where(weighted > 0, weighted, 1)
    return 100 * f_score


def exact_match_statistics(hypotheses: Sequence[str], references: Sequence[str]) -> Values:
    """[n, 2]: whether both are equal after stripping white space, and 1."""
    require_pairs(hypotheses, references, what="hypotheses", of="references")
    equal = [[h.strip() == r.strip(), 1] for h, r in zip(hypotheses, references, strict=True)]
    return np.array(equal, dtype=np.float64)


def exact_match_from(statistics: Values) -> Values:
    return 100 * statistics[..., 0] / statistics[..., 1]


def translation_metrics(
    hypotheses: Sequence[str], references: Sequence[str], *, target_language: str | None = None
) -> Metrics:
    """`bleu`, `bleu_lowercase_tokenised`, `chrf` and `exact_match`; for Korean `chrf` first, and more kinds of BLEU.

    `bleu` is cased. `bleu_lowercase_tokenised` is the kind of figure the Multi30k papers report; they use
    Moses tokens where this uses 13a, so the last tenths are not comparable.

    BLEU splits Chinese with sacrebleu's `zh`, Japanese into characters and every other language with 13a.
    In Korean that counts a word as wrong if its particle is, and chrF is fairer. There `bleu_characters` is BLEU of
    characters, and `bleu_morphemes` of morphemes, where sacrebleu's ko-mecab is installed.
    """
    language = re.split("[-_]", (target_language or "").lower())[0]
    tokenize = {"zh": "zh", "ja": "char"}.get(language, "13a")
    # Decomposed Hangul or accents are the same text, and must not cost a point.
    ours, true = ([compose(line) for line in side] for side in (hypotheses, references))

    def bleu(name: str, *, lowercase: bool = False, tokenize: str = tokenize) -> Metric:
        statistics = bleu_statistics(ours, true, lowercase=lowercase, tokenize=tokenize)
        return Metric(name, statistics, bleu_from, _signature(BLEU(lowercase=lowercase, tokenize=tokenize)))

    chrf = CHRF(char_order=CHRF_ORDER, word_order=0, beta=CHRF_BETA)
    by_characters = Metric("chrf", chrf_statistics(ours, true), chrf_from, _signature(chrf))
    equal = Metric("exact_match", exact_match_statistics(ours, true), exact_match_from)
    metrics: tuple[Metric, ...] = bleu("bleu"), bleu("bleu_lowercase_tokenised", lowercase=True)
    if language == "ko":
        morphemes = (bleu("bleu_morphemes", tokenize="ko-mecab"),) if find_spec("mecab_ko") else ()
        metrics = (by_characters, *metrics, bleu("bleu_characters", tokenize="char"), *morphemes, equal)
    else:
        metrics = (*metrics, by_characters, equal)
    return Metrics(metrics, rule="equal lines after strip")


def bleu_by_length(
    metrics: Metrics,
    sources: Sequence[str],
    *,
    edges: Sequence[int] = (10, 20, 30, 40, 50),
    lowercase: bool = False,
) -> Metrics:
    """BLEU of `translation_metrics` by source length in words: `bleu_0_to_10_words` … `bleu_51_or_more_words`.

    An edge is the largest length of its bucket; empty buckets are left out. `lowercase` takes the uncased BLEU.
    """
    (bleu,) = metrics.only(["bleu_lowercase_tokenised" if lowercase else "bleu"]).metrics
    require_pairs(sources, bleu.statistics, what="sources", of="references")
    highs = sorted(set(edges))
    bucket_of = np.searchsorted(highs, [len(source.split()) for source in sources])
    buckets = []
    for index, (low, high) in enumerate(zip([0, *(high + 1 for high in highs)], [*highs, None], strict=True)):
        name = f"bleu_{low}_or_more_words" if high is None else f"bleu_{low}_to_{high}_words"
        members = bleu.statistics[bucket_of == index]
        if len(members):
            buckets.append(bleu._replace(name=name, statistics=members))
    return Metrics(tuple(buckets))


def _signature(metric: BLEU | CHRF) -> str:
    metric.corpus_score([""], [[""]])  # a sacrebleu metric has no signature before it has scored something
    facts = metric.get_signature()
    facts.update("bs", "{samples}")
    facts.update("seed", "{seed}")
    return str(facts)
