"""Bodies of requests: never more of one in memory than the limit, never longer waited for than the limit."""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any

from serving.problems import Code, RefusedError, too_large
from serving.settings import MAX_BODY_BYTES

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_GZIP = 16 + zlib.MAX_WBITS
_LOOK_SHARE = 0.1  # of the time a body may take: how often it is looked at
_PIECE_BYTES = 256 << 10  # inflated at a time
_MOST_MEMBERS = 64  # each costs a copy of what follows it
_CLOSE = ((b"connection", b"close"),)  # the rest of the body would be taken for the next request


class ClientLeftError(Exception):
    """The client closed the connection before its request was complete; there is nobody to answer."""


class BodyReader:
    """Reads bodies for one worker. `watch` must run beside it: one look at all is cheaper than a timer for each.

    Args:
        seconds: How long a body may take.
        most_bytes: What all bodies that are being read may take in memory together.
    """

    def __init__(self, *, seconds: float, most_bytes: int) -> None:
        self._seconds = seconds
        self._free = most_bytes
        self._began: dict[asyncio.Task[Any], float] = {}
        self._late: set[asyncio.Task[Any]] = set()

    async def watch(self) -> None:
        """Cut off bodies that take too long, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._seconds * _LOOK_SHARE)
            latest = loop.time() - self._seconds
            for task in [task for task, began in self._began.items() if began < latest]:
                self._late.add(task)
                task.cancel()

    async def read(self, receive: Receive, *, length: bytes | None) -> bytes:
        """Return a whole body as it came.

        Args:
            receive: Of the request.
            length: Its Content-Length, if it said one.

        Raises:
            RefusedError: `body_too_large`, `too_slow`, `busy`.
            ClientLeftError: the client went away.
        """
        if length is not None and (not length.isdigit() or int(length[:20]) > MAX_BODY_BYTES):
            raise _with_close(too_large())
        reserved = MAX_BODY_BYTES if length is None else int(length)
        if reserved > self._free:
            headers = ((b"retry-after", b"1"), *_CLOSE)
            raise RefusedError(Code.BUSY, "wait a second and send the same again", headers=headers)
        task: Any = asyncio.current_task()
        self._began[task] = asyncio.get_running_loop().time()
        self._free -= reserved
        try:
            return await _whole(receive)
        except asyncio.CancelledError:
            if task not in self._late:  # somebody else's wish
                raise
            self._late.remove(task)
            task.uncancel()
            detail = f"a body may take {self._seconds:g} s to arrive: send less at once, or faster"
            raise RefusedError(Code.TOO_SLOW, detail, headers=_CLOSE) from None
        finally:
            del self._began[task]
            self._free += reserved


async def _whole(receive: Receive) -> bytes:
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):
        body: bytes = message.get("body", b"")
        if len(body) > MAX_BODY_BYTES:
            raise _with_close(too_large())
        return body
    gathered = bytearray()
    while True:
        if message["type"] != "http.request":
            raise ClientLeftError
        gathered += message.get("body", b"")
        if len(gathered) > MAX_BODY_BYTES:
            raise _with_close(too_large())
        if not message.get("more_body"):
            return bytes(gathered)
        message = await receive()


def inflated(body: bytes, encoding: bytes | None) -> bytes:
    """Return a body without its content encoding; inflating ends at the limit.

    Raises:
        RefusedError: `unsupported_encoding`, `invalid_gzip`, `body_too_large`.
    """
    if encoding is None or encoding.lower() in (b"", b"identity"):
        return body
    if encoding.lower() not in (b"gzip", b"x-gzip"):
        raise RefusedError(Code.UNSUPPORTED_ENCODING, "send the body plain or with Content-Encoding: gzip")
    pieces: list[bytes] = []
    try:
        for piece in _members(body):
            pieces.append(piece)
            if sum(map(len, pieces)) > MAX_BODY_BYTES:
                raise too_large()
    except zlib.error:
        raise RefusedError(Code.INVALID_GZIP, "the body is no gzip, or damaged") from None
    return b"".join(pieces)


def _members(body: bytes) -> Iterator[bytes]:
    """Inflate the members of a gzip file piece by piece.

    Raises:
        RefusedError: it ends too early, or has too many members.
        zlib.error: it is damaged, or no gzip.
    """
    for _ in range(_MOST_MEMBERS):
        member = zlib.decompressobj(_GZIP)
        while not member.eof:
            yield member.decompress(body, _PIECE_BYTES)
            if not (body := member.unconsumed_tail) and not member.eof:
                yield member.flush()
                if not member.eof:
                    raise RefusedError(Code.INVALID_GZIP, "the gzip body ends too early")
        if not (body := member.unused_data):
            return
    raise RefusedError(Code.INVALID_GZIP, f"the gzip body has more than {_MOST_MEMBERS} members")


def _with_close(refusal: RefusedError) -> RefusedError:
    return RefusedError(refusal.code, refusal.detail, headers=_CLOSE)
