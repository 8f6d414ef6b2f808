"""What many watch is looked at once: its viewers get the same bytes whenever they changed, as server-sent events.

A viewer gets the whole of it each time, so that nothing has to be kept for those who come again: `Last-Event-ID` says
which one they have, and they get the present one if it is another. Whoever is slow misses what was in between, never
the newest, and is dropped when an event cannot be handed over in time.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable
from contextlib import asynccontextmanager
from typing import Any

from serving.answers import Head, Headers
from serving.bodies import Receive, Send
from serving.logs import log
from serving.problems import RefusedError
from serving.settings import ApiSettings
from serving.viewers import RETRY, STREAM_HEADERS, Leaving, Viewers, event, handed_over

_HEARTBEAT = b": nothing new\n\n"

Look = Callable[[], Awaitable[tuple[str, bytes]]]  # returns a tag, another one after each change, and what to show


class Channel:
    """One thing that somebody watches.

    Args:
        name: Of its events, and what it is in lines of the log.
        look: Looks at it; raises `RefusedError` when it is not there.
        seconds: Between two looks.
    """

    def __init__(self, name: str, look: Look, *, seconds: float) -> None:
        self.viewers = 0
        self.tag = ""
        self.event = b""
        self._name = name
        self._look_at = look
        self._seconds = seconds
        self._changed = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Look at it, and keep looking.

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
        """Return when it is another one than that of a tag."""
        while self.tag == tag:
            await self._changed.wait()

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            try:
                await self._look()
            except RefusedError as error:  # viewers keep what they have until it is back
                log.warning(f"live_{self._name}_unread", code=error.code)
            except Exception:  # without another look they would never hear of a change again
                log.exception(f"live_{self._name}_look_failed")

    async def _look(self) -> None:
        tag, body = await self._look_at()
        if tag != self.tag:
            self.tag = tag
            self.event = event(self._name, tag, body)
            self._changed.set()
            self._changed = asyncio.Event()


class Channels:
    """The open channels of one kind, for one worker.

    Args:
        settings: Of the API.
        viewers: Who has streams open.
        name: As in `Channel`.
        seconds: As in `Channel`.
    """

    def __init__(self, settings: ApiSettings, *, viewers: Viewers, name: str, seconds: float) -> None:
        self._settings = settings
        self._viewers = viewers
        self._name = name
        self._seconds = seconds
        self._open: dict[Hashable, Channel] = {}

    async def show(
        self, watched: Hashable, look: Look, *, head: Head, receive: Receive, send: Send, more: Headers
    ) -> None:
        """Serve one viewer until it leaves, is too slow, or had its time.

        Args:
            watched: What is watched; those who watch the same share one look.
            look: Looks at it.
            head: Of the request.
            receive: Of the request.
            send: Of the request.
            more: Headers of the answer.

        Raises:
            RefusedError: it is not there; nothing was sent.
        """
        async with self._watching(watched, look) as channel:
            await send({"type": "http.response.start", "status": 200, "headers": [*STREAM_HEADERS, *more]})
            seen = head.headers.get(b"last-event-id", b"").decode("latin-1")
            async with self._viewers.leaving(receive) as leaving:
                await self._follow(channel, seen, send, leaving)

    async def _follow(self, channel: Channel, seen: str, send: Send, leaving: Leaving) -> None:
        ends_at = asyncio.get_running_loop().time() + self._settings.stream_seconds
        body = RETRY
        while True:
            if channel.tag != seen:
                seen, body = channel.tag, body + channel.event
            if not await handed_over(send, body, seconds=self._settings.viewer_seconds):
                return
            await _first(channel.other_than(seen), leaving, seconds=self._settings.heartbeat_seconds)
            if any(task.done() for task in leaving) or asyncio.get_running_loop().time() >= ends_at:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                return
            body = b"" if channel.tag != seen else _HEARTBEAT

    @asynccontextmanager
    async def _watching(self, watched: Hashable, look: Look) -> AsyncIterator[Channel]:
        if (channel := self._open.get(watched)) is None:
            channel = self._open[watched] = Channel(self._name, look, seconds=self._seconds)
        channel.viewers += 1
        try:
            await channel.open()
            yield channel
        finally:
            channel.viewers -= 1
            if not channel.viewers:
                channel.close()
                self._open.pop(watched, None)


async def _first(news: Coroutine[Any, Any, None], leaving: Leaving, *, seconds: float) -> None:
    """Wait for news, for the end, or for so many seconds."""
    waiting = asyncio.create_task(news)
    try:
        await asyncio.wait([waiting, *leaving], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
