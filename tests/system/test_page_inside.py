"""The room Inside in a browser: it shows what the server computes, by pointer and by keyboard, and saves it."""

import itertools
import json
import re

import pytest
from page import check_access, check_width, picture
from playwright.sync_api import expect

TEXT = "the dog sits here"
TABS = {
    "translation": ["Attention", "Choices", "Attribution", "Steps", "Positions"],
    "classification": ["Attention", "Attribution", "Steps"],
    "tagging": ["Attribution", "Steps"],
    "pretraining": ["Attention", "Steps", "Positions"],
    "language_model": ["Choices", "Attribution", "Steps"],
}


@pytest.mark.parametrize("run", TABS)
def test_every_tab_of_every_task(visit, run):
    page = visit(run=run, room="inside", text=TEXT)
    assert page.get_by_role("tab").first.is_visible() or page.get_by_role("tab").first.wait_for() is None
    assert page.get_by_role("tab").all_inner_texts() == TABS[run]
    for name in TABS[run]:
        page.get_by_role("tab", name=name).click()
        page.locator("#inside-panel .panel").first.wait_for()
        assert not page.get_by_role("alert").count()
    check_access(page)


def test_the_grid_by_keyboard_and_the_address(visit):
    page = visit(run="translation", room="inside", text=TEXT, map="encoder")
    grid = page.get_by_role("grid")
    cells = grid.get_by_role("button")
    cells.first.wait_for()
    assert cells.count() == 4  # two heads, mean, maximum
    grid.locator("[tabindex='0']").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    heading = page.locator(".large-head h2")
    assert heading.inner_text() == "Layer 1, head 1"  # looked at, not yet locked
    assert "head=" not in page.url
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("head=0"))
    page.locator("canvas.matrix").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("row=0.*column=1|column=1.*row=0"))
    page.reload()
    heading.wait_for()
    assert heading.inner_text() == "Layer 1, head 1"
    page.get_by_text("the → dog").or_(page.get_by_text(re.compile("→.*: 0"))).first.wait_for()


def test_words_and_hidden_tokens(visit):
    page = visit(run="pretraining", room="inside", text="the dog runs here.")
    page.get_by_label("Hide special tokens").check()
    expect(page.get_by_text(re.compile(r"They took \d+%"))).to_be_visible()
    page.get_by_role("radio", name="Words").click()
    page.wait_for_url(re.compile("grain=words"))
    page.get_by_role("radio", name="Lines").click()
    page.wait_for_url(re.compile("view=lines"))
    picture(page, "inside-bert")


@pytest.mark.parametrize("kind", ["SVG", "PNG", "CSV"])
def test_what_is_shown_is_saved(visit, kind):
    page = visit(run="translation", room="inside", text=TEXT)
    with page.expect_download() as saved:
        page.get_by_role("button", name=f"Save as {kind}").click()
    path = saved.value.path()
    content = path.read_bytes()
    assert saved.value.suggested_filename.endswith(kind.lower())
    begins = {"SVG": b"<svg ", "PNG": b"\x89PNG", "CSV": b"\xef\xbb\xbf"}[kind]
    assert content.startswith(begins)
    if kind == "CSV":
        rows = [line.split(",") for line in content.decode("utf-8-sig").splitlines()]
        assert all(abs(sum(map(float, row[1:])) - 1) < 0.05 for row in rows[1:])


def test_going_on_from_another_token(visit, site):
    page = visit(run="translation", room="inside", text=TEXT, tab="choices")
    result = page.locator(".result")
    result.wait_for()
    before = result.inner_text()
    page.locator(".steps > li").first.get_by_role("button").nth(1).click()
    page.wait_for_url(re.compile("prefix="))
    page.wait_for_function("text => document.querySelector('.result')?.textContent !== text", arg=before)
    prefix = int(re.search(r"prefix=(\d+)", page.url).group(1))
    _, answer = site.ask("POST", "/api/runs/translation/choices", {"example": TEXT, "prefix": [prefix]})
    assert result.inner_text() == answer["outputs"][0]["text"]
    page.locator(".tree .node").first.wait_for()
    page.get_by_role("button", name="Back to the model's own output").click()
    page.wait_for_function("text => document.querySelector('.result')?.textContent === text", arg=before)


@pytest.mark.parametrize("lang", ["en", "ko"])
@pytest.mark.parametrize("run", TABS)
def test_every_tab_on_a_phone_says_what_it_shows(visit, run, lang):
    page = visit(run=run, room="inside", text=TEXT, lang=lang, phone=True, dark=lang == "ko")
    tabs = page.get_by_role("tab")
    tabs.first.wait_for()
    for n in range(tabs.count()):
        tabs.nth(n).click()
        expect(tabs.nth(n)).to_be_in_viewport(ratio=0.9)
        page.locator("#inside-panel .panel").first.wait_for()
        lead = page.locator("#inside-panel .lead")
        assert len(re.findall(r"[.?]", lead.locator("> p").inner_text())) == 1
        if lead.locator("details[open]").count() == 0:
            lead.locator("summary").click()
        expect(lead.locator("details p").first).to_have_text(re.compile(".{15}"))  # what it takes to read it
        assert page.get_by_role("tablist").evaluate("row => row.scrollWidth <= row.clientWidth"), "wider than the page"
        assert "inside." not in page.locator("main").inner_text()
        check_width(page)
        check_access(page)


