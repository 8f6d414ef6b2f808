"""Which hours a recount must compute again, and why."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from domain.windows import Granularity
from pipelines.hours import Hour

LATE_EVENT = "late_event"
LATE_DUPLICATE = "late_duplicate"
RULES_CHANGED = "rules_changed"
HOURS_OF_DAY = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """Hours by the reason for which they are computed again.

    Attributes:
        with_new_events: Bronze has rows there that no release has counted.
        with_other_rules: The counting rules changed for them.
        with_other_copies: A copy there was newly found, or its winner is another one now.
        with_other_policy: The policy changed, such as the size of charts.
        asked_for: Computed because somebody asked for a full recount.
        certifying: Their numbers stay, but they can be certified now.
    """

    with_new_events: frozenset[Hour] = field(default_factory=frozenset)
    with_other_rules: frozenset[Hour] = field(default_factory=frozenset)
    with_other_copies: frozenset[Hour] = field(default_factory=frozenset)
    with_other_policy: frozenset[Hour] = field(default_factory=frozenset)
    asked_for: frozenset[Hour] = field(default_factory=frozenset)
    certifying: frozenset[Hour] = field(default_factory=frozenset)

    @property
    def hours(self) -> frozenset[Hour]:
        """All whose numbers are computed again."""
        counted_otherwise = self.with_other_rules | self.with_other_copies | self.with_other_policy
        return self.with_new_events | counted_otherwise | self.asked_for

    @property
    def days(self) -> frozenset[date]:
        """The UTC days they lie in."""
        return frozenset(day for day, _ in self.hours)

    @property
    def days_of_states(self) -> frozenset[date]:
        """The UTC days in which an hour's numbers or its state may change."""
        return self.days | {day for day, _ in self.certifying}

    def causes(self, certified: Collection[Hour], *, said: str | None) -> Iterator[dict[str, Any]]:
        """Yield a row of `CAUSES` for each certified hour computed again, and for each day all of whose hours are.

        Args:
            certified: Hours that an earlier release certified.
            said: What the operator gave as cause; it replaces ours.
        """
        for day, hour in sorted(self.hours.intersection(certified)):
            yield _row(Granularity.HOUR, day, hour, said or self.cause_of_hour((day, hour)))
        for day in sorted(whole_days(certified) & self.days):
            yield _row(Granularity.DAY, day, 0, said or self.cause_of_day(day))

    def cause_of_hour(self, hour: Hour) -> str:
        """Say what may have changed this hour's numbers; new events outweigh new rules, those outweigh copies."""
        if hour in self.with_new_events:
            return LATE_EVENT
        return RULES_CHANGED if hour in self.with_other_rules else LATE_DUPLICATE

    def cause_of_day(self, day: date) -> str:
        """The weightiest cause of its hours."""
        causes = {self.cause_of_hour(hour) for hour in self.hours if hour[0] == day}
        return next(cause for cause in (LATE_EVENT, RULES_CHANGED, LATE_DUPLICATE) if cause in causes)


def _row(granularity: Granularity, day: date, hour: int, cause: str) -> dict[str, Any]:
    return {"window_length": granularity.value, "event_date": day, "event_hour": hour, "cause": cause}


def whole_days(hours: Iterable[Hour]) -> set[date]:
    """Return the days of which all 24 hours are given."""
    return {day for day, n in Counter(day for day, _ in set(hours)).items() if n == HOURS_OF_DAY}
