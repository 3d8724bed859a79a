"""What every task must satisfy: its predictor, and the training that makes it."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, fields, replace
from itertools import count, pairwise

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

from jumok import Answerer, Chooser, Classifier, Encoder, Failure, Generator, Relater, Tagger, Translator, load
from jumok.cli import app
from jumok.data.cache import Cache
from jumok.errors import CheckpointError, InputError
from jumok.models.build import build_model
from jumok.recipe import parse_recipe
from jumok.tasks.pretraining.predictor import Encoded
from jumok.tasks.protocol import adapter, answered, plain
from jumok.train.length import Planned
from jumok.train.loop import Finished, Step

PREDICTORS = {
    "classification": Classifier,
    "labels": Classifier,
    "number": Classifier,
    "pair": Classifier,
    "verbal": Classifier,
    "tagging": Tagger,
    "marked": Tagger,
    "relation": Relater,
    "answering": Answerer,
    "choice": Chooser,
    "language_model": Generator,
    "translation": Translator,
    "pretraining": Encoder,
}
OPINIONS = ["the sun sits here", "a dog", "비", "runs the cat today slowly", "sun"]


def pair_of(text, head, tail):
    """A line that asks for the relation of two words."""
    places = [{"start": text.index(word), "end": text.index(word) + len(word)} for word in (head, tail)]
    return json.dumps({"text": text, "head": places[0], "tail": places[1]})


TEXTS = {
    "classification": OPINIONS,
    "labels": ["the sun and rain", "a dog", "비", "snow the cat today slowly", "sun"],
    "number": ["the sun", "a dog", "비 sun sun sun", "runs the cat sun slowly", "sun"],
    "pair": ["the sun\ta dog", "a\tb", "비\tsun", "the cat today\ta sun", "\tsun"],
    "verbal": OPINIONS,
    "tagging": ["Abc de F", "a", "Fa Ce bb", "fed", "c d Ed a"],
    "marked": ["de ABCd 가는", "d", "A가 B는 e", "eee", "CCCe"],
    "relation": [
        pair_of("a dog Ada beats Bo today", "Ada", "Bo"),
        pair_of("Ada beats Bo", "Bo", "Ada"),
        pair_of("the cat Cy meets Dee here", "Dee", "Cy"),
        pair_of("the cat sits slowly and Cy beats Dee", "Cy", "Dee"),
        pair_of("Bo meets Cy a", "Bo", "Cy"),
    ],
    "answering": [
        f"what shines ?\t{text}" for text in ("the red sun here", "a sun", "비", "the cat sits today", "sun")
    ],
    "choice": ["a dog\tthe sun\tthe cat", "a\tb\tsun here\tcat", "비\tsun\tdog", "the cat\ta\tsun", "a\tsun\tb c d e"],
    "translation": ["the cat sits", "a", "비 바람", "runs the dog today", "here"],
    "pretraining": [
        "the [MASK] runs",
        "[MASK]",
        "the dog [MASK] here . the [MASK] sits",
        "the cat sits\tthe cat runs",
        "a [MASK]",
    ],
    "language_model": ["the cat sat", "the", "the cat sat on the mat and", "the cat sat on", "the cat"],
}
EMPTY = ["", " ", "   \u3000 "]
each_task = pytest.mark.parametrize("task", PREDICTORS)
each_task_of_any_text = pytest.mark.parametrize(
    "task", ["classification", "labels", "number", "verbal", "tagging", "marked", "language_model"]
)


def numbers(output):
    """What is said of an output in numbers."""
    if isinstance(output, Encoded):
        return [candidate.score for found in output.candidates for candidate in found] + [output.follows or 0.0]
    for name in ("log_prob", "value", "score"):
        if getattr(output, name, None) is not None:
            return [getattr(output, name)]
    if hasattr(output, "relations"):
        return [relation.probability for relation in output.relations]
    if hasattr(output, "answers"):
        return [answer.score for answer in output.answers]
    return list(output.probabilities.values()) if isinstance(output.probabilities, dict) else output.probabilities


ANSWERS = {"label", "answers", "target", "spans", "tags"}


def asked(example):
    """An example whose answer is not known."""
    return replace(example, **{f.name: None for f in fields(example) if f.name in ANSWERS})


# predictors


@each_task
def test_a_run_loads_as_the_predictor_of_its_task(runs, task):
    run = runs(task)
    assert type(run.predictor) is PREDICTORS[task]
    assert type(load(run.folder / "model")) is PREDICTORS[task]


@each_task
def test_a_call_gives_the_lines_of_the_outputs(runs, task):
    outputs = runs(task).predictor.predict(TEXTS[task])
    assert runs(task).predictor(TEXTS[task]) == [output.text for output in outputs]
    assert runs(task).predictor([]) == []


@each_task
def test_everything_about_an_output_is_json(runs, task):
    predictor = runs(task).predictor
    for output in predictor.predict(TEXTS[task]):
        found = json.loads(json.dumps(plain(output), ensure_ascii=False))
        schema = adapter(type(output)).json_schema(mode="serialization")
        schema = schema["$defs"][type(output).__name__] if "$ref" in schema else schema  # it has some of itself in it
        assert found.keys() <= schema["properties"].keys()
        assert found["text"] == output.text
        assert found["notes"] == []


@each_task
def test_a_line_a_mapping_and_an_example_are_answered_alike(runs, task, held_out):
    predictor, lines = runs(task).predictor, TEXTS[task]
    parsed = [predictor.parse(line) for line in lines]
    expected = predictor.predict(lines)
    assert predictor.predict(parsed) == expected
    assert predictor.predict([json.loads(json.dumps(plain(example))) for example in parsed]) == expected
    assert predictor.predict(lines[0]) == predictor.predict([lines[0]]) == predictor.predict(parsed[0])
    if task != "language_model":
        examples = held_out(task)[:5]
        assert predictor.predict(examples) == predictor.predict([asked(example) for example in examples])


@each_task
def test_a_bad_example_fails_alone(runs, task):
    predictor, lines = runs(task).predictor, TEXTS[task]
    expected = predictor.predict(lines)
    found = predictor.predict([lines[0], 3, *lines[1:], {"nonsense": 1}])
    assert [found[0], *found[2:-1]] == expected
    assert [type(found[i]) for i in (1, -1)] == [Failure, Failure]
    assert (found[1].code, found[1].where, found[1].text) == ("input.example", "line 2", "")
    assert found[-1].where == f"line {len(found)}"
    assert plain(found[1])["error"]["code"] == "input.example"
    with pytest.raises(InputError) as caught:
        answered(found)
    assert caught.value.code == "input.example"


@each_task
def test_eight_threads_get_what_one_gets(runs, task):
    predictor, lines = runs(task).predictor, TEXTS[task]
    expected = [predictor.predict(lines), predictor.predict(lines[::-1])]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: predictor.predict(lines if i % 2 == 0 else lines[::-1]), range(32)))
    assert all(outputs == expected[i % 2] for i, outputs in enumerate(found))


@each_task
def test_outputs_do_not_depend_on_the_batch(runs, task):
    predictor, texts = runs(task).predictor, TEXTS[task]
    together = predictor.predict(texts)
    for order in (range(len(texts))[::-1], [3, 0, 2, 4, 1]):
        for i, output in zip(order, predictor.predict([texts[i] for i in order]), strict=True):
            assert output.text == together[i].text
            assert numbers(output) == pytest.approx(numbers(together[i]), abs=2e-5)
    for text, expected in zip(texts, together, strict=True):
        (alone,) = predictor.predict([text])
        assert alone.text == expected.text
        assert numbers(alone) == pytest.approx(numbers(expected), abs=2e-5)


@each_task_of_any_text
def test_texts_without_a_word_are_answered(runs, task):
    predictor = runs(task).predictor
    found = predictor([*EMPTY, TEXTS[task][0]])
    assert found[-1] == predictor([TEXTS[task][0]])[0]
    if task not in ("verbal", "marked"):  # which say white space as it is
        assert len(set(found[:3])) == 1  # no text is like any other
    if task in ("classification", "verbal"):
        assert found[0] in predictor.labels
    if task in ("tagging", "marked"):
        assert found[0] == ""
    assert predictor(EMPTY) == found[:3]


@each_task
def test_one_is_told_of_every_text(runs, task, held_out):
    told, predictor = [], runs(task).predictor
    predictor.predict(TEXTS[task], done=told.append)
    assert sum(told) == len(TEXTS[task])
    told.clear()
    predictor.score(held_out(task), done=told.append)
    assert sum(told) == len(held_out(task))


@each_task
def test_the_scores_of_a_run_are_those_of_its_predictor(runs, task, held_out):
    examples = held_out(task)
    result, outputs = runs(task).predictor.score(examples)
    stored = json.loads((runs(task).folder / "scores.json").read_text())
    assert stored.keys() == {"dev", "test"}
    others, data = stored["test"].pop("baselines", None), stored["test"].pop("data")
    assert data == {
        "sha256": json.loads((runs(task).folder / "recipe.json").read_text())["data"]["test"],
        "as_trained": True,
    }
    result.pop("baselines", None)
    assert (others is not None) == (PREDICTORS[task] in (Classifier, Relater, Chooser, Encoder))
    assert stored["test"] == json.loads(json.dumps(result))
    assert result["sentences"] == len(examples) == (60 if task != "pretraining" else 146)
    for name, score in result["scores"].items():
        assert score["name"] == name
        assert score["n"] == 60 or ("has_answer" in name or "no_answer" in name) and score["n"] < 60
        assert score["low"] <= score["value"] <= score["high"] or np.isnan(score["value"])
    if task not in ("language_model", "pretraining"):
        assert outputs == runs(task).predictor([asked(example) for example in examples])
    card = (runs(task).folder / "model/README.md").read_text()
    assert all(f"| test | {name} |" in card for name in result["scores"])


@each_task
def test_a_run_is_not_better_than_itself(runs, task, held_out):
    predictor = runs(task).predictor
    found = predictor.compare(load(runs(task).folder, engine="torch"), held_out(task))
    assert found != []
    assert all((c.difference, c.low, c.high, c.p_value) == pytest.approx((0, 0, 0, 1), abs=1e-9) for c in found)
    scores = predictor.score(held_out(task))[0]["scores"]
    assert all(c.a == pytest.approx(scores[c.metric]["value"], abs=1e-4) for c in found)


@pytest.mark.parametrize("task", [task for task in PREDICTORS if task not in ("language_model", "translation")])
def test_options_of_decoding_are_refused_where_nothing_is_decoded(runs, task, held_out):
    predictor, examples = runs(task).predictor, held_out(task)
    for call in (
        lambda: predictor.predict(TEXTS[task], beam=2),
        lambda: predictor.score(examples, beam=2),
        lambda: predictor.compare(predictor, examples, beam=2),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert caught.value.code == "input.unknown_option"
        assert "beam" in caught.value.what


FILES = {  # as training data, and the lines that it stands for
    "classification": ("a.tsv", "label\ttext\nx\tthe sun\n", ["the sun"]),
    "tagging": ("a.conll", "the O\nsun B-P\n\nis O\n", ["the sun", "is"]),
    "marked": ("a.jsonl", '{"text": "the sun", "spans": []}\n', ["the sun"]),
    "answering": (
        "a.json",
        '{"data": [{"paragraphs": [{"context": "the sun", "qas": [{"id": "1", "question": "what ?"}]}]}]}',
        ["what ?\tthe sun"],
    ),
}


@pytest.mark.parametrize("task", FILES)
def test_files_like_the_training_data_are_read(runs, task, tmp_path):
    name, text, lines = FILES[task]
    (tmp_path / name).write_text(text, "utf-8")
    result = CliRunner().invoke(app, ["predict", str(runs(task).folder), str(tmp_path / name)])
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == runs(task).predictor(lines)


def test_the_words_of_columns_stay_as_they_are(runs, tmp_path):
    """As `evaluate` reads them; in raw text punctuation is taken off."""
    (run := tmp_path / "run").mkdir()
    altered(runs("tagging").folder / "model", run / "model", units={"units": "words", "peel": True})
    shutil.copy(runs("tagging").folder / "recipe.json", run)
    words = ["Mr.", "'s", "$5", "..."]
    (path := tmp_path / "a.conll").write_text("".join(f"{word} O\n" for word in words), "utf-8")
    result = CliRunner().invoke(app, ["predict", str(run), str(path), "--json"])
    assert json.loads(result.stdout)["predictions"][0]["words"] == words
    assert len(load(run).predict([" ".join(words)])[0].words) > len(words)


def test_files_that_end_as_those_of_training_are_read_as_they_are(runs, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(runs("tagging").folder, folder)
    stored = json.loads((folder / "recipe.json").read_text())
    stored["recipe"]["data"]["train"] = ["words.txt"]
    (folder / "recipe.json").write_text(json.dumps(stored))
    (tmp_path / "a.txt").write_text("the O\nsun O\n", "utf-8")
    result = CliRunner().invoke(app, ["predict", str(folder), str(tmp_path / "a.txt")])
    assert result.stdout.splitlines() == runs("tagging").predictor(["the sun"])


# ensembles


@pytest.mark.parametrize("task", [task for task in PREDICTORS if task != "pretraining"])
def test_a_run_with_itself_is_like_one(runs, task, held_out):
    one, two = runs(task).predictor, load(runs(task).folder, runs(task).folder, device="cpu")
    assert two.engine.n_models == 2
    for a, b in zip(one.predict(TEXTS[task]), two.predict(TEXTS[task]), strict=True):
        assert a.text == b.text
        assert numbers(a) == pytest.approx(numbers(b), abs=1e-5)
    examples = held_out(task)
    ours, theirs = one.score(examples)[0]["scores"], two.score(examples)[0]["scores"]
    for name in ours:
        assert theirs[name]["value"] == pytest.approx(ours[name]["value"], abs=1e-3)


@pytest.mark.parametrize(("one", "other"), [*pairwise(PREDICTORS), ("language_model", "classification")])
def test_runs_of_different_tasks_are_no_ensemble(runs, one, other):
    with pytest.raises(CheckpointError) as caught:
        load(runs(one).folder, runs(other).folder)
    assert caught.value.code == "checkpoint.ensemble"
    assert str(runs(other).folder / "model") in str(caught.value.where)


def altered(model, folder, **facts):
    """A copy of a model folder that says something else of itself."""
    shutil.copytree(model, folder)
    (folder / "manifest.json").unlink(missing_ok=True)
    config = json.loads((folder / "config.json").read_text())
    config["jumok"] |= facts
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_the_task_decides_even_with_the_same_labels_and_pieces(runs, tmp_path):
    run = runs("classification").folder
    folder = altered(run / "model", tmp_path / "labels", task={"kind": "classification", "predicts": "labels"})
    with pytest.raises(CheckpointError) as caught:
        load(run, folder)
    assert caught.value.code == "checkpoint.ensemble"
    # The weights of a tagger have other names: such a model is refused by itself.
    with pytest.raises(CheckpointError) as caught:
        load(altered(run / "model", tmp_path / "tagging", task={"kind": "tagging"}))
    assert caught.value.code == "checkpoint.tensors"


@pytest.mark.parametrize("task", ["classification", "labels", "tagging", "marked", "relation"])
def test_runs_with_other_labels_are_no_ensemble(runs, task, tmp_path):
    folder = altered(runs(task).folder / "model", tmp_path / "model", labels=runs(task).predictor.labels[::-1])
    assert load(folder)([TEXTS[task][0]]) != runs(task).predictor([TEXTS[task][0]])
    with pytest.raises(CheckpointError) as caught:
        load(runs(task).folder, folder)
    assert caught.value.code == "checkpoint.ensemble"


@pytest.mark.parametrize(
    ("task", "facts", "differ"),
    [
        ("classification", {"max_len": 7}, "max_len"),
        ("classification", {"long_texts": {"rule": "truncate", "stride": 0}}, "long_texts"),
        ("classification", {"pair": True}, "pair"),
        ("tagging", {"units": {"units": "words", "peel": True, "capitals": True}}, "units"),
        ("labels", {"separator": ";"}, "separator"),
    ],
)
def test_runs_that_read_otherwise_are_no_ensemble(runs, task, facts, differ, tmp_path):
    folder = altered(runs(task).folder / "model", tmp_path / "model", **facts)
    with pytest.raises(CheckpointError) as caught:
        load(runs(task).folder, folder)
    assert (caught.value.code, caught.value.what.endswith(f"differ in {differ}")) == ("checkpoint.ensemble", True)


# training


@pytest.fixture
def prepared(tree, tmp_path):
    def prepared_task(task):
        recipe = parse_recipe(tree(task), where="test")
        found = recipe.kind.prepare(recipe, Cache(tmp_path))
        torch.manual_seed(1)
        head = recipe.kind.head(asdict(recipe.task), found.facts)
        return found, build_model(recipe.model, head, **found.tokenizers.sizes).eval()

    return prepared_task


@each_task
def test_the_loss_is_a_sum_over_examples(prepared, task):
    """So that batches, accumulation and padding do not change it."""
    found, model = prepared(task)
    examples = np.sort(np.concatenate([*found.batches(0)]), axis=0)[:9]
    with torch.no_grad():
        together = found.loss(model, found.batch(examples), done=0.0)
        alone = [found.loss(model, found.batch(examples[i : i + 1]), done=0.0) for i in range(9)]
    assert np.array(together.count).tolist() == np.sum([loss.count for loss in alone], axis=0).tolist()
    total = torch.stack([loss.total for loss in alone]).sum(dim=0)
    assert together.total.tolist() == pytest.approx(total.tolist(), rel=1e-5)


@each_task
def test_an_epoch_has_every_example_once_in_an_order_of_its_own(prepared, task):
    found, _ = prepared(task)
    orders = [np.concatenate(list(found.batches(epoch))) for epoch in (0, 0, 1)]
    epochs = [(order[:, 0] if order.ndim == 2 else order).tolist() for order in orders]
    assert sorted(epochs[0]) == sorted(epochs[2]) == list(range(len(found.train)))
    assert epochs[0] == epochs[1]
    if task != "language_model":  # whose lines are all the same
        assert epochs[0] != epochs[2]


@pytest.mark.parametrize("task", [task for task in PREDICTORS if task not in ("translation", "pretraining")])
def test_examples_are_named_as_a_person_knows_them(prepared, task):
    found, _ = prepared(task)
    field = found.train.fields["ending0" if task == "choice" else "text"]
    longest = max(range(9), key=lambda i: len(field[i]))
    text = found.tokenizer.decode(field[longest].tolist())
    assert text
    assert found.name(np.arange(9)).startswith("9 ")
    assert repr(text) in found.name(np.arange(9))


@each_task
def test_an_evaluation_gives_every_metric_that_fits_the_task(prepared, task, tree):
    found, model = prepared(task)
    scores = found.evaluate(model)
    recipe = parse_recipe(tree(task), where="test")
    metrics = recipe.kind.metrics(recipe.task)
    assert scores.keys() >= set(metrics)
    assert all(np.isfinite(scores[name]) for name in metrics)


NO_DIE = {"number", "verbal", "answering", "pretraining", "translation"}


@pytest.mark.parametrize("task", [task for task in PREDICTORS if task not in NO_DIE])
def test_a_new_model_is_about_as_sure_as_a_die(prepared, task):
    found, model = prepared(task)
    labels = getattr(found, "labels", [])
    choices = {"labels": 2, "choice": 3}.get(task) or len(labels) or found.tokenizers.target.vocab_size - 1
    assert found.evaluate(model)["perplexity"] == pytest.approx(choices, rel=0.25)


TRANSFER = {
    "full": {},
    "frozen": {"mode": "frozen"},
    "gradual": {"mode": "gradual", "unfreeze_every": 2},
    "decay": {"layer_decay": 0.5},
}


@pytest.mark.parametrize(
    ("task", "transfer"),
    [*((task, "full") for task in PREDICTORS), *(("relation", mode) for mode in TRANSFER if mode != "full")],
)
def test_interrupted_and_resumed_equals_uninterrupted(tree, train, tmp_path, task, transfer):
    often = {"evaluate_every": 2, "save_every": 2, "keep_last": 2, "final": "average"}
    often["transfer"] = TRANSFER[transfer]
    wanted = tree(task, model={"dropout": 0.3}, train={"steps": 6, "batch_tokens": 64, **often})
    whole = train(wanted, tmp_path / "whole")
    first = train(wanted, tmp_path / "parts", at=lambda event: isinstance(event, Step) and event.step == 3)
    assert first[-1] == Finished(3, "interrupted")
    assert not (tmp_path / "parts/model").exists()
    second = train(wanted, tmp_path / "parts")
    losses = [[(e.step, e.loss) for e in events if isinstance(e, Step)] for events in (whole, [*first, *second])]
    assert len(losses[0]) == 6
    assert losses[0] == losses[1]
    for name in ("model/model.safetensors", "scores.json"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    moments = [load_file(tmp_path / run / "checkpoints/step-6/optimizer.safetensors") for run in ("whole", "parts")]
    assert moments[0].keys() == moments[1].keys()
    assert all(torch.equal(tensor, moments[1][name]) for name, tensor in moments[0].items())
    later = {name: int(tensor) for name, tensor in moments[0].items() if name.endswith(".updates")}
    if transfer == "gradual":  # the layers from the top, each two steps later; the embeddings have not begun
        assert set(later.values()) == {2, 4}
        assert all("layers.0" in name for name, n in later.items() if n == 2)
        assert not any("embedding" in name for name in moments[0])
    else:
        assert later == {}


@each_task
def test_a_checkpoint_is_the_model_exactly(runs, task):
    run = runs(task)
    step = max((run.folder / "checkpoints").iterdir(), key=lambda path: int(path.name.removeprefix("step-")))
    weights = load_file(step / "weights.safetensors")
    facts = json.loads((run.folder / "model/config.json").read_text())["jumok"]
    own = dict(run.predictor.engine.models[0].named_parameters())
    assert own.keys() == weights.keys()
    scaled = {"output.weight", "output.bias"} if facts.get("temperature", 1.0) != 1.0 or task == "number" else set()
    assert all(torch.equal(own[name], weights[name]) for name in own.keys() - scaled)
    assert all(not torch.equal(own[name], weights[name]) for name in scaled)


@pytest.mark.parametrize("task", ["tagging", "language_model"])
def test_a_run_without_attention_to_draw_is_named(runs, task, tmp_path):
    with pytest.raises(InputError) as caught:
        runs(task).predictor.draw_attention("the cat", tmp_path / "picture.svg")
    assert caught.value.code == "input.no_attention"


def test_a_classifier_has_nothing_to_align(runs, tmp_path):
    with pytest.raises(InputError) as caught:
        runs("classification").predictor.draw_attention("the cat", tmp_path / "picture.svg", output="good")
    assert caught.value.code == "input.no_output"


@each_task
def test_a_notebook_shows_every_output(runs, task):
    predictor = runs(task).predictor
    for output in predictor.predict(TEXTS[task]):
        shown = output._repr_html_()
        assert shown.startswith("<div")
        assert shown.count("<div") == shown.count("</div>")
        assert output.text == "" or task in ("tagging", "marked", "relation", "number") or output.text in shown


@pytest.mark.parametrize("task", PREDICTORS)
def test_minutes_are_the_run_of_as_many_steps(task, tree, train, tmp_path, monkeypatch):
    """Measuring the speed of steps and answers leaves no trace in what is learned."""

    def begun(name, **keys):
        return train(tree(task, train=keys), tmp_path / name, at=lambda e: isinstance(e, Step) and e.step == 5)

    ticks = count()
    monkeypatch.setattr("jumok.train.rehearsal.clock", lambda: 0.25 * next(ticks))
    timed = begun("timed", minutes=0.3)
    (planned,) = [event for event in timed if isinstance(event, Planned)]
    assert 10 <= planned.steps < 180
    counted = begun("counted", steps=planned.steps)
    told = [
        [(e.loss, e.grad_norm, e.learning_rate) for e in events if isinstance(e, Step)] for events in (timed, counted)
    ]
    assert told[0] == told[1]
    weights = "checkpoints/step-5/weights.safetensors"
    assert (tmp_path / "timed" / weights).read_bytes() == (tmp_path / "counted" / weights).read_bytes()
