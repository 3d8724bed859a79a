"""Placeholders through a translator: copied whatever they are made of, repaired where that is certain, noted if not."""

import json
import random
from dataclasses import replace

import numpy as np
import pytest

from jumok.building import _store
from jumok.decode.options import Hypothesis
from jumok.engines.fast import FastEngine
from jumok.engines.fast_folder import Built
from jumok.engines.shortlist import learn_shortlist
from jumok.errors import RecipeError
from jumok.predictor import load
from jumok.recipe import parse_recipe
from jumok.serve.libretranslate import _aligned
from jumok.serve.reading import reading_of
from jumok.tasks.protocol import NoteCounter, plain
from jumok.tasks.stored import read_model
from jumok.tasks.translation.predictor import Translator
from jumok.tasks.translation.repair import repaired
from jumok.text.placeholders import differences
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import TokenizerConfig
from tiny_runs import FILLERS

UNITS = ["%s", "%d", "{name}", "<b>", "https://a.org/x", ":meth:`a.b`", "``c``", "$HOME"]
UNSEEN = ["https://never.seen.example/a?b=c", ":class:`~some.Unseen`"]


def lines(n, seed):
    """Words and placeholders, from the last to the first."""
    rng = random.Random(seed)
    for _ in range(n):
        words = rng.choices(FILLERS, k=rng.randint(1, 3)) + rng.sample(UNITS, k=rng.randint(0, 2))
        rng.shuffle(words)
        yield " ".join(words), " ".join(words[::-1])


@pytest.fixture(scope="module")
def toy(tree, train, tmp_path_factory):
    """A translator that has learned to write texts backwards."""
    folder = tmp_path_factory.mktemp("placeholders")
    for name, n, seed in (("train", 1500, 0), ("dev", 20, 1), ("test", 20, 2)):
        text = "".join(f"{source}\t{target}\n" for source, target in lines(n, seed))
        (folder / f"{name}.tsv").write_text(text, "utf-8")
    data = {name: [str(folder / f"{name}.tsv")] for name in ("train", "dev", "test")}
    recipe = tree(
        "translation",
        data={**data, "train": [data["train"]]},
        tokenizer={"kind": "word", "vocab_size": 310, "placeholders": True},
        model={"n_layers": 2, "norm": "pre"},
        train={"steps": 500, "batch_tokens": 768},
    )
    train(recipe, folder / "run")
    return load(folder / "run", engine="torch"), folder


def test_placeholders_that_were_never_seen_are_copied_and_reordered(toy):
    given = list(lines(40, 3))
    unseen = [(source, target) for source, target in given if "%s" in source and "%d" in source] + given[:25]
    for old, new in zip(("%s", "%d"), UNSEEN, strict=True):
        unseen = [(source.replace(old, new), target.replace(old, new)) for source, target in unseen]
    found = toy[0].predict([source for source, _ in unseen])
    right = sum(output.text == target for output, (_, target) in zip(found, unseen, strict=True))
    assert right > 0.8 * len(unseen)
    kept = [not differences(source, output.text) for output, (source, _) in zip(found, unseen, strict=True)]
    assert [not output.notes for output in found] == kept
    assert sum(kept) > 0.9 * len(unseen)


def test_words_alignment_prefix_and_alternatives_show_the_real_placeholders(toy):
    translator, source = toy[0], "the cat https://new.example/x"
    (output,) = translator.predict([source], alignment=True, words=True)
    assert [word.text for word in output.words] == output.text.split()
    assert [output.text[word.start : word.end] for word in output.words] == output.text.split()
    assert "https://new.example/x" in output.alignment.source
    assert not any("⟦" in piece for piece in output.alignment.source + output.alignment.target)
    assert translator([source], prefix="https://new.example/x")[0].startswith("https://new.example/x")
    others = translator.alternatives(source, "https://new")
    assert others
    assert all(other.text.startswith("https://new.example/x") for other in others)
    assert all("⟦" not in other.text for other in translator.alternatives(source, ""))


