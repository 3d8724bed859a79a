"""A recipe as TOML, with comments that say why."""

import json
import os
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jumok.new.found import Found, counted
from jumok.new.plan import Plan

_PATHS = ("train", "dev", "test")
_WIDTH = 118
_REMARKS = {
    "task.crf": "learns which tags follow each other",
    "task.mark_capitals": "the vocabulary of the weights has no capitals",
    "data.max_len": "tokens read at once; data.long_texts says what happens to longer texts",
    "tokenizer.vocab_size": "learned from the training text",
    "tokenizer.placeholders": "%s, {name} and markup are kept as they are",
    "model.attention_dropout": "any at all keeps the CPU from its fused kernel",
    "train.minutes": "as many steps as fit, evaluations and final scores included",
    "train.epochs": "passes over the training data",
    "train.batch_tokens": "tokens in a batch; halve it if memory runs out",
    "train.evaluate_every": "share of the steps",
    "train.patience": "evaluations without improvement before training stops",
    "train.metric": "decides which checkpoint becomes the model",
    "train.final": "the checkpoint with the best score on dev, not the last one",
    "decode.beam": "1 is faster and a little worse",
}


def recipe_text(found: Found, plan: Plan, path: Path, command: str) -> str:
    """The text of a recipe at `path`; data paths are relative to it."""
    folder = path.parent.absolute()
    tree = {**plan.tree, "data": _relative(plan.tree["data"], folder)}
    title = f"{found.name}: {found.task.replace('_', ' ')}"
    lines = [f"# {title}. Written by: {command}"]
    for sentence in [f"{counted(found)}.", *found.why, *plan.why]:
        lines += [f"# {line}" for line in textwrap.wrap(sentence, _WIDTH - 2)]
    lines.append(f"description = {_toml(title)}")
    if "init" in tree:
        lines.append(f"init = {_toml(_relative_path(tree['init'], folder))}  # the weights to start from")
    for section in ("task", "data", "tokenizer", "model", "train", "decode"):
        if section in tree:
            lines += ["", f"[{section}]", *_section(section, tree[section], found.remarks)]
    return "\n".join(lines) + "\n"


def _section(section: str, keys: Mapping[str, Any], remarks: Mapping[str, str]) -> list[str]:
    lines = []
    for key, value in keys.items():
        line = f"{key} = {_toml(value)}"
        remark = _REMARKS.get(f"{section}.{key}", "")
        remark = remarks.get(key, remark) if section in ("task", "data") else remark
        remark = " ".join(remark.split())
        if isinstance(value, list) and len(line) > _WIDTH:
            line = "\n".join([f"{key} = [", *(f"  {_toml(one)}," for one in value), "]"])
        lines.append(f"{line}  # {remark}" if remark else line)
    return lines


def _relative(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    def found(value: Any) -> Any:
        return [found(one) for one in value] if isinstance(value, list) else _relative_path(value, folder)

    return {key: found(value) if key in _PATHS else value for key, value in data.items()}


def _relative_path(path: str, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # on another drive of Windows
        return Path(path).absolute().as_posix()


def _toml(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case float() | int():
            return _number(value)
        case Mapping():
            return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
        case Sequence():
            return "[" + ", ".join(map(_toml, value)) + "]"
    raise TypeError(type(value).__name__)


def _number(value: float) -> str:
    if isinstance(value, int) or value == 0 or 0.001 <= abs(value) < 1e6:
        return repr(value)
    mantissa, exponent = f"{value:e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
