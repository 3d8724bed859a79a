"""What every model that turns a sequence into a sequence must satisfy; a new one is one line in MODELS."""

from dataclasses import replace
from functools import cache

import pytest
import torch

from jumok.data.pages import pad
from jumok.decode.options import DecodeConfig, length_penalty
from jumok.engines.torch import TorchEngine
from jumok.models.seq2seq import Seq2Seq, Seq2SeqConfig
from jumok.models.transformer import Transformer, TransformerConfig
from jumok.tasks.translation import TranslationFacts
from jumok.tasks.translation.predictor import Translator, translate
from jumok.tasks.translation.task import make_batch, translation_loss
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import EOS_ID, TokenizerConfig
from jumok.train.optimizer import OptimizerConfig, learning_rate, make_optimizer

TOKENIZER = Tokenizer.train(TokenizerConfig(kind="word", vocab_size=20), ["a b c d e f g h i j"])
TOKENIZERS = Tokenizers(TOKENIZER, TOKENIZER)
V, PAD = TOKENIZER.vocab_size, TOKENIZER.pad_id
SMALL = TransformerConfig(d_model=24, d_ff=48, n_heads=2, n_layers=2, dropout=0.0)


def transformer(**changes):
    return Transformer(replace(SMALL, **changes), source_vocab=V, target_vocab=V)


def rnn(**changes):
    small = Seq2SeqConfig(d_embedding=24, d_hidden=24, dropout=0.0)
    return Seq2Seq(replace(small, **changes), source_vocab=V, target_vocab=V)


MODELS = {
    "transformer": transformer,
    "transformer, pre-norm": lambda: transformer(norm="pre"),
    "transformer, learned positions": lambda: transformer(positions="learned", max_len=40),
    "transformer, neighbourhood": lambda: transformer(neighbourhood=2),
    "transformer, d_k and d_v": lambda: transformer(d_k=6, d_v=10),
    "transformer, untied": lambda: transformer(tie_embeddings="none"),
    "lstm, no attention": rnn,
    "gru, no attention, context at every step": lambda: rnn(cell="gru", feed_context=True),
    "lstm, no attention, reversed source, two layers": lambda: rnn(reverse_source=True, n_layers=2),
    "elman, luong": lambda: rnn(cell="elman", attention="luong", score="dot"),
    "bahdanau": lambda: rnn(cell="gru", bidirectional=True, attention="bahdanau"),
    "bahdanau, lstm, untied": lambda: rnn(attention="bahdanau", n_layers=2, tie_embeddings="none", d_embedding=10),
    "luong, dot": lambda: rnn(attention="luong", score="dot", bidirectional=True),
    "luong, general": lambda: rnn(attention="luong", cell="gru"),
    "luong, concat, reversed": lambda: rnn(attention="luong", score="concat", reverse_source=True),
    "luong, local-m": lambda: rnn(attention="luong", window="local-m", reach=2),
    "luong, local-p": lambda: rnn(attention="luong", window="local-p", reach=2),
    "luong, input feeding": lambda: rnn(attention="luong", input_feeding=True, n_layers=2),
    "luong, local-p, input feeding": lambda: rnn(attention="luong", window="local-p", reach=3, input_feeding=True),
}

each_model = pytest.mark.parametrize("kind", MODELS)
ATTENDING = [kind for kind in MODELS if "no attention" not in kind]
each_attending_model = pytest.mark.parametrize("kind", ATTENDING)


