"""docs/tour.md and the other pages: code that they quote stands in the source, names that they drop exist, links lead
somewhere."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/jumok"
TOUR = (ROOT / "docs/tour.md").read_text("utf-8")
FIRST = ("README.md", "README.ko.md", "CONTRIBUTING.md")
PAGES = [*(ROOT / name for name in FIRST), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def quotes(page: str) -> list[tuple[str, str]]:
    """Every block of Python with the file that was linked last above it."""
    found, file = [], ""
    for part in re.split(r"(```python\n.*?```)", page, flags=re.DOTALL):
        if part.startswith("```python\n"):
            found.append((file, part.removeprefix("```python\n").removesuffix("```")))
            continue
        linked = [link for link in LINK.findall(part) if "../src/jumok/" in link and link.endswith(".py")]
        file = linked[-1].removeprefix("../src/jumok/") if linked else file
    return found


def statements(code: str) -> list[str]:
    """Lines without their indentation and their comments: what a quote may leave out or move."""
    lines = [line.strip() for line in code.splitlines()]
    return [line for line in lines if line and not line.startswith(("#", '"""'))]


def stands_in(quote: list[str], source: list[str]) -> bool:
    n = len(quote)
    return any(source[i : i + n] == quote for i in range(len(source) - n + 1))


@pytest.mark.parametrize(("file", "code"), quotes(TOUR), ids=lambda value: value.splitlines()[0][:40])
def test_a_quote_stands_in_the_file_that_is_linked_above_it(file, code):
    assert stands_in(statements(code), statements((SOURCE / file).read_text("utf-8"))), f"{file}\n{code}"


def test_the_tour_quotes_the_source():
    assert len(quotes(TOUR)) >= 15
    assert len({file for file, _ in quotes(TOUR)}) >= 10
    assert not stands_in(["a = 1", "b = 2"], ["a = 1", "c = 3", "b = 2"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
    for link in LINK.findall(text):
        if link.startswith("http"):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target.read_text("utf-8")), link


def anchors(page: str) -> set[str]:
    """Of every heading the name that GitHub gives it."""
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def names(path: Path) -> set[str]:
    """Classes, functions, methods, fields and names of a module, and `Class.name` of what stands in a class."""
    found: set[str] = set()

    def walk(body: list[ast.stmt], owner: str) -> None:
        for node in body:
            mine: list[str] = []
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                mine = [node.name]
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                mine = [node.target.id]
            elif isinstance(node, ast.Assign):
                mine = [target.id for target in node.targets if isinstance(target, ast.Name)]
            found.update(name for each in mine for name in (each, f"{owner}{each}"))
            if isinstance(node, ast.ClassDef):
                walk(node.body, f"{node.name}.")
            elif isinstance(node, ast.FunctionDef):
                attributes = [n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute) and _is_self(n.value)]
                found.update(f"{owner}{name}" for name in attributes)

    walk(ast.parse(path.read_text("utf-8")).body, "")
    return found


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def module_of(parts: list[str]) -> tuple[Path, list[str]]:
    """The deepest module or package that a dotted name leads through, and what is left of the name."""
    for n in range(len(parts), 0, -1):
        folder = SOURCE.joinpath(*parts[:n])
        for path in (folder.with_suffix(".py"), folder / "__init__.py"):
            if path.exists():
                return path, parts[n:]
    raise AssertionError(".".join(parts))


def test_names_of_the_glossary_exist():
    """`nn.attention.attend` is a name in src/jumok/nn/attention.py."""
    glossary, checked = (ROOT / "docs/glossary.md").read_text("utf-8"), 0
    for dotted in re.findall(r"`([a-z_]+(?:\.\w+)+)`", glossary):
        if dotted.endswith((".json", ".jsonl", ".toml")):
            continue
        parts = dotted.split(".")
        if not (SOURCE / parts[0]).is_dir() and not (SOURCE / f"{parts[0]}.py").exists():
            continue
        path, rest = module_of(parts)
        assert not rest or ".".join(rest) in names(path), dotted
        checked += 1
    assert checked > 25
    for file in re.findall(r"`((?:\w+/)+\w+\.py)`", glossary):
        assert (SOURCE / file).exists(), file
