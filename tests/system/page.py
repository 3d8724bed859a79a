"""The page in a browser: opened as a reader would, and closed with an error if anything went wrong in between."""

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 360, "height": 740}
LOCALES = {"en": "en-GB", "ko": "ko-KR"}
SEVERE = {"serious", "critical"}


def chromium() -> str:
    """Where Chromium is; the test is skipped if it is nowhere, which is an error in continuous integration."""
    names = ("chromium", "chromium-browser", "google-chrome")
    if found := next(filter(None, map(shutil.which, names)), None):
        return found
    missing = "Chromium is not installed (Debian: chromium)"
    if os.environ.get("CI") == "true":
        pytest.fail(missing)
    pytest.skip(missing)


class Visits:
    """Opens pages of a server, each with nothing remembered from another."""

    def __init__(self, browser: Browser, address: str) -> None:
        self.browser, self.address = browser, address
        self._open: list[tuple[Page, list[str], Sequence[str]]] = []

    def __call__(
        self,
        path: str = "/",
        *,
        lang: str = "en",
        phone: bool = False,
        dark: bool = False,
        tolerate: Sequence[str] = (),
        address: str = "",
        **state: object,
    ) -> Page:
        """The page with this state in its URL. `tolerate`: patterns of problems that the test provokes."""
        context = self.browser.new_context(
            viewport=PHONE if phone else DESKTOP,
            locale=LOCALES[lang],
            color_scheme="dark" if dark else "light",
            has_touch=phone,
            reduced_motion="reduce",
        )
        page = context.new_page()
        page.set_default_timeout(20_000)
        base = address or self.address
        self._open.append((page, _watch(page, base), tolerate))
        page.goto(base + path + (f"#{urlencode(state)}" if state else ""))
        return page

    def close(self) -> None:
        """Close what was opened; fail if one of them had a problem."""
        found = []
        for page, problems, tolerate in self._open:
            found += [one for one in problems if not any(re.search(pattern, one) for pattern in tolerate)]
            page.context.close()
        self._open.clear()
        assert not found, found


def _watch(page: Page, address: str) -> list[str]:
    """What goes wrong on a page from now on: errors, refused content (CSP), failed and outside requests."""
    problems: list[str] = []

    def asked(request) -> None:
        if not request.url.startswith((f"{address}/", "blob:", "data:")):
            problems.append(f"outside request: {request.url}")

    def failed(request) -> None:
        if "ERR_ABORTED" not in (request.failure or ""):  # a request that the page itself gave up
            problems.append(f"request failed: {request.url} {request.failure}")

    def said(message) -> None:
        if message.type in ("error", "warning"):
            problems.append(f"console {message.type}: {message.text}")

    page.on("request", asked)
    page.on("requestfailed", failed)
    page.on("console", said)
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    page.on("response", lambda answer: answer.status < 400 or problems.append(f"{answer.status}: {answer.url}"))
    return problems


def check_access(page: Page) -> None:
    """axe-core finds nothing serious."""
    found = Axe().run(page).response["violations"]
    severe = {one["id"]: [node["html"] for node in one["nodes"]] for one in found if one["impact"] in SEVERE}
    assert not severe, severe


def check_width(page: Page) -> None:
    """Nothing makes the page scroll sideways."""
    wide = page.evaluate("document.documentElement.scrollWidth"), page.evaluate("innerWidth")
    assert wide[0] <= wide[1], wide


def picture(page: Page, name: str, *, whole: bool = False) -> None:
    """A screenshot in the folder that JUMOK_PICTURES names, if it does."""
    if folder := os.environ.get("JUMOK_PICTURES"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=whole)
