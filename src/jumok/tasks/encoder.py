"""What a pre-trained BERT can be asked: which word is masked, does B follow A, and a vector for a text."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from jumok.config import Count, read_config
from jumok.errors import InputError
from jumok.models import Bert, BertPretraining
from jumok.score.significance import Comparison, Values, compare, score_with_interval
from jumok.tasks.batch import pad
from jumok.tasks.predict import Done, nobody
from jumok.tasks.pretraining import DEV_SEED, FRAME, PretrainingConfig, Reader, judge, read_passages
from jumok.text.documents import Sentence
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import WORDPIECE_PREFIX

SCORE_TOKENS = 4096
BATCH = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class AskConfig:
    """What is asked of a pre-trained encoder."""

    ask: Literal["fill", "follows", "embedding"] | None = None
    """the masked words, whether B follows A (two texts with a tab between them), or a vector; if not given: the masked
    words of a text with a mask, follows of two texts"""
    top_k: Count = 5
    """fill: candidates for each mask"""
    pooling: Literal["mean", "cls"] = "mean"
    """embedding: the mean of all pieces' states, or the state of `[CLS]`"""


@dataclass(frozen=True, slots=True)
class Answer:
    """`text` is what a line of output says; the rest is what was asked for."""

    text: str
    candidates: list[list[dict[str, Any]]] = field(default_factory=list)
    """of every mask: `piece` and `score`, best first"""
    follows: float | None = None
    vector: list[float] | None = None


