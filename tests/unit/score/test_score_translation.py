import json
import random
import socket
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from jumok.errors import DataError, InputError
from jumok.score.translation import (
    bleu_by_length,
    bleu_from,
    bleu_statistics,
    chrf_from,
    chrf_statistics,
    compare_translations,
    quick_scores,
    score_translations,
)

REFERENCES = [
    "Ein Mann mit einem orangefarbenen Hut, der etwas anstarrt.",
    "Zwei Hunde spielen im Schnee.",
    "나는 오늘 아침에 학교에 갔다.",
    "The price is 1,234.50 dollars & 20% off!",
    "Ja",
    "",
]
HYPOTHESES = [
    "Ein Mann mit orangefarbenem Hut, der auf etwas starrt.",
    "zwei Hunde spielen im Schnee .",
    "나는 오늘 학교에 갔습니다.",
    "The price is 1,234.50 dollars &amp; 20% off",
    "",
    "Nein",
]

WORDS = ["the", "The", "cat", "sat", "on", "mat", "1,000.5", "a-b", "&quot;", "(", "!", ".", "나는", "학교에"]
WORDS += ["갔다", "猫が", "座った", "坐在", "垫子", "ß", "I\u0307", "\u3000", "x" * 9]
line = st.one_of(
    st.just(""),
    st.sampled_from(WORDS),
    st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join),
    st.text(max_size=15),
)
pairs = st.lists(st.tuples(line, line) | line.map(lambda same: (same, same)), min_size=1, max_size=6)


def corrupted(lines, rate, seed):
    rng = random.Random(seed)
    return [" ".join(word for word in line.split() if rng.random() > rate) for line in lines]


def sentences(n, seed):
    rng = random.Random(seed)
    vocabulary = [f"w{number}" for number in range(60)]
    return [" ".join(rng.choices(vocabulary, k=rng.randint(1, 60))) + "." for _ in range(n)]


def by_name(results, attribute="name"):
    return {getattr(result, attribute): result for result in results}


@given(pairs, st.booleans(), st.sampled_from(["13a", "zh", "char", "intl", "none"]))
@example([("", "")], False, "13a")
@example([("", "a b c d"), ("a b c d", "")], False, "13a")
@example([("a", "a")], False, "13a")
@example([("a b c d e", "a x c y e")], False, "13a")
@example(list(zip(HYPOTHESES, REFERENCES, strict=True)), True, "13a")
@settings(max_examples=200, deadline=None)
def test_bleu_equals_sacrebleu(lines, lowercase, tokenize):
    hypotheses, references = map(list, zip(*lines, strict=True))
    statistics = bleu_statistics(hypotheses, references, lowercase=lowercase, tokenize=tokenize)
    theirs = BLEU(lowercase=lowercase, tokenize=tokenize).corpus_score(hypotheses, [references])
    assert statistics.sum(axis=0).tolist() == [theirs.sys_len, theirs.ref_len, *theirs.counts, *theirs.totals]
    assert float(bleu_from(statistics.sum(axis=0))) == pytest.approx(theirs.score, abs=1e-9)


@given(pairs)
@example([("", "")])
@example([("", "abc"), ("abc", "")])
@example([("ab", "abcdefgh")])
@example(list(zip(HYPOTHESES, REFERENCES, strict=True)))
@settings(max_examples=200, deadline=None)
def test_chrf_equals_sacrebleu(lines):
    hypotheses, references = map(list, zip(*lines, strict=True))
    ours = float(chrf_from(chrf_statistics(hypotheses, references).sum(axis=0)))
    assert ours == pytest.approx(CHRF().corpus_score(hypotheses, [references]).score, abs=1e-9)


@given(pairs)
@settings(max_examples=50, deadline=None)
def test_every_row_of_statistics_is_scored_as_a_corpus_of_its_own(lines):
    hypotheses, references = map(list, zip(*lines, strict=True))
    bleu = bleu_from(bleu_statistics(hypotheses, references))
    chrf = chrf_from(chrf_statistics(hypotheses, references))
    for row, (hypothesis, reference) in enumerate(lines):
        assert bleu[row] == pytest.approx(BLEU().corpus_score([hypothesis], [[reference]]).score, abs=1e-9)
        assert chrf[row] == pytest.approx(CHRF().corpus_score([hypothesis], [[reference]]).score, abs=1e-9)


def test_a_perfect_translation_scores_exactly_100():
    lines = ["one two three four five", "six seven eight nine"]
    assert [score.value for score in score_translations(lines, lines)] == [100.0] * 4


