"""Tagging: names are learned as runs of tags, and found again by their characters."""

import json
import unicodedata
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics import accuracy_score, f1_score
from torch.nn import functional as F

from jumok.data.cache import Cache
from jumok.data.pages import pages
from jumok.engines.torch import TorchEngine
from jumok.errors import DataError, InputError
from jumok.examples.spans import Spans
from jumok.models.bert import BertConfig
from jumok.models.bert_heads import BertTagger
from jumok.models.rnn import RnnConfig, RnnTagger
from jumok.predictor import load
from jumok.recipe import parse_recipe
from jumok.score.tagging import span_metrics
from jumok.tasks.protocol import Failure, plain
from jumok.tasks.tagging import TaggingFacts, TaggingKind
from jumok.tasks.tagging.predictor import TaggedText, Tagger, with_entities
from jumok.tasks.tagging.task import collect_tags, prepare
from jumok.tasks.tagging.units import Units, read_pieces, read_words, split_words
from jumok.tasks.windows import WindowRule
from jumok.text.span import Span
from jumok.text.tags import in_characters, places_of
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import BERT, TokenizerConfig

LETTERS = Tokenizer.train(TokenizerConfig(kind="character", vocab_size=300), ["abc def 가나"])
PIECES = Tokenizer.train(TokenizerConfig(kind="wordpiece", vocab_size=60), ["abc def 가나"] * 3, BERT)
TAGS = ["O", "B-X", "I-X"]
HOSTILE = ["", "  ", "\t\n", "👩‍👩‍👧😀 a", "\u0301\u0302", "a\x00b \x1f\x7f", "[CLS] </s>", "é가", "\ufeff\u200b", "."]


class Sentences(list):
    name = "file.conll"


def sentences(*tags):
    return Sentences(Spans.of_words(["w"] * len(row), list(row), f"file.conll:{i}") for i, row in enumerate(tags, 1))


def untrained(seed=1, *, crf=False):
    torch.manual_seed(seed)
    config = RnnConfig(cell="gru", bidirectional=True, d_embedding=8, d_hidden=8)
    model = RnnTagger(config, vocab=LETTERS.vocab_size, n_labels=3, crf=crf).eval()
    with torch.no_grad():  # of many minds
        model.reader.embedding.weight[:-1] *= 20
        model.output.weight *= 6
        for parameter in model.crf.parameters() if model.crf else ():
            parameter.normal_()
    return model


def tagger(units="words", *models, tokenizer=LETTERS, peel=True, crf=False, **facts):
    both = Tokenizers(tokenizer, tokenizer)
    facts = TaggingFacts(labels=TAGS, units={"units": units, "peel": peel}, **{"max_len": 1000, **facts})
    return Tagger(TorchEngine(models or [untrained(crf=crf)], both), both, facts)


def decided(models, texts):
    """The tags of words that white space separates."""
    found = tagger("words", *models, peel=False)
    return found.decide([found.encode(Spans(text), None) for text in texts])


def probabilities(models, texts):
    return [found.probabilities for found in decided(models, texts)]


# a rule


def test_capitalised_words_are_learned(runs, held_out):
    predictor = runs("tagging").predictor
    scores = predictor.score(held_out("tagging"))[0]["scores"]
    assert scores["span_f1"]["value"] > 95
    assert scores["tag_accuracy"]["value"] > 95
    assert scores.keys() == {"span_f1", "precision", "recall", "tag_accuracy", "f1_NAME"}
    assert predictor.predict(["ab Cd Ef a"])[0] == TaggedText(
        "ab/O Cd/B-NAME Ef/I-NAME a/O",
        ["ab", "Cd", "Ef", "a"],
        ["O", "B-NAME", "I-NAME", "O"],
        [pytest.approx(1, abs=0.4)] * 4,
        [Span(3, 8, "NAME", "Cd Ef", pytest.approx(1, abs=0.4))],
        notes=[],
    )
    assert predictor(["ab Cd Ef a"]) == ["ab/O Cd/B-NAME Ef/I-NAME a/O"]


