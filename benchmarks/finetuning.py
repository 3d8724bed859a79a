"""Fine-tuning: real pieces a second, against transformers' Trainer with its defaults, from the same weights.

    JUMOK_DATA=... python benchmarks/finetuning.py runs/minilm [--rounds 6]

SST-2 as a classifier and JNLPBA as a tagger. The Trainer has its own defaults: batches of 8 in the order of a shuffle,
padded to the longest of each (DataCollatorWithPadding, DataCollatorForTokenClassification), AdamW, dropout as
published. It stands beside jumok with that dropout and beside the recipe as it is, which drops no attention weights;
and once it is given both of the recipe's advantages, no dropout there and as many examples a batch as jumok has on
average. All read texts that are cut into pieces beforehand and train on as many examples in a round; pieces are
counted, since batches of one length are now of short texts and now of long ones. Two threads. Needs `pip install
accelerate`, without which there is no Trainer.
"""

import argparse
import os
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from interleave import Row, interleave, middle, write
from transformers import (
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
)

from jumok.data.cache import Cache
from jumok.models.build import build_model
from jumok.recipe import Recipe, load_recipe
from jumok.tasks.stored import read_start
from jumok.train.checkpoint import Checkpoints
from jumok.train.loop import Step, train
from jumok.train.optimizer import make_optimizer, peak_rate
from jumok.transfer import begin_with

RECIPES = Path(__file__).parent.parent / "recipes"
EXAMPLES = 512  # of a round
SAME_HEAD = {"jnlpba": ["task.crf=false"]}  # as the Trainer's
PUBLISHED = 0.1  # dropout of attention weights, Devlin et al.


class Rows(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """What the Trainer reads: the same pieces and labels that jumok's shards have; it counts the pieces."""

    def __init__(self, task: Any, kind: str) -> None:
        self.task, self.kind, self.pieces = task, kind, 0

    def __len__(self) -> int:
        return len(self.task.train)

    def __getitem__(self, i: int) -> dict[str, Any]:
        fields = self.task.train.fields
        ids = fields["text"][int(i)].tolist()
        self.pieces += len(ids)
        row: dict[str, Any] = {"input_ids": ids, "attention_mask": [1] * len(ids)}
        if self.kind == "classification":
            return {**row, "labels": int(fields["label"][int(i)][0])}
        labels = [-100] * len(ids)
        for place, tag in zip(fields["first"][int(i)].tolist(), fields["tag"][int(i)].tolist(), strict=True):
            labels[place] = tag
        return {**row, "labels": labels}


def ours(recipe: Recipe, task: Any, folder: Path, sizes: list[int], pieces: list[int]) -> Callable[[], object]:
    """A round of jumok's own loop, which goes on where the last round ended; `sizes` are the examples of its batches,
    `pieces` what each round reads."""
    assert recipe.init is not None
    start = read_start(recipe.init)
    torch.manual_seed(1)
    model = build_model(recipe.model, recipe.kind.head(asdict(recipe.task), task.facts), **start.tokenizers.sizes)
    begin_with(model, start, task.tokenizer)
    never = 10**9
    config = replace(recipe.train, steps=never, epochs=None, evaluate_every=never, save_every=never)
    plan = task.batches

    def counted(epoch: int) -> Iterator[Any]:
        for examples in plan(epoch):
            sizes.append(len(examples))
            yield examples

    counting = copy(task)
    object.__setattr__(counting, "batches", counted)
    events = train(
        model,
        counting,
        config.resolved(lambda epoch: never),
        optimizer=make_optimizer(model, config.optimizer),
        peak_rate=peak_rate(config.optimizer, d_model=recipe.model.d_model),
        checkpoints=Checkpoints(folder),
        seed=1,
    )

    def work() -> None:
        done = read = 0
        while done < EXAMPLES:
            event = next(events)
            if isinstance(event, Step):
                done += sizes[-1]
                read += event.tokens
        pieces.append(read)

    return work


def theirs(
    weights: Path, task: Any, kind: str, folder: Path, batch: int, pieces: list[int], **changed: float
) -> Callable[[], object]:
    """A round of a Trainer of its own: its model, optimizer and loaders are made anew, which is little beside it."""
    tokenizer = AutoTokenizer.from_pretrained(weights)
    if kind == "classification":
        model = AutoModelForSequenceClassification.from_pretrained(weights, num_labels=len(task.labels), **changed)
        collator: Any = DataCollatorWithPadding(tokenizer)
    else:
        model = AutoModelForTokenClassification.from_pretrained(weights, num_labels=len(task.labels), **changed)
        collator = DataCollatorForTokenClassification(tokenizer)
    arguments = TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=batch,
        max_steps=max(EXAMPLES // batch, 1),
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
    )

    def work() -> None:
        rows = Rows(task, kind)
        Trainer(model=model, args=arguments, train_dataset=rows, data_collator=collator).train()
        pieces.append(rows.pieces)

    return work


def measure(name: str, weights: Path, rounds: int) -> list[Row]:
    recipe = load_recipe(RECIPES / name / "minilm.toml", [f"init={weights.absolute()}", *SAME_HEAD.get(name, [])])
    task: Any = recipe.kind.prepare(recipe, Cache.of_user())
    kind, model = recipe.task.kind, weights / "model"
    published = replace(recipe, model=replace(recipe.model, attention_dropout=PUBLISHED))
    pieces: dict[str, list[int]] = {work: [] for work in ("recipe", "published", "defaults", "helped")}
    sizes: list[int] = []
    with TemporaryDirectory() as folder:
        works = {
            "recipe": ours(recipe, task, Path(folder) / "recipe", sizes, pieces["recipe"]),
            "published": ours(published, task, Path(folder) / "published", [], pieces["published"]),
            "defaults": theirs(model, task, kind, Path(folder) / "defaults", 8, pieces["defaults"]),
        }
        works["recipe"]()  # says how many examples a batch of ours has
        usual = round(float(np.mean(sizes)))
        dropout = {"attention_probs_dropout_prob": recipe.model.attention_dropout}
        works["helped"] = theirs(model, task, kind, Path(folder) / "helped", usual, pieces["helped"], **dropout)
        times = interleave(works, rounds=rounds, repeat={})
    speed = {work: [n / t for n, t in zip(pieces[work][-rounds:], times[work], strict=True)] for work in works}
    rows = []
    for mine, peer, said, target in (
        ("published", "defaults", "batches of 8, its default, both with dropout as published", 1.5),
        ("recipe", "defaults", "the same, ours as the recipe is, without dropout of attention weights", None),
        ("recipe", "helped", f"batches of {usual}, both without dropout of attention weights", None),
    ):
        ratio, low, high = middle([a / b for a, b in zip(speed[mine], speed[peer], strict=True)])
        rows.append(
            Row(
                work=f"fine-tuning, {name}, {recipe.model.kind} of {recipe.model.d_model}",
                against=f"transformers' Trainer, {said}",
                ratio=ratio,
                low=low,
                high=high,
                target=target,
                unit_jumok=f"{np.median(speed[mine]):.0f} real pieces/s",
                unit_peer=f"{np.median(speed[peer]):.0f} real pieces/s",
            )
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("weights", type=Path, help="a run of `jumok import`")
    parser.add_argument("--rounds", type=int, default=6)
    given = parser.parse_args()
    if "JUMOK_DATA" not in os.environ:
        parser.error("JUMOK_DATA names the folder of sst2 and jnlpba")
    torch.set_num_threads(2)
    rows = [row for name in ("sst2", "jnlpba") for row in measure(name, given.weights, given.rounds)]
    write("finetuning", rows)


if __name__ == "__main__":
    main()
