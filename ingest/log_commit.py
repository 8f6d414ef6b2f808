"""One commit of the appending side: many entries in one transaction of the server, so that one sync serves them all.

Without a transaction the server syncs after each 16 KiB that it reads, many times for one large commit.
"""

from collections.abc import Mapping

import redis
from redis.asyncio import Redis

from ingest.log_keys import BODY

_MULTI, _EXEC = b"*1\r\n$5\r\nMULTI\r\n", b"*1\r\n$4\r\nEXEC\r\n"

Answer = bytes | Exception | None  # the entry's id; what the server said against it; its stream is not there


async def commit(client: Redis, bodies: Mapping[str, bytes], *, entry_id: str) -> list[Answer]:
    """Append one entry a stream, all in one transaction; those with an id as answer are on disk.

    Args:
        client: A client without retries, since an entry may be in the log though no answer came.
        bodies: Bytes of the entry by key of the stream. A stream that is not there is not made.
        entry_id: `*`, or milliseconds and `-*`.

    Raises:
        redis.exceptions.RedisError, OSError: the connection failed; all may be there, or nothing.
    """
    commands = [_MULTI, *(_xadd(key, entry_id, body) for key, body in bodies.items()), _EXEC]
    connection = await client.connection_pool.get_connection()  # type: ignore[no-untyped-call]  # its decorator is
    try:
        await connection.send_packed_command(b"".join(commands), check_health=False)
        answers = [await _reply(connection) for _ in commands]
    except BaseException:  # answers that are still to come must not be taken for those of the next commit
        await connection.disconnect(nowait=True)
        raise
    finally:
        await client.connection_pool.release(connection)
    executed = answers[-1]
    if isinstance(executed, list):
        return executed
    refusal = next((answer for answer in answers if isinstance(answer, Exception)), RuntimeError("no answer"))
    return [refusal] * len(bodies)


async def _reply(connection: redis.asyncio.Connection) -> object:
    try:
        return await connection.read_response()
    except redis.exceptions.ResponseError as error:  # an answer like others; the next one follows it
        return error


def _xadd(key: str, entry_id: str, body: bytes) -> bytes:
    """Return XADD key NOMKSTREAM id b body as the bytes of the protocol: packing them in general costs more."""
    words = (b"XADD", key.encode(), b"NOMKSTREAM", entry_id.encode(), BODY, body)
    return b"*6\r\n" + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
