"""Reading the lake for one worker: in a thread of its own, one reading after the other, of so many that may wait."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from domain.errors import LakeboardError
from serving.logs import log
from serving.problems import Code, RefusedError

LOOK_SECONDS: Final = 2.0  # how long what the lake has is taken to be the newest
MEMORY: Final = "256MB"  # of DuckDB
WAIT: Final = ((b"retry-after", b"2"),)
_MOST_WAITING = 64

Answered = TypeVar("Answered")


class LakeThread:
    """The thread; `close` it after use.

    Args:
        what: Is asked for in it, for people.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lake")
        self._waiting = 0

    def close(self) -> None:
        """End the thread, after what it does now."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def run(self, work: Callable[[], Answered]) -> Answered:
        """Do some work there and return what it returns.

        Raises:
            RefusedError: `busy`, `lake_unavailable`, and what the work refuses.
        """
        if self._waiting >= _MOST_WAITING:
            raise RefusedError(Code.BUSY, f"too many {self._what} are asked for at once", headers=WAIT)
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except LakeboardError as error:
            if isinstance(error, RefusedError):
                raise
            log.error("lake_unreadable", reason=str(error))
            detail = "the lake cannot be read now; the server's log says why"
            raise RefusedError(Code.LAKE_UNAVAILABLE, detail, headers=WAIT) from error
        finally:
            self._waiting -= 1
