"""Plays of one log as the lake has them, in the order of the log: what live counting is rebuilt from."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import cast

import duckdb
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from domain.position import LAKE_WRITER, LOG_IN_USE
from domain.tables import PLAYS
from domain.windows import milliseconds
from ingest.delta_log import app_transactions, newest_version
from ingest.read_files import LakeFiles, LakeUnreadableError, PinnedTable, first_line, statistics

_ROWS = 50_000  # of a record batch


def log_positions(lake_root: Path, log_id: str) -> tuple[int, dict[int, int]]:
    """Return the version of `bronze/plays` (-1: none), and up to where it has each partition of a log.

    The positions are by partition number, as `EntryId.version`, included; one of which it has nothing is absent.

    Raises:
        LakeUnreadableError: the table's log is damaged.
    """
    version = newest_version(lake_root / PLAYS.name)
    transactions = _transactions(lake_root, version)
    prefix = f"{LAKE_WRITER}{log_id}/"
    return version, {int(w.removeprefix(prefix)): at for w, at in transactions.items() if w.startswith(prefix)}


def had_another_log(lake_root: Path, version: int, log_id: str) -> bool:
    """Say whether the lake read another log before this one: then plays are missing in it that were accepted.

    Raises:
        LakeUnreadableError: the log of `bronze/plays` is damaged.
    """
    logs = {app for app in _transactions(lake_root, version) if app.startswith(LOG_IN_USE)}
    return bool(logs - {f"{LOG_IN_USE}{log_id}"})


def plays_of_log(
    lake_root: Path, *, version: int, log_id: str, since: datetime
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield (partition number, rows) of a log, by partition and then in the order of the log.

    Columns: `log_ms, log_sequence, id_hash, item_id, region, event_us, duration_ms, count`; `event_us` in microseconds
    since 1970 UTC.

    Args:
        lake_root: Folder of the lake.
        version: Of `bronze/plays`.
        log_id: Of which log.
        since: Log time of the first rows, inclusive, UTC.

    Raises:
        LakeUnreadableError: the table cannot be read.
    """
    with LakeFiles(lake_root) as files:
        plays = _may_hold(files.pin(PLAYS, version), lake_root, milliseconds(since))
        sql = f"""SELECT log_partition, log_ms, log_sequence, id_hash, item_id, region,
            epoch_us(event_time) AS event_us, duration_ms, count FROM {plays.scan()}
            WHERE log_id = $log AND log_ms >= $since
            ORDER BY log_partition, log_ms, log_sequence, log_index"""  # noqa: S608
        asked = {"log": log_id, "since": milliseconds(since)}
        try:
            found = files.connection.sql(sql, params=asked).to_arrow_reader(_ROWS)
            for rows in cast(Iterator[pa.RecordBatch], found):
                yield from _by_partition(rows)
        except duckdb.Error as error:
            raise LakeUnreadableError(PLAYS.name, first_line(error)) from error


def _transactions(lake_root: Path, version: int) -> dict[str, int]:
    if version < 0:
        return {}
    try:
        return app_transactions(lake_root / PLAYS.name, version)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise LakeUnreadableError(PLAYS.name, first_line(error)) from error


def _may_hold(plays: PinnedTable, lake_root: Path, since_ms: int) -> PinnedTable:
    """Return the table with only the files that may have rows of this log time or later."""
    try:
        facts = statistics(DeltaTable(lake_root / PLAYS.name, version=plays.version), "path", "max.log_ms")
    except (DeltaError, OSError) as error:
        raise LakeUnreadableError(PLAYS.name, first_line(error)) from error
    latest = dict(zip(facts["path"], facts["max.log_ms"], strict=True))
    kept = [file for file in plays.files if latest[file.path] is None or latest[file.path] >= since_ms]
    return replace(plays, files=tuple(kept))


def _by_partition(rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    numbers = rows.column("log_partition").to_numpy()
    start = 0
    while start < len(numbers):
        end = int(numbers.searchsorted(numbers[start], side="right"))
        yield int(numbers[start]), rows.slice(start, end - start)
        start = end
