"""A run that is given minutes, and one that is extended: each is the run of as many steps, killed or not."""

import json
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from jumok.errors import CheckpointError, RecipeError
from jumok.recipe import Recipe, load_recipe, parse_recipe
from jumok.train.folder import RunFolder
from jumok.train.length import Extended, Planned, Stretch, stretches
from jumok.train.loop import Finished, Resumed, Step
from jumok.train.optimizer import learning_rate
from jumok.training import Began, Event, Scored, train

LINEAR = {"schedule": "linear", "learning_rate": 0.01, "warmup": 0.25}
TREE: dict[str, Any] = {
    "data": {"kind": "synthetic", "problem": "copy", "n_train": 60, "n_dev": 8, "n_test": 8, "length": 5},
    "tokenizer": {"kind": "character", "vocab_size": 300},
    "model": {"d_model": 8, "d_ff": 16, "n_heads": 2, "n_layers": 1},
    "train": {"batch_tokens": 64, "evaluate_every": 4, "save_every": 4, "final": "last", "optimizer": LINEAR},
    "decode": {"method": "greedy", "max_extra": 3},
}


def recipe(**keys: Any) -> Recipe:
    return parse_recipe({**TREE, "train": {**TREE["train"], **keys}}, where="test")


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUMOK_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def ticking(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """A clock on which a quarter of a second passes between two looks, or as long as a test says."""

    def tick(seconds: float) -> None:
        ticks = count()
        monkeypatch.setattr("jumok.train.rehearsal.clock", lambda: seconds * next(ticks))

    tick(0.25)
    return tick


def run(out: Path, wanted: Recipe, until: int | None = None) -> list[Event]:
    """Train; asked to stop after a step."""
    asked: list[bool] = []
    events = []
    for event in train(wanted, out, stop=lambda: bool(asked)):
        events.append(event)
        if isinstance(event, Step) and event.step == until:
            asked.append(True)
    return events


def of(events: list[Event], kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def plan(out: Path) -> list[Stretch]:
    return stretches(RunFolder(out).stored() or {})


def same(one: Path, other: Path, step: int) -> bool:
    """Weights, moments and progress, and what is made of them."""
    made = ["model/model.safetensors", "scores.json"]
    files = [f"checkpoints/step-{step}/{name}.safetensors" for name in ("weights", "optimizer")] + made
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in files)


# minutes


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Event]]:
    out = tmp_path_factory.mktemp("timed") / "run"
    with pytest.MonkeyPatch.context() as patch:
        ticks = count()
        patch.setattr("jumok.train.rehearsal.clock", lambda: 0.25 * next(ticks))
        return out, run(out, recipe(minutes=0.2))


def test_minutes_become_steps_that_the_run_keeps(timed: tuple[Path, list[Event]]) -> None:
    out, events = timed
    (planned,) = of(events, Planned)
    # The clock is looked at twice after five measured steps: once to end, once to take the mean.
    assert (planned.minutes, planned.seconds_per_step) == (0.2, pytest.approx(2 * 0.25 / 5))
    assert 10 <= planned.steps < 0.2 * 60 / planned.seconds_per_step
    assert plan(out) == [Stretch(0, planned.steps)]
    assert of(events, Began)[0].steps == planned.steps
    assert of(events, Finished) == [Finished(planned.steps, "steps")]
    assert [event["steps"] for event in RunFolder(out).history() if event["event"] == "planned"] == [planned.steps]


def test_minutes_are_exactly_as_many_steps(timed: tuple[Path, list[Event]], tmp_path: Path) -> None:
    """Nothing is learned, drawn or remembered while the speed is measured."""
    steps = plan(timed[0])[0].steps
    run(tmp_path / "run", recipe(steps=steps))
    assert same(tmp_path / "run", timed[0], steps)


@pytest.mark.parametrize("until", [2, 6])
def test_a_run_of_minutes_resumes_exactly_on_a_slower_machine(
    until: int, timed: tuple[Path, list[Event]], tmp_path: Path, ticking: Callable[[float], None]
) -> None:
    steps = plan(timed[0])[0].steps
    run(tmp_path / "run", recipe(minutes=0.2), until=until)
    ticking(10.0)
    events = run(tmp_path / "run", recipe(minutes=0.2))
    assert of(events, Resumed) == [Resumed(until)]
    assert not of(events, Planned)
    assert same(tmp_path / "run", timed[0], steps)


