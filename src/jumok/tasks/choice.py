"""Multiple choice: which of several endings follows a context (SWAG; Devlin et al. 2019, section 4.4).

Context and ending are read as a pair of texts, each pair gets one score, and a softmax goes over the endings.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.batching import Indices, shuffled_batches
from jumok.data.corpus import Corpus
from jumok.errors import DataError, InputError
from jumok.models import BertClassifier, RnnClassifier
from jumok.score.classification import accuracy_from, accuracy_statistics, perplexity_of, softmax
from jumok.score.significance import Comparison, Metric, Values, compare, scores_of
from jumok.tasks.one_text import OneTextPredictor, OneTextTask, scored
from jumok.tasks.predict import Done, line_places, nobody, plain_output, refuse_options
from jumok.tasks.reading import OnPage, Page, make_page, pages
from jumok.tasks.windows import Beside, LongTexts
from jumok.text.annotated import Choice, parse_choice
from jumok.text.objects import is_object
from jumok.text.tokenizer import Tokenizer
from jumok.train.loop import Loss

AnyChooser = BertClassifier | RnnClassifier
ENDINGS = "texts have endings that"


@dataclass(frozen=True, kw_only=True, slots=True)
class ChoiceConfig:
    """The task: one of several endings fits a context."""

    kind: Literal["choice"] = "choice"


def encode_choice(tokenizer: Tokenizer, example: Choice, long_texts: LongTexts) -> Beside[list[list[int]]]:
    """For each window of the context, the row of each ending; endings stay whole, and the context slides.

    An ending that takes more than half of the room is cut there, as everything is that follows it.
    """
    room = long_texts.max_len - len(tokenizer.frame([], []))
    endings = [tokenizer.encode(ending) for ending in example.endings]
    longest = max(map(len, endings))
    cut = longest > room // 2
    if cut:
        long_texts.parts(longest, room // 2, where=example.where)  # refuses, if that is the rule
        endings = [ending[: room // 2] for ending in endings]
    context = tokenizer.encode(example.context)
    room -= max(map(len, endings))
    parts = long_texts.parts(len(context), room, where=example.where)
    rows = [[tokenizer.frame(context[start:end], ending) for ending in endings] for start, end in parts]
    return Beside(rows, len(context) > room, cut)


def encode_choices(
    corpus: Corpus[Choice], tokenizer: Tokenizer, long_texts: LongTexts, facts: dict[str, Any]
) -> Iterator[Sequence[Sequence[int]]]:
    """The rows of all endings of every window, and which is right."""
    facts |= {"read": 0, "empty": 0, "too_long": 0, "long": 0, "cut": 0}
    n = 0
    for example in corpus:
        n = n or len(example.endings)
        if len(example.endings) != n:
            right = f"{n}, as many as the others"
            raise DataError(f"{len(example.endings)} endings", where=example.where, right=right)
        found = encode_choice(tokenizer, example, long_texts)
        facts["read"] += 1
        facts["long"] += found.long
        facts["cut"] += found.cut
        for rows in found.windows:
            yield *rows, [example.label]
    if not facts["read"]:
        raise DataError("empty corpus: no example", where=corpus.name, right="at least one example to train on")


@dataclass(frozen=True, slots=True)
class Batch(OnPage):
    page: Page
    """B x E rows, the endings of an example side by side"""
    labels: Tensor
    count: int


@dataclass(frozen=True, kw_only=True)
class ChoiceTask(OneTextTask[Choice]):
    """Batches, loss and evaluation for the training loop."""

    asked: ClassVar[str] = ENDINGS

    long_texts: LongTexts
    n_endings: int

    @property
    def width(self) -> int:
        return 1

    @property
    def fields(self) -> list[str]:
        return ending_fields(self.n_endings)

    def batches(self, epoch: int) -> Iterator[Indices]:
        tokens = max(self.batch_tokens // self.n_endings, 1)
        return shuffled_batches(self.train, self.fields, batch_tokens=tokens, seed=self.seed, epoch=epoch)

    def name(self, examples: Indices) -> str:
        first = self.train.fields[self.fields[0]]
        longest = max(examples, key=lambda i: len(first[i]))
        return f"{len(examples)} texts, the longest of them {self.tokenizer.decode(first[longest].tolist())!r}"

    def batch(self, examples: Indices) -> Batch:
        rows = [self.train.fields[name][i].tolist() for i in examples for name in self.fields]
        labels = torch.tensor([int(self.train.fields["label"][i][0]) for i in examples])
        return Batch(make_page(rows, self.tokenizer), labels, len(examples))

    def loss(self, model: AnyChooser, batch: Batch, *, done: float) -> Loss:
        page = batch.page.to(model.device)
        logits = model(page.ids, page.segments, page.mask).reshape(len(batch.labels), self.n_endings)
        return Loss(F.cross_entropy(logits, batch.labels.to(model.device), reduction="sum"), batch.count)

    def evaluate(self, model: AnyChooser) -> dict[str, float]:
        windows = [encode_choice(self.tokenizer, example, self.long_texts).windows for example in self.dev]
        found, gold = choose([model], self.tokenizer, windows), [example.label for example in self.dev]
        right = np.array([row[label] for row, label in zip(found, gold, strict=True)])
        said = [int(row.argmax()) for row in found]
        accuracy = float(accuracy_from(accuracy_statistics(said, gold).sum(axis=0)))
        return {"perplexity": perplexity_of(right), "accuracy": accuracy}

    def baseline_scores(self, examples: Sequence[Choice]) -> dict[str, dict[str, float]]:
        """What the place where the right ending most often stands would score."""
        places = [int(self.train.fields["label"][i][0]) for i in range(len(self.train))]
        said, gold = [int(np.bincount(places).argmax())] * len(examples), [example.label for example in examples]
        return {"majority": {"accuracy": float(accuracy_from(accuracy_statistics(said, gold).sum(axis=0)))}}


def ending_fields(n: int) -> list[str]:
    return [f"ending{i}" for i in range(n)]


def choose(
    models: Sequence[AnyChooser],
    tokenizer: Tokenizer,
    examples: Sequence[Sequence[Sequence[Sequence[int]]]],
    *,
    done: Done = nobody,
) -> list[Values]:
    """For each example, of which there are windows of rows, the probability of each ending: the mean over windows and
    models."""
    rows = [row for windows in examples for endings in windows for row in endings]
    scores = np.zeros((len(models), len(rows)))
    with torch.inference_mode():
        for some, page in pages(rows, tokenizer, models[0].device):
            for m, model in enumerate(models):
                scores[m, some] = model(page.ids, page.segments, page.mask)[:, 0].double().cpu().numpy()
    done(len(examples))
    found, at = [], 0
    for windows in examples:
        n = len(windows[0])
        here = scores[:, at : at + n * len(windows)].reshape(len(models), len(windows), n)
        at += n * len(windows)
        found.append(softmax(here.mean(axis=1)).mean(axis=0))
    return found


@dataclass(frozen=True, slots=True)
class Chosen:
    text: str
    """the ending that fits best"""
    label: int
    """its number, from 0"""
    probabilities: list[float]
    windows: int = 1
    """in how many parts the context was read"""
    truncated: bool = False
    """whether a part of context or endings was not read"""


class Chooser(OneTextPredictor[AnyChooser]):
    """One loaded model, or several as an ensemble."""

    def predict(self, texts: Sequence[str], *, done: Done = nobody, **options: Any) -> list[Chosen]:
        """Lines of JSON with `context` and `endings`, or all of them with tabs between."""
        refuse_options(options, "a choice")
        asked = [_asked(line, where) for line, where in zip(texts, line_places(texts), strict=True)]
        outputs = []
        for example, row, read in zip(asked, *self._believed(asked, done), strict=True):
            best, probabilities = int(row.argmax()), [round(float(p), 6) for p in row]
            outputs.append(Chosen(example.endings[best], best, probabilities, len(read.windows), read.truncated))
        return outputs

    def score(
        self, examples: Sequence[Choice], *, done: Done = nobody, **options: Any
    ) -> tuple[dict[str, Any], list[str]]:
        refuse_options(options, "a choice")
        statistics, said = self._statistics(examples, done)
        scores = scores_of([Metric("accuracy", statistics, accuracy_from)], rule="endings")
        outputs = [example.endings[i] for example, i in zip(examples, said, strict=True)]
        return scored(examples, scores), outputs

    def compare(
        self, other: "Chooser", examples: Sequence[Choice], *, done: Done = nobody, **options: Any
    ) -> list[Comparison]:
        refuse_options(options, "a choice")
        ours, theirs = (chooser._statistics(examples, done)[0] for chooser in (self, other))
        return [compare(ours, theirs, accuracy_from, metric="accuracy")]

    def plain(self, text: str, output: Chosen) -> dict[str, Any]:
        return plain_output(output)

    def _statistics(self, examples: Sequence[Choice], done: Done) -> tuple[Values, list[int]]:
        said = [int(row.argmax()) for row in self._believed(examples, done)[0]]
        return accuracy_statistics(said, [example.label for example in examples]), said

    def _believed(self, examples: Sequence[Choice], done: Done) -> tuple[list[Values], list[Beside[list[list[int]]]]]:
        read = [encode_choice(self.tokenizer, example, self.long_texts) for example in examples]
        self.long_texts.warn_beside(read, ENDINGS)
        windows = [found.windows for found in read]
        return choose(self.models, self.tokenizer, windows, done=done) if read else [], read


def _asked(line: str, where: str) -> Choice:
    context, *endings = line.split("\t")
    if is_object(line) or not endings and line.lstrip().startswith("{"):
        return parse_choice(line, where)
    if len(endings) < 2:
        right = 'a context and at least two endings with tabs between them, or {"context": …, "endings": […]}'
        raise InputError(f"{len(endings)} endings to choose from: {line[:60]!r}", where=where, right=right)
    return Choice(context, endings, -1, where)
