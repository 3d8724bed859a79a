from math import cos, sin

import pytest
import torch

from jumok.nn.positions import LearnedPositions, SinusoidalPositions, sinusoids


def formula(position, d_model):
    """PE of one position, dimension by dimension."""
    row = []
    for dimension in range(d_model):
        angle = position / 10000 ** ((dimension - dimension % 2) / d_model)
        row.append(cos(angle) if dimension % 2 else sin(angle))
    return torch.tensor(row)


def test_sinusoids_by_hand():
    # d_model = 4: the two rates are 1 and 10000^(-2/4) = 1/100.
    expected = [
        [0.0, 1.0, 0.0, 1.0],
        [0.841471, 0.540302, 0.01, 0.99995],
        [0.909297, -0.416147, 0.019999, 0.9998],
    ]
    torch.testing.assert_close(sinusoids(0, 3, 4), torch.tensor(expected), rtol=0, atol=1e-6)


@pytest.mark.parametrize("d_model", [2, 5, 16])
def test_rows_of_the_table_and_past_it_follow_the_formula(d_model):
    positions = SinusoidalPositions(d_model)
    end = positions.ROWS
    assert end == 512
    for start, stop in [(0, 4), (end - 2, end), (end - 2, end + 3), (end, end + 1), (5000, 5002)]:
        expected = torch.stack([formula(position, d_model) for position in range(start, stop)])
        torch.testing.assert_close(positions(start, stop), expected, rtol=0, atol=1e-6)


def test_table_is_neither_trained_nor_stored():
    positions = SinusoidalPositions(6)
    assert not list(positions.parameters())
    assert not positions.state_dict()


def test_learned_positions_are_rows_of_a_trained_table():
    positions = LearnedPositions(4, 6)
    assert torch.equal(positions(2, 5), positions.embedding.weight[2:5])
    positions(5, 6).sum().backward()
    assert positions.embedding.weight.grad.sum(dim=1).tolist() == [0, 0, 0, 0, 0, 4]


@pytest.mark.parametrize(("start", "stop"), [(0, 7), (6, 7), (9, 10)])
def test_learned_positions_refuse_what_was_not_learned(start, stop):
    with pytest.raises(ValueError, match="6 learned positions"):
        LearnedPositions(4, 6)(start, stop)
