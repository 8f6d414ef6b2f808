"""Made-up plays, the same ones every time, whole columns at once.

Items follow Zipf's law; ids are random hex digits, as hard to compress as real ones. The two hashes stand in for
xxh3: they have its size and spread and are equal where they must be, but they are not computed from the texts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from domain.tables import PLAYS
from domain.windows import EPOCH
from ingest.arrow import arrow_schema
from ingest.lake_writer import BronzeWriter
from ingest.manifest import log_id, writer_id

START = datetime(2026, 3, 2, tzinfo=UTC)
SOURCE = "bench"
SEED = 20260302
_REGIONS = pa.array(["BR", "DE", "FR", "GB", "IN", "JP", "MX", "US"])
_LISTENERS = pa.array([f"listener-{number:06d}" for number in range(200_000)])
_LONGEST_MS = 400_000
_MICROSECOND = timedelta(microseconds=1)
_HOUR_US = 3_600_000_000
_DAY_US = 24 * _HOUR_US
_ID_BYTES = 16
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the plays are like.

    Attributes:
        items: Different items; the n-th best is played 1/n as often as the best.
        copies_percent: Of each batch, rows that repeat an earlier row of it or of the batch before.
    """

    items: int = 20_000
    copies_percent: int = 2


@dataclass(frozen=True, slots=True)
class Batch:
    """Some plays as their sender said them, and how many of them, at the end, are copies."""

    said: pa.Table
    copies: int


def batches(
    rows: int, *, of_rows: int, span: timedelta, start: datetime = START, shape: Shape | None = None, seed: int = SEED
) -> Iterator[Batch]:
    """Yield plays in batches that follow each other in time, as files or commits of a real source do.

    Args:
        rows: How many plays, copies included.
        of_rows: Rows of a batch; the last one may have fewer.
        span: Span of event time over which all of them lie, evenly.
        start: Where it begins, UTC.
        shape: What they are like.
        seed: Plays of two seeds share no id.
    """
    shape = shape or Shape()
    random = np.random.default_rng(seed)
    names = _item_names(shape.items)
    shares = np.cumsum(1.0 / np.arange(1, shape.items + 1))
    before: pa.Table | None = None
    for first in range(0, rows, of_rows):
        size = min(of_rows, rows - first)
        copies = size * shape.copies_percent // 100
        begin, end = (_microseconds(start + span * (row / rows)) for row in (first, first + size))
        items = np.searchsorted(shares, random.random(size - copies) * shares[-1])
        times = np.sort(random.integers(begin, end, size - copies))
        own = _said(random, names.take(pa.array(items)), times)
        pool = own if before is None else pa.concat_tables([before, own])
        repeated = pool.take(pa.array(random.integers(0, len(pool), copies)))
        yield Batch(pa.concat_tables([own, repeated]).combine_chunks(), copies)
        before = own


def stamped(said: pa.Table, *, file: int, first_row: int, ingested_at: datetime) -> pa.Table:
    """Return plays as rows of `bronze/plays`: rows of one file of a source, from `first_row` on."""
    rows = np.arange(first_row, first_row + len(said))
    shared = {
        "source": SOURCE,
        "time_source": "client",
        "ingested_at": ingested_at,
        "log_id": log_id(SOURCE),
        "log_partition": file,
        "log_ms": _microseconds(ingested_at) // 1000,
        "log_sequence": 0,
        "writer": writer_id(SOURCE, file),
        "writer_seq": first_row + len(said),
    }
    schema = arrow_schema(PLAYS)
    columns = {name: said.column(name) for name in said.column_names}
    columns |= {name: pa.repeat(pa.scalar(value, schema.field(name).type), len(said)) for name, value in shared.items()}
    columns |= {name: pa.array(rows) for name in ("source_row", "log_index")}
    return pa.table([columns[name] for name in PLAYS.column_names], schema=schema)


def commit(lake_root: Path, plays: pa.Table) -> None:
    """Commit rows of `bronze/plays` of one file as one transaction, through the real writer."""
    bronze = BronzeWriter(lake_root)
    bronze.create()
    last = plays.slice(len(plays) - 1).to_pylist()[0]
    bronze.append(PLAYS, plays, writer=last["writer"], seq=last["writer_seq"])


def _said(random: np.random.Generator, items: pa.Array, times: Int64s) -> pa.Table:
    rows = len(times)
    identity = random.integers(0, 256, (rows, _ID_BYTES), dtype=np.uint8)
    days = (times // _DAY_US).astype(np.int32)
    return pa.table(
        {
            "event_id": _hex_texts(identity),
            "id_hash": pa.array(identity[:, :8].copy().view(np.int64).reshape(rows)),
            "payload_hash": pa.array(random.integers(-(2**63), 2**63, rows)),
            "item_id": items,
            "region": _picked(random, _REGIONS, rows),
            "user_id": _picked(random, _LISTENERS, rows),
            "event_time": pa.array(times).cast(pa.timestamp("us", "UTC")),
            "event_date": pa.array(days).cast(pa.date32()),
            "event_hour": pa.array((times % _DAY_US // _HOUR_US).astype(np.int32)),
            "duration_ms": pa.array(random.integers(1_000, _LONGEST_MS, rows)),
            "count": pa.array(np.ones(rows, dtype=np.int64)),
        }
    )


def _hex_texts(identity: npt.NDArray[np.uint8]) -> pa.Array:
    """Return each row of bytes as text in hex, made in one piece."""
    rows, width = identity.shape[0], 2 * identity.shape[1]
    digits = np.stack((_HEX[identity >> 4], _HEX[identity & 15]), axis=-1).reshape(rows * width)
    offsets = np.arange(0, (rows + 1) * width, width, dtype=np.int32)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(digits))


def _picked(random: np.random.Generator, names: pa.Array, rows: int) -> pa.Array:
    return names.take(pa.array(random.integers(0, len(names), rows)))


def _item_names(items: int) -> pa.Array:
    """Return names of which every tenth is no ASCII."""
    return pa.array([f"{'Été' if n % 10 == 0 else 'Song'} {n:06d}" for n in range(items)], pa.string())


def _microseconds(moment: datetime) -> int:
    return (moment - EPOCH) // _MICROSECOND
