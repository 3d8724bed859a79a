"""A short selection of `make faults`, each fault once."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_quick_faults_are_survived(jumok):
    """In a process of its own, which forks: one that runs tests has threads."""
    command = [sys.executable, str(ROOT / "tests/faults/run.py"), "--quick"]
    done = subprocess.run(command, cwd=jumok.folder, env=jumok.environment, capture_output=True, text=True, timeout=500)
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 10, done.stderr
    assert done.returncode == 0, done.stdout
