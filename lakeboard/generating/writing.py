"""Writes made-up plays as CSV, JSON Lines or Parquet, batch by batch, to a file or the standard output."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from lakeboard.generating.plays import iso_texts


class GeneratedFormat(StrEnum):
    """What can be written."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


def write_plays(
    batches: Iterable[pa.Table], sink: BinaryIO, form: GeneratedFormat, *, on_rows: Callable[[int], None]
) -> None:
    """Write batches, one after the other; nothing of them is kept.

    Args:
        batches: As `made_up` yields them.
        sink: Bytes go there; it need not be able to seek.
        form: The format.
        on_rows: Told how many rows were written each time.
    """
    if form is GeneratedFormat.PARQUET:
        _write_parquet(batches, sink, on_rows)
        return
    texts = _csv_texts if form is GeneratedFormat.CSV else _json_lines
    for number, batch in enumerate(batches):
        sink.write(texts(batch, is_first=number == 0))
        on_rows(len(batch))


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes its name, and the place of an older one, only when it was written to its end."""
    draft = path.with_name(f"{path.name}.part")
    try:
        with draft.open("wb") as sink:
            yield sink
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _write_parquet(batches: Iterable[pa.Table], sink: BinaryIO, on_rows: Callable[[int], None]) -> None:
    writer: pq.ParquetWriter | None = None
    for batch in batches:
        writer = writer or pq.ParquetWriter(pa.PythonFile(sink, mode="w"), batch.schema, compression="zstd")
        writer.write_table(batch)
        on_rows(len(batch))
    if writer is not None:
        writer.close()


def _csv_texts(batch: pa.Table, *, is_first: bool) -> bytes:
    texts = batch.set_column(batch.column_names.index("event_time"), "event_time", iso_texts(batch["event_time"]))
    sink = pa.BufferOutputStream()
    options = pyarrow.csv.WriteOptions(include_header=is_first, quoting_style="none")
    pyarrow.csv.write_csv(texts, sink, options)  # no name holds a comma, a quote or a line end
    return bytes(sink.getvalue())


def _json_lines(batch: pa.Table, *, is_first: bool) -> bytes:
    """Return one object a row, whichever batch it is; no name needs to be escaped."""
    parts: list[pa.ChunkedArray | str] = []
    for number, name in enumerate(batch.column_names):
        column = batch[name]
        quote = "" if pa.types.is_integer(column.type) else '"'
        parts.append(f'{"," if number else "{"}"{name}":{quote}')
        parts.append(iso_texts(column) if name == "event_time" else column.cast(pa.string()))
        parts.append(quote)
    lines = pc.binary_join_element_wise(*parts, "}\n", "").combine_chunks()
    end = int(np.frombuffer(lines.buffers()[1], dtype=np.int32)[lines.offset + len(lines)])
    return bytes(lines.buffers()[2])[:end]  # the texts lie one behind the other
