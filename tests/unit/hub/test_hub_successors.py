"""RoBERTa, XLM-RoBERTa, ELECTRA and DistilBERT: the same numbers and tokens as in transformers, in and out."""

import gzip
import json
import os
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from foreign_berts import SUCCESSORS, foreign_folder, lines
from jumok.data.pages import make_page
from jumok.errors import CheckpointError
from jumok.examples.labelled import Labelled
from jumok.examples.questions import Question
from jumok.exchange import export_folder, import_folder
from jumok.hub.folder import ModelFolder
from jumok.models.bert import Bert, BertConfig
from jumok.models.build import build_model
from jumok.models.weights import load_tensors, unique_tensors
from jumok.predictor import load
from jumok.tasks import task_named
from jumok.tasks.answering.places import encode_question
from jumok.tasks.classification.predictor import attended_words
from jumok.tasks.stored import obstacle, read_model, write_model
from jumok.tasks.windows import LongTexts
from jumok.text.tokenizer import Tokenizer, Tokenizers

HEADS = {
    "Model": "embedding",
    "ForMaskedLM": "pretraining",
    "ForSequenceClassification": "classification",
    "ForMultipleChoice": "choice",
    "ForTokenClassification": "tagging",
    "ForQuestionAnswering": "answering",
}
LABELLED = {"id2label": {0: "가", 1: "b", 2: "c"}, "label2id": {"가": 0, "b": 1, "c": 2}}
TEXTS = [
    ("the cat sat on the mat", "비가 오고"),
    ("서울에서 온 고양이는", "x"),
    ("naïve café 🙂 half", "정말 재미있었다."),
]


def changes(end):
    return LABELLED if end in ("ForSequenceClassification", "ForTokenClassification") else {}


def model_of(read):
    """jumok's model of a folder, as its predictor would build it."""
    task = task_named(read.facts["task"]["kind"])
    head = task.head(read.facts["task"], task.read_facts(read.facts))
    model = build_model(read.config, head, **read.tokenizers.sizes).eval()
    load_tensors(model, read.tensors, where=Path())
    return model


def outputs(model, read, rows):
    page = make_page(rows, read.tokenizers.source)
    kind = read.facts["task"]["kind"]
    with torch.inference_mode():
        found = model(page.ids, page.segments, page.mask)
        if kind == "pretraining":
            return model.logits(found[page.mask])
        return found if kind in ("classification", "choice") else found[page.mask]


def their_outputs(model, tokenizer, pairs):
    given = tokenizer(*map(list, zip(*pairs, strict=True)), padding=True, return_tensors="pt")
    mask = given["attention_mask"].bool()
    if type(model).__name__.endswith("ForMultipleChoice"):
        given = {name: each[None] for name, each in given.items()}
    if type(model).__name__.startswith(("Roberta", "XLM")):  # KLUE's tokenizer counts to 1, its model to 0
        given.pop("token_type_ids", None)
    if type(model).__name__.startswith("Distil"):
        given.pop("token_type_ids", None)
    with torch.inference_mode():
        said = model(**given)
    if "start_logits" in said:
        return torch.stack([said.start_logits, said.end_logits], dim=-1)[mask]
    if "last_hidden_state" in said:
        return said.last_hidden_state[mask]
    if said.logits.shape[:1] == (1,):
        return said.logits.T
    return said.logits if said.logits.ndim == 2 else said.logits[mask]


def rows_of(tokenizer, pairs):
    return [tokenizer.frame(tokenizer.encode(a), tokenizer.encode(b)) for a, b in pairs]


