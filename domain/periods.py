"""Periods of boards and their keys: which day, ISO week, month or season a moment belongs to, in UTC.

    all_time   daily:2026-11-14   weekly:2026-W46   monthly:2026-11   season:spring

A period is `[start, end)`. Weeks are those of ISO 8601: they begin on Monday, and the first of a year is the one with
its first Thursday, so the last days of December may belong to week 1 of the next year.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Final

from domain.windows import DAY

_DAY = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_WEEK = re.compile(r"([0-9]{4})-W([0-9]{2})")
_MONTH = re.compile(r"([0-9]{4})-([0-9]{2})")
_WEEK_DAYS = timedelta(days=7)
_DECEMBER = 12


class PeriodKind(StrEnum):
    """How long a board counts before it starts anew."""

    ALL_TIME = "all_time"
    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"
    SEASON = "season"


@dataclass(frozen=True, slots=True)
class Period:
    """One period.

    Attributes:
        key: Its name for ever.
        start: UTC, included; None = it has no beginning.
        end: UTC, excluded; None = it never ends.
    """

    key: str
    start: datetime | None
    end: datetime | None

    def contains(self, moment: datetime) -> bool:
        """Say whether a moment belongs to it."""
        return (self.start is None or self.start <= moment) and (self.end is None or moment < self.end)

    @property
    def kind(self) -> PeriodKind:
        """How long it is."""
        return PeriodKind(self.key.partition(":")[0])


ALL_TIME: Final = Period(PeriodKind.ALL_TIME.value, None, None)


def period_at(kind: PeriodKind, moment: datetime) -> Period:
    """Return the period of a kind that a moment belongs to.

    Args:
        kind: Any but `SEASON`, whose periods are data.
        moment: Timezone-aware.

    Raises:
        ValueError: of a season.
    """
    return _period_of(kind, moment.astimezone(UTC).date())


@lru_cache(1024)  # the scores of a day ask for the same few
def _period_of(kind: PeriodKind, day: date) -> Period:
    match kind:
        case PeriodKind.ALL_TIME:
            return ALL_TIME
        case PeriodKind.DAILY:
            return _daily(day)
        case PeriodKind.WEEKLY:
            return _weekly(day - timedelta(days=day.weekday()))
        case PeriodKind.MONTHLY:
            return _monthly(day.year, day.month)
        case PeriodKind.SEASON:
            message = "the periods of seasons are data of their game"
            raise ValueError(message)


def period_named(key: str, seasons: Sequence[Period] = ()) -> Period | None:
    """Return the period of a full key; None when there is no such one.

    Args:
        key: Such as `weekly:2026-W46`.
        seasons: Those of the game.
    """
    kind, _, name = key.partition(":")
    found: Period | None = None
    try:
        if key == ALL_TIME.key:
            found = ALL_TIME
        elif kind == PeriodKind.DAILY and (parts := _DAY.fullmatch(name)):
            found = _daily(date(*map(int, parts.groups())))
        elif kind == PeriodKind.WEEKLY and (parts := _WEEK.fullmatch(name)):
            found = _weekly(date.fromisocalendar(int(parts[1]), int(parts[2]), 1))
        elif kind == PeriodKind.MONTHLY and (parts := _MONTH.fullmatch(name)):
            found = _monthly(int(parts[1]), int(parts[2]))
        elif kind == PeriodKind.SEASON:
            found = next((season for season in seasons if season.key == key), None)
    except (ValueError, OverflowError):  # there is no such day, week or month
        return None
    return found


def _daily(day: date) -> Period:
    start = _midnight(day)
    return Period(f"{PeriodKind.DAILY.value}:{day.isoformat()}", start, start + DAY)


def _weekly(monday: date) -> Period:
    year, week, _ = monday.isocalendar()
    start = _midnight(monday)
    return Period(f"{PeriodKind.WEEKLY.value}:{year:04d}-W{week:02d}", start, start + _WEEK_DAYS)


def _monthly(year: int, month: int) -> Period:
    after = date(year + 1, 1, 1) if month == _DECEMBER else date(year, month + 1, 1)
    key = f"{PeriodKind.MONTHLY.value}:{year:04d}-{month:02d}"
    return Period(key, _midnight(date(year, month, 1)), _midnight(after))


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)
