"""What a pre-trained BERT can be asked: which word is masked, does B follow A, and a vector for a text."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from jumok.config import Count, read_config
from jumok.data.batching import sorted_batches
from jumok.data.shards import in_chunks
from jumok.errors import InputError
from jumok.models import Bert, BertPretraining
from jumok.score.significance import Comparison, Values, compare, score_with_interval
from jumok.tasks.batch import pad
from jumok.tasks.predict import Done, nobody, place, refuse_one_text
from jumok.tasks.pretraining import DEV_SEED, FRAME, PretrainingConfig, Reader, judge, read_passages, summary
from jumok.text.documents import Sentence
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import WORDPIECE_PREFIX

SCORE_TOKENS = PREDICT_TOKENS = 4096
TOGETHER = 256  # texts whose states are held in memory
Ask = Literal["fill", "follows", "embedding"]
Part = tuple[list[int], list[int] | None]
"""the pieces of a text, or of two"""


@dataclass(frozen=True, kw_only=True, slots=True)
class AskConfig:
    """What is asked of a pre-trained encoder."""

    ask: Ask | None = None
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
        assert tokenizer.layout.mask is not None
        self.mask = tokenizer.layout.mask

    def __call__(self, texts: Sequence[str], *, done: Done = nobody) -> list[str]:
        return [answer.text for answer in self.predict(texts, done=done)]

    def predict(self, texts: Sequence[str], *, done: Done = nobody, **options: Any) -> list[Answer]:
        """Answers in the order of the texts; `options` are fields of AskConfig."""
        refuse_one_text(texts)
        config = read_config(AskConfig, options, what="the question", path="")
        answers: list[Answer] = []
        with torch.inference_mode():
            for some in in_chunks(texts, TOGETHER):
                asked = [self._asked(text, config.ask) for text in some]
                parts = [self._parts(text, ask) for text, ask in zip(some, asked, strict=True)]
                states = iter(self._states([part for found in parts for part in found]))
                for text, ask, found in zip(some, asked, parts, strict=True):
                    answers.append(self._answer(text, ask, found, [next(states) for _ in found], config))
                done(len(some))
        return answers

    def plain(self, text: str, output: Answer) -> dict[str, Any]:
        return {key: value for key, value in asdict(output).items() if value is not None and value != []}

    def score(
        self, examples: Sequence[Sentence], *, done: Done = nobody, **options: Any
    ) -> tuple[dict[str, Any], list[str]]:
        """Loss and accuracy at masked pieces, accuracy of next-sentence prediction; there are no outputs."""
        statistics = self._judge(examples)
        done(len(examples))
        config = self._config()
        signature = (
            f"{100 * config.mask_share:g} % of {self.tokenizer.vocab_size} pieces"
            f"{' in whole words' if config.whole_words else ''}, at most {self.max_len} together, mask seed {DEV_SEED},"
            " bootstrap 1000 over passages, seed 12345, 95%"
        )
        scores = [score_with_interval(name, statistics, value, signature=signature) for name, value in METRICS]
        pairs = statistics[statistics[:, 4] > 0]  # a passage of one sentence is not asked what follows
        against = {}
        if len(pairs):
            scores.append(score_with_interval("next_sentence_accuracy", pairs, NEXT_SENTENCE, signature=signature))
            majority = summary(pairs.sum(axis=0))["next_sentence_majority"]
            against = {"baselines": {"majority": {"next_sentence_accuracy": majority}}}
        words = sum(len(sentence.text.split()) for sentence in examples)
        pieces = sum(map(len, self.tokenizer.encode_batch([sentence.text for sentence in examples])))
        return {
            "sentences": len(examples),
            "pieces_per_word": pieces / max(words, 1),
            "scores": {score.name: score.plain() for score in scores},
            **against,
        }, []

    def compare(
        self, other: "Encoder", examples: Sequence[Sentence], *, done: Done = nobody, **options: Any
    ) -> list[Comparison]:
        """At the same masks."""
        if self._masks() != other._masks():
            raise InputError("the runs mask differently", right="two runs with the same vocabulary, task and max_len")
        ours, theirs = self._judge(examples), other._judge(examples)
        done(2 * len(examples))
        return [compare(ours, theirs, value, metric=name) for name, value in METRICS[:1]]

    def _masks(self) -> tuple[str, int, PretrainingConfig]:
        """All that decides what is masked; a vocabulary says nothing of when it grew."""
        return self.tokenizer.sha256, self.max_len, replace(self._config(), new_pieces=0)

    def _config(self) -> PretrainingConfig:
        """With its defaults, which models from elsewhere do not spell out."""
        if not isinstance(self.model, BertPretraining):
            raise InputError("the model has no head to guess words with", right="a run of pre-training")
        return PretrainingConfig(**self.task)

    def _judge(self, examples: Sequence[Sentence]) -> Values:
        config, found = self._config(), read_passages(examples, self.tokenizer, self.max_len)
        assert isinstance(self.model, BertPretraining)
        return judge(
            self.model, Reader(config, self.tokenizer, found, max_len=self.max_len, seed=DEV_SEED), SCORE_TOKENS
        )

    def _asked(self, text: str, ask: Ask | None) -> Ask:
        """What is asked, told by the text if nothing else tells it; refused if there is no head that knows."""
        heads = self.model if isinstance(self.model, BertPretraining) else None
        if ask is None:
            if heads is None:
                return "embedding"
            if self.mask in text or not text.strip():  # an empty line has an empty answer
                return "fill"
            if "\t" not in text:
                right = f"a text with {self.mask}, two texts with a tab between them, or --set ask=embedding"
                raise InputError(f"nothing to guess in {text[:60]!r}", where=place(text), right=right)
            ask = "follows"
        if ask != "embedding" and (heads is None or (ask == "follows" and heads.next_sentence is None)):
            lacks = "words" if ask == "fill" else "whether one text follows another"
            raise InputError(f"the model has no head that tells {lacks}", right="--set ask=embedding")
        return ask

    def _parts(self, text: str, ask: Ask) -> list[Part]:
        """What is read for an answer: the text, or for a vector as many parts as it takes."""
        encode = self.tokenizer.encode
        match ask:
            case "embedding":
                ids, room = encode(text), self.max_len - FRAME
                return [(ids[at : at + room], None) for at in range(0, max(len(ids), 1), room)]
            case "fill":
                assert self.tokenizer.mask_id is not None
                first, *others = [encode(part) for part in text.split(self.mask)]
                part: Part = (first + [i for ids in others for i in (self.tokenizer.mask_id, *ids)], None)
            case "follows":
                a, tab, b = text.partition("\t")
                if not tab or not b.strip():
                    right = "A and B on a line, with a tab between them"
                    raise InputError(f"not two texts: {text[:60]!r}", where=place(text), right=right)
                part = encode(a), encode(b)
        pieces = len(self.tokenizer.frame(*part))
        if pieces > self.max_len:
            what = f"a text of {pieces} pieces: the model reads {self.max_len}"
            raise InputError(what, where=place(text), right="a shorter text")
        return [part]

    def _states(self, parts: Sequence[Part]) -> list[Tensor]:
        """The hidden states [n, D] of every part with its frame."""
        rows = [self.tokenizer.frame(*part) for part in parts]
        states: list[Tensor] = [torch.empty(0)] * len(rows)
        for chosen in sorted_batches(np.array([len(row) for row in rows], dtype=np.int64), PREDICT_TOKENS):
            ids = pad([rows[k] for k in chosen], self.tokenizer.pad_id)
            lengths = torch.tensor([[len(rows[k])] for k in chosen])
            seconds = torch.tensor([[len(parts[k][0]) + FRAME] for k in chosen])
            places = torch.arange(ids.shape[1])
            segments, mask = ((places >= seconds) & (places < lengths)).long(), places < lengths
            device = self.bert.device
            hidden = self.bert(ids.to(device), segments.to(device), mask.to(device)).cpu()
            for k, found, n in zip(chosen, hidden, lengths[:, 0].tolist(), strict=True):
                states[k] = found[:n]
        return states

    def _answer(
        self, text: str, ask: Ask, parts: Sequence[Part], states: Sequence[Tensor], config: AskConfig
    ) -> Answer:
        if ask == "embedding":
            chosen = torch.stack([found[0] for found in states]) if config.pooling == "cls" else torch.cat(list(states))
            vector = chosen.mean(dim=0).tolist()
            return Answer(" ".join(f"{x:.6g}" for x in vector), vector=vector)
        assert isinstance(self.model, BertPretraining)
        hidden = states[0].to(self.model.device)
        if ask == "follows":
            p = float(self.model.follows(hidden[:1]).softmax(dim=-1)[0, 0])
            return Answer(f"{'follows' if p >= 0.5 else 'does not follow'} ({p:.3f})", follows=p)
        masked = torch.tensor(self.tokenizer.frame(*parts[0])) == self.tokenizer.mask_id
        best = self.model.logits(hidden[masked]).softmax(dim=-1).topk(min(config.top_k, self.tokenizer.vocab_size))
        candidates = [
            [{"piece": piece, "score": score} for piece, score in zip(self.tokenizer.pieces(ids), p, strict=True)]
            for ids, p in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]
        for found in candidates:
            text = text.replace(self.mask, str(found[0]["piece"]).removeprefix(WORDPIECE_PREFIX), 1)
        return Answer(text, candidates)


def _mean(part: int, whole: int, scale: float = 1.0) -> Any:
    def value(statistics: Values) -> Values:
        found: Values = scale * statistics[..., part] / np.maximum(statistics[..., whole], 1)
        return found

    return value


METRICS = (
    ("masked_accuracy", _mean(1, 2, 100.0)),
    ("masked_loss", _mean(0, 2)),
    ("perplexity", lambda s: np.exp(np.minimum(_mean(0, 2)(s), 50.0))),
)
NEXT_SENTENCE = _mean(3, 4, 100.0)