def test_a_vocabulary_that_folds_case_needs_marks_to_know_capitals(tree, train, held_out, tmp_path):
    found = {}
    for mark in (True, False):
        wanted = tree("tagging", task={"mark_capitals": mark}, tokenizer={"lowercase": True})
        train(wanted, tmp_path / str(mark))
        predictor = load(tmp_path / str(mark), device="cpu")
        found[mark] = predictor.score(held_out("tagging"))[0]["scores"]["span_f1"]["value"]
        if mark:
            said = predictor.predict(["ab CD ef", "ab cd ef"])
            assert [[entity.text for entity in tagged.entities] for tagged in said] == [["CD"], []]
    assert found[True] > 90
    assert found[False] < 70


def test_marked_names_are_learned_by_their_characters(runs, held_out):
    predictor, found = runs("marked").predictor, held_out("marked")
    result, outputs = predictor.score(found)
    assert result["scores"]["span_f1"]["value"] > 95
    assert result["scores"].keys() == {"span_f1", "precision", "recall", "f1_NAME"}
    (tagged,) = predictor.predict(["de ABC가는 e"])
    assert tagged.entities == [Span(3, 6, "NAME", "ABC", tagged.entities[0].score)]
    assert tagged.text == "de [ABC](NAME)가는 e"
    assert 0.5 < tagged.entities[0].score <= 1
    assert predictor.engine.models[0].crf is not None
    said = predictor.predict([example.text for example in found])
    gold = [[(span.label, span.start, span.end) for span in example.marked] for example in found]
    assert sum(tagged.spans == spans for tagged, spans in zip(said, gold, strict=True)) > 0.9 * len(found)
    assert outputs == [tagged.text for tagged in said]


@pytest.mark.parametrize("task", ["tagging", "marked"])
def test_the_other_kind_of_file_is_scored_by_its_characters(runs, held_out, task):
    """The same sentences with tags of words and with marks of characters: a model of either can be asked for both."""
    words = [example for example in held_out("tagging") if not {*"".join(example.words)} & {*"가나다는에서"}]
    texts = [example.text for example in words]
    spans = [in_characters(example.tags, places_of(example.words)) for example in words]
    marks = [Spans(example.text, example.marked) for example in words]
    predictor = runs(task).predictor
    by_words, by_marks = (predictor.score(examples)[0]["scores"]["span_f1"]["value"] for examples in (words, marks))
    said = predictor.predict(texts)
    right = span_metrics([tagged.spans for tagged in said], spans).values()["span_f1"]
    assert by_marks == pytest.approx(right, abs=1e-3)
    assert by_words == pytest.approx(right, abs=1e-3)
    assert right > (95 if task == "tagging" else 20)


def test_a_tagger_of_words_and_one_of_pieces_are_compared_by_their_spans(runs, held_out):
    words, pieces = runs("tagging").predictor, runs("marked").predictor
    examples = held_out("tagging")
    for one, other in ((words, pieces), (pieces, words)):
        found = {c.metric: c for c in one.compare(other, examples)}
        assert list(found) == ["span_f1", "precision", "recall", "f1_NAME"]
        for name, c in found.items():
            scores = (predictor.score(examples)[0]["scores"][name]["value"] for predictor in (one, other))
            assert (c.a, c.b) == pytest.approx(tuple(scores), abs=1e-4)


def test_scores_are_those_of_seqeval(runs, held_out):
    found = held_out("tagging")
    predictor = runs("tagging").predictor
    result, outputs = predictor.score(found)
    gold = [example.tags for example in found]
    said = [tagged.tags for tagged in predictor.predict([example.text for example in found])]
    values = {name: score["value"] for name, score in result["scores"].items()}
    assert values["span_f1"] == pytest.approx(100 * f1_score(gold, said), abs=1e-3)
    assert values["tag_accuracy"] == pytest.approx(100 * accuracy_score(gold, said), abs=1e-3)
    words = [
        " ".join(f"{word}/{tag}" for word, tag in zip(example.words, tags, strict=True))
        for example, tags in zip(found, said, strict=True)
    ]
    assert outputs == words


