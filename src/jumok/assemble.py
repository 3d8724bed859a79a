"""Recipe -> Run: the place where the parts are chosen and put together."""

import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from jumok.data.corpus import SPLITS, Corpus
from jumok.data.files import FileData, WindowedData
from jumok.data.made import SyntheticData, ToyGrammar, ToyStories, WindowedToy
from jumok.data.sources import DocumentData, ParallelData, TextData
from jumok.data.synthetic import Split
from jumok.errors import CheckpointError, RecipeError
from jumok.hub.folder import ModelFolder
from jumok.models import (
    Bert,
    BertClassifier,
    BertConfig,
    BertPretraining,
    BertRelation,
    BertTagger,
    Elmo,
    ElmoConfig,
    Gpt,
    GptConfig,
    Model,
    ModelConfig,
    RnnClassifier,
    RnnConfig,
    RnnLanguageModel,
    RnnTagger,
    Seq2Seq,
    Seq2SeqConfig,
    Transformer,
    TransformerConfig,
)
from jumok.prepare import AnyTask, cache_folder, prepare
from jumok.recipe import Recipe, parse_recipe, recipe_tree
from jumok.tasks.answering import AnsweringTask
from jumok.tasks.choice import ChoiceTask
from jumok.tasks.encoder import Encoder
from jumok.tasks.language_model import LanguageModelTask
from jumok.tasks.one_text import OneTextTask
from jumok.tasks.pretraining import PretrainingTask
from jumok.tasks.relation import NEAR, RelationTask
from jumok.tasks.translation import TranslationTask
from jumok.text.tokenizer import Tokenizers
from jumok.text.vectors import embeddings_from_vectors
from jumok.train.distributed import Group, join_group
from jumok.train.folder import RunFolder, refuse_other_recipe
from jumok.train.loop import Event, planned_steps, train
from jumok.train.optimizer import make_optimizer, peak_rate
from jumok.transfer import begin_with, give_features, read_start
from jumok.version import __version__

DROPPED = {"empty": "with an empty side", "too_long": "longer than data.max_len"}
# What may differ when a run goes on: it changes where and how, not what is learned.
HARMLESS = {"description", "published", "decode", "train.device", "train.threads", "train.tensorboard", "train.final"}
HARMLESS |= {"vectors.source", "vectors.target", "init", "features"}  # they are read once, at the beginning
HARMLESS |= {"data.train", "data.dev", "data.test", "data.when_changed"}  # what is in the files is compared by hash


