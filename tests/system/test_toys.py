"""Toys learn through the command line, and everything that can be asked of a trained run is asked."""

import json
import re

import pytest

from jumok.examples.made.toys import names

ENOUGH = {"copy": 400, "lstm": 480, "lstm-reversed": 480, "gru-context": 480}
ENOUGH |= {"similarity": 250, "choices": 400, "verbal": 180}
"""steps of toys that reach well before the end of their recipe what is asked of them"""


@pytest.fixture
def jumok(here):
    return here


@pytest.fixture
def trained(jumok, recipes):
    """Trains a toy as its recipe says, in as many steps as are enough."""

    def train(recipe):
        out = jumok.folder / recipe
        fewer = ("--set", f"train.steps={ENOUGH[recipe]}") if recipe in ENOUGH else ()
        jumok("train", recipes / f"toy/{recipe}.toml", "--out", out, *fewer)
        return out

    return train


def test_copy_is_learned(trained):
    out = trained("copy")
    scores = json.loads((out / "scores.json").read_text("utf-8"))
    assert scores["test"]["scores"]["exact_match"]["value"] >= 95


@pytest.mark.parametrize(
    ("recipe", "floor"),
    [
        ("elman", 95),
        ("lstm", 90),
        ("lstm-reversed", 90),
        ("gru-context", 90),
        ("bahdanau", 95),
        ("luong-dot", 95),
        ("luong-general", 95),
        ("luong-concat", 95),
        ("luong-local-m", 95),
        ("luong-local-p", 95),
        ("luong-input-feeding", 95),
        ("scheduled-sampling", 95),
    ],
)
def test_every_recurrent_variant_learns(jumok, trained, recipe, floor):
    out = trained(recipe)
    scores = json.loads((out / "scores.json").read_text("utf-8"))
    assert scores["test"]["scores"]["exact_match"]["value"] >= floor
    assert jumok("predict", out, stdin="").stdout == ""


@pytest.mark.parametrize("pool", ["last", "mean", "attention"])
def test_opinions_are_judged_and_a_negation_turns_them_over(jumok, recipes, pool):
    out = jumok.folder / f"classifier-{pool}"
    jumok("train", recipes / f"toy/classifier-{pool}.toml", "--out", out)
    result = json.loads(jumok("evaluate", out, "--json").stdout)
    assert result["splits"]["test"]["scores"]["accuracy"]["value"] >= 95
    lines = "이 영화는 정말 지루하다\n이 영화는 정말 지루하지 않다\n"
    predictions = json.loads(jumok("predict", out, "--json", "--set", "words=true", stdin=lines).stdout)["predictions"]
    assert [prediction["text"] for prediction in predictions] == ["부정", "긍정"]
    if pool == "attention":
        assert [word for word, _ in predictions[1]["words"]] == ["이", "영화는", "정말", "지루하지", "않다"]


def test_a_tagger_tells_a_person_from_a_place_by_the_context(jumok, recipes):
    out = jumok.folder / "tagger"
    jumok("train", recipes / "toy/tagger.toml", "--out", out)
    result = json.loads(jumok("evaluate", out, "--json").stdout)
    assert result["splits"]["test"]["scores"]["span_f1"]["value"] >= 95
    line = jumok("predict", out, stdin="Paris Kim moved from New Paris to Oslo .\n").stdout
    assert line == "Paris/B-PER Kim/I-PER moved/O from/O New/B-LOC Paris/I-LOC to/O Oslo/B-LOC ./O\n"


def test_a_language_model_learns_a_grammar(jumok, recipes):
    out = jumok.folder / "language-model"
    jumok("train", recipes / "toy/language-model.toml", "--out", out)
    scores = json.loads((out / "scores.json").read_text("utf-8"))["test"]["scores"]
    assert scores["perplexity"]["value"] < 5
    first, second = (jumok("predict", out, "--set", "seed=3", stdin="the birds\n").stdout for _ in range(2))
    assert first == second
    assert first.startswith("the birds ")


