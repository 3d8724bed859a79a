"""Learning to tag: batches, loss and evaluation for the training loop."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from torch import Tensor
from torch.nn import functional as F

from jumok.data.batching import Indices
from jumok.data.corpus import Corpus
from jumok.data.pages import OnPage, Page, make_page, pad
from jumok.engines.torch import TorchEngine
from jumok.errors import DataError
from jumok.examples.spans import Spans
from jumok.models.bert_heads import BertTagger
from jumok.models.rnn import RnnTagger
from jumok.tasks.one_text import OneTextTask
from jumok.tasks.prepare import Recipe, Recorded, prepare_shards, read_splits, refuse_long, text_tokenizer
from jumok.tasks.tagging import TaggingFacts
from jumok.tasks.tagging.predictor import Tagger
from jumok.tasks.tagging.units import CAPITALS, Units, gold_tags, is_peeled, particles_of, windows_of
from jumok.tasks.windows import LongTexts
from jumok.text.tokenizer import Tokenizer
from jumok.train.loop import Loss

AnyTagger = RnnTagger | BertTagger


def prepare(recipe: Recipe, cache: Path, *, fresh: bool = True) -> "TaggingTask":
    train, dev, test = read_splits(recipe, fresh=fresh)
    # A vocabulary of one's own has to know the mark of capitals.
    mark = [CAPITALS] if recipe.task.mark_capitals else []
    tokenizer = text_tokenizer(recipe, train, lambda example: [example.text, *mark], "".join(["tagged", *mark]), cache)
    long_texts = LongTexts.of(recipe.data)

    def write() -> Recorded:
        tags, units = collect_tags(train, mark_capitals=bool(mark))
        facts: dict[str, Any] = {"tags": tags, "units": units.plain()}
        rows = encode_tagged(train, tokenizer, tags, units, long_texts, facts)
        largest = max(tokenizer.vocab_size, len(tags), long_texts.max_len)
        return Recorded(rows, ("text", "first", "tag"), largest, facts)

    shards = prepare_shards(cache, ["spans", train.fingerprint(), tokenizer.sha256, *long_texts.key, *mark], write)
    units = Units.stored(shards.facts["units"])

    def read(example: Spans) -> object:
        found = units.read(tokenizer, example.text, example.words)
        return windows_of(found, tokenizer, long_texts, where=example.where)

    refuse_long(long_texts, [*dev, *test], read)
    task = TaggingTask(
        labels=shards.facts["tags"],
        units=units,
        train=shards,
        dev=dev,
        tokenizer=tokenizer,
        long_texts=long_texts,
        language=recipe.data.language,
        batch_tokens=recipe.train.batch_tokens,
        seed=recipe.seed,
    )
    if fresh:
        task.refuse_unknown_tags()
    return task


def collect_tags(corpus: Corpus[Spans], *, mark_capitals: bool = False) -> tuple[list[str], Units]:
    """The tags of the training data, `O` first; and what its units are, for the text that is to be tagged later."""
    tags: set[str] = set()
    particles: set[str] = set()
    attached = alone = 0
    of_pieces = False
    for example in corpus:
        if example.words is None:
            of_pieces = True
            tags |= {"O", *(f"{prefix}-{span.label}" for span in example.marked for prefix in "BI")}
            particles |= {*particles_of(example)}
            continue
        tags |= set(example.gold_tags)
        more = is_peeled(example.words)
        attached, alone = attached + more[0], alone + more[1]
    if len(tags) < 2:
        hint = "at least two tags to tell apart"
        raise DataError(f"{len(tags)} tag in the training data", where=corpus.name, hint=hint, code="data.one_tag")
    units = Units(
        of="pieces" if of_pieces else "words",
        peel=alone > attached,
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
    """Ids, places of the units and their tags of every window; `facts` counts what is left out, and long texts."""
    facts |= {"read": 0, "empty": 0, "too_long": 0, "long": 0, "inexact": 0}
    number = {tag: i for i, tag in enumerate(tags)}
    for example in corpus:
        facts["read"] += 1
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
    if facts["read"] == facts["empty"]:
        what = f"empty corpus: {facts['read']} texts read, none with a word"
        raise DataError(what, where=corpus.name, hint="at least one text to train on", code="data.empty")


@dataclass(frozen=True, slots=True)
class Batch(OnPage):
    page: Page
    places: Tensor
    """[B, U]: where on the page the units stand"""
    mask: Tensor
    """[B, U]: which of them are there"""
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
        return cast(TaggingFacts, self.windowed_facts(kind=TaggingFacts, units=self.units.plain()))

    def notes(self) -> list[str]:
        inexact = self.train.facts["inexact"]
        note = f"{inexact:,} spans begin or end inside a piece: the whole piece gets their tag"
        return [*super().notes(), *([note] if inexact else [])]

    def refuse_unknown_tags(self) -> None:
        """Dev data of which training knows no tag is of another kind, or of another corpus."""
        for example in self.dev:
            read = self.units.read(self.tokenizer, example.text, example.words)
            if not {*self.labels}.isdisjoint(gold_tags(example, read, self.units)[0]):
                return
        raise DataError(
            "no tag of dev occurs in the training data",
            where=self.dev[0].where,
            hint=f"tags such as {', '.join(self.labels)}",
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

    def evaluate(self, model: AnyTagger) -> dict[str, float]:
        return Tagger(TorchEngine([model], self.tokenizers), self.tokenizers, self.facts).quick(self.dev)
