"""The CRF equals an enumeration of all paths, whatever stands at padding."""

from itertools import product

import pytest
import torch
from torch.nn import functional as F

from jumok.nn.crf import Crf

L, T = 3, 4
LENGTHS = {"full": [4, 4], "ragged": [4, 2, 1, 3], "with empty rows": [0, 3, 0, 1], "all empty": [0, 0]}

each_mask = pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)


def case(lengths, width=T):
    torch.manual_seed(7)
    crf = Crf(L).double()
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter)
    e = torch.randn(len(lengths), width, L, dtype=torch.float64, requires_grad=True)
    tags = torch.randint(L, (len(lengths), width))
    return crf, e, tags, torch.arange(width) < torch.tensor(lengths)[:, None]


def path_score(crf, e, path):
    """Term by term, as the equation has it."""
    score = crf.starts[path[0]] + crf.ends[path[-1]]
    for t, tag in enumerate(path):
        score = score + e[t, tag] + (crf.transitions[path[t - 1], tag] if t else 0)
    return score


def every_path(crf, e, n):
    """All paths of n tags, and their scores."""
    paths = list(product(range(L), repeat=n))
    return torch.tensor(paths), torch.stack([path_score(crf, e, path) for path in paths])


@each_mask
def test_the_likelihood_is_a_share_of_all_paths(lengths):
    crf, e, tags, mask = case(lengths)
    found = crf.log_likelihood(e, tags, mask)
    assert found.shape == (len(lengths),)
    for row, n in enumerate(lengths):
        expected = torch.zeros((), dtype=torch.float64)
        if n:
            expected = path_score(crf, e[row], tags[row, :n].tolist()) - every_path(crf, e[row], n)[1].logsumexp(0)
            assert found[row] < 0
        torch.testing.assert_close(found[row], expected)


@each_mask
def test_gradients_are_those_of_the_enumeration(lengths):
    crf, e, tags, mask = case(lengths)
    leaves = [e, crf.transitions, crf.starts, crf.ends]
    weights = torch.arange(1.0, 1 + len(lengths), dtype=torch.float64)  # so that no row's share is lost in a sum
    found = torch.autograd.grad(crf.log_likelihood(e, tags, mask) @ weights, leaves)
    expected = sum(0 * leaf.sum() for leaf in leaves)
    for row, n in enumerate(lengths):
        if n:
            scores = every_path(crf, e[row], n)[1]
            own = path_score(crf, e[row], tags[row, :n].tolist())
            expected = expected + weights[row] * (own - scores.logsumexp(0))
    torch.testing.assert_close(found, torch.autograd.grad(expected, leaves))
    assert not found[0][~mask].any()


@each_mask
def test_marginals_are_sums_over_paths(lengths):
    crf, e, _, mask = case(lengths)
    with torch.inference_mode():
        found = crf.marginals(e, mask)
    assert found.shape == e.shape
    assert not found[~mask].any()
    torch.testing.assert_close(found.sum(dim=-1), mask.double())
    for row, n in enumerate(lengths):
        if n:
            paths, scores = every_path(crf, e[row], n)
            chosen = F.one_hot(paths, L).double()  # [paths, n, L]
            torch.testing.assert_close(found[row, :n], torch.einsum("p,ptj->tj", scores.softmax(0), chosen))


def test_marginals_are_the_gradient_of_log_z():
    """p(y_t = j) = d log Z / d e_t[j], and the likelihood's gradient is what was seen less what was expected."""
    crf, e, tags, mask = case([4, 2, 1, 3])
    (found,) = torch.autograd.grad(crf.log_likelihood(e, tags, mask).sum(), e)
    seen = F.one_hot(tags, L) * mask[..., None]
    torch.testing.assert_close(found, seen - crf.marginals(e, mask))


@each_mask
@pytest.mark.parametrize("seed", range(5))
def test_the_best_path_is_the_best_of_all(lengths, seed):
    crf, _, _, mask = case(lengths)
    torch.manual_seed(seed)
    e = torch.randn(len(lengths), T, L, dtype=torch.float64)
    found = crf.best(e, mask)
    assert found.shape == mask.shape
    for row, n in enumerate(lengths):
        if n:
            paths, scores = every_path(crf, e[row], n)
            assert found[row, :n].tolist() == paths[scores.argmax()].tolist()


