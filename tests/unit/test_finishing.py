"""Runs that are not finished: used as they are, ended before their time, and trained on."""

import json
import os
import shutil
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from jumok.assemble import assemble
from jumok.cli import main
from jumok.errors import CheckpointError
from jumok.finishing import finish_now
from jumok.predictor import load
from jumok.recipe import Recipe, parse_recipe
from jumok.train.checkpoint import Checkpoints
from jumok.train.folder import RunFolder
from jumok.train.loop import Evaluated, Finished, Resumed, Saved, Step
from jumok.training import Scored, Scoring, train

TREE: dict[str, Any] = {
    "tokenizer": {"kind": "character", "vocab_size": 300},
    "model": {"d_model": 8, "d_ff": 16, "n_heads": 2, "n_layers": 1},
    "train": {"steps": 12, "batch_tokens": 64, "evaluate_every": 2, "save_every": 2, "keep_last": 9},
    "decode": {"method": "greedy", "max_extra": 3},
}
TEXTS = ["1 2 3", "4 5"]


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Recipe]:
    folder = tmp_path_factory.mktemp("data")
    os.environ["JUMOK_CACHE"] = str(folder / "cache")
    for split, (first, n) in {"train": (0, 60), "dev": (60, 8), "test": (70, 8)}.items():
        lines = (f"{i} {i % 7}\t{i % 7} {i}\n" for i in range(first, first + n))
        (folder / f"{split}.tsv").write_text("".join(lines))

    def made(data: Path = folder, **keys: Any) -> Recipe:
        files: dict[str, Any] = {split: [str(data / f"{split}.tsv")] for split in ("train", "dev", "test")}
        files["train"] = [files["train"]]
        sections = {"data": {"kind": "parallel", "source": "en", "target": "xx", **files}}
        return parse_recipe({**TREE, **sections, "train": {**TREE["train"], **keys}}, where="test")

    made.folder = folder  # type: ignore[attr-defined]
    return made


