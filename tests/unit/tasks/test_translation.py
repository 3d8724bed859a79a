"""Translation: what a translator is asked and what it says, whatever the weights."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from jumok.decode.options import DecodeConfig
from jumok.engines.torch import TorchEngine
from jumok.errors import DataError, InputError
from jumok.examples.pairs import Pair
from jumok.models.seq2seq import Seq2Seq, Seq2SeqConfig
from jumok.models.transformer import Transformer, TransformerConfig
from jumok.tasks.protocol import Failure, adapter, plain
from jumok.tasks.translation import TranslationFacts, TranslationKind
from jumok.tasks.translation.predictor import Translation, Translator
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import EOS_ID, TokenizerConfig

WORDS = Tokenizer.train(TokenizerConfig(kind="word", vocab_size=20), ["a b c d e f g h"])
BOTH = Tokenizers(WORDS, WORDS)
FACTS = TranslationFacts(source="en", target="de", decode=DecodeConfig(beam=3, max_extra=4), longest=5)
SMALL = TransformerConfig(d_model=16, d_ff=16, n_heads=2, n_layers=2, dropout=0.0)
V = WORDS.vocab_size


def transformer(seed=1, **changes):
    torch.manual_seed(seed)
    model = Transformer(replace(SMALL, **changes), source_vocab=V, target_vocab=V).eval()
    with torch.no_grad():
        model.target_embedding.weight[EOS_ID] *= -1  # so that it says something
    return model


def recurrent(**changes):
    torch.manual_seed(1)
    return Seq2Seq(
        Seq2SeqConfig(d_embedding=8, d_hidden=8, dropout=0.0, **changes), source_vocab=V, target_vocab=V
    ).eval()


def translator(*models, **facts):
    return Translator(TorchEngine(models or [transformer()], BOTH), BOTH, replace(FACTS, **facts))


# what is asked


def test_a_line_a_mapping_and_a_pair_are_the_same_question():
    asked = ["a b", {"text": "a b"}, {"source": "a b"}, {"source": "a b", "target": "c"}, Pair("a b")]
    found = translator().predict(asked)
    assert isinstance(found[0], Translation)
    assert {(one.text, round(one.score, 4)) for one in found} == {(found[0].text, round(found[0].score, 4))}
    assert found[0].text
    assert [output.text for output in translator().predict("a b")] == [found[0].text]


def test_the_stored_decoding_is_the_default():
    model = translator()
    assert model.predict(["a b"]) == model.predict(["a b"], beam=3, max_extra=4)
    greedy = translator(decode=DecodeConfig(method="greedy", max_extra=4))
    assert greedy.predict(["a b"]) == model.predict(["a b"], method="greedy")
    assert (model.wanted({}).beam, model.wanted({"beam": 2}).beam, model.facts.decode.beam) == (3, 2, 3)


def test_an_empty_text_is_answered_without_the_model(monkeypatch):
    model = translator()

    def nothing_but(sources, requests, config, *, done):
        assert sources == []
        return []

    monkeypatch.setattr(model.engine, "search", nothing_but)
    told = []
    assert model.predict(["", " ", "\u3000"], prefix="a", done=told.append) == [Translation("", 0.0, [])] * 3
    assert sum(told) == 3


def test_outputs_begin_with_the_prefix():
    texts = ["a b", "c d e", "f"]
    for method in ("beam", "greedy", "sample"):
        assert all(text.startswith("h g") for text in translator()(texts, method=method, prefix="h g"))
    assert not any(text.startswith("h g") for text in translator()(texts))


def test_a_sample_depends_on_its_sentence_and_its_seed_alone():
    texts, options = ["a b c", "d", "e f", "a b c"], {"method": "sample", "temperature": 3.0}
    together = translator()(texts, seed=5, **options)
    assert together == [translator()([text], seed=5, **options)[0] for text in texts]
    assert together[0] == together[3]
    assert together != translator()(texts, seed=6, **options)


def test_coverage_needs_attention():
    assert translator().predict(["a"], coverage_penalty=0.2)
    assert translator(recurrent(attention="luong")).predict(["a"], coverage_penalty=0.2)
    for models in ([recurrent()], [transformer(), recurrent()]):
        with pytest.raises(InputError) as caught:
            translator(*models).predict(["a"], coverage_penalty=0.2)
        assert caught.value.code == "input.no_attention"


# too long


def test_a_text_too_long_for_the_positions_fails_alone():
    model = translator(transformer(positions="learned", max_len=8))
    first, failed, last = model.predict([Pair("a " * 6, None, "f:1"), Pair("a " * 7, None, "f:2"), "b"])
    assert isinstance(first, Translation)
    assert isinstance(last, Translation)
    assert isinstance(failed, Failure)
    assert (failed.code, failed.where) == ("text.too_long", "f:2")
    assert all(number in failed.what for number in ("8 tokens", "8 positions"))
    (failed,) = model.predict(["a"], prefix="b " * 8)
    assert (failed.code, failed.where) == ("text.too_long", "line 1")
    for asked in (lambda: model.align("a " * 7, "b"), lambda: model.align("a", "b " * 8)):
        with pytest.raises(InputError) as caught:
            asked()
        assert caught.value.code == "text.too_long"


def test_a_text_longer_than_those_of_training_is_noted():
    short, long = translator().predict(["a b c d", "a b c d e"])  # five and six pieces with their ends
    assert (short.notes, [note.code for note in long.notes]) == ([], ["text.longer_than_training"])
    assert "5" in long.notes[0].text
    assert translator(longest=None).predict(["a b c d e"])[0].notes == []


# what is said


def test_json_has_no_ids():
    (found,) = translator().predict(["a b"], n_best=2)
    assert found.ids == WORDS.encode(found.text)
    tree = plain(found)
    assert tree.keys() == {"text", "score", "alternatives", "notes"}
    assert tree["alternatives"][0].keys() == tree.keys()
    assert "ids" not in json.dumps(adapter(Translation).json_schema(mode="serialization"))


def test_an_alignment_comes_if_it_is_asked_for():
    model = translator()
    (found,) = model.predict(["a b"], alignment=True)
    assert found.alignment == model.align("a b", found) == model.align(Pair("a b"), found.text)
    assert plain(found)["alignment"]["weights"] == found.alignment.weights
    assert (found.alignment.source[-1], found.alignment.target[-1]) == ("</s>", "</s>")
    assert [t for _, t in found.alignment.links] == list(range(len(found.ids)))
    assert model.predict(["a b"])[0].alignment is None
    assert translator(recurrent()).predict(["a b"], alignment=True)[0].alignment is None


def test_attention_of_every_layer_and_head():
    model = translator()
    (found,) = model.predict(["a b c"])
    maps = model.attention("a b c")
    source, target = WORDS.pieces(BOTH.encode_source("a b c")), WORDS.pieces([*found.ids, EOS_ID])
    assert {name: (a.rows, a.columns) for name, a in maps.items()} == {
        "encoder": (source, source),
        "decoder": (target, WORDS.pieces([WORDS.pad_id, *found.ids])),
        "cross": (target, source),
    }
    for a in maps.values():
        assert a.weights.shape == (2, 2, len(a.rows), len(a.columns))
        assert np.allclose(a.weights.sum(axis=-1), 1)
    mean = maps["cross"].weights.mean(axis=(0, 1))
    assert np.allclose(mean, model.align("a b c", found).weights, atol=5.1e-5)
    assert model.attention("a b c", "d e")["cross"].rows == WORDS.pieces(BOTH.encode_target("d e"))
    assert [*translator(recurrent(attention="luong")).attention("a")] == ["cross"]
    with pytest.raises(InputError) as caught:
        translator(recurrent()).attention("a")
    assert caught.value.code == "input.no_attention"


# scores


def test_dev_scores_are_of_greedy_outputs():
    pairs = [Pair("a b", "c d"), Pair("e", "f g h"), Pair("", "a")]
    model = translator()
    found = model.quick(pairs)
    assert [*found] == ["perplexity", "bleu", "exact_match"]
    total, count = model.engine.losses(
        [BOTH.encode_source(pair.source) for pair in pairs], [BOTH.encode_target(pair.gold) for pair in pairs]
    )
    assert found["perplexity"] == pytest.approx(np.exp(total / count))
    outputs = model([pair.source for pair in pairs], method="greedy", max_extra=50)
    same = [replace(pair, target=output) for pair, output in zip(pairs[:2], outputs, strict=False)]
    assert model.quick(same)["exact_match"] == 100


def test_scores_need_a_translation_and_comparisons_one_direction():
    with pytest.raises(DataError) as caught:
        translator().score([Pair("a", "b"), Pair("a", None, "f:2")])
    assert (caught.value.code, caught.value.where) == ("data.no_label", "f:2")
    with pytest.raises(InputError) as caught:
        translator().compare(translator(target="ko"), [Pair("a", "b")])
    assert caught.value.code == "input.other_languages"
    pairs = [Pair("a b c d", "e f g h")] * 3
    result, outputs = translator().score(pairs, method="greedy")
    assert (result["sentences"], outputs) == (3, translator()(pairs, method="greedy"))
    assert result["bleu_by_source_words"]
    assert "notes" not in result
    result, _ = translator().score([*pairs, Pair("a b c d e", "f")])
    assert [note.split(":")[0] for note in result["notes"]] == ["1 of 4"]


# what is remembered


def test_facts_are_read_as_they_were_stored():
    stored = json.loads(json.dumps({"version": "0", "task": {"kind": "translation"}, **asdict(FACTS)}))
    assert TranslationKind().read_facts(stored) == FACTS
    elsewhere = {"source": "en", "target": "", "decode": {"method": "greedy"}}
    found = TranslationKind().read_facts(elsewhere)
    assert (found.decode, found.longest, found.lowercase) == (DecodeConfig(method="greedy"), None, False)