def test_bert_guesses_words_and_tells_what_follows(jumok, recipes):
    out = jumok.folder / "bert"
    jumok("train", recipes / "toy/bert.toml", "--out", out)
    scores = json.loads((out / "scores.json").read_text("utf-8"))["test"]["scores"]
    assert scores["masked_accuracy"]["value"] >= 75
    assert scores["next_sentence_accuracy"]["low"] >= 70
    lines = "the birds sing today. the birds [MASK] again.\nthe bird sings.\tthe bird sleeps.\n"
    filled, follows = json.loads(jumok("predict", out, "--json", stdin=lines).stdout)["predictions"]
    assert [len(candidates) for candidates in filled["candidates"]] == [5]
    assert filled["text"].startswith("the birds sing today. the birds ")
    assert 0 <= follows["follows"] <= 1
    vector = jumok("predict", out, "--set", "ask=embedding", stdin="the birds sing.\n").stdout.split()
    assert len(vector) == 64


@pytest.mark.parametrize(("recipe", "ceiling"), [("gpt", 5), ("elmo", 5)])
def test_gpt_and_elmo_learn_a_grammar(jumok, recipes, recipe, ceiling):
    out = jumok.folder / recipe
    jumok("train", recipes / f"toy/{recipe}.toml", "--out", out)
    scores = json.loads((out / "scores.json").read_text("utf-8"))["test"]["scores"]
    assert scores["perplexity"]["value"] < ceiling
    if recipe == "elmo":
        assert scores["backward_perplexity"]["value"] < ceiling
    streamed = jumok("predict", out, "--stream", "--set", "seed=3", stdin="the birds\n").stdout
    assert streamed == jumok("predict", out, "--set", "seed=3", stdin="the birds\n").stdout
    assert streamed.startswith("the birds ")


def test_elmo_gives_features_to_a_tagger(jumok, recipes):
    elmo, out = jumok.folder / "elmo-of-names", jumok.folder / "tagger-with-features"
    lines = [" ".join(sentence.words) for sentence in names("train", n=1500, seed=1)]
    text = jumok.folder / "names.txt"
    text.write_text("\n".join(lines), "utf-8")
    recipe = (recipes / "toy/elmo.toml").read_text("utf-8")
    recipe = re.sub(r'kind = "toy_grammar"\n(n_.*\n)+', f'kind = "text"\ntrain = ["{text}"]\ndev_share = 0.2\n', recipe)
    (jumok.folder / "elmo.toml").write_text(recipe, "utf-8")
    jumok("train", jumok.folder / "elmo.toml", "--out", elmo, "--set", "train.steps=40")
    jumok("train", recipes / "toy/tagger.toml", "--out", out, "--set", f"features={elmo}")
    scores = json.loads((out / "scores.json").read_text("utf-8"))["test"]["scores"]
    assert scores["span_f1"]["value"] >= 90
    assert "Oslo/B-LOC" in jumok("predict", out, stdin="Ada Kim moved from Oslo .\n").stdout


def test_pretraining_goes_on_with_new_words(jumok, recipes):
    start, out = jumok.folder / "start", jumok.folder / "adapted"
    jumok("train", recipes / "toy/bert.toml", "--out", start, "--set", "train.steps=60")
    text = jumok.folder / "new.txt"
    stories = [f"the {noun} rests.\nthe xylophone {verb} quietly." for noun in "abcdefgh" for verb in ("hums", "rings")]
    text.write_text("\n\n".join(stories * 5), "utf-8")
    recipe = f"""
    init = "{start}"
    task = {{ kind = "pretraining", new_pieces = 2 }}
    data = {{ kind = "documents", train = ["{text}"], dev_share = 0.5, max_len = 64 }}
    old_domain = {{ test = ["{text}"], max_len = 64 }}
    train.steps = 40
    train.batch_tokens = 512
    train.evaluate_every = 20
    train.final = "last"
    train.optimizer = {{ schedule = "linear", learning_rate = 2e-3, warmup = 5 }}
    """
    (jumok.folder / "adapt.toml").write_text(recipe, "utf-8")
    said = jumok("train", jumok.folder / "adapt.toml", "--out", out).stderr
    scores = json.loads((out / "scores.json").read_text("utf-8"))
    for split in ("dev", "old_domain"):
        assert scores[split]["pieces_per_word"] < scores[split]["before"]["pieces_per_word"]
        after, before = (found["scores"]["masked_loss"]["value"] for found in (scores[split], scores[split]["before"]))
        assert after < before
        assert f"{split}, before and after" in said
    assert "newly initialised" not in said
    assert "before" in json.loads(jumok("evaluate", out, "--json").stdout)["splits"]["dev"]
    assert "| dev, before | masked_accuracy |" in (out / "model/README.md").read_text("utf-8")
    pieces = (out / "model" / "vocab.txt").read_text("utf-8").split()
    assert "xylophone" in pieces[-2:]
    old = (start / "model" / "vocab.txt").read_text("utf-8").split()
    assert pieces[: len(old)] == old


