"""The only reader and writer of Delta tables through Spark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from domain.errors import LakeboardError
from domain.table import Table
from ingest.delta_log import commit_info, newest_version
from jobs.files import Files, files_of
from jobs.pace import Pace
from pipelines.hours import Folders
from pipelines.schemas import conformed, spark_schema

# Up to so many files are named to Spark; asking Delta which they are would cost some jobs of its own.
FEW_FILES = 256


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


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows of a table; `rows` bounds their number from above, by the statistics of their files."""

    frame: DataFrame
    rows: int

    def where(self, condition: Column | str) -> Self:
        """Return the rows among these for which a condition holds."""
        return type(self)(self.frame.where(condition), self.rows)


class Lake:
    """The lake's tables, read and written through Spark."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark = spark
        self.root = root
        self.pace = Pace(spark)
        self._rows_of: WeakKeyDictionary[DataFrame, int] = WeakKeyDictionary()
        # A session that lives on may remember a log as it was before somebody replaced a commit of it.
        jvm: Any = spark.sparkContext._jvm
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    def current(self, table: Table) -> DataFrame:
        """Return a table as it is now; the frame keeps showing that state when the table moves on."""
        return self.spark.read.format("delta").load(self._path(table))

    def files(self, table: Table, *wanted: str) -> Files:
        """Return the files of a table as it is now, with these statistics of each."""
        return files_of(self.root, table, *wanted)

    def part(self, files: Files, condition: str = "true") -> Part:
        """Return the rows of these files, or, of many files, those of the table for which the condition holds.

        Few rows come in one partition: what is computed from them then needs no shuffle.
        """
        if not files.files:
            return Part(self.frame([], spark_schema(files.table)), 0)
        if len(files.files) <= FEW_FILES:
            rows = self._named(files)
        else:
            pinned = self.spark.read.format("delta").option("versionAsOf", files.version)
            rows = pinned.load(self._path(files.table)).where(condition)
        return Part(rows.coalesce(1) if self.pace.are_few(files.rows) else rows, files.rows)

    def _named(self, files: Files) -> DataFrame:
        reader = self.spark.read.format("parquet").schema(spark_schema(files.table))
        # A path of ours is no pattern, and folders above the table are no columns.
        reader = reader.option("__globPaths__", "false").option("basePath", self._path(files.table))
        rows = reader.load([file.path for file in files.files])
        return rows.select(*files.table.column_names)  # the reader puts folders' columns last

    def frame(self, rows: Sequence[Mapping[str, Any]], schema: T.StructType) -> DataFrame:
        """Return a few rows of this process as a frame.

        Through Arrow: a list of Python rows would start Python workers, which cost seconds.
        """
        return self.local(pa.Table.from_pylist(list(rows), schema=to_arrow_schema(schema)), schema)

    def local(self, rows: pa.Table, schema: T.StructType) -> DataFrame:
        """Return few rows as a frame of one partition; of no rows Spark knows that nothing follows from them."""
        frame = self.spark.createDataFrame(rows, schema)
        frame = frame.coalesce(1) if rows.num_rows else frame
        self._rows_of[frame] = rows.num_rows
        return frame

    def keep(self, rows: DataFrame) -> DataFrame:
        """Compute now what several steps read, and cut its plan: nested cached plans grow past any memory.

        Few rows come into this process: of no rows Spark then knows, before it plans a job over them.
        """
        return self.local(rows.toArrow(), rows.schema) if self.pace.quick else rows.localCheckpoint(eager=True)

    def is_empty(self, rows: DataFrame) -> bool:
        """Say whether there are no rows; of those in this process that is known without a job."""
        known = self._rows_of.get(rows)
        return rows.isEmpty() if known is None else not known

    def version(self, table: Table) -> int:
        """Return the newest Delta version of a table, -1 before it exists."""
        return newest_version(self.root / table.name)

    def replace(self, table: Table, rows: DataFrame, folders: Folders, *, note: str) -> Commit:
        """Replace some folders; those without new rows are cleared.

        Raises:
            UnexpectedCommitError: the commit found in the table is not this one, or it copied rows of other folders.
        """
        if self.is_empty(rows) and not self.files(table).where(folders.holds).rows:
            return Commit(table.name, self.version(table), 0, 0, 0)  # Delta makes no commit of nothing
        commit = self._write(table, rows, note, mode="overwrite", replaceWhere=folders.condition)
        if commit.rows_copied:
            raise UnexpectedCommitError(
                table.name, f"{commit.rows_copied} rows outside the replaced span were rewritten"
            )
        return commit

    def overwrite(self, table: Table, rows: DataFrame, *, where: str | None, note: str) -> Commit:
        """Replace all rows, or those for which a condition holds, by rows that are in order: files keep that order.

        Raises:
            UnexpectedCommitError: the commit found in the table is not this one.
        """
        if self.is_empty(rows) and not self.files(table).rows:
            return Commit(table.name, self.version(table), 0, 0, 0)  # Delta makes no commit of nothing
        options = {} if where is None else {"replaceWhere": where}
        return self._write(table, rows, note, mode="overwrite", in_order=True, **options)

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

    def _write(
        self, table: Table, rows: DataFrame, note: str, *, mode: str, in_order: bool = False, **options: str
    ) -> Commit:
        """Write one file per folder, or rows as they come, then find our own commit: it is believed when it is seen."""
        before = self.version(table)
        in_folders = bool(table.partition_by) and not self.pace.quick
        gathered = rows.repartition(*table.partition_by) if in_folders else rows if in_order else rows.coalesce(1)
        writer = conformed(gathered, table).write.format("delta").mode(mode).option("userMetadata", note)
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
