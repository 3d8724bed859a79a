"""Tagging: every word of a text gets a tag; entities are runs of tags.

A word is cut into pieces and its first piece carries its tag: what the tag says of the word does not depend on how
the tokenizer cuts it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.batching import Indices, sorted_batches
from jumok.data.corpus import Corpus
from jumok.errors import DataError, InputError
from jumok.models import RnnTagger
from jumok.score.significance import Comparison
from jumok.score.tagging import Span, compare_tags, quick_scores, score_tags, spans
from jumok.tasks.batch import pad
from jumok.tasks.one_text import OneTextTask
from jumok.tasks.predict import Done, nobody
from jumok.text.labelled import Tagged
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import UNK_ID
from jumok.train.loop import Loss

PREDICT_TOKENS = 16384


@dataclass(frozen=True, kw_only=True, slots=True)
class TaggingConfig:
    """The task: every word gets a tag."""

    kind: Literal["tagging"] = "tagging"


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded ids, the mask of the real positions, and where the words begin, with their tags' numbers."""

    ids: Tensor
    mask: Tensor
    firsts: Tensor
    """flat indices of the first piece of every word"""
    tags: Tensor
    count: int


def encode_words(tokenizer: Tokenizer, words: Sequence[str]) -> tuple[list[int], list[int]]:
    """The pieces of all words, and the place of each word's first one; a word without a piece becomes `<unk>`."""
    ids: list[int] = []
    firsts: list[int] = []
    for word in words:
        firsts.append(len(ids))
        ids += tokenizer.encode(word) or [UNK_ID]
    return ids, firsts


def collect_tags(corpus: Corpus[Tagged]) -> list[str]:
    """The tags of the training data, `O` first."""
    tags = {tag for sentence in corpus for tag in sentence.tags}
    if len(tags) < 2:
        right = "at least two tags to tell apart"
        raise DataError(f"{len(tags)} tag in the training data", where=corpus.name, right=right)
    return sorted(tags, key=lambda tag: (tag != "O", tag))


def encode_tagged(
    corpus: Corpus[Tagged], tokenizer: Tokenizer, tags: Sequence[str], max_len: int, facts: dict[str, Any]
) -> Iterator[Sequence[Sequence[int]]]:
    """Ids, places of the words and tags of every sentence that is to be trained on; `facts` counts the others."""
    facts |= {"read": 0, "empty": 0, "too_long": 0, "longest": 0}
    number = {tag: i for i, tag in enumerate(tags)}
    for sentence in corpus:
        ids, firsts = encode_words(tokenizer, sentence.words)
        facts["read"] += 1
        if len(ids) > max_len:
            facts["too_long"] += 1
        else:
            facts["longest"] = max(facts["longest"], len(ids))
            yield ids, firsts, [number[tag] for tag in sentence.tags]
    if facts["read"] == facts["too_long"]:
        counts = f"{facts['read']} sentences read, {facts['too_long']} too long"
        raise DataError(f"empty corpus: {counts}", where=corpus.name, right="at least one sentence to train on")


@dataclass(frozen=True, kw_only=True)
class TaggingTask(OneTextTask[Tagged]):
    """Batches, loss and evaluation for the training loop."""

    things = "sentences"

    def __post_init__(self) -> None:
        if not any(tag in self.labels for sentence in self.dev for tag in sentence.tags):
            right = f"tags such as {', '.join(self.labels)}"
            raise DataError("no tag of dev occurs in the training data", where=self.dev[0].where, right=right)

    def batch(self, examples: Indices) -> Batch:
        text, first, tag = (self.train.fields[name] for name in ("text", "first", "tag"))
        ids = pad([text[i].tolist() for i in examples], self.tokenizer.pad_id)
        firsts = [row * ids.shape[1] + int(place) for row, i in enumerate(examples) for place in first[i]]
        tags = torch.from_numpy(np.concatenate([tag[i] for i in examples]).astype(np.int64))
        return Batch(ids, ids != self.tokenizer.pad_id, torch.tensor(firsts), tags, len(tags))

    def loss(self, model: RnnTagger, batch: Batch, *, done: float) -> Loss:
        logits = model(batch.ids.to(model.device), batch.mask.to(model.device)).flatten(0, 1)
        chosen = logits.index_select(0, batch.firsts.to(model.device))
        return Loss(F.cross_entropy(chosen, batch.tags.to(model.device), reduction="sum"), batch.count)

    def evaluate(self, model: RnnTagger) -> dict[str, float]:
        """Dev perplexity of the tags, span F1 and tag accuracy."""
        number = {tag: i for i, tag in enumerate(self.labels)}
        found = tag_words([model], self.tokenizer, [sentence.words for sentence in self.dev])
        predicted = [[self.labels[int(i)] for i in row.argmax(axis=1)] for row in found]
        # A tag that was never trained on has no probability to look at.
        losses = [
            -np.log(max(float(row[place, number[tag]]), 1e-12))
            for row, sentence in zip(found, self.dev, strict=True)
            for place, tag in enumerate(sentence.tags)
            if tag in number
        ]
        scores = quick_scores(predicted, [sentence.tags for sentence in self.dev])
        return {"perplexity": float(np.exp(np.mean(losses))), **scores}


