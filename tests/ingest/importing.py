"""What tests of importers share: files to import, a lake to import into, its rows as plain values."""

import gzip
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from domain.table import Table
from domain.tables import PLAYS, REJECTS
from ingest.importers.request import FileSummary, ImportRequest, ImportSummary
from ingest.importers.run import import_files
from ingest.read_files import LakeFiles

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SHARED = Path(__file__).parents[3] / "shared" / "data"
HEADER = "item,time\n"


def file_of(folder: Path, text: str | bytes, name: str = "plays.csv") -> Path:
    """Write a file; `.gz` is packed."""
    content = text.encode() if isinstance(text, str) else text
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)
    return path


def request_of(*files: Path, **options: Any) -> ImportRequest:
    """Columns `item` and `time`, unless told otherwise."""
    return ImportRequest(files=files, **{"item": "item", "time": "time", **options})


def import_into(
    lake: Path, *files: Path, now: datetime = NOW, commit_rows: int = 500_000, **options: Any
) -> ImportSummary:
    """Import with a clock that stands still."""
    request = request_of(*files, **options)
    return import_files(request, lake_root=lake, clock=lambda: now, commit_rows=commit_rows)


def import_text(folder: Path, text: str | bytes, name: str = "plays.csv", **options: Any) -> FileSummary:
    """Import one file made of this text into `<folder>/lake`."""
    return import_into(folder / "lake", file_of(folder, text, name), **options).files[0]


def plays(lake: Path) -> list[dict[str, Any]]:
    """Rows of `bronze/plays`, in order of source, file and row."""
    return _rows(lake, PLAYS, "source, log_partition, log_index")


def rejects(lake: Path) -> list[dict[str, Any]]:
    """Rows of `bronze/rejects`, in order of source, writer and row."""
    return _rows(lake, REJECTS, "source, writer, source_row")


def reasons(lake: Path) -> list[str]:
    """Reasons of the refused rows, in order."""
    return [row["reason"] for row in rejects(lake)]


def items(lake: Path) -> list[str]:
    """Items of the plays, in order."""
    return [row["item_id"] for row in plays(lake)]


def times(lake: Path) -> list[str]:
    """Times of the plays, in order, ISO 8601 in UTC."""
    return [row["event_time"].isoformat() for row in plays(lake)]


def contents(lake: Path) -> Mapping[str, list[dict[str, Any]]]:
    """Everything bronze holds."""
    return {"plays": plays(lake), "rejects": rejects(lake)}


def _rows(lake: Path, table: Table, order: str) -> list[dict[str, Any]]:
    with LakeFiles(lake) as files:
        rows = files.rows(f"SELECT * FROM {files.pin(table).scan()} ORDER BY {order}")
    return [dict(zip(table.column_names, map(_in_utc, row), strict=True)) for row in rows]


def _in_utc(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) else value
