"""The page's frame in a browser: rooms, language, theme, keyboard, links, a server that dies and comes back."""

import re

import pytest
from page import check_access, check_width, picture
from playwright.sync_api import expect
from served import Served


def rooms(page):
    return page.locator("header nav a")


@pytest.mark.parametrize(  # every two of a language, a size and a theme meet
    ("lang", "phone", "dark"),
    [("en", False, False), ("en", True, True), ("ko", False, True), ("ko", True, False)],
    ids=["en-desktop-light", "en-phone-dark", "ko-desktop-dark", "ko-phone-light"],
)
def test_every_room_opens_in_both_languages_and_sizes(visit, lang, phone, dark):
    page = visit(lang=lang, phone=phone, dark=dark, run="reverse")
    expect(rooms(page).first).to_be_visible()
    assert page.locator("html").get_attribute("lang") == lang
    for n in range(rooms(page).count()):
        rooms(page).nth(n).click()
        expect(rooms(page).nth(n)).to_have_attribute("aria-current", "page")
        expect(page.locator("main .room")).to_be_visible()
        check_width(page)
        check_access(page)
        name = re.search(r"room=(\w+)", page.url)[1]
        picture(page, f"{name}-{lang}-{'phone' if phone else 'desktop'}-{'dark' if dark else 'light'}", whole=phone)


def test_language_and_theme_are_switched_and_remembered(visit):
    page = visit(run="reverse")
    expect(rooms(page).first).to_be_visible()
    english = rooms(page).all_inner_texts()
    page.locator("header select").nth(1).select_option("ko")
    expect(rooms(page).first).not_to_have_text(english[0])
    light = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    page.locator("header select").nth(2).select_option("dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") != light
    page.reload()
    expect(page.locator("html")).to_have_attribute("lang", "ko")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_it_prints_dark_on_light(visit):
    page = visit(run="reverse", dark=True)
    expect(rooms(page).first).to_be_visible()
    page.emulate_media(media="print")
    red = page.evaluate("getComputedStyle(document.body).color.match(/\\d+/)[0]")
    assert int(red) < 100
    assert len(page.pdf()) > 1000


def test_the_keyboard_reaches_everything_and_the_focus_is_seen(visit):
    page = visit(run="reverse", room="use")
    expect(page.locator("main .room")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.locator("a.skip")).to_be_focused()
    expect(page.locator("a.skip")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.reload()
    expect(page.locator("main .room")).to_be_visible()
    seen, shown = [], []
    for _ in range(rooms(page).count() + 5):  # skip link, name, rooms, three menus
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.tagName"))
        shown.append(page.evaluate("getComputedStyle(document.activeElement).outlineStyle"))
    assert seen == ["A", "A", *["A"] * rooms(page).count(), *["SELECT"] * 3]
    assert "none" not in shown


def test_a_link_restores_the_view_and_back_goes_back(visit):
    page = visit(run="translation", room="use")
    expect(page.locator("header select").first).to_have_value("translation")
    first = rooms(page).first.inner_text()
    rooms(page).last.click()
    expect(rooms(page).last).to_have_attribute("aria-current", "page")
    link = page.url
    page.go_back()
    expect(rooms(page).first).to_have_attribute("aria-current", "page")
    assert rooms(page).first.inner_text() == first
    other = visit(link.removeprefix(visit.address))
    expect(rooms(other).last).to_have_attribute("aria-current", "page")
    expect(other.locator("header select").first).to_have_value("translation")


def test_a_run_that_does_not_exist_is_said_as_text(visit):
    page = visit(run="<img src=x onerror=alert(1)>")
    expect(page.get_by_role("alert")).to_contain_text("<img")
    assert page.locator("main img").count() == 0


def test_a_server_that_dies_is_noticed_and_its_return_too(visit, jumok, reversed_run):
    first = Served(jumok, reversed_run)
    try:
        page = visit(address=first.address, run="reverse", tolerate=["ERR_CONNECTION", "Failed to load resource"])
        expect(page.locator("main .room")).to_be_visible()
    finally:
        assert first.stop() == 0
    expect(page.locator(".banner")).to_be_visible()
    second = Served(jumok, reversed_run, port=first.port)
    try:
        expect(page.locator(".banner")).to_have_count(0)
        expect(page.locator("main .room")).to_be_visible()
    finally:
        assert second.stop() == 0
