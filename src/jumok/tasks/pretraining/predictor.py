"""Use a pre-trained encoder: fill masks, predict whether B follows A, or embed a text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from jumok import html
from jumok.config import Count
from jumok.data.packing import Reader
from jumok.data.passages import FRAME, read_passages
from jumok.data.shards import in_chunks
from jumok.engines import Array, Done, Engine, nobody
from jumok.errors import InputError
from jumok.examples.documents import Sentence
from jumok.examples.plain import Text
from jumok.score.significance import Values
from jumok.tasks.attention import Attention
from jumok.tasks.pretraining import EncoderFacts, PretrainingConfig
from jumok.tasks.pretraining.scores import DEV_SEED, dev_scores, judge, majority_accuracy, pretraining_metrics
from jumok.tasks.protocol import Measured, Note, Predictor
from jumok.text.tokenizer import Tokenizers

SCORE_TOKENS = 4096
PIECES_TOGETHER, MASKS_TOGETHER = 1 << 15, 256  # limits on states, and on vocabulary distributions, in memory
Ask = Literal["fill", "follows", "embedding"]
NO_HEAD = {"fill": "masked words", "follows": "whether one text follows another"}


@dataclass(frozen=True, kw_only=True, slots=True)
class AskConfig:
    """Options of prediction."""

    ask: Ask | None = None
    """fill masks, predict whether B follows A (two texts separated by a tab), or embed; by default, fill for a text
    with a mask, and follows for two texts"""
    top_k: Count = 5
    """fill: number of candidates for each mask"""
    pooling: Literal["mean", "cls"] = "mean"
    """embedding: the mean of all token states, or the state of `[CLS]`"""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token for a mask, and its probability."""

    piece: str
    """the token"""
    score: float
    """its probability"""
    id: Annotated[int, Field(exclude=True)] = field(default=-1, repr=False)
    """the token's number in the vocabulary"""


@dataclass(frozen=True, slots=True)
class Encoded:
    """The output for one text; the other fields depend on the question."""

    text: str
    """the text with its masks filled, whether B follows A, or the vector"""
    candidates: list[list[Candidate]] = field(default_factory=list)
    """for each mask, best first"""
    follows: float | None = None
    """probability that B follows A"""
    vector: list[float] | None = None
    """embedding of the text"""
    notes: list[Note] = field(default_factory=list)
    """remarks, such as that the text was read in windows"""

    def _repr_html_(self) -> str:
        masks = [html.bars({candidate.piece: candidate.score for candidate in found}) for found in self.candidates]
        return html.block(html.line(self.text if self.vector is None else f"{len(self.vector)} values"), *masks)


@dataclass(frozen=True, slots=True)
class Asked:
    """An encoded question; only the embedding of a long text has several rows."""

    ask: Ask
    text: str
    rows: list[list[int]]


