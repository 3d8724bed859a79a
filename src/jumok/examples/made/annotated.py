"""Generated examples for tasks on annotated texts and pairs of texts, learned in a minute.

topics       the topics that a guest mentions; the opinions on them are no clue
similarity   two descriptions; the label is the number of parts they share
relations    who employs or teaches whom: the same two names in reverse order mean the other direction
questions    where somebody lives, or what they bought; a quarter of the questions have no answer
choices      what somebody who is thirsty or tired does
josa         Korean persons and places with particles attached; a name may be either, and excludes its particle
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random

from jumok.examples import Split
from jumok.examples.choices import Choice
from jumok.examples.labelled import Labelled
from jumok.examples.made.toys import held_apart
from jumok.examples.questions import Question
from jumok.examples.relations import Related
from jumok.examples.spans import Spans
from jumok.text.span import Span

# fmt: off
_TOPICS = {
    "food": ("the soup", "the bread", "the fish", "the cake", "every dish"),
    "price": ("the bill", "the price", "the discount", "the cost", "the tip"),
    "service": ("the waiter", "the cook", "the host", "the staff", "the welcome"),
    "place": ("the room", "the view", "the garden", "the table", "the light"),
    "music": ("the band", "the singer", "the piano", "the music", "the song"),
}


_SAID = ("was better than before", "was a surprise", "could be better", "was all right", "was not what we know")


_BESIDES = ("we came on Monday", "it rained all day", "my sister was there", "nobody knew us", "we left at nine")


_DESCRIBED = (
    ("a small", "a large", "a quiet"), ("cat", "horse", "child"), ("sleeps", "waits", "sings"),
    ("outside", "inside", "nearby"), ("today", "tonight", "again"),
)


_NAMES = ("Ada", "Grace", "Alan", "Mina", "Yuna", "Omar", "Ines", "Pavel", "Joon", "Lena", "Tariq", "Rosa")


_COMPANIES = ("Hanbit", "Norsk Data", "Saehan", "Blue Harbor", "Vela", "Mirae Works", "Orbis", "Quint")


_EMPLOYS = ("{B} works at {A}", "{A} hired {B}", "{B} got a job at {A}", "{A} pays {B}", "{A} gave {B} a job")


_TEACHES = ("{A} taught {B} to sing", "{B} learned to cook from {A}", "{A} is the teacher of {B}",
            "{B} is a student of {A}", "{A} showed {B} how to paint")


_NEITHER = ("{A} wrote about {B}", "{A} lives near {B}", "{A} has heard of {B}", "{A} waited for {B}")


_BEFORE = ("", "Yesterday", "As we know ,", "{C} says that", "They read that", "Since May")


_AFTER = ("", "again", "in Oslo", "for a year", "as {C} told us")


_ASKED = (
    ("{A} lives in {X}", "Where does {A} live?", ("Oslo", "Lima", "New York", "Busan", "Cape Town", "Turin")),
    ("{A} works as {X}", "What is the job of {A}?", ("a cook", "a pilot", "a nurse", "a painter", "a teacher")),
    ("{A} bought {X}", "What did {A} buy?", ("a red boat", "two books", "a piano", "an old car", "green tea")),
    ("{A} plays {X}", "What does {A} play?", ("chess", "the violin", "football", "the drums", "table tennis")),
)


_FITTING = {
    "thirsty": ("drinks a glass of water", "orders a pot of tea", "looks for a well"),
    "hungry": ("eats a bowl of rice", "cooks some noodles", "buys fresh bread"),
    "tired": ("goes to bed early", "sleeps until noon", "lies down on the sofa"),
    "cold": ("puts on a coat", "lights a fire", "closes the window"),
    "bored": ("reads a novel", "watches a film", "starts a game of chess"),
    "late": ("runs to the station", "calls a taxi", "skips the meeting"),
    "ill": ("sees a doctor", "takes some medicine", "stays at home"),
    "dirty": ("takes a bath", "washes with soap", "brushes the shoes"),
}


_HOW = ("very", "quite", "always", "a little", "really")


_DAYS = ("today", "this morning", "after work", "on Sunday", "again", "in the evening")


_SCENES = ("The street is empty.", "It is raining.", "The dog barks.", "Music is playing.", "The train has left.",
           "Nobody is there.", "The sun is low.", "A bell rings.")


_FAMILY = ("김", "이", "박", "최", "정", "한", "윤", "임")


_GIVEN = ("민서지하은유도수예준현태", "아준우연호진희영원빈율솔")


_CITIES = (
    "서울", "부산", "대구", "인천", "광주", "대전", "울산", "수원", "춘천", "강릉", "전주", "여수", "목포", "포항",
)


_EITHER = ("진주", "영주", "경주", "원주", "세종")


_JOSA = (
    "{P:은/는} {L:에서} 일한다", "{P:이/가} {L:으로/로} 떠났다", "{P:과/와} {P:은/는} {L:에서} 만났다",
    "{L:에} 사는 {P:을/를} 보았다", "{P:에게} {L:의} 사진을 보냈다", "{L:까지} 걸어간 {P:도} 지쳤다",
    "{L:부터} {L:까지} {P:이/가} 운전했다", "어제 {P:의} 동생이 {L:에} 왔다", "{P:만} {L:에} 남았다",
    "{P:처럼} {L:을/를} 좋아하는 사람은 없다", "{L:은/는} {P:의} 고향이다",
    "{P:한테서} {L:과/와} {L:의} 이야기를 들었다",
)


# fmt: on


def visit(rng: Random) -> tuple[str, str]:
    """A guest's comment, and its topics."""
    topics = rng.choices(list(_TOPICS), k=rng.choice((1, 2, 2, 3)))
    clauses = [f"{rng.choice(_TOPICS[topic])} {rng.choice(_SAID)}" for topic in topics]
    if rng.random() < 0.4:
        clauses.insert(rng.randint(0, len(clauses)), rng.choice(_BESIDES))
    return " and ".join(clauses), "|".join(sorted(set(topics)))


