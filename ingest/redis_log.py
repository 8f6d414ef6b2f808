"""The event log on Redis Streams, for programs that wait: readers, the lake writer, tests.

The API appends through `ingest/log_appender.py`, which shares everything but the waiting.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from domain.log import (
    BEGINNING,
    NEEDS_NOTHING,
    Entry,
    EntryId,
    LogLostEndError,
    LogReplacedError,
    LogUnavailableError,
    Partition,
    Reading,
    Stream,
    TrimmedError,
    UnknownLogFormatError,
    UnsafeLogServerError,
)
from domain.windows import milliseconds
from ingest.log_clock import ENTRY_CLOCK_NOW, EntryClock
from ingest.log_creation import created, log_in, moment, new_log_id, texts
from ingest.log_errors import translated
from ingest.log_keys import (
    BODY,
    COMMIT,
    ENDS,
    FORMAT,
    IS_THERE,
    META,
    OFFSETS,
    READERS,
    START_OVER,
    TRIM,
    TRIMMED,
    offset_field,
    stream_key,
)
from ingest.log_server import LogRoom, room, unsafe_settings

DEFAULT_PARTITIONS: Mapping[Stream, int] = {Stream.PLAYS: 8, Stream.SCORES: 8}
CLOCK_WENT_BACK = "equal or smaller"  # the server's words for an id below its last
_TIMEOUT_SECONDS = 10.0
_TRIES = 20


class RedisLog:
    """One event log in one server. Use `open`; close it when done, or use it as a context.

    Every call may raise `LogUnavailableError`; those that append also `LogFullError`.
    """

    def __init__(self, client: redis.Redis, *, address: str, meta: Mapping[str, str], clock: EntryClock) -> None:
        self._client = client
        self._clock = clock
        self.address = address
        self.log_id, self.created = meta["id"], clock.of_server(created(meta))
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
            UnknownLogFormatError: another version of this program laid the log out.
        """
        client = redis.Redis.from_url(
            address,
            socket_timeout=timeout_seconds,
            socket_connect_timeout=timeout_seconds,
            protocol=3,
            # At once and only once: a connection that died while nobody used it. Waiting is the caller's business.
            retry=Retry(NoBackoff(), 1, supported_errors=(redis.exceptions.ConnectionError,)),
        )
        with translated(address):
            problems = unsafe_settings(client.info(), texts(client.config_get("*")))
            if problems:
                client.close()
                raise UnsafeLogServerError(address, problems)
            meta = log_in(client, partitions, moment(client.time()))
        if meta.get("format") != str(FORMAT):
            client.close()
            raise UnknownLogFormatError(address, meta.get("format", ""))
        return cls(client, address=address, meta=meta, clock=clock)

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
        """Append entries; they are on disk when this returns. After an error some of them may be in the log.

        Raises:
            LogFullError: the server is at its memory limit.
            LogReplacedError: another log stands there, or none.
        """
        ids: dict[int, EntryId] = {}
        with translated(self.address):
            for _ in range(_TRIES):
                left = [number for number in range(len(entries)) if number not in ids]
                ids |= self._append_some({number: entries[number] for number in left})
                if len(ids) == len(entries):
                    return [ids[number] for number in range(len(entries))]
        reason = "a replay clock that keeps going back"
        raise LogUnavailableError(self.address, reason)

    def read(self, partition: Partition, *, after: EntryId, limit: int) -> Reading:
        """Read up to `limit` entries after a place (exclusive).

        Args:
            partition: Of which stream and number.
            after: An entry that was read before, or the beginning. That it is still there, or was trimmed, is what
                shows that nothing between it and the next entry was lost.
            limit: At least 1.

        Raises:
            TrimmedError: entries after that place were dropped.
            LogReplacedError: another log stands there.
            LogLostEndError: the log is the same, but that entry is gone from its end.
        """
        key = stream_key(partition)
        with translated(self.address):
            pipeline = self._client.pipeline(transaction=True)  # one moment for all five
            pipeline.time()
            pipeline.hget(META, "id")
            pipeline.hget(TRIMMED, str(partition))
            pipeline.eval(IS_THERE, 1, key, str(after))
            pipeline.xrange(key, min=f"({after}", count=limit)
            time, log_id, trimmed, is_there, found = pipeline.execute()
        self._require_same(log_id)
        trimmed_through = EntryId.parse(trimmed) if trimmed else BEGINNING
        if after < trimmed_through:
            raise TrimmedError(str(partition), str(after), str(trimmed_through))
        if not is_there and after not in (BEGINNING, trimmed_through):
            raise LogLostEndError(self.log_id, str(partition), str(after))
        entries = [Entry(EntryId.parse(entry_id), fields[BODY]) for entry_id, fields in found]
        return Reading(entries=entries, at=self._clock.of_server(moment(time)), reached_end=len(entries) < limit)

    def end_offsets(self, stream: Stream) -> Mapping[Partition, EntryId]:
        """Return the last entry each partition ever had, trimmed ones included; the beginning if it had none.

        Raises:
            LogReplacedError: another log stands there, or a partition of ours is gone.
        """
        partitions = self.partitions(stream)
        keys = (META, *(stream_key(partition) for partition in partitions))
        with translated(self.address):
            log_id, *ends = self._client.eval(ENDS, len(keys), *keys)
        self._require_same(log_id)
        if None in ends:
            raise LogReplacedError(self.log_id, "the same without a partition")
        return {partition: EntryId.parse(end) for partition, end in zip(partitions, ends, strict=True)}

    def lengths(self, stream: Stream) -> Mapping[Partition, int]:
        """Return how many entries each partition holds."""
        partitions = self.partitions(stream)
        with translated(self.address):
            pipeline = self._client.pipeline(transaction=False)
            for partition in partitions:
                pipeline.xlen(stream_key(partition))
            return dict(zip(partitions, pipeline.execute(), strict=True))

    def commit_offsets(
        self, reader: str, offsets: Mapping[Partition, EntryId], *, lease: timedelta | None = None,
        only: Stream | None = None,
    ) -> None:  # fmt: skip
        """Say up to where (inclusive) a reader needs nothing any more. Offsets never go back.

        Args:
            reader: Its name. Once named it holds back the trim in all partitions that it reads, with an offset or not.
            offsets: Last entry that it needs no more.
            only: The stream that it reads; None = all of them.
            lease: A reader that may vanish (a rebuild's pin) counts for so long after each call; None = for ever.

        Raises:
            LogReplacedError: another log stands there, of which these offsets say nothing.
        """
        with translated(self.address):
            until = 0 if lease is None else milliseconds(moment(self._client.time()) + lease)
            others = [p for stream, parts in self._partitions.items() if only not in (None, stream) for p in parts]
            said = {**offsets, **dict.fromkeys(others, NEEDS_NOTHING)}.items()
            pairs = [text for p, entry in said for text in (offset_field(reader, p), str(entry))]
            found = self._client.eval(COMMIT, 3, META, READERS, OFFSETS, self.log_id, reader, until, *pairs)
        self._require_same(found)

    def offsets(self, reader: str, stream: Stream) -> Mapping[Partition, EntryId]:
        """Return what a reader committed; the beginning where it committed nothing."""
        partitions = self.partitions(stream)
        with translated(self.address):
            found = self._client.hmget(OFFSETS, [offset_field(reader, partition) for partition in partitions])
        return {p: EntryId.parse(text) if text else BEGINNING for p, text in zip(partitions, found, strict=True)}

    def readers(self) -> Sequence[str]:
        """Return the names of all that hold the trim back, or did before their lease ended."""
        with translated(self.address):
            return sorted(texts(self._client.hgetall(READERS)))

    def remove_reader(self, reader: str) -> None:
        """Forget a reader: the trim waits for it no longer."""
        every = [partition for partitions in self._partitions.values() for partition in partitions]
        with translated(self.address):
            pipeline = self._client.pipeline(transaction=True)
            pipeline.hdel(READERS, reader)
            pipeline.hdel(OFFSETS, *[offset_field(reader, partition) for partition in every])
            pipeline.execute()

    def trim(self, partition: Partition) -> EntryId:
        """Drop what no reader needs any more; return the last entry dropped so far. Without readers: nothing.

        Raises:
            LogReplacedError: another log stands there.
        """
        keys = (META, stream_key(partition), TRIMMED, READERS, OFFSETS)
        with translated(self.address):
            now = milliseconds(moment(self._client.time()))
            log_id, through = self._client.eval(TRIM, len(keys), *keys, self.log_id, str(partition), now)
        self._require_same(log_id)
        return EntryId.parse(through)

    def rewrite_file(self) -> None:
        """Ask the server to write its append-only file anew, without what was trimmed; it goes on behind our back."""
        with translated(self.address):
            self._client.bgrewriteaof()

    def room(self, *, folder: Path | None, min_free_bytes: int) -> LogRoom:
        """Return how full the log is; `folder` holds its files, None when they are on another machine."""
        with translated(self.address):
            return room(self._client.info(), folder=folder, min_free_bytes=min_free_bytes)

    def now(self) -> datetime:
        """Return the log's clock, UTC."""
        with translated(self.address):
            return self._clock.of_server(moment(self._client.time()))

    def start_over(self) -> None:
        """Give the entries that are there another log id: every reader starts over. For a log whose end was lost.

        When another reader did so first, its new id is ours too.
        """
        with translated(self.address):
            found = self._client.eval(START_OVER, 3, META, TRIMMED, OFFSETS, self.log_id, new_log_id())
        self._require_same(self.log_id.encode() if found else None)
        self.log_id = found.decode()

    def _append_some(self, entries: Mapping[int, tuple[Partition, bytes]]) -> dict[int, EntryId]:
        """Append entries in one pipeline; return the ids of those that the clock did not stamp too low."""
        pipeline = self._client.pipeline(transaction=False)
        pipeline.hget(META, "id")
        for partition, body in entries.values():
            pipeline.xadd(stream_key(partition), {BODY: body}, id=self._clock.new_id(), nomkstream=True)
        log_id, *answers = pipeline.execute(raise_on_error=False)
        ids: dict[int, EntryId] = {}
        for number, answer in zip((*entries,), answers, strict=True):
            if isinstance(answer, Exception):
                if CLOCK_WENT_BACK not in str(answer):
                    raise answer
            elif answer is not None:  # None: the stream is not there, and so is not the log
                ids[number] = EntryId.parse(answer)
        self._require_same(None if None in answers else log_id)
        return ids

    def _require_same(self, found: bytes | None) -> None:
        if found is None or found.decode() != self.log_id:
            raise LogReplacedError(self.log_id, "an empty server" if found is None else found.decode())