def tag_words(
    models: Sequence[RnnTagger], tokenizer: Tokenizer, sentences: Sequence[Sequence[str]], *, done: Done = nobody
) -> list[np.ndarray[Any, Any]]:
    """For each sentence the probabilities [words, tags], mean over the models."""
    encoded = [encode_words(tokenizer, words) for words in sentences]
    sizes = np.array([len(ids) for ids, _ in encoded], dtype=np.int64)
    found: list[Any] = [np.zeros((0, 0)) for _ in sentences]
    with torch.inference_mode():
        for batch in sorted_batches(sizes, PREDICT_TOKENS):
            rows = batch[sizes[batch] > 0]
            if len(rows):  # a text without a word has no tags
                ids = pad([encoded[i][0] for i in rows], tokenizer.pad_id).to(models[0].device)
                logits = [model(ids, ids != tokenizer.pad_id).softmax(dim=-1) for model in models]
                mean = torch.stack(logits).mean(dim=0).double().cpu().numpy()
                for place, i in enumerate(rows):
                    found[i] = mean[place, encoded[i][1]]
            done(len(batch))
    return found


@dataclass(frozen=True, slots=True)
class TaggedText:
    """The words of one text with their tags, how sure the model is of each, and the spans that they mark."""

    words: list[str]
    tags: list[str]
    probabilities: list[float]
    spans: list[Span]
    """type, first word, word after the last"""

    @property
    def text(self) -> str:
        return " ".join(f"{word}/{tag}" for word, tag in zip(self.words, self.tags, strict=True))


class Tagger:
    """One loaded model, or several as an ensemble."""

    def __init__(self, models: Sequence[RnnTagger], tokenizer: Tokenizer, facts: dict[str, Any]) -> None:
        self.models = list(models)
        self.tokenizer = tokenizer
        self.tokenizers = Tokenizers(tokenizer, tokenizer)
        self.labels: list[str] = facts["labels"]

    def __call__(self, texts: Sequence[str], *, done: Done = nobody) -> list[str]:
        return [tagged.text for tagged in self.predict(texts, done=done)]

    def predict(self, texts: Sequence[str], *, done: Done = nobody, **options: Any) -> list[TaggedText]:
        """Tagged words in the order of the texts; words are what white space separates."""
        return self._tag([text.split() for text in texts], done, options)

    def _tag(self, sentences: Sequence[list[str]], done: Done, options: dict[str, Any]) -> list[TaggedText]:
        if options:
            raise InputError(f"a tagger has no option {next(iter(options))}", right="no --set for this run")
        outputs = []
        for words, row in zip(
            sentences, tag_words(self.models, self.tokenizer, sentences, done=done) if sentences else [], strict=True
        ):
            tags = [self.labels[int(i)] for i in row.argmax(axis=1)] if words else []
            sure = [round(float(p), 6) for p in row.max(axis=1)] if words else []
            outputs.append(TaggedText(words, tags, sure, spans(tags)))
        return outputs

    def score(
        self, examples: Sequence[Tagged], *, done: Done = nobody, **options: Any
    ) -> tuple[dict[str, Any], list[str]]:
        """Scores with intervals of the tags for the examples' words, and the tagged texts."""
        found = self._tag([example.words for example in examples], done, options)
        scores = score_tags([tagged.tags for tagged in found], [example.tags for example in examples])
        result = {"sentences": len(examples), "scores": {score.name: score.plain() for score in scores}}
        return result, [tagged.text for tagged in found]

    def compare(
        self, other: "Tagger", examples: Sequence[Tagged], *, done: Done = nobody, **options: Any
    ) -> list[Comparison]:
        sentences = [example.words for example in examples]
        ours, theirs = ([tagged.tags for tagged in tagger._tag(sentences, done, options)] for tagger in (self, other))
        return compare_tags(ours, theirs, [example.tags for example in examples])

    def plain(self, text: str, output: TaggedText) -> dict[str, Any]:
        return asdict(output)
