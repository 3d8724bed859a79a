"""BERT as a Hugging Face folder: tensor names, config and heads."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from jumok.config import Count, Depth, Positive, Share
from jumok.errors import CheckpointError
from jumok.hub.files import CONFIG, known_architecture, read_known
from jumok.hub.heads import Heads, class_of, task_of
from jumok.hub.names import ACTIVATIONS, Name, layer_norm, linear, to_ours, to_theirs, without_copies
from jumok.models.bert import BertConfig
from jumok.text.tokenizer import Tokenizer
from jumok.text.vocabulary import BERT

ENCODER, PRETRAINING, MASKED_WORDS = "BertModel", "BertForPreTraining", "BertForMaskedLM"
CLASSIFIER, CHOICE = "BertForSequenceClassification", "BertForMultipleChoice"
TAGGER, ANSWERS = "BertForTokenClassification", "BertForQuestionAnswering"
ARCHITECTURES = (ENCODER, PRETRAINING, MASKED_WORDS, CLASSIFIER, CHOICE, TAGGER, ANSWERS)
PROBLEMS = {
    "class": "single_label_classification",
    "labels": "multi_label_classification",
    "number": "regression",
}
"""what a classifier predicts, as `problem_type` in their config.json"""
WORDS = "embeddings.word_embeddings.weight"
BUFFERS = re.compile(r"embeddings\.(position_ids|token_type_ids)$")
POOLER = re.compile(r"^(bert\.)?pooler\.")
NEXT_SENTENCE = "cls.seq_relationship.weight"
START_AND_END = ["start", "end"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TheirConfig:
    """The network's settings in config.json; the defaults are BASE."""

    vocab_size: Count = 30522
    hidden_size: Count = 768
    num_hidden_layers: Depth = 12
    num_attention_heads: Count = 12
    intermediate_size: Count = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: Share = 0.1
    attention_probs_dropout_prob: Share = 0.1
    max_position_embeddings: Count = 512
    type_vocab_size: Count = 2
    layer_norm_eps: Positive = 1e-12
    position_embedding_type: str = "absolute"
    is_decoder: bool = False
    add_cross_attention: bool = False
    id2label: dict[str, str] | None = None
    problem_type: str | None = None

    def __post_init__(self) -> None:
        refused = []
        if self.hidden_act not in ACTIVATIONS:
            refused.append(f'hidden_act: "{self.hidden_act}" is not one of {", ".join(ACTIVATIONS)}')
        if self.position_embedding_type != "absolute":
            refused.append(f'position_embedding_type: jumok has "absolute" only (got "{self.position_embedding_type}")')
        if self.is_decoder:
            refused.append("is_decoder: jumok's BERT is bidirectional (got true)")
        if self.add_cross_attention:
            refused.append("add_cross_attention: jumok's BERT has self-attention only (got true)")
        if self.hidden_size % self.num_attention_heads:
            refused.append("hidden_size: must be divisible by num_attention_heads")
        if self.problem_type is not None and self.problem_type not in PROBLEMS.values():
            refused.append(f'problem_type: "{self.problem_type}" is not one of {", ".join(PROBLEMS.values())}')
        if self.id2label is not None and self.id2label.keys() != {str(i) for i in range(len(self.id2label))}:
            refused.append('id2label: must have the keys "0", "1", "2" and so on')
        if refused:
            raise ValueError("\n".join(refused))

    def ours(self) -> BertConfig:
        return BertConfig(
            d_model=self.hidden_size,
            d_ff=self.intermediate_size,
            n_heads=self.num_attention_heads,
            n_layers=self.num_hidden_layers,
            dropout=self.hidden_dropout_prob,
            attention_dropout=self.attention_probs_dropout_prob,
            max_len=self.max_position_embeddings,
            n_segments=self.type_vocab_size,
            activation=ACTIVATIONS[self.hidden_act],
            norm_eps=self.layer_norm_eps,
        )

    def labels(self, n: int) -> list[str]:
        """The names of n labels, numbered if config.json has none."""
        return [self.id2label[str(i)] if self.id2label else f"LABEL_{i}" for i in range(n)]

    def predicts(self, n: int) -> str:
        """What a classifier with n outputs predicts; by default, a number if there is only one."""
        problem = self.problem_type or PROBLEMS["class" if n > 1 else "number"]
        return next(ours for ours, theirs in PROBLEMS.items() if theirs == problem)


