"""What the curve of a pre-training says: whether it goes below the unigram floor, and if not, what is the likely cause.

    floor = - sum_v p(v) ln p(v)

is the loss of a model that knows the frequency p(v) of every piece v and nothing else. A masked loss comes down to it
soon and should go on; one that stays there has learned nothing of the context.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, log
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from jumok.doctor.findings import Finding, Severity, finding, worst_first

if TYPE_CHECKING:
    from jumok.recipe import Recipe

NEAR = 0.05  # of the floor: a loss no farther from it is at it
LONG = 500  # steps, or a third of all: staying there so long is no passing by
FALLING = 0.015  # of the floor: a loss that falls more, from half to half of the time, is on its way
FEW = 50  # steps tell nothing yet
EARLY = 2000  # steps that a loss may well need
CHANCE = 0.685  # next-sentence losses from here on are chance, which is ln 2 = 0.693
POINTS = 3.0  # per cent: right answers beyond the commoner one's that may be luck
BLOCK = 50  # steps that a spike is compared with
Values = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ground:
    """What the training text alone says of a run that learns from it."""

    floor: float
    """nats"""
    vocabulary: int
    used: float
    """share of the vocabulary that occurs"""
    unknown: float
    """share of the pieces"""
    repeated: float
    """share of the words that stand in repeated lines and documents"""


@dataclass(frozen=True, slots=True)
class Curve:
    """The steps of a run, and its scores on dev."""

    steps: npt.NDArray[np.int64]
    masked: Values
    next_sentence: Values
    """empty if it was not asked for"""
    rates: Values
    norms: Values
    tokens: Values
    seconds: Values
    epochs: int
    dev: dict[int, dict[str, float]]
    finished: bool

    @staticmethod
    def of(events: Iterable[Mapping[str, Any]]) -> "Curve":
        told: dict[int, Mapping[str, Any]] = {}
        dev: dict[int, dict[str, float]] = {}
        finished = False
        for event in events:  # a run that went on from a checkpoint tells some steps again: the later word counts
            match event.get("event"):
                case "step":
                    told[event["step"]] = event
                case "evaluated":
                    dev[event["step"]] = event["scores"]
                case "finished":
                    finished = event["reason"] != "interrupted"
                case "resumed":
                    finished = False
        steps = [told[step] for step in sorted(told)]
        parts = [step.get("parts") or {"masked": step["loss"]} for step in steps]
        following = [part["next_sentence"] for part in parts if "next_sentence" in part]

        def column(name: str) -> Values:
            return np.array([step[name] for step in steps], dtype=np.float64)

        return Curve(
            np.array(sorted(told), dtype=np.int64),
            np.array([part["masked"] for part in parts], dtype=np.float64),
            np.array(following, dtype=np.float64),
            *map(column, ("learning_rate", "grad_norm", "tokens", "seconds")),
            epochs=max((step["epoch"] for step in steps), default=0),
            dev=dict(sorted(dev.items())),
            finished=finished,
        )

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def window(self) -> int:
        """Steps that are taken together where single ones are noise."""
        return max(len(self) // 20, min(20, len(self)))

    def end(self, values: Values) -> float:
        return float(values[-self.window :].mean())

    def blocks(self, values: Values) -> Values:
        """Means of windows, the last of which ends with the last step."""
        n = len(values) // self.window * self.window
        means: Values = values[len(values) - n :].reshape(-1, self.window).mean(axis=1)
        return means


def examine_curve(events: Iterable[Mapping[str, Any]], recipe: "Recipe", ground: Ground | None) -> list[Finding]:
    """What the events of a pre-training say; `ground` is None if its training text cannot be read any more."""
    curve = Curve.of(events)
    if not len(curve):
        message = "The run has no steps yet: there is nothing to look at before it has begun."
        return [finding("curve", "note", 0, 1, message)]
    numbers = np.concatenate([curve.masked, curve.next_sentence, curve.norms])
    scores = [value for found in curve.dev.values() for value in found.values()]
    if not (np.isfinite(numbers).all() and all(map(isfinite, scores))):
        message = "There are losses, gradients or scores that are no numbers: the weights are lost. Go back to a checkpoint"
        message += " from before, with a lower learning rate, a longer warm-up or clip_norm = 1.0."
        return [finding("not_finite", "error", 1, len(curve), message)]
    findings = [_summary(curve, recipe, ground), *_spikes(curve), *_rise(curve), *_memory(curve), *_speed(curve)]
    if len(curve) >= FEW:
        stuck = _stuck(curve, recipe, ground) if ground else []
        findings += [*stuck, *_next_sentence(curve, ground, is_stuck=bool(stuck))]
    return worst_first(findings)


def _summary(curve: Curve, recipe: "Recipe", ground: Ground | None) -> Finding:
    last, end = int(curve.steps[-1]), curve.end(curve.masked)
    speed = curve.tokens.sum() / max(curve.seconds.sum(), 1e-9)
    message = f"Step {last:,} of {recipe.train.steps:,}: {curve.tokens.sum():,.0f} pieces were read, {speed:,.0f} a second."
    message += f" The masked loss was {curve.masked[0]:.2f} at first and is {end:.2f} now (mean of {curve.window} steps)."
    if ground:
        message += f" Its unigram floor is {ground.floor:.2f}, and training begins near ln V = {log(ground.vocabulary):.2f}:"
        message += f" {_standing(end, ground.floor)}."
    if curve.dev:
        found = list(curve.dev.values())[-1]
        message += f" On dev it is {found['masked_loss']:.2f}, and {found['masked_accuracy']:.1f} % of the masked pieces"
        message += " are guessed right"
        if "next_sentence_accuracy" in found:
            message += f"; of the pairs {found['next_sentence_accuracy']:.1f} % are, where the commoner answer has"
            message += f" {found['next_sentence_majority']:.1f} %"
        message += "."
    return finding("curve", "note", last, max(recipe.train.steps, last), message)


def _standing(loss: float, floor: float) -> str:
    if loss > (1 + NEAR) * floor:
        return "the model does not yet know how frequent the pieces are"
    if loss > (1 - NEAR) * floor:
        return "the model knows how frequent the pieces are, and little more"
    return f"it is {floor - loss:.2f} below, so that the model uses the words around a masked one"


def _stuck(curve: Curve, recipe: "Recipe", ground: Ground) -> list[Finding]:
    """A loss that has stayed at the floor, or above it, for long; with the likely causes."""
    blocks = curve.blocks(curve.masked)
    below = np.flatnonzero(blocks < (1 - NEAR) * ground.floor)
    above = np.flatnonzero(blocks > (1 + NEAR) * ground.floor)
    is_above = len(above) and above[-1] == len(blocks) - 1
    # Since when has it been where it is? At the floor it has come from above, or back from below.
    outside = below if is_above else np.union1d(above, below)
    since = int(outside[-1]) + 1 if len(outside) else 0
    stretch = blocks[since:]
    n = len(stretch) * curve.window
    if not len(stretch) or n < min(LONG, len(curve) / 3):
        return []
    half = len(stretch) // 2
    is_falling = half > 0 and stretch[:half].mean() - stretch[half:].mean() > FALLING * ground.floor
    warming = int(curve.steps[-1]) < recipe.train.optimizer.warmup
    where = "has not come down to the unigram floor" if is_above else f"has been within {100 * NEAR:.0f} % of the unigram floor"
    message = f"The masked loss {where} ({ground.floor:.2f}) for the last {n:,} steps: {curve.end(curve.masked):.2f}."
    if is_falling or warming:
        message += " It still falls: go on." if is_falling else " The learning rate is still warming up: go on."
        return [finding("plateau", "note", n, len(curve), message)]
    message += " " + _standing(curve.end(curve.masked), ground.floor).capitalize() + ". Look at the likely causes first:"
    return [finding("plateau", "warning", n, len(curve), message, _causes(curve, recipe, ground))]


def _causes(curve: Curve, recipe: "Recipe", ground: Ground) -> list[str]:
    """What may keep a loss from falling, as far as it can be checked."""
    c = recipe.model
    best, end = float(curve.blocks(curve.masked).min()), curve.end(curve.masked)
    peak, norm = float(curve.rates.max()), float(np.median(curve.norms[-curve.window :]))
    early_norm = float(np.median(curve.norms[: curve.window]))
    tokens = float(np.median(curve.tokens))
    n_spikes = len(_spike_places(curve))
    found = {
        f"learning rate too high: the loss was {best:.2f} and came back; a third of {peak:.1e} may do": end
        > best + NEAR * ground.floor,
        f"learning rate too high: {n_spikes} spikes; a third of {peak:.1e} and a longer warm-up may do": n_spikes >= 3,
        f"learning rate too high: gradients have grown from {early_norm:.2g} to {norm:.2g}": norm > 10 * early_norm,
        f"learning rate too low: it was {peak:.1e} at most, and 1e-4 to 1e-3 are usual": peak < 2e-5 and not recipe.init,
        f"next to nothing reaches the weights: gradients have a norm of {norm:.1e}": norm < 1e-3,
        f"repeated text: {100 * ground.repeated:.0f} % of the words stand in repeated lines; keep one of each": ground.repeated
        > 0.03,
        f"a vocabulary that is mostly unused: {100 * ground.used:.0f} % of it occur": ground.used < 0.5,
    }
    return [cause for cause, applies in found.items() if applies]
