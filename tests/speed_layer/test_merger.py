"""What the merger says in known cases, and when partitions do not keep step."""

from collections import Counter
from datetime import datetime, timedelta
from random import Random

import pytest

from domain.estimates import Estimate
from domain.live_chart import CHART_ROWS, Lack
from domain.live_windows import LiveWindow
from domain.sketches.shape import Shapes, SketchShape
from domain.speed_policy import SpeedPolicy
from speed_layer.changes import ChangedList
from speed_layer.merger import Merger, Said
from speed_layer.moments import MOST_LAG
from tests.speed_layer.live_model import START, Played
from tests.speed_layer.merging import AT, SECOND, Merging, merger, partition_of, said, status_of

pytestmark = pytest.mark.law

ITEMS = ["ärger", "夜に駆ける", "🎵", *(f"track-{n}" for n in range(24))]
REGIONS = ["ZZ", "IN", "US-CA", "DE", "BR"]
TINY = SpeedPolicy(
    minutes=Shapes(SketchShape(width=64, head=5, exact=6), SketchShape(width=64, head=3, exact=4)),
    hour_heads=(7, 4),
    regions=4,  # of the five above, so one is folded into ZZ
    list_size=3,
)
ROOMY = SpeedPolicy()
STEPS = [timedelta(seconds=s) for s in (0, 1, 3, 9, 60, 125, 3600)]


def test_sixth_in_each_of_twenty_partitions_lists_and_first_overall_is_first() -> None:
    """An item lives in one partition; its rivals are five in each, all of them smaller than it."""
    lists = {n: said({f"{n}-{k}": 90 - k for k in range(5)}) for n in range(20)}
    lists[7] = said({**{f"7-{k}": 90 - k for k in range(5)}, "first": 91})

    charts = merger(20).cycle(lists, {}).charts

    chart = charts[LiveWindow.HOUR, "*"]
    assert chart is not None
    assert (chart.top.rows[0].item_id, chart.top.rows[0].rank_max, chart.top.exact) == ("first", 1, True)


def test_sixth_in_each_of_twenty_regions_and_first_overall_is_first() -> None:
    merging = Merging(4, ROOMY)
    plays = []
    for region in range(20):
        for place in range(5):
            plays += [(f"{region}-{place}", f"R{region}")] * 3
        plays += [("everywhere", f"R{region}")] * 2
    merging.read([Played(n, START, n, item, region, START) for n, (item, region) in enumerate(plays)])
    merging.cycle()

    for region in range(20):
        rows = merging.charts[LiveWindow.HOUR, f"R{region}"].top.rows
        assert [row.rank for row in rows if row.item_id == "everywhere"] == [6]
    first = merging.charts[LiveWindow.HOUR, "*"].top.rows[0]
    assert (first.item_id, first.lower, first.rank_max) == ("everywhere", 40, 1)


def test_a_swap_of_two_rows_requires_a_changed_lower_bound() -> None:
    """100 steps of a stream whose heads overflow all the time: whoever changed places has another lower bound."""
    random, merging, swaps = Random(11), Merging(2, TINY), 0
    before: dict[tuple[LiveWindow, str], list[tuple[str, int]]] = {}
    for step in range(100):
        at = START + step * SECOND
        merging.read([Played(8 * step + n, at, 8 * step + n, random.choice(ITEMS), "IN", at) for n in range(8)])
        merging.cycle()
        for name, chart in merging.charts.items():
            now = [(row.item_id, row.lower) for row in chart.top.rows]
            then = dict(before.get(name, ()))
            kept = [item for item, _ in now if item in then]
            if kept != [item for item in then if item in kept]:
                swaps += 1
                assert any(then[item] != lower for item, lower in now if item in then)
            before[name] = now
    assert swaps > 40


def test_the_window_1h_at_one_past_midnight_covers_23_01_to_00_02() -> None:
    moments = merger(1).cycle({0: said({"a": 1})}, {}).moments

    window = moments[LiveWindow.HOUR].window
    assert (window.start.isoformat(), window.end.isoformat()) == (
        "2026-11-14T23:01:00+00:00",
        "2026-11-15T00:02:00+00:00",
    )


def test_a_stalled_partition_is_named_and_its_moment_is_the_answers() -> None:
    joined = merger(2)
    joined.cycle({0: said({"a": 5}), 1: said({"b": 3})}, {})
    later = joined.cycle({0: said({"a": 6}, at=AT + timedelta(minutes=2))}, {})

    moment = later.moments[LiveWindow.HOUR]
    assert moment.as_of == AT
    assert moment.window == LiveWindow.HOUR.at(AT + timedelta(minutes=2))
    assert [(one.partition, one.lack, one.window) for one in moment.partial] == [
        (1, Lack.LAGGING, LiveWindow.HOUR.at(AT))
    ]
    chart = later.charts[LiveWindow.HOUR, "*"]
    assert chart is not None
    assert [row.item_id for row in chart.top.rows] == ["a", "b"]
    assert chart.body(moment, region="*", n=10)["exact"] is False


