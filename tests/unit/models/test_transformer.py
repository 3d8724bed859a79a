from dataclasses import asdict, replace
from math import sqrt

import pytest
import torch
from torch.nn import functional as F

from jumok.config import read_config
from jumok.errors import RecipeError
from jumok.models.transformer import AttentionMaps, Transformer, TransformerConfig
from jumok.nn.positions import sinusoids
from jumok.train.optimizer import OptimizerConfig, make_optimizer

TINY = TransformerConfig(d_model=8, d_ff=16, n_heads=2, n_layers=2, dropout=0.0)
BASE = TransformerConfig()
BIG = replace(BASE, d_model=1024, d_ff=4096, n_heads=16)
V = 11


def tiny(**changes):
    torch.manual_seed(1)
    return Transformer(replace(TINY, **changes), source_vocab=V, target_vocab=V)


def batch(vocab=V):
    pad = vocab - 1
    source = torch.tensor([[3, 4, 5, 0], [6, 0, pad, pad]])
    target = torch.tensor([[pad, 2, 7], [pad, 3, pad]])
    return source, source != pad, target


def count(config, *, source_vocab=37000, target_vocab=37000):
    with torch.device("meta"):  # shapes without memory
        model = Transformer(config, source_vocab=source_vocab, target_vocab=target_vocab)
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(("config", "published", "tolerance"), [(BASE, 65e6, 0.04), (BIG, 213e6, 0.01)])
def test_parameters_of_the_published_sizes(config, published, tolerance):
    assert count(config) == pytest.approx(published, rel=tolerance)


def test_parameters_of_the_base_model_one_by_one():
    d, d_ff = 512, 2048
    attention = 4 * (d * d + d)
    feed_forward = d * d_ff + d_ff + d_ff * d + d
    norm = 2 * d
    layers = 6 * (attention + feed_forward + 2 * norm) + 6 * (2 * attention + feed_forward + 3 * norm)
    assert count(BASE) == layers + 37000 * d


def test_keys_and_values_have_their_own_widths():
    narrow = replace(BASE, d_k=16)  # Table 3, row B
    assert count(BASE) - count(narrow) == 18 * 2 * (512 * 8 * 48 + 8 * 48)
    wide = replace(BASE, d_v=80)
    assert count(wide) - count(BASE) == 18 * (2 * 512 * 8 * 16 + 8 * 16)
    model = tiny(n_heads=3, d_k=2, d_v=5)  # which also lifts the need to divide d_model
    attention = model.decoder.layers[0].cross_attention
    shapes = [tuple(w.weight.shape) for w in (attention.w_q, attention.w_k, attention.w_v, attention.w_o)]
    assert shapes == [(6, 8), (6, 8), (15, 8), (8, 15)]
    assert model.logits(model(*batch())).shape == (2, 3, V - 1)


def test_tie_options_share_what_they_say():
    everything, target, nothing = (tiny(tie_embeddings=tie) for tie in ("all", "target", "none"))
    assert everything.source_embedding is everything.target_embedding
    assert target.source_embedding is not target.target_embedding
    for model in (everything, target):
        assert model.projection.data_ptr() == model.target_embedding.weight.data_ptr()
    assert nothing.projection is nothing.output.weight
    sizes = [sum(p.numel() for p in model.parameters()) for model in (everything, target, nothing)]
    assert sizes[1] - sizes[0] == V * 8
    assert sizes[2] - sizes[1] == (V - 1) * 8


def test_source_and_target_may_have_vocabularies_of_their_own():
    model = Transformer(replace(TINY, tie_embeddings="target"), source_vocab=V, target_vocab=30)
    source, mask, _ = batch()
    target = torch.tensor([[29, 25, 28], [29, 3, 29]])
    assert model.start_id == 29
    assert model.logits(model(source, mask, target)).shape == (2, 3, 29)
    with pytest.raises(ValueError, match="one vocabulary"):
        Transformer(TINY, source_vocab=V, target_vocab=30)


