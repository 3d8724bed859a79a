"""Write the tables of ratios in README.md and docs/results.md from benchmarks/results.

    python benchmarks/table.py [--check]

A table stands between `<!-- ratios -->` and `<!-- end of ratios -->`. The README's has the rows of `SHOWN`, that of
docs/results.md everything about predictions, serving and preparation.
"""

import argparse
import json
import re
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).parent
SUITES = ("prediction", "encoders", "serving", "preparation", "reference")
SHOWN = (
    (r"^beam 4, (tiny|base)", r"^(transformers|CTranslate2 int8)"),
    (r"^GPT", r"^(transformers|CTranslate2)"),
    (r"^(classify|tag|answer).*int8", r"^(transformers|ONNX Runtime int8)"),
    (r"^first answer", r""),
    (r"^translate, 32 clients", r"transformers"),
    (r"^writing token shards, captions.*1 thread", r"Hugging Face"),
)
"""works and peers in the README"""
MARKS = re.compile(r"(<!-- ratios -->\n).*?(<!-- end of ratios -->)", re.DOTALL)


def rows(*suites: str) -> list[dict[str, object]]:
    paths = [FOLDER / "results" / f"{suite}.json" for suite in suites]
    return [row for path in paths if path.exists() for row in json.loads(path.read_text("utf-8"))]


def is_shown(row: dict[str, object]) -> bool:
    return any(re.search(work, str(row["work"])) and re.search(peer, str(row["against"])) for work, peer in SHOWN)


def number(value: object) -> str:
    assert isinstance(value, float | int)
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 9.95 else f"{value:.2f}"


def table(some: Iterable[dict[str, object]], *, full: bool) -> str:
    """In Markdown; the full one has targets and units."""
    head = ["work", "against", "ratio", "quartiles", *(["target", "jumok", "peer"] if full else [])]
    lines = ["| " + " | ".join(head) + " |", "|---|---|--:|--:|" + ("--:|---|---|" if full else "")]
    for row in some:
        cells = [row["work"], row["against"], number(row["ratio"]), f"{number(row['low'])} – {number(row['high'])}"]
        if full:
            target = "" if row["target"] is None else f"{row['target']:g}"
            cells += [target, row["unit_jumok"], row["unit_peer"]]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail if a table is not that of the results")
    check = parser.parse_args().check
    found = rows(*SUITES)
    tables = {
        "README.md": table(filter(is_shown, found), full=False),
        "docs/results.md": table(found, full=True),
    }
    stale = []
    for name, text in tables.items():
        path = FOLDER.parent / name
        page = path.read_text("utf-8")
        made = MARKS.sub(lambda marks, text=text: marks[1] + text + marks[2], page)
        if made != page:
            stale.append(name)
            if not check:
                path.write_text(made, "utf-8")
    if check and stale:
        raise SystemExit(f"run `python benchmarks/table.py`: {', '.join(stale)} show other results")


if __name__ == "__main__":
    main()
