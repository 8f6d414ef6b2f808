"""The only writer of bronze: appends through deltalake, exactly once per (writer, transaction)."""

import random
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError

from domain.errors import LakeboardError
from domain.frontier import read_to_of_log
from domain.position import LAKE_WRITER, BronzePosition
from domain.table import Table, Writer
from domain.tables import BRONZE, PLAYS
from ingest.arrow import arrow_schema
from ingest.delta_log import app_transactions, newest_version, row_count
from ingest.durable import make_durable
from ingest.table_lock import locked

_RETENTION = {
    "delta.logRetentionDuration": "interval 90 days",
    "delta.deletedFileRetentionDuration": "interval 30 days",
}
_CONFIGURATION = {
    Writer.LAKE_WRITER: {**_RETENTION, "delta.enableChangeDataFeed": "true", "delta.appendOnly": "true"},
    Writer.SPARK: _RETENTION,
    Writer.ARCHIVER: {**_RETENTION, "delta.appendOnly": "true"},
}
PARQUET = WriterProperties(compression="ZSTD")
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


class MovedError(LakeboardError):
    """A transaction is not where the rows go on from: somebody else wrote on."""

    def __init__(self, table: str, writer: str, expected: int, found: int) -> None:
        super().__init__(table, writer, expected, found)
        self.table = table
        self.writer = writer
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        return (
            f"{self.table}: {self.writer} stands at {self.found} and not at {self.expected}: another process wrote on; "
            "nothing was written, read again from where it stands"
        )


class BronzeWriter:
    """Appends to the bronze tables of one lake, creating them at first use.

    A transaction is (writer, seq) with seq growing. What is there already is skipped, so every call may be repeated.

    Args:
        lake_root: Folder of the lake.
        on_wait: Told (table, holder) when another process holds a table's lock.
        pause: Waits so many seconds before a commit that lost against another writer is tried again.
    """

    def __init__(
        self,
        lake_root: Path,
        *,
        on_wait: Callable[[str, str], None] | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.lake_root = lake_root
        self._on_wait = on_wait
        self._pause = pause

    def create(self) -> None:
        """Create the bronze tables that are not there yet, empty."""
        for table in BRONZE:
            with locked(self.lake_root, table.name, on_wait=self._on_wait):
                create_tables(self.lake_root, (table,))

    def last_seq(self, table: Table, writer: str) -> int:
        """Return the last transaction of this writer in this table, -1 before its first."""
        return _last(self._open(table), writer)

    def transactions(self, table: Table) -> tuple[int, dict[str, int]]:
        """Return the version of a table and every writer's last transaction in it."""
        version = self._open(table).version()
        return version, app_transactions(self.lake_root / table.name, version)

    def append(self, table: Table, rows: pa.Table, *, writer: str, seq: int) -> int:
        """Commit rows as transaction (writer, seq); return how many were written, 0 when it was there already.

        The rows carry `writer` and `writer_seq` themselves. An empty transaction is committed too, as a mark.
        What was written is on disk when this returns.

        Raises:
            NotCommittedError: other writers won every try.
        """
        with locked(self.lake_root, table.name, on_wait=self._on_wait):
            handle = self._committed(
                table, rows, by=writer, transactions={writer: seq}, is_wanted=lambda found: _last(found, writer) < seq
            )
            if handle is None:
                return 0
            make_durable(self.lake_root / table.name, [handle.version()])
            return len(rows)

    def append_from(
        self, table: Table, rows: pa.Table, *, after: Mapping[str, int], transactions: Mapping[str, int]
    ) -> int:
        """Commit rows of several writers and all their transactions at once; return the version this made.

        Args:
            table: Which table.
            rows: They carry `writer` and `writer_seq` themselves.
            after: Where each writer must stand now, -1 before its first transaction.
            transactions: Where writers stand with this commit, and marks of other names.

        Raises:
            MovedError: a writer does not stand there.
            NotCommittedError: other writers won every try.
        """

        def is_wanted(found: DeltaTable) -> bool:
            _require_at(table, after, app_transactions(self.lake_root / table.name, found.version()))
            return True

        with locked(self.lake_root, table.name, on_wait=self._on_wait):
            handle = self._committed(table, rows, by="lake writer", transactions=transactions, is_wanted=is_wanted)
        assert handle is not None  # noqa: S101  it is always wanted
        return int(handle.version())

    def _committed(
        self,
        table: Table,
        rows: pa.Table,
        *,
        by: str,
        transactions: Mapping[str, int],
        is_wanted: Callable[[DeltaTable], bool],
    ) -> DeltaTable | None:
        """Commit rows, again when another writer was first; the caller holds the lock.

        Args:
            table: Which table.
            rows: Its rows.
            by: Who commits, for people.
            transactions: What is noted with them.
            is_wanted: Looks at the table as each try finds it; false ends the tries.

        Returns:
            The table as this left it, None when the commit was not wanted.

        Raises:
            NotCommittedError: other writers won every try.
        """
        rows = rows.select(table.column_names).cast(arrow_schema(table))
        for attempt in range(_TRIES):
            handle = self._open(table)
            if not is_wanted(handle):
                return None
            try:
                self._commit(handle, rows, by, transactions)
            except CommitFailedError:
                self._pause(random.uniform(0, 0.05 * 2**attempt))  # noqa: S311  jitter, not a secret
            else:
                return handle
        raise NotCommittedError(table.name, *next(iter(transactions.items())))

    @staticmethod
    def _commit(handle: DeltaTable, rows: pa.Table, by: str, transactions: Mapping[str, int]) -> None:
        """Write through the handle whose transactions were read, so that a rival of the same writer conflicts."""
        properties = CommitProperties(
            app_transactions=[Transaction(writer, seq) for writer, seq in transactions.items()],
            custom_metadata={"writer": by},
            max_commit_retries=0,
        )
        write_deltalake(handle, rows, mode="append", commit_properties=properties, writer_properties=PARQUET)

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


def compact(lake_root: Path, table: Table) -> tuple[int, int]:
    """Write small files of an append-only table together and remove those past retention; the caller holds its lock.

    Returns the number of files before and after. Rows, their transactions and every position stay as they are.
    """
    handle = DeltaTable(lake_root / table.name)
    before, version = len(handle.file_uris()), handle.version()
    handle.optimize.compact(writer_properties=PARQUET)
    handle.vacuum(dry_run=False)
    make_durable(lake_root / table.name, range(version + 1, handle.version() + 1))
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


def log_read_to(lake_root: Path, version: int, table: Table = PLAYS) -> dict[str, datetime]:
    """Return per partition of the log in use up to when bronze holds all of its entries (UTC, exclusive).

    As of a version of `bronze/plays` or `bronze/scores`. Imports have none.
    """
    return read_to_of_log(app_transactions(lake_root / table.name, version))


def _require_at(table: Table, after: Mapping[str, int], found: Mapping[str, int]) -> None:
    for writer, expected in after.items():
        if (at := found.get(writer, -1)) != expected:
            raise MovedError(table.name, writer, expected, at)


def _last(handle: DeltaTable, writer: str) -> int:
    seq = handle.transaction_version(writer)
    return -1 if seq is None else seq
