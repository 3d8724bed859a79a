from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from math import log, nan

import numpy as np
import pytest
import torch

from jumok.config import read_config
from jumok.decode.beam import coverage_cost, likeliest
from jumok.decode.options import DecodeConfig, Request, length_penalty
from jumok.decode.search import Ensemble, EnsembleState, search
from jumok.errors import CheckpointError, RecipeError

EOS = 0
V = 4  # the end and three pieces
MAX_LEN = 3
ALL = sum(3**length for length in range(MAX_LEN + 1))  # sequences there are


@dataclass(frozen=True)
class Prefixes:
    """Rows of (sentence, start, pieces so far)."""

    rows: torch.Tensor

    def select(self, rows):
        return Prefixes(self.rows.index_select(0, rows))


class Table:
    """A decoder that looks its log-probabilities up by sentence and prefix."""

    start_id = 99
    device = torch.device("cpu")

    def __init__(self, log_probs, looks=None):
        self.log_probs = log_probs
        self.looks = looks

    def start(self, n):
        return Prefixes(torch.arange(n)[:, None])

    def step(self, tokens, state, *, attention=None):
        rows = torch.cat([state.rows, tokens[:, None]], dim=1)
        keys = [(row[0], tuple(row[2:])) for row in rows.tolist()]
        if attention is not None:
            attention.append(torch.tensor([self.looks(prefix) for _, prefix in keys]))
        return torch.tensor([self.log_probs(*key) for key in keys]), Prefixes(rows)


def random_table(seed, *, spread=1.5):
    """Another distribution for every sentence and prefix; spread makes some pieces much likelier than others."""

    @cache
    def log_probs(sentence, prefix):
        logits = np.random.default_rng([seed, sentence, len(prefix), *prefix]).normal(scale=spread, size=V)
        return (logits - np.logaddexp.reduce(logits)).tolist()

    return Table(log_probs)


def written_table(probabilities):
    """Probabilities by prefix; where none are written, the end is all but certain."""

    def log_probs(_, prefix):
        p = probabilities.get(prefix, [1.0])
        return [log(max(x, 1e-9)) for x in [*p, *[0.0] * (V - len(p))]]

    return log_probs


def every_sequence(table, sentence, max_len):
    """All there is to find: ids and log-probability, the end included."""
    for length in range(max_len + 1):
        for ids in product(range(1, V), repeat=length):
            steps = zip(range(length + 1), [*ids, EOS], strict=True)
            yield list(ids), sum(table.log_probs(sentence, ids[:t])[piece] for t, piece in steps)


def ranked(table, sentence, max_len, alpha):
    scored = [
        (log_prob / ((5 + len(ids) + 1) / 6) ** alpha, ids, log_prob)
        for ids, log_prob in every_sequence(table, sentence, max_len)
    ]
    return sorted(scored, key=lambda entry: -entry[0])


def run(table, config, *, n=1, **request):
    requests = [Request(source_len=1, **{"max_len": MAX_LEN, **request}) for _ in range(n)]
    return search(table, table.start(n), requests, config, eos_id=EOS)


def first_ids(found):
    return [hypotheses[0].ids for hypotheses in found]


GREEDY = DecodeConfig(method="greedy")
SAMPLE = DecodeConfig(method="sample")
METHODS = [GREEDY, SAMPLE, DecodeConfig(beam=3)]


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 3.0])
@pytest.mark.parametrize("n_best", [1, 5])
def test_a_wide_beam_finds_the_best_of_all_sequences(alpha, n_best):
    table, sentences = random_table(1), 8
    config = DecodeConfig(beam=ALL, length_penalty=alpha, n_best=n_best)
    lengths = [MAX_LEN, 2, 1, 0, MAX_LEN, 2, MAX_LEN, MAX_LEN]
    requests = [Request(source_len=1, max_len=max_len) for max_len in lengths]
    found = search(table, table.start(sentences), requests, config, eos_id=EOS)
    for sentence, (hypotheses, max_len) in enumerate(zip(found, lengths, strict=True)):
        expected = ranked(table, sentence, max_len, alpha)[:n_best]
        assert [h.ids for h in hypotheses] == [ids for _, ids, _ in expected]
        for hypothesis, (score, _, log_prob) in zip(hypotheses, expected, strict=True):
            assert hypothesis.score == pytest.approx(score, abs=1e-5)
            assert hypothesis.log_prob == pytest.approx(log_prob, abs=1e-5)


