"""Linear maps without a gradient equal torch's own, whichever kernel multiplies."""

import pytest
import torch
from torch.nn import functional as F

from jumok.nn import linear as module
from jumok.nn.linear import Linear, activate, linear, onednn_linear


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
