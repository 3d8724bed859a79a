"""The page's files without a browser: sizes, texts in both languages, nothing inline."""

import json
import re
from pathlib import Path

import pytest

import jumok.serve

PAGE = Path(jumok.serve.__file__).parent / "page"
MODULES = sorted(PAGE.rglob("*.js"))
ROOMS = ("shell", "use", "inside", "training", "results")


def words(language: str) -> dict[str, object]:
    return {
        f"{room}.{key}": text
        for room in ROOMS
        for key, text in json.loads((PAGE / f"words/{room}.{language}.json").read_text("utf-8")).items()
    }


def name_of(path: Path) -> str:
    return path.relative_to(PAGE).as_posix()


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_is_short_and_sets_text_as_text(path: Path) -> None:
    source = path.read_text("utf-8")
    assert len(source.splitlines()) < 300
    assert not re.search(r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function)", source)
    assert "https://" not in source.replace("http://www.w3.org/", "")


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_every_text_that_a_module_names_exists(path: Path) -> None:
    known = set(words("en"))
    source = path.read_text("utf-8")
    begins = "|".join(ROOMS)
    named = set(re.findall(r'\bt\(\s*"([^"]+)"', source)) | set(re.findall(rf'title: "((?:{begins})\.[\w.]+)"', source))
    assert named <= known, named - known
    for begin in re.findall(r"\bt\(\s*`([^`$]+)\$\{", source):  # a name that is put together: its family exists
        assert any(key.startswith(begin) for key in known), begin


def test_both_languages_say_the_same_things() -> None:
    english, korean = words("en"), words("ko")
    assert english.keys() == korean.keys()
    holes = {key: re.findall(r"\{(\w+)\}", json.dumps(text)) for key, text in english.items()}
    for key, text in korean.items():
        assert set(re.findall(r"\{(\w+)\}", json.dumps(text))) == set(holes[key]), key
    with_plural = [text for text in (*english.values(), *korean.values()) if isinstance(text, dict)]
    assert all("other" in text for text in with_plural)


def test_nothing_is_inline() -> None:
    source = (PAGE / "index.html").read_text("utf-8")
    assert re.findall(r"<script[^>]*>([^<]*)</script>", source) == [""]
    assert not re.search(r"<style|\sstyle=|\son\w+=", source)
    assert all(link.startswith("/") for link in re.findall(r'(?:src|href)="([^"]+)"', source))
