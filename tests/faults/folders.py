"""Faults of folders: files cut, flipped, swapped, replaced or removed, and folders and recipes of strangers."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import torch
from safetensors.torch import load_file, save_file
from shop import GIBIBYTE, RECIPE, Ended, Fault, Shop, next_of

LINE = b"1 2 3\n4 5\n"
STEP = "checkpoints/step-12"
STEP_FILES = ("weights.safetensors", "optimizer.safetensors", "progress.json", "manifest.json")
MODEL_FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "manifest.json")
FILES = [f"{STEP}/{name}" for name in STEP_FILES]
FILES += ["recipe.json", "events.jsonl", "scores.json", *(f"model/{name}" for name in MODEL_FILES)]
CACHED = 8
"""files of the cache: a tokenizer and a shard, each with its manifest"""
Damage = Callable[[Path, Path, Random], object]
"""of a file, with a sound one of the same kind from another run, or another place"""


# what happens to a file


def cut(path: Path, other: Path, random: Random) -> None:
    os.truncate(path, random.randrange(path.stat().st_size))


def flip(path: Path, other: Path, random: Random) -> None:
    damaged = bytearray(path.read_bytes())
    damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
    path.write_bytes(damaged)


def empty(path: Path, other: Path, random: Random) -> None:
    os.truncate(path, 0)


def replace(path: Path, other: Path, random: Random) -> None:
    shutil.copyfile(other, path)


def swap(path: Path, other: Path, random: Random) -> None:
    beside = random.choice([one for one in sorted(path.parent.iterdir()) if one.is_file() and one != path])
    aside = path.with_name("aside")
    path.rename(aside)
    beside.rename(path)
    aside.rename(beside)


def remove(path: Path, other: Path, random: Random) -> None:
    path.unlink()


def folder_instead(path: Path, other: Path, random: Random) -> None:
    path.unlink()
    path.mkdir()


def link_instead(path: Path, other: Path, random: Random) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


DAMAGES: dict[str, Damage] = {
    "cut short": cut,
    "with one bit flipped": flip,
    "emptied": empty,
    "replaced by that of another run": replace,
    "swapped with its neighbour": swap,
    "removed": remove,
    "replaced by a folder": folder_instead,
    "replaced by a link to /etc/passwd": link_instead,
}


# what must hold


def recovers(shop: Shop, out: Path, cache: Path | None = None) -> None:
    """The same command ends with the bytes of the undisturbed run, at once or after its hints have been followed."""
    for _ in range(4):
        ended = shop.train(out, cache=cache)
        if ended.code == 0:
            break
        refused(ended)
        out = follow(shop, hint_of(ended), where_of(ended), out)
    assert ended.code == 0, ended.err
    shop.resumes(out, lost=0, cache=cache)


def refused(ended: Ended) -> None:
    assert ended.refused(), (ended.code, ended.err[-2000:])
    assert ended.peak < GIBIBYTE, ended.peak


def hint_of(ended: Ended) -> str:
    return next((line.partition("hint: ")[2] for line in ended.err.splitlines() if "hint: " in line), "")


def where_of(ended: Ended) -> Path:
    return Path(next(line.partition("where: ")[2] for line in ended.err.splitlines() if "where: " in line))


def follow(shop: Shop, hint: str, where: Path, out: Path) -> Path:
    """Do what a hint says; returns the folder to train into."""
    if hint.startswith("rm -r "):
        for path in hint.removeprefix("rm -r ").partition("  #")[0].split():
            shutil.rmtree(path)
    elif "remove it" in hint:
        where.rmdir() if where.is_dir() and not where.is_symlink() else where.unlink()
    elif "--out" in hint:
        return shop.new()
    else:
        raise AssertionError(f"nobody can follow this hint: {hint!r}, {where}")
    return out


def answers(shop: Shop, run: Path) -> None:
    """A prediction is that of the undisturbed run, or refused."""
    ended = shop.run(["predict", str(run)], stdin=LINE)
    if ended.code:
        refused(ended)
        return
    calm = shop.run(["predict", str(shop.undisturbed())], stdin=LINE)
    assert calm.code == 0, calm.err
    assert ended.out == calm.out, (ended.out, calm.out)


def another_run(shop: Shop, changed: str = "seed=2") -> Path:
    """A finished run of another recipe."""
    out = shop.folder / changed
    if not out.exists():
        ended = shop.train(out, "--set", changed)
        assert ended.code == 0, ended.err
    return out


def damaged_run(name: str, damage: Damage) -> Fault:
    def once(shop: Shop, random: Random) -> int:
        file = FILES[next_of(shop, "file", len(FILES)) - 1]
        out = shop.copy()
        damage(out / file, another_run(shop) / file, random)
        with named(file):
            answers(shop, out)
            recovers(shop, out)
        return 0

    return Fault(f"a file of a run {name}", once, len(FILES))


def damaged_cache(name: str, damage: Damage) -> Fault:
    def once(shop: Shop, random: Random) -> int:
        shop.undisturbed()
        another = shop.folder / "another-cache"
        if not another.exists():
            ended = shop.train(shop.new(), "--set", "data.n_train=100", "--set", "data.length=4", cache=another)
            assert ended.code == 0, ended.err
        files = sorted(path.relative_to(shop.cache) for path in shop.cache.rglob("*") if path.is_file())
        file = files[next_of(shop, "file", len(files)) - 1]
        cache = Path(shutil.copytree(shop.cache, shop.new("cache")))
        other = next(path for path in sorted(another.rglob(file.name)) if path.parts[-3] == file.parts[0])
        damage(cache / file, other, random)
        with named(str(file)):
            recovers(shop, shop.new(), cache)
        return 0

    return Fault(f"a file of the cache {name}", once, CACHED)


@contextmanager
def named(file: str) -> Iterator[None]:
    """Say which file an assertion is about."""
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"{file}: {error}") from error


def checkpoints_renamed(shop: Shop, random: Random) -> int:
    """One checkpoint under another's name, or over it."""
    for act in (Path.rename, shutil.copytree):
        for first, second in ((9, 12), (12, 9), (12, 15), (9, 99)):
            out = shop.copy()
            source, target = (out / f"checkpoints/step-{step}" for step in (first, second))
            shutil.rmtree(target, ignore_errors=True)
            act(source, target)
            recovers(shop, out)
            shutil.rmtree(out)
    return 0


