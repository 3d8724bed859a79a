"""Adam and the learning-rate schedule."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from jumok.config import NotNegative, Positive, Share, StepsOrZero
from jumok.train.layers import TransferConfig, depths


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimizerConfig:
    """Adam; the defaults are those of Vaswani et al. 2017, section 5.3."""

    kind: Literal["adam", "adamw"] = "adam"
    """adam adds weight decay to the gradient (L2), adamw subtracts it from the weight"""
    schedule: Literal["noam", "inverse_sqrt", "linear", "constant"] = "noam"
    """noam: d_model^-0.5 min(step^-0.5, step warmup^-1.5), the paper's; inverse_sqrt: the same with a given peak;
    linear: decay to zero at the last step; constant; all start with a linear warm-up"""
    learning_rate: Positive | None = None
    """peak learning rate; noam computes its own"""
    warmup: StepsOrZero = 4000
    """warm-up steps, or below 1 a fraction of all steps; noam and inverse_sqrt need some"""
    beta1: Share = 0.9
    beta2: Share = 0.98
    epsilon: Positive = 1e-9
    weight_decay: NotNegative = 0.0
    """not applied to biases and LayerNorm"""
    clip_norm: Positive | None = None
    """maximum norm of the gradient, which is scaled down to it"""

    def __post_init__(self) -> None:
        wrong = []
        if (self.learning_rate is None) != (self.schedule == "noam"):
            wrong.append('learning_rate must be set for every schedule except "noam", which computes its own')
        if not self.warmup and self.schedule in ("noam", "inverse_sqrt"):
            wrong.append("warmup must not be 0 for noam and inverse_sqrt")
        if wrong:
            raise ValueError("\n".join(wrong))


def peak_rate(config: OptimizerConfig, *, d_model: int) -> float:
    """The given peak, or that of Vaswani et al. 2017, Eq. 3, where step = warmup."""
    if config.learning_rate is not None:
        return config.learning_rate
    return float((d_model * config.warmup) ** -0.5)


def learning_rate(step: int, config: OptimizerConfig, *, peak: float, steps: int) -> float:
    """The learning rate of the step-th update, counted from 1."""
    if step < config.warmup:
        return peak * step / config.warmup
    match config.schedule:
        case "noam" | "inverse_sqrt":
            return float(peak * (config.warmup / step) ** 0.5)
        case "linear":
            return peak * max(steps - step, 0) / max(steps - config.warmup, 1)
        case "constant":
            return peak


def make_optimizer(
    model: nn.Module, config: OptimizerConfig, transfer: TransferConfig | None = None
) -> torch.optim.Optimizer:
    """Adam or AdamW, fused, with weight decay on matrices only; lower layers may have a lower learning rate."""
    decay = 1.0 if transfer is None else transfer.layer_decay
    found = depths(model)
    top = max(found.values())
    by_scale: dict[float, list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            by_scale.setdefault(decay ** (top - found[name]), []).append(parameter)
    groups = [
        {"params": [p for p in some if (p.ndim > 1) == matrices], "weight_decay": weight_decay, "scale": scale}
        for scale, some in by_scale.items()
        for matrices, weight_decay in ((True, config.weight_decay), (False, 0.0))
    ]
    kind = torch.optim.AdamW if config.kind == "adamw" else torch.optim.Adam
    return kind(
        groups,
        lr=0.0,
        betas=(config.beta1, config.beta2),
        eps=config.epsilon,
        fused=True,
    )
