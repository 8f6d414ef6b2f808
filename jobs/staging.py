"""Computes everything a release would publish, without publishing it."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from domain.releases import Release
from domain.rules import changed_spans
from domain.tables import CHARTS, DAILY_COUNTS, HOURLY_COUNTS, HOURS, LEFT_OUT, RESTATEMENTS, Table
from jobs.lake import Lake
from jobs.plan import Plan
from jobs.touched import Touched
from pipelines.by_window import by_window
from pipelines.charts import changed_charts, charts, released_charts, superseded_charts, windowed_counts
from pipelines.copies import changed_copies, copies_left_out, repeated_hashes
from pipelines.counts import changed_hours, daily_counts, hourly_counts
from pipelines.exclusions import excluded_left_out
from pipelines.hour_states import HOUR_KEYS, hour_states
from pipelines.hours import Hour, charts_condition, days_condition, hours_condition
from pipelines.restatements import CAUSES, restatements
from pipelines.schemas import spark_schema

# Up to so many new events their hashes go to every task; beyond, one pass over all hashes is cheaper.
FEW_EVENTS = 1_000_000


@dataclass(slots=True, kw_only=True)
class Staged:
    """Frames of one recount; columns as in `domain/tables.py`. `new_rows`: found by their writers' positions."""

    touched: Touched
    new_rows: int
    hours_condition: str
    days_condition: str
    charts_condition: str
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
    states_condition: str
    restatements: DataFrame


