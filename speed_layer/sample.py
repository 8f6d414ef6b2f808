"""The sample: one item in 64, chosen by a hash of its own, counted exactly by hour; a measurement of what bounds say.

It is of `*` only and decides nothing: reconciliation holds bounds and exact counts of batch against it. A chart's best
items are seldom in it (of a top 100 none one time in five), so it tells of the tail.
"""

from typing import Final

import numpy as np

from domain.sketches.count_min import mixed
from domain.sketches.keys import NO_KEYS, Int64s, Mask, Numbers, UInt64s, summed

SHARE: Final = 64
SAMPLING: Final = "splitmix64 of the item's hash, seed 0x73616d706c65, highest 6 bits 0"  # part of the fingerprint
_SEED = np.uint64(0x73616D706C65)
_SHIFT = np.uint64(64 - 6)
_NONE: Int64s = np.zeros(0, dtype=np.int64)


def sampled(hashes: UInt64s) -> Mask:
    """Say of each item, by its 64-bit hash, whether it is in the sample.

    The hash is mixed with a seed of its own: neither the partition nor a cell of a sketch says anything about it.
    """
    chosen: Mask = mixed(hashes ^ _SEED) >> _SHIFT == 0
    return chosen


class Sample:
    """Plays of sampled items by hour since 1970, in `*`.

    Attributes:
        hours: Hour -> (item numbers, sorted; plays of each).
    """

    __slots__ = ("hours",)

    def __init__(self) -> None:
        self.hours: dict[int, tuple[UInt64s, Int64s]] = {}

    def add(self, hours: Int64s, items: Numbers, counts: Int64s, hashes: UInt64s) -> None:
        """Count the plays of those items that are in the sample.

        Args:
            hours: When each play happened.
            items: Number of each one's item.
            counts: At least 1.
            hashes: Hash of each item number.
        """
        chosen = np.flatnonzero(sampled(hashes[items]))
        for hour in np.unique(hours[chosen]).tolist():
            of_hour = chosen[hours[chosen] == hour]
            keys, before = self.hours.get(hour, (NO_KEYS, _NONE))
            keys, (sums,) = summed(
                np.concatenate((keys, items[of_hour].astype(np.uint64))), np.concatenate((before, counts[of_hour]))
            )
            self.hours[hour] = (keys, sums)

    def forget_before(self, hour: int) -> None:
        """Forget hours that no bucket is kept of."""
        self.hours = {at: held for at, held in self.hours.items() if at >= hour}

    def used_items(self) -> Numbers:
        """Return the numbers of all items in it."""
        return np.concatenate([keys.astype(np.intp) for keys, _ in self.hours.values()] or [np.zeros(0, dtype=np.intp)])

    def renumber(self, moved: Numbers) -> None:
        """Give each item the number that stands at its old one; the order of items must stay."""
        self.hours = {hour: (moved[keys].astype(np.uint64), counts) for hour, (keys, counts) in self.hours.items()}