@pytest.mark.parametrize("end", HEADS)
@pytest.mark.parametrize("kind", SUCCESSORS)
def test_the_same_numbers_in_and_out(kind, end, tmp_path):
    theirs = foreign_folder(kind, end, tmp_path / "foreign", **changes(end))
    read = read_model(tmp_path / "foreign")
    assert (read.config.kind, read.facts["task"]["kind"], read.facts["max_len"]) == ("bert", HEADS[end], 40)
    assert read.config.family == theirs.config.model_type
    found = outputs(model_of(read), read, rows_of(read.tokenizers.source, TEXTS))
    expected = their_outputs(theirs, AutoTokenizer.from_pretrained(tmp_path / "foreign"), TEXTS)
    assert found.std() > 0.03
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    if changes(end):
        assert read.facts["labels"] == ["가", "b", "c"]

    import_folder(tmp_path / "foreign", tmp_path / "run")
    export_folder(tmp_path / "run", tmp_path / "out")
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("foreign", "out"))
    assert before.keys() == after.keys()
    assert [name for name, tensor in before.items() if not torch.equal(tensor, after[name])] == []
    again, loading = type(theirs).from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(loading.values()), loading
    # Whatever the tokenizer says is the model's input; no argument is dropped here.
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    given = tokenizer([a for a, _ in TEXTS], [b for _, b in TEXTS], padding=True, return_tensors="pt")
    choice = end == "ForMultipleChoice"
    with torch.inference_mode():
        again.eval()(**{name: each[None] if choice else each for name, each in given.items()})
    torch.testing.assert_close(their_outputs(again, tokenizer, TEXTS), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", SUCCESSORS)
def test_the_config_comes_out_as_it_went_in(kind, tmp_path):
    foreign_folder(kind, "ForSequenceClassification", tmp_path / "foreign", **LABELLED)
    import_folder(tmp_path / "foreign", tmp_path / "run")
    export_folder(tmp_path / "run", tmp_path / "out")
    auto = transformers.AutoConfig
    before, after = (auto.from_pretrained(tmp_path / name).to_dict() for name in ("foreign", "out"))
    aside = {"jumok", "_name_or_path", "problem_type", "summary_last_dropout", "seq_classif_dropout", "dtype"}
    # The ids of RoBERTa's tokens are defaults of the class, not those of KLUE's vocabulary.
    aside |= {"bos_token_id", "eos_token_id", "position_embedding_type", "transformers_version", "torch_dtype"}
    assert {k: v for k, v in after.items() if k not in aside} == {k: v for k, v in before.items() if k not in aside}


@pytest.mark.parametrize("kind", SUCCESSORS)
def test_hidden_states_of_every_layer(kind, tmp_path):
    theirs = foreign_folder(kind, "Model", tmp_path)
    read = read_model(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    for pair in TEXTS:
        (row,) = rows_of(read.tokenizers.source, [pair])
        page, states = make_page([row], read.tokenizers.source), []
        given = tokenizer(*pair, return_tensors="pt")
        if kind in ("klue", "distilbert"):
            given.pop("token_type_ids")
        with torch.inference_mode():
            model_of(read)(page.ids, page.segments, page.mask, states=states)
            expected = theirs(**given, output_hidden_states=True).hidden_states
        for ours, each in zip(states, expected[-len(states) :], strict=True):
            torch.testing.assert_close(ours, each, rtol=1e-5, atol=1e-5)


def test_electra_keeps_its_discriminator(tmp_path):
    theirs = foreign_folder("electra", "ForPreTraining", tmp_path / "foreign")
    assert "discriminator" in import_folder(tmp_path / "foreign", tmp_path / "run")
    read = read_model(tmp_path / "run" / "model")
    assert read.facts["task"] == {"kind": "embedding", "pooler": False}
    assert not any(name.startswith("discriminator") for name in read.tensors)
    export_folder(tmp_path / "run", tmp_path / "out")
    again = transformers.AutoModelForPreTraining.from_pretrained(tmp_path / "out").eval()
    assert type(again) is type(theirs)
    pairs = [(name, tensor, again.state_dict()[name]) for name, tensor in theirs.state_dict().items()]
    assert [name for name, before, after in pairs if not torch.equal(before, after)] == []


def test_roberta_that_kept_its_pooler(tmp_path):
    """As the published one does, whose pooler was never trained."""
    foreign_folder("roberta", "ForMaskedLM", tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors |= {"roberta.pooler.dense.weight": torch.zeros(24, 24), "roberta.pooler.dense.bias": torch.zeros(24)}
    tensors["roberta.embeddings.position_ids"] = torch.arange(42)[None]
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    assert not any("pooler" in name for name in read_model(tmp_path).tensors)


TOKENIZERS = {"roberta", "klue", "xlm-roberta", "koelectra", "distilbert"}


@pytest.fixture(scope="module", params=sorted(TOKENIZERS))
def vocabulary(request, tmp_path_factory):
    """Of each kind: jumok's tokenizer, theirs, and theirs of the folder that jumok writes."""
    folder = tmp_path_factory.mktemp(request.param)
    foreign_folder(request.param, "Model", folder / "foreign")
    import_folder(folder / "foreign", folder / "run")
    export_folder(folder / "run", folder / "out")
    theirs = [AutoTokenizer.from_pretrained(folder / name) for name in ("foreign", "out")]
    return Tokenizer.load(folder / "foreign" / "tokenizer.json"), *theirs


def test_ten_thousand_lines_have_the_same_tokens(vocabulary):
    ours, theirs, exported = vocabulary
    given = lines(10_000)
    found = [ours.frame(ids) for ids in ours.encode_batch(given)]
    for tokenizer in (theirs, exported):
        expected = tokenizer(given)["input_ids"]
        assert [line for line, a, b in zip(given, found, expected, strict=True) if a != b] == []
    assert len({i for ids in found for i in ids}) > 45


def test_ten_thousand_pairs_have_the_same_tokens_and_segments(vocabulary):
    ours, theirs, exported = vocabulary
    a, b = lines(10_000), lines(10_000, seed=4)[::-1]
    both = zip(ours.encode_batch(a), ours.encode_batch(b), strict=True)
    found = [ours.frame(*ids) for ids in both]
    page = make_page(found[:200], ours)
    for tokenizer in (theirs, exported):
        expected = tokenizer(a, b, return_token_type_ids=True)
        assert [
            pair for pair, x, y in zip(zip(a, b, strict=True), found, expected["input_ids"], strict=True) if x != y
        ] == []
        for segments, mask, types in zip(page.segments, page.mask, expected["token_type_ids"], strict=False):
            assert segments[mask].tolist() == types


def test_masks_are_read_as_they_are_there(vocabulary):
    ours, theirs, exported = vocabulary
    mask = ours.layout.mask
    for text in (f"the {mask} sat", f"{mask}", f"비가  {mask} {mask}고", f"the{mask}cat {mask}\u3000{mask}"):
        expected = ours.frame(ours.encode_masked(text))
        assert expected.count(ours.mask_id) == text.count(mask)
        assert theirs(text)["input_ids"] == exported(text)["input_ids"] == expected


def test_offsets_are_of_the_characters_that_a_token_stands_for(vocabulary):
    ours, theirs, _ = vocabulary
    for line in lines(1_000, seed=5):
        found = ours.encode_with_offsets(line)
        assert found.ids == ours.encode(line)
        last = 0
        for start, end in found.offsets:
            assert 0 <= start <= end <= len(line)
            assert start >= last or end >= last
            assert end == start or not line[start].isspace()
            last = start
    for text, word in (("서울에서 온 고양이는 문", "고양이는"), ("the 🙂  cat", "cat"), ("ＡＢＣ naïve x", "naïve")):
        start, end = text.index(word), text.index(word) + len(word)
        inside = [span for span in ours.encode_with_offsets(text).offsets if span[0] < end and span[1] > start]
        assert (min(a for a, _ in inside), max(b for _, b in inside)) == (start, end)


@pytest.fixture(scope="module")
def corpus_lines():
    """Reviews in Korean and articles in English, whose `<unk>` would be a special token in transformers."""
    paths = [Path(os.environ.get("JUMOK_DATA", "")) / name for name in ("nsmc/test.tsv.gz", "wikitext2/valid.txt.gz")]
    if missing := [path for path in paths if not path.is_file()]:
        pytest.skip(f"JUMOK_DATA names no folder with {missing[0].parent.name}")
    found = []
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
            found += [line.rstrip("\n").replace("<unk>", "unk") for line in islice(file, 5_000)]
    return found


def test_real_lines_have_the_same_tokens(vocabulary, corpus_lines):
    ours, theirs, _ = vocabulary
    found, expected = [ours.frame(ids) for ids in ours.encode_batch(corpus_lines)], theirs(corpus_lines)["input_ids"]
    assert [line for line, a, b in zip(corpus_lines, found, expected, strict=True) if a != b] == []


def test_the_second_text_is_where_the_tasks_expect_it(vocabulary):
    tokenizer, _, _ = vocabulary
    question = Question("q", "the cat", "비가 오고 the sun runs slowly", [])
    (window,) = encode_question(tokenizer, question, LongTexts(max_len=200)).windows
    encoded = tokenizer.encode_with_offsets(question.context)
    assert window.row[window.first : window.first + len(encoded.ids)] == encoded.ids
    weights = np.arange(200.0)
    words = attended_words(tokenizer, Labelled("the cat", pair="sat here"), weights)
    second = tokenizer.second_at(len(tokenizer.encode("the cat")))
    n = len(tokenizer.encode("sat here"))
    assert sum(weight for _, weight in words[2:]) == weights[second : second + n].sum()


REFUSED = {
    "relative positions": ("roberta", {"position_embedding_type": "relative_key"}, "position_embedding_type"),
    "another activation": ("electra", {"hidden_act": "gelu_fast"}, "hidden_act"),
    "a decoder": ("xlm-roberta", {"is_decoder": True}, "is_decoder"),
    "fixed positions": ("distilbert", {"sinusoidal_pos_embds": True}, "sinusoidal_pos_embds"),
    "its own name": ("distilbert", {"activation": "tanh"}, "activation"),
    "another summary": ("electra", {"summary_type": "mean"}, "summary_type"),
    "no room": ("roberta", {"max_position_embeddings": 2}, "max_position_embeddings"),
}


@pytest.mark.parametrize(("kind", "change", "key"), REFUSED.values(), ids=REFUSED)
def test_settings_that_jumok_has_not_are_named(kind, change, key, tmp_path):
    foreign_folder(kind, "Model", tmp_path)
    _change(tmp_path / "config.json", change)
    with pytest.raises(CheckpointError) as caught:
        read_model(tmp_path)
    assert key in str(caught.value)
    assert caught.value.where == str(tmp_path / "config.json")


def _change(path, change):
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **change}), "utf-8")


