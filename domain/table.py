"""What a table of the lake is, and the columns that several of them have."""

from dataclasses import dataclass
from enum import Enum


class Type(Enum):
    """Column types that Delta, Spark, Arrow, DuckDB and Polars all have; the value is Spark's DDL name."""

    STRING = "string"
    INT = "int"  # 32 bits
    LONG = "bigint"  # 64 bits
    DATE = "date"
    TIMESTAMP = "timestamp"  # UTC, microseconds
    BOOLEAN = "boolean"


class Writer(Enum):
    """The only engine that commits to a table."""

    LAKE_WRITER = "lake writer (deltalake)"
    SPARK = "Spark jobs"
    ARCHIVER = "rebuilds of boards (deltalake)"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its meaning says the unit, the time zone, and what NULL means where it is allowed."""

    name: str
    type: Type
    meaning: str
    nullable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table of the lake.

    Attributes:
        name: `<room>/<table>`, which is also its path below the lake's root.
        grain: What one row is.
        partition_by: Columns that are folders; a commit replaces whole folders.
        checks: CHECK constraints by name, comparisons of strings and integers only.
    """

    name: str
    grain: str
    columns: tuple[Column, ...]
    partition_by: tuple[str, ...]
    writer: Writer
    checks: tuple[tuple[str, str], ...] = ()

    @property
    def column_names(self) -> list[str]:
        """Names in order."""
        return [column.name for column in self.columns]

    @property
    def view(self) -> str:
        """Name in `lakeboard sql`: the part after the room."""
        return self.name.split("/")[1]


EVENT_DATE = Column("event_date", Type.DATE, "UTC day of event_time")
EVENT_HOUR = Column("event_hour", Type.INT, "UTC hour of event_time, 0 to 23")
INGESTED_DATE = Column("ingested_date", Type.DATE, "UTC day of ingested_at")
POSITION = (
    Column("ingested_at", Type.TIMESTAMP, "when the log took the event, UTC; for an import, when it began"),
    Column("log_id", Type.STRING, "the log it came through; `import/<source>` for an import"),
    Column("log_partition", Type.INT, "partition of the log; for an import, the number of the file in its source"),
    Column("log_ms", Type.LONG, "first part of the log's entry id, milliseconds since 1970 UTC"),
    Column("log_sequence", Type.LONG, "second part of the log's entry id; 0 for an import"),
    Column("log_index", Type.LONG, "place inside the entry, from 0; for an import, the row in its file"),
)
WRITER = (
    Column("writer", Type.STRING, "who committed the row: the id of its Delta transaction"),
    Column("writer_seq", Type.LONG, "version of that transaction, growing per writer"),
)
POSITION_COLUMNS = tuple(column.name for column in POSITION)
