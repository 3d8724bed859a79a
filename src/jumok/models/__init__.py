"""One paper, one file, its config above it; here the closed unions that the rest of the house chooses from."""

from jumok.models.rnn import RnnClassifier, RnnConfig, RnnLanguageModel, RnnTagger
from jumok.models.seq2seq import Seq2Seq, Seq2SeqConfig
from jumok.models.transformer import Transformer, TransformerConfig

EncoderDecoder = Transformer | Seq2Seq
EncoderDecoderConfig = TransformerConfig | Seq2SeqConfig
ModelConfig = TransformerConfig | Seq2SeqConfig | RnnConfig
Model = Transformer | Seq2Seq | RnnClassifier | RnnTagger | RnnLanguageModel

__all__ = [
    "EncoderDecoder",
    "EncoderDecoderConfig",
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
