"""What `jumok doctor` and `jumok compare` say to a person: on tiny files, with predictors that are made up."""

import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jumok.cli import app, main
from jumok.errors import JumokError
from jumok.tasks.protocol import Failure
from jumok.tasks.translation import TranslationFacts
from jumok.tasks.translation.predictor import Translation, Translator

ENGLISH = ["The soup needs a little more salt.", "It rains.", "We walked home.", "He reads by the sea."]
KOREAN = ["국에 소금을 더 넣어야 해요.", "비가 온다.", "우리는 집으로 걸어갔다.", "그는 바닷가에서 책을 읽는다."]


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str
    error: JumokError | None
    """what the command raised"""


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

    raised: list[JumokError] = []

    def recorded() -> None:
        try:
            app()
        except JumokError as error:
            raised.append(error)
            raise

    monkeypatch.setattr("jumok.cli.app", recorded)

    def call(*arguments: str) -> Said:
        raised.clear()
        monkeypatch.setattr(sys, "argv", ["jumok", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        said = capsys.readouterr()
        return Said(int(stopped.value.code or 0), said.out, said.err, raised[0] if raised else None)

    return call


class Made(Translator):
    """A translator of made-up outputs that remembers the options it was given."""

    def __init__(self, outputs: list[str]) -> None:
        self.facts = TranslationFacts(source="en", target="ko")
        self.source, self.target = "en", "ko"
        self.outputs = outputs
        self.asked: list[dict[str, object]] = []

    def predict(self, examples: Any, *, done: Any = None, **options: object) -> list[Translation | Failure]:
        self.asked.append(options)
        return [Translation(output, 0.0, []) for output in self.outputs]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> dict[str, Made]:
    """Made-up predictors by run, in the place of loaded ones."""
    predictors: dict[str, Made] = {}
    monkeypatch.setattr("jumok.predictor.load", lambda run, **_: predictors[str(run)])
    return predictors


@pytest.mark.parametrize(
    ("arguments", "code", "where", "facts"),
    [
        ("a.en a.ko b.en", "input.several", "a.en, a.ko, b.en", []),
        ("run other", "input.several", "run, other", []),
        ("run a.en", "input.several", "run, a.en", []),
        ("a.en run", "input.several", "a.en, run", []),
        ("r.toml a.en", "input.several", "r.toml, a.en", []),
        ("named.tsv plain.tsv", "input.not_aligned", "named.tsv, plain.tsv", []),
        ("missing", "data.missing", "missing", []),
        ("missing.en a.ko", "data.missing", "missing.en", []),
        ("a.en missing.ko", "data.missing", "missing.ko", []),
        ("missing.toml", "data.missing", "missing.toml", []),
        ("a.en", "data.format", "a.en", [".tsv"]),
        ("c.tmx", "data.languages", "c.tmx", ["--source", "--target"]),
        ("c.tmx --source en", "data.languages", "c.tmx", ["--source", "--target"]),
        ("folder", "checkpoint.no_model", "folder", ["jumok train"]),
        ("named.tsv --columns en", "input.columns", "--columns", ["en"]),
        ("named.tsv --columns en,", "input.columns", "--columns", ["en,"]),
        ("named.tsv --columns en,de", "data.columns", "named.tsv:1", ["de", "id, ko, en"]),
        ("a.en a.ko --columns en,ko", "input.columns", "a.en, a.ko", ["--columns", ".tsv"]),
        ("r.toml --source en", "input.not_a_file", "r.toml", ["--source", "[data]"]),
        ("run --columns en,ko", "input.not_a_file", "run", ["--columns", "[data]"]),
        ("a.en a.ko --set seed=2", "input.not_a_recipe", "a.en", ["--set"]),
    ],
)
def test_doctor_refuses_what_it_cannot_look_at(
    jumok: Jumok, arguments: str, code: str, where: str, facts: list[str]
) -> None:
    said = jumok("doctor", *arguments.split())
    assert (said.code, said.out) == (2, "")
    assert said.error is not None
    assert (said.error.code, said.error.where) == (code, where)
    assert [fact for fact in facts if fact not in str(said.error)] == []
    assert str(said.error) in said.err


@pytest.mark.parametrize("arguments", ["a.en a.ko", "c.tmx --source en --target ko"])
def test_doctor_is_content_with_clean_data(jumok: Jumok, arguments: str) -> None:
    assert json.loads(jumok("doctor", *arguments.split(), "--json").out) == {"findings": []}
    said = jumok("doctor", *arguments.split())
    assert (said.code, said.error, len(said.out.splitlines())) == (0, None, 1)


def test_doctor_says_of_a_clean_recipe_only_how_long_its_texts_are(jumok: Jumok) -> None:
    said = jumok("doctor", "r.toml", "--json")
    found = [(finding["code"], finding["severity"]) for finding in json.loads(said.out)["findings"]]
    assert (said.code, found) == (0, [("vocabulary.lengths", "note")] * 2)  # of sources and of targets


def test_doctor_reads_a_plain_tsv_and_does_not_take_its_suffix_for_a_language(jumok: Jumok) -> None:
    (finding,) = json.loads(jumok("doctor", "plain.tsv", "--json").out)["findings"]
    assert (finding["code"], finding["share"], finding["examples"][0][:12]) == ("data.copied", 0.2, "plain.tsv:5 ")


def test_doctor_reads_the_named_columns_of_a_tsv(jumok: Jumok) -> None:
    options = ("--columns", "en,ko", "--source", "en", "--target", "ko", "--json")
    (finding,) = json.loads(jumok("doctor", "named.tsv", *options).out)["findings"]
    assert (finding["code"], finding["share"]) == ("data.empty", 0.2)
    assert finding["examples"] == ["named.tsv:6  He is late. ||| "]


def test_doctor_names_the_languages_when_a_tmx_has_no_pairs_of_them(jumok: Jumok) -> None:
    said = jumok("doctor", "c.tmx", "--source", "en", "--target", "de", "--json")
    (finding,) = json.loads(said.out)["findings"]
    assert (said.code, finding["severity"], "en and de" in finding["message"]) == (2, "error", True)


def test_doctor_looks_at_the_outputs_of_every_split(jumok: Jumok, made: dict[str, Made]) -> None:
    made["run"] = Made([*KOREAN[:3], ""])
    said = jumok("doctor", "run")
    assert said.code == 2
    assert re.findall(r"(\w+): 4 ", said.err) == ["dev", "test"]
    (found,) = json.loads(jumok("doctor", "run", "--json").out)["findings"]
    assert "dev 1 of 4 (25.0 %), test 1 of 4" in found["message"]
    assert found["message"] in said.out


def test_compare_fits_a_terminal_and_says_which_run_is_which(jumok: Jumok, made: dict[str, Made]) -> None:
    made["run"], made["other"] = Made(["", "", "", "비"]), Made(KOREAN)
    said = jumok("compare", "run", "other")
    assert said.code == 0
    dev, test = said.out.split("test: 4 sentences")
    number = r" +[+-]?\d+\.\d+"
    for part in (dev, test):
        rows = re.findall(rf"^(\w+){number}{number}{number}{number} –{number}{number} *$", part, re.MULTILINE)
        assert rows == ["chrf", "bleu", "bleu_lowercase_tokenised", "bleu_characters", "exact_match"]
        assert re.search(r"^ +first: run\n +second: other\n +difference: second - first", part, re.MULTILINE)
        assert part.count("paired approximate randomization") == 1
        assert re.search(
            r"^ +chrf, bleu, bleu_lowercase_tokenised, bleu_characters, exact_match: paired", part, re.MULTILINE
        )
    table = [line for line in said.out.splitlines() if "  " in line.strip()]
    assert max(map(len, table)) <= 80


def test_compare_decodes_both_runs_with_the_options_given(jumok: Jumok, made: dict[str, Made]) -> None:
    made["run"], made["other"] = Made(KOREAN), Made(KOREAN)
    said = jumok("compare", "run", "other", "--set", "beam=3", "--json")
    assert json.loads(said.out)["runs"] == ["run", "other"]
    assert [made[run].asked for run in ("run", "other")] == [[{"beam": 3}] * 2] * 2
