"""Run folder -> predict(texts): the one way from text to output, for the command line, Python and the tests."""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import torch

from jumok.assemble import build_model, choose_device
from jumok.config import read_config
from jumok.decode.search import DecodeConfig
from jumok.errors import CheckpointError, InputError
from jumok.hub.folder import read_model
from jumok.models import EncoderDecoder
from jumok.tasks.translation import Tokenizers, pad, translate
from jumok.text.tokenizer import EOS_ID, Tokenizer
from jumok.train.checkpoint import MANIFEST, load_tensors, verify_folder


@dataclass(frozen=True, slots=True)
class Prediction:
    """One text's output: the best, its score (log-probability after the penalties), and the runners-up."""

    text: str
    score: float
    alternatives: list["Prediction"]
    ids: list[int] = field(repr=False)
    """the pieces as the model wrote them; the text encoded again may be cut elsewhere"""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which piece of the source each piece of the output looked at."""

    source: list[str]
    target: list[str]
    weights: list[list[float]]
    """a row for each target piece: its attention over the source pieces, mean over layers and heads"""
    links: list[tuple[int, int]]
    """(source, target) for the source piece that each target piece looked at most"""
    words: list[tuple[int, int]]
    """the same between words, counted from 0 and split at white space: the usual alignment format"""


class Predictor:
    """One loaded model, or several of the same vocabulary as an ensemble."""

    def __init__(self, folders: Sequence[Path], *, device: str = "auto") -> None:
        self.folders = list(folders)
        self.models: list[EncoderDecoder] = []
        for folder in self.folders:
            model = read_model(folder)
            tokenizers = Tokenizers(model.source, model.target)
            network = build_model(model.config, **tokenizers.sizes)
            load_tensors(network, model.tensors, where=folder)
            self.models.append(network.eval().to(choose_device(device)))
            if len(self.models) == 1:
                self.tokenizers = tokenizers
                self.facts = model.facts
            elif (tokenizers.source.sha256, tokenizers.target.sha256) != (
                self.tokenizers.source.sha256,
                self.tokenizers.target.sha256,
            ):
                raise CheckpointError(
                    "the models of an ensemble must share their vocabulary",
                    where=f"{self.folders[0]} and {folder}",
                    right="runs of recipes with the same data and tokenizer",
                )
        self.decode = read_config(
            DecodeConfig,
            self.facts["decode"],
            what="the model's config",
            where=self.folders[0] / "config.json",
            path="jumok.decode",
            error=CheckpointError,
        )

    def __call__(self, texts: Sequence[str], *, done: Callable[[int], None] = lambda n: None) -> list[str]:
        return [prediction.text for prediction in self.predict(texts, done=done)]

    def predict(
        self,
        texts: Sequence[str],
        *,
        prefixes: Sequence[str] | None = None,
        done: Callable[[int], None] = lambda n: None,
        **options: object,
    ) -> list[Prediction]:
        """Predictions in the order of the texts; `options` replace fields of the recipe's [decode].

        An empty text gives an empty output without asking the model. `prefixes` are beginnings that the outputs
        have to have; `done` is told how many texts have been finished since it was told last.
        """
        decode = self.decode
        if options:
            decode = read_config(DecodeConfig, {**asdict(decode), **options}, what="[decode]", path="decode")
        if decode.coverage_penalty and not all(model.config.attends for model in self.models):
            raise InputError("decode.coverage_penalty counts attention, and the model has none", right="a penalty of 0")
        sources = [self.tokenizers.encode_source(text) for text in texts]
        asked = [i for i, source in enumerate(sources) if len(source) > 1]
        forced = None
        if prefixes is not None:
            forced = [self.tokenizers.target.encode(prefixes[i]) for i in asked]
        self._refuse_too_long([sources[i] for i in asked] + (forced or []))
        found = translate(self.models, self.tokenizers, [sources[i] for i in asked], decode, prefixes=forced, done=done)
        predictions = [Prediction("", 0.0, [], []) for _ in texts]
        for i, hypotheses in zip(asked, found, strict=True):
            ranked = [Prediction(self.tokenizers.target.decode(h.ids), h.score, [], h.ids) for h in hypotheses]
            predictions[i] = replace(ranked[0], alternatives=ranked[1:])
        return predictions

    def align(self, text: str, output: str | Prediction) -> Alignment | None:
        """The attention that the first model pays to `text` while it is made to write `output`; None if it has none."""
        tokenizers, model = self.tokenizers, self.models[0]
        source_ids = tokenizers.encode_source(text)
        written = output.ids if isinstance(output, Prediction) else tokenizers.target.encode(output)
        target_ids = [*written, EOS_ID]
        self._refuse_too_long([source_ids, written])
        source = pad([source_ids], tokenizers.source.pad_id).to(model.device)
        target = pad([[tokenizers.target.pad_id, *written]], tokenizers.target.pad_id).to(model.device)
        with torch.inference_mode():
            found = model.alignment(source, torch.ones_like(source, dtype=torch.bool), target)
        if found is None:
            return None
        weights = found[0]
        best = weights[:, : len(source_ids) - 1].argmax(dim=-1).tolist() if len(source_ids) > 1 else []
        links = [(s, t) for t, s in enumerate(best) if target_ids[t] != EOS_ID]
        source_words, target_words = _words_of_text(tokenizers.source, text), _words_of(tokenizers.target, written)
        return Alignment(
            source=tokenizers.source.pieces(source_ids),
            target=tokenizers.target.pieces(target_ids),
            weights=[[round(w, 4) for w in row] for row in weights.tolist()],
            links=links,
            words=sorted({(source_words[s], target_words[t]) for s, t in links}),
        )

    def _refuse_too_long(self, texts: Sequence[Sequence[int]]) -> None:
        """Learned positions come to an end; an input or a prefix has to leave one for the end."""
        for model in self.models:
            room = model.config.longest
            longest = max(map(len, texts), default=0)
            if room is not None and longest >= room:
                raise InputError(
                    f"a text has {longest} pieces; the model learned {room} positions",
                    right=f"texts of fewer than {room} pieces, or a model with sinusoidal positions",
                )


def _words_of(tokenizer: Tokenizer, ids: Sequence[int]) -> list[int]:
    """For each piece the number of the word that it stands in, when the pieces are read one after the other."""
    return [max(len(tokenizer.decode(ids[: i + 1]).split()) - 1, 0) for i in range(len(ids))]


def _words_of_text(tokenizer: Tokenizer, text: str) -> list[int]:
    """For each piece of a text the number of the word that it stands in."""
    starts = [match.start() for match in re.finditer(r"\S+", text)]
    offsets = tokenizer.encode_with_offsets(text).offsets
    return [max(bisect_right(starts, start) - 1, 0) for start, _ in offsets]


def load(*runs: str | Path, device: str = "auto") -> Predictor:
    """A predictor from a run folder or a model folder; several make an ensemble."""
    if not runs:
        raise InputError("no run to load", right='jumok.load("runs/quickstart")')
    return Predictor([_model_folder(Path(run)) for run in runs], device=device)


def _model_folder(path: Path) -> Path:
    folder = path / "model" if (path / "model").is_dir() else path
    if not (folder / "config.json").exists():
        unfinished = (path / "checkpoints").is_dir()
        raise CheckpointError(
            "the run has not finished: there is no model yet" if unfinished else "no run and no model here",
            where=path,
            right="run its `jumok train` command again to go on" if unfinished else "a folder that `jumok train` made",
        )
    if (folder / MANIFEST).exists():
        verify_folder(folder)
    return folder
