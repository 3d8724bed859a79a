"""Made examples: the same everywhere, held apart, and true to what they say of themselves."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jumok.config import read_config
from jumok.data.corpus import Corpus
from jumok.errors import RecipeError
from jumok.examples import Split
from jumok.examples.choices import Choice, read_choices
from jumok.examples.labelled import Labelled
from jumok.examples.made import annotated as toys
from jumok.examples.made import data as made
from jumok.examples.made.data import (
    ToyChoices,
    ToyData,
    ToyGrammar,
    ToyJosa,
    ToyNames,
    ToyQuestions,
    ToyRelations,
    ToyReviews,
    ToySimilarity,
    ToyStories,
    ToyTopics,
)
from jumok.examples.plain import Text
from jumok.examples.questions import Question, read_questions
from jumok.examples.relations import Related, read_related
from jumok.examples.spans import Spans, read_marked
from jumok.tasks import TASKS

NEW: list[Any] = [ToyTopics, ToySimilarity, ToyRelations, ToyQuestions, ToyChoices, ToyJosa]
ALL: list[Any] = [*NEW, ToyReviews, ToyNames, ToyGrammar, ToyStories]
each_toy = pytest.mark.parametrize("toy", ALL)
each_new_toy = pytest.mark.parametrize("toy", NEW)


def examples(toy: Any, split: Split = "train", n: int = 400, seed: int = 1) -> list[Any]:
    return list(toy(n_train=n, n_dev=n, n_test=n).read(split, seed=seed))


def text_of(example: Any) -> str:
    match example:
        case Labelled():
            return f"{example.text}\t{example.pair}"
        case Question() | Choice():
            return example.context
        case Related() | Spans() | Text():
            return example.text
    return str(example)


def said(example: Any) -> Any:
    """An example without its place."""
    return replace(example, where="", **({"id": ""} if "id" in dir(example) else {}))


@each_toy
def test_examples_are_a_function_of_split_and_seed(toy: Any) -> None:
    assert examples(toy) == examples(toy)
    assert examples(toy)[:9] == examples(toy, n=9) or toy is ToyStories
    assert list(map(said, examples(toy))) != list(map(said, examples(toy, seed=2)))
    for split in ("dev", "test"):
        assert examples(toy, split) == examples(toy, split, seed=2)


@each_new_toy
def test_held_out_examples_are_never_made_for_training(toy: Any) -> None:
    data = toy(n_train=10_000)
    trained = {text_of(example) for example in data.read("train", seed=1)}
    held_out = {split: [text_of(example) for example in data.read(split, seed=1)] for split in ("dev", "test")}
    assert {split: len(texts) for split, texts in held_out.items()} == {"dev": 500, "test": 1000}
    for texts in held_out.values():
        assert len(set(texts)) == len(texts)
        assert not trained & set(texts)
    assert not set(held_out["dev"]) & set(held_out["test"])
    assert len(trained) > 3000  # too many to be listed


def test_examples_are_the_same_in_another_process() -> None:
    names = [toy.__name__ for toy in NEW]
    code = "from jumok.examples.made import data as made\n"
    code += f"for name in {names}: print(*getattr(made, name)(n_train=50).read('train', seed=3))"
    here = "".join(" ".join(map(str, getattr(made, name)(n_train=50).read("train", seed=3))) + "\n" for name in names)
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONIOENCODING": "utf-8"}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True, env=environment
        )
        assert done.stdout == here


@each_toy
def test_a_toy_is_a_kind_of_data(toy: type[ToyData]) -> None:
    assert toy in {data for task in TASKS for data in task.data}
    kind = toy().kind  # type: ignore[attr-defined]
    assert read_config(toy, {"kind": kind, "n_train": 3}, what="[data]").count("train") == 3
    with pytest.raises(RecipeError) as caught:
        read_config(toy, {"n_dev": -1}, what="[data]")
    assert [(mistake.key, mistake.code) for mistake in caught.value.mistakes] == [("n_dev", "recipe.value")]
    assert not toy(n_test=0).exists("test")


def test_toys_are_known_by_their_kind_and_their_number() -> None:
    def fingerprint(data: Any, split: Split = "train", seed: int = 1) -> str:
        return Corpus(data, split, seed=seed).fingerprint()

    assert len({fingerprint(toy()) for toy in ALL}) == len(ALL)
    for toy in ALL:
        assert fingerprint(toy()) != fingerprint(toy(n_train=7))
        assert fingerprint(toy()) != fingerprint(toy(), seed=2)
        assert fingerprint(toy(), "dev") == fingerprint(toy(), "dev", seed=2)


# true to what they say


def test_topics_are_what_the_text_speaks_of() -> None:
    found = examples(ToyTopics)
    for example in found:
        topics = {topic for topic, things in toys._TOPICS.items() if any(thing in example.text for thing in things)}
        assert example.label == "|".join(sorted(topics))
    assert {example.label.count("|") for example in found} == {0, 1, 2}


def test_similarity_is_what_two_descriptions_share() -> None:
    found = examples(ToySimilarity)
    for example in found:
        shared = sum(any(part in example.text and part in example.pair for part in parts) for parts in toys._DESCRIBED)
        assert example.label == str(shared)
    assert set(Counter(example.label for example in found)) == set("012345")


def test_a_relation_has_a_direction() -> None:
    found = examples(ToyRelations, n=2000)
    counts = Counter(example.label for example in found)
    assert set(counts) == {
        "none",
        *(f"{kind}({ends})" for kind in ("employs", "teaches") for ends in ("e1,e2", "e2,e1")),
    }
    assert min(counts.values()) > 200
    for example in found:
        head, tail = (example.text[e.start : e.end] for e in (example.head, example.tail))
        employer, employed = (tail, head) if "e2,e1" in example.label else (head, tail)
        if example.label.startswith("employs"):
            assert employer in toys._COMPANIES
            assert employed in toys._NAMES
        for entity, name in ((example.head, head), (example.tail, tail)):
            assert entity.label == ("COMPANY" if name in toys._COMPANIES else "PERSON")
    # The order in which they stand does not tell the direction.
    forth = [example.head.start < example.tail.start for example in found if example.label == "teaches(e1,e2)"]
    assert 0.3 < sum(forth) / len(forth) < 0.8


def test_a_question_is_answered_by_what_is_told_of_the_person() -> None:
    found = examples(ToyQuestions, n=2000)
    unanswered = [example for example in found if not example.answers]
    assert 0.2 < len(unanswered) / len(found) < 0.3
    for example in found:
        (name,) = (name for name in toys._NAMES if name in example.question)
        facts = [fact for fact in example.context.split(".") if name in fact]
        assert bool(facts) == bool(example.answers)
        for answer, start in example.answers:
            assert example.context[start : start + len(answer)] == answer
            assert facts[0].endswith(answer)
    assert len({example.id for example in found}) == len(found)


def test_one_ending_fits() -> None:
    found = examples(ToyChoices)
    for example in found:
        (state,) = (state for state in toys._FITTING if f" {state} " in example.context)
        fits = [any(done in ending for done in toys._FITTING[state]) for ending in example.endings]
        assert fits == [i == example.label for i in range(4)]
    assert set(Counter(example.label for example in found)) == {0, 1, 2, 3}


def test_particles_follow_names_and_fit_them() -> None:
    found = examples(ToyJosa, n=2000)
    endings: set[str] = set()
    by_name: dict[str, set[str]] = {}
    for example in found:
        for mark in example.marked:
            name = example.text[mark.start : mark.end]
            particle = re.match("[가-힣]+", example.text[mark.end :])
            assert particle, example
            endings.add(particle[0])
            closed = (ord(name[-1]) - ord("가")) % 28 != 0
            assert particle[0] not in (("는", "가", "를", "와") if closed else ("은", "이", "을", "과", "으로"))
            by_name.setdefault(name, set()).add(mark.label)
    assert len(endings) > 15
    assert all(by_name[name] == {"PER", "LOC"} for name in toys._EITHER)
    assert toys._fitting("으로/로", "서울") == "로"
    assert toys._fitting("으로/로", "부산") == "으로"
    assert toys._fitting("으로/로", "대구") == "로"


def test_made_annotations_are_such_as_the_readers_read(tmp_path: Path) -> None:
    def line(example: Any) -> str:
        match example:
            case Spans():
                spans = [{"start": mark.start, "end": mark.end, "label": mark.label} for mark in example.marked]
                return json.dumps({"text": example.text, "spans": spans})
            case Related():
                ends = {end: getattr(example, end) for end in ("head", "tail")}
                plain = {end: {"start": e.start, "end": e.end, "type": e.label} for end, e in ends.items()}
                return json.dumps({"text": example.text, "label": example.label, **plain})
        return json.dumps({"context": example.context, "endings": example.endings, "label": example.label})

    path = tmp_path / "a.jsonl"
    for toy, read in ((ToyJosa, read_marked), (ToyRelations, read_related), (ToyChoices, read_choices)):
        found = examples(toy)
        path.write_text("\n".join(map(line, found)), "utf-8")
        assert list(map(said, read(path))) == list(map(said, found))  # type: ignore[operator]
    asked = examples(ToyQuestions)
    paragraphs = [
        {
            "context": example.context,
            "qas": [
                {
                    "id": example.id,
                    "question": example.question,
                    "answers": [{"text": text, "answer_start": start} for text, start in example.answers],
                    "is_impossible": not example.answers,
                }
            ],
        }
        for example in asked
    ]
    path.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}), "utf-8")
    assert list(map(said, read_questions(path))) == list(map(said, asked))
