"""Waiting until what was appended is applied: one look at the positions for all who wait in a worker."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from ingest.log_kinds import Appended
from speed_layer.store.boards.reader import BoardsReader
from speed_layer.store.boards.writer import Applied
from speed_layer.store.leases import ViewsUnavailableError

_LOOK_SECONDS = 0.002


class AppliedWatch:
    """Watches how far scores are applied, while somebody waits.

    Args:
        reader: Of the boards.
        shard_of: Gives the shard of a partition of the log.
    """

    def __init__(self, reader: BoardsReader, shard_of: Callable[[int], int]) -> None:
        self._reader = reader
        self._shard_of = shard_of
        self._waiting: list[tuple[Sequence[Appended], asyncio.Future[bool]]] = []
        self._looking: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Stop looking."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def until(self, appended: Sequence[Appended], *, seconds: float) -> bool:
        """Wait until all of it is applied; false when it takes longer than so many seconds."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bool] = loop.create_future()
        clock = loop.call_later(seconds, partial(_end, done, applied=False))
        self._waiting.append((appended, done))
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            return await done
        finally:
            clock.cancel()

    async def _look(self) -> None:
        while self._waiting:
            try:
                reached = await self._reached({where.partition for all_of, _ in self._waiting for where in all_of})
            except ViewsUnavailableError:
                for _, done in self._waiting:
                    _end(done, applied=False)
                self._waiting = []
                return
            for appended, done in self._waiting:
                if all(_is_applied(where, reached) for where in appended):
                    _end(done, applied=True)
            self._waiting = [one for one in self._waiting if not one[1].done()]
            await asyncio.sleep(_LOOK_SECONDS)

    async def _reached(self, partitions: Iterable[int]) -> Mapping[int, Applied | None]:
        by_shard: dict[int, list[int]] = defaultdict(list)
        for number in partitions:
            by_shard[self._shard_of(number)].append(number)
        found: dict[int, Applied | None] = {}
        for shard, mine in by_shard.items():
            found.update(zip(mine, await self._reader.applied(shard, mine), strict=True))
        return found


def _end(done: asyncio.Future[bool], *, applied: bool) -> None:
    """Let a request go on, unless it did already or has gone."""
    if not done.done():
        done.set_result(applied)


def _is_applied(appended: Appended, reached: Mapping[int, Applied | None]) -> bool:
    applied = reached.get(appended.partition)
    return applied is not None and applied.includes(appended.entry.version, appended.first + appended.events - 1)