def test_a_hot_item_whose_partition_falls_behind_is_named_never_overstated_and_true_in_the_end() -> None:
    """Half of all plays are of one item, whose partition reads 6 of 10 a second, and later all that was left."""
    merging, slow = Merging(2, SpeedPolicy()), partition_of("hot", 2)
    items = ["hot", next(item for item in ITEMS if partition_of(item, 2) != slow)]
    unread: list[list[Played]] = [[], []]
    sent: Counter[str] = Counter()
    lagging = 0
    for second in range(60):
        logged = START + second * SECOND
        for item in items * 10:
            unread[partition_of(item, 2)].append(Played(sent.total(), logged, sent.total(), item, "IN", logged))
            sent[item] += 1
        for number, part in enumerate(merging.parts):
            size = 6 if number == slow and second < 50 else len(unread[number])
            part.read(unread[number][:size])
            del unread[number][:size]
        merging.cycle()
        moment, chart = merging.moments[LiveWindow.HOUR], merging.charts[LiveWindow.HOUR, "*"]
        is_behind = logged - merging.parts[slow].live.as_of > MOST_LAG
        assert [(one.partition, one.lack) for one in moment.partial] == [(slow, Lack.LAGGING)] * is_behind
        assert all(row.lower <= sent[row.item_id] for row in chart.top.rows)
        lagging += is_behind
    assert lagging > 10
    assert [(row.item_id, row.lower, row.upper) for row in chart.top.rows] == [
        (item, sent[item], sent[item]) for item in sorted(sent, key=str.encode)
    ]


def test_a_partition_whose_span_is_over_is_left_out_and_comes_back() -> None:
    joined = merger(2)
    joined.cycle({0: said({"a": 5}), 1: said({"b": 3})}, {})
    later = AT + timedelta(hours=2)
    without = joined.cycle({0: said({"a": 6}, at=later)}, {})
    again = joined.cycle({1: said({"b": 4}, at=later)}, {})

    moment = without.moments[LiveWindow.HOUR]
    assert (moment.as_of, [one.lack for one in moment.partial]) == (later, [Lack.LEFT_OUT])
    chart, whole = without.charts[LiveWindow.HOUR, "*"], again.charts[LiveWindow.HOUR, "*"]
    assert chart is not None
    assert whole is not None
    assert [row.item_id for row in chart.top.rows] == ["a"]
    assert [row.item_id for row in whole.top.rows] == ["a", "b"]
    assert again.moments[LiveWindow.HOUR].partial == []


def test_a_missing_partition_and_one_of_a_replaced_log_are_named() -> None:
    moment = merger(4).cycle({0: said({"a": 5}), 1: said({"b": 3}), 2: said({"c": 1}, log_id="old")}, {}).moments

    assert [(one.partition, one.lack) for one in moment[LiveWindow.HOUR].partial] == [
        (2, Lack.MISSING),
        (3, Lack.MISSING),
    ]


def test_an_idle_partition_keeps_step_and_a_play_dated_a_year_ahead_moves_no_clock() -> None:
    merging = Merging(2, ROOMY)
    item = next(item for item in ITEMS if partition_of(item, 2) == 0)
    merging.read([Played(0, START, 0, item, "IN", START), Played(1, START, 1, item, "IN", START + timedelta(days=365))])
    for part in merging.parts:
        part.live.advance(START + SECOND)
    merging.cycle()

    moment = merging.moments[LiveWindow.HOUR]
    assert (moment.as_of, moment.partial) == (START + SECOND, [])
    assert merging.charts[LiveWindow.HOUR, "*"].top.rows[0].lower == 1


def test_a_server_clock_that_steps_back_moves_nothing_back() -> None:
    merging = Merging(1, ROOMY)
    merging.read([Played(0, START, 0, "a", "IN", START)])
    merging.cycle()
    merging.parts[0].live.advance(START - timedelta(hours=1))
    merging.cycle()

    assert merging.moments[LiveWindow.HOUR].as_of == START
    assert merging.moments[LiveWindow.HOUR].window == LiveWindow.HOUR.at(START)


def test_while_a_boundary_passes_between_partitions_the_charts_stay_for_5_seconds_at_most() -> None:
    """Ten seconds pass for one of them; the minute's span is another one, and the hour's is not."""
    edge = datetime.fromisoformat("2026-11-15T00:01:39Z")
    joined = merger(2)
    joined.cycle({n: said({f"i{n}": 5}, kind=LiveWindow.MINUTE, at=edge) for n in range(2)}, {})
    between = joined.cycle({0: said({"i0": 6}, kind=LiveWindow.MINUTE, at=edge + 2 * SECOND)}, {})
    after = joined.cycle({0: said({"i0": 7}, kind=LiveWindow.MINUTE, at=edge + MOST_LAG + SECOND)}, {})

    assert between.charts == {}
    assert between.moments[LiveWindow.MINUTE].as_of == edge
    chart = after.charts[LiveWindow.MINUTE, "*"]
    assert chart is not None
    assert chart.top.rows[0].lower == 7
    assert [one.lack for one in after.moments[LiveWindow.MINUTE].partial] == [Lack.LAGGING]


