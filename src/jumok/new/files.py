"""Which files belong together: their splits, languages and kinds, from their names and first lines."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from jumok.errors import DataError, InputError, listed
from jumok.examples import SPLITS, Split
from jumok.examples.documents import text_files
from jumok.examples.faults import suffix_of
from jumok.examples.objects import is_object
from jumok.examples.spans import COLUMN_SUFFIXES, tag_columns
from jumok.text.lines import opened, read_lines

Kind = Literal["lines", "catalogue", "tmx", "table", "objects", "tags", "questions", "text", "folder", "classes"]
READABLE = (
    "line-aligned files named after their languages (train.en and train.ko), .tsv, .csv, .jsonl, .po, .mo, .tmx,"
    " .conll, SQuAD's .json, .txt (.gz too), or a folder of these"
)
_KINDS: dict[str, Kind] = {"po": "catalogue", "mo": "catalogue", "tmx": "tmx", "tsv": "table", "csv": "table"}
_KINDS |= {"jsonl": "objects", "txt": "text", "text": "text"}
_KINDS |= dict.fromkeys(COLUMN_SUFFIXES, "tags")
_SPLIT_NAMES: dict[str, Split] = {"train": "train", "training": "train"}
_SPLIT_NAMES |= dict.fromkeys(("dev", "valid", "validation", "val", "development", "eval"), "dev")
_SPLIT_NAMES |= dict.fromkeys(("test", "testing"), "test")
_CODES = (
    "af am ar az be bg bn bs ca cs cy da de el en eo es et eu fa fi fr ga gl gu ha he hi hr hu hy id ig is it ja ka kk"
    " km kn ko ky lo lt lv mg mi mk ml mn mr ms mt my nb ne nl nn no pa pl ps pt ro ru rw si sk sl so sq sr sv sw ta te"
    " tg th tk tl tr uk ur uz vi xh yi yo zh zu"
)
LANGUAGES = frozenset(_CODES.split())
_SIDES = {"source": "source", "src": "source", "target": "target", "tgt": "target", "trg": "target"}
_TAG = re.compile(r"O|[BIESLUM]-\S+|_|[A-Z$.,:'`#(){}\[\]-]{1,6}")
_ABOUT = re.compile(r"(readme|licen[cs]e|copying|notice|citation|changelog|authors)\b", re.IGNORECASE)
_LOOKED_AT = 200  # lines of a file


@dataclass(frozen=True, slots=True)
class Part:
    """A file or folder, or the sides of line-aligned text, and the split that its name says."""

    kind: Kind
    paths: tuple[Path, ...]
    split: Split | None = None
    languages: tuple[str, ...] = ()
    """of line-aligned files, as many as there are paths"""

    @property
    def name(self) -> str:
        return ", ".join(path.name for path in self.paths)


@dataclass(frozen=True, slots=True)
class Files:
    """Parts of one kind, by split, and what was left out."""

    kind: Kind
    parts: list[Part]
    ignored: list[Path]
    from_folder: bool
    """whether a folder was searched, so that the order of the files means nothing"""

    def of(self, split: Split) -> list[Part]:
        return [part for part in self.parts if part.split == split]


def find_files(given: Sequence[Path]) -> Files:
    """Sort files, or the files of a folder, into parts of one kind."""
    for path in given:
        if not path.exists():
            raise DataError("no such file or folder", where=path, hint="check the path", code="data.missing")
    ignored: list[Path] = []
    found: list[Path] = []
    parts: list[Part] = []
    for path in given:
        if path.is_dir():
            of_texts = _texts_of(path)
            parts += of_texts
            found += [] if of_texts else _files_of(path, ignored)
        else:
            found.append(path)
    explicit = {path for path in given if not path.is_dir()}
    parts += [*_aligned(found), *_single(found, explicit, ignored)]
    if not parts:
        what = "nothing here that can be read as data"
        where = ", ".join(map(str, given))
        raise DataError(what, where=where, hint=f"pass {READABLE}", code="data.no_files")
    return Files(_one_kind(parts), _with_splits(parts), ignored, len(explicit) < len(given))


def _files_of(folder: Path, ignored: list[Path]) -> list[Path]:
    """The visible files in a folder; if there are none, those in the folders in it."""
    levels = [sorted(folder.iterdir()), sorted(folder.glob("*/*")), sorted(folder.glob("*/*/*"))]
    for files in levels:
        visible = [path for path in files if path.is_file() and not path.name.startswith(".")]
        ignored += [path for path in visible if _ABOUT.match(path.name)]
        if visible := [path for path in visible if not _ABOUT.match(path.name)]:
            return visible
    return []


def _texts_of(folder: Path) -> list[Part]:
    """A folder with nothing but texts: documents, a folder for each class, or a folder for each split of these."""
    inside = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    folders = [path for path in inside if path.is_dir()]
    files = [path for path in inside if path.is_file() and not _ABOUT.match(path.name)]
    if any(suffix_of(path) != "txt" for path in files) or (not folders and len(files) < 2):
        return []
    if not folders:
        named = any(split_of(path) or _language_in(path) for path in files)
        return [] if named else [Part("folder", (folder,))]
    with_texts = [path for path in folders if _has_texts(path)]
    splits = {path: split for path in with_texts if (split := _SPLIT_NAMES.get(path.name.lower()))}
    if splits and len(splits) == len(with_texts) and not files:
        return [Part(_folder_kind(path), (path,), split) for path, split in splits.items()]
    if not with_texts or len(with_texts) < len(folders):
        return []
    return [Part("classes" if len(with_texts) > 1 and not files else "folder", (folder,))]


def _folder_kind(folder: Path) -> Kind:
    inside = [path for path in folder.iterdir() if not path.name.startswith(".")]
    return "classes" if len(inside) > 1 and all(path.is_dir() for path in inside) else "folder"


def _has_texts(folder: Path) -> bool:
    """Whether a folder holds text files, and no other data."""
    others = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    try:
        return bool(text_files(folder)) and all(suffix_of(p) == "txt" or _ABOUT.match(p.name) for p in others)
    except DataError:
        return False


def split_of(path: Path) -> Split | None:
    """The split that a name says: train.en, dev_squad.json, movies-test.tsv."""
    words = re.split(r"[^a-z]+", path.name.lower())
    return next((_SPLIT_NAMES[word] for word in words if word in _SPLIT_NAMES), None)


def _language_in(path: Path) -> tuple[str, str] | None:
    """The language of one side of line-aligned text, and the rest of its name; None for other files."""
    name = path.name.lower().removesuffix(".gz")
    stem, dot, ending = name.rpartition(".")
    if ending in ("txt", "text"):
        words = re.fullmatch(r"(.*?)(?:^|[._-])([a-z]+(?:[-_][a-z]{2,4})?)", stem)
        if words and (words[2] in _SIDES or re.split("[-_]", words[2])[0] in LANGUAGES):
            return words[2], f"{words[1]}.txt"
        return None
    if dot and (ending in _SIDES or re.split("[-_]", ending)[0] in LANGUAGES) and len(ending) <= 7:
        return path.name.removesuffix(".gz").rpartition(".")[2], stem
    return None


def _aligned(found: list[Path]) -> list[Part]:
    """Line-aligned files, which are named after their languages; they are taken out of `found`."""
    groups: dict[tuple[Path, str], list[tuple[str, Path]]] = {}
    for path in found:
        if named := _language_in(path):
            groups.setdefault((path.parent, named[1]), []).append((named[0], path))
    if len(found) == 2 and len(groups) == 2 and all(len(group) == 1 for group in groups.values()):
        first, second = groups.values()  # two files that differ in more than their language
        if split_of(first[0][1]) == split_of(second[0][1]) and first[0][0] != second[0][0]:
            groups = {(found[0].parent, ""): [*first, *second]}
    parts = []
    for group in groups.values():
        if len(group) > 1:
            paths = tuple(path for _, path in group)
            parts.append(Part("lines", paths, split_of(paths[0]), tuple(_SIDES.get(name, name) for name, _ in group)))
            for path in paths:
                found.remove(path)
    return parts


def _single(found: list[Path], explicit: set[Path], ignored: list[Path]) -> Iterator[Part]:
    for path in found:
        kind = _kind_of(path)
        if kind is None and path in explicit:
            what = "one side of line-aligned text" if _language_in(path) else "unknown kind of file"
            hint = f"pass {READABLE}"
            raise InputError(what, where=path, hint=hint, code="data.unknown_kind")
        if kind is None:
            ignored.append(path)
        else:
            yield Part(kind, (path,), split_of(path))


def _kind_of(path: Path) -> Kind | None:
    suffix = suffix_of(path)
    if suffix == "json":
        _refuse_lines_of_objects(path)
        return "questions"
    kind = _KINDS.get(suffix)
    if kind in ("text", "table") and suffix in ("txt", "text", "tsv") and _is_tagged(path):
        return "tags"
    return kind


def _refuse_lines_of_objects(path: Path) -> None:
    with opened(path) as stream:
        lines = stream.read(1 << 16).decode("utf-8", "replace").split("\n")
    if len(lines) > 1 and is_object(lines[0]) and is_object(lines[1]) and lines[0].rstrip().endswith("}"):
        what, hint = "one object per line is JSONL, not JSON", "rename the file to end in .jsonl"
        raise InputError(what, where=path, hint=hint, code="data.not_json")


def _is_tagged(path: Path) -> bool:
    """Whether lines are a word and its tag, and empty lines separate sentences."""
    lines = [*islice(read_lines(path, charset="latin-1", wrong=lambda error: None), _LOOKED_AT)]
    rows = [tag_columns(line) for line in lines if line.strip() and not line.startswith(("#", "-DOCSTART-"))]
    if len(rows) < 2 or all(line.strip() for line in lines[:-1]):
        return False
    widths = {len(row) for row in rows}
    tags = [row[-1] for row in rows]
    return len(widths) == 1 and 2 <= widths.pop() <= 8 and "O" in tags and all(map(_TAG.fullmatch, tags))


def _one_kind(parts: list[Part]) -> Kind:
    kinds = list(dict.fromkeys(part.kind for part in parts))
    if set(kinds) <= {"lines", "catalogue", "tmx"} or len(kinds) == 1:
        return kinds[0]
    if set(kinds) == {"text", "folder"}:
        return "text"
    named = "; ".join(f"{kind}: {listed([p.name for p in parts if p.kind == kind], 3)}" for kind in kinds)
    raise InputError(
        "these files are of different kinds",
        where=named,
        hint="pass the files of one kind",
        code="data.different_kinds",
    )


def _with_splits(parts: list[Part]) -> list[Part]:
    """A part whose name says no split is for training; so is the only one there is."""
    if {part.split for part in parts} in ({"dev"}, {"test"}):
        return [Part(part.kind, part.paths, "train", part.languages) for part in parts]
    placed = [Part(part.kind, part.paths, part.split or "train", part.languages) for part in parts]
    if not any(part.split == "train" for part in placed):
        where = ", ".join(part.name for part in placed)
        hint = "name one of them train, or pass only the file to train on"
        raise InputError(
            "only dev and test data, and nothing to train on", where=where, hint=hint, code="data.no_train"
        )
    order = {split: i for i, split in enumerate(SPLITS)}
    return sorted(placed, key=lambda part: order[part.split or "train"])
