"""A whole run, small, in this process: what happens, what it leaves, what it refuses, and how it goes on."""

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
import torch

from jumok.engines.torch import TorchEngine
from jumok.errors import CheckpointError, DataError, InputError, RecipeError, RunError
from jumok.models.transformer import Transformer
from jumok.predictor import load
from jumok.recipe import Recipe, parse_recipe
from jumok.tasks.classification.predictor import Classifier
from jumok.tasks.translation.predictor import Translator
from jumok.train.folder import RunFolder
from jumok.train.loop import Diverged, Evaluated, Finished, Resumed, Saved, Step
from jumok.train.samples import Sampled
from jumok.training import Began, Event, Scored, Scoring, train

TREE: dict[str, Any] = {
    "data": {"kind": "synthetic", "problem": "copy", "n_train": 60, "n_dev": 8, "n_test": 8, "length": 5},
    "tokenizer": {"kind": "character", "vocab_size": 300},
    "model": {"d_model": 8, "d_ff": 16, "n_heads": 2, "n_layers": 1},
    "train": {"steps": 6, "batch_tokens": 64, "evaluate_every": 4, "save_every": 2, "keep_last": 2},
    "decode": {"method": "greedy", "max_extra": 3},
}


SomeEvent = TypeVar("SomeEvent")


@dataclass(frozen=True, slots=True)
class Happened:
    """The events of a training."""

    events: list[Event]

    def of(self, kind: type[SomeEvent]) -> list[SomeEvent]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def steps(self) -> list[int]:
        return [event.step for event in self.of(Step)]

    @property
    def scored(self) -> list[str]:
        return [event.split for event in self.of(Scored)]

    @property
    def notes(self) -> list[str]:
        return self.of(Began)[0].notes


def recipe(**sections: Any) -> Recipe:
    tree = {**TREE, **{name: {**TREE.get(name, {}), **keys} for name, keys in sections.items()}}
    return parse_recipe(tree, where="test")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    os.environ["JUMOK_CACHE"] = str(folder / "cache")
    again(folder / "run")
    return folder / "run"


