"""Recipe -> Run: choose the parts and put them together."""

import platform
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from jumok.data.cache import Cache
from jumok.data.corpus import Corpus
from jumok.engines import Done, nobody
from jumok.engines.torch import TorchEngine, choose_device
from jumok.errors import CheckpointError, RecipeError
from jumok.examples import SPLITS
from jumok.hub.folder import ModelFolder
from jumok.memory import available_memory, gibibytes
from jumok.models.build import Model, build_model
from jumok.models.rnn import RnnConfig
from jumok.planning import extended, extension, plan_minutes
from jumok.recipe import Recipe, parse_recipe, recipe_tree
from jumok.show import cost
from jumok.tasks.stored import read_start, store_outline
from jumok.tasks.unfinished import final_model
from jumok.text.tokenizer import Tokenizers
from jumok.text.vectors import embeddings_from_vectors
from jumok.threads import Threads
from jumok.train import rehearsal
from jumok.train.distributed import Group
from jumok.train.folder import RunFolder, refuse_other_recipe
from jumok.train.length import Extended, Planned, Stretch, stretches, with_plan
from jumok.train.loop import Event, Interrupted, TrainConfig, train
from jumok.train.optimizer import make_optimizer, peak_rate
from jumok.train.samples import Sample, Sampled, answers, chosen, with_samples
from jumok.transfer import begin_with, give_features
from jumok.version import __version__

# Keys that may differ when a run resumes: they change where, how and how long it trains, not what it learns.
HARMLESS = {"description", "published", "decode", "train.device", "train.threads", "train.tensorboard", "train.final"}
HARMLESS |= {"train.watchdog", "engine.max_loss", "train.steps", "train.epochs", "train.minutes"}
HARMLESS |= {"vectors.source", "vectors.target", "init", "features"}  # they are read once, at the beginning
SOFTER = {f"train.optimizer.{key}" for key in ("learning_rate", "warmup", "clip_norm")}  # after a divergence
HARMLESS |= {"data.train", "data.dev", "data.test", "data.when_changed"}  # what is in the files is compared by hash


@dataclass(frozen=True, slots=True)
class Run:
    """A recipe with its parts, ready to train."""

    recipe: Recipe
    folder: RunFolder
    group: Group
    task: Any
    """the prepared task: batches, loss, evaluation"""
    model: Model
    optimizer: torch.optim.Optimizer
    notes: list[str]
    threads: Threads
    fingerprints: Mapping[str, str]
    """of the data that it was prepared from"""
    since: int
    """the step at which it was last decided when to end"""
    news: Sequence[Planned | Extended]
    """what was decided just now"""

    def require_same_data(self, now: Mapping[str, str]) -> None:
        """Refuse to score data that changed while the run was trained."""
        changed = [split for split, sha256 in now.items() if self.fingerprints[split] != sha256]
        if changed:
            raise _data_changed(changed, self.folder.path, in_files=not self.recipe.data.is_made)

    def train(self, interrupted: Callable[[], bool] = lambda: False) -> Iterator[Event | Sampled]:
        events = train(
            self.model,
            self.task,
            self.recipe.train,
            optimizer=self.optimizer,
            peak_rate=peak_rate(self.recipe.train.optimizer, d_model=self.recipe.model.d_model),
            checkpoints=self.folder.checkpoints,
            seed=self.recipe.seed,
            group=self.group,
            interrupted=interrupted,
            threads=self.threads,
            since=self.since,
        )
        return with_samples(events, lambda: self.samples(interrupted), every=int(self.recipe.train.evaluate_every))

    def samples(self, interrupted: Callable[[], bool]) -> list[Sample]:
        """What the model answers to a few dev examples as it is now; none if it is asked to stop meanwhile."""
        if self.group.rank != 0 or not (examples := chosen(getattr(self.task, "dev", None))):
            return []

        def heard(_: int) -> None:
            self.group.working()
            if interrupted():
                raise Interrupted

        kind, tokenizers = self.recipe.kind, self.task.tokenizers
        engine = TorchEngine([self.model.eval()], tokenizers, between=heard)
        try:
            return answers(kind.predictor(engine, tokenizers, asdict(self.recipe.task), self.task.facts), examples)
        except Interrupted:
            return []

    def outline(self, **found: Any) -> ModelFolder:
        """The model without its weights, with facts found on dev."""
        config = self.recipe.train
        facts: dict[str, Any] = {"version": __version__, "task": asdict(self.recipe.task), "final": config.final}
        facts |= {"steps": config.steps, "save_every": config.save_every}
        facts |= asdict(replace(self.task.facts, **found))
        return ModelFolder(self.recipe.model, {}, self.task.tokenizers, facts)

    def model_folder(self, *, ended: bool = False, **found: Any) -> ModelFolder:
        """The model that `train.final` selects, with facts found on dev. If the run was `ended` before its time, it is
        made of the checkpoints that are good."""
        return final_model(self.folder, self.recipe.train, self.outline(**found), ended=ended)

    def before(self, between: Done = nobody) -> Any:
        """A predictor with the initial weights and their own vocabulary; None without init, or if the task does not
        score them."""
        if self.recipe.init is None or not self.recipe.kind.adapts:
            return None
        kind, config, start = self.recipe.kind, asdict(self.recipe.task), read_start(self.recipe.init)
        torch.manual_seed(self.recipe.seed)
        facts = self.task.facts
        model = build_model(self.recipe.model, kind.head(config, facts), **start.tokenizers.sizes)
        begin_with(model, start, start.tokenizers.source)
        return kind.predictor(TorchEngine([model.eval()], start.tokenizers, between), start.tokenizers, config, facts)


