"""BERT folders, written here and opened by transformers, and the other way round."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoModelForPreTraining,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    BertForMaskedLM,
    BertForMultipleChoice,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
    BertTokenizer,
    PreTrainedTokenizerFast,
)
from transformers import BertConfig as TheirBertConfig

from jumok.errors import CheckpointError
from jumok.hub.folder import ModelFolder
from jumok.hub.weights import ConvertedWarning
from jumok.models.bert import Bert, BertConfig, BertPretraining
from jumok.models.bert_heads import BertClassifier, BertRelation, BertTagger
from jumok.models.rnn import RnnConfig, RnnTagger
from jumok.models.weights import load_tensors, unique_tensors
from jumok.predictor import load
from jumok.tasks.stored import obstacle, read_model, write_model
from jumok.text.tokenizer import Tokenizers
from jumok.text.vocabulary import BERT

SMALL = BertConfig(d_model=24, d_ff=40, n_heads=4, n_layers=2, max_len=20)
LABELS = ["B-사람", "I-사람", "O"]

CLASSIFIERS = BertForSequenceClassification, AutoModelForSequenceClassification

# task, their class, the class that opens its folder
CASES = {
    "encoder": ({"kind": "embedding", "pooler": True}, BertModel, AutoModel),
    "pretraining": ({"kind": "pretraining", "next_sentence": True}, BertForPreTraining, AutoModelForPreTraining),
    "masked words": ({"kind": "pretraining", "next_sentence": False}, BertForMaskedLM, AutoModelForMaskedLM),
    "classification": ({"kind": "classification", "predicts": "class"}, *CLASSIFIERS),
    "several labels": ({"kind": "classification", "predicts": "labels"}, *CLASSIFIERS),
    "a number": ({"kind": "classification", "predicts": "number"}, *CLASSIFIERS),
    "choice": ({"kind": "choice"}, BertForMultipleChoice, AutoModelForMultipleChoice),
    "tagging": ({"kind": "tagging"}, BertForTokenClassification, AutoModelForTokenClassification),
    "answering": ({"kind": "answering"}, BertForQuestionAnswering, AutoModelForQuestionAnswering),
}
PROBLEMS = {
    "class": "single_label_classification",
    "labels": "multi_label_classification",
    "number": "regression",
}


def named(task):
    """The labels that the facts of a task have."""
    if task["kind"] in ("classification", "tagging"):
        return [] if task.get("predicts") == "number" else LABELS
    return ["start", "end"] if task["kind"] == "answering" else None


def our_model(task, vocab, config=SMALL):
    match task["kind"]:
        case "embedding":
            return Bert(config, vocab=vocab)
        case "pretraining":
            return BertPretraining(config, vocab=vocab, next_sentence=task["next_sentence"])
        case "classification":
            return BertClassifier(config, vocab=vocab, n_labels=len(named(task)) or 1)
        case "choice":
            return BertClassifier(config, vocab=vocab, n_labels=1)
        case "tagging":
            return BertTagger(config, vocab=vocab, n_labels=len(LABELS))
        case "answering":
            return BertTagger(config, vocab=vocab, n_labels=2)


def their_config(vocab, **changes):
    sizes = {"hidden_size": 24, "intermediate_size": 40, "num_attention_heads": 4, "num_hidden_layers": 2}
    return TheirBertConfig(vocab_size=vocab, max_position_embeddings=20, **sizes, **changes)


def folder_of(model, task, tokenizer):
    facts = {"version": "1", "task": task, "language": "ko", "max_len": 20}
    if named(task) is not None:
        facts["labels"] = named(task)
    return ModelFolder(model.config, unique_tensors(model), Tokenizers(tokenizer, tokenizer), facts)


def inputs(vocab):
    torch.manual_seed(3)
    ids = torch.randint(0, vocab, (3, 12))
    segments = (torch.arange(12) > 6).long().expand(3, 12)
    mask = torch.arange(12) < torch.tensor([[12], [9], [4]])
    return ids, segments, mask


def our_outputs(model, ids, segments, mask):
    match model:
        case Bert():
            hidden = model(ids, segments, mask)
            return [hidden[mask], model.pool(hidden[:, 0])]
        case BertPretraining():
            hidden = model(ids, segments, mask)
            follows = [] if model.next_sentence is None else [model.follows(hidden[:, 0])]
            return [model.logits(hidden[mask]), *follows]
        case BertClassifier():
            return [model(ids, segments, mask)]
        case BertTagger():
            return [model(ids, segments, mask)[mask]]


def their_outputs(model, ids, segments, mask):
    if isinstance(model, BertForMultipleChoice):  # one question, of which each row is a choice
        ids, segments, mask = ids[None], segments[None], mask[None]
    said = model(input_ids=ids, token_type_ids=segments, attention_mask=mask.long())
    match model:
        case BertModel():
            return [said.last_hidden_state[mask], said.pooler_output]
        case BertForPreTraining():
            return [said.prediction_logits[mask], said.seq_relationship_logits]
        case BertForSequenceClassification():
            return [said.logits]
        case BertForMultipleChoice():
            return [said.logits.T]
        case BertForQuestionAnswering():
            return [torch.stack([said.start_logits, said.end_logits], dim=-1)[mask]]
        case _:
            return [said.logits[mask]]


def assert_same_outputs(ours, theirs, vocab):
    with torch.inference_mode():
        found, expected = our_outputs(ours, *inputs(vocab)), their_outputs(theirs, *inputs(vocab))
    for a, b in zip(found, expected, strict=True):
        assert a.std() > 0.1
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("task", "cls", "auto"), CASES.values(), ids=CASES)
def test_transformers_opens_what_we_write(task, cls, auto, wordpiece, randomised, tmp_path):
    ours = randomised(our_model(task, wordpiece.vocab_size))
    write_model(tmp_path, folder_of(ours, task, wordpiece), card="# a model\n")
    theirs, loading = auto.from_pretrained(tmp_path, output_loading_info=True)
    assert type(theirs) is cls
    assert not any(loading.values()), loading
    assert_same_outputs(ours, theirs.eval(), wordpiece.vocab_size)
    if task["kind"] in ("classification", "tagging"):
        names = named(task) or ["LABEL_0"]
        assert theirs.config.num_labels == len(names)
        assert theirs.config.id2label == dict(enumerate(names))
        assert theirs.config.label2id == {label: i for i, label in enumerate(names)}
    if task["kind"] == "classification":
        assert theirs.config.problem_type == PROBLEMS[task["predicts"]]


@pytest.mark.parametrize(("task", "cls", "auto"), CASES.values(), ids=CASES)
def test_we_open_what_transformers_writes(task, cls, auto, wordpiece, randomised, tmp_path):
    vocab = wordpiece.vocab_size
    labels = {"num_labels": len(named(task)) or 1} if task["kind"] in ("classification", "tagging") else {}
    if "predicts" in task:
        labels["problem_type"] = PROBLEMS[task["predicts"]]
    theirs = randomised(cls(their_config(vocab, **labels)))
    theirs.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(wordpiece.to_json(), "utf-8")
    read = read_model(tmp_path)
    assert read.config == SMALL
    assert read.facts["task"] == task
    assert (read.facts["language"], read.facts["max_len"]) == ("", 20)
    unnamed = ["LABEL_0", "LABEL_1", "LABEL_2"]
    assert read.facts.get("labels") == (unnamed if named(task) == LABELS else named(task))
    ours = our_model(task, vocab).eval()
    load_tensors(ours, read.tensors, where=tmp_path)
    assert_same_outputs(ours, theirs, vocab)


@pytest.mark.parametrize(("task", "cls", "auto"), CASES.values(), ids=CASES)
def test_there_and_back_is_exact(task, cls, auto, wordpiece, randomised, tmp_path):
    written = folder_of(randomised(our_model(task, wordpiece.vocab_size)), task, wordpiece)
    write_model(tmp_path, written, card="# card\n")
    assert obstacle(written) is None
    read = read_model(tmp_path)
    assert read.config == SMALL
    assert {key: read.facts[key] for key in written.facts} == written.facts
    assert read.tokenizers.source.to_json() == wordpiece.to_json()
    assert read.tensors.keys() == written.tensors.keys()
    assert all(torch.equal(read.tensors[name], tensor) for name, tensor in written.tensors.items())


@pytest.mark.parametrize(("n", "predicts", "labels"), [(1, "number", []), (2, "class", ["LABEL_0", "LABEL_1"])])
def test_a_classifier_that_does_not_say_what_it_predicts(n, predicts, labels, wordpiece, tmp_path):
    BertForSequenceClassification(their_config(wordpiece.vocab_size, num_labels=n)).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(wordpiece.to_json(), "utf-8")
    assert json.loads((tmp_path / "config.json").read_text("utf-8")).get("problem_type") is None
    read = read_model(tmp_path)
    assert read.facts["task"] == {"kind": "classification", "predicts": predicts}
    assert read.facts["labels"] == labels


def test_a_choice_whose_config_has_labels(wordpiece, randomised, tmp_path):
    """There its one output is never counted by them."""
    theirs = randomised(BertForMultipleChoice(their_config(wordpiece.vocab_size, num_labels=4)))
    theirs.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(wordpiece.to_json(), "utf-8")
    read = read_model(tmp_path)
    assert "labels" not in read.facts
    ours = BertClassifier(SMALL, vocab=wordpiece.vocab_size, n_labels=1).eval()
    load_tensors(ours, read.tensors, where=tmp_path)
    assert_same_outputs(ours, theirs, wordpiece.vocab_size)


OURS_ALONE = {
    "a CRF on BERT": ({"kind": "tagging", "crf": True}, SMALL, "transformers has no BERT with a CRF"),
    "a relation": ({"kind": "relation"}, SMALL, "transformers has no BERT whose task is relation"),
    "a CRF on a recurrent network": (
        {"kind": "tagging", "crf": True},
        RnnConfig(d_embedding=6, d_hidden=8),
        "transformers has no recurrent networks",
    ),
}


@pytest.mark.parametrize(("task", "config", "reason"), OURS_ALONE.values(), ids=OURS_ALONE)
def test_what_transformers_does_not_have_is_written_in_our_own_way(
    task, config, reason, wordpiece, randomised, tmp_path
):
    vocab = wordpiece.vocab_size
    match task["kind"], config:
        case "relation", _:
            model = BertRelation(config, vocab=vocab, n_labels=3)
        case _, BertConfig():
            model = BertTagger(config, vocab=vocab, n_labels=3, crf=True)
        case _:
            model = RnnTagger(config, vocab=vocab, n_labels=3, crf=True)
    facts = {"version": "1", "task": task, "language": "ko", "labels": LABELS}
    tensors = unique_tensors(randomised(model))
    written = ModelFolder(config, tensors, Tokenizers(wordpiece, wordpiece), facts)
    assert obstacle(written) == reason
    write_model(tmp_path, written, card="")
    assert json.loads((tmp_path / "config.json").read_text("utf-8"))["model_type"] == f"jumok-{config.kind}"
    read = read_model(tmp_path)
    assert read.config == config
    assert {key: read.facts[key] for key in facts} == facts
    assert read.tensors.keys() == tensors.keys()
    assert all(torch.equal(read.tensors[name], tensor) for name, tensor in tensors.items())
    assert [name for name in read.tensors if name.startswith(("crf.", "w_"))]
    assert obstacle(read) == reason


@pytest.mark.parametrize("facts", [{}, {"labels": []}], ids=str)
@pytest.mark.parametrize("kind", ["relation", "tagging", "classification"])
def test_a_folder_of_our_own_has_its_labels(kind, facts, wordpiece, tmp_path):
    model = BertRelation(SMALL, vocab=wordpiece.vocab_size, n_labels=3)
    facts = {"version": "1", "task": {"kind": kind, "crf": True}, **facts}
    tensors = {**unique_tensors(model), "crf.starts": torch.zeros(3)}
    write_model(tmp_path, ModelFolder(SMALL, tensors, Tokenizers(wordpiece, wordpiece), facts), card="")
    for read in (read_model, load):
        with pytest.raises(CheckpointError) as caught:
            read(tmp_path)
        assert (caught.value.code, caught.value.where) == ("checkpoint.missing_key", str(tmp_path / "config.json"))
        assert "jumok.labels" in caught.value.what


@pytest.mark.parametrize("facts", [{}, {"labels": []}], ids=str)
def test_a_number_needs_no_labels(facts, wordpiece, randomised, tmp_path):
    task = {"kind": "classification", "predicts": "number"}
    model = randomised(our_model(task, wordpiece.vocab_size))
    facts = {"version": "1", "task": task, **facts}
    tokenizers = Tokenizers(wordpiece, wordpiece)
    write_model(tmp_path, ModelFolder(SMALL, unique_tensors(model), tokenizers, facts), card="")
    assert read_model(tmp_path).facts.get("labels", []) == []
    assert isinstance(load(tmp_path).predict(["the fox"])[0].value, float)


@pytest.mark.parametrize(
    ("facts", "key"),
    [
        ({"labels": "O"}, "jumok.labels"),
        ({"labels": LABELS, "max_len": 0}, "jumok.max_len"),
        ({"labels": LABELS, "long_texts": {"rule": "cut"}}, "jumok.long_texts.rule"),
        ({"labels": LABELS, "long_texts": {"strid": 1}}, "jumok.long_texts.strid"),
    ],
    ids=str,
)
def test_facts_of_a_folder_of_our_own_are_checked(facts, key, wordpiece, tmp_path):
    tensors = unique_tensors(BertRelation(SMALL, vocab=wordpiece.vocab_size, n_labels=3))
    facts = {"version": "1", "task": {"kind": "relation"}, **facts}
    write_model(tmp_path, ModelFolder(SMALL, tensors, Tokenizers(wordpiece, wordpiece), facts), card="")
    with pytest.raises(CheckpointError) as caught:
        read_model(tmp_path)
    assert [mistake.key for mistake in caught.value.mistakes] == [key]
    assert caught.value.where == str(tmp_path / "config.json")


@pytest.mark.parametrize(("theirs", "ours"), [("gelu", "gelu"), ("gelu_new", "gelu_tanh"), ("relu", "relu")])
def test_activations(theirs, ours, wordpiece, randomised, tmp_path):
    vocab = wordpiece.vocab_size
    model = randomised(BertModel(their_config(vocab, hidden_act=theirs)))
    model.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(wordpiece.to_json(), "utf-8")
    read = read_model(tmp_path)
    assert read.config.activation == ours
    found = Bert(read.config, vocab=vocab).eval()
    load_tensors(found, read.tensors, where=tmp_path)
    assert_same_outputs(found, model, vocab)


def test_the_encoder_without_its_pooler(wordpiece, randomised, tmp_path):
    theirs = randomised(BertModel(their_config(wordpiece.vocab_size), add_pooling_layer=False))
    theirs.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(wordpiece.to_json(), "utf-8")
    read = read_model(tmp_path)
    assert read.facts["task"] == {"kind": "embedding", "pooler": False}
    load_tensors(Bert(read.config, vocab=wordpiece.vocab_size, pooler=False), read.tensors, where=tmp_path)
    again = tmp_path / "again"
    again.mkdir()
    write_model(again, read, card="")
    assert load_file(again / "model.safetensors").keys() == load_file(tmp_path / "model.safetensors").keys()


@pytest.fixture
def pretrained(wordpiece, randomised, tmp_path):
    """A folder of transformers with both objectives, and its model."""
    theirs = randomised(BertForPreTraining(their_config(wordpiece.vocab_size)))
    theirs.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(wordpiece.to_json(), "utf-8")
    return tmp_path, theirs


def test_a_file_of_the_first_years(pretrained, wordpiece):
    """As the most downloaded BERT is: gamma and beta, tied copies, buffers, and more heads than its class has."""
    folder, theirs = pretrained
    tensors = load_file(folder / "model.safetensors")
    words = tensors["bert.embeddings.word_embeddings.weight"]
    tensors |= {"cls.predictions.decoder.weight": words.clone(), "bert.embeddings.position_ids": torch.arange(20)[None]}
    tensors["cls.predictions.decoder.bias"] = tensors.pop("cls.predictions.bias")
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    for new, first in old.items():
        tensors = {name.replace(new, first): tensor for name, tensor in tensors.items()}
    save_file(tensors, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["BertForMaskedLM"]}), "utf-8")
    read = read_model(folder)
    assert read.facts["task"] == {"kind": "pretraining", "next_sentence": True}
    ours = BertPretraining(SMALL, vocab=wordpiece.vocab_size).eval()
    load_tensors(ours, read.tensors, where=folder)
    assert_same_outputs(ours, theirs, wordpiece.vocab_size)


@pytest.mark.parametrize("heads", [True, False])
def test_a_config_that_names_no_class(heads, pretrained):
    folder, _ = pretrained
    config = json.loads((folder / "config.json").read_text("utf-8"))
    del config["architectures"]
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    if not heads:
        tensors = load_file(folder / "model.safetensors")
        save_file({n: t for n, t in tensors.items() if n.startswith("bert.")}, folder / "model.safetensors")
    assert read_model(folder).facts["task"]["kind"] == ("pretraining" if heads else "embedding")


def test_a_tagger_that_kept_its_pooler(wordpiece, randomised, tmp_path):
    theirs = randomised(BertForTokenClassification(their_config(wordpiece.vocab_size, num_labels=3)))
    theirs.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors |= {"bert.pooler.dense.weight": torch.zeros(24, 24), "bert.pooler.dense.bias": torch.zeros(24)}
    save_file(tensors, tmp_path / "model.safetensors")
    (tmp_path / "tokenizer.json").write_text(wordpiece.to_json(), "utf-8")
    read = read_model(tmp_path)
    assert not any("pooler" in name for name in read.tensors)
    load_tensors(our_model({"kind": "tagging"}, wordpiece.vocab_size), read.tensors, where=tmp_path)


def test_several_files(pretrained):
    folder, theirs = pretrained
    whole = read_model(folder)
    (folder / "model.safetensors").unlink()
    theirs.save_pretrained(folder, max_shard_size="20KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 2
    read = read_model(folder)
    assert all(torch.equal(read.tensors[name], tensor) for name, tensor in whole.tensors.items())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_converted_and_said(dtype, pretrained):
    folder, _ = pretrained
    halves = {name: tensor.to(dtype) for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file(halves, folder / "model.safetensors")
    with pytest.warns(ConvertedWarning, match=f"{str(dtype)[6:]} are converted to float32"):
        read = read_model(folder)
    assert {tensor.dtype for tensor in read.tensors.values()} == {torch.float32}
    assert torch.equal(read.tensors["bias"], halves["cls.predictions.bias"].float())


def test_our_facts_are_forgotten_where_they_no_longer_hold(wordpiece, randomised, tmp_path):
    """Whoever goes on with our model elsewhere keeps the key "jumok" in config.json and may change all else."""
    task = {"kind": "pretraining", "next_sentence": True}
    ours = randomised(our_model(task, wordpiece.vocab_size))
    write_model(tmp_path, folder_of(ours, task, wordpiece), card="")
    names = {0: "no", 1: "yes"}
    tuned = BertForSequenceClassification.from_pretrained(tmp_path, id2label=names, label2id={"no": 0, "yes": 1})
    there = tmp_path / "there"
    tuned.save_pretrained(there)
    shutil.copy(tmp_path / "tokenizer.json", there)
    assert "jumok" in json.loads((there / "config.json").read_text("utf-8"))
    read = read_model(there)
    assert read.facts["task"] == {"kind": "classification", "predicts": "class"}
    assert read.facts["labels"] == ["no", "yes"]


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ({}, True),
        ({"problem_type": "multi_label_classification"}, False),
        ({"id2label": {"0": "a", "1": "b", "2": "c"}}, False),
    ],
    ids=str,
)
def test_our_facts_hold_as_long_as_labels_and_problem_do(changes, kept, wordpiece, randomised, tmp_path):
    task = {"kind": "classification", "predicts": "class"}
    ours = randomised(our_model(task, wordpiece.vocab_size))
    write_model(tmp_path, folder_of(ours, task, wordpiece), card="")
    tree = json.loads((tmp_path / "config.json").read_text("utf-8"))
    (tmp_path / "config.json").write_text(json.dumps({**tree, **changes}), "utf-8")
    assert read_model(tmp_path).facts["language"] == ("ko" if kept else "")


def test_transformers_cuts_text_as_we_do(wordpiece, randomised, tmp_path):
    task = {"kind": "embedding", "pooler": True}
    write_model(tmp_path, folder_of(randomised(our_model(task, wordpiece.vocab_size)), task, wordpiece), card="")
    texts = ["the lazy fox", "나는 the 학교에", "  two   spaces\tand\na line ", "é 漢字 🙂", ""]
    for reader in (AutoTokenizer, PreTrainedTokenizerFast):
        theirs = reader.from_pretrained(tmp_path)
        assert theirs(texts)["input_ids"] == [wordpiece.frame(wordpiece.encode(text)) for text in texts]
        pair = theirs("the fox", "나는")
        a, b = wordpiece.encode("the fox"), wordpiece.encode("나는")
        assert pair["input_ids"] == wordpiece.frame(a, b)
        assert pair["token_type_ids"] == [0] * (len(a) + 2) + [1] * (len(b) + 1)
        assert theirs.mask_token_id in theirs("the [MASK] fox")["input_ids"]
        assert (theirs.pad_token_id, theirs.model_max_length) == (wordpiece.pad_id, 20)
    lines = (tmp_path / "vocab.txt").read_text("utf-8").splitlines()
    assert lines == wordpiece.pieces(range(wordpiece.vocab_size))


@pytest.mark.parametrize(
    "settings",
    [
        None,
        {"do_lower_case": False},
        {"do_lower_case": True, "strip_accents": False},
        {"do_lower_case": False, "strip_accents": True},
        {"tokenize_chinese_chars": False},
    ],
    ids=str,
)
def test_a_folder_with_nothing_but_vocab_txt(settings, wordpiece, randomised, tmp_path):
    task = {"kind": "embedding", "pooler": True}
    write_model(tmp_path, folder_of(randomised(our_model(task, wordpiece.vocab_size)), task, wordpiece), card="")
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "tokenizer_config.json").unlink()
    if settings is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
    ours = read_model(tmp_path).tokenizers.source
    assert ours.layout is BERT
    theirs = BertTokenizer.from_pretrained(tmp_path)
    for text in ["The LAZY fox, isn't it?", "thé quick BROWN", "나는 학교에", "fox漢字dog", "a\u0000b\tc", ""]:
        ids = theirs(text)["input_ids"]
        assert ours.frame(ours.encode(text)) == ids, text
        assert ours.encode("unseen ☃")[-1] == ours.unk_id
