import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest

from serving.pages import docs_page
from serving.problems import REQUEST_CODES, ROW_CODES, Code, RefusedError, status_of

pytestmark = pytest.mark.fast

PAGE = (Path(__file__).parents[2] / "docs" / "http-api.md").read_text(encoding="utf-8")
DOCUMENT = msgspec.json.encode({
    "info": {"title": "<script>alert(1)</script>"},
    "paths": {"/v1/events": {"post": {"summary": "a & <b>", "responses": {"202": {"description": '<img src="x">'}}}}},
})  # fmt: skip


class Elements(HTMLParser):
    """Collects what a page would load or run."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.targets: set[str] = set()
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.targets |= {value or "" for name, value in attrs if name in ("src", "href", "action")}
        self.ids |= {value or "" for name, value in attrs if name == "id"}


def elements(page: bytes) -> Elements:
    found = Elements()
    found.feed(page.decode())
    return found


def test_the_page_loads_nothing_from_elsewhere_and_runs_nothing() -> None:
    found = elements(docs_page(DOCUMENT))

    assert not found.tags & {"script", "img", "link", "iframe", "b"}
    assert found.targets == {"/openapi.json"}


def test_every_code_has_an_anchor_that_its_problem_points_to() -> None:
    found = elements(docs_page(DOCUMENT))

    for code in (*REQUEST_CODES, *ROW_CODES):
        problem: dict[str, Any] = msgspec.json.decode(RefusedError(code, "words").body())
        page, _, anchor = problem["type"].partition("#")
        assert (page, anchor in found.ids, problem["code"]) == ("/docs", True, str(code))


def test_the_documentation_lists_every_code_with_its_status_and_no_other() -> None:
    listed = {code: int(status) for code, status in re.findall(r"^\| `(\w+)` \| (\d{3}) \|", PAGE, re.MULTILINE)}

    assert listed == {str(code): status_of(code) for code in (*REQUEST_CODES, *ROW_CODES)}
    assert set(REQUEST_CODES) == set(Code)