def assemble(
    recipe: Recipe, folder: RunFolder, group: Group | None = None, poll: Callable[[], None] = lambda: None
) -> Run:
    """Prepare the data, or find it in the cache, and build everything that trains; `poll` may raise to stop it."""
    since = rehearsal.clock()
    device = choose_device(recipe.train.device)
    threads = Threads(recipe.train.threads, torch.set_num_threads)
    group = group or Group(device=device)
    if group.rank == 0:
        folder.lock()
        folder.mend_events()
    cache = Cache.of_user(poll)
    fingerprints: dict[str, str] = {
        split: Corpus(recipe.data, split, seed=recipe.seed).fingerprint() for split in SPLITS
    }
    facts, begun, notes = _compare(folder, recipe, fingerprints, group) if group.rank == 0 else ({}, None, [])
    with group.first_before_others():  # the others find the data in the cache
        begins = not folder.checkpoints.steps()
        task = recipe.kind.prepare(recipe, cache, fresh=begins)

        def epoch_lengths(epoch: int) -> int:
            return sum(1 for _ in task.batches(epoch))

        news: list[Planned | Extended] = []
        if group.rank == 0:
            before = plan = stretches(facts)
            if begun is not None:
                plan = extended(facts, begun, recipe.train, folder, epoch_lengths)
            elif not plan and recipe.train.minutes is None:
                plan = [Stretch(0, recipe.train.counted(epoch_lengths))]
            if len(plan) > max(len(before), 1):
                news.append(extension(plan, recipe.train, d_model=recipe.model.d_model))
                # The model and its scores are of an earlier end, until they are made anew.
                facts = {**facts, "scored": facts.get("scored", plan[-1].since)}
            _claim(folder, with_plan(facts, plan), task.tokenizers)
    notes += task.notes()
    torch.manual_seed(recipe.seed)
    head = recipe.kind.head(asdict(recipe.task), task.facts)
    _refuse_too_large(recipe, task.tokenizers, device)
    model = build_model(recipe.model, head, **task.tokenizers.sizes).to(device)
    if recipe.init is not None and begins:
        labels = getattr(task.facts, "labels", [])
        notes += begin_with(model, read_start(recipe.init), task.tokenizers.source, asdict(recipe.task), labels)
    if recipe.features is not None and begins:
        give_features(model, read_start(recipe.features))
    notes += begin_with_vectors(model, recipe, task.tokenizers, read=begins)
    optimizer = make_optimizer(model, recipe.train.optimizer, recipe.train.transfer)
    plan = stretches(folder.stored() or {})
    if not plan and (minutes := recipe.train.minutes) is not None:
        parts = {"task": task, "model": model, "optimizer": optimizer, "group": group}
        planned = plan_minutes(recipe, minutes, **parts, poll=poll, since=since)
        plan, news = [Stretch(0, planned.steps)], [planned]
        with group.first_before_others():
            if group.rank == 0:
                folder.store(with_plan(folder.stored() or {}, plan))
    config = recipe.train.resolved(plan[-1].steps, shares_of=plan[0].steps)
    if config.optimizer.warmup >= config.steps:
        notes.append(_unfinished_warmup(config))
    recipe = replace(recipe, train=config)
    decided = (plan[-1].since, news)
    run = Run(recipe, folder, group, task, model, optimizer, notes, threads, fingerprints, *decided)
    if group.rank == 0:
        store_outline(folder.path, run.outline())
    return run


def _unfinished_warmup(config: TrainConfig) -> str:
    optimizer = config.optimizer
    return (
        f"train.optimizer.warmup = {optimizer.warmup:,} is not shorter than the training of {config.steps:,} steps:"
        f" the learning rate only rises, to {config.steps / optimizer.warmup:.0%} of its peak; a share, such as"
        " warmup = 0.1, follows the number of steps"
    )


