from math import sqrt

import pytest
import torch

from jumok.nn.dropout import Dropout, dropout_mask

N = 200_000


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5])
def test_rate_and_mean(p):
    torch.manual_seed(1)
    out = Dropout(p)(torch.ones(N))
    kept = out != 0
    error = 4 * sqrt(p * (1 - p) / N)
    assert 1 - float(kept.float().mean()) == pytest.approx(p, abs=error)
    assert float(out.mean()) == pytest.approx(1.0, abs=error / (1 - p))
    torch.testing.assert_close(out[kept], torch.full_like(out[kept], 1 / (1 - p)))


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_units_are_dropped_independently_also_those_that_share_a_draw(p):
    torch.manual_seed(2)
    dropped = (dropout_mask(torch.Size([N]), p) == 0).view(-1, 4)
    n = len(dropped)
    for i in range(4):
        assert float(dropped[:, i].float().mean()) == pytest.approx(p, abs=4 * sqrt(p * (1 - p) / n))
        for j in range(i):
            both = float((dropped[:, i] & dropped[:, j]).float().mean())
            assert both == pytest.approx(p * p, abs=4 * sqrt(p * p * (1 - p * p) / n))


def test_a_rate_next_to_one_drops_nearly_everything():
    torch.manual_seed(3)
    mask = dropout_mask(torch.Size([1000]), 1 - 2**-20)
    assert int((mask != 0).sum()) <= 1


def test_identity_when_not_training_and_at_rate_zero():
    x = torch.randn(5, 7)
    assert torch.equal(Dropout(0.5).eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)


def test_masks_are_a_function_of_the_seed_and_never_the_same_twice():
    x, dropout = torch.ones(101), Dropout(0.3)
    torch.manual_seed(7)
    first, second = dropout(x), dropout(x)
    torch.manual_seed(7)
    assert torch.equal(dropout(x), first)
    assert torch.equal(dropout(x), second)
    assert not torch.equal(first, second)
    torch.manual_seed(8)
    assert not torch.equal(dropout(x), first)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (5, 7), (2, 3, 5), (4, 0)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_any_size_and_type(shape, dtype):
    x = torch.full(shape, 3.0, dtype=dtype)
    out = Dropout(0.5)(x)
    assert out.shape == x.shape
    assert out.dtype == dtype
    assert set(out.flatten().tolist()) <= {0.0, 6.0}


def test_gradient_goes_through_the_same_mask():
    torch.manual_seed(4)
    x = torch.randn(50, requires_grad=True)
    out = Dropout(0.4)(x)
    out.sum().backward()
    torch.testing.assert_close(x.grad * x.detach(), out.detach())
    assert x.grad.eq(0).any()
