"""Reads the lake as a release says it is: charts, counts, restatements and tables, without a JVM.

A reader sees only the table versions that a release names. Newer ones may be there, left by a recount that
was killed or is running: they are no part of any answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Self

from domain.answers import (
    ChartAnswer,
    ChartRow,
    CountAnswer,
    Pieces,
    chart_answer,
    hours_not_certified,
    pieces,
    restated_back,
)
from domain.board_tables import BOARDS, SCORES
from domain.events import ALL_REGIONS
from domain.releases import Release
from domain.table import Table
from domain.tables import (
    ALL,
    CHART_HISTORY,
    CHARTS,
    DAILY_COUNTS,
    HOURLY_COUNTS,
    HOURS,
    MEASURES,
    PLAYS,
    REJECTS,
    RELEASES,
    RESTATEMENTS,
)
from domain.windows import Granularity, Window, hour_of
from ingest.read_files import LakeFiles, PinnedTable
from ingest.read_releases import Releases, newest_release

__all__ = ["Change", "LakeReader", "newest_release"]

_ROW = "rank, item_id, counted, total, items, tie_at_cut"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One restated number: a row of `gold/restatements`; `window_start` in UTC."""

    release: int
    window_length: str
    window_start: datetime
    region: str
    item_id: str
    measure: str
    old: int
    new: int
    cause: str