class Encoder(Predictor[Text, Encoded]):
    kind = "pretraining"
    example = Text
    answers = Encoded
    options = AskConfig

    def __init__(self, engine: Engine, tokenizers: Tokenizers, config: Mapping[str, Any], facts: EncoderFacts) -> None:
        self.engine, self.tokenizers, self.config = engine, tokenizers, dict(config)
        max_len, mask = facts.max_len or engine.longest, self.tokenizer.layout.mask
        assert max_len is not None
        assert mask is not None
        self.max_len, self.mask = max_len, mask

    def parse(self, given: Any, where: str = "") -> Text:
        """A line with a tab is a pair of texts."""
        if isinstance(given, str):
            text, tab, pair = given.partition("\t")
            given = Text(text, pair if tab else None, where)
        return super().parse(given, where)

    def encode(self, example: Text, options: AskConfig) -> Asked:
        text = example.text if example.pair is None else f"{example.text}\t{example.pair}"
        match ask := self._ask(example, text, options.ask):
            case "embedding":
                ids, room = self.tokenizer.encode(text), self.max_len - FRAME
                parts = [ids[at : at + room] for at in range(0, max(len(ids), 1), room)]
                return Asked(ask, text, [self.tokenizer.frame(part) for part in parts])
            case "fill":
                row = self.tokenizer.frame(self.tokenizer.encode_masked(text))
            case "follows":
                if example.pair is None or not example.pair.strip():
                    what, hint = f"not two texts: {text[:60]!r}", "separate A and B with a tab"
                    raise InputError(what, where=example.where, hint=hint, code="input.pair")
                row = self.tokenizer.frame(*self.tokenizer.encode_batch([example.text, example.pair]))
        self._refuse_long(row, example.where)
        return Asked(ask, text, [row])

    def _ask(self, example: Text, text: str, ask: Ask | None) -> Ask:
        """The question: the option, or what the text implies."""
        if ask is None:
            if not self.engine.can_fill:
                return "embedding"
            if self.mask in text or not text.strip():  # an empty line gives an empty output
                return "fill"
            if example.pair is None:
                hint = f"add {self.mask}, pass two texts separated by a tab, or use --set ask=embedding"
                what = f"nothing to predict in {text[:60]!r}"
                raise InputError(what, where=example.where, hint=hint, code="input.nothing_asked")
            ask = "follows"
        if ask != "embedding" and not (self.engine.can_fill if ask == "fill" else self.engine.can_follow):
            what = f"the model has no head that predicts {NO_HEAD[ask]}"
            raise InputError(what, where=example.where, hint="use --set ask=embedding", code="input.no_head")
        return ask

    def _refuse_long(self, row: Sequence[int], where: str) -> None:
        if len(row) > self.max_len:
            what = f"a text of {len(row)} tokens: the model reads at most {self.max_len}"
            raise InputError(what, where=where, hint="shorten the text", code="text.too_long")

    def answer(
        self, examples: Sequence[Text], read: Sequence[Asked], options: AskConfig, done: Done
    ) -> Iterator[Encoded]:
        def of(ask: Ask) -> list[Asked]:
            return [asked for asked in read if asked.ask == ask]

        answers = {
            "fill": self._filled(of("fill"), options.top_k, done),
            "follows": self._followed(of("follows"), done),
            "embedding": self._vectors(of("embedding"), options.pooling, done),
        }
        return (next(answers[asked.ask]) for asked in read)

    def about(self) -> dict[str, Any]:
        can = {"fill": self.engine.can_fill, "follows": self.engine.can_follow, "embedding": True}
        return {"mask": self.mask, "asks": [ask for ask, able in can.items() if able], "max_len": self.max_len}

    def completed(self, example: Text, output: Encoded) -> Text:
        """The text with its masks filled."""
        if output.vector is not None or output.follows is not None:
            return super().completed(example, output)
        return Text(output.text, where=example.where)

    def _filled(self, texts: Sequence[Asked], top_k: int, done: Done) -> Iterator[Encoded]:
        for some in in_chunks(texts, MASKS_TOGETHER, weight=lambda asked: 1 + asked.text.count(self.mask)):
            probabilities = self.engine.masked([asked.rows[0] for asked in some])
            done(len(some))
            for asked, of_masks in zip(some, probabilities, strict=True):
                candidates = [self._best(p, top_k) for p in of_masks]
                text = asked.text
                for found in candidates:
                    text = text.replace(self.mask, self.tokenizer.written(found[0].id), 1)
                yield Encoded(text, candidates)

    def _best(self, probabilities: Array, top_k: int) -> list[Candidate]:
        best = np.argsort(-probabilities, kind="stable")[:top_k]
        pieces = self.tokenizer.pieces(best.tolist())
        return [Candidate(piece, float(probabilities[i]), int(i)) for piece, i in zip(pieces, best, strict=True)]

    def _followed(self, texts: Sequence[Asked], done: Done) -> Iterator[Encoded]:
        for some in in_chunks(texts, PIECES_TOGETHER, weight=lambda asked: len(asked.rows[0])):
            probabilities = self.engine.follows([asked.rows[0] for asked in some])
            done(len(some))
            for p in probabilities.tolist():
                yield Encoded(f"{'follows' if p >= 0.5 else 'does not follow'} ({p:.3f})", follows=p)

    def _vectors(self, texts: Sequence[Asked], pooling: str, done: Done) -> Iterator[Encoded]:
        """The mean over all tokens of a text, or over the `[CLS]` of its windows."""
        sums: dict[int, Array] = {}
        rows = [(i, row, row is asked.rows[-1]) for i, asked in enumerate(texts) for row in asked.rows]
        for some in in_chunks(rows, PIECES_TOGETHER, weight=lambda part: len(part[1])):
            for (i, *_), states in zip(some, self.engine.states([row for _, row, _ in some]), strict=True):
                sums[i] = sums.get(i, 0.0) + (states[0] if pooling == "cls" else states.sum(axis=0))
            done(sum(last for *_, last in some))
        in_windows = Note("text.windows", f"texts with more than {self.max_len} tokens, read in windows")
        for i, asked in enumerate(texts):
            n = len(asked.rows) if pooling == "cls" else sum(map(len, asked.rows))
            vector = (sums[i] / n).tolist()
            notes = [in_windows] if len(asked.rows) > 1 else []
            yield Encoded(" ".join(f"{x:.6g}" for x in vector), vector=vector, notes=notes)

    def attention(self, example: Any, output: Any = None) -> dict[str, Attention]:
        read = self.parse(example)
        pair = None if read.pair is None else self.tokenizer.encode_masked(read.pair)
        row = self.tokenizer.frame(self.tokenizer.encode_masked(read.text), pair)
        self._refuse_long(row, read.where)
        tokens = self.tokenizer.pieces(row)
        return {name: Attention(tokens, tokens, weights) for name, weights in self.engine.attention(row).items()}

    def quick(self, examples: Sequence[Any]) -> dict[str, float]:
        return dev_scores(self._judge(examples))

    def measure(self, examples: Sequence[Any], *, done: Done = nobody, **options: Any) -> Measured:
        """Measures sentences of documents; compared in masked accuracy only. There are no outputs."""
        statistics, config = self._judge(examples), self._masks_of()
        done(len(examples))
        metrics = pretraining_metrics(
            statistics,
            f"{100 * config.mask_share:g} % of {self.tokenizer.vocab_size} pieces"
            f"{' in whole words' if config.whole_words else ''}, at most {self.max_len} together, mask seed {DEV_SEED},"
            " bootstrap {samples} over passages, seed {seed}, 95%",
        )
        words = sum(len(sentence.text.split()) for sentence in examples)
        tokens = sum(map(len, self.tokenizer.encode_batch([sentence.text for sentence in examples])))
        more: dict[str, Any] = {"pieces_per_word": tokens / max(words, 1)}
        if (majority := majority_accuracy(statistics)) is not None:
            more["baselines"] = {"majority": {"next_sentence_accuracy": majority}}
        return Measured(metrics, [], more, compared=metrics.only(["masked_accuracy"]))

    def require_comparable(self, other: "Encoder", examples: Sequence[Any]) -> None:
        if self._masks() != other._masks():
            hint = "compare two runs with the same vocabulary, task and max_len"
            raise InputError("the runs mask differently", hint=hint, code="input.other_masks")

    def _masks(self) -> tuple[str, int, PretrainingConfig]:
        """Everything that determines the masks; when the vocabulary grew does not matter."""
        return self.tokenizer.sha256, self.max_len, replace(self._masks_of(), new_pieces=0)

    def _masks_of(self) -> PretrainingConfig:
        """The [task] section, with defaults for keys that an imported model lacks."""
        if not self.engine.can_fill:
            what = f"the model has no head that predicts {NO_HEAD['fill']}"
            raise InputError(what, hint="use a run of pre-training", code="input.no_head")
        return PretrainingConfig(**self.config)

    def _judge(self, examples: Sequence[Sentence]) -> Values:
        config, found = self._masks_of(), read_passages(examples, self.tokenizer, self.max_len)
        reader = Reader(config, self.tokenizer, found, max_len=self.max_len, seed=DEV_SEED)
        return judge(self.engine, reader, SCORE_TOKENS)
