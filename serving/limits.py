"""How much a key may send: token buckets that all workers of the API share.

A bucket is one number, the moment at which it will be full again; that is enough for a token bucket (the generic
cell rate algorithm). The numbers lie in a mapped file, a pair for each key, and a byte lock guards each pair, so a key
has one limit however many processes answer it. A worker takes a hundredth of a second's worth at a time and hands that
out by itself, so most requests need no lock; a key may exceed its limit by as much for each worker.
"""

import fcntl
import mmap
import os
import struct
import time
from collections.abc import Callable
from math import ceil
from pathlib import Path

from serving.keys import MOST_KEYS, Key
from serving.problems import Code, RefusedError
from serving.settings import MAX_ROWS, ApiSettings

_PAIR = struct.Struct("<dd")
_SIZE = MOST_KEYS * _PAIR.size
_WHAT = ("requests", "events")
_SHARES = 100  # of a second's worth, that a worker takes at a time


class RateLimits:
    """The limits of all keys, for one worker.

    Args:
        settings: The general limits and the file.
        monotonic: Seconds of a clock that all processes of the machine share and that never goes back.
    """

    def __init__(self, settings: ApiSettings, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._monotonic = monotonic
        self._descriptor = os.open(settings.limits_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.ftruncate(self._descriptor, _SIZE)
        self._numbers = mmap.mmap(self._descriptor, _SIZE)
        self._in_hand: dict[tuple[int, int], int] = {}

    def close(self) -> None:
        """Close the file."""
        self._numbers.close()
        os.close(self._descriptor)

    def take_request(self, key: Key) -> None:
        """Take one request.

        Raises:
            RefusedError: `rate_limited`.
        """
        rate = key.requests_per_second or self._settings.requests_per_second
        self._spend(key, 0, cost=1, rate=rate, size=rate)

    def take_events(self, key: Key, events: int) -> None:
        """Take as many events; all or none.

        Raises:
            RefusedError: `rate_limited`.
        """
        rate = key.events_per_second or self._settings.events_per_second
        # A full request always fits into a full bucket, else a low limit would refuse it for ever.
        self._spend(key, 1, cost=events, rate=rate, size=max(rate, MAX_ROWS))

    def _spend(self, key: Key, place: int, *, cost: int, rate: int, size: int) -> None:
        in_hand = self._in_hand.get((key.number, place), 0)
        if in_hand < cost:
            more = max(cost, rate // _SHARES)
            if self._taken(key, place, cost=more, rate=rate, size=size) > 0:
                more = cost - in_hand
                wait = self._taken(key, place, cost=more, rate=rate, size=size)
                if wait > 0:
                    raise _limited(_WHAT[place], rate=rate, size=size, wait=wait)
            in_hand += more
        self._in_hand[key.number, place] = in_hand - cost

    def _taken(self, key: Key, place: int, *, cost: int, rate: int, size: int) -> float:
        """Take from the shared bucket and return 0, or take nothing and return the seconds until it could be done."""
        start = key.number * _PAIR.size
        fcntl.lockf(self._descriptor, fcntl.LOCK_EX, _PAIR.size, start)
        try:
            pair = list(_PAIR.unpack_from(self._numbers, start))
            now = self._monotonic()
            full_at: float = max(pair[place], now) + cost / rate
            wait = full_at - now - size / rate
            if wait <= 0:
                pair[place] = full_at
                _PAIR.pack_into(self._numbers, start, *pair)
            return max(wait, 0.0)
        finally:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, _PAIR.size, start)


def new_limits_file(path: Path) -> None:
    """Begin counting anew: the clock of the numbers may have started over with the machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)


def _limited(what: str, *, rate: int, size: int, wait: float) -> RefusedError:
    seconds = ceil(wait)
    detail = f"the key may send {rate:,} {what} a second: wait {seconds} s and send the same again"
    headers = (
        (b"retry-after", str(seconds).encode()),
        (b"ratelimit-policy", f'"{what}";q={size};w={ceil(size / rate)}'.encode()),
        (b"ratelimit", f'"{what}";r=0;t={seconds}'.encode()),
    )
    return RefusedError(Code.RATE_LIMITED, detail, headers=headers)
