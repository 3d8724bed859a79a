"""Recipe -> Run: the place where the parts are chosen and put together."""

import errno
import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from jumok.data.corpus import SPLITS, Corpus, ParallelData, Split, open_shards
from jumok.errors import CheckpointError, DataError, InputError, RecipeError
from jumok.hub.folder import ModelFolder
from jumok.models import EncoderDecoder, EncoderDecoderConfig, Seq2Seq, Seq2SeqConfig, Transformer, TransformerConfig
from jumok.recipe import Recipe, recipe_tree
from jumok.tasks.translation import Tokenizers, TranslationTask
from jumok.text.formats import Pair
from jumok.text.tokenizer import TRAINER, Tokenizer, TokenizerConfig
from jumok.train.checkpoint import write_atomically
from jumok.train.distributed import Group, join_group
from jumok.train.folder import RunFolder, refuse_other_recipe
from jumok.train.loop import Event, planned_steps, train
from jumok.train.optimizer import make_optimizer, peak_rate
from jumok.version import __version__

CACHE_FOLDER = "JUMOK_CACHE"
DROPPED = {"empty": "with an empty side", "too_long": "longer than data.max_len"}
# What may differ when a run goes on: it changes where and how, not what is learned.
HARMLESS = {"description", "published", "decode", "train.device", "train.threads", "train.tensorboard"}
HARMLESS |= {"data.train", "data.dev", "data.test", "data.when_changed"}  # what is in the files is compared by hash


@dataclass(frozen=True, slots=True)
class Run:
    """A recipe with its parts, ready to train."""

    recipe: Recipe
    folder: RunFolder
    group: Group
    task: TranslationTask
    model: EncoderDecoder
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

    def model_folder(self) -> ModelFolder:
        facts = {
            "version": __version__,
            "task": asdict(self.recipe.task),
            "source": self.recipe.data.source,
            "target": self.recipe.data.target,
            "decode": asdict(self.recipe.decode),
        }
        tokenizers = self.task.tokenizers
        return ModelFolder(self.recipe.model, self.final_weights(), tokenizers.source, tokenizers.target, facts)


def assemble(recipe: Recipe, folder: RunFolder) -> Run:
    """Prepare the data (or find it prepared) and build everything that trains."""
    device = choose_device(recipe.train.device)
    if recipe.train.threads is not None:
        torch.set_num_threads(recipe.train.threads)
    group = join_group(device)
    corpora = {split: Corpus(recipe.data, split, seed=recipe.seed) for split in SPLITS}
    if group.rank == 0:
        folder.lock()
        folder.mend_events()
    cache = cache_folder()
    fingerprints = {split: corpus.fingerprint() for split, corpus in corpora.items()}
    facts, warnings = _compare(folder, recipe, fingerprints, group) if group.rank == 0 else ({}, [])
    # The first process prepares, the others find it prepared.
    if group.rank > 0:
        group.barrier()
    tokenizers = prepare_tokenizers(recipe.tokenizer, corpora["train"], fingerprints["train"], cache)
    if group.rank == 0:
        _claim(folder, facts, tokenizers)
    shards = open_shards(
        corpora["train"],
        source=tokenizers.source,
        target=tokenizers.target,
        cache=cache,
        fingerprint=fingerprints["train"],
    )
    if group.rank == 0:
        group.barrier()
    dropped = [f"{shards.facts[k]:,} {words}" for k, words in DROPPED.items() if shards.facts[k]]
    if dropped:
        warnings.append(f"left out of {shards.facts['read']:,} training pairs: {', '.join(dropped)}")
    _refuse_too_long(recipe, tokenizers, corpora)
    torch.manual_seed(recipe.seed)
    model = build_model(recipe.model, **tokenizers.sizes).to(device)
    task = TranslationTask(
        recipe.task,
        tokenizers=tokenizers,
        train=shards,
        dev=read_split(corpora["dev"]),
        target_language=recipe.data.target,
        batch_tokens=recipe.train.batch_tokens,
        seed=recipe.seed,
    )
    return Run(recipe, folder, group, task, model, make_optimizer(model, recipe.train.optimizer), warnings)


def _refuse_too_long(recipe: Recipe, tokenizers: Tokenizers, corpora: dict[Split, Corpus]) -> None:
    """Training leaves long pairs out; a held-out one is scored, so that learned positions have to reach its end."""
    room = recipe.model.longest
    for split, corpus in corpora.items():
        if room is None or split == "train":
            continue
        for pair in corpus:
            pieces = max(len(tokenizers.encode_source(pair.source)), len(tokenizers.encode_target(pair.target)))
            if pieces >= room:
                raise DataError(
                    f"a pair has {pieces} pieces; the model learns {room} positions",
                    where=pair.where,
                    right=f'model.max_len of at least {pieces + 1}, or model.positions = "sinusoidal"',
                )


def build_model(config: EncoderDecoderConfig, *, source_vocab: int, target_vocab: int) -> EncoderDecoder:
    match config:
        case TransformerConfig():
            return Transformer(config, source_vocab=source_vocab, target_vocab=target_vocab)
        case Seq2SeqConfig():
            return Seq2Seq(config, source_vocab=source_vocab, target_vocab=target_vocab)


def read_split(corpus: Corpus) -> list[Pair]:
    pairs = list(corpus)
    if not pairs:
        raise DataError(
            f"the recipe has no {corpus.split} data, or its files are empty",
            where=corpus.name or f"data.{corpus.split}",
            right=f"data.{corpus.split} with at least one pair",
        )
    return pairs


def prepare_tokenizers(config: TokenizerConfig, corpus: Corpus, fingerprint: str, cache: Path) -> Tokenizers:
    """Trained on the training text once; the cache knows them by text and config."""

    def prepare(side: Any) -> Tokenizer:
        key = json.dumps([__version__, TRAINER, asdict(config), side, fingerprint])
        path = cache / "tokenizers" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
        if path.exists():
            return Tokenizer.load(path)
        try:
            tokenizer = Tokenizer.train(config, corpus.texts(side))
        except DataError as error:
            raise DataError(error.what, where=error.where or corpus.name, right=error.right) from error
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, tokenizer.to_json())
        return tokenizer

    if config.joint:
        joint = prepare("both")
        return Tokenizers(joint, joint)
    return Tokenizers(prepare("source"), prepare("target"))


def cache_folder() -> Path:
    """Prepared data that runs share: $JUMOK_CACHE, or jumok's place in the user's cache."""
    own = os.environ.get(CACHE_FOLDER)
    folder = Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jumok"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, "no permission to write")
    except OSError as error:
        raise InputError(
            f"the folder for prepared data cannot be used: {error.strerror}",
            where=folder,
            right=f"the environment variable {CACHE_FOLDER} set to a folder that can be written",
        ) from error
    return folder


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
    refuse_other_recipe(_what_is_learned(stored["recipe"]), _what_is_learned(tree), where=folder.path)
    accept = isinstance(recipe.data, ParallelData) and recipe.data.when_changed == "accept"
    changed = [split for split in fingerprints if stored["data"].get(split) != fingerprints[split]]
    if changed and not accept:
        raise CheckpointError(
            f"the data has changed since the run began: {', '.join(changed)}",
            where=folder.path,
            right="the data it began with, another --out, or --set data.when_changed=accept to go on all the same"
            if isinstance(recipe.data, ParallelData)
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