def test_scores_of_a_fixed_example_are_those_of_sacrebleu():
    scores = by_name(score_translations(HYPOTHESES, REFERENCES))
    assert list(scores) == ["bleu", "bleu_lowercase_tokenised", "chrf", "exact_match"]
    metrics = {"bleu": BLEU(), "bleu_lowercase_tokenised": BLEU(lowercase=True), "chrf": CHRF()}
    for name, metric in metrics.items():
        theirs = metric.corpus_score(HYPOTHESES, [REFERENCES])
        assert scores[name].value == pytest.approx(theirs.score, abs=1e-9)
        assert 0 < scores[name].value < 100
        assert scores[name].n == len(REFERENCES)


@pytest.mark.parametrize(
    ("name", "metric"),
    [("bleu", BLEU()), ("bleu_lowercase_tokenised", BLEU(lowercase=True)), ("chrf", CHRF())],
)
def test_interval_and_signature_are_those_of_sacrebleu(name, metric, monkeypatch):
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    references = sentences(150, seed=1)
    hypotheses = corrupted(references, 0.2, seed=2)
    score = by_name(score_translations(hypotheses, references))[name]
    theirs = metric.corpus_score(hypotheses, [references], n_bootstrap=1000)
    facts = json.loads(theirs.format(width=9, signature=score.signature, is_json=True))
    assert score.signature == str(metric.get_signature())
    assert score.low < score.value < score.high
    assert score.low < facts["confidence_mean"] < score.high
    assert (score.high - score.low) / 2 == pytest.approx(facts["confidence_var"], rel=0.02)


def test_exact_match_ignores_only_the_whitespace_around_a_line():
    score = by_name(score_translations([" a b\n", "a  b", "A b", "a b"], ["a b"] * 4))["exact_match"]
    assert score.value == 50.0
    assert score.signature == "equal lines after strip, bootstrap 1000, seed 12345, 95%"


@pytest.mark.parametrize(
    ("language", "tokenizer"),
    [
        (None, "13a"),
        ("de", "13a"),
        ("ko", "13a"),
        ("zh", "zh"),
        ("zh_CN", "zh"),
        ("ja", "char"),
        ("JA-JP", "char"),
    ],
)
def test_target_language_chooses_the_tokenizer(language, tokenizer):
    hypotheses, references = ["猫坐在垫子上面。", "我 们走"], ["猫坐在垫子的上面。", "我们走吧"]
    bleu = by_name(score_translations(hypotheses, references, target_language=language))["bleu"]
    assert f"tok:{tokenizer}|" in bleu.signature
    theirs = BLEU(tokenize=tokenizer).corpus_score(hypotheses, [references])
    assert bleu.value == pytest.approx(theirs.score, abs=1e-9)


def test_values_do_not_depend_on_the_order_of_the_lines_and_intervals_only_on_the_seed():
    references = sentences(40, seed=3)
    hypotheses = corrupted(references, 0.3, seed=4)
    scores = score_translations(hypotheses, references)
    backwards = score_translations(hypotheses[::-1], references[::-1])
    assert [score.value for score in scores] == [score.value for score in backwards]
    assert scores == score_translations(hypotheses, references)
    reseeded = by_name(score_translations(hypotheses, references, samples=500, seed=7))["bleu"]
    assert (reseeded.low, reseeded.high) != (scores[0].low, scores[0].high)
    assert "|bs:500|seed:7|" in reseeded.signature


@given(st.lists(st.integers(0, 70), min_size=1, max_size=40), st.sets(st.integers(1, 60)))
@settings(max_examples=50, deadline=None)
def test_length_buckets_partition_the_sentences(lengths, edges):
    sources = ["w " * length for length in lengths]
    lines = [f"a b c d {number}" for number in range(len(lengths))]
    buckets = bleu_by_length(lines, lines, sources, edges=sorted(edges), samples=5)
    assert sum(bucket.n for bucket in buckets) == len(lengths)
    for bucket in buckets:
        high = 10**9 if bucket.high is None else bucket.high
        assert bucket.n == bucket.score.n == sum(bucket.low <= length <= high for length in lengths) > 0
    for shorter, longer in zip(buckets, buckets[1:], strict=False):
        assert shorter.high is not None
        assert shorter.high < longer.low


def test_the_score_of_a_length_bucket_is_that_of_its_sentences():
    references = sentences(80, seed=5)
    hypotheses = corrupted(references, 0.25, seed=6)
    buckets = bleu_by_length(hypotheses, references, references)
    ranges = [(0, 10), (11, 20), (21, 30), (31, 40), (41, 50), (51, None)]
    assert [(bucket.low, bucket.high) for bucket in buckets] == ranges
    for bucket in buckets:
        inside = [
            (hypothesis, reference)
            for hypothesis, reference in zip(hypotheses, references, strict=True)
            if bucket.low <= len(reference.split()) <= (bucket.high or 999)
        ]
        ours, theirs = map(list, zip(*inside, strict=True))
        assert bucket.score.value == pytest.approx(BLEU().corpus_score(ours, [theirs]).score, abs=1e-9)
    scores = score_translations(hypotheses, references, sources=references)
    assert scores[4:] == [bucket.score for bucket in buckets]
    assert (scores[4].name, scores[-1].name) == ("bleu_0_to_10_words", "bleu_51_or_more_words")


