"""A recipe: everything that determines a run, as one typed tree.

TOML and `--set key=value` go in; unknown keys, wrong types and impossible combinations are all reported at once, each
with its path and place; the effective recipe, with all defaults filled in, comes out as JSON.
"""

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from jumok.config import Seed, known_keys, read_config
from jumok.decode.options import DecodeConfig
from jumok.engines.fast_folder import EngineConfig
from jumok.errors import RecipeError, nearest
from jumok.examples import SPLITS
from jumok.examples.plain import DocumentData
from jumok.models.bert import BertConfig
from jumok.models.build import ModelConfig
from jumok.models.elmo import ElmoConfig
from jumok.models.gpt import GptConfig
from jumok.models.rnn import RnnConfig
from jumok.models.seq2seq import Seq2SeqConfig
from jumok.models.transformer import TransformerConfig
from jumok.shipped import find_recipe, is_shipped, shipped_names
from jumok.tasks import TASKS, task_named
from jumok.tasks.protocol import TaskKind
from jumok.tasks.stored import read_start
from jumok.tasks.translation import TranslationConfig
from jumok.text.vectors import VectorsConfig
from jumok.text.vocabulary import TokenizerConfig
from jumok.toml import NotToml, parse_toml, set_or_unset
from jumok.train.loop import TrainConfig

DATA_FOLDER = "JUMOK_DATA"
VOCABULARIES = {"bert": "wordpiece", "gpt": "byte_bpe"}
"""models whose special tokens only one kind of vocabulary has"""
if TYPE_CHECKING:  # decided by the table of tasks, which type checkers cannot see
    TaskConfig = Any
    DataConfig = Any
