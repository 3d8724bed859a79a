"""Classification by a language model: the label is written after the text, and the likeliest label is the answer.

Radford et al. 2018 ("GPT"), section 3.2: a text model takes the task as text, and goes on learning the text itself
beside it. Here the label is text, too, so that the model stays the language model that it was, and needs no head.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jumok.data.batching import Indices, sorted_batches
from jumok.data.corpus import Corpus
from jumok.errors import DataError
from jumok.models import Gpt
from jumok.nn.attention import causal_mask
from jumok.nn.cross_entropy import linear_cross_entropy
from jumok.score.classification import softmax
from jumok.score.significance import Values
from jumok.tasks.baseline import baselines
from jumok.tasks.classification import ClassificationConfig, evaluated
from jumok.tasks.language_model import Batch as TextBatch
from jumok.tasks.language_model import make_batch
from jumok.tasks.one_text import OneTextTask
from jumok.tasks.predict import Done, nobody
from jumok.tasks.reading import PREDICT_TOKENS
from jumok.tasks.targets import Classes
from jumok.tasks.windows import Framed, LongTexts
from jumok.text.labelled import Labelled
from jumok.text.tokenizer import Tokenizer
from jumok.train.loop import Loss

AT_ONCE = 128
"""pieces of labels that are read after a text together"""
STATES = 1024  # whose words are weighed at once: each has as many as the vocabulary


def label_ids(tokenizer: Tokenizer, labels: Sequence[str]) -> list[list[int]]:
    """Each label on a line of its own, and its end, without which 1 would be the beginning of 10."""
    found: dict[tuple[int, ...], str] = {}
    for label in labels:
        other = found.setdefault((*tokenizer.encode(f"\n{label}"), tokenizer.end_id), label)
        if other != label:
            what = f"the vocabulary reads the labels {other!r} and {label!r} alike, so that a model cannot write both"
            raise DataError(what, right="labels that differ in what the vocabulary knows and does not fold")
    return [*map(list, found)]


def encode_prompt(
    tokenizer: Tokenizer, example: Labelled, labels: Sequence[Sequence[int]], long_texts: LongTexts
) -> Framed:
    """The windows of a text, the second text of a pair on a line of its own, with room for the longest label."""
    room = long_texts.max_len - max(map(len, labels))
    text, pair = tokenizer.encode(example.text), [] if example.pair is None else tokenizer.encode(f"\n{example.pair}")
    parts = long_texts.pair_parts(len(text), len(pair), room, where=example.where)
    rows = [[*text[slice(*first)], *pair[slice(*second)]] for first, second in parts]
    return Framed(rows, len(text) + len(pair) > room)


def encode_prompts(
    corpus: Corpus[Labelled], tokenizer: Tokenizer, targets: Classes, long_texts: LongTexts, facts: dict[str, Any]
) -> Iterator[Sequence[Sequence[int]]]:
    """The windows of every text that is not empty, each with the ids of the label that is to be written after it."""
    facts |= {"read": 0, "empty": 0, "too_long": 0, "long": 0}
    labels = label_ids(tokenizer, targets.labels)
    for example in corpus:
        framed = encode_prompt(tokenizer, example, labels, long_texts)
        facts["read"] += 1
        facts["long"] += framed.long
        if framed.rows == [[]]:
            facts["empty"] += 1
            continue
        for row in framed.rows:
            yield row, labels[targets.stored(example)[0]]
    if facts["read"] == facts["empty"]:
        what = f"empty corpus: {facts['read']} texts read, all of them empty"
        raise DataError(what, where=corpus.name, right="at least one text to train on")


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts with their labels after them."""

    texts: TextBatch
    is_label: Tensor
    """of the real positions, whether a piece of the label is predicted there"""
    count: tuple[int, int]
    """pieces of labels, pieces of texts"""

    @property
    def tokens(self) -> int:
        return self.texts.count


@dataclass(frozen=True, kw_only=True)
class VerbalTask(OneTextTask[Labelled]):
    """Batches, loss and evaluation for the training loop."""

    losses: ClassVar[tuple[str, ...]] = ("label", "text")

    config: ClassificationConfig
    targets: Classes
    long_texts: LongTexts
    pair: bool

    @property
    def facts(self) -> dict[str, Any]:
        return {"pair": self.pair}

    def batch(self, examples: Indices) -> Batch:
        text, label = ([self.train.fields[name][i].tolist() for i in examples] for name in ("text", "label"))
        texts = make_batch([a + b for a, b in zip(text, label, strict=True)], self.tokenizer.start_id)
        of_label = [torch.arange(len(a) + len(b)) >= len(a) for a, b in zip(text, label, strict=True)]
        is_label = torch.cat(of_label)
        n = int(is_label.sum())
        return Batch(texts, is_label, (n, len(is_label) - n))

    def loss(self, model: Gpt, batch: Batch, *, done: float) -> Loss:
        """Of the label, and a share of that of the text, the auxiliary objective of section 3.2."""
        texts, is_label = batch.texts.to(model.device), batch.is_label.to(model.device)
        hidden, targets = model(texts.read)[texts.real], texts.next[texts.real]
        label, text = (
            linear_cross_entropy(hidden[chosen], model.projection, targets[chosen]) for chosen in (is_label, ~is_label)
        )
        return Loss(torch.stack([label, self.config.text_loss * text]), batch.count)

    def evaluate(self, model: Gpt) -> dict[str, float]:
        labels = label_ids(self.tokenizer, self.targets.labels)
        prompts = [encode_prompt(self.tokenizer, example, labels, self.long_texts) for example in self.dev]
        believed = classify_in_words([model], self.tokenizer, prompts, self.targets.labels)
        return evaluated(self.targets, believed, self.targets.gold(self.dev))

    def baseline_scores(self, examples: Sequence[Labelled]) -> dict[str, dict[str, float]]:
        """What the most frequent label, and a bag of words, would score."""
        text, label = self.train.fields["text"], self.train.fields["label"]
        labels = label_ids(self.tokenizer, self.targets.labels)
        number = {tuple(ids): i for i, ids in enumerate(labels)}
        train = ((text[i], [number[tuple(label[i].tolist())]]) for i in range(len(self.train)))
        rows = [encode_prompt(self.tokenizer, example, labels, self.long_texts).rows for example in examples]
        gold = self.targets.gold(examples)
        found = baselines(self.targets, train, rows)
        return {name: self.targets.quick(decided, gold) for name, decided in found.items()}


