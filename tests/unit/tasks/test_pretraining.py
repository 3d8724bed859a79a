"""Pre-training: what stands in a batch, what it costs, and that packing and sharing out change nothing."""

import re
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tests.unit.models.test_bert import BERT_NAMES
from transformers import BertConfig as TheirConfig
from transformers import BertForPreTraining

from jumok.data.packing import Packed, Reader
from jumok.data.passages import FRAME_OF_PAIR, Passages, encode_documents, read_passages
from jumok.data.shards import Shards, build_shards
from jumok.engines.torch import TorchEngine
from jumok.errors import DataError, InputError
from jumok.examples.documents import Sentence
from jumok.examples.plain import Text
from jumok.models.bert import Bert, BertConfig, BertPretraining
from jumok.tasks.pretraining import (
    EmbeddingKind,
    EncoderFacts,
    PretrainingConfig,
    PretrainingKind,
    extended_tokenizer,
)
from jumok.tasks.pretraining.predictor import Encoder
from jumok.tasks.pretraining.scores import STATISTICS, dev_scores, judge
from jumok.tasks.pretraining.task import PretrainingTask, pretraining_loss
from jumok.tasks.protocol import Failure, plain
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import BERT, TokenizerConfig

WORDS = [*"the a dog cat sees chases old black house garden runs sleeps behind in near".split(), "개", "고양이", "집"]  # noqa: SIM905
LENGTH = 32
CONFIG = BertConfig(d_model=16, d_ff=32, n_heads=2, n_layers=2, max_len=LENGTH, dropout=0.0, attention_dropout=0.0)


def documents(n: int, *, sentences: tuple[int, int] = (1, 6), seed: int = 1) -> list[Sentence]:
    rng = np.random.default_rng(seed)
    found = []
    for d in range(n):
        for k in range(int(rng.integers(*sentences))):
            text = " ".join(rng.choice(WORDS, int(rng.integers(2, 9)))) + "."
            found.append(Sentence(text, k == 0, f"document {d}"))
    return found


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    texts = [sentence.text for sentence in documents(50)]
    return Tokenizer.train(TokenizerConfig(kind="wordpiece", vocab_size=90), texts, BERT)


@pytest.fixture
def reader(tokenizer: Tokenizer) -> Reader:
    found = read_passages(documents(80), tokenizer, LENGTH)
    return Reader(PretrainingConfig(), tokenizer, found, max_len=LENGTH, seed=3)


def model(tokenizer: Tokenizer, *, next_sentence: bool = True) -> BertPretraining:
    torch.manual_seed(4)
    found = BertPretraining(CONFIG, vocab=tokenizer.vocab_size, next_sentence=next_sentence).eval()
    for parameter in found.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return found


def originals_of(batch: Packed) -> np.ndarray:
    """The ids before any were masked."""
    found = batch.ids.flatten()
    found[batch.masked] = batch.targets
    return found.reshape(batch.ids.shape)


def test_every_text_of_a_batch_is_framed_masked_and_in_its_place(reader: Reader, tokenizer: Tokenizer) -> None:
    batch = reader.read([(i, 0) for i in range(20)])
    originals = originals_of(batch)
    seen = []
    for r in range(len(batch.ids)):
        for k in range(int(batch.text[r].max()) + 1):
            here = batch.text[r] == k
            ids, segments = originals[r][here].tolist(), batch.segments[r][here].tolist()
            assert batch.positions[r][here].tolist() == list(range(len(ids)))
            assert ids[0] == tokenizer.start_id
            assert ids[-1] == tokenizer.end_id
            first = ids.index(tokenizer.end_id) + 1
            assert segments == [0] * first + [1] * (len(ids) - first)
            seen.append(tuple(ids))
    wanted = []
    for i in range(20):
        pair = reader.pairs.make(i, epoch=0)
        wanted.append(tuple(tokenizer.frame(pair.a, pair.b)))
    assert sorted(seen) == sorted(wanted)
    assert batch.tokens == sum(map(len, wanted))
    assert (batch.ids[batch.text == -1] == tokenizer.pad_id).all()
    assert batch.ids.shape[1] <= LENGTH
    assert batch.count == (len(batch.masked), len(batch.firsts))
    assert (batch.ids.flatten()[batch.firsts] == tokenizer.start_id).all()


