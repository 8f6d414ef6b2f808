"""Computes everything a release would publish, without publishing it."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from domain.table import Table
from domain.tables import CHARTS, DAILY_COUNTS, HOURLY_COUNTS, HOURS, LEFT_OUT, RESTATEMENTS
from jobs.bronze import Bronze
from jobs.finding import Copies, Finder
from jobs.lake import Lake, Part
from jobs.plan import Plan
from jobs.touched import Touched
from pipelines.by_window import by_window
from pipelines.charts import changed_charts, charts, released_charts, superseded_charts, windowed_counts
from pipelines.counts import changed_hours, daily_counts, hourly_counts
from pipelines.exclusions import excluded_left_out
from pipelines.hour_states import HOUR_KEYS, hour_states
from pipelines.hours import Folders, folders_of_charts, folders_of_days, folders_of_hours, without_hours
from pipelines.restatements import CAUSES, restatements
from pipelines.schemas import spark_schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The folders that a recount replaces or looks at."""

    hours: Folders
    days: Folders
    charts: Folders
    states: Folders

    @classmethod
    def of(cls, touched: Touched) -> "Span":
        """Return the folders of the hours that are computed again, and of what is made of them."""
        return cls(
            hours=folders_of_hours(touched.hours),
            days=folders_of_days(touched.days),
            charts=folders_of_charts(touched.hours),
            states=folders_of_days(touched.days_of_states),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What the span holds: the rows of bronze, and what the last release says. Nobody else commits meanwhile."""

    plays: DataFrame
    left_out: DataFrame
    hourly: DataFrame
    other_hours: DataFrame
    daily: DataFrame
    charts: DataFrame
    states: DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """Frames of one recount; columns as in `domain/tables.py`. `new_rows`: found by their writers' positions."""

    touched: Touched
    new_rows: int
    span: Span
    candidates: DataFrame
    decided: DataFrame
    left_out: DataFrame
    hourly: DataFrame
    old_hourly: DataFrame
    hours_of_days: DataFrame
    daily: DataFrame
    counts: DataFrame
    windowed: DataFrame
    charts: DataFrame
    superseded: DataFrame
    states: DataFrame
    restatements: DataFrame


class Stager:
    """Builds the frames of one plan, step by step, over one lake."""

    def __init__(self, lake: Lake, plan: Plan, on_step: Callable[[str], None]) -> None:
        self.lake = lake
        self.plan = plan
        self.on_step = on_step
        self.bronze = Bronze(lake, plan.position)

    def stage(self) -> Staged:
        """Compute all frames; what several later steps need is kept."""
        finder = Finder(self.lake, self.plan, self.bronze)
        self.on_step("find new events")
        new = finder.new()
        self.on_step("find copies")
        copies = finder.copies(new)
        touched = finder.touched(new, copies)
        self.on_step("count hours")
        return self._staged(touched, copies, sum(new.rows.values()))

    def _staged(self, touched: Touched, copies: Copies, new_rows: int) -> Staged:
        span, keep = Span.of(touched), self.lake.keep
        before = self._before(touched, span)
        left_out = keep(self._left_out(before, copies.decided, span))
        hourly = keep(hourly_counts(before.plays, left_out))
        hours_of_states = keep(before.other_hours.unionAll(hourly))
        hours_of_days = hours_of_states.where(span.days.condition) if touched.certifying else hours_of_states
        daily = keep(daily_counts(hours_of_days))
        counts = by_window(hourly, daily)
        windowed = keep(windowed_counts(counts))
        new_charts = keep(charts(windowed, size=self.plan.policy.chart_size))
        changed = keep(changed_charts(new_charts, before.charts))
        return Staged(
            touched=touched,
            new_rows=new_rows,
            span=span,
            candidates=copies.candidates,
            decided=copies.decided,
            left_out=left_out,
            hourly=hourly,
            old_hourly=before.hourly,
            hours_of_days=hours_of_days,
            daily=daily,
            counts=counts,
            windowed=windowed,
            charts=keep(released_charts(new_charts, before.charts, changed, release=self.plan.release)),
            superseded=keep(superseded_charts(before.charts, changed, release=self.plan.release)),
            states=keep(self._states(touched, before, hourly, hours_of_states)),
            restatements=self._restatements(touched, before, counts),
        )

    def _before(self, touched: Touched, span: Span) -> Before:
        """Open what lies in the span, and suit the session to its size."""
        files = {table: self.lake.files(table) for table in (LEFT_OUT, HOURLY_COUNTS, DAILY_COUNTS, CHARTS, HOURS)}
        rest = without_hours(span.states, touched.hours)

        def part(table: Table, folders: Folders) -> Part:
            return self.lake.part(files[table].where(folders.holds), folders.condition)

        parts = {
            "plays": self.bronze.of_hours(touched.hours),
            "left_out": part(LEFT_OUT, span.hours),
            "hourly": part(HOURLY_COUNTS, span.hours),
            "other_hours": part(HOURLY_COUNTS, rest),
            "daily": part(DAILY_COUNTS, span.days),
            "charts": part(CHARTS, span.charts),
            "states": part(HOURS, span.states),
        }
        self.lake.pace.suit(sum(part.rows for part in parts.values()))
        states = self.lake.keep(parts["states"].frame)
        return Before(**{name: part.frame for name, part in parts.items()} | {"states": states})

    def _left_out(self, before: Before, decided: DataFrame, span: Span) -> DataFrame:
        """Copies of before that no new decision concerns, new decisions, and what the rules exclude."""
        known = before.left_out.where(F.lit(not self.plan.full)).where("winner_log_id IS NOT NULL")
        known = known.join(decided.select("event_id").distinct(), on="event_id", how="left_anti")
        copies = known.select(*LEFT_OUT.column_names).unionAll(decided.where(span.hours.condition))
        if not self.lake.pace.quick:
            copies = self.lake.keep(copies)
        return copies.unionAll(excluded_left_out(before.plays, copies, self.plan.rules))

    def _states(self, touched: Touched, before: Before, hourly: DataFrame, hours_of_states: DataFrame) -> DataFrame:
        changed = changed_hours(before.hourly, hourly)
        hours = [{"event_date": day, "event_hour": h} for day in sorted(touched.days_of_states) for h in range(24)]
        return hour_states(
            self.lake.frame(hours, HOUR_KEYS),
            hours_of_states,
            before.states,
            changed,
            frontier=F.lit(self.plan.frontier),
            release=self.plan.release,
        )

    def _restatements(self, touched: Touched, before: Before, counts: DataFrame) -> DataFrame:
        """Numbers of hours and days that were certified before and are others now."""
        found = before.states.where("certified_in IS NOT NULL").select("event_date", "event_hour").collect()
        certified = {(row["event_date"], row["event_hour"]) for row in found}
        causes = list(touched.causes(certified, said=self.plan.cause))
        if not causes:
            return self.lake.frame([], spark_schema(RESTATEMENTS))
        old, frame = by_window(before.hourly, before.daily), self.lake.frame(causes, CAUSES)
        return self.lake.keep(restatements(old, counts, frame, release=self.plan.release))
