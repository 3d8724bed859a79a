"""BERT and GPT equal the ones that the library transformers has, on the same weights; the heads their equations."""

import re
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import BertConfig as TheirBertConfig
from transformers import BertForPreTraining, GPT2Config, GPT2LMHeadModel

from jumok.models.bert import Bert, BertConfig, BertPretraining
from jumok.models.bert_heads import BertClassifier, BertRelation, BertTagger
from jumok.models.gpt import Gpt, GptConfig

V, D, FF, H, N = 50, 24, 40, 4, 3
SMALL = BertConfig(d_model=D, d_ff=FF, n_heads=H, n_layers=N, max_len=20)
SMALL_GPT = GptConfig(d_model=D, d_ff=FF, n_heads=H, n_layers=N, max_len=20)


def randomised(model: nn.Module) -> nn.Module:
    torch.manual_seed(5)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model.eval()


def test_the_published_sizes() -> None:
    with torch.device("meta"):
        base = Bert(BertConfig(), vocab=30522)
        large = Bert(BertConfig(n_layers=24, d_model=1024, d_ff=4096, n_heads=16), vocab=30522)
        gpt = Gpt(GptConfig(), vocab=50257)
    assert sum(p.numel() for p in base.parameters()) == 109_482_240
    assert sum(p.numel() for p in large.parameters()) == 335_141_888
    assert sum(p.numel() for p in gpt.parameters()) == 124_439_808


def test_the_published_sizes_of_successors() -> None:
    with torch.device("meta"):
        roberta = Bert(BertConfig(family="roberta", n_segments=1, first_position=2), vocab=50265)
        distilbert = Bert(BertConfig(family="distilbert", n_segments=0, n_layers=6), vocab=30522, pooler=False)
    assert sum(p.numel() for p in roberta.parameters()) == 124_645_632
    assert sum(p.numel() for p in distilbert.parameters()) == 66_362_880


@pytest.mark.parametrize(
    "options",
    [
        {"family": "roberta"},
        {"first_position": 2},
        {"family": "distilbert"},
        {"n_segments": 0},
        {"d_embedding": 16},
        {"family": "distilbert", "n_segments": 0, "d_embedding": 16},
    ],
    ids=str,
)
def test_options_that_no_successor_has_together(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"n_segments|first_position|d_embedding"):
        BertConfig(**options)


def test_texts_in_one_row_do_not_see_each_other() -> None:
    model = randomised(Bert(SMALL, vocab=V))
    a, b = torch.randint(5, V, (1, 6)), torch.randint(5, V, (1, 4))
    apart = [model(x, torch.zeros_like(x), torch.ones_like(x).bool()) for x in (a, b)]
    row = torch.cat([a, b, torch.zeros(1, 2, dtype=torch.long)], dim=1)
    block = torch.tensor([[0] * 6 + [1] * 4 + [2] * 2])
    positions = torch.tensor([[*range(6), *range(4), 0, 0]])
    together = model(row, torch.zeros_like(row), block[:, :, None] == block[:, None], positions=positions)
    torch.testing.assert_close(together[:, :6], apart[0], rtol=0, atol=1e-5)
    torch.testing.assert_close(together[:, 6:10], apart[1], rtol=0, atol=1e-5)


def test_padding_changes_nothing() -> None:
    model = randomised(BertClassifier(SMALL, vocab=V, n_labels=3))
    ids = torch.randint(5, V, (2, 7))
    zeros, there = torch.zeros_like(ids), torch.ones_like(ids).bool()
    wide, more = torch.cat([ids, ids], dim=1), torch.cat([there, ~there], dim=1)
    found = model(wide, torch.zeros_like(wide), more)
    torch.testing.assert_close(found, model(ids, zeros, there), rtol=0, atol=1e-5)


