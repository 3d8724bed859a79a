"""The settings for what was found: every recipe loads, and the doctor has nothing against it."""

import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jumok.doctor import examine_data
from jumok.errors import InputError
from jumok.models.head import Head
from jumok.new import Told
from jumok.new.corpus import look
from jumok.new.found import Found
from jumok.new.plan import hold_out, make_plan
from jumok.new.table import STARTS, TABLE
from jumok.new.written import recipe_text
from jumok.recipe import Recipe, load_recipe
from jumok.tasks.stored import write_model
from tiny_berts import bert_folder

FAST, SLOW = 1e15, 1e8
"""operations a second of a machine for which time is no matter, and of one that gets nowhere"""
WORDS = ["cat", "dog", "sun", "rain", "tree", "house", "runs", "sleeps", "sings", "the", "and", "of"]

KOREAN = ["고양이", "강아지", "햇빛", "나무", "집", "뛴다", "잔다", "노래한다", "그리고"]


def text(rng: random.Random, n: int = 8) -> str:
    return " ".join(rng.choices(WORDS, k=n))


def rows(n: int, line: Callable[[random.Random], str], header: str = "") -> str:
    rng = random.Random(n)
    return header + "".join(f"{line(rng)}\n" for _ in range(n))


def related(rng: random.Random) -> str:
    found: dict[str, Any] = {"text": f"Ada {text(rng)} Bo", "head": {"start": 0, "end": 3}}
    end = len(found["text"])
    found |= {"tail": {"start": end - 2, "end": end}, "label": rng.choice(["met", "saw"])}
    return json.dumps(found)


def tagged(rng: random.Random) -> str:
    return "".join(f"{word} {'B-X' if word == 'cat' else 'O'}\n" for word in text(rng).split())


def chosen(rng: random.Random) -> str:
    return json.dumps({"context": text(rng), "endings": [text(rng), text(rng)], "label": rng.randrange(2)})


def questions(n: int) -> str:
    rng = random.Random(n)
    paragraphs = []
    for i in range(n):
        context = text(rng, 20)
        answer = context.split()[0]
        asked = {"id": str(i), "question": f"{text(rng, 4)} ?", "answers": [{"text": answer, "answer_start": 0}]}
        paragraphs.append({"context": context, "qas": [asked]})
    return json.dumps({"data": [{"paragraphs": paragraphs}]})


FILES = {
    "translation": ("a.tsv", rows(200, lambda rng: f"{text(rng)}\t{' '.join(rng.choices(KOREAN, k=6))}", "en\tko\n")),
    "classification": ("a.csv", rows(200, lambda rng: f"{text(rng)},{rng.choice('ab')}", "text,label\n")),
    "classification of pairs": (
        "a.tsv",
        rows(200, lambda rng: f"{text(rng)}\t{text(rng)}\t{rng.choice('ab')}", "text_a\ttext_b\tlabel\n"),
    ),
    "tagging": ("a.conll", rows(200, tagged)),
    "relation": ("a.jsonl", rows(200, related)),
    "answering": ("a.json", questions(200)),
    "choice": (
        "c.jsonl",
        rows(200, chosen),
    ),
    "language_model": ("a.txt", rows(200, text)),
    "pretraining": ("b.txt", rows(200, lambda rng: f"{text(rng)}.\n{text(rng)}.\n")),
}  # fmt: skip


def found_in(folder: Path, task: str, **more: str) -> Found:
    name, content = FILES[task]
    (folder / name).write_text(content, "utf-8")
    told = Told(task=task.split()[0] if task == "pretraining" else None, **more)
    return look([folder / name], told, lambda question: question.guess)


def written(found: Found, folder: Path, **how: Any) -> tuple[Recipe, Path, str]:
    how = {"minutes": 30.0, "speed": FAST, **how}
    path = folder / "recipe.toml"
    content = recipe_text(found, make_plan(found, **how), path, "jumok new …")
    path.write_text(content, "utf-8")
    return load_recipe(path), path, content


