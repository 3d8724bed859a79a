"""What a translation has to keep: found in data and in outputs, counted in catalogues, and told once."""

import re
import subprocess
from pathlib import Path

import pytest

from jumok.doctor import examine_data
from jumok.examples.gettext import count_po, read_po
from jumok.examples.pairs import Pair
from jumok.tasks.translation.checks import examine_pairs, examine_written

CLEAN = [(f"Line {n} of the manual is here.", f"설명서의 {n}번째 줄은 여기에 있습니다.") for n in range(60)]
FAULTS = {
    "placeholders": ("Save %s to {folder}?", "%s을 저장할까요?", "{folder}"),
    "tags": ("Press <b>Enter</b> now.", "지금 Enter를 누르세요.", "<b>"),
    "numbers": ("It listens on port 8080 only.", "8088번 포트에서만 듣습니다.", "8088"),
}

PO = """\
msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\n"

msgid "one"
msgstr "하나"

#, fuzzy
msgid "two"
msgstr "둘"

#, fuzzy
msgid "three"
msgstr ""

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "파일 %d개"

msgid "four"
msgstr ""

#~ msgid "five"
#~ msgstr "다섯"

#, fuzzy
#~ msgid "%d sixth"
#~ msgid_plural "%d sixths"
#~ msgstr[0] "여섯"
"""


@pytest.mark.parametrize("kind", FAULTS)
def test_what_the_sides_of_a_pair_do_not_share(kind: str) -> None:
    source, target, differs = FAULTS[kind]
    pairs = [Pair(*pair, f"p:{n}") for n, pair in enumerate([*CLEAN, (source, target)])]
    (found,) = examine_pairs({"train": pairs}, source="en", target="ko")
    assert (found.code, found.severity, found.count) == (f"data.{kind}", "warning", 1)
    assert (found.examples[0].startswith("p:60"), differs in found.examples[0]) == (True, True)


@pytest.mark.parametrize("kind", FAULTS)
def test_what_an_output_has_lost(kind: str) -> None:
    source, target, differs = FAULTS[kind]
    sources, outputs = zip(*CLEAN, (source, target), strict=True)
    (found,) = examine_written(sources, outputs, split="test")
    assert (found.code, found.severity, found.count) == (f"output.{kind}", "warning", 1)
    assert differs in found.examples[0]
    assert (
        examine_written(sources, outputs, [target for _, target in CLEAN] + [target]) == []
    )  # as the reference has it


def test_catalogues_are_counted_as_msgfmt_counts_them(tmp_path: Path) -> None:
    path = tmp_path / "a.po"
    path.write_text(PO, "utf-8")
    counts = count_po(path)
    assert (counts.translated, counts.fuzzy, counts.untranslated, counts.obsolete) == (2, 1, 2, 2)
    assert len([*read_po(path)]) == 3  # one message has a plural
    (found,) = [found for found in examine_data([path], source="en", target="ko") if found.code == "data.catalogue"]
    assert all(number in found.message for number in ("2 translated", "1 fuzzy", "2 untranslated", "2 obsolete"))


def test_msgfmt_counts_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.po"
    path.write_text(PO, "utf-8")
    try:
        told = subprocess.run(["msgfmt", "--statistics", "-o", "/dev/null", path], capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("msgfmt is not installed")
    theirs = {kind: int(n) for n, kind in re.findall(r"(\d+) (translated|fuzzy|untranslated)", told.stderr)}
    counts = count_po(path)
    assert theirs == {kind: getattr(counts, kind) for kind in ("translated", "fuzzy", "untranslated")}


def test_findings_of_several_splits_are_told_once(tmp_path: Path) -> None:
    """With the counts of each, a place of each, and the severity of the worst."""
    rows = {
        "train": [("aaa Ada", "aaa 에이다"), *CLEAN[:30], ("a %s here", "여기 하나"), ("b %s", "둘"), ("c %s", "셋")],
        "dev": [*CLEAN[30:58], ("d %s", "넷")],
        "test": CLEAN[58:],
    }
    files = {}
    for split, pairs in rows.items():
        files[split] = tmp_path / f"{split}.tsv"
        files[split].write_text("".join(f"{source}\t{target}\n" for source, target in pairs), "utf-8")
    recipe = tmp_path / "r.toml"
    recipe.write_text(
        f'[data]\nkind = "parallel"\nsource = "en"\ntarget = "ko"\ntrain = [["{files["train"]}"]]\n'
        f'dev = ["{files["dev"]}"]\ntest = ["{files["test"]}"]\n[model]\nkind = "seq2seq"\n[train]\nsteps = 1\n'
    )
    (found,) = [found for found in examine_data([recipe]) if found.code == "data.placeholders"]
    assert (found.count, found.severity) == (4, "warning")
    assert ("train 3 of 34" in found.message, "dev 1 of 29" in found.message) == (True, True)
    assert "test" not in found.message
    assert [name in found.examples[at] for at, name in enumerate(("train.tsv", "dev.tsv"))] == [True, True]
