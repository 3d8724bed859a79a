"""What a decoder reads and shares: prefixes at once or step by step, beams with one memory or with their own."""

from dataclasses import replace

import pytest
import torch

from jumok.decode.options import DecodeConfig, Request
from jumok.decode.search import Read, follow_one, search
from jumok.engines.prefixes import read_prefixes
from jumok.models.gpt import Gpt, GptConfig
from jumok.models.seq2seq import Seq2Seq, Seq2SeqConfig
from jumok.models.transformer import Transformer, TransformerConfig

V, END = 30, 0
SMALL = TransformerConfig(d_model=24, d_ff=48, n_heads=2, n_layers=2, dropout=0.0)
RNN = Seq2SeqConfig(cell="gru", d_embedding=24, d_hidden=24, dropout=0.0)
MODELS = {
    "transformer": lambda: Transformer(SMALL, source_vocab=V, target_vocab=V),
    "neighbourhood": lambda: Transformer(replace(SMALL, neighbourhood=2), source_vocab=V, target_vocab=V),
    "bahdanau": lambda: Seq2Seq(replace(RNN, attention="bahdanau"), source_vocab=V, target_vocab=V),
    "luong": lambda: Seq2Seq(replace(RNN, attention="luong", score="concat"), source_vocab=V, target_vocab=V),
    "local-m": lambda: Seq2Seq(
        replace(RNN, attention="luong", window="local-m", reach=2), source_vocab=V, target_vocab=V
    ),
    "gpt": lambda: gpt(),
}
METHODS = [
    DecodeConfig(method="greedy"),
    DecodeConfig(method="sample", temperature=0.8),
    DecodeConfig(beam=3, n_best=3),
]


def spread(model):
    """Random weights that make outputs depend on what was read."""
    torch.manual_seed(5)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


def gpt():
    return Gpt(GptConfig(d_model=24, d_ff=48, n_heads=2, n_layers=2, max_len=40, dropout=0.0), vocab=V)


def started(model, n):
    if isinstance(model, Gpt):
        return model.start(n)
    source = torch.randint(1, V - 1, (n, 7), generator=torch.Generator().manual_seed(2))
    return model.start(source, torch.arange(7) < torch.tensor([7, 4, 5])[:n, None])


@pytest.mark.parametrize("kind", MODELS)
def test_beams_that_share_a_memory_equal_separate_ones(kind):
    """The same rows, selected so that they are beams of one another or so that each has everything for itself."""
    model, generator = spread(MODELS[kind]()), torch.Generator().manual_seed(3)
    rows = torch.arange(3).repeat_interleave(2)
    apart = torch.tensor([0, 1, 1, 2, 2, 0])  # as many rows for each sentence, but not side by side
    with torch.inference_mode():
        first = torch.full((3,), model.start_id)
        _, state = model.step(first, started(model, 3))
        shared, own = state.select(rows), state.select(torch.cat([apart, torch.tensor([0])]))
        for _ in range(4):
            tokens = torch.randint(1, V - 1, (6,), generator=generator)
            place = torch.tensor([0, 5, 1, 2, 3, 4])  # of the shared rows among those apart
            separate = torch.empty(7, dtype=torch.long)
            separate[place], separate[6] = tokens, 1
            logits, shared = model.step(tokens, shared)
            expected, own = model.step(separate, own)
            torch.testing.assert_close(logits, expected[place], rtol=0, atol=1e-5)
            assert (logits[0] - logits[1]).abs().max() > 1e-3, "beams with different tokens differ"
            # Beams change places, and one takes over the other's past.
            moved = torch.tensor([1, 0, 2, 2, 5, 4])
            shared = shared.select(moved)
            again = torch.arange(7)
            again[place] = place[moved]
            own = own.select(again)
        left = torch.tensor([4, 5, 0, 1])  # a sentence leaves, two change places
        tokens = torch.tensor([3, 4, 5, 6])
        logits, _ = model.step(tokens, shared.select(left))
        expected, _ = model.step(tokens, own.select(place[left]))
        torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", MODELS)
def test_a_state_can_be_continued_twice(kind):
    """Buffers with room for more do not let one continuation write over the other."""
    model = spread(MODELS[kind]())
    with torch.inference_mode():
        _, state = model.step(torch.full((2,), model.start_id), started(model, 2))
        _, state = model.step(torch.tensor([3, 4]), state)
        _, one = model.step(torch.tensor([5, 6]), state)
        expected, _ = model.step(torch.tensor([7, 8]), one)
        _, other = model.step(torch.tensor([9, 10]), state)
        torch.testing.assert_close(model.step(torch.tensor([7, 8]), one)[0], expected, rtol=0, atol=1e-6)
        assert (model.step(torch.tensor([7, 8]), other)[0] - expected).abs().max() > 1e-3


PREFIXES = [[4, 9, 2, 7, 5], [], [3], [4, 9, 2, 7, 5], [8, 8, 1, 6, 2, 12, 14, 3, 4], [11, 2, END, 5]]


def asked(seed=1):
    return [
        Request(source_len=0, max_len=len(prefix) + 8, prefix=prefix, seed=seed + i)
        for i, prefix in enumerate(PREFIXES)
    ]


def test_prefixes_read_at_once_equal_step_by_step():
    model = spread(gpt())
    with torch.inference_mode():
        state, read = read_prefixes(model, asked(), end_id=END)
        logits, state = model.step(read.tokens, state)
        further, _ = model.step(torch.arange(1, 7), state)
        for row, prefix in enumerate(PREFIXES):
            written = prefix[: prefix.index(END)] if END in prefix else prefix
            one, total = model.start(1), 0.0
            for token, target in zip([model.start_id, *written], [*written, None], strict=True):
                expected, one = model.step(torch.tensor([token]), one)
                total += 0.0 if target is None else float(expected[0].log_softmax(dim=-1)[target])
            assert read.lengths[row] == len(written)
            assert read.log_probs[row] == pytest.approx(total, abs=1e-4)
            torch.testing.assert_close(logits[row], expected[0], rtol=0, atol=1e-5)
            expected, _ = model.step(torch.tensor([row + 1]), one)
            torch.testing.assert_close(further[row], expected[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("config", METHODS, ids=lambda c: c.method)
def test_reading_prefixes_at_once_changes_no_text(config):
    model = spread(gpt())
    state, read = read_prefixes(model, asked(), end_id=END)
    found = search(model, state, asked(), config, eos_id=END, read=read)
    expected = search(model, model.start(len(PREFIXES)), asked(), config, eos_id=END)
    for ours, theirs in zip(found, expected, strict=True):
        assert [h.ids for h in ours] == [h.ids for h in theirs]
        assert [h.log_prob for h in ours] == pytest.approx([h.log_prob for h in theirs], abs=1e-3)
        assert [h.score for h in ours] == pytest.approx([h.score for h in theirs], abs=1e-3)
    assert len({tuple(h[0].ids) for h in found}) == (5 if config.method != "sample" else 6)


@pytest.mark.parametrize("config", METHODS[:2], ids=lambda c: c.method)
def test_a_stream_after_a_prefix_read_at_once_says_the_same(config):
    model = spread(gpt())
    for request in asked():
        if END in request.prefix:
            continue
        state, read = read_prefixes(model, [request], end_id=END, probabilities=False)
        found = list(follow_one(model, state, request, config, eos_id=END, read=read))
        assert found == list(follow_one(model, model.start(1), request, config, eos_id=END))


def test_nothing_read_is_the_start_token():
    model = gpt()
    assert Read.nothing(model, 2).tokens.tolist() == [V - 1, V - 1]