def test_the_page_and_tags_find_the_characters_of_placeholders(toy):
    source = "the <b> %s cat"
    (output,) = toy[0].predict([source], alignment=True)
    aligned = _aligned(toy[0], source, output, 0)
    assert aligned.weights.shape == (len(aligned.target), len(aligned.source))
    assert "%s" in {source[start:end] for start, end in aligned.source}
    shown = {output.text[start:end].strip() for start, end in aligned.target}
    assert {unit for unit in ("%s", "<b>") if unit in output.text} <= shown
    sides = reading_of(toy[0], source, output.text).sides
    assert {"%s", "<b>"} <= set(sides["source"].words)
    assert [word for word in sides["target"].words if word] == output.text.split()


def test_scores_are_those_of_texts_with_their_placeholders(toy):
    given = [{"source": source, "target": target} for source, target in lines(20, 2)]
    examples = [toy[0].parse(one) for one in given]
    result, outputs = toy[0].score(examples)
    assert outputs == toy[0](examples)
    assert result["scores"]["exact_match"]["value"] > 70
    assert toy[0].quick(examples)["exact_match"] > 70


def test_the_fast_engine_writes_them_too_even_from_a_shortlist(toy, tmp_path):
    model = read_model(toy[1] / "run" / "model")
    c = model.config
    built = Built(kind=c.kind, longest=None, attends=True, compute="float32", facts={}, library="", model="")
    pairs = [([5, 6, 0], [7, 0])]  # nothing but this is in the shortlists, and what is in all of them
    slots = model.tokenizers.target.slot_ids
    shortlist = learn_shortlist(pairs, 1, target_vocab=model.tokenizers.target.vocab_size, always=slots)
    given = [source for source, _ in lines(30, 4)]
    for form, short in ((built, None), (replace(built, shortlist=1), shortlist)):
        folder = tmp_path / str(form.shortlist)
        _store(folder, form, model, short)
        engine = FastEngine(form, folder, model.tokenizers, lambda: toy[0].engine)
        found = Translator(engine, model.tokenizers, toy[0].facts).predict(given)
        if short is None:
            assert [output.text for output in found] == toy[0](given)
        copied = [unit in output.text for source, output in zip(given, found, strict=True) for unit in UNITS[:2]]
        assert any(copied)


# repair, with attention as a test wants it

KOREAN = ["Cannot open %s and %d now", "파일 을 열 수 없습니다 : . ...", "&File {name} :ref:`a b <c>`"]
WORDS = Tokenizer.train(TokenizerConfig(kind="bpe", vocab_size=420, placeholders=True), KOREAN)


def looked(source, output, *looks):
    """Attention of an output's tokens: each of `looks` is a piece of it and the piece of the source it looks at."""

    def attention(ids):
        bound = WORDS.filled(source)
        columns, rows = bound.pieces([*bound.encode(source), 0]), bound.pieces([*ids, 0])
        weights = np.full((len(rows), len(columns)), 0.01)
        weights[:, -1] = 0.02
        done = dict.fromkeys(rows, 0)
        for row, piece in enumerate(rows):
            mine = [there for here, there in looks if here == piece]
            if mine:
                weights[row, columns.index(mine[min(done[piece], len(mine) - 1)])] = 0.9
                done[piece] += 1
        return weights

    bound = WORDS.filled(source)
    both = Tokenizers(bound, bound)
    ids = bound.encode(output)
    for slot in bound.empty_slots[:1]:  # written as ?1
        ids = [slot if piece in ("?", "<0x3F>") else i for i, piece in zip(ids, bound.pieces(ids), strict=True)]
    return bound.decode(repaired(ids, both.encode_source(source), both, attention))


