"""What `jumok doctor` and `jumok compare` say to a person: on tiny files, with predictors that are made up."""

import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from jumok.cli import main
from jumok.predictor import Prediction, Translator

ENGLISH = ["The soup needs a little more salt.", "It rains.", "We walked home.", "He reads by the sea."]
KOREAN = ["국에 소금을 더 넣어야 해요.", "비가 온다.", "우리는 집으로 걸어갔다.", "그는 바닷가에서 책을 읽는다."]


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


Jumok = Callable[..., Said]


@pytest.fixture
def jumok(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Jumok:
    """The command line in a folder with a few files; whatever is raised but SystemExit would be a traceback."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def write(name: str, lines: list[str]) -> None:
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")

    write("a.en", ENGLISH)
    write("a.ko", KOREAN)
    write("b.en", ENGLISH)
    rows = [f"{english}\t{korean}" for english, korean in zip(ENGLISH, KOREAN, strict=True)]
    write("plain.tsv", [*rows, "Bread and butter\tBread and butter"])
    named = [f"{i}\t{korean}\t{english}" for i, (english, korean) in enumerate(zip(ENGLISH, KOREAN, strict=True))]
    write("named.tsv", ["id\tko\ten", *named, "9\t\tHe is late."])
    texts = "".join(f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in (("en", "Hi"), ("ko", "안녕")))
    write("c.tmx", [f'<tmx version="1.4"><header/><body><tu>{texts}</tu></body></tmx>'])
    write("r.toml", ['data = { kind = "parallel", source = "en", target = "ko", train = [["a.en", "a.ko"]] }'])
    (tmp_path / "folder").mkdir()
    data = {"kind": "parallel", "source": "en", "target": "ko", "train": [["a.en", "a.ko"]]}
    data |= {"dev": ["a.en", "a.ko"], "test": ["b.en", "a.ko"]}
    for run in ("run", "other"):
        (tmp_path / run).mkdir()
        (tmp_path / run / "recipe.json").write_text(json.dumps({"recipe": {"data": data}, "data": {}}), "utf-8")

    def call(*arguments: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["jumok", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        said = capsys.readouterr()
        return Said(int(stopped.value.code or 0), said.out, said.err)

    return call


class Made(Translator):
    """A translator of made-up outputs that remembers the options it was given."""

    def __init__(self, outputs: list[str]) -> None:
        self.source, self.target, self.lowercase = "en", "ko", False
        self.outputs = outputs
        self.options: list[dict[str, object]] = []

    def predict(self, texts: Sequence[str], *, prefixes=None, done=None, **options: object) -> list[Prediction]:
        self.options.append(options)
        return [Prediction(output, 0.0, [], []) for output in self.outputs]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> dict[str, Made]:
    """Made-up predictors by run, in the place of loaded ones."""
    predictors: dict[str, Made] = {}
    monkeypatch.setattr("jumok.predictor.load", lambda run: predictors[str(run)])
    return predictors


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("a.en a.ko b.en", ["one thing at a time", "a.en, a.ko, b.en", "two line-aligned files"]),
        ("run other", ["one thing at a time", "run, other", "one run folder"]),
        ("run a.en", ["one thing at a time", "run, a.en"]),
        ("a.en run", ["one thing at a time", "a.en, run"]),
        ("r.toml a.en", ["one thing at a time", "r.toml, a.en", "one recipe"]),
        ("named.tsv plain.tsv", ["examples of its own", "named.tsv, plain.tsv", "as train and test"]),
        ("missing", ["no such file or folder", "where: missing"]),
        ("missing.en a.ko", ["no such file or folder", "where: missing.en"]),
        ("a.en missing.ko", ["no such file or folder", "where: missing.ko"]),
        ("missing.toml", ["no such file or folder", "where: missing.toml"]),
        ("a.en", ["no known format", "where: a.en", "right: two line-aligned files, or one .tsv"]),
        ("c.tmx", ["languages", "where: c.tmx", "right: --source", "--target"]),
        ("c.tmx --source en", ["languages", "where: c.tmx", "right: --source", "--target"]),
        ("folder", ["no run", "where: folder", "right: a folder that `jumok train` made"]),
        ("named.tsv --columns en", ["--columns", "two names"]),
        ("named.tsv --columns en,", ["--columns", "two names"]),
        ("named.tsv --columns en,de", ["no column de", "named.tsv:1", "of id, ko, en"]),
        ("a.en a.ko --columns en,ko", ["--columns", "a.en", "one .tsv file"]),
        ("r.toml --source en", ["--source", "where: r.toml", "[data]"]),
        ("run --columns en,ko", ["--columns", "where: run", "[data]"]),
    ],
)
def test_doctor_refuses_what_it_cannot_look_at(jumok: Jumok, arguments: str, words: list[str]) -> None:
    said = jumok("doctor", *arguments.split())
    assert (said.code, said.out) == (2, "")
    assert [word for word in words if word not in said.err] == []


@pytest.mark.parametrize("arguments", ["a.en a.ko", "c.tmx --source en --target ko", "r.toml"])
def test_doctor_is_content_with_clean_data(jumok: Jumok, arguments: str) -> None:
    said = jumok("doctor", *arguments.split())
    assert (said.code, said.out) == (0, "nothing found that needs a look\n")


def test_doctor_reads_a_plain_tsv_and_does_not_take_its_suffix_for_a_language(jumok: Jumok) -> None:
    (finding,) = json.loads(jumok("doctor", "plain.tsv", "--json").out)["findings"]
    assert (finding["kind"], finding["share"], finding["examples"][0][:12]) == ("copied", 0.2, "plain.tsv:5 ")


def test_doctor_reads_the_named_columns_of_a_tsv(jumok: Jumok) -> None:
    options = ("--columns", "en,ko", "--source", "en", "--target", "ko", "--json")
    (finding,) = json.loads(jumok("doctor", "named.tsv", *options).out)["findings"]
    assert (finding["kind"], finding["share"]) == ("empty", 0.2)
    assert finding["examples"] == ["named.tsv:6  He is late. ||| "]


def test_doctor_names_the_languages_when_a_tmx_has_no_pairs_of_them(jumok: Jumok) -> None:
    said = jumok("doctor", "c.tmx", "--source", "en", "--target", "de")
    assert (said.code, "no pairs at all" in said.out, "en and de" in said.out) == (2, True, True)


def test_doctor_looks_at_the_outputs_of_every_split(jumok: Jumok, made: dict[str, Made]) -> None:
    made["run"] = Made([*KOREAN[:3], ""])
    said = jumok("doctor", "run")
    assert re.findall(r"(\w+): empty outputs.*: 1 of 4", said.out) == ["dev", "test"]
    assert (said.code, said.err) == (2, "decoding dev: 4 sentences\ndecoding test: 4 sentences\n")
    found = json.loads(jumok("doctor", "run", "--json").out)["findings"]
    assert [finding["message"].split(":")[0] for finding in found] == ["dev", "test"]


def test_compare_fits_a_terminal_and_says_which_run_is_which(jumok: Jumok, made: dict[str, Made]) -> None:
    made["run"], made["other"] = Made(["", "", "", "비"]), Made(KOREAN)
    said = jumok("compare", "run", "other")
    assert said.code == 0
    dev, test = said.out.split("test: 4 sentences")
    number = r" +[+-]?\d+\.\d+"
    for part in (dev, test):
        rows = re.findall(rf"^(\w+){number}{number}{number}{number} –{number}{number} *$", part, re.MULTILINE)
        assert rows == ["bleu", "bleu_lowercase_tokenised", "chrf", "exact_match"]
        assert re.search(r"^ +first: run\n +second: other\n +difference: second - first", part, re.MULTILINE)
        assert part.count("paired approximate randomization") == 1
        assert re.search(r"^ +bleu, bleu_lowercase_tokenised, chrf, exact_match: paired", part, re.MULTILINE)
    table = [line for line in said.out.splitlines() if "  " in line.strip()]
    assert max(map(len, table)) <= 80


def test_compare_decodes_both_runs_with_the_options_given(jumok: Jumok, made: dict[str, Made]) -> None:
    made["run"], made["other"] = Made(KOREAN), Made(KOREAN)
    said = jumok("compare", "run", "other", "--set", "beam=3", "--json")
    assert json.loads(said.out)["runs"] == ["run", "other"]
    assert [made[run].options for run in ("run", "other")] == [[{"beam": 3}] * 2] * 2
