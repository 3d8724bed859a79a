"""What a recipe amounts to, counted by hand for a small one."""

import json

import pytest
from typer.testing import CliRunner

from jumok.cli import app
from jumok.recipe import parse_recipe
from jumok.show import cost, time
from jumok.train.folder import RunFolder

D, F, L, V, STEPS, TOKENS = 8, 16, 2, 50, 10, 64
BERT = {"kind": "bert", "d_model": D, "d_ff": F, "n_heads": 2, "n_layers": L, "max_len": 32}
WEIGHTS = L * (4 * D * D + 2 * D * F) + 2 * 30 * D * L  # of the layers, and what attending to 30 tokens costs


def recipe(task, **train):
    data = {"kind": "toy_topics" if task == "classification" else "toy_stories", "max_len": 32}
    predicts = {"predicts": "labels"} if task == "classification" else {}
    tree = {
        "task": {"kind": task, **predicts},
        "data": data,
        "tokenizer": {"kind": "wordpiece", "vocab_size": V},
        "model": BERT,
        "train": {"batch_tokens": TOKENS, **train},
    }
    return parse_recipe(json.loads(json.dumps(tree)), where="test")


def test_pretraining_predicts_what_is_masked():
    found = cost(recipe("pretraining", steps=STEPS))
    assert found.flops_per_pair_of_tokens == pytest.approx(6 * (WEIGHTS + int(0.15 * D * V)))
    assert found.training_flops == found.flops_per_pair_of_tokens * STEPS * TOKENS
    assert found.training_bytes == 16 * found.parameters["total"]


@pytest.mark.parametrize("task", ["pretraining", "classification"])
def test_the_parts_are_the_whole(task):
    found = dict(cost(recipe(task)).parameters)
    assert found.pop("total") == sum(found.values())


def test_a_head_does_not_predict_pieces_and_epochs_have_no_known_steps():
    found = cost(recipe("classification", epochs=3))
    assert found.flops_per_pair_of_tokens == pytest.approx(6 * WEIGHTS)
    assert found.training_flops is None


def test_what_is_frozen_has_neither_gradients_nor_moments():
    full = cost(recipe("classification"))
    frozen = cost(recipe("classification", transfer={"mode": "frozen"}))
    learning = frozen.parameters["output"] + D * (D + 1)  # BERT's pooler learns with the head
    assert frozen.parameters == full.parameters
    assert frozen.training_bytes == 4 * frozen.parameters["total"] + 12 * learning


# time


@pytest.fixture(autouse=True)
def a_known_machine(monkeypatch):
    monkeypatch.setattr("jumok.show.flops_per_second", lambda: 1e9)


def written(folder, events, plan=(), **train):
    """A run folder with these events."""
    folder.mkdir()
    tree = {"task": {"kind": "pretraining"}, "data": {"kind": "toy_stories", "max_len": 32}, "model": BERT}
    tree |= {"tokenizer": {"kind": "wordpiece", "vocab_size": V}, "train": {"batch_tokens": TOKENS, **train}}
    (folder / "recipe.json").write_text(json.dumps({"recipe": tree, "data": {}, "plan": list(plan)}))
    (folder / "events.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in events))
    return folder


def steps(n, seconds):
    return [{"event": "step", "step": k, "seconds": seconds, "time": k * seconds} for k in range(1, n + 1)]


def test_a_recipe_takes_as_long_as_its_products_take_here():
    wanted = recipe("pretraining", steps=STEPS)
    found = time(wanted, counted := cost(wanted))
    assert found.seconds_per_step == pytest.approx(counted.flops_per_pair_of_tokens * TOKENS / 1e9)
    assert (found.minutes, found.steps) == (pytest.approx(counted.training_flops / 1e9 / 60), STEPS)
    assert not found.is_measured


def test_minutes_are_as_many_as_were_asked_for_and_epochs_depend_on_the_data():
    wanted = recipe("pretraining", minutes=3)
    found = time(wanted, counted := cost(wanted))
    assert (found.minutes, found.steps) == (3, int(180 / found.seconds_per_step))
    assert counted.training_flops is None
    wanted = recipe("pretraining", epochs=3)
    assert (time(wanted, cost(wanted)).minutes, time(wanted, cost(wanted)).steps) == (None, None)


def test_a_run_tells_what_it_took_and_what_is_left(tmp_path):
    wanted = recipe("pretraining", steps=40)
    run = written(tmp_path / "run", steps(10, 6.0), steps=40)
    found = time(wanted, cost(wanted), RunFolder(run))
    assert (found.spent, found.minutes, found.seconds_per_step) == (1.0, pytest.approx(4.0), 6.0)
    plan = [{"since": 0, "steps": 40}, {"since": 10, "steps": 60}]
    run = written(tmp_path / "longer", steps(10, 6.0), plan, steps=40)
    assert time(wanted, cost(wanted), RunFolder(run)).minutes == pytest.approx(6.0)
    ended = [*steps(40, 6.0), {"event": "finished", "step": 40, "reason": "steps", "time": 240.0}]
    found = time(wanted, cost(wanted), RunFolder(written(tmp_path / "ended", ended, steps=40)))
    assert (found.spent, found.minutes) == (4.0, 4.0)


@pytest.mark.parametrize(
    ("events", "minutes"),
    [(steps(10, 6.0), "1.0 of about 4.0"), ([], "about"), ([*steps(40, 6.0), {"event": "finished"}], "4.0")],
)
def test_a_run_is_shown_by_parameters_minutes_and_memory_first(tmp_path, events, minutes):
    run = written(tmp_path / "run", events, steps=40)
    said = CliRunner().invoke(app, ["show", str(run)]).stdout
    lines = said.splitlines()
    assert [line.partition(":")[0] for line in lines[:3]] == ["parameters", "minutes", "memory"]
    total = cost(recipe("pretraining", steps=40)).parameters["total"]
    assert f"{total:,}" in lines[0]
    assert lines[1].startswith(f"minutes: {minutes}")
    assert '"batch_tokens"' not in said
    assert f'"batch_tokens": {TOKENS}' in CliRunner().invoke(app, ["show", str(run), "--recipe"]).stdout
    shown = json.loads(CliRunner().invoke(app, ["show", str(run), "--json"]).stdout)
    assert set(shown) == {"recipe", "cost", "time", "scores", "engine"}
    assert shown["time"]["is_measured"] == bool(events)
