"""A refactoring may not move the first losses; `make golden` writes them anew when a change is meant to."""

import json

import pytest
from record import LOSSES, RECIPES, first_losses


@pytest.mark.parametrize("recipe", RECIPES)
def test_first_losses_have_not_moved(recipe, tmp_path, monkeypatch):
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))
    expected = json.loads(LOSSES.read_text("utf-8"))[recipe]
    # Other processors round otherwise; a change of the arithmetic moves far more than this.
    assert first_losses(recipe, tmp_path / "run") == pytest.approx(expected, abs=2e-4)
