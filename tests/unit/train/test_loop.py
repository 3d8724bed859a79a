"""The training loop on a toy: going on is the same as never having stopped, and nothing bad is ever learnt."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from math import isclose, nan
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor, nn

from jumok.config import read_config
from jumok.errors import RecipeError, RunError
from jumok.models.weights import unique_tensors
from jumok.train.checkpoint import Checkpoints
from jumok.train.layers import TransferConfig
from jumok.train.loop import (
    Diverged,
    Evaluated,
    Event,
    Finished,
    Loss,
    Progress,
    Resumed,
    Saved,
    Step,
    TrainConfig,
    planned_steps,
    train,
)
from jumok.train.optimizer import OptimizerConfig, make_optimizer

N, BATCH = 20, 5
PER_EPOCH = N // BATCH
ADAM = OptimizerConfig(schedule="linear", learning_rate=0.05, warmup=3)
CONFIG = TrainConfig(steps=11, optimizer=ADAM, evaluate_every=4, save_every=3, keep_last=2)


class Net(nn.Module):
    """Linear, with dropout, so that what is random in a step shows."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(3, 2)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.linear(self.dropout(x))
        return out


@dataclass(frozen=True)
class Batch:
    x: Tensor
    y: Tensor
    count: int


@dataclass
class Toy:
    """N pairs of vectors; an order that depends on the epoch; scores as they are dictated."""

    losses = ("squares",)

    size: int = BATCH
    scores: Sequence[float] = ()
    poisoned: dict[int, float] = field(default_factory=dict)
    evaluations: int = 0
    in_training: list[bool] = field(default_factory=list)

    def batches(self, epoch: int) -> Iterator[npt.NDArray[np.int64]]:
        order = np.random.default_rng(epoch).permutation(N)
        yield from (order[i : i + self.size] for i in range(0, N, self.size))

    def batch(self, examples: npt.NDArray[np.int64]) -> Batch:
        x = torch.stack([torch.tensor([np.sin(i), np.cos(i), i / N]) for i in examples]).float()
        y = x[:, :2].flip(1) * 2
        for row, example in enumerate(examples):
            if int(example) in self.poisoned:
                x[row] = self.poisoned[int(example)]
        # A target for every third example only: as many examples, not as much to learn.
        return Batch(x, y, len(examples) + sum(int(i) % 3 == 0 for i in examples))

    def name(self, examples: npt.NDArray[np.int64]) -> str:
        return f"examples {', '.join(map(str, examples[:8]))}{' ...' if len(examples) > 8 else ''}"

    def loss(self, model: Net, batch: Batch, *, done: float) -> Loss:
        self.in_training.append(model.training)
        return Loss((model(batch.x) - batch.y).square().sum(), batch.count)

    def evaluate(self, model: Net, *, done: Callable[[int], None]) -> dict[str, float]:
        self.in_training.append(model.training)
        self.evaluations += 1
        if self.scores:
            value = self.scores[self.evaluations - 1]
        else:
            with torch.inference_mode():
                batch = self.batch(np.arange(N))
                value = float((model(batch.x) - batch.y).square().mean())
        return {"perplexity": value, "bleu": -value}


@dataclass
class Ran:
    events: list[Event]
    model: Net
    checkpoints: Checkpoints

    @property
    def steps(self) -> list[tuple[object, ...]]:
        """All that a step says except how long it took."""
        names = [f.name for f in fields(Step) if f.name != "seconds"]
        return [tuple(getattr(e, name) for name in names) for e in self.events if isinstance(e, Step)]

    @property
    def evaluated(self) -> list[Evaluated]:
        return [event for event in self.events if isinstance(event, Evaluated)]

    @property
    def weights(self) -> dict[str, bytes]:
        return {name: tensor.numpy().tobytes() for name, tensor in unique_tensors(self.model).items()}

    def files(self, step: int) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.checkpoints.path(step).iterdir()}