@pytest.mark.parametrize("labels", [2, 9])
def test_shapes_of_the_heads(labels: int) -> None:
    ids = torch.randint(5, V, (2, 7))
    zeros, there = torch.zeros_like(ids), torch.ones_like(ids).bool()
    assert BertTagger(SMALL, vocab=V, n_labels=labels)(ids, zeros, there).shape == (2, 7, labels)
    assert BertClassifier(SMALL, vocab=V, n_labels=labels)(ids, zeros, there).shape == (2, labels)


def some_texts() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(2)
    ids = torch.randint(5, V, (3, 9))
    segments = (torch.arange(9) > 4).long().expand(3, 9)
    return ids, segments, torch.arange(9) < torch.tensor([[9], [6], [1]])


def test_the_first_piece_looks_at_the_others() -> None:
    model = randomised(BertClassifier(SMALL, vocab=V, n_labels=3))
    with torch.no_grad():
        for layer in model.bert.stack.layers:
            layer.self_attention.w_q.weight.mul_(30)  # large enough for attention not to be spread evenly
    some, weights, every = some_texts(), list[Tensor](), list[Tensor]()
    logits = model(*some, weights=weights)
    (looked,) = weights
    model.bert(*some, weights=every)
    torch.testing.assert_close(looked, every[-1].mean(dim=1)[:, 0])
    torch.testing.assert_close(looked.sum(dim=1), torch.ones(3))
    assert not looked[~some[2]].any()
    assert looked[0].std() > 0.02
    assert not torch.allclose(looked, every[0].mean(dim=1)[:, 0], atol=0.02)
    assert torch.equal(logits, model(*some))  # looking changes nothing


def test_looking_keeps_no_layers_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    """One query of one layer is computed in the open; all else goes the fast way, looked at or not."""
    fused, seen = nn.functional.scaled_dot_product_attention, list[int]()

    def counted(q: Tensor, *rest: Tensor, **options: object) -> Tensor:
        seen.append(q.shape[2])
        return fused(q, *rest, **options)

    monkeypatch.setattr(nn.functional, "scaled_dot_product_attention", counted)
    model = randomised(BertClassifier(SMALL, vocab=V, n_labels=3))
    model(*some_texts())
    once = [9] * (N - 1) + [1]  # of the last layer nothing but `[CLS]` is needed
    assert seen == once
    model(*some_texts(), weights=[])
    assert seen == once * 2


def test_with_a_crf_the_logits_are_its_emissions() -> None:
    torch.manual_seed(1)
    plain = BertTagger(SMALL, vocab=V, n_labels=4).eval()
    torch.manual_seed(1)
    model = BertTagger(SMALL, vocab=V, n_labels=4, crf=True).eval()
    assert plain.crf is None
    assert model.crf is not None
    assert model.state_dict().keys() - plain.state_dict().keys() == {"crf.transitions", "crf.starts", "crf.ends"}
    ids, segments, mask = some_texts()
    e = model(ids, segments, mask)
    assert torch.equal(e, plain(ids, segments, mask))
    model.crf.log_likelihood(e, ids % 4, mask).sum().backward()
    assert all(parameter.grad.any() for parameter in model.crf.parameters())
    assert model.bert.embedding.weight.grad.any()


def entities() -> tuple[Tensor, Tensor]:
    """True at the pieces of each; the last text has one piece for both."""
    head, tail = torch.zeros(3, 9, dtype=torch.bool), torch.zeros(3, 9, dtype=torch.bool)
    head[0, 1:4], tail[0, 6:8] = True, True
    head[1, 5], tail[1, 1:3] = True, True
    head[2, 0] = tail[2, 0] = True
    return head, tail


def test_a_relation_is_the_papers_equations() -> None:
    model = randomised(BertRelation(SMALL, vocab=V, n_labels=5))
    some, (head, tail) = some_texts(), entities()
    logits = model(*some, head, tail)
    assert model.bert.pooler is None
    w_0, w_1, w_3 = model.w_0, model.w_1, model.w_3
    for row, h in enumerate(model.bert(*some)):
        parts = [w_0.weight @ h[0].tanh() + w_0.bias]
        for entity in (head, tail):
            mean = torch.stack([h[t] for t in range(9) if entity[row, t]]).mean(dim=0)
            parts.append(w_1.weight @ mean.tanh() + w_1.bias)
        torch.testing.assert_close(logits[row], w_3.weight @ torch.cat(parts) + w_3.bias, rtol=1e-4, atol=1e-5)
    swapped = model(*some, tail, head)
    assert not torch.allclose(swapped[:2], logits[:2], atol=1e-2)  # a relation has a direction
    torch.testing.assert_close(swapped[2], logits[2])