def test_the_best_path_is_not_that_of_the_best_tags():
    """A tag that may not follow another is left out, however well it scores by itself."""
    crf = Crf(2)
    with torch.no_grad():
        crf.transitions.copy_(torch.tensor([[0.0, -10.0], [0.0, 0.0]]))
    e = torch.tensor([[[1.0, 0.0], [0.0, 3.0], [1.0, 0.0]]])
    mask = torch.ones(1, 3, dtype=torch.bool)
    assert e.argmax(dim=-1).tolist() == [[0, 1, 0]]
    assert crf.best(e, mask).tolist() == [[1, 1, 0]]
    assert crf.marginals(e, mask)[0, 0, 1] > 0.8


def test_padding_changes_nothing():
    crf, e, tags, mask = case([4, 2, 1, 0])
    more = torch.cat([mask, mask.new_zeros(4, 3)], dim=1)
    wide = torch.cat([e, e.new_zeros(4, 3, L)], dim=1).masked_fill(~more[..., None], 50.0)
    garbage = torch.cat([tags, tags.new_zeros(4, 3)], dim=1).masked_fill(~more, -100)
    torch.testing.assert_close(crf.log_likelihood(wide, garbage, more), crf.log_likelihood(e, tags, mask))
    torch.testing.assert_close(crf.marginals(wide, more)[:, :T], crf.marginals(e, mask))
    assert torch.equal(crf.best(wide, more)[:, :T][mask], crf.best(e, mask)[mask])
    for row, n in enumerate([4, 2, 1]):
        alone, there = e[row : row + 1, :n], mask[row : row + 1, :n]
        torch.testing.assert_close(
            crf.log_likelihood(alone, tags[row : row + 1, :n], there)[0], crf.log_likelihood(e, tags, mask)[row]
        )
        assert crf.best(alone, there)[0].tolist() == crf.best(e, mask)[row, :n].tolist()


def test_one_position_is_a_softmax_with_start_and_end():
    crf, e, tags, mask = case([1, 1, 0], width=1)
    scores = e[:, 0] + crf.starts + crf.ends
    expected = scores.log_softmax(dim=-1).gather(1, tags)[:, 0] * mask[:, 0]
    torch.testing.assert_close(crf.log_likelihood(e, tags, mask), expected)
    torch.testing.assert_close(crf.marginals(e, mask)[:2, 0], scores[:2].softmax(dim=-1))
    assert crf.best(e, mask)[:2, 0].tolist() == scores[:2].argmax(dim=-1).tolist()


def test_a_new_crf_is_a_softmax_at_each_position():
    _, e, tags, mask = case([4, 2, 1, 3])
    crf = Crf(L).double()
    expected = -F.cross_entropy(e.transpose(1, 2), tags.masked_fill(~mask, -100), reduction="none").sum(dim=1)
    torch.testing.assert_close(crf.log_likelihood(e, tags, mask), expected)
    assert torch.equal(crf.best(e, mask)[mask], e.argmax(dim=-1)[mask])
    assert {name: tuple(tensor.shape) for name, tensor in crf.state_dict().items()} == {
        "transitions": (L, L),
        "starts": (L,),
        "ends": (L,),
    }


def test_scores_of_any_size_stay_numbers():
    crf, e, tags, mask = case([4, 2, 0, 1])
    likelihood = crf.log_likelihood(e * 1e4, tags, mask)
    gradients = torch.autograd.grad(likelihood.sum(), [e, *crf.parameters()])
    assert all(tensor.isfinite().all() for tensor in (likelihood, *gradients, crf.marginals(e * 1e4, mask)))


def test_an_order_of_tags_is_learned_from_emissions_that_say_nothing():
    """0 1 2 0 1 2 ...: only transitions can tell."""
    torch.manual_seed(1)
    crf = Crf(L)
    tags = (torch.arange(6) + torch.randint(L, (32, 1))) % L
    e, mask = torch.zeros(32, 6, L), torch.ones(32, 6, dtype=torch.bool)
    e[:, 0] = 5 * F.one_hot(tags[:, 0], L)
    optimizer = torch.optim.Adam(crf.parameters(), lr=0.3)
    for _ in range(60):
        optimizer.zero_grad()
        (-crf.log_likelihood(e, tags, mask).mean()).backward()
        optimizer.step()
    assert torch.equal(crf.best(e, mask), tags)
