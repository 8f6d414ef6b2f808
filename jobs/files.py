"""Which files of a table can hold what is asked for, by their folders and statistics: Delta's log, no Spark."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from domain.table import Table
from ingest.read_files import LakeUnreadableError, first_line, statistics

_UNKNOWN_ROWS = 2**40  # a file that does not say how many rows it has counts as large


@dataclass(frozen=True, slots=True)
class File:
    """One file of a table: its path, its rows, and what its folder and statistics say, as `min.x`, `max.x` or `x`."""

    path: str
    rows: int
    says: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Files:
    """Some files of a table at one Delta version."""

    table: Table
    version: int
    files: tuple[File, ...]

    @property
    def rows(self) -> int:
        """Rows in these files, an upper bound of those that are asked for."""
        return sum(file.rows for file in self.files)

    def where(self, holds: Callable[[Mapping[str, Any]], bool]) -> Self:
        """Return those files of which this holds."""
        return type(self)(self.table, self.version, tuple(file for file in self.files if holds(file.says)))


def files_of(lake_root: Path, table: Table, *wanted: str) -> Files:
    """Return the files of a table as it is now, with these statistics of each; None where a file has none.

    Raises:
        LakeUnreadableError: the table is not there, or its log is damaged.
    """
    try:
        delta = DeltaTable(lake_root / table.name)
        folders = [f"partition.{name}" for name in table.partition_by]
        facts = statistics(delta, "path", "num_records", *folders, *wanted)
    except (DeltaError, OSError) as error:
        raise LakeUnreadableError(table.name, first_line(error)) from error
    paths, rows, *said = facts.values()
    names = (*table.partition_by, *wanted)
    files = tuple(
        File(
            str(lake_root / table.name / path), _UNKNOWN_ROWS if n is None else n, dict(zip(names, values, strict=True))
        )
        for path, n, *values in zip(paths, rows, *said, strict=True)
    )
    return Files(table, delta.version(), files)