@pytest.fixture
def finished(trained: Path, tmp_path: Path) -> Path:
    """A finished run that a test may damage."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


def again(out: Path, wanted: Recipe | None = None, stop: Callable[[], bool] = lambda: False) -> Happened:
    return Happened(list(train(wanted or recipe(), out, stop=stop)))


def test_what_happens_has_an_order(tmp_path: Path) -> None:
    happened = again(tmp_path / "run")
    began, *events, finished = happened.events
    assert isinstance(began, Began)
    assert (began.run, began.steps, began.dev_examples) == (str(tmp_path / "run"), 6, 8)
    assert 0 < began.train_examples <= 60
    assert began.parameters == sum(weight.numel() for weight in model_of(tmp_path / "run").parameters())
    assert finished == Finished(6, "steps")
    assert happened.steps == [1, 2, 3, 4, 5, 6]
    assert [event.step for event in happened.of(Evaluated)] == [4, 6]
    assert [event.step for event in happened.of(Sampled)] == [1, 2, 4, 6]
    assert [event.step for event in happened.of(Saved)] == [2, 4, 6]
    kinds = [type(event) for event in events if not isinstance(event, Step | Evaluated | Sampled | Saved)]
    assert kinds == [Scoring, Scored] * 2
    assert [(event.split, event.examples) for event in happened.of(Scoring)] == [("dev", 8), ("test", 8)]
    stored = json.loads((tmp_path / "run/scores.json").read_text())
    assert {event.split: event.result for event in happened.of(Scored)} == stored
    names = [event["event"] for event in RunFolder(tmp_path / "run").history()]
    assert (names.count("step"), names.count("saved"), names[-1]) == (6, 3, "finished")


def test_done_is_told_of_every_example_between_scoring_and_scored(tmp_path: Path) -> None:
    told: list[int] = []
    counts: list[int] = []
    for event in train(recipe(), tmp_path / "run", done=told.append):
        if isinstance(event, Scoring | Scored):
            counts.append(sum(told))
    assert counts == [0, 8, 8, 16]


def test_a_training_that_is_asked_to_stop_saves_its_step_and_the_same_call_goes_on(
    tmp_path: Path, trained: Path
) -> None:
    asked: list[bool] = []
    begun: list[Event] = []
    for event in train(recipe(), tmp_path / "run", stop=lambda: bool(asked)):
        begun.append(event)
        if isinstance(event, Step) and event.step == 3:
            asked.append(True)
    assert begun[-1] == Finished(3, "interrupted")
    assert Saved in {type(event) for event in begun[-2:]}
    assert not (tmp_path / "run/model").exists()
    assert not Happened(begun).of(Scoring)
    happened = again(tmp_path / "run")
    assert happened.of(Resumed) == [Resumed(3)]
    assert happened.steps == [4, 5, 6]
    # As if it had never been stopped, but for the mean of checkpoints, which has one more to choose from.
    one, other = (RunFolder(run).checkpoints.weights(6) for run in (tmp_path / "run", trained))
    assert all(torch.equal(one[name], tensor) for name, tensor in other.items())


def same_model(one: Path, other: Path) -> bool:
    return all(
        (one / name).read_bytes() == (other / name).read_bytes() for name in ("model/model.safetensors", "scores.json")
    )


def test_a_stop_while_data_is_prepared_leaves_nothing_half_done(tmp_path: Path, trained: Path) -> None:
    assert list(train(recipe(), tmp_path / "run", stop=lambda: True)) == [Finished(0, "interrupted")]
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["lock"]
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    again(tmp_path / "run")
    assert same_model(tmp_path / "run", trained)


@pytest.mark.parametrize("step", [4, 6])
def test_a_stop_during_an_evaluation_saves_the_step_and_leaves_the_evaluation_to_later(
    step: int, tmp_path: Path, trained: Path
) -> None:
    asked: list[bool] = []
    begun: list[Event] = []
    for event in train(recipe(), tmp_path / "run", stop=lambda: bool(asked)):
        begun.append(event)
        if isinstance(event, Step) and event.step == step:
            asked.append(True)
    assert begun[-1] == Finished(step, "interrupted")
    assert [event.step for event in Happened(begun).of(Evaluated)] == ([4] if step == 6 else [])
    assert RunFolder(tmp_path / "run").checkpoints.progress(step)["unevaluated"]
    happened = again(tmp_path / "run")
    assert [event.step for event in happened.of(Evaluated)] == [e for e in (4, 6) if e >= step]
    assert happened.steps == list(range(step + 1, 7))
    assert same_model(tmp_path / "run", trained)


@pytest.mark.parametrize(("searches", "last"), [("samples", 1), ("evaluation", 4)])
def test_a_stop_in_the_middle_of_a_search_is_heard_at_its_next_step(
    searches: str, last: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of dev may be one batch, whose beam search takes minutes."""
    if searches == "evaluation":
        monkeypatch.setattr("jumok.assemble.chosen", lambda dev: [])
    step, taken = Transformer.step, list[bool]()

    def counted(self: Transformer, *given: Any, **named: Any) -> Any:
        taken.append(True)
        return step(self, *given, **named)

    monkeypatch.setattr(Transformer, "step", counted)
    events = list(train(recipe(), tmp_path / "run", stop=lambda: bool(taken)))
    assert (events[-1], len(taken)) == (Finished(last, "interrupted"), 1)
    assert RunFolder(tmp_path / "run").checkpoints.progress(last)["unevaluated"] == (searches == "evaluation")


@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_stop_while_the_model_is_scored_loses_nothing(split: str, tmp_path: Path, trained: Path) -> None:
    asked: list[bool] = []
    events: list[Event] = []
    for event in train(recipe(), tmp_path / "run", stop=lambda: bool(asked)):
        events.append(event)
        if isinstance(event, Scoring) and event.split == split:
            asked.append(True)
    assert events[-1] == Finished(6, "interrupted")
    assert not (tmp_path / "run/scores.json").exists()
    happened = again(tmp_path / "run")
    assert happened.steps == []
    assert happened.scored == ["dev", "test"]
    assert same_model(tmp_path / "run", trained)


