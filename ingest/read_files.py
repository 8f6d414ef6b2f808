"""Opens Delta tables at one version and hands their files to DuckDB, without a JVM.

DuckDB reads the Parquet files itself. Going through a pyarrow dataset would do the same, but importing
`pyarrow.dataset` imports pandas where that is installed: 2 s before the first row, on a budget of 2 s.
"""

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import duckdb
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from domain.errors import BadRequestError, LakeboardError
from domain.table import Column, Table, Type

_DUCKDB = {
    Type.STRING: "VARCHAR",
    Type.INT: "INTEGER",
    Type.LONG: "BIGINT",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMPTZ",
    Type.BOOLEAN: "BOOLEAN",
}
# DuckDB takes `key=value` in any folder's name for a partition, above the lake too, and these others for
# patterns.
_MISREAD = frozenset("=*?[]{}")


class LakeUnreadableError(LakeboardError):
    """A table or one of its files that a release names cannot be read."""

    def __init__(self, what: str, detail: str) -> None:
        super().__init__(what, detail)
        self.what = what
        self.detail = detail

    def __str__(self) -> str:
        return (
            f"{self.what} cannot be read ({self.detail}): a file was removed or damaged; bring it back "
            "from a copy, or, for a derived table without one, build them anew as docs/when-something-fails.md says"
        )


@dataclass(frozen=True, slots=True)
class DataFile:
    """One Parquet file of a table: its path below the table, partition values by column, rows and bytes."""

    path: str
    partition: Mapping[str, Any]
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """One table at one Delta version; `version` is None for one that does not exist and has no files."""

    table: Table
    folder: str
    version: int | None
    files: tuple[DataFile, ...]

    @property
    def rows(self) -> int:
        """Rows, by the files' statistics."""
        return sum(file.rows for file in self.files)

    @property
    def size_bytes(self) -> int:
        """Bytes of the files of this version; other versions' files lie beside them."""
        return sum(file.size_bytes for file in self.files)

    def where(self, keep: Callable[[Mapping[str, Any]], bool]) -> Self:
        """Return the table with only the files whose partition values `keep` holds for."""
        kept = tuple(file for file in self.files if keep(file.partition))
        return type(self)(self.table, self.folder, self.version, kept)

    def paths(self) -> list[str]:
        """Return the files' paths as DuckDB is given them."""
        return [f"{self.folder}/{file.path}" for file in self.files]

    def scan(self) -> str:
        """Return a parenthesised SELECT of all columns with the types of `domain/tables.py`."""
        columns = self.table.columns
        if not self.files:
            nothing = ", ".join(f"NULL::{_DUCKDB[c.type]} AS {_quoted(c.name)}" for c in columns)
            return f"(SELECT {nothing} WHERE false)"
        typed = ", ".join(_typed(column) for column in columns)
        partitions = [c for c in columns if c.name in self.table.partition_by]
        types = ", ".join(f"'{c.name}': {_DUCKDB[c.type]}" for c in partitions)
        hive = f"hive_partitioning = true, hive_types = {{{types}}}" if types else "hive_partitioning = false"
        return f"(SELECT {typed} FROM read_parquet([{_literals(self.paths())}], {hive}))"  # noqa: S608


class MemoryLimitError(BadRequestError):
    """A memory limit was given that DuckDB cannot read."""

    def __init__(self, limit: str) -> None:
        super().__init__(limit)
        self.limit = limit

    def __str__(self) -> str:
        return f"{self.limit!r} is no amount of memory: write a number and a unit, such as 500MB or 4GB"


class LakeFiles:
    """The tables of one lake as files, and a DuckDB connection that reads them. Close it after use."""

    def __init__(self, lake_root: Path, *, memory_limit: str = "1GB") -> None:
        self.lake_root = lake_root.absolute()
        self._scratch = tempfile.TemporaryDirectory(prefix="lakeboard-")
        self.root = self._plain_root()
        self.connection = _connect(memory_limit, self._scratch.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection and remove what it spilled to disk."""
        self.connection.close()
        self._scratch.cleanup()

    def pin(self, table: Table, version: int | None = None) -> PinnedTable:
        """Open a table at a version, its newest one when none is said. One that does not exist is empty.

        Raises:
            LakeUnreadableError: the version does not exist, or its log is damaged.
        """
        folder = self.lake_root / table.name
        if version is None and not (folder / "_delta_log").is_dir():
            return PinnedTable(table, f"{self.root}/{table.name}", None, ())
        try:
            delta = DeltaTable(folder, version=version)
            files = tuple(_data_files(delta, table))
        except (DeltaError, OSError) as error:
            what = table.name if version is None else f"{table.name} at version {version}"
            raise LakeUnreadableError(what, first_line(error)) from error
        return PinnedTable(table, f"{self.root}/{table.name}", delta.version(), files)

    def rows(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Run a query of ours and return its rows.

        Raises:
            LakeUnreadableError: a file is missing or damaged.
        """
        try:
            return self.connection.execute(sql, dict(parameters or {})).fetchall()
        except (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException):
            raise  # no fault of the lake, but of our SQL
        except duckdb.Error as error:
            what = f"a file of {self.lake_root}"
            raise LakeUnreadableError(what, first_line(error)) from error

    def _plain_root(self) -> str:
        """Return the lake's root under a name that DuckDB reads as a plain path."""
        if _MISREAD.isdisjoint(str(self.lake_root)):
            return str(self.lake_root)
        alias = Path(self._scratch.name, "lake")
        os.symlink(self.lake_root, alias)
        return str(alias)


def _connect(memory_limit: str, temp_directory: str) -> duckdb.DuckDBPyConnection:
    try:
        connection = duckdb.connect(
            config={
                "memory_limit": memory_limit,
                "temp_directory": temp_directory,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "python_enable_replacements": False,
            }
        )
    except duckdb.Error as error:
        raise MemoryLimitError(memory_limit) from error
    connection.execute("SET TimeZone = 'UTC'")  # or a date would begin at the machine's midnight
    connection.execute("SET enable_progress_bar = false")  # it would stand between the lines of an answer
    return connection


def statistics(delta: DeltaTable, *columns: str) -> dict[str, list[Any]]:
    """Return columns of the add actions (`path`, `num_records`, `partition.x`, `max.x`), one value a file."""
    actions = delta.get_add_actions(flatten=True)
    present = set(actions.schema.names)
    absent = [None] * len(actions)
    return {n: list(actions.column(n).to_pylist()) if n in present else absent for n in columns}


def _data_files(delta: DeltaTable, table: Table) -> Iterable[DataFile]:
    partitions = [f"partition.{name}" for name in table.partition_by]
    facts = statistics(delta, "path", "num_records", "size_bytes", *partitions)
    values = zip(*(facts[name] for name in partitions), strict=True) if partitions else ((),) * len(facts["path"])
    for path, rows, size, partition in zip(
        facts["path"], facts["num_records"], facts["size_bytes"], values, strict=True
    ):
        yield DataFile(path, dict(zip(table.partition_by, partition, strict=True)), rows, size)


def _typed(column: Column) -> str:
    """A cast to the type it has already costs nothing and is not in the way of pruning by statistics."""
    name = _quoted(column.name)
    return f"CAST({name} AS {_DUCKDB[column.type]}) AS {name}"


def _quoted(name: str) -> str:
    return f'"{name}"'


def _literals(paths: Iterable[str]) -> str:
    return ", ".join("'" + path.replace("'", "''") + "'" for path in paths)


def first_line(error: Exception) -> str:
    """Return what an error says without its details."""
    return str(error).strip().split("\n")[0]
