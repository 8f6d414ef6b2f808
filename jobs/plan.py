"""What a recount starts from and what it is to make."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pyspark.sql import Column
from pyspark.sql import functions as F

from domain.policy import Policy
from domain.position import BronzePosition
from domain.releases import Release, counted_position
from domain.rules import Rules
from domain.windows import HOUR, hour_of
from ingest.read_hours import hours_in_state
from pipelines.hour_states import PROVISIONAL
from pipelines.hours import Hour


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a recount starts from and what it is to make; times UTC, `frontier` exclusive.

    `certifying` are hours that the last release knew as provisional and that end before the frontier now.
    """

    newest: Release | None
    position: BronzePosition
    release: int
    frontier: datetime
    rules: Rules
    policy: Policy
    full: bool
    cause: str | None
    certifying: frozenset[Hour]

    @property
    def new_events(self) -> int:
        """Rows of bronze that no release has counted, by file statistics."""
        return self.position.events - counted_position(self.newest).events

    @property
    def advances(self) -> dict[str, int]:
        """Writers that moved since the last release, with the transaction they had then.

        A writer that moved without new rows still has to be looked at: a lost commit may hide behind it.
        """
        return self.position.advances(counted_position(self.newest))

    @property
    def has_other_policy(self) -> bool:
        """Say whether the last release was made under another policy; it keeps no values, so all of it may differ."""
        return self.newest is not None and self.newest.policy_fingerprint != self.policy.fingerprint()

    def is_new(self) -> Column:
        """Return the condition under which a row of bronze has not been counted by any release."""
        condition = F.lit(False)
        for writer, seq in self.advances.items():
            condition = condition | ((F.col("writer") == F.lit(writer)) & (F.col("writer_seq") > F.lit(seq)))
        return condition


def committed_by(position: BronzePosition) -> Column:
    """Return the condition under which a row of bronze belongs to a position: its writer's last one, or an earlier."""
    if not position.writers:
        return F.lit(False)
    last = F.create_map(*(F.lit(value) for pair in sorted(position.writers.items()) for value in pair))
    return F.col("writer_seq") <= F.coalesce(F.try_element_at(last, F.col("writer")), F.lit(-1))


def certifying_hours(lake_root: Path, newest: Release, frontier: datetime) -> frozenset[Hour]:
    """Return the hours that a release knows as provisional and that end at or before a frontier; without Spark."""
    if frontier == newest.frontier:
        return frozenset()
    hours = hours_in_state(lake_root, newest, PROVISIONAL, since=newest.frontier.date())
    return frozenset(hour for hour in hours if hour_of(*hour) + HOUR <= frontier)
