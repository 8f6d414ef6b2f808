"""Closed windows from the lake: exact, read in a thread of their own, remembered until there is another release."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from domain.questions import AsOf
from domain.releases import UnknownReleaseError
from domain.tables import RELEASES
from domain.windows import Window
from serving.chart_questions import Question
from serving.lake_thread import LOOK_SECONDS, MEMORY, Answered, LakeThread
from serving.problems import Code, RefusedError

if TYPE_CHECKING:
    from ingest.lake_reader import LakeReader

_MOST_KEPT = 2048


class ClosedCharts:
    """Reads the lake for one worker; `close` it after use.

    Args:
        lake_root: Folder of the lake; None = there is none.
    """

    def __init__(self, lake_root: Path | None) -> None:
        self._root = lake_root
        self._thread = LakeThread("closed windows")
        self._reader: LakeReader | None = None
        self._seen: object = None
        self._looked_at = -LOOK_SECONDS
        self._bodies: dict[object, bytes] = {}

    def close(self) -> None:
        """End the thread and close the lake."""
        self._thread.close()
        if self._reader is not None:
            self._reader.files.close()

    async def chart(self, question: Question, *, pay: Callable[[], None]) -> bytes:
        """Return the body of a closed window.

        Args:
            question: Which one.
            pay: Called before the lake is read, and not for what is remembered; what it raises ends the request.

        Raises:
            RefusedError: `nothing_counted`, `release_unknown`, `lake_unavailable`, `busy`.
        """
        window = question.window
        assert window is not None  # noqa: S101  the caller looked

        def ask(reader: "LakeReader") -> dict[str, Any]:
            release = None if question.version is None else reader.releases.as_of(AsOf(release=question.version))
            return reader.chart(
                question.granularity, window, region=question.region, n=question.n, release=release
            ).body()

        return await self._remembered(question, ask, pay)

    async def count(self, item_id: str, span: Window, region: str, *, pay: Callable[[], None]) -> bytes:
        """Return the body of an item's count over whole hours; `pay` as of `chart`.

        Raises:
            RefusedError: as of `chart`.
        """
        return await self._remembered(
            (item_id, span, region), lambda reader: reader.count(item_id, span, region=region).body(), pay
        )

    async def _remembered(
        self, key: object, ask: Callable[["LakeReader"], dict[str, Any]], pay: Callable[[], None]
    ) -> bytes:
        def held() -> bytes | None:
            self._newest()  # forgets what an older release answered
            return self._bodies.get(key)

        def answer() -> bytes:
            reader = self._newest()
            found = self._bodies.get(key)
            if found is None:
                if len(self._bodies) >= _MOST_KEPT:
                    self._bodies.clear()
                found = self._bodies[key] = msgspec.json.encode(ask(reader))
            return found

        if key in self._bodies and (found := await self._thread.run(_translated(held))) is not None:
            return found
        pay()  # here, not in the thread: limits are counted by the event loop alone
        return await self._thread.run(_translated(answer))

    def _newest(self) -> "LakeReader":
        """Return a reader of the newest release; another one when the table of releases has grown."""
        from ingest.lake_reader import LakeReader  # noqa: PLC0415  loads DuckDB, which live charts do without

        if self._root is None or not self._root.is_dir():
            raise RefusedError(
                Code.NOTHING_COUNTED, "there is no lake yet: `lakeboard recount` makes the first release"
            )
        if self._reader is not None and time.monotonic() - self._looked_at < LOOK_SECONDS:
            return self._reader
        seen = _version_of_releases(self._root)
        if self._reader is None or seen != self._seen:
            if self._reader is not None:
                self._reader.files.close()
                self._reader = None
            self._bodies.clear()
            self._reader = LakeReader(self._root, memory_limit=MEMORY)
        self._seen, self._looked_at = seen, time.monotonic()
        return self._reader


def _version_of_releases(lake_root: Path) -> str:
    """Return the name of the newest commit to the table of releases, empty without one."""
    try:
        names = os.listdir(lake_root / RELEASES.name / "_delta_log")
    except FileNotFoundError:
        return ""
    return max((name for name in names if name.endswith(".json")), default="")


def _translated(work: Callable[[], Answered]) -> Callable[[], Answered]:
    """Say as the API does that there is no such release."""
    from ingest.read_releases import NothingCountedError  # noqa: PLC0415  as above

    def safe() -> Answered:
        try:
            return work()
        except NothingCountedError as error:
            raise RefusedError(Code.NOTHING_COUNTED, "nothing has been counted yet: run `lakeboard recount`") from error
        except UnknownReleaseError as error:
            raise RefusedError(Code.RELEASE_UNKNOWN, str(error), field="version") from error

    return safe
