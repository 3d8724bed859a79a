"""Word vectors from a file in a run: embeddings begin with them, frozen or tuned."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_training import TREE, again

from jumok.assemble import assemble
from jumok.errors import RecipeError
from jumok.recipe import Recipe, parse_recipe
from jumok.train.folder import RunFolder

DIMENSION = 8


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A vector for every digit but 9."""
    lines = [f"{digit} " + " ".join(f"{digit}.{i}" for i in range(DIMENSION)) for digit in range(9)]
    (tmp_path / "digits.vec").write_text("\n".join(lines) + "\n")
    return tmp_path / "digits.vec"


def recipe(file: Path, **sections: Any) -> Recipe:
    model = {"kind": "seq2seq", "d_embedding": DIMENSION, "d_hidden": 12, "tie_embeddings": "none"}
    tree = {
        **TREE,
        "tokenizer": {"kind": "word", "vocab_size": 32},
        "model": {**model, **sections.pop("model", {})},
        "vectors": {"source": str(file), **sections.pop("vectors", {})},
    }
    return parse_recipe({**tree, **sections}, where="test")


def embedding(run: Any) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = run.model.source_embedding.weight.detach().numpy().copy()
    return found


def test_embeddings_begin_with_the_vectors(file: Path, tmp_path: Path) -> None:
    run = assemble(recipe(file), RunFolder(tmp_path / "run"))
    run.folder.unlock()
    tokenizer = run.task.tokenizers.source
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    for digit in range(9):
        (row,) = [i for i, piece in enumerate(pieces) if piece.lstrip("▁") == str(digit)]
        assert embedding(run)[row] == pytest.approx([float(f"{digit}.{i}") for i in range(DIMENSION)])
    assert not embedding(run)[-1].any()
    assert any(f"{file}: 9 of {tokenizer.vocab_size - 1} tokens" in note for note in run.notes)


@pytest.mark.parametrize("frozen", [True, False])
def test_frozen_vectors_stay_and_others_learn(file: Path, tmp_path: Path, frozen: bool) -> None:
    wanted = recipe(file, vectors={"frozen": frozen})
    run = assemble(wanted, RunFolder(tmp_path / "run"))
    begin = embedding(run)
    run.folder.unlock()
    for _ in run.train(lambda: False):
        pass
    assert (embedding(run) == begin).all() == frozen
    file.unlink()
    happened = again(tmp_path / "run", wanted)  # goes on from the checkpoint, without the file if need be
    assert happened.steps == []
    assert happened.scored == ["dev", "test"]


def test_vectors_of_another_width_are_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        again(tmp_path / "run", recipe(file, model={"d_embedding": 10}))
    assert (caught.value.code, caught.value.where) == ("recipe.vector_size", str(file))
    assert re.findall(r"\d+", caught.value.what) == ["8", "10"]
    assert caught.value.hint == "set model.d_embedding = 8"


@pytest.mark.parametrize(
    ("vectors", "keys"),
    [
        ({"frozen": True}, ["vectors.frozen", "model.tie_embeddings"]),
        ({"target": "x"}, ["vectors.source", "vectors.target", "model.tie_embeddings"]),
    ],
)
def test_vectors_that_do_not_fit_the_model(file: Path, vectors: dict[str, Any], keys: list[str]) -> None:
    with pytest.raises(RecipeError) as caught:
        recipe(file, model={"tie_embeddings": "all", "d_hidden": 8}, vectors=vectors)
    assert caught.value.code == "recipe.mismatch"
    assert re.findall(r"(?:vectors|model)\.\w+", caught.value.what) == keys


def test_vectors_are_not_for_a_transformer(file: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        parse_recipe({**TREE, "vectors": {"source": str(file)}}, where="test")
    assert caught.value.code == "recipe.mismatch"
    assert 'model.kind is "transformer"' in caught.value.what