def open_bert(
    tree: dict[str, Any], tensors: Mapping[str, Tensor], folder: Path, heads: Heads
) -> tuple[BertConfig, dict[str, Tensor], dict[str, Any]]:
    """Config, tensors and facts of a folder, ours or foreign."""
    theirs = read_known(TheirConfig, tree, where=folder / CONFIG)
    tensors = {_new_name(name): tensor for name, tensor in tensors.items() if not BUFFERS.search(name)}
    # Folders converted from the authors' files name no architecture: they have all pre-training heads or none.
    silent = PRETRAINING if "cls.predictions.bias" in tensors else ENCODER
    architecture = known_architecture(tree, ARCHITECTURES, silent, where=folder / CONFIG)
    prefix = "bert." if any(name.startswith("bert.") for name in tensors) else ""
    tied = {"cls.predictions.decoder.weight": prefix + WORDS, "cls.predictions.decoder.bias": "cls.predictions.bias"}
    tensors = without_copies(tensors, tied, where=folder)
    head = _Head.of(architecture, tensors, theirs)
    if not head.pooler:  # old files keep it even if the head does not use it
        tensors = {name: tensor for name, tensor in tensors.items() if not POOLER.search(name)}
    c = theirs.ours()
    ours = to_ours(tensors, _names(c, theirs.vocab_size, head, prefix), where=folder)
    task: dict[str, Any] = {"kind": task_of(heads, "bert", head.kind)}
    facts: dict[str, Any] = {"task": task, "language": "", "max_len": c.max_len}
    match head.kind:
        case "BertModel":
            task["pooler"] = head.pooler
        case "BertForPreTraining":
            task["next_sentence"] = head.next_sentence
        case "BertForQuestionAnswering":
            facts["labels"] = list(START_AND_END)
        case "BertForTokenClassification":
            facts["labels"] = theirs.labels(head.n_labels)
        case "BertForSequenceClassification":
            task["predicts"] = predicts = theirs.predicts(head.n_labels)
            facts["labels"] = [] if predicts == "number" else theirs.labels(head.n_labels)
            if predicts == "number" and head.n_labels != 1:
                what = f'problem_type "regression" with {head.n_labels} outputs: jumok predicts one number'
                hint = "use a model with one output"
                raise CheckpointError(what, where=folder / CONFIG, hint=hint, code="checkpoint.outputs")
    return c, ours, facts


def bert_obstacle(task: str, tensors: Iterable[str], tokenizer: Tokenizer, heads: Heads) -> str | None:
    """Why a BERT with these tensors has no Hugging Face layout; None if it has one."""
    if class_of(heads, task, "bert") not in ARCHITECTURES:
        return f"transformers has no BERT whose task is {task}"
    if any(name.startswith("crf.") for name in tensors):
        return "transformers has no BERT with a CRF"
    if tokenizer.layout is not BERT:
        return f"its vocabulary lacks BERT's special tokens ({', '.join(BERT.specials)})"
    return None