def test_masked_pieces_and_pairs_know_their_texts(reader: Reader) -> None:
    batch = reader.read([(i, 0) for i in range(20)])
    alone = [reader.read([(i, 0)]) for i in range(20)]
    for i, text in enumerate(alone):
        assert batch.targets[batch.text_of_masked == i].tolist() == text.targets.tolist()
        assert batch.follows[batch.text_of_pair == i].tolist() == text.follows.tolist()


def test_a_batch_is_the_same_whatever_was_read_before(reader: Reader) -> None:
    one = reader.read([(3, 1), (5, 1)])
    reader.read([(1, 0)])
    two = reader.read([(3, 1), (5, 1)])
    assert np.array_equal(one.ids, two.ids)
    other = reader.read([(3, 2), (5, 2)])
    assert not np.array_equal(one.ids, other.ids)


def test_packing_changes_nothing(reader: Reader, tokenizer: Tokenizer) -> None:
    net = model(tokenizer)
    together = pretraining_loss(net, reader.read([(i, 0) for i in range(12)])).total
    alone = sum(pretraining_loss(net, reader.read([(i, 0)])).total for i in range(12))
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-4)


def test_the_loss_equals_the_library_transformers(reader: Reader, tokenizer: Tokenizer) -> None:
    net = model(tokenizer)
    theirs = BertForPreTraining(
        TheirConfig(
            vocab_size=tokenizer.vocab_size,
            hidden_size=CONFIG.d_model,
            num_hidden_layers=CONFIG.n_layers,
            num_attention_heads=CONFIG.n_heads,
            intermediate_size=CONFIG.d_ff,
            max_position_embeddings=LENGTH,
        )
    ).eval()
    weights = {}
    for name, tensor in net.state_dict().items():
        for pattern, new in BERT_NAMES:
            name = re.sub(pattern, new, name)
        weights[name] = tensor
    theirs.load_state_dict(weights, strict=False)
    theirs.tie_weights()
    for i in range(8):
        batch = reader.read([(i, 0)])
        if batch.count[0] == 0 or batch.count[1] == 0:
            continue
        labels = np.full(batch.ids.size, -100)
        labels[batch.masked] = batch.targets
        with torch.no_grad():
            expected = theirs(
                input_ids=torch.from_numpy(batch.ids),
                token_type_ids=torch.from_numpy(batch.segments),
                labels=torch.from_numpy(labels.reshape(batch.ids.shape)),
                next_sentence_label=torch.from_numpy(batch.follows),
            ).loss
            loss = pretraining_loss(net, batch)
        ours = (loss.total / torch.tensor(loss.count)).sum()
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-5)


def task(tokenizer: Tokenizer, tmp_path, sentences: list[Sentence], **options: object) -> PretrainingTask:  # type: ignore[no-untyped-def]
    class Corpus:
        name = "documents.txt"

        def __iter__(self):  # type: ignore[no-untyped-def]
            return iter(sentences)

    facts: dict[str, object] = {}
    build_shards(
        tmp_path / "shards",
        encode_documents(Corpus(), tokenizer, LENGTH, facts),  # type: ignore[arg-type]
        fields=("text", "ends", "first"),
        vocab_size=tokenizer.vocab_size,
        facts=facts,
    )
    shards = Shards(tmp_path / "shards")
    return PretrainingTask(
        PretrainingConfig(**options),  # type: ignore[arg-type]
        tokenizer=tokenizer,
        train=shards,
        dev=read_passages(sentences[:40], tokenizer, LENGTH),
        max_len=LENGTH,
        batch_tokens=100,
        seed=7,
        where="documents.txt",
    )


def test_of_long_lines_few_are_in_memory(tokenizer: Tokenizer) -> None:
    pulled = 0

    class Corpus:
        name = "documents.txt"

        def __iter__(self):  # type: ignore[no-untyped-def]
            nonlocal pulled
            for pulled in range(1, 100):
                yield Sentence("ga na " * 50_000, pulled == 1, "")

    found = encode_documents(Corpus(), tokenizer, LENGTH, {})  # type: ignore[arg-type]
    next(iter(found))
    assert pulled <= 2