@pytest.mark.parametrize("v", [3, 40, 2048, 2053, 4999])
@pytest.mark.parametrize("k", [1, 2, 8])
def test_the_likeliest_tokens_are_those_of_topk(v, k):
    log_probs = torch.randn(12, v, generator=torch.Generator().manual_seed(v)).log_softmax(dim=-1)
    log_probs[0, -1] = 1.0  # beyond the last whole group
    log_probs[1, 5:] = -torch.inf
    k = min(k, v)
    best, pieces = likeliest(log_probs, k)
    assert torch.equal(best, log_probs.topk(k).values)
    assert torch.equal(log_probs.gather(1, pieces), best)


def test_length_penalty_changes_the_winner():
    table = random_table(1)
    winners = {alpha: first_ids(run(table, DecodeConfig(beam=ALL, length_penalty=alpha), n=12)) for alpha in (0.0, 3.0)}
    lengths = {alpha: sum(map(len, ids)) for alpha, ids in winners.items()}
    assert lengths[0.0] < lengths[3.0]


def test_length_penalty_by_hand():
    assert length_penalty(1, 0.6) == 1
    assert length_penalty(7, 1.0) == 2
    assert length_penalty(19, 0.5) == 2
    assert length_penalty(30, 0.0) == 1


def test_beam_finds_what_greedy_walks_past():
    table = Table(
        written_table({(): [0.0, 0.6, 0.4], (1,): [0.3, 0.2, 0.25, 0.25], (2,): [0.9, 0.1], (1, 1): [1.0]}),
    )
    plain = DecodeConfig(beam=2, length_penalty=0.0)
    [greedy], [beam] = run(table, GREEDY)[0], run(table, plain)[0]
    assert (greedy.ids, beam.ids) == ([1], [2])
    assert greedy.log_prob == pytest.approx(log(0.6 * 0.3), abs=1e-5)
    assert beam.log_prob == pytest.approx(log(0.4 * 0.9), abs=1e-5)


def test_a_search_goes_on_while_a_longer_output_may_win():
    # The empty output has log 0.5 / 1, and log 0.4 for three pieces and their end is divided by 9 / 6.
    table = Table(written_table({(): [0.5, 0.4, 0.1], (1,): [0.0, 1.0], (1, 1): [0.0, 1.0]}))
    [best] = run(table, DecodeConfig(beam=2, length_penalty=1.0))[0]
    assert best.ids == [1, 1, 1]
    assert best.score == pytest.approx(log(0.4) / 1.5, abs=1e-5)


def test_poor_early_ends_do_not_stop_a_search():
    table = Table(written_table({(): [0.3, 0.7], (1,): [0.3, 0.7], (1, 1): [0.0, 1.0]}))
    [best] = run(table, DecodeConfig(beam=2, length_penalty=0.0))[0]
    assert best.ids == [1, 1, 1]
    assert best.log_prob == pytest.approx(log(0.49), abs=1e-5)


def argmax_path(table, sentence, max_len):
    ids, log_prob = (), 0.0
    while True:
        log_probs = table.log_probs(sentence, ids)
        piece = EOS if len(ids) == max_len else int(np.argmax(log_probs))
        log_prob += log_probs[piece]
        if piece == EOS:
            return list(ids), log_prob
        ids = (*ids, piece)


