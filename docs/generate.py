"""Write the generated pages, docs/recipes.md, outputs.md and errors.md, from the source; with --check, only compare."""

import sys
from pathlib import Path

from pages import errors, outputs, recipes

FOLDER = Path(__file__).parent
PAGES = {"recipes.md": recipes.page, "outputs.md": outputs.page, "errors.md": errors.page}


def main(*, check: bool) -> str | None:
    """What to say of pages that are not up to date; None if all is well."""
    written = {name: page() for name, page in PAGES.items()}
    if check:
        stale = [name for name, text in written.items() if _read(FOLDER / name) != text]
        return f"not up to date: docs/{', docs/'.join(stale)}; run `make docs`" if stale else None
    for name, text in written.items():
        (FOLDER / name).write_text(text, "utf-8")
    return None


def _read(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