@pytest.mark.parametrize("crf", [False, True])
def test_a_bad_tagger_has_the_scores_of_seqeval_too(crf):
    """One that was never trained says much that is wrong."""
    rng = np.random.default_rng(0)
    examples = [
        Spans.of_words(["".join(rng.choice(list("abcdef"), 3)) for _ in range(n)], rng.choice(TAGS, n).tolist())
        for n in rng.integers(1, 9, 40)
    ]
    predictor = tagger(crf=crf)
    values = {name: score["value"] for name, score in predictor.score(examples)[0]["scores"].items()}
    said = [
        [TAGS[i] for i in found.best]
        for found in decided(predictor.engine.models, [example.text for example in examples])
    ]
    gold = [example.tags for example in examples]
    assert len({tag for tags in said for tag in tags}) > 1
    assert values["span_f1"] == pytest.approx(100 * f1_score(gold, said), abs=1e-3)
    assert values["tag_accuracy"] == pytest.approx(100 * accuracy_score(gold, said), abs=1e-3)


@pytest.mark.parametrize("marked", [False, True])
def test_types_that_training_did_not_have_are_said_to_be_missed(marked):
    strange = Spans.of_words(["ab", "c", "d"], ["B-NEW", "I-NEW", "B-OLD"])
    if marked:
        strange = Spans("ab c d", [Span(0, 4, "NEW"), Span(5, 6, "OLD")])
    result, _ = tagger("pieces" if marked else "words").score([strange])
    (note,) = result["notes"]
    assert note.startswith("2 ")
    assert note.endswith(": NEW, OLD")
    assert result["scores"]["f1_NEW"]["value"] == 0
    assert result["scores"]["recall"]["value"] == 0
    known = Spans.of_words(["ab", "c", "d"], ["B-X", "I-X", "O"])
    assert "notes" not in tagger().score([known])[0]


def test_what_is_not_known_cannot_be_scored():
    for example in (Spans("ab c", where="line 7"), Spans.of_words(["ab", "c"], None, "line 7")):
        with pytest.raises(DataError) as caught:
            tagger().score([example])
        assert (caught.value.code, caught.value.where) == ("data.no_label", "line 7")


def test_words_are_what_white_space_separates(runs):
    predictor = runs("tagging").predictor
    (tagged,) = predictor.predict(["  ab\u3000Cd  a "])
    (same,) = predictor.predict(["ab Cd a"])
    assert tagged.words == ["ab", "Cd", "a"]
    assert (tagged.text, tagged.tags, tagged.probabilities) == (same.text, same.tags, same.probabilities)
    assert [(entity.start, entity.end, entity.text) for entity in tagged.entities] == [(5, 7, "Cd")]


def test_a_tag_that_was_never_trained_on_is_an_error_of_the_model(tree, train, tmp_path):
    """It cannot be predicted, and counts as wrong: published test sets have such tags."""
    dev = tmp_path / "dev"
    dev.write_text("ab O\nCd B-PLACE\n\nab O\n\n", "utf-8")
    wanted = tree("tagging", data={"dev": [str(dev)], "test": [str(dev)]}, train={"steps": 1})
    events = train(wanted, tmp_path / "run")
    (note,) = json.loads((tmp_path / "run" / "scores.json").read_text("utf-8"))["test"]["notes"]
    assert note.endswith(": PLACE")
    scores = next(event.scores for event in events if hasattr(event, "scores"))
    assert np.isfinite(scores["perplexity"])
    assert scores["span_f1"] == 0


def test_a_dev_set_with_nothing_but_unknown_tags_is_refused(tree, train, tmp_path):
    dev = tmp_path / "dev"
    dev.write_text("\nab X\nCd Y\n", "utf-8")
    with pytest.raises(DataError) as caught:
        train(tree("tagging", data={"dev": [str(dev)]}), tmp_path / "run")
    assert (caught.value.code, caught.value.where) == ("data.unknown_tags", f"{dev}:2")
    assert "O, B-NAME, I-NAME" in (caught.value.hint or "")


