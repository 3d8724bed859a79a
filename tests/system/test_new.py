"""Two commands and no editor: data of four kinds, each to a trained model and a file of its answers."""

import json
import random
from pathlib import Path

import pytest

RNG = random.Random(1)
WORDS = ["바다", "나무", "하늘", "사람", "도시", "시간", "이야기"]
SHORT = ["--set", "train.evaluate_every=0.5", "--set", "train.save_every=0.5"]


def said(n: int = 5) -> str:
    return " ".join(RNG.choices(WORDS, k=n))


def reviews(folder: Path) -> list[Path]:
    rows = [f"{said()} {word}\t{label}" for word, label in [("좋다", "긍정"), ("싫다", "부정")] * 150]
    (folder / "reviews.tsv").write_text("text\tlabel\n" + "\n".join(rows) + "\n", "utf-8")
    return [folder / "reviews.tsv"]


def catalogue(folder: Path) -> list[Path]:
    header = 'msgid ""\nmsgstr "Language: ko\\n"\n'
    messages = [f'\nmsgid "Open the file %s of {i}"\nmsgstr "{i}의 %s 파일을 연다"\n' for i in range(150)]
    (folder / "messages.po").write_text(header + "".join(messages), "utf-8")
    return [folder / "messages.po"]


def tags(folder: Path) -> list[Path]:
    sentences = [f"Kim B-PER\nlives O\nin O\n{RNG.choice(['Seoul', 'Busan'])} B-LOC\n{i} O\n" for i in range(150)]
    (folder / "names.conll").write_text("\n".join(sentences), "utf-8")
    return [folder / "names.conll"]


def texts(folder: Path) -> list[Path]:
    (folder / "stories").mkdir()
    for i in range(60):
        (folder / f"stories/{i}.txt").write_text("".join(f"{said(8)}.\n" for _ in range(4)), "utf-8")
    return [folder / "stories"]


JOURNEYS = {
    "reviews": (reviews, "in.tsv", "text\n오늘 좋다\n", "out.tsv"),
    "messages": (catalogue, "in.txt", "Open the file %s of 3\n", "out.po"),
    "names": (tags, "in.txt", "Kim lives in Seoul\n", "out.jsonl"),
    "stories": (texts, "in.txt", "바다 나무\n", "out.txt"),
}
TASKS = {"reviews": "classification", "messages": "translation", "names": "tagging", "stories": "language_model"}


@pytest.mark.parametrize("name", JOURNEYS)
def test_from_data_to_answers_without_an_editor(name, here, tmp_path, monkeypatch):
    write, given, content, out = JOURNEYS[name]
    monkeypatch.setattr(here, "folder", tmp_path)
    (data,) = write(tmp_path)
    (tmp_path / given).write_text(content, "utf-8")
    looked = here("new", data.name, "--minutes", "0.2").stdout
    assert TASKS[name].replace("_", " ") in looked
    assert f"jumok train {name}.toml --out runs/{name}" in looked
    here("train", f"{name}.toml", "--out", f"runs/{name}", "--set", "train.epochs=2", *SHORT)
    assert json.loads((tmp_path / f"runs/{name}/scores.json").read_text("utf-8"))["test"]["scores"]
    if name == "stories":  # what a model continues is no example of a file
        assert here("predict", f"runs/{name}", given).stdout.startswith("바다 나무")
        return
    here("predict", f"runs/{name}", given, "--out", out)
    assert (tmp_path / out).stat().st_size


def test_one_command_does_both_and_resumes(here, tmp_path, monkeypatch):
    monkeypatch.setattr(here, "folder", tmp_path)
    reviews(tmp_path)
    here("train", "reviews.tsv", "--set", "train.epochs=1", *SHORT)
    recipe = (tmp_path / "runs/reviews.toml").read_text("utf-8")
    assert (tmp_path / "runs/reviews/scores.json").exists()
    again = here("train", "reviews.tsv", "--set", "train.epochs=1", *SHORT)
    assert "runs/reviews.toml" in again.stderr
    assert (tmp_path / "runs/reviews.toml").read_text("utf-8") == recipe


def test_what_is_not_known_is_asked_guessed_or_refused(here, tmp_path, monkeypatch):
    monkeypatch.setattr(here, "folder", tmp_path)
    for split in ("train.en", "train.ko"):
        (tmp_path / "pairs").mkdir(exist_ok=True)
        (tmp_path / "pairs" / split).write_text("".join(f"{said()} {i}\n" for i in range(100)), "utf-8")
    refused = here("new", "pairs", code=2)
    assert "--source en" in refused.stderr
    assert not (tmp_path / "pairs.toml").exists()
    guessed = here("new", "pairs", "--yes").stdout
    assert "--source en" in guessed
    assert here("new", "pairs", "--source", "ko", code=2).stderr  # it is not overwritten
    here("new", "pairs", "--source", "ko", "--force")
    assert 'source = "ko"' in (tmp_path / "pairs.toml").read_text("utf-8")
