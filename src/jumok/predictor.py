"""Run folder -> predict(texts): the one way from text to output, for the command line, Python and the tests."""

from collections.abc import Sequence
from pathlib import Path

from jumok.assemble import build_model, choose_device
from jumok.errors import CheckpointError, InputError, listed
from jumok.hub.folder import ModelFolder, read_model
from jumok.models import (
    Bert,
    BertClassifier,
    BertPretraining,
    BertRelation,
    BertTagger,
    Elmo,
    Gpt,
    RnnClassifier,
    RnnLanguageModel,
    RnnTagger,
    Seq2Seq,
    Transformer,
)
from jumok.tasks.answerer import Answered, Answerer
from jumok.tasks.choice import Chooser, Chosen
from jumok.tasks.classifier import Classified, Classifier
from jumok.tasks.encoder import Answer, Encoder
from jumok.tasks.language_model import Generated, Generator
from jumok.tasks.predict import Predictor
from jumok.tasks.relater import RelatedText, Relater
from jumok.tasks.tagger import TaggedText, Tagger
from jumok.tasks.translator import Alignment, Prediction, Translator
from jumok.train.checkpoint import load_tensors
from jumok.transfer import model_folder

__all__ = [
    "Alignment",
    "Answer",
    "Answered",
    "Answerer",
    "Chooser",
    "Chosen",
    "Classified",
    "Classifier",
    "Encoder",
    "Generated",
    "Generator",
    "Prediction",
    "Predictor",
    "RelatedText",
    "Relater",
    "TaggedText",
    "Tagger",
    "Translator",
    "load",
]


def load(*runs: str | Path, device: str = "auto") -> Predictor:
    """A predictor from a run folder or a model folder; several make an ensemble."""
    if not runs:
        raise InputError("no run to load", right='jumok.load("runs/quickstart")')
    paths = [model_folder(Path(run)) for run in runs]
    folders = [read_model(path) for path in paths]
    _refuse_mixture(folders, paths)
    models = []
    for path, folder in zip(paths, folders, strict=True):
        # A number, and the score of a choice, have no label.
        sizes = {**folder.tokenizers.sizes, "n_labels": max(len(folder.facts.get("labels", [])), 1)}
        model = build_model(folder.config, folder.facts["task"], **sizes)
        load_tensors(model, folder.tensors, where=path)
        models.append(model.eval().to(choose_device(device)))
    first, where = folders[0], paths[0] / "config.json"
    tokenizer = first.tokenizers.source
    match first.facts["task"]["kind"]:
        case "classification":
            classifiers = [m for m in models if isinstance(m, RnnClassifier | BertClassifier | Gpt)]
            return Classifier(classifiers, tokenizer, first.facts)
        case "pretraining" | "embedding":
            encoders = [model for model in models if isinstance(model, BertPretraining | Bert)]
            if len(encoders) > 1:
                raise InputError("pre-trained encoders make no ensemble", right="one run")
            return Encoder(encoders[0], tokenizer, first.facts)
        case "tagging":
            taggers = [m for m in models if isinstance(m, RnnTagger | BertTagger)]
            return Tagger(taggers, tokenizer, first.facts)
        case "relation":
            relaters = [m for m in models if isinstance(m, RnnClassifier | BertRelation)]
            return Relater(relaters, tokenizer, first.facts)
        case "answering":
            answerers = [m for m in models if isinstance(m, RnnTagger | BertTagger)]
            return Answerer(answerers, tokenizer, first.facts)
        case "choice":
            choosers = [m for m in models if isinstance(m, RnnClassifier | BertClassifier)]
            return Chooser(choosers, tokenizer, first.facts)
        case "language_model":
            writers = [model for model in models if isinstance(model, RnnLanguageModel | Gpt | Elmo)]
            return Generator(writers, tokenizer, first.facts, where=where)
        case _:
            translators = [model for model in models if isinstance(model, Transformer | Seq2Seq)]
            return Translator(translators, first.tokenizers, first.facts, where=where)


def _refuse_mixture(folders: Sequence[ModelFolder], paths: Sequence[Path]) -> None:
    """An ensemble is of models that do the same with the same pieces, so that a text is read once for all of them."""

    def what(folder: ModelFolder) -> dict[str, object]:
        task, facts, tokenizers = folder.facts["task"], folder.facts, folder.tokenizers
        found: dict[str, object] = {"vocabulary": (tokenizers.source.sha256, tokenizers.target.sha256)}
        found |= {key: task.get(key) for key in ("kind", "predicts", "no_relation", "no_answer")}
        found |= {key: facts.get(key) for key in ("labels", "separator", "pair", "units", "long_texts")}
        return found | ({"max_len": facts.get("max_len")} if "long_texts" in facts else {})

    first = what(folders[0])
    for folder, path in zip(folders, paths, strict=True):
        if differ := [key for key, value in what(folder).items() if value != first.get(key)]:
            raise CheckpointError(
                f"models of an ensemble must share their task and their vocabulary; these differ in {listed(differ)}",
                where=f"{paths[0]} and {path}",
                right="runs of recipes with the same task, data and tokenizer",
            )