# entities


@pytest.mark.parametrize("crf", [False, True])
@pytest.mark.parametrize("units", ["words", "pieces"])
@settings(max_examples=50)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(HOSTILE))
def test_an_entity_is_what_the_text_says_there(units, crf, text):
    (found,) = tagger(units, crf=crf).predict([text])
    assert len(found.words) == len(found.tags) == len(found.probabilities)
    at = 0
    for entity in found.entities:
        assert at <= entity.start < entity.end <= len(text)  # in order, and none over another
        assert text[entity.start : entity.end] == entity.text
        assert entity.label == "X"
        assert 0 <= entity.score <= 1
        at = entity.end
    if units == "pieces":
        marks = [f"[{entity.text}]({entity.label})" for entity in found.entities]
        assert found.text == with_entities(text, found.entities)
        assert len(found.text) == len(text) + sum(map(len, marks)) - sum(len(e.text) for e in found.entities)


@pytest.mark.parametrize("task", ["tagging", "marked"])
def test_no_string_is_too_strange(runs, task):
    predictor = runs(task).predictor
    for text, found in zip(HOSTILE, predictor.predict(HOSTILE), strict=True):
        assert all(text[e.start : e.end] == e.text for e in found.entities)
        assert plain(found)["tags"] == found.tags
        json.dumps(plain(found))


def test_a_name_is_found_in_either_form_of_hangul(runs):
    predictor = runs("marked").predictor
    for form in ("NFC", "NFD"):
        text = unicodedata.normalize(form, "가는 ABC는")
        (found,) = predictor.predict([text])
        assert [text[start:end] for _, start, end in found.spans] == ["ABC"]


def test_certainties_are_those_of_the_tags_that_were_chosen():
    """The best path of a CRF need not have the likeliest tag everywhere."""
    predictor = tagger(crf=True)
    texts = ["ab c fed de a b", "fed cab", "a b c d e f a b c"]
    unlike = 0
    for text, found in zip(texts, predictor.predict(texts), strict=True):
        (rows,) = probabilities(predictor.engine.models, [text])
        chosen = [row[TAGS.index(tag)] for row, tag in zip(rows, found.tags, strict=True)]
        assert found.probabilities == pytest.approx(chosen, abs=1e-6)
        unlike += sum(row.max() > p + 1e-6 for row, p in zip(rows, chosen, strict=True))
        for entity in found.entities:
            inside = [
                p
                for (a, b), p in zip(split_words(text, peel=True), found.probabilities, strict=True)
                if entity.start <= a and b <= entity.end
            ]
            assert entity.score == min(inside)
    assert unlike  # otherwise nothing was tested


# tags


def test_tags_stand_in_an_order_that_does_not_follow_the_file():
    for rows in ([["I-X", "B-X"], ["O", "A"]], [["O", "A"], ["B-X", "I-X"]]):
        assert collect_tags(sentences(*rows))[0] == ["O", "A", "B-X", "I-X"]


def test_marked_texts_have_a_tag_to_begin_with_and_one_to_go_on():
    corpus = Sentences([Spans("abc", [Span(0, 1, "Y")]), Spans("a", [Span(0, 1, "X")])])
    assert collect_tags(corpus) == (["O", "B-X", "B-Y", "I-X", "I-Y"], Units(of="pieces", peel=False))


@pytest.mark.parametrize(("words", "peel"), [(["He", "left", "."], True), (["He", "left."], False), (["a"], False)])
def test_texts_are_cut_as_the_words_of_training_are(words, peel):
    corpus = Sentences([Spans.of_words(words, ["O"] * len(words)), Spans.of_words(["b"], ["B-X"])])
    assert collect_tags(corpus)[1] == Units(peel=peel)


@pytest.mark.parametrize("tags", [[], [["O", "O"], ["O"]]])
def test_one_tag_is_nothing_to_learn(tags):
    with pytest.raises(DataError) as caught:
        collect_tags(sentences(*tags))
    assert (caught.value.code, caught.value.where) == ("data.one_tag", "file.conll")


