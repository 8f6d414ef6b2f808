"""The one place that reads the clock; everything else is handed a `Clock`."""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the present moment in UTC, timezone-aware, to the microsecond."""
    return datetime.now(UTC)