else:
    TaskConfig = Annotated[reduce(or_, (task.config for task in TASKS if task.config)), Field(discriminator="kind")]
    DataConfig = Annotated[reduce(or_, (data for task in TASKS for data in task.data)), Field(discriminator="kind")]


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """Figures that a paper reports for this recipe, shown beside the measured ones."""

    source: str
    parameters: float | None = None
    bleu: float | None = None
    perplexity: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """The root of the tree; each section is the config of the part it is named after."""

    description: str = ""
    seed: Seed = 1
    seeds: list[Seed] = field(default_factory=list)
    """train once per seed, each in its own folder; scores are then means over the seeds, with their interval"""
    init: str | None = None
    """a run or a Hugging Face folder to start from: its weights and vocabulary are used, [model] defaults to its own"""
    features: str | None = None
    """an ELMo or BERT run whose frozen layers are features for model.kind = "rnn"; its vocabulary is used"""
    task: TaskConfig = field(default_factory=TranslationConfig)
    data: DataConfig
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    model: Annotated[ModelConfig, Field(discriminator="kind")] = field(default_factory=TransformerConfig)
    vectors: VectorsConfig = field(default_factory=VectorsConfig)
    old_domain: DocumentData | None = None
    """pretraining from `init`: documents of the original domain, scored before and after"""
    train: TrainConfig = field(default_factory=TrainConfig)
    decode: DecodeConfig = field(default_factory=DecodeConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    published: Published | None = None

    @property
    def kind(self) -> TaskKind:
        """The task's entry in `TASKS`."""
        return task_named(self.task.kind)

    def __post_init__(self) -> None:
        task = self.kind
        wrong = [*self._unfitting(task), *task.mistakes(self), *_unfitting_model(self)]
        wrong += _unfitting_vectors(self.vectors, self.model)
        if len(set(self.seeds)) < len(self.seeds):
            wrong.append("seeds must differ: the same seed gives the same training")
        if self.old_domain is not None and (self.init is None or task.name != "pretraining"):
            wrong.append('old_domain needs init and task.kind = "pretraining"')
        if (old := self.old_domain) is not None and (not old.test or old.train or old.dev):
            wrong.append("old_domain is scored, not trained on: it needs test, and neither train nor dev")
        if wrong:
            raise ValueError("\n".join(wrong))

    def _unfitting(self, task: TaskKind) -> list[str]:
        """Data, model or metric that the task does not support."""
        kinds = [data.__dataclass_fields__["kind"].default for data in task.data]
        wrong = []
        for section, given, fitting in (
            ("data.kind", self.data.kind, kinds),
            ("model.kind", self.model.kind, task.models),
            ("train.metric", self.train.metric, task.metrics(self.task)),
        ):
            if given not in fitting:
                choices = " or ".join(f'"{kind}"' for kind in fitting)
                wrong.append(f'{section} = "{given}" does not fit task.kind = "{task.name}": use {choices}')
        return wrong


def _unfitting_model(recipe: Recipe) -> list[str]:
    """Settings that do not fit the kind of model."""
    c, wrong = recipe.model, []
    transfer = recipe.train.transfer
    if c.kind == "gpt" and transfer.mode != "full":
        wrong.append(f'train.transfer.mode = "{transfer.mode}" needs a head to train alone, and GPT has none')
    if c.kind not in ("bert", "gpt", "rnn") and (transfer.mode != "full" or transfer.layer_decay != 1):
        wrong.append(f'train.transfer needs model.kind = "bert", "gpt" or "rnn", but model.kind is "{c.kind}"')
    if isinstance(c, TransformerConfig | Seq2SeqConfig):
        if c.tie_embeddings == "all" and not recipe.tokenizer.joint:
            wrong.append('model.tie_embeddings = "all" needs tokenizer.joint = true')
        if c.longest is not None and recipe.data.max_len >= c.longest:
            wrong.append("data.max_len must be below model.max_len when positions are learned")
    features = c.features if isinstance(c, RnnConfig) else None
    if recipe.features is not None and features is None:
        wrong.append('features need model.kind = "rnn", and a run with model.kind = "elmo" or "bert"')
    for reader, key in ((c, "model"), (features, "model.features")):
        if isinstance(reader, BertConfig | GptConfig) and recipe.data.max_len > reader.max_len:
            wrong.append(f"data.max_len = {recipe.data.max_len} must not exceed {key}.max_len = {reader.max_len}")
    if (kind := recipe.tokenizer.kind) != (needed := VOCABULARIES.get(c.kind, kind)):
        wrong.append(f'model.kind = "{c.kind}" needs tokenizer.kind = "{needed}"')
    elif kind == "byte_bpe" and c.kind not in VOCABULARIES:
        wrong.append(f'tokenizer.kind = "byte_bpe" needs model.kind = "gpt", but model.kind is "{c.kind}"')
    if recipe.tokenizer.placeholders and recipe.task.kind != "translation":
        wrong.append('tokenizer.placeholders = true needs task.kind = "translation"')
    attends = isinstance(c, TransformerConfig | Seq2SeqConfig) and c.attends
    if recipe.decode.coverage_penalty and not attends:
        wrong.append("decode.coverage_penalty needs attention, and the model has none")
    return wrong


def _unfitting_vectors(vectors: VectorsConfig, c: ModelConfig) -> list[str]:
    """Settings of word vectors that do not fit the model."""
    if not vectors.source and not vectors.target:
        return ["vectors.frozen needs vectors.source or vectors.target"] if vectors.frozen else []
    match c:
        case ElmoConfig():
            return ["vectors do not fit ELMo: its embeddings are also its output layer, and must be trained"]
        case RnnConfig():
            return ["vectors.target needs a model with a target text"] if vectors.target else []
        case Seq2SeqConfig():
            wrong = []
            if vectors.source and vectors.target and c.tie_embeddings == "all":
                wrong.append('vectors.source and vectors.target need model.tie_embeddings = "target" or "none"')
            if vectors.frozen and c.tie_embeddings != "none":
                wrong.append('vectors.frozen needs model.tie_embeddings = "none": the output matrix must be trained')
            return wrong
        case _:  # a Transformer scales its embeddings and shares them
            return [f'vectors need a recurrent model, but model.kind is "{c.kind}"']


def load_recipe(
    path: Path, overrides: Sequence[str] = (), *, find_data: bool = True, need_weights: bool = True
) -> Recipe:
    """Read a TOML recipe, a file or the name of one that comes with jumok; its data files are found beside it or in the
    folder JUMOK_DATA.

    Without `need_weights`, the weights to start from may be missing: enough to inspect the data.
    """
    path = find_recipe(path)
    tree, places = _read_toml(path)
    unset = [key for override in overrides for key in set_or_unset(tree, override, places)]
    _refuse_unknown(unset, tree)
    _one_length(tree, places)
    for key in ("init", "features"):
        if isinstance(tree.get(key), str):
            tree = _begun(tree, key, path, places, need_weights=need_weights)
    recipe = parse_recipe(tree, where=str(path), places=places)
    if recipe.train.transfer.mode == "frozen" and recipe.init is None and need_weights:
        what = 'train.transfer.mode = "frozen" without init: only the head is trained, on top of random weights'
        warnings.warn(what, stacklevel=2)
    return _resolve(recipe, path, places) if find_data else recipe


def _one_length(tree: dict[str, Any], places: Mapping[str, str]) -> None:
    """Refuse two keys that both say how long to train; an override replaces the one in the file."""
    train = tree.get("train")
    given = [key for key in ("steps", "epochs", "minutes") if isinstance(train, dict) and key in train]
    if len(given) < 2:
        return
    overriding = [key for key in given if places[f"train.{key}"].startswith("--set")]
    if len(overriding) == 1:
        tree["train"] = {key: value for key, value in tree["train"].items() if key not in given or key in overriding}
        return
    said = ", ".join(f"train.{key}" for key in given)
    raise RecipeError(
        f"{said}: each of them says how long to train",
        where=", ".join(dict.fromkeys(places[f"train.{key}"] for key in given)),
        hint="keep one of them",
        code="recipe.mismatch",
    )


def _read_toml(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """The tree of a file, and the place of each key."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        what = f"the recipe cannot be read: {error.strerror}"
        guess = nearest(path.as_posix().removesuffix(".toml"), shipped_names()) if not path.exists() else ""
        raise RecipeError(what, where=path, hint=guess or None, code="recipe.unreadable") from error
    try:
        tree, lines = parse_toml(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        number = raw.count(b"\n", 0, error.start) + 1
        raise RecipeError("not valid UTF-8", where=f"{path}:{number}", code="recipe.not_toml") from error
    except NotToml as error:
        raise RecipeError(f"invalid TOML: {error}", where=f"{path}:{error.line}", code="recipe.not_toml") from error
    return tree, {key: f"{path}:{line}" for key, line in lines.items()}


def _begun(
    tree: dict[str, Any], key: str, path: Path, places: Mapping[str, str], *, need_weights: bool
) -> dict[str, Any]:
    """Fill in model, or features, and vocabulary from the weights that the recipe starts from."""
    folders = [path.parent.absolute(), Path.cwd(), *map(Path, filter(None, [os.environ.get(DATA_FOLDER)]))]
    found = [folder / tree[key] for folder in folders if (folder / tree[key]).is_dir()]
    if not found and not need_weights:
        return _without_weights(tree, key)
    if not found:
        raise RecipeError(
            f"{key}: no such run or folder: {tree[key]}",
            where=places.get(key, path),
            hint=f"use a path relative to one of {', '.join(map(str, folders))}",
            code="recipe.no_weights",
        )
    start = read_start(str(found[0]))
    known = start.tokenizers.source
    model, tokenizer = tree.get("model", {}), tree.get("tokenizer", {})
    if not (isinstance(model, dict) and isinstance(tokenizer, dict)):
        return tree  # rejected later
    if key == "init":
        kind = model.get("kind", start.config.kind)
        if kind != start.config.kind:
            raise RecipeError(
                f'the weights have model.kind = "{start.config.kind}", but the recipe has model.kind = "{kind}"',
                where=", ".join(places[name] for name in (key, "model.kind") if name in places) or path,
                hint="leave out [model] to use the model of the weights, or start from weights of that kind",
                code="recipe.weights",
            )
        model = {**asdict(start.config), **model}
    elif isinstance(start.config, ElmoConfig | BertConfig):
        model = {**model, "features": asdict(start.config)}
    tokenizer = {"kind": VOCABULARIES.get(start.config.kind, known.kind), **tokenizer}
    if (size := tokenizer.get("vocab_size", known.vocab_size)) != known.vocab_size:
        why = f"the vocabulary comes from {tree[key]} and has {known.vocab_size:,} tokens"
        warnings.warn(f"tokenizer.vocab_size = {size} is ignored: {why}", stacklevel=2)
    tokenizer["vocab_size"] = known.vocab_size
    return {**tree, key: str(found[0].resolve()), "model": model, "tokenizer": tokenizer}


def _without_weights(tree: dict[str, Any], key: str) -> dict[str, Any]:
    """Stand in for the missing weights with any model that fits the task."""
    if key == "features":
        return {name: value for name, value in tree.items() if name != key}
    task = next((task for task in TASKS if task.name == _kind(tree, "task", "")), None)
    if task is None or not task.models:
        return tree
    model = task.models[0]
    return {**tree, "model": {"kind": model}, "tokenizer": {"kind": VOCABULARIES.get(model, "bpe")}}


def parse_recipe(tree: dict[str, Any], *, where: str, places: Mapping[str, str] | None = None) -> Recipe:
    """Parse a recipe from its tree; `places` maps keys to where they were written."""
    tree = _with_kinds(tree)
    if _kind(tree, "task", "translation") != "translation" and isinstance(tree.get("train", {}), dict):
        tree = {**tree, "train": {"final": "best", **tree.get("train", {})}}
    unions = ["task", "data", "model"]
    return read_config(
        Recipe, tree, what="the recipe", where=where, unions=unions, places=places or {}, choices=_choices(tree)
    )


def _with_kinds(tree: dict[str, Any]) -> dict[str, Any]:
    """The tree with the default kinds of the sections that have some."""
    for section, kind in (("task", "translation"), ("model", "transformer")):
        if isinstance(tree.get(section, {}), dict):
            tree = {**tree, section: {"kind": kind, **tree.get(section, {})}}
    return tree


def _choices(tree: dict[str, Any]) -> dict[str, Sequence[str]]:
    """The metrics of this task, which are all that a recipe of it may name."""
    kind = next((task for task in TASKS if task.name == _kind(tree, "task", "") and task.config), None)
    if kind is None or kind.config is None:
        return {}
    try:
        config = read_config(kind.config, tree["task"], what="the task")
    except RecipeError:
        return {}  # which is said anyway
    return {"train.metric": kind.metrics(config)}


def _kind(tree: dict[str, Any], section: str, default: str) -> Any:
    """The kind of a section in a tree that is not validated yet."""
    found = tree.get(section)
    return found.get("kind", default) if isinstance(found, dict) else default


def recipe_tree(recipe: Recipe) -> dict[str, Any]:
    """The effective recipe as plain JSON values."""
    tree: dict[str, Any] = json.loads(json.dumps(asdict(recipe)))
    return tree


def _refuse_unknown(unset: Sequence[str], tree: dict[str, Any]) -> None:
    """A key that is unset has its default; refuse one that no recipe of these kinds has."""
    known = known_keys(Recipe, _with_kinds(tree)) if unset else []
    for key in unset:
        if key not in known:
            hint = nearest(key, known) or "`jumok show RECIPE` prints all keys"
            where = f"--set {key}="
            raise RecipeError(
                f"{key}: unknown key, it cannot be unset", where=where, hint=hint, code="recipe.unknown_key"
            )


def _resolve(recipe: Recipe, path: Path, places: Mapping[str, str]) -> Recipe:
    """Make paths absolute, so that the effective recipe means the same from anywhere."""
    folders = [path.parent.absolute()]
    if os.environ.get(DATA_FOLDER):
        folders.append(Path(os.environ[DATA_FOLDER]).absolute())
    if is_shipped(path):  # maybe in a package, where nobody has data
        folders.append(Path.cwd())
    missing: dict[str, str] = {}

    def find(key: str, file: str) -> str:
        for folder in folders:
            if (folder / file).exists():
                return str((folder / file).resolve())
        missing.setdefault(file, key)
        return file

    def find_all(key: str, entries: Sequence[Any]) -> list[Any]:
        """A list of files, or of pairs of them."""
        return [find_all(key, entry) if isinstance(entry, list) else find(key, entry) for entry in entries]

    found: Any = {}
    for split in () if recipe.data.is_made else SPLITS:
        found[split] = find_all(f"data.{split}", getattr(recipe.data, split))
    old = recipe.old_domain and replace(recipe.old_domain, test=find_all("old_domain.test", recipe.old_domain.test))
    source, target = recipe.vectors.source, recipe.vectors.target
    source, target = source and find("vectors.source", source), target and find("vectors.target", target)
    if missing:
        raise _no_data_file(missing, folders, path, places)
    vectors = replace(recipe.vectors, source=source, target=target)
    return replace(recipe, data=replace(recipe.data, **found), vectors=vectors, old_domain=old)


def _no_data_file(
    missing: Mapping[str, str], folders: Sequence[Path], path: Path, places: Mapping[str, str]
) -> RecipeError:
    """`missing` maps each missing file to the key that names it."""
    near = [folder / file for file in missing for folder in folders]
    there = [str(beside) for file in near if file.parent.is_dir() for beside in file.parent.iterdir()]
    guesses = dict.fromkeys(filter(None, (nearest(str(file), there) for file in near if len(missing) == 1)))
    relative = f"use a path relative to the recipe or to the folder in the environment variable {DATA_FOLDER}"
    return RecipeError(
        "no such data file: " + ", ".join(missing),
        where=", ".join(dict.fromkeys(places.get(key, str(path)) for key in missing.values())),
        hint=" ".join([*guesses, f"{relative}; looked in {', '.join(map(str, folders))}"]),
        code="recipe.no_data_file",
    )
