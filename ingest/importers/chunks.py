"""What every reader yields: rows with their exact places, as text that is parsed only where it is needed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import pyarrow as pa

from domain.events import Reject

CHUNK_BYTES = 2 << 20
CHUNK_ROWS = 1 << 16
MAX_FIELD_CHARACTERS = 1 << 20


class Records:
    """The rows of a chunk as they stood, without line ends. A row may hold line ends inside quotes."""

    def __init__(self, rows: Sequence[bytes]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, row: int) -> bytes:
        return self._rows[row]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._rows)

    def canonical(self) -> bytes:
        """Return every row followed by one line feed: what prefix digests are made of."""
        return b"\n".join(self._rows) + b"\n" if self._rows else b""

    def cut(self, start: int, stop: int) -> "Records":
        """Return the rows from `start`, included, to `stop`, excluded."""
        return Records(self._rows[start:stop])


class LineRecords(Records):
    """Rows of one line each, kept as one text until a single row is asked for."""

    def __init__(self, text: bytes) -> None:
        """Take whole lines, none empty, each ended by one line feed."""
        self._text = text
        self._count = text.count(b"\n")

    @cached_property
    def _rows(self) -> list[bytes]:  # type: ignore[override]  # made when first needed
        return self._text[:-1].split(b"\n") if self._text else []

    def __len__(self) -> int:
        return self._count

    def canonical(self) -> bytes:
        """Return the text itself."""
        return self._text


@dataclass(frozen=True, slots=True)
class Broken:
    """A row that could not be parsed: its place in the chunk from 0, why, and the parser's words."""

    row: int
    reason: Reject
    detail: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """The wanted columns of a chunk, NULL in broken rows, and the broken rows in order.

    Columns are strings, or Arrow timestamps and dates where the file has such.
    """

    columns: Mapping[str, pa.Array]
    broken: Sequence[Broken]

    def cut(self, start: int, stop: int) -> "Parsed":
        """Return the rows from `start`, included, to `stop`, excluded."""
        columns = {name: column.slice(start, stop - start) for name, column in self.columns.items()}
        broken = [Broken(b.row - start, b.reason, b.detail) for b in self.broken if start <= b.row < stop]
        return Parsed(columns, broken)


class Chunk:
    """Some rows of a file, in order.

    Attributes:
        first_row: Row of the file, from 0, broken rows counted, header and blank lines not.
        records: The rows as they stood.
        lines: Line of the file, from 1, on which each row starts; None where the format has no lines.
    """

    def __init__(
        self, *, first_row: int, records: Records, lines: Sequence[int] | None, parse: Callable[[], Parsed]
    ) -> None:
        self.first_row = first_row
        self.records = records
        self.lines = lines
        self._parse = parse

    @property
    def end_row(self) -> int:
        """Row after the last one."""
        return self.first_row + len(self.records)

    @cached_property
    def parsed(self) -> Parsed:
        """Columns and broken rows, parsed when first asked for."""
        return self._parse()

    def pieces(self, cuts: Sequence[int]) -> Iterator["Chunk"]:
        """Yield the chunk cut before each of these rows of the file that lies inside it."""
        start = self.first_row
        for end in [*sorted(cut for cut in set(cuts) if self.first_row < cut < self.end_row), self.end_row]:
            yield self._cut(start - self.first_row, end - self.first_row)
            start = end

    def _cut(self, start: int, stop: int) -> "Chunk":
        if (start, stop) == (0, len(self.records)):
            return self
        return Chunk(
            first_row=self.first_row + start,
            records=self.records.cut(start, stop),
            lines=None if self.lines is None else self.lines[start:stop],
            parse=lambda: self.parsed.cut(start, stop),
        )


class Reader(Protocol):
    """An open file. It is read once, from its beginning."""

    @property
    def header(self) -> bytes:
        """What stands before the first row and belongs to the content, without its line end; b"" for none."""

    @property
    def share_done(self) -> float:
        """How much of the file has been read, 0 to 1, by its bytes on disk."""

    def chunks(self) -> Iterator[Chunk]:
        """Yield all rows in order."""


def strings(values: Sequence[str | None]) -> pa.Array:
    """Return texts as an Arrow column."""
    return pa.array(values, pa.string())
