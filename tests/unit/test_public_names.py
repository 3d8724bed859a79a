"""What `import jumok` promises, and what the package must not contain."""

import ast
import re
from pathlib import Path

import pytest

import jumok

SOURCE = Path(jumok.__file__).parent


def test_public_names():
    assert sorted(jumok.__all__) == ["JumokError", "Prediction", "Predictor", "__version__", "load"]
    for name in jumok.__all__:
        assert getattr(jumok, name) is not None
    with pytest.raises(AttributeError, match="no attribute"):
        _ = jumok.nothing


def test_no_loader_that_runs_code():
    forbidden = re.compile(r"\b(torch\.load|pickle|marshal|eval\(|exec\(|os\.system|shell=True|trust_remote_code)")
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        code = ast.unparse(tree).replace("model.eval()", "").replace(".eval()", "")
        assert not forbidden.search(code), path


def test_files_stay_short():
    for path in SOURCE.rglob("*.py"):
        assert len(path.read_text("utf-8").splitlines()) <= 400, path
