"""Linear maps: torch's while a model trains, oneDNN's kernels where they are faster when it predicts.

torch multiplies float32 matrices with MKL, which on AMD's CPUs does not use AVX-512; oneDNN, which torch has too, does,
and is about twice as fast there and no slower elsewhere. Its kernels differ in rounding and have no gradient.
"""

from functools import cache
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Activation = Literal["relu", "gelu", "gelu_tanh", "silu"]

ROWS, WORK = 8, 1 << 17
"""from so many rows, and multiplications, on; below, the call itself takes longer"""

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

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)


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
