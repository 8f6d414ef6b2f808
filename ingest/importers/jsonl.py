"""JSON Lines: one object a line."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from domain.events import Reject
from ingest.importers.chunks import Broken, Chunk, Parsed, Records
from ingest.importers.columns import Fields
from ingest.importers.csv_rows import is_utf8
from ingest.importers.json_keys import KeySearch
from ingest.importers.json_values import DecimalText, column
from ingest.importers.streams import ByteStream, open_stream

_DECODER = msgspec.json.Decoder(type=dict[str, Any], float_hook=DecimalText)


class JsonLinesReader:
    """One file of JSON objects. Satisfies `Reader`."""

    header = b""

    def __init__(self, stream: ByteStream, fields: Fields) -> None:
        self._stream = stream
        self._fields = fields

    @property
    def share_done(self) -> float:
        """How much of the file has been read, 0 to 1, by its bytes on disk."""
        return self._stream.share_done

    def chunks(self) -> Iterator[Chunk]:
        """Yield all rows in order. Lines end with LF or CR LF; blank lines are no rows."""
        row, line, unfinished = 0, 1, b""
        for block in self._stream.blocks():
            *texts, unfinished = (unfinished + block).split(b"\n")
            chunk = self._chunk(texts, row, line)
            row, line = chunk.end_row, line + len(texts)
            yield chunk
        yield self._chunk([unfinished], row, line)

    def _chunk(self, texts: Sequence[bytes], first_row: int, first_line: int) -> Chunk:
        lines = [line for line, text in enumerate(texts, start=first_line) if text.strip()]
        records = Records([texts[line - first_line].removesuffix(b"\r") for line in lines])
        return Chunk(first_row=first_row, records=records, lines=lines, parse=lambda: self._parse(records))

    def _parse(self, records: Records) -> Parsed:
        objects, broken = _decode(records)
        numeric = set(self._fields.numeric)
        columns = {name: column(objects, name, numeric=name in numeric) for name in self._fields.wanted}
        return Parsed(columns, broken)


@contextmanager
def open_jsonl(path: Path, fields: Fields) -> Iterator[JsonLinesReader]:
    """Open a file of JSON lines.

    Raises:
        UnopenableFileError: it cannot be opened.
    """
    with open_stream(path) as stream:
        yield JsonLinesReader(stream, fields)


def check_jsonl(path: Path, fields: Fields) -> None:
    """Read a file of JSON lines until each wanted key has come up, which is mostly in its first block.

    Raises:
        UnopenableFileError, DamagedFileError.
        UnknownColumnError: no object of the whole file has a wanted key.
    """
    search = KeySearch(fields)
    with open_stream(path) as stream:
        for block in stream.blocks():
            if search.may_find_in(block):
                search.look(_decode([line for line in block.split(b"\n") if line.strip()])[0])
            if search.is_over:
                return
    search.require_found(str(path))


def _decode(texts: Sequence[bytes] | Records) -> tuple[list[Mapping[str, Any] | None], list[Broken]]:
    objects: list[Mapping[str, Any] | None] = []
    broken: list[Broken] = []
    for row, text in enumerate(texts):
        try:
            objects.append(_DECODER.decode(text))
        except (ValueError, RecursionError) as error:  # ValueError: broken JSON, no object, no UTF-8
            reason = Reject.UNREADABLE_ROW if is_utf8(text) else Reject.NOT_UTF8
            broken.append(Broken(row, reason, str(error)))
            objects.append(None)
    return objects, broken
