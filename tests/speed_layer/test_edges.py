"""Plays on the edges: of an hour, of batch and live counting, of the retry window, of what batch may be late with."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from domain.live_windows import LiveWindow
from domain.speed_policy import SpeedPolicy
from domain.windows import HOUR
from tests.speed_layer.live_model import Played
from tests.speed_layer.merging import Merging

pytestmark = pytest.mark.fast

TEN = datetime.fromisoformat("2026-11-14T10:00:00Z")
MINUTE, SECOND, US = timedelta(minutes=1), timedelta(seconds=1), timedelta(microseconds=1)


def counts(merging: Merging, kind: LiveWindow) -> dict[str, int]:
    """What the chart of a window says everywhere; every row has to be exact."""
    chart = merging.charts.get((kind, "*"))
    assert chart is None or all(row.lower == row.upper for row in chart.top.rows)
    return {} if chart is None else {row.item_id: row.lower for row in chart.top.rows}


def played(number: int, item: str, at: datetime, *, logged: datetime | None = None, event: int | None = None) -> Played:
    return Played(number, logged or at, number if event is None else event, item, "IN", at)


def clock(merging: Merging, at: datetime) -> None:
    for part in merging.parts:
        part.live.advance(at)


def test_a_play_on_the_hour_is_in_the_hour_that_it_opens_and_in_no_other() -> None:
    merging = Merging(1, SpeedPolicy())
    merging.read([played(1, "last", TEN - US), played(2, "on", TEN), played(3, "next", TEN + US)])
    seen = []
    for at in (TEN + 59 * MINUTE + 30 * SECOND, TEN + HOUR + 30 * SECOND, TEN + HOUR + MINUTE + 30 * SECOND):
        clock(merging, at)
        merging.cycle()
        seen.append((merging.moments[LiveWindow.HOUR].window.start, counts(merging, LiveWindow.HOUR)))

    assert seen == [
        (TEN - MINUTE, {"last": 1, "next": 1, "on": 1}),
        (TEN, {"next": 1, "on": 1}),
        (TEN + MINUTE, {}),
    ]


def test_at_the_frontier_a_play_on_the_hour_is_live_and_one_before_it_is_batchs() -> None:
    merging = Merging(1, SpeedPolicy())
    merging.read([played(1, "last", TEN - US), played(2, "on", TEN), played(3, "on", TEN + 11 * MINUTE)])
    clock(merging, TEN + 11 * MINUTE + 30 * SECOND)
    merging.publish_view(TEN, most=10)
    merging.take_view(0)
    merging.cycle()

    assert last_hour(merging) == {"last": 1}
    assert merging.parts[0].truth[LiveWindow.DAY]["*"] == {"on": 2}
    assert counts(merging, LiveWindow.DAY) == {"last": 1, "on": 2}


def last_hour(merging: Merging) -> dict[str, int]:
    region = list(merging.views.values())[-1].regions["*"]
    return dict(zip(region.item_ids, region.hourly[:, -1].tolist(), strict=True))


@pytest.mark.parametrize(("minutes", "live"), [(14, 1), (17, 2)])
def test_an_id_in_a_certified_hour_and_again_in_a_live_one_counts_once_in_the_retry_window(
    minutes: int, live: int
) -> None:
    """Sent again later than that it counts twice, until the next recount finds it."""
    merging = Merging(1, SpeedPolicy())
    first = played(1, "a", TEN - MINUTE, event=7)
    again = played(2, "a", TEN + SECOND, logged=TEN - MINUTE + minutes * MINUTE, event=7)
    merging.read([first, again])
    merging.sent = [(first, 0)]  # batch, which knows all ids, counts it in its first hour
    merging.publish_view(TEN, most=10)
    merging.take_view(0)
    merging.cycle()

    assert counts(merging, LiveWindow.DAY) == {"a": live}

    clock(merging, TEN + HOUR + 11 * MINUTE)
    merging.publish_view(TEN + HOUR, most=10)
    merging.take_view(0)
    merging.cycle()
    assert counts(merging, LiveWindow.DAY) == {"a": 1}


@pytest.mark.law
def test_when_batch_is_late_by_more_than_a_day_live_counting_has_all_of_the_day_itself() -> None:
    """The frontier stands for 30 hours: nothing of the day is missing, so nothing has to be called partial."""
    merging = Merging(2, SpeedPolicy())
    merging.read([played(0, "of batch", TEN - MINUTE), played(1, "next", TEN + MINUTE)])
    clock(merging, TEN + 11 * MINUTE)
    merging.publish_view(TEN, most=10)
    for number in (0, 1):
        merging.take_view(number)
    for hour in range(1, 31):
        at = TEN + hour * HOUR + MINUTE
        merging.read(several(10 * hour, at))
        clock(merging, at + 30 * SECOND)
        merging.cycle()
        day = merging.moments[LiveWindow.DAY]
        truth = Counter(merging.of_batch[LiveWindow.DAY].get("*", Counter()))
        for of_partition, _ in merging.truths[LiveWindow.DAY]:
            truth.update(of_partition.get("*", Counter()))
        assert counts(merging, LiveWindow.DAY) == dict(truth)
        assert (list(day.partial), day.frontier) == ([], TEN)

    assert counts(merging, LiveWindow.DAY)["each hour"] == 25
    assert "of batch" not in counts(merging, LiveWindow.DAY)


def several(first: int, at: datetime) -> Sequence[Played]:
    return [played(first + n, item, at) for n, item in enumerate(("each hour", f"hour {first}"))]
