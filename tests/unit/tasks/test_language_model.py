"""Language modelling: a line that is learned by heart, and likelihoods equal to torch's cross-entropy."""

from math import exp, log

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from jumok.decode.options import DecodeConfig
from jumok.engines.torch import TorchEngine
from jumok.errors import InputError, RecipeError
from jumok.examples.documents import Sentence
from jumok.examples.plain import Text
from jumok.models.elmo import Elmo, ElmoConfig
from jumok.models.gpt import Gpt, GptConfig
from jumok.models.rnn import RnnConfig, RnnLanguageModel
from jumok.tasks.language_model import LanguageModelFacts
from jumok.tasks.language_model.predictor import Generator, bits_per_byte_from, perplexity_from, whole_texts
from jumok.tasks.language_model.task import encode_lines, encode_texts, make_batch
from jumok.tasks.protocol import Failure, plain
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import EOS_ID, GPT, TokenizerConfig

LINE = "the cat sat on the mat and the dog lay by the door"
LETTERS = Tokenizer.train(TokenizerConfig(kind="character", vocab_size=300), ["abc def 가나"])
LINES = ["abc de", "가나 a", "f", "cab fed bad cab"]


def untrained(seed=1):
    torch.manual_seed(seed)
    model = RnnLanguageModel(RnnConfig(d_embedding=8, d_hidden=8, dropout=0.0), vocab=LETTERS.vocab_size).eval()
    with torch.no_grad():
        model.reader.embedding.weight[:-1] *= 10  # far from even
    return model


def generator(models, tokenizer=LETTERS, *, max_len=100, **decode):
    tokenizers = Tokenizers(tokenizer, tokenizer)
    facts = LanguageModelFacts(max_len=max_len, decode=DecodeConfig(**decode))
    return Generator(TorchEngine(models, tokenizers), tokenizers, facts)


def likelihood(models, lines, max_len=100):
    return generator(models, max_len=max_len).likelihood(lines)


def texts(*lines):
    return [Text(line, None, f"file:{number}") for number, line in enumerate(lines, start=1)]


def cost(model, ids):
    """Minus the log-probability of pieces, by torch, from the start on."""
    read = torch.tensor([[LETTERS.pad_id, *ids[:-1]]])
    with torch.no_grad():
        return float(F.cross_entropy(model.logits(model(read))[0].double(), torch.tensor(ids), reduction="sum"))


# a line


def test_a_line_is_learned_by_heart(runs, held_out):
    predictor = runs("language_model").predictor
    scores = predictor.score(held_out("language_model"))[0]["scores"]
    assert 1 <= scores["perplexity"]["value"] < 1.5
    for start in ("the cat sat", "the cat", "the cat sat on the mat and the dog", LINE):
        assert predictor([start]) == [LINE]


def test_beams_give_alternatives(runs):
    (found,) = runs("language_model").predictor.predict(["the cat sat"], method="beam", beam=3, n_best=3)
    assert found.text == LINE
    assert len(found.alternatives) == 2
    assert all(text.startswith("the cat sat") and text != LINE for text in found.alternatives)


def test_samples_follow_their_seed(runs):
    predictor = runs("language_model").predictor
    options = {"method": "sample", "temperature": 5.0}
    outputs = {seed: predictor.predict(["the cat"], seed=seed, **options)[0] for seed in (1, 2, 3)}
    assert outputs[1] == predictor.predict(["the cat"], seed=1, **options)[0]
    assert len({output.text for output in outputs.values()}) > 1


def test_an_output_has_room(runs):
    predictor = runs("language_model").predictor
    assert predictor.predict(["the cat sat"], max_extra=2)[0].text == "the cat sat on the"


@pytest.mark.parametrize("method", ["greedy", "sample"])
def test_the_log_probability_is_that_of_the_continuation(runs, method):
    """With an end that the model wrote, and without the one at the limit."""
    predictor = runs("language_model").predictor
    end = predictor.tokenizer.end_id

    def log_prob(text, *, ended):
        ids = predictor.tokenizer.encode(text)
        with_end, without = (float(predictor.engine.likelihood([[*ids, *more]])[0, 0]) for more in ([end], []))
        return with_end if ended else without

    given = "the cat sat"
    for extra, ended in ((40, True), (1, False)):
        (found,) = predictor.predict([given], method=method, max_extra=extra)
        expected = log_prob(found.text, ended=ended) - log_prob(given, ended=False)
        assert found.log_prob == pytest.approx(expected, abs=1e-3)


