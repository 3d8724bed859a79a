"""Which two entities of a text are asked about: pairs such as training has relations of."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jumok.examples.relations import Related, cannot_be_related
from jumok.tasks.relation import Order, RelationFacts
from jumok.tasks.relation.markers import Pieces
from jumok.text.span import Span


def admissible(examples: Iterable[Related]) -> dict[str, Any]:
    """The pairs of the training data, as facts."""
    pairs: set[tuple[str, str]] = set()
    orders: set[Order] = set()
    nested = False
    for example in examples:
        pairs.add((example.head.label, example.tail.label))
        orders.add(order_of(example.head, example.tail))
        nested = nested or overlap(example.head, example.tail)
    order = orders.pop() if len(orders) == 1 else "any"
    return {"pairs": [list(pair) for pair in sorted(pairs)], "order": order, "nested": nested}


def order_of(head: Span, tail: Span) -> Order:
    """Which one the text has first; of two that begin together, the shorter."""
    return "head_first" if (head.start, head.end) < (tail.start, tail.end) else "tail_first"


def overlap(head: Span, tail: Span) -> bool:
    return max(head.start, tail.start) < min(head.end, tail.end)


class Pairs:
    """What a model is asked about; types are compared without regard to case."""

    def __init__(self, facts: RelationFacts, *, directed: bool) -> None:
        self.order, self.nested = facts.order, facts.nested
        self.directed = directed
        """whether the label says which one is the head"""
        self.known = {(head.casefold(), tail.casefold()) for head, tail in facts.pairs}
        self.typed = not self.known <= {("", "")}
        """whether the data said what its entities are"""

    def among(self, pieces: Pieces, entities: Sequence[Span], most: int) -> Iterator[tuple[Span, Span]]:
        """Every two that a row of `most` pieces has room for, as head and tail; once where labels have a direction."""
        places = [bisect_left(pieces.starts, entity.start) for entity in entities]
        for i, one in enumerate(entities):
            for place, other in zip(places[i + 1 :], entities[i + 1 :], strict=True):
                if place - places[i] >= most:
                    break
                if cannot_be_related(one, other):  # of two taggers: they cross
                    continue
                ways = [way for way in ((one, other), (other, one)) if self.admits(*way)]
                yield from ways[:1] if self.directed else ways

    def admits(self, head: Span, tail: Span) -> bool:
        """Whether training has such pairs; where the order in the text makes one the head, the types do not."""
        if not self.nested and overlap(head, tail):
            return False
        if self.order != "any" and order_of(head, tail) != self.order:
            return False
        types = head.label.casefold(), tail.label.casefold()
        return not self.typed or types in self.known or (self.order != "any" and types[::-1] in self.known)
