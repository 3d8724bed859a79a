"""Whole files given to a trained translator, as users give them: a catalogue, and one whose command is killed."""

import json
import time

from jumok.examples.gettext import read_po
from msgfmt import msgfmt

HEADER = 'msgid ""\nmsgstr ""\n"Language: ko\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'


def catalogue(path, n):
    messages = [f'\n#: a.c:{i}\nmsgid "{" ".join(f"{i:05d}")}\\n"\nmsgstr ""\n' for i in range(n)]
    path.write_text(HEADER + "".join(messages), "utf-8")
    return path


def test_a_killed_command_ends_with_the_same_catalogue(jumok, reversed_run, tmp_path):
    n = 2000
    file, out, whole = catalogue(tmp_path / "a.po", n), tmp_path / "b.po", tmp_path / "whole.po"
    arguments = ("predict", reversed_run, file, "--engine", "torch", "--out")
    killed = jumok.start(*arguments, out)
    progress = tmp_path / ".b.po.part" / "progress.json"
    deadline = time.monotonic() + 200
    while not progress.exists() and killed.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    killed.kill()
    killed.communicate()
    assert not out.exists()
    done = json.loads(progress.read_text("utf-8"))["progress"]["examples"]
    assert 0 < done < n
    assert f"resuming after {done:,} of {n:,}" in jumok(*arguments, out).stderr
    jumok(*arguments, whole)
    assert out.read_bytes() == whole.read_bytes()
    msgfmt(out)
    text = out.read_text("utf-8").replace("#, fuzzy\n", "")
    out.write_text(text, "utf-8")
    assert text.startswith(HEADER)
    pairs = [pair[:2] for pair in read_po(out)]
    assert len(pairs) == n
    assert sum(source.split() == target.split()[::-1] for source, target in pairs) > 0.9 * n
