"""The page of live charts: nothing from elsewhere, nothing of a chart becomes markup, its script runs by its hash."""

import hashlib
import re
from base64 import b64encode
from html.parser import HTMLParser

import pytest

from serving.charts_page import charts_page, content_security_policy

pytestmark = pytest.mark.fast

PAGE = charts_page().decode()


class Elements(HTMLParser):
    """Collects tags, targets and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.targets: set[str] = set()
        self.names: set[str] = set()
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}
        self.targets |= {value or "" for name, value in attrs if name in ("src", "href", "action")}
        self.ids |= {value or "" for name, value in attrs if name == "id"}


@pytest.fixture(scope="module")
def found() -> Elements:
    elements = Elements()
    elements.feed(PAGE)
    return elements


def test_nothing_is_loaded_from_elsewhere(found: Elements) -> None:
    assert found.targets == {"/v1/charts/top?n=10", "/docs"}
    assert not set(found.tags) & {"link", "img", "iframe", "object"}
    assert "http" not in PAGE.replace("hashchange", "").lower()
    assert not any(name.startswith("on") for name in found.names)


def test_its_one_script_is_the_one_that_the_policy_lets_run(found: Elements) -> None:
    (script,) = re.findall("<script>(.*?)</script>", PAGE, re.DOTALL)
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()

    assert found.tags.count("script") == 1
    assert f"script-src 'sha256-{digest}'" in content_security_policy()
    assert "unsafe-inline'; connect-src" in content_security_policy()  # of styles alone
    assert "unsafe-eval" not in content_security_policy()


def test_what_comes_from_charts_is_text_and_never_markup() -> None:
    (script,) = re.findall("<script>(.*?)</script>", PAGE, re.DOTALL)

    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(", script)
    assert "textContent" in script


def test_what_the_script_looks_for_is_there(found: Elements) -> None:
    (script,) = re.findall("<script>(.*?)</script>", PAGE, re.DOTALL)

    assert set(re.findall(r'by\("(\w+)"\)', script)) <= found.ids
