"""Appends plays for the API: what many requests bring in one turn of the event loop goes to disk together.

Group commit: while one pipeline is on its way to the disk, the next requests gather; each pipeline holds one entry a
partition, and the server syncs once for all of them. A request is answered when its own entries are on disk.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import redis
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from domain.log import LogFullError, LogReplacedError, LogUnavailableError, Partition, Stream
from ingest.hashing import partition_number
from ingest.log_clock import ENTRY_CLOCK_NOW, EntryClock
from ingest.log_entry import Play, encode_plays
from ingest.log_keys import BODY, stream_key
from ingest.log_server import MIN_FREE_BYTES, room
from ingest.redis_log import RedisLog

MAX_WAITING = 200_000  # events in memory that are not on disk yet; more are refused
_TIMEOUT_SECONDS = 10.0
_ROOM_EVERY_SECONDS = 0.5
_CLOCK_WENT_BACK = "equal or smaller"  # the server's words for an id below its last
_TRIES = 20

Batch = tuple[Sequence[Play], str, "asyncio.Future[None]"]


class LogAppender:
    """The appending side of one log, for one event loop. `start` it before use, `stop` it after.

    Args:
        address: As of `RedisLog.open`.
        clock: What stamps entries.
        folder: Where the server's files are, None when they are on another machine.
        min_free_bytes: What must stay free on that disk.
    """

    def __init__(
        self,
        address: str,
        *,
        clock: EntryClock = ENTRY_CLOCK_NOW,
        folder: Path | None = None,
        min_free_bytes: int = MIN_FREE_BYTES,
    ) -> None:
        self.address = address
        self.refusal: str | None = "it was not looked at yet"
        self._clock = clock
        self._folder = folder
        self._min_free_bytes = min_free_bytes
        self._waiting: list[Batch] = []
        self._waiting_events = 0
        self._partitions: Sequence[Partition] = ()
        self._tasks: list[asyncio.Task[None]] = []
        self._arrived = asyncio.Event()
        self._client = Redis.from_url(
            address,
            socket_timeout=_TIMEOUT_SECONDS,
            socket_connect_timeout=_TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 0),  # the sender decides: an entry may be in the log though no answer came
            protocol=3,
        )

    async def start(self) -> None:
        """Open the log, making it when there is none, and begin to append.

        Raises:
            LogUnavailableError: no server there.
            UnsafeLogServerError: its settings would lose accepted events.
        """
        await self._open()
        await self._look_for_room()
        self._tasks = [asyncio.create_task(self._append_for_ever()), asyncio.create_task(self._watch_room())]

    async def stop(self) -> None:
        """Append what waits, then close."""
        while self._waiting and self._tasks:
            await asyncio.wait([future for _, _, future in self._waiting])
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.aclose()

    async def append(self, plays: Sequence[Play], source: str) -> None:
        """Append plays; all of them are on disk when this returns. On an error some of them may be.

        Raises:
            LogFullError: no room in memory or on disk, or too many events wait already.
            LogUnavailableError: the server does not answer.
        """
        if self.refusal is not None:
            raise LogFullError(self.refusal)
        if self._waiting_events + len(plays) > MAX_WAITING:
            reason = f"{self._waiting_events} events wait for the disk"
            raise LogFullError(reason)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((plays, source, done))
        self._waiting_events += len(plays)
        self._arrived.set()
        await done

    async def _open(self) -> None:
        """Check the server and learn the partitions; in a thread, since it happens once a server's life."""
        opened = await asyncio.to_thread(RedisLog.open, self.address, clock=self._clock)
        self._partitions = opened.partitions(Stream.PLAYS)
        opened.close()

    async def _append_for_ever(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            batches, self._waiting, self._waiting_events = self._waiting, [], 0
            failures = await self._append_together(batches)
            for (_, _, done), failure in zip(batches, failures, strict=True):
                if done.done():  # its request went away; its plays are in the log all the same
                    continue
                if failure is None:
                    done.set_result(None)
                else:
                    done.set_exception(failure)

    async def _append_together(self, batches: Sequence[Batch]) -> Sequence[Exception | None]:
        """Append what was gathered; return per batch what went wrong with any of its partitions."""
        per_partition: dict[int, list[Play]] = defaultdict(list)
        sources: dict[int, list[tuple[str, int]]] = defaultdict(list)
        touched: list[set[int]] = []
        count = len(self._partitions)
        for plays, source, _ in batches:
            before = {number: len(found) for number, found in per_partition.items()}
            for play in plays:
                per_partition[partition_number(play.item_id, count)].append(play)
            grown = {n: len(found) - before.get(n, 0) for n, found in per_partition.items()}
            touched.append({n for n, more in grown.items() if more})
            for number in touched[-1]:
                sources[number].append((source, grown[number]))
        bodies = {number: encode_plays(found, sources[number]) for number, found in per_partition.items()}
        failed = await self._append_entries(bodies)
        return [next((failed[n] for n in numbers if n in failed), None) for numbers in touched]

    async def _append_entries(self, bodies: dict[int, bytes]) -> dict[int, Exception]:
        """Append one entry a partition; return what went wrong in which."""
        left, failed = dict(bodies), dict[int, Exception]()
        for _ in range(_TRIES):
            try:
                answers = await self._send(left)
            except (redis.exceptions.RedisError, OSError, TimeoutError) as error:
                unavailable = LogUnavailableError(self.address, str(error) or type(error).__name__)
                return failed | dict.fromkeys(left, unavailable)
            again: dict[int, bytes] = {}
            for number, answer in zip(list(left), answers, strict=True):
                if answer is None or _CLOCK_WENT_BACK in str(answer):
                    again[number] = left[number]
                elif isinstance(answer, Exception):
                    failed[number] = self._failure(answer)
            if not again:
                return failed
            if None in answers:
                await self._open_again(failed, again)
            left = again
        return failed | dict.fromkeys(left, LogReplacedError("the log", "a server that keeps losing it"))

    async def _open_again(self, failed: dict[int, Exception], again: dict[int, bytes]) -> None:
        """Make the log in a server that lost it."""
        try:
            await self._open()
        except (LogUnavailableError, OSError) as error:
            failed.update(dict.fromkeys(again, error))
            again.clear()

    async def _send(self, bodies: dict[int, bytes]) -> list[bytes | Exception | None]:
        pipeline = self._client.pipeline(transaction=False)
        for number, body in bodies.items():
            key = stream_key(self._partitions[number])
            pipeline.xadd(key, {BODY: body}, id=self._clock.new_id(), nomkstream=True)
        answers: list[bytes | Exception | None] = await pipeline.execute(raise_on_error=False)
        return answers

    def _failure(self, answer: Exception) -> Exception:
        if isinstance(answer, redis.exceptions.OutOfMemoryError):
            self.refusal = "its server is at its memory limit"
            return LogFullError(self.refusal)
        return LogUnavailableError(self.address, str(answer))

    async def _watch_room(self) -> None:
        while True:
            await asyncio.sleep(_ROOM_EVERY_SECONDS)
            await self._look_for_room()

    async def _look_for_room(self) -> None:
        """Ask the server how full it is. When it does not answer, the next append finds that out by itself."""
        try:
            info = await self._client.info()
        except (redis.exceptions.RedisError, OSError):
            return
        self.refusal = room(info, folder=self._folder, min_free_bytes=self._min_free_bytes).refusal()
