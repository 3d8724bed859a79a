"""What `jumok new` does: look at files, say what they are and why, and write a recipe that fits them.

files.py says which files belong together, corpus.py what they hold (found.py), columns.py which columns of a table
matter, parallel.py which language is the source; table.py has the settings to choose from, plan.py chooses, written.py
writes the recipe. What the files cannot tell is asked: a `Question` goes to the caller, who knows whether anybody is
there to answer.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Question:
    """What the files do not tell, and a guess."""

    option: str
    """of the command line, which answers it: --label"""
    asks: str
    guess: str
    choices: tuple[str, ...]
    """possible answers; any, if there are none"""
    why: str
    """why it cannot be known"""


Ask = Callable[[Question], str]
"""answers a question"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the user said about the files."""

    task: str | None = None
    text: str | None = None
    """column of the text, or two with a comma between them"""
    label: str | None = None
    source: str | None = None
    """language of the source or of the only text, or the column of a table"""
    target: str | None = None