def run(
    folder: Path,
    config: TrainConfig = CONFIG,
    task: Toy | None = None,
    *,
    dropout: float = 0.3,
    stop_at: int | None = None,
    kill_at: int | None = None,
    watch: Callable[[Event], object] = lambda _: None,
) -> Ran:
    """Train until the end, an interruption that is noticed, or the death of the process."""
    model = Net(dropout)
    optimizer = make_optimizer(model, config.optimizer)
    events: list[Event] = []
    taken: list[int] = []

    for event in train(
        model,
        task or Toy(),
        config,
        optimizer=optimizer,
        peak_rate=0.05,
        checkpoints=Checkpoints(folder),
        seed=5,
        interrupted=lambda: taken[-1] == stop_at,
    ):
        watch(event)
        if isinstance(event, Step):
            taken.append(event.step)
        if kill_at is not None and isinstance(event, Step) and event.step == kill_at:
            break
        events.append(event)
    return Ran(events, model, Checkpoints(folder))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return run(tmp_path_factory.mktemp("whole"))


# what an undisturbed run does


def test_events_in_order(whole: Ran) -> None:
    kinds = [(type(event).__name__, event.step) for event in whole.events]
    expected = [("Step", step) for step in range(1, 12)]
    for step in (3, 4, 6, 8, 9):
        expected.insert(expected.index(("Step", step)) + 1, ("Saved", step))
    for step in (4, 8):  # the best so far, and therefore saved
        expected.insert(expected.index(("Step", step)) + 1, ("Evaluated", step))
    assert kinds == [*expected, ("Evaluated", 11), ("Saved", 11), ("Finished", 11)]
    assert whole.events[-1] == Finished(11, "steps")


def test_it_learns(tmp_path: Path) -> None:
    config = replace(CONFIG, steps=120, evaluate_every=1000, save_every=1000)
    losses = [step[2] for step in run(tmp_path, config, dropout=0.0).steps]
    assert losses[-1] < losses[0] / 50  # type: ignore[operator]


def test_a_step_says_what_it_did(tmp_path: Path) -> None:
    ran = run(tmp_path, dropout=0.0)
    first = next(event for event in ran.events if isinstance(event, Step))
    model, task = Net(0.0), Toy()
    batch = task.batch(next(task.batches(0)))
    loss = task.loss(model, batch, done=0.0).total / batch.count
    loss.backward()
    norm = torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm()
    assert isclose(first.loss, float(loss.detach()), rel_tol=1e-6)
    assert isclose(first.grad_norm, float(norm), rel_tol=1e-5)
    assert first.tokens == batch.count
    assert first.learning_rate == pytest.approx(0.05 / 3)
    assert first.seconds > 0