def test_marks_that_do_not_fit_the_pieces_are_counted(tree, tmp_path):
    file = tmp_path / "train.jsonl"
    lines = [{"text": "sun sun", "spans": [{"start": 0, "end": 2, "label": "A"}]}, {"text": "moon", "spans": []}]
    file.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    files = {split: [str(file)] for split in ("train", "dev", "test")}
    wanted = tree("marked", data=files, tokenizer={"kind": "word", "vocab_size": 20})
    found = prepare(parse_recipe(wanted, where="test"), Cache(tmp_path))
    assert found.train.facts["inexact"] == 1
    assert found.notes()[-1].startswith("1 spans begin or end inside a token")
    tags = [[found.labels[i] for i in found.train.fields["tag"][k]] for k in range(2)]
    assert tags == [["B-A", "O"], ["O"]]


# loss


@pytest.mark.parametrize("kind", ["rnn", "bert"])
@pytest.mark.parametrize("task", ["tagging", "marked"])
def test_the_loss_is_that_of_the_units_and_of_nothing_else(tree, tmp_path, task, kind):
    found = prepare(parse_recipe(tree(task, task={"crf": False}), where="test"), Cache(tmp_path))
    torch.manual_seed(1)
    sizes = {"vocab": found.tokenizer.vocab_size, "n_labels": len(found.labels)}
    if kind == "rnn":
        model = RnnTagger(RnnConfig(cell="gru", d_embedding=8, d_hidden=8), **sizes).eval()
    else:
        model = BertTagger(BertConfig(d_model=8, d_ff=8, n_heads=2, n_layers=1, max_len=80), **sizes).eval()
    examples, total, count = np.arange(7), 0.0, 0
    for i in examples:
        row, first, tag = (found.train.fields[name][i].tolist() for name in ("text", "first", "tag"))
        ids = torch.tensor([row])
        with torch.no_grad():
            logits = model(ids, torch.zeros_like(ids), torch.ones_like(ids, dtype=torch.bool))[0]
        total += float(F.cross_entropy(logits[first], torch.tensor(tag), reduction="sum"))
        count += len(tag)
    with torch.no_grad():
        loss = found.loss(model, found.batch(examples), done=0.0)
    assert float(loss.total) == pytest.approx(total, rel=1e-5)
    assert loss.count == count


def test_the_loss_of_a_crf_is_minus_the_log_likelihood_of_the_path(tree, tmp_path):
    found = prepare(parse_recipe(tree("marked"), where="test"), Cache(tmp_path))
    torch.manual_seed(1)
    config = RnnConfig(cell="gru", d_embedding=8, d_hidden=8)
    model = RnnTagger(config, vocab=found.tokenizer.vocab_size, n_labels=3, crf=True).eval()
    torch.nn.init.normal_(model.crf.transitions)
    row, first, tag = (found.train.fields[name][0].tolist() for name in ("text", "first", "tag"))
    with torch.no_grad():
        ids = torch.tensor([row])
        e = model(ids, ids, ids >= 0)[:, first]
        expected = -model.crf.log_likelihood(e, torch.tensor([tag]), torch.ones(1, len(tag), dtype=torch.bool))
        (alone,) = [found.loss(model, found.batch(np.array([0])), done=0.0)]
        among = found.loss(model, found.batch(np.arange(4)), done=0.0)
        others = found.loss(model, found.batch(np.arange(1, 4)), done=0.0)
    assert float(alone.total) == pytest.approx(float(expected), rel=1e-6)
    assert float(among.total) == pytest.approx(float(alone.total + others.total), rel=1e-5)


# probabilities


def test_probabilities_are_those_of_the_first_pieces():
    model = untrained()
    read = read_words(LETTERS, "ab c fed", split_words("ab c fed", peel=False))
    row = LETTERS.frame(read.ids)
    with torch.no_grad():
        ids = torch.tensor([row])
        logits = model(ids, ids, torch.ones(1, len(row), dtype=torch.bool))[0]
    (found,) = probabilities([model], ["ab c fed"])
    assert found == pytest.approx(logits.softmax(dim=-1)[read.firsts].numpy(), abs=1e-6)