class LakeReader:
    """Answers from one lake. Opens tables as they are asked for; close it after use.

    Args:
        lake_root: Folder of the lake.
        memory_limit: Most that DuckDB may hold in memory, such as `1GB`; beyond it spills to disk.
    """

    def __init__(self, lake_root: Path, *, memory_limit: str = "1GB") -> None:
        self.files = LakeFiles(lake_root, memory_limit=memory_limit)
        self.releases = Releases(self.files)
        self._pinned: dict[str, PinnedTable] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.files.close()

    def table(self, table: Table) -> PinnedTable:
        """Return a table as the newest release names it.

        `releases` and `rejects`, which no release names, are as they stand. Before the first release
        derived tables are empty and bronze is what was imported.
        """
        if table.name not in self._pinned:
            self._pinned[table.name] = self._pin(table)
        return self._pinned[table.name]

    def chart(
        self, granularity: Granularity, window: Window, *, region: str, n: int, release: Release | None = None
    ) -> ChartAnswer:
        """Return the best n items of a closed window, exactly as a release counted them.

        The newest release by default. A window without events, or a region without any in it, is an empty
        chart.

        Raises:
            NothingCountedError: the lake has no release.
        """
        newest = self.releases.newest()
        release = newest if release is None else release
        rows = self._current_rows(granularity, window, region, n, release)
        if not rows and release.release < newest.release:
            rows = self._superseded_rows(granularity, window, region, n, release)
        return chart_answer(rows, granularity=granularity, window=window, region=region, release=release, n=n)

    def newest_window(self, granularity: Granularity, *, release: Release | None = None) -> Window | None:
        """Return the latest window with a chart in a release (the newest by default), None without any."""
        if release is None or release.release == self.releases.newest().release:
            starts = [
                hour_of(file.partition["event_date"], file.partition["event_hour"])
                for file in self._charts(granularity).files
                if file.rows
            ]
            start = max(starts, default=None)
        else:
            start = self._newest_start_of(granularity, release)
        return None if start is None else Window.starting(start, granularity)

    def region_is_known(self, region: str) -> bool:
        """Say whether any event of this region was ever received, left out or not."""
        sql = f"SELECT 1 FROM {self.table(DAILY_COUNTS).scan()} WHERE region = $region LIMIT 1"  # noqa: S608
        return region == ALL_REGIONS or bool(self.files.rows(sql, {"region": region}))

    def count(self, item_id: str, span: Window, *, region: str, release: Release | None = None) -> CountAnswer:
        """Return what an item counted in a span of whole hours, as of a release (the newest by default).

        As of an older release it is the present number less what later releases restated. Hours which that
        release had not certified count 0 there, because changes of provisional numbers are not kept.

        Raises:
            NothingCountedError: the lake has no release.
        """
        newest = self.releases.newest()
        release = newest if release is None else release
        certified_in = self._certified_in(span)
        if release.release == newest.release:
            numbers = self._sums(item_id, region, pieces(span))
        else:
            certified = frozenset(h for h, n in certified_in.items() if n is not None and n <= release.release)
            changes = self._later_changes(item_id, region, span, release)
            numbers = restated_back(self._sums(item_id, region, pieces(span, certified)), changes, certified)
        return CountAnswer(
            item_id=item_id,
            region=region,
            span=span,
            release=release,
            numbers=numbers,
            hours_not_certified=hours_not_certified(span, certified_in, release),
        )

    def changes(
        self,
        *,
        since: int,
        until: int | None = None,
        region: str = ALL_REGIONS,
        item_id: str | None = None,
        most: int | None = None,
    ) -> list[Change]:
        """Return restated numbers of the releases after `since`, through `until` (the newest by default).

        Ordered by release, window, region, item and measure; the first `most` of them, all when it is None.

        Raises:
            NothingCountedError: the lake has no release.
        """
        last = self.releases.newest().release if until is None else until
        names = [column for column in RESTATEMENTS.column_names if column != "month"]
        asked = {"since": since, "last": last, "region": region, "item": item_id, "most": most}
        sql = f"""SELECT {", ".join(names)} FROM {self.table(RESTATEMENTS).scan()}
            WHERE release > $since AND release <= $last AND $region IN (region, '*')
            AND coalesce(item_id = $item, true)
            ORDER BY release, window_length, window_start, region, item_id, measure LIMIT $most"""  # noqa: S608
        return [Change(**dict(zip(names, row, strict=True))) for row in self.files.rows(sql, asked)]

    def tables(self) -> list[PinnedTable]:
        """Return every table of the lake as readers see it."""
        return [self.table(table) for table in ALL]

    def _pin(self, table: Table) -> PinnedTable:
        if table in (RELEASES, REJECTS, SCORES, *BOARDS):  # what no release binds
            return self.files.pin(table)
        newest = self.releases.latest(1)
        if not newest:
            return self.files.pin(table) if table is PLAYS else PinnedTable(table, "", None, ())
        if table is PLAYS:
            return self.files.pin(table, newest[0].position.version)
        version = newest[0].table_versions.get(table.name)
        if version is None:  # a table that was added to lakeboard after this release: for it, it is empty
            return PinnedTable(table, "", None, ())
        return self.files.pin(table, version)

    def _charts(self, granularity: Granularity) -> PinnedTable:
        return self.table(CHARTS).where(lambda of: of["window_length"] == granularity.value)

    def _current_rows(
        self, granularity: Granularity, window: Window, region: str, n: int, release: Release
    ) -> list[ChartRow]:
        """Rows of `gold/charts`, none when a later release than this one made them."""
        start = (window.start.date(), window.start.hour)
        charts = self._charts(granularity).where(lambda of: (of["event_date"], of["event_hour"]) == start)
        sql = f"""SELECT {_ROW} FROM {charts.scan()}
            WHERE region = $region AND rank <= $rows AND release <= $release ORDER BY rank"""  # noqa: S608
        asked = {"region": region, "rows": n + 1, "release": release.release}
        return [ChartRow(*row) for row in self.files.rows(sql, asked)]

    def _superseded_rows(
        self, granularity: Granularity, window: Window, region: str, n: int, release: Release
    ) -> list[ChartRow]:
        """Rows of `gold/chart_history` that were current in this release."""
        month = f"{window.start:%Y-%m}"
        history = self.table(CHART_HISTORY).where(lambda of: of["month"] == month)
        sql = f"""SELECT {_ROW} FROM {history.scan()}
            WHERE window_length = $length AND event_date = $day AND event_hour = $hour AND region = $region
            AND rank <= $rows AND release <= $release AND superseded_by > $release ORDER BY rank"""  # noqa: S608
        asked = {
            "length": granularity.value,
            "day": window.start.date(),
            "hour": window.start.hour,
            "region": region,
        }
        rows = self.files.rows(sql, {**asked, "rows": n + 1, "release": release.release})
        return [ChartRow(*row) for row in rows]

    def _newest_start_of(self, granularity: Granularity, release: Release) -> datetime | None:
        sql = f"""SELECT max(window_start) FROM (
              SELECT window_start FROM {self._charts(granularity).scan()} WHERE release <= $release
              UNION ALL SELECT window_start FROM {self.table(CHART_HISTORY).scan()}
              WHERE window_length = $length AND release <= $release AND superseded_by > $release)"""  # noqa: S608
        start: datetime | None = self.files.rows(sql, {"release": release.release, "length": granularity.value})[0][0]
        return start

    def _certified_in(self, span: Window) -> dict[datetime, int | None]:
        """Return what `gold/hours` says of the hours of a span."""
        hours = self.table(HOURS).where(lambda of: _overlaps(of["event_date"], span))
        rows = self.files.rows(f"SELECT event_date, event_hour, certified_in FROM {hours.scan()}")  # noqa: S608
        stated = {hour_of(day, hour): certified_in for day, hour, certified_in in rows}
        return {hour: certified_in for hour, certified_in in stated.items() if span.contains(hour)}

    def _sums(self, item_id: str, region: str, wanted: Pieces) -> dict[str, int]:
        """Sum an item over days and hours; all rows of a file share these, so choosing files is enough."""
        days = self.table(DAILY_COUNTS).where(lambda of: of["event_date"] in wanted.days)
        hours = self.table(HOURLY_COUNTS).where(lambda of: hour_of(of["event_date"], of["event_hour"]) in wanted.hours)
        names = ", ".join(MEASURES)
        parts = [
            f"SELECT {names} FROM {part.scan()} WHERE item_id = $item AND $region IN (region, '*')"  # noqa: S608
            for part in (days, hours)
        ]
        sums = ", ".join(f"CAST(coalesce(sum({name}), 0) AS BIGINT)" for name in MEASURES)
        sql = f"SELECT {sums} FROM ({' UNION ALL '.join(parts)})"  # noqa: S608
        return dict(zip(MEASURES, self.files.rows(sql, {"item": item_id, "region": region})[0], strict=True))

    def _later_changes(
        self, item_id: str, region: str, span: Window, release: Release
    ) -> Sequence[tuple[datetime, str, int]]:
        months = _months(span)
        restated = self.table(RESTATEMENTS).where(lambda of: of["month"] in months)
        sql = f"""SELECT window_start, measure, CAST(sum(new - old) AS BIGINT) FROM {restated.scan()}
            WHERE window_length = '1h' AND release > $release AND item_id = $item AND $region IN (region, '*')
            AND window_start >= $start AND window_start < $end GROUP BY ALL"""  # noqa: S608
        edges = {"start": span.start, "end": span.end}
        asked: Mapping[str, Any] = {"release": release.release, "item": item_id, "region": region, **edges}
        return [(hour, measure, change) for hour, measure, change in self.files.rows(sql, asked)]


def _overlaps(day: date, span: Window) -> bool:
    return span.start.date() <= day <= span.end.date()


def _months(span: Window) -> frozenset[str]:
    days = (span.end.date() - span.start.date()).days
    return frozenset(f"{span.start.date() + timedelta(n):%Y-%m}" for n in range(days + 1))
