"""How often one reader may read one chart: token buckets that all workers share, without a list of readers.

A bucket is one number, the moment at which it will be full again (as in `serving/limits.py`), beside 64 bits of a keyed
hash of reader and chart. They lie in a mapped file as sets of eight; a bucket that is full again gives its place away.
Should all eight of a set be in use, the one that is full soonest goes: a reader is then let through once too often.
Where the limit is wide, a worker takes a hundredth of a second's worth at a time.
"""

import fcntl
import hashlib
import mmap
import os
import struct
import time
from collections.abc import Callable
from math import ceil
from pathlib import Path

from serving.problems import Code, RefusedError

_SETS, _WAYS = 8192, 8
_PLACE = struct.Struct("<Qd")
_SET = struct.Struct("<" + "Qd" * _WAYS)
_SALT_BYTES = 16
_SHARES = 100  # of a second's worth, that a worker takes at a time
_MOST_IN_HAND = 4096
_ROUNDING_SECONDS = 1e-6
_SIZE = _SALT_BYTES + _SETS * _SET.size
_OF_CHART = "one key or address may read a chart {rate:,} times a second, and it changes once: ask with If-None-Match"


class ReadLimits:
    """The limits of all readers, for one worker.

    Args:
        path: The file; the salt of the hashes is in it too.
        monotonic: Seconds of a clock that all processes of the machine share and that never goes back.
    """

    def __init__(self, path: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.lockf(self._descriptor, fcntl.LOCK_EX, _SALT_BYTES)
        try:
            if os.fstat(self._descriptor).st_size < _SIZE:
                os.ftruncate(self._descriptor, _SIZE)
                os.pwrite(self._descriptor, os.urandom(_SALT_BYTES), 0)
        finally:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, _SALT_BYTES)
        self._numbers = mmap.mmap(self._descriptor, _SIZE)
        self._salt = self._numbers[:_SALT_BYTES]
        self._in_hand: dict[tuple[str, str], int] = {}

    def close(self) -> None:
        """Close the file."""
        self._numbers.close()
        os.close(self._descriptor)

    def take(self, reader: str, chart: str, *, rate: int, says: str = _OF_CHART) -> None:
        """Take one read.

        Args:
            reader: Key or address.
            chart: What is read.
            rate: Reads a second; as many may come at once.
            says: Detail of a refusal, with `{rate}`.

        Raises:
            RefusedError: `rate_limited`.
        """
        if left := self._in_hand.pop((reader, chart), 0):
            if left > 1:
                self._in_hand[reader, chart] = left - 1
            return
        cost = max(1, rate // _SHARES)
        wait = self._spend(reader, chart, cost=cost, rate=rate)
        if wait > 0 and cost > 1:
            cost, wait = 1, self._spend(reader, chart, cost=1, rate=rate)
        if wait > 0:
            raise _limited(rate, wait, says)
        if cost > 1 and len(self._in_hand) < _MOST_IN_HAND:
            self._in_hand[reader, chart] = cost - 1

    def _spend(self, reader: str, chart: str, *, cost: int, rate: int) -> float:
        said = f"{reader}\n{chart}".encode("utf-8", "surrogatepass")
        number = int.from_bytes(hashlib.blake2b(said, digest_size=8, key=self._salt).digest(), "little") or 1
        start = _SALT_BYTES + number % _SETS * _SET.size
        fcntl.lockf(self._descriptor, fcntl.LOCK_EX, _SET.size, start)
        try:
            return self._taken(number, start, cost / rate)
        finally:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, _SET.size, start)

    def _taken(self, number: int, start: int, seconds: float) -> float:
        """Take so much from a bucket and return 0, or take nothing and return the seconds until it could be done."""
        now, found = self._monotonic(), _SET.unpack_from(self._numbers, start)
        numbers, moments = found[::2], found[1::2]
        way = numbers.index(number) if number in numbers else moments.index(min(moments))
        before = moments[way] if numbers[way] == number else now
        full_at: float = max(before, now) + seconds
        wait = full_at - now - 1.0
        if wait <= _ROUNDING_SECONDS:
            _PLACE.pack_into(self._numbers, start + way * _PLACE.size, number, full_at)
            return 0.0
        return wait


def new_reads_file(path: Path) -> None:
    """Begin counting anew: the clock of the numbers may have started over with the machine."""
    path.unlink(missing_ok=True)


def _limited(rate: int, wait: float, says: str) -> RefusedError:
    seconds = ceil(wait)
    detail = says.format(rate=rate)
    headers = (
        (b"retry-after", str(seconds).encode()),
        (b"ratelimit-policy", f'"reads";q={rate};w=1'.encode()),
        (b"ratelimit", f'"reads";r=0;t={seconds}'.encode()),
    )
    return RefusedError(Code.RATE_LIMITED, detail, headers=headers)