def to_bert(
    tensors: Mapping[str, Tensor], c: BertConfig, tokenizer: Tokenizer, facts: Mapping[str, Any], heads: Heads
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """config.json and tensors for `transformers`."""
    kind = heads[facts["task"]["kind"]]["bert"]
    head = _Head(
        kind,
        pooler=any(name.endswith("pooler.weight") for name in tensors),
        next_sentence="next_sentence.weight" in tensors,
        n_labels=len(tensors.get("output.bias", ())),
    )
    config: dict[str, Any] = {
        "model_type": "bert",
        "architectures": [head.architecture],
        "vocab_size": tokenizer.vocab_size,
        "hidden_size": c.d_model,
        "num_hidden_layers": c.n_layers,
        "num_attention_heads": c.n_heads,
        "intermediate_size": c.d_ff,
        "hidden_act": next(theirs for theirs, ours in ACTIVATIONS.items() if ours == c.activation),
        "hidden_dropout_prob": float(c.dropout),
        "attention_probs_dropout_prob": float(c.attention_dropout),
        "max_position_embeddings": c.max_len,
        "type_vocab_size": c.n_segments,
        "initializer_range": 0.02,
        "layer_norm_eps": float(c.norm_eps),
        "pad_token_id": tokenizer.pad_id,
        "position_embedding_type": "absolute",
        "classifier_dropout": None,
        "tie_word_embeddings": True,
        "torch_dtype": "float32",
    }
    if kind in (CLASSIFIER, TAGGER):
        # transformers counts outputs by their labels, and a number has none.
        labels = facts.get("labels") or [f"LABEL_{i}" for i in range(head.n_labels)]
        config["id2label"] = {str(i): label for i, label in enumerate(labels)}
        config["label2id"] = {label: i for i, label in enumerate(labels)}
    if kind == CLASSIFIER:
        config["problem_type"] = PROBLEMS[facts["task"].get("predicts", "class")]
    prefix = "" if kind == ENCODER else "bert."
    return config, to_theirs(tensors, _names(c, tokenizer.vocab_size, head, prefix))


@dataclass(frozen=True, slots=True)
class _Head:
    """The head on the encoder."""

    kind: str
    """its class in transformers; for masked words always the one with next-sentence prediction"""
    pooler: bool
    next_sentence: bool
    n_labels: int

    @classmethod
    def of(cls, architecture: str, tensors: Mapping[str, Tensor], theirs: TheirConfig) -> "_Head":
        """From its class and tensors: masked-word models come with and without next-sentence prediction."""
        kind = PRETRAINING if architecture == MASKED_WORDS else architecture
        next_sentence = kind == PRETRAINING and NEXT_SENTENCE in tensors
        match kind:
            case "BertModel":
                pooler = any(map(POOLER.search, tensors))
            case "BertForPreTraining":
                pooler = next_sentence
            case _:
                pooler = kind in (CLASSIFIER, CHOICE)
        n_labels = len(theirs.id2label or tensors.get("classifier.bias", torch.empty(0)).flatten())
        n_labels = {ANSWERS: len(START_AND_END), CHOICE: 1}.get(kind, n_labels)  # regardless of id2label
        return cls(kind, pooler, next_sentence, n_labels)

    @property
    def architecture(self) -> str:
        return MASKED_WORDS if self.kind == PRETRAINING and not self.next_sentence else self.kind


def _names(c: BertConfig, vocab: int, head: _Head, prefix: str) -> list[Name]:
    """`prefix` starts their encoder names; ours have none when the encoder is the whole model."""
    d, e = c.d_model, "" if head.kind == ENCODER else "bert."
    names = [
        Name(f"{e}embedding.weight", prefix + WORDS, (vocab, d)),
        Name(f"{e}positions.weight", f"{prefix}embeddings.position_embeddings.weight", (c.max_len, d)),
        Name(f"{e}segments.weight", f"{prefix}embeddings.token_type_embeddings.weight", (c.n_segments, d)),
        *layer_norm(f"{e}norm", f"{prefix}embeddings.LayerNorm", d),
    ]
    for i in range(c.n_layers):
        ours, theirs = f"{e}stack.layers.{i}", f"{prefix}encoder.layer.{i}"
        for letter, word in (("q", "query"), ("k", "key"), ("v", "value")):
            names += linear(f"{ours}.self_attention.w_{letter}", f"{theirs}.attention.self.{word}", d, d)
        names += linear(f"{ours}.self_attention.w_o", f"{theirs}.attention.output.dense", d, d)
        names += layer_norm(f"{ours}.self_norm", f"{theirs}.attention.output.LayerNorm", d)
        names += linear(f"{ours}.feed_forward.w_1", f"{theirs}.intermediate.dense", c.d_ff, d)
        names += linear(f"{ours}.feed_forward.w_2", f"{theirs}.output.dense", d, c.d_ff)
        names += layer_norm(f"{ours}.feed_norm", f"{theirs}.output.LayerNorm", d)
    if head.pooler:
        names += linear(f"{e}pooler", f"{prefix}pooler.dense", d, d)
    match head.kind:
        case "BertForPreTraining":
            names += linear("transform", "cls.predictions.transform.dense", d, d)
            names += layer_norm("transform_norm", "cls.predictions.transform.LayerNorm", d)
            names.append(Name("bias", "cls.predictions.bias", (vocab,)))
            if head.next_sentence:
                names += linear("next_sentence", "cls.seq_relationship", 2, d)
        case "BertForSequenceClassification" | "BertForMultipleChoice" | "BertForTokenClassification":
            names += linear("output", "classifier", head.n_labels, d)
        case "BertForQuestionAnswering":
            names += linear("output", "qa_outputs", head.n_labels, d)
    return names


def _new_name(name: str) -> str:
    """Early files name a LayerNorm's weight and bias gamma and beta, as in its paper."""
    return re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name))
