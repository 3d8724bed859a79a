"""Look inside a model: what a decoder chose from, what decided an output, one step of attention or of a cell.

Models know nothing of this. What happens inside one is seen, or changed, by a `TorchFunctionMode` around an ordinary
call; a mode belongs to one thread, so that the model can be used by others meanwhile.
"""

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from jumok.data.pages import make_page
from jumok.decode.beam import beam_search
from jumok.decode.options import DecodeConfig, Hypothesis, Node, Request, Trace
from jumok.decode.search import Read
from jumok.engines import (
    AdditiveStep,
    Array,
    Asked,
    Attributed,
    CellSteps,
    Chosen,
    Done,
    HeadStep,
    Method,
    Rows,
    nobody,
)
from jumok.engines.cells import unrolled
from jumok.errors import InputError
from jumok.models.bert import Bert
from jumok.models.build import Model
from jumok.models.gpt import Gpt
from jumok.models.rnn import RnnLanguageModel
from jumok.models.seq2seq import Seq2Seq
from jumok.models.transformer import Transformer
from jumok.nn.attention import AdditiveScore, MultiHeadAttention
from jumok.nn.linear import onednn_linear
from jumok.nn.positions import LearnedPositions
from jumok.nn.recurrent import Recurrent, RecurrentLayer
from jumok.nn.transformer import Stack
from jumok.text.tokenizer import Tokenizers
from jumok.text.vocabulary import EOS_ID

PATH = 16
"""points of a path from the baseline that are computed together"""


class _Recorded(TorchFunctionMode):
    """Keeps inputs and outputs of linear maps, by their matrix."""

    def __init__(self, *maps: nn.Linear) -> None:
        super().__init__()
        self._seen: dict[int, list[tuple[Tensor, Tensor]]] = {id(each.weight): [] for each in maps}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func in (F.linear, onednn_linear()) and id(args[1]) in self._seen:
            self._seen[id(args[1])].append((args[0], out))
        return out

    def inputs(self, of: nn.Linear, dim: int) -> Tensor:
        return torch.cat([x for x, _ in self._seen[id(of.weight)]], dim=dim)

    def outputs(self, of: nn.Linear, dim: int) -> Tensor:
        return torch.cat([y for _, y in self._seen[id(of.weight)]], dim=dim)


