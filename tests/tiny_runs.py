"""Tiny runs of every task, trained in the process of a test, once a session."""

import json
import os
import random
from types import SimpleNamespace

import pytest

from jumok.predictor import load
from jumok.recipe import parse_recipe
from jumok.training import train as train_recipe
from once import once, shelf

FILLERS = ["a", "the", "dog", "cat", "runs", "sits", "today", "here", "slowly", "비", "바람"]
LINE = "the cat sat on the mat and the dog lay by the door"


def fillers(rng, most=6):
    return rng.choices(FILLERS, k=rng.randint(1, most))


def put(rng, words, word):
    """A word at a place where another was."""
    words[rng.randrange(len(words))] = word
    return " ".join(words)


def made(n, seed, example, header=()):
    rng = random.Random(seed)
    return "".join(f"{line}\n" for line in [*header, *(example(rng) for _ in range(n))])


def labelled(n, seed):
    """A text is good if the word sun is in it."""

    def example(rng):
        label = rng.choice(["good", "bad"])
        words = fillers(rng)
        return f"{put(rng, words, 'sun') if label == 'good' else ' '.join(words)}\t{label}"

    return made(n, seed, example, ["text\tlabel"])


def several(n, seed):
    """The labels are the things that are spoken of."""

    def example(rng):
        things = [thing for thing in ("sun", "rain", "snow") if rng.random() < 0.4]
        words = [*fillers(rng, 4), *things]
        rng.shuffle(words)
        return f"{' '.join(words)}\t{'|'.join(things) or '|'}"

    return made(n, seed, example, ["text\tlabel"])


def counted(n, seed):
    """The number is 10 and as many as there are suns."""

    def example(rng):
        suns = rng.randint(0, 3)
        words = [*fillers(rng, 3), *["sun"] * suns]
        rng.shuffle(words)
        return f"{' '.join(words)}\t{10 + suns}"

    return made(n, seed, example, ["text\tlabel"])


def paired(n, seed):
    """Two texts of which the second has the word sun, or the first."""

    def example(rng):
        label = rng.choice(["first", "second"])
        with_sun, without = put(rng, fillers(rng, 3), "sun"), " ".join(fillers(rng, 3))
        return "\t".join([*((with_sun, without) if label == "first" else (without, with_sun)), label])

    return made(n, seed, example, ["one\tother\tlabel"])


def tagged(n, seed):
    """Capitalised words are names, and neighbours are one name."""
    rng = random.Random(seed)
    lines = []
    for _ in range(n):
        before = "O"
        for _ in range(rng.randint(1, 6)):
            word = "".join(rng.choices("abcdef", k=rng.randint(1, 3)))
            name = rng.random() < 0.4
            before = "O" if not name else "B-NAME" if before == "O" else "I-NAME"
            lines.append(f"{word.capitalize() if name else word} {before}")
        lines.append("")
    return "\n".join(lines) + "\n"


def marked(n, seed):
    """Capitals are names, with a particle of small letters attached."""

    def example(rng):
        text, spans = "", []
        for _ in range(rng.randint(1, 5)):
            name = "".join(rng.choices("ABC", k=rng.randint(1, 3))) if rng.random() < 0.5 else ""
            if name:
                spans.append({"start": len(text), "end": len(text) + len(name), "label": "NAME"})
            text += name + "".join(rng.choices("de가는", k=rng.randint(1, 3))) + " "
        return json.dumps({"text": text, "spans": spans}, ensure_ascii=False)

    return made(n, seed, example)


def related(n, seed):
    """The bigger one comes first, unless nothing is said of size."""

    def example(rng):
        one, other = rng.sample(["Ada", "Bo", "Cy", "Dee"], k=2)
        verb = rng.choice(["beats", "meets"])
        before = " ".join(["", *fillers(rng, 2)][1:]) + " "
        text = f"{before}{one} {verb} {other} {rng.choice(FILLERS)}"
        first = {"start": len(before), "end": len(before) + len(one), "type": "P"}
        start = len(f"{before}{one} {verb} ")
        second = {"start": start, "end": start + len(other), "type": "P"}
        forth = rng.random() < 0.5
        label = "none" if verb == "meets" else "beats(e1,e2)" if forth else "beats(e2,e1)"
        head, tail = (first, second) if forth else (second, first)
        return json.dumps({"text": text, "head": head, "tail": tail, "label": label})

    return made(n, seed, example)


def asked(n, seed):
    """The answer is what the sun is called; it may not be there."""
    rng = random.Random(seed)
    paragraphs = []
    for i in range(n):
        before, after = " ".join(fillers(rng, 4)), " ".join(fillers(rng, 4))
        answer = rng.choice(["sun", "red sun", None])
        context = f"{before} {answer} {after}" if answer else f"{before} {after}"
        qa = {"id": f"{seed}-{i}", "question": "what shines ?", "is_impossible": answer is None}
        qa["answers"] = [{"text": answer, "answer_start": len(before) + 1}] if answer else []
        paragraphs.append({"context": context, "qas": [qa]})
    return json.dumps({"data": [{"paragraphs": paragraphs}]}, ensure_ascii=False)