class Encoder:
    """One loaded model."""

    def __init__(self, model: BertPretraining | Bert, tokenizer: Tokenizer, facts: dict[str, Any]) -> None:
        self.model = model
        self.bert = model.bert if isinstance(model, BertPretraining) else model
        self.tokenizer = tokenizer
        self.tokenizers = Tokenizers(tokenizer, tokenizer)
        self.max_len: int = facts.get("max_len") or self.bert.config.max_len
        self.task: dict[str, Any] = facts["task"]

    def __call__(self, texts: Sequence[str], *, done: Done = nobody) -> list[str]:
        return [answer.text for answer in self.predict(texts, done=done)]

    def predict(self, texts: Sequence[str], *, done: Done = nobody, **options: Any) -> list[Answer]:
        """Answers in the order of the texts; `options` are fields of AskConfig."""
        config = read_config(AskConfig, options, what="the question", path="")
        answers = []
        with torch.inference_mode():
            for text in texts:
                answers.append(self._answer(text, config))
                done(1)
        return answers

    def plain(self, text: str, output: Answer) -> dict[str, Any]:
        return {key: value for key, value in asdict(output).items() if value or key == "text"}

    def score(
        self, examples: Sequence[Sentence], *, done: Done = nobody, **options: Any
    ) -> tuple[dict[str, Any], list[str]]:
        """Loss and accuracy at masked pieces, accuracy of next-sentence prediction; there are no outputs."""
        statistics = self._judge(examples)
        done(len(examples))
        config = PretrainingConfig(**self.task)
        signature = (
            f"{100 * config.mask_share:g} % of {self.tokenizer.vocab_size} pieces"
            f"{' in whole words' if config.whole_words else ''}, at most {self.max_len} together, mask seed {DEV_SEED},"
            " bootstrap 1000 over passages, seed 12345, 95%"
        )
        names = METRICS if statistics[:, 4].any() else METRICS[:3]
        scores = [score_with_interval(name, statistics, value, signature=signature) for name, value in names]
        words = sum(len(sentence.text.split()) for sentence in examples)
        pieces = sum(map(len, self.tokenizer.encode_batch([sentence.text for sentence in examples])))
        return {
            "sentences": len(examples),
            "pieces_per_word": pieces / max(words, 1),
            "scores": {score.name: score.plain() for score in scores},
        }, []

    def compare(
        self, other: "Encoder", examples: Sequence[Sentence], *, done: Done = nobody, **options: Any
    ) -> list[Comparison]:
        """At the same masks."""
        if self.tokenizer.sha256 != other.tokenizer.sha256 or self.task != other.task or self.max_len != other.max_len:
            raise InputError("the runs mask differently", right="two runs with the same vocabulary, task and max_len")
        ours, theirs = self._judge(examples), other._judge(examples)
        done(2 * len(examples))
        return [compare(ours, theirs, value, metric=name) for name, value in METRICS[:1]]

    def _judge(self, examples: Sequence[Sentence]) -> Values:
        if not isinstance(self.model, BertPretraining):
            raise InputError("the model has no head to guess words with", right="a run of pre-training")
        found = read_passages(examples, self.tokenizer, self.max_len)
        config = PretrainingConfig(**self.task)
        return judge(
            self.model, Reader(config, self.tokenizer, found, max_len=self.max_len, seed=DEV_SEED), SCORE_TOKENS
        )

    def _answer(self, text: str, config: AskConfig) -> Answer:
        mask = self.tokenizer.layout.mask
        assert mask is not None
        heads = isinstance(self.model, BertPretraining)
        ask = config.ask or ("fill" if mask in text and heads else "follows" if "\t" in text and heads else None)
        match ask:
            case "fill" if isinstance(self.model, BertPretraining):
                return self._fill(self.model, text, mask, config.top_k)
            case "follows" if isinstance(self.model, BertPretraining) and self.model.next_sentence is not None:
                return self._follows(self.model, text)
            case "fill" | "follows":
                lacks = "words" if ask == "fill" else "whether one text follows another"
                raise InputError(f"the model has no head that tells {lacks}", right="--set ask=embedding")
            case "embedding":
                return self._embed(text, config.pooling)
        if not heads:
            return self._embed(text, config.pooling)
        raise InputError(
            f"nothing to guess in {text[:60]!r}",
            right=f"a text with {mask}, two texts with a tab between them, or --set ask=embedding",
        )

    def _fill(self, model: BertPretraining, text: str, mask: str, top_k: int) -> Answer:
        parts = [self.tokenizer.encode(part) for part in text.split(mask)]
        assert self.tokenizer.mask_id is not None
        ids = parts[0]
        for part in parts[1:]:
            ids = [*ids, self.tokenizer.mask_id, *part]
        hidden, rows = self._read([self._fitting(ids)])
        masked = (rows == self.tokenizer.mask_id).nonzero(as_tuple=True)
        best = model.logits(hidden[masked]).softmax(dim=-1).topk(min(top_k, self.tokenizer.vocab_size))
        candidates = [
            [
                {"piece": piece, "score": score}
                for piece, score in zip(self.tokenizer.pieces(row_ids), row_scores, strict=True)
            ]
            for row_ids, row_scores in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]
        for found in candidates:
            text = text.replace(mask, str(found[0]["piece"]).removeprefix(WORDPIECE_PREFIX), 1)
        return Answer(text, candidates)

    def _follows(self, model: BertPretraining, text: str) -> Answer:
        a, tab, b = text.partition("\t")
        if not tab or not b.strip():
            raise InputError(f"not two texts: {text[:60]!r}", right="A and B on a line, with a tab between them")
        hidden, _ = self._read([self._fitting(self.tokenizer.encode(a), self.tokenizer.encode(b))])
        p = float(model.follows(hidden[:, 0]).softmax(dim=-1)[0, 0])
        return Answer(f"{'follows' if p >= 0.5 else 'does not follow'} ({p:.3f})", follows=p)

    def _embed(self, text: str, pooling: str) -> Answer:
        """A text that is too long is read in parts: the mean is over all their pieces, or over their `[CLS]`."""
        ids, room = self.tokenizer.encode(text), self.max_len - FRAME
        parts = [(ids[at : at + room], None) for at in range(0, max(len(ids), 1), room)]
        total, count = torch.zeros(self.bert.config.d_model), 0
        for start in range(0, len(parts), BATCH):
            hidden, rows = self._read(parts[start : start + BATCH])
            chosen = hidden[:, 0] if pooling == "cls" else hidden[rows != self.tokenizer.pad_id]
            total += chosen.sum(dim=0).cpu()
            count += len(chosen)
        vector = (total / count).tolist()
        return Answer(" ".join(f"{x:.6g}" for x in vector), vector=vector)

    def _fitting(self, a: list[int], b: list[int] | None = None) -> tuple[list[int], list[int] | None]:
        pieces = len(self.tokenizer.frame(a, b))
        if pieces > self.max_len:
            raise InputError(f"a text of {pieces} pieces: the model reads {self.max_len}", right="a shorter text")
        return a, b

    def _read(self, texts: Sequence[tuple[list[int], list[int] | None]]) -> tuple[Tensor, Tensor]:
        """Hidden states [B, S, D] and ids [B, S] of framed texts."""
        rows = [self.tokenizer.frame(a, b) for a, b in texts]
        ids = pad(rows, self.tokenizer.pad_id)
        firsts = torch.tensor(
            [[len(a) + FRAME if b is not None else len(row)] for (a, b), row in zip(texts, rows, strict=True)]
        )
        lengths = torch.tensor([[len(row)] for row in rows])
        places = torch.arange(ids.shape[1])
        segments, mask = ((places >= firsts) & (places < lengths)).long(), places < lengths
        device = self.bert.device
        ids = ids.to(device)
        return self.bert(ids, segments.to(device), mask.to(device)), ids


def _mean(part: int, whole: int, scale: float = 1.0) -> Any:
    def value(statistics: Values) -> Values:
        found: Values = scale * statistics[..., part] / np.maximum(statistics[..., whole], 1)
        return found

    return value


METRICS = (
    ("masked_accuracy", _mean(1, 2, 100.0)),
    ("masked_loss", _mean(0, 2)),
    ("perplexity", lambda s: np.exp(np.minimum(_mean(0, 2)(s), 50.0))),
    ("next_sentence_accuracy", _mean(3, 4, 100.0)),
)
