import importlib.util
import json
import random
import re
import socket
import unicodedata
from itertools import pairwise

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
    translation_metrics,
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


def bounds(name):
    """The shortest and the longest source of a bucket."""
    low, high = re.fullmatch(r"bleu_(\d+)_(?:to_(\d+)|or_more)_words", name).groups()
    return int(low), None if high is None else int(high)


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
    assert [score.value for score in translation_metrics(lines, lines).scores()] == [100.0] * 4


def test_scores_of_a_fixed_example_are_those_of_sacrebleu():
    scores = by_name(translation_metrics(HYPOTHESES, REFERENCES).scores())
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
    score = by_name(translation_metrics(hypotheses, references).scores())[name]
    theirs = metric.corpus_score(hypotheses, [references], n_bootstrap=1000)
    facts = json.loads(theirs.format(width=9, signature=score.signature, is_json=True))
    assert score.signature == str(metric.get_signature())
    assert score.low < score.value < score.high
    assert score.low < facts["confidence_mean"] < score.high
    assert (score.high - score.low) / 2 == pytest.approx(facts["confidence_var"], rel=0.02)


def test_exact_match_ignores_only_the_whitespace_around_a_line():
    score = by_name(translation_metrics([" a b\n", "a  b", "A b", "a b"], ["a b"] * 4).scores())["exact_match"]
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
    bleu = by_name(translation_metrics(hypotheses, references, target_language=language).scores())["bleu"]
    assert f"tok:{tokenizer}|" in bleu.signature
    theirs = BLEU(tokenize=tokenizer).corpus_score(hypotheses, [references])
    assert bleu.value == pytest.approx(theirs.score, abs=1e-9)


def test_values_do_not_depend_on_the_order_of_the_lines_and_intervals_only_on_the_seed():
    references = sentences(40, seed=3)
    hypotheses = corrupted(references, 0.3, seed=4)
    scores = translation_metrics(hypotheses, references).scores()
    backwards = translation_metrics(hypotheses[::-1], references[::-1]).scores()
    assert [score.value for score in scores] == [score.value for score in backwards]
    assert scores == translation_metrics(hypotheses, references).scores()
    reseeded = by_name(translation_metrics(hypotheses, references).scores(samples=500, seed=7))["bleu"]
    assert (reseeded.low, reseeded.high) != (scores[0].low, scores[0].high)
    assert "|bs:500|seed:7|" in reseeded.signature


@given(st.lists(st.integers(0, 70), min_size=1, max_size=40), st.sets(st.integers(1, 60)))
@settings(max_examples=50, deadline=None)
def test_length_buckets_partition_the_sentences(lengths, edges):
    sources = ["w " * length for length in lengths]
    lines = [f"a b c d {number}" for number in range(len(lengths))]
    scores = bleu_by_length(translation_metrics(lines, lines), sources, edges=sorted(edges)).scores(samples=5)
    assert sum(score.n for score in scores) == len(lengths)
    buckets = [bounds(score.name) for score in scores]
    for (low, high), score in zip(buckets, scores, strict=True):
        assert score.n == sum(low <= length <= (10**9 if high is None else high) for length in lengths) > 0
    for (_, high), (low, _) in pairwise(buckets):
        assert high is not None
        assert high < low


def test_the_score_of_a_length_bucket_is_that_of_its_sentences():
    references = sentences(80, seed=5)
    hypotheses = corrupted(references, 0.25, seed=6)
    scores = bleu_by_length(translation_metrics(hypotheses, references), references).scores()
    ranges = [(0, 10), (11, 20), (21, 30), (31, 40), (41, 50), (51, None)]
    assert [bounds(score.name) for score in scores] == ranges
    for (low, high), score in zip(ranges, scores, strict=True):
        inside = [
            (hypothesis, reference)
            for hypothesis, reference in zip(hypotheses, references, strict=True)
            if low <= len(reference.split()) <= (high or 999)
        ]
        ours, theirs = map(list, zip(*inside, strict=True))
        assert score.value == pytest.approx(BLEU().corpus_score(ours, [theirs]).score, abs=1e-9)
    assert (scores[0].name, scores[-1].name) == ("bleu_0_to_10_words", "bleu_51_or_more_words")


