"""Rows of files as events to send and rows refused: by the importer's own reading, checking and naming."""

import csv
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from ingest.importers.chunks import MAX_FIELD_CHARACTERS, Reader
from ingest.importers.csv import CsvReader
from ingest.importers.jsonl import JsonLinesReader
from ingest.importers.plays import Place, judged, refused_rows, said_rows
from ingest.importers.prefixes import PrefixDigest
from ingest.importers.request import Format, ImportRequest
from ingest.importers.run import files_by_source
from ingest.importers.sources import SourceFile
from ingest.importers.streams import ByteStream
from ingest.validate import RowChecker
from ingest.verdicts import Int64s
from lakeboard.sending.client import Event
from lakeboard.sending.request import STANDARD_INPUT, StandardInputError

Sources = Mapping[str, list[SourceFile]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Some rows of a file, judged.

    Attributes:
        first_row: Row of the file, from 0, on which it begins.
        end_row: Row after its last one.
        events: Those that can be sent.
        times_us: Their event times, microseconds since 1970 UTC.
        rows: Their rows of the file.
        rejects: The others, as for `bronze/rejects`.
        share_done: How much of the file has been read, 0 to 1; 0 where its end is not known.
    """

    first_row: int
    end_row: int
    events: list[Event]
    times_us: Int64s
    rows: Int64s
    rejects: pa.Table
    share_done: float


def sources_of(request: ImportRequest) -> Sources:
    """Return the files of each source, each looked into as an import does.

    Raises:
        BadRequestError: one cannot be read so.
        StandardInputError: the standard input is not alone, of a format that is read twice, or has no ids.
    """
    if STANDARD_INPUT not in request.files:
        return files_by_source(request)
    problem = _problem_of_input(request)
    if problem is not None:
        raise StandardInputError(problem)
    return {request.source_of(Path("standard-input")): [SourceFile.of(STANDARD_INPUT, request)]}


def _problem_of_input(request: ImportRequest) -> str | None:
    if len(request.files) > 1:
        return "can only be sent alone"
    if request.format not in (Format.CSV, Format.JSONL):
        return "can only be csv or jsonl, and --format must say which"
    if request.event_id is None and not request.dedup_by_content:
        return "cannot be looked at again, so its rows need ids of their own, --id COLUMN"
    return None


def stretches(
    file: SourceFile,
    place: Place,
    checker: RowChecker,
    *,
    by_content: bool,
    from_row: int,
    on_digest: Callable[[PrefixDigest], None],
) -> Iterator[Stretch]:
    """Yield the rows of a file in order, judged as an import judges them.

    Args:
        file: The file.
        place: Names rows without ids.
        checker: The checks.
        by_content: Rows are named by their text.
        from_row: Rows before it are read and left out.
        on_digest: Told of the rows read so far, once for each chunk.
    """
    with _opened(file) as reader:
        digest = PrefixDigest(reader.header)
        for chunk in reader.chunks():
            digest.update(chunk)
            on_digest(digest)
            for piece in chunk.pieces([from_row]):
                if piece.first_row < from_row or not len(piece.records):
                    continue
                checked, raw = judged(piece, file.fields, checker)
                said = said_rows(checked, piece, place, by_content=by_content)
                yield Stretch(
                    first_row=piece.first_row,
                    end_row=piece.end_row,
                    events=_events(said),
                    times_us=said["event_time_us"].to_numpy(),
                    rows=said["source_row"].to_numpy(),
                    rejects=refused_rows(checked, raw, piece),
                    share_done=reader.share_done,
                )


def _events(said: Mapping[str, pa.Array]) -> list[Event]:
    times = np.datetime_as_string(said["event_time_us"].to_numpy().astype("datetime64[us]"), timezone="UTC")
    names = ("region", "user_id", "duration_ms", "count")
    others = (said[name].to_pylist() for name in names)
    ids, items = said["event_id"].to_pylist(), said["item_id"].to_pylist()
    return [Event(*row) for row in zip(ids, items, times.tolist(), *others, strict=True)]


@contextmanager
def _opened(file: SourceFile) -> Iterator[Reader]:
    if file.path != STANDARD_INPUT:
        with file.open() as reader:
            yield reader
        return
    stream = ByteStream(file.path, sys.stdin.buffer)
    if file.format is Format.JSONL:
        yield JsonLinesReader(stream, file.fields)
        return
    csv.field_size_limit(MAX_FIELD_CHARACTERS)
    yield CsvReader(stream, file.fields, file.delimiter)


def event_text(event: Event) -> str:
    """Return an event as it was sent."""
    return msgspec.json.encode(event).decode()