def test_in_bert_the_first_piece_comes_after_the_start():
    torch.manual_seed(1)
    config = BertConfig(d_model=8, d_ff=8, n_heads=2, n_layers=1, max_len=20)
    model = BertTagger(config, vocab=PIECES.vocab_size, n_labels=3).eval()
    read = read_pieces(PIECES, "abc def")
    with torch.no_grad():
        ids = torch.tensor([PIECES.frame(read.ids)])
        logits = model(ids, torch.zeros_like(ids), torch.ones_like(ids, dtype=torch.bool))[0]
    predictor = tagger("pieces", model, tokenizer=PIECES)
    (found,) = predictor.decide([predictor.encode(Spans("abc def"), None)])
    assert found.probabilities == pytest.approx(logits[1:-1].softmax(dim=-1).numpy(), abs=1e-6)


def test_sentences_without_a_word_stand_among_others():
    batch, told = ["ab", "", "c fed", ""], []
    assert [len(tagged.tags) for tagged in tagger().predict(batch, done=told.append)] == [1, 0, 2, 0]
    assert sum(told) == 4
    found = decided([untrained()], batch)
    assert [len(tagged.best) for tagged in found] == [1, 0, 2, 0]
    assert found[2].probabilities == pytest.approx(probabilities([untrained()], ["c fed"])[0], abs=1e-6)
    assert [len(rows) for rows in probabilities([untrained()], ["", ""])] == [0, 0]


@pytest.mark.parametrize("crf", [False, True])
def test_many_sentences_make_many_batches(monkeypatch, crf):
    batch = ["ab " * (1 + i % 5) for i in range(20)]
    together = probabilities([untrained(crf=crf)], batch)
    monkeypatch.setattr("jumok.engines.torch.pages", partial(pages, tokens=20))
    for a, b in zip(together, probabilities([untrained(crf=crf)], batch), strict=True):
        assert a == pytest.approx(b, abs=1e-6)


@pytest.mark.parametrize("crf", [False, True])
def test_an_ensemble_is_the_mean_of_its_models(crf):
    texts = ["ab c", "fed"]
    one, other = (probabilities([untrained(seed, crf=crf)], texts) for seed in (1, 2))
    both = probabilities([untrained(1, crf=crf), untrained(2, crf=crf)], texts)
    for a, b, mean in zip(one, other, both, strict=True):
        assert mean == pytest.approx((a + b) / 2, abs=1e-6)
        assert not np.allclose(a, b, atol=1e-3)


def test_spans_and_certainties_belong_to_the_tags():
    predictor = tagger()
    (tagged,) = predictor.predict(["ab c fed de a b"])
    (rows,) = probabilities(predictor.engine.models, ["ab c fed de a b"])
    assert tagged.tags == [TAGS[i] for i in rows.argmax(axis=1)]
    assert tagged.probabilities == pytest.approx(rows.max(axis=1).tolist(), abs=1e-6)


# long texts


@pytest.mark.parametrize("task", ["tagging", "marked"])
def test_names_are_found_in_every_window_of_a_long_text(runs, task):
    """With a context of some pieces a name is as easy in a window as anywhere."""
    predictor = runs(task).predictor
    sentence = {"tagging": "ab Cd Ef a ", "marked": "de ABC가는 e "}[task]
    text, start = sentence * 30, sentence.index("C") if task == "tagging" else sentence.index("A")
    length = len("Cd Ef") if task == "tagging" else 3
    facts = TaggingFacts(
        labels=predictor.labels,
        units=predictor.units.plain(),
        max_len=32,
        long_texts=WindowRule(rule="windows", stride=12),
    )
    long, short = Tagger(predictor.engine, predictor.tokenizers, facts).predict([text, sentence])
    assert [note.code for note in long.notes] == ["text.windows"]
    assert "32 tokens" in long.notes[0].text
    assert (short.notes, short.windows, long.truncated) == ([], 1, False)
    assert long.windows > 3
    expected = [("NAME", i * len(sentence) + start, i * len(sentence) + start + length) for i in range(30)]
    assert len(set(long.spans) & set(expected)) >= 27
    assert short.spans == predictor.predict([sentence])[0].spans


