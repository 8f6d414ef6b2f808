"""The event log on Redis Streams, for programs that wait: readers, the lake writer, tests.

The API appends through `ingest/log_appender.py`, which shares everything but the waiting.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import redis

from domain.log import (
    BEGINNING,
    Entry,
    EntryId,
    LogFullError,
    LogReplacedError,
    LogUnavailableError,
    Partition,
    Reading,
    Stream,
    TrimmedError,
    UnsafeLogServerError,
)
from domain.windows import EPOCH
from ingest.log_clock import ENTRY_CLOCK_NOW, EntryClock
from ingest.log_keys import BODY, COMMIT, FORMAT, META, OFFSETS, READERS, TRIM, TRIMMED, offset_field, stream_key
from ingest.log_server import LogRoom, room, unsafe_settings

DEFAULT_PARTITIONS: Mapping[Stream, int] = {Stream.PLAYS: 8, Stream.SCORES: 8}
_TIMEOUT_SECONDS = 10.0


class RedisLog:
    """One event log in one server. Use `open`; close it when done, or use it as a context.

    Every call may raise `LogUnavailableError`; those that append also `LogFullError`.
    """

    def __init__(self, client: redis.Redis, *, address: str, meta: Mapping[str, str], clock: EntryClock) -> None:
        self._client = client
        self._clock = clock
        self.address = address
        self.log_id = meta["id"]
        self._partitions = {
            stream: tuple(Partition(stream, n) for n in range(int(meta[stream.value]))) for stream in Stream
        }

    @classmethod
    def open(
        cls,
        address: str,
        *,
        partitions: Mapping[Stream, int] = DEFAULT_PARTITIONS,
        clock: EntryClock = ENTRY_CLOCK_NOW,
        timeout_seconds: float = _TIMEOUT_SECONDS,
    ) -> "RedisLog":
        """Open the log of a server, making it when the server has none.

        Args:
            address: `redis://host:port`, `rediss://` or `unix:///path`.
            partitions: How many a new log gets; one that is there keeps its own.
            clock: What stamps entries; another one than the server's only in a replay.
            timeout_seconds: How long a call may take.

        Raises:
            LogUnavailableError: no server there.
            UnsafeLogServerError: its settings would lose accepted events.
        """
        client = redis.Redis.from_url(
            address, socket_timeout=timeout_seconds, socket_connect_timeout=timeout_seconds, protocol=3
        )
        with _translated(address):
            problems = unsafe_settings(client.info(), _texts(client.config_get("*")))
            if problems:
                client.close()
                raise UnsafeLogServerError(address, problems)
            return cls(client, address=address, meta=_made(client, partitions), clock=clock)

    def __enter__(self) -> "RedisLog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def partitions(self, stream: Stream) -> Sequence[Partition]:
        """Return the partitions of a stream; their number never changes for a log id."""
        return self._partitions[stream]

    def append(self, entries: Sequence[tuple[Partition, bytes]]) -> Sequence[EntryId]:
        """Append entries; they are on disk when this returns.

        Raises:
            LogFullError: the server is at its memory limit; some of the entries may be in the log.
            LogReplacedError: the log is not there any more.
        """
        with _translated(self.address):
            pipeline = self._client.pipeline(transaction=False)
            for partition, body in entries:
                pipeline.xadd(stream_key(partition), {BODY: body}, id=self._clock.new_id(), nomkstream=True)
            return [self._appended(answer) for answer in pipeline.execute()]

    def read(self, partition: Partition, *, after: EntryId, limit: int) -> Reading:
        """Read up to `limit` entries after a place (exclusive).

        Raises:
            TrimmedError: entries after that place were dropped.
            LogReplacedError: another log stands there.
        """
        with _translated(self.address):
            pipeline = self._client.pipeline(transaction=True)  # one moment for all four
            pipeline.time()
            pipeline.hget(META, "id")
            pipeline.hget(TRIMMED, str(partition))
            pipeline.xrange(stream_key(partition), min=f"({after}", count=limit)
            time, log_id, trimmed, found = pipeline.execute()
        self._require_same(log_id)
        trimmed_through = EntryId.parse(trimmed) if trimmed else BEGINNING
        if after < trimmed_through:
            raise TrimmedError(str(partition), str(after), str(trimmed_through))
        entries = [Entry(EntryId.parse(entry_id), fields[BODY]) for entry_id, fields in found]
        return Reading(entries=entries, at=self._clock.of_server(_moment(time)), reached_end=len(entries) < limit)

    def end_offsets(self, stream: Stream) -> Mapping[Partition, EntryId]:
        """Return the last entry each partition ever had, trimmed ones included; the beginning if it had none.

        Raises:
            LogReplacedError: another log stands there.
        """
        partitions = self.partitions(stream)
        with _translated(self.address):
            pipeline = self._client.pipeline(transaction=True)
            pipeline.hget(META, "id")
            for partition in partitions:
                pipeline.xinfo_stream(stream_key(partition))
            log_id, *infos = pipeline.execute()
        self._require_same(log_id)
        return {
            partition: EntryId.parse(info["last-generated-id"])
            for partition, info in zip(partitions, infos, strict=True)
        }

    def lengths(self, stream: Stream) -> Mapping[Partition, int]:
        """Return how many entries each partition holds."""
        partitions = self.partitions(stream)
        with _translated(self.address):
            pipeline = self._client.pipeline(transaction=False)
            for partition in partitions:
                pipeline.xlen(stream_key(partition))
            return dict(zip(partitions, pipeline.execute(), strict=True))

    def commit_offsets(
        self, reader: str, offsets: Mapping[Partition, EntryId], *, lease: timedelta | None = None
    ) -> None:
        """Say up to where (inclusive) a reader needs nothing any more. Offsets never go back.

        Args:
            reader: Its name. Once named it holds back the trim in every partition, those without an offset too.
            offsets: Last entry that it needs no more.
            lease: A reader that may vanish (a rebuild's pin) counts for so long after each call; None = for ever.
        """
        with _translated(self.address):
            until = 0 if lease is None else _milliseconds(self._server_time() + lease)
            pairs = [text for p, entry in offsets.items() for text in (offset_field(reader, p), str(entry))]
            self._client.eval(COMMIT, 2, READERS, OFFSETS, reader, until, *pairs)

    def offsets(self, reader: str, stream: Stream) -> Mapping[Partition, EntryId]:
        """Return what a reader committed; the beginning where it committed nothing."""
        partitions = self.partitions(stream)
        with _translated(self.address):
            found = self._client.hmget(OFFSETS, [offset_field(reader, partition) for partition in partitions])
        return {p: EntryId.parse(text) if text else BEGINNING for p, text in zip(partitions, found, strict=True)}

    def readers(self) -> Sequence[str]:
        """Return the names of all that hold the trim back, or did before their lease ended."""
        with _translated(self.address):
            return sorted(_text(name) for name in self._client.hkeys(READERS))

    def remove_reader(self, reader: str) -> None:
        """Forget a reader: the trim waits for it no longer."""
        every = [partition for partitions in self._partitions.values() for partition in partitions]
        with _translated(self.address):
            pipeline = self._client.pipeline(transaction=True)
            pipeline.hdel(READERS, reader)
            pipeline.hdel(OFFSETS, *[offset_field(reader, partition) for partition in every])
            pipeline.execute()

    def trim(self, partition: Partition) -> EntryId:
        """Drop what no reader needs any more; return the last entry dropped so far. Without readers: nothing."""
        with _translated(self.address):
            now = _milliseconds(self._server_time())
            keys = (stream_key(partition), TRIMMED, READERS, OFFSETS)
            return EntryId.parse(self._client.eval(TRIM, len(keys), *keys, str(partition), now))

    def rewrite_file(self) -> None:
        """Ask the server to write its append-only file anew, without what was trimmed; it does so behind our back."""
        with _translated(self.address):
            self._client.bgrewriteaof()

    def room(self, *, folder: Path | None, min_free_bytes: int) -> LogRoom:
        """Return how full the log is; `folder` holds its files, None when they are on another machine."""
        with _translated(self.address):
            return room(self._client.info(), folder=folder, min_free_bytes=min_free_bytes)

    def now(self) -> datetime:
        """Return the log's clock, UTC."""
        with _translated(self.address):
            return self._clock.of_server(self._server_time())

    def start_over(self) -> None:
        """Give the log another identity: every reader starts over. For a log whose end was lost."""
        with _translated(self.address):
            self.log_id = new_log_id()
            self._client.hset(META, "id", self.log_id)

    def _appended(self, answer: bytes | None) -> EntryId:
        if answer is None:  # the stream is not there: the server lost what it had
            raise LogReplacedError(self.log_id, "an empty server")
        return EntryId.parse(answer)

    def _require_same(self, found: bytes | None) -> None:
        if found is None or found.decode() != self.log_id:
            raise LogReplacedError(self.log_id, "an empty server" if found is None else found.decode())

    def _server_time(self) -> datetime:
        return _moment(self._client.time())


def new_log_id() -> str:
    """Return the identity of a new log."""
    return uuid.uuid4().hex


def _made(client: redis.Redis, partitions: Mapping[Stream, int]) -> dict[str, str]:
    """Make the log where there is none; return what it says of itself. Two that make it at once agree."""
    pipeline = client.pipeline(transaction=True)
    pipeline.hsetnx(META, "id", new_log_id())
    pipeline.hsetnx(META, "format", FORMAT)
    pipeline.hsetnx(META, "created_ms", _milliseconds(_moment(client.time())))
    for stream in Stream:
        pipeline.hsetnx(META, stream.value, partitions[stream])
    pipeline.hgetall(META)
    meta = _texts(pipeline.execute()[-1])
    for stream in Stream:
        for number in range(int(meta[stream.value])):
            _make_stream(client, stream_key(Partition(stream, number)))
    return meta


def _make_stream(client: redis.Redis, key: str) -> None:
    """Make an empty stream: a group makes it, and leaves it behind when it is removed."""
    if not client.exists(key):
        client.xgroup_create(key, "making", mkstream=True)
        client.xgroup_destroy(key, "making")


@contextmanager
def _translated(address: str) -> Iterator[None]:
    """Turn the client's errors into ours."""
    try:
        yield
    except redis.exceptions.OutOfMemoryError as error:
        reason = "its server is at its memory limit"
        raise LogFullError(reason) from error
    except redis.exceptions.RedisError as error:
        raise LogUnavailableError(address, str(error) or type(error).__name__) from error


def _texts(found: Mapping[Any, Any]) -> dict[str, str]:
    return {_text(name): _text(value) for name, value in found.items()}


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _moment(time: tuple[int, int]) -> datetime:
    seconds, microseconds = time
    return EPOCH + timedelta(seconds=seconds, microseconds=microseconds)


def _milliseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(milliseconds=1)
