"""Import and export of folders of other libraries: `jumok import` and `jumok export`."""

from pathlib import Path
from typing import Literal

from jumok.errors import CheckpointError
from jumok.files import MANIFEST, refuse_links, write_folder
from jumok.hub.files import CONFIG, model_folder
from jumok.hub.folder import CARD, NO_LIMIT, ModelFolder
from jumok.hub.tokenizer import write_tokenizers
from jumok.tasks.stored import obstacle, read_model, write_model

Layout = Literal["huggingface", "ctranslate2"]


def import_folder(folder: Path, run: Path) -> str:
    """Import a Hugging Face folder into `run`, accounting for every tensor; returns a description."""
    _refuse_full(run, "RUN")
    if not folder.is_dir():
        hint = "pass a Hugging Face folder with config.json"
        raise CheckpointError("no such folder", where=folder, hint=hint, code="checkpoint.no_folder")
    _refuse_parent(folder)
    refuse_links(folder)
    model = read_model(folder)
    card = _card(folder) or f"# {folder.name}\n\nAn external model, imported by jumok {model.facts['version']}.\n"
    write_folder(run / "model", lambda building: write_model(building, model, card=card))
    return f"{run}: {_description(model)}"


def export_folder(run: Path, folder: Path, to: Layout = "huggingface") -> str:
    """Export the model of a run or a model folder for `transformers` or CTranslate2; returns a description."""
    _refuse_full(folder, "DIR")
    source = model_folder(run)
    model = read_model(source)
    if to == "ctranslate2":
        _export_ctranslate2(model, folder, source)
        return f"{folder}: {_description(model)}"
    if reason := obstacle(model):
        raise CheckpointError(
            f"this model has no Hugging Face layout: {reason}",
            where=source,
            hint="export a BERT or successor, a GPT, or a Transformer with the paper's options and a joint vocabulary",
            code="checkpoint.no_layout",
        )
    write_folder(folder, lambda building: write_model(building, model, card=_card(source)))
    (folder / MANIFEST).unlink()  # other programs may edit the files
    return f"{folder}: {_description(model)}"


def _export_ctranslate2(model: ModelFolder, folder: Path, source: Path) -> None:
    """float32 weights, which the library also opens as int8, and the vocabulary to tokenize with."""
    try:
        from jumok.engines.fast_specs import unsuited, write_spec
    except ImportError as error:
        hint = "pip install 'jumok[fast]'"
        raise CheckpointError("CTranslate2 is not installed", hint=hint, code="engine.not_installed") from error
    if reason := unsuited(model.config):
        hint = "see docs/python.md for the models that it has"
        raise CheckpointError(
            f"no folder of CTranslate2: {reason}", where=source, hint=hint, code="checkpoint.no_layout"
        )

    def write(building: Path) -> None:
        write_spec(model, building)
        write_tokenizers(building, model.tokenizers, max_length=NO_LIMIT)
        (building / CARD).write_text(_card(source), "utf-8")

    write_folder(folder, write)
    (folder / MANIFEST).unlink()


def _refuse_full(folder: Path, name: str) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        what, hint = "already exists and is not an empty folder", f"choose a new or empty folder for {name}"
        raise CheckpointError(what, where=folder, hint=hint, code="checkpoint.not_empty")


def _refuse_parent(folder: Path) -> None:
    """A download often has the model in a folder of its own, as a run of jumok does."""
    if (folder / CONFIG).exists():
        return
    below = sorted(path.parent for path in folder.glob(f"*/{CONFIG}"))
    if below:
        names = ", ".join(path.name for path in below[:5])
        raise CheckpointError(
            f"no {CONFIG} here, but in {names}, one level below",
            where=folder,
            hint=f"pass {below[0]}",
            code="checkpoint.model_below",
        )


def _card(folder: Path) -> str:
    path = folder / CARD
    return path.read_text("utf-8", errors="replace") if path.is_file() else ""


def _description(model: ModelFolder) -> str:
    parameters = sum(tensor.numel() for tensor in model.tensors.values())
    tokens = model.tokenizers.target.vocab_size
    kind = getattr(model.config, "family", model.config.kind)
    found = f"{kind}, {model.facts['task']['kind']}, {parameters:,} parameters, {tokens:,} tokens"
    if model.carried:
        found += "; the discriminator's head, which no task of jumok has, is kept for export"
    return found
