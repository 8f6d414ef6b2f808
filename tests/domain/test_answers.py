from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.answers import ChartRow, chart_answer, hours_not_certified, iso, pieces, restated_back
from domain.policy import DEFAULT_POLICY
from domain.position import NOTHING_READ
from domain.ranking import Scored, ranked, tie_at_cut
from domain.releases import Release
from domain.rules import Rules
from domain.tables import MEASURES
from domain.windows import HOUR, Granularity, Window

pytestmark = pytest.mark.fast

MIDNIGHT = datetime(2026, 11, 14, tzinfo=UTC)


def at(hour: int) -> datetime:
    return MIDNIGHT + hour * HOUR


def release(number: int = 3, *, frontier: datetime = MIDNIGHT) -> Release:
    return Release(
        release=number, created_at=at(30), cause="test", frontier=frontier, position=NOTHING_READ, table_versions={},
        rules=Rules(), policy_fingerprint=DEFAULT_POLICY.fingerprint(), code_version="0", hours_touched=0, verdicts={},
    )  # fmt: skip


# --- charts ---


_ITEMS = st.text("abcé\U0001f3b5", min_size=1, max_size=3)


@given(counts=st.dictionaries(_ITEMS, st.integers(0, 4)), size=st.integers(1, 6), n=st.integers(1, 8))
def test_what_a_cut_chart_says_of_the_rest_holds(counts: dict[str, int], size: int, n: int) -> None:
    order = ranked(Scored(item, count) for item, count in counts.items())
    stored = [ChartRow(rank, s.item_id, s.event_count, sum(counts.values()), len(order), tie_at_cut(order, size))
              for rank, s in enumerate(order[:size], 1)]  # fmt: skip

    answer = chart_answer(stored[: n + 1], granularity=Granularity.HOUR, window=Window(at(0), at(1)), region="*",
                          release=release(), n=n)  # fmt: skip

    rest = [scored.event_count for scored in order[len(answer.rows) :]]
    assert [row.item_id for row in answer.rows] == [scored.item_id for scored in order[: min(n, size)]]
    assert answer.missed_max >= max(rest, default=0)
    assert answer.tie_at_cut == tie_at_cut(order, min(n, size))
    if n < size or not rest:
        assert answer.missed_max == max(rest, default=0)


@pytest.mark.parametrize(("frontier", "status"), [(at(0), "provisional"), (at(1), "final")])
def test_a_window_is_final_from_the_frontier_at_its_end_on(frontier: datetime, status: str) -> None:
    answer = chart_answer([], granularity=Granularity.HOUR, window=Window(at(0), at(1)), region="*",
                          release=release(frontier=frontier), n=1)  # fmt: skip

    assert (answer.body()["status"], answer.body()["exact"]) == (status, status == "final")


# --- counts ---

_SPANS = st.tuples(st.integers(-60, 60), st.integers(1, 100)).map(lambda s: Window(at(s[0]), at(s[0] + s[1])))


@given(span=_SPANS, certified=st.none() | st.frozensets(st.integers(-80, 180).map(at)))
def test_days_and_hours_cover_what_is_asked_once(span: Window, certified: frozenset[datetime] | None) -> None:
    split = pieces(span, certified)

    of_days = [hour for day in split.days for hour in Window.of_day(day).hours()]
    wanted = [hour for hour in span.hours() if certified is None or hour in certified]
    assert sorted([*of_days, *split.hours]) == wanted


@given(span=_SPANS, rows=st.dictionaries(st.integers(-60, 160).map(at), st.none() | st.integers(1, 5)),
       frontier=st.integers(-60, 160).map(at))  # fmt: skip
def test_each_hour_that_was_not_certified_is_counted_once(
    span: Window, rows: dict[datetime, int | None], frontier: datetime
) -> None:
    # A certified hour ends at or before the frontier of the release that certified it, as in every lake.
    known = {h: n if h + HOUR <= frontier else None for h, n in rows.items() if span.contains(h)}
    by_hand = [
        hour for hour in span.hours()
        if ((known[hour] or 9) > 3 if hour in known else hour + HOUR > frontier)
    ]  # fmt: skip

    assert hours_not_certified(span, known, release(3, frontier=frontier)) == len(by_hand)


def test_only_restatements_of_hours_that_count_are_taken_back() -> None:
    now = dict.fromkeys(MEASURES, 10)
    changes = [(at(0), "counted", 3), (at(0), "duplicates", -2), (at(1), "counted", 100)]

    then = restated_back(now, changes, frozenset([at(0)]))

    assert then == {"received": 10, "duplicates": 12, "conflicts": 10, "excluded": 10, "counted": 7}


def test_moments_are_written_in_utc_with_z() -> None:
    assert iso(MIDNIGHT + timedelta(microseconds=5)) == "2026-11-14T00:00:00.000005Z"
