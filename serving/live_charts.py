"""Ready charts as a worker holds them: read from the views server when somebody asks, once a cycle of the merger.

A worker looks ten times a second whether the merger has written, which costs one small read whatever is asked for. So a
chart is read again when there may be something new in it, and soon after.
"""

import asyncio
import hashlib
import time
from typing import Any

import msgspec

from domain.errors import LakeboardError
from domain.live_chart import LiveChart, LiveMoment, unlisted
from domain.live_windows import LiveWindow
from serving.logs import log
from serving.problems import Code, RefusedError
from speed_layer.store.charts import ChartReading, ChartsReader
from speed_layer.store.ready import ChartsStatus

_LOOK_SECONDS = 0.1
_LOOKS_COUNT_SECONDS = 1.0  # after the last one that was answered
_UNWATCHED_SECONDS = 0.3  # how long a chart is served without asking again when nobody looks, or looks fail
_LAST_KNOWN_SECONDS = 5.0  # how long it is served while the views server does not answer
_SILENT_MS = 10_000  # of a merger that does not write any more
_MOST_KEPT = 4096  # charts; whoever asks for regions that do not exist fills no memory
_MOST_ANSWERS = 8  # of one chart: there may be one for each number of rows
_WAIT = ((b"retry-after", b"1"),)

Name = tuple[LiveWindow, str]


class ReadyChart:
    """One chart with its answers, each made once; all are dropped when there are too many.

    Args:
        chart: Rows and bounds.
        moment: Of its window.
        region: Its name.
        status: Of the cycle of the merger that it was read of.
    """

    __slots__ = ("_answers", "_chart", "_moment", "_region", "read_at", "status")

    def __init__(self, chart: LiveChart, moment: LiveMoment, region: str, *, status: ChartsStatus) -> None:
        self._chart = chart
        self._moment = moment
        self._region = region
        self.status = status
        self._answers: dict[int, tuple[bytes, bytes]] = {}
        self.read_at = time.monotonic()

    def has(self, n: int) -> bool:
        """Say whether the answer of the best `n` rows is made already."""
        return n in self._answers

    def answer(self, n: int) -> tuple[bytes, bytes]:
        """Return the entity tag and the body of the best `n` rows.

        The tag is a weak one of all but `as_of`: while it stays, the rows, their bounds and the window are the same.
        """
        found = self._answers.get(n)
        if found is None:
            if len(self._answers) >= _MOST_ANSWERS:
                self._answers.clear()
            body = self._chart.body(self._moment, region=self._region, n=n)
            found = self._answers[n] = (_tag(body), msgspec.json.encode(body))
        return found


class LiveCharts:
    """The charts of one worker, for one event loop; `close` it after use.

    Args:
        address: Of the views server; empty = there is none.

    Attributes:
        problem: Why no live chart is ready, None when they are.
        seen: What the last look found, None while the views server does not answer.
    """

    def __init__(self, address: str) -> None:
        self.problem: str | None = "it was not looked at yet"
        self.seen: ChartReading | None = None
        self._reader = ChartsReader(address) if address else None
        self._looked_at = -_LOOKS_COUNT_SECONDS
        self._charts: dict[Name, ReadyChart] = {}
        self._reading: dict[Name, asyncio.Task[ReadyChart]] = {}

    async def close(self) -> None:
        """Close the connections."""
        if self._reader is not None:
            await self._reader.close()

    async def chart(self, kind: LiveWindow, region: str) -> ReadyChart:
        """Return a chart with all that was seen to be written; those who ask at the same time share one read.

        Raises:
            RefusedError: `charts_not_ready`, `charts_unavailable`.
        """
        name = (kind, region)
        held = self._charts.get(name)
        if held is not None and self._is_fresh(held):
            return held
        reading = self._reading.get(name)
        if reading is None:
            reading = self._reading[name] = asyncio.create_task(self._read(name))
            reading.add_done_callback(lambda _: self._reading.pop(name, None))
        try:
            return await asyncio.shield(reading)
        except RefusedError:
            if held is not None and time.monotonic() - held.read_at < _LAST_KNOWN_SECONDS:
                return held
            raise

    async def watch(self) -> None:
        """Look for changes, and whether charts are ready, for ever."""
        while True:
            try:
                await self._look()
            except (LakeboardError, OSError) as error:
                self.problem, self.seen = str(error), None
            except Exception:  # whatever it was, the next look may be well again
                self.problem, self.seen = "looking at the charts failed; the server's log says why", None
                log.exception("charts_look_failed")
            await asyncio.sleep(_LOOK_SECONDS)

    def _is_fresh(self, held: ReadyChart) -> bool:
        now = time.monotonic()
        if self.seen is not None and now - self._looked_at < _LOOKS_COUNT_SECONDS:
            return held.status is self.seen.status
        return now - held.read_at < _UNWATCHED_SECONDS

    async def _look(self) -> None:
        began = time.monotonic()
        found = await self._required().read_status()
        self.seen, self._looked_at = found, began
        silent_ms = 0 if found.status is None else found.now_ms - found.status.written_ms
        if found.status is None or LiveWindow.HOUR not in found.status.moments:
            self.problem = "no chart has been made yet; `lakeboard status` shows the parts speed and merger"
        elif silent_ms > _SILENT_MS:
            self.problem = f"no chart was made for {silent_ms // 1000} s; `lakeboard status` shows the part merger"
        else:
            self.problem = None

    async def _read(self, name: Name) -> ReadyChart:
        try:
            found = await self._required().read(*name)
        except LakeboardError as error:
            if isinstance(error, RefusedError):
                raise
            detail = "the views server does not answer; closed windows (start=) are served from the lake"
            raise RefusedError(Code.CHARTS_UNAVAILABLE, detail, headers=_WAIT) from error
        self.seen = found  # of a cycle that no look has found yet, too: nobody has to read it again
        ready = _ready(found, name)
        if len(self._charts) >= _MOST_KEPT:
            self._charts.clear()
        self._charts[name] = ready
        return ready

    def _required(self) -> ChartsReader:
        if self._reader is None:
            raise RefusedError(Code.CHARTS_NOT_READY, "this API has no views server, and so no live charts")
        return self._reader


def _ready(found: ChartReading, name: Name) -> ReadyChart:
    kind, region = name
    status = found.status
    moment = None if status is None else status.moments.get(kind)
    if status is None or moment is None:
        detail = "no live chart has been made yet: `lakeboard up` makes them within seconds"
        raise RefusedError(Code.CHARTS_NOT_READY, detail, headers=_WAIT)
    return ReadyChart(found.chart or unlisted(moment), moment, region, status=status)


def _tag(body: dict[str, Any]) -> bytes:
    lasting = {name: value for name, value in body.items() if name != "as_of"}
    digest = hashlib.blake2b(msgspec.json.encode(lasting), digest_size=9)
    return b'W/"' + digest.hexdigest().encode() + b'"'