def held(page, name: str) -> list[str]:
    """The numbers of a vector, all of them."""
    vector = page.locator("details.vector").filter(has=page.locator(".name", has_text=re.compile(f"^{name}$")))
    vector.locator("summary").click()
    expect(vector.locator(".all span").first).to_be_visible()
    return vector.locator(".all span").all_inner_texts()


def test_the_steps_of_a_head_follow_one_token_and_fit_a_phone(visit, site):
    page = visit(run="translation", room="inside", text=TEXT, tab="steps", part="encoder", phone=True)
    steps = page.locator("ol.sequence > li")
    expect(steps).to_have_count(4)
    page.get_by_role("group", name="Computed for:").get_by_role("button").nth(2).click()
    _, answer = site.ask("POST", "/api/runs/translation/steps", {"example": TEXT, "part": "encoder", "row": 2})
    token = answer["sides"]["source"]["tokens"][2].lstrip("▁")
    for n in range(4):
        expect(steps.nth(n).locator(".token.here").first).to_have_text(token)
    bars = steps.nth(2).get_by_role("button")
    told = [float(bar.locator(".number").inner_text()) for bar in bars.all()]
    assert told == pytest.approx(answer["weights"], abs=6e-4)
    expect(bars.nth(told.index(max(told)))).to_have_attribute("aria-pressed", "true")
    bars.nth(1).focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("column=1"))
    expect(steps.nth(1).locator(".result-line b")).to_have_text(f"{answer['scaled'][1]:.2f}".replace("-", "−"))
    assert len(held(page, "k")) == answer["k"][1]["size"] == answer["width"]
    for scrolled in page.locator("#inside-panel .formula, #inside-panel .scroll").all():
        assert scrolled.evaluate("one => one.scrollWidth <= one.clientWidth + 1")
    check_width(page)
    check_access(page)


def boxes(page):
    return [one.bounding_box() for one in page.locator(".tree .node rect").all()]


def test_the_beam_of_a_phone_grows_downwards_and_can_be_touched(visit):
    page = visit(run="translation", room="inside", text=TEXT, tab="choices", phone=True)
    page.locator(".tree .node").first.wait_for()
    found = boxes(page)
    assert min(box["height"] for box in found) >= 32
    best = [one.bounding_box() for one in page.locator(".tree .node.best rect").all()]
    assert len(best) > 2
    assert len({round(box["x"]) for box in best}) == 1  # a straight line, downwards
    assert all(later["y"] > earlier["y"] for earlier, later in itertools.pairwise(best))
    page.locator(".tree .node").nth(1).tap()
    page.wait_for_url(re.compile("prefix="))


def test_the_beam_has_a_line_for_each_hypothesis(visit):
    page = visit(run="translation", room="inside", text=TEXT, tab="choices", beam=4, pruned="shown")
    page.locator(".tree .node").first.wait_for()
    found = boxes(page)
    places = {(round(box["x"]), round(box["y"])) for box in found}
    assert len(places) == len(found)  # no box covers another
    best = [one.bounding_box() for one in page.locator(".tree .node.best rect").all()]
    assert len({round(box["y"]) for box in best}) == 1
    assert (
        len({y for _, y in places}) <= 4 * 4
    )  # what is kept, finished and pruned of a step, not a line for every leaf


def test_the_search_is_shown_to_the_end_of_the_best_output(visit):
    page = visit(run="translation", room="inside", text=TEXT, tab="choices", beam=4)
    page.locator(".tree .node").first.wait_for()
    last = page.locator(".tree .node.best rect").last.bounding_box()
    assert max(box["x"] for box in boxes(page)) == last["x"]
    shown = len(boxes(page))
    page.get_by_role("checkbox", name="Show the whole search").check()
    expect(page.locator(".tree .node.pruned").first).to_be_attached()
    assert len(boxes(page)) > shown


def test_the_keyboard_begins_at_the_top(visit):
    page = visit(run="translation", room="inside", text=TEXT, tab="choices")
    page.locator(".tree .node").first.wait_for()
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()


def test_a_hostile_text_is_only_text(visit):
    text = "<script>alert(1)</script> <img src=x onerror=alert(1)> \u202eabc 👩‍👩‍👧 =1+1"
    page = visit(run="translation", room="inside", text=text)
    page.locator("canvas.matrix").wait_for()
    for name in ("Choices", "Attribution"):
        page.get_by_role("tab", name=name).click()
        page.locator("#inside-panel .panel").first.wait_for()
    assert page.locator("main img, main script").count() == 0


def test_a_refusal_is_said(visit):
    page = visit(run="translation", room="inside", text="a " * 1500, tolerate=[r"422", r"Failed to load"])
    said = page.get_by_role("alert")
    said.wait_for()
    assert "1024" in said.inner_text() or json.dumps("tokens")[1:-1] in said.inner_text()
