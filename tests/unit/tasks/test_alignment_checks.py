"""Line-aligned files: a lost line, a shift or another order is found at its place."""

import gzip
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from jumok.examples.made.numbers import Problem, generate
from jumok.findings import Finding
from jumok.tasks.translation.checks import examine_parallel_files

Align = Callable[[Iterable[str], Iterable[str]], list[Finding]]


def lines(finding: Finding) -> list[int]:
    return [int(re.split("[: ]", example.split("  ")[0])[-1]) for example in finding.examples]


def only(findings: Iterable[Finding], code: str) -> Finding:
    """The one finding of a kind."""
    (finding,) = (finding for finding in findings if finding.code == code)
    return finding


@pytest.fixture
def align(tmp_path: Path) -> Align:
    """Writes two files and examines them; one of them packed."""

    def write_and_examine(source: Iterable[str], target: Iterable[str]) -> list[Finding]:
        paths = tmp_path / "a.en", tmp_path / "a.ko.gz"
        paths[0].write_text("".join(f"{line}\n" for line in source), "utf-8")
        paths[1].write_bytes(gzip.compress("".join(f"{line}\n" for line in target).encode()))
        return examine_parallel_files(*paths)

    return write_and_examine


def sides(n: int, problem: Problem = "reverse") -> tuple[list[str], list[str]]:
    """Two aligned texts; those of `reverse` have lengths that tell the lines apart."""
    texts = list(generate(problem, "train", n=n, seed=5, max_len=40))
    return [source for source, _ in texts], [target for _, target in texts]


def break_line(finding: Finding) -> int:
    found = re.search(r"From about line ([\d,]+)", finding.message)
    return int(found[1].replace(",", "")) if found else -1


@pytest.mark.parametrize("problem", ["reverse", "korean_numbers"])
@pytest.mark.parametrize("n", [0, 1, 5, 30, 1000])
def test_aligned_files_have_no_findings(align: Align, problem: Problem, n: int) -> None:
    assert align(*sides(n, problem)) == []


@pytest.mark.parametrize(("side", "shift"), [("target", -1), ("source", +1)])
@pytest.mark.parametrize("line", [40, 500, 1205])
def test_a_deleted_line_is_found(align: Align, side: str, shift: int, line: int) -> None:
    source, target = sides(1500)
    del (target if side == "target" else source)[line - 1]
    finding = only(align(source, target), "data.misaligned")
    found = break_line(finding)
    assert (abs(found - line) <= 1, finding.severity) == (True, "error")
    assert f"The files have {len(source):,} and {len(target):,} lines." in finding.message
    assert f"on the target looks shifted by {shift:+d}: source line {found + 9:,} belongs to" in finding.message
    assert f"target line {found + 9 + shift:,}. Look for lines missing in the {side}" in finding.message
    assert lines(finding) == [found - 1, found, found + 1, found + 2, found + 3]
    assert finding.examples[1].endswith(f"a.en:{found}  {source[found - 1]} ||| {target[found - 1]}")
    assert finding.share == pytest.approx((1500 - line) / 1500, abs=0.01)


def test_a_deleted_line_is_found_where_lengths_tell_less(align: Align) -> None:
    source, target = sides(2000, "korean_numbers")
    del target[999]
    finding = only(align(source, target), "data.misaligned")
    assert (abs(break_line(finding) - 1000) <= 30, "shifted by -1" in finding.message) == (True, True)


@pytest.mark.parametrize("missing", [2, 3, 12])
def test_several_deleted_lines_are_found(align: Align, missing: int) -> None:
    source, target = sides(1000)
    del target[500 : 500 + missing]
    finding = only(align(source, target), "data.misaligned")
    assert (f"shifted by -{missing}" in finding.message, 500 <= break_line(finding) <= 502 + missing) == (True, True)


def test_a_shift_is_found_although_the_counts_are_equal(align: Align) -> None:
    source, target = sides(1000)
    del target[299]
    target.insert(599, "1 2 3 4")
    finding = only(align(source, target), "data.misaligned")
    end = re.search(r"to line (\d+) the target looks shifted by -1", finding.message)
    assert end
    assert (abs(break_line(finding) - 300) <= 1, abs(int(end[1]) - 600) <= 1) == (True, True)
    assert ("The files have" in finding.message, finding.severity) == (False, "error")


def test_further_breaks_are_counted(align: Align) -> None:
    source, target = sides(1000)
    del target[199], target[399], target[599], target[799]
    finding = only(align(source, target), "data.misaligned")
    assert (abs(break_line(finding) - 200) <= 1, "3 more such places" in finding.message) == (True, True)


def test_a_part_in_another_order_is_a_warning(align: Align) -> None:
    source, target = sides(1000)
    target[400:500] = target[400:500][::-1]
    finding = only(align(source, target), "data.misaligned")
    assert (finding.severity, abs(break_line(finding) - 401) <= 5) == ("warning", True)
    assert "no small shift" in finding.message


def test_unusual_files_are_aligned(align: Align) -> None:
    source, target = sides(1000)
    by_length = ["x" * length for length in range(1, 11) for _ in range(100)]
    assert align(by_length, by_length) == []
    target[400:600] = [f"{text} {text} {text} {text}" for text in target[400:600]]
    assert align(source, target) == []


def test_files_that_have_nothing_to_do_with_each_other(align: Align) -> None:
    source, target = sides(1000)
    finding = only(align(source, target[::-1]), "data.misaligned")
    assert (finding.severity, "hardly correlate" in finding.message) == ("warning", True)
    finding = only(align(source, target[:0:-1]), "data.misaligned")
    assert (finding.severity, "1,000 and 999 lines. The lengths" in finding.message) == ("error", True)
    # So few lines may look like that by chance.
    assert align(source[:150], target[150:300]) == []


@pytest.mark.parametrize("n", [0, 4, 400])
def test_lines_too_many_at_the_end(align: Align, n: int) -> None:
    source, target = sides(n)
    finding = only(align(source, [*target, "one more"]), "data.misaligned")
    assert (finding.severity, finding.count, finding.share) == ("error", 1, 1 / (n + 1))
    assert f"{n} and {n + 1} lines. The line where they diverge was not found" in finding.message
    assert finding.examples[-1].endswith(f"a.en:{n + 1}   ||| one more")
