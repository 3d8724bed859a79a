"""Linear maps without a gradient equal torch's own, whichever kernel multiplies."""

import pytest
import torch
from torch.nn import functional as F

from jumok.nn import linear as module
from jumok.nn.linear import Linear, Rounded, activate, linear, onednn_linear, round_weights


@pytest.mark.parametrize("activation", [None, "relu", "gelu", "gelu_tanh", "silu"])
@pytest.mark.parametrize("rows", [(1,), (64,), (3, 40), (2, 1)])
def test_predictions_equal_torchs_linear_map(rows, activation):
    torch.manual_seed(1)
    x, w, bias = torch.randn(*rows, 96), torch.randn(201, 96)[:-1], torch.randn(200)
    expected = F.linear(x, w, bias)
    expected = expected if activation is None else activate(expected.clone(), activation)
    with torch.inference_mode():
        torch.testing.assert_close(linear(x, w, bias, activation), expected, rtol=1e-5, atol=1e-4)
        turned = torch.randn(96, *rows).movedim(0, -1)  # rows that do not lie side by side
        torch.testing.assert_close(linear(turned, w), F.linear(turned, w), rtol=1e-5, atol=1e-4)


def test_training_keeps_torchs_kernel(monkeypatch):
    """Losses are those of every version, and there is a gradient."""
    monkeypatch.setattr(module, "onednn_linear", lambda: pytest.fail("a kernel without a gradient"))
    layer, x = Linear(96, 200), torch.randn(64, 96)
    assert torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))
    layer(x).sum().backward()
    assert layer.weight.grad is not None


def test_the_faster_kernel_is_used_where_it_is_faster(monkeypatch):
    if onednn_linear() is None:
        pytest.skip("torch has no such kernel on this CPU")
    calls = []
    kernel = onednn_linear()
    monkeypatch.setattr(module, "onednn_linear", lambda: lambda *args: calls.append(len(args[0])) or kernel(*args))
    layer = Linear(96, 200)
    with torch.inference_mode():
        for rows in (1, 64):
            layer(torch.randn(rows, 96))
    assert calls == [64]


@pytest.mark.parametrize("shape", [(96,), (64, 96), (3, 40, 96), (0, 96)])
@pytest.mark.parametrize("outputs", [200, 201])
def test_rounded_weights_are_near(shape, outputs):
    """Within the half steps by which weights and inputs are rounded, summed over the inputs."""
    torch.manual_seed(1)
    x, w, bias = torch.randn(shape), torch.randn(outputs, 96), torch.randn(outputs)
    found, exact = Rounded.of(w).times(x, bias), F.linear(x, w, bias)
    step_w, step_x = w.abs().amax(dim=1) / 127, x.abs().amax(dim=-1, keepdim=True) / 127
    bound = (x.abs().sum(-1, keepdim=True) * step_w + step_x * w.abs().sum(dim=1)) / 2 + 96 * step_x * step_w
    assert found.shape == exact.shape
    assert ((found - exact).abs() <= bound).all()


def test_no_row_depends_on_those_beside_it():
    rounded, x = Rounded.of(torch.randn(50, 64)), torch.randn(32, 64) * torch.logspace(-3, 3, 32)[:, None]
    together = rounded.times(x)
    assert all(torch.equal(rounded.times(row[None])[0], expected) for row, expected in zip(x, together, strict=True))


def test_large_matrices_are_rounded_and_zeros_stay_zeros():
    model = torch.nn.Sequential(Linear(64, 64), Linear(4, 4))
    round_weights(model)
    assert [layer.rounded is None for layer in model] == [False, True]
    assert torch.equal(Rounded.of(torch.zeros(4, 8)).times(torch.randn(3, 8)), torch.zeros(3, 4))
    assert torch.equal(Rounded.of(torch.randn(4, 8)).times(torch.zeros(3, 8)), torch.zeros(3, 4))
