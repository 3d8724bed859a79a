"""Lines of keys in a TOML file: whatever stands in strings, comments and lists is no key."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from jumok.toml import NotToml, key_lines, parse_toml

TEXT = '''# seed = 9
seed = 1  # data = 2
description = """
seed = 3
[data]
"""
train.steps = 1_000
"quoted key" = 'init = "x"'
model = { kind = "rnn", inner = { "a b" = 1, list = [1, 2.5] } }

[data]
train = [
  ["a", "b = c"],  # [model]
  "q, r]",
]
when = 2024-01-01 10:00:00

[ train . optimizer ]
warmup = 3

[[many]]
one = 1
[[many]]
two = 2
'''


def test_every_key_has_its_line() -> None:
    assert key_lines(TEXT) == {
        "seed": 2,
        "description": 3,
        "train.steps": 7,
        "quoted key": 8,
        "model": 9,
        "model.kind": 9,
        "model.inner": 9,
        "model.inner.a b": 9,
        "model.inner.list": 9,
        "model.inner.list.0": 9,
        "model.inner.list.1": 9,
        "data": 11,
        "data.train": 12,
        "data.train.0": 13,
        "data.train.0.0": 13,
        "data.train.0.1": 13,
        "data.train.1": 14,
        "data.when": 16,
        "train.optimizer": 18,
        "train.optimizer.warmup": 19,
        "many": 21,
        "many.0": 21,
        "many.0.one": 22,
        "many.1": 23,
        "many.1.two": 24,
    }


@pytest.mark.parametrize(
    "text", ["", "\n\n", "# nothing\n", "a = 1", "a = []", "a = {}", "[a]", "a = '''\n'''", "a = 1\r\n"]
)
def test_small_files(text: str) -> None:
    assert set(key_lines(text).values()) <= {1}
    assert key_lines(text).keys() == tomllib.loads(text).keys()


def leaves(tree: Any, path: str = "") -> list[str]:
    if not isinstance(tree, dict | list) or not tree:
        return [path]
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    return [leaf for key, value in items for leaf in leaves(value, f"{path}.{key}" if path else str(key))]


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[2] / "recipes").rglob("*.toml")), ids=lambda p: p.stem)
def test_all_keys_of_the_recipes_are_found_where_they_stand(path: Path) -> None:
    text = path.read_text("utf-8")
    lines, found = text.splitlines(), key_lines(text)
    for leaf in leaves(tomllib.loads(text)):
        name = leaf.rpartition(".")[2]
        assert name.isdigit() or name in lines[found[leaf] - 1], leaf


@pytest.mark.parametrize("text", ["{} = 1", "[{}]", "x = {{ {} = 1 }}"])
def test_a_key_of_many_parts_is_refused_before_it_is_parsed(text: str) -> None:
    """The standard library takes memory that grows with the square of their number: here 40 GB."""
    with pytest.raises(NotToml) as caught:
        parse_toml("a = 1\n" + text.format("a." * 100_000 + "a"))
    assert caught.value.line == 2


def test_points_in_numbers_are_no_parts_of_keys() -> None:
    numbers = [n + 0.5 for n in range(40)]
    assert parse_toml(f"a = {numbers}")[0] == {"a": numbers}
    assert len(parse_toml("\n".join(f"a.b{n} = {n}.5" for n in range(40)))[0]["a"]) == 40
