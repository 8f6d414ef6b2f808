"""Wall clocks to UTC: exact around the nights when a zone's clock jumps."""

from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from importlib import resources
from zoneinfo import ZoneInfo

import numpy as np

from domain.errors import BadRequestError
from ingest.verdicts import Int64s, Mask

_WALL_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  a reading of a wall clock has no zone
_MICROSECOND = timedelta(microseconds=1)
_HOUR_US = 3_600_000_000


class Ambiguous(StrEnum):
    """What is done with a local time that the clock showed twice."""

    REFUSE = "refuse"
    EARLIER = "earlier"
    LATER = "later"


class UnknownZoneError(BadRequestError):
    """`--time-zone` names no zone of the IANA database."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"there is no time zone {self.name!r}: use a name of the IANA database, such as UTC or America/New_York"


@cache
def locked_zone(name: str) -> ZoneInfo:
    """Return a zone of the locked `tzdata` package.

    `ZoneInfo(name)` would take the system's database first, and the same file could be read differently on
    another machine or after an upgrade of the system.

    Raises:
        UnknownZoneError: the package has no zone of this name.
    """
    package = resources.files("tzdata")
    if name not in package.joinpath("zones").read_text(encoding="utf-8").splitlines():
        raise UnknownZoneError(name)
    with package.joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


class LocalZone:
    """One zone's wall clock.

    Most hours of a wall clock have one offset; it is looked up once for each hour and kept. The few hours in
    which an offset changes are resolved reading by reading.
    """

    def __init__(self, name: str, ambiguous: Ambiguous = Ambiguous.REFUSE) -> None:
        """Raises: UnknownZoneError."""
        self._zone = locked_zone(name)
        self._ambiguous = ambiguous
        self._offset_of_hour: dict[int, int | None] = {}  # microseconds; None = it changes within the hour

    def to_utc(self, wall_us: Int64s) -> tuple[Int64s, Mask, Mask]:
        """Return moments, which readings never were (skipped), and which were twice and are refused.

        Args:
            wall_us: Readings of the clock, microseconds since 1970 on that clock, within the years 2 to 9998.

        Returns:
            Microseconds since 1970 UTC (meaningless where refused), skipped readings, ambiguous readings.
        """
        hours, place = np.unique(wall_us // _HOUR_US, return_inverse=True)
        offsets = [self._offset(int(hour)) for hour in hours]
        steady = np.array([offset is not None for offset in offsets], dtype=np.bool_)[place]
        us = wall_us - np.array([offset or 0 for offset in offsets], dtype=np.int64)[place]
        nonexistent: Mask = np.zeros(len(us), dtype=np.bool_)
        ambiguous = nonexistent.copy()
        for row in np.flatnonzero(~steady):
            first, second = self._both_offsets(int(wall_us[row]))
            nonexistent[row] = first < second  # PEP 495: in a gap the earlier fold has the smaller offset
            ambiguous[row] = first > second and self._ambiguous is Ambiguous.REFUSE
            us[row] = wall_us[row] - (second if self._ambiguous is Ambiguous.LATER else first)
        return us, nonexistent, ambiguous

    def _offset(self, hour: int) -> int | None:
        if hour not in self._offset_of_hour:
            ends = (hour * _HOUR_US, (hour + 1) * _HOUR_US - 1)
            offsets = {offset for end in ends for offset in self._both_offsets(end)}
            self._offset_of_hour[hour] = offsets.pop() if len(offsets) == 1 else None
        return self._offset_of_hour[hour]

    def _both_offsets(self, wall_us: int) -> tuple[int, int]:
        """Return the offsets to UTC, in microseconds, of a reading's first and second showing."""
        wall = (_WALL_EPOCH + wall_us * _MICROSECOND).replace(tzinfo=self._zone)
        first, second = (wall.replace(fold=fold).utcoffset() for fold in (0, 1))
        return (first or timedelta()) // _MICROSECOND, (second or timedelta()) // _MICROSECOND
