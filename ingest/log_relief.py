"""Makes room in a log that is nearly full: drop what no reader needs, then write its file without it.

The server rewrites its file by itself only when the file has doubled. A log that refuses events because of the disk
does not grow any more, so that moment would never come: somebody has to ask.
"""

from dataclasses import dataclass
from pathlib import Path

import redis

from domain.log import Stream
from ingest.log_server import LogRoom
from ingest.redis_log import RedisLog

_WRITABLE_BYTES = 1 << 20  # with less free, a write may end the server: better none
_WORTH_BYTES = 1 << 20  # a rewrite should give back at least so much
_TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Relief:
    """What was found, and what was done about it.

    Attributes:
        refusal: Why the log takes nothing, None when it does.
        rewriting: A rewrite of its file runs, or was asked for just now.
    """

    refusal: str | None
    rewriting: bool


def relieve(address: str, *, folder: Path | None, min_free_bytes: int) -> Relief:
    """Look at a log; when it refuses events, trim it and have its file written anew if that gives room.

    Safe to repeat: what readers need stays, and one rewrite runs at a time.

    Args:
        address: Its server.
        folder: Where the server's files are, None when they are on another machine.
        min_free_bytes: What must stay free on their disk.

    Raises:
        LogUnavailableError: the server does not answer.
        UnsafeLogServerError: its settings would lose accepted events.
    """
    with RedisLog.open(address, timeout_seconds=_TIMEOUT_SECONDS) as log:
        before = log.room(folder=folder, min_free_bytes=min_free_bytes)
        if before.refusal() is None:
            return Relief(refusal=None, rewriting=False)
        if before.free_bytes is not None and before.free_bytes < _WRITABLE_BYTES:
            return Relief(refusal=before.refusal(), rewriting=False)
        for stream in Stream:
            for partition in log.partitions(stream):
                log.trim(partition)
        after = log.room(folder=folder, min_free_bytes=min_free_bytes)
        rewriting = _is_rewriting(address)
        if not rewriting and _would_help(after):
            log.rewrite_file()
            rewriting = True
        return Relief(refusal=after.refusal(), rewriting=rewriting)


def _would_help(room: LogRoom) -> bool:
    """Say whether a new file would be smaller than the present one, and fits beside it while it is written.

    What is in memory is larger than its file would be, so the estimate errs on the side of doing nothing.
    """
    is_smaller = room.log_bytes - room.used_bytes >= _WORTH_BYTES
    return is_smaller and (room.free_bytes is None or room.free_bytes > room.used_bytes)


def _is_rewriting(address: str) -> bool:
    with redis.Redis.from_url(address, socket_timeout=_TIMEOUT_SECONDS) as client:
        found = client.info("persistence")
    return bool(found.get("aof_rewrite_in_progress") or found.get("aof_rewrite_scheduled"))
