"""BERT, RoBERTa, XLM-RoBERTa, ELECTRA and DistilBERT as Hugging Face folders: config and heads.

`jumok.hub.families` has what differs between them.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from jumok.errors import CheckpointError
from jumok.hub.families import (
    CHOICE,
    DISTILBERT_EPS,
    GELU_HEADS,
    PROBLEMS,
    SUCCESSORS,
    TEXT,
    Successor,
    TheirConfig,
)
from jumok.hub.files import CONFIG, known_architecture, read_known
from jumok.hub.heads import Heads, class_of, task_of
from jumok.hub.names import ACTIVATIONS, Name, layer_norm, linear, to_ours, to_theirs, without_copies
from jumok.models.bert import ROBERTAS, BertConfig, Family
from jumok.text.tokenizer import Tokenizer
from jumok.text.vocabulary import BERT, ROBERTA

ENCODER, PRETRAINING, MASKED_WORDS = "Model", "ForPreTraining", "ForMaskedLM"
TAGGER, ANSWERS = "ForTokenClassification", "ForQuestionAnswering"
ENDS = (ENCODER, PRETRAINING, MASKED_WORDS, TEXT, CHOICE, TAGGER, ANSWERS)
"""of the names of their classes"""
BUFFERS = re.compile(r"embeddings\.(position_ids|token_type_ids)$")
NEXT_SENTENCE = "cls.seq_relationship"
DISCRIMINATOR = "discriminator."
START_AND_END = ["start", "end"]


def open_bert(
    tree: dict[str, Any], tensors: Mapping[str, Tensor], folder: Path, heads: Heads
) -> tuple[BertConfig, dict[str, Tensor], dict[str, Any]]:
    """Config, tensors and facts of a folder, ours or foreign.

    The tensors of ELECTRA's discriminator, which no task of jumok has, are among them, under `DISCRIMINATOR`.
    """
    family = cast(Family, tree["model_type"])
    known = SUCCESSORS[family]
    theirs = read_known(known.config, tree, where=folder / CONFIG)
    tensors = {_new_name(name): tensor for name, tensor in tensors.items() if not BUFFERS.search(name)}
    # Folders converted from the authors' files name no architecture: they have all pre-training heads or none.
    silent = MASKED_WORDS if known.masked_bias in tensors else ENCODER
    if family == "bert" and silent == MASKED_WORDS:
        silent = PRETRAINING
    architectures = [known.classes + end for end in ENDS if end != PRETRAINING or family in ("bert", "electra")]
    architecture = known_architecture(tree, architectures, known.classes + silent, where=folder / CONFIG)
    prefix = known.prefix if any(name.startswith(known.prefix) for name in tensors) else ""
    tied = {copy: original.format(prefix) for copy, original in known.copies.items()}
    tensors = without_copies(tensors, tied, where=folder)
    head = _Head.of(family, architecture.removeprefix(known.classes), tensors, theirs)
    if not head.pooler:  # old files keep it even if the head does not use it
        tensors = {name: t for name, t in tensors.items() if not name.removeprefix(prefix).startswith("pooler.")}
    c = theirs.ours(family)
    if head.end == PRETRAINING and (reason := _other_activation(c)):
        raise CheckpointError(reason, where=folder / CONFIG, code="checkpoint.activation")
    ours = to_ours(tensors, _names(known, c, theirs.vocab_size, head, prefix), where=folder)
    return c, ours, _facts(head, theirs, c, folder, heads)


def _facts(head: "_Head", theirs: TheirConfig, c: BertConfig, folder: Path, heads: Heads) -> dict[str, Any]:
    task: dict[str, Any] = {"kind": task_of(heads, "bert", "Bert" + head.end)}
    facts: dict[str, Any] = {"task": task, "language": "", "max_len": c.max_len}
    match head.end:
        case "Model":
            task["pooler"] = head.pooler
        case "ForPreTraining":
            task["next_sentence"] = head.next_sentence
        case "ForQuestionAnswering":
            facts["labels"] = list(START_AND_END)
        case "ForTokenClassification":
            facts["labels"] = theirs.labels(head.n_labels)
        case "ForSequenceClassification":
            task["predicts"] = predicts = theirs.predicts(head.n_labels)
            facts["labels"] = [] if predicts == "number" else theirs.labels(head.n_labels)
            if predicts == "number" and head.n_labels != 1:
                what = f'problem_type "regression" with {head.n_labels} outputs: jumok predicts one number'
                hint = "use a model with one output"
                raise CheckpointError(what, where=folder / CONFIG, hint=hint, code="checkpoint.outputs")
    return facts


def bert_obstacle(task: str, tensors: Iterable[str], c: BertConfig, tokenizer: Tokenizer, heads: Heads) -> str | None:
    """Why a BERT with these tensors has no Hugging Face layout; None if it has one."""
    name, names = SUCCESSORS[c.family].name, set(tensors)
    if (class_of(heads, task, "bert") or "").removeprefix("Bert") not in ENDS:
        return f"transformers has no {name} whose task is {task}"
    if any(tensor.startswith("crf.") for tensor in names):
        return f"transformers has no {name} with a CRF"
    if not tokenizer.layout.framed:
        return (
            f"its vocabulary lacks BERT's special tokens ({', '.join(BERT.specials)})"
            f" and RoBERTa's ({', '.join(ROBERTA.specials)})"
        )
    if c.family != "bert" and "next_sentence.weight" in names:
        return f"transformers has no {name} that predicts the next sentence"
    if c.family != "bert" and "pooler.weight" in names and ENCODER not in SUCCESSORS[c.family].poolers:
        return f"transformers has no {name} with a pooler and no other head"
    if reason := other_padding(c, tokenizer):
        return reason
    if c.family == "distilbert" and c.norm_eps != DISTILBERT_EPS:
        return f"the norm_eps of {name} in transformers is {DISTILBERT_EPS}"
    return _other_activation(c) if "transform.weight" in names else None


def other_padding(c: BertConfig, tokenizer: Tokenizer) -> str | None:
    """Why transformers would count positions from another one: there, the first follows the padding's id."""
    if c.first_position in (0, tokenizer.pad_id + 1):
        return None
    return f"the model's padding has id {c.first_position - 1}, the tokenizer's {tokenizer.pad_id}"


