"""RUN/model: one folder with everything that prediction needs, in the Hugging Face layout where one exists.

Foreign folders of BERT, its successors, GPT-2 and Marian are read as if jumok had written them: missing facts are
filled in, and anything jumok's models cannot express is rejected.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from safetensors.torch import save_file
from torch import Tensor

from jumok.config import read_config
from jumok.decode.options import DecodeConfig
from jumok.errors import CheckpointError, nearest
from jumok.hub.bert import DISCRIMINATOR, bert_obstacle, open_bert, other_padding, to_bert
from jumok.hub.families import SUCCESSORS
from jumok.hub.files import CONFIG, WEIGHTS, read_json, write_json
from jumok.hub.generation import decoding, generation_config
from jumok.hub.gpt2 import gpt2_obstacle, open_gpt2, to_gpt2
from jumok.hub.heads import Heads, class_of
from jumok.hub.marian import marian_config, marian_obstacle, open_marian, to_marian
from jumok.hub.tokenizer import SETTINGS, read_tokenizers, write_tokenizers, wrong_ids
from jumok.hub.weights import read_weights
from jumok.models.bert import BertConfig
from jumok.models.build import ModelConfig
from jumok.models.gpt import GptConfig
from jumok.models.seq2seq import Seq2SeqConfig
from jumok.models.transformer import TransformerConfig
from jumok.text.tokenizer import Tokenizers
from jumok.text.vocabulary import BERT, ROBERTA
from jumok.version import __version__

EMBEDDINGS = ("target_embedding.weight", "reader.embedding.weight", "bert.embedding.weight", "embedding.weight")
OPENERS: dict[str, Callable[..., tuple[ModelConfig, dict[str, Tensor], dict[str, Any]]]] = {
    **dict.fromkeys(SUCCESSORS, open_bert),
    "gpt2": open_gpt2,
    "marian": open_marian,
}
NO_LIMIT = 10**6  # for readers that require a number
GENERATION, CARD = "generation_config.json", "README.md"


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """The contents of a model folder."""

    config: ModelConfig
    tensors: dict[str, Tensor]
    """under the names of jumok's modules, tied ones once"""
    tokenizers: Tokenizers
    facts: dict[str, Any]
    """the key "jumok" of config.json: task, languages, decoding, version"""
    carried: dict[str, Tensor] = field(default_factory=dict)
    """the head of ELECTRA's discriminator, which no task has: read to be written again"""


@dataclass(frozen=True, slots=True)
class _StoredModel:
    model: Annotated[ModelConfig, Field(discriminator="kind")]


def obstacle(model: ModelFolder, heads: Heads) -> str | None:
    """Why `transformers` could not open the model's folder; None if it can."""
    task, tokenizers = model.facts["task"]["kind"], model.tokenizers
    match model.config:
        case BertConfig() as c:
            if model.facts.get("units", {}).get("capitals"):
                return "its texts have marks of capitals, which the tokenizers of transformers do not produce"
            return bert_obstacle(task, model.tensors, c, tokenizers.source, heads)
        case GptConfig():
            return gpt2_obstacle(task, heads)
        case TransformerConfig() as c:
            two = "Marian does not support two vocabularies" if tokenizers.source is not tokenizers.target else None
            return marian_obstacle(c) or two
        case _:
            return "transformers has no recurrent networks"


def write_model(folder: Path, model: ModelFolder, heads: Heads, *, card: str) -> None:
    config, tensors = _in_their_layout(model, heads)
    config["jumok"] = {**model.facts, "model": asdict(model.config)}
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    _write_around(folder, model, config)
    (folder / CARD).write_text(card, "utf-8")


def write_outline(folder: Path, model: ModelFolder) -> None:
    """Write everything but the weights, in jumok's own layout: what the checkpoints of a run share."""
    _write_around(folder, model, outline_config(model))


def outline_config(model: ModelFolder) -> dict[str, Any]:
    return {"model_type": f"jumok-{model.config.kind}", "jumok": {**model.facts, "model": asdict(model.config)}}


def _write_around(folder: Path, model: ModelFolder, config: dict[str, Any]) -> None:
    c, tokenizer = model.config, model.tokenizers.target
    write_json(folder / CONFIG, config)
    length = c.max_len if isinstance(c, TransformerConfig | BertConfig | GptConfig) else NO_LIMIT
    if "decode" in model.facts:
        translates = isinstance(c, TransformerConfig | Seq2SeqConfig)
        generation = generation_config(model.facts["decode"], tokenizer, max_length=length, translates=translates)
        write_json(folder / GENERATION, generation)
    segments = c.n_segments if isinstance(c, BertConfig) else 0
    write_tokenizers(folder, model.tokenizers, max_length=length, segments=segments > 1)


def _in_their_layout(model: ModelFolder, heads: Heads) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """config.json and tensors in the layout of `transformers`, or in jumok's own."""
    c, tokenizer = model.config, model.tokenizers.target
    if obstacle(model, heads) is None:
        match c:
            case BertConfig():
                return to_bert(model.tensors | model.carried, c, tokenizer, model.facts, heads)
            case GptConfig():
                return to_gpt2(model.tensors, c, tokenizer)
            case TransformerConfig():
                return marian_config(c, vocab_size=tokenizer.vocab_size), to_marian(model.tensors, c)
    return {"model_type": f"jumok-{c.kind}"}, dict(model.tensors)


def read_outline(folder: Path, heads: Heads) -> ModelFolder:
    facts = _own_facts({"jumok": None, **read_json(folder / CONFIG)}, folder, heads)
    return ModelFolder(_own_config(facts, folder), {}, read_tokenizers(folder), facts)


