"""RUN/engine: the model as CTranslate2 runs it, built once from RUN/model and verified whenever it is opened."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from jumok.config import NotNegative, read_config
from jumok.errors import CheckpointError
from jumok.files import CARD, MANIFEST, parse_json, refuse_links, verify_folder, write_folder
from jumok.hub.files import read_json, write_json
from jumok.hub.tokenizer import read_tokenizers, write_tokenizers
from jumok.text.tokenizer import Tokenizers

FORMAT = 1
SETTINGS = "engine.json"
BODY, HEADS = "body.onnx", "heads.safetensors"
LIBRARIES = {"transformer": "ctranslate2", "gpt": "ctranslate2", "bert": "onnxruntime", "seq2seq": "torch"}
"""what runs each kind of model; torch, with weights rounded to int8"""
Compute = Literal["float32", "int8"]


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineConfig:
    """How fast engines may differ from the reference."""

    max_loss: NotNegative = 0.2
    """int8 and shortlists are kept if they lose less than this on dev: points of BLEU, accuracy or F1, or per cent of a
    perplexity"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """A form of the model, measured on dev beside float32."""

    compute: Compute
    shortlist: int
    metric: str
    score: float
    loss: float
    """against float32: points, or per cent of a perplexity"""
    differ: float = 0.0
    """share of the outputs that are not those of float32"""
    kept: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Built:
    """engine.json: what was built, from which model, and how it scored."""

    kind: str
    """`model.kind` of the recipe"""
    longest: int | None
    attends: bool
    asks: str = ""
    activation: str = ""
    norm_eps: float = 0.0
    pooling: str = "tanh"
    """of BERT's head"""
    compute: Compute = "float32"
    shortlist: int = 0
    """target tokens kept for each source token; 0: the whole vocabulary is predicted"""
    width: int | None = None
    """hypotheses in a batch, as measured on `machine`"""
    machine: str = ""
    examples: int = 0
    """of dev, that the trials were scored on"""
    trials: list[Trial] = field(default_factory=list)
    facts: dict[str, Any]
    """the key "jumok" of the model's config.json"""
    format: int = FORMAT
    library: str
    """name and version of the library that runs it"""
    model: str
    """digest of the model that it was built from"""

    def __str__(self) -> str:
        kept = [self.compute, *([f"a shortlist of {self.shortlist} for each source token"] if self.shortlist else [])]
        about = "the reference's outputs" if self.compute == "float32" and not self.shortlist else "not measured"
        for trial in self.trials:
            if trial.kept:
                about = f"loses {max(trial.loss, 0):.2f} {trial.metric} on {self.examples} dev examples"
                about += f", {trial.differ:.1%} of its outputs differ"
        return f"{self.library}, {' with '.join(kept)}: {about}"


def engine_folder(model: Path) -> Path:
    """Beside RUN/model."""
    return model.parent / "engine"


def model_digest(model: Path) -> str:
    """A hash of RUN/model, whose files match its manifest; people may edit its card."""
    manifest = parse_json((model / MANIFEST).read_bytes())
    files = {name: entry for name, entry in manifest.items() if name != CARD}
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()


def library_version(kind: str) -> str:
    """The library that runs a kind of model, and its version."""
    return f"{LIBRARIES[kind]} {metadata.version(LIBRARIES[kind])}"


def store_engine(folder: Path, built: Built, tokenizers: Tokenizers, write: Callable[[Path], None]) -> None:
    """Write an engine folder; `write` adds the weights."""

    def fill(building: Path) -> None:
        write(building)
        write_tokenizers(building, tokenizers, max_length=built.longest or 10**6)
        write_json(building / SETTINGS, asdict(built))

    write_folder(folder, fill)


def read_engine(folder: Path, model: Path) -> tuple[Built, Tokenizers]:
    """Read an engine folder; refuses one that is damaged, or that another model or another library was built for."""
    if not folder.is_dir() or folder.is_symlink():
        raise CheckpointError("not built yet", where=folder, code="engine.missing")
    refuse_links(folder)
    verify_folder(folder, needs=[SETTINGS])
    tree = read_json(folder / SETTINGS)
    if tree.get("format") != FORMAT:
        raise CheckpointError("built by another version of jumok", where=folder, code="engine.stale")
    built = read_config(Built, tree, what="the engine's settings", where=folder / SETTINGS, error=CheckpointError)
    if built.library != library_version(built.kind):
        what = f"built for {built.library}, and {library_version(built.kind)} is installed"
        raise CheckpointError(what, where=folder, code="engine.stale")
    if built.model != model_digest(model):
        raise CheckpointError("built from another model", where=folder, code="engine.stale")
    return built, read_tokenizers(folder)
