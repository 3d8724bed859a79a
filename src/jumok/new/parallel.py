"""Texts and their translations: line-aligned files, catalogues and TMX, and which language is the source."""

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from jumok.errors import InputError
from jumok.examples import SPLITS
from jumok.examples.gettext import catalogue_language
from jumok.examples.pairs import ParallelData
from jumok.examples.tmx import tmx_languages
from jumok.new import Ask, Question, Told
from jumok.new.files import Files
from jumok.new.found import LOOKED_AT, Found, language_of


def look_at_parallel(files: Files, told: Told, ask: Ask) -> Found:
    """Line-aligned files, catalogues and TMX."""
    known: list[str] = []
    why: list[str] = []
    chosen = False
    for part in files.parts:
        if part.kind == "lines":
            known += part.languages
            chosen |= not files.from_folder and len(part.languages) == 2
        elif part.kind == "tmx":
            source, tags = tmx_languages(part.paths[0])
            known += [*([source] if source else []), *tags]
            chosen |= bool(source)
        else:
            source, target = _languages_of_catalogue(part.paths[0])
            known += [source, target]
            chosen = True
    languages = list(dict.fromkeys(code for code in known if code))
    if files.from_folder and "en" in languages:  # the order of files in a folder says nothing
        languages.sort(key=lambda code: code != "en")
    source, target = _direction(languages, told, ask, chosen=chosen, where=files.parts[0].name)
    parts: list[tuple[str, Sequence[Path]]] = []
    for part in files.parts:
        if part.kind == "lines":
            sides = dict(zip(part.languages, part.paths, strict=True))
            if not {source, target} <= sides.keys():
                continue
            parts.append((part.split or "train", [sides[source], sides[target]]))
        else:
            parts.append((part.split or "train", part.paths))
    if not any(split == "train" for split, _ in parts):
        what = f"no training data in {source} and {target}"
        hint = f"the languages are {', '.join(languages)}"
        raise InputError(what, where=files.parts[0].name, hint=hint, code="data.languages")
    formats = {
        "lines": "line n of one file is the translation of line n of the other",
        "catalogue": "gettext catalogues hold texts and their translations",
        "tmx": "a TMX file holds texts and their translations",
    }
    kinds = dict.fromkeys(part.kind for part in files.parts)
    why += [f"Task: translation from {source} to {target}, because {' and '.join(formats[kind] for kind in kinds)}."]
    return translation_of({"source": source, "target": target, **files_of_pairs(parts)}, why)


def _languages_of_catalogue(path: Path) -> tuple[str, str]:
    """Source and target of a PO or MO file: from its texts, its header and its path."""
    pairs = [*islice(ParallelData(source="", target="", train=[[str(path)]]).read("train", seed=1), LOOKED_AT)]
    target = catalogue_language(path).replace("_", "-")
    named = re.search(
        r"(?:^|[./_-])([a-z]{2,3}(?:[-_][A-Z]{2})?)(?:/LC_MESSAGES/[^/]*)?\.(?:po|mo)(?:\.gz)?$", str(path)
    )
    target = target or language_of(pair.gold for pair in pairs) or (named[1].replace("_", "-") if named else "")
    source = language_of(pair.source for pair in pairs)
    return source or ("en" if target.split("-")[0] != "en" else "source"), target or "target"


def _direction(languages: list[str], told: Told, ask: Ask, *, chosen: bool, where: str) -> tuple[str, str]:
    """Source and target; asked for if the files do not say which is which."""
    for option, code in (("--source", told.source), ("--target", told.target)):
        if code is not None and code not in languages:
            hint = f"choose from {', '.join(languages)}"
            raise InputError(f"no texts in {code}", where=f"{option}, {where}", hint=hint, code="data.languages")
    if len(languages) < 2:
        what = f"only one language: {', '.join(languages)}"
        raise InputError(what, where=where, hint="pass its translation, too", code="data.languages")
    source, target = told.source, told.target
    why = f"the files are in {', '.join(languages)}, and do not say which of them is to be translated"
    if source is None:
        rest = [code for code in languages if code != target]
        asked = (target is None and not chosen) or len(rest) > 1 and len(languages) > 2
        question = Question("--source", "Which language is to be translated?", rest[0], tuple(rest), why)
        source = ask(question) if asked else rest[0]
    if target is None:
        rest = [code for code in languages if code != source]
        question = Question("--target", "Into which language?", rest[0], tuple(rest), why)
        target = ask(question) if len(rest) > 1 else rest[0]
    return source, target


def files_of_pairs(found: Iterable[tuple[str, Sequence[Path]]]) -> dict[str, Any]:
    """The files of parallel data: several corpora for training, one each for dev and test."""
    splits: dict[str, list[list[str]]] = {}
    for split, paths in found:
        splits.setdefault(split, []).append([str(path) for path in paths])
    for split in ("dev", "test"):
        if len(several := splits.get(split, [])) > 1:
            where = "; ".join(", ".join(paths) for paths in several)
            hint = "pass one of them"
            raise InputError(f"more than one corpus for {split}", where=where, hint=hint, code="data.several")
    return {split: splits[split] if split == "train" else splits[split][0] for split in SPLITS if split in splits}


def translation_of(data: dict[str, Any], why: list[str]) -> Found:
    same = data["source"].split("-")[0] == data["target"].split("-")[0]
    return Found(
        task="translation",
        kind=ParallelData,
        data=data,
        metric="perplexity" if same else "bleu",
        why=why,
        language=data["target"],
        reply=same,
    )
