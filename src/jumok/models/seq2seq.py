"""The recurrent encoder-decoder, with and without attention.

Sutskever et al. 2014 (the decoder starts from the encoder's last state), Cho et al. 2014 (it gets that state at every
step), Bahdanau et al. 2015 (it attends to the source before each step), Luong et al. 2015 (it attends after each step,
globally or within a window).

B batch, S source positions, T target positions, H d_hidden, V vocabulary. Masks are bool, True = a real position.
"""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from jumok.config import Depth, Share, Width
from jumok.nn.attention import (
    AdditiveScore,
    Attended,
    DotScore,
    GeneralScore,
    PredictedPosition,
    attend,
    attend_locally,
)
from jumok.nn.dropout import Dropout
from jumok.nn.linear import Linear, Rounded, linear, round_weights
from jumok.nn.recurrent import Cell, Recurrent, State
from jumok.nn.sharing import Sharing


@dataclass(frozen=True, kw_only=True, slots=True)
class Seq2SeqConfig:
    """A recurrent encoder and a recurrent decoder of the same width."""

    kind: Literal["seq2seq"] = "seq2seq"
    cell: Cell = "lstm"
    d_embedding: Width = 256
    d_hidden: Width = 256
    """state width; a bidirectional encoder has half of it in each direction"""
    n_layers: Depth = 1
    """layers of the encoder and of the decoder, each"""
    bidirectional: bool = False
    """the encoder reads the source in both directions"""
    reverse_source: bool = False
    """the encoder reads the source backwards (Sutskever et al. 2014, section 3.3)"""
    feed_context: bool = False
    """without attention: every decoder step gets the encoder's last state (Cho et al. 2014), not only the first"""
    attention: Literal["none", "bahdanau", "luong"] = "none"
    score: Literal["dot", "general", "concat"] | None = None
    """luong: how a state is compared with a source position; default general"""
    window: Literal["global", "local-m", "local-p"] = "global"
    """luong: attend to the whole source, around the current position, or around a predicted one"""
    reach: Width = 10
    """luong, local: positions on either side of the centre (D in the paper)"""
    input_feeding: bool = False
    """luong: feed the attentional state into the next step"""
    dropout: Share = 0.2
    """on embeddings, between layers, and before the output projection"""
    tie_embeddings: Literal["all", "target", "none"] = "all"
    """share one matrix among source, target and output; between target and output; or not at all"""

    def __post_init__(self) -> None:
        if self.bidirectional and self.d_hidden % 2:
            raise ValueError("d_hidden must be even when the encoder is bidirectional: each direction gets half")
        if self.bidirectional and self.reverse_source:
            raise ValueError("reverse_source has no meaning for a bidirectional encoder, which reads both ways")
        if self.tie_embeddings != "none" and self.d_embedding != self.d_hidden:
            raise ValueError('d_embedding must equal d_hidden unless tie_embeddings = "none"')
        if self.feed_context and self.attention != "none":
            raise ValueError('feed_context requires attention = "none": a decoder with attention gets a context anyway')
        for name, default in (("score", None), ("window", "global"), ("input_feeding", False)):
            if getattr(self, name) != default and self.attention != "luong":
                raise ValueError(f'{name} requires attention = "luong" (got "{self.attention}")')

    @property
    def attends(self) -> bool:
        return self.attention != "none"

    @property
    def d_model(self) -> int:
        """The width, named as the Transformer's learning-rate schedule expects."""
        return self.d_hidden

    @property
    def longest(self) -> int | None:
        """Maximum sequence length: unlimited."""
        return None


@dataclass(frozen=True, slots=True)
class Seq2SeqState:
    """The decoder's state between two steps; rows can be selected, dropped and repeated.

    N rows share the memories of B sentences.
    """

    layers: list[State]
    """[N, H] each"""
    memory: Tensor
    """[B, S, H]: the encoder's states, in source order"""
    keys: Tensor
    """[B, S, .]: attention keys"""
    mask: Tensor
    fed: Tensor
    """[N, H]: the last context (Bahdanau) or attentional state (Luong), or the encoder's last state (feed_context)"""
    t: int = 0
    sharing: Sharing = Sharing()

    def select(self, rows: Tensor) -> "Seq2SeqState":
        picked, sharing = self.sharing.pick(rows, len(self.mask))
        of_source = self.memory, self.keys, self.mask
        if picked is not None:
            of_source = (
                self.memory.index_select(0, picked),
                self.keys.index_select(0, picked),
                self.mask.index_select(0, picked),
            )
        layers = [tuple(part.index_select(0, rows) for part in state) for state in self.layers]
        return Seq2SeqState(layers, *of_source, self.fed.index_select(0, rows), self.t, sharing)


