"""Scripts of many requests in one pipeline: all that one turn of the event loop asks for goes out together.

Without it each request costs the server, and this process, a system call of its own. The commands are packed by
hiredis and sent on a connection of the library's pool: its pipelines pack them in Python, for three times the time.
"""

import asyncio
from collections.abc import Sequence
from hashlib import sha1
from typing import Any

import hiredis
from redis.asyncio import BlockingConnectionPool
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as NotConnectedError
from redis.exceptions import NoScriptError, RedisError, ResponseError

from speed_layer.store.leases import ViewsUnavailableError

_CONNECTIONS = 4
_SECONDS = 5.0
_MOST = 500  # calls in one pipeline

Argument = str | bytes | int


class CoalescedCalls:
    """Calls of scripts for one event loop; close it after use.

    Args:
        address: Of the views server, as of `speed_layer.store.connection.connect`.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._pool = BlockingConnectionPool.from_url(
            address,
            max_connections=_CONNECTIONS,
            timeout=_SECONDS,
            socket_timeout=None,  # a clock for each answer costs more than the answer: one for all of them instead
            socket_connect_timeout=_SECONDS,
            protocol=3,
        )
        self._waiting: list[tuple[tuple[Argument, ...], asyncio.Future[Any]]] = []
        self._hashes: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Close the connections."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._pool.disconnect()

    async def script(self, text: str, keys: Sequence[str], args: Sequence[Argument]) -> Any:
        """Run a script that writes nothing and return its answer.

        Raises:
            ViewsUnavailableError: the server does not answer.
        """
        hashed = self._hashes.get(text)
        if hashed is None:
            hashed = self._hashes[text] = sha1(text.encode()).hexdigest()  # noqa: S324  the server's own name of it
            self._texts[hashed] = text
        return await self.command("EVALSHA", hashed, len(keys), *keys, *args)

    async def command(self, *words: Argument) -> Any:
        """Run a command that only reads and return its answer.

        Raises:
            ViewsUnavailableError: the server does not answer.
        """
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._send)
        self._waiting.append((words, done))
        return await done

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, []
        for start in range(0, len(waiting), _MOST):
            task = asyncio.create_task(self._answer(waiting[start : start + _MOST]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, calls: Sequence[tuple[tuple[Argument, ...], asyncio.Future[Any]]]) -> None:
        try:
            answers = await self._asked([words for words, _ in calls])
            if missing := {str(calls[n][0][1]) for n, one in enumerate(answers) if isinstance(one, NoScriptError)}:
                await self._asked([("SCRIPT", "LOAD", self._texts[hashed]) for hashed in missing])
                answers = await self._asked([words for words, _ in calls])
        except (RedisError, OSError) as error:  # a time-out is an OSError
            answers = [error] * len(calls)
        for (_, done), answer in zip(calls, answers, strict=True):
            if done.done():  # whoever asked has gone
                continue
            if isinstance(answer, Exception):
                done.set_exception(ViewsUnavailableError(self.address, str(answer) or type(answer).__name__))
            else:
                done.set_result(answer)

    async def _asked(self, calls: Sequence[tuple[Argument, ...]]) -> list[Any]:
        packed = b"".join([hiredis.pack_command(words) for words in calls])  # type: ignore[arg-type]  # it says: of one
        try:
            return await self._exchange(packed, len(calls))
        except NotConnectedError:  # it died while nobody used it
            return await self._exchange(packed, len(calls))

    async def _exchange(self, packed: bytes, answers: int) -> list[Any]:
        """Send commands and return so many answers, errors among them."""
        connection = await self._pool.get_connection()  # type: ignore[no-untyped-call]  # it wraps a typed one
        try:
            async with asyncio.timeout(_SECONDS):
                await connection.send_packed_command(packed, check_health=False)
                return [await _answer_on(connection) for _ in range(answers)]
        except BaseException:  # what is on its way still would be taken for the answer of others
            await connection.disconnect(nowait=True)
            raise
        finally:
            await self._pool.release(connection)


async def _answer_on(connection: AbstractConnection) -> Any:
    try:
        return await connection.read_response()
    except ResponseError as error:
        return error
