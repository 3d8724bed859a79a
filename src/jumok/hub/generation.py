"""Conversion between generation_config.json and a recipe's [decode].

To compare beams, `transformers` divides a score by length ^ alpha, jumok, like Wu et al. 2016, by
((5 + length) / 6) ^ alpha: alpha is carried over unchanged and means nearly the same.
"""

from collections.abc import Mapping
from typing import Any

from jumok.text.tokenizer import Tokenizer

BEAMS = {"beam": "num_beams", "length_penalty": "length_penalty"}
SAMPLING = ("temperature", "top_k", "top_p")


def generation_config(
    decode: Mapping[str, Any], tokenizer: Tokenizer, *, max_length: int, translates: bool
) -> dict[str, Any]:
    chosen: dict[str, Any] = {}  # stays empty if a foreign folder had no settings
    match decode.get("method"):
        case "beam":
            chosen = {theirs: decode[ours] for ours, theirs in BEAMS.items() if ours in decode}
        case "sample":
            chosen = {"num_beams": 1, "do_sample": True, **{key: decode[key] for key in SAMPLING if key in decode}}
        case "greedy":
            chosen = {"num_beams": 1}
    ids: dict[str, Any] = {
        "bos_token_id": tokenizer.start_id,
        "eos_token_id": tokenizer.end_id,
        "pad_token_id": tokenizer.pad_id,
    }
    if translates:
        ids |= {
            "bos_token_id": None,
            "forced_eos_token_id": tokenizer.end_id,
            "decoder_start_token_id": tokenizer.start_id,
            "bad_words_ids": [[tokenizer.pad_id]],  # it has a logit in transformers
        }
    return {**ids, **chosen, "max_length": max_length}


def decoding(tree: Mapping[str, Any], *, translates: bool) -> dict[str, Any]:
    """The keys of [decode] that a generation_config.json sets; the others keep their defaults."""
    found: dict[str, Any] = {}
    if tree.get("do_sample"):
        found = {"method": "sample", **{key: tree[key] for key in SAMPLING if tree.get(key) is not None}}
    elif tree.get("num_beams") == 1:
        found = {"method": "greedy"}
    elif tree.get("num_beams") is not None:
        found = {"method": "beam", **{o: tree[theirs] for o, theirs in BEAMS.items() if tree.get(theirs) is not None}}
    if not translates and tree.get("max_new_tokens") is not None:  # ours is relative to the source length
        found["max_extra"] = tree["max_new_tokens"]
    return found