def _other_activation(c: BertConfig) -> str | None:
    if c.family not in GELU_HEADS or c.activation == "gelu":
        return None
    name = SUCCESSORS[c.family].name
    return f"the head for masked words of {name} has GELU, jumok's the activation of the body, {c.activation}"


def to_bert(
    tensors: Mapping[str, Tensor], c: BertConfig, tokenizer: Tokenizer, facts: Mapping[str, Any], heads: Heads
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """config.json and tensors for `transformers`."""
    known = SUCCESSORS[c.family]
    head = _Head(
        heads[facts["task"]["kind"]]["bert"].removeprefix("Bert"),
        pooler=any(name.endswith("pooler.weight") for name in tensors),
        next_sentence="next_sentence.weight" in tensors,
        discriminator=any(name.startswith(DISCRIMINATOR) for name in tensors),
        n_labels=len(tensors.get("output.bias", ())),
    )
    settings = _distilbert_settings(c) if c.family == "distilbert" else _bert_settings(c)
    config: dict[str, Any] = {
        "model_type": c.family,
        "architectures": [known.classes + head.architecture],
        "vocab_size": tokenizer.vocab_size,
        "max_position_embeddings": c.first_position + c.max_len,
        **settings,
        "initializer_range": 0.02,
        "pad_token_id": tokenizer.pad_id,
        "tie_word_embeddings": True,
        "torch_dtype": "float32",
    }
    if c.family in ROBERTAS:
        config |= {"bos_token_id": tokenizer.start_id, "eos_token_id": tokenizer.end_id}
    if head.end in (TEXT, TAGGER):
        # transformers counts outputs by their labels, and a number has none.
        labels = facts.get("labels") or [f"LABEL_{i}" for i in range(head.n_labels)]
        config["id2label"] = {str(i): label for i, label in enumerate(labels)}
        config["label2id"] = {label: i for i, label in enumerate(labels)}
    if head.end == TEXT:
        config["problem_type"] = PROBLEMS[facts["task"].get("predicts", "class")]
    prefix = "" if head.architecture == ENCODER else known.prefix
    return config, to_theirs(tensors, _names(known, c, tokenizer.vocab_size, head, prefix))


def _bert_settings(c: BertConfig) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "hidden_size": c.d_model,
        "num_hidden_layers": c.n_layers,
        "num_attention_heads": c.n_heads,
        "intermediate_size": c.d_ff,
        "hidden_act": _their_activation(c),
        "hidden_dropout_prob": float(c.dropout),
        "attention_probs_dropout_prob": float(c.attention_dropout),
        "type_vocab_size": c.n_segments,
        "layer_norm_eps": float(c.norm_eps),
        "position_embedding_type": "absolute",
        "classifier_dropout": None,
    }
    if c.family == "electra":
        settings |= {"embedding_size": c.width, "summary_type": "first", "summary_use_proj": True}
        settings |= {"summary_activation": "gelu", "summary_last_dropout": float(c.dropout)}
    return settings


