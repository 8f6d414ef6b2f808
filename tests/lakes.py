"""Small lakes for tests of readers: counted by a plain Python model, written by deltalake.

The model counts everything from scratch for each release and keeps what each said, so that an answer "as of"
can be compared with it. Production lakes are written by Spark; `tests/end_to_end` has those.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from domain.events import ALL_REGIONS
from domain.policy import Policy
from domain.position import BronzePosition
from domain.releases import Release
from domain.rules import Rules
from domain.table import Table
from domain.tables import (
    ALL,
    CHART_HISTORY,
    CHARTS,
    DAILY_COUNTS,
    DERIVED,
    HOURLY_COUNTS,
    HOURS,
    LEFT_OUT,
    MEASURES,
    PLAYS,
    REJECTS,
    RELEASES,
    RESTATEMENTS,
)
from domain.windows import HOUR, Window
from ingest.arrow import arrow_schema
from tests import lake_rows
from tests.lake_rows import FIRST_RELEASE_AT, WRITER, Key, Numbers, Play, Row, at

__all__ = ["ModelLake", "Play", "at", "replace_table", "write_table"]


@dataclass(slots=True)
class ModelLake:
    """Counts plays release by release; `rows` is the lake as of the newest one."""

    rules: Rules = field(default_factory=Rules)
    policy: Policy = field(default_factory=Policy)
    releases: list[Release] = field(default_factory=list)
    rows: dict[str, list[Row]] = field(default_factory=lambda: {table.name: [] for table in ALL})
    hourly_of: dict[int, Numbers] = field(default_factory=lambda: {0: {}})
    charts_of: dict[int, dict[Key, list[Row]]] = field(default_factory=lambda: {0: {}})
    certified_in: dict[datetime, int] = field(default_factory=dict)

    def release(self, plays: Iterable[Play], *, frontier: datetime, created_at: datetime | None = None) -> int:
        """Receive plays as one transaction, count everything again, and release it; return its number."""
        number = len(self.releases) + 1
        made = created_at or FIRST_RELEASE_AT + HOUR * number
        received = self.rows[PLAYS.name]
        received += [lake_rows.received(play, made, number, index) for index, play in enumerate(plays)]
        self.rows[LEFT_OUT.name] = left_out = lake_rows.left_out(received, self.rules)
        hourly = self.hourly_of[number] = lake_rows.hourly(received, left_out)
        daily = lake_rows.by_day(hourly)
        self._restate(hourly, daily, number)
        self.rows[HOURLY_COUNTS.name] = [lake_rows.counted(key, numbers) for key, numbers in hourly.items()]
        self.rows[DAILY_COUNTS.name] = [lake_rows.counted(key, numbers, "event_hour") for key, numbers in daily.items()]
        self._state_hours(hourly, frontier, number)
        self._chart(hourly, daily, number)
        self.releases.append(self._released(number, made, frontier))
        return number

    def write(self, lake_root: Path) -> Path:
        """Write every table, then the releases, one commit each; return the lake's root."""
        tables = (PLAYS, REJECTS, *DERIVED)
        versions = {table.name: write_table(lake_root, table, self.rows[table.name]) for table in tables}
        write_table(lake_root, RELEASES, [])
        for release in self.releases:
            position = replace(release.position, version=versions[PLAYS.name])
            named = {table.name: versions[table.name] for table in DERIVED}
            row = replace(release, position=position, table_versions=named).to_row()
            write_table(lake_root, RELEASES, [row])
        return lake_root

    def count_as_of(self, number: int, item_id: str, region: str, span: Window) -> dict[str, int]:
        """What release `number` said of an item in a span: of certified hours only, unless it is the newest."""
        total = Counter(dict.fromkeys(MEASURES, 0))
        for (hour, of_region, item), numbers in self.hourly_of[number].items():
            known = number == len(self.releases) or self.certified_in.get(hour, number + 1) <= number
            if known and item == item_id and region in (of_region, ALL_REGIONS) and span.contains(hour):
                total.update({measure: numbers[measure] for measure in MEASURES})
        return dict(total)

    def _restate(self, hourly: Numbers, daily: Numbers, number: int) -> None:
        old = self.hourly_of[number - 1]
        hours = {start for start, _, _ in hourly if start in self.certified_in}
        days = {start for start, _, _ in daily if lake_rows.all_certified(start, self.certified_in)}
        for length, was, now, published in (
            ("1h", old, hourly, hours),
            ("1d", lake_rows.by_day(old), daily, days),
        ):
            self.rows[RESTATEMENTS.name] += [
                lake_rows.restated(number, length, key, measure, was.get(key, Counter())[measure], numbers[measure])
                for key, numbers in sorted(now.items())
                for measure in MEASURES
                if key[0] in published and numbers[measure] != was.get(key, Counter())[measure]
            ]

    def _state_hours(self, hourly: Numbers, frontier: datetime, number: int) -> None:
        before = {(row["event_date"], row["event_hour"]): row["changed_in"] for row in self.rows[HOURS.name]}
        changed = {key[0] for key, n in hourly.items() if n != self.hourly_of[number - 1].get(key)}
        rows = []
        days = sorted({key[0].date() for key in hourly})
        for hour in (hour for day in days for hour in Window.of_day(day).hours()):
            if hour + HOUR <= frontier:
                self.certified_in.setdefault(hour, number)
            numbers = [n for key, n in hourly.items() if key[0] == hour]
            changed_in = number if hour in changed else before.get((hour.date(), hour.hour))
            rows.append(lake_rows.state(hour, numbers, changed_in, self.certified_in.get(hour)))
        self.rows[HOURS.name] = rows

    def _chart(self, hourly: Numbers, daily: Numbers, number: int) -> None:
        size, old = self.policy.chart_size, self.charts_of[number - 1]
        new = {**lake_rows.charts("1h", hourly, size), **lake_rows.charts("1d", daily, size)}
        for key in old.keys() | new.keys():
            if lake_rows.said(old.get(key, [])) == lake_rows.said(new.get(key, [])):
                new[key] = old.get(key, [])
                continue
            new[key] = [{**row, "release": number} for row in new.get(key, [])]
            ended = {"superseded_by": number, "month": f"{key[0]:%Y-%m}"}
            self.rows[CHART_HISTORY.name] += [{**row, **ended} for row in old.get(key, [])]
        self.charts_of[number] = {key: rows for key, rows in new.items() if rows}
        self.rows[CHARTS.name] = [row for rows in self.charts_of[number].values() for row in rows]

    def _released(self, number: int, made: datetime, frontier: datetime) -> Release:
        return Release(
            release=number,
            created_at=made,
            cause="first count" if number == 1 else "new events",
            frontier=frontier,
            position=BronzePosition(0, len(self.rows[PLAYS.name]), {WRITER: number}),
            table_versions={},
            rules=self.rules,
            policy_fingerprint=self.policy.fingerprint(),
            code_version="test",
            hours_touched=1,
            verdicts={"counts_balance": "holds"},
        )


def write_table(lake_root: Path, table: Table, rows: Sequence[Row]) -> int:
    """Append rows to a table, creating it first; return its version."""
    path, schema = lake_root / table.name, arrow_schema(table)
    if (path / "_delta_log").is_dir():
        delta = DeltaTable(path)
    else:
        delta = DeltaTable.create(path, schema=schema, partition_by=list(table.partition_by), name=table.view)
    if rows:
        write_deltalake(delta, pa.Table.from_pylist(list(rows), schema=schema), mode="append")
    return delta.version()


def replace_table(lake_root: Path, table: Table, rows: Sequence[Row]) -> int:
    """Replace all rows of a table; return its version."""
    path = lake_root / table.name
    write_deltalake(path, pa.Table.from_pylist(list(rows), schema=arrow_schema(table)), mode="overwrite")
    return DeltaTable(path).version()
