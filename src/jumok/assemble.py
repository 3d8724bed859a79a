"""Recipe -> Run: the place where the parts are chosen and put together."""

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

from jumok.data.corpus import Corpus, ParallelData, Split, open_shards
from jumok.errors import CheckpointError, DataError, RecipeError
from jumok.hub.folder import ModelFolder
from jumok.models.transformer import Transformer
from jumok.recipe import Recipe, recipe_tree
from jumok.tasks.translation import Tokenizers, TranslationTask
from jumok.text.formats import Pair
from jumok.text.tokenizer import Tokenizer, TokenizerConfig
from jumok.train.distributed import Group, join_group
from jumok.train.folder import RunFolder, refuse_other_recipe
from jumok.train.loop import Event, planned_steps, train
from jumok.train.optimizer import make_optimizer, peak_rate
from jumok.version import __version__

CACHE_FOLDER = "JUMOK_CACHE"


@dataclass(frozen=True, slots=True)
class Run:
    """A recipe with its parts, ready to train."""

    recipe: Recipe
    folder: RunFolder
    group: Group
    task: TranslationTask
    model: Transformer
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
    splits: tuple[Split, ...] = ("train", "dev", "test")
    corpora = {split: Corpus(recipe.data, split, seed=recipe.seed) for split in splits}
    if group.rank == 0:
        folder.lock()
        folder.mend_events()
    fingerprints = {split: corpus.fingerprint() for split, corpus in corpora.items()}
    facts, warnings = _compare(folder, recipe, fingerprints, group) if group.rank == 0 else ({}, [])
    # The first process prepares, the others find it prepared.
    if group.rank > 0:
        group.barrier()
    cache = cache_folder()
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
    dropped = {k: shards.facts[k] for k in ("empty", "too_long") if shards.facts[k]}
    if dropped:
        warnings.append(f"of {shards.facts['read']} training pairs {dropped} were left out")
    torch.manual_seed(recipe.seed)
    model = build_model(recipe, tokenizers).to(device)
    task = TranslationTask(
        recipe.task,
        tokenizers=tokenizers,
        train=shards,
        dev=read_split(corpora["dev"]),
        batch_tokens=recipe.train.batch_tokens,
        seed=recipe.seed,
    )
    return Run(recipe, folder, group, task, model, make_optimizer(model, recipe.train.optimizer), warnings)


def build_model(recipe: Recipe, tokenizers: Tokenizers) -> Transformer:
    return Transformer(
        recipe.model,
        source_vocab=tokenizers.source.vocab_size,
        target_vocab=tokenizers.target.vocab_size,
    )


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
        key = json.dumps([__version__, asdict(config), side, fingerprint])
        path = cache / "tokenizers" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
        if path.exists():
            return Tokenizer.load(path)
        try:
            tokenizer = Tokenizer.train(config, corpus.texts(side))
        except DataError as error:
            raise DataError(error.what, where=error.where or corpus.name, right=error.right) from error
        path.parent.mkdir(parents=True, exist_ok=True)
        building = path.with_suffix(f".tmp-{os.getpid()}")
        building.write_text(tokenizer.to_json(), "utf-8")
        building.replace(path)
        return tokenizer

    if config.joint:
        joint = prepare("both")
        return Tokenizers(joint, joint)
    return Tokenizers(prepare("source"), prepare("target"))


def cache_folder() -> Path:
    """Prepared data that runs share: $JUMOK_CACHE, or jumok's place in the user's cache."""
    own = os.environ.get(CACHE_FOLDER)
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jumok"


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
    if stored is None or not folder.checkpoints.steps():  # nothing has been trained that could be lost
        return facts, []
    # Where the files lie may change, and so may what to do about it; what is in them is compared by hash.
    refuse_other_recipe(_without_paths(stored["recipe"]), _without_paths(tree), where=folder.path)
    accept = isinstance(recipe.data, ParallelData) and recipe.data.when_changed == "accept"
    changed = [split for split in fingerprints if stored["data"].get(split) != fingerprints[split]]
    if changed and not accept:
        raise CheckpointError(
            f"the data has changed since the run began: {', '.join(changed)}",
            where=folder.path,
            right="the data it began with, another --out, or --set data.when_changed=accept to go on all the same",
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


def _without_paths(tree: dict[str, Any]) -> dict[str, Any]:
    data = {k: v for k, v in tree["data"].items() if k not in ("train", "dev", "test", "when_changed")}
    return {**tree, "data": data}