@pytest.mark.parametrize("when", ["before it is written", "while it is scored"])
def test_a_folder_that_is_removed_at_the_end_is_not_written_anew(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def removed(*_: object) -> bool:
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        return False

    if when == "before it is written":
        monkeypatch.setattr("jumok.training.is_finished", removed)
    else:
        monkeypatch.setattr("jumok.tasks.translation.task.TranslationTask.baseline_scores", removed)
    with pytest.raises(RunError) as caught:
        again(tmp_path / "run")
    assert caught.value.code == "run.folder_gone"
    assert not (tmp_path / "run").exists()


def test_dev_data_that_changes_during_training_is_not_scored(tmp_path: Path) -> None:
    files = {name: tmp_path / f"{name}.tsv" for name in ("train", "dev", "test")}
    for file in files.values():
        file.write_text("".join(f"{n}\t{n}\n" for n in range(40)))
    data = {"kind": "parallel", "source": "en", "target": "xx"} | {name: [str(file)] for name, file in files.items()}
    data["train"] = [data["train"]]
    wanted = parse_recipe({**TREE, "data": data}, where="test")
    events = train(wanted, tmp_path / "run")
    while not isinstance(next(events), Saved):
        pass
    files["test"].write_text("1\t2\n")
    with pytest.raises(CheckpointError) as caught:
        list(events)
    assert caught.value.code == "checkpoint.data_changed"
    assert "test" in caught.value.what
    assert not (tmp_path / "run/scores.json").exists()


def test_after_a_divergence_a_lower_rate_resumes_and_nothing_else_may_change(tmp_path: Path) -> None:
    def with_rate(rate: float, **more: Any) -> Recipe:
        optimizer = {"schedule": "constant", "warmup": 0, "learning_rate": rate, **more}
        return recipe(train={"optimizer": optimizer, "save_every": 1})

    with pytest.raises(RunError) as failed:
        again(tmp_path / "huge", with_rate(1e38))
    assert failed.value.code == "run.not_finite"
    assert "learning_rate" in (failed.value.hint or "")
    assert RunFolder(tmp_path / "huge").has_diverged()

    folder = RunFolder(tmp_path / "run")
    for event in train(with_rate(1e-2), folder.path, stop=lambda: bool(folder.checkpoints.steps())):
        assert not isinstance(event, Finished) or event.step < 6
    with pytest.raises(CheckpointError) as caught:
        again(folder.path, with_rate(1e-3))
    assert caught.value.code == "checkpoint.other_recipe"
    folder.append(Diverged(4, "the loss is not finite"))
    with pytest.raises(CheckpointError) as caught:
        again(folder.path, with_rate(1e-3, beta1=0.5))
    assert caught.value.code == "checkpoint.other_recipe"
    assert again(folder.path, with_rate(1e-3)).of(Resumed)


def test_whoever_stops_listening_leaves_the_folder_unlocked(tmp_path: Path) -> None:
    events = train(recipe(), tmp_path / "run")
    assert isinstance(next(events), Began)
    with pytest.raises(CheckpointError) as caught:
        again(tmp_path / "run")
    assert (caught.value.code, caught.value.where) == ("checkpoint.in_use", str(tmp_path / "run"))
    events.close()
    assert again(tmp_path / "run").steps == [1, 2, 3, 4, 5, 6]


def test_a_recipe_may_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text(
        'data = { kind = "synthetic", problem = "copy", n_train = 60, n_dev = 8, n_test = 8, length = 5 }\n'
        'tokenizer = { kind = "character", vocab_size = 300 }\n'
        "model = { d_model = 8, d_ff = 16, n_heads = 2, n_layers = 1 }\n"
        "train = { steps = 6, batch_tokens = 64 }\n"
    )
    events = [*train(str(tmp_path / "recipe.toml"), str(tmp_path / "run"), overrides=["train.steps=2"])]
    assert Happened(events).steps == [1, 2]
    assert json.loads((tmp_path / "run/recipe.json").read_text())["recipe"]["train"]["steps"] == 2


def test_a_run_leaves_what_the_design_says(trained: Path) -> None:
    assert {"recipe.json", "events.jsonl", "checkpoints", "model", "scores.json"} <= {p.name for p in trained.iterdir()}
    assert json.loads((trained / "scores.json").read_text()).keys() == {"dev", "test"}
    card = (trained / "model/README.md").read_text()
    assert "A Transformer of" in card
    assert "| test | exact_match |" in card


def test_a_finished_run_is_left_alone(finished: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (finished / "model").iterdir()}
    happened = again(finished)
    assert happened.steps == []
    assert happened.scored == []
    assert {path: path.stat().st_mtime_ns for path in (finished / "model").iterdir()} == before


@pytest.mark.parametrize("damage", ["model gone", "model altered", "scores gone", "scores torn"])
def test_a_damaged_end_is_made_again(finished: Path, trained: Path, damage: str) -> None:
    match damage:
        case "model gone":
            shutil.rmtree(finished / "model")
        case "model altered":
            (finished / "model/model.safetensors").write_bytes(b"no")
        case "scores gone":
            (finished / "scores.json").unlink()
        case "scores torn":
            (finished / "scores.json").write_text("{")
    happened = again(finished)
    assert happened.steps == []
    assert happened.scored == ["dev", "test"]
    for name in ("model/model.safetensors", "scores.json"):
        assert (finished / name).read_bytes() == (trained / name).read_bytes()


def test_the_card_of_a_model_may_be_edited(finished: Path) -> None:
    with (finished / "model/README.md").open("a") as card:
        card.write("\nTrained for the kitchen.\n")
    assert load(finished)(["1 2"]) != []
    assert again(finished).scored == []
    assert (finished / "model/README.md").read_text().endswith("kitchen.\n")


def test_harmless_changes_do_not_stop_a_run(finished: Path) -> None:
    changed = replace(recipe(decode={"method": "beam", "beam": 2}, train={"threads": 1}), description="another")
    happened = again(finished, changed)
    assert happened.steps == []
    assert happened.scored == ["dev", "test"]
    assert load(finished, task=Translator).facts.decode.beam == 2
    assert json.loads((finished / "recipe.json").read_text())["recipe"]["description"] == "another"


@pytest.mark.parametrize("key", ["model.d_ff", "train.batch_tokens", "data.n_train"])
def test_other_changes_do(finished: Path, key: str) -> None:
    section, name = key.split(".")
    with pytest.raises(CheckpointError) as caught:
        again(finished, recipe(**{section: {name: 32}}))
    assert (caught.value.code, caught.value.where) == ("checkpoint.other_recipe", str(finished))
    assert f"{key} was {TREE[section][name]} and is 32" in caught.value.what


def test_a_run_without_its_checkpoints_is_not_trained_over(finished: Path) -> None:
    shutil.rmtree(finished / "checkpoints")
    with pytest.raises(CheckpointError) as caught:
        again(finished)
    assert (caught.value.code, caught.value.where) == ("checkpoint.no_checkpoints", str(finished))
    assert load(finished)(["1 2"]) != []


def test_a_folder_with_other_things_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/chapter.txt").write_text("mine")
    with pytest.raises(CheckpointError) as caught:
        again(tmp_path / "thesis")
    assert (caught.value.code, caught.value.where) == ("checkpoint.not_empty", str(tmp_path / "thesis"))
    assert "chapter.txt" in caught.value.what
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["chapter.txt"]


@pytest.mark.parametrize("text", ["[]", "{}", '{"recipe": 1, "data": {}}', '{"recipe": {}}', "half"])
def test_a_recipe_json_that_is_none_is_named(finished: Path, text: str) -> None:
    (finished / "recipe.json").write_text(text)
    with pytest.raises(CheckpointError) as caught:
        again(finished)
    assert (caught.value.code, caught.value.where) == ("checkpoint.unreadable", str(finished / "recipe.json"))


@pytest.mark.parametrize("text", ["[]", "1", "half"])
def test_a_manifest_that_is_none_is_named(finished: Path, text: str) -> None:
    (finished / "checkpoints/step-6/manifest.json").write_text(text)
    with pytest.raises(CheckpointError) as caught:
        again(finished)
    assert (caught.value.code, caught.value.where) == ("checkpoint.torn", str(finished / "checkpoints/step-6"))
    hint = caught.value.hint or ""
    assert f"{finished / 'checkpoints/step-6'} " in hint
    assert "step 4" in hint  # the one that is good


def test_an_altered_checkpoint_of_the_average_can_be_left_out(finished: Path) -> None:
    shutil.rmtree(finished / "model")
    (finished / "checkpoints/step-4/weights.safetensors").write_bytes(b"no")
    with pytest.raises(CheckpointError) as caught:
        again(finished)
    assert caught.value.code == "checkpoint.altered"
    assert caught.value.where == str(finished / "checkpoints/step-4/weights.safetensors")
    assert str(finished / "checkpoints/step-4") in (caught.value.hint or "")
    shutil.rmtree(finished / "checkpoints/step-4")
    assert again(finished).scored == ["dev", "test"]


def test_a_failed_start_unlocks_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("no")

    with monkeypatch.context() as patch:
        patch.setattr("jumok.assemble.make_optimizer", fails)
        with pytest.raises(RuntimeError):
            again(tmp_path / "run")
    assert again(tmp_path / "run").steps == [1, 2, 3, 4, 5, 6]


def test_the_best_checkpoint_is_there_at_any_step(tmp_path: Path) -> None:
    wanted = recipe(train={"evaluate_every": 3, "save_every": 4, "final": "best"})
    happened = again(tmp_path / "run", wanted)
    assert 3 in [event.step for event in happened.of(Saved)]
    assert (tmp_path / "run/scores.json").exists()


def model_of(run: Path) -> torch.nn.Module:
    engine = load(run, engine="torch").engine
    assert isinstance(engine, TorchEngine)
    return engine.models[0]


def weights_of(run: Path) -> dict[str, torch.Tensor]:
    return model_of(run).state_dict()


@pytest.mark.parametrize("final", ["best", "last"])
def test_another_model_is_made_of_the_same_checkpoints(finished: Path, final: str) -> None:
    """A finished run need not train again to be its best or its last checkpoint, and not their mean."""
    progress = json.loads((finished / "checkpoints/step-6/progress.json").read_text())
    step = progress["best_step"] if final == "best" else 6
    weights = RunFolder(finished).checkpoints.weights(step)
    before = weights_of(finished)
    assert not all(torch.equal(before[name], tensor) for name, tensor in weights.items())
    happened = again(finished, recipe(train={"final": final}))
    assert happened.steps == []
    after = weights_of(finished)
    assert all(torch.equal(after[name], tensor) for name, tensor in weights.items())


def test_a_held_out_text_beyond_the_learned_positions_is_refused_before_training(tmp_path: Path) -> None:
    wanted = recipe(model={"positions": "learned", "max_len": 8}, data={"max_len": 7, "length": 9})
    with pytest.raises(DataError) as caught:
        again(tmp_path / "run", wanted)
    assert caught.value.code == "data.too_long"
    assert "8 positions" in caught.value.what


def test_a_cache_that_cannot_be_used_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError) as caught:
        again(tmp_path / "run")
    assert (caught.value.code, caught.value.where) == ("input.cache", str(tmp_path / "file"))
    assert "JUMOK_CACHE" in (caught.value.hint or "")


