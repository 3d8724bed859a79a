"""RUN/model: one folder with everything that prediction needs, in the Hugging Face layout where one exists."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from jumok.config import read_config
from jumok.errors import CheckpointError
from jumok.hub.marian import fits_marian, from_marian, marian_config, to_marian
from jumok.models import ModelConfig, TransformerConfig
from jumok.text.tokenizer import EOS, PAD, UNK, Tokenizer, Tokenizers

FACTS = {
    "translation": ["source", "target", "decode"],
    "classification": ["labels"],
    "tagging": ["labels"],
    "language_model": ["decode", "max_len"],
}
EMBEDDINGS = ("target_embedding.weight", "reader.embedding.weight")
NO_LIMIT = 10**6  # for readers that want a number
JOINT, SOURCE, TARGET = "tokenizer.json", "source_tokenizer.json", "target_tokenizer.json"


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """What a model folder holds."""

    config: ModelConfig
    tensors: dict[str, Tensor]
    """under the names of jumok's own modules, tied ones once"""
    tokenizers: Tokenizers
    facts: dict[str, Any]
    """the key "jumok" of config.json: languages, decoding, version"""


@dataclass(frozen=True, slots=True)
class _StoredModel:
    model: Annotated[ModelConfig, Field(discriminator="kind")]


def write_model(folder: Path, model: ModelFolder, *, card: str) -> None:
    c, tokenizers = model.config, model.tokenizers
    joint, target = tokenizers.source is tokenizers.target, tokenizers.target
    if isinstance(c, TransformerConfig) and fits_marian(c) and joint:
        config = marian_config(c, vocab_size=target.vocab_size)
        tensors = to_marian(model.tensors, c)
    else:
        config, tensors = {"model_type": f"jumok-{c.kind}"}, model.tensors
    config["jumok"] = {**model.facts, "model": asdict(c)}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    _write_json(folder / "config.json", config)
    length = c.max_len if isinstance(c, TransformerConfig) else NO_LIMIT
    if decode := model.facts.get("decode"):
        generation = {
            "bos_token_id": None,
            "eos_token_id": 0,
            "forced_eos_token_id": 0,
            "pad_token_id": target.pad_id,
            "decoder_start_token_id": target.pad_id,
            "bad_words_ids": [[target.pad_id]],
            "num_beams": decode["beam"],
            "length_penalty": decode["length_penalty"],
            "max_length": length,
        }
        _write_json(folder / "generation_config.json", generation)
    files = {JOINT: target} if joint else {SOURCE: tokenizers.source, TARGET: target}
    for name, tokenizer in files.items():
        (folder / name).write_text(tokenizer.to_json(), "utf-8")
    # What a user types is text, there as here, even if it looks like a special token.
    special = {"eos_token": EOS, "unk_token": UNK, "pad_token": PAD, "split_special_tokens": True}
    _write_json(
        folder / "tokenizer_config.json",
        {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": length, **special},
    )
    (folder / "README.md").write_text(card, "utf-8")


def read_model(folder: Path) -> ModelFolder:
    config = _read_json(folder / "config.json")
    facts = config.get("jumok")
    wanted = ["version", "task", "model"]
    if isinstance(facts, dict) and isinstance(facts.get("task"), dict):
        wanted += FACTS.get(facts["task"].get("kind"), ["task.kind"])
    missing = [key for key in wanted if key not in facts] if isinstance(facts, dict) else wanted
    if not isinstance(facts, dict) or missing:
        raise CheckpointError(
            f'not a model that jumok wrote: model_type "{config.get("model_type")}" without jumok.{missing[0]}',
            where=folder / "config.json",
        )
    c = read_config(
        _StoredModel,
        {"model": facts["model"]},
        what="the model's config",
        where=folder / "config.json",
        path="jumok",
        unions=["model"],
        error=CheckpointError,
    ).model
    try:
        tensors = load_file(folder / "model.safetensors")
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"model cannot be read: {error}", where=folder) from error
    if config.get("model_type") == "marian" and isinstance(c, TransformerConfig):
        tensors = from_marian(tensors, c)
    if (folder / JOINT).exists():
        source = target = Tokenizer.load(folder / JOINT)
    else:
        source, target = Tokenizer.load(folder / SOURCE), Tokenizer.load(folder / TARGET)
    embedding = next((name for name in EMBEDDINGS if name in tensors), None)
    if embedding is None:
        raise CheckpointError("the model has no embeddings", where=folder / "model.safetensors")
    rows = tensors[embedding].shape[0]
    if rows != target.vocab_size:
        raise CheckpointError(
            f"the tokenizer has {target.vocab_size} pieces, the model has embeddings for {rows}",
            where=folder,
            right="the tokenizer that the model was trained with",
        )
    return ModelFolder(c, tensors, Tokenizers(source, target), facts)


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False), "utf-8")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"model folder cannot be read: {error}", where=path) from error
    if not isinstance(value, dict):
        raise CheckpointError("not a JSON object", where=path)
    return value
