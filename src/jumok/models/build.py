"""Build a model from its config."""

from jumok.models.bert import Bert, BertConfig, BertPretraining
from jumok.models.bert_heads import BertClassifier, BertRelation, BertTagger
from jumok.models.elmo import Elmo, ElmoConfig
from jumok.models.gpt import Gpt, GptConfig
from jumok.models.head import Head
from jumok.models.rnn import RnnClassifier, RnnConfig, RnnLanguageModel, RnnTagger
from jumok.models.seq2seq import Seq2Seq, Seq2SeqConfig
from jumok.models.transformer import Transformer, TransformerConfig

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
