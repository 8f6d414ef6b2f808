"""What all server-sent events have in common: how many viewers there may be, and how an event is handed over."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

from serving.answers import Headers
from serving.bodies import Receive, Send
from serving.logs import log
from serving.problems import Code, RefusedError
from serving.settings import ApiSettings

RETRY = b"retry: 2000\n\n"  # milliseconds until a browser comes again
STREAM_HEADERS: Headers = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
)
Leaving = Sequence["asyncio.Task[None]"]
_COME_AGAIN = ((b"retry-after", b"10"),)


class Viewers:
    """Who has streams open at one worker."""

    def __init__(self, settings: ApiSettings) -> None:
        self._settings = settings
        self._open: Counter[str] = Counter()  # by key or address
        self._closing = asyncio.Event()

    @property
    def open_now(self) -> int:
        """How many streams are open."""
        return self._open.total()

    def require_room(self, viewer: str) -> None:
        """See that one more stream may be opened.

        Raises:
            RefusedError: `too_many_viewers`.
        """
        if self.open_now >= self._settings.viewers:
            detail = f"{self.open_now:,} live charts and boards are open: ask once a second instead"
        elif self._open[viewer] >= self._settings.viewers_each:
            most = self._settings.viewers_each
            what = f"one key or address may have {most:,} live charts and boards open"
            detail = f"{what}: close one, or ask once a second instead"
        else:
            return
        raise RefusedError(Code.TOO_MANY_VIEWERS, detail, headers=_COME_AGAIN)

    @contextmanager
    def seat(self, viewer: str) -> Iterator[None]:
        """Count one stream of a viewer for as long as it is open."""
        self._open[viewer] += 1
        try:
            yield
        finally:
            self._open -= Counter((viewer,))  # one that has none left is forgotten

    def close(self) -> None:
        """End all streams; the viewers come again by themselves."""
        self._closing.set()

    @asynccontextmanager
    async def leaving(self, receive: Receive) -> AsyncIterator[Leaving]:
        """Give tasks of which one is done once the viewer has left or all streams are to end."""
        tasks = [asyncio.create_task(_left(receive)), asyncio.create_task(self._closed())]
        try:
            yield tasks
        finally:
            for task in tasks:
                task.cancel()

    async def _closed(self) -> None:
        await self._closing.wait()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def event(name: str, event_id: str, data: bytes) -> bytes:
    """Return an event as it is sent; data is one line."""
    return b"event: %b\nid: %b\ndata: %b\n\n" % (name.encode(), event_id.encode(), data)


async def handed_over(send: Send, body: bytes, *, seconds: float) -> bool:
    """Send a part of a stream; return whether the viewer took it in time."""
    try:
        async with asyncio.timeout(seconds):
            await send({"type": "http.response.body", "body": body, "more_body": True})
    except TimeoutError:
        log.warning("viewer_too_slow")
        return False
    return True
