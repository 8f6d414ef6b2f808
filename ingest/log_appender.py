"""Appends events for the API: what many requests bring in one turn of the event loop goes to disk together.

Group commit: while one transaction is on its way to the disk, the next requests gather; each transaction holds one
entry a partition, and the server syncs once for all of them. A request is answered when its own entries are on disk.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Generic

import redis
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from domain.errors import LakeboardError
from domain.log import EntryId, LogFullError, LogReplacedError, LogUnavailableError, Partition
from ingest.hashing import partition_number
from ingest.log_clock import ENTRY_CLOCK_NOW, EntryClock
from ingest.log_commit import Answer, commit
from ingest.log_keys import stream_key
from ingest.log_kinds import Appended, Event, EventKind
from ingest.log_server import MIN_FREE_BYTES, room
from ingest.redis_log import CLOCK_WENT_BACK, RedisLog

MAX_WAITING = 200_000  # events in memory that are not on disk yet; more are refused
_COMMIT_EVENTS = 20_000  # about as many go to disk together, so that nobody waits for all that came meanwhile
_MOST_TURNS = 8
_KEPT_NUMBERS = 100_000  # items whose partition is remembered
_TIMEOUT_SECONDS = 10.0
_ROOM_EVERY_SECONDS = 0.5
_CROWDED_ID = len("1794650400000-100000")  # far below the 2^20 entries a millisecond that the lake can note
_TRIES = 20

Batch = tuple[Sequence[Event], str, "asyncio.Future[Sequence[Appended]]"]


class LogAppender(Generic[Event]):
    """The appending side of one stream of a log, for one event loop. `start` it before use, `stop` it after.

    Args:
        kind: What is appended.
        address: As of `RedisLog.open`.
        clock: What stamps entries.
        folder: Where the server's files are, None when they are on another machine.
        min_free_bytes: What must stay free on that disk.

    Attributes:
        refusal: Why the log takes nothing for now; None = there is room.
        problem: Why the server did not answer last time; None = it did.
    """

    def __init__(
        self,
        kind: EventKind[Event],
        address: str,
        *,
        clock: EntryClock = ENTRY_CLOCK_NOW,
        folder: Path | None = None,
        min_free_bytes: int = MIN_FREE_BYTES,
    ) -> None:
        self.address = address
        self.refusal: str | None = None
        self.problem: str | None = "it was not looked at yet"
        self._kind = kind
        self._clock = clock
        self._folder = folder
        self._min_free_bytes = min_free_bytes
        self._waiting: list[Batch[Event]] = []
        self._waiting_events = 0
        self._committing: Sequence[Batch[Event]] = ()
        self._partitions: Sequence[Partition] = ()
        self._numbers: dict[str, int] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._arrived = asyncio.Event()
        self._client = Redis.from_url(
            address,
            socket_timeout=None,  # a clock for each answer costs more than the answer: one for each commit instead
            socket_connect_timeout=_TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 0),  # the sender decides: an entry may be in the log though no answer came
            protocol=3,
        )

    async def start(self, *, must_answer: bool = True) -> None:
        """Open the log, making it when there is none, and begin to append.

        Args:
            must_answer: Whether the server has to be there now. If not, appends fail until it is.

        Raises:
            LogUnavailableError: no server there.
            UnsafeLogServerError: its settings would lose accepted events.
        """
        try:
            await self._open()
        except LogUnavailableError:
            if must_answer:
                raise
        await self._look_for_room()
        self._tasks = [asyncio.create_task(self._append_for_ever()), asyncio.create_task(self._watch_room())]

    async def stop(self) -> None:
        """Append what waits, then close."""
        while self._tasks and (unanswered := [done for _, _, done in (*self._committing, *self._waiting)]):
            await asyncio.wait(unanswered)
            await asyncio.sleep(0)  # let the next ones begin
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.aclose()

    async def append(self, events: Sequence[Event], source: str) -> Sequence[Appended]:
        """Append events and return where they are, on disk all of them. On an error some of them may be.

        Raises:
            LogFullError: no room in memory or on disk, or too many events wait already.
            LogUnavailableError: the server does not answer.
        """
        if self.refusal is not None:
            raise LogFullError(self.refusal)
        if self._waiting_events + len(events) > MAX_WAITING:
            reason = f"{self._waiting_events} events wait for the disk"
            raise LogFullError(reason)
        done: asyncio.Future[Sequence[Appended]] = asyncio.get_running_loop().create_future()
        self._waiting.append((events, source, done))
        self._waiting_events += len(events)
        self._arrived.set()
        return await done

    async def _open(self) -> None:
        """Check the server and learn the partitions; in a thread, since it happens once a server's life."""
        opened = await asyncio.to_thread(RedisLog.open, self.address, clock=self._clock)
        self._partitions = opened.partitions(self._kind.stream)
        self._numbers.clear()
        opened.close()

    async def _append_for_ever(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            await self._gather()
            self._take_some()
            try:
                results = await self._append_together(self._committing)
            except Exception as error:  # whatever it is, those who wait must hear of it, and the next ones be served
                results = [error] * len(self._committing)
            for (_, _, done), result in zip(self._committing, results, strict=True):
                if done.done():  # its request went away; its events are in the log all the same
                    continue
                if isinstance(result, Exception):
                    done.set_exception(result)
                else:
                    done.set_result(result)
            self._committing = ()

    async def _gather(self) -> None:
        """Let requests that are ready to append do so first: each turn of the event loop may bring more."""
        for _ in range(_MOST_TURNS):
            before = len(self._waiting)
            await asyncio.sleep(0)
            if len(self._waiting) == before:
                return

    def _take_some(self) -> None:
        """Move what goes to disk next from `_waiting` to `_committing`."""
        events, taken = 0, 0
        while taken < len(self._waiting) and events < _COMMIT_EVENTS:
            events += len(self._waiting[taken][0])
            taken += 1
        self._committing, self._waiting = self._waiting[:taken], self._waiting[taken:]
        self._waiting_events -= events
        if self._waiting:
            self._arrived.set()

    async def _append_together(self, batches: Sequence[Batch[Event]]) -> list[Sequence[Appended] | Exception]:
        """Append what was gathered; return per batch where it is, or what went wrong with any of its partitions.

        Raises:
            LogUnavailableError, UnsafeLogServerError: the log was not open yet and cannot be opened.
        """
        if not self._partitions:
            await self._open()
        if len(self._numbers) > _KEPT_NUMBERS:
            self._numbers.clear()
        per_partition: dict[int, list[Event]] = defaultdict(list)
        sources: dict[int, list[tuple[str, int]]] = defaultdict(list)
        places: list[list[tuple[int, int, int]]] = []  # of each batch: partition, place of its first event, how many
        for events, source, _ in batches:
            numbers = [self.partition_of(key) for key in map(self._kind.key_of, events)]
            grown = Counter(numbers)
            places.append([(number, len(per_partition[number]), more) for number, more in grown.items()])
            for number, event in zip(numbers, events, strict=True):
                per_partition[number].append(event)
            for number, more in grown.items():
                sources[number].append((source, more))
        bodies = {number: self._kind.encode(found, sources[number]) for number, found in per_partition.items()}
        ended = await self._append_entries(bodies)
        return [_where(of_batch, ended) for of_batch in places]

    @property
    def is_open(self) -> bool:
        """Whether the log has been opened, so that its partitions are known."""
        return bool(self._partitions)

    def partition_of(self, key: str) -> int:
        """Return the partition of an item or player, once the log is open; popular ones come again and again."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = partition_number(key, len(self._partitions))
        return number

    async def _append_entries(self, bodies: dict[int, bytes]) -> dict[int, EntryId | Exception]:
        """Append one entry a partition; return the id of each, or what went wrong."""
        left, ended = dict(bodies), dict[int, EntryId | Exception]()
        for _ in range(_TRIES):
            try:
                answers = await self._send(left)
            except (redis.exceptions.RedisError, OSError) as error:
                self.problem = str(error) or type(error).__name__
                unavailable = LogUnavailableError(self.address, str(error) or type(error).__name__)
                return ended | dict.fromkeys(left, unavailable)
            again: dict[int, bytes] = {}
            for number, answer in zip(list(left), answers, strict=True):
                if answer is None or CLOCK_WENT_BACK in str(answer):
                    again[number] = left[number]
                elif isinstance(answer, Exception):
                    ended[number] = self._failure(answer)
                else:
                    ended[number] = EntryId.parse(answer)
                    self._look_at_id(answer)
            if not again:
                return ended
            if None in answers:
                await self._open_again(ended, again)
            left = again
        return ended | dict.fromkeys(left, LogReplacedError("the log", "a server that keeps losing it"))

    async def _open_again(self, ended: dict[int, EntryId | Exception], again: dict[int, bytes]) -> None:
        """Make the log in a server that lost it."""
        try:
            await self._open()
        except LakeboardError as error:
            ended.update(dict.fromkeys(again, error))
            again.clear()

    def _look_at_id(self, entry_id: bytes) -> None:
        if len(entry_id) >= _CROWDED_ID:
            self.refusal = "its server's clock went back, and a millisecond has no room for more entries"

    async def _send(self, bodies: dict[int, bytes]) -> list[Answer]:
        keyed = {stream_key(self._partitions[number]): body for number, body in bodies.items()}
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            return await commit(self._client, keyed, entry_id=self._clock.new_id())

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
        """Ask the server how full it is, and remember when it does not answer."""
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                info = await self._client.info()
            room_now = room(info, folder=self._folder, min_free_bytes=self._min_free_bytes)
        except (redis.exceptions.RedisError, OSError) as error:
            self.problem = str(error) or type(error).__name__
            return
        self.problem, self.refusal = None, room_now.refusal()


def _where(
    places: Sequence[tuple[int, int, int]], ended: Mapping[int, EntryId | Exception]
) -> Sequence[Appended] | Exception:
    """Return where a batch is: of each partition the entry, the place of its first event and how many there are."""
    found = []
    for number, first, events in places:
        entry = ended[number]
        if isinstance(entry, Exception):
            return entry
        found.append(Appended(number, entry, first, events))
    return found