@pytest.fixture(scope="module")
def begun(recipe: Callable[..., Recipe], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stopped at step 7 of 12, with checkpoints at 2, 4, 6 and 7."""
    out = tmp_path_factory.mktemp("begun") / "run"
    stopped_at(7, recipe(), out)
    return out


@pytest.fixture
def run(begun: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(begun, tmp_path / "run"))


def stopped_at(step: int, recipe: Recipe, out: Path) -> list[Any]:
    asked: list[bool] = []
    events: list[Any] = []
    for event in train(recipe, out, stop=lambda: bool(asked)):
        events.append(event)
        if isinstance(event, Step) and event.step == step:
            asked.append(True)
    assert events[-1] == Finished(step, "interrupted")
    return events


def scores(run: Path) -> dict[int, float]:
    found = {}
    for event in RunFolder(run).history():
        with suppress(LookupError, TypeError):
            found[event["step"]] = event["scores"]["perplexity"]
    return found


def best_of(run: Path) -> int:
    return min(scores(run), key=scores(run).__getitem__)


def loaded(run: Path, step: int, caught: Any) -> Any:
    """What was loaded, which has to be the checkpoint of this step."""
    predictor = load(run, engine="torch")
    weights = load_file(run / f"checkpoints/step-{step}/weights.safetensors")
    own = dict(predictor.engine.models[0].named_parameters())
    assert all(torch.equal(tensor, weights[name]) for name, tensor in own.items())
    (warning,) = caught
    return str(warning.message)


def test_the_best_checkpoint_of_an_unfinished_run_is_used_and_named(run: Path) -> None:
    best = best_of(run)
    with pytest.warns(UserWarning, match=f"step {best} ") as caught:
        note = loaded(run, best, caught)
    assert f"{scores(run)[best]:.2f}" in note
    assert "of 12" in note
    assert not (run / "model").exists()


def test_of_best_checkpoints_that_are_worse_than_the_last_the_best_is_used(run: Path) -> None:
    with (run / "events.jsonl").open("a") as log:
        log.write(json.dumps({"event": "evaluated", "step": 4, "scores": {"perplexity": 1.5}, "best": True}) + "\n")
    with pytest.warns(UserWarning, match="not finished") as caught:
        assert "1.50" in loaded(run, 4, caught)


def test_a_damaged_best_checkpoint_is_named_and_the_next_best_used(run: Path) -> None:
    best, following = sorted(scores(run), key=scores(run).__getitem__)[:2]
    (run / f"checkpoints/step-{best}/weights.safetensors").write_bytes(b"no")
    with pytest.warns(UserWarning, match="not finished") as caught:
        note = loaded(run, following, caught)
    assert f"step-{best}" in note


def test_a_run_without_a_good_checkpoint_is_refused(run: Path) -> None:
    for step in Checkpoints(run / "checkpoints").steps():
        (run / f"checkpoints/step-{step}/progress.json").unlink()
    with pytest.raises(CheckpointError) as caught:
        load(run)
    assert caught.value.code == "checkpoint.no_checkpoints"
    with pytest.warns(UserWarning, match="left out"), pytest.raises(CheckpointError) as caught:
        list(finish_now(run))
    assert caught.value.code == "checkpoint.no_checkpoints"


def test_without_evaluations_the_last_checkpoint_is_used(tmp_path: Path, recipe: Callable[..., Recipe]) -> None:
    stopped_at(3, recipe(evaluate_every=100), tmp_path / "run")
    with pytest.warns(UserWarning, match="not finished") as caught:
        loaded(tmp_path / "run", 3, caught)


def test_a_run_in_training_can_be_used_meanwhile_and_not_finished(
    tmp_path: Path, recipe: Callable[..., Recipe]
) -> None:
    used = refused = False
    for event in train(recipe(keep_last=1), tmp_path / "run"):
        if isinstance(event, Saved) and event.step == 4:
            with pytest.warns(UserWarning, match="not finished"):
                used = bool(load(tmp_path / "run", device="cpu")(TEXTS))
            with pytest.raises(CheckpointError) as caught:
                list(finish_now(tmp_path / "run"))
            refused = (caught.value.code, str(os.getpid()) in caught.value.what) == ("checkpoint.in_use", True)
    assert (used, refused) == (True, True)
    assert (tmp_path / "run/scores.json").exists()


def test_a_checkpoint_that_is_removed_while_it_is_read_is_not_damaged(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The training goes on: it removes the best checkpoint once there is a better one."""
    best, weights = best_of(run), Checkpoints.weights

    def removed(self: Checkpoints, step: int) -> Any:
        if step == best:
            self.prune(keep={*self.steps()} - {best})
        return weights(self, step)

    monkeypatch.setattr(Checkpoints, "weights", removed)
    with pytest.warns(UserWarning, match="not finished") as caught:
        load(run, engine="torch")
    assert "left out" not in str(caught[0].message)


@pytest.mark.parametrize("final", ["average", "best", "last"])
def test_an_ended_run_has_the_model_that_final_says(
    final: str, run: Path, recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    """As if its recipe had said so few steps."""
    stored = json.loads((run / "recipe.json").read_text())
    stored["recipe"]["train"]["final"] = final
    (run / "recipe.json").write_text(json.dumps(stored))
    events = list(finish_now(run))
    assert [type(event) for event in events] == [Scoring, Scored, Scoring, Scored, Finished]
    assert events[-1] == Finished(7, "ended")
    *_, last = RunFolder(run).history()
    assert (last["event"], last["reason"]) == ("finished", "ended")
    checkpoints = Checkpoints(run / "checkpoints")
    expected = {
        "average": lambda: checkpoints.average([2, 4, 6, 7]),
        "best": lambda: checkpoints.weights(best_of(run)),
        "last": lambda: checkpoints.weights(7),
    }[final]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own = dict(load(run, engine="torch").engine.models[0].named_parameters())
    assert all(torch.equal(tensor, expected[name]) for name, tensor in own.items())
    assert json.loads((run / "scores.json").read_text()).keys() == {"dev", "test"}
    assert "| test | exact_match |" in (run / "model/README.md").read_text()
    assert list(finish_now(run)) == [Finished(7, "ended")]  # there is nothing more to do


def test_damaged_checkpoints_are_named_and_left_out_of_the_model(run: Path) -> None:
    (run / "checkpoints/step-4/weights.safetensors").write_bytes(b"no")
    with pytest.warns(UserWarning, match="step-4"):
        list(finish_now(run))
    expected = Checkpoints(run / "checkpoints").average([2, 6, 7])
    own = dict(load(run, engine="torch").engine.models[0].named_parameters())
    assert all(torch.equal(tensor, expected[name]) for name, tensor in own.items())


def test_an_ended_run_goes_on_and_ends_as_if_nobody_had_ended_it(
    run: Path, begun: Path, tmp_path: Path, recipe: Callable[..., Recipe]
) -> None:
    list(finish_now(run))
    early = (run / "model/model.safetensors").read_bytes()
    events = list(train(recipe(), run))
    assert [event for event in events if isinstance(event, Resumed)] == [Resumed(7)]
    assert [event.split for event in events if isinstance(event, Scored)] == ["dev", "test"]
    other = Path(shutil.copytree(begun, tmp_path / "other"))
    list(train(recipe(), other))
    for name in ("model/model.safetensors", "model/config.json", "scores.json"):
        assert (run / name).read_bytes() == (other / name).read_bytes()
    assert (run / "model/model.safetensors").read_bytes() != early


def test_a_model_that_is_older_than_its_run_says_so(run: Path, recipe: Callable[..., Recipe]) -> None:
    list(finish_now(run))
    stopped_at(9, recipe(), run)
    with pytest.warns(UserWarning, match="step 9 .*step 7"):
        load(run, engine="torch")
    assert [event.split for event in finish_now(run) if isinstance(event, Scored)] == ["dev", "test"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(run, engine="torch")


@pytest.mark.parametrize("what", ["missing", "changed"])
def test_without_its_data_a_run_gets_a_model_without_scores(
    what: str, tmp_path: Path, recipe: Callable[..., Recipe]
) -> None:
    data = Path(shutil.copytree(recipe.folder, tmp_path / "data"))  # type: ignore[attr-defined]
    run = tmp_path / "run"
    stopped_at(5, recipe(data), run)
    (data / "test.tsv").unlink() if what == "missing" else (data / "test.tsv").write_text("1\t1\n")
    with pytest.warns(UserWarning, match="not scored"):
        events = list(finish_now(run))
    assert events == [Finished(5, "ended")]
    assert not (run / "scores.json").exists()
    expected = Checkpoints(run / "checkpoints").average([2, 4, 5])
    own = dict(load(run, engine="torch").engine.models[0].named_parameters())
    assert all(torch.equal(tensor, expected[name]) for name, tensor in own.items())
    assert "jumok" in (run / "model/README.md").read_text()


@pytest.mark.parametrize("when", ["at once", "dev", "test"])
def test_a_stop_while_the_model_is_made_loses_nothing(when: str, run: Path, begun: Path) -> None:
    asked: list[bool] = [] if when != "at once" else [True]
    events: list[Any] = []
    for event in finish_now(run, stop=lambda: bool(asked)):
        events.append(event)
        if isinstance(event, Scoring) and event.split == when:
            asked.append(True)
    assert events[-1] == Finished(7, "interrupted")
    assert not (run / "scores.json").exists()
    for path in (begun / "checkpoints").rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (run / path.relative_to(begun)).read_bytes()
    assert [event.split for event in finish_now(run) if isinstance(event, Scored)] == ["dev", "test"]


def test_scores_of_another_model_do_not_stay(run: Path, recipe: Callable[..., Recipe]) -> None:
    """The scores of the last model are not taken for those of one that was about to be scored."""
    list(finish_now(run))
    asked: list[bool] = []
    for event in train(recipe(), run, stop=lambda: bool(asked)):
        if isinstance(event, Scoring):
            asked.append(True)
    assert not (run / "scores.json").exists()
    assert [event.split for event in train(recipe(), run) if isinstance(event, Scored)] == ["dev", "test"]


def test_what_is_no_single_unfinished_run_is_refused(tmp_path: Path, begun: Path) -> None:
    with pytest.raises(CheckpointError) as caught:
        list(finish_now(tmp_path))
    assert caught.value.code == "checkpoint.not_a_run"
    shutil.copytree(begun, tmp_path / "seed-1")
    with pytest.raises(CheckpointError) as caught:
        list(finish_now(tmp_path))
    assert str(tmp_path / "seed-1") in (caught.value.hint or "")
    with pytest.raises(CheckpointError) as caught:
        load(tmp_path)
    assert str(tmp_path / "seed-1") in (caught.value.hint or "")
    shutil.rmtree(tmp_path / "seed-1/checkpoints")
    with pytest.raises(CheckpointError) as caught:
        list(finish_now(tmp_path / "seed-1"))
    assert caught.value.code == "checkpoint.no_checkpoints"


def test_unfinished_runs_form_ensembles_and_have_no_fast_engine(run: Path) -> None:
    with pytest.warns(UserWarning, match="not finished"):
        assert load(run, run, device="cpu").engine.n_models == 2
    with pytest.raises(CheckpointError) as caught:
        load(run, device="cpu", engine="fast")
    assert caught.value.code == "engine.none"
    assert f"jumok finish {run}" in caught.value.what


@pytest.mark.parametrize("task", ["classification", "number", "tagging", "pretraining", "language_model"])
def test_every_task_can_be_used_before_it_is_finished(task: str, tree: Any, train: Any, tmp_path: Path) -> None:
    """A checkpoint is the model that the finished run would have: labels, scale of numbers and all."""
    out = tmp_path / "run"
    metric = tree(task)["train"]["metric"]
    wanted = tree(task, train={"steps": 8, "evaluate_every": 4, "final": "last"})
    events = train(wanted, out, at=lambda event: isinstance(event, Evaluated) and event.step == 4)
    (evaluated,) = [event for event in events if isinstance(event, Evaluated)]
    with pytest.warns(UserWarning, match="not finished"):
        predictor = load(out, device="cpu")
    dev = list(parse_recipe(wanted, where="test").data.read("dev", seed=1))
    assert predictor.quick(dev)[metric] == pytest.approx(evaluated.scores[metric], rel=1e-4)
    assert np.isfinite(evaluated.scores[metric])


@pytest.mark.parametrize(
    "line", ['{"event": "evaluated"}', '{"event": "evaluated", "step": 4, "scores": 1}', '{"step": 1}', "[1]", "half"]
)
def test_a_log_that_somebody_edited_does_no_harm(line: str, run: Path) -> None:
    with (run / "events.jsonl").open("a") as log:
        log.write(f"{line}\n")
    with pytest.warns(UserWarning, match=f"step {best_of(run)} "):
        load(run, engine="torch")
    (run / "events.jsonl").unlink()
    newest = Checkpoints(run / "checkpoints").progress(7)
    with pytest.warns(UserWarning, match=f"step {newest['best_step']} "):
        load(run, engine="torch")


@pytest.mark.parametrize("what", ["outline", "checkpoints"])
def test_a_link_out_of_the_run_is_not_followed(what: str, run: Path, tmp_path: Path) -> None:
    (run / what).rename(tmp_path / "elsewhere")
    (run / what).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CheckpointError) as caught:
        load(run)
    assert (caught.value.code, caught.value.where) == ("checkpoint.link", str(run / what))


def test_an_altered_outline_is_refused(run: Path) -> None:
    config = run / "outline/config.json"
    config.write_text(config.read_text().replace('"d_model": 8', '"d_model": 16'))
    with pytest.raises(CheckpointError) as caught:
        load(run)
    assert (caught.value.code, caught.value.where) == ("checkpoint.altered", str(config))


def command(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """The exit code of the command line, with warnings as people see them."""
    monkeypatch.setattr(sys, "argv", ["jumok", *map(str, arguments)])
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with pytest.raises(SystemExit) as stopped:
            main()
    return int(stopped.value.code or 0)


def test_commands_use_an_unfinished_run_and_say_so(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, "evaluate", run, "--json") == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["splits"].keys() == {"dev", "test"}
    assert f"step {best_of(run)} of 12" in said.err
    (run / "lines.txt").write_text("1 2\n")
    assert command(monkeypatch, "predict", run, run / "lines.txt") == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 1
    assert said.err.count("not finished") == 1
    assert command(monkeypatch, "show", run, "--json") == 0


def test_the_command_makes_the_model_and_prints_its_scores(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "checkpoints/step-4/weights.safetensors").write_bytes(b"no")
    assert command(monkeypatch, "finish", run) == 0
    said = capsys.readouterr().err
    assert "step-4" in said
    assert str(run / "model") in said
    assert "test: " in said
    assert command(monkeypatch, "finish", run / "nowhere") == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_command_and_leaves_the_run_as_it_was(
    number: int, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def signalled(*given: Any, **named: Any) -> Any:
        signal.raise_signal(number)
        return assemble(*given, **named)

    monkeypatch.setattr("jumok.finishing.assemble", signalled)
    before = signal.signal(number, signal.SIG_DFL)  # a job in the background ignores some
    try:
        ended = command(monkeypatch, "finish", run)
    finally:
        signal.signal(number, before)
    assert ended == 128 + number
    assert not (run / "model").exists()
    monkeypatch.undo()
    assert [event.split for event in finish_now(run) if isinstance(event, Scored)] == ["dev", "test"]
