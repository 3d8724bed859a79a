"""Train tagging: data, batches, loss and evaluation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from jumok.data.batching import Indices
from jumok.data.cache import Cache
from jumok.data.corpus import Corpus
from jumok.data.pages import OnPage, Page, make_page, pad
from jumok.engines import Done, nobody
from jumok.engines.torch import TorchEngine
from jumok.errors import DataError
from jumok.examples.spans import Spans
from jumok.models.bert_heads import BertTagger
from jumok.models.rnn import RnnTagger
from jumok.tasks.one_text import OneTextTask
from jumok.tasks.prepare import Preparation, Recipe, Recorded, counted, read_splits
from jumok.tasks.tagging import TaggingFacts
from jumok.tasks.tagging.predictor import Tagger
from jumok.tasks.tagging.units import CAPITALS, Endings, Units, gold_tags, is_peeled, particles_of, windows_of
from jumok.tasks.windows import LongTexts
from jumok.text.tokenizer import Tokenizer
from jumok.train.loop import Loss

AnyTagger = RnnTagger | BertTagger


def prepare(recipe: Recipe, cache: Cache, *, fresh: bool = True) -> "TaggingTask":
    # A trained vocabulary must contain the mark of capitals.
    mark = [CAPITALS] if recipe.task.mark_capitals else []
    splits, key = read_splits(recipe, fresh=fresh), "".join(["tagged", *mark])
    prepared = Preparation.of(recipe, cache, splits, lambda example: [example.text, *mark], key)

    def write() -> Recorded:
        tags, units = collect_tags(prepared.train, mark_capitals=bool(mark))
        facts: dict[str, Any] = {"tags": tags, "units": units.plain()}
        rows = encode_tagged(prepared.train, prepared.tokenizer, tags, units, prepared.long_texts, facts)
        largest = max(prepared.tokenizer.vocab_size, len(tags), prepared.long_texts.max_len)
        return Recorded(rows, ("text", "first", "tag"), largest, facts)

    shards = prepared.shards("spans with endings", write, *mark)
    units = Units.stored(shards.facts["units"])

    def encode(tokenizer: Tokenizer, example: Spans, long_texts: LongTexts) -> object:
        read = units.read(tokenizer, example.text, example.words)
        return windows_of(read, tokenizer, long_texts, where=example.where)

    prepared.refuse_long(encode)
    task = TaggingTask(labels=shards.facts["tags"], units=units, **prepared.arguments(shards))
    if fresh:
        task.refuse_unknown_tags()
    return task


def collect_tags(corpus: Corpus[Spans], *, mark_capitals: bool = False) -> tuple[list[str], Units]:
    """The tags of the training data, `O` first, and its units, for reading raw text in prediction."""
    tags: set[str] = set()
    particles: set[str] = set()
    endings = Endings()
    attached = alone = 0
    of_pieces = False
    for example in corpus:
        if example.words is None:
            of_pieces = True
            tags |= {"O", *(f"{prefix}-{span.label}" for span in example.marked for prefix in "BI")}
            particles |= {*particles_of(example)}
            continue
        tags |= set(example.gold_tags)
        endings.add(example.words)
        more = is_peeled(example.words)
        attached, alone = attached + more[0], alone + more[1]
    if len(tags) < 2:
        hint = "use data with at least two tags"
        raise DataError(f"{len(tags)} tag in the training data", where=corpus.name, hint=hint, code="data.one_tag")
    units = Units(
        of="pieces" if of_pieces else "words",
        peel=alone > attached,
        endings=frozenset() if of_pieces else endings.learned(),
        particles=frozenset(particles),
        capitals=mark_capitals,
    )
    return sorted(tags, key=lambda tag: (tag != "O", tag)), units


def encode_tagged(
    corpus: Corpus[Spans],
    tokenizer: Tokenizer,
    tags: Sequence[str],
    units: Units,
    long_texts: LongTexts,
    facts: dict[str, Any],
) -> Iterator[Sequence[Sequence[int]]]:
    """Ids, unit positions and tags of every window; `facts` counts examples that are left out, and long texts."""
    facts |= {"inexact": 0}
    number = {tag: i for i, tag in enumerate(tags)}
    for example in counted(corpus, facts):
        read = units.read(tokenizer, example.text, example.words)
        gold, inexact = gold_tags(example, read, units)
        facts["inexact"] += inexact
        if not read.units:
            facts["empty"] += 1
            continue
        found = windows_of(read, tokenizer, long_texts, where=example.where)
        facts["long"] += len(found) > 1 or len(found[0].units) < len(read.units)
        for window in found:
            if window.units:
                yield window.row, window.places, [number[gold[unit]] for unit in window.units]


@dataclass(frozen=True, slots=True)
class Batch(OnPage):
    page: Page
    places: Tensor
    """[B, U]: positions of the units in the rows"""
    mask: Tensor
    """[B, U]: True at units, False at padding"""
    tags: Tensor
    count: int


@dataclass(frozen=True, kw_only=True)
class TaggingTask(OneTextTask[Spans]):
    """Batches, loss and evaluation for the training loop."""

    things = "sentences"

    long_texts: LongTexts
    units: Units

    @property
    def facts(self) -> TaggingFacts:
        return self.windowed_facts(TaggingFacts, units=self.units.plain())

    def notes(self) -> list[str]:
        inexact = self.train.facts["inexact"]
        note = f"{inexact:,} spans begin or end inside a token: the whole token gets their tag"
        return [*super().notes(), *([note] if inexact else [])]

    def refuse_unknown_tags(self) -> None:
        """Refuse dev data that shares no tag with training: it is of another kind, or of another corpus."""
        for example in self.dev:
            read = self.units.read(self.tokenizer, example.text, example.words)
            if not {*self.labels}.isdisjoint(gold_tags(example, read, self.units)[0]):
                return
        raise DataError(
            "no tag of dev occurs in the training data",
            where=self.dev[0].where,
            hint=f"use the tags of the training data: {', '.join(self.labels)}",
            code="data.unknown_tags",
        )

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

    def evaluate(self, model: AnyTagger, *, done: Done = nobody) -> dict[str, float]:
        return Tagger(TorchEngine([model], self.tokenizers, done), self.tokenizers, self.facts).quick(self.dev)
