"""CSV: blocks whose every line is surely one row by Arrow, the others by Python's csv module."""

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from domain.errors import BadRequestError
from domain.events import Reject
from ingest.importers.chunks import (
    MAX_FIELD_CHARACTERS,
    Broken,
    Chunk,
    LineRecords,
    Parsed,
    Records,
    strings,
)
from ingest.importers.columns import Fields, place_columns
from ingest.importers.csv_rows import Row, Split, is_utf8, split_lines, split_rows
from ingest.importers.streams import BOM, ByteStream, open_stream

_LINE_SEARCH = MAX_FIELD_CHARACTERS // 2


class BadDelimiterError(BadRequestError):
    """`--delimiter` is not one character that can part fields."""

    def __init__(self, delimiter: str) -> None:
        super().__init__(delimiter)
        self.delimiter = delimiter

    def __str__(self) -> str:
        return f"--delimiter {self.delimiter!r} cannot part fields: give one ASCII character, or tab"


class UnreadableHeaderError(BadRequestError):
    """The first line of a CSV file is no row of names."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.path} has no readable header ({self.problem}): its first line must name the columns"


class CsvReader:
    """One CSV file with a header. Satisfies `Reader`."""

    def __init__(self, stream: ByteStream, fields: Fields, delimiter: str) -> None:
        """Read the header.

        Raises:
            BadDelimiterError, UnreadableHeaderError, UnknownColumnError, RepeatedColumnError.
        """
        self._stream = stream
        self._delimiter = checked_delimiter(delimiter)
        self._blocks = stream.blocks()
        self._next: bytes | None = next(self._blocks, None)
        self._rest, self._line = b"", 1
        self._names: Sequence[str] = []
        self.header = b""
        self._read_header()
        is_empty = not self._names
        self._places = {} if is_empty else place_columns(str(stream.path), self._names, fields)
        self._absent = [name for name in fields.wanted if name not in self._places]

    @property
    def share_done(self) -> float:
        """How much of the file has been read, 0 to 1, by its bytes on disk."""
        return self._stream.share_done

    def chunks(self) -> Iterator[Chunk]:
        """Yield all rows in order."""
        row = 0
        while self._next is not None or self._rest:
            block = self._take_block()
            chunk = self._plain(block, row) or self._odd(block, row)
            row = chunk.end_row
            if len(chunk.records):
                yield chunk

    def _read_header(self) -> None:
        """Take the first row that is not blank as the names; without one the file is empty."""
        while not self._names and (self._next is not None or self._rest):
            block = self._take_block()
            split = self._split(block, most=1)
            self._rest = split.rest
            if split.rows:
                self._take_header(split.rows[0])

    def _take_block(self) -> bytes:
        """Return what was left over and the next block, and look one block ahead."""
        block, self._rest = self._rest + (self._next or b""), b""
        self._next = next(self._blocks, None)
        return block

    def _take_header(self, row: Row) -> None:
        if row.fault is not None:
            raise UnreadableHeaderError(str(self._stream.path), row.fault.detail)
        self._names, self.header = row.fields, row.raw

    def _plain(self, block: bytes, first_row: int) -> Chunk | None:
        """Return the block as lines, None unless each line is surely one row of UTF-8."""
        text = _text_of_lines(block)
        if text is None or block.startswith(BOM):
            return None
        rows = split_lines(text, delimiter=self._delimiter) if b'"' in text else None
        if b'"' in text and rows is None:
            return None
        records = LineRecords(text)
        lines = range(self._line, self._line + len(records))
        self._line += len(records)
        return Chunk(first_row=first_row, records=records, lines=lines, parse=lambda: self._parse_lines(records, rows))

    def _parse_lines(self, records: Records, rows: Sequence[Sequence[str]] | None) -> Parsed:
        """Return the columns of rows of one line each; `rows` are their fields where there are quotes."""
        if rows is None:
            try:
                return self._with_absent(self._by_arrow(records.canonical()), [], len(records))
            except pa.ArrowInvalid:  # some line has another number of fields
                rows = [record.decode().split(self._delimiter) for record in records]
        if all(len(row) == len(self._names) for row in rows):
            columns = {name: strings([row[place] for row in rows]) for name, place in self._places.items()}
            return self._with_absent(columns, [], len(records))
        return self._parse_rows([Row(b"", 0, row) for row in rows])

    def _by_arrow(self, text: bytes) -> dict[str, pa.Array]:
        names = [str(place) for place in range(len(self._names))]
        whole = pyarrow.csv.ReadOptions(column_names=names, block_size=len(text) + 1, use_threads=False)
        plain = pyarrow.csv.ParseOptions(delimiter=self._delimiter, quote_char=False)
        as_texts = pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            strings_can_be_null=False,
            include_columns=[str(place) for place in self._places.values()],
        )
        table = pyarrow.csv.read_csv(
            pa.BufferReader(text), read_options=whole, parse_options=plain, convert_options=as_texts
        )
        columns = table.combine_chunks()
        return {name: columns.column(str(place)).chunk(0) for name, place in self._places.items()}

    def _odd(self, block: bytes, first_row: int) -> Chunk:
        split = self._split(block)
        self._rest = split.rest
        records = Records([row.raw for row in split.rows])
        lines = [row.line for row in split.rows]
        return Chunk(first_row=first_row, records=records, lines=lines, parse=lambda: self._parse_rows(split.rows))

    def _split(self, block: bytes, **limits: int) -> Split:
        is_last = self._next is None
        split = split_rows(block, line=self._line, delimiter=self._delimiter, is_last=is_last, **limits)
        self._line = split.line
        return split

    def _parse_rows(self, rows: Sequence[Row]) -> Parsed:
        faults = (self._fault(place, row) for place, row in enumerate(rows))
        broken = [fault for fault in faults if fault is not None]
        bad = {fault.row for fault in broken}
        columns = {
            name: strings([None if i in bad else row.fields[place] for i, row in enumerate(rows)])
            for name, place in self._places.items()
        }
        return self._with_absent(columns, broken, len(rows))

    def _with_absent(self, columns: dict[str, pa.Array], broken: list[Broken], rows: int) -> Parsed:
        return Parsed(columns | {name: pa.nulls(rows, pa.string()) for name in self._absent}, broken)

    def _fault(self, place: int, row: Row) -> Broken | None:
        if row.fault is not None:
            return Broken(place, row.fault.reason, row.fault.detail)
        if len(row.fields) != len(self._names):
            detail = f"{len(row.fields)} fields, the header has {len(self._names)}"
            return Broken(place, Reject.WRONG_COLUMNS, detail)
        return None


@contextmanager
def open_csv(path: Path, fields: Fields, *, delimiter: str = ",") -> Iterator[CsvReader]:
    """Open a CSV file and read its header.

    Raises:
        UnopenableFileError, BadDelimiterError, UnreadableHeaderError, UnknownColumnError,
        RepeatedColumnError.
    """
    csv.field_size_limit(MAX_FIELD_CHARACTERS)  # the module's only way: one limit for the process, always this one
    with open_stream(path) as stream:
        yield CsvReader(stream, fields, delimiter)


def checked_delimiter(delimiter: str) -> str:
    r"""Return the character meant: `tab` and `\t` are the tab.

    Raises:
        BadDelimiterError: no single ASCII character, or one with another meaning in CSV.
    """
    character = {"tab": "\t", r"\t": "\t"}.get(delimiter.lower(), delimiter)
    if len(character) != 1 or not character.isascii() or character in '"\r\n\0':
        raise BadDelimiterError(delimiter)
    return character


def _text_of_lines(block: bytes) -> bytes | None:
    """Return a block with line feeds as line ends, the last line too.

    None where a line may not be a row by itself, by what can be seen without splitting it: blank lines, bytes
    that are no UTF-8, very long lines. Line ends inside quotes are found later: there are fewer rows than lines.
    """
    text = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in block else block
    text = text if text.endswith(b"\n") else text + b"\n"
    is_odd = text.startswith(b"\n") or b"\n\n" in text or not is_utf8(text) or _may_have_long_line(text)
    return None if is_odd else text


def _may_have_long_line(text: bytes) -> bool:
    """Say whether a line may be longer than the longest field that the csv module would take."""
    starts = range(0, len(text) - _LINE_SEARCH, _LINE_SEARCH)
    return any(text.find(b"\n", start, start + _LINE_SEARCH) < 0 for start in starts)
