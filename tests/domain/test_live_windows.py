"""Live windows cover at least their length, say exactly what, and slide without holes."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.live_windows import LiveWindow
from domain.windows import EPOCH, Window

pytestmark = pytest.mark.fast

moments = st.datetimes(datetime(1969, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 given a zone
kinds = st.sampled_from(LiveWindow)


def at(hour: int, minute: int, second: float = 0) -> datetime:
    return datetime(2026, 11, 14, tzinfo=UTC) + timedelta(hours=hour, minutes=minute, seconds=second)


@given(kinds, moments)
def test_a_live_window_covers_its_length_and_ends_within_a_grain_of_now(kind: LiveWindow, as_of: datetime) -> None:
    window = kind.at(as_of)

    assert window.start <= as_of - kind.length < window.start + kind.step
    assert as_of <= window.end < as_of + kind.grain
    assert (window.start - EPOCH) % kind.step == timedelta(0)
    assert (window.end - EPOCH) % kind.grain == timedelta(0)


@given(kinds, moments, st.timedeltas(timedelta(0), timedelta(hours=2)))
def test_time_moves_both_ends_forward_only_and_leaves_no_hole(
    kind: LiveWindow, as_of: datetime, later: timedelta
) -> None:
    one, other = kind.at(as_of), kind.at(as_of + later)

    assert one.start <= other.start
    assert one.end <= other.end
    assert later > kind.length or other.start <= one.end


@pytest.mark.parametrize(
    ("kind", "as_of", "start", "end"),
    [
        (LiveWindow.HOUR, at(24, 1), at(23, 1), at(24, 1)),
        (LiveWindow.HOUR, at(24, 1, 0.000001), at(23, 1), at(24, 2)),
        (LiveWindow.MINUTE, at(9, 0, 34), at(8, 59, 30), at(9, 0, 40)),
        (LiveWindow.MINUTE, at(9, 0), at(8, 59), at(9, 0)),
        (LiveWindow.DAY, at(33, 17, 5), at(9, 0), at(33, 18)),
    ],
)
def test_ends_worked_by_hand(kind: LiveWindow, as_of: datetime, start: datetime, end: datetime) -> None:
    assert kind.at(as_of) == Window(start, end)


def test_a_moment_needs_a_time_zone() -> None:
    with pytest.raises(ValueError, match="timezone"):
        LiveWindow.HOUR.at(datetime(2026, 11, 14))  # noqa: DTZ001 what is refused
