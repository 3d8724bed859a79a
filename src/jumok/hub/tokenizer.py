"""The vocabulary of a model folder: tokenizer.json, or BERT's older vocab.txt."""

import json
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from jumok.errors import CheckpointError
from jumok.hub.files import read_json, write_json
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import BERT, GPT, ROBERTA, WORDPIECE_PREFIX

JOINT, SOURCE, TARGET = "tokenizer.json", "source_tokenizer.json", "target_tokenizer.json"
SETTINGS, WORDS = "tokenizer_config.json", "vocab.txt"
_BERTS = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
FOLLOWED = {
    **dict.fromkeys(("BertTokenizer", "ElectraTokenizer", "DistilBertTokenizer"), ("BertNormalizer", _BERTS)),
    "RobertaTokenizer": ("ByteLevel", {"add_prefix_space": "add_prefix_space"}),
}
"""by class, the part of tokenizer.json that keys of tokenizer_config.json are about, and the keys' names there"""
OTHERS = ("source.spm", "target.spm", "spiece.model", "sentencepiece.bpe.model", "vocab.json", "merges.txt")


def write_tokenizers(folder: Path, found: Tokenizers, *, max_length: int, segments: bool = False) -> None:
    """Write the vocabularies, and for `transformers` whether its encoder reads segments."""
    target = found.target
    files = {JOINT: target} if found.source is target else {SOURCE: found.source, TARGET: target}
    for name, tokenizer in files.items():
        (folder / name).write_text(tokenizer.to_json(), "utf-8")
    if target.layout is BERT and _model(target)["type"] == "WordPiece":
        pieces = target.pieces(range(target.vocab_size))
        (folder / WORDS).write_text("".join(f"{piece}\n" for piece in pieces), "utf-8")
    # This class uses tokenizer.json unchanged; BERT's own would rebuild the pipeline with its own defaults.
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": max_length}
    write_json(folder / SETTINGS, settings | _special_tokens(target, segments=segments))


def _special_tokens(tokenizer: Tokenizer, *, segments: bool) -> dict[str, Any]:
    layout = tokenizer.layout
    found: dict[str, Any] = {"unk_token": layout.unknown, "pad_token": layout.padding}
    if layout.framed:
        names = ["input_ids", *(["token_type_ids"] if segments else []), "attention_mask"]
        if layout is ROBERTA:
            found |= {"bos_token": layout.start, "eos_token": layout.end}
        # In BERT's input, [MASK] typed by a user is the special token.
        return found | {
            "cls_token": layout.start,
            "sep_token": layout.end,
            "mask_token": layout.mask,
            "model_input_names": names,
        }
    if layout is GPT:
        found["bos_token"] = layout.start
    # User input is plain text in transformers too, even if it looks like a special token.
    return found | {"eos_token": layout.end, "split_special_tokens": True}


def _model(tokenizer: Tokenizer) -> dict[str, Any]:
    model: dict[str, Any] = json.loads(tokenizer.to_json())["model"]
    return model


def read_tokenizers(folder: Path) -> Tokenizers:
    if (folder / JOINT).exists():
        joint = Tokenizer.load(folder / JOINT)
        _refuse_contradiction(joint, folder)
    elif (folder / SOURCE).exists():
        return Tokenizers(Tokenizer.load(folder / SOURCE), Tokenizer.load(folder / TARGET))
    elif (folder / WORDS).exists():
        joint = _from_words(folder)
    else:
        others = [name for name in OTHERS if (folder / name).exists()]
        raise CheckpointError(
            f"the vocabulary is in {' and '.join(others)}, which jumok cannot read" if others else f"no {JOINT}",
            where=folder,
            hint=f"write {JOINT} with transformers: AutoTokenizer.from_pretrained(folder).save_pretrained(folder)",
            code="checkpoint.no_vocabulary",
        )
    return Tokenizers(joint, joint)


