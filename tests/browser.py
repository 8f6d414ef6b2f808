"""Chromium for tests that look at pages: the one that set-up found."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

CHOICE = Path(__file__).parents[1] / ".venv" / "browser"
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run a browser of its own; skip where set-up has none."""
    if not CHOICE.exists():
        pytest.skip("no Chromium: `make browser` installs one, or says how")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHOICE.read_text(encoding="utf-8").strip(), args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Browser, url: str) -> Iterator[tuple[Page, list[str]]]:
    """Open a page; yield it and all that went wrong in it: errors of its script, refusals of its policy."""
    wrong: list[str] = []
    page = browser.new_page()
    try:
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.goto(url)
        yield page, wrong
    finally:
        page.close()
