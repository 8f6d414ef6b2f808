"""How the lists of the live day are chosen by what batch has beside, case by case; the law is in tests/laws."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from domain.batch_view import HOURS_IN_VIEW, BatchView, RegionView
from domain.live_windows import LiveWindow
from domain.merge import LocalTop
from domain.sketches.keys import regions_of
from domain.windows import HOUR
from speed_layer.partition import LivePartition
from tests.laws.test_speed_layer import TINY
from tests.speed_layer.live_model import Played, batch_of

pytestmark = pytest.mark.fast

FRONTIER = datetime(2026, 11, 15, 10, tzinfo=UTC)
NOW = FRONTIER + timedelta(minutes=1, seconds=1)
DAY = LiveWindow.DAY


def view(plays: Mapping[str, int], *, hour: int = 23, residual: int = 0) -> BatchView:
    hourly = np.zeros((len(plays), HOURS_IN_VIEW), dtype=np.int64)
    hourly[:, hour] = list(plays.values())
    region = RegionView(item_ids=list(plays), hourly=hourly, residual=residual, totals=hourly.sum(axis=0))
    return BatchView(version="v", release=1, frontier=FRONTIER, log_id="log", offsets={}, regions={"*": region})


def partition_with(plays: Mapping[str, int], at: datetime) -> LivePartition:
    partition = LivePartition(TINY)
    count(partition, plays, at)
    return partition


def count(partition: LivePartition, plays: Mapping[str, int], at: datetime) -> None:
    first = (partition.position + 1) % 2**20
    partition.count(
        batch_of(
            [Played(first + n, at, first + n, item, "IN", at, count=c) for n, (item, c) in enumerate(plays.items())]
        )
    )


def everywhere(partition: LivePartition, size: int = 2) -> LocalTop:
    return partition.top(DAY, "*", size=size).top()


def test_an_item_that_batch_has_is_listed_with_the_bounds_of_live_counting_alone() -> None:
    partition = partition_with({"new": 5, "other": 3}, NOW)

    assert partition.certified(view({"old": 1000, "new": 2}), offset=0)

    top = everywhere(partition)
    assert {(row.item_id, row.lower, row.upper) for row in top.rows} == {("old", 0, 0), ("new", 5, 5)}
    assert top.cut is not None
    assert (top.cut.item_id, top.cut.upper) == ("other", 3)
    assert top.total == 8


def test_without_plays_since_the_frontier_there_is_no_list() -> None:
    partition = LivePartition(TINY)
    partition.advance(NOW)
    partition.certified(view({"old": 1000}), offset=0)

    top = everywhere(partition)
    assert (top.rows, top.cut, top.residual, top.total) == ([], None, 0, 0)
    assert not partition.changed()


def test_lists_are_told_again_when_the_frontier_moves_though_their_numbers_are_the_same() -> None:
    partition = partition_with({"new": 5}, NOW)
    assert {one.kind for one in partition.changed()} == set(LiveWindow)
    assert not partition.changed()

    partition.certified(view({}), offset=0)

    again = partition.changed()
    assert {(one.kind, one.region, one.frontier) for one in again} == {(DAY, "*", FRONTIER), (DAY, "IN", FRONTIER)}
    assert not partition.changed()


def test_plays_that_leave_the_day_count_no_longer_in_the_choice() -> None:
    """The first hour of the view is in the day as long as the day begins before its end."""
    partition = partition_with({"a": 1, "b": 2}, NOW)
    partition.certified(view({"old": 1000}, hour=0), offset=0)
    assert "old" in {row.item_id for row in everywhere(partition).rows}

    partition.advance(FRONTIER + HOUR)

    assert {row.item_id for row in everywhere(partition).rows} == {"a", "b"}


def test_a_view_that_lies_behind_changes_nothing() -> None:
    partition = partition_with({"a": 1, "b": 2, "c": 3}, NOW)
    assert partition.certified(view({}), offset=0)
    behind = view({"a": 1000})
    earlier = BatchView(version="w", release=2, frontier=FRONTIER - HOUR, offsets={}, regions=behind.regions)

    assert not partition.certified(earlier, offset=0)

    assert {row.item_id for row in everywhere(partition).rows} == {"b", "c"}


def test_a_view_that_is_ahead_is_taken_when_the_log_comes_to_its_frontier() -> None:
    partition = partition_with({"before": 4}, FRONTIER - timedelta(seconds=1))

    assert partition.certified(view({"before": 9}), offset=2**62)
    assert everywhere(partition).total == 4
    partition.advance(FRONTIER - timedelta(milliseconds=1))
    assert [partition.view] == [None]
    partition.advance(FRONTIER)

    assert ([partition.view], everywhere(partition).total) == (["v"], 0)


def test_items_of_batch_are_pinned_from_the_start_of_a_minute() -> None:
    partition = partition_with({"a": 1}, NOW)
    partition.certified(view({"old": 1000}), offset=0)
    count(partition, {"a": 1}, NOW + timedelta(minutes=1))
    partition.changed()

    pinned = {partition.items.ids[int(key) & (2**32 - 1)] for key in partition.buckets.pins}
    assert {"old", "a"} <= pinned
    assert set(regions_of(partition.buckets.pins).tolist()) <= {0, 2}


def test_what_was_not_looked_at_has_the_residual_of_batch_beside_it() -> None:
    """Four items at rest are better than one of now, but batch may have most of that one: the cut must say so."""
    partition = partition_with(dict.fromkeys("abcd", 10), NOW + HOUR)
    gone = view(dict.fromkeys("abcd", 200), hour=0, residual=100)
    partition.certified(gone, offset=0)
    count(partition, {"now": 5}, FRONTIER + HOUR + timedelta(minutes=9, seconds=1))

    top = everywhere(partition)

    assert top.total == 45
    listed = {row.item_id for row in top.rows}
    assert "now" in listed or (top.cut is not None and top.cut.upper >= 105)
