"""Tiny random BERTs as model folders, and rows for them."""

import numpy as np
import torch
from torch import nn

from jumok.hub.folder import ModelFolder
from jumok.models.bert import BertConfig
from jumok.models.build import build_model
from jumok.models.weights import unique_tensors
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import BERT, TokenizerConfig

LINES = ["the cat sat on the mat and the dog lay by the door", "비가 오고 바람이 분다"]


def bert_folder(head, *, seed=0, **sizes):
    """The model, with weights far from zero so that attention and activations matter, and its folder."""
    config = BertConfig(**{"d_model": 24, "d_ff": 40, "n_heads": 4, "n_layers": 3, "max_len": 40, **sizes})
    tokenizer = Tokenizer.train(TokenizerConfig(kind="wordpiece", vocab_size=64), LINES, BERT)
    tokenizers = Tokenizers(tokenizer, tokenizer)
    model = build_model(config, head, **tokenizers.sizes).eval()
    torch.manual_seed(seed)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model, ModelFolder(config, unique_tensors(model), tokenizers, {})


def frames(folder, sizes, *, seed=0, masks=False):
    """Rows of these lengths, every third a pair of texts."""
    tokenizer, rng = folder.tokenizers.source, np.random.default_rng(seed)
    words = [i for i in range(tokenizer.vocab_size) if i not in tokenizer.special_ids]
    rows = []
    for n, size in enumerate(sizes):
        ids = rng.choice(words, size - (3 if n % 3 == 2 else 2)).tolist()
        if masks:
            ids[rng.integers(len(ids))] = tokenizer.mask_id
        rows.append(tokenizer.frame(ids[: size // 2], ids[size // 2 :]) if n % 3 == 2 else tokenizer.frame(ids))
    return rows
