"""BERT and its successors in `transformers`: settings of config.json, and tensor names.

All are one stack, `jumok.models.bert`; they differ in how their files name its parts, and in the options of BertConfig.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from jumok.config import Count, CountOrZero, Depth, Positive, Share
from jumok.hub.names import ACTIVATIONS, Name, layer_norm, linear
from jumok.models.bert import BertConfig, Family

PROBLEMS = {
    "class": "single_label_classification",
    "labels": "multi_label_classification",
    "number": "regression",
}
"""what a classifier predicts, as `problem_type` in their config.json"""


@dataclass(frozen=True, kw_only=True, slots=True)
class TheirLabels:
    """What config.json says about a classifier, whatever its body."""

    id2label: dict[str, str] | None = None
    problem_type: str | None = None

    def mistakes(self) -> list[str]:
        refused = []
        if self.problem_type is not None and self.problem_type not in PROBLEMS.values():
            refused.append(f'problem_type: "{self.problem_type}" is not one of {", ".join(PROBLEMS.values())}')
        if self.id2label is not None and self.id2label.keys() != {str(i) for i in range(len(self.id2label))}:
            refused.append('id2label: must have the keys "0", "1", "2" and so on')
        return refused

    def labels(self, n: int) -> list[str]:
        """The names of n labels, numbered if config.json has none."""
        return [self.id2label[str(i)] if self.id2label else f"LABEL_{i}" for i in range(n)]

    def predicts(self, n: int) -> str:
        """What a classifier with n outputs predicts; by default, a number if there is only one."""
        problem = self.problem_type or PROBLEMS["class" if n > 1 else "number"]
        return next(ours for ours, theirs in PROBLEMS.items() if theirs == problem)


@dataclass(frozen=True, kw_only=True, slots=True)
class TheirBert(TheirLabels):
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
    type_vocab_size: Depth = 2
    layer_norm_eps: Positive = 1e-12
    position_embedding_type: str = "absolute"
    is_decoder: bool = False
    add_cross_attention: bool = False

    def __post_init__(self) -> None:
        if refused := self.mistakes():
            raise ValueError("\n".join(refused))

    def mistakes(self) -> list[str]:
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
        return refused + TheirLabels.mistakes(self)

    def ours(self, family: Family) -> BertConfig:
        return BertConfig(
            family=family,
            d_model=self.hidden_size,
            d_ff=self.intermediate_size,
            n_heads=self.num_attention_heads,
            n_layers=self.num_hidden_layers,
            dropout=self.hidden_dropout_prob,
            attention_dropout=self.attention_probs_dropout_prob,
            max_len=self.max_position_embeddings - self.first_position,
            n_segments=self.type_vocab_size,
            activation=ACTIVATIONS[self.hidden_act],
            norm_eps=self.layer_norm_eps,
            first_position=self.first_position,
            d_embedding=self.narrow,
        )

    @property
    def first_position(self) -> int:
        return 0

    @property
    def narrow(self) -> int | None:
        """Width of the embeddings if it is not that of the stack."""
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class TheirRoberta(TheirBert):
    """Positions are counted from the one after the padding's id."""

    vocab_size: Count = 50265
    pad_token_id: CountOrZero = 1

    def mistakes(self) -> list[str]:
        refused = TheirBert.mistakes(self)
        if self.max_position_embeddings <= self.first_position:
            refused.append(f"max_position_embeddings: must be over {self.first_position}, pad_token_id + 1")
        return refused

    @property
    def first_position(self) -> int:
        return self.pad_token_id + 1


@dataclass(frozen=True, kw_only=True, slots=True)
class TheirXlmRoberta(TheirRoberta):
    """As RoBERTa, with another default."""

    vocab_size: Count = 30522


