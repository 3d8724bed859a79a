"""ELMo: both language models equal torch's LSTM, neither sees what it predicts, and a task learns only the mixture."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from jumok.config import read_config
from jumok.data.pages import pad
from jumok.decode.options import DecodeConfig, Request
from jumok.decode.search import search
from jumok.errors import RecipeError
from jumok.models.elmo import Elmo, ElmoConfig
from jumok.models.features import Features, LayerMix
from jumok.models.rnn import RnnClassifier, RnnConfig, RnnTagger
from jumok.nn.cross_entropy import linear_cross_entropy
from jumok.train.optimizer import OptimizerConfig, make_optimizer

V, H = 13, 8
PAD, EOS = V - 1, 0
TEXTS = [[5, 2, 7, 0], [3, 0], [0], [1, 1, 4, 9, 8, 0], [6, 2, 0]]
SMALL = ElmoConfig(d_embedding=H, d_hidden=H, dropout=0.0)
TASK = RnnConfig(d_embedding=6, d_hidden=10, bidirectional=True, dropout=0.0)

each_depth = pytest.mark.parametrize("n_layers", [1, 2, 3])
each_task = pytest.mark.parametrize("task", [RnnClassifier, RnnTagger])


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def elmo(**changes):
    torch.manual_seed(1)
    model = Elmo(replace(SMALL, **changes), vocab=V)
    with torch.no_grad():  # large enough for every word to be felt
        model.embedding.weight.mul_(5)
        for direction in (model.forwards, model.backwards):
            for parameter in direction.parameters():
                parameter.mul_(2)
    return model.eval()


def batch(texts, extra=0):
    ids = pad(texts, PAD)
    ids = torch.cat([ids, ids.new_full((len(ids), extra), PAD)], dim=1)
    return ids, ids != PAD


def one_text(texts, extra=0):
    """What a task's model takes: segments too, at which a recurrent one does not look."""
    ids, mask = batch(texts, extra)
    return ids, torch.zeros_like(ids), mask


def loss(model, ids, mask):
    """Of both directions together, a word and a direction."""
    hidden = torch.cat([states[mask] for states in model(ids, mask)])
    targets = ids[mask].repeat(2)
    return linear_cross_entropy(hidden, model.projection, targets) / len(targets)