class Seq2Seq(nn.Module):
    """Encoder and decoder over token ids.

    As in the Transformer, the last id of a vocabulary is `<pad>`: its embedding stays zero, decoding starts
    from it, and it is never predicted, so there are V - 1 logits.
    """

    def __init__(self, c: Seq2SeqConfig, *, source_vocab: int, target_vocab: int) -> None:
        super().__init__()
        if c.tie_embeddings == "all" and source_vocab != target_vocab:
            raise ValueError('tie_embeddings = "all" needs one vocabulary for source and target')
        self.config = c
        self.start_id = target_vocab - 1
        self.rounded: Rounded | None = None
        self.target_embedding = _embedding(target_vocab, c.d_embedding)
        self.source_embedding = self.target_embedding
        if c.tie_embeddings != "all":
            self.source_embedding = _embedding(source_vocab, c.d_embedding)
        self.output = None
        if c.tie_embeddings == "none":
            self.output = Linear(c.d_hidden, target_vocab - 1, bias=False)
        self.encoder = Recurrent(
            c.cell, c.d_embedding, c.d_hidden, n_layers=c.n_layers, both_ways=c.bidirectional, dropout=c.dropout
        )
        d = c.d_hidden
        self.feeds = c.feed_context or c.input_feeding or c.attention == "bahdanau"
        d_in = c.d_embedding + d if self.feeds else c.d_embedding
        self.decoder = Recurrent(c.cell, d_in, d, n_layers=c.n_layers, dropout=c.dropout)
        self.dropout = Dropout(c.dropout)
        self.score: DotScore | AdditiveScore = DotScore()
        match c.attention:
            case "bahdanau":
                self.score = AdditiveScore(d, d, d)
                self.w_s = Linear(d // 2 if c.bidirectional else d, d)
                self.w_t = Linear(2 * d + c.d_embedding, 2 * d)
            case "luong":
                if c.score == "concat":
                    self.score = AdditiveScore(d, d, d)
                elif c.score != "dot":
                    self.score = GeneralScore(d, d)
                self.position = PredictedPosition(d) if c.window == "local-p" else None
                self.w_c = Linear(2 * d, d)

    def forward(self, source: Tensor, source_mask: Tensor, target: Tensor, *, own: float = 0.0) -> Tensor:
        """Teacher forcing: source [B, S], target [B, T] starting with `<pad>`; returns hidden states [B, T, H].

        With scheduled sampling (Bengio et al. 2015), a share `own` of the inputs are the model's own predictions
        instead of the target's words.
        """
        hidden, _ = self._decode(self.start(source, source_mask), target, own)
        return hidden

    def alignment(self, source: Tensor, source_mask: Tensor, target: Tensor) -> Tensor | None:
        """[B, T, S]: attention to the source at every step; None without attention."""
        return self._decode(self.start(source, source_mask), target, 0.0)[1]

    def start(self, source: Tensor, source_mask: Tensor) -> Seq2SeqState:
        lengths = source_mask.sum(dim=1)
        order = _reversed(lengths, source.shape[1]) if self.config.reverse_source else None
        read = source if order is None else source.gather(1, order)
        memory, layers = self.encoder(self.dropout(self.source_embedding(read)), lengths)
        if order is not None:
            memory = memory.gather(1, order[..., None].expand_as(memory))
        last = layers[-1][0]
        fed = last if self.config.feed_context else torch.zeros_like(last)
        if self.config.attention == "bahdanau":
            # s_0 = tanh(W_s h_1), from the backward encoder's state, which has seen everything (section A.2.2).
            s_0 = self.w_s(last.chunk(2, dim=-1)[-1] if self.config.bidirectional else last).tanh()
            layers = [(s_0, *(torch.zeros_like(s_0) for _ in state[1:])) for state in layers]
        return Seq2SeqState(layers, memory, self.score.keys(memory), source_mask, fed)

    def step(
        self, tokens: Tensor, state: Seq2SeqState, *, attention: list[Tensor] | None = None
    ) -> tuple[Tensor, Seq2SeqState]:
        """Map tokens [N] to logits [N, V - 1] of the next token; append attention [N, S] if a list is given."""
        e = self.dropout(self.target_embedding(tokens))
        s, weights, state = self._step(e, state)
        if attention is not None and weights is not None:
            attention.append(weights)
        return self.logits(self._output(s, state.fed, e)), state

    @property
    def device(self) -> torch.device:
        return self.target_embedding.weight.device

    @property
    def projection(self) -> Tensor:
        """[V - 1, H]: the output matrix, without `<pad>`."""
        return self.target_embedding.weight[:-1] if self.output is None else self.output.weight

    def logits(self, hidden: Tensor) -> Tensor:
        return linear(hidden, self.projection) if self.rounded is None else self.rounded.times(hidden)

    def round_weights(self) -> None:
        """Predict with weights in int8 from now on."""
        round_weights(self)
        self.rounded = Rounded.of(self.projection)

    def _decode(self, state: Seq2SeqState, target: Tensor, own: float) -> tuple[Tensor, Tensor | None]:
        c = self.config
        if c.attention == "bahdanau" or c.input_feeding or own:
            return self._decode_stepwise(state, target, own)
        e = self.dropout(self.target_embedding(target))
        if c.feed_context:
            e = torch.cat([e, state.fed[:, None].expand(-1, target.shape[1], -1)], dim=-1)
        # Padding is to the right of the words; the start token in first position has the same id.
        lengths = 1 + (target[:, 1:] != self.start_id).sum(dim=1)
        s, _ = self.decoder(e, lengths, state.layers)
        if c.attention == "none":
            return self.dropout(s), None
        attended = self._look(s, state, torch.arange(s.shape[1], device=s.device))
        return self._attentional(s, attended.context), attended.weights

    def _decode_stepwise(self, state: Seq2SeqState, target: Tensor, own: float) -> tuple[Tensor, Tensor | None]:
        steps: list[tuple[Tensor, Tensor, Tensor]] = []
        weights: list[Tensor] = []
        for e in self.dropout(self.target_embedding(target)).unbind(dim=1):
            if own and steps:
                predicted = self.dropout(self.target_embedding(self.logits(self._output(*steps[-1])).argmax(dim=-1)))
                e = torch.where(torch.rand(len(e), 1, device=e.device) < own, predicted, e)
            s, w, state = self._step(e, state)
            steps.append((s, state.fed, e))
            weights += [] if w is None else [w]
        # The loop does not need the output projection's input: compute it for all steps at once.
        hidden = self._output(*(torch.stack(parts, dim=1) for parts in zip(*steps, strict=True)))
        return hidden, torch.stack(weights, dim=1) if weights else None

    def _step(self, e: Tensor, state: Seq2SeqState) -> tuple[Tensor, Tensor | None, Seq2SeqState]:
        """One step: returns the decoder's state [N, H], the attention [N, S], and the state for the next step."""
        c, fed, weights, split = self.config, state.fed, None, state.sharing.split
        if c.attention == "bahdanau":
            # Eqs. 4-6: s_{i-1} is the query, c_i part of the input of s_i.
            query = split(state.layers[-1][0])
            attended = attend(self.score(query, state.keys), state.memory, state.mask[:, None])
            fed, weights = attended.context.flatten(0, 1), attended.weights.flatten(0, 1)
        s, layers = self.decoder.step(torch.cat([e, fed], dim=-1) if self.feeds else e, state.layers)
        if c.attention == "luong":
            attended = self._look(split(s), state, torch.tensor([state.t], device=s.device))
            fed, weights = self._attentional(s, attended.context.flatten(0, 1)), attended.weights.flatten(0, 1)
        return s, weights, replace(state, layers=layers, fed=fed, t=state.t + 1)

    def _output(self, s: Tensor, fed: Tensor, e: Tensor) -> Tensor:
        """The output projection's input, from a step's state, its `fed` and its embedding."""
        match self.config.attention:
            case "bahdanau":
                # Section A.2.2: a maxout layer, t_k = max(t'_{2k-1}, t'_{2k}), with t' linear in s_i, c_i and y_{i-1}.
                t = self.w_t(torch.cat([s, fed, e], dim=-1))
                if torch.is_grad_enabled():
                    hidden: Tensor = self.dropout(t.unflatten(-1, (-1, 2)).max(dim=-1).values)
                else:  # the same in a tenth of the time, but with another gradient where both are equal
                    hidden = self.dropout(torch.maximum(t[..., 0::2], t[..., 1::2]))
            case "luong":
                hidden = fed
            case "none":
                hidden = self.dropout(s)
        return hidden

    def _look(self, s: Tensor, state: Seq2SeqState, t: Tensor) -> Attended:
        """Luong et al. 2015, section 3: attend to the source from states s [B, T, H], at steps t [T] or [1]."""
        scores, mask = self.score(s, state.keys), state.mask[:, None]
        if self.config.window == "global":
            return attend(scores, state.memory, mask)
        lengths = state.mask.sum(dim=1)
        if self.position is not None:
            centres = self.position(s, lengths)
            return attend_locally(scores, state.memory, mask, centres, self.config.reach, bell=True)
        # Beyond the end of the source the window stays at its last position instead of being empty.
        centres = torch.minimum(t, lengths[:, None] - 1)
        return attend_locally(scores, state.memory, mask, centres, self.config.reach, bell=False)

    def _attentional(self, s: Tensor, context: Tensor) -> Tensor:
        """Luong et al. 2015, Eq. 5: tanh(W_c [a_t ; s_t] + b_c), the attentional state."""
        hidden: Tensor = self.dropout(self.w_c(torch.cat([context, s], dim=-1)).tanh())
        return hidden


def _embedding(vocab: int, width: int) -> nn.Embedding:
    embedding = nn.Embedding(vocab, width, padding_idx=vocab - 1)
    nn.init.normal_(embedding.weight, std=width**-0.5)
    with torch.no_grad():
        embedding.weight[-1].zero_()
    return embedding


def _reversed(lengths: Tensor, width: int) -> Tensor:
    """[B, S]: each sentence's positions from its last word to its first; its end and padding stay in place."""
    positions = torch.arange(width, device=lengths.device)
    last = lengths[:, None] - 2
    return torch.where(positions <= last, last - positions, positions)
