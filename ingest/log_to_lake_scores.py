"""Entries of the scores log as rows of bronze/scores."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from domain.boards.events import NOT_SAID, EventKind
from domain.log import Entry, Partition
from ingest.log_to_lake_rows import position_columns, stamps_of, time_columns
from ingest.score_entry import ScoresEntry, decode_scores

_KINDS = pa.array([kind.name.lower() for kind in EventKind])
_TIME_SOURCES = pa.array(["client", "server"])
_US_UTC = pa.timestamp("us", "UTC")
_MILLISECOND_US = 1000


def scores_rows(entries: Sequence[Entry], *, log_id: str, partition: Partition) -> pa.Table:
    """Return the events of entries of one partition as rows of `bronze/scores`.

    A match whose end was not said, and a decision, happened when the log took it.

    Args:
        entries: In the order of the log.
        log_id: Of which log.
        partition: Of which partition.

    Raises:
        UnreadableEntryError: an entry of an unknown version, or a broken one.
        NoVersionError: an entry's counter is too large.
    """
    found = [decode_scores(entry.body, where=f"{entry.id} of partition {partition}") for entry in entries]
    stamps = stamps_of(entries, [len(one) for one in found])
    ended = _numbers(b"".join([one.ended_us for one in found]))
    until = _numbers(b"".join([one.until_us for one in found]))
    by_server = ended == NOT_SAID
    times = time_columns(np.where(by_server, stamps.ms * _MILLISECOND_US, ended))
    return pa.table({
        "kind": _KINDS.take(pa.array(np.frombuffer(b"".join([one.kinds for one in found]), dtype=np.uint8))),
        "game": _texts([one.games for one in found]),
        "player_id": _texts([one.player_ids for one in found]),
        "match_id": _texts([one.match_ids for one in found]),
        "score": pa.array(_numbers(b"".join([one.scores for one in found]))),
        "event_time": times["event_time"],
        "event_date": times["event_date"],
        "time_source": _TIME_SOURCES.take(pa.array(by_server.astype(np.int8))),
        "fingerprint": pa.array(_numbers(b"".join([one.fingerprints for one in found]))),
        "reason": pa.array([reason or None for one in found for reason in _reasons(one)], pa.string()),
        "until": pa.array(until, mask=until == NOT_SAID).cast(_US_UTC),
        "source": pa.array([name for one in found for name, length in one.sources for _ in range(length)], pa.string()),
        **position_columns(stamps, log_id, partition),
    })  # fmt: skip


def _reasons(entry: ScoresEntry) -> Sequence[str]:
    return [""] * len(entry) if entry.reasons is None else entry.reasons


def _texts(columns: Sequence[Sequence[str]]) -> pa.Array:
    return pa.array([text for column in columns for text in column], pa.string())


def _numbers(column: bytes) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.frombuffer(column, dtype="<i8")