@dataclass(frozen=True, slots=True)
class Branches:
    """Labels that go on from the same text: which state says each of their pieces, counted from the text's last."""

    label: npt.NDArray[np.int64]
    """[K]: of each of K pieces the label that it is of"""
    piece: npt.NDArray[np.int64]
    state: npt.NDArray[np.int64]
    read: npt.NDArray[np.int64]
    """[R]: pieces that are read after the text, the last of each label not among them"""
    place: npt.NDArray[np.int64]
    """[R]: their places in their labels, from one"""
    owner: npt.NDArray[np.int64]
    """[R]: their labels, from one"""

    @staticmethod
    def of(labels: Mapping[int, Sequence[int]]) -> "Branches":
        """Of labels by their number."""
        label: list[int] = []
        piece: list[int] = []
        state: list[int] = []
        read: list[tuple[int, int, int]] = []
        for number, ids in labels.items():
            label += [number] * len(ids)
            piece += ids
            state += [0, *range(len(read) + 1, len(read) + len(ids))]  # all begin where the text ends
            read += [(one, place, number + 1) for place, one in enumerate(ids[:-1], start=1)]
        columns = np.array(read, dtype=np.int64).reshape(-1, 3).T
        return Branches(*(np.array(column, dtype=np.int64) for column in (label, piece, state, *columns)))

    def grow(self, model: Gpt, prompts: Sequence[Sequence[int]], start_id: int) -> Values:
        """[B, K]: log p of each piece after each text. The text is read once; labels see it and not each other."""
        ends = np.array([len(prompt) for prompt in prompts])
        width = 1 + int(ends.max()) + len(self.read)
        ids, positions, owner = (np.zeros((len(prompts), width), dtype=np.int64) for _ in range(3))
        ids += start_id
        for row, prompt in enumerate(prompts):
            end = 1 + len(prompt)
            ids[row, 1:end] = prompt
            positions[row, :end] = np.arange(end)
            after = slice(end, end + len(self.read))
            ids[row, after], positions[row, after], owner[row, after] = self.read, len(prompt) + self.place, self.owner
        of, device = torch.from_numpy(owner), model.device
        sees = ((of[:, None] == 0) | (of[:, None] == of[..., None])) & causal_mask(width, width, device=of.device)
        hidden = model(
            torch.from_numpy(ids).to(device), positions=torch.from_numpy(positions).to(device), sees=sees.to(device)
        )
        places = torch.from_numpy(ends[:, None] + np.arange(1 + len(self.read))).to(device)
        states = hidden[torch.arange(len(prompts), device=device)[:, None], places]
        some = states.flatten(0, 1).split(STATES)
        all_words = torch.cat([model.logits(part).logsumexp(dim=-1) for part in some]).view(places.shape)
        state, piece = self.state.tolist(), self.piece.tolist()
        this_word = (states[:, state] * model.projection[piece]).sum(dim=-1)
        found: Values = (this_word - all_words[:, state]).double().cpu().numpy()
        return found


def classify_in_words(
    models: Sequence[Gpt], tokenizer: Tokenizer, texts: Sequence[Framed], labels: Sequence[str], *, done: Done = nobody
) -> Values:
    """[n, labels]: how likely each label is to be what the model writes after a text.

    As with other classes, windows are merged before they become probabilities, models after.
    """
    ends = label_ids(tokenizer, labels)
    prompts = [row for framed in texts for row in framed.rows]
    logits = np.zeros((len(models), len(prompts), len(ends)))
    with torch.inference_mode():
        for some_labels in _handfuls(ends):
            branches = Branches.of({i: ends[i] for i in some_labels})
            sizes = np.array([1 + len(prompt) + len(branches.read) for prompt in prompts], dtype=np.int64)
            for some in sorted_batches(sizes, PREDICT_TOKENS):
                for of_model, model in zip(logits, models, strict=True):
                    found = branches.grow(model, [prompts[i] for i in some], tokenizer.start_id)
                    np.add.at(of_model, (some[:, None], branches.label), found)
    windows = np.array([len(framed.rows) for framed in texts], dtype=np.int64)
    means = np.add.reduceat(logits, np.cumsum(windows) - windows, axis=1) / windows[:, None]
    done(len(texts))
    believed: Values = softmax(means).mean(axis=0)
    return believed


def _handfuls(labels: Sequence[Sequence[int]]) -> Iterator[range]:
    """Numbers of labels that are read together: few enough that they take no more time than a text does."""
    first, pieces = 0, 0
    for number, ids in enumerate(labels):
        pieces += len(ids)
        if pieces > AT_ONCE and number > first:
            yield range(first, number)
            first, pieces = number, len(ids)
    yield range(first, len(labels))
