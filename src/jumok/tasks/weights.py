"""Weights of labels in a loss: all equal, balanced, or as given."""

import numpy as np

from jumok.data.shards import Shards
from jumok.errors import DataError
from jumok.tasks.targets import Targets

ClassWeights = str | dict[str, float]


def label_weights(wanted: ClassWeights, targets: Targets, train: Shards) -> list[float] | None:
    """The weight of each label; None if all weigh the same. The labels of training are the field `label`."""
    if wanted == "none":
        return None
    if isinstance(wanted, dict):
        if unknown := wanted.keys() - set(targets.labels):
            hint = f"use labels of the training data: {', '.join(targets.labels)}"
            what = f"unknown label {', '.join(sorted(unknown))}"
            raise DataError(what, where="task.class_weights", hint=hint, code="data.unknown_label")
        return [wanted.get(label, 1.0) for label in targets.labels]
    counts = np.bincount(train.fields["label"].tokens.astype(np.int64), minlength=targets.width)
    return targets.balanced(counts.tolist(), len(train))