def _distilbert_settings(c: BertConfig) -> dict[str, Any]:
    return {
        "dim": c.d_model,
        "n_layers": c.n_layers,
        "n_heads": c.n_heads,
        "hidden_dim": c.d_ff,
        "activation": _their_activation(c),
        "dropout": float(c.dropout),
        "attention_dropout": float(c.attention_dropout),
        "seq_classif_dropout": float(c.dropout),
        "qa_dropout": float(c.dropout),
        "sinusoidal_pos_embds": False,
    }


def _their_activation(c: BertConfig) -> str:
    return next(theirs for theirs, ours in ACTIVATIONS.items() if ours == c.activation)


@dataclass(frozen=True, slots=True)
class _Head:
    """The head on the encoder."""

    end: str
    """of its class in transformers; for masked words always the one with next-sentence prediction"""
    pooler: bool
    next_sentence: bool
    discriminator: bool
    """ELECTRA's, on an encoder that has no head otherwise"""
    n_labels: int

    @classmethod
    def of(cls, family: Family, end: str, tensors: Mapping[str, Tensor], theirs: TheirConfig) -> "_Head":
        """From its class and tensors: masked-word models come with and without next-sentence prediction."""
        known = SUCCESSORS[family]
        discriminator = family == "electra" and end == PRETRAINING
        if discriminator:
            end = ENCODER
        elif end == MASKED_WORDS:
            end = PRETRAINING
        next_sentence = end == PRETRAINING and f"{NEXT_SENTENCE}.weight" in tensors
        match end:
            case "Model":
                pooler = any(name.removeprefix(known.prefix).startswith("pooler.") for name in tensors)
            case "ForPreTraining":
                pooler = next_sentence
            case _:
                pooler = end in (TEXT, CHOICE)
        output = known.text_output if end == TEXT else "classifier"
        n_labels = len(theirs.id2label or tensors.get(f"{output}.bias", torch.empty(0)).flatten())
        n_labels = {ANSWERS: len(START_AND_END), CHOICE: 1}.get(end, n_labels)  # regardless of id2label
        return cls(end, pooler, next_sentence, discriminator, n_labels)

    @property
    def architecture(self) -> str:
        """The end of its class."""
        if self.discriminator:
            return PRETRAINING
        return MASKED_WORDS if self.end == PRETRAINING and not self.next_sentence else self.end


def _names(known: Successor, c: BertConfig, vocab: int, head: _Head, prefix: str) -> list[Name]:
    """`prefix` starts their encoder names; ours have none when the encoder is the whole model."""
    d = c.d_model
    pooler = known.poolers.get(head.end, "{}pooler.dense") if head.pooler else None
    names = known.body(c, vocab, ours="" if head.end == ENCODER else "bert.", prefix=prefix, pooler=pooler)
    match head.end:
        case "ForPreTraining":
            names += linear("transform", known.transform, c.width, d)
            names += layer_norm("transform_norm", known.transform_norm, c.width)
            names.append(Name("bias", known.masked_bias, (vocab,)))
            if head.next_sentence:
                names += linear("next_sentence", NEXT_SENTENCE, 2, d)
        case "ForSequenceClassification":
            names += linear("output", known.text_output, head.n_labels, d)
        case "ForMultipleChoice" | "ForTokenClassification":
            names += linear("output", "classifier", head.n_labels, d)
        case "ForQuestionAnswering":
            names += linear("output", "qa_outputs", head.n_labels, d)
    if head.discriminator:
        names += linear(f"{DISCRIMINATOR}dense", "discriminator_predictions.dense", d, d)
        names += linear(f"{DISCRIMINATOR}output", "discriminator_predictions.dense_prediction", 1, d)
    return names


def _new_name(name: str) -> str:
    """Early files name a LayerNorm's weight and bias gamma and beta, as in its paper."""
    return re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name))
