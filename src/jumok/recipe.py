"""A recipe: everything that decides a run, as one typed tree.

TOML and `--set key=value` in; every unknown key, wrong type and impossible relation refused at once, with its path;
the effective recipe, all defaults filled in, out as JSON.
"""

import json
import os
import tomllib
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from jumok.config import Seed, read_config
from jumok.data.corpus import SPLITS
from jumok.data.made import MadeData
from jumok.data.sources import DataConfig, DocumentData
from jumok.decode.search import DecodeConfig
from jumok.errors import RecipeError
from jumok.models import (
    BertConfig,
    ElmoConfig,
    GptConfig,
    ModelConfig,
    RnnConfig,
    Seq2SeqConfig,
    TransformerConfig,
)
from jumok.tasks.answerer import AnswerConfig
from jumok.tasks.answering import AnsweringConfig
from jumok.tasks.choice import ChoiceConfig
from jumok.tasks.classification import ClassificationConfig
from jumok.tasks.encoder import AskConfig
from jumok.tasks.language_model import LanguageModelConfig
from jumok.tasks.pretraining import FRAME_OF_PAIR, PretrainingConfig
from jumok.tasks.relation import RelationConfig
from jumok.tasks.tagging import TaggingConfig
from jumok.tasks.translation import TranslationConfig
from jumok.text.vectors import VectorsConfig
from jumok.text.vocabulary import TokenizerConfig
from jumok.train.loop import TrainConfig
from jumok.transfer import read_start