def test_the_only_one_missing_takes_the_place_of_the_only_one_too_many():
    assert looked("open %s and %d", "열 %s %d 수") == "열 %s %d 수"
    assert looked("open %s and %d", "열 ? %d 수") == "열 %s %d 수"  # a slot of nothing
    assert looked("open %s and %d", "열 %s %s 수", ("%s", "%s"), ("%s", "%d")) == "열 %s %d 수"
    assert looked("open %s and %d", "열 %s %s 수", ("%s", "%s")) != "열 %s %d 수"  # both say %s: which is wrong?


def test_one_too_many_is_removed_if_both_are_the_same():
    assert looked("open %s", "%s 열 %s 수", ("%s", "%s")).split() == ["%s", "열", "수"]
    assert looked("open ``a``", "``a`` 열 ``a`` 수", ("``a``", "``a``")) == "``a`` 열 ``a`` 수"  # said twice
    assert looked("open %s", "%s 열 ? 수", ("%s", "%s")).split() == ["%s", "열", "수"]
    assert looked("open %s %s", "%s %s 열", ("%s", "%s")) == "%s %s 열"


def test_one_missing_is_inserted_where_alone_the_model_looked_at_it():
    assert looked("open %s now", "파일 열 수", ("▁열", "%s")) == "파일 %s 열 수"
    assert looked("open %s now", "파일 열 수", ("▁열", "%s"), ("▁수", "%s")) == "파일 열 수"  # two places
    assert looked("open %s now", "파일 열 수") == "파일 열 수"


def test_an_accelerator_comes_after_korean():
    assert looked("&File...", "파일...") == "파일(&F)..."
    assert looked("&File", "Datei") == "Datei"


def test_what_is_left_is_noted_with_its_facts(toy, monkeypatch):
    translator = toy[0]
    monkeypatch.setattr("jumok.tasks.translation.predictor.repaired", lambda ids, *_: ids)
    bound = translator.tokenizers.filled("the %s %d")
    wrong = bound.target.encode("cat %s %s")
    search = translator.engine.search

    def written(sources, requests, config, *, done):
        return [[replace(h[0], ids=wrong)] for h in search(sources, requests, config, done=done)]

    monkeypatch.setattr(translator.engine, "search", written)
    output, counter = translator.predict(["the %s %d"])[0], NoteCounter()
    (note,) = output.notes
    assert (note.code, note.facts) == ("translation.placeholders", {"missing": ["%d"], "extra": ["%s"]})
    assert plain(output)["notes"] == [{"code": "translation.placeholders", "text": note.text, "facts": note.facts}]
    counter.add(output)
    counter.add(translator.predict(["the cat"])[0])
    assert counter.told()[0].startswith("1 of 2: ") or counter.told()[0].startswith("2 of 2: ")


def test_of_the_hypotheses_the_best_that_keeps_all_is_taken(toy):
    _, request = toy[0].begin(toy[0].parse("the %s"), toy[0].wanted({}))
    assert request.faults is None  # who watches a search wants the likeliest
    translator = toy[0]
    seen = []
    search = translator.engine.search

    def watched(sources, requests, config, *, done):
        seen.extend(requests)
        return search(sources, requests, config, done=done)

    translator.engine.search = watched
    try:
        translator.predict(["the %s %d", "the cat"])
    finally:
        translator.engine.search = search
    bound = translator.tokenizers.filled("the %s %d").target
    assert [seen[0].faults(bound.encode(text)) for text in ("%s %d", "%d %s", "%s", "%s %s")] == [0, 1, 1, 2]
    assert seen[1].faults is None
    best = seen[0].best
    poor, good = Hypothesis(bound.encode("%s"), -1.0, -1.0), Hypothesis(bound.encode("%s %d cat"), -9.0, -9.0)
    assert best([poor, good], 1) == [good]
    assert replace(seen[0], faults=None).best([good, poor], 2) == [poor, good]


def test_the_option_is_for_translation(tree):
    recipe = json.loads(json.dumps(tree("classification", tokenizer={"placeholders": True, "vocab_size": 300})))
    with pytest.raises(RecipeError) as caught:
        parse_recipe(recipe, where="test")
    assert "tokenizer.placeholders" in str(caught.value)