def test_a_head_with_another_activation_than_the_body(tmp_path):
    foreign_folder("roberta", "ForMaskedLM", tmp_path, hidden_act="relu")
    with pytest.raises(CheckpointError) as caught:
        read_model(tmp_path)
    assert caught.value.code == "checkpoint.activation"


def test_a_vocabulary_whose_padding_is_not_the_models(tmp_path):
    foreign_folder("klue", "Model", tmp_path)
    _change(tmp_path / "config.json", {"pad_token_id": 0, "max_position_embeddings": 42})
    with pytest.raises(CheckpointError) as caught:
        read_model(tmp_path)
    assert caught.value.code == "checkpoint.other_vocabulary"


@pytest.mark.parametrize(
    ("kind", "change"), [("roberta", {"add_prefix_space": True}), ("koelectra", {"do_lower_case": True})]
)
def test_settings_that_contradict_the_vocabulary(kind, change, tmp_path):
    foreign_folder(kind, "Model", tmp_path)
    _change(tmp_path / "tokenizer_config.json", change)
    with pytest.raises(CheckpointError) as caught:
        read_model(tmp_path)
    assert (caught.value.code, *change) == ("checkpoint.pretokenizer", caught.value.what.split()[0])


def test_a_vocabulary_that_frames_texts_otherwise(tmp_path):
    foreign_folder("roberta", "Model", tmp_path)
    path = tmp_path / "tokenizer.json"
    tree = json.loads(path.read_text("utf-8"))
    tree["post_processor"]["cls"] = ["<pad>", 1]
    path.write_text(json.dumps(tree), "utf-8")
    with pytest.raises(CheckpointError) as caught:
        read_model(tmp_path)
    assert (caught.value.code, caught.value.where) == ("checkpoint.frame", str(path))


