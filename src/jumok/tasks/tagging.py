"""Tagging: every unit of a text gets a tag; entities are runs of tags."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.batching import Indices, sorted_batches
from jumok.data.corpus import Corpus
from jumok.errors import DataError
from jumok.models import BertTagger, RnnTagger
from jumok.score.significance import Values
from jumok.score.tagging import quick_scores, quick_spans
from jumok.tasks.batch import pad
from jumok.tasks.one_text import OneTextTask
from jumok.tasks.predict import Done, nobody
from jumok.tasks.reading import PREDICT_TOKENS, OnPage, Page, make_page, pages
from jumok.tasks.units import Read, Units, in_characters, is_peeled, particles_of, places_of, tags_of, windows_of
from jumok.tasks.windows import LongTexts
from jumok.text.annotated import Marked
from jumok.text.labelled import Tagged
from jumok.text.tokenizer import Tokenizer
from jumok.train.loop import Loss

AnyTagger = RnnTagger | BertTagger
Example = Tagged | Marked


@dataclass(frozen=True, kw_only=True, slots=True)
class TaggingConfig:
    """The task: every word gets a tag, or the pieces of marked entities do."""

    kind: Literal["tagging"] = "tagging"
    crf: bool = False
    """a conditional random field on top, which knows what tags follow each other"""
    mark_capitals: bool = False
    """for vocabularies that fold case: a word with capitals is followed by a mark, one of capitals only by two"""


@dataclass(frozen=True, slots=True)
class Batch(OnPage):
    """What is read; where in it the units stand [B, U], which of those are there, and their tags."""

    page: Page
    places: Tensor
    mask: Tensor
    tags: Tensor
    count: int


def collect_tags(corpus: Corpus[Example], *, mark_capitals: bool = False) -> tuple[list[str], Units]:
    """The tags of the training data, `O` first; and what its units are, for the text that is to be tagged later."""
    tags: set[str] = set()
    particles: set[str] = set()
    attached = alone = 0
    marked = False
    for example in corpus:
        if isinstance(example, Marked):
            marked = True
            tags |= {"O", *(f"{prefix}-{mark.label}" for mark in example.marks for prefix in "BI")}
            particles |= {*particles_of(example)}
            continue
        tags |= set(example.tags)
        more = is_peeled(example.words)
        attached, alone = attached + more[0], alone + more[1]
    if len(tags) < 2:
        right = "at least two tags to tell apart"
        raise DataError(f"{len(tags)} tag in the training data", where=corpus.name, right=right)
    of: Literal["words", "pieces"] = "pieces" if marked else "words"
    units = Units(of=of, peel=alone > attached, particles=frozenset(particles), capitals=mark_capitals)
    return sorted(tags, key=lambda tag: (tag != "O", tag)), units


def encode_tagged(
    corpus: Corpus[Example],
    tokenizer: Tokenizer,
    tags: Sequence[str],
    units: Units,
    long_texts: LongTexts,
    facts: dict[str, Any],
) -> Iterator[Sequence[Sequence[int]]]:
    """Ids, places of the units and their tags of every window; `facts` counts what is left out, and long texts."""
    facts |= {"read": 0, "empty": 0, "too_long": 0, "long": 0, "inexact": 0}
    number = {tag: i for i, tag in enumerate(tags)}
    for example in corpus:
        facts["read"] += 1
        read, gold, inexact = aligned(tokenizer, example, units)
        facts["inexact"] += inexact
        if not read.units:
            facts["empty"] += 1
            continue
        found = windows_of(read, tokenizer, long_texts, where=example.where)
        facts["long"] += len(found) > 1 or len(found[0].units) < len(read.units)
        for window in found:
            if window.units:
                yield window.row, window.places, [number[gold[unit]] for unit in window.units]
    if facts["read"] == facts["empty"]:
        what = f"empty corpus: {facts['read']} texts read, none with a word"
        raise DataError(what, where=corpus.name, right="at least one text to train on")


def aligned(tokenizer: Tokenizer, example: Example, units: Units) -> tuple[Read, list[str], int]:
    """The pieces of an example, the tags of its units, and how many of its marks do not fit its pieces."""
    read = units.read_example(tokenizer, example)
    if isinstance(example, Marked):
        tags, inexact = tags_of(example.marks, read.units)
        return read, tags, inexact
    return read, example.tags, 0


@dataclass(frozen=True, kw_only=True)
class TaggingTask(OneTextTask[Example]):
    """Batches, loss and evaluation for the training loop."""

    things = "sentences"

    long_texts: LongTexts
    units: Units

    @property
    def facts(self) -> dict[str, Any]:
        return {"units": self.units.plain()}

    def __post_init__(self) -> None:
        gold = (tag for example in self.dev for tag in aligned(self.tokenizer, example, self.units)[1])
        if not any(tag in self.labels for tag in gold):
            right = f"tags such as {', '.join(self.labels)}"
            raise DataError("no tag of dev occurs in the training data", where=self.dev[0].where, right=right)

    def batch(self, examples: Indices) -> Batch:
        text, first, tag = (
            [self.train.fields[name][i].tolist() for i in examples] for name in ("text", "first", "tag")
        )
        count = sum(map(len, tag))
        places = pad(first, -1)
        return Batch(make_page(text, self.tokenizer), places.clamp(min=0), places >= 0, pad(tag, 0), count)

    def loss(self, model: AnyTagger, batch: Batch, *, done: float) -> Loss:
        page, places, mask = batch.page.to(model.device), batch.places.to(model.device), batch.mask.to(model.device)
        tags = batch.tags.to(model.device)
        logits = model(page.ids, page.segments, page.mask)
        emissions = logits.gather(1, places[..., None].expand(-1, -1, logits.shape[-1]))
        if model.crf is not None:
            return Loss(-model.crf.log_likelihood(emissions, tags, mask).sum(), batch.count)
        return Loss(F.cross_entropy(emissions[mask], tags[mask], reduction="sum"), batch.count)

    def evaluate(self, model: AnyTagger) -> dict[str, float]:
        """Dev perplexity and accuracy of the tags, and span F1, which of marked texts is one of characters."""
        number = {tag: i for i, tag in enumerate(self.labels)}
        reads, gold, _ = zip(*(aligned(self.tokenizer, example, self.units) for example in self.dev), strict=True)
        found = tag_units([model], self.tokenizer, reads, self.labels, self.long_texts)
        # A tag that was never trained on has no probability to look at.
        losses = [
            -np.log(max(float(tagged.probabilities[place, number[tag]]), 1e-12))
            for tagged, tags in zip(found, gold, strict=True)
            for place, tag in enumerate(tags)
            if tag in number
        ]
        scores = {"perplexity": float(np.exp(np.mean(losses)))}
        scores |= quick_scores([tagged.tags for tagged in found], gold)
        if self.units.of == "words":
            return scores
        said = [in_characters(tagged.tags, read.units) for tagged, read in zip(found, reads, strict=True)]
        return scores | quick_spans(said, [marked_spans(example) for example in self.dev])


def marked_spans(example: Example) -> list[tuple[str, int, int]]:
    """What a person has marked, by characters; of words, a space stands between any two."""
    if isinstance(example, Tagged):
        return in_characters(example.tags, places_of(example.words))
    return [(mark.label, mark.start, mark.end) for mark in example.marks]


@dataclass(frozen=True, slots=True)
class TaggedUnits:
    """The tags of a text's units, and the probabilities [units, tags]."""

    tags: list[str]
    probabilities: Values


