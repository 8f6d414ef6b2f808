"""Finds what is new in bronze, which events are copies, and so which hours have to be counted again."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from domain.releases import Release
from domain.rules import changed_spans
from domain.tables import HOURLY_COUNTS, LEFT_OUT, PLAYS
from domain.windows import EPOCH
from jobs.bronze import Bronze
from jobs.lake import Lake, Part
from jobs.plan import Plan
from jobs.touched import Touched
from pipelines.copies import changed_copies, copies_left_out, repeated_hashes
from pipelines.hours import Hour
from pipelines.schemas import spark_schema

# Up to so many new events their hashes go to every task; beyond, one pass over all hashes is cheaper.
FEW_EVENTS = 1_000_000


@dataclass(frozen=True, slots=True)
class New:
    """Rows of bronze that no release has counted.

    Attributes:
        part: The rows, `Plan.is_new` holds for each.
        rows: Their number by hour.
        first: When the first of them was ingested, UTC; None without any.
    """

    part: Part
    rows: Mapping[Hour, int]
    first: datetime | None


@dataclass(frozen=True, slots=True)
class Copies:
    """Events that share an id with a new one.

    Attributes:
        candidates: Rows of bronze that may be copies of each other.
        remembered: What the last release left out among them.
        decided: The `silver/left_out` row of each that loses now.
    """

    candidates: DataFrame
    remembered: DataFrame
    decided: DataFrame


class Finder:
    """Asks bronze for one plan."""

    def __init__(self, lake: Lake, plan: Plan, bronze: Bronze) -> None:
        self.lake = lake
        self.plan = plan
        self.bronze = bronze

    def new(self) -> New:
        """Find new rows by their writers' positions."""
        part = self.bronze.may_be_after(self.plan.advances).where(self.plan.is_new())
        self.lake.pace.suit(part.rows)
        first = F.min(F.unix_micros("ingested_at")).alias("first")
        found = part.frame.groupBy("event_date", "event_hour").agg(F.count("*").alias("rows"), first).collect()
        micros = min((row["first"] for row in found), default=None)
        rows = {(row["event_date"], row["event_hour"]): row["rows"] for row in found}
        return New(part, rows, None if micros is None else EPOCH + timedelta(microseconds=micros))

    def copies(self, new: New) -> Copies:
        """Find the events that share an id with a new one, and judge them."""
        candidates = self.lake.keep(self._candidates(new))
        remembered = self.lake.keep(self._remembered(candidates))
        return Copies(candidates, remembered, self.lake.keep(copies_left_out(candidates, remembered)))

    def touched(self, new: New, copies: Copies) -> Touched:
        """Return the hours that have to be counted again."""
        newest, hours = self.plan.newest, frozenset(new.rows)
        if newest is None:
            return Touched(with_new_events=hours)
        copied = frozenset() if self.plan.full else _hours(changed_copies(copies.decided, copies.remembered))
        return Touched(
            certifying=self.plan.certifying,
            with_new_events=hours,
            with_other_rules=self._hours_with_other_rules(newest),
            with_other_copies=copied,
            with_other_policy=self._counted_hours() if self.plan.has_other_policy else frozenset(),
            asked_for=_hours(self.bronze.all().frame) if self.plan.full else frozenset(),
        )

    def _candidates(self, new: New) -> DataFrame:
        """Rows of bronze that share their id's hash with another one, at least one of them new."""
        if self.plan.full or self.plan.newest is None:
            everything = self.bronze.all()
            self.lake.pace.suit(everything.rows)
            return self._repeated(everything.frame, F.lit(True))
        if new.first is None:
            return self.lake.frame([], spark_schema(PLAYS))
        within = self.bronze.ingested_since(new.first - self.plan.policy.dedup_horizon)
        self.lake.pace.suit(within.rows + new.part.rows)
        searched = within.frame
        if self.plan.new_events <= FEW_EVENTS:
            hashes = self._everywhere(new.part.frame.select("id_hash").distinct())
            searched = searched.join(hashes, on="id_hash", how="left_semi")
        return self._repeated(searched, self.plan.is_new())

    def _repeated(self, searched: DataFrame, is_new: Column) -> DataFrame:
        hashes = repeated_hashes(searched, is_new)
        if not self.lake.pace.quick:
            hashes = self.lake.keep(hashes)
            hashes = self._everywhere(hashes) if hashes.count() <= FEW_EVENTS else hashes
        return searched.join(hashes, on="id_hash", how="left_semi")

    def _everywhere(self, hashes: DataFrame) -> DataFrame:
        """Send few hashes to every task; where there is but one task, they are there."""
        return hashes if self.lake.pace.quick else F.broadcast(hashes)

    def _remembered(self, candidates: DataFrame) -> DataFrame:
        """What the last release says of these ids; a full recount judges from bronze alone."""
        before = self.lake.part(self.lake.files(LEFT_OUT).where(lambda folder: not self.plan.full))
        same_hash = before.frame.join(candidates.select("id_hash").distinct(), on="id_hash", how="left_semi")
        return same_hash.join(candidates.select("event_id").distinct(), on="event_id", how="left_semi")

    def _hours_with_other_rules(self, newest: Release) -> frozenset[Hour]:
        hours: frozenset[Hour] = frozenset()
        for span in changed_spans(newest.rules, self.plan.rules):
            part = self.bronze.of_days(span.start.date(), span.end.date())
            self.lake.pace.suit(part.rows)
            within = (F.col("event_time") >= F.lit(span.start)) & (F.col("event_time") < F.lit(span.end))
            hours |= _hours(part.frame.where(within))
        return hours

    def _counted_hours(self) -> frozenset[Hour]:
        """Every hour that has events: each has a folder."""
        folders = [file.says for file in self.lake.files(HOURLY_COUNTS).files]
        return frozenset((folder["event_date"], folder["event_hour"]) for folder in folders)


def _hours(rows: DataFrame) -> frozenset[Hour]:
    found = rows.select("event_date", "event_hour").distinct().collect()
    return frozenset((row["event_date"], row["event_hour"]) for row in found)