@pytest.mark.parametrize("tie", ["all", "target", "none"])
@pytest.mark.parametrize("kind", ["adam", "adamw"])
def test_pad_stays_the_zero_vector_and_is_never_predicted(tie, kind):
    model = tiny(tie_embeddings=tie)
    optimizer = make_optimizer(
        model, OptimizerConfig(kind=kind, schedule="constant", learning_rate=0.1, weight_decay=0.1)
    )
    source, mask, target = batch()
    for _ in range(2):
        optimizer.zero_grad()
        logits = model.logits(model(source, mask, target))
        assert logits.shape == (2, 3, V - 1)
        F.cross_entropy(logits.flatten(0, 1), torch.tensor([2, 7, 0, 3, 0, 0])).backward()
        for group in optimizer.param_groups:
            group["lr"] = 0.1
        before = model.target_embedding.weight[3].clone()
        optimizer.step()
        assert not torch.equal(model.target_embedding.weight[3], before)
    for embedding in (model.source_embedding, model.target_embedding):
        assert embedding.weight[-1].eq(0).all()
        assert embedding.weight[:-1].ne(0).any(dim=1).all()


def encoder_input(model):
    seen = []
    model.encoder.layers[0].register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    source, mask, _ = batch()
    model.encode(source, mask)
    return seen[0]


def test_embeddings_are_scaled_and_added_to_positions():
    model = tiny()
    found, (source, _, _) = encoder_input(model), batch()
    expected = model.target_embedding.weight[source] * sqrt(8) + sinusoids(0, 4, 8)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(found[1, 3], sinusoids(3, 4, 8)[0])  # <pad> is position alone


def test_the_sum_of_embedding_and_position_is_dropped_out():
    assert encoder_input(tiny(dropout=1 - 2**-15)).eq(0).all()


def test_neighbourhood_bounds_how_far_a_layer_sees():
    model = tiny(neighbourhood=1, n_layers=2).eval()
    source = torch.arange(10)[None]
    mask = torch.ones(1, 10, dtype=torch.bool)
    memory = model.encode(source, mask)
    source[0, 0] = 9
    changed = (model.encode(source, mask) - memory).abs().amax(dim=-1)[0]
    assert changed[2] > 1e-6  # two layers of one position each
    assert changed[3:].max() < 1e-6


def test_attention_of_a_step_is_the_mean_of_the_maps():
    model = tiny().eval()
    source, mask, target = batch()
    maps = AttentionMaps([], [], [])
    watched = model.decode(model.encode(source, mask, maps=maps), mask, target, maps=maps)
    torch.testing.assert_close(watched, model(source, mask, target), rtol=0, atol=1e-5)
    assert [w.shape for w in maps.encoder + maps.decoder + maps.cross] == (
        [(2, 2, 4, 4)] * 2 + [(2, 2, 3, 3)] * 2 + [(2, 2, 3, 4)] * 2
    )
    expected = sum(weights.mean(dim=1) for weights in maps.cross) / 2
    state = model.start(source, mask)
    for t in range(target.shape[1]):
        attention = []
        _, state = model.step(target[:, t], state, attention=attention)
        assert len(attention) == 1
        torch.testing.assert_close(attention[0], expected[:, t], rtol=0, atol=1e-6)


def test_learned_positions_end_and_sinusoidal_ones_do_not():
    source = torch.full((1, 9), 3)
    mask = torch.ones_like(source, dtype=torch.bool)
    assert tiny(max_len=8).encode(source, mask).shape == (1, 9, 8)
    with pytest.raises(ValueError, match="8 learned positions"):
        tiny(positions="learned", max_len=8).encode(source, mask)


@pytest.mark.parametrize(
    "changes",
    [
        {"d_model": 0},
        {"d_ff": 0},
        {"n_heads": 0},
        {"n_layers": 0},
        {"max_len": 0},
        {"n_heads": 3},
        {"n_heads": 3, "d_k": 2},
        {"d_k": 0},
        {"d_v": 0},
        {"d_k": -4},
        {"d_v": -4},
        {"dropout": -0.1},
        {"dropout": 1.0},
        {"neighbourhood": 0},
    ],
    ids=str,
)
def test_impossible_sizes_are_refused(changes):
    with pytest.raises(RecipeError) as caught:
        read_config(TransformerConfig, asdict(TINY) | changes, what="[model]")
    wrong = ("d_model", "recipe.mismatch") if changes.get("n_heads") else (next(iter(changes)), "recipe.value")
    assert [(mistake.key, mistake.code) for mistake in caught.value.mistakes] == [wrong]
