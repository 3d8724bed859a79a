"""Baselines for questions: the sentence with most of the question's words, and, where it is allowed, no answer.

Nothing is learned for them. A sentence is a poor answer, but shares words with the right one; F1 is what to compare.
"""

from collections.abc import Sequence

from jumok.examples.questions import Question
from jumok.score.answers import answer_metrics
from jumok.score.significance import Metrics
from jumok.text.bag import vocabulary
from jumok.text.sentences import sentence_spans


def score_baselines(examples: Sequence[Question], *, no_answer: bool) -> dict[str, Metrics]:
    said = {"sentence_in_common": [nearest_sentence(example) for example in examples]}
    if no_answer:
        said["no_answer"] = [""] * len(examples)
    gold = [[text for text, _ in example.gold] for example in examples]
    return {name: answer_metrics(answers, gold).only(["answer_f1"]) for name, answers in said.items()}


def nearest_sentence(example: Question) -> str:
    """The sentence of the context that has most words of the question; the shortest of several."""
    asked = vocabulary(example.question)
    sentences = [example.context[start:end] for start, end in sentence_spans(example.context)]
    return max(sentences, key=lambda sentence: (len(asked & vocabulary(sentence)), -len(sentence)), default="")
