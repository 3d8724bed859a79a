"""Linear maps: torch's while a model trains, oneDNN's kernels where they are faster when it predicts.

torch multiplies float32 matrices with MKL, which on AMD's CPUs does not use AVX-512; oneDNN, which torch has too, does,
and is about twice as fast there and no slower elsewhere. Its kernels differ in rounding and have no gradient.

Weights can also be rounded to int8, which is faster again where the processor multiplies bytes (VNNI), and not exact.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Activation = Literal["relu", "gelu", "gelu_tanh", "silu"]

ROWS, WORK = 8, 1 << 17
"""from so many rows, and multiplications, on; below, the call itself takes longer"""

ROUNDED = 1 << 12
"""weights of the smallest matrix that is worth rounding"""

# What oneDNN applies to the product while it is in a register: name, constants, algorithm.
_PLAIN: tuple[str, list[float], str] = ("none", [], "")
_FUSED = {
    "relu": ("relu", _PLAIN[1], ""),
    "gelu": ("gelu", _PLAIN[1], "none"),
    "gelu_tanh": ("gelu", _PLAIN[1], "tanh"),
}


def activate(x: Tensor, activation: Activation) -> Tensor:
    """max(0, x); x Phi(x), exact as in BERT or by the tanh formula as in GPT; or x sigmoid(x), also called swish.

    The last three are from Hendrycks & Gimpel 2016.
    """
    match activation:
        case "relu":
            return x.relu_()
        case "gelu":
            return F.gelu(x)
        case "gelu_tanh":
            return F.gelu(x, approximate="tanh")
        case "silu":
            return F.silu(x)


@dataclass(frozen=True, slots=True)
class Rounded:
    """A matrix W [V, D] in int8, with a scale for each output.

    Each row of the input gets a scale of its own, so that no row depends on those beside it.
    """

    bytes: Tensor
    """[D, V]"""
    scale: Tensor
    """[V]"""

    @classmethod
    def of(cls, w: Tensor) -> "Rounded":
        scale = w.detach().abs().amax(dim=1).clamp(min=1e-12) / 127
        return cls((w.detach() / scale[:, None]).round().to(torch.int8).T.contiguous(), scale)

    def times(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """About x W^T + b."""
        rows = x.reshape(-1, x.shape[-1])
        most = rows.abs().amax(dim=1, keepdim=True).clamp(min=1e-12)
        product = torch._int_mm((rows * (127 / most)).round_().to(torch.int8), self.bytes)
        out = product.float().mul_(self.scale).mul_(most / 127)
        if bias is not None:
            out += bias
        return out.view(*x.shape[:-1], len(self.scale))


def linear(x: Tensor, w: Tensor, bias: Tensor | None = None, activation: Activation | None = None) -> Tensor:
    """x W^T + b for x [..., D] and W [V, D], through an activation if there is one."""
    if _by_onednn(x, w):
        after = _PLAIN if activation is None else _FUSED.get(activation, _PLAIN)
        out: Tensor = onednn_linear()(x, w, bias, *after)
        return out if activation is None or activation in _FUSED else activate(out, activation)
    out = F.linear(x, w, bias)
    return out if activation is None else activate(out, activation)


class Linear(nn.Linear):
    """nn.Linear, by the faster kernel."""

    rounded: Rounded | None = None
    """used instead of the weights, if there is one"""

    def forward(self, input: Tensor) -> Tensor:
        if self.rounded is not None:
            return self.rounded.times(input, self.bias)
        return linear(input, self.weight, self.bias)


def round_weights(model: nn.Module) -> None:
    """Round the larger matrices of a model that only predicts from now on."""
    for module in model.modules():
        if isinstance(module, Linear) and module.weight.numel() >= ROUNDED:
            module.rounded = Rounded.of(module.weight)


def _by_onednn(x: Tensor, w: Tensor) -> bool:
    rows = x.numel() // max(x.shape[-1], 1)
    if rows < ROWS or rows * w.numel() < WORK or torch.is_grad_enabled():
        return False
    return x.device.type == "cpu" and x.dtype == w.dtype == torch.float32 and onednn_linear() is not None


@cache
def onednn_linear() -> Any:
    """oneDNN's linear map as torch offers it; None if it is missing, or no gain is to be expected."""
    there = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    if not there or torch.backends.cpu.get_cpu_capability() != "AVX512":
        return None
    return getattr(torch.ops.mkldnn, "_linear_pointwise", None)
