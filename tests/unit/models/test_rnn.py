"""Recurrent networks over one text: equal to torch's own modules, blind to padding and to the future."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from jumok.config import read_config
from jumok.data.pages import pad
from jumok.errors import RecipeError
from jumok.models.rnn import RnnClassifier, RnnConfig, RnnLanguageModel, RnnTagger

V, L, D, H = 13, 3, 6, 8
PAD = V - 1
KINDS = {"elman": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
TEXTS = [[5, 2, 7, 0], [3, 0], [0], [1, 1, 4, 9, 8, 0], [6, 2, 0]]
SMALL = RnnConfig(d_embedding=D, d_hidden=H, dropout=0.0)

each_cell = pytest.mark.parametrize("cell", KINDS)
each_way = pytest.mark.parametrize("both", [False, True], ids=["forwards", "both ways"])
each_pool = pytest.mark.parametrize("pool", ["last", "mean", "attention"])
each_width = pytest.mark.parametrize("width", [D, H], ids=["own output matrix", "tied"])


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def classifier(**changes):
    torch.manual_seed(1)
    return RnnClassifier(replace(SMALL, **changes), vocab=V, n_labels=L).eval()


def tagger(**changes):
    torch.manual_seed(1)
    return RnnTagger(replace(SMALL, **changes), vocab=V, n_labels=L).eval()


def language_model(**changes):
    torch.manual_seed(1)
    return RnnLanguageModel(replace(SMALL, **changes), vocab=V).eval()


def batch(texts, extra=0):
    """Ids, segments and mask; segments that alternate, to be looked past."""
    ids = pad(texts, PAD)
    ids = torch.cat([ids, ids.new_full((len(ids), extra), PAD)], dim=1)
    return ids, torch.arange(ids.shape[1]).expand_as(ids) % 2, ids != PAD


def read_by_torch(model, ids, lengths):
    """The states of all positions and the last ones, by torch's own module with the same weights."""
    c = model.config
    theirs = KINDS[c.cell](
        c.d_embedding,
        c.d_hidden // (2 if c.bidirectional else 1),
        num_layers=c.n_layers,
        bidirectional=c.bidirectional,
        batch_first=True,
    )
    with torch.no_grad():
        for i, ways in enumerate(model.reader.layers.layers):
            for way, suffix in zip(ways, ("", "_reverse"), strict=False):
                getattr(theirs, f"weight_ih_l{i}{suffix}").copy_(way.w_x.weight)
                getattr(theirs, f"weight_hh_l{i}{suffix}").copy_(way.w_h.weight)
                getattr(theirs, f"bias_ih_l{i}{suffix}").copy_(way.w_x.bias)
                bias = getattr(theirs, f"bias_hh_l{i}{suffix}")
                bias.zero_() if way.w_h.bias is None else bias.copy_(way.w_h.bias)
        words = pack_padded_sequence(model.reader.embedding(ids), lengths, batch_first=True, enforce_sorted=False)
        packed, last = theirs(words)
        states, _ = pad_packed_sequence(packed, batch_first=True, total_length=ids.shape[1])
        h = last[0] if c.cell == "lstm" else last
        return states, torch.cat([h[-2], h[-1]], dim=-1) if c.bidirectional else h[-1]


# equal to torch's modules


@each_cell
@each_way
@pytest.mark.parametrize("n_layers", [1, 2])
@each_pool
def test_a_classifier_is_torchs_network_with_a_linear_layer(cell, both, n_layers, pool):
    model = classifier(cell=cell, bidirectional=both, n_layers=n_layers, pool=pool)
    ids, segments, mask = batch(TEXTS)
    states, last = read_by_torch(model, ids, mask.sum(dim=1))
    match pool:
        case "last":
            pooled = last
        case "mean":
            pooled = torch.stack([row[: len(text)].mean(dim=0) for row, text in zip(states, TEXTS, strict=True)])
        case "attention":  # Yang et al. 2016, Eq. 5 to 7
            pooled = []
            for row, text in zip(states, TEXTS, strict=True):
                h = row[: len(text)]
                u = torch.tanh(h @ model.score.u.weight.T + model.score.w.bias)
                alpha = torch.softmax(u @ model.score.v.weight[0], dim=0)
                pooled.append((alpha[:, None] * h).sum(dim=0))
            pooled = torch.stack(pooled)
    close(model(ids, segments, mask), pooled @ model.output.weight.T + model.output.bias)


@each_cell
@each_way
def test_a_tagger_is_torchs_network_with_a_linear_layer(cell, both):
    model = tagger(cell=cell, bidirectional=both, n_layers=2)
    ids, segments, mask = batch(TEXTS)
    states, _ = read_by_torch(model, ids, mask.sum(dim=1))
    expected = states @ model.output.weight.T + model.output.bias
    close(model(ids, segments, mask)[mask], expected[mask])