def test_the_first_charts_do_not_wait_for_a_boundary_to_pass() -> None:
    edge = AT.replace(second=59)
    found = merger(2).cycle({0: said({"a": 5}, at=edge), 1: said({"b": 3}, at=edge + 2 * SECOND)}, {})

    chart = found.charts[LiveWindow.HOUR, "*"]
    assert chart is not None
    assert [row.item_id for row in chart.top.rows] == ["a", "b"]
    (lack,) = found.moments[LiveWindow.HOUR].partial
    assert (lack.partition, lack.lack, lack.window) == (0, Lack.LAGGING, LiveWindow.HOUR.at(edge))
    assert found.moments[LiveWindow.DAY].partial != []
    assert found.moments[LiveWindow.DAY].window == LiveWindow.DAY.at(edge + 2 * SECOND)


def test_a_state_that_began_after_the_window_says_from_when_it_is_complete() -> None:
    began = AT - timedelta(minutes=30)
    moments = merger(1).cycle({0: said({"a": 1}, complete_from_ms=int(began.timestamp() * 1000))}, {}).moments

    (lack,) = moments[LiveWindow.HOUR].partial
    assert (lack.lack, lack.complete_from) == (Lack.INCOMPLETE, began)
    assert moments[LiveWindow.MINUTE].partial == []


def test_only_charts_of_changed_lists_are_made_anew_and_only_what_differs_is_returned() -> None:
    joined = merger(2)
    joined.cycle({0: said({"a": 5}), 1: said({"b": 3}, region="IN")}, {})
    same = joined.cycle({0: said({"a": 5}, at=AT + SECOND), 1: said({"b": 4}, region="IN", at=AT + SECOND)}, {})
    gone = joined.cycle({1: Said(status=status_of(AT + SECOND), changed={(LiveWindow.HOUR, "IN"): None})}, {})

    assert list(same.charts) == [(LiveWindow.HOUR, "IN")]
    assert gone.charts == {(LiveWindow.HOUR, "IN"): None}


def test_lists_that_are_read_anew_replace_all_that_was_known_of_their_partition() -> None:
    joined = merger(2)
    joined.cycle({0: said({"a": 5}), 1: said({"b": 3}, region="IN")}, {})
    fresh = said({"c": 1})
    found = joined.cycle({1: Said(status=fresh.status, changed=fresh.changed, anew=True)}, {})

    assert found.charts[LiveWindow.HOUR, "IN"] is None
    chart = found.charts[LiveWindow.HOUR, "*"]
    assert chart is not None
    assert [row.item_id for row in chart.top.rows] == ["a", "c"]


def test_rows_say_how_far_they_moved_since_the_minute_began() -> None:
    joined = merger(1)
    joined.cycle({0: said({"a": 5, "b": 3}, at=AT)}, {})
    later = AT + timedelta(minutes=1)
    first = joined.cycle({0: said({"a": 5, "b": 6, "c": 1}, at=later)}, {}).charts[LiveWindow.HOUR, "*"]
    second = joined.cycle({0: said({"a": 7, "b": 6, "c": 1}, at=later + SECOND)}, {}).charts[LiveWindow.HOUR, "*"]

    assert first is not None
    assert second is not None
    assert first.moved == {"b": 1, "a": -1}
    assert second.moved == {"a": 0, "b": 0}


def test_a_cut_that_hides_a_possible_row_is_asked_for_more_and_taken_back_when_it_is_not_needed() -> None:
    def cut_at(listed: int, *, items: int) -> Said:
        """A partition in which each of its items has 9 plays, and which lists some of them."""
        found = said({f"i{n:04}": 9 for n in range(listed)})
        ((name, full),) = found.changed.items()
        assert full is not None
        cut = Estimate(f"i{listed:04}", 0, 9) if items > listed else None
        return Said(
            status=found.status,
            changed={name: ChangedList(**{**{f: getattr(full, f) for f in full.__slots__}, "cut": cut})},
        )

    joined = Merger(partitions=1, partition_of=lambda items: [0 for _ in items], list_size=64)
    name = (LiveWindow.HOUR, "*")
    asked = joined.cycle({0: cut_at(64, items=500)}, {}).asks[0]
    assert asked == {name: CHART_ROWS + 28}
    kept = joined.cycle({0: cut_at(128, items=500)}, {})
    assert kept.asks[0] == {name: 128}
    assert kept.charts[name] is not None
    assert joined.cycle({0: cut_at(60, items=60)}, {}).asks[0] == {}
