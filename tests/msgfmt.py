"""GNU gettext's msgfmt, which says whether a PO file is right."""

import os
import shutil
import subprocess

import pytest


def msgfmt(path, *options):
    """What msgfmt --check says of a file; it has to accept it."""
    program = shutil.which("msgfmt")
    if program is None:
        missing = "msgfmt is not installed (Debian: gettext)"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    command = [program, "--check", *options, "-o", os.devnull, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr
