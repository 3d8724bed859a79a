"""jumok: from raw text to a working, inspectable sequence model."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from jumok.threads import spin_briefly
from jumok.version import __version__

spin_briefly()  # before anything loads torch

if TYPE_CHECKING:
    from jumok.errors import JumokError
    from jumok.predictor import load
    from jumok.tasks.answering.predictor import Answerer
    from jumok.tasks.choice.predictor import Chooser
    from jumok.tasks.classification.predictor import Classifier
    from jumok.tasks.language_model.predictor import Generator
    from jumok.tasks.pretraining.predictor import Encoder
    from jumok.tasks.protocol import Failure, Note, Predictor
    from jumok.tasks.relation.predictor import Relater
    from jumok.tasks.tagging.predictor import Tagger
    from jumok.tasks.translation.predictor import Translator
    from jumok.training import train

# Where the public names live; each is imported on first use, so that `jumok --help` need not wait for torch.
_HOMES = {
    "Answerer": "jumok.tasks.answering.predictor",
    "Chooser": "jumok.tasks.choice.predictor",
    "Classifier": "jumok.tasks.classification.predictor",
    "Encoder": "jumok.tasks.pretraining.predictor",
    "Failure": "jumok.tasks.protocol",
    "Generator": "jumok.tasks.language_model.predictor",
    "JumokError": "jumok.errors",
    "Note": "jumok.tasks.protocol",
    "Predictor": "jumok.tasks.protocol",
    "Relater": "jumok.tasks.relation.predictor",
    "Tagger": "jumok.tasks.tagging.predictor",
    "Translator": "jumok.tasks.translation.predictor",
    "load": "jumok.predictor",
    "train": "jumok.training",
}
__all__ = [
    "Answerer",
    "Chooser",
    "Classifier",
    "Encoder",
    "Failure",
    "Generator",
    "JumokError",
    "Note",
    "Predictor",
    "Relater",
    "Tagger",
    "Translator",
    "__version__",
    "load",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'jumok' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)
