"""Builds what batch hands over to the live charts from the newest release: the best items of a day, hour by hour."""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import cast

import duckdb
import numpy as np
import pyarrow as pa

from domain.batch_view import HOURS_IN_VIEW, ITEMS_IN_VIEW, BatchView, RegionView, narrowed
from domain.errors import LakeboardError
from domain.events import ALL_REGIONS, UNKNOWN_REGION, LeftOut
from domain.frontier import log_in_use, read_to_of_log
from domain.policy import Policy
from domain.position import LAKE_WRITER
from domain.releases import Release
from domain.sketches.keys import Int64s
from domain.tables import HOURLY_COUNTS, PLAYS
from domain.windows import DAY, hour_of
from ingest.delta_log import app_transactions
from ingest.lake_reader import LakeReader
from ingest.read_files import LakeUnreadableError, first_line

_IMPORTS = f"{LAKE_WRITER}import/"
_ROWS = 50_000  # of a record batch
_COPY_COLUMNS = {LeftOut.DUPLICATE: "duplicates", LeftOut.CONFLICT: "conflicts"}


class ReleaseBehindLogError(LakeboardError):
    """A release does not have all that the log in use took before the frontier."""

    def __init__(self, release: int, problem: str) -> None:
        super().__init__(release, problem)
        self.release = release
        self.problem = problem

    def __str__(self) -> str:
        return (
            f"release {self.release} cannot take over from live counting yet ({self.problem}): let the lake writer "
            "come to the end of the log, then run `lakeboard recount` and `lakeboard publish` again; until then the "
            "live charts go on with what they have"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewLimits:
    """How much of a release goes into a view.

    Attributes:
        items: Of each region, at most.
        regions: Besides `*`, at most; `ZZ` is always among them.
    """

    items: int = ITEMS_IN_VIEW
    regions: int


@dataclass(frozen=True, slots=True)
class _Regions:
    """Which regions go into a view; `others` is the most that one has which does not."""

    names: Sequence[str]
    totals: Mapping[str, Int64s]
    others: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """What a release takes over from live counting.

    Attributes:
        release: The release.
        log_id: The log that it has read past its frontier and grace; None when it has read none.
    """

    release: Release
    log_id: str | None

    @property
    def offsets(self) -> dict[str, int]:
        """Return `<log id>/<partition>` -> `EntryId.version` up to which, included, it has read it."""
        writers = self.release.position.writers.items()
        return {w.removeprefix(LAKE_WRITER): seq for w, seq in writers if not w.startswith(_IMPORTS)}


def hand_over(reader: LakeReader, *, policy: Policy, log_id: str | None) -> HandOver:
    """Return what the newest release takes over.

    Args:
        reader: Of the lake.
        policy: Gives the grace after an hour's end.
        log_id: The log that live counting reads; None when that is not known, and the release's own is believed.

    Raises:
        NothingCountedError: the lake has no release.
        ReleaseBehindLogError: the release has not read that log past its frontier and grace.
        LakeUnreadableError: the log of `bronze/plays` is damaged.
    """
    release = reader.releases.newest()
    try:
        transactions = app_transactions(reader.files.lake_root / PLAYS.name, release.position.version)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise LakeUnreadableError(PLAYS.name, first_line(error)) from error
    found = log_in_use(transactions)
    if log_id is not None and found != log_id:
        said = "it has read no log" if found is None else f"it has read log {found}"
        problem = f"{said}, the one in use is {log_id}"
        raise ReleaseBehindLogError(release.release, problem)
    enough = release.frontier + policy.grace
    late = [] if found is None else [to for to in read_to_of_log(transactions).values() if to < enough]
    if late:
        problem = f"{len(late)} partitions of log {found} were read up to {min(late):%Y-%m-%d %H:%M:%S} UTC only"
        raise ReleaseBehindLogError(release.release, problem)
    return HandOver(release=release, log_id=found)


def batch_view(
    reader: LakeReader, of: HandOver, *, limits: ViewLimits, on_step: Callable[[str], None] = lambda step: None
) -> BatchView:
    """Return the view of a release, under a version that no view had before.

    Args:
        reader: The one that `hand_over` was asked with.
        of: What is handed over.
        limits: How much goes into it.
        on_step: Told the name of each step as it begins.

    Raises:
        LakeUnreadableError: a table that the release names cannot be read.
    """
    release = of.release
    try:
        day = _Day(reader, release.frontier, limits)
        regions, others = day.regions(on_step)
        copies = day.copies()
    except duckdb.Error as error:
        raise LakeUnreadableError(HOURLY_COUNTS.name, first_line(error)) from error
    return BatchView(
        version=f"{release.release}-{release.frontier:%Y%m%dT%H}-{secrets.token_hex(4)}",
        release=release.release,
        frontier=release.frontier,
        log_id=of.log_id,
        offsets=of.offsets,
        regions=regions,
        others=others,
        copies=copies,
    )


class _Day:
    """The 24 hours before a frontier, as `gold/hourly_counts` has them."""

    def __init__(self, reader: LakeReader, frontier: datetime, limits: ViewLimits) -> None:
        self._connection = reader.files.connection
        self._limits = limits
        first = frontier - DAY
        hours = reader.table(HOURLY_COUNTS).where(
            lambda of: first <= hour_of(of["event_date"], of["event_hour"]) < frontier
        )
        place = f"(event_date - DATE '{first:%Y-%m-%d}') * 24 + event_hour - {first.hour}"
        self._rows = hours.scan()
        self._counts = f"(SELECT region, item_id, {place} AS hour, counted FROM {self._rows} WHERE counted > 0)"  # noqa: S608

    def regions(self, on_step: Callable[[str], None]) -> tuple[dict[str, RegionView], int]:
        """Return the regions by name, and the most that one has which is left out."""
        on_step("sum the hours of each region")
        chosen = self._chosen()
        on_step("find the best items of each region")
        self._find_best(chosen.names)
        best = self._best()
        on_step("read their hours")
        views = {}
        for number, parts in groupby(self._hours(), key=lambda part: part[0]):
            region, ids = best[number]
            hourly = _hourly([rows for _, rows in parts], len(ids))
            views[region] = _region_view(ids, hourly, totals=chosen.totals[region], most=self._limits.items)
        return views, chosen.others

    def copies(self) -> dict[str, int]:
        """Return the events that were left out as copies, by reason; those of which there are none are absent."""
        sums = ", ".join(f"CAST(coalesce(sum({column}), 0) AS BIGINT)" for column in _COPY_COLUMNS.values())
        found = self._connection.execute(f"SELECT {sums} FROM {self._rows}").fetchone() or ()  # noqa: S608
        return {reason.value: number for reason, number in zip(_COPY_COLUMNS, found, strict=True) if number}

    def _chosen(self) -> _Regions:
        sql = f"SELECT region, hour, CAST(sum(counted) AS BIGINT) FROM {self._counts} GROUP BY ALL"  # noqa: S608
        totals: dict[str, Int64s] = {}
        for region, hour, plays in self._connection.execute(sql).fetchall():
            for name in (region, ALL_REGIONS):
                totals.setdefault(name, np.zeros(HOURS_IN_VIEW, dtype=np.int64))[hour] += plays
        order = sorted(totals.keys() - {ALL_REGIONS}, key=lambda name: (-int(totals[name].sum()), name.encode()))
        order.sort(key=lambda name: name != UNKNOWN_REGION)
        left = [int(totals[name].sum()) for name in order[self._limits.regions :]]
        return _Regions(order[: self._limits.regions], totals, max(left, default=0))

    def _find_best(self, names: Sequence[str]) -> None:
        """Make `best`: the best items of each region and of all, and one more; regions from 0, places from 0."""
        self._connection.execute(
            f"""CREATE OR REPLACE TEMP TABLE counts AS
            SELECT region, item_id, hour, counted FROM {self._counts} WHERE list_contains($names, region)
            UNION ALL SELECT '{ALL_REGIONS}', item_id, hour, CAST(sum(counted) AS BIGINT) FROM {self._counts}
            GROUP BY item_id, hour""",  # noqa: S608
            {"names": list(names)},
        )
        self._connection.execute(
            f"""CREATE OR REPLACE TEMP TABLE best AS
            SELECT region, item_id, dense_rank() OVER (ORDER BY region) - 1 AS number,
                row_number() OVER (PARTITION BY region ORDER BY plays DESC, item_id) - 1 AS place
            FROM (SELECT region, item_id, sum(counted) AS plays FROM counts GROUP BY ALL)
            QUALIFY place <= {self._limits.items}"""  # noqa: S608
        )

    def _best(self) -> list[tuple[str, list[str]]]:
        """Return by number the regions with their best items."""
        found: list[tuple[str, list[str]]] = []
        for rows in self._read("SELECT region, item_id, number FROM best ORDER BY number, place"):
            for number, of_region in _by_number(rows):
                if number == len(found):
                    found.append((of_region.column("region")[0].as_py(), []))
                found[number][1].extend(of_region.column("item_id").to_pylist())
        return found

    def _hours(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield regions by number with rows of (place, hour, counted) of their best items."""
        sql = """SELECT number, place, hour, counted FROM best JOIN counts USING (region, item_id) ORDER BY number"""
        for rows in self._read(sql):
            yield from _by_number(rows)

    def _read(self, sql: str) -> Iterator[pa.RecordBatch]:
        yield from cast(Iterator[pa.RecordBatch], self._connection.sql(sql).to_arrow_reader(_ROWS))


def _by_number(rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield runs of one region of rows sorted by region."""
    numbers = rows.column("number").to_numpy()
    start = 0
    while start < len(numbers):
        end = int(numbers.searchsorted(numbers[start], side="right"))
        yield int(numbers[start]), rows.slice(start, end - start)
        start = end


def _hourly(parts: Sequence[pa.RecordBatch], items: int) -> Int64s:
    """Return plays by item and hour."""
    hourly = np.zeros((items, HOURS_IN_VIEW), dtype=np.int64)
    for rows in parts:
        place, hour, counted = (rows.column(name).to_numpy() for name in ("place", "hour", "counted"))
        np.add.at(hourly, (place, hour), counted)
    return hourly


def _region_view(ids: Sequence[str], hourly: Int64s, *, totals: Int64s, most: int) -> RegionView:
    return RegionView(
        item_ids=ids[:most],
        hourly=narrowed(hourly[:most]),
        residual=int(hourly[most].sum()) if len(hourly) > most else 0,
        totals=totals,
    )