def test_a_system_does_not_differ_from_itself():
    references = sentences(30, seed=7)
    hypotheses = corrupted(references, 0.3, seed=8)
    metrics = translation_metrics(hypotheses, references)
    comparisons = metrics.against(metrics, samples=100)
    assert [c.metric for c in comparisons] == ["bleu", "bleu_lowercase_tokenised", "chrf", "exact_match"]
    assert all((c.difference, c.low, c.high, c.p_value) == (0, 0, 0, 1.0) for c in comparisons)


@pytest.mark.parametrize("rate", [0.195, 0.185, 0.14])
def test_paired_test_agrees_with_sacrebleu(rate, monkeypatch):
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    references = sentences(200, seed=9)
    a, b = corrupted(references, 0.2, seed=10), corrupted(references, rate, seed=11)
    ours = by_name(translation_metrics(a, references).against(translation_metrics(b, references)), "metric")
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
        lambda: translation_metrics(["a"], ["a", "b"]),
        lambda: translation_metrics([], []),
        lambda: chrf_statistics(["a", "b"], ["a"]),
        lambda: bleu_by_length(translation_metrics(["a"], ["a"]), ["a", "b"]),
        lambda: bleu_by_length(translation_metrics(["a"], ["a"]), []),
        lambda: translation_metrics(["a"], ["a"]).against(translation_metrics(["a", "b"], ["a", "b"])),
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
        metrics = translation_metrics(lines, lines, target_language=language)
        metrics.scores(samples=20)
        bleu_by_length(metrics, lines).scores(samples=20)
        metrics.against(metrics, samples=20)
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_decomposed_text_is_the_same_text():
    composed = ["한국어 문장 하나가 있다", "ein schönes größeres Fräulein"]
    decomposed = [unicodedata.normalize("NFD", line) for line in composed]
    assert decomposed != composed
    for metrics in (translation_metrics(composed, decomposed), translation_metrics(decomposed, composed)):
        assert {score.name: score.value for score in metrics.scores()} == {
            "bleu": pytest.approx(100),
            "bleu_lowercase_tokenised": pytest.approx(100),
            "chrf": pytest.approx(100),
            "exact_match": 100,
        }
        assert metrics.values("exact_match") == {"exact_match": 100}


def test_values_are_those_of_the_scores():
    for language in ("en", "ja", "zh"):
        metrics = translation_metrics(HYPOTHESES, REFERENCES, target_language=language)
        scores = {score.name: score.value for score in metrics.scores()}
        assert metrics.values() == pytest.approx(scores)
        assert metrics.values("bleu", "exact_match").keys() == {"bleu", "exact_match"}


def test_bleu_by_length_of_a_model_without_capitals():
    lowered = [line.lower() for line in REFERENCES]
    sources = ["a b c"] * len(REFERENCES)
    metrics = translation_metrics(lowered, REFERENCES)
    (cased,) = bleu_by_length(metrics, sources).scores()
    (fair,) = bleu_by_length(metrics, sources, lowercase=True).scores()
    assert cased.value < 90
    assert fair.value == pytest.approx(100)
    assert "case:lc" in fair.signature


KOREAN = ["고양이가 매트 위에 앉았다.", "오늘은 비가 온다", "나는 학교에 갔다"]
SAID = ["고양이는 매트 위에 앉았다.", "오늘 비가 왔다", "나는 학교에 갔다"]


@pytest.mark.parametrize("language", ["ko", "ko-KR"])
def test_korean_is_scored_by_chrf_first_and_by_characters_as_sacrebleu_does(language):
    found = {score.name: score for score in translation_metrics(SAID, KOREAN, target_language=language).scores()}
    names = [name for name in found if name != "bleu_morphemes"]
    assert names == ["chrf", "bleu", "bleu_lowercase_tokenised", "bleu_characters", "exact_match"]
    theirs = BLEU(tokenize="char")
    assert found["bleu_characters"].value == pytest.approx(theirs.corpus_score(SAID, [KOREAN]).score, abs=1e-9)
    assert "tok:char" in found["bleu_characters"].signature
    assert "tok:13a" in found["bleu"].signature
    assert found["bleu"].value < found["bleu_characters"].value


def test_morphemes_are_scored_where_their_analyser_is_installed():
    names = translation_metrics(SAID, KOREAN, target_language="ko").names
    assert ("bleu_morphemes" in names) == (importlib.util.find_spec("mecab_ko") is not None)
    assert "bleu_characters" not in translation_metrics(SAID, KOREAN, target_language="en").names
