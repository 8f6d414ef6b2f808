"""A day of Wikipedia's edits, its end played as if live: always within the bounds that charts state, then exact.

What came before 23:15 is sent at once and late, the rest as its time comes, a minute a second: partitions whose clocks
are more than 5 s apart are named as lagging, and much faster they always would be. In the end the stack recounts and
publishes by itself: once, as it began after the grace of the hour before.
"""

import csv
import gzip
import json
import urllib.error
import urllib.parse
import urllib.request
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from domain.windows import HOUR
from tests.end_to_end.test_real_data import EDITS, WIKITICKER, shared
from tests.stacks import FAST_COMMITS, LAKEBOARD, Stack, until

pytestmark = pytest.mark.e2e

DAY = datetime(2015, 9, 12, tzinfo=UTC)
LIVE_FROM, STEP, SPEED = DAY + timedelta(hours=23, minutes=15), timedelta(minutes=15), 60
REGIONS = ("*", "US", "ZZ")
ROWS_A_REQUEST = 1000


@dataclass(frozen=True)
class Edit:
    at: datetime
    page: str
    region: str


def edits_of_the_day() -> list[Edit]:
    with gzip.open(shared(WIKITICKER), "rt", encoding="utf-8", newline="") as file:
        rows = [
            Edit(datetime.fromisoformat(row["time"]), row["page"], row["countryIsoCode"] or "ZZ")
            for row in csv.DictReader(file)
        ]
    return sorted(rows, key=lambda edit: edit.at)


@dataclass
class Live:
    """A replay stack, and what was sent to it."""

    stack: Stack
    edits: Sequence[Edit]
    sent: int = 0

    def chart(self, window: str, region: str = "*", **more: object) -> dict[str, Any]:
        query = urllib.parse.urlencode({"window": window, "region": region, "n": 100} | more)
        with urllib.request.urlopen(f"{self.stack.url}/v1/charts/top?{query}", timeout=10) as answer:  # noqa: S310
            body: dict[str, Any] = json.load(answer)
            return body

    def whole(self, window: str, region: str = "*") -> dict[str, Any]:
        """Wait for a chart in which all that was sent is counted and no partition is behind."""
        found: list[dict[str, Any]] = []

        def is_whole() -> bool:
            try:
                chart = self.chart(window, region)
            except urllib.error.HTTPError as error:
                if error.code == HTTPStatus.SERVICE_UNAVAILABLE:
                    return False
                raise
            found[:] = [chart]
            return "partial" not in chart and chart["total"] == self.truth(chart).total()

        until(is_whole, f"{self.sent} edits are counted in {window} of {region}")
        return found[0]

    def send_until(self, moment: datetime) -> None:
        """Send the edits before a moment, once the replay has come to it."""
        end = bisect_left(self.edits, moment, key=lambda edit: edit.at)
        until(lambda: self.as_of() > moment, f"the replay reaches {moment}", 60)
        for first in range(self.sent, end, ROWS_A_REQUEST):
            self.post(first, self.edits[first : min(first + ROWS_A_REQUEST, end)])
        self.sent = end

    def as_of(self) -> datetime:
        return datetime.fromisoformat(self.whole("1d")["as_of"])

    def post(self, first: int, edits: Sequence[Edit]) -> None:
        rows = [
            {"event_id": f"edit-{n}", "item_id": edit.page, "region": edit.region, "event_time": edit.at.isoformat()}
            for n, edit in enumerate(edits, start=first)
        ]
        status, body, _ = self.stack.post(rows)
        assert (status, body["accepted"]) == (202, len(rows)), body

    def truth(self, chart: Mapping[str, Any]) -> Counter[str]:
        """What was sent of the very window and region that a chart says it covers."""
        start, end = (datetime.fromisoformat(chart[name]) for name in ("window_start", "window_end"))
        return Counter(
            edit.page
            for edit in self.edits[: self.sent]
            if start <= edit.at < end and chart["region"] in ("*", edit.region)
        )

    def day(self) -> dict[str, Any]:
        """The chart of the day as a closed window; no status before the first release."""
        try:
            return self.chart("1d", start=DAY.isoformat().replace("+00:00", "Z"), n=10)
        except urllib.error.HTTPError as error:
            with error:
                return {"status": "", "code": json.load(error)["code"]}

    def frontier(self) -> datetime:
        """Up to where the live day has batch's counts; the day's start before any view."""
        said: str | None = self.chart("1d")["frontier"]
        return DAY if said is None else datetime.fromisoformat(said)

    def require_bounds(self, chart: Mapping[str, Any]) -> None:
        """Hold a chart against what was sent: bounds, ranks, the most that is missing, the total."""
        truth = self.truth(chart)
        order = sorted(truth, key=lambda page: (-truth[page], page.encode()))
        ranks = {page: rank for rank, page in enumerate(order, start=1)}
        rows = chart["entries"]
        assert len(rows) == min(100, len(order))
        for row in rows:
            assert row["count"] == row["lower"] <= truth[row["item_id"]] <= row["upper"], row
            assert row["rank_min"] <= ranks[row["item_id"]] <= row["rank_max"], row
        listed = {row["item_id"] for row in rows}
        assert max((count for page, count in truth.items() if page not in listed), default=0) <= chart["missed_max"]
        if chart["exact"]:
            assert [row["item_id"] for row in rows] == order[: len(rows)]


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    edits = edits_of_the_day()
    assert len(edits) == EDITS
    home = tmp_path / "home"
    command = (str(LAKEBOARD), "up", "--clock", f"{LIVE_FROM.isoformat()},{SPEED}")
    settings = FAST_COMMITS | {"LAKEBOARD_HOURLY": "true", "LAKEBOARD_COMMIT_SECONDS": "5"}
    stack = Stack(home, command=command, settings=settings)
    try:
        stack.start()
        yield Live(stack, edits)
    finally:
        stack.end()


def test_live_charts_are_true_at_every_step_and_the_day_is_final_once_batch_has_it(live: Live) -> None:
    live.sent = bisect_left(live.edits, LIVE_FROM, key=lambda edit: edit.at)
    for first in range(0, live.sent, ROWS_A_REQUEST):
        live.post(first, live.edits[first : min(first + ROWS_A_REQUEST, live.sent)])
    exact = 0
    for step in range(1, 4):
        live.send_until(LIVE_FROM + step * STEP)
        for window in ("1m", "1h", "1d"):
            for region in REGIONS:
                chart = live.whole(window, region)
                assert chart["status"] == "provisional"
                live.require_bounds(chart)
                exact += chart["exact"]
    assert exact > 0
    assert live.sent == EDITS
    until(lambda: live.day()["status"] == "final", "the recount of the last hour, by the clock", 400)

    day = live.day()
    assert (day["status"], day["exact"], day["total"]) == ("final", True, EDITS)
    assert [(row["item_id"], row["count"]) for row in day["entries"][:5]] == [
        ("Wikipedia:Vandalismusmeldung", 33),
        ("User:Cyde/List of candidates for speedy deletion/Subpage", 28),
        ("Jeremy Corbyn", 27),
        ("Wikipedia:Administrators' noticeboard/Incidents", 21),
        ("Flavia Pennetta", 20),
    ]
    until(lambda: live.frontier() >= DAY + 24 * HOUR, "live charts join with it")
    for region in REGIONS:
        chart = live.whole("1d", region)
        live.require_bounds(chart)
