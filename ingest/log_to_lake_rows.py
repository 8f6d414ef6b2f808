"""Entries of the plays log as rows of bronze/plays: columns in, columns out, no loop over events but the hash's."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from domain.log import Entry, Partition
from domain.position import LAKE_WRITER
from ingest.hashing import payload_hashes
from ingest.log_entry import NOT_SAID, Int64s, PlaysEntry, decode_plays, numbers_of

_DAY_US = 86_400_000_000
_HOUR_US = 3_600_000_000
_MILLISECOND_US = 1000
_TIME_SOURCES = pa.array(["client", "server"])
_US_UTC = pa.timestamp("us", "UTC")


def writer_of(log_id: str, partition: Partition) -> str:
    """Return who commits the rows of a partition: the id of their Delta transactions."""
    return f"{LAKE_WRITER}{log_id}/{partition.number}"


@dataclass(frozen=True, slots=True)
class Stamps:
    """What the log said of the entries, repeated for each of their events."""

    ms: Int64s
    sequence: Int64s
    version: Int64s
    index: Int64s


def plays_rows(entries: Sequence[Entry], *, log_id: str, partition: Partition) -> pa.Table:
    """Return the events of entries of one partition as rows of `bronze/plays`.

    An event whose time was not said happened when the log took it. A row's transaction is its own entry, so that
    the rows of one commit can be told apart by how far a reader had come.

    Args:
        entries: In the order of the log.
        log_id: Of which log.
        partition: Of which partition.

    Raises:
        UnreadableEntryError: an entry of an unknown version, or a broken one.
        NoVersionError: an entry's counter is too large.
    """
    plays = [decode_plays(entry.body, where=f"{entry.id} of partition {partition}") for entry in entries]
    stamps = stamps_of(entries, [len(play) for play in plays])
    sent_us = _numbers([play.event_times_us for play in plays])
    duration = _numbers([play.durations_ms for play in plays])
    by_server = sent_us == NOT_SAID
    said = {
        "item_id": _texts([play.item_ids for play in plays]),
        "region": _texts([play.regions for play in plays]),
        "user_id": _users(plays),
        "duration_ms": pa.array(duration, mask=duration == NOT_SAID),
        "count": pa.array(_numbers([play.counts for play in plays])),
    }
    columns = {
        "event_id": _texts([play.event_ids for play in plays]),
        "id_hash": pa.array(_numbers([play.id_hashes for play in plays])),
        "payload_hash": payload_hashes(**said, event_time_us=pa.array(sent_us, mask=by_server)),
        **said,
        **time_columns(np.where(by_server, stamps.ms * _MILLISECOND_US, sent_us)),
        "time_source": _TIME_SOURCES.take(pa.array(by_server.astype(np.int8))),
        "source": _sources(plays),
        "source_row": pa.nulls(len(sent_us), pa.int64()),
        **position_columns(stamps, log_id, partition),
    }
    return pa.table(columns)


def stamps_of(entries: Sequence[Entry], lengths: Sequence[int]) -> Stamps:
    """Return what the log said of entries, repeated for each of their events.

    Args:
        entries: In the order of the log.
        lengths: Events of each.
    """

    def repeated(numbers: Sequence[int]) -> Int64s:
        return np.repeat(np.array(numbers, dtype=np.int64), lengths)

    first = np.cumsum([0, *lengths[:-1]], dtype=np.int64)
    return Stamps(
        ms=repeated([entry.id.ms for entry in entries]),
        sequence=repeated([entry.id.sequence for entry in entries]),
        version=repeated([entry.id.version for entry in entries]),
        index=np.arange(sum(lengths), dtype=np.int64) - np.repeat(first, lengths),
    )


def position_columns(stamps: Stamps, log_id: str, partition: Partition) -> dict[str, pa.Array]:
    """Return the columns that say where rows stand in the log, and who commits them."""
    count = len(stamps.ms)
    return {
        "ingested_at": pa.array(stamps.ms * _MILLISECOND_US).cast(_US_UTC),
        "log_id": pa.repeat(log_id, count),
        "log_partition": pa.array(np.full(count, partition.number, dtype=np.int32)),
        "log_ms": pa.array(stamps.ms),
        "log_sequence": pa.array(stamps.sequence),
        "log_index": pa.array(stamps.index),
        "writer": pa.repeat(writer_of(log_id, partition), count),
        "writer_seq": pa.array(stamps.version),
    }


def time_columns(us: Int64s) -> dict[str, pa.Array]:
    """Return `event_time`, `event_date` and `event_hour` of moments in microseconds since 1970 UTC."""
    return {
        "event_time": pa.array(us).cast(_US_UTC),
        "event_date": pa.array((us // _DAY_US).astype(np.int32)).cast(pa.date32()),
        "event_hour": pa.array((us % _DAY_US // _HOUR_US).astype(np.int32)),
    }


def _texts(columns: Sequence[Sequence[str]]) -> pa.Array:
    return pa.array([text for column in columns for text in column], pa.string())


def _users(plays: Sequence[PlaysEntry]) -> pa.Array:
    nobody = [[None] * len(play) if play.user_ids is None else play.user_ids for play in plays]
    return pa.array([user for column in nobody for user in column], pa.string())


def _sources(plays: Sequence[PlaysEntry]) -> pa.Array:
    runs = [run for play in plays for run in play.sources]
    numbers: npt.NDArray[np.int64] = np.repeat(np.arange(len(runs)), [length for _, length in runs])
    return pa.array([name for name, _ in runs], pa.string()).take(pa.array(numbers))


def _numbers(columns: Sequence[bytes]) -> Int64s:
    return numbers_of(b"".join(columns))