def test_padding_changes_nothing_for_a_relation() -> None:
    model = randomised(BertRelation(SMALL, vocab=V, n_labels=5))
    some, spans = some_texts(), entities()
    wide = [torch.cat([x, torch.ones_like(x[:, :4])], dim=1) for x in some[:2]]
    absent = [torch.cat([x, torch.zeros_like(x[:, :4])], dim=1) for x in (some[2], *spans)]
    torch.testing.assert_close(model(*wide, *absent), model(*some, *spans), rtol=1e-4, atol=1e-5)


def test_dropout_is_before_each_layer_of_a_relation() -> None:
    model = BertRelation(replace(SMALL, dropout=0.0, attention_dropout=0.0), vocab=V, n_labels=5).train()
    model.dropout.p = 0.5
    read = dict[str, Tensor]()
    for name in ("w_0", "w_1", "w_3"):
        layer = model.get_submodule(name)
        layer.register_forward_pre_hook(lambda _, x, name=name: read.update({name: x[0]}))
    some = (*some_texts(), *entities())
    model(*some)
    assert {name: tuple(x.shape) for name, x in read.items()} == {"w_0": (3, D), "w_1": (3, 2, D), "w_3": (3, 3 * D)}
    for x in read.values():
        assert 0.2 < (x == 0).float().mean() < 0.8
    model.eval()(*some)
    assert all(x.all() for x in read.values())


def test_gpt_does_not_look_ahead_and_steps_equal_the_whole() -> None:
    model = randomised(Gpt(SMALL_GPT, vocab=V))
    ids = torch.randint(0, V, (3, 9))
    whole = model.logits(model(ids))
    changed = ids.clone()
    changed[:, 6:] = (changed[:, 6:] + 1) % V
    torch.testing.assert_close(model.logits(model(changed))[:, :6], whole[:, :6], rtol=0, atol=1e-5)
    state = model.start(3)
    for t in range(9):
        logits, state = model.step(ids[:, t], state)
        torch.testing.assert_close(logits, whole[:, t], rtol=0, atol=1e-4)


BERT_NAMES = (
    (r"^bert\.embedding\.", "bert.embeddings.word_embeddings."),
    (r"^bert\.positions\.", "bert.embeddings.position_embeddings."),
    (r"^bert\.segments\.", "bert.embeddings.token_type_embeddings."),
    (r"^bert\.norm\.", "bert.embeddings.LayerNorm."),
    (r"^bert\.stack\.layers\.", "bert.encoder.layer."),
    (r"self_attention\.w_q", "attention.self.query"),
    (r"self_attention\.w_k", "attention.self.key"),
    (r"self_attention\.w_v", "attention.self.value"),
    (r"self_attention\.w_o", "attention.output.dense"),
    (r"self_norm", "attention.output.LayerNorm"),
    (r"feed_forward\.w_1", "intermediate.dense"),
    (r"feed_forward\.w_2", "output.dense"),
    (r"feed_norm", "output.LayerNorm"),
    (r"^bert\.pooler\.", "bert.pooler.dense."),
    (r"^transform\.", "cls.predictions.transform.dense."),
    (r"^transform_norm\.", "cls.predictions.transform.LayerNorm."),
    (r"^bias$", "cls.predictions.bias"),
    (r"^next_sentence\.", "cls.seq_relationship."),
)


