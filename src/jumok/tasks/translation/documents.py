"""Texts of documents translated sentence by sentence, with their line breaks and tags in their places."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jumok.engines import Done, nobody
from jumok.examples.pairs import Excerpt, Pair
from jumok.tasks.protocol import Failure, Note
from jumok.tasks.translation.predictor import Translation, Translator
from jumok.tasks.translation.words import token_spans
from jumok.text.markup import Markup, read_lines
from jumok.text.projection import Aligned
from jumok.text.segments import Segment

Document = Markup | Segment


def predict(
    translator: Translator, examples: Sequence[Any], *, done: Done = nobody, **options: Any
) -> list[Translation | Failure]:
    """Like `translator.predict`, except that each `Excerpt` is taken apart and put together again."""
    documents = [_document(example) if isinstance(example, Excerpt) else None for example in examples]
    asked: list[tuple[Any, bool]] = []
    for example, document in zip(examples, documents, strict=True):
        if document is None:
            asked.append((example, False))
            continue
        markup = _markup(document)
        marked = [one and translator.engine.attends for one in markup.aligned]
        asked += zip((Pair(text, None, example.where) for text in markup.sentences), marked, strict=True)
    outputs = iter(_predicted(translator, asked, options))
    found: list[Translation | Failure] = []
    for example, document in zip(examples, documents, strict=True):
        if document is None:
            found.append(next(outputs))
        else:
            own = [next(outputs) for _ in _markup(document).sentences]
            found.append(_together(translator, example.source, document, own))
    done(len(examples))
    return found


def _document(example: Excerpt) -> Document:
    return Segment(example.source) if example.form == "tmx" else read_lines(example.source)


def _markup(document: Document) -> Markup:
    return document.markup if isinstance(document, Segment) else document


def _predicted(
    translator: Translator, asked: Sequence[tuple[Any, bool]], options: dict[str, Any]
) -> list[Translation | Failure]:
    """The alignment costs a second look at a sentence, so only those with tags in them get one."""
    found: dict[int, Translation | Failure] = {}
    for marked in (False, True):
        places = [i for i, (_, one) in enumerate(asked) if one is marked]
        more = {"alignment": True} if marked else {}
        outputs = translator.predict([asked[i][0] for i in places], **options | more) if places else []
        found.update(zip(places, outputs, strict=True))
    return [found[i] for i in range(len(asked))]


def _together(
    translator: Translator, source: str, document: Document, outputs: list[Translation | Failure]
) -> Translation | Failure:
    good: list[Translation] = []
    for output in outputs:
        if isinstance(output, Failure):
            return output
        good.append(output)
    sentences = _markup(document).sentences
    if sentences == [source] and isinstance(document, Markup):
        return good[0]
    pairs = zip(sentences, good, strict=True)
    text = document.filled([aligned(translator, sentence, output) for sentence, output in pairs])
    notes = list[Note]()
    for note in (note for output in good for note in output.notes):
        if note not in notes:
            notes.append(note)
    return Translation(text, sum(output.score for output in good), [], notes=notes)


def aligned(translator: Translator, source: str, output: Translation) -> Aligned:
    """A translation with its alignment, if there is one, for tags to find their places."""
    if output.alignment is None:
        return Aligned(output.text)
    tokenizers = translator.tokenizers.filled(source)
    tokens = tokenizers.source.encode_with_offsets(source).offsets
    written = token_spans(tokenizers.target, output.ids)
    weights = np.asarray(output.alignment.weights)[: len(written), : len(tokens)]  # the end tokens left out
    return Aligned(output.text, written, tokens, weights)
