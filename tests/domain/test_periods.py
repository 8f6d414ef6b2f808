"""Periods of boards: whatever the moment, exactly one of each kind, and its key finds it again."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.periods import ALL_TIME, Period, PeriodKind, period_at, period_named

pytestmark = pytest.mark.fast

PLAIN = [kind for kind in PeriodKind if kind is not PeriodKind.SEASON]
ZONES = st.sampled_from([UTC, timezone(timedelta(hours=5.5))])
MOMENTS = st.builds(
    lambda seconds, zone: datetime(1900, 1, 2, tzinfo=zone) + timedelta(seconds=seconds),
    st.integers(0, 250_000_000_000),
    ZONES,
)


@given(MOMENTS, st.sampled_from(PLAIN))
def test_a_moment_lies_in_its_period_whose_key_finds_it_again(moment: datetime, kind: PeriodKind) -> None:
    found = period_at(kind, moment)

    assert found.contains(moment)
    assert period_named(found.key) == found
    assert found.kind is kind
    if found.start is not None and found.end is not None:
        assert period_at(kind, found.start) == found
        assert period_at(kind, found.end - timedelta(microseconds=1)) == found
        assert period_at(kind, found.end).start == found.end
        assert (found.start.hour, found.start.utcoffset()) == (0, timedelta(0))


@pytest.mark.parametrize(
    ("moment", "keys"),
    [
        ("2026-11-14T12:00:00Z", ["daily:2026-11-14", "weekly:2026-W46", "monthly:2026-11"]),
        ("2020-12-31T23:59:59.999999Z", ["daily:2020-12-31", "weekly:2020-W53", "monthly:2020-12"]),
        ("2021-01-03T23:59:59Z", ["daily:2021-01-03", "weekly:2020-W53", "monthly:2021-01"]),
        ("2021-01-04T00:00:00Z", ["daily:2021-01-04", "weekly:2021-W01", "monthly:2021-01"]),
        ("2024-12-30T00:00:00Z", ["daily:2024-12-30", "weekly:2025-W01", "monthly:2024-12"]),
        ("2024-02-29T23:30:00-01:00", ["daily:2024-03-01", "weekly:2024-W09", "monthly:2024-03"]),
    ],
)
def test_keys_worked_by_hand(moment: str, keys: list[str]) -> None:
    at = datetime.fromisoformat(moment)
    assert [period_at(kind, at).key for kind in PLAIN] == ["all_time", *keys]


def test_a_week_begins_on_monday() -> None:
    week = period_named("weekly:2026-W46")
    assert week == Period("weekly:2026-W46", datetime(2026, 11, 9, tzinfo=UTC), datetime(2026, 11, 16, tzinfo=UTC))


@pytest.mark.parametrize(
    "key",
    ["", "hourly:2026-11-14", "daily:2026-02-30", "daily:2026-2-3", "weekly:2021-W53", "weekly:2026-W00",
     "monthly:2026-13", "monthly:2026-11-14", "daily", "all_time:", "season:nobody", "daily:٢٠٢٦-11-14"],
)  # fmt: skip
def test_what_is_no_period_has_none(key: str) -> None:
    assert period_named(key) is None


def test_all_time_has_no_ends_and_seasons_are_found_by_name() -> None:
    spring = Period("season:spring", datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC))
    assert ALL_TIME.contains(datetime.min.replace(tzinfo=UTC))
    assert period_named("season:spring", [spring]) is spring
    with pytest.raises(ValueError, match="data of their game"):
        period_at(PeriodKind.SEASON, datetime(2026, 1, 1, tzinfo=UTC))
