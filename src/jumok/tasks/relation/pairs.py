"""The pairs of entities to classify: those of kinds that occur in the training data."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jumok.examples.relations import Related, cannot_be_related
from jumok.tasks.relation import Order, RelationFacts
from jumok.tasks.relation.markers import Pieces
from jumok.text.span import Span


def admissible(examples: Iterable[Related]) -> dict[str, Any]:
    """The kinds of pairs in the training data, as facts."""
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
    """Which one comes first in the text; of two that start together, the shorter."""
    return "head_first" if (head.start, head.end) < (tail.start, tail.end) else "tail_first"


def overlap(head: Span, tail: Span) -> bool:
    return max(head.start, tail.start) < min(head.end, tail.end)


class Pairs:
    """The pairs to classify; types are compared case-insensitively."""

    def __init__(self, facts: RelationFacts, *, directed: bool) -> None:
        self.order, self.nested = facts.order, facts.nested
        self.directed = directed
        """whether the label shows which one is the head"""
        self.known = {(head.casefold(), tail.casefold()) for head, tail in facts.pairs}
        self.typed = not self.known <= {("", "")}
        """whether the training data has entity types"""

    def among(self, pieces: Pieces, entities: Sequence[Span], most: int) -> Iterator[tuple[Span, Span]]:
        """All pairs that fit into a row of `most` tokens, as head and tail; in one order if labels are directed."""
        places = [bisect_left(pieces.starts, entity.start) for entity in entities]
        for i, one in enumerate(entities):
            for place, other in zip(places[i + 1 :], entities[i + 1 :], strict=True):
                if place - places[i] >= most:
                    break
                if cannot_be_related(one, other):  # entities of two taggers may cross
                    continue
                ways = [way for way in ((one, other), (other, one)) if self.admits(*way)]
                yield from ways[:1] if self.directed else ways

    def admits(self, head: Span, tail: Span) -> bool:
        """Whether training has such pairs; where the order in the text decides on the head, types may be swapped."""
        if not self.nested and overlap(head, tail):
            return False
        if self.order != "any" and order_of(head, tail) != self.order:
            return False
        types = head.label.casefold(), tail.label.casefold()
        return not self.typed or types in self.known or (self.order != "any" and types[::-1] in self.known)
