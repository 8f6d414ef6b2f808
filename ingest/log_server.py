"""What an event log demands of its Redis or Valkey server, and how much room the server has left."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MIN_VERSION = (7, 0)
FULL_SHARE = 0.9  # of the memory limit; the rest is for what is on its way when the limit is noticed
MIN_FREE_BYTES = 1_000_000_000
_DEMANDED = {
    "appendonly": ("yes", "entries must be on disk"),
    "appendfsync": ("always", "an entry is acknowledged once it is on disk"),
    "maxmemory-policy": ("noeviction", "a full log must refuse, never forget"),
    "no-appendfsync-on-rewrite": ("no", "entries must be on disk during a rewrite too"),
}
VIEWS_LISTPACKS = {  # what the server of the live views must take as listpacks, at least
    "zset-max-listpack-entries": 1024,
    "zset-max-listpack-value": 512,
    "hash-max-listpack-entries": 1024,
    "hash-max-listpack-value": 512,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRoom:
    """How full a log is.

    Attributes:
        used_bytes: Memory in use.
        max_bytes: The server's limit.
        log_bytes: Size of the append-only files on disk; 0 where they are not on this machine.
        free_bytes: Free space beside them; None where they are not on this machine.
        min_free_bytes: What must stay free at least (setting).
    """

    used_bytes: int
    max_bytes: int
    log_bytes: int = 0
    free_bytes: int | None = None
    min_free_bytes: int = MIN_FREE_BYTES

    def refusal(self) -> str | None:
        """Return why the log must take nothing now, None while there is room.

        A server that syncs every write ends itself when a write to its disk fails, and a rewrite of its file needs
        the room of the file once more: so the disk must keep twice the log free.
        """
        if self.used_bytes >= FULL_SHARE * self.max_bytes:
            return f"{self.used_bytes >> 20} of {self.max_bytes >> 20} MiB of memory are in use"
        wanted = max(self.min_free_bytes, 2 * self.log_bytes)
        if self.free_bytes is not None and self.free_bytes < wanted:
            return f"the disk has {self.free_bytes >> 20} MiB free and needs {wanted >> 20}"
        return None


def unsafe_settings(info: Mapping[str, object], config: Mapping[str, str]) -> list[str]:
    """Return what would lose accepted events, one phrase each; empty when the server is safe.

    Args:
        info: INFO of the server.
        config: Its CONFIG.
    """
    problems = [
        f"{name} is {config.get(name, 'unknown')}, must be {wanted} ({why})"
        for name, (wanted, why) in _DEMANDED.items()
        if config.get(name) != wanted
    ]
    if int(config.get("maxmemory", "0")) <= 0:
        problems.append("maxmemory is not set (without a limit the machine kills the server)")
    if server_version(info) < MIN_VERSION:
        problems.append(f"version {info.get('redis_version')} is older than 7.0")
    if info.get("aof_last_write_status", "ok") != "ok":
        problems.append("the last write of its append-only file failed")
    return problems


def unfit_for_views(info: Mapping[str, object], config: Mapping[str, str]) -> list[str]:
    """Return what makes a server unfit for the live views, one phrase each; empty when it is fit.

    Args:
        info: INFO of the server.
        config: Its CONFIG.
    """
    problems = [
        f"{name} is {config.get(name, 'unknown')}, must be at least {least} (pages of boards are that large)"
        for name, least in VIEWS_LISTPACKS.items()
        if int(config.get(name, "0")) < least
    ]
    if config.get("maxmemory-policy") != "noeviction":
        policy = config.get("maxmemory-policy", "unknown")
        problems.append(f"maxmemory-policy is {policy}, must be noeviction (a view must not vanish in silence)")
    if server_version(info) < MIN_VERSION:
        problems.append(f"version {info.get('redis_version')} is older than 7.0")
    return problems


def server_version(info: Mapping[str, object]) -> tuple[int, ...]:
    """Return the version of Redis, or the one of Redis that a Valkey server stands for."""
    return tuple(int(part) for part in str(info.get("redis_version", "0")).split(".")[:2])


def room(info: Mapping[str, object], *, folder: Path | None, min_free_bytes: int) -> LogRoom:
    """Return how full a log is.

    Args:
        info: INFO of the server, sections memory and persistence.
        folder: Where its files are, None when they are on another machine.
        min_free_bytes: What must stay free on that disk.
    """
    free = None
    if folder is not None:
        disk = os.statvfs(folder)
        free = disk.f_bavail * disk.f_frsize
    return LogRoom(
        used_bytes=_number(info, "used_memory"),
        max_bytes=_number(info, "maxmemory"),
        log_bytes=_number(info, "aof_current_size") if folder is not None else 0,
        free_bytes=free,
        min_free_bytes=min_free_bytes,
    )


def _number(info: Mapping[str, object], name: str) -> int:
    return int(str(info.get(name, 0)))