@dataclass(frozen=True, kw_only=True, slots=True)
class TheirElectra(TheirBert):
    """The defaults are SMALL. `summary_*` are of the head for multiple choice."""

    embedding_size: Count = 128
    hidden_size: Count = 256
    num_attention_heads: Count = 4
    intermediate_size: Count = 1024
    summary_type: str = "first"
    summary_use_proj: bool = True
    summary_activation: str | None = "gelu"

    def mistakes(self) -> list[str]:
        refused = TheirBert.mistakes(self)
        if (self.summary_type, self.summary_use_proj, self.summary_activation) != ("first", True, "gelu"):
            refused.append('summary_type, summary_use_proj, summary_activation: jumok has "first", true, "gelu" only')
        return refused

    @property
    def narrow(self) -> int | None:
        return None if self.embedding_size == self.hidden_size else self.embedding_size


@dataclass(frozen=True, kw_only=True, slots=True)
class TheirDistilBert(TheirLabels):
    """DistilBERT has names of its own for the same settings."""

    vocab_size: Count = 30522
    dim: Count = 768
    n_layers: Depth = 6
    n_heads: Count = 12
    hidden_dim: Count = 3072
    activation: str = "gelu"
    dropout: Share = 0.1
    attention_dropout: Share = 0.1
    max_position_embeddings: Count = 512
    sinusoidal_pos_embds: bool = False

    def __post_init__(self) -> None:
        refused = []
        if self.activation not in ACTIVATIONS:
            refused.append(f'activation: "{self.activation}" is not one of {", ".join(ACTIVATIONS)}')
        if self.sinusoidal_pos_embds:
            refused.append("sinusoidal_pos_embds: jumok's BERT learns its positions (got true)")
        if self.dim % self.n_heads:
            refused.append("dim: must be divisible by n_heads")
        if refused := refused + self.mistakes():
            raise ValueError("\n".join(refused))

    def ours(self, family: Family) -> BertConfig:
        return BertConfig(
            family=family,
            d_model=self.dim,
            d_ff=self.hidden_dim,
            n_heads=self.n_heads,
            n_layers=self.n_layers,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            max_len=self.max_position_embeddings,
            n_segments=0,
            activation=ACTIVATIONS[self.activation],
            norm_eps=DISTILBERT_EPS,
        )


DISTILBERT_EPS = 1e-12  # not a setting there
TheirConfig = TheirBert | TheirDistilBert

_BERT_LAYER = {
    "self_attention.w_q": "attention.self.query",
    "self_attention.w_k": "attention.self.key",
    "self_attention.w_v": "attention.self.value",
    "self_attention.w_o": "attention.output.dense",
    "self_norm": "attention.output.LayerNorm",
    "feed_forward.w_1": "intermediate.dense",
    "feed_forward.w_2": "output.dense",
    "feed_norm": "output.LayerNorm",
}
_DISTILBERT_LAYER = {
    "self_attention.w_q": "attention.q_lin",
    "self_attention.w_k": "attention.k_lin",
    "self_attention.w_v": "attention.v_lin",
    "self_attention.w_o": "attention.out_lin",
    "self_norm": "sa_layer_norm",
    "feed_forward.w_1": "ffn.lin1",
    "feed_forward.w_2": "ffn.lin2",
    "feed_norm": "output_layer_norm",
}
TEXT, CHOICE = "ForSequenceClassification", "ForMultipleChoice"


