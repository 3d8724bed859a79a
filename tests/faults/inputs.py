"""Hostile inputs: texts without end, bombs, bytes that are no text. All are answered or refused, in bounded memory."""

import gzip
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from shop import GIBIBYTE, Ended, Fault, Shop

CLASSIFIER = """
seed = 1
[task]
kind = "classification"
[data]
kind = "labelled"
train = ["{train}"]
dev = ["{dev}"]
max_len = 64
[tokenizer]
kind = "bpe"
vocab_size = 300
[model]
kind = "rnn"
d_embedding = 8
d_hidden = 8
[train]
steps = 4
batch_tokens = 512
evaluate_every = 4
save_every = 4
device = "cpu"
optimizer = {{ kind = "adam", schedule = "constant", learning_rate = 1e-3 }}
"""
SHAPES: dict[str, str] = {"words": "dog sun 비 ", "letters": "dogsun비", "marks": "\u0315\u0300"}
TABLE = "text\tlabel\n" + "sun\tgood\nrain\tbad\n" * 20


def text_of(shape: str, n: int) -> str:
    part = SHAPES[shape]
    return (part * (n // len(part) + 1))[:n]


def classifier(shop: Shop) -> Path:
    """A tiny model that reads texts in windows."""
    out = shop.folder / "classifier"
    if not out.exists():
        ended = shop.run(["train", str(recipe_of(shop, TABLE.encode())), "--out", str(out)])
        assert ended.code == 0, ended.err
    return out


def recipe_of(shop: Shop, table: bytes, name: str = "train.tsv") -> Path:
    folder = shop.new("data")
    folder.mkdir()
    (folder / name).write_bytes(table)
    (folder / "dev.tsv").write_text(TABLE, "utf-8")
    recipe = folder / "recipe.toml"
    recipe.write_text(CLASSIFIER.format(train=folder / name, dev=folder / "dev.tsv"), "utf-8")
    return recipe


def bomb(shop: Shop, fill: bytes, name: str) -> Path:
    """A gibibyte without a line end, about a megabyte on disk."""
    path = shop.folder / name
    if not path.exists():
        with gzip.open(path, "wb", compresslevel=9) as file:
            for _ in range(1 << 7):
                file.write(fill * ((1 << 23) // len(fill)))
    return path


def bounded(ended: Ended) -> Ended:
    assert ended.peak < GIBIBYTE, f"{ended.peak:,} bytes"
    assert "Traceback" not in ended.err, ended.err
    assert "Exception ignored" not in ended.err, ended.err
    return ended


def linear(run: Callable[[int], Ended], n: int, times: int = 10) -> None:
    """`times` the characters take not much more than `times` as long: with their square it would be a hundred."""
    took = []
    for size in (n, times * n):
        began = time.monotonic()
        run(size)
        took.append(time.monotonic() - began)
    assert took[1] < 3 * times * max(took[0], 0.2), took


def failures(ended: Ended) -> list[str | None]:
    """For each input the code of its error, if it has one."""
    return [one.get("error", {}).get("code") for one in json.loads(ended.out)["predictions"]]


def long_text_in_windows(shape: str) -> Fault:
    def once(shop: Shop, random: Random) -> int:
        run = classifier(shop)

        def answered(n: int) -> Ended:
            given = f"sun\n{text_of(shape, n)}\nrain\n".encode()
            ended = bounded(shop.run(["predict", str(run), "--json"], stdin=given))
            assert (ended.code, failures(ended)) == (0, [None] * 3), ended.err
            return ended

        linear(answered, 100_000)
        given = f"sun\n{text_of(shape, 1_000_001)}\nrain\n".encode()
        ended = bounded(shop.run(["predict", str(run), "--json"], stdin=given))
        assert (ended.code, failures(ended)) == (2, [None, "data.line_too_long", None]), ended.err
        return 0

    return Fault(f"a million characters to classify: {shape}", once, 3, quick=shape == "words")


def long_text_to_translate(shape: str) -> Fault:
    def once(shop: Shop, random: Random) -> int:
        n = random.choice([20_001, 100_000, 1_000_000])
        given = f"a b\n{text_of(shape, n)}\nb a\n".encode()
        ended = bounded(shop.run(["predict", str(shop.undisturbed()), "--json"], stdin=given))
        assert (ended.code, failures(ended)) == (2, [None, "text.too_long", None]), ended.err
        limit = ["--max-characters", "3"]
        ended = bounded(shop.run(["predict", str(shop.undisturbed()), "--json", *limit], stdin=b"a b\na b c\n"))
        assert failures(ended) == [None, "text.too_long"]
        return 0

    return Fault(f"more characters to translate than the limit: {shape}", once, 3, quick=shape == "words")


def long_line_to_predict(shop: Shop, random: Random) -> int:
    """50 MB without a line end, from stdin and from a file."""
    content = b"a b\n" + b"a " * 25_000_000 + b"\nb a\n"
    file = shop.new("lines")
    file.write_bytes(content)
    for arguments, stdin in (([], file), ([str(file)], b"")):
        ended = bounded(shop.run(["predict", str(shop.undisturbed()), *arguments, "--json"], stdin=stdin))
        assert (ended.code, failures(ended)) == (2, [None, "data.line_too_long", None]), ended.err
    file.unlink()
    return 0


def long_line_to_train_on(shop: Shop, random: Random) -> int:
    """50 MB in a row of a table: refused, or skipped if the recipe says so."""
    recipe = recipe_of(shop, TABLE.encode() + b"a " * 25_000_000 + b"\tgood\nsun\tgood\n")
    ended = bounded(shop.run(["train", str(recipe), "--out", str(shop.new())]))
    assert ended.refused(), ended.err
    assert "train.tsv:42" in ended.err, ended.err
    ended = bounded(shop.run(["train", str(recipe), "--out", str(shop.new()), "--set", "data.when_wrong=skip"]))
    assert ended.code == 0, ended.err
    return 0


def long_text_to_train_on(shop: Shop, random: Random) -> int:
    """A million characters are read in windows."""
    shape = random.choice([*SHAPES])
    recipe = recipe_of(shop, f"{TABLE}{text_of(shape, 1_000_000 - 5)}\tgood\n".encode())
    ended = bounded(shop.run(["train", str(recipe), "--out", str(shop.new())]))
    assert ended.code == 0, ended.err
    return 0


def bomb_to_predict(shop: Shop, random: Random) -> int:
    path = bomb(shop, b"\0", "zeros.txt.gz")
    assert path.stat().st_size < 2 << 20
    ended = bounded(shop.run(["predict", str(shop.undisturbed()), str(path), "--json"]))
    assert (ended.code, failures(ended)) == (2, ["data.line_too_long"]), ended.err
    return 0


def bomb_to_train_on(shop: Shop, random: Random) -> int:
    recipe = recipe_of(shop, bomb(shop, b"a ", "words.txt.gz").read_bytes(), "train.tsv.gz")
    ended = bounded(shop.run(["train", str(recipe), "--out", str(shop.new())]))
    assert ended.refused(), ended.err
    assert "train.tsv.gz:1" in ended.err
    return 0


def wrong_byte(shop: Shop, random: Random) -> int:
    """Invalid UTF-8, at a random place of a random line: the others are answered, training is refused."""
    lines = [b"sun and rain"] * 1000
    bad, place = random.randrange(1000), random.randrange(13)
    lines[bad] = (
        lines[bad][:place] + random.choice([b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88"]) + lines[bad][place:]
    )
    content = b"\n".join(lines) + b"\n"
    file = shop.new("lines")
    file.write_bytes(content)
    for arguments, stdin in (([], content), ([str(file)], b"")):
        ended = bounded(shop.run(["predict", str(classifier(shop)), *arguments, "--json"], stdin=stdin))
        expected = [None] * bad + ["data.encoding"] + [None] * (999 - bad)
        assert (ended.code, failures(ended)) == (2, expected), ended.err
        assert f":{bad + 1}, byte" in ended.err
    recipe = recipe_of(shop, b"text\tlabel\n" + b"".join(line + b"\tgood\n" for line in lines))
    ended = bounded(shop.run(["train", str(recipe), "--out", str(shop.new())]))
    assert ended.refused(), ended.err
    assert f"train.tsv:{bad + 2}, byte" in ended.err
    return 0


def strange_text(shop: Shop, random: Random) -> int:
    """NUL bytes are text; half a pair of surrogates is none; brackets without end are no JSON."""
    ended = bounded(shop.run(["predict", str(classifier(shop)), "--json"], stdin=b"\0\0\0\nsun\0\n"))
    assert (ended.code, failures(ended)) == (0, [None, None]), ended.err
    nested = "[" * 100_000 + "]" * 100_000
    lines = ['{"text": "a", "spans": []}', '{"text": "\\ud800", "spans": []}', f'{{"text": {nested}}}']
    file = shop.new("lines").with_suffix(".jsonl")
    for number in (2, 3):
        file.write_text(f"{lines[0]}\n{lines[number - 1]}\n{lines[0]}\n", "utf-8")
        ended = bounded(shop.run(["doctor", str(file), "--json"]))
        assert ended.code in (0, 1, 2), ended.err
        assert f"{file}:2" in ended.out + ended.err
    return 0


def closed_stdout(shop: Shop, random: Random) -> int:
    """Nobody reads the output, as after `| head -1`: an end as by SIGPIPE, without a word."""

    def close() -> None:
        read, write = os.pipe()
        os.close(read)
        os.dup2(write, 1)

    for more in ([], ["--json"]):
        ended = bounded(shop.run(["predict", str(shop.undisturbed()), *more], stdin=b"a b\n" * 100, before=close))
        assert (ended.code, ended.err) == (141, ""), (ended.code, ended.err)
    return 0


def many_lines_as_json(shop: Shop, random: Random) -> int:
    """Memory does not grow with the number of lines."""
    peaks = []
    for n in (2_000, 40_000):
        ended = bounded(shop.run(["predict", str(classifier(shop)), "--json"], stdin=b"sun and rain\n" * n))
        assert (ended.code, len(failures(ended))) == (0, n), ended.err
        peaks.append(ended.peak)
    assert peaks[1] - peaks[0] < 100 << 20, peaks
    return 0


FAULTS = [
    *map(long_text_in_windows, SHAPES),
    *map(long_text_to_translate, SHAPES),
    Fault("a line of 50 MB in the input of predict", long_line_to_predict, 3),
    Fault("a line of 50 MB in training data", long_line_to_train_on, 3),
    Fault("a text of a million characters in training data", long_text_to_train_on, 3),
    Fault("a gzip bomb to predict on", bomb_to_predict, 2),
    Fault("a gzip bomb to train on", bomb_to_train_on, 2),
    Fault("invalid UTF-8 at a random place", wrong_byte, 20, quick=True),
    Fault("NUL bytes, lone surrogates, nested brackets", strange_text, 3, quick=True),
    Fault("a closed stdout", closed_stdout, 3, quick=True),
    Fault("40,000 lines as JSON", many_lines_as_json, 2),
]