def chosen(n, seed):
    """The ending with the sun in it fits."""

    def example(rng):
        label = rng.randrange(3)
        endings = [" ".join(fillers(rng, 3)) if i != label else put(rng, fillers(rng, 3), "sun") for i in range(3)]
        return json.dumps({"context": " ".join(fillers(rng, 3)), "endings": endings, "label": label})

    return made(n, seed, example)


def plain(n, seed):
    return f"{LINE}\n" * n


def korean(n, seed):
    return "나는 오늘 학교에 간다\n고양이가 밥을 먹는다\n비가 오는 날에 우산을 쓴다\n" * (n // 3)


def paired_lines(n, seed):
    """Words, and the same words from the last to the first."""

    def example(rng):
        words = fillers(rng, 4)
        return f"{' '.join(words)}\t{' '.join(words[::-1])}"

    return made(n, seed, example)


def stories(n, seed):
    """Documents of two or three sentences about one animal."""
    rng = random.Random(seed)
    documents = []
    for _ in range(n):
        animal = rng.choice(["dog", "cat", "bird"])
        verbs = rng.choices(["runs", "sits", "sleeps", "eats"], k=rng.randint(2, 3))
        documents.append("".join(f"the {animal} {verb} {rng.choice(['here', 'today'])}.\n" for verb in verbs))
    return "\n".join(documents)


WORD = {"kind": "word", "vocab_size": 40}
RNN = {"kind": "rnn", "cell": "gru", "d_embedding": 12, "d_hidden": 12}
BERT = {"kind": "bert", "d_model": 16, "d_ff": 24, "n_heads": 2, "n_layers": 2, "max_len": 24}
PIECES = {"kind": "wordpiece", "vocab_size": 120}
TASKS = {
    "classification": {
        "data": ("labelled", labelled),
        "tokenizer": WORD,
        "model": {**RNN, "pool": "attention"},
        "train": {"steps": 60, "batch_tokens": 256, "metric": "accuracy"},
    },
    "labels": {
        "task": {"kind": "classification", "predicts": "labels"},
        "data": ("labelled", several),
        "tokenizer": WORD,
        "model": {**RNN, "pool": "attention"},
        "train": {"steps": 90, "batch_tokens": 256, "metric": "micro_f1"},
    },
    "number": {
        "task": {"kind": "classification", "predicts": "number"},
        "data": ("labelled", counted),
        "tokenizer": WORD,
        "model": RNN,
        "train": {"steps": 90, "batch_tokens": 256, "metric": "pearson"},
    },
    "pair": {
        "task": {"kind": "classification", "predicts": "class"},
        "data": ("labelled", paired, {"text": "one", "pair": "other"}),
        "tokenizer": WORD,
        "model": {**RNN, "bidirectional": True},
        "train": {"steps": 90, "batch_tokens": 256, "metric": "mcc"},
    },
    "verbal": {
        "task": {"kind": "classification", "text_loss": 0.1},
        "data": ("labelled", labelled, {"max_len": 60}),
        "tokenizer": {"kind": "byte_bpe", "vocab_size": 320},
        "model": {"kind": "gpt", "d_model": 32, "d_ff": 64, "n_heads": 2, "n_layers": 2, "max_len": 64},
        "train": {"steps": 80, "batch_tokens": 512, "metric": "accuracy"},
    },
    "tagging": {
        "data": ("tagged", tagged),
        "tokenizer": {"kind": "character", "vocab_size": 300},
        "model": {"kind": "rnn", "cell": "gru", "bidirectional": True, "d_embedding": 16, "d_hidden": 32},
        "train": {"steps": 90, "batch_tokens": 512, "metric": "span_f1"},
    },
    "marked": {
        "task": {"kind": "tagging", "crf": True},
        "data": ("tagged", marked),
        "tokenizer": {"kind": "character", "vocab_size": 300},
        "model": {**RNN, "bidirectional": True},
        "train": {"steps": 60, "batch_tokens": 512, "metric": "span_f1"},
    },
    "relation": {
        "task": {"kind": "relation", "no_relation": "none"},
        "data": ("relations", related),
        "tokenizer": PIECES,
        "model": {**BERT, "d_model": 32, "d_ff": 64},
        "train": {"steps": 120, "batch_tokens": 512, "metric": "macro_f1"},
    },
    "answering": {
        "task": {"kind": "answering", "no_answer": True, "max_answer": 4},
        "data": ("questions", asked),
        "tokenizer": WORD,
        "model": {**RNN, "bidirectional": True, "d_hidden": 24},
        "train": {"steps": 90, "batch_tokens": 512, "metric": "exact_match"},
    },
    "choice": {
        "data": ("choices", chosen),
        "tokenizer": WORD,
        "model": {**RNN, "pool": "attention"},
        "train": {"steps": 60, "batch_tokens": 512, "metric": "accuracy"},
    },
    "translation": {
        "data": ("parallel", paired_lines, {"source": "en", "target": "xx"}),
        "tokenizer": WORD,
        "model": {"kind": "transformer", "d_model": 32, "d_ff": 64, "n_heads": 2, "n_layers": 1},
        "train": {"steps": 120, "batch_tokens": 512, "metric": "exact_match"},
    },
    "pretraining": {
        "data": ("documents", stories, {"split_sentences": False}),
        "tokenizer": PIECES,
        "model": BERT,
        "train": {"steps": 60, "batch_tokens": 512, "metric": "masked_accuracy"},
    },
    "language_model": {
        "data": ("text", plain),
        "tokenizer": WORD,
        "model": {"kind": "rnn", "cell": "lstm", "d_embedding": 16, "d_hidden": 16},
        "train": {"steps": 80, "batch_tokens": 128, "metric": "bits_per_byte"},
        "decode": {"method": "greedy", "max_extra": 20},
    },
    "korean": {  # hardly trained: it writes whole and broken syllables, and seldom ends
        "task": {"kind": "language_model"},
        "data": ("text", korean),
        "tokenizer": {"kind": "byte_bpe", "vocab_size": 280},
        "model": {"kind": "gpt", "d_model": 32, "d_ff": 64, "n_heads": 2, "n_layers": 2, "max_len": 1024},
        "train": {"steps": 20, "batch_tokens": 256, "metric": "bits_per_byte"},
        "decode": {"method": "sample", "max_extra": 30},
    },
    "chat": {  # replies in the language in which it is spoken to
        "task": {"kind": "translation"},
        "data": ("parallel", paired_lines, {"source": "en", "target": "en"}),
        "tokenizer": WORD,
        "model": {"kind": "transformer", "d_model": 32, "d_ff": 64, "n_heads": 2, "n_layers": 1},
        "train": {"steps": 60, "batch_tokens": 512, "metric": "exact_match"},
    },
}
SUFFIXES = {"marked": ".jsonl", "relation": ".jsonl", "answering": ".json", "choice": ".jsonl"}
SUFFIXES |= {"translation": ".tsv", "chat": ".tsv"}


@pytest.fixture(scope="session")
def tree(tmp_path_factory):
    """The recipe of a task as a dict, its files written; sections can be changed."""
    folder = shelf(tmp_path_factory)  # runs of one data, wherever they are trained

    def tree_of(task, /, **sections):
        found = {"task": {"kind": task}, **TASKS[task]}
        kind, write, *options = found["data"]
        found["data"] = {"kind": kind, **(options[0] if options else {})}
        if found["model"]["kind"] == "bert":
            found["data"]["max_len"] = found["model"]["max_len"]
        for seed, (split, n) in enumerate({"train": 300, "dev": 40, "test": 60}.items()):
            path = folder / f"{task}.{split}{SUFFIXES.get(task, '')}"
            if not path.exists():
                (part := path.with_name(f"{path.name}.{os.getpid()}")).write_text(write(n, seed), "utf-8")
                part.rename(path)
            found["data"][split] = [[str(path)]] if kind == "parallel" and split == "train" else [str(path)]
        found["model"] = {"dropout": 0.0, **found["model"]}
        rate = {"rnn": 0.02, "gpt": 0.01, "bert": 0.005, "transformer": 0.01}[found["model"]["kind"]]
        optimizer = {"schedule": "linear", "learning_rate": rate, "warmup": 5, "clip_norm": 1.0}
        found["train"] = {"evaluate_every": 1000, "save_every": 1000, "final": "last", **found["train"]}
        found["train"] |= {"device": "cpu", "optimizer": optimizer}
        for section, keys in sections.items():
            found[section] = {**found.get(section, {}), **keys}
        return found

    return tree_of


@pytest.fixture(scope="session")
def train(tmp_path_factory):
    """Train a recipe into a folder; `at` is told every event."""
    cache = tmp_path_factory.mktemp("cache")

    def train_into(tree, out, at=lambda event: None):
        """The events of the training; it stops when `at`, which is told of each, says True."""
        events, asked = [], []
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("JUMOK_CACHE", str(cache))
            recipe = parse_recipe(json.loads(json.dumps(tree)), where="test")
            for event in train_recipe(recipe, out, stop=lambda: bool(asked)):
                events.append(event)
                if at(event):
                    asked.append(True)
        return events

    return train_into


@pytest.fixture(scope="session")
def runs(tree, train, tmp_path_factory):
    """The run folder of a task, and its predictor on the reference engine, trained when it is asked for first."""
    folder, done = tmp_path_factory.mktemp("runs"), {}

    def run_of(task):
        if task not in done:
            once(tmp_path_factory, folder / task, lambda out: train(tree(task), out))
            done[task] = SimpleNamespace(folder=folder / task, predictor=load(folder / task, engine="torch"))
        return done[task]

    return run_of


@pytest.fixture(scope="session")
def held_out(tree):
    """The examples of a task's test split."""

    def examples_of(task):
        recipe = parse_recipe(tree(task), where="test")
        return list(recipe.data.read("test", seed=1))

    return examples_of
