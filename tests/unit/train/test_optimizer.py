"""The learning rate of Vaswani et al. 2017, Eq. 3, the other schedules, and what Adam is given."""

from math import isclose, nan

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from jumok.config import read_config
from jumok.errors import RecipeError
from jumok.train.optimizer import OptimizerConfig, learning_rate, make_optimizer, peak_rate

NOAM = OptimizerConfig(warmup=4000)


def rate_at(step: int, config: OptimizerConfig, *, steps: int = 100_000, d_model: int = 512) -> float:
    return learning_rate(step, config, peak=peak_rate(config, d_model=d_model), steps=steps)


def schedule(kind: str, **options: object) -> OptimizerConfig:
    return OptimizerConfig(schedule=kind, **{"learning_rate": 0.01, "warmup": 10, **options})  # type: ignore[arg-type]


# schedules


@pytest.mark.parametrize("step", [1, 2, 3999, 4000, 4001, 16_000, 100_000])
def test_noam_is_equation_3(step: int) -> None:
    expected = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
    assert isclose(rate_at(step, NOAM), expected, rel_tol=1e-12)


@given(step=st.integers(1, 10**6), warmup=st.integers(1, 20_000), d_model=st.integers(1, 4096))
@settings(deadline=None)
def test_noam_is_equation_3_everywhere(step: int, warmup: int, d_model: int) -> None:
    expected = d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    assert isclose(rate_at(step, OptimizerConfig(warmup=warmup), d_model=d_model), expected, rel_tol=1e-9)


def test_noam_in_numbers() -> None:
    assert isclose(rate_at(1, NOAM), 1.747e-7, rel_tol=1e-3)
    assert isclose(rate_at(4000, NOAM), 6.99e-4, rel_tol=1e-3)
    assert isclose(rate_at(16_000, NOAM), 6.99e-4 / 2, rel_tol=1e-3)
    assert isclose(rate_at(100_000, NOAM), 1.398e-4, rel_tol=1e-3)
    assert max(range(1, 20_000), key=lambda step: rate_at(step, NOAM)) == 4000


def test_noam_does_not_know_the_number_of_steps() -> None:
    assert rate_at(50, NOAM, steps=100) == rate_at(50, NOAM, steps=10**6)


def test_inverse_sqrt_is_noam_from_a_given_peak() -> None:
    config = schedule("inverse_sqrt", warmup=4000)
    assert rate_at(4000, config) == 0.01
    for step in (1, 500, 4000, 16_000, 100_000):
        assert isclose(rate_at(step, config) / 0.01, rate_at(step, NOAM) / rate_at(4000, NOAM), rel_tol=1e-12)


def test_linear_rises_falls_and_reaches_zero() -> None:
    config = schedule("linear")
    assert [rate_at(step, config, steps=110) for step in (1, 5, 10, 60, 109)] == pytest.approx(
        [0.001, 0.005, 0.01, 0.005, 0.0001]
    )
    assert rate_at(110, config, steps=110) == 0
    assert all(rate_at(step, config, steps=110) > 0 for step in range(1, 110))
    assert rate_at(111, config, steps=110) == 0


def test_linear_without_warmup() -> None:
    rates = [rate_at(step, schedule("linear", warmup=0), steps=4) for step in range(1, 5)]
    assert rates == pytest.approx([0.0075, 0.005, 0.0025, 0])


def test_constant() -> None:
    rates = [rate_at(step, schedule("constant", warmup=2)) for step in (1, 2, 3, 10**6)]
    assert rates == pytest.approx([0.005, 0.01, 0.01, 0.01])
    assert rate_at(1, schedule("constant", warmup=0)) == 0.01


@pytest.mark.parametrize("kind", ["inverse_sqrt", "linear", "constant"])
def test_no_step_is_above_the_peak(kind: str) -> None:
    rates = [rate_at(step, schedule(kind), steps=50) for step in range(1, 51)]
    assert max(rates) == 0.01
    assert rates[:10] == sorted(rates[:10])
    assert rates[9:] == sorted(rates[9:], reverse=True)


# the optimizer


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        self.linear = nn.Linear(4, 3)
        self.norm = nn.LayerNorm(3)
        self.frozen = nn.Parameter(torch.ones(2, 2), requires_grad=False)


