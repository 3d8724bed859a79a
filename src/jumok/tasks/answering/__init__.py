"""Question answering: the answer is a span of the context (Devlin et al. 2019, sections 4.2 and 4.3).

The model scores every token as the start and as the end of the answer. If the row has no answer, both are at its first
token, where no answer can be.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from jumok.config import Count
from jumok.engines import Engine
from jumok.examples.made.data import ToyQuestions
from jumok.examples.questions import QuestionData
from jumok.findings import Finding
from jumok.models.head import Head
from jumok.tasks.checks import Checks
from jumok.tasks.protocol import TaskKind
from jumok.tasks.windows import WindowedFacts
from jumok.text.tokenizer import Tokenizers

START_AND_END = ["start", "end"]


@dataclass(frozen=True, kw_only=True, slots=True)
class AnsweringConfig:
    """The task: find the answer to a question in a text."""

    kind: Literal["answering"] = "answering"
    no_answer: bool = False
    """whether a question may have no answer"""
    max_answer: Count = 30
    """length of the longest answer, in tokens"""


@dataclass(frozen=True, kw_only=True, slots=True)
class AnsweringFacts(WindowedFacts):
    threshold: float = 0.0
    """margin by which an answer must outscore the absence of one"""


class AnsweringKind(TaskKind):
    name = "answering"
    config = AnsweringConfig
    data = (QuestionData, ToyQuestions)
    models = ("rnn", "bert")
    facts = AnsweringFacts
    decides = ("no_answer",)
    pipeline = "question-answering"
    architectures = {"bert": "BertForQuestionAnswering"}

    def metrics(self, config: AnsweringConfig) -> tuple[str, ...]:
        return "answer_f1", "exact_match"

    def head(self, config: Mapping[str, Any], facts: AnsweringFacts) -> Head:
        return Head(asks="pieces", n_labels=len(START_AND_END))

    def does(self, facts: AnsweringFacts) -> str:
        return "to answer questions about a text"

    def checks(self, config: AnsweringConfig, data: Any) -> Checks:
        from jumok.tasks.answering.checks import AnsweringChecks

        return AnsweringChecks(config, data)

    def examine_outputs(
        self, predictor: Any, examples: Sequence[Any], outputs: Sequence[str], result: Mapping[str, Any], split: str
    ) -> list[Finding]:
        from jumok.tasks.label_checks import examine_predictions

        return examine_predictions(examples, outputs, result, split=split)

    def predictor(
        self, engine: Engine, tokenizers: Tokenizers, config: Mapping[str, Any], facts: AnsweringFacts
    ) -> Any:
        from jumok.tasks.answering.predictor import Answerer

        known = {field.name: config[field.name] for field in fields(AnsweringConfig) if field.name in config}
        return Answerer(engine, tokenizers, AnsweringConfig(**known), facts)