@dataclass(frozen=True, slots=True)
class Run:
    """A recipe with its parts, ready to train."""

    recipe: Recipe
    folder: RunFolder
    group: Group
    task: AnyTask
    model: Model
    optimizer: torch.optim.Optimizer
    warnings: list[str]

    def train(self, interrupted: Callable[[], bool]) -> Iterator[Event]:
        return train(
            self.model,
            self.task,
            self.recipe.train,
            optimizer=self.optimizer,
            peak_rate=peak_rate(self.recipe.train.optimizer, d_model=self.recipe.model.d_model),
            checkpoints=self.folder.checkpoints,
            seed=self.recipe.seed,
            group=self.group,
            interrupted=interrupted,
        )

    def final_weights(self) -> dict[str, Tensor]:
        """What the recipe says the model is: a mean of checkpoints, the best one, or the last."""
        checkpoints, config = self.folder.checkpoints, self.recipe.train
        last = checkpoints.steps()[-1]
        match config.final:
            case "average":
                planned = planned_steps(checkpoints.steps(), config, last)
                return checkpoints.average(planned[-config.keep_last :])
            case "best":
                progress = json.loads((checkpoints.path(last) / "progress.json").read_text("utf-8"))
                return checkpoints.weights(progress["best_step"] or last)  # no evaluation was a number
            case "last":
                return checkpoints.weights(last)

    def before(self) -> Encoder | None:
        """The model as it was when its pre-training went on from `init`, with its own vocabulary."""
        if self.recipe.init is None or self.recipe.task.kind != "pretraining":
            return None
        start = read_start(self.recipe.init)
        torch.manual_seed(self.recipe.seed)
        model = build_model(self.recipe.model, asdict(self.recipe.task), **start.tokenizers.sizes, n_labels=0)
        assert isinstance(model, BertPretraining)
        begin_with(model, start, start.tokenizers.source)
        facts = {"task": asdict(self.recipe.task), "max_len": self.recipe.data.max_len}
        return Encoder(model.eval(), start.tokenizers.source, facts)

    def model_folder(self, temperature: float = 1.0, threshold: float = 0.0) -> ModelFolder:
        """The model to use, with what was found on dev: its outputs are divided by a temperature, if it was too sure,
        or not enough; an answer has to be better than none by a threshold."""
        facts: dict[str, Any] = {"version": __version__, "task": asdict(self.recipe.task)}
        facts["final"] = self.recipe.train.final
        if longest := self.task.train.facts.get("longest"):
            facts["longest"] = longest
        match self.recipe.data:
            case ParallelData() | SyntheticData() as data:
                facts |= {"source": data.source, "target": data.target, "decode": asdict(self.recipe.decode)}
                facts["lowercase"] = self.recipe.tokenizer.lowercase
            case WindowedData() | WindowedToy() as data:
                facts |= {"language": data.language, "labels": self.task.labels, "max_len": data.max_len}
                facts |= {"long_texts": {"rule": data.long_texts, "stride": data.stride}}
                facts |= self.task.facts if isinstance(self.task, OneTextTask) else {}
            case TextData() | ToyGrammar() as data:
                decode = asdict(self.recipe.decode)
                facts |= {"language": data.language, "max_len": data.max_len, "decode": decode}
            case DocumentData() | ToyStories() as data:
                facts |= {"language": data.language, "max_len": data.max_len}
                if self.recipe.task.kind == "language_model":
                    facts["decode"] = asdict(self.recipe.decode)
        weights = self.final_weights()
        if threshold:
            facts["threshold"] = threshold
        if temperature != 1.0:
            facts["temperature"] = temperature
            weights = scaled_output(weights, 1 / temperature)
        if "scale" in facts:  # a number is said as it is, not by its distance from the mean
            mean, deviation = facts.pop("scale")
            weights = scaled_output(weights, deviation, mean)
        return ModelFolder(self.recipe.model, weights, self.task.tokenizers, facts)


def scaled_output(weights: dict[str, Tensor], factor: float, shift: float = 0.0) -> dict[str, Tensor]:
    """A head whose outputs are multiplied and shifted: the model itself says what is meant, wherever it is opened."""
    weight, bias = weights["output.weight"] * factor, weights["output.bias"] * factor + shift
    return {**weights, "output.weight": weight, "output.bias": bias}


def assemble(recipe: Recipe, folder: RunFolder) -> Run:
    """Prepare the data (or find it prepared) and build everything that trains."""
    device = choose_device(recipe.train.device)
    if recipe.train.threads is not None:
        torch.set_num_threads(recipe.train.threads)
    group = join_group(device)
    if group.rank == 0:
        folder.lock()
        folder.mend_events()
    cache = cache_folder()
    fingerprints = {split: Corpus(recipe.data, split, seed=recipe.seed).fingerprint() for split in SPLITS}
    facts, warnings = _compare(folder, recipe, fingerprints, group) if group.rank == 0 else ({}, [])
    # The first process prepares, the others find it prepared.
    if group.rank > 0:
        group.barrier()
    task = prepare(recipe, cache)
    if group.rank == 0:
        _claim(folder, facts, task.tokenizers)
        group.barrier()
    warnings += _left_out(task)
    recipe = replace(recipe, train=recipe.train.resolved(lambda epoch: sum(1 for _ in task.batches(epoch))))
    torch.manual_seed(recipe.seed)
    sizes = {**task.tokenizers.sizes, "n_labels": task.width if isinstance(task, OneTextTask) else 0}
    model = build_model(recipe.model, asdict(recipe.task), **sizes).to(device)
    if recipe.init is not None and not folder.checkpoints.steps():
        warnings += begin_with(model, read_start(recipe.init), task.tokenizers.source, asdict(recipe.task), task.labels)
    if recipe.features is not None and not folder.checkpoints.steps():
        give_features(model, read_start(recipe.features))
    warnings += begin_with_vectors(model, recipe, task.tokenizers, read=not folder.checkpoints.steps())
    optimizer = make_optimizer(model, recipe.train.optimizer, recipe.train.transfer)
    return Run(recipe, folder, group, task, model, optimizer, warnings)