def test_wrong_options_are_named(runs):
    predictor = runs("language_model").predictor
    with pytest.raises(RecipeError) as caught:
        predictor.predict(["the"], beam=0)
    assert [mistake.key for mistake in caught.value.mistakes] == ["beam"]
    with pytest.raises(InputError) as caught:
        predictor.predict(["the"], coverage_penalty=0.2)
    assert caught.value.code == "input.no_attention"
    with pytest.raises(InputError) as caught:
        predictor.score(texts("the"), bean=2)
    assert (caught.value.code, "beam" in caught.value.hint) == ("input.unknown_option", True)


def test_only_bits_per_byte_are_compared(runs, held_out):
    """Perplexities of different vocabularies are of different things."""
    predictor = runs("language_model").predictor
    found = predictor.compare(predictor, held_out("language_model"))
    assert [comparison.metric for comparison in found] == ["bits_per_byte"]


# likelihood


def test_likelihood_is_torchs_cross_entropy():
    model = untrained()
    found = likelihood([model], LINES)
    for row, line in zip(found, LINES, strict=True):
        ids = [*LETTERS.encode(line), EOS_ID]
        words = len(line.split()) + 1
        assert row == pytest.approx([cost(model, ids), len(ids), len(line.encode()) + 1, words, 0], rel=1e-5)
    total = found.sum(axis=0)
    assert perplexity_from(total) == pytest.approx(exp(total[0] / total[1]))
    assert bits_per_byte_from(total) == pytest.approx(
        total[0] / log(2) / sum(len(f"{line}\n".encode()) for line in LINES)
    )


@pytest.mark.parametrize("max_len", [1, 3, 4])
def test_a_long_line_is_scored_in_parts_and_nothing_is_left_out(max_len):
    model, ids = untrained(), [*LETTERS.encode(LINES[3]), EOS_ID]
    parts = [ids[start : start + max_len] for start in range(0, len(ids), max_len)]
    (row,) = likelihood([model], LINES[3:], max_len)
    wanted = [sum(cost(model, part) for part in parts), len(ids), len(LINES[3]) + 1]
    assert row[:3] == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("blank", ["", " ", "\u3000\t "])
def test_an_empty_line_neither_costs_nor_helps(blank):
    model = untrained()
    with_blanks = likelihood([model], [blank, *LINES, blank])
    assert not with_blanks[[0, -1]].any()
    assert with_blanks.sum(axis=0) == pytest.approx(likelihood([model], LINES).sum(axis=0))
    assert not likelihood([model], [blank]).any()


def test_an_ensemble_is_the_mean_of_probabilities():
    one, other = untrained(1), untrained(2)
    ids = LETTERS.encode("a")
    assert len(ids) == 2
    read = torch.tensor([[LETTERS.pad_id, *ids]])
    with torch.no_grad():
        mean = sum(model.logits(model(read))[0].double().softmax(dim=-1) for model in (one, other)) / 2
    expected = -sum(log(mean[place, piece]) for place, piece in enumerate([*ids, EOS_ID]))
    assert likelihood([one, other], ["a"])[0, 0] == pytest.approx(expected, rel=1e-5)
    assert likelihood([one], ["a"])[0, 0] != pytest.approx(expected, rel=1e-3)


def test_many_lines_make_many_batches(monkeypatch):
    together = likelihood([untrained()], LINES * 5)
    monkeypatch.setattr("jumok.engines.torch.SEARCH_TOKENS", 10)
    assert likelihood([untrained()], LINES * 5) == pytest.approx(together, rel=1e-5)


# batches