def test_a_step_says_its_epoch(whole: Ran) -> None:
    epochs = [step[1] for step in whole.steps]
    assert epochs == [(step - 1) // PER_EPOCH for step in range(1, 12)]


def test_training_and_evaluation_mode(tmp_path: Path) -> None:
    task = Toy()
    run(tmp_path, replace(CONFIG, steps=5), task)
    assert task.in_training == [True] * 4 + [False] + [True] + [False]


def test_clipping_shortens_the_gradient(tmp_path: Path) -> None:
    norms: list[float] = []

    class Spy(torch.optim.SGD):
        def step(self, closure: None = None) -> None:  # type: ignore[override]
            gradients = [p.grad.norm() for group in self.param_groups for p in group["params"]]
            norms.append(float(torch.stack(gradients).norm()))

    model = Net(0.0)
    config = TrainConfig(steps=2, optimizer=replace(ADAM, clip_norm=0.25))
    events = train(
        model,
        Toy(),
        config,
        optimizer=Spy(model.parameters(), lr=0.0),
        peak_rate=0.05,
        checkpoints=Checkpoints(tmp_path),
        seed=5,
    )
    first = next(events)
    assert isinstance(first, Step)
    assert norms == pytest.approx([0.25], rel=1e-4)
    assert first.grad_norm > 0.3  # what it was before


def test_what_is_random_depends_on_the_seed_and_the_step_alone(whole: Ran, tmp_path: Path) -> None:
    disturbed = run(tmp_path, watch=lambda _: torch.rand(3))
    assert disturbed.steps == whole.steps
    assert disturbed.weights == whole.weights


# going on


@pytest.mark.parametrize("stop_at", [1, 2, 3, 4, 5, 7, 8, 9, 10])
def test_interrupted_is_uninterrupted(stop_at: int, whole: Ran, tmp_path: Path) -> None:
    first = run(tmp_path, stop_at=stop_at)
    assert first.events[-1] == Finished(stop_at, "interrupted")
    assert first.checkpoints.steps()[-1] == stop_at
    second = run(tmp_path)
    assert second.events[0] == Resumed(stop_at)
    assert first.steps + second.steps == whole.steps
    assert first.evaluated + second.evaluated == whole.evaluated
    assert second.weights == whole.weights
    assert second.files(11) == whole.files(11)


@pytest.mark.parametrize("kill_at", [1, 3, 4, 5, 8, 11])
def test_killed_is_uninterrupted(kill_at: int, whole: Ran, tmp_path: Path) -> None:
    first = run(tmp_path, kill_at=kill_at)
    saved = first.checkpoints.steps()[-1] if first.checkpoints.steps() else 0
    assert saved == max(step for step in (0, 3, 4, 6, 8, 9) if step < kill_at)
    second = run(tmp_path)
    assert second.steps == whole.steps[saved:]
    assert second.weights == whole.weights
    assert second.files(11) == whole.files(11)
    assert second.checkpoints.steps() == whole.checkpoints.steps()


def test_interrupted_after_every_step(whole: Ran, tmp_path: Path) -> None:
    steps = []
    for step in range(1, 11):
        steps += run(tmp_path, stop_at=step).steps
    last = run(tmp_path)
    assert steps + last.steps == whole.steps
    assert last.weights == whole.weights
    assert last.files(11) == whole.files(11)


def test_accumulation_across_an_epoch_goes_on_too(tmp_path: Path) -> None:
    config = replace(CONFIG, accumulate=3, steps=5)
    undisturbed = run(tmp_path / "whole", config)
    for stop_at in (1, 2, 3, 4):
        parts = [run(tmp_path / str(stop_at), config, stop_at=stop_at), run(tmp_path / str(stop_at), config)]
        assert parts[0].steps + parts[1].steps == undisturbed.steps
        assert parts[1].weights == undisturbed.weights


@pytest.mark.parametrize("stop_at", [1, 4, 5, 7, 10])
def test_an_extra_checkpoint_is_not_a_planned_one(stop_at: int, whole: Ran, tmp_path: Path) -> None:
    run(tmp_path, stop_at=stop_at)
    second = run(tmp_path)
    planned = [planned_steps(ran.checkpoints.steps(), CONFIG, 11) for ran in (whole, second)]
    assert planned[1] == planned[0]
    assert planned[0][-CONFIG.keep_last :] == [9, 11]
    one, other = (ran.checkpoints.average([9, 11]) for ran in (whole, second))
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())


def test_planned_steps() -> None:
    config = TrainConfig(save_every=10)
    assert planned_steps([10, 17, 20, 25], config, 25) == [10, 20, 25]
    assert planned_steps([10, 17, 20, 25, 30], config, 30) == [10, 20, 30]
    assert planned_steps([], config, 5) == []