def test_what_transformers_has_not(tmp_path):
    """Next-sentence prediction on RoBERTa, a pooler alone on DistilBERT, another epsilon there."""
    foreign_folder("roberta", "ForMaskedLM", tmp_path)
    read = read_model(tmp_path)
    read.tensors["next_sentence.weight"] = torch.zeros(2, 24)
    assert obstacle(read) == "transformers has no RoBERTa that predicts the next sentence"


@pytest.mark.parametrize("first", [1, 2])
def test_positions_that_do_not_follow_the_padding_are_written_in_our_own_way(first, wordpiece, tmp_path):
    """Padding has id 0 in the vocabularies that jumok trains."""
    config = BertConfig(
        family="roberta", n_segments=1, first_position=first, d_model=24, d_ff=40, n_heads=4, n_layers=1, max_len=20
    )
    facts = {"version": "1", "task": {"kind": "embedding", "pooler": True}, "language": "", "max_len": 20}
    tensors = unique_tensors(Bert(config, vocab=wordpiece.vocab_size))
    written = ModelFolder(config, tensors, Tokenizers(wordpiece, wordpiece), facts)
    assert (obstacle(written) is None) == (first == 1)
    write_model(tmp_path, written, card="")
    kind = json.loads((tmp_path / "config.json").read_text("utf-8"))["model_type"]
    assert kind == ("roberta" if first == 1 else "jumok-bert")
    assert read_model(tmp_path).config == config


def test_filling_masks_in_a_byte_level_vocabulary(tmp_path):
    foreign_folder("roberta", "ForMaskedLM", tmp_path)
    (found,) = load(tmp_path).predict(["the <mask> sat on the mat"])
    assert "<mask>" not in found.text
    assert "Ġ" not in found.text
    assert len(found.candidates) == 1


def test_a_model_one_level_below(tmp_path):
    foreign_folder("electra", "Model", tmp_path / "download" / "snapshot")
    with pytest.raises(CheckpointError) as caught:
        import_folder(tmp_path / "download", tmp_path / "run")
    assert caught.value.code == "checkpoint.model_below"
    assert str(tmp_path / "download" / "snapshot") in caught.value.hint
    assert not (tmp_path / "run").exists()