def _left_out(task: AnyTask) -> list[str]:
    """What became of training examples that are empty, too long, or marked where no piece ends."""
    counted = task.train.facts
    dropped = [f"{counted[k]:,} {words}" for k, words in DROPPED.items() if counted[k]]
    notes = [f"left out of {counted['read']:,} training examples: {', '.join(dropped)}"] if dropped else []
    if counted.get("long") and not isinstance(task, TranslationTask | LanguageModelTask | PretrainingTask):
        how = NEAR if isinstance(task, RelationTask) else None
        notes.append(f"{counted['long']:,} of {counted['read']:,} {task.long_texts.became(how)}")
    if isinstance(task, AnsweringTask | ChoiceTask) and counted.get("cut"):
        notes.append(f"{counted['cut']:,} of {counted['read']:,} {task.long_texts.became_cut(task.asked)}")
    if counted.get("inexact"):
        notes.append(f"{counted['inexact']:,} marks begin or end inside a piece: the whole piece gets their tag")
    return notes


def begin_with_vectors(model: Model, recipe: Recipe, tokenizers: Tokenizers, *, read: bool) -> list[str]:
    """Word vectors into the embeddings, unless a checkpoint will bring them; says how many words have one."""
    notes = []
    for side, file in (("source", recipe.vectors.source), ("target", recipe.vectors.target)):
        if file is None:
            continue
        name = "reader.embedding" if isinstance(recipe.model, RnnConfig) else f"{side}_embedding"
        weight = model.get_parameter(f"{name}.weight")
        if read:
            found = embeddings_from_vectors(Path(file), getattr(tokenizers, side), recipe.tokenizer, seed=recipe.seed)
            if found.report.dimension != weight.shape[1]:
                raise RecipeError(
                    f"the vectors have {found.report.dimension} values, model.d_embedding is {weight.shape[1]}",
                    where=file,
                    right=f"model.d_embedding = {found.report.dimension}",
                )
            with torch.no_grad():
                weight.copy_(torch.from_numpy(found.matrix))
            notes.append(f"{file}: {found.report}")
        weight.requires_grad_(not recipe.vectors.frozen)
    return notes


def build_model(
    config: ModelConfig, task: Mapping[str, Any], *, source_vocab: int, target_vocab: int, n_labels: int
) -> Model:
    """A model for a task, which is given as its config's tree: `kind`, and what else changes the model's shape."""
    match config:
        case TransformerConfig():
            return Transformer(config, source_vocab=source_vocab, target_vocab=target_vocab)
        case Seq2SeqConfig():
            return Seq2Seq(config, source_vocab=source_vocab, target_vocab=target_vocab)
        case BertConfig():
            match task["kind"]:
                case "pretraining":
                    return BertPretraining(config, vocab=source_vocab, next_sentence=task["next_sentence"])
                case "classification" | "choice":
                    return BertClassifier(config, vocab=source_vocab, n_labels=n_labels)
                case "tagging" | "answering":
                    return BertTagger(config, vocab=source_vocab, n_labels=n_labels, crf=task.get("crf", False))
                case "relation":
                    return BertRelation(config, vocab=source_vocab, n_labels=n_labels)
                case _:
                    return Bert(config, vocab=source_vocab, pooler=task["pooler"])
        case GptConfig():
            return Gpt(config, vocab=source_vocab)
        case ElmoConfig():
            return Elmo(config, vocab=source_vocab)
        case RnnConfig():
            match task["kind"]:
                case "classification" | "relation" | "choice":
                    return RnnClassifier(config, vocab=source_vocab, n_labels=n_labels)
                case "tagging" | "answering":
                    return RnnTagger(config, vocab=source_vocab, n_labels=n_labels, crf=task.get("crf", False))
                case _:
                    return RnnLanguageModel(config, vocab=source_vocab)