def test_a_finished_run_does_nothing(tmp_path: Path) -> None:
    run(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    task = Toy()
    again = run(tmp_path, task=task)
    assert again.events == [Resumed(11), Finished(11, "steps")]
    assert task.in_training == []
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_progress_is_all_there_is_to_know(tmp_path: Path) -> None:
    ran = run(tmp_path, task=Toy(scores=[4.0, 2.0, 3.0]))
    stored = {step: json.loads(ran.files(step)["progress.json"]) for step in ran.checkpoints.steps()}
    assert stored[9] == {
        "step": 9,
        "epoch": 2,
        "batch": 1,
        "best": 2.0,
        "best_step": 8,
        "worse": 0,
        "unevaluated": False,
        "finished": False,
    }
    assert stored[11] == {**stored[9], "step": 11, "batch": 3, "worse": 1, "finished": True}
    assert set(stored[11]) == {f.name for f in fields(Progress)}


def test_progress_at_the_end_of_an_epoch(tmp_path: Path) -> None:
    ran = run(tmp_path, stop_at=PER_EPOCH)
    stored = Progress(**json.loads(ran.files(PER_EPOCH)["progress.json"]))
    assert (stored.epoch, stored.batch) == (0, PER_EPOCH)
    stored = Progress(**json.loads(run(tmp_path, stop_at=PER_EPOCH + 1).files(PER_EPOCH + 1)["progress.json"]))
    assert (stored.epoch, stored.batch) == (1, 1)


# accumulation


@pytest.mark.parametrize(("size", "accumulate"), [(10, 2), (5, 4), (4, 5), (7, 3)])
def test_accumulated_batches_are_one_batch(size: int, accumulate: int, tmp_path: Path) -> None:
    config = replace(CONFIG, steps=6)
    one = run(tmp_path / "one", config, Toy(size=N), dropout=0.0)
    parts = run(tmp_path / "parts", replace(config, accumulate=accumulate), Toy(size=size), dropout=0.0)
    for (step, _, loss, rate, norm, tokens, _), other in zip(one.steps, parts.steps, strict=True):
        assert (step, rate, tokens) == (other[0], other[3], other[5])
        assert loss == pytest.approx(other[2], rel=1e-6, abs=1e-6)
        assert norm == pytest.approx(other[4], rel=1e-5)
    for name, tensor in unique_tensors(one.model).items():
        torch.testing.assert_close(tensor, unique_tensors(parts.model)[name], rtol=0, atol=1e-6)


# what is not finite


@pytest.mark.parametrize("value", [nan, float("inf"), -float("inf")])
@pytest.mark.parametrize("batch", [0, 2])
def test_a_loss_that_is_not_finite_stops_before_the_update(value: float, batch: int, tmp_path: Path) -> None:
    examples = list(Toy().batches(0))[batch].tolist()
    task = Toy(poisoned={examples[1]: value})
    seen: list[dict[str, Tensor]] = []
    model = Net(0.0)
    optimizer = make_optimizer(model, ADAM)
    steps = train(model, task, CONFIG, optimizer=optimizer, peak_rate=0.05, checkpoints=Checkpoints(tmp_path), seed=5)
    for _ in range(batch):
        next(steps)
    seen.append({name: tensor.clone() for name, tensor in unique_tensors(model).items()})
    assert isinstance(diverged := next(steps), Diverged)
    with pytest.raises(RunError) as caught:
        next(steps)
    assert caught.value.code == "run.not_finite"
    assert f"step {batch + 1}: the loss " in caught.value.what
    assert diverged == Diverged(batch + 1, caught.value.what)
    assert caught.value.where == f"epoch 0, batch {batch}: examples {', '.join(map(str, examples))}"
    assert all(torch.equal(tensor, seen[0][name]) for name, tensor in unique_tensors(model).items())
    assert all(torch.isfinite(value).all() for state in optimizer.state.values() for value in state.values())


def test_a_gradient_that_is_not_finite_stops_before_the_update(tmp_path: Path) -> None:
    class Steep(Toy):
        def loss(self, model: Net, batch: Batch, *, done: float) -> Loss:
            # The square root is finite at zero, its slope is not.
            return Loss((model(batch.x) * 0).abs().sqrt().sum(), batch.count)

    model = Net(0.0)
    before = {name: tensor.clone() for name, tensor in unique_tensors(model).items()}
    steps = train(
        model,
        Steep(),
        CONFIG,
        optimizer=make_optimizer(model, ADAM),
        peak_rate=0.05,
        checkpoints=Checkpoints(tmp_path),
        seed=5,
    )
    with pytest.raises(RunError) as caught:
        list(steps)
    assert caught.value.code == "run.not_finite"
    assert "gradient" in caught.value.what
    assert all(torch.equal(tensor, before[name]) for name, tensor in unique_tensors(model).items())


def test_weights_that_an_update_blew_up_are_neither_saved_nor_called_best(tmp_path: Path) -> None:
    model = Net(0.0)
    config = replace(CONFIG, optimizer=replace(ADAM, learning_rate=1e38), evaluate_every=1, save_every=1)
    optimizer = make_optimizer(model, config.optimizer)
    steps = train(model, Toy(), config, optimizer=optimizer, peak_rate=1e38, checkpoints=Checkpoints(tmp_path), seed=5)
    events: list[Event] = []
    with pytest.raises(RunError) as caught:
        events.extend(steps)
    assert caught.value.code == "run.not_finite"
    assert not any(isinstance(event, Evaluated) and event.best for event in events)
    for step in Checkpoints(tmp_path).steps():
        assert all(tensor.isfinite().all() for tensor in Checkpoints(tmp_path).weights(step).values())


@pytest.mark.parametrize("value", [nan, float("inf"), -float("inf")])
def test_a_score_that_is_not_finite_is_never_best(value: float, tmp_path: Path) -> None:
    class Unscored(Toy):
        def evaluate(self, model: Net, *, done: Callable[[int], None]) -> dict[str, float]:
            return {"perplexity": value, "bleu": value}

    for metric in ("perplexity", "bleu"):
        found = run(tmp_path / metric, task=Unscored(), config=replace(CONFIG, metric=metric))
        assert not any(event.best for event in found.events if isinstance(event, Evaluated))


def test_the_last_checkpoint_stays_good(tmp_path: Path) -> None:
    def poison(event: Event) -> None:
        if isinstance(event, Saved) and event.step == 6:
            task.poisoned.update(dict.fromkeys(range(N), nan))

    task = Toy()
    with pytest.raises(RunError) as caught:
        run(tmp_path, task=task, watch=poison)
    assert caught.value.code == "run.not_finite"
    assert "step 7:" in caught.value.what
    assert Checkpoints(tmp_path).steps()[-1] == 6
    assert run(tmp_path).events[0] == Resumed(6)


def test_the_first_batch_of_an_epoch_is_named(tmp_path: Path) -> None:
    examples = next(Toy().batches(1)).tolist()

    def poison(event: Event) -> None:
        if isinstance(event, Step) and event.step == PER_EPOCH:
            task.poisoned[examples[0]] = nan

    task = Toy()
    with pytest.raises(RunError) as caught:
        run(tmp_path, task=task, watch=poison)
    assert caught.value.code == "run.not_finite"
    assert f"step {PER_EPOCH + 1}:" in caught.value.what
    assert caught.value.where == f"epoch 1, batch 0: examples {', '.join(map(str, examples))}"


def test_the_examples_of_all_accumulated_batches_are_named(tmp_path: Path) -> None:
    task = Toy(poisoned={0: nan})
    with pytest.raises(RunError) as caught:
        run(tmp_path, replace(CONFIG, accumulate=PER_EPOCH), task)
    first = np.concatenate(list(Toy().batches(0)))[:8].tolist()
    assert (caught.value.where or "").endswith(f"examples {', '.join(map(str, first))} ...")


def test_an_epoch_without_a_batch(tmp_path: Path) -> None:
    class Empty(Toy):
        def batches(self, epoch: int) -> Iterator[npt.NDArray[np.int64]]:
            return iter(())

    with pytest.raises(RunError) as caught:
        run(tmp_path, task=Empty())
    assert caught.value.code == "run.no_batches"


# best and patience


def test_the_best_is_kept(tmp_path: Path) -> None:
    config = TrainConfig(steps=8, optimizer=ADAM, evaluate_every=1, save_every=1, keep_last=2, final="best")
    ran = run(tmp_path, config, Toy(scores=[5.0, 1.0, 4.0, 3.0, 3.0, 2.0, 2.0, 6.0]))
    assert [event.best for event in ran.evaluated] == [True, True] + [False] * 6
    assert ran.checkpoints.steps() == [2, 7, 8]
    progress = json.loads(ran.files(8)["progress.json"])
    assert (progress["best"], progress["best_step"], progress["worse"]) == (1.0, 2, 6)


def test_a_better_one_takes_its_place(tmp_path: Path) -> None:
    config = TrainConfig(steps=6, optimizer=ADAM, evaluate_every=1, save_every=1, keep_last=1)
    ran = run(tmp_path, config, Toy(scores=[5.0, 1.0, 4.0, 0.5, 3.0, 3.0]))
    assert ran.checkpoints.steps() == [4, 5, 6]  # the best, and two though one was asked for


def test_better_is_lower_or_higher(tmp_path: Path) -> None:
    config = TrainConfig(steps=3, optimizer=ADAM, evaluate_every=1)
    lower = run(tmp_path / "lower", config, Toy(scores=[2.0, 1.0, 3.0]))
    higher = run(tmp_path / "higher", replace(config, metric="bleu"), Toy(scores=[2.0, 1.0, 3.0]))
    assert [event.best for event in lower.evaluated] == [True, True, False]
    assert [event.best for event in higher.evaluated] == [True, True, False]  # bleu is minus perplexity here
    upside_down = run(tmp_path / "up", replace(config, metric="bleu"), Toy(scores=[2.0, 3.0, 1.0]))
    assert [event.best for event in upside_down.evaluated] == [True, False, True]


def test_a_score_that_is_no_number_is_never_the_best(tmp_path: Path) -> None:
    config = TrainConfig(steps=3, optimizer=ADAM, evaluate_every=1)
    ran = run(tmp_path, config, Toy(scores=[nan, 2.0, nan]))
    assert [event.best for event in ran.evaluated] == [False, True, False]


@pytest.mark.parametrize("stop_at", [None, 1, 2, 4, 5])
def test_patience_ends_the_run(stop_at: int | None, tmp_path: Path) -> None:
    scores = [5.0, 4.0, 4.5, 3.0, 3.0, 3.5, 1.0, 1.0]
    config = TrainConfig(steps=8, optimizer=ADAM, evaluate_every=1, save_every=3, patience=2)
    if stop_at is not None:
        run(tmp_path, config, Toy(scores=scores[:stop_at]), stop_at=stop_at)
    ran = run(tmp_path, config, Toy(scores=scores[stop_at or 0 :]))
    assert ran.events[-1] == Finished(6, "patience")
    assert ran.checkpoints.steps()[-1] == 6
    assert json.loads(ran.files(6)["progress.json"])["finished"] is True
    assert run(tmp_path, config).events == [Resumed(6), Finished(6, "patience")]


# configuration


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"steps": 0}, "steps"),
        ({"batch_tokens": 0}, "batch_tokens"),
        ({"accumulate": 0}, "accumulate"),
        ({"evaluate_every": 0}, "evaluate_every"),
        ({"save_every": -1}, "save_every"),
        ({"keep_last": 0}, "keep_last"),
        ({"patience": 0}, "patience"),
        ({"threads": 0}, "threads"),
    ],
)
def test_impossible_relations_are_refused(options: dict[str, object], key: str) -> None:
    with pytest.raises(RecipeError) as caught:
        read_config(TrainConfig, options, what="[train]")
    assert [(mistake.key, mistake.code) for mistake in caught.value.mistakes] == [(key, "recipe.value")]


