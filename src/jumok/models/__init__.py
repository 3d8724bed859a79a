"""One paper, one file, its config above it; here the closed unions that the rest of the house chooses from."""

from jumok.models.bert import Bert, BertConfig, BertPretraining
from jumok.models.bert_heads import BertClassifier, BertRelation, BertTagger
from jumok.models.elmo import Elmo, ElmoConfig
from jumok.models.gpt import Gpt, GptConfig
from jumok.models.rnn import RnnClassifier, RnnConfig, RnnLanguageModel, RnnTagger
from jumok.models.seq2seq import Seq2Seq, Seq2SeqConfig
from jumok.models.transformer import Transformer, TransformerConfig

EncoderDecoder = Transformer | Seq2Seq
EncoderDecoderConfig = TransformerConfig | Seq2SeqConfig
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

__all__ = [
    "Bert",
    "BertClassifier",
    "BertConfig",
    "BertPretraining",
    "BertRelation",
    "BertTagger",
    "Elmo",
    "ElmoConfig",
    "EncoderDecoder",
    "EncoderDecoderConfig",
    "Gpt",
    "GptConfig",
    "LanguageModel",
    "Model",
    "ModelConfig",
    "RnnClassifier",
    "RnnConfig",
    "RnnLanguageModel",
    "RnnTagger",
    "Seq2Seq",
    "Seq2SeqConfig",
    "Transformer",
    "TransformerConfig",
]
