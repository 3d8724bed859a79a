"""The loss curve of a run that learns from text alone: does it fall below the unigram floor, and if not, why?

    floor = - sum_v p(v) ln p(v)

is the loss of a model that knows the frequency p(v) of every token v and nothing else. The loss soon falls to it and
should keep falling; a model whose loss stays there has not learned to use the context.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite, log, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from jumok.findings import Finding, Severity, finding, worst_first

if TYPE_CHECKING:
    from jumok.recipe import Recipe

NEAR = 0.05  # share of the floor: a loss this close counts as at the floor
LONG = 500  # steps, or a third of all: a loss that stays this long is stuck
FALLING = 0.015  # share of the floor: a larger drop from the first half to the second means still falling
FEW = 50  # steps; fewer are not enough to judge
EARLY = 2000  # steps that a loss may need to fall
CHANCE = 0.685  # a higher next-sentence loss is chance; ln 2 = 0.693
POINTS = 3.0  # percentage points above the majority class that may be luck
BLOCK = 50  # steps before a spike that it is compared with
REPEATED, UNKNOWN, USED = 0.03, 0.01, 0.5  # shares of words, tokens and vocabulary that may be the cause
IDLE = 1000  # unused tokens; fewer do not matter
Values = npt.NDArray[np.float64]

# fmt: off
_MESSAGES = {
    "not_begun": "The run has not taken a step yet: there is nothing to examine.",
    "not_finite": "Some losses, gradients or scores are NaN or infinite, and the weights are lost. Start again with a"
        " lower learning rate, a longer warm-up or clip_norm = 1.0.",
    "steps": "Step {last:,} of {steps:,}: {read:,.0f} tokens read, {speed:,.0f} per second. The {name} started at"
        " {first:.2f} and is now {end:.2f} (mean of {window} steps).",
    "ground": " The unigram floor is {floor:.2f}, ln V is {ln_v:.2f}: {standing}.",
    "dev": " On dev it is {masked_loss:.2f}, and {masked_accuracy:.1f} % of the masked tokens are predicted correctly.",
    "dev_text": " On dev it is {loss:.2f} ({scores}).",
    "dev_pairs": " {next_sentence_accuracy:.1f} % of the pairs are classified correctly; the majority class has"
        " {next_sentence_majority:.1f} %.",
    "stuck": "The {name} has been {where} the unigram floor, {floor:.2f}, for the last {n:,} steps.",
    "falls": " It is still falling: keep training.",
    "warms_up": " The learning rate is still warming up: keep training.",
    "causes": " At {end:.2f} {standing}. Possible causes:",
    "pairs_at_chance": "Next-sentence prediction is at chance (loss {loss:.3f}; ln 2 is 0.693) while the masked loss"
        " falls. It is learned later than words are, so keep training if there are steps left; otherwise check whether"
        " neighbouring sentences belong together (data.format), or set task.next_sentence = false.",
    "only_pairs": "Next-sentence prediction is learned (loss {loss:.3f}) but masked words are not, so the model and its"
        " gradients work. Something simpler than words may give the pairs away, such as length or punctuation.",
    "risen": "Training is diverging: the {name} has risen from {best:.2f} at step {since:,} to {end:.2f}. Resume from"
        " an earlier checkpoint with a lower learning rate, or start again with a longer warm-up.",
    "memorising": "The model is overfitting: the dev loss has risen from {best:.2f} at step {since:,} to {end:.2f}"
        " while the training loss fell from {then:.2f} to {now:.2f} (epoch {epoch}). More text or a smaller model would"
        ' help; train.patience stops in time, and train.final = "best" restores the best weights.',
    "spikes": "The {name} has {n:,} spikes in {steps:,} steps. A few are harmless; if there are many, use a lower"
        " learning rate, a longer warm-up or clip_norm = 1.0.",
    "spike": "step {step:,}  {loss:.2f}, usually {usual:.2f}; gradient norm {norm:.2g}",
    "slow": "Training has slowed down: {now:,.0f} tokens per second, usually {usual:,.0f}. Something else may be using"
        " the processor or the memory.",
}
_CAUSES = {
    "came_back": "learning rate too high: the loss was {best:.2f} and rose again",
    "spikes": "learning rate too high: {spikes} spikes; try a third of {peak:.1e}, or a longer warm-up",
    "gradients_grew": "learning rate too high: the gradient norm grew from {early:.2g} to {late:.2g}",
    "no_gradients": "vanishing gradients: the gradient norm is {late:.1e}",
    "high_rate": "learning rate too high: {peak:.1e} at its peak, usually 1e-4 to 1e-3",
    "low_rate": "learning rate too low: {peak:.1e} at its peak, usually 1e-4 to 1e-3",
    "repeated": "repeated text, {repeated:.0f} % of the words: keep one of each line",
    "unknown": "unknown tokens, {unknown:.1f} % of all: nothing is learned about them",
    "unused": "a vocabulary too large for the text: only {used:.0f} % of it occurs",
    "small_batches": "small batches: {tokens:,.0f} tokens per step{masked}",
    "small_model": "a small model: d_model = {d_model}, n_layers = {n_layers}",
    "few_steps": "few steps: {last:,}; a text with a large vocabulary may need thousands",
    "none": "none found: try a third of the learning rate ({peak:.1e}), then three times as much",
}
# fmt: on


@dataclass(frozen=True, kw_only=True, slots=True)
class Ground:
    """Statistics of the training text that a loss is compared with."""

    floor: float
    """nats"""
    vocabulary: int
    used: float
    """share of the vocabulary that occurs"""
    unknown: float
    """share of the tokens"""
    repeated: float
    """share of the words in repeated lines and documents"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """The steps of a run, and its scores on dev."""

    steps: npt.NDArray[np.int64]
    is_masked: bool
    """whether the model predicts masked tokens rather than the next one"""
    loss: Values
    """of tokens only, without next-sentence prediction; the mean of both directions if there are two"""
    next_sentence: Values
    """empty without next-sentence prediction"""
    rates: Values
    norms: Values
    tokens: Values
    seconds: Values
    epoch: int
    dev: dict[int, dict[str, float]]
    finished: bool

    @staticmethod
    def of(events: Iterable[Mapping[str, Any]], *, is_masked: bool) -> "Curve":
        latest: dict[int, Mapping[str, Any]] = {}
        dev: dict[int, dict[str, float]] = {}
        finished = False
        for event in events:  # a resumed run repeats some steps: keep the later event
            match event.get("event"):
                case "step":
                    latest[event["step"]] = event
                case "evaluated":
                    dev[event["step"]] = event["scores"]
                case "finished" | "resumed":
                    finished = event.get("reason") in ("steps", "patience")
        steps = [latest[step] for step in sorted(latest)]
        parts = [step.get("parts") or {"masked": step["loss"]} for step in steps]

        def column(rows: Iterable[Mapping[str, Any]], name: str) -> Values:
            return np.array([row[name] for row in rows if name in row], dtype=np.float64)

        return Curve(
            steps=np.array(sorted(latest), dtype=np.int64),
            is_masked=is_masked,
            loss=column(parts, "masked"),
            next_sentence=column(parts, "next_sentence"),
            rates=column(steps, "learning_rate"),
            norms=column(steps, "grad_norm"),
            tokens=column(steps, "tokens"),
            seconds=column(steps, "seconds"),
            epoch=1 + max((step["epoch"] for step in steps), default=0),
            dev=dev,
            finished=finished,
        )

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def name(self) -> str:
        return "masked loss" if self.is_masked else "loss"

    @property
    def last(self) -> int:
        return int(self.steps[-1])

    @property
    def scores(self) -> dict[str, float]:
        """Latest scores on dev."""
        return self.dev[max(self.dev)] if self.dev else {}

    @property
    def window(self) -> int:
        """Number of steps to average, because single losses are noisy."""
        return min(max(len(self) // 20, 20), 100, len(self))

    @property
    def end(self) -> float:
        return float(self.loss[-self.window :].mean())

    def dev_losses(self) -> dict[int, float]:
        """Dev loss by step: the masked loss, or the mean over the perplexities of both directions."""
        losses: dict[int, float] = {}
        for step, scores in self.dev.items():
            found = [log(value) for name, value in scores.items() if name in ("perplexity", "backward_perplexity")]
            if "masked_loss" in scores or found:
                losses[step] = scores.get("masked_loss", sum(found) / max(len(found), 1))
        return losses

    def blocks(self) -> Values:
        """Mean loss of each window; the last window ends with the last step."""
        n = len(self) // self.window * self.window
        means: Values = self.loss[len(self) - n :].reshape(-1, self.window).mean(axis=1)
        return means

    def has_risen(self) -> bool:
        """Whether the loss is above its minimum at the end, by more than noise."""
        best, noise = float(self.blocks().min()), float(self.loss[-self.window :].std()) / sqrt(self.window)
        return self.end - best > NEAR * best + 4 * noise

    def spikes(self) -> list[tuple[int, float]]:
        """Find where the loss jumps far above its usual value in the steps before; return the index and that value."""
        usual, most = self.loss.copy(), self.loss.copy()
        for start in range(BLOCK, len(self), BLOCK):
            before, here = self.loss[start - BLOCK : start], slice(start, start + BLOCK)
            usual[here] = np.median(before)
            spread = 1.4826 * float(np.median(np.abs(before - usual[start])))
            most[here] = usual[start] + max(8 * spread, 0.15 * usual[start])
        high = self.loss > most
        begins = np.flatnonzero(high[1:] & ~high[:-1]) + 1
        return [(int(i), float(usual[i])) for i in begins]


def examine_curve(events: Iterable[Mapping[str, Any]], recipe: "Recipe", ground: Ground | None) -> list[Finding]:
    """Examine the events of a run; `ground` is None if its training text can no longer be read."""
    curve = Curve.of(events, is_masked=recipe.kind.learns_from_text == "masked")
    if not len(curve):
        return [finding("curve.summary", "note", 0, 1, _MESSAGES["not_begun"])]
    numbers = np.concatenate([curve.loss, curve.next_sentence, curve.norms])
    scores = [value for found in curve.dev.values() for value in found.values()]
    if not (np.isfinite(numbers).all() and all(map(isfinite, scores))):
        return [finding("curve.not_finite", "error", 1, len(curve), _MESSAGES["not_finite"])]
    findings = [_summary(curve, recipe, ground)]
    if len(curve) >= FEW:
        stuck = _stuck(curve, recipe, ground) if ground else []
        findings += [*stuck, *_pairs(curve, ground, is_stuck=any(f.severity == "warning" for f in stuck))]
        findings += [*_risen(curve), *_memorising(curve), *_spikes(curve), *_slow(curve)]
    return worst_first(findings)


def _summary(curve: Curve, recipe: "Recipe", ground: Ground | None) -> Finding:
    read, steps = float(curve.tokens.sum()), max(recipe.train.steps, curve.last)
    speed = read / max(float(curve.seconds.sum()), 1e-9)
    facts: dict[str, Any] = {"read": read, "speed": speed, "first": float(curve.loss[0]), "window": curve.window}
    facts |= {"name": curve.name, "last": curve.last, "steps": steps, "end": curve.end}
    message = _MESSAGES["steps"].format(**facts)
    if ground:
        standing = _standing(curve, ground.floor)
        message += _MESSAGES["ground"].format(floor=ground.floor, ln_v=log(ground.vocabulary), standing=standing)
    if "masked_loss" in curve.scores:
        message += _MESSAGES["dev"].format(**curve.scores)
    elif dev := curve.dev_losses():
        scores = ", ".join(f"{name.replace('_', ' ')} {value:.2f}" for name, value in curve.scores.items())
        message += _MESSAGES["dev_text"].format(loss=dev[max(dev)], scores=scores)
    if "next_sentence_accuracy" in curve.scores:
        message += _MESSAGES["dev_pairs"].format(**curve.scores)
    return finding("curve.summary", "note", curve.last, steps, message, facts=facts | {"dev": curve.scores})


def _standing(curve: Curve, floor: float) -> str:
    if curve.end > (1 + NEAR) * floor:
        return "the model has not yet learned the frequency of the tokens"
    if curve.end > (1 - NEAR) * floor:
        return "the model has learned the frequency of the tokens, and little more"
    return f"the loss is {floor - curve.end:.2f} below the floor, so the model uses the context"


def _stuck(curve: Curve, recipe: "Recipe", ground: Ground) -> list[Finding]:
    """Find a loss that has long been at or above the floor, and likely causes."""
    blocks = curve.blocks()
    above, below = blocks > (1 + NEAR) * ground.floor, blocks < (1 - NEAR) * ground.floor
    elsewhere = np.flatnonzero(~above if above[-1] else above | below)
    stretch = blocks[elsewhere[-1] + 1 if len(elsewhere) else 0 :]
    n = len(stretch) * curve.window
    if n < min(LONG, len(curve) / 3):
        return []
    recent = stretch[len(stretch) // 2 :] if above[-1] else stretch  # ignore the initial fall
    half = len(recent) // 2
    falls = half > 0 and recent[:half].mean() - recent[half:].mean() > FALLING * ground.floor
    where = "above" if above[-1] else f"within {100 * NEAR:.0f} % of"
    message = _MESSAGES["stuck"].format(name=curve.name, where=where, floor=ground.floor, n=n)
    if falls or curve.last < recipe.train.optimizer.warmup:
        return [finding("curve.plateau", "note", n, len(curve), message + _MESSAGES["falls" if falls else "warms_up"])]
    message += _MESSAGES["causes"].format(end=curve.end, standing=_standing(curve, ground.floor))
    return [finding("curve.plateau", "warning", n, len(curve), message, _causes(curve, recipe, ground))]


def _causes(curve: Curve, recipe: "Recipe", ground: Ground) -> list[str]:
    """List likely causes of a stuck loss: in the curve, then in the text, then in the recipe."""
    spikes, peak, tokens = len(curve.spikes()), float(curve.rates.max()), float(np.median(curve.tokens))
    early, late = (float(np.median(part)) for part in (curve.norms[: curve.window], curve.norms[-curve.window :]))
    d_model, n_layers = recipe.model.d_model, getattr(recipe.model, "n_layers", 2)
    share = getattr(recipe.task, "mask_share", None)
    masked = f", {tokens * share:,.0f} of them masked" if share is not None else ""
    facts = {"best": curve.blocks().min(), "last": curve.last, "spikes": spikes, "peak": peak, "early": early}
    facts |= {"late": late, "tokens": tokens, "masked": masked, "d_model": d_model, "n_layers": n_layers}
    facts |= {"repeated": 100 * ground.repeated, "unknown": 100 * ground.unknown, "used": 100 * ground.used}
    applies = {
        "came_back": curve.has_risen(),
        "spikes": spikes >= 3,
        "gradients_grew": late > 10 * early,
        "no_gradients": late < 1e-3,
        "high_rate": peak > 1e-2,
        "low_rate": peak < 2e-5,
        "repeated": ground.repeated > REPEATED,
        "unknown": ground.unknown > UNKNOWN,
        "unused": recipe.init is None and ground.used < USED and (1 - ground.used) * ground.vocabulary > IDLE,
        "small_batches": tokens < 1000,
        "small_model": d_model < 64 or n_layers < 2,
        "few_steps": curve.last < EARLY,
    }
    found = [name for name, is_so in applies.items() if is_so] or ["none"]
    return [_CAUSES[name].format(**facts) for name in found]


def _pairs(curve: Curve, ground: Ground | None, *, is_stuck: bool) -> list[Finding]:
    """Check whether only one of the two objectives is learned."""
    if not len(curve.next_sentence):
        return []
    n, loss = len(curve), float(curve.next_sentence[-max(curve.window, FEW) :].mean())
    beyond = curve.scores.get("next_sentence_accuracy", 0) - curve.scores.get("next_sentence_majority", 0)
    learns = curve.end < ((1 - NEAR) * ground.floor if ground else 0.9 * curve.loss[0])
    if learns and loss > CHANCE and beyond <= POINTS:
        severity: Severity = "warning" if curve.finished or n >= EARLY else "note"
        message = _MESSAGES["pairs_at_chance"].format(loss=loss)
        return [finding("curve.next_sentence", severity, n, n, message, facts={"loss": loss})]
    if is_stuck and loss < CHANCE - 0.1:
        return [finding("curve.next_sentence", "warning", n, n, _MESSAGES["only_pairs"].format(loss=loss))]
    return []


def _risen(curve: Curve) -> list[Finding]:
    if not curve.has_risen():
        return []
    blocks = curve.blocks()
    best = int(blocks.argmin())
    ago = (len(blocks) - 1 - best) * curve.window
    facts = {"name": curve.name, "best": float(blocks[best]), "since": curve.last - ago, "end": curve.end}
    return [finding("curve.diverging", "warning", ago, len(curve), _MESSAGES["risen"].format(**facts), facts=facts)]


def _memorising(curve: Curve) -> list[Finding]:
    """Check for a dev loss that rises while the training loss falls."""
    dev = curve.dev_losses()
    if len(dev) < 3:
        return []
    best, last = min(dev, key=lambda step: dev[step]), max(dev)
    before = [curve.loss[(curve.steps > step - curve.window) & (curve.steps <= step)] for step in (best, last)]
    if dev[last] < 1.02 * dev[best] or not all(map(len, before)):
        return []
    then, now = (float(losses.mean()) for losses in before)
    facts = {"best": dev[best], "since": best, "end": dev[last], "then": then, "now": now, "epoch": curve.epoch}
    message = _MESSAGES["memorising"].format(**facts)
    found = finding("curve.overfitting", "warning", last - best, max(last, 1), message, facts=facts)
    return [found] if now < then else []


def _spikes(curve: Curve) -> list[Finding]:
    n, spikes = len(curve), curve.spikes()
    if not spikes:
        return []
    severity: Severity = "warning" if len(spikes) >= 3 and len(spikes) > n / 1000 else "note"
    first = [
        {"step": int(curve.steps[i]), "loss": float(curve.loss[i]), "usual": usual, "norm": float(curve.norms[i])}
        for i, usual in spikes[:5]
    ]
    facts = {"name": curve.name, "n": len(spikes), "steps": n}
    message, shown = _MESSAGES["spikes"].format(**facts), [_MESSAGES["spike"].format(**one) for one in first]
    return [finding("curve.spikes", severity, len(spikes), n, message, shown, facts | {"spikes": first})]


def _slow(curve: Curve) -> list[Finding]:
    speeds = curve.tokens / np.maximum(curve.seconds, 1e-9)
    usual, now = float(np.median(speeds)), float(np.median(speeds[-curve.window :]))
    if now > usual / 2:
        return []
    facts = {"now": now, "usual": usual}
    return [finding("curve.slow", "warning", curve.window, len(curve), _MESSAGES["slow"].format(**facts), facts=facts)]