def test_weight_decay_is_for_matrices_only() -> None:
    net = Net()
    optimizer = make_optimizer(net, OptimizerConfig(weight_decay=0.1))
    decay = {parameter: group["weight_decay"] for group in optimizer.param_groups for parameter in group["params"]}
    named = {name: decay.get(parameter) for name, parameter in net.named_parameters()}
    assert named == {
        "embedding.weight": 0.1,
        "linear.weight": 0.1,
        "linear.bias": 0.0,
        "norm.weight": 0.0,
        "norm.bias": 0.0,
        "frozen": None,
    }


def test_a_tied_matrix_is_given_once() -> None:
    net = Net()
    net.again = net.embedding
    given = [p for group in make_optimizer(net, NOAM).param_groups for p in group["params"]]
    assert len(given) == len({id(p) for p in given}) == 5


def test_adam_has_the_papers_numbers() -> None:
    optimizer = make_optimizer(Net(), OptimizerConfig())
    assert type(optimizer) is torch.optim.Adam
    for group in optimizer.param_groups:
        assert (group["betas"], group["eps"], group["weight_decay"]) == ((0.9, 0.98), 1e-9, 0.0)
    assert type(make_optimizer(Net(), OptimizerConfig(kind="adamw"))) is torch.optim.AdamW


@pytest.mark.parametrize("kind", ["adam", "adamw"])
def test_weight_decay_as_the_kind_says(kind: str) -> None:
    model = nn.Linear(3, 2)
    with torch.no_grad():
        model.weight.fill_(2.0)
        model.bias.fill_(2.0)
    optimizer = make_optimizer(model, OptimizerConfig(kind=kind, weight_decay=0.5))  # type: ignore[arg-type]
    for group in optimizer.param_groups:
        group["lr"] = 0.1
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    # A zero gradient: L2 turns the decay into a whole Adam step, adamw takes lr x decay of the weight.
    expected = 2.0 - 0.1 if kind == "adam" else 2.0 * (1 - 0.1 * 0.5)
    torch.testing.assert_close(model.weight, torch.full((2, 3), expected))
    torch.testing.assert_close(model.bias, torch.full((2,), 2.0))


def test_a_model_without_vectors_can_be_trained() -> None:
    model = nn.Linear(3, 2, bias=False)
    optimizer = make_optimizer(model, schedule("constant"))
    optimizer.param_groups[0]["lr"] = 0.1
    before = model.weight.detach().clone()
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    torch.testing.assert_close(model.weight, before - 0.1)


# relations


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"schedule": "noam", "learning_rate": 0.1}, "learning_rate"),
        ({"schedule": "linear"}, "learning_rate"),
        ({"schedule": "inverse_sqrt"}, "learning_rate"),
        ({"schedule": "constant"}, "learning_rate"),
        ({"schedule": "linear", "learning_rate": 0.0}, "learning_rate"),
        ({"schedule": "linear", "learning_rate": -1.0}, "learning_rate"),
        ({"warmup": 0}, "warmup"),
        ({"schedule": "inverse_sqrt", "learning_rate": 0.1, "warmup": 0}, "warmup"),
        ({"schedule": "linear", "learning_rate": 0.1, "warmup": -1}, "warmup"),
        ({"beta1": 1.0}, "beta1"),
        ({"beta2": -0.1}, "beta2"),
        ({"beta2": nan}, "beta2"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"weight_decay": -0.1}, "weight_decay"),
        ({"clip_norm": 0.0}, "clip_norm"),
        ({"clip_norm": -1.0}, "clip_norm"),
    ],
)
def test_impossible_relations_are_refused(options: dict[str, object], key: str) -> None:
    with pytest.raises(RecipeError) as caught:
        read_config(OptimizerConfig, options, what="[train.optimizer]")
    assert [mistake.key for mistake in caught.value.mistakes] == [key]
    assert caught.value.code in ("recipe.value", "recipe.mismatch")


def test_two_impossible_relations_are_both_named() -> None:
    with pytest.raises(RecipeError) as caught:
        read_config(OptimizerConfig, {"learning_rate": 0.1, "warmup": 0}, what="[train.optimizer]")
    assert [(mistake.key, mistake.code) for mistake in caught.value.mistakes] == [
        ("learning_rate", "recipe.mismatch"),
        ("warmup", "recipe.mismatch"),
    ]
