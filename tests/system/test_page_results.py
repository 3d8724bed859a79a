"""The room Results in a browser: every number of scores.json, explained, exported, and beside another run."""

import csv
import json
import re
import shutil

import pytest
from page import check_access, check_width, picture

MINUTE = 60_000


@pytest.fixture(scope="module")
def shelf(site):
    """Beside the runs of the site: one more translation, one of other data, and one that is not scored."""
    folder = site.folder
    for name in ("translation-again", "translation-other"):
        shutil.copytree(folder / "translation", folder / name)
    scores = json.loads((folder / "translation-again/scores.json").read_text())
    for result in scores.values():
        for score in result["scores"].values():
            score |= {"value": score["value"] * 0.5, "low": score["value"] * 0.4, "high": score["value"] * 0.6}
        first = result["bleu_by_source_words"][0]
        longer = {"name": "bleu_11_to_20_words", "value": 20.0, "low": 10.0, "high": 30.0, "n": 7}
        result["bleu_by_source_words"] = [first, first | longer]
    (folder / "translation-again/scores.json").write_text(json.dumps(scores))
    stored = json.loads((folder / "translation-other/recipe.json").read_text())
    stored["data"]["test"] = "0" * 64
    (folder / "translation-other/recipe.json").write_text(json.dumps(stored))
    (folder / "unscored").mkdir()
    shutil.copy(folder / "translation/recipe.json", folder / "unscored")
    yield folder
    for name in ("translation-again", "translation-other", "unscored"):
        shutil.rmtree(folder / name)


def scores_of(folder, run, split="test"):
    return json.loads((folder / run / "scores.json").read_text())[split]


def test_scores_with_intervals_baselines_and_what_they_mean(visit, shelf):
    page = visit(run="classification", room="results")
    result = scores_of(shelf, "classification")
    score = result["scores"]["accuracy"]
    headline = page.locator(".headline")
    headline.wait_for()
    assert headline.locator(".value").inner_text() == f"{score['value']:.1f}"
    assert f"{score['low']:.1f} – {score['high']:.1f}" in headline.inner_text()
    assert "Share of examples that are right." in headline.inner_text()
    table = page.locator("table.scores").first
    assert table.locator("tr.chosen th").inner_text() == "Accuracy"
    rows = table.locator("tbody tr").all_inner_texts()
    assert any(
        "bag of words" in row and f"{result['baselines']['bag_of_words']['accuracy']:.1f}" in row for row in rows
    )
    cells = page.locator(".confusion td.cell > span").all_inner_texts()
    assert [int(cell) for cell in cells] == [n for row in result["confusion"]["counts"] for n in row]
    assert f"{round(result['calibration_error'], 1):g} percentage points" in page.locator("figure").last.inner_text()
    picture(page, "results")
    check_access(page)


@pytest.mark.parametrize("run", ["translation-again", "classification", "tagging", "answering", "language_model"])
def test_on_a_phone_in_korean(visit, shelf, run):
    page = visit(run=run, room="results", lang="ko", phone=True, dark=True)
    page.locator("table.scores").first.wait_for()
    about = page.locator(".about-run p")
    assert re.search(r"매개변수 [\d,]+개$", about.inner_text()), about.inner_text()
    assert about.get_attribute("lang") is None  # in the reader's language
    assert page.locator("h1").inner_text() == "결과"
    page.locator("details").evaluate_all("all => all.forEach((one) => (one.open = true))")
    text = page.locator("main").inner_text()
    assert "results." not in text
    for score in scores_of(shelf, run)["scores"].values():
        digits = 2 if score["name"] in ("perplexity", "word_perplexity", "bits_per_byte") else 1
        assert f"{score['value']:,.{digits}f}" in text, score["name"]
    check_width(page)
    check_access(page)


def test_signatures_by_keyboard(visit, shelf):
    page = visit(run="translation", room="results")
    page.get_by_text("How the scores were computed").focus()
    page.keyboard.press("Enter")
    page.get_by_text(re.compile(r"case:mixed\|eff:no\|tok:13a")).wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Copied").wait_for()
    dev = page.get_by_role("button", name="Dev data")
    dev.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("split=dev"))
    assert dev.get_attribute("aria-pressed") == "true"


def test_scores_are_taken_along(visit, shelf):
    page = visit(run="classification", room="results")
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV").click()
    rows = list(csv.DictReader(saved.value.path().read_text("utf-8-sig").splitlines()))
    known = {
        (split, name): score["value"]
        for split in ("dev", "test")
        for name, score in scores_of(shelf, "classification", split)["scores"].items()
    }
    told = {
        (row["split"], row["metric"]): float(row["value"])
        for row in rows
        if not row["signature"].startswith("baseline")
    }
    assert told == known
    page.evaluate(
        "() => { navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }; }"
    )
    for name, begins in (("Copy as TSV", "run\tsplit\tmetric"), ("Copy as Markdown", "| run | split | metric |")):
        page.get_by_role("button", name=name).click()
        page.wait_for_function("begins => window.copied?.startsWith(begins)", arg=begins)


def test_two_runs_side_by_side_and_their_test(visit, shelf):
    page = visit(run="translation", room="results")
    page.get_by_label("Compare with").select_option("translation-again")
    page.wait_for_url(re.compile("against=translation-again"))
    panel = page.locator(".against")
    panel.get_by_text("intervals apart").or_(panel.get_by_text("intervals overlap")).first.wait_for()
    page.get_by_role("button", name="Run the paired test").press("Enter")
    verdict = panel.locator(".verdict")
    verdict.wait_for(timeout=MINUTE)
    assert "no difference is shown" in verdict.inner_text()  # the same model twice
    assert re.search(r"p\s=\s1\b", verdict.inner_text())
    assert "paired approximate randomization" in panel.inner_text()
    check_access(page)
    page.reload()
    page.get_by_role("button", name="Run the paired test").click()  # remembered by the server
    verdict.wait_for(timeout=MINUTE)


def test_a_comparison_fits_a_phone(visit, shelf):
    page = visit(run="translation", room="results", against="translation-again", lang="ko", phone=True)
    page.locator(".against table").wait_for()
    check_width(page)


def test_a_test_that_cannot_be_run_says_what_to_do(visit, shelf):
    page = visit(run="translation", room="results", against="translation-other", tolerate=[r"409", r"Failed to load"])
    page.get_by_role("button", name="Run the paired test").click()
    said = page.get_by_role("alert")
    said.wait_for()
    assert "jumok compare translation-other translation" in said.inner_text()
    check_access(page)


def test_lengths_and_changed_scores(visit, shelf):
    page = visit(run="translation-again", room="results", against="translation")
    figure = page.locator("figure").filter(has_text="BLEU by source length")
    figure.wait_for()
    assert "11–20: 20.0" in figure.get_by_role("img").get_attribute("aria-label")
    figure.get_by_text("As a table").click()
    assert "10.0 – 30.0" in figure.get_by_role("table").inner_text()
    page.get_by_text("scores.json has been changed").wait_for()


@pytest.mark.parametrize("lang", ["en", "ko"])
def test_a_run_without_scores_says_what_to_run(visit, shelf, lang):
    page = visit(run="unscored", room="results", lang=lang)
    page.locator(".empty code").wait_for()
    assert "jumok train RECIPE --out unscored" in page.locator(".empty").inner_text()
    check_access(page)
