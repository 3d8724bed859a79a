"""The reference engine: jumok's own models in torch."""

import os
from collections.abc import Iterable, Iterator, Sequence
from math import log
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from jumok.data.batching import Indices, sorted_batches
from jumok.data.packing import Packed
from jumok.data.pages import PREDICT_TOKENS, Page, packed_states, pad, pages
from jumok.decode.options import DecodeConfig, Hypothesis, Request
from jumok.decode.search import Ensemble, EnsembleState, Read, follow_one, search
from jumok.engines import Array, Done, Guessed, Part, Rows, Tags, nobody
from jumok.engines.branches import continuations
from jumok.engines.inside import TorchInside
from jumok.engines.maps import attention_maps
from jumok.engines.prefixes import read_prefixes
from jumok.errors import RecipeError
from jumok.hub.folder import ModelFolder
from jumok.models.bert import Bert, BertPretraining
from jumok.models.bert_heads import BertClassifier, BertRelation, BertTagger
from jumok.models.build import EncoderDecoder, LanguageModel, Model, build_model
from jumok.models.elmo import Elmo
from jumok.models.gpt import Gpt
from jumok.models.head import Head
from jumok.models.rnn import RnnClassifier, RnnLanguageModel, RnnTagger
from jumok.models.seq2seq import Seq2Seq
from jumok.models.transformer import Transformer
from jumok.models.weights import load_tensors
from jumok.nn.cross_entropy import linear_cross_entropy
from jumok.text.tokenizer import Tokenizers
from jumok.text.vocabulary import EOS_ID
from jumok.threads import Threads

SEARCH_TOKENS = 4096
PAGE_FLOATS = 3 << 19
"""of a page's widest activations: 6 MB, which a CPU's cache can hold"""
GENERATED_AT_ONCE = 64
"""texts that a language model continues in parallel"""
Batch = TypeVar("Batch")
Reader = RnnClassifier | RnnTagger | BertClassifier | BertTagger | BertRelation


