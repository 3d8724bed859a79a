"""What every engine must satisfy: the fast one gives the reference's outputs, whatever else is in the batch."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from jumok.building import _store, build_engine
from jumok.building import unsuited as unsuited_here
from jumok.data.pages import pad
from jumok.engines import fast_work
from jumok.engines.fast import FastEngine
from jumok.engines.fast_folder import Built, engine_folder, store_engine
from jumok.engines.fast_specs import unsuited, write_spec
from jumok.engines.fast_translation import POSITIONS, FastTranslator
from jumok.engines.torch import TorchEngine
from jumok.files import write_folder
from jumok.hub.folder import ModelFolder
from jumok.models.build import build_model
from jumok.models.gpt import Gpt, GptConfig
from jumok.models.head import Head
from jumok.models.seq2seq import Seq2SeqConfig
from jumok.models.transformer import Transformer, TransformerConfig
from jumok.models.weights import unique_tensors
from jumok.predictor import load
from jumok.tasks.language_model import LanguageModelFacts
from jumok.tasks.language_model.predictor import Generator
from jumok.tasks.stored import read_model, write_model
from jumok.tasks.translation import TranslationFacts
from jumok.tasks.translation.predictor import Translator
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import TokenizerConfig
from tiny_berts import bert_folder, frames

LETTERS = "a b c d e f g h i j k l m n o p q r s t u v w x y z"
JOINT = Tokenizer.train(TokenizerConfig(kind="word", vocab_size=40), [LETTERS])
OTHER = Tokenizer.train(TokenizerConfig(kind="word", vocab_size=30), [LETTERS.upper()])
BYTES = Tokenizer.train(TokenizerConfig(kind="byte_bpe", vocab_size=300), [LETTERS])
SMALL = TransformerConfig(d_model=24, d_ff=48, n_heads=2, n_layers=2, dropout=0.0)
TRANSFORMERS = {
    "post-norm": {},
    "pre-norm": {"norm": "pre"},
    "learned positions": {"positions": "learned", "max_len": 40},
    "gelu": {"activation": "gelu"},
    "swish": {"activation": "silu"},
    "two vocabularies": {"tie_embeddings": "target"},
    "two vocabularies, untied": {"tie_embeddings": "none"},
}
each_transformer = pytest.mark.parametrize("kind", TRANSFORMERS)
GREEDY = {"method": "greedy", "length_penalty": 0.0}
BEAM = {"beam": 4, "length_penalty": 0.6}
SEARCHES = [GREEDY, BEAM, {"beam": 3, "length_penalty": 0.0}, {**BEAM, "max_extra": 1}]


def texts(n, seed=0):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(LETTERS.split(), size=rng.integers(1, 12))) for _ in range(n)]


def engines(folder, model, tokenizers, compute="float32"):
    """The reference and the fast engine of one model."""
    c = model.config
    stored = ModelFolder(c, unique_tensors(model), tokenizers, {})
    facts = {"kind": c.kind, "longest": c.longest, "attends": c.attends, "compute": compute}
    built = Built(**facts, facts={}, library="", model="")
    quantization = None if compute == "float32" else compute
    store_engine(folder / "engine", built, tokenizers, lambda path: write_spec(stored, path, quantization=quantization))
    reference = TorchEngine([model.eval()], tokenizers)
    return reference, FastEngine(built, folder / "engine", tokenizers, lambda: reference)


def used_reference(predictor):
    return "reference" in vars(predictor.engine)


@cache
def learner(kind):
    """A Transformer that has begun to learn to copy: sure of some outputs and not of others."""
    torch.manual_seed(7)
    c = replace(SMALL, **TRANSFORMERS[kind])
    tokenizers = Tokenizers(JOINT, JOINT if c.tie_embeddings == "all" else OTHER)
    model = Transformer(c, **tokenizers.sizes)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    lines = texts(600, seed=1)
    for step in range(60):
        some = lines[step * 10 : step * 10 + 10]
        copies = some if c.tie_embeddings == "all" else [line.upper() for line in some]
        source = pad([tokenizers.encode_source(line) for line in some], tokenizers.source.pad_id)
        target = pad([tokenizers.encode_target(line) for line in copies], tokenizers.target.pad_id)
        read = torch.full_like(target, tokenizers.target.pad_id)
        read[:, 1:] = target[:, :-1]
        real = target != tokenizers.target.pad_id
        logits = model.logits(model(source, source != tokenizers.source.pad_id, read)[real])
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(logits, target[real]).backward()
        model.target_embedding.weight.grad[-1] = 0
        optimizer.step()
    return model, tokenizers


def translators(folder, kind, compute="float32"):
    found = engines(folder, *learner(kind), compute)
    return [Translator(engine, engine.tokenizers, TranslationFacts()) for engine in found]


@each_transformer
@pytest.mark.parametrize("options", SEARCHES, ids=str)
def test_float32_gives_the_tokens_and_scores_of_the_reference(tmp_path, kind, options):
    reference, fast = translators(tmp_path, kind)
    given = texts(60)
    for ours, theirs in zip(reference.predict(given, **options), fast.predict(given, **options), strict=True):
        assert theirs.ids == ours.ids
        assert theirs.score == pytest.approx(ours.score, abs=1e-4)
    assert not used_reference(fast)


@pytest.mark.parametrize("options", [GREEDY, BEAM], ids=str)
def test_an_output_does_not_depend_on_its_batch(tmp_path, options, monkeypatch):
    fast = translators(tmp_path, "pre-norm")[1]
    given = texts(100)
    found = fast.predict(given, **options)
    backwards = fast.predict(given[::-1], **options)[::-1]
    alone = [fast.predict([text], **options)[0] for text in given[:20]]
    monkeypatch.setitem(fast_work.WIDTH, "float32", 3)
    fast = translators(tmp_path, "pre-norm")[1]
    few = fast.predict(given, **options)
    for others in (backwards, few):
        assert [output.ids for output in others] == [output.ids for output in found]
    assert [output.ids for output in alone] == [output.ids for output in found[:20]]


def test_repeated_texts_are_answered_once_and_in_their_places(tmp_path, monkeypatch):
    fast = translators(tmp_path, "pre-norm")[1]
    given = ["a b", "c", "a b", "a b", "c d e"]
    begun = []
    begin = FastTranslator._begin
    monkeypatch.setattr(FastTranslator, "_begin", lambda self, *a: begun.extend(a[0]) or begin(self, *a))
    counted = []
    outputs = fast.predict(given, done=counted.append, **BEAM)
    assert len(begun) == 3
    assert sum(counted) == 5
    assert [output.text for output in outputs] == [fast.predict([text], **BEAM)[0].text for text in given]


@pytest.mark.parametrize(
    "options",
    [{"method": "sample"}, {**BEAM, "coverage_penalty": 0.2}, {**BEAM, "n_best": 3}, {**BEAM, "prefix": "a b"}],
    ids=str,
)
def test_what_the_library_does_otherwise_is_left_to_the_reference(tmp_path, options):
    reference, fast = translators(tmp_path, "post-norm")
    given = texts(9)
    assert [o.ids for o in fast.predict(given, **options)] == [o.ids for o in reference.predict(given, **options)]
    assert used_reference(fast)


def test_texts_beyond_the_stored_positions_are_left_to_the_reference(tmp_path):
    reference, fast = translators(tmp_path, "post-norm")
    given = ["a b c", " ".join(["d"] * POSITIONS)]
    options = {**GREEDY, "max_extra": 1}
    found = fast.predict(given[:1], **options)
    assert not used_reference(fast)
    found += fast.predict(given[1:], **options)
    assert [o.ids for o in found] == [o.ids for o in reference.predict(given, **options)]
    assert used_reference(fast)


def test_eight_threads_share_a_fast_engine(tmp_path):
    fast = translators(tmp_path, "pre-norm")[1]
    given = texts(40)
    expected = [output.ids for output in fast.predict(given, **BEAM)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: [output.ids for output in fast.predict(given, **BEAM)], range(8)))
    assert found == [expected] * 8


def test_a_stop_is_heard_between_batches(tmp_path, monkeypatch):
    monkeypatch.setitem(fast_work.WIDTH, "float32", 3)
    fast = translators(tmp_path, "pre-norm")[1]
    heard = []

    def stop(n):
        heard.append(n)
        if len(heard) == 4:
            raise KeyboardInterrupt

    fast.engine.between = stop
    with pytest.raises(KeyboardInterrupt):
        fast.predict(texts(100), **GREEDY)
    assert len(heard) == 4


def test_most_outputs_of_int8_are_those_of_float32(tmp_path):
    """A rate and no more: int8 rounds, so an output may differ, and may depend on its batch."""
    exact = translators(tmp_path / "float32", "pre-norm")[1]
    rounded = translators(tmp_path / "int8", "pre-norm", "int8")[1]
    given = texts(100)
    pairs = zip(exact.predict(given, **GREEDY), rounded.predict(given, **GREEDY), strict=True)
    same = sum(one.ids == other.ids for one, other in pairs)
    assert same > 50


RECURRENT = Seq2SeqConfig(
    cell="gru", attention="bahdanau", d_embedding=64, d_hidden=64, bidirectional=True, tie_embeddings="target"
)


@pytest.fixture
def recurrent_run(tmp_path):
    """A recurrent translator with random weights, and engines in float32 and int8."""
    torch.manual_seed(2)
    tokenizers = Tokenizers(JOINT, OTHER)
    model = build_model(RECURRENT, Head(asks="words"), **tokenizers.sizes)
    facts = {"version": "0.1.0", "task": {"kind": "translation"}, "decode": {}, "source": "en", "target": "xx"}
    stored = ModelFolder(RECURRENT, unique_tensors(model), tokenizers, facts)
    write_folder(tmp_path / "run/model", lambda building: write_model(building, stored, card=""))
    return tmp_path / "run"


@pytest.mark.skipif(unsuited_here(RECURRENT) is not None, reason="this processor has no fast products of bytes")
def test_a_recurrent_translator_has_int8_weights_if_they_pass(recurrent_run):
    """Rounded rows have scales of their own: outputs do not depend on their batch."""
    given = texts(60)
    built = build_engine(recurrent_run)
    exact = load(recurrent_run)
    assert exact.engine.models[0].rounded is None
    model = recurrent_run / "model"
    _store(engine_folder(model), replace(built, compute="int8"), read_model(model))
    rounded = load(recurrent_run)
    assert rounded.engine.models[0].rounded is not None
    assert load(recurrent_run, engine="torch").engine.models[0].rounded is None
    found = rounded.predict(given, **BEAM)
    assert [output.ids for output in rounded.predict(given[::-1], **BEAM)[::-1]] == [output.ids for output in found]
    assert [rounded.predict([text], **BEAM)[0].ids for text in given[:5]] == [output.ids for output in found[:5]]
    pairs = [*zip(exact.predict(given, **GREEDY), rounded.predict(given, **GREEDY), strict=True)]
    scores = np.array([(one.score, other.score) for one, other in pairs if one.ids == other.ids])
    assert len(scores) > 30
    np.testing.assert_allclose(scores[:, 1], scores[:, 0], rtol=0.02)


@cache
def writer():
    torch.manual_seed(3)
    model = Gpt(GptConfig(d_model=24, d_ff=48, n_heads=2, n_layers=2, dropout=0.0, max_len=60), vocab=BYTES.vocab_size)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 3
    return model, Tokenizers(BYTES, BYTES)


def generators(folder):
    found = engines(folder, *writer())
    facts = LanguageModelFacts(max_len=60)
    return [Generator(engine, engine.tokenizers, facts) for engine in found]


@pytest.mark.parametrize("max_extra", [1, 12, 200])
def test_a_gpt_continues_texts_as_the_reference_does(tmp_path, max_extra):
    reference, fast = generators(tmp_path)
    given = ["", *texts(30)]
    options = {"method": "greedy", "max_extra": max_extra}
    for ours, theirs in zip(reference.predict(given, **options), fast.predict(given, **options), strict=True):
        assert theirs.text == ours.text
        assert theirs.log_prob == pytest.approx(ours.log_prob, rel=1e-4, abs=1e-3)
    assert not used_reference(fast)


def test_a_gpt_scores_texts_as_the_reference_does(tmp_path):
    reference, fast = generators(tmp_path)
    given = ["", *texts(30)]
    np.testing.assert_allclose(fast.likelihood(given), reference.likelihood(given), rtol=1e-4, atol=1e-3)
    assert not used_reference(fast)


def test_samples_of_a_gpt_are_the_references(tmp_path):
    reference, fast = generators(tmp_path)
    options = {"method": "sample", "max_extra": 8, "seed": 5}
    assert fast(texts(5), **options) == reference(texts(5), **options)
    assert used_reference(fast)


HEADED = {
    "text": Head(asks="text", n_labels=3),
    "pieces": Head(asks="pieces", n_labels=4),
    "crf": Head(asks="pieces", n_labels=4, crf=True),
    "entities": Head(asks="entities", n_labels=3),
    "masked": Head(asks="masked"),
    "nothing": Head(asks="nothing"),
}
LENGTHS = [7, 4, 12, 7, 40, 5, 12, 9]


def berts(folder, kind, compute="float32"):
    """The reference and the fast engine of a tiny BERT with one of the heads."""
    model, stored = bert_folder(HEADED[kind], n_layers=2)
    c = stored.config
    head = {"asks": HEADED[kind].asks, "activation": c.activation, "norm_eps": c.norm_eps}
    built = Built(kind="bert", longest=c.max_len, attends=True, compute=compute, facts={}, library="", model="", **head)
    _store(folder / "engine", built, stored)
    reference = TorchEngine([model], stored.tokenizers)
    return reference, FastEngine(built, folder / "engine", stored.tokenizers, pytest.fail), stored


@pytest.mark.parametrize("kind", ["text", "pieces", "crf", "entities"])
def test_the_heads_of_a_bert_give_the_logits_of_the_reference(tmp_path, kind):
    reference, fast, stored = berts(tmp_path, kind)
    rows = frames(stored, LENGTHS)
    where = {"entities": [((1, 2), (2, len(row) - 1)) for row in rows]} if kind == "entities" else {}
    counted = []
    ours, theirs = reference.logits(rows, **where), fast.logits(rows, done=counted.append, **where)
    assert sum(counted) == len(rows)
    for one, other in zip(ours, theirs, strict=True):
        assert other.shape == one.shape
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=2e-5)
    if kind in ("pieces", "crf"):
        for one, other in zip(reference.tag(ours), fast.tag(theirs), strict=True):
            np.testing.assert_array_equal(other.best, one.best)
            np.testing.assert_allclose(other.probabilities, one.probabilities, atol=1e-5)


def test_a_pretrained_bert_predicts_as_the_reference(tmp_path):
    reference, fast, stored = berts(tmp_path, "masked")
    rows = frames(stored, LENGTHS, masks=True)
    assert (fast.can_fill, fast.can_follow) == (reference.can_fill, reference.can_follow) == (True, True)
    for one, other in zip(reference.masked(rows), fast.masked(rows), strict=True):
        np.testing.assert_allclose(other, one, atol=1e-5)
    np.testing.assert_allclose(fast.follows(rows), reference.follows(rows), atol=1e-5)


def test_the_states_of_an_encoder_are_those_of_the_reference(tmp_path):
    reference, fast, stored = berts(tmp_path, "nothing")
    rows = frames(stored, LENGTHS)
    assert (fast.can_fill, fast.can_follow) == (False, False)
    for one, other in zip(reference.states(rows), fast.states(rows), strict=True):
        np.testing.assert_allclose(other, one, atol=1e-5)


@pytest.mark.parametrize("compute", ["float32", "int8"])
def test_a_label_does_not_depend_on_its_batch_to_the_last_bit(tmp_path, compute):
    _, fast, stored = berts(tmp_path, "text", compute)
    rows = frames(stored, LENGTHS)
    found = fast.logits(rows)
    alone = [fast.logits([row])[0] for row in rows]
    backwards = fast.logits(rows[::-1])[::-1]
    for one, other, third in zip(found, alone, backwards, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, third)


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (replace(SMALL, neighbourhood=2), "neighbourhood"),
        (replace(SMALL, d_k=6, d_v=10), "heads"),
        (Seq2SeqConfig(), "seq2seq"),
    ],
)
def test_a_model_that_the_library_lacks_has_its_reason(config, why):
    assert why in unsuited(config)


def test_a_fast_engine_does_not_need_torch(tmp_path):
    translators(tmp_path, "pre-norm")
    code = """
import sys
from pathlib import Path
from jumok.decode.options import DecodeConfig, Request
from jumok.engines import fast_work
from jumok.engines.fast import FastEngine
from jumok.engines.fast_folder import Built
from jumok.hub.tokenizer import read_tokenizers
folder = Path(sys.argv[1])
built = Built(kind="transformer", longest=None, attends=True, facts={}, library="", model="")
engine = FastEngine(built, folder, read_tokenizers(folder), None)
found = engine.search([[4, 5, 0]], [Request(3, 10)], DecodeConfig())
assert found[0][0].ids is not None
print("torch" in sys.modules)
"""
    found = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "engine"], capture_output=True, text=True, check=True
    )
    assert found.stdout == "False\n"
