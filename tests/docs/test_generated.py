"""The generated pages: up to date, without gaps, and with examples that fit the classes they are of."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from jumok.tasks import TASKS
from jumok.tasks.protocol import adapter, plain

ROOT = Path(__file__).parents[2]
RECORDED = json.loads((ROOT / "docs/examples/outputs.json").read_text("utf-8"))


@pytest.fixture
def pages(monkeypatch):
    """The package of scripts that write the pages."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    import pages.errors
    import pages.outputs

    return pages


def test_the_pages_are_up_to_date(pages):
    import generate

    assert generate.main(check=True) is None


def test_a_stale_page_is_told(pages, monkeypatch):
    import generate

    monkeypatch.setitem(generate.PAGES, "errors.md", lambda: "something else")
    assert "docs/errors.md" in generate.main(check=True)


def test_the_tables_of_ratios_are_those_of_the_results():
    done = subprocess.run([sys.executable, ROOT / "benchmarks/table.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_task_has_recorded_examples():
    assert {each["task"] for each in RECORDED} == {task.name for task in TASKS}
    for each in RECORDED:
        assert (ROOT / each["recipe"]).exists()


@pytest.mark.parametrize("each", RECORDED, ids=lambda each: f"{each['recipe']} {each['input']}"[:60])
def test_a_recorded_example_fits_its_classes(pages, each):
    predictor = pages.outputs.predictor_of(next(task for task in TASKS if task.name == each["task"]))
    example = predictor.example.parse(each["input"])
    assert adapter(predictor.example).validate_python(plain(example)) == example
    output = adapter(predictor.answers).validate_python(each["output"])
    assert json.loads(json.dumps(plain(output))) == each["output"], "no field more, no field less"
    assert output.text == each["output"]["text"]
    if each["options"]:
        adapter(predictor.options).validate_python(each["options"])


def test_every_field_has_a_meaning(pages):
    for task in TASKS:
        predictor = pages.outputs.predictor_of(task)
        classes = [predictor.example, predictor.answers, *filter(None, [predictor.options]), *pages.outputs.SHARED]
        for cls in [*classes, *pages.outputs.inner(predictor.example), *pages.outputs.inner(predictor.answers)]:
            docs = pages.outputs.field_docs(cls)
            assert not [name for name in pages.outputs.json_fields(cls) if not docs.get(name)], cls


def test_the_scan_finds_every_code(pages):
    """As often as the text of the source has `code="area.name"`, written out."""
    written = set()
    for path in (ROOT / "src/jumok").rglob("*.py"):
        code = ast.unparse(ast.parse(path.read_text("utf-8")))
        written |= set(re.findall(r"\bcode='([a-z_]+\.[a-z_]+)'", code))
    found = {each.code for each in pages.errors.scan()}
    assert written
    assert written <= found
    page = pages.errors.page()
    assert all(f"`{code}`" in page for code in found)


def test_a_scan_reads_messages_from_variables_too(pages, tmp_path):
    (tmp_path / "one.py").write_text(
        "def f(n):\n"
        "    what, hint = f'{n} apples', 'none'\n"
        "    raise DataError(what, hint=hint, code='data.apples')\n"
        "def g():\n"
        "    return Note('text.cut' if g else 'text.windows', 'cut')\n"
        "RULES = {'a': ('data.pears', 0.1, inf, '{n} pears', 'Eat them')}\n"
        "def h(n):\n"
        "    return finding('data.counts', 'note', n, n, f'{n} counted')\n",
        "utf-8",
    )
    found = [(each.code, each.raised, each.file, each.message) for each in pages.errors.scan(tmp_path)]
    assert found == [
        ("data.apples", "DataError", "one.py", "… apples"),
        ("data.counts", "finding", "one.py", "… counted"),
        ("data.pears", "Rule", "one.py", "… pears"),
        ("text.cut", "Note", "one.py", "cut"),
        ("text.windows", "Note", "one.py", "cut"),
    ]
