"""What tests of readers share."""

from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, settings

from ingest.importers.chunks import Chunk, Reader
from ingest.importers.columns import Field, Fields

FIELDS = Fields(item=Field.parse("item"), time=Field.parse("time"))
IN_TINY_BLOCKS = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def rows_of(reader: Reader) -> list[tuple[Any, ...]]:
    """Return of each row (row, line, text, reason or None, item, time)."""
    return [row for chunk in reader.chunks() for row in chunk_rows(chunk)]


def chunk_rows(chunk: Chunk) -> Iterator[tuple[Any, ...]]:
    broken = {fault.row: fault.reason.value for fault in chunk.parsed.broken}
    for row, text in enumerate(chunk.records):
        line = None if chunk.lines is None else chunk.lines[row]
        found = (chunk.parsed.columns[name][row].as_py() for name in ("item", "time"))
        yield (chunk.first_row + row, line, text, broken.get(row), *found)