def test_an_epoch_reads_every_passage_once(tokenizer: Tokenizer, tmp_path) -> None:  # type: ignore[no-untyped-def]
    found = task(tokenizer, tmp_path, documents(60))
    batches = list(found.batches(2))
    numbers = np.concatenate(batches)
    assert sorted(numbers[:, 0].tolist()) == list(range(len(found.train)))
    assert set(numbers[:, 1].tolist()) == {2}
    lengths = found.train.fields["text"].lengths(np.arange(len(found.train))) + FRAME_OF_PAIR
    assert all(lengths[batch[:, 0]].sum() <= 100 or len(batch) == 1 for batch in batches)
    assert [b.tolist() for b in batches] == [b.tolist() for b in found.batches(2)]
    assert [b.tolist() for b in batches] != [b.tolist() for b in found.batches(3)]
    assert "passages" in found.name(batches[0])


def test_facts_count_what_was_read(tokenizer: Tokenizer, tmp_path) -> None:  # type: ignore[no-untyped-def]
    sentences = [*documents(50, sentences=(2, 3)), Sentence(" \u200b", True, ""), Sentence("the dog.", False, "")]
    facts = task(tokenizer, tmp_path, sentences).train.facts
    assert facts["documents"] == 51
    assert facts["read"] == 102
    assert facts["words"] == sum(len(s.text.split()) for s in sentences)


def test_documents_of_one_sentence_are_refused_unless_nothing_is_asked_of_them(tokenizer: Tokenizer, tmp_path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DataError) as caught:
        task(tokenizer, tmp_path / "a", documents(20, sentences=(1, 2)))
    assert (caught.value.code, caught.value.where) == ("data.no_pairs", "documents.txt")
    found = task(tokenizer, tmp_path / "b", documents(20, sentences=(1, 2)), next_sentence=False)
    assert found.losses == ("masked",)
    assert found.batch(next(found.batches(0))).count[0] > 0


def test_one_passage_of_two_sentences_has_no_stranger_and_is_refused(tokenizer: Tokenizer, tmp_path) -> None:  # type: ignore[no-untyped-def]
    alone = documents(20, sentences=(1, 2))
    with pytest.raises(DataError) as caught:
        task(tokenizer, tmp_path / "a", [*documents(1, sentences=(2, 3)), *alone])
    assert caught.value.code == "data.no_pairs"
    assert re.findall(r"\d+", caught.value.what) == ["1"]
    one, two = ([Sentence("the old dog.", True, ""), Sentence(text, False, "")] for text in ("a cat.", "a black cat."))
    with pytest.raises(DataError) as caught:
        task(tokenizer, tmp_path / "b", [*one, *two, *alone])
    assert caught.value.code == "data.no_pairs"
    assert "of 2 " in caught.value.what
    found = task(tokenizer, tmp_path / "c", [*one, *one, *alone])
    assert sum(found.batch(batch).count[1] for batch in found.batches(0)) == 2


def test_evaluation_is_the_same_however_it_is_batched(reader: Reader, tokenizer: Tokenizer) -> None:
    engine = TorchEngine([model(tokenizer)], Tokenizers(tokenizer, tokenizer))
    one, other = judge(engine, reader, 64), judge(engine, reader, 1000)
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    scores = dev_scores(one)
    assert scores["masked_loss"] == pytest.approx(one[:, 0].sum() / one[:, 2].sum())
    assert 40 < scores["next_sentence_majority"] < 65
    assert len(one) == len(reader.passages)
    assert one[:, 2].sum() == sum(reader.read([(i, 0)]).count[0] for i in range(len(reader.passages)))


def test_whole_words(tokenizer: Tokenizer) -> None:
    found = read_passages(documents(80), tokenizer, LENGTH)
    config = PretrainingConfig(whole_words=True, mask_share=0.3)
    batch = Reader(config, tokenizer, found, max_len=LENGTH, seed=3).read([(i, 0) for i in range(40)])
    goes_on = np.array(tokenizer.continues_word())
    originals = originals_of(batch).flatten()
    masked = set(batch.masked.tolist())
    for at in masked:
        if at + 1 < len(originals) and goes_on[originals[at + 1]]:
            assert at + 1 in masked


def encoder_of(
    net: BertPretraining | Bert, tokenizer: Tokenizer, facts: EncoderFacts | None = None, **config: Any
) -> Encoder:
    tokenizers = Tokenizers(tokenizer, tokenizer)
    kind = PretrainingKind() if isinstance(net, BertPretraining) else EmbeddingKind()
    engine, config = TorchEngine([net], tokenizers), {"kind": kind.name, **config}
    found = kind.predictor(engine, tokenizers, config, facts or EncoderFacts(max_len=LENGTH))
    assert isinstance(found, Encoder)
    return found


