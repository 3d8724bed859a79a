"""What a model reads and writes for one example, as tokens: what there is to look inside of."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jumok.engines import Asked
from jumok.errors import InputError
from jumok.tasks.classification.predictor import Classifier
from jumok.tasks.language_model.predictor import Generator
from jumok.tasks.pretraining.predictor import Encoder
from jumok.tasks.protocol import answered
from jumok.tasks.tagging.predictor import Tagger
from jumok.tasks.targets import Classes
from jumok.tasks.translation.predictor import Translation, Translator
from jumok.text.tokenizer import Tokenizer
from jumok.text.vocabulary import BYTE_SPACE, EOS_ID, SPACE, WORDPIECE_PREFIX


@dataclass(frozen=True, slots=True)
class Side:
    """A sequence of tokens: their ids and texts, the word that each belongs to (-1: none), and the words."""

    ids: list[int]
    tokens: list[str]
    word: list[int]
    words: list[str]

    @staticmethod
    def of(tokenizer: Tokenizer, ids: Sequence[int]) -> "Side":
        pieces, word, groups, inside = tokenizer.pieces(ids), [], list[list[int]](), False
        specials = set(tokenizer.special_ids) - {tokenizer.unk_id, tokenizer.mask_id}
        for number, piece in zip(ids, pieces, strict=True):
            if number in specials:
                word.append(-1)
                inside = False
                continue
            if not inside or _begins(piece, tokenizer.kind):
                groups.append([])
            inside = True
            groups[-1].append(number)
            word.append(len(groups) - 1)
        return Side(list(ids), pieces, word, [tokenizer.decode(group).strip() for group in groups])

    def plain(self) -> dict[str, Any]:
        return {"ids": self.ids, "tokens": self.tokens, "word": self.word, "words": self.words}


def _begins(piece: str, kind: str) -> bool:
    match kind:
        case "word":
            return True
        case "wordpiece":
            return not piece.startswith(WORDPIECE_PREFIX)
        case "byte_bpe":
            return piece.startswith(BYTE_SPACE)
        case _:
            return piece.startswith(SPACE)


@dataclass(frozen=True, slots=True)
class Reading:
    """The tokens that a model reads and, if it writes, those it writes."""

    source: list[int]
    target: list[int] | None
    sides: dict[str, Side]
    """source; of a translation also target, the tokens written with their end, and read, those the decoder reads"""
    output: str
    labels: list[str]
    asked: Asked | None
    """the output that is explained unless another is asked for; None if it cannot be"""

    def plain(self) -> dict[str, Any]:
        sides = {name: side.plain() for name, side in self.sides.items()}
        return {"output": self.output, "sides": sides, "labels": self.labels}

    def columns(self, name: str) -> tuple[str, str]:
        """The sides of a map's rows and columns."""
        known = {"decoder": ("target", "read"), "cross": ("target", "source"), "pool": ("", "source")}
        return known.get(name, ("source", "source"))


def reading_of(predictor: Any, example: Any, output: str | Sequence[int] | None) -> Reading:
    """Read an example as its predictor does; `output` is a text, or tokens, that the model is made to write."""
    match predictor:
        case Translator():
            return _translated(predictor, example, output)
        case Generator():
            return _generated(predictor, example, output)
    labels: list[str] = []
    asked = None
    match predictor:
        case Classifier():
            row = predictor.encode(predictor.parse(example), None).rows[0]
            (found,) = answered(predictor.predict(predictor.parse(example)))
            labels = predictor.labels or [found.text]
            if predictor.engine.kind == "gpt":
                side = Side.of(predictor.tokenizer, [predictor.tokenizer.start_id, *row])
                return Reading(row, None, {"source": side}, found.text, [], None)
            best = labels.index(found.text) if found.text in labels else 0
            asked = Asked(best, raw=not isinstance(predictor.targets, Classes))
            said = found.text
        case Tagger():
            encoded = predictor.encode(predictor.parse(example), None)
            (tags,) = answered(predictor.predict(predictor.parse(example)))
            row, labels, said = encoded.windows[0].row, list(predictor.labels), tags.text
            places = [int(place) for place in encoded.windows[0].places]
            if places:
                asked = Asked(labels.index(tags.tags[0]), position=places[0])
        case Encoder():
            read = predictor.parse(example)
            pair = None if read.pair is None else predictor.tokenizer.encode_masked(read.pair)
            row, said = predictor.tokenizer.frame(predictor.tokenizer.encode_masked(read.text), pair), ""
            predictor._refuse_long(row, read.where)
        case _:
            what = f"looking inside a model for {predictor.kind} is not supported"
            raise InputError(what, code="input.no_inside")
    return Reading(row, None, {"source": Side.of(predictor.tokenizer, row)}, said, labels, asked)


def _translated(predictor: Translator, example: Any, output: str | Sequence[int] | None) -> Reading:
    pair = predictor.parse(example)
    target = predictor.tokenizers.filled(pair.source).target
    if output is None:
        (found,) = answered(predictor.predict([pair]))
    elif isinstance(output, str):
        found = Translation(output, 0.0, [], ids=target.encode(output))
    else:
        found = Translation(target.decode(_known(output, target)), 0.0, [], ids=list(output))
    _, tokenizers, source, written = predictor._forced(pair, found)
    sides = {
        "source": Side.of(tokenizers.source, source),
        "target": Side.of(target, [*written, EOS_ID]),
        "read": Side.of(target, [target.pad_id, *written]),
    }
    asked = Asked([*written, EOS_ID][0])
    return Reading(source, written, sides, found.text, [], asked)


def _generated(predictor: Generator, example: Any, output: str | Sequence[int] | None) -> Reading:
    tokenizer = predictor.tokenizer
    given = predictor.parse(example)
    if output is not None and not isinstance(output, str):
        ids = _known(output, tokenizer)
    else:
        text = given if output is None else predictor.parse(output)
        ids = list(predictor.encode(text, predictor.facts.decode).prefix)
    side = Side.of(tokenizer, [tokenizer.start_id, *ids])
    asked = Asked(ids[-1]) if ids and predictor.engine.kind != "elmo" else None
    return Reading(ids, None, {"source": side}, tokenizer.decode(ids), [], asked)


def _known(ids: Sequence[int], tokenizer: Tokenizer) -> list[int]:
    if not all(isinstance(one, int) and not isinstance(one, bool) and 0 <= one < tokenizer.vocab_size for one in ids):
        raise InputError("a token is not in the vocabulary", code="input.no_such_part")
    return list(ids)
