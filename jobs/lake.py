"""The only reader and writer of Delta tables through Spark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from domain.errors import LakeboardError
from domain.position import BronzePosition
from domain.tables import PLAYS, Table
from ingest.delta_log import commit_info, newest_version
from pipelines.schemas import conformed


class UnexpectedCommitError(LakeboardError):
    """A commit of ours is not the one we find in the table, or it copied rows it should not have touched."""

    def __init__(self, table: str, problem: str) -> None:
        super().__init__(table, problem)
        self.table = table
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.table}: {self.problem}; no release was made, run `lakeboard recount` again"


@dataclass(frozen=True, slots=True)
class Commit:
    """What a commit did, by its own metrics."""

    table: str
    version: int
    files_added: int
    files_removed: int
    rows_copied: int


class Lake:
    """The lake's derived tables, and bronze at one pinned version."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark = spark
        self.root = root
        # A session that lives on may remember a log as it was before somebody replaced a commit of it.
        jvm: Any = spark.sparkContext._jvm
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    def bronze(self, position: BronzePosition) -> DataFrame:
        """Return `bronze/plays` at a pinned version: appends and compaction since then are not seen."""
        return self.spark.read.format("delta").option("versionAsOf", position.version).load(self._path(PLAYS))

    def current(self, table: Table) -> DataFrame:
        """Return a derived table as it is now; the frame keeps showing that state when the table moves on."""
        return self.spark.read.format("delta").load(self._path(table))

    def frame(self, rows: Sequence[Mapping[str, Any]], schema: T.StructType) -> DataFrame:
        """Return a few rows of this process as a frame.

        Through Arrow: a list of Python rows would start Python workers, which cost seconds.
        """
        return self.spark.createDataFrame(pa.Table.from_pylist(list(rows), schema=to_arrow_schema(schema)), schema)

    def version(self, table: Table) -> int:
        """Return the newest Delta version of a table, -1 before it exists."""
        return newest_version(self.root / table.name)

    def replace(self, table: Table, rows: DataFrame, condition: str, *, note: str) -> Commit:
        """Replace the folders that a condition on partition columns names; folders without new rows are cleared.

        Raises:
            UnexpectedCommitError: the commit found in the table is not this one, or it copied rows of other folders.
        """
        if rows.isEmpty() and self.current(table).where(condition).isEmpty():
            return Commit(table.name, self.version(table), 0, 0, 0)  # Delta makes no commit of nothing
        commit = self._write(table, rows, note, mode="overwrite", replaceWhere=condition)
        if commit.rows_copied:
            raise UnexpectedCommitError(
                table.name, f"{commit.rows_copied} rows outside the replaced span were rewritten"
            )
        return commit

    def append(self, table: Table, rows: DataFrame, *, note: str) -> Commit:
        """Append rows in one commit.

        Raises:
            UnexpectedCommitError: the commit found in the table is not this one.
        """
        return self._write(table, rows, note, mode="append")

    def optimize(self, table: Table) -> None:
        """Write small files of a folder together; rows stay as they are."""
        self.spark.sql(f"OPTIMIZE delta.`{self._path(table)}`")

    def vacuum(self, table: Table) -> None:
        """Remove files that no version within the table's retention (30 days) uses."""
        self.spark.sql(f"VACUUM delta.`{self._path(table)}`")

    def restore(self, table: Table, version: int) -> None:
        """Bring a table back to what it held at an earlier version, as a new version."""
        self.spark.sql(f"RESTORE TABLE delta.`{self._path(table)}` TO VERSION AS OF {version}")

    def _write(self, table: Table, rows: DataFrame, note: str, *, mode: str, **options: str) -> Commit:
        """Write one file per folder, then find our own commit in the log: a commit is believed when it is seen."""
        before = self.version(table)
        folders = rows.repartition(*table.partition_by) if table.partition_by else rows.coalesce(1)
        writer = conformed(folders, table).write.format("delta").mode(mode).option("userMetadata", note)
        writer.options(**options).save(self._path(table))
        info = commit_info(self.root / table.name, before + 1)
        if info.get("userMetadata") != note or self.version(table) != before + 1:
            raise UnexpectedCommitError(table.name, f"version {before + 1} is not the commit we made")
        metrics = {name: int(value) for name, value in info["operationMetrics"].items() if str(value).isdigit()}
        return Commit(
            table=table.name,
            version=before + 1,
            files_added=metrics.get("numFiles", metrics.get("numAddedFiles", 0)),
            files_removed=metrics.get("numRemovedFiles", 0),
            rows_copied=metrics.get("numCopiedRows", 0),
        )

    def _path(self, table: Table) -> str:
        return str(self.root / table.name)
