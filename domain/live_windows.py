"""Live windows: which span of event time "the last minute, hour, day" means at a moment of the log's time."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from domain.windows import DAY, EPOCH, HOUR, Window

MINUTE = timedelta(minutes=1)
TEN_SECONDS = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class _Span:
    length: timedelta
    grain: timedelta
    step: timedelta


class LiveWindow(Enum):
    """A window that slides with the log's time, by the name users write for it."""

    MINUTE = "1m"
    HOUR = "1h"
    DAY = "1d"

    @property
    def length(self) -> timedelta:
        """What it covers at least."""
        return _SPANS[self].length

    @property
    def grain(self) -> timedelta:
        """What its end is rounded up to; the width of the finest buckets that it is a sum of."""
        return _SPANS[self].grain

    @property
    def step(self) -> timedelta:
        """What its start moves by."""
        return _SPANS[self].step

    def at(self, as_of: datetime) -> Window:
        """Return the span, start included, end excluded.

        The start is `as_of` rounded down to the step, less the length. The end is `as_of` rounded up to the grain:
        senders' clocks may run ahead, and a play dated within the grain belongs to "now". At a moment on the grid
        of the grain the end is that moment, so a play dated exactly then is in the next window only.

        Args:
            as_of: Log time read so far, UTC, timezone-aware.

        Raises:
            ValueError: `as_of` has no timezone.
        """
        if as_of.tzinfo is None:
            message = "as_of needs a timezone"
            raise ValueError(message)
        return Window(_floor(as_of, self.step) - self.length, _ceiling(as_of, self.grain))


_SPANS = {
    LiveWindow.MINUTE: _Span(MINUTE, grain=TEN_SECONDS, step=TEN_SECONDS),
    LiveWindow.HOUR: _Span(HOUR, grain=MINUTE, step=MINUTE),
    LiveWindow.DAY: _Span(DAY, grain=MINUTE, step=HOUR),
}


def _floor(moment: datetime, width: timedelta) -> datetime:
    return EPOCH + (moment - EPOCH) // width * width


def _ceiling(moment: datetime, width: timedelta) -> datetime:
    return EPOCH - (EPOCH - moment) // width * width
