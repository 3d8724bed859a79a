"""Every layer's attention weights for one text, and what was written about it."""

from collections.abc import Sequence

import torch
from torch import Tensor

from jumok.data.pages import make_page
from jumok.models.bert import Bert
from jumok.models.build import Model
from jumok.models.gpt import Gpt
from jumok.models.rnn import RnnClassifier
from jumok.models.seq2seq import Seq2Seq
from jumok.models.transformer import AttentionMaps, Transformer
from jumok.text.tokenizer import Tokenizers


def attention_maps(
    model: Model, tokenizers: Tokenizers, source: Sequence[int], target: Sequence[int] | None
) -> dict[str, list[Tensor]]:
    """Every layer's attention [1, H, T, S], by name."""
    if isinstance(model, Transformer):
        return _transformer_maps(model, source, target)
    if isinstance(model, Seq2Seq):
        written = torch.tensor([[tokenizers.target.pad_id, *(target or ())]], device=model.device)
        read = torch.tensor([list(source)], device=model.device)
        weights = model.alignment(read, torch.ones_like(read, dtype=torch.bool), written)
        return {} if weights is None else {"cross": [weights[None]]}
    page = make_page([source], tokenizers.source).to(model.device)
    maps: list[Tensor] = []
    if isinstance(model, Gpt):
        model(torch.tensor([[tokenizers.source.start_id, *source]], device=model.device), weights=maps)
        return {"self": maps}
    if isinstance(model, RnnClassifier):
        model(page.ids, page.segments, page.mask, weights=maps)
        return {"pool": [maps[0][None, None]]} if maps else {}
    bert = model if isinstance(model, Bert) else getattr(model, "bert", None)
    if bert is None:
        return {}
    bert(page.ids, page.segments, page.mask, weights=maps)
    return {"self": maps}


def _transformer_maps(
    model: Transformer, source: Sequence[int], target: Sequence[int] | None
) -> dict[str, list[Tensor]]:
    read = torch.tensor([list(source)], device=model.device)
    mask, maps = torch.ones_like(read, dtype=torch.bool), AttentionMaps([], [], [])
    memory = model.encode(read, mask, maps=maps)
    found = {"encoder": maps.encoder}
    if target is not None:
        model.decode(memory, mask, torch.tensor([[model.start_id, *target]], device=model.device), maps=maps)
        found |= {"decoder": maps.decoder, "cross": maps.cross}
    return found