def test_what_is_evaluated_is_what_is_lost(tokenizer: Tokenizer, tmp_path) -> None:  # type: ignore[no-untyped-def]
    net, found = model(tokenizer), task(tokenizer, tmp_path, documents(60))
    scores = found.evaluate(net)
    batch = found.dev_reader.read((i, 0) for i in range(len(found.dev)))
    with torch.no_grad():
        masked, _ = pretraining_loss(net, batch).total.tolist()
    assert scores["masked_loss"] == pytest.approx(masked / batch.count[0], rel=1e-5)
    assert scores.keys() >= {"perplexity", "masked_accuracy", "next_sentence_accuracy", "next_sentence_majority"}
    encoder = encoder_of(net, tokenizer, found.facts, **asdict(found.config))
    assert encoder.quick(documents(60)[:40]) == pytest.approx(scores, rel=1e-5)


def test_notes_say_what_was_left_out(tokenizer: Tokenizer, tmp_path) -> None:  # type: ignore[no-untyped-def]
    assert task(tokenizer, tmp_path / "a", documents(60)).notes() == []
    (note,) = task(tokenizer, tmp_path / "b", [*documents(60), Sentence(" \u200b", True)]).notes()
    assert "1 with an empty side" in note


# what a pre-trained model can be asked


@pytest.fixture(scope="module")
def encoder(tokenizer: Tokenizer) -> Encoder:
    return encoder_of(model(tokenizer), tokenizer)


@pytest.fixture(scope="module")
def alone(tokenizer: Tokenizer) -> Encoder:
    """An encoder without heads, which does not say how much it reads."""
    net = Bert(CONFIG, vocab=tokenizer.vocab_size).eval()
    return encoder_of(net, tokenizer, EncoderFacts(), pooler=True)


def net_of(encoder: Encoder) -> Any:
    assert isinstance(encoder.engine, TorchEngine)
    return encoder.engine.models[0]


def test_masks_are_filled_with_the_likeliest_piece(encoder: Encoder, tokenizer: Tokenizer) -> None:
    (answer,) = encoder.predict(["the [MASK] sees a [MASK]."], top_k=3)
    assert not isinstance(answer, Failure)
    assert len(answer.candidates) == 2
    for found in answer.candidates:
        scores = [candidate.score for candidate in found]
        assert len(found) == 3
        assert scores == sorted(scores, reverse=True)
        assert 0 < sum(scores) <= 1
    assert "[MASK]" not in answer.text
    ids = torch.tensor([[tokenizer.start_id, *tokenizer.encode("the")]])
    ids = torch.cat([ids, torch.tensor([[tokenizer.mask_id, *tokenizer.encode("sees a")]])], dim=1)
    ids = torch.cat([ids, torch.tensor([[tokenizer.mask_id, *tokenizer.encode("."), tokenizer.end_id]])], dim=1)
    net = net_of(encoder)
    with torch.no_grad():
        p = net.logits(net(ids, torch.zeros_like(ids), torch.ones_like(ids).bool()))[0].softmax(dim=-1)
    first = int((ids[0] == tokenizer.mask_id).nonzero()[0])
    assert answer.candidates[0][0].score == pytest.approx(float(p[first].max()), rel=1e-5)
    best = answer.candidates[0][0]
    assert plain(answer)["candidates"][0][0] == {"piece": best.piece, "score": pytest.approx(best.score, rel=1e-5)}


def test_whether_one_text_follows_another(encoder: Encoder) -> None:
    (answer,) = encoder.predict(["the dog sleeps.\tthe dog runs."])
    assert not isinstance(answer, Failure)
    assert answer.follows is not None
    assert 0 < answer.follows < 1
    assert answer.text.startswith("follows" if answer.follows >= 0.5 else "does not")
    follows = pytest.approx(answer.follows, rel=1e-5)
    assert plain(answer) == {"text": answer.text, "candidates": [], "follows": follows, "notes": []}
    assert plain(replace(answer, follows=0.0))["follows"] == 0.0
    pair = Text("the dog sleeps.", "the dog runs.")
    both = encoder.predict([pair, {"text": pair.text, "pair": pair.pair}])
    assert [plain(one) for one in both] == [plain(answer)] * 2  # up to the digits that depend on the batch


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_vector_is_the_mean_of_the_states_and_long_texts_are_read_in_parts(encoder: Encoder, pooling: str) -> None:
    short, long = "the dog sees a cat", "the dog sees a cat in the old garden. " * 20
    a, b = encoder.predict([short, long], ask="embedding", pooling=pooling)
    assert not isinstance(a, Failure)
    assert not isinstance(b, Failure)
    ids, room = encoder.tokenizer.encode(long), LENGTH - 2
    parts = [ids[at : at + room] for at in range(0, len(ids), room)]
    for answer, rows in ((a, [encoder.tokenizer.encode(short)]), (b, parts)):
        states = []
        for row in rows:
            framed = torch.tensor([encoder.tokenizer.frame(row)])
            with torch.no_grad():
                found = net_of(encoder).bert(framed, torch.zeros_like(framed), torch.ones_like(framed).bool())[0]
            states.append(found if pooling == "mean" else found[:1])
        expected = torch.cat(states).mean(dim=0)
        torch.testing.assert_close(torch.tensor(answer.vector), expected, rtol=1e-4, atol=1e-5)
    assert a.notes == []
    assert [(note.code, str(LENGTH) in note.text) for note in b.notes] == [("text.windows", True)]


