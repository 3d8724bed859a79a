"""The model card: what the model is, what it was trained on, its scores, and how to load it."""

import json
from typing import Any

from jumok.hub.folder import ModelFolder
from jumok.recipe import Recipe, recipe_tree
from jumok.tasks.baseline import told_against
from jumok.tasks.stored import obstacle

NAMES = {
    "transformer": "Transformer",
    "seq2seq": "recurrent encoder-decoder",
    "rnn": "recurrent network",
    "bert": "BERT",
    "gpt": "GPT",
    "elmo": "ELMo",
}


def model_card(recipe: Recipe, model: ModelFolder, scores: dict[str, Any], *, engine: str) -> str:
    facts = recipe.kind.read_facts(model.facts)
    does, languages = recipe.kind.does(facts), recipe.kind.languages(facts)
    parameters = sum(tensor.numel() for tensor in model.tensors.values())
    name = NAMES.get(recipe.model.kind, recipe.model.kind)
    reason = obstacle(model)
    opens = "Load it with `transformers`, or with jumok:"
    if reason is not None:
        opens = f"Only jumok can load it ({reason}):"
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
            f"pipeline_tag: {recipe.kind.pipeline}",
            "---",
            f"# {recipe.description or does}",
            "",
            f"A {name} of {parameters:,} parameters, trained with jumok {model.facts['version']} {does}.",
            "",
            f"{opens} `jumok.load(folder)`.",
            "",
            "| split | metric | score | 95 % interval | sentences | signature |",
            "|---|---|--:|--:|--:|---|",
            *rows,
            "",
            *beside_baselines(scores),
            f"Engine: {engine}.",
            "",
            "## Recipe",
            "```json",
            json.dumps(tree, indent=1, ensure_ascii=False),
            "```",
            "",
        ]
    )


def beside_baselines(scores: dict[str, Any]) -> list[str]:
    """A table of the baselines by their metrics, and the model against the best of them."""
    rows = [
        f"| {split} | {name.replace('_', ' ')} | {', '.join(f'{what} {value:.2f}' for what, value in found.items())} |"
        for split, result in scores.items()
        for name, found in result.get("baselines", {}).items()
    ]
    told = [
        f"On {split} the model is {told_against(result['against_baseline'])}."
        for split, result in scores.items()
        if "against_baseline" in result
    ]
    test = next((r["against_baseline"]["test"] for r in scores.values() if "against_baseline" in r), "")
    if not rows:
        return []
    said = [" ".join(told), "", f"Paired test: {test}.", ""] if told else []
    return ["Baselines on the same examples:", "", "| split | baseline | scores |", "|---|---|---|", *rows, "", *said]