def test_what_is_left_out_is_said_in_words(tmp_path: Path) -> None:
    happened = again(tmp_path / "run", recipe(data={"max_len": 7}))
    (note,) = [note for note in happened.notes if "data.max_len" in note]
    assert "60" in note
    assert "{" not in note


def test_a_text_longer_than_all_of_training_works_and_has_a_note(trained: Path) -> None:
    short, long = load(trained, task=Translator).predict(["1 2", "1 " * 15])
    assert (short.notes, [note.code for note in long.notes]) == ([], ["text.longer_than_training"])


@pytest.mark.parametrize("damage", [lambda text: text.replace("1", "2"), lambda _: "{}", lambda _: "{", lambda _: "[]"])
def test_scores_that_are_not_the_runs_own_are_computed_again(finished: Path, damage: Callable[[str], str]) -> None:
    path = finished / "scores.json"
    own = path.read_text("utf-8")
    path.write_text(damage(own), "utf-8")
    assert again(finished).scored == ["dev", "test"]
    assert path.read_text("utf-8") == own
    assert again(finished).scored == []


def test_a_model_that_does_not_fit_into_memory_is_refused_with_numbers(tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        again(tmp_path / "run", recipe(model={"d_model": 2**16, "d_ff": 2**20, "n_layers": 100}))
    assert caught.value.code == "recipe.too_large"
    needed, there = (float(n.replace(",", "")) for n in re.findall(r"([\d,.]+) GiB", caught.value.what))
    assert needed > 16 * 100 * 4 * 2**36 / 2**30 > there > 0


def test_a_stop_while_the_model_is_calibrated_is_heard(tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is scored: a temperature is fitted on dev, which may be large."""
    wanted = parse_recipe(tree("classification", train={"steps": 2}), where="test")
    believed, asked = Classifier.believed, list[bool]()

    def stopped_meanwhile(self: Classifier, examples: Any, **how: Any) -> Any:
        asked.append(True)
        return believed(self, examples, **how)

    with monkeypatch.context() as patched:
        patched.setattr(Classifier, "believed", stopped_meanwhile)
        patched.setattr("jumok.tasks.classification.task.ClassificationTask.evaluate", lambda *_, **__: {"accuracy": 1})
        events = list(train(wanted, tmp_path / "run", stop=lambda: bool(asked)))
    assert (events[-1], len(asked)) == (Finished(2, "interrupted"), 1)
    assert not Happened(events).of(Scoring)
    assert again(tmp_path / "run", wanted).scored == ["dev", "test"]
