"""The live pages as people see them: a real browser, a real API, charts that move."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import Browser, Page, expect

from domain.live_chart import Lack, PartialPartition
from domain.live_windows import LiveWindow
from domain.race import Race
from speed_layer.store.connection import octets
from speed_layer.store.keys import CHARTS_STATUS
from speed_layer.store.ready import decode_charts_status, encode_charts_status
from tests.browser import chromium, opened
from tests.serving.live_api import Serving, live_api

pytestmark = pytest.mark.e2e

MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with live_api(tmp_path_factory.mktemp("pages")) as found:
        found.play("first", "first", "second", region="IN")
        found.play("elsewhere", region="DE")
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def rows(page: Page) -> list[list[str]]:
    found: list[list[str]] = page.evaluate(
        "[...document.querySelectorAll('#rows tr')].map(row => [...row.cells].map(cell => cell.textContent.trim()))"
    )
    return found


def test_a_chart_is_shown_and_moves_when_plays_come(serving: Serving, browser: Browser) -> None:
    with opened(browser, f"{serving.api.url}/charts#1h/IN") as (page, wrong):
        expect(page.locator("#rows tr")).to_have_count(2)
        before = [row[:3] for row in rows(page)]
        serving.play("second", "second", region="IN")
        expect(page.locator("#rows tr").first).to_contain_text("second")

        assert before == [["1", "first", "2"], ["2", "second", "1"]]
        assert [row[:3] for row in rows(page)] == [["1", "second", "3"], ["2", "first", "2"]]
        expect(page.locator("#facts")).to_contain_text("5 plays from 2026-11-14 08:58:00 UTC")
        expect(page.locator("#facts")).to_contain_text("Exact.")
        assert wrong == []


def test_a_cache_on_the_way_answers_within_the_second_and_asks_whether_it_changed_after(
    serving: Serving, browser: Browser
) -> None:
    """Chromium's own cache, which keeps what `Cache-Control` lets it keep and asks again by `ETag`."""
    fetch = "async () => (await fetch('/v1/charts/top?window=1h&region=DE')).text()"
    came = "() => performance.getEntriesByType('resource').filter(e => e.name.endsWith('DE')).map(e => e.transferSize)"
    with opened(browser, f"{serving.api.url}/charts#1d/IN") as (page, _):
        bodies = [page.evaluate(fetch), page.evaluate(fetch)]
        page.wait_for_timeout(1100)  # longer than max-age=1, by the browser's own clock
        bodies.append(page.evaluate(fetch))
        sizes = page.evaluate(came)

    assert len(set(bodies)) == 1
    assert len(sizes) == 3
    assert sizes[0] > len(bodies[0])  # headers and body
    assert sizes[1] == 0  # no byte came: the cache had it
    assert 0 < sizes[2] < len(bodies[0])  # a 304


def test_window_and_region_are_chosen_and_stand_in_the_address(serving: Serving, browser: Browser) -> None:
    with opened(browser, f"{serving.api.url}/charts") as (page, wrong):
        expect(page.locator("#rows tr")).to_have_count(3)
        page.locator("#region").fill("de")
        page.locator("#region").press("Enter")
        expect(page.locator("#rows tr")).to_have_count(1)
        page.locator("label", has_text="day").first.click()
        page.wait_for_url("**/charts#1d/DE")
        expect(page.locator("#rows tr")).to_contain_text(["elsewhere"])
        page.locator("#region").fill("no such region!")
        page.locator("#region").press("Enter")

        expect(page.locator("#state")).to_have_class("bad")
        assert wrong == []


def test_an_item_whose_name_is_markup_is_text(serving: Serving, browser: Browser) -> None:
    serving.play(MARKUP, region="FR")
    with opened(browser, f"{serving.api.url}/charts#1h/FR") as (page, wrong):
        expect(page.locator("#rows tr")).to_contain_text([MARKUP])

        assert page.locator("#rows img").count() == 0
        assert wrong == []


def test_a_chart_of_which_not_all_is_in_says_so(serving: Serving, browser: Browser) -> None:
    status = decode_charts_status(octets(serving.views.client.get(CHARTS_STATUS)))
    hour = replace(status.moments[LiveWindow.HOUR], partial=(PartialPartition(partition=3, lack=Lack.LEFT_OUT),))
    lacking = replace(status, moments={**status.moments, LiveWindow.HOUR: hour})
    serving.views.client.set(CHARTS_STATUS, encode_charts_status(lacking))
    with opened(browser, f"{serving.api.url}/charts#1h/DE") as (page, wrong):
        expect(page.locator("#state")).to_have_text("Not all is in: partition 3 left out.")
        expect(page.locator("#state")).to_have_class("bad")
        serving.play("elsewhere", region="DE")  # with which the merger says anew how it is
        expect(page.locator("#state")).to_have_text("")

        assert [row[:3] for row in rows(page)] == [["1", "elsewhere", "2"]]
        assert wrong == []


def test_a_race_runs_to_its_end_with_wrong_rows_marked(serving: Serving, browser: Browser) -> None:
    end = Race(64, 7).result()
    with opened(browser, f"{serving.api.url}/race") as (page, wrong):
        page.locator("#seed").fill("7")
        page.locator("#width").select_option("64")
        expect(page.locator("#state")).to_contain_text("after 60,000 plays", timeout=30_000)
        expect(page.locator("#again")).to_be_enabled()

        assert [(row[1], row[3], row[5]) for row in rows(page)] == [
            (row.song, row.guessed, "✗" if row.wrong else "") for row in end.rows
        ]
        assert page.locator("td.wrong").count() == 3 * end.wrong_rows
        expect(page.locator("#exact-bytes")).to_have_text(f"{end.exact_bytes:,} bytes")
        expect(page.locator("#sketch-bytes")).to_have_text("1,024 bytes")
        assert wrong == []