def tag_units(
    models: Sequence[AnyTagger],
    tokenizer: Tokenizer,
    texts: Sequence[Read],
    labels: Sequence[str],
    long_texts: LongTexts,
    *,
    done: Done = nobody,
) -> list[TaggedUnits]:
    """Tags in the order of the texts, by the mean of the models; what a truncated text has lost gets `O`."""
    windows = [(i, window) for i, read in enumerate(texts) for window in windows_of(read, tokenizer, long_texts)]
    lost = np.where(np.arange(len(labels)) == (labels.index("O") if "O" in labels else 0), 0.0, -1e4)
    emissions = [np.tile(lost, (len(models), len(read.units), 1)) for read in texts]
    rows, device = [window.row for _, window in windows], models[0].device
    with torch.inference_mode():
        for some, page in pages(rows, tokenizer, device):
            found = torch.stack([model(page.ids, page.segments, page.mask) for model in models]).cpu().numpy()
            for place, i in enumerate(some):
                text, window = windows[i]
                emissions[text][:, window.units] = found[:, place, window.places]
        tagged = _decided(models, emissions, labels)
    done(len(texts))
    return tagged


def _decided(models: Sequence[AnyTagger], emissions: Sequence[Values], labels: Sequence[str]) -> list[TaggedUnits]:
    """From the emissions of each text [models, units, tags]; a CRF reads texts of about one length together."""
    sizes = np.array([each.shape[1] for each in emissions], dtype=np.int64)
    tagged = [TaggedUnits([], np.zeros((0, len(labels))))] * len(emissions)
    for some in sorted_batches(sizes, PREDICT_TOKENS) if sizes.any() else ():
        e = torch.zeros(len(models), len(some), int(max(sizes[some].max(), 1)), len(labels))
        for place, i in enumerate(some):
            e[:, place, : sizes[i]] = torch.from_numpy(emissions[i])
        e = e.to(models[0].device)
        here = torch.arange(e.shape[2], device=e.device) < torch.tensor(sizes[some], device=e.device)[:, None]
        by_model = [
            each.softmax(dim=-1) if model.crf is None else model.crf.marginals(each, here)
            for model, each in zip(models, e, strict=True)
        ]
        probabilities = torch.stack(by_model).mean(dim=0).double().cpu().numpy()
        crf = models[0].crf if len(models) == 1 else None
        best = probabilities.argmax(axis=2) if crf is None else crf.best(e[0], here).cpu().numpy()
        for place, i in enumerate(some):
            tags = [labels[int(tag)] for tag in best[place, : sizes[i]]]
            tagged[i] = TaggedUnits(tags, probabilities[place, : sizes[i]])
    return tagged