def _refuse_too_large(recipe: Recipe, tokenizers: Tokenizers, device: torch.device) -> None:
    """Refuse a model that could not be trained here: an allocation that fails later ends in a crash, or in a kill."""
    needed = cost(recipe, **tokenizers.sizes).training_bytes
    there = torch.cuda.get_device_properties(device).total_memory if device.type == "cuda" else available_memory()
    if needed > there:
        raise RecipeError(
            f"the model is too large: its weights, gradients and moments need {gibibytes(needed)},"
            f" and {gibibytes(there)} are available",
            where="model",
            hint="reduce the sizes in [model] or tokenizer.vocab_size; `jumok show` counts the parameters of each part",
            code="recipe.too_large",
        )


def begin_with_vectors(model: Model, recipe: Recipe, tokenizers: Tokenizers, *, read: bool) -> list[str]:
    """Copy word vectors into the embeddings, unless a checkpoint brings them; notes how many words have one."""
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
                    f"the vectors have {found.report.dimension} dimensions, but model.d_embedding is {weight.shape[1]}",
                    where=file,
                    hint=f"set model.d_embedding = {found.report.dimension}",
                    code="recipe.vector_size",
                )
            with torch.no_grad():
                weight.copy_(torch.from_numpy(found.matrix))
            notes.append(f"{file}: {found.report}")
        weight.requires_grad_(not recipe.vectors.frozen)
    return notes


def _compare(
    folder: RunFolder, recipe: Recipe, fingerprints: dict[str, str], group: Group
) -> tuple[dict[str, Any], TrainConfig | None, list[str]]:
    """The contents of recipe.json, how the run was trained so far, and notes on harmless changes; refuses the folder
    of another run."""
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
            "the run has finished and its checkpoints are gone, so it cannot resume",
            where=folder.path,
            hint="use its model with jumok evaluate or predict, or train again with another --out",
            code="checkpoint.no_checkpoints",
        )
    if stored is None or not folder.checkpoints.steps():  # no training that could be lost
        if stored is not None and all(stored.get(key) == facts[key] for key in ("recipe", "data", "processes")):
            facts = with_plan(facts, stretches(stored))  # killed before the first checkpoint
        return facts, None, []
    # Parsed again, so that keys added to jumok since then have their defaults.
    before = parse_recipe(stored["recipe"], where=str(folder.recipe))
    begun = recipe_tree(before)
    may_differ = HARMLESS | (SOFTER if folder.has_diverged() else set())
    refuse_other_recipe(_what_is_learned(begun, may_differ), _what_is_learned(tree, may_differ), where=folder.path)
    in_files = not recipe.data.is_made
    accept = in_files and recipe.data.when_changed == "accept"
    changed = [split for split in fingerprints if stored["data"].get(split) != fingerprints[split]]
    if changed and not accept:
        raise _data_changed(changed, folder.path, in_files=in_files)
    kept = {**stored, "data": fingerprints, "recipe": tree}
    notes = [
        f"{name} was {stored.get(name)} when the run started, now {facts[name]}: results may differ in the last bits"
        for name in ("jumok", "torch", "threads", "processes")
        if stored.get(name) != facts[name]
    ]
    return kept, before.train, notes


def _data_changed(splits: Sequence[str], where: Path, *, in_files: bool) -> CheckpointError:
    restore = "restore the data, choose another --out, or resume anyway with --set data.when_changed=accept"
    return CheckpointError(
        f"the data has changed since the run started: {', '.join(splits)}",
        where=where,
        hint=restore if in_files else "use the version of jumok that started the run, or another --out",
        code="checkpoint.data_changed",
    )


def _claim(folder: RunFolder, facts: dict[str, Any], tokenizers: Tokenizers) -> None:
    """Write recipe.json once every check has passed; weights are useless with another vocabulary."""
    hashes = tokenizers.hashes
    if folder.checkpoints.steps() and (facts.get("tokenizers") or hashes) != hashes:
        raise CheckpointError(
            "the tokenizer does not fit the checkpoint: the changed data gives another vocabulary",
            where=folder.path,
            hint="restore the original training data, or choose another --out",
            code="checkpoint.other_vocabulary",
        )
    folder.store({**facts, "tokenizers": hashes})


def _what_is_learned(tree: dict[str, Any], may_differ: Collection[str], path: str = "") -> dict[str, Any]:
    """A recipe's tree without what may differ when it is resumed."""
    return {
        key: _what_is_learned(value, may_differ, f"{path}{key}.") if isinstance(value, dict) else value
        for key, value in tree.items()
        if path + key not in may_differ
    }