def empty_manifest(shop: Shop, random: Random) -> int:
    """A manifest that lists nothing vouches for nothing."""
    for folder in (STEP, "model"):
        out = shop.copy()
        (out / folder / "manifest.json").write_text("{}", "utf-8")
        if folder == "model":
            refused(shop.run(["predict", str(out)], stdin=LINE))
        recovers(shop, out)
    return 0


# folders and recipes of strangers


def stranger(shop: Shop) -> Path:
    """A model folder in jumok's own layout that nothing vouches for."""
    model = Path(shutil.copytree(another_run(shop, "model.norm=pre") / "model", shop.new("model")))
    (model / "manifest.json").unlink()
    return model


def configured(**changes: object) -> Callable[[Path], object]:
    """Keys of jumok's config in config.json; those of [task] begin with task_."""

    def act(model: Path) -> None:
        tree = json.loads((model / "config.json").read_text("utf-8"))
        for key, value in changes.items():
            section, name = ("task", key.removeprefix("task_")) if key.startswith("task_") else ("model", key)
            tree["jumok"][section][name] = value
        (model / "config.json").write_text(json.dumps(tree), "utf-8")

    return act


def written(name: str, text: str) -> Callable[[Path], object]:
    return lambda model: (model / name).write_text(text, "utf-8")


def typed(dtype: torch.dtype) -> Callable[[Path], object]:
    def act(model: Path) -> None:
        tensors = load_file(model / "model.safetensors")
        save_file({name: tensor.to(dtype) for name, tensor in tensors.items()}, model / "model.safetensors")

    return act


