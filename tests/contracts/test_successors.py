"""Fine-tuning of imported RoBERTa, XLM-RoBERTa, ELECTRA and DistilBERT: it learns, and opens in transformers again."""

from dataclasses import asdict

import numpy as np
import pytest
import torch
import transformers

from foreign_berts import foreign_folder
from jumok.errors import InputError
from jumok.exchange import export_folder, import_folder
from jumok.predictor import load
from jumok.tasks.stored import read_start

TRAIN = {"steps": 120, "batch_tokens": 512}


@pytest.fixture
def tuned(tree, train, tmp_path):
    """The run of a task that starts from a random model of a kind, as transformers wrote it."""

    def tuned_from(kind, end, task, /, **sections):
        foreign_folder(kind, end, tmp_path / "foreign", scale=0.1)
        import_folder(tmp_path / "foreign", tmp_path / "start")
        start = read_start(str(tmp_path / "start"))
        model = asdict(start.config) | {"dropout": 0.0, "attention_dropout": 0.0}
        vocabulary = {"kind": "wordpiece", "vocab_size": start.tokenizers.source.vocab_size}
        recipe = tree(task, data={"max_len": 40}, train=TRAIN, **sections)
        recipe |= {"init": str(tmp_path / "start"), "model": model, "tokenizer": vocabulary}
        recipe["train"]["optimizer"] = {**recipe["train"]["optimizer"], "kind": "adamw", "learning_rate": 0.005}
        train(recipe, tmp_path / "run")
        return tmp_path / "run"

    return tuned_from


@pytest.mark.parametrize("kind", ["roberta", "klue", "xlm-roberta", "electra", "distilbert"])
def test_a_classifier_learns_and_gives_the_same_logits_elsewhere(kind, tuned, held_out, tmp_path):
    run = tuned(kind, "ForMaskedLM", "classification")
    predictor, examples = load(run, engine="torch"), held_out("classification")
    assert predictor.score(examples)[0]["scores"]["accuracy"]["value"] > 90

    export_folder(run, tmp_path / "out")
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "out").eval()
    assert theirs.config.model_type == read_start(str(run)).config.family
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    texts = [example.text for example in examples]
    with torch.inference_mode():
        expected = theirs(**tokenizer(texts, padding=True, return_tensors="pt")).logits.softmax(dim=-1).numpy()
    for engine in ("torch", "fast"):
        found = load(run, engine=engine).predict(texts)
        by_label = [[output.probabilities[theirs.config.id2label[i]] for i in range(2)] for output in found]
        np.testing.assert_allclose(by_label, expected, rtol=0, atol=1e-5 if engine == "torch" else 0.05)


@pytest.mark.parametrize("kind", ["roberta", "xlm-roberta"])
def test_a_tagger_marks_the_characters_of_byte_and_unigram_pieces(kind, tuned, held_out):
    run = tuned(kind, "Model", "marked", task={"kind": "tagging"})
    predictor, examples = load(run, engine="torch"), held_out("marked")
    assert predictor.score(examples)[0]["scores"]["span_f1"]["value"] > 80
    (found,) = predictor.predict(["AB는 de C가"])
    text = "AB는 de C가"
    assert [(kind, text[start:end]) for kind, start, end in found.spans] == [("NAME", "AB"), ("NAME", "C")]


def test_masked_words_are_trained_further(tuned, tmp_path):
    """In whole words, which byte-level pieces begin with a mark instead of continuing with one."""
    task = {"kind": "pretraining", "next_sentence": False, "whole_words": True}
    run = tuned("roberta", "ForMaskedLM", "pretraining", task=task)
    export_folder(run, tmp_path / "out")
    theirs, loading = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert type(theirs) is transformers.RobertaForMaskedLM
    assert not any(loading.values()), loading
    tokenizer, text = transformers.AutoTokenizer.from_pretrained(tmp_path / "out"), "the dog <mask> here."
    given = tokenizer(text, return_tensors="pt")
    at = given["input_ids"][0].tolist().index(tokenizer.mask_token_id)
    with torch.inference_mode():
        expected = theirs.eval()(**given).logits[0, at].softmax(dim=-1)
    (found,) = load(run, engine="torch").predict([text])
    for candidate in found.candidates[0]:
        number = tokenizer.convert_tokens_to_ids(candidate.piece)
        assert candidate.score == pytest.approx(float(expected[number]), abs=1e-5)


def test_words_are_added_to_wordpiece_alone(tuned):
    with pytest.raises(InputError) as caught:
        tuned("roberta", "ForMaskedLM", "pretraining", task={"kind": "pretraining", "new_pieces": 5})
    assert caught.value.code == "recipe.new_pieces"