class _Embedded(TorchFunctionMode):
    """Replaces the rows that are looked up in these tables by `given`, in the order of the look-ups; without `given`,
    keeps them."""

    def __init__(self, tables: Sequence[nn.Embedding], given: Sequence[Tensor] = ()) -> None:
        super().__init__()
        self._tables, self._given = [table.weight for table in tables], given
        self.found: list[Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is not F.embedding or not any(args[1] is table for table in self._tables):
            return func(*args, **(kwargs or {}))
        self.found.append(self._given[len(self.found)] if self._given else func(*args, **(kwargs or {})))
        return self.found[-1]


class TorchInside:
    """The part of the torch engine that looks inside its first model."""

    models: list[Model]
    tokenizers: Tokenizers
    attention: Callable[..., dict[str, Array]]

    @property
    def _first(self) -> Any:
        return self.models[0]

    def _ids(self, rows: Rows) -> Tensor:
        return torch.tensor([list(row) for row in rows], device=self._first.device)

    # choices

    @torch.inference_mode()
    def chosen(self, source: Sequence[int] | None, written: Sequence[int], k: int) -> Chosen:
        model, state, _ = self._begin(source)
        read = [model.start_id, *written[:-1]]
        logits = []
        for token in read[: len(written)]:
            out, state = model.step(self._ids([[token]])[0], state)
            logits.append(out[0].float())
        log_probs = torch.stack(logits).log_softmax(dim=-1)
        best, tokens = log_probs.topk(min(k, log_probs.shape[1]), dim=-1)
        own = log_probs.gather(1, self._ids([written]).T)
        ranks = (log_probs > own).sum(dim=-1)
        return Chosen(tokens.cpu().numpy(), _array(best), _array(own[:, 0]), ranks.cpu().numpy())

    @torch.inference_mode()
    def trace(
        self, source: Sequence[int] | None, request: Request, config: DecodeConfig, *, done: Done = nobody
    ) -> tuple[list[Hypothesis], list[Node]]:
        model, state, end = self._begin(source)
        trace = Trace()
        read = Read.nothing(model, 1)
        found = beam_search(model, state, [request], config, eos_id=end, read=read, tick=lambda: done(0), trace=trace)
        return found[0], trace.nodes

    def _begin(self, source: Sequence[int] | None) -> tuple[Any, Any, int]:
        """A decoder before its first step, and the token that ends its texts."""
        model = self._first
        if source is None:
            return model, model.start(1), self.tokenizers.source.end_id
        read = self._ids([source])
        return model, model.start(read, torch.ones_like(read, dtype=torch.bool)), EOS_ID

    # attribution

    @torch.inference_mode()
    def values(self, rows: Rows, asked: Asked, *, targets: Rows | None = None) -> Array:
        return _array(self._value(rows, targets, asked))

    def attribute(
        self,
        source: Sequence[int],
        asked: Asked,
        *,
        target: Sequence[int] | None = None,
        method: Method = "integrated",
        steps: int = 32,
    ) -> Attributed:
        tables = self._tables()
        targets = None if target is None else [target]
        with torch.no_grad():
            with _Embedded(tables) as seen:
                value = float(self._value([source], targets, asked))
            embedded = seen.found
            with _Embedded(tables, [torch.zeros_like(x) for x in embedded]):
                baseline = float(self._value([source], targets, asked))
        points = torch.ones(1) if method == "gradient" else (torch.arange(steps) + 0.5) / steps
        shares = [torch.zeros(x.shape[1], device=x.device) for x in embedded]
        for some in torch.split(points, PATH):
            given = [(some.to(x)[:, None, None] * x).requires_grad_() for x in embedded]
            repeated = None if target is None else [target] * len(some)
            with _Embedded(tables, given):
                values = self._value([source] * len(some), repeated, asked)
            for share, x, slope in zip(shares, embedded, torch.autograd.grad(values.sum(), given), strict=True):
                share += (slope.sum(dim=0) * x[0]).sum(dim=-1) / len(points)
        read, *wrote = [_array(share) for share in shares]
        return Attributed(read, wrote[0] if wrote else np.zeros(0), value, baseline)

    def _tables(self) -> list[nn.Embedding]:
        model = self._first
        if isinstance(model, Transformer | Seq2Seq):
            return [model.source_embedding, model.target_embedding]
        owner = getattr(model, "reader", None) or getattr(model, "bert", None) or model
        return [owner.embedding]

    def _value(self, rows: Rows, targets: Rows | None, asked: Asked) -> Tensor:
        """[n]: the asked output for rows of equal length."""
        model = self._first
        if isinstance(model, Transformer | Seq2Seq):
            source, target = self._ids(rows), self._ids([[model.start_id, *row] for row in targets or [()] * len(rows)])
            logits = model.logits(model(source, torch.ones_like(source, dtype=torch.bool), target)[:, -1])
        elif isinstance(model, Gpt | RnnLanguageModel):
            logits = model.logits(model(self._ids([[model.start_id, *row] for row in rows]))[:, -1])
        else:
            page = make_page(rows, self.tokenizers.source).to(model.device)
            logits = model(page.ids, page.segments, page.mask)
            if logits.ndim == 3:
                logits = logits[:, asked.position or 0]
        if asked.against is not None:
            return logits[:, asked.wanted] - logits[:, asked.against]
        return (logits if asked.raw else logits.float().log_softmax(dim=-1))[:, asked.wanted]

    # step by step

    @property
    def parts(self) -> dict[str, list[int]]:
        found = {name: [len(layers), layers[0].n_heads] for name, layers in self._attentions().items()}
        for name, network in self._networks().items():
            found[name] = [len(network.layers), len(cast(nn.ModuleList, network.layers[0]))]
        if self._additive() is not None:
            found["additive"] = [1, 1]
        return found

    def _attentions(self) -> dict[str, list[MultiHeadAttention]]:
        model = self._first
        if isinstance(model, Transformer):
            stacks = {"encoder": model.encoder, "decoder": model.decoder}
            found = {name: _layers(stack, "self_attention") for name, stack in stacks.items()}
            return {**found, "cross": _layers(model.decoder, "cross_attention")}
        body = model if isinstance(model, Bert | Gpt) else getattr(model, "bert", None)
        return {} if body is None else {"self": _layers(body.stack, "self_attention")}

    def _networks(self) -> dict[str, Recurrent]:
        model = self._first
        if isinstance(model, Seq2Seq):
            return {"encoder_cells": model.encoder, "decoder_cells": model.decoder}
        return {"cells": model.reader.layers} if hasattr(model, "reader") else {}

    def _additive(self) -> AdditiveScore | None:
        model = self._first
        score = getattr(model, "score", None)
        plain = not isinstance(model, Seq2Seq) or model.config.window == "global"
        return score if isinstance(score, AdditiveScore) and plain else None

    @torch.inference_mode()
    def head_step(
        self, source: Sequence[int], target: Sequence[int] | None, *, name: str, layer: int, head: int, row: int
    ) -> HeadStep:
        model, attention = self._first, _one(self._attentions(), name, layer)
        with _Recorded(attention.w_q, attention.w_k, attention.w_v) as seen:
            self.attention(source, target)
        q, k, v = (
            seen.outputs(each, 1)[0].unflatten(-1, (attention.n_heads, -1))[:, _within(head, attention.n_heads)]
            for each in (attention.w_q, attention.w_k, attention.w_v)
        )
        here = torch.arange(len(k), device=k.device)
        row = _within(row, len(q))
        allowed = torch.ones_like(here, dtype=torch.bool)
        if name == "decoder" or isinstance(model, Gpt):
            allowed &= here <= row
        if name in ("encoder", "decoder") and model.config.neighbourhood is not None:
            allowed &= (here - row).abs() <= model.config.neighbourhood
        scores = k @ q[row]
        scaled = scores / sqrt(q.shape[-1])
        weights = scaled.masked_fill(~allowed, -torch.inf).softmax(dim=-1)
        return HeadStep(allowed.tolist(), *map(_array, (q[row], k, v, scores, scaled, weights, weights @ v)))

    @torch.inference_mode()
    def additive_step(self, source: Sequence[int], target: Sequence[int] | None, *, row: int) -> AdditiveStep:
        score = self._additive()
        if score is None:
            raise _absent("additive")
        with _Recorded(score.w, score.u) as seen:
            self._run(source, target)
        s, ws = seen.inputs(score.w, 1)[0], seen.outputs(score.w, 1)[0]
        h, uh = seen.inputs(score.u, 1)[0], seen.outputs(score.u, 1)[0]
        row = _within(row, len(s))
        scores = (ws[row] + uh).tanh() @ score.v.weight[0]
        weights = scores.softmax(dim=-1)
        return AdditiveStep(*map(_array, (s[row], ws[row], uh, h, scores, weights, weights @ h)))

    @torch.inference_mode()
    def cell_steps(
        self, source: Sequence[int], target: Sequence[int] | None, *, name: str, layer: int, way: int
    ) -> CellSteps:
        ways = list(_one({key: list(net.layers) for key, net in self._networks().items()}, name, layer))
        cell = cast(RecurrentLayer, ways[_within(way, len(ways))])
        with _Recorded(cell.w_x) as seen:
            states = self._run(source, target)
        x = seen.inputs(cell.w_x, 0)  # of one text: in reading order
        order = list(range(len(x)))
        if name == "encoder_cells" and self._first.config.reverse_source:
            order = [*order[-2::-1], order[-1]]
        if way:
            x, order = x.flip(0), order[::-1]
        state = states[layer] if name == "decoder_cells" else cell.zeros(1)
        before, parts = unrolled(cell, x, state)
        first, rest = ({key: _array(value) for key, value in each.items()} for each in (before, parts))
        return CellSteps(cell.cell, first, rest, order)

    def _run(self, source: Sequence[int], target: Sequence[int] | None) -> Any:
        """An ordinary call of a recurrent model; returns the states that its decoder starts from, if it has one."""
        model = self._first
        if isinstance(model, Seq2Seq):
            read = self._ids([source])
            mask = torch.ones_like(read, dtype=torch.bool)
            states = model.start(read, mask)
            model._decode(states, self._ids([[model.start_id, *(target or ())]]), 0.0)
            return states.layers
        if isinstance(model, RnnLanguageModel):
            model(self._ids([[model.start_id, *source]]))
        else:
            page = make_page([source], self.tokenizers.source).to(model.device)
            model(page.ids, page.segments, page.mask)
        return None

    @torch.inference_mode()
    def positions(self, n: int) -> tuple[str, Array] | None:
        model = self._first
        if isinstance(model, Transformer):
            learned = isinstance(model.source_positions, LearnedPositions)
            n = min(n, model.config.max_len) if learned else n
            return model.config.positions, _array(model.source_positions(0, n))
        body = model if isinstance(model, Bert | Gpt) else getattr(model, "bert", None)
        if body is None:
            return None
        if isinstance(body, Gpt):
            return "learned", _array(body.positions.embedding.weight[:n])
        return "learned", _array(body.positions.weight[body.config.first_position :][:n])


def _layers(stack: Stack, name: str) -> list[MultiHeadAttention]:
    return [getattr(layer, name) for layer in stack.layers]


def _one(found: dict[str, Any], name: str, layer: int) -> Any:
    if name not in found:
        raise _absent(name)
    return found[name][_within(layer, len(found[name]))]


def _within(i: int, n: int) -> int:
    if not 0 <= i < n:
        raise InputError(f"there is no {i}: they are numbered from 0 to {n - 1}", code="input.no_such_part")
    return i


def _absent(name: str) -> InputError:
    return InputError(f"the model has no {name}", code="input.no_such_part")


def _array(x: Tensor) -> Array:
    found: Array = x.double().cpu().numpy()
    return found
