"""`GET /v1/charts/live`: charts as server-sent events; each is looked at once for all who watch it.

A viewer gets the whole chart whenever its rows, bounds or window changed, so that nothing has to be kept for those who
come again: `Last-Event-ID` says which chart they have, and they get the present one if it is another. Whoever is slow
misses charts in between, never the newest one, and is dropped when an event cannot be handed over in time.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from serving.answers import Head, Headers
from serving.bodies import Receive, Send
from serving.chart_questions import Question, question_of
from serving.charts import require_get
from serving.live_charts import LiveCharts
from serving.logs import log
from serving.problems import RefusedError
from serving.readers import Readers
from serving.settings import ApiSettings
from serving.viewers import RETRY, STREAM_HEADERS, Leaving, Viewers, event, handed_over

_LOOK_SECONDS = 0.1  # what is looked at is in memory, and read anew only after a change
_HEARTBEAT = b": nothing new\n\n"


class _Channel:
    """One chart that somebody watches."""

    def __init__(self, live: LiveCharts, question: Question) -> None:
        self.viewers = 0
        self.tag = ""
        self.event = b""
        self._live = live
        self._question = question
        self._changed = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Look at the chart, and keep looking.

        Raises:
            RefusedError: it is not there.
        """
        await self._look()
        if self._looking is None:
            self._looking = asyncio.create_task(self._keep_looking())

    def close(self) -> None:
        """Stop looking."""
        if self._looking is not None:
            self._looking.cancel()

    async def other_than(self, tag: str) -> None:
        """Return when the chart is another one than that of a tag."""
        while self.tag == tag:
            await self._changed.wait()

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                await self._look()
            except RefusedError as error:  # viewers keep the chart that they have until it is back
                log.warning("live_chart_unread", code=error.code)
            except Exception:  # without another look they would never hear of a change again
                log.exception("live_chart_look_failed")

    async def _look(self) -> None:
        ready = await self._live.chart(self._question.kind, self._question.region)
        tag, body = ready.answer(self._question.n)
        name = tag.decode().strip('W/"')
        if name != self.tag:
            self.tag = name
            self.event = event("chart", name, body)
            self._changed.set()
            self._changed = asyncio.Event()


class LiveStreams:
    """The open live charts of one worker."""

    def __init__(self, settings: ApiSettings, *, live: LiveCharts, readers: Readers, viewers: Viewers) -> None:
        self._settings = settings
        self._live = live
        self._readers = readers
        self._channels: dict[Question, _Channel] = {}
        self._viewers = viewers

    async def serve(self, head: Head, receive: Receive, send: Send, more: Headers) -> int:
        """Serve one viewer until it leaves; return the status once it did.

        Raises:
            RefusedError: it is not served; nothing was sent.
        """
        require_get(head)
        self._readers.admit(head)
        question = question_of(head.path, head.query)
        viewer = self._readers.name(head)
        self._viewers.require_room(viewer)
        self._readers.take(head, f"live|{question.kind.value}|{question.region}")
        with self._viewers.seat(viewer):
            async with self._watching(question) as channel:
                await self._show(channel, head, receive, send, more)
        return 200

    async def _show(self, channel: _Channel, head: Head, receive: Receive, send: Send, more: Headers) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [*STREAM_HEADERS, *more]})
        seen = head.headers.get(b"last-event-id", b"").decode("latin-1")
        async with self._viewers.leaving(receive) as leaving:
            await self._follow(channel, seen, send, leaving)

    async def _follow(self, channel: _Channel, seen: str, send: Send, leaving: Leaving) -> None:
        """Hand over events until the viewer leaves, is too slow, or had its time."""
        ends_at = asyncio.get_running_loop().time() + self._settings.stream_seconds
        body = RETRY
        while True:
            if channel.tag != seen:
                seen, body = channel.tag, body + channel.event
            if not await handed_over(send, body, seconds=self._settings.viewer_seconds):
                return
            body = _HEARTBEAT
            await _first(channel.other_than(seen), leaving, seconds=self._settings.heartbeat_seconds)
            if any(task.done() for task in leaving) or asyncio.get_running_loop().time() >= ends_at:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                return
            body = b"" if channel.tag != seen else _HEARTBEAT

    @asynccontextmanager
    async def _watching(self, question: Question) -> AsyncIterator[_Channel]:
        channel = self._channels.setdefault(question, _Channel(self._live, question))
        channel.viewers += 1
        try:
            await channel.open()
            yield channel
        finally:
            channel.viewers -= 1
            if not channel.viewers:
                channel.close()
                self._channels.pop(question, None)


async def _first(news: Coroutine[Any, Any, None], leaving: Leaving, *, seconds: float) -> None:
    """Wait for news, for the end, or for so many seconds."""
    waiting = asyncio.create_task(news)
    try:
        await asyncio.wait([waiting, *leaving], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
