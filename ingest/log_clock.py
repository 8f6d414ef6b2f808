"""What stamps entries of the log: the server's own clock, or in a replay a clock that starts elsewhere and runs faster.

A replay is for tests and demonstrations: old events can be played as if they happened now.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from domain.clock import Clock, utc_now
from domain.windows import milliseconds

_SERVER_STAMPS = "*"


class EntryClock(Protocol):
    """Stamps entries and says what time it is for the log."""

    def new_id(self) -> str:
        """Return the id that XADD is given."""

    def of_server(self, moment: datetime) -> datetime:
        """Return the log's time at a moment of the server's clock, UTC."""


@dataclass(frozen=True, slots=True)
class ServerClock:
    """The server's clock: never goes back within a partition, whatever the machine's clock does."""

    def new_id(self) -> str:
        """Let the server stamp."""
        return _SERVER_STAMPS

    def of_server(self, moment: datetime) -> datetime:
        """Return it as it is."""
        return moment


ENTRY_CLOCK_NOW = ServerClock()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayClock:
    """A clock that showed `start` when the real one showed `began`, and runs `speed` times as fast.

    All processes of a replay stack are given the same three, so they agree to the millisecond.
    """

    start: datetime
    began: datetime
    speed: float
    real: Clock = utc_now

    def new_id(self) -> str:
        """Stamp by this clock; the server counts within the millisecond, and refuses one that went back."""
        return f"{milliseconds(self.now())}-*"

    def of_server(self, moment: datetime) -> datetime:
        """Return what this clock shows at a moment of the real one."""
        return self.start + (moment - self.began) * self.speed

    def now(self) -> datetime:
        """Return what this clock shows now, UTC."""
        return self.of_server(self.real())