def _refuse_contradiction(tokenizer: Tokenizer, folder: Path) -> None:
    """Some classes of transformers set up their pipeline by tokenizer_config.json, whatever tokenizer.json says."""
    settings = read_json(folder / SETTINGS) if (folder / SETTINGS).exists() else {}
    known = FOLLOWED.get(str(settings.get("tokenizer_class", "")).removesuffix("Fast"))
    if known is None:
        return
    kind, names = known
    pipeline = json.loads(tokenizer.to_json())
    steps = [pipeline["normalizer"] or {}, pipeline["pre_tokenizer"] or {}]
    step = next((step for step in steps if step.get("type") == kind), {})
    for theirs, ours in names.items():
        if isinstance(wanted := settings.get(theirs), bool) and step.get(ours, wanted) not in (wanted, None):
            what = f"{theirs} is {str(wanted).lower()}, but {JOINT} says the opposite"
            hint = "write both with transformers: AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"
            raise CheckpointError(what, where=folder / SETTINGS, hint=hint, code="checkpoint.pretokenizer")


def wrong_ids(tokenizer: Tokenizer) -> str | None:
    """Describe ids that are not 0, 1, 2 and so on up to the vocabulary size; None if they are."""
    n = tokenizer.vocab_size
    pieces = tokenizer.pieces(range(n))
    if len(set(pieces)) == n:  # an unassigned id reads as the unknown token
        return None
    free = next(i for i, piece in enumerate(pieces) if piece == tokenizer.layout.unknown and i != tokenizer.unk_id)
    vocabulary = tokenizers.Tokenizer.from_str(tokenizer.to_json()).get_vocab()
    beyond = [f'"{piece}" has id {i}' for piece, i in sorted(vocabulary.items()) if i >= n]
    return f"there are {n} tokens but none has id {free}" + (f", and {beyond[0]}" if beyond else "")


def _from_words(folder: Path) -> Tokenizer:
    """BERT's own pipeline over the tokens of vocab.txt, one per line in id order."""
    path = folder / WORDS
    try:
        pieces = path.read_text("utf-8").removesuffix("\n").split("\n")
    except (OSError, ValueError) as error:
        what = f"cannot read the vocabulary: {error}"
        raise CheckpointError(what, where=path, code="checkpoint.unreadable") from error
    settings = read_json(folder / SETTINGS) if (folder / SETTINGS).exists() else {}
    if settings.get("do_basic_tokenize", True) is not True:
        what = "do_basic_tokenize is off: jumok only splits text into words as BERT does"
        hint = f"add a {JOINT} with the right pre-tokenizer"
        raise CheckpointError(what, where=folder / SETTINGS, hint=hint, code="checkpoint.pretokenizer")
    if missing := [token for token in BERT.specials if token not in pieces]:
        what = f"the vocabulary lacks special tokens: {', '.join(missing)}"
        hint = "use the vocabulary that the model was trained with"
        raise CheckpointError(what, where=path, hint=hint, code="checkpoint.special_pieces")
    backend = tokenizers.Tokenizer(
        models.WordPiece(
            vocab={piece: i for i, piece in enumerate(pieces)},
            unk_token=BERT.unknown,
            continuing_subword_prefix=WORDPIECE_PREFIX,
        )
    )
    strip = settings.get("strip_accents")
    backend.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True) is not False,
        strip_accents=strip if isinstance(strip, bool) else None,  # None: if lowercasing
        lowercase=settings.get("do_lower_case", True) is not False,
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(prefix=WORDPIECE_PREFIX)
    backend.add_special_tokens(BERT.specials)
    backend.post_processor = processors.TemplateProcessing(
        single=f"{BERT.start} $A {BERT.end}",
        pair=f"{BERT.start} $A {BERT.end} $B:1 {BERT.end}:1",
        special_tokens=[(token, backend.token_to_id(token)) for token in (BERT.start, BERT.end)],
    )
    return Tokenizer(backend)