DATA_FOLDER = "JUMOK_DATA"
TaskConfig = (
    TranslationConfig
    | LanguageModelConfig
    | PretrainingConfig
    | ClassificationConfig
    | TaggingConfig
    | RelationConfig
    | AnsweringConfig
    | ChoiceConfig
)
LABELLED = ["labelled", "toy_reviews", "toy_topics", "toy_similarity"]
FITTING: dict[str, tuple[list[str], list[str], list[str]]] = {
    "translation": (["parallel", "synthetic"], ["transformer", "seq2seq"], ["perplexity", "bleu", "exact_match"]),
    "language_model": (["text", "documents", "toy_grammar"], ["rnn", "gpt", "elmo"], ["perplexity", "bits_per_byte"]),
    "pretraining": (["documents", "toy_stories"], ["bert"], ["perplexity", "masked_accuracy"]),
    "classification": (LABELLED, ["rnn", "bert", "gpt"], []),
    "tagging": (["tagged", "toy_names", "toy_josa"], ["rnn", "bert"], ["perplexity", "span_f1", "tag_accuracy"]),
    "relation": (
        ["relations", "toy_relations"],
        ["rnn", "bert"],
        ["perplexity", "macro_f1", "micro_f1", "accuracy"],
    ),
    "answering": (["questions", "toy_questions"], ["rnn", "bert"], ["answer_f1", "exact_match"]),
    "choice": (["choices", "toy_choices"], ["rnn", "bert"], ["perplexity", "accuracy"]),
}
"""the kinds of data and of model, and the dev scores, that go with each task"""
LABEL_METRICS: dict[str, list[str]] = {
    "class": ["perplexity", "accuracy", "macro_f1", "mcc"],
    "labels": ["perplexity", "micro_f1", "macro_f1", "exact_match"],
    "number": ["pearson", "spearman", "mean_absolute_error"],
}
"""the dev scores of a classification, by what it predicts"""
LEAST_PAIR = FRAME_OF_PAIR + 2
VOCABULARIES = {"bert": "wordpiece", "gpt": "byte_bpe"}
"""models whose special pieces only one kind of vocabulary has"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """What a paper reports for this recipe, to stand beside what is measured."""

    source: str
    parameters: float | None = None
    bleu: float | None = None
    perplexity: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """The root of the tree; each branch is the config of the part that it is named after."""

    description: str = ""
    seed: Seed = 1
    seeds: list[Seed] = field(default_factory=list)
    """one training with each of them, into folders of their own; scores are then means with the interval of seeds"""
    init: str | None = None
    """a run or a Hugging Face folder: training begins with its vocabulary and weights, and [model] is its own"""
    features: str | None = None
    """a run of ELMo or BERT whose layers, frozen, are features for model.kind = "rnn"; the vocabulary is theirs"""
    task: Annotated[TaskConfig, Field(discriminator="kind")] = field(default_factory=TranslationConfig)
    data: Annotated[DataConfig, Field(discriminator="kind")]
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    model: Annotated[ModelConfig, Field(discriminator="kind")] = field(default_factory=TransformerConfig)
    vectors: VectorsConfig = field(default_factory=VectorsConfig)
    old_domain: DocumentData | None = None
    """pretraining from `init`: documents of what the weights knew, scored before and after"""
    train: TrainConfig = field(default_factory=TrainConfig)
    decode: DecodeConfig = field(default_factory=DecodeConfig)
    published: Published | None = None

    def __post_init__(self) -> None:
        wrong = []
        task, c = self.task, self.model
        data_kinds, model_kinds, metrics = FITTING[task.kind]
        if isinstance(task, ClassificationConfig):
            metrics = LABEL_METRICS[task.predicts]
        for section, given, fitting in (
            ("data.kind", self.data.kind, data_kinds),
            ("model.kind", c.kind, model_kinds),
            ("train.metric", self.train.metric, metrics),
        ):
            if given not in fitting:
                does = " or ".join(f'"{kind}"' for kind in fitting)
                wrong.append(f'{section} = "{given}" does not fit task.kind = "{task.kind}", {does} does')
        if isinstance(task, ClassificationConfig) and c.kind == "gpt":
            if task.predicts != "class":
                wrong.append('model.kind = "gpt" writes the label after the text: task.predicts = "class" only')
            if task.label_smoothing or task.class_weights != "none":
                wrong.append('model.kind = "gpt" writes the label: it has no label_smoothing and no class_weights')
        transfer = self.train.transfer
        if c.kind == "gpt" and transfer.mode != "full":
            wrong.append(f'train.transfer.mode = "{transfer.mode}": GPT has no head that could learn alone')
        if c.kind not in ("bert", "gpt", "rnn") and (transfer.mode != "full" or transfer.layer_decay != 1):
            wrong.append(f'train.transfer is for model.kind = "bert", "gpt" or "rnn", and model.kind is "{c.kind}"')
        if len(set(self.seeds)) < len(self.seeds):
            wrong.append("seeds: the same seed twice is the same training twice")
        if isinstance(c, TransformerConfig | Seq2SeqConfig):
            if c.tie_embeddings == "all" and not self.tokenizer.joint:
                wrong.append('model.tie_embeddings = "all" needs tokenizer.joint = true')
            if c.longest is not None and self.data.max_len >= c.longest:
                wrong.append("data.max_len must be below model.max_len when positions are learned")
        features = c.features if isinstance(c, RnnConfig) else None
        if features is not None and task.kind == "language_model":
            wrong.append("features have seen the whole text: a language model must not")
        if self.features is not None and features is None:
            wrong.append('features are of a run of model.kind = "elmo" or "bert", for model.kind = "rnn"')
        if self.old_domain is not None and (self.init is None or task.kind != "pretraining"):
            wrong.append('old_domain needs init and task.kind = "pretraining"')
        if (old := self.old_domain) is not None and (not old.test or old.train or old.dev):
            wrong.append("old_domain is scored and not learned from: it needs test, and has neither train nor dev")
        if isinstance(task, PretrainingConfig) and self.data.max_len < LEAST_PAIR:
            wrong.append(
                f"data.max_len must be at least {LEAST_PAIR}: a piece of each of two texts, and what frames them"
            )
        if isinstance(task, PretrainingConfig) and task.new_pieces and self.init is None:
            wrong.append("task.new_pieces needs init: a vocabulary of one's own has them anyway")
        for reader, key in ((c, "model"), (features, "model.features")):
            if isinstance(reader, BertConfig | GptConfig) and self.data.max_len > reader.max_len:
                wrong.append(f"data.max_len = {self.data.max_len} must not be over {key}.max_len = {reader.max_len}")
        if (kind := self.tokenizer.kind) != (needed := VOCABULARIES.get(c.kind, kind)):
            wrong.append(f'model.kind = "{c.kind}" needs tokenizer.kind = "{needed}"')
        elif kind == "byte_bpe" and c.kind not in VOCABULARIES:
            wrong.append(f'tokenizer.kind = "byte_bpe" is for model.kind = "gpt", and model.kind is "{c.kind}"')
        attends = isinstance(c, TransformerConfig | Seq2SeqConfig) and c.attends
        if self.decode.coverage_penalty and not attends:
            wrong.append("decode.coverage_penalty counts attention, and the model has none")
        wrong += _unfitting_vectors(self.vectors, c)
        if isinstance(task, LanguageModelConfig) and isinstance(c, RnnConfig) and c.bidirectional:
            wrong.append("model.bidirectional must be false for a language model: what comes next is not to be read")
        if isinstance(task, TranslationConfig) and task.scheduled_sampling and not isinstance(c, Seq2SeqConfig):
            wrong.append('task.scheduled_sampling needs model.kind = "seq2seq": others read all inputs at once')
        if wrong:
            raise ValueError("\n".join(wrong))


def _unfitting_vectors(vectors: VectorsConfig, c: ModelConfig) -> list[str]:
    """What is wrong with word vectors for this model."""
    if not vectors.source and not vectors.target:
        return ["vectors.frozen needs vectors.source or vectors.target"] if vectors.frozen else []
    match c:
        case TransformerConfig() | BertConfig() | GptConfig():
            return ["vectors are for recurrent models: a Transformer scales its embeddings and shares them"]
        case ElmoConfig():
            return ["vectors are not for ELMo: its embeddings are its output, too, and have to learn"]
        case RnnConfig():
            return ["vectors.target needs a model with a target; there is one text here"] if vectors.target else []
        case Seq2SeqConfig():
            wrong = []
            if vectors.source and vectors.target and c.tie_embeddings == "all":
                wrong.append('vectors.source and vectors.target need model.tie_embeddings = "target" or "none"')
            if vectors.frozen and c.tie_embeddings != "none":
                wrong.append('vectors.frozen needs model.tie_embeddings = "none": the output matrix has to learn')
            return wrong


def load_recipe(
    path: Path, overrides: Sequence[str] = (), *, find_data: bool = True, need_weights: bool = True
) -> Recipe:
    """Read a TOML recipe; its data files are found beside it or under the folder JUMOK_DATA.

    Who looks at its data only does not need the weights that it begins with.
    """
    try:
        tree = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise RecipeError(f"recipe cannot be read: {error.strerror}", where=path) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecipeError(f"not TOML: {error}", where=path) from error
    for override in overrides:
        _override(tree, override)
    for key in ("init", "features"):
        if isinstance(tree.get(key), str):
            tree = _begun(tree, key, path, need_weights=need_weights)
    recipe = parse_recipe(tree, where=str(path))
    if recipe.train.transfer.mode == "frozen" and recipe.init is None and need_weights:
        said = "nothing but the head learns, and without init what is below it has learned nothing either"
        warnings.warn(f'train.transfer.mode = "frozen": {said}', stacklevel=2)
    return _resolve(recipe, path) if find_data else recipe


def _begun(tree: dict[str, Any], key: str, path: Path, *, need_weights: bool) -> dict[str, Any]:
    """A recipe that begins with other weights has their model, or their features, and their vocabulary."""
    places = [path.parent.absolute(), Path.cwd(), *map(Path, filter(None, [os.environ.get(DATA_FOLDER)]))]
    found = [place / tree[key] for place in places if (place / tree[key]).is_dir()]
    if not found and not need_weights:
        return _without_weights(tree, key)
    if not found:
        raise RecipeError(
            f"no such run or folder: {tree[key]}",
            where=f"{path}: {key}",
            right=f"a folder relative to one of {', '.join(map(str, places))}",
        )
    start = read_start(str(found[0]))
    model = tree.get("model", {})
    if key == "init":
        kind = _kind(tree, "model", start.config.kind)
        if kind != start.config.kind:
            raise RecipeError(
                f'the weights are of model.kind = "{start.config.kind}", and the recipe has model.kind = "{kind}"',
                where=f"{path}: {key}",
                right="[model] left out: it is then that of the weights; or weights of that kind",
            )
        model = {**asdict(start.config), **model}
    elif isinstance(start.config, ElmoConfig | BertConfig):
        model = {**model, "features": asdict(start.config)}
    known = start.tokenizers.source
    tokenizer = {"kind": VOCABULARIES.get(start.config.kind, known.kind), **tree.get("tokenizer", {})}
    if (told := tokenizer.get("vocab_size", known.vocab_size)) != known.vocab_size:
        has = f"the vocabulary is that of {tree[key]}, of {known.vocab_size:,} pieces"
        warnings.warn(f"tokenizer.vocab_size = {told} is not used: {has}", stacklevel=2)
    tokenizer["vocab_size"] = known.vocab_size
    return {**tree, key: str(found[0].resolve()), "model": model, "tokenizer": tokenizer}


def _without_weights(tree: dict[str, Any], key: str) -> dict[str, Any]:
    """Any model that fits the task stands in for theirs."""
    if key == "features":
        return {name: value for name, value in tree.items() if name != key}
    kind = _kind(tree, "task", "")
    if kind not in FITTING:
        return tree
    model = FITTING[kind][1][0]
    return {**tree, "model": {"kind": model}, "tokenizer": {"kind": VOCABULARIES.get(model, "bpe")}}


def shipped_recipe(name: str) -> Path:
    """Recipes travel inside the installed package; in a checkout they stand beside it."""
    package = Path(__file__).parent
    for folder in (package / "recipes", package.parents[1] / "recipes"):
        if (folder / name).exists():
            return folder / name
    raise RecipeError("recipe not found", where=name, right="a complete installation of jumok")


def parse_recipe(tree: dict[str, Any], *, where: str) -> Recipe:
    for section, kind in (("task", "translation"), ("model", "transformer")):
        if isinstance(tree.get(section), dict):
            tree = {**tree, section: {"kind": kind, **tree[section]}}
    if _kind(tree, "task", "translation") != "translation" and isinstance(tree.get("train", {}), dict):
        tree = {**tree, "train": {"final": "best", **tree.get("train", {})}}
    return read_config(Recipe, tree, what="the recipe", where=where, unions=["task", "data", "model"])


def _kind(tree: dict[str, Any], section: str, default: str) -> Any:
    """What a section of a tree that has not been checked yet is of."""
    found = tree.get(section)
    return found.get("kind", default) if isinstance(found, dict) else default


def recipe_tree(recipe: Recipe) -> dict[str, Any]:
    """The effective recipe as plain JSON values."""
    tree: dict[str, Any] = json.loads(json.dumps(asdict(recipe)))
    return tree


def asked_options(overrides: Sequence[str]) -> dict[str, Any]:
    """`beam=8` or `decode.beam=8` for a command that only predicts; the predictor, which knows the rest, checks values.

    Names are checked here, because a predictor has arguments beside these.
    """
    options = {key.removeprefix("decode."): value for key, value in map(_key_and_value, overrides)}
    names = list(
        dict.fromkeys(key.name for config in (DecodeConfig, AskConfig, AnswerConfig) for key in fields(config))
    )
    unknown = [f"decode.{name}" for name in options if name not in names]
    if unknown:
        raise RecipeError(f"there is no such key: {', '.join(unknown)}", where="--set", right=", ".join(names))
    return options


def _key_and_value(override: str) -> tuple[str, Any]:
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise RecipeError(
            f"not an override: {override}", where="--set", right="--set key=value, such as --set train.steps=200"
        )
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text  # a bare word is a string
    return key.strip(), value


def _override(tree: dict[str, Any], override: str) -> None:
    key, value = _key_and_value(override)
    *parents, leaf = key.split(".")
    for parent in parents:
        tree = tree.setdefault(parent, {})
        if not isinstance(tree, dict):
            raise RecipeError(f"{key} goes below {parent}, which is a value", where="--set")
    tree[leaf] = value


def _resolve(recipe: Recipe, path: Path) -> Recipe:
    """Absolute paths, so that the effective recipe means the same from anywhere."""
    folders = [path.parent.absolute()]
    if os.environ.get(DATA_FOLDER):
        folders.append(Path(os.environ[DATA_FOLDER]).absolute())
    missing: list[str] = []

    def find(file: str) -> str:
        for folder in folders:
            if (folder / file).exists():
                return str((folder / file).resolve())
        missing.append(file)
        return file

    found: Any = {}  # lists of files, or of pairs of them
    for split in () if isinstance(recipe.data, MadeData) else SPLITS:
        entries = getattr(recipe.data, split)
        found[split] = [list(map(find, entry)) if isinstance(entry, list) else find(entry) for entry in entries]
    old = recipe.old_domain and replace(recipe.old_domain, test=[find(file) for file in recipe.old_domain.test])
    source, target = (file and find(file) for file in (recipe.vectors.source, recipe.vectors.target))
    if missing:
        raise RecipeError(
            "no such data file: " + ", ".join(dict.fromkeys(missing)),
            where=path,
            right="a path relative to the recipe or to the folder that the environment variable"
            f" {DATA_FOLDER} names; looked in {', '.join(map(str, folders))}",
        )
    vectors = replace(recipe.vectors, source=source, target=target)
    return replace(recipe, data=replace(recipe.data, **found), vectors=vectors, old_domain=old)
