import pytest
import torch
from torch import nn

from jumok.nn.attention import causal_mask
from jumok.nn.transformer import Block, Stack, StackConfig

B, T, S, D, D_FF, H, N = 2, 4, 5, 8, 12, 2, 3
NORMS = ["post", "pre"]


def config(norm, *, cross, dropout=0.0):
    return StackConfig(
        n_layers=N, d_model=D, d_ff=D_FF, n_heads=H, d_k=D // H, d_v=D // H, dropout=dropout, norm=norm, cross=cross
    )


def with_random_weights(module):
    """LayerNorm's ones and zeros and the zero biases would hide a mistake."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=0.5)
    return module


def copy(ours, theirs):
    theirs.weight.copy_(ours.weight)
    theirs.bias.copy_(ours.bias)


def copy_attention(ours, theirs):
    inputs = (ours.w_q, ours.w_k, ours.w_v)
    theirs.in_proj_weight.copy_(torch.cat([w.weight for w in inputs]))
    theirs.in_proj_bias.copy_(torch.cat([w.bias for w in inputs]))
    copy(ours.w_o, theirs.out_proj)


@torch.no_grad()
def copy_layer(ours, theirs, *, cross):
    copy_attention(ours.self_attention, theirs.self_attn)
    norms = [ours.self_norm, ours.feed_norm]
    if cross:
        copy_attention(ours.cross_attention, theirs.multihead_attn)
        norms.insert(1, ours.cross_norm)
    for i, norm in enumerate(norms, 1):
        copy(norm, getattr(theirs, f"norm{i}"))
    copy(ours.feed_forward.w_1, theirs.linear1)
    copy(ours.feed_forward.w_2, theirs.linear2)


def torch_layer(norm, *, cross):
    kind = nn.TransformerDecoderLayer if cross else nn.TransformerEncoderLayer
    return kind(D, H, D_FF, dropout=0.0, activation="relu", batch_first=True, norm_first=norm == "pre")


def sources():
    x = torch.randn(B, S, D)
    mask = torch.arange(S) < torch.tensor([[5], [3]])
    return x, mask


@pytest.mark.parametrize("norm", NORMS)
def test_encoder_block_equals_torch(norm):
    torch.manual_seed(1)
    ours, theirs = with_random_weights(Block(config(norm, cross=False))), torch_layer(norm, cross=False)
    copy_layer(ours, theirs, cross=False)
    x, mask = sources()
    expected = theirs(x, src_key_padding_mask=~mask)
    found, _ = ours(x, mask[:, None, None, :])
    torch.testing.assert_close(found[mask], expected[mask], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("norm", NORMS)
def test_decoder_block_equals_torch(norm):
    torch.manual_seed(2)
    ours, theirs = with_random_weights(Block(config(norm, cross=True))), torch_layer(norm, cross=True)
    copy_layer(ours, theirs, cross=True)
    (memory, mask), x, causal = sources(), torch.randn(B, T, D), causal_mask(T, T, device=torch.device("cpu"))
    expected = theirs(x, memory, tgt_mask=~causal, memory_key_padding_mask=~mask)
    found, _ = ours(x, causal, memory=ours.remember(memory), memory_mask=mask[:, None, None, :])
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("norm", NORMS)
def test_encoder_stack_equals_torch(norm):
    torch.manual_seed(3)
    ours = with_random_weights(Stack(config(norm, cross=False)))
    last = nn.LayerNorm(D) if norm == "pre" else None
    theirs = nn.TransformerEncoder(torch_layer(norm, cross=False), N, norm=last, enable_nested_tensor=False)
    for mine, layer in zip(ours.layers, theirs.layers, strict=True):
        copy_layer(mine, layer, cross=False)
    if last is not None:
        with torch.no_grad():
            copy(ours.final_norm, theirs.norm)
    x, mask = sources()
    expected = theirs(x, src_key_padding_mask=~mask)
    found, present = ours(x, mask[:, None, None, :])
    torch.testing.assert_close(found[mask], expected[mask], rtol=1e-5, atol=1e-5)
    assert len(present) == N


@pytest.mark.parametrize("norm", NORMS)
def test_decoder_stack_equals_torch_at_once_and_one_position_at_a_time(norm):
    torch.manual_seed(4)
    ours = with_random_weights(Stack(config(norm, cross=True)))
    last = nn.LayerNorm(D) if norm == "pre" else None
    theirs = nn.TransformerDecoder(torch_layer(norm, cross=True), N, norm=last)
    for mine, layer in zip(ours.layers, theirs.layers, strict=True):
        copy_layer(mine, layer, cross=True)
    if last is not None:
        with torch.no_grad():
            copy(ours.final_norm, theirs.norm)
    (memory, mask), x, causal = sources(), torch.randn(B, T, D), causal_mask(T, T, device=torch.device("cpu"))
    expected = theirs(x, memory, tgt_mask=~causal, memory_key_padding_mask=~mask)
    memories, memory_mask = ours.memories(memory), mask[:, None, None, :]
    found, _ = ours(x, causal, memories=memories, memory_mask=memory_mask)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    past = None
    for t in range(T):
        now, past = ours(x[:, t : t + 1], None, past=past, memories=memories, memory_mask=memory_mask)
        torch.testing.assert_close(now, expected[:, t : t + 1], rtol=1e-5, atol=1e-5)


def test_attention_weights_are_given_layer_by_layer_and_change_nothing():
    torch.manual_seed(5)
    stack = with_random_weights(Stack(config("post", cross=True)))
    (memory, mask), x, causal = sources(), torch.randn(B, T, D), causal_mask(T, T, device=torch.device("cpu"))
    arguments = {"memories": stack.memories(memory), "memory_mask": mask[:, None, None, :]}
    self_weights, cross_weights = [], []
    watched, _ = stack(x, causal, self_weights=self_weights, cross_weights=cross_weights, **arguments)
    torch.testing.assert_close(watched, stack(x, causal, **arguments)[0], rtol=1e-5, atol=1e-5)
    assert [w.shape for w in self_weights] == [(B, H, T, T)] * N
    assert [w.shape for w in cross_weights] == [(B, H, T, S)] * N
    for weights in (*self_weights, *cross_weights):
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(B, H, T))
    assert all(weights[1, :, :, 3:].eq(0).all() for weights in cross_weights)


@pytest.mark.parametrize("norm", NORMS)
def test_dropout_is_on_every_sublayer_while_training_only(norm):
    torch.manual_seed(6)
    # At this rate nothing is left of any sub-layer but what goes around it.
    block = with_random_weights(Block(config(norm, cross=True, dropout=1 - 2**-15)))
    x, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    found, _ = block(x, None, memory=block.remember(memory))
    expected = x
    if norm == "post":
        for layer in (block.self_norm, block.cross_norm, block.feed_norm):
            expected = layer(expected)
    torch.testing.assert_close(found, expected)
    block.eval()
    assert not torch.allclose(block(x, None, memory=block.remember(memory))[0], expected, atol=1e-2)
