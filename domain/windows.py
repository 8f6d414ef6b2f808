"""Windows: spans of event time, `[start, end)`, in UTC."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import Enum
from typing import Self

from domain.errors import BadRequestError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


class Granularity(Enum):
    """Width of a closed window, with the name users write for it."""

    HOUR = "1h"
    DAY = "1d"

    @property
    def width(self) -> timedelta:
        """Exact length; a day is a UTC day of 24 hours."""
        return HOUR if self is Granularity.HOUR else DAY


class UnalignedWindowError(BadRequestError):
    """A window was asked for that does not start on its grid."""

    def __init__(self, start: datetime, granularity: Granularity) -> None:
        super().__init__(start, granularity)
        self.start = start
        self.granularity = granularity

    def __str__(self) -> str:
        aligned = Window.containing(self.start, self.granularity).start
        return (
            f"a {self.granularity.value} window cannot start at {self.start.isoformat()}: "
            f"windows start on whole UTC {self.granularity.name.lower()}s, the nearest before is {aligned.isoformat()}"
        )


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """A span of event time: `start` included, `end` excluded, both UTC and timezone-aware.

    Raises:
        ValueError: an end without time zone, or an end that is not after its start.
    """

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if self.start.tzinfo is None or self.end.tzinfo is None:
            message = "a window needs timezone-aware ends"
            raise ValueError(message)
        if self.end <= self.start:
            message = f"a window ends after it starts, not {self.start.isoformat()} .. {self.end.isoformat()}"
            raise ValueError(message)

    @classmethod
    def containing(cls, event_time: datetime, granularity: Granularity) -> Self:
        """Return the one window of this width that an event falls into.

        Args:
            event_time: When the event happened, not when it reached us. Timezone-aware.
            granularity: Width. Windows start at whole multiples of it since the Unix epoch, so an event at
                exactly 01:00 opens hour 1, also before 1970.

        Raises:
            ValueError: `event_time` has no timezone.

        Source: fixed windows in Akidau et al., "The Dataflow Model", VLDB 2015, section 1.2.
        """
        if event_time.tzinfo is None:
            message = "event_time needs a timezone"
            raise ValueError(message)
        start = EPOCH + (event_time - EPOCH) // granularity.width * granularity.width
        return cls(start, start + granularity.width)

    @classmethod
    def starting(cls, start: datetime, granularity: Granularity) -> Self:
        """Return the window that starts here.

        Raises:
            UnalignedWindowError: `start` is not on the grid of this granularity.
        """
        window = cls.containing(start, granularity)
        if window.start != start:
            raise UnalignedWindowError(start, granularity)
        return window

    @classmethod
    def of_day(cls, day: date) -> Self:
        """Return the UTC day."""
        start = datetime.combine(day, time(), tzinfo=UTC)
        return cls(start, start + DAY)

    def contains(self, moment: datetime) -> bool:
        """Say whether `start <= moment < end`."""
        return self.start <= moment < self.end

    def hours(self) -> Iterator[datetime]:
        """Yield the starts of the whole UTC hours that overlap this window, in order."""
        hour = Window.containing(self.start, Granularity.HOUR).start
        while hour < self.end:
            yield hour
            hour += HOUR


def hour_of(day: date, hour: int) -> datetime:
    """Return the start of one UTC hour as a moment: the inverse of (`event_date`, `event_hour`)."""
    return datetime.combine(day, time(hour), tzinfo=UTC)


def milliseconds(moment: datetime) -> int:
    """Return whole milliseconds since 1970 UTC."""
    return (moment - EPOCH) // timedelta(milliseconds=1)


def floor_hour(moment: datetime) -> datetime:
    """Return the start of the UTC hour that holds this moment."""
    return Window.containing(moment, Granularity.HOUR).start
