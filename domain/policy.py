"""The numbers that more than one part must agree on."""

import hashlib
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What counts as an event, a copy and a certified hour. Checked in `__post_init__`.

    Attributes:
        dedup_horizon: How far back, by ingestion, copies of a new event are searched. A full recount has no horizon.
        grace: How long after an hour's end late rows may still come before it can be certified.
        future_tolerance: How far an event's own clock may be ahead of ours.
        oldest_event: Events before it are refused, as no source of plays is that old.
        chart_size: Rows kept in a stored chart.
        max_count: Largest `count` of one event; sums of 2^23 such events still fit 64 bits.
    """

    dedup_horizon: timedelta = timedelta(days=35)
    grace: timedelta = timedelta(minutes=10)
    future_tolerance: timedelta = timedelta(minutes=5)
    oldest_event: datetime = datetime(1900, 1, 1, tzinfo=UTC)
    chart_size: int = 1000
    max_count: int = 2**40

    def __post_init__(self) -> None:
        if self.chart_size < 1:
            message = f"chart_size must be at least 1, not {self.chart_size}"
            raise ValueError(message)
        if min(self.dedup_horizon, self.grace, self.future_tolerance) < timedelta(0):
            message = "dedup_horizon, grace and future_tolerance must not be negative"
            raise ValueError(message)

    def fingerprint(self) -> str:
        """Return 16 hex digits that change with any value above."""
        return hashlib.sha256(repr(sorted(asdict(self).items())).encode()).hexdigest()[:16]


DEFAULT_POLICY = Policy()