def two_descriptions(rng: Random) -> tuple[str, str, str]:
    """Two texts of five parts each, and how many they share."""
    shared = rng.sample(range(5), k=rng.randint(0, 5))
    one = [rng.choice(parts) for parts in _DESCRIBED]
    other = [
        said if i in shared else rng.choice([part for part in parts if part != said])
        for i, (said, parts) in enumerate(zip(one, _DESCRIBED, strict=True))
    ]
    return " ".join(one), " ".join(other), str(len(shared))


def relation(rng: Random) -> Related:
    a, b, c = rng.sample(_NAMES, k=3)
    company = rng.choice(_COMPANIES)
    kind = rng.choice(("employs", "teaches", "none"))
    shapes = {"employs": _EMPLOYS, "teaches": _TEACHES, "none": _NEITHER}[kind]
    if kind == "employs" or (kind == "none" and rng.random() < 0.5):
        a, b = (company, b) if kind == "employs" or rng.random() < 0.5 else (a, company)
    shape = " ".join(filter(None, [rng.choice(_BEFORE), rng.choice(shapes), rng.choice(_AFTER)])) + "."
    text, places = _filled(shape, {"A": a, "B": b, "C": c})
    entities = {
        letter: Span(*places[letter], "COMPANY" if name in _COMPANIES else "PERSON")
        for letter, name in (("A", a), ("B", b))
    }
    forth = rng.random() < 0.5
    head, tail = (entities["A"], entities["B"]) if forth else (entities["B"], entities["A"])
    return Related(text, head, tail, kind if kind == "none" else f"{kind}({'e1,e2' if forth else 'e2,e1'})", "")


def question(rng: Random) -> Question:
    """Three facts of different kinds, and a question about one of them or about something not mentioned."""
    *names, stranger = rng.sample(_NAMES, k=4)
    kinds = rng.sample(_ASKED, k=4)
    asked = rng.randrange(4)
    context, answers = "", []
    for i, (name, (told, _, things)) in enumerate(zip(names, kinds, strict=False)):
        thing = rng.choice(things)
        text, places = _filled(told, {"A": name, "X": thing})
        if i == asked:
            answers = [(thing, len(context) + places["X"][0])]
        context += f"{text}. "
    asks, _ = _filled(kinds[asked][1], {"A": [*names, stranger][asked]})
    return Question("", asks, context.rstrip(), answers, "")


