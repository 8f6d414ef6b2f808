"""`lakeboard maintain`: fewer and larger files, and no files that no release needs; counts stay as they are."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from domain.board_tables import ARCHIVES, BOARD_CERTIFICATES, BOARD_ENTRIES, BOARDS
from domain.boards.certificates import Certified
from domain.clock import Clock
from domain.releases import Release
from domain.table import Table
from domain.tables import BRONZE, DERIVED, RELEASES
from ingest.delta_log import newest_version
from ingest.lake_reader import newest_release
from ingest.lake_writer import compact
from ingest.read_certificates import certificates
from ingest.table_lock import locked
from jobs.lake import Lake
from jobs.recount import DERIVED_LOCKS, roll_back
from pipelines.schemas import spark_schema

CAUSE = "maintenance"
_KEPT = timedelta(days=29)  # removed files are kept for 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """What maintenance did to one table: files before and after, both of the version that readers see."""

    table: str
    files_before: int
    files_after: int


def run(
    spark: SparkSession,
    lake_root: Path,
    *,
    clock: Clock,
    on_step: Callable[[str], None] = lambda step: None,
    on_wait: Callable[[str, str], None] | None = None,
) -> list[Maintenance]:
    """Compact and vacuum every table under its lock.

    What a killed recount left behind is rolled back first: vacuum may never remove files that a release names.
    Compacted derived tables are released again, so that readers follow them before old files go.
    """
    done = [_appended(lake_root, table, on_step, on_wait) for table in _there(lake_root, (*BRONZE, *ARCHIVES))]
    done += _boards(Lake(spark, lake_root), clock, on_step, on_wait)
    with locked(lake_root, *DERIVED_LOCKS, on_wait=on_wait):
        newest = newest_release(lake_root)
        if newest is None:
            return done
        lake = Lake(spark, lake_root)
        roll_back(lake, newest)
        for table in DERIVED:
            on_step(f"compact {table.name}")
            done.append(_compacted(lake, table))
        on_step("release")
        _release_again(lake, newest, clock)
        for table in (*DERIVED, RELEASES):
            on_step(f"vacuum {table.name}")
            lake.vacuum(table)
    return done


def _appended(
    lake_root: Path, table: Table, on_step: Callable[[str], None], on_wait: Callable[[str, str], None] | None
) -> Maintenance:
    on_step(f"compact {table.name}")
    with locked(lake_root, table.name, on_wait=on_wait):
        before, after = compact(lake_root, table)
    return Maintenance(table=table.name, files_before=before, files_after=after)


def _there(lake_root: Path, tables: Iterable[Table]) -> list[Table]:
    return [table for table in tables if newest_version(lake_root / table.name) >= 0]


def _boards(
    lake: Lake, clock: Clock, on_step: Callable[[str], None], on_wait: Callable[[str, str], None] | None
) -> list[Maintenance]:
    """Compact certificates, and remove the players of rebuilds that none in force needs."""
    if not _there(lake.root, (BOARD_CERTIFICATES,)):
        return []
    with locked(lake.root, *(table.name for table in BOARDS), on_wait=on_wait):
        on_step(f"compact {BOARD_CERTIFICATES.name}")
        done = _compacted(lake, BOARD_CERTIFICATES)
        certified = Certified.newest(certificates(lake.root))
        in_force = [] if certified is None else [certified.whole, *certified.boards.values()]
        removable = [BOARD_CERTIFICATES]
        # A board that was rebuilt alone is in a later version than the others: theirs must not go from under them.
        if all(clock() - one.created_at < _KEPT for one in in_force) or all(
            one.entries_version == lake.version(BOARD_ENTRIES) for one in in_force
        ):
            removable.append(BOARD_ENTRIES)
        for table in removable:
            on_step(f"vacuum {table.name}")
            lake.vacuum(table)
    return [done]


def _compacted(lake: Lake, table: Table) -> Maintenance:
    before = len(lake.current(table).inputFiles())
    lake.optimize(table)
    return Maintenance(table=table.name, files_before=before, files_after=len(lake.current(table).inputFiles()))


def _release_again(lake: Lake, newest: Release, clock: Clock) -> None:
    """Make a release of the compacted versions; its numbers are those of the newest one, row by row."""
    again = replace(
        newest,
        release=newest.release + 1,
        created_at=clock(),
        cause=CAUSE,
        hours_touched=0,
        table_versions={table.name: lake.version(table) for table in DERIVED},
    )
    lake.append(RELEASES, lake.frame([again.to_row()], spark_schema(RELEASES)), note=f"release {again.release}")