def sparse(model: Path) -> None:
    """Weights of a tebibyte in a file that takes no room."""
    n = 1 << 40
    header = json.dumps({"embedding.weight": {"dtype": "F32", "shape": [n // 4], "data_offsets": [0, n]}}).encode()
    with (model / "model.safetensors").open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + n)


def vocabulary(**changes: object) -> Callable[[Path], object]:
    def act(model: Path) -> None:
        tree = json.loads((model / "tokenizer.json").read_text("utf-8"))
        (model / "tokenizer.json").write_text(json.dumps({**tree, **changes}), "utf-8")

    return act


def linked(name: str) -> Callable[[Path], object]:
    return lambda model: link_instead(model / name, model, Random())


MODELS: dict[str, Callable[[Path], object]] = {
    "d_ff of a million in 100 layers": configured(d_ff=10**6, n_layers=100),
    "n_layers of 999": configured(n_layers=999),
    "n_layers of a million": configured(n_layers=10**6),
    "d_model of a billion": configured(d_model=10**9),
    "a number of 4000 digits": configured(d_ff=10**3999),
    "another task": configured(task_kind="tagging"),
    "weights of 8 bits": typed(torch.int8),
    "weights that are true or false": typed(torch.bool),
    "complex weights": typed(torch.complex64),
    "weights of a tebibyte": sparse,
    "config.json nested without end": written("config.json", '{"a":' * 10**6),
    "config.json with a number without end": written("config.json", '{"a": ' + "9" * 10**5),
    "a tokenizer nested without end": written("tokenizer.json", '{"a":' * 10**6),
    "a tokenizer that panics when it is read": vocabulary(
        normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}
    ),
    "a tokenizer that panics when it is used": vocabulary(pre_tokenizer={"type": "FixedLength", "length": 0}),
    "README.md linked to a secret": linked("README.md"),
    "the weights linked to a secret": linked("model.safetensors"),
    "a link that nobody asked for": linked("extra"),
}


def hostile_model(shop: Shop, random: Random) -> int:
    for name, act in MODELS.items():
        model = stranger(shop)
        (model / "extra").touch()
        act(model)
        start = shop.new("recipe").with_suffix(".toml")
        start.write_text(f'init = "{model}"\n{RECIPE.partition("[model]")[0]}', "utf-8")
        commands = [["predict", str(model)], ["import", str(model), str(shop.new())], ["train", str(start), "--out"]]
        commands[-1].append(str(shop.new()))
        # What the tokenizer does to a text is seen only when there is one.
        for command in commands[:1] if "used" in name else commands:
            ended = shop.run(command, stdin=LINE)
            assert ended.refused(), (name, command[0], ended.code, ended.err[-1500:])
            assert ended.peak < GIBIBYTE, (name, command[0], ended.peak)
    return 0


RECIPES: dict[str, Callable[[str], str]] = {
    "d_ff of a billion": lambda text: text.replace("d_ff = 16", "d_ff = 1_000_000_000"),
    "a model of terabytes": lambda text: text.replace("d_ff = 16", "d_ff = 1_000_000").replace(
        "d_model = 8", "d_model = 100_000"
    ),
    "n_layers of a million": lambda text: text.replace("n_layers = 1", "n_layers = 1_000_000"),
    "n_heads of a billion": lambda text: text.replace("n_heads = 2", "n_heads = 1_000_000_000"),
    "vocab_size beyond measure": lambda text: text.replace("vocab_size = 300", "vocab_size = 10_000_000_000"),
    "batch_tokens beyond measure": lambda text: text.replace("batch_tokens = 64", "batch_tokens = 10_000_000_000"),
    "a million threads": lambda text: text.replace('device = "cpu"', "threads = 1_000_000"),
    "a number of 5000 digits": lambda text: f"{text}beam = {'9' * 5000}\n",
    "a hexadecimal number of 5000 digits": lambda text: f"{text}beam = 0x{'f' * 5000}\n",
    "lists nested without end": lambda text: f"x = {'[' * 10**5}\n{text}",
    "keys nested without end": lambda text: f"{'a.' * 10**4}a = 1\n{text}",
}


def hostile_recipe(shop: Shop, random: Random) -> int:
    for name, change in RECIPES.items():
        path = shop.new("recipe").with_suffix(".toml")
        path.write_text(change(RECIPE), "utf-8")
        ended = shop.run(["train", str(path), "--out", str(shop.new())])
        assert ended.refused(), (name, ended.code, ended.err[-1500:])
        assert ended.peak < GIBIBYTE, (name, ended.peak)
    return 0


def byte_order_mark(shop: Shop, random: Random) -> int:
    out = shop.copy()
    recipe = out.with_suffix(".toml")
    recipe.write_text(RECIPE, "utf-8-sig")
    for name in ("recipe.json", "scores.json"):
        (out / name).write_text((out / name).read_text("utf-8"), "utf-8-sig")
    assert shop.run(["train", str(recipe), "--out", str(out)]).code == 0
    return shop.resumes(out)


FAULTS = [
    *(damaged_run(name, damage) for name, damage in DAMAGES.items()),
    *(damaged_cache(name, damage) for name, damage in DAMAGES.items()),
    Fault("checkpoints under the names of others", checkpoints_renamed, 1),
    Fault("a manifest that lists nothing", empty_manifest, 1, quick=True),
    Fault("a model folder made to harm", hostile_model, 1),
    Fault("a recipe made to harm", hostile_recipe, 1, quick=True),
    Fault("byte order marks", byte_order_mark, 1, quick=True),
]