class TwoLosses(Toy):
    """Two sums over different numbers of targets."""

    losses = ("left", "right")

    def batch(self, examples: npt.NDArray[np.int64]) -> Batch:
        return replace(super().batch(examples), count=(len(examples), sum(int(i) % 3 == 0 for i in examples)))  # type: ignore[arg-type]

    def loss(self, model: Net, batch: Batch, *, done: float) -> Loss:
        squares = (model(batch.x) - batch.y).square().sum(dim=0)
        return Loss(squares, batch.count)


@pytest.mark.parametrize(("size", "accumulate"), [(10, 2), (4, 5)])
def test_each_of_several_losses_has_its_own_mean(size: int, accumulate: int, tmp_path: Path) -> None:
    config = replace(CONFIG, steps=4)
    one = run(tmp_path / "one", config, TwoLosses(size=N), dropout=0.0)
    parts = run(tmp_path / "parts", replace(config, accumulate=accumulate), TwoLosses(size=size), dropout=0.0)
    for (_, _, loss, *_, tokens, named), other in zip(one.steps, parts.steps, strict=True):
        assert set(named) == {"left", "right"}
        assert isclose(loss, sum(named.values()), rel_tol=1e-6)
        assert isclose(loss, other[2], rel_tol=1e-5)
        assert isclose(named["right"], other[-1]["right"], rel_tol=1e-5)
        assert tokens == N