def choice(rng: Random) -> Choice:
    """Somebody's state, and four things they may do next."""
    name, states = rng.choice(_NAMES), rng.sample(list(_FITTING), k=4)
    label = rng.randrange(4)
    endings = [f"{name} {rng.choice(_FITTING[state])}." for state in states]
    return Choice(_scene(name, states[label], rng), endings, label, "")


def _scene(name: str, state: str, rng: Random) -> str:
    return f"{name} is {rng.choice(_HOW)} {state} {rng.choice(_DAYS)}. {rng.choice(_SCENES)}"


def marked_names(rng: Random) -> Spans:
    """A Korean sentence with particles attached to its persons and places."""
    text, spans = "", []
    for i, part in enumerate(re.split(r"\{(.*?)\}", rng.choice(_JOSA))):
        if i % 2 == 0:
            text += part
            continue
        kind, particle = part.split(":")
        name = _person(rng) if kind == "P" else rng.choice(_CITIES + _EITHER) + rng.choice(("", "", "시", "역"))
        spans.append(Span(len(text), len(text) + len(name), "PER" if kind == "P" else "LOC"))
        text += name + _fitting(particle, name)
    return Spans(f"{text}.", spans)


def _person(rng: Random) -> str:
    given = rng.choice(_EITHER) if rng.random() < 0.2 else "".join(map(rng.choice, _GIVEN))
    return rng.choice(_FAMILY) + given if rng.random() < 0.5 else given


def _fitting(particle: str, name: str) -> str:
    """The form of a particle: the first after a consonant, the second after a vowel; 로 also follows ㄹ."""
    after_consonant, _, after_vowel = particle.partition("/")
    final = (ord(name[-1]) - ord("가")) % 28
    is_open = final == 0 or (final == 8 and after_consonant == "으로")
    return after_vowel if after_vowel and is_open else after_consonant


def _filled(shape: str, names: Mapping[str, str]) -> tuple[str, dict[str, tuple[int, int]]]:
    """Fill names into a template, and return where each of them is."""
    text, places = "", {}
    for i, part in enumerate(re.split(r"\{(\w)\}", shape)):
        said = names[part] if i % 2 else part
        if i % 2:
            places[part] = (len(text), len(text) + len(said))
        text += said
    return text, places


def topics(split: Split, *, n: int, seed: int) -> Iterator[Labelled]:
    for i, (text, label) in enumerate(held_apart(visit, lambda made: made[0], split, n=n, seed=seed)):
        yield Labelled(text, None, label, f"topics {split} {i}")


def similarity(split: Split, *, n: int, seed: int) -> Iterator[Labelled]:
    for i, made in enumerate(held_apart(two_descriptions, "\t".join, split, n=n, seed=seed)):
        yield Labelled(*made, f"similarity {split} {i}")


def relations(split: Split, *, n: int, seed: int) -> Iterator[Related]:
    for i, made in enumerate(held_apart(relation, lambda made: made.text, split, n=n, seed=seed)):
        yield replace(made, where=f"relations {split} {i}")


def questions(split: Split, *, n: int, seed: int) -> Iterator[Question]:
    for i, made in enumerate(held_apart(question, lambda made: made.context, split, n=n, seed=seed)):
        yield replace(made, id=f"{split}-{i}", where=f"questions {split} {i}")


def choices(split: Split, *, n: int, seed: int) -> Iterator[Choice]:
    for i, made in enumerate(held_apart(choice, lambda made: made.context, split, n=n, seed=seed)):
        yield replace(made, where=f"choices {split} {i}")


def josa(split: Split, *, n: int, seed: int) -> Iterator[Spans]:
    for i, made in enumerate(held_apart(marked_names, lambda made: made.text, split, n=n, seed=seed)):
        yield replace(made, where=f"josa {split} {i}")
