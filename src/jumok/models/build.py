"""Build a model from its config."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from jumok.errors import CheckpointError
from jumok.models.bert import Bert, BertConfig, BertPretraining
from jumok.models.bert_heads import BertClassifier, BertRelation, BertTagger
from jumok.models.elmo import Elmo, ElmoConfig
from jumok.models.gpt import Gpt, GptConfig
from jumok.models.head import Head
from jumok.models.rnn import RnnClassifier, RnnConfig, RnnLanguageModel, RnnTagger
from jumok.models.seq2seq import Seq2Seq, Seq2SeqConfig
from jumok.models.transformer import Transformer, TransformerConfig
from jumok.models.weights import refuse_unfitting

EncoderDecoder = Transformer | Seq2Seq
LanguageModel = RnnLanguageModel | Gpt | Elmo
ModelConfig = TransformerConfig | Seq2SeqConfig | RnnConfig | BertConfig | GptConfig | ElmoConfig
Model = (
    Transformer
    | Seq2Seq
    | RnnClassifier
    | RnnTagger
    | RnnLanguageModel
    | Bert
    | BertPretraining
    | BertClassifier
    | BertTagger
    | BertRelation
    | Gpt
    | Elmo
)


def build_model(c: ModelConfig, head: Head, *, source_vocab: int, target_vocab: int) -> Model:
    match c:
        case TransformerConfig():
            return Transformer(c, source_vocab=source_vocab, target_vocab=target_vocab)
        case Seq2SeqConfig():
            return Seq2Seq(c, source_vocab=source_vocab, target_vocab=target_vocab)
        case GptConfig():
            return Gpt(c, vocab=source_vocab)
        case ElmoConfig():
            return Elmo(c, vocab=source_vocab)
        case BertConfig():
            match head.asks:
                case "masked":
                    return BertPretraining(c, vocab=source_vocab, next_sentence=head.next_sentence)
                case "text":
                    return BertClassifier(c, vocab=source_vocab, n_labels=head.n_labels)
                case "pieces":
                    return BertTagger(c, vocab=source_vocab, n_labels=head.n_labels, crf=head.crf)
                case "entities":
                    return BertRelation(c, vocab=source_vocab, n_labels=head.n_labels)
                case _:
                    return Bert(c, vocab=source_vocab, pooler=head.pooler)
        case RnnConfig():
            match head.asks:
                case "text" | "entities":
                    return RnnClassifier(c, vocab=source_vocab, n_labels=head.n_labels)
                case "pieces":
                    return RnnTagger(c, vocab=source_vocab, n_labels=head.n_labels, crf=head.crf)
                case _:
                    return RnnLanguageModel(c, vocab=source_vocab)


def shapes_of(c: ModelConfig, head: Head, *, source_vocab: int, target_vocab: int) -> Model:
    """The model on the meta device: its parameters have shapes, and take no memory."""
    with torch.device("meta"), _Undrawn():
        return build_model(c, head, source_vocab=source_vocab, target_vocab=target_vocab)


class _Undrawn(TorchFunctionMode):
    """Draws no random numbers: for those of the meta device, torch imports its compiler, which takes a second."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if func in (Tensor.normal_, nn.init.normal_):
            return args[0] if args else given["tensor"]
        return func(*args, **given)


def check_weights(
    c: ModelConfig, head: Head, tensors: Mapping[str, Tensor], *, where: Path, source_vocab: int, target_vocab: int
) -> None:
    """Refuse weights that are not those of the config's model, before memory is allocated for the sizes it claims."""
    features = c.features if isinstance(c, RnnConfig) else None
    n_layers = sum(getattr(part, "n_layers", 0) for part in (c, features))  # a model need not have layers
    if n_layers > len(tensors):  # even without memory, a million layers take their time
        what = f"the weights do not fit the model: it has {n_layers:,} layers, but there are {len(tensors):,} tensors"
        raise CheckpointError(what, where=where, hint="use the config.json of these weights", code="checkpoint.tensors")
    refuse_unfitting(shapes_of(c, head, source_vocab=source_vocab, target_vocab=target_vocab), tensors, where=where)