def test_greedy_takes_the_likeliest_piece_each_time():
    table, n = random_table(2), 30
    found = run(table, GREEDY, n=n, max_len=6)
    assert len({len(ids) for ids in first_ids(found)}) > 3
    for sentence, [hypothesis] in enumerate(found):
        ids, log_prob = argmax_path(table, sentence, 6)
        assert hypothesis.ids == ids
        assert hypothesis.log_prob == hypothesis.score == pytest.approx(log_prob, abs=1e-5)


def test_a_beam_of_one_is_greedy():
    table = random_table(3)
    beam = DecodeConfig(beam=1, length_penalty=0.0)
    assert first_ids(run(table, beam, n=30, max_len=6)) == first_ids(run(table, GREEDY, n=30, max_len=6))


@pytest.mark.parametrize("config", METHODS, ids=lambda c: c.method)
@pytest.mark.parametrize("prefix", [(3,), (2, 2), (1, 3, 1), (1, 2, 3, 1)])
def test_a_prefix_is_kept_and_counted(config, prefix):
    table = random_table(4)
    for sentence, [hypothesis] in enumerate(run(table, config, n=6, prefix=prefix)):
        ids = tuple(hypothesis.ids)
        assert ids[: len(prefix)] == prefix
        assert len(ids) <= max(MAX_LEN, len(prefix))
        expected = sum(table.log_probs(sentence, ids[:t])[piece] for t, piece in enumerate([*ids, EOS]))
        assert hypothesis.log_prob == pytest.approx(expected, abs=1e-5)


def test_a_wide_beam_finds_the_best_with_the_prefix():
    table = random_table(5)
    for sentence, hypotheses in enumerate(run(table, DecodeConfig(beam=ALL, n_best=4), n=6, prefix=(2,))):
        expected = [ids for _, ids, _ in ranked(table, sentence, MAX_LEN, 0.6) if ids[:1] == [2]]
        assert [h.ids for h in hypotheses] == expected[:4]


def test_each_sentence_has_its_own_prefix_and_room():
    table = random_table(6)
    requests = [
        Request(source_len=1, max_len=4),
        Request(source_len=1, max_len=2, prefix=(3, 3)),
        Request(source_len=1, max_len=3, prefix=(2,)),
    ]
    together = search(table, table.start(3), requests, DecodeConfig(beam=3), eos_id=EOS)
    for sentence, request in enumerate(requests):
        state = table.start(3).select(torch.tensor([sentence]))
        assert search(table, state, [request], DecodeConfig(beam=3), eos_id=EOS) == [together[sentence]]


@pytest.mark.parametrize("config", METHODS, ids=lambda c: c.method)
@pytest.mark.parametrize("max_len", [0, 1, 5])
def test_an_output_ends_where_the_room_ends(config, max_len):
    endless = Table(lambda *_: [-60.0, -0.1, -3.0, -4.0])
    for [hypothesis] in run(endless, config, n=3, max_len=max_len):
        assert len(hypothesis.ids) == max_len
        assert EOS not in hypothesis.ids
        assert hypothesis.log_prob < -59  # the end that was forced is paid for


@pytest.mark.parametrize("beam", [2, 4, 7])
def test_n_best_are_distinct_and_sorted(beam):
    table = random_table(7)
    for hypotheses in run(table, DecodeConfig(beam=beam, n_best=beam), n=10, max_len=6):
        assert len(hypotheses) == beam
        assert len({tuple(h.ids) for h in hypotheses}) == beam
        scores = [h.score for h in hypotheses]
        assert scores == sorted(scores, reverse=True)


def test_a_wider_beam_than_the_vocabulary_is_no_problem():
    table = random_table(8)
    hypotheses = run(table, DecodeConfig(beam=9, n_best=3), max_len=1)[0]
    assert [h.ids for h in hypotheses] == [ids for _, ids, _ in ranked(table, 0, 1, 0.6)[:3]]


P = [0.5, 0.3, 0.15, 0.05]


