"""Checkpoints that are whole or not there: safetensors and JSON, hashed, written aside, synced, renamed."""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from jumok.errors import CheckpointError
from jumok.files import verify_folder, write_folder
from jumok.models.weights import load_tensors, unique_tensors

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
        def write(folder: Path) -> None:
            save_file(unique_tensors(model), folder / "weights.safetensors", metadata={"format": "pt"})
            save_file(_moments(model, optimizer, step), folder / "optimizer.safetensors")
            (folder / "progress.json").write_text(json.dumps(progress), "utf-8")

        write_folder(self.path(step), write)
        return self.path(step)

    def restore(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any] | None:
        """Load the newest checkpoint; None if there is none yet."""
        self._sweep()
        steps = self.steps()
        if not steps:
            return None
        folder = self.path(steps[-1])
        try:
            verify_folder(folder)
        except CheckpointError as error:
            good = next((s for s in reversed(steps[:-1]) if self._is_good(s)), None)
            bad = " ".join(str(self.path(s)) for s in steps if good is None or s > good)
            previous = f"step {good}" if good is not None else "the beginning"
            raise CheckpointError(
                f"checkpoint step-{steps[-1]} is {error.what}",
                where=error.where,
                hint=f"rm -r {bad}  # then the same command goes on from {previous}, which is good",
                code=error.code,
            ) from error
        load_tensors(model, load_file(folder / "weights.safetensors"), where=folder)
        _restore_moments(model, optimizer, load_file(folder / "optimizer.safetensors"), steps[-1])
        progress: dict[str, Any] = json.loads((folder / "progress.json").read_text("utf-8"))
        return progress

    def weights(self, step: int) -> dict[str, Tensor]:
        verify_folder(self.path(step))
        tensors: dict[str, Tensor] = load_file(self.path(step) / "weights.safetensors")
        return tensors

    def average(self, steps: list[int]) -> dict[str, Tensor]:
        """The mean of several checkpoints' weights (Vaswani et al. 2017, section 6.1)."""
        mean: dict[str, Tensor] = {}
        for step in steps:
            try:
                weights = self.weights(step)
            except CheckpointError as error:
                raise CheckpointError(
                    f"checkpoint step-{step}, one of {len(steps)} that are averaged, is {error.what}",
                    where=error.where,
                    hint=f"rm -r {self.path(step)}  # then the same command takes the mean of the others",
                    code=error.code,
                ) from error
            for name, tensor in weights.items():
                mean[name] = mean.get(name, torch.zeros_like(tensor, dtype=torch.float64)) + tensor
        return {name: (tensor / len(steps)).float() for name, tensor in mean.items()}

    def prune(self, *, keep: set[int]) -> None:
        for step in self.steps():
            if step not in keep:
                shutil.rmtree(self.path(step), ignore_errors=True)

    def _is_good(self, step: int) -> bool:
        try:
            verify_folder(self.path(step))
        except CheckpointError:
            return False
        return True

    def _sweep(self) -> None:
        """Remove what a killed process left half-written."""
        if self.folder.is_dir():
            for path in self.folder.iterdir():
                if ".tmp-" in path.name or ".old-" in path.name:
                    shutil.rmtree(path, ignore_errors=True)


def _moments(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> dict[str, Tensor]:
    """Adam's moments; also how often each parameter was updated, of one that did not learn from the first step on."""
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