# epochs and shares


@pytest.mark.parametrize(
    ("epochs", "accumulate", "steps"),
    [(None, 1, 11), (1, 1, 10), (3, 1, 33), (3, 2, 16), (1, 100, 1)],
)
def test_epochs_are_as_many_steps_as_they_take(epochs: int | None, accumulate: int, steps: int) -> None:
    config = replace(CONFIG, epochs=epochs, accumulate=accumulate)
    assert config.counted(lambda epoch: 10 + epoch) == steps


def test_shares_become_numbers_of_steps() -> None:
    config = TrainConfig(
        steps=200,
        evaluate_every=0.25,
        save_every=0.001,
        optimizer=replace(ADAM, warmup=0.06),
        transfer=TransferConfig(unfreeze_every=0.1),
    )
    found = config.resolved(config.counted(lambda _: pytest.fail("steps are given")))
    assert (found.evaluate_every, found.save_every) == (50, 1)
    assert (found.optimizer.warmup, found.transfer.unfreeze_every) == (12, 20)
    amounts = (found.evaluate_every, found.save_every, found.optimizer.warmup, found.transfer.unfreeze_every)
    assert all(isinstance(amount, int) for amount in amounts)
    assert found.resolved(200) == found


def test_numbers_of_steps_stay_as_they_are() -> None:
    config = TrainConfig(steps=50, evaluate_every=1, save_every=1000, optimizer=replace(ADAM, warmup=0))
    found = config.resolved(50)
    assert (found.evaluate_every, found.save_every, found.optimizer.warmup, found.steps) == (1, 1000, 0, 50)


def test_shares_are_of_the_steps_that_epochs_take() -> None:
    config = TrainConfig(steps=7, epochs=4, evaluate_every=0.5, optimizer=replace(ADAM, warmup=0.1))
    found = config.resolved(config.counted(lambda _: 25))
    assert (found.steps, found.evaluate_every, found.optimizer.warmup) == (100, 50, 10)


def test_epochs_are_seen_whole(tmp_path: Path) -> None:
    task = Toy()
    config = replace(CONFIG, epochs=2)
    config = config.resolved(config.counted(lambda epoch: sum(1 for _ in task.batches(epoch))))
    steps = [event for event in run(tmp_path, config).events if isinstance(event, Step)]
    assert [step.epoch for step in steps] == [0] * PER_EPOCH + [1] * PER_EPOCH