@each_cell
@each_width
def test_a_language_model_is_torchs_network_with_its_output_matrix(cell, width):
    model = language_model(cell=cell, n_layers=2, d_embedding=width)
    ids = pad([[PAD, *text[:-1]] for text in TEXTS], PAD)
    lengths = torch.tensor([len(text) for text in TEXTS])
    states, _ = read_by_torch(model, ids, lengths)
    matrix = model.reader.embedding.weight[:-1] if width == H else model.output.weight
    real = torch.arange(ids.shape[1]) < lengths[:, None]
    found = model.logits(model(ids))
    assert found.shape == (len(TEXTS), ids.shape[1], V - 1)  # `<pad>` is never predicted
    close(found[real], (states @ matrix.T)[real])


# padding


@each_cell
@each_way
@each_pool
def test_padding_changes_nothing_for_a_classifier(cell, both, pool):
    model = classifier(cell=cell, bidirectional=both, pool=pool)
    together = model(*batch(TEXTS))
    close(model(*batch(TEXTS, extra=4)), together)
    close(torch.cat([model(*batch([text])) for text in TEXTS]), together)
    assert len({tuple(row) for row in together.tolist()}) == len(TEXTS)  # the texts are told apart
    ids, segments, mask = batch(TEXTS)
    close(model(ids.masked_fill(~mask, 3), segments, mask), together)  # what stands there is never seen


@each_cell
@each_way
def test_padding_changes_nothing_for_a_tagger(cell, both):
    model = tagger(cell=cell, bidirectional=both, n_layers=2)
    ids, segments, mask = batch(TEXTS)
    together = model(ids, segments, mask)
    close(model(*batch(TEXTS, extra=4))[:, : ids.shape[1]][mask], together[mask])
    close(torch.cat([model(*batch([text]))[0] for text in TEXTS]), together[mask])
    close(model(ids.masked_fill(~mask, 3), segments, mask)[mask], together[mask])


@each_cell
def test_padding_changes_nothing_for_a_language_model(cell):
    model = language_model(cell=cell, n_layers=2)
    rows = [[PAD, *text] for text in TEXTS]
    alone = torch.cat([model(torch.tensor([row]))[0] for row in rows])
    for extra in (0, 4):
        ids, _, real = batch(rows, extra)
        real[:, 0] = True
        close(model(ids)[real], alone)


@each_way
@each_pool
def test_padding_gets_no_gradient_and_its_embedding_stays_zero(both, pool):
    model = classifier(bidirectional=both, pool=pool)
    model(*batch(TEXTS)).sum().backward()
    gradient = model.reader.embedding.weight.grad
    assert not gradient[PAD].any()
    assert gradient[sorted({i for text in TEXTS for i in text})].any(dim=1).all()
    assert not model.reader.embedding.weight[PAD].any()


@each_width
def test_the_start_of_a_language_model_is_the_zero_vector_for_good(width):
    model = language_model(d_embedding=width)
    model.logits(model(pad([[PAD, *text] for text in TEXTS], PAD))).square().sum().backward()
    assert not model.reader.embedding.weight.grad[PAD].any()
    assert not model.reader.embedding.weight[PAD].any()


# attention of a classifier


@each_cell
@each_way
def test_attention_is_a_distribution_over_the_words(cell, both):
    model = classifier(cell=cell, bidirectional=both, pool="attention")
    ids, segments, mask = batch(TEXTS, extra=2)
    weights = []
    logits = model(ids, segments, mask, weights=weights)
    (alpha,) = weights
    assert alpha.shape == ids.shape
    close(alpha.sum(dim=1), torch.ones(len(TEXTS)))
    assert (alpha[mask] > 0).all()
    assert (alpha[~mask] == 0).all()
    close(logits, model(ids, segments, mask))  # looking changes nothing


@pytest.mark.parametrize("pool", ["last", "mean"])
def test_without_attention_there_is_none_to_see(pool):
    weights = []
    classifier(pool=pool)(*batch(TEXTS), weights=weights)
    assert weights == []


# what is given to all bodies alike


@pytest.mark.parametrize("make", [classifier, tagger])
def test_segments_are_not_looked_at(make):
    model = make(bidirectional=True)
    ids, segments, mask = batch(TEXTS)
    assert torch.equal(model(ids, 1 - segments, mask), model(ids, segments, mask))