def drawn(p, config, *, n=4000):
    """How often each piece was drawn first, in n draws with seeds of their own."""
    table = Table(lambda _, prefix: [log(x) for x in p])
    requests = [Request(source_len=1, max_len=1, seed=seed) for seed in range(n)]
    found = search(table, table.start(n), requests, config, eos_id=EOS)
    return Counter(hypotheses[0].ids[0] if hypotheses[0].ids else EOS for hypotheses in found)


def assert_follows(counts, p):
    n = counts.total()
    assert all(p[piece] > 0 for piece in counts)
    statistic = sum((counts[i] - n * x) ** 2 / (n * x) for i, x in enumerate(p) if x)
    assert statistic < 20  # 0.9998 of draws with three degrees of freedom


def test_samples_follow_the_distribution():
    assert_follows(drawn(P, SAMPLE), P)


def test_temperature_sharpens():
    sharp = np.array(P) ** 2
    assert_follows(drawn(P, replace(SAMPLE, temperature=0.5)), sharp / sharp.sum())


@pytest.mark.parametrize(
    "cut", [{"top_k": 2}, {"top_p": 0.75}, {"top_p": 0.51}, {"top_k": 3, "top_p": 0.8}, {"top_k": 2, "top_p": 0.9}]
)
def test_top_k_and_top_p_cut_the_unlikely(cut):
    assert_follows(drawn(P, replace(SAMPLE, **cut)), [5 / 8, 3 / 8, 0, 0])


@pytest.mark.parametrize("cut", [{"top_k": 1}, {"top_p": 1e-6}, {"top_p": 0.5}])
def test_only_the_likeliest_is_left(cut):
    assert drawn([0.1, 0.2, 0.6, 0.1], replace(SAMPLE, **cut), n=200) == {2: 200}


def test_sampling_among_one_is_greedy():
    table = random_table(9)
    sampled = run(table, replace(SAMPLE, top_k=1), n=30, max_len=6)
    assert first_ids(sampled) == first_ids(run(table, GREEDY, n=30, max_len=6))


def test_samples_are_a_function_of_the_seed():
    table = random_table(10, spread=0.5)
    same = [run(table, SAMPLE, max_len=8, seed=3) for _ in range(2)]
    assert same[0] == same[1]
    assert len({tuple(first_ids(run(table, SAMPLE, max_len=8, seed=seed))[0]) for seed in range(20)}) > 10


def test_coverage_cost_by_hand():
    coverage = torch.tensor([[0.5, 2.0], [1.0, 0.25]])
    torch.testing.assert_close(coverage_cost(coverage, 0.2), 0.2 * torch.tensor([log(0.5), log(0.25)]))


def test_coverage_penalty_prefers_what_looked_at_everything():
    looks = {(): [1.0, 0.0, 0.0], (1,): [1.0, 0.0, 0.0], (2,): [0.0, 0.5, 0.5]}
    table = Table(written_table({(): [0.1, 0.7, 0.2]}), looks=lambda prefix: looks.get(prefix, [1.0, 0.0, 0.0]))
    request = Request(source_len=2, max_len=2)  # the third source position is padding
    found = {}
    for beta in (0.0, 0.2):
        config = DecodeConfig(beam=3, coverage_penalty=beta)
        [[found[beta]]] = search(table, table.start(1), [request], config, eos_id=EOS)
    assert found[0.0].ids == [1]
    assert found[0.2].ids == [2]
    assert found[0.2].log_prob == pytest.approx(log(0.2), abs=1e-5)
    assert found[0.2].score == pytest.approx(log(0.2) / length_penalty(2, 0.6) + 0.2 * log(0.5), abs=1e-5)


