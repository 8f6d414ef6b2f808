"""What batch hands over: a region without the hours that left the day, and the part of one partition."""

from datetime import UTC, datetime

import numpy as np
import pytest

from domain.batch_view import BatchView, RegionView, narrowed
from domain.windows import DAY, HOUR

pytestmark = pytest.mark.fast

FRONTIER = datetime(2026, 11, 15, 9, tzinfo=UTC)
FIRST = FRONTIER - DAY


def view(**regions: RegionView) -> BatchView:
    offsets = {"log/0": 7}
    return BatchView(
        version="v", release=1, frontier=FRONTIER, log_id="log", offsets=offsets, regions=regions, others=9
    )


def region(*rows: tuple[str, int, int], residual: int = 3) -> RegionView:
    """Items with their plays in the first hour and in the last one."""
    hourly = np.zeros((len(rows), 24), dtype=np.int64)
    hourly[:, 0], hourly[:, 23] = [row[1] for row in rows], [row[2] for row in rows]
    return RegionView(
        item_ids=[row[0] for row in rows], hourly=narrowed(hourly), residual=residual, totals=hourly.sum(axis=0) + 1
    )


@pytest.mark.parametrize(
    ("start", "plays", "total", "residual"),
    [
        (FIRST - HOUR, [5, 4], 24 + 9, 3),
        (FIRST, [5, 4], 24 + 9, 3),
        (FIRST + HOUR, [1, 3], 23 + 4, 3),
        (FRONTIER - HOUR, [1, 3], 1 + 4, 3),
        (FRONTIER, [0, 0], 0, 0),
        (FRONTIER + 5 * HOUR, [0, 0], 0, 0),
    ],
)
def test_hours_before_the_start_are_gone_and_the_residual_bounds_the_others(
    start: datetime, plays: list[int], total: int, residual: int
) -> None:
    found = view(IN=region(("a", 4, 1), ("b", 1, 3))).since("IN", start)

    assert (found.plays.tolist(), found.total, found.residual) == (plays, total, residual)
    assert [found.item_ids[place] for place in found.order] == sorted("ab", key=lambda item: -plays["ab".index(item)])


def test_it_is_made_once_for_each_start() -> None:
    of_day = view(IN=region(("a", 4, 1)))
    assert of_day.since("IN", FIRST) is of_day.since("IN", FIRST - HOUR)
    assert of_day.since("IN", FIRST + HOUR).plays.tolist() == [1]
    assert of_day.since("IN", FIRST).plays.tolist() == [5]


def test_a_region_that_is_absent_may_have_what_the_largest_of_those_left_out_has() -> None:
    absent = view().since("IN", FRONTIER - HOUR)
    assert (absent.residual, absent.total, absent.plays.tolist()) == (9, 9, [])
    assert view().since("IN", FRONTIER).total == 0


def test_each_partition_gets_its_own_items_and_the_bounds_of_all() -> None:
    whole = view(IN=region(("a", 9, 0), ("b", 8, 0), ("c", 7, 0)), DE=region(("c", 1, 1)))

    first, second = whole.split(lambda items: [int(item == "b") for item in items], 2)

    assert (list(first.regions["IN"].item_ids), first.regions["IN"].plays.tolist()) == (["a", "c"], [9, 7])
    assert (list(second.regions["IN"].item_ids), list(second.regions["DE"].item_ids)) == (["b"], [])
    for part in (first, second):
        assert part.regions["IN"].residual == 3
        assert part.regions["IN"].total == whole.regions["IN"].total
        assert (part.frontier, part.version, part.others) == (FRONTIER, "v", 9)


def test_offsets_and_logs() -> None:
    assert (view().offset("log", 0), view().offset("log", 1), view().offset("other", 0)) == (7, -1, -1)
    assert view().goes_with("log")
    assert not view().goes_with("other")


def test_counts_take_as_little_room_as_they_need() -> None:
    widths = [narrowed(np.array([[most]])).dtype.itemsize for most in (0, 255, 256, 65_535, 65_536, 2**32)]
    assert widths == [1, 1, 2, 2, 4, 8]
