"""Multiple choice: which of several endings follows a context (SWAG; Devlin et al. 2019, section 4.4).

The model reads context and ending as a pair of texts and scores each pair; a softmax goes over the endings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from jumok.engines import Engine
from jumok.examples.choices import ChoiceData
from jumok.examples.made.data import ToyChoices
from jumok.findings import Finding
from jumok.models.head import Head
from jumok.tasks.checks import Checks
from jumok.tasks.protocol import TaskKind
from jumok.tasks.windows import WindowedFacts
from jumok.text.tokenizer import Tokenizers


@dataclass(frozen=True, kw_only=True, slots=True)
class ChoiceConfig:
    """The task: choose the ending that fits a context."""

    kind: Literal["choice"] = "choice"


class ChoiceKind(TaskKind):
    name = "choice"
    config = ChoiceConfig
    data = (ChoiceData, ToyChoices)
    models = ("rnn", "bert")
    facts = WindowedFacts
    pipeline = "multiple-choice"
    architectures = {"bert": "BertForMultipleChoice"}

    def metrics(self, config: ChoiceConfig) -> tuple[str, ...]:
        return "perplexity", "accuracy"

    def head(self, config: Mapping[str, Any], facts: WindowedFacts) -> Head:
        return Head(asks="text", n_labels=1)

    def does(self, facts: WindowedFacts) -> str:
        return "to choose the ending that fits"

    def checks(self, config: ChoiceConfig, data: Any) -> Checks:
        from jumok.tasks.choice.checks import ChoiceChecks

        return ChoiceChecks(config, data)

    def examine_outputs(
        self, predictor: Any, examples: Sequence[Any], outputs: Sequence[str], result: Mapping[str, Any], split: str
    ) -> list[Finding]:
        from jumok.tasks.label_checks import examine_predictions

        return examine_predictions(examples, outputs, result, split=split)

    def predictor(self, engine: Engine, tokenizers: Tokenizers, config: Mapping[str, Any], facts: WindowedFacts) -> Any:
        from jumok.tasks.choice.predictor import Chooser

        return Chooser(engine, tokenizers, facts)
