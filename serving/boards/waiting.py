"""Waiting until what was appended is applied: one look at the positions for all who wait in a worker."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

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
        self._waiting: list[tuple[Appended, asyncio.Future[None]]] = []
        self._looking: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Stop looking."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def until(self, appended: Sequence[Appended], *, seconds: float) -> bool:
        """Wait until all of it is applied; false when it takes longer than so many seconds."""
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in appended]
        self._waiting += zip(appended, futures, strict=True)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(*futures)
        except (TimeoutError, ViewsUnavailableError):
            return False
        finally:
            self._waiting = [(where, done) for where, done in self._waiting if not done.done()]
        return True

    async def _look(self) -> None:
        while self._waiting:
            numbers = sorted({where.partition for where, _ in self._waiting})
            try:
                reached = await self._reached(numbers)
            except ViewsUnavailableError as error:
                for _, done in self._waiting:
                    if not done.done():
                        done.set_exception(error)
                return
            for where, done in self._waiting:
                applied = reached.get(where.partition)
                last = where.first + where.events - 1
                if applied is not None and not done.done() and applied.includes(where.entry.version, last):
                    done.set_result(None)
            await asyncio.sleep(_LOOK_SECONDS)

    async def _reached(self, numbers: Sequence[int]) -> Mapping[int, Applied | None]:
        found: dict[int, Applied | None] = {}
        for shard in {self._shard_of(number) for number in numbers}:
            mine = [number for number in numbers if self._shard_of(number) == shard]
            found.update(zip(mine, await self._reader.applied(shard, mine), strict=True))
        return found
