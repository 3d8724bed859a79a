from math import exp, sqrt

import pytest
import torch
from torch import nn

from jumok.nn.attention import (
    AdditiveScore,
    DotScore,
    GeneralScore,
    KeysValues,
    MultiHeadAttention,
    PredictedPosition,
    _AdditiveScores,
    attend,
    attend_locally,
    basic_self_attention,
    causal_mask,
    dot_product_attention,
    neighbourhood_mask,
)

CPU = torch.device("cpu")
B, T, S, D, H = 3, 4, 6, 8, 2


def attention_with_random_weights(*, d_k=D // H, d_v=D // H):
    """Biases too: the initial zeros would hide a bias that is not added."""
    attention = MultiHeadAttention(D, H, d_k=d_k, d_v=d_v)
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.normal_(std=0.5)
    return attention


def torch_twin(ours):
    theirs = nn.MultiheadAttention(D, H, batch_first=True)
    inputs = (ours.w_q, ours.w_k, ours.w_v)
    theirs.load_state_dict(
        {
            "in_proj_weight": torch.cat([w.weight for w in inputs]),
            "in_proj_bias": torch.cat([w.bias for w in inputs]),
            "out_proj.weight": ours.w_o.weight,
            "out_proj.bias": ours.w_o.bias,
        }
    )
    return theirs


def random_mask():
    mask = torch.rand(B, 1, T, S) < 0.5
    mask[..., 2] = True  # torch gives NaN to a query that sees nothing
    return mask


MASKS = {
    "none": lambda: None,
    "padding": lambda: (torch.arange(S) < torch.tensor([[6], [3], [1]]))[:, None, None, :],
    "causal": lambda: causal_mask(T, S, device=CPU),
    "any": random_mask,
}


@pytest.mark.parametrize("kind", MASKS)
def test_multi_head_attention_equals_torch(kind):
    torch.manual_seed(1)
    ours, mask = attention_with_random_weights(), MASKS[kind]()
    x, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    theirs_mask = None if mask is None else ~mask.expand(B, H, T, S).reshape(B * H, T, S)
    expected, expected_weights = torch_twin(ours)(x, memory, memory, attn_mask=theirs_mask, average_attn_weights=False)
    weights = []
    explicit = ours(x, ours.keys_values(memory), mask, weights=weights)
    fused = ours(x, ours.keys_values(memory), mask)
    torch.testing.assert_close(explicit, expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(fused, expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(weights[0], expected_weights, rtol=0, atol=1e-6)
    assert len(weights) == 1


def gradients(attention, x, memory, mask, *, weights):
    attention.zero_grad()
    x, memory = x.clone().requires_grad_(), memory.clone().requires_grad_()
    out = attention(x, attention.keys_values(memory), mask, weights=weights)
    (out * torch.linspace(-1, 1, out.numel()).view(out.shape)).sum().backward()
    return out, {"x": x.grad, "memory": memory.grad, **{n: p.grad.clone() for n, p in attention.named_parameters()}}


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize(("d_k", "d_v"), [(4, 4), (3, 5)])
def test_fused_kernel_equals_the_sum_written_down(kind, d_k, d_v):
    torch.manual_seed(2)
    attention, mask = attention_with_random_weights(d_k=d_k, d_v=d_v), MASKS[kind]()
    x, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    fused, fused_gradients = gradients(attention, x, memory, mask, weights=None)
    explicit, explicit_gradients = gradients(attention, x, memory, mask, weights=[])
    torch.testing.assert_close(fused, explicit, rtol=0, atol=1e-5)
    assert any(gradient.abs().max() > 0.1 for gradient in explicit_gradients.values())
    torch.testing.assert_close(fused_gradients, explicit_gradients, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("weights", [None, []], ids=["fused", "explicit"])
@pytest.mark.parametrize("d_v", [4, 5], ids=["d_v = d_k", "d_v > d_k"])
def test_a_query_with_nothing_to_attend_to_gets_the_zero_vector(weights, d_v):
    torch.manual_seed(3)
    attention = attention_with_random_weights(d_v=d_v)
    mask = torch.ones(B, 1, T, S, dtype=torch.bool)
    mask[0] = False  # a whole sentence
    mask[1, :, 2] = False  # one query
    out, found = gradients(attention, torch.randn(B, T, D), torch.randn(B, S, D), mask, weights=weights)
    bias = attention.w_o.bias.detach()
    torch.testing.assert_close(out[0], bias.expand(T, D))  # W^O 0 + b^O
    torch.testing.assert_close(out[1, 2], bias)
    assert not torch.allclose(out[1, 1], bias, atol=1e-3)
    assert all(gradient.isfinite().all() for gradient in found.values())
    assert found["x"][0].eq(0).all()
    assert found["memory"][0].eq(0).all()
    if weights:
        assert weights[0][0].eq(0).all()


def test_one_query_by_hand():
    q = torch.tensor([[1.0, 0.0]])
    k = torch.tensor([[2.0, 9.0], [0.0, 7.0], [5.0, 5.0]])
    v = torch.tensor([[1.0, 0.0, 4.0], [0.0, 1.0, 8.0], [7.0, 7.0, 7.0]])
    attended = dot_product_attention(q, k, v, torch.tensor([[True, True, False]]))
    first = 1 / (1 + exp(-2 / sqrt(2)))  # scores 2 / sqrt 2 and 0
    torch.testing.assert_close(attended.weights, torch.tensor([[first, 1 - first, 0.0]]))
    torch.testing.assert_close(attended.context, torch.tensor([[first, 1 - first, 8 - 4 * first]]))


def test_weights_are_a_distribution_whatever_the_size_of_the_scores():
    scores = torch.tensor([[1e30, -1e30, 0.0], [-1e30, -1e30, -1e30]])
    mask = torch.tensor([[False, True, True], [True, True, False]])
    attended = attend(scores, torch.eye(3), mask)
    torch.testing.assert_close(attended.weights, torch.tensor([[0.0, 0.0, 1.0], [0.5, 0.5, 0.0]]))


def test_causal_mask_by_hand():
    square = [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert causal_mask(3, 3, device=CPU).int().tolist() == square
    assert causal_mask(2, 4, device=CPU).int().tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    assert causal_mask(1, 3, device=CPU).int().tolist() == [[1, 1, 1]]
    assert causal_mask(2, 2, device=CPU).dtype == torch.bool


def test_neighbourhood_mask_by_hand():
    assert neighbourhood_mask(4, 4, 1, device=CPU).int().tolist() == [
        [1, 1, 0, 0],
        [1, 1, 1, 0],
        [0, 1, 1, 1],
        [0, 0, 1, 1],
    ]
    assert neighbourhood_mask(2, 5, 2, device=CPU).int().tolist() == [[0, 1, 1, 1, 1], [0, 0, 1, 1, 1]]
    assert neighbourhood_mask(1, 1, 3, device=CPU).int().tolist() == [[1]]


def test_keys_and_values_grow_in_time_and_are_picked_by_row():
    k, v = torch.arange(12.0).view(2, 1, 3, 2), torch.arange(18.0).view(2, 1, 3, 3)
    whole = KeysValues(k, v)
    grown = KeysValues(k[:, :, :1], v[:, :, :1]).then(KeysValues(k[:, :, 1:], v[:, :, 1:]))
    assert torch.equal(grown.k, k)
    assert torch.equal(grown.v, v)
    picked = whole.select(torch.tensor([1, 1, 0]))
    assert torch.equal(picked.k, torch.stack([k[1], k[1], k[0]]))
    assert torch.equal(picked.v, torch.stack([v[1], v[1], v[0]]))


def test_self_attention_without_weights_by_hand():
    x = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]])
    attended = basic_self_attention(x)
    e = exp(1)
    first = torch.tensor([e, 1.0, e]) / (2 * e + 1)
    torch.testing.assert_close(attended.weights[0, 0], first)
    torch.testing.assert_close(attended.context[0, 0], torch.stack([first[0] + first[2], first[1] + first[2]]))
    torch.testing.assert_close(attended.context[0, 2], torch.tensor([0.78806, 0.78806]), rtol=0, atol=1e-4)


def test_self_attention_without_weights_is_one_head_of_identities():
    x = torch.randn(B, S, D)
    scaled = dot_product_attention(x * sqrt(D), x, x, None)
    torch.testing.assert_close(basic_self_attention(x).context, scaled.context)


def test_scores_are_their_equations():
    s, h = torch.randn(B, T, D), torch.randn(B, S, D)
    general, additive = GeneralScore(D, D), AdditiveScore(D, D, 5)
    found = {score: score(s, score.keys(h)) for score in (DotScore(), general, additive)}
    for score, scores in found.items():
        for b, t, j in ((0, 0, 0), (2, 3, 5), (1, 2, 4)):
            match score:
                case GeneralScore():
                    expected = s[b, t] @ general.w.weight @ h[b, j]
                case DotScore():
                    expected = s[b, t] @ h[b, j]
                case AdditiveScore():
                    inner = additive.w.weight @ s[b, t] + additive.w.bias + additive.u.weight @ h[b, j]
                    expected = additive.v.weight[0] @ inner.tanh()
            torch.testing.assert_close(scores[b, t, j], expected)


def test_luongs_concat_is_the_additive_score():
    """v . tanh(W [s ; h]) with W cut in two."""
    s, h, score = torch.randn(B, T, D), torch.randn(B, S, D), AdditiveScore(D, D, 5)
    joined = torch.cat([s[:, :, None].expand(-1, -1, S, -1), h[:, None].expand(-1, T, -1, -1)], dim=-1)
    whole = torch.cat([score.w.weight, score.u.weight], dim=1)
    expected = ((joined @ whole.T + score.w.bias).tanh() @ score.v.weight.T)[..., 0]
    torch.testing.assert_close(score(s, score.keys(h)), expected)


@pytest.mark.parametrize("sentences", [1, 2, B])
def test_additive_scores_have_the_gradient_of_their_equation(sentences, monkeypatch):
    """However many sentences at a time."""
    monkeypatch.setattr(_AdditiveScores, "FLOATS", sentences * T * S * D)
    q, k, v = (torch.randn(*shape, D, dtype=torch.double, requires_grad=True) for shape in ((B, T), (B, S), ()))
    assert torch.autograd.gradcheck(_AdditiveScores.apply, (q, k, v))


def test_local_attention_looks_into_its_window_only():
    scores, values, centres = torch.randn(1, 2, S), torch.randn(1, S, D), torch.tensor([[1.0, 4.6]])
    mask = torch.ones(1, 1, S, dtype=torch.bool)
    mask[..., -1] = False
    plain = attend_locally(scores, values, mask, centres, 2, bell=False).weights[0]
    assert plain[0].nonzero()[:, 0].tolist() == [0, 1, 2, 3]
    assert plain[1].nonzero()[:, 0].tolist() == [3, 4]  # 5 is padding, and 2 is further than 2 from 4.6
    torch.testing.assert_close(plain.sum(dim=1), torch.ones(2))
    belled = attend_locally(scores, values, mask, centres, 2, bell=True)
    distance = torch.arange(S) - centres[0, :, None]
    torch.testing.assert_close(belled.weights[0], plain * (-(distance**2) / (2 * (2 / 2) ** 2)).exp())
    torch.testing.assert_close(belled.context, belled.weights @ values)


def test_a_predicted_position_lies_in_the_source_and_can_be_learned():
    position, s = PredictedPosition(D), torch.randn(B, T, D)
    lengths = torch.tensor([3, 6, 4])
    centres = position(s, lengths)
    expected = lengths[:, None] * (position.v_p.weight[0] * (s @ position.w_p.weight.T).tanh()).sum(-1).sigmoid()
    torch.testing.assert_close(centres, expected)
    mask = torch.ones(B, 1, S, dtype=torch.bool)
    attend_locally(torch.randn(B, T, S), torch.randn(B, S, D), mask, centres, 3, bell=True).context.sum().backward()
    assert position.w_p.weight.grad.abs().sum() > 0