def test_a_system_does_not_differ_from_itself():
    references = sentences(30, seed=7)
    hypotheses = corrupted(references, 0.3, seed=8)
    comparisons = compare_translations(hypotheses, hypotheses, references, samples=100)
    assert [c.metric for c in comparisons] == ["bleu", "bleu_lowercase_tokenised", "chrf", "exact_match"]
    assert all((c.difference, c.low, c.high, c.p_value) == (0, 0, 0, 1.0) for c in comparisons)


@pytest.mark.parametrize("rate", [0.195, 0.185, 0.14])
def test_paired_test_agrees_with_sacrebleu(rate, monkeypatch):
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    references = sentences(200, seed=9)
    a, b = corrupted(references, 0.2, seed=10), corrupted(references, rate, seed=11)
    ours = by_name(compare_translations(a, b, references), "metric")
    metrics = {"BLEU": BLEU(), "chrF2": CHRF()}
    _, theirs = PairedTest([("a", a), ("b", b)], metrics, [references], test_type="ar", n_samples=1000)()
    for name, metric in (("bleu", "BLEU"), ("chrf", "chrF2")):
        baseline, system = theirs[metric]
        assert ours[name].a == pytest.approx(baseline.score, abs=1e-9)
        assert ours[name].difference == pytest.approx(system.score - baseline.score, abs=1e-9)
        assert ours[name].p_value == pytest.approx(system.p_value, abs=0.06)
        assert ours[name].low < ours[name].difference < ours[name].high


@pytest.mark.parametrize(
    "call",
    [
        lambda: score_translations(["a"], ["a", "b"]),
        lambda: score_translations([], []),
        lambda: chrf_statistics(["a", "b"], ["a"]),
        lambda: score_translations(["a"], ["a"], sources=["a", "b"]),
        lambda: bleu_by_length(["a"], ["a"], []),
        lambda: bleu_by_length([], [], []),
        lambda: compare_translations(["a"], ["a", "b"], ["a"]),
        lambda: compare_translations([], [], []),
    ],
)
def test_lines_that_do_not_pair_up_are_refused(call):
    with pytest.raises(DataError):
        call()


def test_a_tokenizer_that_would_download_is_refused():
    with pytest.raises(InputError) as caught:
        bleu_statistics(["a"], ["a"], tokenize="flores200")
    assert caught.value.code == "input.tokenizer"
    assert "'flores200'" in caught.value.what


def test_scoring_is_silent_and_offline(monkeypatch, capfd, caplog):
    def refuse(*_, **__):
        raise AssertionError("scoring opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    caplog.set_level("DEBUG")
    lines = ["this looks tokenised ."] * 150
    for language in ("de", "ko", "zh", "ja"):
        score_translations(lines, lines, sources=lines, target_language=language, samples=20)
        compare_translations(lines, lines, lines, target_language=language, samples=20)
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_decomposed_text_is_the_same_text():
    composed = ["한국어 문장 하나가 있다", "ein schönes größeres Fräulein"]
    decomposed = [unicodedata.normalize("NFD", line) for line in composed]
    assert decomposed != composed
    for scores in (score_translations(composed, decomposed), score_translations(decomposed, composed)):
        assert {score.name: score.value for score in scores} == {
            "bleu": pytest.approx(100),
            "bleu_lowercase_tokenised": pytest.approx(100),
            "chrf": pytest.approx(100),
            "exact_match": 100,
        }
    assert quick_scores(composed, decomposed)["exact_match"] == 100


def test_quick_scores_are_the_scores():
    for language in ("en", "ja", "zh"):
        whole = {s.name: s.value for s in score_translations(HYPOTHESES, REFERENCES, target_language=language)}
        for name, value in quick_scores(HYPOTHESES, REFERENCES, target_language=language).items():
            assert value == pytest.approx(whole[name])


def test_bleu_by_length_of_a_model_without_capitals():
    lowered = [line.lower() for line in REFERENCES]
    sources = ["a b c"] * len(REFERENCES)
    (cased,) = bleu_by_length(lowered, REFERENCES, sources)
    (fair,) = bleu_by_length(lowered, REFERENCES, sources, lowercase=True)
    assert cased.score.value < 90
    assert fair.score.value == pytest.approx(100)
    assert "case:lc" in fair.score.signature
