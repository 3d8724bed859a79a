"""Pre-training: what stands in a batch, what it costs, and that packing and sharing out change nothing."""

import re
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from tests.unit.models.test_bert import BERT_NAMES
from transformers import BertConfig as TheirConfig
from transformers import BertForPreTraining

from jumok.data.passages import Passages
from jumok.data.shards import build_shards
from jumok.errors import DataError, InputError
from jumok.models.bert import Bert, BertConfig, BertPretraining
from jumok.tasks.encoder import Encoder
from jumok.tasks.predict import Line
from jumok.tasks.pretraining import (
    FRAME_OF_PAIR,
    STATISTICS,
    PretrainingConfig,
    PretrainingTask,
    Reader,
    encode_documents,
    judge,
    pretraining_loss,
    read_passages,
    summary,
)
from jumok.text.documents import Sentence
from jumok.text.tokenizer import Tokenizer
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


def test_every_text_of_a_batch_is_framed_masked_and_in_its_place(reader: Reader, tokenizer: Tokenizer) -> None:
    batch = reader.read([(i, 0) for i in range(20)])
    originals = batch.ids.flatten().clone()
    originals[batch.masked] = batch.targets
    originals = originals.view_as(batch.ids)
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
    assert batch.ids[batch.text == -1].eq(tokenizer.pad_id).all()
    assert batch.ids.shape[1] <= LENGTH
    assert batch.count == (len(batch.masked), len(batch.firsts))
    assert batch.ids.flatten()[batch.firsts].eq(tokenizer.start_id).all()


