"""What `import jumok` promises, and what the package must not contain."""

import ast
import re
from pathlib import Path

import pytest

import jumok
from jumok.tasks import TASKS

SOURCE = Path(jumok.__file__).parent


def test_public_names():
    predictors = {"Answerer", "Chooser", "Classifier", "Encoder", "Generator", "Relater", "Tagger", "Translator"}
    others = {"Failure", "JumokError", "Note", "Predictor", "__version__", "load", "train"}
    assert set(jumok.__all__) == predictors | others
    assert sorted(jumok.__all__) == jumok.__all__
    for name in jumok.__all__:
        assert getattr(jumok, name) is not None
    assert all(issubclass(getattr(jumok, name), jumok.Predictor) for name in predictors)
    with pytest.raises(AttributeError) as caught:
        _ = jumok.nothing
    assert "nothing" in str(caught.value)


def test_every_task_has_a_public_predictor():
    kinds = {getattr(jumok, name).kind for name in jumok.__all__ if hasattr(getattr(jumok, name), "kind")}
    assert kinds >= {task.name for task in TASKS if task.config is not None}


def test_no_loader_that_runs_code():
    forbidden = re.compile(r"\b(torch\.load|pickle|marshal|eval\(|exec\(|os\.system|shell=True|trust_remote_code)")
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        code = ast.unparse(tree).replace("model.eval()", "").replace(".eval()", "")
        assert not forbidden.search(code), path


def test_files_stay_short():
    for path in SOURCE.rglob("*.py"):
        assert len(path.read_text("utf-8").splitlines()) <= 400, path
