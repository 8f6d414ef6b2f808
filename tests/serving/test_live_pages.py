"""The live pages: nothing from elsewhere, nothing of an answer becomes markup, their scripts run by their hashes."""

import hashlib
import re
from base64 import b64encode
from html.parser import HTMLParser

import pytest

from serving.charts_page import CHARTS_PAGE
from serving.page_shell import LivePage
from serving.race_page import RACE_PAGE

pytestmark = pytest.mark.fast

PAGES = {
    CHARTS_PAGE.path: {"/v1/charts/top?n=10", "/race", "/docs"},
    RACE_PAGE.path: {"/charts", "/docs"},
}
every_page = pytest.mark.parametrize("page", [CHARTS_PAGE, RACE_PAGE], ids=lambda page: page.path)


class Elements(HTMLParser):
    """Collects tags, targets and attributes."""

    def __init__(self, page: LivePage) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.targets: set[str] = set()
        self.names: set[str] = set()
        self.ids: set[str] = set()
        self.feed(page.html().decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}
        self.targets |= {value or "" for name, value in attrs if name in ("src", "href", "action")}
        self.ids |= {value or "" for name, value in attrs if name == "id"}


def script_of(page: LivePage) -> str:
    (script,) = re.findall("<script>(.*?)</script>", page.html().decode(), re.DOTALL)
    return str(script)


@every_page
def test_nothing_is_loaded_from_elsewhere(page: LivePage) -> None:
    found = Elements(page)

    assert found.targets == PAGES[page.path]
    assert not set(found.tags) & {"link", "img", "iframe", "object"}
    assert "http" not in page.html().decode().lower()
    assert not any(name.startswith("on") for name in found.names)


@every_page
def test_its_one_script_is_the_one_that_the_policy_lets_run(page: LivePage) -> None:
    digest = b64encode(hashlib.sha256(script_of(page).encode()).digest()).decode()
    policy = page.content_security_policy()

    assert Elements(page).tags.count("script") == 1
    assert f"script-src 'sha256-{digest}'" in policy
    assert "unsafe-inline'; connect-src" in policy  # of styles alone
    assert "unsafe-eval" not in policy


@every_page
def test_what_comes_from_the_server_is_text_and_never_markup(page: LivePage) -> None:
    script = script_of(page)

    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(", script)
    assert "textContent" in script


@every_page
def test_what_the_script_looks_for_is_there(page: LivePage) -> None:
    assert set(re.findall(r'by\("([\w-]+)"\)', script_of(page))) <= Elements(page).ids