def test_what_is_read_is_a_step_behind_what_is_predicted():
    batch = make_batch([[5, 6, 0], [7, 0]], start_id=9)
    assert batch.read.tolist() == [[9, 5, 6], [9, 7, 0]]
    assert batch.next.tolist() == [[5, 6, 0], [7, 0, 9]]
    assert (batch.real.tolist(), batch.count) == ([[True, True, True], [True, True, False]], 5)


@pytest.mark.parametrize("max_len", [1, 4, 100])
def test_lines_are_cut_and_nothing_is_left_out(max_len):
    facts = {}
    parts = [part for (part,) in encode_lines(texts(*LINES, "", " "), LETTERS, max_len, facts)]
    whole = [piece for line in LINES for piece in [*LETTERS.encode(line), EOS_ID]]
    assert [piece for part in parts for piece in part] == whole
    assert max(map(len, parts)) <= max_len
    assert [facts[name] for name in ("read", "empty", "too_long")] == [6, 2, 0]


# GPT, ELMo and documents


def test_documents_are_cut_and_none_begins_in_the_part_of_another():
    sentences = [Sentence(line, k % 2 == 0, "") for k, line in enumerate(LINES)]
    facts = {}
    parts = [part for (part,) in encode_texts(sentences, LETTERS, 4, facts)]
    ends = [k for k, part in enumerate(parts) if part[-1] == EOS_ID]
    wholes = whole_texts(sentences)
    assert len(wholes) == len(ends) == facts["documents"] == (len(LINES) + 1) // 2
    assert all(len(part) == 4 for k, part in enumerate(parts) if k not in ends)
    assert [i for part in parts for i in part] == [i for text in wholes for i in [*LETTERS.encode(text), EOS_ID]]
    assert wholes[0] == f"{LINES[0]}\n{LINES[1]}"


def test_elmo_is_scored_in_both_directions():
    torch.manual_seed(1)
    model = Elmo(ElmoConfig(d_embedding=8, d_hidden=8), vocab=LETTERS.vocab_size).eval()
    found = likelihood([model], LINES)
    ids = torch.tensor([[*LETTERS.encode(LINES[0]), EOS_ID]])
    both = model(ids, torch.ones_like(ids).bool())
    for column, hidden in zip((0, 4), both, strict=True):
        expected = F.cross_entropy(model.logits(hidden[0]), ids[0], reduction="sum").item()
        assert found[0, column] == pytest.approx(expected, rel=1e-5)
    total, dev = found.sum(axis=0), generator([model]).quick(texts(*LINES))
    assert [*dev] == ["perplexity", "bits_per_byte", "word_perplexity", "backward_perplexity"]
    assert dev["backward_perplexity"] == pytest.approx(exp(total[4] / total[1]))
    assert [*generator([model]).score(texts(*LINES))[0]["scores"]] == [*dev]
    assert "backward_perplexity" not in generator([model, untrained()]).quick(texts(*LINES))


def test_what_is_unknown_has_no_bits():
    """A vocabulary of words says <unk> for whatever it likes, and that would be cheap."""
    words = Tokenizer.train(TokenizerConfig(kind="word", vocab_size=20), ["a b c"])
    torch.manual_seed(1)
    model = RnnLanguageModel(RnnConfig(d_embedding=8, d_hidden=8), vocab=words.vocab_size).eval()
    of_words, of_letters = generator([model], words, max_len=20), generator([untrained()], max_len=20)
    known, unknown = texts("a b", "c"), texts("a b", "zebra a quagga")
    result, _ = of_words.score(known)
    assert "bits_per_byte" in result["scores"]
    assert "notes" not in result
    assert [found.metric for found in of_words.compare(of_letters, known)] == ["bits_per_byte"]
    result, _ = of_words.score(unknown)
    assert result["scores"].keys() == {"perplexity", "word_perplexity"}
    assert [note.split()[0] for note in result["notes"]] == ["2"]
    for one, other in ((of_words, of_letters), (of_letters, of_words)):
        with pytest.raises(InputError) as caught:
            one.compare(other, unknown)
        assert caught.value.code == "text.unknown_pieces"
    assert of_words.compare(of_words, unknown)


# writing

