"""Record docs/examples/outputs.json: what tiny models of every task answer, for docs/outputs.md.

python docs/record_outputs.py     # some minutes: trains shortened toy recipes in a temporary folder, then `make docs`
"""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jumok
from jumok.hub.folder import ModelFolder
from jumok.tasks.protocol import plain
from jumok.tasks.stored import read_model, write_model
from jumok.train.loop import Finished

ROOT = Path(__file__).parents[1]
PATH = ROOT / "docs" / "examples" / "outputs.json"
Inputs = list[tuple[str | dict[str, Any], dict[str, Any]]]
"""each with the options it is asked with"""


@dataclass(frozen=True)
class Recorded:
    """A toy recipe, made shorter, and what the model is asked."""

    recipe: str
    inputs: Inputs
    overrides: list[str] = field(default_factory=list)


RECORDED = [
    Recorded(
        "recipes/toy/reverse.toml",
        [("1 2 3", {}), ({"source": "4 5"}, {"n_best": 2, "alignment": True})],
    ),
    Recorded("recipes/toy/language-model.toml", [("the ships near", {"method": "greedy"})]),
    Recorded(
        "recipes/toy/bert.toml",
        [
            ("the birds sing today. the birds [MASK] again.", {"top_k": 2}),
            ("the birds sing today.\tthe birds sleep again.", {}),
        ],
        ["model.d_model=32", "model.d_ff=64"],
    ),
    Recorded(
        "recipes/toy/classifier-attention.toml",
        [("음악은 정말 지루하지 않다", {"words": True}), ({"text": "줄거리는 엉망이다"}, {})],
    ),
    Recorded("recipes/toy/topics.toml", [("the band was better than before and the price was not what we know", {})]),
    Recorded(
        "recipes/toy/similarity.toml",
        [("a quiet horse waits inside again\ta quiet child waits inside again", {})],
        ["data.n_train=4000", "model.d_model=64", "model.d_ff=128"],
    ),
    Recorded("recipes/toy/tagger.toml", [("Jordan moved from Jordan to Paris .", {})]),
    Recorded("recipes/toy/josa.toml", [("포항에 사는 은영을 보았다.", {})]),
    Recorded(
        "recipes/toy/relations.toml",
        [
            (
                {
                    "text": "Ines got a job at Saehan in Oslo.",
                    "head": {"start": 0, "end": 4, "type": "PERSON"},
                    "tail": {"start": 18, "end": 24, "type": "COMPANY"},
                },
                {},
            )
        ],
    ),
    Recorded(
        "recipes/toy/questions.toml",
        [
            (
                {"question": "What does Lena play?", "context": "Lena plays the violin. Alan works as a nurse."},
                {"n_best": 2},
            ),
        ],
    ),
    Recorded(
        "recipes/toy/choices.toml",
        [({"context": "Ada is very bored again.", "endings": ["Ada takes a bath.", "Ada watches a film."]}, {})],
    ),
]


def record(wanted: Recorded, folder: Path) -> list[dict[str, Any]]:
    run = folder / Path(wanted.recipe).stem
    overrides = [*wanted.overrides, "train.device=cpu"]
    *_, last = jumok.train(ROOT / wanted.recipe, run, overrides=overrides)
    assert isinstance(last, Finished)
    predictor = jumok.load(run, device="cpu")
    found = answers(predictor, predictor.kind, wanted.recipe, wanted.inputs)
    if wanted.recipe.endswith("/bert.toml"):
        body = folder / "body"
        body.mkdir()
        write_model(body, without_head(read_model(run / "model")), card="")
        embedding: Inputs = [("the birds sing today.", {})]
        found += answers(jumok.load(body, device="cpu"), "embedding", wanted.recipe, embedding)
    return found


def without_head(model: ModelFolder) -> ModelFolder:
    """The body alone, as a folder of `BertModel` from elsewhere has it: it gives vectors."""
    tensors = {name.removeprefix("bert."): t for name, t in model.tensors.items() if name.startswith("bert.")}
    facts = {**model.facts, "task": {"kind": "embedding", "pooler": True}}
    return ModelFolder(model.config, tensors, model.tokenizers, facts)


def answers(predictor: jumok.Predictor[Any, Any], task: str, recipe: str, inputs: Inputs) -> list[dict[str, Any]]:
    found = []
    for given, options in inputs:
        (output,) = predictor.predict(given, **options)
        output = rounded(plain(output))
        found.append({"task": task, "recipe": recipe, "options": options, "input": given, "output": output})
    return found


def rounded(value: Any) -> Any:
    """Digits that a page does not need."""
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list) else value


def main() -> None:
    found: list[dict[str, Any]] = []
    with TemporaryDirectory() as folder:
        for wanted in RECORDED:
            sys.stderr.write(f"{wanted.recipe}\n")
            found += record(wanted, Path(folder))
    rows = ",\n".join(json.dumps(each, ensure_ascii=False) for each in found)
    PATH.write_text(f"[\n{rows}\n]\n", "utf-8")


if __name__ == "__main__":
    main()