EVERY_ROW = [(task, i) for task, choices in TABLE.items() for i in range(len(choices))]


def weights(folder: Path) -> Any:
    """A tiny encoder without a head, as a model folder."""
    _, tiny = bert_folder(Head(asks="nothing", pooler=True))
    facts = {"version": "0", "task": {"kind": "embedding", "pooler": True}}
    (folder / "weights").mkdir()
    write_model(folder / "weights", replace(tiny, facts=facts), card="")
    return tiny.config


def test_there_are_files_for_every_task_of_the_table() -> None:
    assert TABLE.keys() == FILES.keys()


@pytest.mark.parametrize(("task", "i"), EVERY_ROW)
def test_every_row_is_a_recipe(task: str, i: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were as much text as the row is for."""
    monkeypatch.setattr("jumok.new.plan.TABLE", {**TABLE, task: (replace(TABLE[task][i], characters=0, passes=0),)})
    found = found_in(tmp_path, task)
    recipe, path, content = written(found, tmp_path)
    row = TABLE[task][i]
    assert (recipe.task.kind, recipe.model.kind) == (found.task, row.model["kind"])
    assert recipe.train.optimizer.learning_rate == row.rate
    assert (recipe.train.epochs, recipe.train.minutes) == (row.most_passes, None)  # a fast machine, and little text
    assert recipe.data.exists("dev")
    assert recipe.data.exists("test")
    errors = [finding for finding in examine_data([path]) if finding.severity == "error"]
    assert errors == []
    assert re.search(r"^\[data\]$", content, re.MULTILINE)
    assert str(tmp_path) not in content  # paths are relative to the recipe


@pytest.mark.parametrize("task", TABLE)
def test_little_text_gets_the_last_row(task: str, tmp_path: Path) -> None:
    recipe, _, _ = written(found_in(tmp_path, task), tmp_path)
    assert recipe.tokenizer.vocab_size == TABLE[task][-1].vocab


def test_both_directions_of_a_language_pair_get_the_same_settings(tmp_path: Path) -> None:
    """Whichever side Hangul stands on: a token has half as many of its letters."""
    plans = []
    for source, target in (("en", "ko"), ("ko", "en")):
        found = found_in(tmp_path, "translation", source=source, target=target)
        found.size, found.long = 40 * found.size, 10 * found.long  # as if there were more of it
        plans.append(make_plan(found, minutes=30.0, speed=FAST))
    assert plans[0].tree["data"]["max_len"] == plans[1].tree["data"]["max_len"]
    assert plans[0].tree["model"] == plans[1].tree["model"]
    assert plans[0].tokens == plans[1].tokens


@pytest.mark.parametrize(("dev", "share"), [(10, 0.1), (200, 0.25), (100_000, 0.33)])
def test_much_dev_data_is_evaluated_less_often(tmp_path: Path, dev: int, share: float) -> None:
    """Evaluations take a seventh of the time, but there are at least three."""
    found = found_in(tmp_path, "translation")
    hold_out(found)
    found.sizes["dev"] = dev
    plan = make_plan(found, minutes=30.0, speed=FAST)
    assert plan.tree["train"]["evaluate_every"] == share


def test_much_text_gets_a_larger_model_if_there_is_time(tmp_path: Path) -> None:
    vocabularies = []
    for speed in (FAST, SLOW):
        found = found_in(tmp_path, "translation")
        found.characters = found.size = 2_000_000
        vocabularies.append(written(found, tmp_path, speed=speed)[0].tokenizer.vocab_size)
    assert vocabularies == [8000, 4000]


def test_the_minutes_are_in_the_recipe_if_they_are_too_few(tmp_path: Path) -> None:
    recipe, _, _ = written(found_in(tmp_path, "tagging"), tmp_path, speed=SLOW / 100, minutes=7.0)
    assert (recipe.train.minutes, recipe.train.epochs) == (7.0, None)


def test_a_catalogue_gets_slots_for_its_placeholders(tmp_path: Path) -> None:
    pairs = [(f"Open file {i} now", f"파일 {i} 열기") for i in range(40)]
    content = 'msgid ""\nmsgstr "Language: ko\\n"\n' + "".join(f'\nmsgid "{a}"\nmsgstr "{b}"\n' for a, b in pairs)
    (tmp_path / "a.po").write_text(content, "utf-8")
    found = look([tmp_path / "a.po"], Told(), lambda question: question.guess)
    assert written(found, tmp_path)[0].tokenizer.placeholders
    assert not written(found_in(tmp_path, "translation"), tmp_path)[0].tokenizer.placeholders


def test_files_for_dev_and_test_are_used(tmp_path: Path) -> None:
    name, content = FILES["classification"]
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.csv").write_text(content, "utf-8")
    found = look([tmp_path], Told(), lambda question: question.guess)
    recipe, _, _ = written(found, tmp_path)
    assert [recipe.data.name(split) for split in ("dev", "test")] == [
        str(tmp_path / f"{s}.csv") for s in ("dev", "test")
    ]
    assert (recipe.data.dev_share, recipe.data.test_share) == (0, 0)


def test_what_is_held_out_has_no_label_of_its_own(tmp_path: Path) -> None:
    lines = [f"{text(random.Random(i))} {i}\t{'rare' if i < 2 else 'often'}" for i in range(40)]
    (tmp_path / "a.tsv").write_text("text\tlabel\n" + "\n".join(lines), "utf-8")
    found = look([tmp_path / "a.tsv"], Told(), lambda question: question.guess)
    recipe, _, _ = written(found, tmp_path)
    labels = {split: {e.gold for e in recipe.data.read(split, seed=1)} for split in ("train", "dev", "test")}
    assert labels["train"] == {"rare", "often"}
    assert labels["dev"]
    assert labels["test"]


def test_too_few_examples_to_hold_some_out(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("text\tlabel\nthe cat sat\ta\nthe dog sat\tb\n", "utf-8")
    found = look([tmp_path / "a.tsv"], Told(), lambda question: question.guess)
    with pytest.raises(InputError) as caught:
        make_plan(found, minutes=30, speed=FAST)
    assert caught.value.code == "data.too_few"


@pytest.mark.parametrize("task", ["classification", "classification of pairs", "tagging", "relation", "answering"])
def test_weights_to_start_from(task: str, tmp_path: Path) -> None:
    config = weights(tmp_path)
    recipe, path, content = written(found_in(tmp_path, task), tmp_path, weights=tmp_path / "weights")
    assert recipe.model.d_model == config.d_model
    assert recipe.model.attention_dropout == 0
    assert recipe.data.max_len <= config.max_len
    start = STARTS[0]
    assert recipe.train.optimizer.learning_rate == (start.tagging_rate if task == "tagging" else start.rate)
    assert recipe.train.optimizer.clip_norm == 1
    assert 'init = "weights"' in content
    assert "[tokenizer]" not in content
    assert not [finding for finding in examine_data([path]) if finding.severity == "error"]


def test_weights_that_do_not_fit_the_task(tmp_path: Path) -> None:
    weights(tmp_path)
    with pytest.raises(InputError) as caught:
        make_plan(found_in(tmp_path, "translation"), minutes=30, speed=FAST, weights=tmp_path / "weights")
    assert caught.value.code == "input.weights"


def test_awkward_names_of_files_and_columns(tmp_path: Path) -> None:
    name = 'a "b" #c.csv'
    (tmp_path / name).write_text(FILES["classification"][1].replace("text,label", '"te\\xt # ""x""",label'), "utf-8")
    found = look([tmp_path / name], Told(), lambda question: question.guess)
    recipe, _, _ = written(found, tmp_path)
    assert recipe.data.text == 'te\\xt # "x"'
    assert [Path(file).name for file in recipe.data.train] == [name]