def test_reverse_is_learned(jumok, reversed_run):
    result = json.loads(jumok("evaluate", reversed_run, "--json").stdout)
    exact = result["splits"]["test"]["scores"]["exact_match"]
    assert exact["value"] >= 85
    assert exact["low"] <= exact["value"] <= exact["high"]
    assert exact["n"] == 200
    stored = json.loads((reversed_run / "scores.json").read_text("utf-8"))
    assert stored["test"]["scores"]["exact_match"]["value"] == pytest.approx(exact["value"])


def test_run_folder_has_all_its_files(reversed_run):
    names = {path.name for path in reversed_run.iterdir()}
    assert {"recipe.json", "events.jsonl", "checkpoints", "model", "scores.json"} <= names
    model = {path.name for path in (reversed_run / "model").iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"} <= model
    assert {"generation_config.json", "README.md"} <= model
    checkpoint = next((reversed_run / "checkpoints").iterdir())
    assert {"weights.safetensors", "optimizer.safetensors", "progress.json", "manifest.json"} == {
        path.name for path in checkpoint.iterdir()
    }
    events = [json.loads(line) for line in (reversed_run / "events.jsonl").read_text("utf-8").splitlines()]
    assert [e["step"] for e in events if e["event"] == "step"] == list(range(1, 601))
    assert events[-1] == {**events[-1], "event": "finished", "reason": "steps"}


def test_predict_is_a_line_in_a_line_out(jumok, reversed_run):
    out = jumok("predict", reversed_run, stdin="1 2 3 4 5\n\n9 8 7\n").stdout
    assert out == "5 4 3 2 1\n\n7 8 9\n"


def test_predict_json_has_alternatives_and_alignment(jumok, reversed_run):
    asked = ["predict", reversed_run, "--json", "--set", "n_best=3"]
    (plain,) = json.loads(jumok(*asked, stdin="1 2 3 4 5\n").stdout)["predictions"]
    (prediction,) = json.loads(jumok(*asked, "--set", "alignment=true", stdin="1 2 3 4 5\n").stdout)["predictions"]
    assert {**plain, "alignment": prediction["alignment"]} == prediction  # which is not computed unless asked for
    assert prediction["text"] == "5 4 3 2 1"
    assert len(prediction["alternatives"]) == 2
    rows = prediction["alignment"]["weights"]
    assert all(sum(row) == pytest.approx(1, abs=0.01) for row in rows)
    # A model that reverses looks at the words from the last to the first.
    assert {(source, target) for source, target in prediction["alignment"]["words"]} <= {
        (source, target) for source in range(5) for target in range(5)
    }
    assert len({target for _, target in prediction["alignment"]["words"]}) == 5


def test_tensorboard_when_asked(jumok, recipes):
    out = jumok.folder / "board"
    options = [f"train.{key}" for key in ("steps=4", "tensorboard=true", "save_every=4", "evaluate_every=4")]
    options += ["data.n_train=500", "data.n_dev=5", "data.n_test=5"]
    jumok("train", recipes / "toy/copy.toml", "--out", out, *(x for option in options for x in ("--set", option)))
    assert [path for path in (out / "tensorboard").iterdir() if path.stat().st_size > 100]


def test_prefix_is_kept(jumok, reversed_run):
    assert jumok("predict", reversed_run, "--prefix", "3 2", stdin="1 2 3 4 5\n").stdout.startswith("3 2")


def test_ensemble_of_a_run_with_itself_is_the_run(jumok, reversed_run):
    text = "4 0 4 1 9\n2 2 7\n"
    alone = jumok("predict", reversed_run, stdin=text).stdout
    assert jumok("predict", reversed_run, "--with", reversed_run, stdin=text).stdout == alone


def test_output_does_not_depend_on_the_batch(reversed_run):
    """200 sentences alone, together and shuffled, from the model folder."""
    from random import Random

    import jumok as package
    from jumok.examples.made.numbers import generate

    predictor = package.load(reversed_run)
    texts = [source for source, _ in generate("reverse", "test", n=200, seed=1, max_len=10)]
    together = predictor(texts)
    assert [predictor([text])[0] for text in texts] == together
    order = Random(3).sample(range(200), 200)
    assert predictor([texts[i] for i in order]) == [together[i] for i in order]


def test_compare_with_itself_finds_no_difference(jumok, reversed_run):
    result = json.loads(jumok("compare", reversed_run, reversed_run, "--json").stdout)
    for comparison in result["splits"]["test"]:
        assert comparison["difference"] == 0
        assert comparison["p_value"] == 1


def test_show_counts_parameters(jumok, recipes, reversed_run):
    shown = json.loads(jumok("show", recipes / "paper/base.toml", "--json").stdout)
    assert shown["cost"]["parameters"]["total"] == pytest.approx(shown["recipe"]["published"]["parameters"], rel=0.04)
    assert "65,000,000" in jumok("show", recipes / "paper/base.toml").stdout
    assert json.loads(jumok("show", reversed_run, "--json").stdout)["scores"]["test"]


def test_doctor_looks_at_a_run_and_at_files(jumok, reversed_run):
    assert jumok("doctor", reversed_run)
    source, target = jumok.folder / "bad.en", jumok.folder / "bad.ko"
    lines = [f"line number {'very ' * (i % 7)}{i}" for i in range(300)]
    source.write_text("\n".join(lines) + "\n", "utf-8")
    target.write_text("\n".join(lines[:120] + lines[121:]) + "\n", "utf-8")
    found = json.loads(jumok("doctor", source, target, "--json", code=2).stdout)["findings"]
    assert any(finding["code"] == "data.misaligned" and "299" in finding["message"] for finding in found)


def test_same_command_again_after_the_end_changes_nothing(jumok, recipes, reversed_run):
    before = (reversed_run / "model" / "model.safetensors").read_bytes()
    jumok("train", recipes / "toy/reverse.toml", "--out", reversed_run)
    assert (reversed_run / "model" / "model.safetensors").read_bytes() == before


ASKED = {
    "topics": ("the band was better than before and the price was not what we know", "music|price"),
    "similarity": (
        "a small cat sings outside today\ta small cat sings outside today",
        lambda found: 3 < found["value"] < 7,
    ),
    "relations": (
        '{"text": "Mina works at Hanbit.", "head": {"start": 0, "end": 4}, "tail": {"start": 14, "end": 20}}',
        "employs(e2,e1)",
    ),
    "questions": ("What does Lena play?\tLena plays the violin. Alan works as a nurse.", "the violin"),
    "choices": (
        "Ada is really dirty again. The street is empty.\tAda washes with soap.\tAda watches a film.",
        "Ada washes with soap.",
    ),
    "josa": ("민아는 서울역에서 일한다.", "[민아](PER)는 [서울역](LOC)에서 일한다."),
    "crf": ("Mina lives in Oslo", lambda found: len(found["tags"]) == 4),
    "verbal": ("이 영화는 정말 지루하지 않다", "긍정"),
}


@pytest.mark.parametrize(
    ("recipe", "metric", "floor"),
    [
        ("topics", "micro_f1", 95),
        ("similarity", "pearson", 70),
        ("relations", "macro_f1", 95),
        ("questions", "answer_f1", 95),
        ("choices", "accuracy", 75),
        ("josa", "span_f1", 95),
        ("crf", "span_f1", 95),
        ("verbal", "accuracy", 95),
    ],
)
def test_every_task_is_learned(jumok, trained, recipe, metric, floor):
    out = trained(recipe)
    result = json.loads(jumok("evaluate", out, "--json").stdout)
    assert result["splits"]["test"]["scores"][metric]["value"] >= floor
    asked, said = ASKED[recipe]
    outputs = json.loads(jumok("predict", out, "--json", stdin=asked + "\n").stdout)["predictions"]
    assert said(outputs[0]) if callable(said) else outputs[0]["text"] == said


def test_several_seeds_are_one_run_with_their_mean(jumok, recipes):
    out = jumok.folder / "seeds"
    jumok("train", recipes / "toy/crf.toml", "--out", out, "--set", "seeds=[1,2]", "--set", "train.steps=60")
    scores = json.loads((out / "scores.json").read_text("utf-8"))["test"]["scores"]["span_f1"]
    each = [
        json.loads((out / f"seed-{seed}/scores.json").read_text("utf-8"))["test"]["scores"]["span_f1"]["value"]
        for seed in (1, 2)
    ]
    assert scores["values"] == each
    assert scores["value"] == pytest.approx(sum(each) / 2, abs=1e-3)
    assert "2 seeds" in scores["signature"]
    assert jumok("predict", out, stdin="Mina lives in Oslo\n").stdout.count("/") == 4