def test_coverage_follows_its_hypothesis_when_beams_change_places():
    # Every step looks at the position of the piece before it, so coverage can be read off the ids.
    def looks(prefix):
        return [float(i == (prefix[-1] if prefix else 0)) for i in range(V)]

    table = Table(random_table(11).log_probs, looks=looks)
    config = DecodeConfig(beam=5, n_best=5, coverage_penalty=0.1)
    requests = [Request(source_len=V, max_len=5) for _ in range(6)]
    for hypotheses in search(table, table.start(6), requests, config, eos_id=EOS):
        for h in hypotheses:
            unseen = V - len({0, *h.ids})
            expected = h.log_prob / length_penalty(len(h.ids) + 1, 0.6) + 0.1 * unseen * log(1e-9)
            assert h.score == pytest.approx(expected, abs=1e-4)


def together(tables, config, *, n, max_len=MAX_LEN):
    ensemble = Ensemble(tables)
    state = EnsembleState([table.start(n) for table in tables])
    requests = [Request(source_len=1, max_len=max_len) for _ in range(n)]
    return search(ensemble, state, requests, config, eos_id=EOS)


@pytest.mark.parametrize("config", METHODS, ids=lambda c: c.method)
def test_an_ensemble_of_equals_is_one_of_them(config):
    table = random_table(12)
    alone, both = run(table, config, n=10, max_len=6), together([table, table], config, n=10, max_len=6)
    assert first_ids(both) == first_ids(alone)
    scores = [[h[0].score for h in found] for found in (both, alone)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-5)


def test_an_ensemble_is_the_mean_of_probabilities():
    a, b = random_table(13), random_table(14)
    mean = Table(lambda *key: (np.logaddexp(a.log_probs(*key), b.log_probs(*key)) - log(2)).tolist())
    found = together([a, b], DecodeConfig(beam=ALL), n=6)
    for sentence, [hypothesis] in enumerate(found):
        score, ids, log_prob = ranked(mean, sentence, MAX_LEN, 0.6)[0]
        assert hypothesis.ids == ids
        assert hypothesis.score == pytest.approx(score, abs=1e-5)
        assert hypothesis.log_prob == pytest.approx(log_prob, abs=1e-5)
    assert first_ids(found) != first_ids(run(a, DecodeConfig(beam=ALL), n=6))


def test_an_ensemble_looks_where_its_parts_look_on_average():
    parts = [Table(lambda *_: [0.0] * V, looks=lambda _, w=w: w) for w in ([1.0, 0.0], [0.5, 0.5])]
    attention = []
    state = EnsembleState([part.start(1) for part in parts])
    Ensemble(parts).step(torch.tensor([99]), state, attention=attention)
    assert [row.tolist() for row in attention] == [[[0.75, 0.25]]]


@pytest.mark.parametrize(
    "options",
    [
        {"beam": 0},
        {"n_best": 0},
        {"n_best": 5},
        {"method": "greedy", "n_best": 2},
        {"max_extra": 0},
        {"temperature": 0.0},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"top_k": -1},
        {"length_penalty": -0.1},
        {"coverage_penalty": -0.1},
    ],
    ids=str,
)
def test_impossible_options_are_refused(options):
    with pytest.raises(RecipeError) as caught:
        read_config(DecodeConfig, options, what="[decode]")
    assert [mistake.key for mistake in caught.value.mistakes] == [*(options.keys() - {"method"})]
    assert caught.value.code == ("recipe.mismatch" if options.get("n_best") else "recipe.value")


@pytest.mark.parametrize("method", ["beam", "greedy", "sample"])
@pytest.mark.parametrize("after", [0, 2])
def test_probabilities_that_are_not_numbers_name_the_model(method, after):
    table = random_table(3)
    broken = Table(lambda i, prefix: [nan] * V if len(prefix) >= after else table.log_probs(i, prefix))
    request = Request(source_len=3, max_len=6, prefix=[2, 3])
    with pytest.raises(CheckpointError) as caught:
        search(broken, broken.start(1), [request], DecodeConfig(method=method), eos_id=EOS)
    assert caught.value.code == "checkpoint.not_finite"
