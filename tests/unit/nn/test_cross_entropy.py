import pytest
import torch
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from jumok.nn.cross_entropy import ROWS, linear_cross_entropy

D, V = 5, 11


def case(n, dtype=torch.float64):
    torch.manual_seed(n)
    x, weight = torch.randn(n, D, dtype=dtype), torch.randn(V, D, dtype=dtype)
    return x, weight, torch.randn(V, dtype=dtype), torch.randint(V, (n,))


def value_and_gradients(loss, x, weight, bias):
    """The loss of fresh leaves, and its gradients when it is divided by a count, as a training step does."""
    leaves = [None if tensor is None else tensor.clone().requires_grad_() for tensor in (x, weight, bias)]
    total = loss(*leaves)
    (total / 7).backward()
    return [total.detach(), *(leaf.grad for leaf in leaves if leaf is not None)]


@pytest.mark.parametrize("n", [1, 7, ROWS, ROWS + 1, 2 * ROWS + 44])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("with_bias", [False, True])
def test_equals_torch_in_value_and_gradients(n, smoothing, with_bias):
    x, weight, bias, targets = case(n)
    bias = bias if with_bias else None

    def ours(x, weight, bias):
        return linear_cross_entropy(x, weight, targets, bias=bias, smoothing=smoothing)

    def theirs(x, weight, bias):
        return F.cross_entropy(F.linear(x, weight, bias), targets, label_smoothing=smoothing, reduction="sum")

    found, expected = (value_and_gradients(loss, x, weight, bias) for loss in (ours, theirs))
    assert len(found) == 3 + with_bias
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_single_precision_stays_close_over_many_rows():
    x, weight, _, targets = case(4 * ROWS, dtype=torch.float32)
    expected = F.cross_entropy(F.linear(x.double(), weight.double()), targets, label_smoothing=0.1, reduction="sum")
    found = linear_cross_entropy(x, weight, targets, smoothing=0.1)
    assert found.dtype == torch.float32
    assert float(found) == pytest.approx(float(expected), rel=1e-6)


def test_large_logits_neither_overflow_nor_lose_the_loss():
    x, weight = torch.tensor([[1000.0]]), torch.tensor([[1.0], [-1.0]])
    assert float(linear_cross_entropy(x, weight, torch.tensor([0]))) == 0
    assert float(linear_cross_entropy(x, weight, torch.tensor([1]))) == 2000


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("with_bias", [False, True])
def test_gradients_are_the_limit_of_differences(smoothing, with_bias):
    x, weight, bias, targets = case(3)
    inputs = [tensor.requires_grad_() for tensor in ([x, weight, bias] if with_bias else [x, weight])]

    def loss(x, weight, bias=None):
        return linear_cross_entropy(x, weight, targets, bias=bias, smoothing=smoothing)

    assert torch.autograd.gradcheck(loss, inputs)


def test_only_what_requires_a_gradient_gets_one():
    x, weight, _, targets = case(4)
    weight.requires_grad_()
    linear_cross_entropy(x, weight, targets).backward()
    assert weight.grad is not None
    assert x.grad is None


class CountedProducts(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.count += func.__name__.strip("_") in ("matmul", "mm", "addmm")
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("with_gradient", [False, True])
def test_gradients_are_made_only_when_they_will_be_asked_for(with_gradient):
    x, weight, _, targets = case(ROWS)
    weight.requires_grad_()
    with torch.set_grad_enabled(with_gradient), CountedProducts() as products:
        linear_cross_entropy(x, weight, targets)
    assert products.count == (3 if with_gradient else 1)
