"""What is given to the doctor: recipes whose weights are elsewhere, tables of GLUE, and tables that nobody knows."""

import sys
from pathlib import Path

import pytest

from jumok.cli import main
from jumok.doctor import examine_data
from jumok.errors import InputError, RecipeError
from jumok.examples.guess import guess_data

GLUE = {
    "QQP": "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\tWhy?\tHow?\t0\n4\t5\t6\tWho?\tWhose?\t1\n",
    "MRPC": "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tHe ran.\tHe was running.\n0\t9\t6\tIt rains.\tNo.\n",
    "MNLI": "index\tpromptID\tsentence1\tsentence2\tlabel1\tgold_label\n0\t1\tIt rains.\tIt is wet.\tneutral\tneutral\n"
    "1\t2\tA dog.\tA cat.\tcontradiction\t-\n",
    "QNLI": "index\tquestion\tsentence\tlabel\n0\tWho?\tShe was there.\tentailment\n",
    "STS-B": "index\tgenre\tsentence1\tsentence2\tscore\n0\tnews\tA man.\tA dog.\t1.200\n",
    "RTE": "index\tsentence1\tsentence2\tlabel\n0\tIt rains.\tIt is wet.\tentailment\n",
    "SST-2": "sentence\tlabel\na fine film \t1\n",
    "CoLA": "gj04\t1\t\tThe cat sat.\ngj04\t0\t*\tCat the sat.\n",
}


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "columns", "texts"),
    [
        ("QQP", ("question1", "question2", "is_duplicate"), 2),
        ("MRPC", ("#1 String", "#2 String", "Quality"), 2),
        ("MNLI", ("sentence1", "sentence2", "gold_label"), 1),
        ("QNLI", ("question", "sentence", "label"), 1),
        ("STS-B", ("sentence1", "sentence2", "score"), 1),
        ("RTE", ("sentence1", "sentence2", "label"), 1),
        ("SST-2", ("sentence", None, "label"), 1),
        ("CoLA", ("sentence", None, "label"), 2),
    ],
)
def test_the_tables_of_glue_are_known(tmp_path: Path, name: str, columns: tuple[str, ...], texts: int) -> None:
    path = write(tmp_path / name / "train.tsv", GLUE[name])
    data = guess_data([path]).data
    assert data.kind == "labelled"
    assert (data.text, data.pair, data.label) == columns
    assert len(list(data.read("train", seed=1))) == texts


def test_rows_of_qqp_with_lost_cells_are_found(tmp_path: Path) -> None:
    path = write(tmp_path / "train.tsv", GLUE["QQP"] + "7\t8\t9\tcut off\n")
    (found,) = (finding for finding in examine_data([path]) if finding.code == "data.unreadable")
    assert (found.severity, found.count) == ("error", 1)
    assert found.examples == [f"{path}:4  4 columns"]


@pytest.mark.parametrize(
    "text",
    [
        "index\tsentence1\tsentence2\n0\tIt rains.\tIt is wet.\n",  # a test set of GLUE, which has no labels
        "premise\thypothesis\tgold\nIt rains.\tIt is wet.\tyes\n",
        "review\tstars\ngood\t5\nbad\t1\n",
    ],
)
def test_a_header_that_nobody_knows_is_no_pair(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError) as caught:
        examine_data([write(tmp_path / "a.tsv", text)])
    assert (caught.value.code, caught.value.where) == ("data.unknown_header", f"{tmp_path}/a.tsv:1")
    assert "jumok doctor RECIPE" in str(caught.value)
    assert "--columns" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "Hello\t안녕\nIt rains.\t비가 온다.\n",
        "two\t2\nthree\t3\nfour\t4\n",
        "Go.\tGeh.\tCC-BY 2.0\nRun!\tLauf!\tCC-BY 2.0\n",
        "Go\t가\tgreeting\nRun\t달려\tgreeting\n",
        "one\tline\n",
    ],
)
def test_pairs_have_no_header(tmp_path: Path, text: str) -> None:
    data = guess_data([write(tmp_path / "a.tsv", text)]).data
    assert data.kind == "parallel"
    assert len(list(data.read("train", seed=1))) == text.count("\n")


