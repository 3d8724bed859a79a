"""Elman RNN, LSTM and GRU against torch's own modules on the same weights."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from jumok.nn.recurrent import Packing, Recurrent, RecurrentLayer

KINDS = {"elman": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
B, S, D, H = 5, 7, 6, 8
LENGTHS = torch.tensor([3, 7, 1, 5, 3])


def same_weights(ours: Recurrent, theirs: nn.RNNBase) -> None:
    with torch.no_grad():
        for i, ways in enumerate(ours.layers):
            for way, suffix in zip(ways, ("", "_reverse"), strict=False):
                w_x, w_h, b_x, b_h = (
                    getattr(theirs, f"{name}_l{i}{suffix}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
                )
                way.w_x.weight.copy_(w_x)
                way.w_h.weight.copy_(w_h)
                if way.w_h.bias is None:
                    way.w_x.bias.copy_(b_x + b_h)
                else:
                    way.w_x.bias.copy_(b_x)
                    way.w_h.bias.copy_(b_h)


def pair(cell: str, n_layers: int, both_ways: bool) -> tuple[Recurrent, nn.RNNBase]:
    torch.manual_seed(1)
    ours = Recurrent(cell, D, H, n_layers=n_layers, both_ways=both_ways)
    theirs = KINDS[cell](D, H // 2 if both_ways else H, num_layers=n_layers, bidirectional=both_ways, batch_first=True)
    same_weights(ours, theirs)
    return ours, theirs


def by_direction(states, both_ways):
    """Ours, [B, H] a layer, as torch's [layers * directions, B, H]."""
    ways = 2 if both_ways else 1
    joined = [
        torch.stack([part for state in states for part in state[k].chunk(ways, -1)]) for k in range(len(states[0]))
    ]
    return joined[0] if len(joined) == 1 else tuple(joined)


each = pytest.mark.parametrize("cell", KINDS)


@each
@pytest.mark.parametrize("both_ways", [False, True])
@pytest.mark.parametrize("n_layers", [1, 3])
def test_outputs_and_gradients_are_torchs(cell, n_layers, both_ways):
    ours, theirs = pair(cell, n_layers, both_ways)
    x = torch.randn(B, S, D, requires_grad=True)
    y = x.detach().clone().requires_grad_()
    out, states = ours(x, LENGTHS)
    packed, last = theirs(pack_padded_sequence(y, LENGTHS, batch_first=True, enforce_sorted=False))
    expected, _ = pad_packed_sequence(packed, batch_first=True)
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(by_direction(states, both_ways), last)
    noise = torch.randn_like(out)
    ((out * noise).sum() + sum(part.square().sum() for state in states for part in state)).backward()
    last = last if isinstance(last, tuple) else (last,)
    ((expected * noise).sum() + sum(part.square().sum() for part in last)).backward()
    torch.testing.assert_close(x.grad, y.grad)
    for i, ways in enumerate(ours.layers):
        for way, suffix in zip(ways, ("", "_reverse"), strict=False):
            torch.testing.assert_close(way.w_x.weight.grad, getattr(theirs, f"weight_ih_l{i}{suffix}").grad)
            torch.testing.assert_close(way.w_h.weight.grad, getattr(theirs, f"weight_hh_l{i}{suffix}").grad)
            torch.testing.assert_close(way.w_x.bias.grad, getattr(theirs, f"bias_ih_l{i}{suffix}").grad)
            if way.w_h.bias is not None:
                torch.testing.assert_close(way.w_h.bias.grad, getattr(theirs, f"bias_hh_l{i}{suffix}").grad)


@each
def test_gradients_of_the_first_state_are_those_of_the_equations(cell):
    torch.manual_seed(2)
    layer = RecurrentLayer(cell, D, H).double()
    sizes = [4, 3, 3, 1]
    x = torch.randn(sum(sizes), D, dtype=torch.double, requires_grad=True)
    state = tuple(torch.randn(4, H, dtype=torch.double, requires_grad=True) for _ in layer.zeros(1))
    for backward in (False, True):

        def run(x, *state, backward=backward):
            out, last = layer.unroll(x, sizes, state, backward=backward)
            return (out, *last)

        assert torch.autograd.gradcheck(run, (x, *state))


@each
def test_step_by_step_is_all_at_once(cell):
    torch.manual_seed(3)
    network = Recurrent(cell, D, H, n_layers=2)
    x = torch.randn(B, S, D)
    begin = [tuple(torch.randn(B, H) for _ in state) for state in network.zeros(B)]
    whole, last = network(x, torch.full((B,), S), begin)
    states, outs = begin, []
    for t in range(S):
        out, states = network.step(x[:, t], states)
        outs.append(out)
    torch.testing.assert_close(torch.stack(outs, dim=1), whole)
    torch.testing.assert_close(states, last)


@each
@pytest.mark.parametrize("both_ways", [False, True])
def test_padding_and_company_change_nothing(cell, both_ways):
    torch.manual_seed(4)
    network = Recurrent(cell, D, H, n_layers=2, both_ways=both_ways)
    x = torch.randn(B, S, D)
    out, last = network(x, LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        alone, alone_last = network(x[row : row + 1, :length], torch.tensor([length]))
        torch.testing.assert_close(out[row : row + 1, :length], alone)
        assert not out[row, length:].any()
        for state, other in zip(last, alone_last, strict=True):
            torch.testing.assert_close(tuple(part[row : row + 1] for part in state), other)


def test_nothing_is_computed_for_padding():
    packing = Packing.of(LENGTHS, S)
    assert sum(packing.sizes) == len(packing.index) == int(LENGTHS.sum())
    assert packing.sizes == [5, 4, 4, 2, 2, 1, 1]


def test_dropout_stands_between_the_layers_and_only_in_training():
    torch.manual_seed(5)
    network = Recurrent("gru", D, H, n_layers=2, dropout=0.5)
    x, lengths = torch.randn(B, S, D), torch.full((B,), S)
    assert not torch.equal(network(x, lengths)[0], network(x, lengths)[0])
    network.eval()
    assert torch.equal(network(x, lengths)[0], network(x, lengths)[0])
    single = Recurrent("gru", D, H, dropout=0.5)
    assert torch.equal(single(x, lengths)[0], single(x, lengths)[0])