def choose_device(name: str) -> torch.device:
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not available.get(name, True):
        raise RecipeError(f"there is no {name} here", where="train.device", right='"auto" or "cpu"')
    if name not in ("auto", "cuda"):
        return torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _compare(
    folder: RunFolder, recipe: Recipe, fingerprints: dict[Split, str], group: Group
) -> tuple[dict[str, Any], list[str]]:
    """What recipe.json is to hold, and what has changed harmlessly; a folder that is not ours is refused."""
    tree = recipe_tree(recipe)
    facts = {
        "recipe": tree,
        "data": fingerprints,
        "jumok": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "processes": group.world,
    }
    stored = folder.stored()
    if folder.scores.exists() and not folder.checkpoints.steps():
        raise CheckpointError(
            "the run has finished and its checkpoints are gone: there is nothing to go on from",
            where=folder.path,
            right="jumok evaluate or predict with its model, or another --out to train anew",
        )
    if stored is None or not folder.checkpoints.steps():  # nothing has been trained that could be lost
        return facts, []
    # Read anew, so that keys that the recipe did not have yet have their defaults.
    begun = recipe_tree(parse_recipe(stored["recipe"], where=str(folder.recipe)))
    refuse_other_recipe(_what_is_learned(begun), _what_is_learned(tree), where=folder.path)
    accept = isinstance(recipe.data, FileData) and recipe.data.when_changed == "accept"
    changed = [split for split in fingerprints if stored["data"].get(split) != fingerprints[split]]
    if changed and not accept:
        raise CheckpointError(
            f"the data has changed since the run began: {', '.join(changed)}",
            where=folder.path,
            right="the data it began with, another --out, or --set data.when_changed=accept to go on all the same"
            if isinstance(recipe.data, FileData)
            else "the version of jumok that it began with, or another --out",
        )
    kept = {**stored, "data": fingerprints, "recipe": tree}
    return kept, [
        f"{name} was {stored.get(name)} when the run began and is {facts[name]}: the result may differ in its last bits"
        for name in ("jumok", "torch", "threads", "processes")
        if stored.get(name) != facts[name]
    ]


def _claim(folder: RunFolder, facts: dict[str, Any], tokenizers: Tokenizers) -> None:
    """Write recipe.json, once nothing speaks against it; weights mean nothing with another vocabulary."""
    hashes = [tokenizers.source.sha256, tokenizers.target.sha256]
    if folder.checkpoints.steps() and (facts.get("tokenizers") or hashes) != hashes:
        raise CheckpointError(
            "the tokenizer does not fit the checkpoint: the changed data gives another vocabulary",
            where=folder.path,
            right="the training data that the run began with, or another --out",
        )
    folder.store({**facts, "tokenizers": hashes})


def _what_is_learned(tree: dict[str, Any], path: str = "") -> dict[str, Any]:
    """A recipe's tree without what is harmless to change."""
    return {
        key: _what_is_learned(value, f"{path}{key}.") if isinstance(value, dict) else value
        for key, value in tree.items()
        if path + key not in HARMLESS
    }
