"""Fine-tuning a trained body: which layers learn, from which step, and how fast.

Howard & Ruder 2018 ("ULMFiT"): discriminative fine-tuning (section 3.2) trains lower layers more slowly; gradual
unfreezing (section 3.3) trains the head first and then one more layer at a time, from the top.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field
from torch import nn

from jumok.config import Steps

_LAYER = re.compile(r"(?:^|\.)(?:stack|layers)\.layers\.(\d+)\.")  # Transformer, recurrent network
_EMBEDDINGS = re.compile(r"(?:^|\.)(embedding|positions|segments)\.|^bert\.(norm|widen)\.")


@dataclass(frozen=True, kw_only=True, slots=True)
class TransferConfig:
    """How a trained body is fine-tuned."""

    mode: Literal["full", "frozen", "gradual"] = "full"
    """train everything, the head alone (with BERT's pooler), or the head and one more layer each `unfreeze_every`"""
    unfreeze_every: Steps = 0.1
    """gradual: steps, or below 1 a fraction of all steps"""
    layer_decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    """learning rate of each layer relative to the layer above it"""


def depths(model: nn.Module) -> dict[str, int]:
    """The height of each parameter: 0 for embeddings, then layer by layer, with the head on top."""
    names = [name for name, _ in model.named_parameters()]
    # The layers of a body that only supplies features never learn and do not count.
    own = [name for name in names if ".features.body." not in name]
    layers = {name: int(found[1]) + 1 for name in own if (found := _LAYER.search(name))}
    top = max(layers.values(), default=0) + 1
    return {name: layers.get(name, 0 if _EMBEDDINGS.search(name) else top) for name in names}


class Layers:
    """A model's trainable parameters, and when each of them learns."""

    def __init__(self, model: nn.Module, config: TransferConfig) -> None:
        self.config = config
        found = depths(model)
        self.top = max(found.values())
        # Permanently frozen parameters, such as features and word vectors, stay frozen.
        self.learning = [(p, found[name]) for name, p in model.named_parameters() if p.requires_grad]

    def at(self, step: int) -> None:
        """Unfreeze the layers due at this step: a function of the step alone, so runs resume unchanged."""
        if self.config.mode == "full":
            return
        below = 0 if self.config.mode == "frozen" else (step - 1) // int(self.config.unfreeze_every)
        for parameter, depth in self.learning:
            parameter.requires_grad_(depth >= self.top - below)
