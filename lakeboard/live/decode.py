"""Entries of the log as micro-batches of the live counting: columns in, columns out, no loop over plays."""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from domain.log import Entry, Partition
from ingest.hashing import partition_number
from ingest.log_entry import decode_plays, numbers_of
from speed_layer.play_batch import PlayBatch


def play_batch(entries: Sequence[Entry], partition: Partition) -> PlayBatch:
    """Return the plays of entries of one partition, in the order of the log.

    Raises:
        UnreadableEntryError: an entry of an unknown version, or a broken one.
        NoVersionError: an entry's counter is too large.
    """
    plays = [decode_plays(entry.body, where=f"{entry.id} of partition {partition}") for entry in entries]
    versions = np.array([entry.id.version for entry in entries], dtype=np.int64)
    return PlayBatch(
        positions=np.repeat(versions, [len(play) for play in plays]),
        id_hashes=numbers_of(b"".join([play.id_hashes for play in plays])).view(np.uint64),
        items=list(chain.from_iterable(play.item_ids for play in plays)),
        regions=list(chain.from_iterable(play.regions for play in plays)),
        event_times_us=numbers_of(b"".join([play.event_times_us for play in plays])),
        durations_ms=numbers_of(b"".join([play.durations_ms for play in plays])),
        counts=numbers_of(b"".join([play.counts for play in plays])),
    )


def partition_numbers(items: Sequence[str], partitions: int) -> list[int]:
    """Return the partition of the log that each item is in."""
    return [partition_number(item, partitions) for item in items]