class Stager:
    """Builds the frames of one plan, step by step, over one lake."""

    def __init__(self, lake: Lake, plan: Plan, on_step: Callable[[str], None]) -> None:
        self.lake = lake
        self.plan = plan
        self.on_step = on_step
        self.plays = lake.bronze(plan.position)
        self.tables_before: dict[Table, DataFrame] = {}

    def stage(self) -> Staged:
        """Compute all frames; what several later steps need is cached."""
        self.on_step("find new events")
        new_rows = self._new_rows()
        self.on_step("find copies")
        candidates = self._keep(self._candidates())
        remembered = self._keep(self._remembered(candidates))
        decided = self._keep(copies_left_out(candidates, remembered))
        touched = self._touched(frozenset(new_rows), decided, remembered)
        self.on_step("count hours")
        return self._staged(touched, candidates, decided, sum(new_rows.values()))

    def _new_rows(self) -> dict[Hour, int]:
        """Rows that no release has counted, by the hour they belong to."""
        if not self.plan.advances:
            return {}
        new = self.plays.where(self.plan.is_new()).groupBy("event_date", "event_hour").agg(F.count("*").alias("rows"))
        return {(row["event_date"], row["event_hour"]): row["rows"] for row in new.collect()}

    def _candidates(self) -> DataFrame:
        """Rows of bronze that share their id's hash with another one, at least one of them new."""
        searched, is_new = self._searched()
        hashes = self._keep(repeated_hashes(searched, is_new))
        found = hashes.count()
        small = F.broadcast(hashes) if found <= FEW_EVENTS else hashes
        return searched.join(small, on="id_hash", how="left_semi")

    def _searched(self) -> tuple[DataFrame, Column]:
        """Bronze within the dedup horizon; all of it when counting from scratch."""
        if self.plan.full or self.plan.newest is None:
            return self.plays, F.lit(True)
        is_new = self.plan.is_new()
        if not self.plan.advances:
            return self.plays.where(F.lit(False)), is_new
        new = self.plays.where(is_new)
        first = new.agg(F.min("ingested_at")).collect()[0][0]
        if first is None:
            return self.plays.where(F.lit(False)), is_new
        oldest = first - self.plan.policy.dedup_horizon
        searched = self.plays.where(F.col("ingested_at") >= F.lit(oldest))
        if self.plan.new_events <= FEW_EVENTS:
            searched = searched.join(F.broadcast(new.select("id_hash").distinct()), on="id_hash", how="left_semi")
        return searched, is_new

    def _remembered(self, candidates: DataFrame) -> DataFrame:
        """What the last release says of these ids."""
        return (
            self._left_out_before()
            .join(candidates.select("id_hash").distinct(), on="id_hash", how="left_semi")
            .join(candidates.select("event_id").distinct(), on="event_id", how="left_semi")
        )

    def _touched(self, new_hours: frozenset[Hour], decided: DataFrame, remembered: DataFrame) -> Touched:
        newest = self.plan.newest
        if newest is None:
            return Touched(with_new_events=new_hours)
        return Touched(
            certifying=self.plan.certifying,
            with_new_events=new_hours,
            with_other_rules=self._hours_with_other_rules(newest),
            with_other_copies=frozenset() if self.plan.full else self._hours(changed_copies(decided, remembered)),
            asked_for=self._hours(self.plays) if self.plan.full else frozenset(),
        )

    def _hours_with_other_rules(self, newest: Release) -> frozenset[Hour]:
        spans = changed_spans(newest.rules, self.plan.rules)
        hours: frozenset[Hour] = frozenset()
        for span in spans:
            days = (F.col("event_date") >= F.lit(span.start.date())) & (F.col("event_date") <= F.lit(span.end.date()))
            within = (F.col("event_time") >= F.lit(span.start)) & (F.col("event_time") < F.lit(span.end))
            hours |= self._hours(self.plays.where(days & within))
        return hours

    def _staged(self, touched: Touched, candidates: DataFrame, decided: DataFrame, new_rows: int) -> Staged:
        hours, days = hours_condition(touched.hours), days_condition(touched.days)
        of_charts, of_states = charts_condition(touched.hours), days_condition(touched.days_of_states)
        left_out = self._keep(self._left_out(hours, decided))
        old_hourly = self._before(HOURLY_COUNTS)
        hourly = self._keep(hourly_counts(self.plays.where(hours), left_out))
        hours_of_days = self._keep(old_hourly.where(of_states).where(f"NOT ({hours})").unionAll(hourly))
        daily = self._keep(daily_counts(hours_of_days.where(days)))
        counts = by_window(hourly, daily)
        windowed = self._keep(windowed_counts(counts))
        old_charts = self._before(CHARTS).where(of_charts)
        new_charts = self._keep(charts(windowed, size=self.plan.policy.chart_size))
        changed = self._keep(changed_charts(new_charts, old_charts))
        return Staged(
            touched=touched,
            new_rows=new_rows,
            hours_condition=hours,
            days_condition=days,
            charts_condition=of_charts,
            candidates=candidates,
            decided=decided,
            left_out=left_out,
            hourly=hourly,
            old_hourly=old_hourly.where(hours),
            hours_of_days=hours_of_days.where(days),
            daily=daily,
            counts=counts,
            windowed=windowed,
            charts=self._keep(released_charts(new_charts, old_charts, changed, release=self.plan.release)),
            superseded=self._keep(superseded_charts(old_charts, changed, release=self.plan.release)),
            states=self._keep(self._states(touched, hourly, hours_of_days)),
            states_condition=of_states,
            restatements=self._restatements(touched, counts),
        )

    def _left_out(self, hours: str, decided: DataFrame) -> DataFrame:
        """Copies of before that no new decision concerns, new decisions, and what the rules exclude."""
        before = self._left_out_before().where(hours)
        ids = decided.select("event_id").distinct()
        copies = before.where("winner_log_id IS NOT NULL").join(ids, on="event_id", how="left_anti")
        copies = self._keep(copies.select(*LEFT_OUT.column_names).unionAll(decided.where(hours)))
        return copies.unionAll(excluded_left_out(self.plays.where(hours), copies, self.plan.rules))

    def _states(self, touched: Touched, hourly: DataFrame, hours_of_days: DataFrame) -> DataFrame:
        old = self._before(HOURS).where(days_condition(touched.days_of_states))
        frontier = F.lit(self.plan.frontier)
        changed = changed_hours(self._before(HOURLY_COUNTS).where(hours_condition(touched.hours)), hourly)
        hours = [{"event_date": day, "event_hour": h} for day in sorted(touched.days_of_states) for h in range(24)]
        grid = self.lake.frame(hours, HOUR_KEYS)
        return hour_states(grid, hours_of_days, old, changed, frontier=frontier, release=self.plan.release)

    def _restatements(self, touched: Touched, counts: DataFrame) -> DataFrame:
        """Numbers of hours and days that were certified before and are others now."""
        old_states = self._before(HOURS).where(days_condition(touched.days))
        certified = self._hours(old_states.where("certified_in IS NOT NULL"))
        causes = list(touched.causes(certified, said=self.plan.cause))
        if not causes:
            return self.lake.frame([], spark_schema(RESTATEMENTS))
        old_hourly = self._before(HOURLY_COUNTS).where(hours_condition(touched.hours))
        old_daily = self._before(DAILY_COUNTS).where(days_condition(touched.days))
        old, frame = by_window(old_hourly, old_daily), self.lake.frame(causes, CAUSES)
        return self._keep(restatements(old, counts, frame, release=self.plan.release))

    def _before(self, table: Table) -> DataFrame:
        """A derived table as the last release left it: nobody else commits while we hold its lock."""
        if table not in self.tables_before:
            self.tables_before[table] = self.lake.current(table)
        return self.tables_before[table]

    def _left_out_before(self) -> DataFrame:
        """What was left out before; a full recount judges from bronze alone."""
        before = self._before(LEFT_OUT)
        return before.where(F.lit(False)) if self.plan.full else before

    def _hours(self, rows: DataFrame) -> frozenset[Hour]:
        found = rows.select("event_date", "event_hour").distinct().collect()
        return frozenset((row["event_date"], row["event_hour"]) for row in found)

    def _keep(self, frame: DataFrame) -> DataFrame:
        """Compute now what several steps read, and cut its plan: nested cached plans grow past any memory."""
        return frame.localCheckpoint(eager=True)
