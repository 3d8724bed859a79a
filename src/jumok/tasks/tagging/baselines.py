"""Baselines for tagging: names that training knows, or the most frequent tag of a word.

Names are found as in the baseline of CoNLL-2003 (Tjong Kim Sang & De Meulder): the longest string of words that was an
entity in training, and more often one than not. Where tags mark no entities, such as parts of speech, every word gets
its most frequent tag, and an unknown word the most frequent tag of all.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from jumok.examples.spans import Spans
from jumok.score.significance import Metrics
from jumok.score.tagging import span_metrics, tag_metrics
from jumok.tasks.baseline import Baselines, some_of
from jumok.text.tags import Place

_EDGE = re.compile(r"(?<!\w)(?=\S)|(?<=\w)(?=[^\w\s])")


def learn_names(train: Iterable[Spans]) -> Baselines:
    types: dict[str, Counter[str]] = defaultdict(Counter)
    inside = False
    """whether names end inside words, as Korean ones do before particles"""
    for example in some_of(train):
        for span in example.marked:
            types[span.of(example.text)][span.label] += 1
            inside |= example.text[span.end : span.end + 1].isalnum()
    names = {name: counted.most_common(1)[0][0] for name, counted in types.items()}
    found: Counter[str] = Counter()
    for example in some_of(train):
        found.update(example.text[start:end] for _, start, end in _names_in(example.text, names, inside))
    known = {name: label for name, label in names.items() if 2 * types[name].total() > found[name]}

    def scored(examples: Sequence[Spans]) -> dict[str, Metrics]:
        gold = [[(span.label, span.start, span.end) for span in example.marked] for example in examples]
        places = [[*_names_in(example.text, known, inside)] for example in examples]
        return {"known_names": span_metrics(places, gold).only(["span_f1", "precision", "recall"])}

    return scored


def _names_in(text: str, names: dict[str, str], inside: bool) -> Iterator[Place]:
    """The longest known name at every beginning of a word, from left to right."""
    lengths, at = sorted({len(name) for name in names}, reverse=True), 0
    for edge in (match.start() for match in _EDGE.finditer(text)):
        if edge < at:
            continue
        for length in lengths:
            end = edge + length
            whole = inside or not text[end : end + 1].isalnum() or not text[end - 1 : end].isalnum()
            if end <= len(text) and whole and text[edge:end] in names:
                yield names[text[edge:end]], edge, end
                at = end
                break


def learn_tags(train: Iterable[Spans]) -> Baselines:
    tags: dict[str, Counter[str]] = defaultdict(Counter)
    for example in some_of(train):
        for word, tag in zip(example.words or (), example.gold_tags, strict=True):
            tags[word][tag] += 1
    every: Counter[str] = Counter()
    for counted in tags.values():
        every.update(counted)
    (usual, _), *_ = every.most_common(1)
    known = {word: counted.most_common(1)[0][0] for word, counted in tags.items()}

    def scored(examples: Sequence[Spans]) -> dict[str, Metrics]:
        found = [[known.get(word, usual) for word in example.words or ()] for example in examples]
        gold = [example.gold_tags for example in examples]
        return {"most_frequent_tag": tag_metrics(found, gold).only(["tag_accuracy"])}

    return scored