@dataclass(frozen=True, kw_only=True, slots=True)
class Successor:
    """BERT or a successor of it, in `transformers`."""

    name: str
    """as people write it"""
    classes: str
    """how the names of its classes begin"""
    prefix: str
    """how the names of its body's tensors begin in a model with a head"""
    config: type[TheirConfig]
    layers: str = "encoder.layer"
    layer: Mapping[str, str] = field(default_factory=lambda: _BERT_LAYER)
    poolers: Mapping[str, str]
    """the layer before the last one of a decision on the whole text, by the end of the class; `{}` is the prefix"""
    text_output: str = "classifier"
    transform: str
    transform_norm: str
    masked_bias: str
    """of the head for masked words"""
    copies: Mapping[str, str]
    """tied tensors of that head and what they copy: `{}` stands for the body's prefix"""

    def body(self, c: BertConfig, vocab: int, *, ours: str, prefix: str, pooler: str | None) -> list[Name]:
        """`ours` and `prefix` start our names and theirs."""
        d, e = c.d_model, c.width
        names = [
            Name(f"{ours}embedding.weight", f"{prefix}{WORDS}", (vocab, e)),
            Name(
                f"{ours}positions.weight",
                f"{prefix}embeddings.position_embeddings.weight",
                (c.first_position + c.max_len, e),
            ),
            *layer_norm(f"{ours}norm", f"{prefix}embeddings.LayerNorm", e),
        ]
        if c.n_segments:
            theirs = f"{prefix}embeddings.token_type_embeddings.weight"
            names.append(Name(f"{ours}segments.weight", theirs, (c.n_segments, e)))
        if e != d:
            names += linear(f"{ours}widen", f"{prefix}embeddings_project", d, e)
        sizes = {"feed_forward.w_1": (c.d_ff, d), "feed_forward.w_2": (d, c.d_ff)}
        for i in range(c.n_layers):
            for part, theirs in self.layer.items():
                both = f"{ours}stack.layers.{i}.{part}", f"{prefix}{self.layers}.{i}.{theirs}"
                names += layer_norm(*both, d) if part.endswith("norm") else linear(*both, *sizes.get(part, (d, d)))
        if pooler is not None:
            names += linear(f"{ours}pooler", pooler.format(prefix), d, d)
        return names


WORDS = "embeddings.word_embeddings.weight"
_ROBERTA = Successor(
    name="RoBERTa",
    classes="Roberta",
    prefix="roberta.",
    config=TheirRoberta,
    poolers={"Model": "{}pooler.dense", TEXT: "classifier.dense", CHOICE: "{}pooler.dense"},
    text_output="classifier.out_proj",
    transform="lm_head.dense",
    transform_norm="lm_head.layer_norm",
    masked_bias="lm_head.bias",
    copies={"lm_head.decoder.weight": "{}" + WORDS, "lm_head.decoder.bias": "lm_head.bias"},
)
SUCCESSORS: dict[Family, Successor] = {
    "bert": Successor(
        name="BERT",
        classes="Bert",
        prefix="bert.",
        config=TheirBert,
        poolers=dict.fromkeys(("Model", "ForPreTraining", TEXT, CHOICE), "{}pooler.dense"),
        transform="cls.predictions.transform.dense",
        transform_norm="cls.predictions.transform.LayerNorm",
        masked_bias="cls.predictions.bias",
        copies={
            "cls.predictions.decoder.weight": "{}" + WORDS,
            "cls.predictions.decoder.bias": "cls.predictions.bias",
        },
    ),
    "roberta": _ROBERTA,
    "xlm-roberta": replace(_ROBERTA, name="XLM-RoBERTa", classes="XLMRoberta", config=TheirXlmRoberta),
    "electra": Successor(
        name="ELECTRA",
        classes="Electra",
        prefix="electra.",
        config=TheirElectra,
        poolers={TEXT: "classifier.dense", CHOICE: "sequence_summary.summary"},
        text_output="classifier.out_proj",
        transform="generator_predictions.dense",
        transform_norm="generator_predictions.LayerNorm",
        masked_bias="generator_lm_head.bias",
        copies={"generator_lm_head.weight": "{}" + WORDS},
    ),
    "distilbert": Successor(
        name="DistilBERT",
        classes="DistilBert",
        prefix="distilbert.",
        config=TheirDistilBert,
        layers="transformer.layer",
        layer=_DISTILBERT_LAYER,
        poolers={TEXT: "pre_classifier", CHOICE: "pre_classifier"},
        transform="vocab_transform",
        transform_norm="vocab_layer_norm",
        masked_bias="vocab_projector.bias",
        copies={"vocab_projector.weight": "{}" + WORDS},
    ),
}
GELU_HEADS: tuple[Family, ...] = ("roberta", "xlm-roberta", "electra")
"""whose head for masked words has GELU, whatever the body has"""
