"""Where batch hands over to live counting in the day's charts."""

from collections.abc import Mapping
from datetime import datetime, timedelta

import numpy as np
import pytest

from domain.batch_view import BatchView, RegionView
from domain.live_chart import Lack, LiveChart
from domain.live_windows import LiveWindow
from domain.windows import EPOCH, HOUR
from speed_layer.merger import Name, Said
from tests.speed_layer.merging import AT, SECOND, merger, said

pytestmark = pytest.mark.fast

FRONTIER = datetime.fromisoformat("2026-11-15T00:00:00Z")


def view_with(version: str, plays: Mapping[str, int], *, frontier: datetime = FRONTIER) -> BatchView:
    """A view in which each item has these plays in the oldest of its 24 hours and one in the newest."""
    hourly = np.array([[count, *[0] * 22, 1] for count in plays.values()], dtype=np.int64)
    region = RegionView(item_ids=list(plays), hourly=hourly, residual=0, totals=hourly.sum(axis=0))
    return BatchView(version=version, release=1, frontier=frontier, offsets={}, regions={"*": region, "SE": region})


def day(rows: Mapping[str, int], version: str, *, at: datetime = AT, frontier: datetime = FRONTIER) -> Said:
    return said(rows, kind=LiveWindow.DAY, at=at, view=version, frontier_hour=(frontier - EPOCH) // HOUR)


def day_counts(charts: Mapping[Name, LiveChart | None], region: str = "*") -> dict[str, int]:
    chart = charts[LiveWindow.DAY, region]
    assert chart is not None
    return {row.item_id: row.lower for row in chart.top.rows}


def test_the_day_is_batch_up_to_the_frontier_and_live_counts_after_it() -> None:
    joined = merger(2)
    views = {"v1": view_with("v1", {"a": 5, "b": 7})}
    found = joined.cycle({0: day({"a": 3, "c": 2}, "v1"), 1: day({}, "v1")}, views)

    assert day_counts(found.charts) == {"a": 9, "b": 8, "c": 2}
    assert day_counts(found.charts, "SE") == {"b": 8, "a": 6}  # nobody has a list of it
    assert found.moments[LiveWindow.DAY].frontier == FRONTIER
    assert found.moments[LiveWindow.HOUR].frontier is None


def test_when_the_day_begins_an_hour_later_its_charts_are_made_anew_though_no_list_changed() -> None:
    joined = merger(1)
    views = {"v1": view_with("v1", {"a": 5, "b": 7})}
    joined.cycle({0: day({"a": 3}, "v1")}, views)
    later = AT + timedelta(hours=1)
    status = day({}, "v1", at=later).status
    found = joined.cycle({0: Said(status=status, changed={})}, views)

    assert day_counts(found.charts) == {"a": 4, "b": 1}  # the oldest hour of the view is not in it any more


def test_while_partitions_go_with_different_views_or_one_that_is_not_loaded_the_day_stays_as_it_is() -> None:
    joined = merger(2)
    old, new = view_with("v1", {"a": 5}), view_with("v2", {"a": 6})
    joined.cycle({0: day({"a": 3}, "v1"), 1: day({}, "v1")}, {"v1": old})
    apart = joined.cycle({0: day({"a": 1}, "v2", at=AT + SECOND)}, {"v1": old, "v2": new})
    unloaded = joined.cycle({1: day({}, "v2", at=AT + SECOND)}, {"v1": old})
    together = joined.cycle({}, {"v1": old, "v2": new})

    assert [name for found in (apart, unloaded) for name in found.charts if name[0] is LiveWindow.DAY] == []
    assert apart.moments[LiveWindow.DAY].as_of == AT
    assert apart.moments[LiveWindow.HOUR].as_of == AT  # the other partition is a second behind
    assert day_counts(together.charts) == {"a": 8}
    assert together.moments[LiveWindow.DAY].as_of == AT + SECOND


def test_a_partition_that_lags_with_an_older_view_is_left_out_of_the_day_alone() -> None:
    joined = merger(2)
    views = {version: view_with(version, {"a": 5}) for version in ("v1", "v2")}
    joined.cycle({0: day({"a": 3}, "v1"), 1: day({"b": 2}, "v1")}, views)
    found = joined.cycle({0: day({"a": 4}, "v2", at=AT + timedelta(minutes=1))}, views)

    assert day_counts(found.charts) == {"a": 10}
    assert [(lack.partition, lack.lack) for lack in found.moments[LiveWindow.DAY].partial] == [(1, Lack.LEFT_OUT)]
    assert [(lack.partition, lack.lack) for lack in found.moments[LiveWindow.HOUR].partial] == [(1, Lack.LAGGING)]


def test_a_partition_that_lags_in_the_hour_before_is_left_out_of_a_day_that_begins_later() -> None:
    joined = merger(2)
    views = {"v1": view_with("v1", {"a": 5})}
    before, after = FRONTIER + HOUR - 10 * SECOND, FRONTIER + HOUR + 20 * SECOND
    joined.cycle({0: day({"a": 3}, "v1", at=before), 1: day({"b": 2}, "v1", at=before)}, views)
    found = joined.cycle({1: day({"b": 4}, "v1", at=after)}, views)

    (lack,) = found.moments[LiveWindow.DAY].partial  # with its own hours 5 of `a` would be missing, without a word
    assert (lack.partition, lack.lack) == (0, Lack.LEFT_OUT)
    assert [one.lack for one in found.moments[LiveWindow.HOUR].partial] == [Lack.LAGGING]