def test_what_a_truncated_text_has_lost_is_nothing():
    cut = tagger("pieces", max_len=12, long_texts=WindowRule(rule="truncate", stride=4))
    (found,) = cut.predict(["abc def " * 10])
    assert [note.code for note in found.notes] == ["text.cut"]
    assert (found.truncated, found.windows) == (True, 1)
    assert len(found.tags) == 60
    assert set(found.tags[12:]) == {"O"}
    assert found.probabilities[-1] == 1


def test_a_text_that_is_too_long_may_be_refused(tree, tmp_path):
    wanted = tree("tagging", data={"max_len": 6, "long_texts": "refuse"})
    with pytest.raises(DataError) as caught:
        prepare(parse_recipe(wanted, where="test"), Cache(tmp_path))
    assert caught.value.code == "data.too_long"
    assert "room for 5" in caught.value.what
    assert wanted["data"]["train"][0] in str(caught.value.where)


def test_a_text_that_is_too_long_fails_alone():
    found = tagger("pieces", max_len=12, long_texts=WindowRule(rule="refuse")).predict(["abc", "abc def " * 10, "de"])
    assert [type(each) for each in found] == [TaggedText, Failure, TaggedText]
    assert (found[1].code, found[1].where) == ("data.too_long", "line 2")


# what is asked, and what is shown


def test_a_line_a_mapping_and_an_example_are_the_same():
    for units in ("words", "pieces"):
        predictor = tagger(units)
        one, *others = predictor.predict(["ab c fed", {"text": "ab c fed"}, Spans("ab c fed"), '{"text": "ab c fed"}'])
        assert others == [one] * 3


def test_words_that_are_given_are_not_cut_again():
    predictor = tagger()
    cut, whole = predictor.predict(["ab c.", {"words": ["ab", "c."]}])
    assert (cut.words, whole.words) == (["ab", "c", "."], ["ab", "c."])


def test_options_are_refused():
    with pytest.raises(InputError) as caught:
        tagger().predict(["ab"], beam=3)
    assert caught.value.code == "input.unknown_option"


def test_entities_make_a_table_and_a_picture():
    predictor, example = tagger("pieces"), Spans("ab c fed de a b")
    output = predictor.predict([example])[0]
    assert output.entities
    rows = predictor.table(output)
    assert [tuple(row) for row in rows] == [predictor.table_columns] * len(output.entities)
    for row, entity in zip(rows, output.entities, strict=True):
        assert row == {
            "type": "X",
            "text": entity.text,
            "start": entity.start,
            "end": entity.end,
            "score": entity.score,
        }
    passage = predictor.passage(example, output)
    assert (passage.text, passage.entities, passage.relations) == (example.text, output.entities, ())


# facts


@pytest.mark.parametrize("task", ["tagging", "marked"])
def test_a_second_preparation_finds_tags_and_units_with_the_shards(tree, tmp_path, monkeypatch, task):
    recipe = parse_recipe(tree(task), where="test")
    first = prepare(recipe, Cache(tmp_path))
    monkeypatch.setattr("jumok.tasks.tagging.task.collect_tags", lambda *_, **__: pytest.fail("read again"))
    second = prepare(recipe, Cache(tmp_path), fresh=False)
    assert (second.labels, second.facts) == (first.labels, first.facts)
    assert second.labels == ["O", "B-NAME", "I-NAME"]


def test_a_model_from_elsewhere_tags_words():
    facts = TaggingKind().read_facts({"task": {"kind": "tagging"}, "labels": TAGS, "max_len": 20, "language": "en"})
    assert Units.stored(facts.units) == Units()
    assert (facts.rule(None).max_len, facts.rule(None).rule) == (20, "windows")
    assert TaggingKind().head({"kind": "tagging"}, facts).n_labels == 3
    assert not TaggingKind().head({"kind": "tagging"}, facts).crf
