"""Choose settings for what the files hold, for this machine and for the minutes there are: a recipe as a tree."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

from jumok.errors import DataError, InputError
from jumok.examples.labelled import LabelledData
from jumok.examples.plain import DocumentData
from jumok.hub.folder import ModelFolder
from jumok.new.found import MOST, Found
from jumok.new.table import (
    EFFICIENCY,
    MUCH_TEXT,
    SLOW_RATE,
    STARTS,
    TABLE,
    TAGGING_BATCH,
    Row,
)
from jumok.recipe import VOCABULARIES, parse_recipe
from jumok.show import Cost, cost
from jumok.tasks import task_named
from jumok.tasks.stored import read_start

WITHOUT_SPACES = ("ko", "ja", "zh", "th")
"""languages whose words have more letters or forms, and no capitals"""
_SIZES = {8000: 4.0, 4000: 3.4, 2000: 3.0, 1000: 2.4}
"""of a token (`size_of`) of a vocabulary with at least so many"""
_SCORED = 0.15  # share of the minutes for evaluations and scores
_COST_OF_ANSWERS = {"translation": 2.2}  # for a token of dev, beside a step's for a token: it is written one by one
_LEAST_EVALUATIONS, _MOST_EVALUATIONS = 3, 10
_HELD_OUT = 1000  # examples of dev and test, if there are enough
_TRIED = (1, 1.25, 0.8, 1.6, 0.6, 2, 2.5, 3, 4)  # shares to hold out, in case one holds out the wrong examples
_LEAST_BATCHES = 16  # in a pass: of very little text, batches are smaller, or there would be hardly a step
_SMALL = {"weight_decay": 0.01, "clip_norm": 1.0}


@dataclass(slots=True, kw_only=True)
class Plan:
    """A recipe, and what to expect of it."""

    tree: dict[str, Any]
    kind: str
    """of the model"""
    why: list[str] = field(default_factory=list)
    cost: Cost
    tokens: float
    """in the training data, roughly"""
    steps: int
    minutes: float


def machine_speed() -> float:
    """Operations per second of a large matrix product here."""
    import torch

    a = torch.rand(768, 768)
    a @ a  # the first one also loads the library
    n, since = 0, perf_counter()
    while (seconds := perf_counter() - since) < 0.2:
        a @ a
        n += 1
    return float(2 * 768**3 * n / seconds)


def make_plan(found: Found, *, minutes: float, speed: float, weights: Path | None = None) -> Plan:
    """Take the first row of the table for which there is enough text and time."""
    hold_out(found)
    if weights is not None:
        tree, most_passes, filled = _started(found, weights)
        return _planned(found, tree, most_passes, filled, minutes=minutes, speed=speed)
    rows = TABLE[_name_in_table(found)]
    plans = (
        (row, _planned(found, *_from_scratch(found, row), {}, minutes=minutes, speed=speed, vocab=row.vocab))
        for row in rows
        if found.characters >= row.characters
    )
    for row, plan in plans:
        passes = (
            60 * minutes * speed * _share_for_training(plan) / max(plan.cost.flops_per_pair_of_tokens * plan.tokens, 1)
        )
        if passes >= row.passes:
            if row is not rows[0] and found.characters < rows[0].characters:
                plan.why.append("Larger models are for more text: they would learn this by heart.")
            elif row is not rows[0]:
                plan.why.append(
                    f"A small model: in {minutes:g} minutes, a larger one would hardly see all of the text."
                )
            break
    if rows is TABLE["answering"]:
        plan.why.append("From scratch, little of this is learned from few examples: start from weights with --from.")
    return plan


def _share_for_training(plan: Plan) -> float:
    return EFFICIENCY[plan.kind] * (1 - _SCORED)


def _name_in_table(found: Found) -> str:
    pairs = found.task == "classification" and "pair" in found.data
    return "classification of pairs" if pairs else found.task


def _planned(
    found: Found,
    tree: dict[str, Any],
    most_passes: int,
    filled: dict[str, Any],
    *,
    minutes: float,
    speed: float,
    vocab: int = 8000,
) -> Plan:
    """`filled` is what the recipe does not say, because it comes from the weights."""
    recipe = parse_recipe({**tree, **filled}, where="the new recipe")
    counted = cost(recipe)
    tokens = _tokens(found, vocab)
    kind = recipe.model.kind
    per_step = counted.flops_per_pair_of_tokens * recipe.train.batch_tokens / (speed * EFFICIENCY[kind])
    in_time = int(60 * minutes * (1 - _SCORED) / per_step)
    passes = max(int(most_passes * tokens / recipe.train.batch_tokens), 1)
    train = tree["train"]
    evaluation = _COST_OF_ANSWERS.get(found.task, 0.4) * _dev_tokens(found, tokens) / recipe.train.batch_tokens
    often = int(_SCORED * min(in_time, passes) / max(evaluation, 1e-9))  # in steps, both of them
    train["evaluate_every"] = round(1 / min(max(often, _LEAST_EVALUATIONS), _MOST_EVALUATIONS), 2)
    if passes < in_time and not found.sizes["train"] >= MOST:
        tree["train"] = {"epochs": most_passes, **train}
        expected = passes * per_step / 60 / (1 - _SCORED)
        why = [
            f"{most_passes} passes over the text are enough for this model, so training takes less time than it may."
        ]
    else:
        tree["train"] = {"minutes": minutes, **train}
        expected, why = minutes, []
    return Plan(
        tree=tree, kind=kind, why=why, cost=counted, tokens=tokens, steps=min(passes, in_time), minutes=expected
    )


def _tokens(found: Found, vocab: int) -> float:
    """Tokens of the training text, roughly: of a side, if there are two."""
    size = _size_of_a_token(vocab)
    held_out = found.data.get("dev_share", 0.0) + found.data.get("test_share", 0.0)
    sides = 2 if found.task == "translation" else 1
    return float((1 - held_out) * found.size / size / sides)


def _size_of_a_token(vocab: int) -> float:
    return next((size for least, size in _SIZES.items() if vocab >= least), 2.0)


def _dev_tokens(found: Found, tokens: float) -> float:
    n = found.sizes["train"]
    dev: float = found.sizes.get("dev", found.data.get("dev_share", 0.0) * n)
    return tokens / n * dev


def hold_out(found: Found) -> None:
    """Hold out dev and test, if none are given: some of the examples, so that every label is still in train."""
    missing = [split for split in ("dev", "test") if split not in found.data]
    if not missing:
        return
    if found.kind is DocumentData and _documents(found) < 50:
        found.data["format"] = "line"  # a part of a few documents may be none
        found.remarks["format"] = "so that lines can be held out: there are few documents"
    n = found.sizes["train"]
    base = min(max(_HELD_OUT / n, 0.01), 0.1)
    last: DataError | None = None
    for factor in _TRIED:
        shares = {f"{split}_share": round(min(base * factor, 0.3), 3) for split in missing}
        found.data |= shares
        last = _trouble(found, missing)
        if last is None:
            break
    if last is not None:
        raise last
    shown = " and ".join(f"{100 * share:g} % for {name.removesuffix('_share')}" for name, share in shares.items())
    found.why.append(f"Held out from the training data, since no such files are given: {shown}.")
    found.remarks |= dict.fromkeys(shares, "held out from train, by a hash of each text")


def _documents(found: Found) -> int:
    return sum(s.first for s in islice(found.kind(**found.data).read("train", seed=1), MOST))


def _trouble(found: Found, missing: list[str]) -> DataError | None:
    """Why the shares cannot be used: nothing is held out, or a label that training does not have."""
    if found.sizes["train"] >= MOST:
        return None
    data = found.kind(**found.data)
    ignore: dict[str, Any] = {"wrong": lambda error: None} if found.kind is LabelledData else {}
    labels: dict[str, set[str]] = {}
    for split in ("train", *missing):
        examples = [*data.read(split, seed=1, **ignore)]
        if not examples:
            n = found.sizes["train"]
            hint = "add more, or pass files for dev and test, such as dev.tsv and test.tsv"
            return DataError(
                f"too few examples to hold some out: {n}", where=data.name("train"), hint=hint, code="data.too_few"
            )
        labels[split] = set(_labels(found, examples))
    for split in missing:
        if unknown := labels[split] - labels["train"]:
            what = f"the label {min(unknown)} has too few examples to be in train and {split}"
            hint = "add more of them, or leave them out"
            return DataError(what, where=data.name("train"), hint=hint, code="data.too_few")
    return None


def _labels(found: Found, examples: list[Any]) -> Iterator[str]:
    if found.task == "tagging":
        for example in examples:
            yield from example.tags if example.tags is not None else (span.label for span in example.spans or [])
    elif found.task in ("classification", "relation") and found.settings.get("predicts") != "number":
        for example in examples:
            yield from example.gold.split("|") if "predicts" in found.settings else [example.gold]


def _from_scratch(found: Found, row: Row) -> tuple[dict[str, Any], int]:
    without_spaces = found.language.split("-")[0] in WITHOUT_SPACES
    vocab = row.vocab_without_spaces if without_spaces and row.vocab_without_spaces else row.vocab
    tokenizer: dict[str, Any] = {"kind": row.tokenizer, "vocab_size": vocab}
    tokenizer |= {"lowercase": True} if row.lowercase and not without_spaces else {}
    tokenizer |= {"placeholders": True} if found.placeholders else {}
    kind = row.model["kind"]
    moments = {"beta2": 0.98, "epsilon": 1e-6, **_SMALL}
    if kind in ("transformer", "seq2seq"):
        moments = {"beta2": 0.98, **_SMALL, "weight_decay": 1e-4}
    batch_tokens = row.batch_tokens
    while batch_tokens > 256 and batch_tokens > _tokens(found, row.vocab) / _LEAST_BATCHES:
        batch_tokens //= 2
    tree = _tree(found, rate=row.rate, batch_tokens=batch_tokens, moments=moments)
    tree |= {"tokenizer": tokenizer, "model": dict(row.model)}
    if found.task == "tagging":
        tree["task"]["crf"] = True
    if found.task == "translation" and not row.train:  # the mean of the last checkpoints
        tree["train"] |= {"save_every": 0.03, "keep_last": 5}
        del tree["train"]["final"]
    tree["train"] |= row.train
    _fit_lengths(tree, found, tree["model"].get("max_len"), vocab=row.vocab)
    return tree, row.most_passes


def _started(found: Found, weights: Path) -> tuple[dict[str, Any], int, dict[str, Any]]:
    """Settings to train weights further, and what the recipe takes from them."""
    folder = read_start(str(weights))
    config, width = folder.config, folder.config.d_model
    fitting = task_named(found.task).models
    if config.kind not in fitting:
        what = f"weights of a {config.kind} cannot learn {found.task}, which needs {' or '.join(fitting)}"
        raise InputError(
            what, where=f"--from {weights}", hint="use other weights, or leave out --from", code="input.weights"
        )
    start = next(start for start in STARTS if width <= start.width)
    tagging = found.task == "tagging"
    rate = start.tagging_rate if tagging else start.rate
    if not tagging and found.characters >= MUCH_TEXT:
        rate = min(rate, SLOW_RATE)
    batch_tokens = TAGGING_BATCH if tagging else start.batch_tokens
    moments = {"beta2": 0.98, "epsilon": 1e-6, **_SMALL}
    tree = {"init": str(weights), **_tree(found, rate=rate, batch_tokens=batch_tokens, moments=moments)}
    if config.kind in ("bert", "gpt"):
        tree["model"] = {"attention_dropout": 0.0}
    if tagging:
        folds = _folds_case(folder) and found.language.split("-")[0] not in WITHOUT_SPACES
        tree["task"] |= {"mark_capitals": True} if folds else {"crf": True}
    if found.task == "pretraining":
        tree["task"]["whole_words"] = True
    _fit_lengths(tree, found, getattr(config, "max_len", None))
    passes = 2 * start.most_passes if found.sizes["train"] < 2000 else start.most_passes
    known = folder.tokenizers.source
    tokenizer = {"kind": VOCABULARIES.get(config.kind, known.kind), "vocab_size": known.vocab_size}
    filled = {"model": {**asdict(config), **tree.get("model", {})}, "tokenizer": tokenizer}
    return tree, passes, filled


def _folds_case(folder: ModelFolder) -> bool:
    encode = folder.tokenizers.source.encode
    return list(encode("A")) == list(encode("a"))


def _tree(found: Found, *, rate: float, batch_tokens: int, moments: Mapping[str, float]) -> dict[str, Any]:
    optimizer = {"kind": "adamw", "schedule": "linear", "learning_rate": rate, "warmup": 0.1, **moments}
    kind = found.kind.__dataclass_fields__["kind"].default
    tree: dict[str, Any] = {
        "task": {"kind": found.task, **found.settings},
        "data": {"kind": kind, **found.data},
        "train": {
            "batch_tokens": batch_tokens,
            "evaluate_every": 0.1,
            "save_every": 0.1,
            "keep_last": 2,
            "final": "best",
            "metric": found.metric,
            "optimizer": optimizer,
        },
    }
    if found.task == "translation":
        tree["decode"] = {"beam": 5, "length_penalty": 1.0, **({"max_extra": 30} if found.reply else {})}
    if found.task == "language_model":
        tree["decode"] = {"method": "sample", "top_k": 40}
    return tree


def _fit_lengths(tree: dict[str, Any], found: Found, most: int | None, vocab: int = 8000) -> None:
    """The tokens that a model reads at once: enough for nine of ten texts, if the model can."""
    long = found.long / _size_of_a_token(vocab)
    fitting = 128 if found.task in ("language_model", "pretraining") or long <= 120 else 256
    fitting = 256 if found.task == "answering" else fitting
    length = min(fitting, most or fitting)
    tree["data"]["max_len"] = length
    if found.task == "answering":
        tree["data"]["stride"] = min(96, length * 3 // 8)
    elif found.task not in ("translation", "language_model", "pretraining"):
        tree["data"]["stride"] = length // 4
