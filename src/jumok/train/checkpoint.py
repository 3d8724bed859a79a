"""Atomic checkpoints: safetensors and JSON, hashed, written to a temporary folder, synced and renamed."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from jumok.errors import CheckpointError, RunError
from jumok.files import discard_folder, parse_json, verify_folder, write_folder
from jumok.models.weights import load_tensors, unique_tensors

WEIGHTS, OPTIMIZER, PROGRESS = "weights.safetensors", "optimizer.safetensors", "progress.json"
MOMENTS = ("exp_avg", "exp_avg_sq")
UPDATES = "updates"


class Checkpoints:
    """The folder RUN/checkpoints."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def steps(self) -> list[int]:
        if not self.folder.is_dir():
            return []
        matches = (re.fullmatch(r"step-(\d+)", path.name) for path in self.folder.iterdir())
        return sorted(int(match[1]) for match in matches if match)

    def path(self, step: int) -> Path:
        return self.folder / f"step-{step}"

    def save(self, step: int, model: nn.Module, optimizer: torch.optim.Optimizer, progress: dict[str, Any]) -> Path:
        tensors = unique_tensors(model)
        for name, tensor in tensors.items():
            if tensor.is_floating_point() and not tensor.isfinite().all():
                what = f"step {step}: {name} has weights that are not finite; the step is not saved"
                raise RunError(what, where=self.folder, code="run.not_finite")

        def write(folder: Path) -> None:
            save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
            save_file(_moments(model, optimizer, step), folder / OPTIMIZER)
            (folder / PROGRESS).write_text(json.dumps(progress), "utf-8")

        write_folder(self.path(step), write)
        return self.path(step)

    def restore(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any] | None:
        """Load the newest checkpoint and return its progress; None without checkpoints."""
        steps = self.steps()
        if not steps:
            return None
        folder = self.path(steps[-1])
        try:
            progress = self.progress(steps[-1])
        except CheckpointError as error:
            good = next((s for s in reversed(steps[:-1]) if self.is_good(s)), None)
            bad = " ".join(str(self.path(s)) for s in steps if good is None or s > good)
            previous = f"step {good}, which is good" if good is not None else "the beginning"
            raise CheckpointError(
                f"checkpoint step-{steps[-1]} is {error.what}",
                where=error.where,
                hint=f"rm -r {bad}  # the same command then resumes from {previous}",
                code=error.code,
            ) from error
        load_tensors(model, load_file(folder / WEIGHTS), where=folder)
        _restore_moments(model, optimizer, load_file(folder / OPTIMIZER), steps[-1])
        return progress

    def progress(self, step: int) -> dict[str, Any]:
        """The progress of a checkpoint, which must be complete and match the step in its name."""
        folder = self.path(step)
        verify_folder(folder, needs=[WEIGHTS, OPTIMIZER, PROGRESS])
        progress: dict[str, Any] = parse_json((folder / PROGRESS).read_bytes())
        if progress["step"] != step:
            what = f"misnamed: it was saved at step {progress['step']}"
            raise CheckpointError(what, where=folder, code="checkpoint.other_step")
        return progress

    def weights(self, step: int) -> dict[str, Tensor]:
        self.progress(step)
        tensors: dict[str, Tensor] = load_file(self.path(step) / WEIGHTS)
        return tensors

    def average(self, steps: list[int]) -> dict[str, Tensor]:
        """The mean of several checkpoints' weights (Vaswani et al. 2017, section 6.1)."""
        mean: dict[str, Tensor] = {}
        for step in steps:
            try:
                weights = self.weights(step)
            except CheckpointError as error:
                raise CheckpointError(
                    f"checkpoint step-{step}, one of the {len(steps)} to average, is {error.what}",
                    where=error.where,
                    hint=f"rm -r {self.path(step)}  # the same command then averages the others",
                    code=error.code,
                ) from error
            for name, tensor in weights.items():
                mean[name] = mean.get(name, torch.zeros_like(tensor, dtype=torch.float64)) + tensor
        return {name: (tensor / len(steps)).float() for name, tensor in mean.items()}

    def prune(self, *, keep: set[int]) -> None:
        for step in self.steps():
            if step not in keep:
                discard_folder(self.path(step))  # at once: somebody may be reading it

    def is_good(self, step: int) -> bool:
        try:
            self.progress(step)
        except CheckpointError:
            return False
        return True


def _moments(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> dict[str, Tensor]:
    """Adam's moments, and the update counts of parameters that did not learn from the first step on."""
    moments = {}
    for name, parameter in model.named_parameters():
        if parameter not in optimizer.state:
            continue
        state = optimizer.state[parameter]
        for moment in MOMENTS:
            moments[f"{name}.{moment}"] = state[moment].cpu().contiguous()
        if int(state["step"]) != step:
            moments[f"{name}.{UPDATES}"] = state["step"].cpu().clone()
    return moments


def _restore_moments(
    model: nn.Module, optimizer: torch.optim.Optimizer, moments: Mapping[str, Tensor], step: int
) -> None:
    for name, parameter in model.named_parameters():
        if f"{name}.{MOMENTS[0]}" not in moments:
            continue
        state = {moment: moments[f"{name}.{moment}"].to(parameter.device) for moment in MOMENTS}
        updates = moments.get(f"{name}.{UPDATES}", torch.tensor(float(step)))
        optimizer.state[parameter] = {"step": updates.to(parameter.device), **state}
