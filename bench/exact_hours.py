"""Exact hourly counts with dedup and nothing else, by Spark and by DuckDB, from the same files of bronze.

Both find the ids that repeat by hash, judge only those by id and position, and take what is left out from what was
received. Both write a row for every hour, region and item, in a folder an hour.
"""

from dataclasses import dataclass
from pathlib import Path

import duckdb
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from domain.table import POSITION_COLUMNS
from domain.tables import HOURLY_COUNTS, LEFT_OUT, PLAYS
from ingest.lake_reader import LakeReader
from ingest.lake_writer import bronze_position, create_tables
from ingest.read_files import LakeFiles
from jobs.bronze import Bronze
from jobs.finding import FEW_EVENTS
from jobs.lake import Lake
from pipelines.copies import copies_left_out, repeated_hashes
from pipelines.counts import hourly_counts

_KEYS = "event_date, event_hour, region, item_id"
_POSITION = ", ".join(POSITION_COLUMNS)
_TOTALS = "count(*), sum(counted)::BIGINT, sum(counted_events)::BIGINT, sum(received_events)::BIGINT"


@dataclass(frozen=True, slots=True)
class Totals:
    """What an engine says: rows of hourly counts, plays and events that count, events received."""

    rows: int
    counted: int
    counted_events: int
    received_events: int


def count_with_spark(spark: SparkSession, lake_root: Path, target: Path) -> None:
    """Count as `jobs/staging.py` does from scratch; the Delta table goes into the lake `target`."""
    create_tables(target, (LEFT_OUT, HOURLY_COUNTS))
    out = Lake(spark, target)
    plays = Bronze(Lake(spark, lake_root), bronze_position(lake_root)).all().frame
    hashes = repeated_hashes(plays, F.lit(True)).localCheckpoint()
    small = F.broadcast(hashes) if hashes.count() <= FEW_EVENTS else hashes
    candidates = plays.join(small, on="id_hash", how="left_semi")
    nothing_remembered = out.current(LEFT_OUT)
    left_out = copies_left_out(candidates, nothing_remembered).localCheckpoint()
    out.append(HOURLY_COUNTS, hourly_counts(plays, left_out), note="bench")


def count_with_duckdb(lake_root: Path, target: Path) -> None:
    """Do the same with DuckDB, all of its threads and its own limit of memory; Parquet goes into `target`."""
    with LakeFiles(lake_root, memory_limit="80%") as files:
        plays = files.pin(PLAYS).scan()
        files.connection.execute(
            f"""CREATE TEMP TABLE repeated AS
            SELECT id_hash FROM {plays} GROUP BY id_hash HAVING count(*) > 1"""  # noqa: S608  paths of our own
        )
        files.connection.execute(
            f"""CREATE TEMP TABLE left_out AS SELECT * FROM (
              SELECT {_KEYS}, count, payload_hash, row_number() OVER same_id AS place,
                first_value(payload_hash) OVER same_id AS winner
              FROM {plays} SEMI JOIN repeated USING (id_hash)
              WINDOW same_id AS (PARTITION BY event_id ORDER BY {_POSITION})) WHERE place > 1"""  # noqa: S608
        )
        files.connection.execute(
            f"COPY ({_hourly_sql(plays)}) TO '{target}' (FORMAT parquet, COMPRESSION zstd,"
            " PARTITION_BY (event_date, event_hour))"
        )


def _hourly_sql(plays: str) -> str:
    """Return the query of one row per hour, region and item; a row without left-out events has zeros."""
    measures = [
        f"coalesce({name}{of}, 0) AS {name}{of}" for of in ("", "_events") for name in ("duplicates", "conflicts")
    ]
    counted = [f"received{of} - coalesce(duplicates{of} + conflicts{of}, 0) AS counted{of}" for of in ("", "_events")]
    return f"""
        WITH received AS (
          SELECT {_KEYS}, sum(count)::BIGINT AS received, count(*) AS received_events FROM {plays} GROUP BY ALL),
        lost AS (
          SELECT {_KEYS},
            coalesce(sum(count) FILTER (payload_hash = winner), 0)::BIGINT AS duplicates,
            coalesce(sum(count) FILTER (payload_hash <> winner), 0)::BIGINT AS conflicts,
            count(*) FILTER (payload_hash = winner) AS duplicates_events,
            count(*) FILTER (payload_hash <> winner) AS conflicts_events
          FROM left_out GROUP BY ALL)
        SELECT {_KEYS}, received, received_events, {", ".join(measures)},
          0::BIGINT AS excluded, 0::BIGINT AS excluded_events, {", ".join(counted)}
        FROM received LEFT JOIN lost USING ({_KEYS})"""  # noqa: S608


def totals_of_release(lake_root: Path) -> Totals:
    """Return what the newest release of a lake says, read without Spark."""
    with LakeReader(lake_root) as reader:
        return Totals(*reader.files.rows(f"SELECT {_TOTALS} FROM {reader.table(HOURLY_COUNTS).scan()}")[0])  # noqa: S608


def totals_of_table(lake_root: Path) -> Totals:
    """Return what `gold/hourly_counts` holds, released or not."""
    with LakeFiles(lake_root) as files:
        return Totals(*files.rows(f"SELECT {_TOTALS} FROM {files.pin(HOURLY_COUNTS).scan()}")[0])  # noqa: S608


def totals_of_parquet(folder: Path) -> Totals:
    """Return what Parquet files hold."""
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")  # it would stand in our tables
        found = connection.execute(f"SELECT {_TOTALS} FROM read_parquet('{folder}/**/*.parquet')").fetchall()  # noqa: S608
    return Totals(*found[0])
