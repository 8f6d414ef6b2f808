"""Parquet: batches of columns; a row's canonical text is its JSON."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from domain.errors import BadRequestError
from domain.events import Reject
from ingest.importers.chunks import CHUNK_ROWS, Broken, Chunk, Parsed, Records, strings
from ingest.importers.columns import Fields, place_columns
from ingest.importers.streams import UnopenableFileError
from ingest.validate import UNUSABLE

_BATCH_BYTES = 8 << 20
_is = pa.types


class NotParquetError(BadRequestError):
    """A file is no Parquet file, or is broken."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.path} cannot be read as Parquet ({self.problem}): give the right --format, or get the file again"


class ParquetReader:
    """One Parquet file. Satisfies `Reader`."""

    header = b""

    def __init__(self, path: Path, file: pq.ParquetFile, fields: Fields) -> None:
        """Check the columns.

        Raises:
            UnknownColumnError, RepeatedColumnError.
        """
        self._path = path
        self._file = file
        self._fields = fields
        self._places = place_columns(str(path), file.schema_arrow.names, fields)
        self._rows_done = 0

    @property
    def share_done(self) -> float:
        """How much of the file has been read, 0 to 1, by its rows."""
        return self._rows_done / max(int(self._file.metadata.num_rows), 1)

    def chunks(self) -> Iterator[Chunk]:
        """Yield all rows in order.

        Raises:
            NotParquetError: a page cannot be read.
        """
        try:
            for batch in self._file.iter_batches(batch_size=self._batch_rows()):
                first_row, self._rows_done = self._rows_done, self._rows_done + len(batch)
                yield self._chunk(batch, first_row)
        except (pa.ArrowException, OSError) as error:
            raise NotParquetError(str(self._path), str(error)) from error

    def _batch_rows(self) -> int:
        """Return rows that are about 8 MiB by the file's own statistics."""
        groups = [self._file.metadata.row_group(place) for place in range(self._file.metadata.num_row_groups)]
        size: int = sum(group.total_byte_size for group in groups)
        rows = max(int(self._file.metadata.num_rows), 1)
        return max(1, min(CHUNK_ROWS, _BATCH_BYTES * rows // max(size, 1)))

    def _chunk(self, batch: pa.RecordBatch, first_row: int) -> Chunk:
        records = Records([msgspec.json.encode(row, enc_hook=str) for row in _exact(batch).to_pylist()])
        return Chunk(first_row=first_row, records=records, lines=None, parse=lambda: self._parse(batch))

    def _parse(self, batch: pa.RecordBatch) -> Parsed:
        columns: dict[str, pa.Array] = {}
        not_utf8: set[int] = set()
        for name in self._fields.wanted:
            if name in self._places:
                values, bad = _usable(batch.column(self._places[name]), self._wants(name))
            else:
                values, bad = pa.nulls(len(batch), pa.string()), []
            columns[name] = values
            not_utf8.update(bad)
        return Parsed(columns, [Broken(row, Reject.NOT_UTF8, "bytes that are no UTF-8") for row in sorted(not_utf8)])

    def _wants(self, name: str) -> Callable[[pa.DataType], bool]:
        """Return which types are of use in a column beside texts and whole numbers."""
        is_time = self._fields.time.columns == [name]
        is_numeric = name in self._fields.numeric
        return lambda kind: (is_time and _is_moment(kind)) or (is_numeric and _is_decimal(kind))


@contextmanager
def open_parquet(path: Path, fields: Fields) -> Iterator[ParquetReader]:
    """Open a Parquet file.

    Raises:
        UnopenableFileError, NotParquetError, UnknownColumnError, RepeatedColumnError.
    """
    try:
        file = pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise NotParquetError(str(path), str(error).split("\n", maxsplit=1)[0]) from error
    except OSError as error:
        raise UnopenableFileError(str(path), error.strerror or str(error)) from error
    with file:
        yield ParquetReader(path, file, fields)


def _usable(values: pa.Array, wants: Callable[[pa.DataType], bool]) -> tuple[pa.Array, list[int]]:
    """Return a column as texts (moments where wanted), and the rows whose bytes are no UTF-8."""
    kind = values.type
    if _is.is_dictionary(kind):
        return _usable(values.dictionary_decode(), wants)
    if _is_moment(kind) and wants(kind):
        return values, []
    if _is.is_floating(kind) and wants(kind):
        return pc.if_else(pc.is_nan(values), pa.scalar(None, kind), values).cast(pa.string()), []
    if _is_binary(kind):
        return _decoded(values)
    if _is_textual(kind) or (_is_decimal(kind) and wants(kind)):
        return values.cast(pa.string()), []
    return strings([None if value is None else f"{UNUSABLE}{value}" for value in values.to_pylist()]), []


def _decoded(values: pa.Array) -> tuple[pa.Array, list[int]]:
    try:
        return values.cast(pa.string()), []
    except pa.ArrowInvalid:
        texts: list[str | None] = []
        bad: list[int] = []
        for row, value in enumerate(values.to_pylist()):
            try:
                texts.append(None if value is None else value.decode())
            except UnicodeDecodeError:
                texts.append(None)
                bad.append(row)
        return strings(texts), bad


def _exact(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return nanoseconds as whole numbers, since Python's times stop at microseconds."""
    columns = [c.cast(pa.int64()) if getattr(c.type, "unit", "") == "ns" else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _is_moment(kind: pa.DataType) -> bool:
    return bool(_is.is_timestamp(kind) or _is.is_date(kind))


def _is_decimal(kind: pa.DataType) -> bool:
    return bool(_is.is_floating(kind) or _is.is_decimal(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(_is.is_binary(kind) or _is.is_large_binary(kind) or _is.is_fixed_size_binary(kind))


def _is_textual(kind: pa.DataType) -> bool:
    is_text = _is.is_string(kind) or _is.is_large_string(kind) or _is.is_string_view(kind)
    return bool(is_text or _is.is_integer(kind) or _is.is_temporal(kind) or _is.is_null(kind))
