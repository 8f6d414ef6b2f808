"""How a log comes to be in an empty server, whoever opens it first."""

import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import redis

from domain.log import LAKE_READER, Partition, Stream
from domain.windows import EPOCH, milliseconds
from ingest.log_keys import FORMAT, META, READERS, stream_key


def new_log_id() -> str:
    """Return the identity of a new log."""
    return uuid.uuid4().hex


def log_in(client: redis.Redis, partitions: Mapping[Stream, int], now: datetime) -> dict[str, str]:
    """Return what the log of a server says of itself, after making it where there is none.

    Two that make it at once agree. A log that is there is only read, as a full server takes no writes.

    Args:
        client: Connection to the server.
        partitions: How many a new log gets.
        now: The server's time, UTC.
    """
    meta = texts(client.hgetall(META))
    if "id" not in meta:
        meta = _made(client, partitions, now)
    for stream in Stream:
        for number in range(int(meta[stream.value])):
            _make_stream(client, stream_key(Partition(stream, number)))
    return meta


def created(meta: Mapping[str, str]) -> datetime:
    """Return the server's time at which a log began, UTC: plays of before are not in it."""
    return EPOCH + timedelta(milliseconds=int(meta["created_ms"]))


def moment(time: tuple[int, int]) -> datetime:
    """Return what TIME answers, seconds and microseconds, as a moment in UTC."""
    seconds, microseconds = time
    return EPOCH + timedelta(seconds=seconds, microseconds=microseconds)


def texts(found: Mapping[Any, Any]) -> dict[str, str]:
    """Return a reply's names and values as text."""
    return {_text(name): _text(value) for name, value in found.items()}


def _made(client: redis.Redis, partitions: Mapping[Stream, int], now: datetime) -> dict[str, str]:
    pipeline = client.pipeline(transaction=True)
    pipeline.hsetnx(META, "id", new_log_id())
    pipeline.hsetnx(META, "format", FORMAT)
    pipeline.hsetnx(META, "created_ms", milliseconds(now))
    for stream in Stream:
        pipeline.hsetnx(META, stream.value, partitions[stream])
    pipeline.hsetnx(READERS, LAKE_READER, 0)
    pipeline.hgetall(META)
    return texts(pipeline.execute()[-1])


def _make_stream(client: redis.Redis, key: str) -> None:
    """Make an empty stream: a group makes it and leaves it behind. In one step, so that two may do it at once."""
    if not client.exists(key):
        pipeline = client.pipeline(transaction=True)
        pipeline.xgroup_create(key, "making", mkstream=True)
        pipeline.xgroup_destroy(key, "making")
        pipeline.execute()


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