def test_a_kill_before_the_first_checkpoint_keeps_the_plan(
    timed: tuple[Path, list[Event]], tmp_path: Path, ticking: Callable[[float], None]
) -> None:
    events = train(recipe(minutes=0.2), tmp_path / "run")
    while not isinstance(next(events), Step):
        pass
    events.close()  # type: ignore[attr-defined]
    assert not RunFolder(tmp_path / "run").checkpoints.steps()
    ticking(10.0)
    run(tmp_path / "run", recipe(minutes=0.2))
    assert same(tmp_path / "run", timed[0], plan(timed[0])[0].steps)


def test_a_kill_while_the_speed_is_measured_is_safe(
    timed: tuple[Path, list[Event]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("jumok.planning._seconds_of_answers", killed)
        with pytest.raises(Killed):
            run(tmp_path / "run", recipe(minutes=0.2))
    assert plan(tmp_path / "run") == []
    run(tmp_path / "run", recipe(minutes=0.2))
    assert same(tmp_path / "run", timed[0], plan(timed[0])[0].steps)


def test_a_stop_while_the_speed_is_measured_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[bool] = []
    monkeypatch.setattr("jumok.train.rehearsal.take_step", lambda *_: taken.append(True))
    events = list(train(recipe(minutes=0.2), tmp_path / "run", stop=lambda: bool(taken)))
    assert (events, len(taken)) == ([Finished(0, "interrupted")], 1)


def test_too_few_minutes_are_refused_before_anything_is_trained(tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        run(tmp_path / "run", recipe(minutes=0.02))
    assert caught.value.code == "recipe.minutes"
    assert not RunFolder(tmp_path / "run").history()


@pytest.mark.parametrize("kind", ["full", "gradual", "frozen"])
def test_layers_learn_as_if_nothing_had_been_rehearsed(kind: str, tmp_path: Path) -> None:
    tree = {
        "task": {"kind": "classification"},
        "data": {"kind": "toy_topics", "n_train": 400, "n_dev": 8, "n_test": 8, "max_len": 24},
        "tokenizer": {"kind": "wordpiece", "vocab_size": 120},
        "model": {"kind": "bert", "d_model": 8, "d_ff": 16, "n_heads": 2, "n_layers": 2, "max_len": 24},
        "train": {**TREE["train"], "metric": "accuracy", "transfer": {"mode": kind, "unfreeze_every": 0.3}},
    }

    def wanted(**keys: Any) -> Recipe:
        return parse_recipe({**tree, "train": {**tree["train"], **keys}}, where="test")  # type: ignore[dict-item]

    run(tmp_path / "timed", wanted(minutes=0.2))
    steps = plan(tmp_path / "timed")[0].steps
    run(tmp_path / "counted", wanted(steps=steps))
    assert same(tmp_path / "timed", tmp_path / "counted", steps)


# extension


@pytest.fixture(scope="module")
def ten(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("ten") / "run"
    run(out, recipe(steps=10))
    return out


@pytest.fixture(scope="module")
def extended(ten: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Event]]:
    """The run of 10 steps, finished and extended to 20."""
    out = Path(shutil.copytree(ten, tmp_path_factory.mktemp("extended") / "run"))
    return out, run(out, recipe(steps=20))


def test_a_finished_run_goes_on_to_the_new_end(ten: Path, extended: tuple[Path, list[Event]]) -> None:
    out, events = extended
    assert [event.step for event in of(events, Step)] == list(range(11, 21))
    assert plan(out) == [Stretch(0, 10), Stretch(10, 20)]
    stored = RunFolder(out).stored() or {}
    assert (stored["recipe"]["train"]["steps"], stored["scored"]) == (20, 20)
    assert len(of(events, Scored)) == 2
    model = "model/model.safetensors"
    assert (out / model).read_bytes() != (ten / model).read_bytes()
    assert of(run(out, recipe(steps=20)), Step | Scored) == []  # type: ignore[arg-type]


def test_the_rate_is_that_of_the_new_length_and_the_warmup_of_the_old_one(extended: tuple[Path, list[Event]]) -> None:
    _, events = extended
    optimizer = recipe(steps=10).train.resolved(10).optimizer
    rates = [learning_rate(step, optimizer, peak=0.01, steps=20) for step in range(11, 21)]
    assert [event.learning_rate for event in of(events, Step)] == rates
    assert rates[-1] == 0.0
    assert of(events, Extended) == [Extended(10, 10, 20, 0.0, rates[0])]


@pytest.mark.parametrize("until", [11, 15, 16])
def test_an_extended_run_that_is_killed_resumes_exactly(
    until: int, ten: Path, extended: tuple[Path, list[Event]], tmp_path: Path
) -> None:
    out = Path(shutil.copytree(ten, tmp_path / "run"))
    run(out, recipe(steps=20), until=until)
    events = run(out, recipe(steps=20))
    assert (of(events, Resumed), of(events, Extended)) == ([Resumed(until)], [])
    assert same(out, extended[0], 20)


def test_a_kill_before_the_first_new_checkpoint_extends_once(
    ten: Path, extended: tuple[Path, list[Event]], tmp_path: Path
) -> None:
    out = Path(shutil.copytree(ten, tmp_path / "run"))
    events = train(recipe(steps=20), out)
    while not isinstance(next(events), Step):
        pass
    events.close()  # type: ignore[attr-defined]
    run(out, recipe(steps=20))
    assert plan(out) == plan(extended[0])
    assert same(out, extended[0], 20)


def test_an_unfinished_run_is_extended_where_it_stands(tmp_path: Path) -> None:
    constant = {**LINEAR, "schedule": "constant"}
    run(tmp_path / "run", recipe(steps=10, optimizer=constant), until=6)
    events = run(tmp_path / "run", recipe(steps=16, optimizer=constant))
    (told,) = of(events, Extended)
    assert (told.step, told.before, told.steps, told.rate_before) == (6, 10, 16, told.learning_rate)
    # A rate that does not know the end makes it the run that was meant to be longer from the start.
    run(tmp_path / "long", recipe(steps=16, optimizer={**constant, "warmup": 2}))
    assert same(tmp_path / "run", tmp_path / "long", 16)


def test_a_run_out_of_patience_is_given_new_patience(tmp_path: Path) -> None:
    # At a rate of nearly zero nothing gets better.
    still = {"schedule": "constant", "learning_rate": 1e-12, "warmup": 0}
    keys = {"optimizer": still, "evaluate_every": 1, "patience": 2, "metric": "exact_match"}
    first = of(run(tmp_path / "run", recipe(steps=10, **keys)), Finished)[0]
    assert (first.reason, first.step) == ("patience", 3)
    events = run(tmp_path / "run", recipe(steps=12, **keys))
    assert [event.step for event in of(events, Step)] == [4, 5]
    assert of(events, Finished)[0].reason == "patience"


def test_epochs_and_minutes_extend_too(ten: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(ten, tmp_path / "run"))
    epoch = of(run(tmp_path / "one", recipe(epochs=1)), Finished)[0].step
    epochs = 10 // epoch + 1
    assert of(run(out, recipe(epochs=epochs)), Finished)[0].step == epochs * epoch
    # The run itself knows how fast it is: with the time that it has taken already, it goes on.
    events = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    for event, time in zip(events, count()):
        event |= {"time": float(time), **({"seconds": 1.0} if event["event"] == "step" else {})}
    (out / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    spent = epochs * epoch + sum(event["event"] == "evaluated" for event in events)
    found = of(run(out, recipe(minutes=(spent + 40) / 60)), Finished)[0].step
    assert epochs * epoch + 20 < found < epochs * epoch + 40


@pytest.mark.parametrize(("keys", "number"), [({"steps": 9}, 9), ({"steps": 3}, 3)])
def test_fewer_steps_than_were_taken_are_refused(keys: dict[str, Any], number: int, ten: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(ten, tmp_path / "run"))
    before = (out / "recipe.json").read_bytes()
    with pytest.raises(CheckpointError) as caught:
        run(out, recipe(**keys))
    assert caught.value.code == "checkpoint.fewer_steps"
    assert str(number) in caught.value.what
    assert (out / "recipe.json").read_bytes() == before


def test_minutes_that_have_passed_are_refused(ten: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(ten, tmp_path / "run"))
    with pytest.raises(RecipeError) as caught:
        run(out, recipe(minutes=0.0001))
    assert caught.value.code == "recipe.minutes"


def test_an_extension_that_has_not_begun_can_be_taken_back(ten: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(ten, tmp_path / "run"))
    next(train(recipe(steps=20), out)).__class__  # noqa: B018 - the plan is stored before the first event
    assert plan(out)[-1] == Stretch(10, 20)
    events = run(out, recipe(steps=10))
    assert (of(events, Step), plan(out)) == ([], [Stretch(0, 10)])


def test_anything_else_that_differs_is_still_refused(ten: Path) -> None:
    with pytest.raises(CheckpointError) as caught:
        run(ten, recipe(steps=20, accumulate=2))
    assert caught.value.code == "checkpoint.other_recipe"
    assert "train.steps" not in caught.value.what


def test_a_run_of_an_earlier_version_has_no_plan_and_is_extended_alike(
    ten: Path, extended: tuple[Path, list[Event]], tmp_path: Path
) -> None:
    out = Path(shutil.copytree(ten, tmp_path / "run"))
    stored = json.loads((out / "recipe.json").read_text())
    del stored["plan"], stored["scored"], stored["recipe"]["train"]["minutes"]
    (out / "recipe.json").write_text(json.dumps(stored))
    assert of(run(out, recipe(steps=10)), Step | Scored) == []  # type: ignore[arg-type]
    (out / "recipe.json").write_text(json.dumps(stored))
    run(out, recipe(steps=20))
    assert same(out, extended[0], 20)


# warm-up, and recipes that say it twice


@pytest.mark.parametrize(("warmup", "steps", "is_noted"), [(4, 4, True), (9, 4, True), (3, 4, False), (0.5, 4, False)])
def test_a_warmup_that_the_steps_do_not_reach_gets_a_note(
    warmup: float, steps: int, is_noted: bool, tmp_path: Path
) -> None:
    (began,) = of(run(tmp_path / "run", recipe(steps=steps, optimizer={**LINEAR, "warmup": warmup})), Began)
    noted = [note for note in began.notes if "train.optimizer.warmup" in note]
    assert bool(noted) == is_noted
    assert all(str(warmup) in note and str(steps) in note for note in noted)


WRITTEN = """
data = { kind = "synthetic", problem = "copy" }
[train]
"""


@pytest.mark.parametrize(
    ("lines", "overrides", "named"),
    [
        (["steps = 5", "epochs = 2"], [], ["steps", "epochs"]),
        (["steps = 5", "minutes = 2"], [], ["steps", "minutes"]),
        (["epochs = 5", "minutes = 2"], [], ["epochs", "minutes"]),
        (["steps = 5"], ["train.epochs=2", "train.minutes=3"], ["epochs", "minutes"]),
    ],
)
def test_two_lengths_are_refused_with_both_keys(
    lines: list[str], overrides: list[str], named: list[str], tmp_path: Path
) -> None:
    (tmp_path / "r.toml").write_text(WRITTEN + "\n".join(lines))
    with pytest.raises(RecipeError) as caught:
        load_recipe(tmp_path / "r.toml", overrides)
    assert caught.value.code == "recipe.mismatch"
    assert all(f"train.{key}" in caught.value.what for key in named)
    assert caught.value.where is not None
    assert len(caught.value.where.split(", ")) >= 2


@pytest.mark.parametrize("line", ["steps = 5", "epochs = 5", "minutes = 5"])
@pytest.mark.parametrize("override", ["train.steps=7", "train.epochs=7", "train.minutes=7"])
def test_an_override_replaces_the_length_of_the_file(line: str, override: str, tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(WRITTEN + line)
    key = override.removeprefix("train.").partition("=")[0]
    assert load_recipe(tmp_path / "r.toml", [override]).train.length == (key, 7)