def test_what_cannot_be_answered_fails_alone(encoder: Encoder) -> None:
    texts = [Text("the dog", None, "a.txt:7"), "the [MASK]", Text("[MASK] " * LENGTH, None, "a.txt:9"), 3, ""]
    nothing, filled, long, number, empty = encoder.predict(texts)
    assert isinstance(nothing, Failure)
    assert (nothing.code, nothing.where) == ("input.nothing_asked", "a.txt:7")
    assert isinstance(long, Failure)
    assert (long.code, long.where) == ("text.too_long", "a.txt:9")
    assert str(LENGTH) in long.what
    assert isinstance(number, Failure)
    assert (number.code, number.where) == ("input.example", "line 4")
    assert not isinstance(filled, Failure)
    assert filled.candidates
    assert not isinstance(empty, Failure)
    assert (empty.text, empty.candidates) == ("", [])
    for text in ("the dog", "the dog\t "):
        (failed,) = encoder.predict(text, ask="follows")
        assert isinstance(failed, Failure)
        assert failed.code == "input.pair"
    with pytest.raises(InputError) as caught:
        encoder(["the [MASK]", "the dog"])
    assert (caught.value.code, caught.value.where) == ("input.nothing_asked", "line 2")


def test_a_model_without_a_head_says_so(alone: Encoder, tokenizer: Tokenizer) -> None:
    (found,) = alone.predict(["the [MASK]"])
    assert not isinstance(found, Failure)
    assert found.vector is not None
    assert alone.max_len == LENGTH
    (failed,) = alone.predict(["the [MASK]"], ask="fill")
    assert isinstance(failed, Failure)
    assert failed.code == "input.no_head"
    for ask in (lambda: alone.score(documents(3)), lambda: alone.compare(alone, documents(3))):
        with pytest.raises(InputError) as caught:
            ask()
        assert caught.value.code == "input.no_head"
    masked_only = encoder_of(model(tokenizer, next_sentence=False), tokenizer, next_sentence=False)
    filled, failed = masked_only.predict(["a [MASK]", "a\tb"])
    assert not isinstance(filled, Failure)
    assert isinstance(failed, Failure)
    assert failed.code == "input.no_head"


def test_scores_and_comparisons(encoder: Encoder, tokenizer: Tokenizer) -> None:
    examples = documents(40, seed=9)
    result, outputs = encoder.score(examples)
    assert outputs == []
    assert list(result) == ["sentences", "scores", "pieces_per_word", "baselines"]
    assert set(result["scores"]) == {"masked_accuracy", "masked_loss", "perplexity", "next_sentence_accuracy"}
    statistics = encoder._judge(examples)
    asked = int(statistics[:, STATISTICS.index("pairs")].sum())
    assert 0 < asked < len(statistics) == len(read_passages(examples, tokenizer, LENGTH))
    for name, score in result["scores"].items():
        assert score["low"] <= score["value"] <= score["high"]
        assert score["n"] == (asked if name == "next_sentence_accuracy" else len(statistics))
    strange = statistics[:, STATISTICS.index("pairs_strange")].sum()
    found = result["baselines"]["majority"]["next_sentence_accuracy"]
    assert found == pytest.approx(100 * max(strange, asked - strange) / asked)
    assert result["pieces_per_word"] >= 1
    (same,) = encoder.compare(encoder, examples)
    assert same.difference == 0
    with pytest.raises(InputError) as caught:
        encoder.compare(encoder_of(net_of(encoder), tokenizer, mask_share=0.5), examples)
    assert caught.value.code == "input.other_masks"
    assert len(Passages.of([])) == 0


