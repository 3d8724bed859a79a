"""Every room with a translation run, as docs/pictures shows them: `make pictures` takes them from a fresh demo.

JUMOK_DEMO names the folder that the demo trained into, JUMOK_PICTURES where the pictures go. Without them the rooms are
opened on the toy, and nothing is written."""

import os
from pathlib import Path

import pytest
from page import DESKTOP, check_width, picture
from playwright.sync_api import expect
from served import Served

TOY = "1 2 3 4 5"
NUMBERS = "two hundred thirty-four thousand five hundred six"
MORE = "March twenty eighth, twenty sixty"
ROOMS = {
    "use": ({}, ".words"),
    "inside": ({"tab": "attention"}, ".large-head canvas"),
    "training": ({}, "canvas"),
    "results": ({}, "table"),
}


@pytest.fixture(scope="module")
def shown(request, jumok):
    """Address, run and text of what is pictured."""
    if demo := os.environ.get("JUMOK_DEMO"):
        run = Path(demo).resolve()
        served = Served(jumok, run)
        yield served.address, run.name, NUMBERS
        assert served.stop() == 0
    else:
        yield request.getfixturevalue("site").address, request.getfixturevalue("reversed_run").name, TOY


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize(("lang", "phone"), [("en", False), ("ko", True)], ids=["desktop", "phone"])
def test_a_room_with_something_in_it(visit, shown, room, lang, phone):
    state, there = ROOMS[room]
    address, run, text = shown
    if room == "use" and text == NUMBERS:
        text = f"{NUMBERS}\n{MORE}"
    page = visit(address=address, lang=lang, phone=phone, run=run, room=room, text=text, **state)
    expect(page.locator("main .room")).to_be_visible()
    expect(page.locator(f"main {there}").first).to_be_visible()
    page.wait_for_load_state("networkidle")
    if room == "use":
        page.locator("button.word").first.click()
        expect(page.locator(".others .chip").first).to_be_visible()
    check_width(page)
    if not phone:
        page.set_viewport_size({**DESKTOP, "height": 500})
        height = page.evaluate("document.documentElement.scrollHeight")
        page.set_viewport_size({**DESKTOP, "height": min(height, 900)})
    picture(page, f"page-{room}{'-phone' if phone else ''}")
