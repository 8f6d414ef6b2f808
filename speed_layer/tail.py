"""The tail: late plays of minutes that are at rest, exact, until they are folded into their minute or hour.

Late plays are few and scattered. A minute at rest would have to be opened for each of them; here they are buckets of
their own, and windows add them up like the others.
"""

import numpy as np

from domain.sketches.keys import NO_KEYS, Int64s, Numbers, UInt64s, summed

_NONE: Int64s = np.zeros(0, dtype=np.int64)


class Tail:
    """Plays by minute since 1970 and key, in the order they came."""

    __slots__ = ("_more", "counts", "keys", "minutes")

    def __init__(self) -> None:
        self.minutes: Int64s = _NONE
        self.keys: UInt64s = NO_KEYS
        self.counts: Int64s = _NONE
        self._more: list[tuple[Int64s, UInt64s, Int64s]] = []

    def __len__(self) -> int:
        return len(self.keys) + sum(len(keys) for _, keys, _ in self._more)

    def add(self, minutes: Int64s, keys: UInt64s, counts: Int64s) -> None:
        """Count plays."""
        self._more.append((minutes, keys, counts))

    def settle(self) -> None:
        """Bring the columns up to date."""
        if self._more:
            columns = [(self.minutes, self.keys, self.counts), *self._more]
            minutes, keys, counts = zip(*columns, strict=True)
            self.minutes, self.keys, self.counts = map(np.concatenate, (minutes, keys, counts))
            self._more = []

    def since(self, minute: int) -> tuple[UInt64s, Int64s]:
        """Return the plays of this minute and later ones by key."""
        self.settle()
        wanted = self.minutes >= minute
        keys, (counts,) = summed(self.keys[wanted], self.counts[wanted])
        return keys, counts

    def take_before(self, minute: int) -> dict[int, tuple[UInt64s, Int64s]]:
        """Take out what is older than a minute: minute -> plays by key."""
        self.settle()
        old = self.minutes < minute
        taken = {}
        for each in np.unique(self.minutes[old]).tolist():
            of_minute = self.minutes == each
            keys, (counts,) = summed(self.keys[of_minute], self.counts[of_minute])
            taken[each] = (keys, counts)
        self.minutes, self.keys, self.counts = self.minutes[~old], self.keys[~old], self.counts[~old]
        return taken

    def renumber(self, moved: Numbers) -> None:
        """Give each item the number that stands at its old one."""
        self.settle()
        self.keys = renumbered_keys(self.keys, moved)


def renumbered_keys(keys: UInt64s, moved: Numbers) -> UInt64s:
    """Return the keys with the number of each item replaced; sorted ones stay sorted when the order of items stays."""
    items = (keys & np.uint64(2**32 - 1)).astype(np.intp)
    return (keys >> np.uint64(32) << np.uint64(32)) | moved[items].astype(np.uint64)
