"""Which layers learn, from when on, and how fast, when a trained body gets a new task.

Howard & Ruder 2018 ("ULMFiT"): discriminative fine-tuning, section 3.2, lets lower layers learn more slowly; gradual
unfreezing, section 3.3, lets the head learn first and then one layer more at a time, from the top.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field
from torch import nn

from jumok.config import Steps

_LAYER = re.compile(r"(?:^|\.)(?:stack|layers)\.layers\.(\d+)\.")  # of a Transformer, of a recurrent network
_EMBEDDINGS = re.compile(r"(?:^|\.)(embedding|positions|segments)\.|^bert\.norm\.")


@dataclass(frozen=True, kw_only=True, slots=True)
class TransferConfig:
    """How what was learned before is carried over."""

    mode: Literal["full", "frozen", "gradual"] = "full"
    """what learns: everything, the head alone (BERT's pooler belongs to it), or the head and every `unfreeze_every`
    steps one layer more"""
    unfreeze_every: Steps = 0.1
    """gradual: steps, or below 1 a share of all"""
    layer_decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    """the learning rate of each layer, beside that of the layer above it"""


def depths(model: nn.Module) -> dict[str, int]:
    """How high each parameter stands: embeddings at 0, then layer by layer, and on top all that belongs to the head."""
    names = [name for name, _ in model.named_parameters()]
    # The layers of a body that only gives features are none of the model's own: they never learn.
    own = [name for name in names if ".features.body." not in name]
    layers = {name: int(found[1]) + 1 for name in own if (found := _LAYER.search(name))}
    top = max(layers.values(), default=0) + 1
    return {name: layers.get(name, 0 if _EMBEDDINGS.search(name) else top) for name in names}


class Layers:
    """The parameters of a model that may learn, and when."""

    def __init__(self, model: nn.Module, config: TransferConfig) -> None:
        self.config = config
        found = depths(model)
        self.top = max(found.values())
        # What is frozen for good, such as features and word vectors, stays so.
        self.learning = [(p, found[name]) for name, p in model.named_parameters() if p.requires_grad]

    def at(self, step: int) -> None:
        """Let those learn whose time has come: a function of the step alone, so that a run goes on as it was."""
        if self.config.mode == "full":
            return
        below = 0 if self.config.mode == "frozen" else (step - 1) // int(self.config.unfreeze_every)
        for parameter, depth in self.learning:
            parameter.requires_grad_(depth >= self.top - below)
