"""Cross-entropy with label smoothing, fused with the projection onto the vocabulary.

    logits = x W^T + b      q = (1 - eps) onehot(target) + eps / V      loss = - sum_v q_v log softmax(logits)_v

Szegedy et al. 2016, section 7; Vaswani et al. 2017, section 5.4. The logits of a batch are by far its largest
tensor. Here they exist for a few rows at a time, and the gradient (softmax - q) is computed while they are in cache.
"""

from typing import Any

import torch
from torch import Tensor

ROWS = 256


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float) -> Tensor:
        needs_gradient = any(ctx.needs_input_grad)
        grad_x = torch.empty_like(x) if needs_gradient else None
        grad_weight = torch.zeros_like(weight) if needs_gradient else None
        grad_bias = torch.zeros_like(bias) if needs_gradient and bias is not None else None
        total = x.new_zeros((), dtype=torch.float64)
        uniform = smoothing / weight.shape[0]
        for start in range(0, len(x), ROWS):
            rows, target = x[start : start + ROWS], targets[start : start + ROWS, None]
            logits = rows @ weight.T if bias is None else torch.addmm(bias, rows, weight.T)
            top = logits.amax(dim=-1, keepdim=True)
            loss = top - (1 - smoothing) * logits.gather(1, target)
            if smoothing:
                loss -= uniform * logits.sum(dim=-1, keepdim=True)
            exponentials = logits.sub_(top).exp_()
            z = exponentials.sum(dim=-1, keepdim=True)
            total += (loss + z.log()).sum(dtype=torch.float64)
            if grad_x is None or grad_weight is None:
                continue
            gradient = exponentials.div_(z)
            if smoothing:
                gradient -= uniform
            gradient.scatter_add_(1, target, gradient.new_full(target.shape, smoothing - 1))
            torch.mm(gradient, weight, out=grad_x[start : start + ROWS])
            grad_weight.addmm_(gradient.T, rows)
            if grad_bias is not None:
                grad_bias += gradient.sum(dim=0)
        ctx.save_for_backward(grad_x, grad_weight, grad_bias)
        return total.to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        grad_x, grad_weight, grad_bias = ctx.saved_tensors
        return (
            grad_x * grad,
            grad_weight * grad,
            None if grad_bias is None else grad_bias * grad,
            None,
            None,
        )


def linear_cross_entropy(
    x: Tensor, weight: Tensor, targets: Tensor, *, bias: Tensor | None = None, smoothing: float = 0.0
) -> Tensor:
    """Summed loss of x [N, D] against targets [N] under the projection weight [V, D]."""
    if not torch.is_grad_enabled():  # forward cannot check this: gradients are always disabled inside it
        x, weight, bias = x.detach(), weight.detach(), None if bias is None else bias.detach()
    total: Tensor = _LinearCrossEntropy.apply(x, weight, bias, targets, smoothing)  # type: ignore[no-untyped-call]
    return total
