"""Generated examples for tasks on one text: simple enough to learn in half a minute, too many to list.

reviews   Korean opinions; negation flips the label, so a bag of words is not enough
names     English sentences in which the same word may be a person or a place: the context decides
grammar   sentences of a small English grammar, whose verbs agree with nouns a few words earlier
"""

from collections.abc import Callable, Iterator
from hashlib import blake2b
from random import Random
from typing import TypeVar

from jumok.examples import Split
from jumok.examples.documents import Sentence
from jumok.examples.labelled import Labelled
from jumok.examples.spans import Spans

VERSION = 1  # increased when the same arguments give different examples


Example = TypeVar("Example")


_SUBJECTS = ("이 영화는", "배우들의 연기는", "음악은", "줄거리는", "결말은", "감독의 연출은", "화면은", "대사는")


_DEGREES = ("", "정말", "너무", "아주", "생각보다", "솔직히", "끝까지", "조금")


_GOOD = (
    ("재미있다", "재미있지"),
    ("훌륭하다", "훌륭하지"),
    ("아름답다", "아름답지"),
    ("감동적이다", "감동적이지"),
    ("완벽하다", "완벽하지"),
)


_BAD = (
    ("지루하다", "지루하지"),
    ("어색하다", "어색하지"),
    ("엉망이다", "엉망이지"),
    ("답답하다", "답답하지"),
    ("유치하다", "유치하지"),
)


_BOTH = ("Paris", "Florence", "Austin", "Chelsea", "Madison", "Jordan", "Sydney", "Georgia")


_FIRST = ("Ada", "Grace", "Alan", "Mina", "Yuna", "Omar", "Ines", "Pavel", *_BOTH)


_LAST = ("Kim", "Park", "Okafor", "Silva", "Novak", "Lindgren", "Tanaka", "Moreau")


_PLACES = ("Busan", "Oslo", "Lagos", "Lima", "Kyoto", "Turin", *_BOTH)


_NEW = ("New", "Upper", "Old")


_NOUNS = (("cat", "cats"), ("child", "children"), ("bird", "birds"), ("ship", "ships"), ("tree", "trees"))


_VERBS = (("sleeps", "sleep"), ("waits", "wait"), ("shines", "shine"), ("falls", "fall"), ("sings", "sing"))


_WHERE = ("near the river", "behind the old house", "in the rain", "under a bridge", "")


def review(rng: Random) -> tuple[str, str]:
    """A Korean opinion of one or two clauses, and its label, which the last clause decides."""
    clauses = []
    label = ""
    for _ in range(rng.choice((1, 1, 2))):
        good = rng.random() < 0.5
        plain, negated = rng.choice(_GOOD if good else _BAD)
        turned = rng.random() < 0.4
        words = [rng.choice(_SUBJECTS), rng.choice(_DEGREES), f"{negated} 않다" if turned else plain]
        clauses.append(" ".join(filter(None, words)))
        label = "긍정" if good != turned else "부정"
    return " 그런데 ".join(clauses), label


def sentence_with_names(rng: Random) -> tuple[list[str], list[str]]:
    """Words with IOB2 tags."""

    def person() -> list[tuple[str, str]]:
        first = [(rng.choice(_FIRST), "B-PER")]
        return first + ([(rng.choice(_LAST), "I-PER")] if rng.random() < 0.5 else [])

    def place() -> list[tuple[str, str]]:
        name = rng.choice(_PLACES)
        return [(rng.choice(_NEW), "B-LOC"), (name, "I-LOC")] if rng.random() < 0.3 else [(name, "B-LOC")]

    def plain(text: str) -> list[tuple[str, str]]:
        return [(word, "O") for word in text.split()]

    shapes: tuple[Callable[[], list[tuple[str, str]]], ...] = (
        lambda: [*person(), *plain("moved from"), *place(), *plain("to"), *place(), *plain(".")],
        lambda: [*person(), *plain("and"), *person(), *plain("met in"), *place(), *plain("last year .")],
        lambda: [*plain("In"), *place(), *plain("nobody knew"), *person(), *plain(".")],
        lambda: [*plain("Yesterday"), *person(), *plain("wrote to"), *person(), *plain("from"), *place(), *plain(".")],
    )
    words, tags = zip(*rng.choice(shapes)(), strict=True)
    return list(words), list(tags)


def grammatical_sentence(rng: Random) -> str:
    """A noun, optional words in between, and a verb of the same number."""
    number = rng.randrange(2)
    return _sentence_of(rng.choice(_NOUNS)[number], number, rng)


def story(rng: Random) -> list[str]:
    """Sentences about one noun, which shows that they belong together."""
    number, noun = rng.randrange(2), rng.choice(_NOUNS)
    return [_sentence_of(noun[number], number, rng) + "." for _ in range(rng.randint(3, 6))]


def _sentence_of(noun: str, number: int, rng: Random) -> str:
    verb, between = rng.choice(_VERBS)[number], rng.choice(_WHERE)
    return " ".join(filter(None, ["the", noun, between, verb, rng.choice(("today", "again", "quietly", ""))]))


def held_apart(
    make: Callable[[Random], Example], text: Callable[[Example], str], split: Split, *, n: int, seed: int
) -> Iterator[Example]:
    """Yield n examples of a split; the hash of its text decides to which split an example belongs.

    Training examples may repeat; dev and test are the same for every seed and have each text once.
    """
    rng = Random(f"{VERSION} {split} {seed if split == 'train' else ''}")
    seen: set[str] = set()
    draws = 0
    while n > 0 and draws < 1000 * n + 100_000:
        draws += 1
        example = make(rng)
        said = text(example)
        if _split_of(said) != split or said in seen:
            continue
        if split != "train":
            seen.add(said)
        n -= 1
        yield example


def _split_of(text: str) -> Split:
    bucket = int.from_bytes(blake2b(text.encode(), digest_size=4).digest(), "big") % 10
    return "test" if bucket == 0 else "dev" if bucket == 1 else "train"


def reviews(split: Split, *, n: int, seed: int) -> Iterator[Labelled]:
    for i, (text, label) in enumerate(held_apart(review, lambda made: made[0], split, n=n, seed=seed)):
        yield Labelled(text, None, label, f"reviews {split} {i}")


def names(split: Split, *, n: int, seed: int) -> Iterator[Spans]:
    made = held_apart(sentence_with_names, lambda sentence: " ".join(sentence[0]), split, n=n, seed=seed)
    for i, (words, tags) in enumerate(made):
        yield Spans.of_words(words, tags, f"names {split} {i}")


def stories(split: Split, *, n: int, seed: int) -> Iterator[Sentence]:
    for i, sentences in enumerate(held_apart(story, " ".join, split, n=n, seed=seed)):
        for k, text in enumerate(sentences):
            yield Sentence(text, k == 0, f"stories {split} {i}")


def grammar(split: Split, *, n: int, seed: int) -> Iterator[str]:
    return held_apart(grammatical_sentence, lambda text: text, split, n=n, seed=seed)