def random_ids(n, seed, *, shortest=1, longest=8):
    """Sentences of one to eight words, each with its end."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(shortest, longest + 1, (n,), generator=generator).tolist()
    return [[*torch.randint(2, PAD, (length,), generator=generator).tolist(), EOS_ID] for length in lengths]


def random_batch(n, seed):
    return make_batch(random_ids(n, seed), random_ids(n, seed + 1000), TOKENIZERS)


def steps(model, batches, *, rate=5e-3, warmup=10):
    """Train on one batch after another; yields the loss of each step, before it is taken."""
    config = OptimizerConfig(schedule="constant", learning_rate=rate, warmup=warmup)
    optimizer = make_optimizer(model, config)
    for step, batch in enumerate(batches, 1):
        optimizer.zero_grad()
        loss = translation_loss(model, batch, smoothing=0.0)
        mean = loss.total / loss.count
        mean.backward()
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, config, peak=rate, steps=0)
        optimizer.step()
        yield float(mean.detach())


def loss_of(model, batch):
    with torch.no_grad():
        loss = translation_loss(model, batch, smoothing=0.1)
    return float(loss.total), loss.count


def new_model(kind):
    torch.manual_seed(1)
    return MODELS[kind]()


@cache
def trained(kind):
    """A model that has begun to copy: it says different things about different sentences, and comes to an end."""
    model = new_model(kind)
    sentences = [random_ids(16, seed, shortest=2) for seed in range(90)]
    for _ in steps(model, [make_batch(ids, ids, TOKENIZERS) for ids in sentences]):
        pass
    return model.eval()


def widened(batch, source, target):
    """The same examples with more padding."""

    def wide(ids, by):
        return torch.cat([ids, ids.new_full((len(ids), by), PAD)], dim=1)

    out = wide(batch.target_out, target)
    return replace(
        batch,
        source=wide(batch.source, source),
        source_mask=wide(batch.source, source) != PAD,
        target_in=wide(batch.target_in, target),
        target_out=out,
        positions=(out != PAD).flatten().nonzero()[:, 0],
    )


@each_model
def test_padding_changes_nothing(kind):
    model, batch = trained(kind), random_batch(6, seed=1)
    real = batch.target_out != PAD
    hidden = model(batch.source, batch.source_mask, batch.target_in)
    total, count = loss_of(model, batch)
    assert count == int(real.sum())
    for source, target in ((3, 0), (0, 4), (5, 2)):
        wide = widened(batch, source, target)
        found = model(wide.source, wide.source_mask, wide.target_in)[:, : real.shape[1]]
        torch.testing.assert_close(found[real], hidden[real], rtol=0, atol=1e-5)
        assert loss_of(model, wide) == (pytest.approx(total, rel=1e-6), count)


@each_model
def test_what_stands_on_padding_is_never_seen(kind):
    model, batch = trained(kind), random_batch(6, seed=2)
    hidden = model(batch.source, batch.source_mask, batch.target_in)
    source = torch.where(batch.source_mask, batch.source, 5)
    assert not torch.equal(source, batch.source)
    torch.testing.assert_close(model(source, batch.source_mask, batch.target_in), hidden, rtol=0, atol=1e-6)


@each_model
def test_the_loss_of_a_batch_is_the_sum_of_its_examples(kind):
    model = trained(kind)
    sources, targets = random_ids(5, seed=3), random_ids(5, seed=4)
    pairs = zip(sources, targets, strict=True)
    alone = [loss_of(model, make_batch([source], [target], TOKENIZERS)) for source, target in pairs]
    total, count = (sum(part) for part in zip(*alone, strict=True))
    assert loss_of(model, make_batch(sources, targets, TOKENIZERS)) == (pytest.approx(total, rel=1e-5), count)


@each_model
def test_the_future_never_leaks(kind):
    model, batch = trained(kind), random_batch(4, seed=5)
    hidden = model(batch.source, batch.source_mask, batch.target_in)
    length = batch.target_in.shape[1]
    for t in range(length - 1):
        other = batch.target_in.clone()
        other[:, t + 1 :] = (other[:, t + 1 :] + 3) % PAD
        found = model(batch.source, batch.source_mask, other)
        torch.testing.assert_close(found[:, : t + 1], hidden[:, : t + 1], rtol=0, atol=1e-6)
        assert (found[:, t + 1] - hidden[:, t + 1]).abs().max() > 1e-3


@each_model
def test_step_by_step_equals_teacher_forcing(kind):
    model, batch = trained(kind), random_batch(5, seed=6)
    expected = model.logits(model(batch.source, batch.source_mask, batch.target_in))
    assert expected.shape[-1] == V - 1
    target, real = batch.target_in, batch.target_out != PAD
    assert target[:, 0].eq(model.start_id).all()
    state = model.start(batch.source, batch.source_mask)
    for t in range(target.shape[1]):
        logits, state = model.step(target[:, t], state)
        torch.testing.assert_close(logits[real[:, t]], expected[real[:, t], t], rtol=0, atol=1e-5)
        # A row may be dropped, repeated and moved at any time.
        rows = torch.tensor([4, 2, 2, 0, 1]) if t == 1 else torch.arange(5).flip(0)
        state, target, expected, real = state.select(rows), target[rows], expected[rows], real[rows]


@each_model
def test_a_state_is_a_value(kind):
    model, batch = trained(kind), random_batch(3, seed=7)
    state = model.start(batch.source, batch.source_mask)
    _, state = model.step(batch.target_in[:, 0], state)
    first, _ = model.step(batch.target_in[:, 1], state)
    other, _ = model.step((batch.target_in[:, 1] + 1) % PAD, state)
    again, _ = model.step(batch.target_in[:, 1], state)
    assert torch.equal(first, again)
    assert not torch.allclose(first, other, atol=1e-3)


@each_attending_model
def test_a_step_tells_where_it_looked(kind):
    model, batch = trained(kind), random_batch(3, seed=8)
    state, attention = model.start(batch.source, batch.source_mask), []
    watched, _ = model.step(batch.target_in[:, 0], state, attention=attention)
    torch.testing.assert_close(watched, model.step(batch.target_in[:, 0], state)[0], rtol=0, atol=1e-5)
    if "local-p" in kind:  # whose bell takes from every weight and gives to none
        assert attention[0].sum(dim=1).le(1).all()
    else:
        torch.testing.assert_close(attention[0].sum(dim=1), torch.ones(3))
    assert attention[0][~batch.source_mask].eq(0).all()


GREEDY = DecodeConfig(method="greedy", max_extra=4)
BEAM = DecodeConfig(method="beam", beam=4, n_best=2, max_extra=4)
SAMPLE = DecodeConfig(method="sample", max_extra=4)


def engine(*models):
    return TorchEngine(models, TOKENIZERS)


def decoded(kind, sources, config):
    found = translate(engine(trained(kind)), sources, config)
    return [[hypothesis.ids for hypothesis in hypotheses] for hypotheses in found]


@each_model
def test_a_beam_of_one_is_greedy(kind):
    sources = random_ids(20, seed=9)
    beam = DecodeConfig(beam=1, length_penalty=0.0, max_extra=4)
    assert decoded(kind, sources, beam) == decoded(kind, sources, GREEDY)


@each_model
@pytest.mark.parametrize("config", [GREEDY, BEAM, SAMPLE], ids=lambda c: c.method)
def test_batch_order_and_size_change_nothing(kind, config, monkeypatch):
    sources = random_ids(30, seed=10)
    together = decoded(kind, sources, config)
    assert len({len(ids) for [ids, *_] in together}) > 3, "sentences must leave the batch at different times"
    assert len({tuple(ids) for [ids, *_] in together}) > 15
    order = torch.randperm(30, generator=torch.Generator().manual_seed(1)).tolist()
    monkeypatch.setattr("jumok.engines.torch.SEARCH_TOKENS", 100)
    assert decoded(kind, [sources[i] for i in order], config) == [together[i] for i in order]
    assert [decoded(kind, [source], config)[0] for source in sources] == together


@each_model
def test_an_ensemble_of_equals_is_one_of_them(kind):
    sources, model = random_ids(8, seed=11), trained(kind)
    found = translate(engine(model, model), sources, BEAM)
    assert [[h.ids for h in hypotheses] for hypotheses in found] == decoded(kind, sources, BEAM)


@each_model
def test_the_alignment_is_what_the_steps_looked_at(kind):
    model, batch = trained(kind), random_batch(4, seed=14)
    state, attention = model.start(batch.source, batch.source_mask), []
    for t in range(batch.target_in.shape[1]):
        _, state = model.step(batch.target_in[:, t], state, attention=attention)
    with torch.inference_mode():
        found = model.alignment(batch.source, batch.source_mask, batch.target_in)
    if kind not in ATTENDING:
        assert found is None
        assert not attention
        return
    real = batch.target_out != PAD
    torch.testing.assert_close(found[real], torch.stack(attention, dim=1)[real], rtol=0, atol=1e-5)


@each_model
def test_a_translator_aligns_as_the_model_does(kind):
    model = trained(kind)
    translator = Translator(engine(model), TOKENIZERS, TranslationFacts())
    for source, output in (("a b c d", "d c"), ("e", "f g h"), ("", "a"), ("a b", "")):
        found = translator.align(source, output)
        if kind not in ATTENDING:
            assert found is None
            continue
        ids, written = torch.tensor([TOKENIZERS.encode_source(source)]), TOKENIZER.encode(output)
        with torch.inference_mode():
            expected = model.alignment(ids, torch.ones_like(ids, dtype=torch.bool), torch.tensor([[PAD, *written]]))
        torch.testing.assert_close(torch.tensor(found.weights), expected[0], rtol=0, atol=5.1e-5)  # of four digits
        assert (len(found.target), len(found.source)) == expected[0].shape


@each_model
def test_losses_are_those_of_training_without_smoothing(kind):
    sources, targets = random_ids(9, seed=20), random_ids(9, seed=21)
    with torch.no_grad():
        expected = translation_loss(trained(kind), make_batch(sources, targets, TOKENIZERS), smoothing=0.0)
    total, count = engine(trained(kind)).losses(sources, targets)
    assert (total, count) == (pytest.approx(float(expected.total), rel=1e-5), expected.count)


@each_attending_model
def test_what_an_output_leaves_uncovered_costs(kind):
    model, config = trained(kind), replace(BEAM, coverage_penalty=0.5)
    sources = random_ids(8, seed=12)
    for source, hypotheses in zip(sources, translate(engine(model), sources, config), strict=True):
        ids = torch.tensor([source])
        for hypothesis in hypotheses:
            state, attention = model.start(ids, torch.ones_like(ids, dtype=torch.bool)), []
            for token in (model.start_id, *hypothesis.ids):
                _, state = model.step(torch.tensor([token]), state, attention=attention)
            cost = 0.5 * float(torch.cat(attention).detach().sum(dim=0).clamp(max=1).log().sum())
            length = len(hypothesis.ids) + 1
            expected = hypothesis.log_prob / length_penalty(length, config.length_penalty) + cost
            assert hypothesis.score == pytest.approx(expected, abs=1e-4)


@each_model
def test_one_batch_can_be_overfitted(kind):
    model = new_model(kind)
    sources, targets = random_ids(4, seed=13, shortest=3), random_ids(4, seed=14, shortest=3)
    batch = make_batch(sources, targets, TOKENIZERS)
    losses = list(steps(model, [batch] * 150))
    assert losses[0] > 1.5
    assert min(losses[-5:]) < 0.1
    found = translate(engine(model.eval()), sources, GREEDY)
    assert [[*hypotheses[0].ids, EOS_ID] for hypotheses in found] == targets


def gradients(model, batches):
    """As a training step makes them: the totals of all batches over the count of all batches."""
    count = sum(batch.count for batch in batches)
    model.zero_grad()
    for batch in batches:
        (translation_loss(model, batch, smoothing=0.1).total / count).backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


@each_model
def test_two_batches_of_four_are_one_of_eight(kind):
    model = new_model(kind)
    sources, targets = random_ids(8, seed=15), random_ids(8, seed=18)
    halves = [make_batch(sources[i : i + 4], targets[i : i + 4], TOKENIZERS) for i in (0, 4)]
    assert halves[0].count != halves[1].count, "means of unequal halves would differ from the mean of all"
    whole = gradients(model, [make_batch(sources, targets, TOKENIZERS)])
    assert max(float(gradient.abs().max()) for gradient in whole.values()) > 1e-2
    torch.testing.assert_close(gradients(model, halves), whole, rtol=0, atol=1e-6)


def test_an_output_never_asks_for_more_positions_than_were_learned():
    model = transformer(positions="learned", max_len=12).eval()
    sources = random_ids(4, seed=17, shortest=5)
    for config in (GREEDY, BEAM, SAMPLE):
        found = translate(engine(model), sources, replace(config, max_extra=50))
        assert all(len(hypothesis.ids) < 12 for hypotheses in found for hypothesis in hypotheses)


def test_padded_sources_are_in_these_tests():
    source = pad(random_ids(6, seed=1), PAD)
    assert (source == PAD).any(dim=1).sum() >= 3
