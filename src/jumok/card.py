"""The model card: what the model is, what it was trained on, how good it is, how to load it."""

import json
from typing import Any

from jumok.data.corpus import ParallelData
from jumok.data.made import SyntheticData
from jumok.hub.folder import ModelFolder
from jumok.hub.marian import fits_marian
from jumok.models import TransformerConfig
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
}


def model_card(recipe: Recipe, model: ModelFolder, scores: dict[str, Any]) -> str:
    data = recipe.data
    if isinstance(data, ParallelData | SyntheticData):
        languages, does = [data.source, data.target], f"from {data.source} to {data.target}"
    else:
        labels = model.facts.get("labels")
        languages = [data.language] if data.language else []
        goes_on = "to guess masked words" if recipe.task.kind == "pretraining" else "to go on writing"
        does = f"to tell {', '.join(labels)} apart" if labels else goes_on
    parameters = sum(tensor.numel() for tensor in model.tensors.values())
    c = recipe.model
    marian = isinstance(c, TransformerConfig) and fits_marian(c) and model.tokenizers.source is model.tokenizers.target
    opens = (
        "`transformers` opens this folder as a MarianMTModel; jumok opens it as"
        if marian
        else "Only jumok opens this folder:"
    )
    rows = [
        f"| {split} | {score['name']} | {score['value']:.2f} | {score['low']:.2f} – {score['high']:.2f}"
        f" | {score['n']} | `{score['signature']}` |"
        for split, result in scores.items()
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