def read_model(folder: Path, heads: Heads) -> ModelFolder:
    """Read a folder, ours or foreign; its task is the one it names, or the one its head is for."""
    tree = read_json(folder / CONFIG)
    own = _own_facts(tree, folder, heads) if "jumok" in tree else None
    kind = str(tree.get("model_type"))
    if own is None and kind not in OPENERS:
        what = f'jumok has no model of the type "{kind}"'
        hint = f"use one of {', '.join(OPENERS)}"
        raise CheckpointError(what, where=folder / CONFIG, hint=hint, code="checkpoint.unknown_model")
    c: ModelConfig | None = None
    tensors, facts = read_weights(folder), own or {}
    if kind in OPENERS:
        c, tensors, facts = OPENERS[kind](tree, tensors, folder, heads)
    if own is not None and (c is None or _still_true(own, facts, c.kind, heads)):
        facts, c = own, _own_config(own, folder)
    else:
        assert c is not None
        facts = _made_up_facts(facts, c, tree, folder)
    tokenizers = read_tokenizers(folder)
    _refuse_other_tokenizer(c, kind, tensors, tokenizers, folder)
    carried = {name: tensor for name, tensor in tensors.items() if name.startswith(DISCRIMINATOR)}
    tensors = {name: tensor for name, tensor in tensors.items() if name not in carried}
    return ModelFolder(c, tensors, tokenizers, facts, carried)


def _own_facts(tree: dict[str, Any], folder: Path, heads: Heads) -> dict[str, Any]:
    facts = tree["jumok"]
    wanted = ["version", "task", "model"]
    missing = [key for key in wanted if key not in facts] if isinstance(facts, dict) else wanted
    if not missing and not (isinstance(facts["task"], dict) and isinstance(facts["task"].get("kind"), str)):
        missing = ["task.kind"]
    if missing:
        what = f'not a model written by jumok: model_type "{tree.get("model_type")}" without jumok.{missing[0]}'
        raise CheckpointError(what, where=folder / CONFIG, code="checkpoint.not_ours")
    if (task := facts["task"]["kind"]) not in heads:
        what = f'jumok has no task "{task}", for which version {facts["version"]} trained this model'
        hint = nearest(task, heads) or f"use a version of jumok that has it; this one has {', '.join(heads)}"
        raise CheckpointError(what, where=folder / CONFIG, hint=hint, code="checkpoint.unknown_task")
    return dict(facts)


def _own_config(facts: dict[str, Any], folder: Path) -> ModelConfig:
    return read_config(
        _StoredModel,
        {"model": facts["model"]},
        what="the model's config",
        where=folder / CONFIG,
        path="jumok",
        unions=["model"],
        error=CheckpointError,
    ).model


def _still_true(own: dict[str, Any], said: dict[str, Any], kind: str, heads: Heads) -> bool:
    """Whether jumok's facts agree with the rest of config.json: training elsewhere leaves stale facts in it."""
    ours, theirs = own["task"]["kind"], said["task"]["kind"]
    same_task = all(own["task"].get(key) == value for key, value in said["task"].items())
    if ours != theirs:  # two tasks may share a head: generation looks the same for both
        same_task = class_of(heads, ours, kind) == class_of(heads, theirs, kind)
    return same_task and ("labels" not in said or own.get("labels", said["labels"]) == said["labels"])


def _made_up_facts(facts: dict[str, Any], c: ModelConfig, tree: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The facts that jumok would have written for a foreign folder."""
    facts = {"version": __version__, **facts}
    translates = isinstance(c, TransformerConfig)
    if translates or isinstance(c, GptConfig):
        generation = read_json(folder / GENERATION) if (folder / GENERATION).exists() else {}
        # Old folders have these settings in config.json.
        facts["decode"] = decoding({**tree, **generation}, translates=translates)
        place = folder / (GENERATION if generation else CONFIG)
        what = "the model's decoding config"
        read_config(DecodeConfig, facts["decode"], what=what, where=place, path="decode", error=CheckpointError)
    if translates:
        settings = read_json(folder / SETTINGS) if (folder / SETTINGS).exists() else {}
        facts |= {side: str(settings.get(f"{side}_lang") or "") for side in ("source", "target")}
    return facts


def _refuse_other_tokenizer(
    c: ModelConfig, kind: str, tensors: dict[str, Tensor], tokenizers: Tokenizers, folder: Path
) -> None:
    """Reject a tokenizer that does not match the weights of a folder, or those that transformers would read so."""
    target = tokenizers.target
    embedding = next((name for name in EMBEDDINGS if name in tensors), None)
    if embedding is None:
        raise CheckpointError("the model has no embeddings", where=folder / WEIGHTS, code="checkpoint.no_embeddings")
    rows = tensors[embedding].shape[0]
    wrong = None
    if rows != target.vocab_size:
        wrong = f"the tokenizer has {target.vocab_size} tokens, the model has embeddings for {rows}"
    elif ids := wrong_ids(target):
        wrong = f"the tokenizer's ids do not match the embeddings: {ids}"
    elif isinstance(c, BertConfig) and not target.layout.framed:
        both = (", ".join(layout.specials) for layout in (BERT, ROBERTA))
        wrong = f"the tokenizer lacks the special tokens of BERT and RoBERTa: {' or '.join(both)}"
    elif isinstance(c, BertConfig) and kind in SUCCESSORS:
        wrong = other_padding(c, target)
    elif isinstance(c, GptConfig) and target.start_id != rows - 1:
        # Like GPT-2, jumok's GPT starts from the last row of its embeddings, whatever the vocabulary.
        wrong = f"a text starts with token {target.start_id} ({target.layout.start}), which is not the last one"
    if wrong:
        hint = "use the tokenizer that the model was trained with"
        raise CheckpointError(wrong, where=folder, hint=hint, code="checkpoint.other_vocabulary")