# recipes

LABELLED = """
{begin} = "runs/nowhere"
task = {{ kind = "classification" }}
data = {{ kind = "labelled", train = ["table.tsv"] }}
model = {{ {model} }}
train = {{ metric = "accuracy" }}
"""


@pytest.mark.parametrize(("begin", "model"), [("init", "attention_dropout = 0.0"), ("features", 'kind = "rnn"')])
def test_data_is_examined_without_the_weights(tmp_path: Path, begin: str, model: str) -> None:
    write(tmp_path / "table.tsv", "text\tlabel\ngood\t1\nbad\t0\nlost\n")
    write(tmp_path / "other.tsv", "text\tlabel\ngood\t1\nbad\t0\n")
    path = write(tmp_path / "r.toml", LABELLED.format(begin=begin, model=model))
    assert [f.code for f in examine_data([path])] == ["data.unreadable", "data.counts", "data.labels"]
    assert [f.code for f in examine_data([path], overrides=['data.train=["other.tsv"]'])] == [
        "data.counts",
        "data.labels",
        "recipe.weights",
    ]
    with pytest.raises(RecipeError) as caught:
        examine_data([path], overrides=['data.train=["missing.tsv"]'])
    assert (caught.value.code, caught.value.where) == ("recipe.no_data_file", '--set data.train=["missing.tsv"]')
    assert "missing.tsv" in caught.value.what


def test_documents_are_examined_without_the_weights(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", "A fox runs.\nIt rests.\n\nA dog runs.\nIt sleeps.\n")
    text = 'init = "nowhere"\ntask = { kind = "pretraining", new_pieces = 9 }\ntrain = { metric = "masked_accuracy" }\n'
    path = write(tmp_path / "r.toml", f'{text}data = {{ kind = "documents", train = ["a.txt"], max_len = 48 }}\n')
    (note,) = (finding for finding in examine_data([path]) if finding.code == "recipe.weights")
    assert (note.severity, "nowhere" in note.message) == ("note", True)


def test_the_recipes_of_glue_are_examined_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("train", "dev"):
        write(tmp_path / "QQP" / f"{name}.tsv", GLUE["QQP"])
    write(tmp_path / "few.tsv", GLUE["QQP"] + "7\t8\t9\tcut off\n")
    monkeypatch.setenv("JUMOK_DATA", str(tmp_path))
    recipe = str(Path(__file__).parents[3] / "recipes/glue/qqp.toml")

    def doctor(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["jumok", "doctor", *arguments])
        with pytest.raises(SystemExit):
            main()
        said = capsys.readouterr()
        return said.out + said.err

    said = doctor(recipe)
    assert "note: data.counts" in said
    assert "cannot be read" not in said
    said = doctor(recipe, "--set", 'data.train=["few.tsv"]')
    assert f"{tmp_path}/few.tsv:4  4 columns" in said
    assert "data.when_wrong" in said
    refused = doctor(recipe, "--set", 'data.train=["few.tsv"]', "--set", "data.when_wrong=refuse")
    assert "Training stops at the first" in refused
    assert "hint: pass a recipe" in doctor(str(tmp_path / "few.tsv"), "--set", "seed=3")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", 'text;label\n"a; b";x\nc;y\n'),
        ("a.jsonl", '{"text": "a; b", "label": "x"}\n{"text": "c", "label": "y"}\n'),
    ],
)
def test_labelled_tables_of_other_formats(tmp_path: Path, name: str, content: str) -> None:
    data = guess_data([write(tmp_path / name, content)]).data
    assert [(e.text, e.label) for e in data.read("train", seed=1)] == [("a; b", "x"), ("c", "y")]