def their_bert(ours: BertPretraining) -> BertForPreTraining:
    theirs = BertForPreTraining(
        TheirBertConfig(
            vocab_size=V,
            hidden_size=D,
            num_hidden_layers=N,
            num_attention_heads=H,
            intermediate_size=FF,
            max_position_embeddings=20,
        )
    )
    weights: dict[str, Tensor] = {}
    for name, tensor in ours.state_dict().items():
        for pattern, new in BERT_NAMES:
            name = re.sub(pattern, new, name)
        weights[name] = tensor
    found = theirs.load_state_dict(weights, strict=False)
    assert not found.unexpected_keys
    assert set(found.missing_keys) <= {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}
    theirs.tie_weights()
    theirs.cls.predictions.decoder.bias = theirs.cls.predictions.bias
    return theirs.eval()


def test_bert_equals_transformers() -> None:
    ours = randomised(BertPretraining(SMALL, vocab=V))
    assert isinstance(ours, BertPretraining)
    theirs = their_bert(ours)
    ids = torch.randint(0, V, (3, 12))
    segments = (torch.arange(12) > 6).long().expand(3, 12)
    mask = torch.arange(12) < torch.tensor([[12], [9], [4]])
    with torch.no_grad():
        hidden = ours(ids, segments, mask)
        expected = theirs(ids, token_type_ids=segments, attention_mask=mask.long())
    torch.testing.assert_close(ours.logits(hidden)[mask], expected.prediction_logits[mask], rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(ours.follows(hidden[:, 0]), expected.seq_relationship_logits, rtol=1e-5, atol=1e-5)


def test_gpt_equals_transformers() -> None:
    ours = randomised(Gpt(SMALL_GPT, vocab=V))
    assert isinstance(ours, Gpt)
    theirs = GPT2LMHeadModel(GPT2Config(vocab_size=V, n_positions=20, n_embd=D, n_layer=N, n_head=H, n_inner=FF)).eval()
    weights = {
        "transformer.wte.weight": ours.embedding.weight,
        "transformer.wpe.weight": ours.positions.embedding.weight,
        "transformer.ln_f.weight": ours.stack.final_norm.weight,
        "transformer.ln_f.bias": ours.stack.final_norm.bias,
        "lm_head.weight": ours.embedding.weight,
    }
    for i, layer in enumerate(ours.stack.layers):
        h, attention, feed = f"transformer.h.{i}.", layer.self_attention, layer.feed_forward
        qkv = [attention.w_q, attention.w_k, attention.w_v]
        weights[h + "attn.c_attn.weight"] = torch.cat([w.weight for w in qkv]).T
        weights[h + "attn.c_attn.bias"] = torch.cat([w.bias for w in qkv])
        pairs = (("attn.c_proj", attention.w_o), ("mlp.c_fc", feed.w_1), ("mlp.c_proj", feed.w_2))
        for name, linear in pairs:
            weights |= {h + name + ".weight": linear.weight.T, h + name + ".bias": linear.bias}
        for name, norm in (("ln_1", layer.self_norm), ("ln_2", layer.feed_norm)):
            weights |= {h + name + ".weight": norm.weight, h + name + ".bias": norm.bias}
    theirs.load_state_dict(weights)
    ids = torch.randint(0, V, (3, 12))
    with torch.no_grad():
        torch.testing.assert_close(ours.logits(ours(ids)), theirs(ids).logits, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("n_layers", [1, 3])
def test_what_is_said_of_the_first_position_does_not_need_the_others(n_layers: int) -> None:
    """The last layer is spared them: the same state of `[CLS]`, and the same gradients."""
    model = randomised(Bert(replace(SMALL, n_layers=n_layers), vocab=V, pooler=False))
    ids, mask = torch.randint(5, V, (3, 7)), torch.ones(3, 7, dtype=torch.bool)
    mask[1, 4:] = False
    found = []
    for first_only in (False, True):
        model.zero_grad()
        first = model(ids, torch.zeros_like(ids), mask, first_only=first_only)[:, :1]
        first.square().sum().backward()
        found.append([first, *(parameter.grad.clone() for parameter in model.parameters())])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