def test_a_batch_is_the_same_whatever_was_read_before(reader: Reader) -> None:
    one = reader.read([(3, 1), (5, 1)])
    reader.read([(1, 0)])
    two = reader.read([(3, 1), (5, 1)])
    assert torch.equal(one.ids, two.ids)
    other = reader.read([(3, 2), (5, 2)])
    assert one.ids.shape != other.ids.shape or not torch.equal(one.ids, other.ids)


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
        labels = torch.full_like(batch.ids, -100).flatten()
        labels[batch.masked] = batch.targets
        with torch.no_grad():
            expected = theirs(
                input_ids=batch.ids,
                token_type_ids=batch.segments,
                labels=labels.view_as(batch.ids),
                next_sentence_label=batch.follows,
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
    shards = build_shards(
        tmp_path / "shards",
        encode_documents(Corpus(), tokenizer, LENGTH, facts),  # type: ignore[arg-type]
        fields=("text", "ends", "first"),
        vocab_size=tokenizer.vocab_size,
        facts=facts,
    )
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
    with pytest.raises(DataError, match="two sentences"):
        task(tokenizer, tmp_path / "a", documents(20, sentences=(1, 2)))
    found = task(tokenizer, tmp_path / "b", documents(20, sentences=(1, 2)), next_sentence=False)
    assert found.losses == ("masked",)
    assert found.batch(next(found.batches(0))).count[0] > 0


def test_one_passage_of_two_sentences_has_no_stranger_and_is_refused(tokenizer: Tokenizer, tmp_path) -> None:  # type: ignore[no-untyped-def]
    alone = documents(20, sentences=(1, 2))
    with pytest.raises(DataError, match="needs two passages of two sentences or more, and there is 1"):
        task(tokenizer, tmp_path / "a", [*documents(1, sentences=(2, 3)), *alone])
    one, two = ([Sentence("the old dog.", True, ""), Sentence(text, False, "")] for text in ("a cat.", "a black cat."))
    with pytest.raises(
        DataError, match="of 2 passages of two sentences or more no two have second parts of one length"
    ):
        task(tokenizer, tmp_path / "b", [*one, *two, *alone])
    found = task(tokenizer, tmp_path / "c", [*one, *one, *alone])
    assert sum(found.batch(batch).count[1] for batch in found.batches(0)) == 2


def test_evaluation_is_the_same_however_it_is_batched(reader: Reader, tokenizer: Tokenizer) -> None:
    net = model(tokenizer)
    one, other = judge(net, reader, 64), judge(net, reader, 1000)
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    scores = summary(one.sum(axis=0))
    assert scores["masked_loss"] == pytest.approx(one[:, 0].sum() / one[:, 2].sum())
    assert 40 < scores["next_sentence_majority"] < 65
    assert len(one) == len(reader.passages)
    assert one[:, 2].sum() == sum(reader.read([(i, 0)]).count[0] for i in range(len(reader.passages)))


def test_whole_words(tokenizer: Tokenizer) -> None:
    found = read_passages(documents(80), tokenizer, LENGTH)
    config = PretrainingConfig(whole_words=True, mask_share=0.3)
    batch = Reader(config, tokenizer, found, max_len=LENGTH, seed=3).read([(i, 0) for i in range(40)])
    goes_on = np.array(tokenizer.continues_word())
    originals = batch.ids.flatten().clone()
    originals[batch.masked] = batch.targets
    masked = set(batch.masked.tolist())
    for at in masked:
        if at + 1 < len(originals) and goes_on[originals[at + 1]]:
            assert at + 1 in masked


# what a pre-trained model can be asked


@pytest.fixture(scope="module")
def encoder(tokenizer: Tokenizer) -> Encoder:
    return Encoder(model(tokenizer), tokenizer, {"task": {"kind": "pretraining"}, "max_len": LENGTH})


def test_masks_are_filled_with_the_likeliest_piece(encoder: Encoder, tokenizer: Tokenizer) -> None:
    (answer,) = encoder.predict(["the [MASK] sees a [MASK]."], top_k=3)
    assert len(answer.candidates) == 2
    for found in answer.candidates:
        scores = [candidate["score"] for candidate in found]
        assert len(found) == 3
        assert scores == sorted(scores, reverse=True)
        assert 0 < sum(scores) <= 1
    assert "[MASK]" not in answer.text
    ids = torch.tensor([[tokenizer.start_id, *tokenizer.encode("the")]])
    ids = torch.cat([ids, torch.tensor([[tokenizer.mask_id, *tokenizer.encode("sees a")]])], dim=1)
    ids = torch.cat([ids, torch.tensor([[tokenizer.mask_id, *tokenizer.encode("."), tokenizer.end_id]])], dim=1)
    net = encoder.model
    assert isinstance(net, BertPretraining)
    with torch.no_grad():
        p = net.logits(net(ids, torch.zeros_like(ids), torch.ones_like(ids).bool()))[0].softmax(dim=-1)
    first = int((ids[0] == tokenizer.mask_id).nonzero()[0])
    assert answer.candidates[0][0]["score"] == pytest.approx(float(p[first].max()), rel=1e-5)


def test_whether_one_text_follows_another(encoder: Encoder) -> None:
    (answer,) = encoder.predict(["the dog sleeps.\tthe dog runs."])
    assert answer.follows is not None
    assert 0 < answer.follows < 1
    assert answer.text.startswith("follows" if answer.follows >= 0.5 else "does not")
    assert encoder.plain("", answer) == {"text": answer.text, "follows": answer.follows}
    assert encoder.plain("", replace(answer, follows=0.0)) == {"text": answer.text, "follows": 0.0}


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_vector_is_the_mean_of_the_states_and_long_texts_are_read_in_parts(encoder: Encoder, pooling: str) -> None:
    short, long = "the dog sees a cat", "the dog sees a cat in the old garden. " * 20
    a, b = encoder.predict([short, long], ask="embedding", pooling=pooling)
    assert a.vector is not None
    assert b.vector is not None
    assert len(a.vector) == len(b.vector) == CONFIG.d_model
    ids = torch.tensor([encoder.tokenizer.frame(encoder.tokenizer.encode(short))])
    with torch.no_grad():
        states = encoder.bert(ids, torch.zeros_like(ids), torch.ones_like(ids).bool())[0]
    expected = states.mean(dim=0) if pooling == "mean" else states[0]
    torch.testing.assert_close(torch.tensor(a.vector), expected, rtol=1e-4, atol=1e-5)


def test_what_cannot_be_answered_is_said(encoder: Encoder, tokenizer: Tokenizer) -> None:
    for text, message in (
        ("the dog", "nothing to guess"),
        ("[MASK] " * LENGTH, "reads 32"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            encoder.predict([Line.at(text, "a.txt:7")])
        assert caught.value.where == "a.txt:7"
    with pytest.raises(InputError, match="not two texts") as caught:
        encoder.predict([Line.at("the dog", "a.txt:8")], ask="follows")
    assert caught.value.where == "a.txt:8"
    alone = Encoder(Bert(CONFIG, vocab=tokenizer.vocab_size).eval(), tokenizer, {"task": {"kind": "embedding"}})
    assert alone.predict(["the [MASK]"])[0].vector is not None
    with pytest.raises(InputError, match="no head"):
        alone.predict(["the [MASK]"], ask="fill")
    with pytest.raises(InputError, match="no head"):
        alone.score(documents(3))
    masked_only = Encoder(
        model(tokenizer, next_sentence=False), tokenizer, {"task": {"kind": "pretraining", "next_sentence": False}}
    )
    with pytest.raises(InputError, match="no head"):
        masked_only.predict(["a\tb"])


def test_scores_and_comparisons(encoder: Encoder, tokenizer: Tokenizer) -> None:
    examples = documents(40, seed=9)
    result, outputs = encoder.score(examples)
    assert outputs == []
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
    other = Encoder(encoder.model, tokenizer, {"task": {"kind": "pretraining", "mask_share": 0.5}, "max_len": LENGTH})
    with pytest.raises(InputError, match="mask differently"):
        encoder.compare(other, examples)
    assert replace(PretrainingConfig(), mask_share=0.5).mask_share == 0.5
    assert len(Passages.of([])) == 0


def test_models_that_mask_alike_are_compared_however_they_say_it(encoder: Encoder, tokenizer: Tokenizer) -> None:
    """One from elsewhere has the defaults, unsaid; of a vocabulary only what it is matters."""
    for said in (asdict(PretrainingConfig()), asdict(PretrainingConfig(new_pieces=3))):
        other = Encoder(encoder.model, tokenizer, {"task": said, "max_len": LENGTH})
        assert encoder.compare(other, documents(5))[0].difference == 0
    alone = Encoder(Bert(CONFIG, vocab=tokenizer.vocab_size).eval(), tokenizer, {"task": {"kind": "embedding"}})
    with pytest.raises(InputError, match="no head"):
        encoder.compare(alone, documents(5))


def test_an_answer_does_not_depend_on_its_company(encoder: Encoder) -> None:
    texts = ["the dog", "a cat sees the old house near the garden", "in " * 60, "개 고양이"]
    together = encoder.predict(texts, ask="embedding")
    for text, answer in zip(texts, together, strict=True):
        (alone,) = encoder.predict([text], ask="embedding")
        torch.testing.assert_close(torch.tensor(answer.vector), torch.tensor(alone.vector), rtol=1e-4, atol=1e-5)
    mixed = encoder.predict(["a [MASK] runs.", "the dog.\tthe cat."])
    assert mixed[0].candidates
    assert mixed[1].follows is not None
