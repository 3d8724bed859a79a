"""One paper, one file, its config above it; here the closed unions that the rest of the house chooses from."""

from jumok.models.rnn import Seq2Seq, Seq2SeqConfig
from jumok.models.transformer import Transformer, TransformerConfig

__all__ = ["EncoderDecoder", "EncoderDecoderConfig", "Seq2Seq", "Seq2SeqConfig", "Transformer", "TransformerConfig"]

EncoderDecoder = Transformer | Seq2Seq
EncoderDecoderConfig = TransformerConfig | Seq2SeqConfig
