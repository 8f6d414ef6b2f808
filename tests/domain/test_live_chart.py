"""A ready chart is cut to any length as if it had been joined with it, and says what it lacks."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.estimates import Estimate
from domain.live_chart import CHART_ROWS, Lack, LiveChart, LiveMoment, PartialPartition, unlisted
from domain.live_windows import LiveWindow
from domain.merge import LocalTop, local_top, merged_top

pytestmark = pytest.mark.fast

AT = datetime(2026, 11, 15, 0, 1, 0, 250_000, tzinfo=UTC)
MOMENT = LiveMoment(kind=LiveWindow.HOUR, as_of=AT, window=LiveWindow.HOUR.at(AT), frontier=None)


@st.composite
def lists(draw: st.DrawFn) -> dict[int, LocalTop]:
    """What up to four partitions say: each has items of its own, bounds of any width, and a cut or none."""
    tops = {}
    for partition in range(draw(st.integers(1, 4))):
        bounds = draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), max_size=9))
        rows = [Estimate(f"{partition}-{n}", low, low + gap) for n, (low, gap) in enumerate(bounds)]
        total = sum(row.lower for row in rows) + draw(st.integers(0, 20))
        tops[partition] = local_top(rows, size=draw(st.integers(1, 9)), residual=draw(st.integers(0, 6)), total=total)
    return tops


@given(lists(), st.integers(1, 40), st.integers(1, 40))
def test_cutting_to_n_is_joining_with_n(tops: dict[int, LocalTop], one: int, other: int) -> None:
    n, made_with = sorted((one, other))

    cut = merged_top(tops, n=made_with).cut(n)

    assert cut == replace(merged_top(tops, n=n), deeper=())


def test_a_body_says_its_window_and_each_row_its_bounds() -> None:
    tops = {0: local_top([Estimate("ärger", 7, 9), Estimate("b", 5, 5)], size=8, residual=2, total=20)}
    chart = LiveChart(top=merged_top(tops, n=CHART_ROWS), moved={"ärger": 1})

    body = chart.body(MOMENT, region="IN", n=1)

    assert body == {
        "window": "1h",
        "region": "IN",
        "window_start": "2026-11-14T23:01:00Z",
        "window_end": "2026-11-15T00:02:00Z",
        "as_of": "2026-11-15T00:01:00.250000Z",
        "status": "provisional",
        "exact": False,
        "frontier": None,
        "total": 20,
        "missed_max": 5,
        "tie_at_cut": False,
        "entries": [
            {
                "rank": 1,
                "item_id": "ärger",
                "count": 7,
                "lower": 7,
                "upper": 9,
                "rank_min": 1,
                "rank_max": 1,
                "moved": 1,
            }
        ],
    }


def test_a_partial_answer_is_not_exact_and_names_what_it_lacks() -> None:
    tops = {0: local_top([Estimate("a", 5, 5)], size=8, residual=0, total=5)}
    chart = LiveChart(top=merged_top(tops, n=CHART_ROWS))
    before = AT - timedelta(minutes=1)
    lagging = PartialPartition(partition=3, lack=Lack.LAGGING, as_of=before, window=LiveWindow.HOUR.at(before))
    moment = replace(MOMENT, partial=[lagging, PartialPartition(partition=5, lack=Lack.MISSING)])

    assert chart.body(MOMENT, region="*", n=10)["exact"] is True
    body = chart.body(moment, region="*", n=10)
    assert body["exact"] is False
    assert body["partial"] == [
        {
            "partition": 3,
            "reason": "lagging",
            "as_of": "2026-11-15T00:00:00.250000Z",
            "window_start": "2026-11-14T23:00:00Z",
            "window_end": "2026-11-15T00:01:00Z",
        },
        {"partition": 5, "reason": "missing"},
    ]


def test_a_region_of_which_nothing_is_known_is_empty_and_exact_unless_plays_may_hide_in_zz() -> None:
    surely = unlisted(MOMENT).body(MOMENT, region="FR", n=100)
    folding = replace(MOMENT, unlisted_max=4, unlisted_total=9)
    perhaps = unlisted(folding).body(folding, region="FR", n=100)

    assert (surely["entries"], surely["total"], surely["missed_max"], surely["exact"]) == ([], 0, 0, True)
    assert (perhaps["entries"], perhaps["total"], perhaps["missed_max"], perhaps["exact"]) == ([], 9, 4, False)
