"""`lakeboard maintain`: fewer and larger files, and no files that no release needs; counts stay as they are."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

from domain.clock import Clock
from domain.releases import Release
from domain.table import Table
from domain.tables import BRONZE, DERIVED, RELEASES
from ingest.lake_reader import newest_release
from ingest.lake_writer import compact_bronze
from ingest.table_lock import locked
from jobs.lake import Lake
from jobs.recount import DERIVED_LOCKS, roll_back
from pipelines.schemas import spark_schema

CAUSE = "maintenance"


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
    done = [_bronze(lake_root, table, on_step, on_wait) for table in BRONZE]
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


def _bronze(
    lake_root: Path, table: Table, on_step: Callable[[str], None], on_wait: Callable[[str, str], None] | None
) -> Maintenance:
    on_step(f"compact {table.name}")
    with locked(lake_root, table.name, on_wait=on_wait):
        before, after = compact_bronze(lake_root, table)
    return Maintenance(table=table.name, files_before=before, files_after=after)


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
