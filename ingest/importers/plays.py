"""Checked rows as rows of bronze/plays and bronze/rejects."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from domain.windows import EPOCH
from ingest.hashing import content_hash, id_hashes, payload_hashes
from ingest.importers.chunks import Chunk
from ingest.importers.columns import Fields
from ingest.manifest import log_id, writer_id
from ingest.validate import Checked, RawFields, RowChecker
from ingest.verdicts import Int64s, Verdicts

MAX_PAYLOAD_BYTES = 64 << 10
_DAY_US = 86_400_000_000
_HOUR_US = 3_600_000_000
_MILLISECOND_US = 1000


@dataclass(frozen=True, slots=True)
class Place:
    """Where rows come from."""

    source: str
    number: int
    path: Path

    @property
    def writer(self) -> str:
        """Who commits them."""
        return writer_id(self.source, self.number)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a stretch of one file for both tables, without what a whole commit shares."""

    plays: pa.Table
    rejects: pa.Table

    @property
    def size_bytes(self) -> int:
        """Memory they take."""
        return int(self.plays.nbytes + self.rejects.nbytes)


def judged(chunk: Chunk, fields: Fields, checker: RowChecker) -> tuple[Checked, RawFields]:
    """Check every row of a chunk; return verdicts and values, and the fields as the source has them."""
    raw = fields.fill(chunk.parsed.columns)
    verdicts = Verdicts(len(chunk.records))
    for fault in chunk.parsed.broken:
        verdicts.refuse_one(fault.row, fault.reason)
    return checker.check(raw, verdicts), raw


def said_rows(checked: Checked, chunk: Chunk, place: Place, *, by_content: bool) -> dict[str, pa.Array]:
    """Return the accepted rows: what their sender said, with times in microseconds since 1970 UTC, and their rows.

    Args:
        checked: Verdicts and values of every row of the chunk.
        chunk: Positions and texts.
        place: Names the event ids of a source that has none: `<source>#<file number>:<row>`.
        by_content: Name them `<source>:<hash of the row's text>` instead, so that equal rows are copies.
    """
    keep = pa.array(checked.verdicts.accepted)
    rows = np.flatnonzero(checked.verdicts.accepted)
    return {
        "event_id": _event_ids(checked, chunk, place, rows, by_content=by_content),
        "item_id": checked.item_id.filter(keep),
        "region": checked.region.filter(keep),
        "user_id": checked.user_id.filter(keep),
        "event_time_us": pa.array(checked.event_time_us[rows]),
        "duration_ms": checked.duration_ms.filter(keep),
        "count": checked.count.filter(keep),
        "source_row": pa.array(rows + chunk.first_row, pa.int64()),
    }


def accepted_rows(said: dict[str, pa.Array]) -> pa.Table:
    """Return rows of `said_rows` with all that bronze keeps of each."""
    payload = ("item_id", "region", "user_id", "event_time_us", "duration_ms", "count")
    hashes = {
        "id_hash": id_hashes(said["event_id"]),
        "payload_hash": payload_hashes(**{name: said[name] for name in payload}),
    }
    kept = {name: column for name, column in said.items() if name != "event_time_us"}
    return pa.table(kept | hashes | _time_columns(said["event_time_us"].to_numpy()))


def refused_rows(checked: Checked, raw: RawFields, chunk: Chunk) -> pa.Table:
    """Return the refused rows with what differs from row to row."""
    said = {fault.row: fault.detail for fault in chunk.parsed.broken}
    refused = checked.verdicts.refused()
    reasons = [reason.value for _, reason in refused]
    details = [said[row] if row in said else raw.detail(row, reason) for row, reason in refused]
    lines = [None if chunk.lines is None else chunk.lines[row] for row, _ in refused]
    return pa.table(
        {
            "reason": pa.array(reasons, pa.string()),
            "detail": pa.array(details, pa.string()),
            "source_row": pa.array([chunk.first_row + row for row, _ in refused], pa.int64()),
            "source_line": pa.array(lines, pa.int64()),
            "payload": pa.array([payload_text(chunk.records[row]) for row, _ in refused], pa.string()),
        }
    )


def payload_text(record: bytes) -> str:
    r"""Return a row as text, bytes that are no UTF-8 as \xNN, cut at 64 KiB between characters."""
    text = record[: MAX_PAYLOAD_BYTES + 4].decode("utf-8", "backslashreplace")
    return text.encode()[:MAX_PAYLOAD_BYTES].decode("utf-8", "ignore")


def commit_plays(rows: pa.Table, place: Place, *, began: datetime, end_row: int) -> pa.Table:
    """Return rows of `bronze/plays` with what they share: source, begin (UTC), transaction."""
    shared = {
        "source": place.source,
        "time_source": "client",
        "ingested_at": began,
        "log_id": log_id(place.source),
        "log_partition": place.number,
        "log_ms": _microseconds(began) // _MILLISECOND_US,
        "log_sequence": 0,
        "writer": place.writer,
        "writer_seq": end_row,
    }
    return _with_shared(rows.append_column("log_index", rows.column("source_row")), shared)


def commit_rejects(rows: pa.Table, place: Place, *, began: datetime, end_row: int) -> pa.Table:
    """Return rows of `bronze/rejects` with what they share."""
    shared = {
        "source": place.source,
        "source_file": place.path.name.encode("utf-8", "replace").decode(),
        "ingested_at": began,
        "ingested_date": began.date(),
        "writer": place.writer,
        "writer_seq": end_row,
    }
    return _with_shared(rows, shared)


def _event_ids(checked: Checked, chunk: Chunk, place: Place, rows: Int64s, *, by_content: bool) -> pa.Array:
    if by_content:
        prefix = f"{place.source}:"
        return pa.array([prefix + content_hash(chunk.records[row]) for row in rows], pa.string())
    if checked.event_id is not None:
        return checked.event_id.take(pa.array(rows))
    numbers = pa.array(rows + chunk.first_row, pa.int64()).cast(pa.string())
    return pc.binary_join_element_wise(f"{place.source}#{place.number}:", numbers, "")


def _time_columns(us: Int64s) -> dict[str, pa.Array]:
    return {
        "event_time": pa.array(us).cast(pa.timestamp("us", "UTC")),
        "event_date": pa.array((us // _DAY_US).astype(np.int32)).cast(pa.date32()),
        "event_hour": pa.array((us % _DAY_US // _HOUR_US).astype(np.int32)),
    }


def _with_shared(rows: pa.Table, shared: dict[str, object]) -> pa.Table:
    for name, value in shared.items():
        rows = rows.append_column(name, pa.repeat(pa.scalar(value), len(rows)))
    return rows


def _microseconds(moment: datetime) -> int:
    delta = moment - EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
