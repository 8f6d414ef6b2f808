"""Plays as entries of the log, and lakes read back by position."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from domain.log import BEGINNING, EntryId, Partition, Stream
from domain.tables import PLAYS
from ingest.hashing import id_hash
from ingest.log_entry import NOT_SAID, Play, encode_plays
from ingest.redis_log import RedisLog

Position = tuple[str, int, int, int, int]  # log id, partition, ms, sequence, index


def play(event_id: str, item_id: str = "a", *, us: int = NOT_SAID, **said: object) -> Play:
    """A play as accepted; times are microseconds since 1970 UTC."""
    fields: dict[str, object] = {"region": "ZZ", "user_id": None, "duration_ms": NOT_SAID, "count": 1} | said
    return Play(event_id=event_id, id_hash=id_hash(event_id), item_id=item_id, event_time_us=us, **fields)  # type: ignore[arg-type]


def entry(*event_ids: str, us: int = NOT_SAID) -> bytes:
    """The bytes of an entry of plays that differ in their ids only."""
    return encode_plays([play(event_id, us=us) for event_id in event_ids], [("api", len(event_ids))])


def plays_partition(log: RedisLog, number: int) -> Partition:
    return log.partitions(Stream.PLAYS)[number]


def fill(log: RedisLog, entries: int, *, each: int = 3, name: str = "e") -> list[Position]:
    """Append entries of `each` plays, in turns to all partitions; return the position of every play."""
    partitions = log.partitions(Stream.PLAYS)
    bodies = [
        (partitions[number % len(partitions)], entry(*(f"{name}{number}.{index}" for index in range(each))))
        for number in range(entries)
    ]
    return positions_of(log.log_id, [partition for partition, _ in bodies], log.append(bodies), each)


def positions_of(log_id: str, partitions: Sequence[Partition], ids: Sequence[EntryId], each: int) -> list[Position]:
    return [
        (log_id, partition.number, at.ms, at.sequence, index)
        for partition, at in zip(partitions, ids, strict=True)
        for index in range(each)
    ]


def bronze_positions(lake_root: Path) -> Counter[Position]:
    """How often each position of the log is in bronze."""
    names = ["log_id", "log_partition", "log_ms", "log_sequence", "log_index"]
    rows = DeltaTable(lake_root / PLAYS.name).to_pyarrow_table(columns=names).to_pylist()
    return Counter(tuple(row[name] for name in names) for row in rows)


def commits(lake_root: Path) -> list[list[dict[str, dict[str, Any]]]]:
    """The actions of every commit of bronze, oldest first."""
    log = lake_root / PLAYS.name / "_delta_log"
    return [[json.loads(line) for line in path.read_text().splitlines()] for path in sorted(log.glob("*.json"))]


def bodies(log: RedisLog, partition: Partition, *, after: EntryId = BEGINNING, limit: int = 100) -> list[bytes]:
    """What the entries of a partition hold, in their order."""
    return [entry.body for entry in log.read(partition, after=after, limit=limit).entries]
