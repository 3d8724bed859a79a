"""The processes that train together: rank, world size, and sums over all of them.

Under torchrun, a process finds its rank in the environment; started alone, it is a group of one, and every sum is the
number itself.
"""

import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor, distributed


@dataclass(frozen=True, slots=True)
class Group:
    rank: int = 0
    world: int = 1
    device: torch.device = torch.device("cpu")

    def sum(self, value: float) -> float:
        if self.world == 1:
            return value
        tensor = torch.tensor(value, dtype=torch.float64, device=self.device)
        distributed.all_reduce(tensor)
        return float(tensor)

    def any(self, flag: bool) -> bool:
        return self.sum(float(flag)) > 0

    def sum_gradients(self, parameters: Sequence[Tensor]) -> None:
        """All-reduce all gradients in one message; a process without a batch contributes zeros."""
        if self.world == 1:
            return
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        distributed.all_reduce(flat)
        parts = torch.split(flat, [gradient.numel() for gradient in gradients])
        for gradient, summed in zip(gradients, parts, strict=True):
            gradient.copy_(summed.view_as(gradient))

    def barrier(self) -> None:
        self.sum(0.0)


def join_group(device: torch.device) -> Group:
    """The group that torchrun started this process in, or a group of one."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        return Group(device=device)
    # Functions in this module bind the current group as a default argument, and an optimizer's first step imports it.
    # Imported after the next line, it would keep the group alive past leave_group, and the group's threads occasionally
    # abort the process (SIGABRT) by requesting the GIL at exit.
    importlib.import_module("torch.distributed.nn")
    distributed.init_process_group(backend="nccl" if device.type == "cuda" else "gloo", timeout=timedelta(minutes=60))
    return Group(rank=distributed.get_rank(), world=world, device=device)


def leave_group() -> None:
    if distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()
