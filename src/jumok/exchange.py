"""Import and export of Hugging Face folders: `jumok import` and `jumok export`."""

from pathlib import Path

from jumok.errors import CheckpointError
from jumok.files import MANIFEST, refuse_links, write_folder
from jumok.hub.files import model_folder
from jumok.hub.folder import CARD, ModelFolder
from jumok.tasks.stored import obstacle, read_model, write_model


def import_folder(folder: Path, run: Path) -> str:
    """Import a Hugging Face folder into `run`, accounting for every tensor; returns a description."""
    _refuse_full(run, "RUN")
    if not folder.is_dir():
        hint = "pass a Hugging Face folder with config.json"
        raise CheckpointError("no such folder", where=folder, hint=hint, code="checkpoint.no_folder")
    refuse_links(folder)
    model = read_model(folder)
    card = _card(folder) or f"# {folder.name}\n\nAn external model, imported by jumok {model.facts['version']}.\n"
    write_folder(run / "model", lambda building: write_model(building, model, card=card))
    return f"{run}: {_description(model)}"


def export_folder(run: Path, folder: Path) -> str:
    """Export the model of a run or a model folder for `transformers`; returns a description."""
    _refuse_full(folder, "DIR")
    source = model_folder(run)
    model = read_model(source)
    if reason := obstacle(model):
        raise CheckpointError(
            f"this model has no Hugging Face layout: {reason}",
            where=source,
            hint="export a BERT, a GPT, or a Transformer with the paper's options and a joint vocabulary",
            code="checkpoint.no_layout",
        )
    write_folder(folder, lambda building: write_model(building, model, card=_card(source)))
    (folder / MANIFEST).unlink()  # other programs may edit the files
    return f"{folder}: {_description(model)}"


def _refuse_full(folder: Path, name: str) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        what, hint = "already exists and is not an empty folder", f"choose a new or empty folder for {name}"
        raise CheckpointError(what, where=folder, hint=hint, code="checkpoint.not_empty")


def _card(folder: Path) -> str:
    path = folder / CARD
    return path.read_text("utf-8", errors="replace") if path.is_file() else ""


def _description(model: ModelFolder) -> str:
    parameters = sum(tensor.numel() for tensor in model.tensors.values())
    tokens = model.tokenizers.target.vocab_size
    return f"{model.config.kind}, {model.facts['task']['kind']}, {parameters:,} parameters, {tokens:,} tokens"
