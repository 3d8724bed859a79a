"""Which layers learn, from when on and how fast: the head first, lower layers later or more slowly."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.models.bert import BertConfig
from jumok.models.bert_heads import BertClassifier, BertRelation, BertTagger
from jumok.models.gpt import Gpt, GptConfig
from jumok.models.rnn import RnnClassifier, RnnConfig, RnnTagger
from jumok.models.weights import unique_tensors
from jumok.train.checkpoint import Checkpoints
from jumok.train.layers import Layers, TransferConfig, depths
from jumok.train.loop import Event, Loss, Step, TrainConfig, train
from jumok.train.optimizer import OptimizerConfig, make_optimizer

BERT = BertConfig(d_model=8, d_ff=8, n_heads=2, n_layers=3, max_len=12, dropout=0.1)
ADAM = OptimizerConfig(kind="adamw", schedule="constant", learning_rate=0.01, warmup=0, weight_decay=0.1, clip_norm=1.0)
CONFIG = TrainConfig(steps=12, optimizer=ADAM, evaluate_every=100, save_every=100)


def bert(seed: int = 0) -> BertClassifier:
    torch.manual_seed(seed)
    return BertClassifier(BERT, vocab=20, n_labels=3)


@dataclass(frozen=True)
class Batch:
    ids: Tensor
    labels: Tensor
    count: int


class Toy:
    """Random texts with labels."""

    losses = ("cross_entropy",)

    def batches(self, epoch: int) -> Iterator[npt.NDArray[np.int64]]:
        yield from np.random.default_rng(epoch).permutation(20).reshape(5, 4)

    def batch(self, examples: npt.NDArray[np.int64]) -> Batch:
        generator = torch.Generator().manual_seed(1)
        ids, labels = torch.randint(0, 20, (20, 6), generator=generator), torch.arange(20) % 3
        return Batch(ids[examples], labels[examples], len(examples))

    def name(self, examples: npt.NDArray[np.int64]) -> str:
        return str(examples)

    def loss(self, model: nn.Module, batch: Batch, *, done: float) -> Loss:
        logits = model(batch.ids, torch.zeros_like(batch.ids), torch.ones_like(batch.ids, dtype=torch.bool))
        return Loss(F.cross_entropy(logits, batch.labels, reduction="sum"), batch.count)

    def evaluate(self, model: nn.Module, *, done: Callable[[int], None]) -> dict[str, float]:
        return {"perplexity": 1.0}


@dataclass
class Ran:
    model: nn.Module
    snapshots: list[dict[str, Tensor]]
    """before the first step, and after each"""
    losses: list[float]
    optimizer: torch.optim.Optimizer

    def changed(self, step: int) -> set[str]:
        before, after = self.snapshots[step - 1], self.snapshots[step]
        return {name for name in before if not torch.equal(before[name], after[name])}


def run(
    folder: Path, transfer: TransferConfig, *, stop_at: int | None = None, kill_at: int | None = None, steps: int = 12
) -> Ran:
    model = bert()
    config = replace(CONFIG, transfer=transfer, steps=steps)
    optimizer = make_optimizer(model, config.optimizer, config.transfer)
    snapshots, losses = [snapshot(model)], list[float]()
    events: Iterator[Event] = train(
        model,
        Toy(),
        config,
        optimizer=optimizer,
        peak_rate=0.01,
        checkpoints=Checkpoints(folder),
        seed=3,
        interrupted=lambda: len(losses) == stop_at,
    )
    for event in events:
        if isinstance(event, Step):
            snapshots.append(snapshot(model))
            losses.append(event.loss)
            if event.step == kill_at:
                break
    return Ran(model, snapshots, losses, optimizer)


def snapshot(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in unique_tensors(model).items()}


# depths


@pytest.mark.parametrize(
    "model",
    [
        BertClassifier(BERT, vocab=20, n_labels=3),
        BertTagger(BERT, vocab=20, n_labels=3, crf=True),
        BertRelation(BERT, vocab=20, n_labels=3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_depths_of_bert(model: nn.Module) -> None:
    found = depths(model)
    assert found.keys() == dict(model.named_parameters()).keys()
    for name, depth in found.items():
        if name.startswith("bert.stack.layers."):
            assert depth == int(name.split(".")[3]) + 1, name
        elif name.startswith(("bert.embedding", "bert.positions", "bert.segments", "bert.norm")):
            assert depth == 0, name
        else:  # the pooler, too, is about the task
            assert depth == 4, name
    assert set(found.values()) == {0, 1, 2, 3, 4}


def test_the_depths_of_gpt() -> None:
    model = Gpt(GptConfig(d_model=8, d_ff=8, n_heads=2, n_layers=2, max_len=12), vocab=20)
    found = depths(model)
    assert {name for name, depth in found.items() if depth == 0} == {"embedding.weight", "positions.embedding.weight"}
    assert {name.split(".")[2] for name, depth in found.items() if depth == 1} == {"0"}
    assert {name.split(".")[2] for name, depth in found.items() if depth == 2} == {"1"}
    assert {name for name, depth in found.items() if depth == 3} == {"stack.final_norm.weight", "stack.final_norm.bias"}


@pytest.mark.parametrize("bidirectional", [False, True])
def test_the_depths_of_a_recurrent_model(bidirectional: bool) -> None:
    config = RnnConfig(d_embedding=4, d_hidden=4, n_layers=2, bidirectional=bidirectional, pool="attention")
    for model in (RnnClassifier(config, vocab=9, n_labels=2), RnnTagger(config, vocab=9, n_labels=2, crf=True)):
        found = depths(model)
        assert found["reader.embedding.weight"] == 0
        for name, depth in found.items():
            if name.startswith("reader.layers."):
                assert depth == int(name.split(".")[3]) + 1, name
            elif name != "reader.embedding.weight":
                assert depth == 3, name


# what learns


def test_everything_learns_from_the_first_step(tmp_path: Path) -> None:
    ran = run(tmp_path, TransferConfig(), steps=2)
    assert ran.changed(1) == ran.changed(2) == set(ran.snapshots[0])


def test_a_frozen_body_stays_as_it_is_while_the_head_learns(tmp_path: Path) -> None:
    ran = run(tmp_path, TransferConfig(mode="frozen"), steps=6)
    head = {"bert.pooler.weight", "bert.pooler.bias", "output.weight", "output.bias"}
    for step in range(1, 7):
        assert ran.changed(step) == head
    assert all(torch.equal(ran.snapshots[0][name], ran.snapshots[6][name]) for name in ran.snapshots[0].keys() - head)


def test_one_layer_more_learns_every_few_steps(tmp_path: Path) -> None:
    ran = run(tmp_path, TransferConfig(mode="gradual", unfreeze_every=2))
    found = depths(ran.model)
    for step in range(1, 13):
        lowest = max(4 - (step - 1) // 2, 0)
        assert ran.changed(step) == {name for name, depth in found.items() if depth >= lowest}, step


def test_what_is_frozen_for_good_stays_so() -> None:
    model = bert()
    model.bert.embedding.weight.requires_grad_(False)
    layers = Layers(model, TransferConfig(mode="gradual", unfreeze_every=1))
    layers.at(100)
    learning = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert learning == dict(model.named_parameters()).keys() - {"bert.embedding.weight"}
    layers.at(1)
    assert [name for name, parameter in model.named_parameters() if parameter.requires_grad] == [
        "bert.pooler.weight",
        "bert.pooler.bias",
        "output.weight",
        "output.bias",
    ]


# how fast


@pytest.mark.parametrize("decay", [1.0, 0.5, 0.9])
def test_each_layer_learns_more_slowly_than_the_one_above(decay: float, tmp_path: Path) -> None:
    ran = run(tmp_path, TransferConfig(layer_decay=decay), steps=1)
    names = {id(parameter): name for name, parameter in ran.model.named_parameters()}
    found, rates = depths(ran.model), dict[str, float]()
    for group in ran.optimizer.param_groups:
        for parameter in group["params"]:
            rates[names[id(parameter)]] = group["lr"]
            assert group["weight_decay"] == (0.1 if parameter.ndim > 1 else 0.0)
    assert rates.keys() == found.keys()
    for name, depth in found.items():
        assert rates[name] == pytest.approx(0.01 * decay ** (4 - depth)), name


def test_a_step_is_as_long_as_its_rate(tmp_path: Path) -> None:
    """The first step of Adam is the learning rate, whatever the gradient."""
    ran = run(tmp_path, TransferConfig(layer_decay=0.5), steps=1)
    for name, rate in (
        ("output.bias", 0.01),
        ("bert.stack.layers.2.feed_norm.bias", 0.005),
        ("bert.norm.bias", 0.01 / 16),
    ):
        step = (ran.snapshots[1][name] - ran.snapshots[0][name]).abs()
        assert float(step.max()) == pytest.approx(rate, rel=1e-3), name


# going on


@pytest.mark.parametrize("at", [1, 2, 3, 5, 8, 11])
@pytest.mark.parametrize(
    "transfer",
    [
        TransferConfig(mode="gradual", unfreeze_every=2),
        TransferConfig(mode="gradual", unfreeze_every=3, layer_decay=0.7),
        TransferConfig(mode="frozen"),
    ],
    ids=["gradual", "gradual and slower", "frozen"],
)
def test_going_on_is_as_if_it_had_never_stopped(transfer: TransferConfig, at: int, tmp_path: Path) -> None:
    whole = run(tmp_path / "whole", transfer)
    first = run(tmp_path / "parts", transfer, stop_at=at)
    assert len(first.losses) == at
    second = run(tmp_path / "parts", transfer)
    assert first.losses + second.losses == whole.losses
    for name, tensor in whole.snapshots[-1].items():
        assert torch.equal(second.snapshots[-1][name], tensor), name
    files = [(tmp_path / folder / "step-12/optimizer.safetensors").read_bytes() for folder in ("whole", "parts")]
    assert files[0] == files[1]


def test_killed_is_uninterrupted_too(tmp_path: Path) -> None:
    transfer = TransferConfig(mode="gradual", unfreeze_every=2)
    whole = run(tmp_path / "whole", transfer)
    run(tmp_path / "parts", transfer, stop_at=4)
    run(tmp_path / "parts", transfer, kill_at=7)
    again = run(tmp_path / "parts", transfer)
    assert again.losses == whole.losses[4:]
    assert all(torch.equal(again.snapshots[-1][name], tensor) for name, tensor in whole.snapshots[-1].items())