def read_by_torch(direction, rows):
    """What each layer says about rows of embeddings, by torch's own LSTM on packed sequences; read from the left."""
    lengths = torch.tensor([len(row) for row in rows])
    x, said = nn.utils.rnn.pad_sequence(rows, batch_first=True), []
    for i, layer in enumerate(direction.layers):
        theirs = nn.LSTM(H, H, batch_first=True)
        with torch.no_grad():
            theirs.weight_ih_l0.copy_(layer.w_x.weight)
            theirs.weight_hh_l0.copy_(layer.w_h.weight)
            theirs.bias_ih_l0.copy_(layer.w_x.bias)
            theirs.bias_hh_l0.zero_()
        packed, _ = theirs(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
        h = pad_packed_sequence(packed, batch_first=True)[0]
        x = h if i == 0 else x + h
        said.append([row[:length] for row, length in zip(x, lengths, strict=True)])
    return said


def both_by_torch(model, texts):
    """Of every layer and text the forward states of <pad> w_1 .. w_N and the backward ones of w_1 .. w_N <pad>."""
    forward = [model.embedding(torch.tensor([PAD, *text])) for text in texts]
    backward = [model.embedding(torch.tensor([PAD, *text[::-1]])) for text in texts]
    states = read_by_torch(model.backwards, backward)
    return read_by_torch(model.forwards, forward), [[row.flip(0) for row in rows] for rows in states]


# equal to torch's LSTM


@each_depth
def test_the_language_models_are_torchs_lstms(n_layers):
    model = elmo(n_layers=n_layers)
    ids, mask = batch(TEXTS)
    before, after = model(ids, mask)
    assert before.shape == after.shape == (*ids.shape, H)
    forward, backward = both_by_torch(model, TEXTS)
    close(before[mask], torch.cat([row[:-1] for row in forward[-1]]))
    close(after[mask], torch.cat([row[1:] for row in backward[-1]]))
    assert not before[~mask].any()
    assert not after[~mask].any()
    logits = model.logits(before)
    assert logits.shape == (*ids.shape, V - 1)  # `<pad>` is never predicted
    close(logits, before @ model.embedding.weight[:-1].T)


@each_depth
def test_the_features_are_the_states_of_torchs_lstms(n_layers):
    model = elmo(n_layers=n_layers)
    ids, mask = batch(TEXTS, extra=2)
    h = model.layers(ids, mask)
    assert [tuple(layer.shape) for layer in h] == [(*ids.shape, 2 * H)] * (n_layers + 1)
    x = model.embedding(ids)
    close(h[0], torch.cat([x, x], dim=-1))
    for layer, forward, backward in zip(h[1:], *both_by_torch(model, TEXTS), strict=True):
        close(layer[mask][:, :H], torch.cat([row[1:] for row in forward]))
        close(layer[mask][:, H:], torch.cat([row[:-1] for row in backward]))
        assert not layer[~mask].any()


def test_the_last_features_are_what_the_neighbours_are_predicted_from():
    model = elmo()
    ids, mask = batch([[5, 2, 7, 4, 0]])
    before, after = model(ids, mask)
    top = model.layers(ids, mask)[-1]
    close(top[:, :-1, :H], before[:, 1:])
    close(top[:, 1:, H:], after[:, :-1])


# what is seen


def changes(found, other):
    """Where two tensors [1, S, H] differ."""
    return ((found - other).abs().amax(dim=-1)[0] > 1e-7).tolist()


@each_depth
def test_neither_direction_sees_what_it_predicts_or_beyond(n_layers):
    model = elmo(n_layers=n_layers)
    ids = torch.tensor([[5, 2, 7, 1, 3, 0]])
    mask = torch.ones_like(ids, dtype=torch.bool)
    before, after = model(ids, mask)
    h = model.layers(ids, mask)
    for t in range(6):
        other = ids.clone()
        other[:, t] = (other[:, t] + 4) % PAD
        changed_before, changed_after = model(other, mask)
        assert changes(before, changed_before) == [k > t for k in range(6)]
        assert changes(after, changed_after) == [k < t for k in range(6)]
        changed = model.layers(other, mask)
        assert changes(h[0], changed[0]) == [k == t for k in range(6)]
        for layer, changed_layer in zip(h[1:], changed[1:], strict=True):
            assert changes(layer[..., :H], changed_layer[..., :H]) == [k >= t for k in range(6)]
            assert changes(layer[..., H:], changed_layer[..., H:]) == [k <= t for k in range(6)]


def test_the_gradient_of_a_prediction_reaches_only_what_was_read():
    model = elmo()
    ids, mask = batch([[5, 2, 7, 1, 3, 0]])
    for way, read in ((0, {5, 2}), (1, {1, 3, 0})):
        model.zero_grad()
        model(ids, mask)[way][:, 2].sum().backward()
        assert set(model.embedding.weight.grad.any(dim=1).nonzero()[:, 0].tolist()) == read


def test_padding_changes_nothing():
    model = elmo()
    ids, mask = batch(TEXTS)
    alone = [model(*batch([text])) for text in TEXTS]
    alone_h = [model.layers(*batch([text])) for text in TEXTS]
    wide, wide_mask = batch(TEXTS, extra=3)
    for some, real in ((ids, mask), (wide, wide_mask), (wide.masked_fill(~wide_mask, 3), wide_mask)):
        for way, found in enumerate(model(some, real)):
            close(found[real], torch.cat([states[way][0] for states in alone]))
        for j, layer in enumerate(model.layers(some, real)):
            close(layer[real], torch.cat([h[j][0] for h in alone_h]))
            assert not layer[~real].any()


def test_batch_order_changes_nothing():
    model, order = elmo(), torch.tensor([3, 0, 4, 2, 1])
    ids, mask = batch(TEXTS)
    for found, expected in zip(model(ids[order], mask[order]), model(ids, mask), strict=True):
        close(found, expected[order])
    for found, expected in zip(model.layers(ids[order], mask[order]), model.layers(ids, mask), strict=True):
        close(found, expected[order])


# writing


@each_depth
def test_step_by_step_equals_teacher_forcing(n_layers):
    model = elmo(n_layers=n_layers)
    ids = torch.tensor([[5, 2, 7, 1, 0], [3, 3, 6, 9, 0]])
    expected, state = model.logits(model(ids, torch.ones_like(ids, dtype=torch.bool))[0]), model.start(2)
    read = torch.cat([torch.full((2, 1), model.start_id), ids[:, :-1]], dim=1)
    for t in range(ids.shape[1]):
        logits, state = model.step(read[:, t], state)
        close(logits, expected[:, t])
        state, read, expected = state.select(torch.tensor([1, 0])), read.flip(0), expected.flip(0)


def test_a_state_is_a_value():
    model = elmo()
    _, state = model.step(torch.tensor([4, 7, 9]), model.start(3))
    tokens, rows = torch.tensor([2, 8, 1]), torch.tensor([2, 0, 0])
    logits, _ = model.step(tokens, state)
    close(model.step(tokens[rows], state.select(rows))[0], logits[rows])
    close(model.step(tokens, state)[0], logits)


def test_the_search_writes_with_the_forward_language_model():
    model = elmo()
    request, config = Request(source_len=0, max_len=6, prefix=[5, 2]), DecodeConfig(method="beam", beam=3)
    (hypothesis, *_), *_ = search(model, model.start(1), [request], config, eos_id=EOS)
    assert hypothesis.ids[:2] == [5, 2]
    ids = torch.tensor([[*hypothesis.ids, EOS]])
    log_probs = model.logits(model(ids, torch.ones_like(ids, dtype=torch.bool))[0]).log_softmax(dim=-1)
    assert hypothesis.log_prob == pytest.approx(float(log_probs.gather(2, ids[..., None]).sum().detach()), abs=1e-4)


# training


@each_depth
def test_the_gradient_reaches_everything_but_the_start(n_layers):
    model = elmo(n_layers=n_layers)
    loss(model, *batch(TEXTS)).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name
    assert model.embedding.weight.grad[:-1].any(dim=1).all()
    assert not model.embedding.weight.grad[PAD].any()
    assert not model.embedding.weight[PAD].any()


def test_both_directions_learn_a_batch_by_heart():
    """All that can be known: either direction has to guess which of the two texts it is about to read."""
    torch.manual_seed(2)
    model = Elmo(replace(SMALL, d_embedding=24, d_hidden=24), vocab=V)
    ids, mask = batch([[5, 2, 7, 1, 0], [3, 4, 9, 8, 0]])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(150):
        optimizer.zero_grad()
        loss(model, ids, mask).backward()
        optimizer.step()
    before, after = (model.logits(states).argmax(dim=-1) for states in model(ids, mask))
    assert torch.equal(before[:, 1:], ids[:, 1:])
    known = torch.tensor([0, 1, 2, 4])  # both texts end, before that comes the guess
    assert torch.equal(after[:, known], ids[:, known])


def test_parameters_are_as_many_as_the_equations_have():
    lstm = 4 * H * (H + H + 1)
    for n_layers in (1, 2):
        count = sum(parameter.numel() for parameter in elmo(n_layers=n_layers).parameters())
        assert count == V * H + 2 * n_layers * lstm  # the softmax is the embeddings


def test_dropout_is_for_training_alone():
    model, some = elmo(dropout=0.5), batch(TEXTS)
    assert torch.equal(model(*some)[0], model(*some)[0])
    model.train()
    for states in model(*some):  # on what is predicted from
        assert 0.3 < states[some[1]].eq(0).float().mean() < 0.7
    (x, *first), (again, *second) = model.layers(*some), model.layers(*some)
    assert torch.equal(x, again)
    for h, other in zip(first, second, strict=True):  # on what each layer reads, in both directions
        assert not torch.equal(h[..., :H], other[..., :H])
        assert not torch.equal(h[..., H:], other[..., H:])


def test_embeddings_are_as_wide_as_states():
    with pytest.raises(RecipeError) as caught:
        read_config(ElmoConfig, {"d_embedding": 8, "d_hidden": 16}, what="[model]")
    assert [(mistake.key, mistake.code) for mistake in caught.value.mistakes] == [("d_embedding", "recipe.mismatch")]
    assert "d_hidden" in caught.value.what
    config = read_config(ElmoConfig, {"d_embedding": 16, "d_hidden": 16}, what="[model]")
    assert (config.d_model, config.attends, config.longest) == (16, False, None)


# the mixture


def test_the_mixture_is_the_papers_formula():
    mix = LayerMix(2, dropout=0.0)
    h = [torch.randn(2, 3, 4) for _ in range(3)]
    close(mix(h), (h[0] + h[1] + h[2]) / 3)  # at first all layers count the same
    with torch.no_grad():
        mix.s.copy_(torch.tensor([0.5, -1.0, 2.0]))
        mix.gamma.fill_(1.7)
    e = torch.tensor([0.5, -1.0, 2.0]).exp()
    close(mix(h), 1.7 * (e[0] * h[0] + e[1] * h[1] + e[2] * h[2]) / e.sum())


def test_the_mixture_is_dropped_out_in_training_alone():
    mix, h = LayerMix(1, dropout=0.5), [torch.ones(4, 5, 6)] * 2
    assert set(mix(h).unique().tolist()) == {0.0, 2.0}
    assert torch.equal(mix.eval()(h), h[0])


# features of a task


def with_features(task, config=TASK, **changes):
    trained = elmo(**changes)
    torch.manual_seed(3)
    model = task(replace(config, features=trained.config), vocab=V, n_labels=3)
    model.reader.features.body.load_state_dict(trained.state_dict())
    return model


@each_task
def test_a_task_reads_embeddings_and_features(task):
    model = with_features(task).eval()
    ids, mask = batch(TEXTS)
    reader = model.reader
    x = torch.cat([reader.embedding(ids), reader.features.mix(reader.features.body.layers(ids, mask))], dim=-1)
    assert x.shape[-1] == TASK.d_embedding + 2 * H
    states, last = reader(ids, torch.zeros_like(ids), mask)
    expected, expected_last = reader.layers(x, mask.sum(dim=1))
    close(states, expected)
    close(last, expected_last[-1][0])
    assert model(*one_text(TEXTS)).shape == ((5, 3) if task is RnnClassifier else (5, 6, 3))


@each_task
def test_padding_changes_nothing_for_a_task_with_features(task):
    model = with_features(task).eval()
    ids, segments, mask = one_text(TEXTS)
    wide, wide_segments, wide_mask = one_text(TEXTS, extra=3)
    found, wider = model(ids, segments, mask), model(wide.masked_fill(~wide_mask, 3), wide_segments, wide_mask)
    if task is RnnTagger:
        found, wider = found[mask], wider[wide_mask]
    close(wider, found)
    alone = [model(*one_text([text])) for text in TEXTS]
    close(torch.cat([row if task is RnnClassifier else row[0] for row in alone]), found)


@each_task
def test_a_training_step_changes_the_mixture_and_not_the_elmo(task):
    model = with_features(task).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    optimizer = make_optimizer(model, OptimizerConfig(schedule="constant", learning_rate=0.1, warmup=0, kind="adamw"))
    for group in optimizer.param_groups:
        group["lr"] = 0.1
    model(*one_text(TEXTS)).square().sum().backward()
    optimizer.step()
    for name, parameter in model.named_parameters():
        frozen = name.startswith("reader.features.body.")
        assert parameter.requires_grad is not frozen, name
        assert (parameter.grad is None) is frozen, name
        assert torch.equal(parameter, before[name]) is frozen, name
    assert {"reader.features.mix.s", "reader.features.mix.gamma"} < set(before)


@each_task
def test_the_elmo_has_no_dropout_even_when_the_model_trains(task):
    model = with_features(task, dropout=0.5)
    features, some = model.reader.features, one_text(TEXTS)
    assert isinstance(features, Features)
    for mode in (True, False, True):
        model.train(mode)
        assert features.mix.training is mode
        assert not any(module.training for module in features.body.modules())
        assert torch.equal(features(*some), features(*some))  # the mixture's own dropout is the task's: none here


@each_task
def test_the_mixture_has_the_dropout_of_the_task(task):
    features, some = with_features(task, replace(TASK, dropout=0.5)).train().reader.features, one_text(TEXTS)
    assert 0.3 < features(*some)[some[2]].eq(0).float().mean() < 0.7


@each_task
def test_a_saved_model_is_whole(task):
    model = with_features(task).eval()
    with torch.no_grad():
        model.reader.features.mix.s.normal_()
    torch.manual_seed(9)
    other = task(replace(TASK, features=SMALL), vocab=V, n_labels=3).eval()
    some = one_text(TEXTS)
    assert not torch.allclose(other(*some), model(*some))
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(*some), model(*some))


@each_task
def test_without_features_a_model_is_what_it_was(task):
    torch.manual_seed(1)
    model = task(TASK, vocab=V, n_labels=3)
    layer = [f"reader.layers.layers.0.{way}.{w}" for way in (0, 1) for w in ("w_x.weight", "w_x.bias", "w_h.weight")]
    assert list(model.state_dict()) == ["reader.embedding.weight", *layer, "output.weight", "output.bias"]
    assert model.reader.features is None
