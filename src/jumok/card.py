"""The model card: what the model is, what it was trained on, how good it is, how to load it."""

import json
from typing import Any

from jumok.data.made import SyntheticData
from jumok.data.sources import ParallelData
from jumok.hub.folder import ModelFolder, obstacle
from jumok.recipe import Recipe, recipe_tree

NAMES = {
    "transformer": "Transformer",
    "seq2seq": "recurrent encoder-decoder",
    "rnn": "recurrent network",
    "bert": "BERT",
    "gpt": "GPT",
    "elmo": "ELMo",
}
PIPELINES = {
    "translation": "translation",
    "classification": "text-classification",
    "tagging": "token-classification",
    "language_model": "text-generation",
    "pretraining": "fill-mask",
    "relation": "text-classification",
    "answering": "question-answering",
    "choice": "multiple-choice",
}
DOES = {
    "pretraining": "to guess masked words",
    "language_model": "to go on writing",
    "answering": "to find answers in a text",
    "choice": "to choose the ending that fits",
}


def model_card(recipe: Recipe, model: ModelFolder, scores: dict[str, Any]) -> str:
    data = recipe.data
    if isinstance(data, ParallelData | SyntheticData):
        languages, does = [data.source, data.target], f"from {data.source} to {data.target}"
    else:
        labels = model.facts.get("labels")
        languages = [data.language] if data.language else []
        does = DOES.get(recipe.task.kind) or (f"to tell {', '.join(labels)} apart" if labels else "to say a number")
    parameters = sum(tensor.numel() for tensor in model.tensors.values())
    reason = obstacle(model)
    opens = "`transformers` opens this folder, and so does jumok:"
    if reason is not None:
        opens = f"Only jumok opens this folder ({reason}):"
    rows = [
        f"| {split}{when} | {score['name']} | {score['value']:.2f} | {score['low']:.2f} – {score['high']:.2f}"
        f" | {score['n']} | `{score['signature']}` |"
        for split, both in scores.items()
        for when, result in ((", before", both.get("before", {"scores": {}})), ("", both))
        for score in result["scores"].values()
    ]
    tree = recipe_tree(recipe)
    tree["data"] = {k: v for k, v in tree["data"].items() if k not in ("train", "dev", "test")}
    return "\n".join(
        [
            "---",
            f"language: [{', '.join(languages)}]",
            "library_name: jumok",
            f"pipeline_tag: {PIPELINES[recipe.task.kind]}",
            "---",
            f"# {recipe.description or does}",
            "",
            f"A {NAMES[recipe.model.kind]} of {parameters:,} parameters, trained by jumok {model.facts['version']}"
            f" {does}.",
            "",
            f"{opens} `jumok.load(folder)`.",
            "",
            "| split | metric | score | 95 % interval | sentences | signature |",
            "|---|---|--:|--:|--:|---|",
            *rows,
            "",
            "## Recipe",
            "```json",
            json.dumps(tree, indent=1, ensure_ascii=False),
            "```",
            "",
        ]
    )
