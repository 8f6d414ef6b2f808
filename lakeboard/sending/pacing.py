"""When each row is to be sent. Pure: rows in, seconds since the start out; who waits is `sending/sender.py`."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ingest.verdicts import Int64s

TICK_SECONDS = 0.1  # rows that are due within one tick go out together
_SECOND_US = 1e6

Seconds = npt.NDArray[np.float64]


class Pace(Protocol):
    """Says when rows are due."""

    def due(self, times_us: Int64s) -> Seconds:
        """Return when the next rows are due, in seconds since the start, never falling.

        Args:
            times_us: Their event times, microseconds since 1970 UTC.
        """


class FullSpeed:
    """Every row is due at once."""

    def due(self, times_us: Int64s) -> Seconds:
        """Return zeros."""
        return np.zeros(len(times_us))


@dataclass(slots=True)
class AtRate:
    """So many rows a second, evenly."""

    events_per_second: float
    rows: int = 0

    def due(self, times_us: Int64s) -> Seconds:
        """Return the places of the rows in the row of all, as seconds."""
        places = np.arange(self.rows, self.rows + len(times_us))
        self.rows += len(times_us)
        return places / self.events_per_second


@dataclass(slots=True)
class AtSpeed:
    """The gaps of event time, so many times as fast. A row older than one before it is due together with that."""

    speed: float
    first_us: int | None = None
    newest_us: int = 0

    def due(self, times_us: Int64s) -> Seconds:
        """Return the distance of each row, or of the newest before it, from the first one."""
        if not len(times_us):
            return np.zeros(0)
        if self.first_us is None:
            self.first_us = self.newest_us = int(times_us[0])
        newest = np.maximum(np.maximum.accumulate(times_us), self.newest_us)
        self.newest_us = int(newest[-1])
        seconds: Seconds = (newest - self.first_us) / (_SECOND_US * self.speed)
        return seconds


def pace_of(*, rate: float | None, speed: float | None) -> Pace:
    """Return the pace that was asked for."""
    if rate is not None:
        return AtRate(rate)
    return FullSpeed() if speed is None else AtSpeed(speed)


@dataclass(frozen=True, slots=True)
class Cut:
    """Rows that go out together: from `start`, included, to `stop`, excluded, at `due` seconds since the start."""

    start: int
    stop: int
    due: float


def cuts(due: Seconds, most: int) -> Iterator[Cut]:
    """Cut rows into requests: all of one tick, and never more than `most`.

    Each is sent at the moment at which its last row is due, so that no row goes out early.
    """
    ticks = np.floor(due / TICK_SECONDS)
    edges = [0, *(np.flatnonzero(np.diff(ticks)) + 1).tolist(), len(due)]
    for first, end in pairwise(edges):
        for start in range(first, end, most):
            stop = min(start + most, end)
            yield Cut(start, stop, float(due[stop - 1]))