def test_models_that_mask_alike_are_compared_however_they_say_it(
    encoder: Encoder, alone: Encoder, tokenizer: Tokenizer
) -> None:
    """One from elsewhere has the defaults, unsaid; of a vocabulary only what it is matters."""
    for said in (asdict(PretrainingConfig()), asdict(PretrainingConfig(new_pieces=3))):
        other = encoder_of(net_of(encoder), tokenizer, **said)
        assert encoder.compare(other, documents(5))[0].difference == 0
    with pytest.raises(InputError) as caught:
        encoder.compare(alone, documents(5))
    assert caught.value.code == "input.no_head"


def test_an_answer_does_not_depend_on_its_company(encoder: Encoder) -> None:
    texts = ["the dog", "a cat sees the old house near the garden", "in " * 60, "개 고양이"]
    together: list[Any] = encoder.predict(texts, ask="embedding")
    for text, answer in zip(texts, together, strict=True):
        alone: list[Any] = encoder.predict([text], ask="embedding")
        assert answer.vector == pytest.approx(alone[0].vector, rel=1e-4, abs=1e-5)
    mixed: list[Any] = encoder.predict(["a [MASK] runs.", "the dog.\tthe cat.", "the [MASK]"])
    assert [len(answer.candidates) for answer in mixed] == [1, 0, 1]
    assert [answer.follows is not None for answer in mixed] == [False, True, False]


def test_progress_is_told_of_every_text(encoder: Encoder) -> None:
    told: list[int] = []
    encoder.predict(["a [MASK]", "a\tb", "nothing", "[MASK]"], done=told.append)
    assert sum(told) == 4
    told.clear()
    encoder.predict(["a dog", "in " * 100, "a"], ask="embedding", done=told.append)
    assert sum(told) == 3


def test_attention_is_that_of_every_layer_and_head(encoder: Encoder, tokenizer: Tokenizer) -> None:
    (found,) = encoder.attention("the [MASK]\ta cat").values()
    assert found.rows == found.columns
    assert found.rows[0] == "[CLS]"
    assert found.rows.count("[SEP]") == 2
    assert "[MASK]" in found.rows
    n = len(found.rows)
    assert found.weights.shape == (CONFIG.n_layers, CONFIG.n_heads, n, n)
    np.testing.assert_allclose(found.weights.sum(axis=-1), 1, atol=1e-5)
    with pytest.raises(InputError) as caught:
        encoder.attention("[MASK] " * LENGTH)
    assert caught.value.code == "text.too_long"


# what the table of tasks says


def test_rules_about_two_keys() -> None:
    def wrong(max_len: int, new_pieces: int, init: str | None) -> list[str]:
        recipe = SimpleNamespace(
            data=SimpleNamespace(max_len=max_len), task=PretrainingConfig(new_pieces=new_pieces), init=init
        )
        return list(PretrainingKind().mistakes(recipe))

    assert wrong(5, 0, None) == wrong(5, 7, "run") == []
    assert "data.max_len" in "".join(wrong(4, 0, None))
    assert "task.new_pieces" in "".join(wrong(5, 7, None))


def test_heads_and_facts() -> None:
    kind, alone = PretrainingKind(), EmbeddingKind()
    facts = kind.read_facts({"task": {"kind": "pretraining"}, "language": "ko", "max_len": 12, "version": "0.1.0"})
    assert facts == EncoderFacts(language="ko", max_len=12)
    assert alone.read_facts({}) == EncoderFacts()
    head = kind.head({"next_sentence": False}, facts)
    assert (head.asks, head.next_sentence) == ("masked", False)
    head = alone.head({"pooler": False}, facts)
    assert (head.asks, head.pooler) == ("nothing", False)
    assert not kind.ensembles
    assert not alone.ensembles


def test_words_of_the_text_join_the_vocabulary(tokenizer: Tokenizer) -> None:
    texts = ["lighthouse keepers", "a lighthouse"] * 3
    assert extended_tokenizer(tokenizer, texts, 0) is tokenizer
    grown = extended_tokenizer(tokenizer, texts, 1)
    assert grown.vocab_size == tokenizer.vocab_size + 1
    assert len(grown.encode("lighthouse")) == 1