def test_with_a_crf_the_logits_are_its_emissions():
    torch.manual_seed(1)
    plain = RnnTagger(SMALL, vocab=V, n_labels=L).eval()
    torch.manual_seed(1)
    model = RnnTagger(SMALL, vocab=V, n_labels=L, crf=True).eval()
    assert plain.crf is None
    assert model.state_dict().keys() - plain.state_dict().keys() == {"crf.transitions", "crf.starts", "crf.ends"}
    ids, segments, mask = batch(TEXTS)
    e = model(ids, segments, mask)
    assert torch.equal(e, plain(ids, segments, mask))
    model.crf.log_likelihood(e, ids % L, mask).sum().backward()
    assert all(parameter.grad.any() for parameter in model.crf.parameters())
    assert model.output.weight.grad.any()


# the order of the words


@each_cell
def test_the_future_never_leaks_into_a_language_model(cell):
    model = language_model(cell=cell, n_layers=2)
    ids = torch.tensor([[PAD, 5, 2, 7, 1, 3]])
    states = model(ids)
    for t in range(1, ids.shape[1]):
        other = ids.clone()
        other[:, t:] = (other[:, t:] + 4) % PAD
        changed = model(other)
        assert torch.equal(changed[:, :t], states[:, :t])
        assert not torch.allclose(changed[:, t], states[:, t], atol=1e-4)


@each_cell
@pytest.mark.parametrize("n_layers", [1, 3])
@each_width
def test_step_by_step_equals_all_at_once(cell, n_layers, width):
    model = language_model(cell=cell, n_layers=n_layers, d_embedding=width)
    ids = torch.tensor([[PAD, 5, 2, 7, 1], [PAD, 3, 3, 0, 9]])
    expected, state = model.logits(model(ids)), model.start(2)
    assert model.start_id == PAD
    for t in range(ids.shape[1]):
        logits, state = model.step(ids[:, t], state)
        close(logits, expected[:, t])


@each_cell
def test_a_state_is_a_value(cell):
    """Rows can be picked and repeated, and a step leaves the state before it as it was."""
    model = language_model(cell=cell, n_layers=2)
    _, state = model.step(torch.tensor([4, 7, 9]), model.start(3))
    tokens = torch.tensor([2, 8, 1])
    logits, _ = model.step(tokens, state)
    rows = torch.tensor([2, 0, 0])
    picked, _ = model.step(tokens[rows], state.select(rows))
    close(picked, logits[rows])
    close(model.step(tokens, state)[0], logits)


@each_cell
def test_only_both_ways_does_a_tagger_see_what_comes(cell):
    ids, segments, mask = batch([[5, 2, 7, 1]])
    other = torch.tensor([[5, 2, 7, 9]])
    for both in (False, True):
        model = tagger(cell=cell, bidirectional=both)
        change = (model(ids, segments, mask) - model(other, segments, mask)).abs().amax(dim=-1)[0]
        assert (change[:3] > 0).all().item() is both
        assert change[3] > 0


# parameters


@each_cell
@each_way
@pytest.mark.parametrize("n_layers", [1, 3])
def test_parameters_are_as_many_as_the_equations_have(cell, both, n_layers):
    gates = {"elman": 1, "lstm": 4, "gru": 3}[cell]
    biases = 2 if cell == "gru" else 1
    ways, h = (2, H // 2) if both else (1, H)
    widths = [D] + [H] * (n_layers - 1)
    reader = V * D + sum(ways * gates * h * (width + h + biases) for width in widths)
    changes = {"cell": cell, "bidirectional": both, "n_layers": n_layers}
    output = H * L + L

    def count(model):
        return sum(parameter.numel() for parameter in model.parameters())

    assert count(classifier(**changes)) == count(classifier(**changes, pool="mean")) == reader + output
    assert count(tagger(**changes)) == reader + output
    if not both:
        assert count(language_model(**changes)) == reader + H * (V - 1)
        tied = reader + (H - D) * (V + gates * h)  # wider embeddings, and no matrix beside them
        assert count(language_model(**changes, d_embedding=H)) == tied


def test_dropout_is_for_training_alone():
    for model in (classifier(dropout=0.5), tagger(dropout=0.5)):
        ids, segments, mask = batch(TEXTS)
        assert torch.equal(model(ids, segments, mask), model(ids, segments, mask))
        model.train()
        assert not torch.equal(model(ids, segments, mask), model(ids, segments, mask))


def test_an_odd_width_cannot_be_halved():
    with pytest.raises(RecipeError) as caught:
        read_config(RnnConfig, {"bidirectional": True, "d_hidden": 7}, what="[model]")
    assert [(mistake.key, mistake.code) for mistake in caught.value.mistakes] == [("d_hidden", "recipe.mismatch")]
    assert read_config(RnnConfig, {"d_hidden": 7}, what="[model]").d_model == 7
