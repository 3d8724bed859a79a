"""Samples of dev in the events of a training."""

from dataclasses import dataclass

from jumok.examples.labelled import Labelled
from jumok.examples.pairs import Pair
from jumok.examples.plain import Text
from jumok.examples.relations import Related
from jumok.tasks.protocol import Failure
from jumok.text.span import Span
from jumok.train.loop import Evaluated, Step
from jumok.train.samples import LONGEST, MOST, Sample, Sampled, answers, chosen, with_samples


@dataclass
class Said:
    text: str


class Backwards:
    """Says the source backwards, and fails on an empty one."""

    kind = "translation"

    def predict(self, examples, **options):
        assert not options
        texts = [getattr(one, "source", None) or getattr(one, "text", "") for one in examples]
        return [Said(text[::-1]) if text else Failure("x", "empty") for text in texts]


def step(n):
    return Step(n, 0, 1.0, 0.1, 1.0, 10, 0.1)


def test_samples_follow_evaluations_and_come_early_before_the_first():
    events = [step(n) for n in range(1, 101)] + [Evaluated(100, {}, True), step(101)]
    found = list(with_samples(events, lambda: [Sample("a", "b", "c")], every=100))
    assert [event.step for event in found if isinstance(event, Sampled)] == [3, 6, 12, 25, 50, 100]
    assert [event for event in found if not isinstance(event, Sampled)] == events
    assert list(with_samples(events, list, every=100)) == events


def test_what_can_be_shown_is_chosen():
    pairs = [Pair(str(n), "x") for n in range(20)]
    assert chosen(pairs) == pairs[:MOST]
    assert chosen([Labelled("text", None, "label")]) == [Labelled("text", None, "label")]
    assert chosen([Text("one two three four five six seven"), Text("short")]) == [Text("one two three four five")]
    assert chosen([object()]) == []
    assert chosen(object()) == chosen(None) == []


def test_a_relation_is_shown_with_its_two_entities():
    one = Related("Ada knows Bo", Span(0, 3, "PERSON"), Span(10, 12, "PERSON"), "knows")
    assert answers(Backwards(), [one])[0].source == "Ada knows Bo · Ada · Bo"


def test_answers_have_source_and_gold_and_are_short():
    found = answers(Backwards(), [Pair("abc", "x"), Pair("", "y"), Pair("z" * 1000, "w")])
    assert found[:2] == [Sample("abc", "x", "cba"), Sample("", "y", "")]
    assert {len(found[2].source), len(found[2].output)} == {LONGEST}