class TorchEngine(TorchInside):
    """Models of one task and one vocabulary, in evaluation mode, on one device."""

    workers = 1  # one batch at a time, each operation on several threads

    def __init__(self, models: Sequence[Model], tokenizers: Tokenizers, between: Done = nobody) -> None:
        """`between` is called before every batch and every step of a search, and may raise to stop."""
        self.models = list(models)
        self.between = between
        self.tokenizers = tokenizers
        self.tokenizer = tokenizers.source
        self.threads: Threads | None = None
        """adjusted while a loaded model predicts; during training the loop does that"""

    def _each(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        for batch in batches:
            self.between(0)
            if self.threads is not None:
                self.threads.look()
            yield batch

    def _pages(self, rows: Rows) -> Iterator[tuple[Indices, Page]]:
        """Pages small enough for a layer's widest activations to stay in the cache; a step of a recurrent network,
        which has few, gains by more rows."""
        d_ff = max(getattr(model.config, "d_ff", 0) for model in self.models)
        cached = PAGE_FLOATS // d_ff if d_ff and self.device.type == "cpu" else PREDICT_TOKENS
        return self._each(pages(rows, self.tokenizer, self.device, tokens=min(max(cached, 256), PREDICT_TOKENS)))

    @property
    def n_models(self) -> int:
        return len(self.models)

    @property
    def kind(self) -> str:
        return self.models[0].config.kind

    @property
    def device(self) -> torch.device:
        return self.models[0].device

    @property
    def longest(self) -> int | None:
        limits = [
            c.max_len
            if isinstance(model, Bert | BertPretraining | BertClassifier | BertTagger | BertRelation | Gpt)
            else getattr(c, "longest", None)
            for model in self.models
            for c in [cast(Any, model.config)]
        ]
        return min((limit for limit in limits if limit is not None), default=None)

    @property
    def attends(self) -> bool:
        return all(isinstance(model, Transformer | Seq2Seq) and model.config.attends for model in self.models)

    # one text: labels, tags, states

    @torch.inference_mode()
    def logits(self, rows: Rows, *, entities: Sequence[tuple[Part, Part]] = (), done: Done = nobody) -> list[Array]:
        found: list[Array] = [np.zeros(0)] * len(rows)
        for some, page in self._pages(rows):
            extra: list[Tensor] = []
            if entities and isinstance(self.models[0], BertRelation):
                where = torch.arange(page.ids.shape[1], device=self.device)
                for side in (0, 1):
                    ends = torch.tensor([entities[i][side] for i in some], device=self.device)
                    extra.append((where >= ends[:, :1]) & (where < ends[:, 1:]))
            stacked = torch.stack([model(page.ids, page.segments, page.mask, *extra) for model in self.models])
            outputs = stacked.double().cpu().numpy()  # [M, B, L] or [M, B, S, L]
            for place, i in enumerate(some):
                found[i] = outputs[:, place] if outputs.ndim == 3 else outputs[:, place, : len(rows[i])]
            done(len(some))
        return found

    @torch.inference_mode()
    def focus(self, rows: Rows) -> list[Array] | None:
        model = self.models[0]
        if not isinstance(model, RnnClassifier | BertClassifier):
            return None
        found: list[Array] = [np.zeros(0)] * len(rows)
        for some, page in self._pages(rows):
            weights: list[Tensor] = []
            model(page.ids, page.segments, page.mask, weights=weights)
            if not weights:
                return None
            for place, i in enumerate(some):
                found[i] = weights[0][place, : len(rows[i])].double().cpu().numpy()
        return found

    @torch.inference_mode()
    def tag(self, emissions: Sequence[Array]) -> list[Tags]:
        """Texts of similar length share a batch; several models are combined by the mean of their marginals."""
        models = [model for model in self.models if isinstance(model, RnnTagger | BertTagger)]
        sizes = np.array([each.shape[1] for each in emissions], dtype=np.int64)
        n_labels = emissions[0].shape[2] if emissions else 0
        nothing = Tags(np.zeros(0, dtype=np.int64), np.zeros((0, n_labels)))
        tagged = [nothing] * len(emissions)
        for some in self._each(sorted_batches(sizes, 8192) if sizes.any() else ()):
            e = torch.zeros(len(models), len(some), int(max(sizes[some].max(), 1)), n_labels)
            for place, i in enumerate(some):
                e[:, place, : sizes[i]] = torch.from_numpy(emissions[i])
            e = e.to(self.device)
            here = torch.arange(e.shape[2], device=e.device) < torch.tensor(sizes[some], device=e.device)[:, None]
            by_model = [
                each.softmax(dim=-1) if model.crf is None else model.crf.marginals(each, here)
                for model, each in zip(models, e, strict=True)
            ]
            probabilities = torch.stack(by_model).mean(dim=0).double().cpu().numpy()
            crf = models[0].crf if len(models) == 1 else None
            best = probabilities.argmax(axis=2) if crf is None else crf.best(e[0], here).cpu().numpy()
            for place, i in enumerate(some):
                tagged[i] = Tags(best[place, : sizes[i]], probabilities[place, : sizes[i]])
        return tagged

    @property
    def _bert(self) -> Bert:
        model = self.models[0]
        return model.bert if isinstance(model, BertPretraining) else cast(Bert, model)

    @property
    def can_fill(self) -> bool:
        return isinstance(self.models[0], BertPretraining)

    @property
    def can_follow(self) -> bool:
        return isinstance(self.models[0], BertPretraining) and self.models[0].next_sentence is not None

    @torch.inference_mode()
    def states(self, rows: Rows) -> list[Array]:
        found: list[Array] = [np.zeros(0)] * len(rows)
        for some, page in self._pages(rows):
            hidden = self._bert(page.ids, page.segments, page.mask).double().cpu().numpy()
            for place, i in enumerate(some):
                found[i] = hidden[place, : len(rows[i])]
        return found

    @torch.inference_mode()
    def masked(self, rows: Rows) -> list[Array]:
        model = cast(BertPretraining, self.models[0])
        found: list[Array] = [np.zeros(0)] * len(rows)
        for some, page in self._pages(rows):
            assert self.tokenizer.mask_id is not None
            is_mask = page.ids.eq(self.tokenizer.mask_id)
            hidden = model(page.ids, page.segments, page.mask)
            for place, i in enumerate(some):
                here = hidden[place][is_mask[place]]
                found[i] = model.logits(here).softmax(dim=-1).double().cpu().numpy()
        return found

    @torch.inference_mode()
    def follows(self, rows: Rows) -> Array:
        model = cast(BertPretraining, self.models[0])
        found = np.zeros(len(rows))
        for some, page in self._pages(rows):
            first = model(page.ids, page.segments, page.mask)[:, 0]
            found[some] = model.follows(first).softmax(dim=-1)[:, 0].double().cpu().numpy()
        return found

    @torch.inference_mode()
    def guess(self, packed: Packed) -> Guessed:
        model = cast(BertPretraining, self.models[0])
        hidden = packed_states(model, packed, self.device)
        masked, firsts = (torch.from_numpy(at).to(self.device) for at in (packed.masked, packed.firsts))
        logits, targets = model.logits(hidden.index_select(0, masked)).cpu(), torch.from_numpy(packed.targets)
        loss = F.cross_entropy(logits, targets, reduction="none").double().numpy()
        right = (logits.argmax(dim=-1) == targets).numpy()
        follows = packed.follows
        if len(follows):
            follows = model.follows(hidden.index_select(0, firsts)).argmax(dim=-1).cpu().numpy()
        return Guessed(loss, right, follows)

    # scoring and writing text

    @torch.inference_mode()
    def likelihood(self, rows: Rows, *, done: Done = nobody) -> Array:
        models = [model for model in self.models if isinstance(model, RnnLanguageModel | Gpt | Elmo)]
        both = all(isinstance(model, Elmo) for model in models)
        found = np.zeros((len(rows), 2 if both else 1))
        sizes = np.array([len(row) for row in rows], dtype=np.int64)
        for some in self._each(sorted_batches(sizes, SEARCH_TOKENS) if len(rows) else ()):
            out = pad([rows[i] for i in some], self.tokenizer.start_id).to(self.device)
            read = torch.full_like(out, self.tokenizer.start_id)
            read[:, 1:] = out[:, :-1]
            lengths = torch.tensor(sizes[some], device=self.device)
            real = torch.arange(out.shape[1], device=self.device) < lengths[:, None]
            targets = out[real][:, None]
            owners = np.repeat(np.asarray(some), sizes[some])
            by_direction = zip(*(_directions(model, read, out, real) for model in models), strict=True)
            for direction, hidden in zip(range(found.shape[1]), by_direction, strict=False):
                by_model = [model.logits(h).log_softmax(dim=-1) for model, h in zip(models, hidden, strict=True)]
                log_probs = torch.stack(by_model).logsumexp(dim=0) - log(len(models))
                np.add.at(found[:, direction], owners, log_probs.gather(1, targets)[:, 0].double().cpu().numpy())
            done(len(some))
        return found

    @torch.inference_mode()
    def continuations(self, prompts: Rows, endings: Rows) -> Array:
        writers = [model for model in self.models if isinstance(model, Gpt)]
        found = [continuations(model, prompts, endings, self.tokenizer.start_id) for model in writers]
        return np.stack(found)

    @torch.inference_mode()
    def losses(self, sources: Rows, targets: Rows) -> tuple[float, int]:
        model = cast(EncoderDecoder, self.models[0])
        sizes = np.array([max(len(s), len(t)) for s, t in zip(sources, targets, strict=True)])
        pads = self.tokenizers.source.pad_id, self.tokenizers.target.pad_id
        total, count = 0.0, 0
        for some in self._each(sorted_batches(sizes, SEARCH_TOKENS)):
            source = pad([sources[i] for i in some], pads[0]).to(self.device)
            out = pad([targets[i] for i in some], pads[1]).to(self.device)
            read = torch.full_like(out, pads[1])
            read[:, 1:] = out[:, :-1]
            real = out != pads[1]
            hidden = model(source, source != pads[0], read)[real]
            total += float(linear_cross_entropy(hidden, model.projection, out[real]))
            count += int(real.sum())
        return total, count

    @torch.inference_mode()
    def after(self, source: Sequence[int], targets: Rows) -> list[Array]:
        models = [model for model in self.models if isinstance(model, Transformer | Seq2Seq)]
        start = self.tokenizers.target.pad_id
        written = pad([[start, *target] for target in targets], start).to(self.device)
        read = torch.tensor([list(source)] * len(targets), device=self.device)
        mask = torch.ones_like(read, dtype=torch.bool)
        by_model = [model.logits(model(read, mask, written)).float().log_softmax(dim=-1) for model in models]
        log_probs = (torch.stack(by_model).logsumexp(dim=0) - log(len(models))).double().cpu().numpy()
        return [row[: len(target) + 1] for row, target in zip(log_probs, targets, strict=True)]

    @torch.inference_mode()
    def search(
        self, sources: Rows | None, requests: Sequence[Request], config: DecodeConfig, *, done: Done = nobody
    ) -> list[list[Hypothesis]]:
        def both(n: int) -> None:
            self.between(0)
            done(n)

        return self._write(requests, config, both) if sources is None else self._read(sources, requests, config, both)

    def _read(
        self, sources: Rows, requests: Sequence[Request], config: DecodeConfig, done: Done
    ) -> list[list[Hypothesis]]:
        models = [model for model in self.models if isinstance(model, Transformer | Seq2Seq)]
        decoder = models[0] if len(models) == 1 else Ensemble(models)
        beams = config.beam if config.method == "beam" else 1
        sizes = np.array([len(source) for source in sources], dtype=np.int64)
        found: list[list[Hypothesis]] = [[] for _ in sources]
        for rows in self._each(sorted_batches(sizes, max(SEARCH_TOKENS // beams, 1)) if len(sizes) else ()):
            source = pad([sources[i] for i in rows], self.tokenizers.source.pad_id).to(self.device)
            mask = source != self.tokenizers.source.pad_id
            states = [model.start(source, mask) for model in models]
            state: Any = states[0] if len(states) == 1 else EnsembleState(states)
            here = search(decoder, state, [requests[i] for i in rows], config, eos_id=EOS_ID, tick=lambda: done(0))
            for i, hypotheses in zip(rows, here, strict=True):
                found[i] = hypotheses
            done(len(rows))
        return found

    def _write(self, requests: Sequence[Request], config: DecodeConfig, done: Done) -> list[list[Hypothesis]]:
        """Continue texts with prefixes of similar length in parallel, one step for all of them."""
        model = cast(LanguageModel, self.models[0])
        found: list[list[Hypothesis]] = [[] for _ in requests]
        order = sorted(range(len(requests)), key=lambda i: len(requests[i].prefix))
        for first in self._each(range(0, len(order), GENERATED_AT_ONCE)):
            some = order[first : first + GENERATED_AT_ONCE]
            chosen = [requests[i] for i in some]
            state, read = self._prefixed(chosen, probabilities=config.method == "beam")
            settings: dict[str, Any] = {"eos_id": self.tokenizer.end_id, "read": read, "continues": True}
            here = search(model, state, chosen, config, tick=lambda: done(0), **settings)
            for i, hypotheses in zip(some, here, strict=True):
                found[i] = hypotheses
            done(len(some))
        return found

    def stream(self, request: Request, config: DecodeConfig) -> Iterator[int]:
        model = cast(LanguageModel, self.models[0])
        state, read = self._prefixed([request], probabilities=False)
        return follow_one(model, state, request, config, eos_id=self.tokenizer.end_id, read=read)

    @torch.inference_mode()
    def _prefixed(self, requests: Sequence[Request], *, probabilities: bool = True) -> tuple[Any, Read]:
        model = cast(LanguageModel, self.models[0])
        if isinstance(model, Gpt):
            return read_prefixes(model, requests, end_id=self.tokenizer.end_id, probabilities=probabilities)
        return model.start(len(requests)), Read.nothing(model, len(requests))

    # attention

    @torch.inference_mode()
    def attention(self, source: Sequence[int], target: Sequence[int] | None = None) -> dict[str, Array]:
        maps = attention_maps(self.models[0], self.tokenizers, source, target)
        return {name: torch.cat(layers).double().cpu().numpy() for name, layers in maps.items()}

    @torch.inference_mode()
    def attention_maps(
        self, source: Sequence[int], target: Sequence[int] | None = None
    ) -> dict[str, list[NDArray[np.float32]]]:
        maps = attention_maps(self.models[0], self.tokenizers, source, target)
        return {name: [layer[0].float().cpu().numpy() for layer in layers] for name, layers in maps.items()}


def _directions(model: LanguageModel, read: Tensor, out: Tensor, real: Tensor) -> list[Tensor]:
    """The states [N, H] that predict the N real tokens: one tensor for a forward model, two for ELMo."""
    if isinstance(model, Elmo):
        return [hidden[real] for hidden in model(out, real)]
    return [model(read)[real]]


def open_engine(
    folders: Sequence[ModelFolder],
    heads: Sequence[Head],
    *,
    device: str,
    where: Sequence[Path],
    rounded: bool = False,
) -> TorchEngine:
    """An engine for the models in these folders, each with its head; `rounded`, a recurrent one has weights in int8."""
    models: list[Model] = []
    for folder, head, path in zip(folders, heads, where, strict=True):
        model = build_model(folder.config, head, **folder.tokenizers.sizes)
        load_tensors(model, folder.tensors, where=path)
        if rounded and isinstance(model, Seq2Seq):
            model.round_weights()
        models.append(model.eval().to(choose_device(device)))
    engine = TorchEngine(models, folders[0].tokenizers)
    engine.threads = Threads(None, torch.set_num_threads)
    return engine


def choose_device(name: str) -> torch.device:
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not available.get(name, True):
        raise RecipeError(
            f"{name} is not available", where="train.device", hint='use "auto" or "cpu"', code="recipe.device"
        )
    if name not in ("auto", "cuda"):
        return torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
