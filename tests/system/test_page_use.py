"""The Use room in a browser: every task answers, in both languages, whatever is typed."""

import re

import pytest
from playwright.sync_api import expect

TYPED = {
    "reverse": {"text": "1 2 3"},
    "translation": {"text": "the dog runs"},
    "classification": {"text": "the sun is here"},
    "tagging": {"text": "\U0001f642 Ab cd Ef"},
    "relation": {"text": "Ada beats Bo", "useHead": "0-3-", "useTail": "10-12-"},
    "answering": {"question": "what shines ?", "text": "the red sun here"},
    "pretraining": {"text": "the [MASK] runs here."},
}
ANSWER = {
    "reverse": "button.word",
    "translation": "button.word",
    "classification": ".bars",
    "tagging": ".marked",
    "relation": ".use li",
    "answering": ".answer",
    "pretraining": ".bars",
}
HOSTILE = {
    "markup": "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">",
    "right to left": "שלום עולם مرحبا",
    "emoji": "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1f0\U0001f1f7",
    "long": "word " * 20_000,
}


@pytest.mark.parametrize("lang", ["en", "ko"])
@pytest.mark.parametrize("run", TYPED)
def test_every_task_answers(visit, run: str, lang: str) -> None:
    page = visit(lang=lang, phone=lang == "ko", room="use", run=run, **TYPED[run])
    page.wait_for_selector(ANSWER[run])
    wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    assert not wide
    assert "use." not in page.inner_text("main")  # a key without a text


def test_the_bars_are_as_long_as_the_probabilities(visit) -> None:
    """The style of one room does not reach into another: Inside has bars of its own."""
    page = visit(room="use", run="classification", text=TYPED["classification"]["text"])
    page.wait_for_selector(".bars .bar span")
    widths = page.eval_on_selector_all(
        ".bars tr",
        "rows => rows.map((row) => [row.querySelector('.bar span'), row.querySelector('.bar')].map("
        "(one) => one.getBoundingClientRect().width))",
    )
    shares = [float(text.strip("<> %")) for text in page.locator(".bars td.number").all_inner_texts()]
    assert len(widths) == len(shares) == 2
    assert abs(widths[0][0] / widths[1][0] - shares[0] / max(shares[1], 0.5)) / (shares[0] / max(shares[1], 0.5)) < 0.2
    assert widths[0][1] > 150


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("run", ["translation", "tagging"])
def test_hostile_texts_are_text(visit, run: str, text: str) -> None:
    page = visit(room="use", run=run)
    page.fill("textarea", text)
    page.wait_for_selector(".use .note, button.word, .marked")
    assert page.title() != "owned"
    assert page.input_value("textarea") == text


@pytest.mark.parametrize("room", ["use", "inside"])
def test_texts_to_try_are_those_that_the_training_showed(visit, room):
    page = visit(run="reverse", room=room)
    one = page.locator(".examples button").first
    text = one.inner_text()
    one.click()
    expect(page.locator("main textarea").first).to_have_value(text)
    expect(page.locator(".examples")).to_have_count(0)
    expect(page.locator(".output .words" if room == "use" else ".large-head canvas")).to_be_visible()


def test_a_lone_surrogate_is_told(visit) -> None:
    page = visit(room="use", run="translation")
    page.wait_for_selector("textarea")
    page.evaluate(
        "() => { const box = document.querySelector('textarea'); box.value = 'a \\ud800 b';"
        " box.dispatchEvent(new Event('input', { bubbles: true })); }"
    )
    expect(page.locator(".note.warn")).to_be_visible()


def test_another_word_by_keyboard(visit) -> None:
    page = visit(room="use", run="translation", text="the dog runs")
    page.wait_for_selector("button.word")
    before = page.inner_text(".words")
    page.focus("button.word")
    page.keyboard.press("Enter")
    page.wait_for_selector(".others button.chip")
    page.focus(".others button.chip >> nth=1")
    page.keyboard.press("Enter")
    expect(page.locator(".words")).not_to_have_text(before)


def test_a_paragraph_is_translated_sentence_by_sentence(visit) -> None:
    page = visit(room="use", run="translation", text="the dog runs. The cat sits.\n\nthe dog")
    page.wait_for_selector("button.word")
    assert page.locator(".translated").count() == 2
    assert page.locator(".details").count() == 0
    page.locator(".translated").first.locator("button.word").last.click()
    expect(page.locator(".details .source")).to_contain_text("The cat sits.")
    expect(page.locator(".details .source")).not_to_contain_text("dog")
    page.wait_for_selector(".others button.chip")
    page.keyboard.press("Escape")
    expect(page.locator(".details")).to_have_count(0)
    expect(page.locator("button.word:focus")).to_have_count(1)


def test_percentages_below_each_other_have_one_decimal(visit) -> None:
    page = visit(lang="ko", room="use", run="pretraining", text="the [MASK] runs here.")
    page.wait_for_selector(".bars")
    assert all(re.fullmatch(r"[<>]?\d+\.\d%", text) for text in page.locator(".bars td.number").all_inner_texts())


def test_a_server_that_dies_loses_nothing_typed(visit) -> None:
    page = visit(room="use", run="translation", text="the dog", tolerate=["."])
    page.wait_for_selector("button.word")
    page.route("**/*", lambda route: route.abort())
    page.fill("textarea", "the dog runs")
    page.wait_for_selector(".banner")
    assert page.input_value("textarea") == "the dog runs"
    page.unroute("**/*")
    page.wait_for_selector("button.word >> nth=2")


def test_words_that_the_model_is_unsure_of_are_underlined(visit) -> None:
    page = visit(room="use", run="translation", text="zebra quark the 비 zebra")
    page.wait_for_selector("button.word")
    classes = page.eval_on_selector_all(
        "button.word", "all => all.map((one) => [one.className, getComputedStyle(one).textDecorationLine])"
    )
    assert all(("unsure" in kind) == (line == "underline") for kind, line in classes)


def test_marks_stand_where_the_words_are(visit) -> None:
    page = visit(room="use", run="tagging", text="\U0001f642 Ab cd Ef")
    page.wait_for_selector("mark")
    marked = page.eval_on_selector_all("mark", "all => all.map((one) => one.firstChild.data)")
    assert set(marked) <= {"Ab", "Ef", "Ab cd Ef", "cd"}


def test_generation_appears(visit) -> None:
    page = visit(room="use", run="language_model", text="the cat sat", tolerate=["404"])
    page.click("button.main")
    expect(page.locator(".written")).to_contain_text("the cat sat")


def test_a_file_whose_lines_are_no_texts_is_refused(visit, tmp_path) -> None:
    page = visit(room="use", run="classification")
    (tmp_path / "in.po").write_text('msgid "the sun"\nmsgstr ""\n', "utf-8")
    page.click(".files summary")
    page.set_input_files("input[type=file]", tmp_path / "in.po")
    expect(page.locator(".files .note.error")).to_contain_text("in.po --out")
    assert page.locator(".files button").count() == 0


def test_a_file_comes_back_line_by_line(visit, tmp_path) -> None:
    page = visit(room="use", run="classification")
    (tmp_path / "in.txt").write_text("the sun\nthe cat\n" * 50, "utf-8")
    page.click(".files summary")
    page.set_input_files("input[type=file]", tmp_path / "in.txt")
    with page.expect_download() as download:
        page.click(".files button.main")
    lines = download.value.path().read_text("utf-8").splitlines()
    assert lines == ["good", "bad"] * 50
