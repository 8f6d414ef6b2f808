"""The only writer of bronze: appends through deltalake, exactly once per (writer, transaction)."""

import random
import time
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError

from domain.errors import LakeboardError
from domain.position import LAKE_WRITER, READ_TO, BronzePosition
from domain.tables import BRONZE, PLAYS, Table, Writer
from domain.windows import EPOCH
from ingest.arrow import arrow_schema
from ingest.delta_log import app_transactions, newest_version, row_count
from ingest.table_lock import locked

_RETENTION = {
    "delta.logRetentionDuration": "interval 90 days",
    "delta.deletedFileRetentionDuration": "interval 30 days",
}
_CONFIGURATION = {
    Writer.LAKE_WRITER: {**_RETENTION, "delta.enableChangeDataFeed": "true", "delta.appendOnly": "true"},
    Writer.SPARK: _RETENTION,
}
_PARQUET = WriterProperties(compression="ZSTD")
_TRIES = 10


class NotCommittedError(LakeboardError):
    """A commit kept losing against other writers, or was not found in the table afterwards."""

    def __init__(self, table: str, writer: str, seq: int) -> None:
        super().__init__(table, writer, seq)
        self.table = table
        self.writer = writer
        self.seq = seq

    def __str__(self) -> str:
        return (
            f"{self.table}: transaction {self.seq} of {self.writer} could not be committed in {_TRIES} tries; "
            "nothing of it was written, run the same command again"
        )


class BronzeWriter:
    """Appends to the bronze tables of one lake, creating them at first use.

    A transaction is (writer, seq) with seq growing. What is there already is skipped, so every call may be repeated.

    Args:
        lake_root: Folder of the lake.
        on_wait: Told (table, holder) when another process holds a table's lock.
    """

    def __init__(self, lake_root: Path, *, on_wait: Callable[[str, str], None] | None = None) -> None:
        self.lake_root = lake_root
        self._on_wait = on_wait

    def create(self) -> None:
        """Create the bronze tables that are not there yet, empty."""
        for table in BRONZE:
            with locked(self.lake_root, table.name, on_wait=self._on_wait):
                create_tables(self.lake_root, (table,))

    def last_seq(self, table: Table, writer: str) -> int:
        """Return the last transaction of this writer in this table, -1 before its first."""
        return _last(self._open(table), writer)

    def append(self, table: Table, rows: pa.Table, *, writer: str, seq: int) -> int:
        """Commit rows as transaction (writer, seq); return how many were written, 0 when it was there already.

        The rows carry `writer` and `writer_seq` themselves. An empty transaction is committed too, as a mark.

        Raises:
            NotCommittedError: other writers won every try.
        """
        rows = rows.select(table.column_names).cast(arrow_schema(table))
        with locked(self.lake_root, table.name, on_wait=self._on_wait):
            for attempt in range(_TRIES):
                handle = self._open(table)
                if _last(handle, writer) >= seq:
                    return 0
                try:
                    self._commit(handle, rows, writer, seq)
                except CommitFailedError:
                    time.sleep(random.uniform(0, 0.05 * 2**attempt))  # noqa: S311  jitter, not a secret
                else:
                    return len(rows)
        raise NotCommittedError(table.name, writer, seq)

    @staticmethod
    def _commit(handle: DeltaTable, rows: pa.Table, writer: str, seq: int) -> None:
        """Write through the handle whose transactions were read, so that a rival of the same writer conflicts."""
        properties = CommitProperties(
            app_transactions=[Transaction(writer, seq)], custom_metadata={"writer": writer}, max_commit_retries=0
        )
        write_deltalake(handle, rows, mode="append", commit_properties=properties, writer_properties=_PARQUET)

    def _open(self, table: Table) -> DeltaTable:
        return DeltaTable(self.lake_root / table.name)


def create_tables(lake_root: Path, tables: Iterable[Table]) -> None:
    """Create the tables that are not there yet, empty; the caller holds their locks.

    Also those that Spark writes: deltalake creates one in milliseconds where Spark takes seconds, and at its
    creation no other engine can know the table (docs/decisions/0004).
    """
    for table in tables:
        if newest_version(lake_root / table.name) < empty_version(table):
            _create(lake_root / table.name, table)


def compact_bronze(lake_root: Path, table: Table) -> tuple[int, int]:
    """Write small files of a bronze table together and remove those past retention; the caller holds its lock.

    Returns the number of files before and after. Rows, their transactions and every position stay as they are.
    """
    handle = DeltaTable(lake_root / table.name)
    before = len(handle.file_uris())
    handle.optimize.compact(writer_properties=_PARQUET)
    handle.vacuum(dry_run=False)
    return before, len(handle.file_uris())


def empty_version(table: Table) -> int:
    """Return the version a table has when it was just created: one commit, and one per constraint."""
    return len(table.checks)


def _create(path: Path, table: Table) -> None:
    if not DeltaTable.is_deltatable(str(path)):
        DeltaTable.create(
            path,
            schema=arrow_schema(table),
            name=table.view,
            description=table.grain,
            partition_by=list(table.partition_by),
            configuration=_CONFIGURATION[table.writer],
        )
    present = DeltaTable(path).metadata().configuration
    missing = {name: check for name, check in table.checks if f"delta.constraints.{name}" not in present}
    for name, check in missing.items():  # one a commit: deltalake takes no more
        DeltaTable(path).alter.add_constraint({name: check})


def bronze_position(lake_root: Path) -> BronzePosition:
    """Return the present state of `bronze/plays`: version, rows by file statistics, last transaction per writer."""
    path = lake_root / PLAYS.name
    table = DeltaTable(path)
    transactions = app_transactions(path, table.version())
    writers = {app: seq for app, seq in transactions.items() if app.startswith(LAKE_WRITER)}
    return BronzePosition(version=table.version(), events=row_count(table), writers=writers)


def log_read_to(lake_root: Path, version: int) -> dict[str, datetime]:
    """Return per log partition up to when bronze holds all of its entries, as of a version of `bronze/plays`.

    The lake writer keeps it as transactions `read_to/<log id>/<partition>`, milliseconds since the epoch, UTC.
    Imports have none.
    """
    transactions = app_transactions(lake_root / PLAYS.name, version)
    return {app: EPOCH + timedelta(milliseconds=ms) for app, ms in transactions.items() if app.startswith(READ_TO)}


def _last(handle: DeltaTable, writer: str) -> int:
    seq = handle.transaction_version(writer)
    return -1 if seq is None else seq