BYTES = Tokenizer.train(TokenizerConfig(kind="byte_bpe", vocab_size=300), ["a b c 가나다 🦊"] * 3, GPT)


def gpt():
    torch.manual_seed(1)
    return Gpt(GptConfig(d_model=16, d_ff=16, n_heads=2, n_layers=1, max_len=24), vocab=BYTES.vocab_size).eval()


def elmo():
    torch.manual_seed(1)
    model = Elmo(ElmoConfig(d_embedding=8, d_hidden=8), vocab=LETTERS.vocab_size).eval()
    with torch.no_grad():
        model.embedding.weight[:-1] *= 10
    return model


WRITERS = {"rnn": (untrained, LETTERS), "gpt": (gpt, BYTES), "elmo": (elmo, LETTERS)}
METHODS = [
    {"method": "greedy"},
    {"method": "beam", "beam": 3, "n_best": 3},
    {"method": "sample", "temperature": 2.0, "top_p": 0.9, "seed": 7},
]


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("options", METHODS, ids=lambda options: options["method"])
def test_side_by_side_as_one_by_one(kind, options, monkeypatch):
    make, tokenizer = WRITERS[kind]
    writer = generator([make()], tokenizer, max_extra=9)
    prompts = ["a", "", "cab a", "b", "가나 a", "a b c d", "c", "ab" * 4, "a", "가 나 b", "d"]
    monkeypatch.setattr("jumok.engines.torch.GENERATED_AT_ONCE", 4)
    together = writer.predict(prompts, **options)
    assert len({output.text for output in together}) > 7
    for prompt, output in zip(prompts, together, strict=True):
        (alone,) = writer.predict([prompt], **options)
        assert (output.text, output.alternatives) == (alone.text, alone.alternatives)
        assert output.log_prob == pytest.approx(alone.log_prob, abs=1e-4)
    backwards = writer.predict(prompts[::-1], **options)[::-1]
    assert [output.text for output in backwards] == [output.text for output in together]


def test_an_output_as_json():
    (output,) = generator([gpt()], BYTES, max_extra=3).predict([{"text": "a b"}])
    assert plain(output).keys() == {"text", "log_prob", "alternatives", "notes"}
    assert output.text.startswith("a b")


def test_gpt_writes_on_and_streams_the_same():
    writer = generator([gpt()], BYTES, max_len=24, method="sample", max_extra=8, temperature=5.0)
    for seed in range(8):
        (whole,) = writer.predict(["가 b"], seed=seed)
        streamed = "".join(writer.stream("가 b", seed=seed))
        assert ("가 b" + streamed).rstrip("\ufffd") == whole.text.rstrip("\ufffd")
    (longest,) = writer.predict(["b"], max_extra=100, method="greedy")
    assert len(BYTES.encode("b")) <= len(BYTES.encode(longest.text)) <= 24
    with pytest.raises(InputError):
        list(writer.stream("b", method="beam"))


def test_a_text_too_long_to_write_on_fails_alone():
    writer = generator([gpt()], BYTES, method="sample")
    assert [len(BYTES.encode("b" * n)) for n in (23, 24)] == [23, 24]
    first, failed, last = writer.predict(texts("b" * 23, "b" * 24, "b"))
    assert first.text == "b" * 23
    assert last.text.startswith("b")
    assert isinstance(failed, Failure)
    assert (failed.code, failed.where) == ("text.too_long", "file:2")
    assert "24" in failed.what
    assert "23" in failed.what
    with pytest.raises(InputError) as caught:
        next(writer.stream("b" * 24))
    assert caught.value.code == "text.too_long"


def test_a_gpt_shows_where_it_looks():
    writer = generator([gpt()], BYTES)
    found = writer.attention("a b c")["self"]
    assert found.rows == found.columns == BYTES.pieces([BYTES.start_id, *BYTES.encode("a b c")])
    assert found.weights.shape == (1, 2, len(found.rows), len(found.rows))
    assert not np.triu(found.weights, k=1).any()
    with pytest.raises(InputError) as caught:
        generator([untrained()]).attention("a")
    assert caught.value.code == "input.no_attention"
