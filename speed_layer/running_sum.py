"""Running sums: the buckets at rest of a window, added up once and kept, as a window slides by a bucket or two.

A block at rest never changes; a changed one is another object. So what is subtracted is exactly what was added.
"""

from collections.abc import Mapping

import numpy as np

from domain.sketches.keys import NO_KEYS, Int64s, Numbers, UInt64s, find, items_of, regions_of, summed
from domain.sketches.packed import PackedBlock
from speed_layer.tail import renumbered_keys

Part = tuple[str, int]  # kind and time of a block
_NONE: Int64s = np.zeros(0, dtype=np.int64)


class Sums:
    """Counts by key with what each can have above the residual of its region: `upper = residual + above`.

    Attributes:
        keys: Sorted.
        lower: Of each key.
        above: Of each key; negative when the item can have less than one that is not listed.
    """

    __slots__ = ("above", "keys", "lower")

    def __init__(self, keys: UInt64s = NO_KEYS, lower: Int64s = _NONE, above: Int64s = _NONE) -> None:
        self.keys = keys
        self.lower = lower
        self.above = above

    @classmethod
    def of(cls, keys: UInt64s, lower: Int64s, above: Int64s) -> "Sums":
        """Return the sums of columns in which a key may stand several times."""
        distinct, (lower, above) = summed(keys, lower, above)
        return cls(distinct, lower, above)

    def at(self, keys: UInt64s) -> tuple[Int64s, Int64s]:
        """Return (lower, above) of keys, 0 where they are not listed."""
        places, listed = find(self.keys, keys)
        lower, above = np.zeros((2, len(keys)), dtype=np.int64)
        lower[listed] = self.lower[places[listed]]
        above[listed] = self.above[places[listed]]
        return lower, above

    def add(self, keys: UInt64s, lower: Int64s, above: Int64s) -> None:
        """Add to keys, sorted and distinct; what becomes as if not listed is dropped."""
        places, listed = find(self.keys, keys)
        self.lower[places[listed]] += lower[listed]
        self.above[places[listed]] += above[listed]
        new = ~listed
        at = np.searchsorted(self.keys, keys[new])
        self.keys = np.insert(self.keys, at, keys[new])
        self.lower = np.insert(self.lower, at, lower[new])
        self.above = np.insert(self.above, at, above[new])
        empty = (self.lower == 0) & (self.above == 0)
        if empty.any():
            self.keys, self.lower, self.above = self.keys[~empty], self.lower[~empty], self.above[~empty]


class RunningSum:
    """The sum of some blocks at rest.

    Attributes:
        sums: Of all their entries.
        totals: Events by region number.
        residuals: By region number.
        version: Changes with what is summed.
    """

    def __init__(self) -> None:
        self.sums = Sums()
        self.totals = _NONE
        self.residuals = _NONE
        self.version = 0
        self._parts: dict[Part, PackedBlock] = {}
        self._slack_keys = NO_KEYS
        self._slack = _NONE

    def cover(self, parts: Mapping[Part, PackedBlock], hashes: UInt64s) -> None:
        """Make this the sum of exactly these blocks; costs as much as the blocks that come and go.

        Args:
            parts: The blocks; one that changed is another object.
            hashes: Hash of each item number.
        """
        gone = [block for part, block in self._parts.items() if parts.get(part) is not block]
        new = [block for part, block in parts.items() if self._parts.get(part) is not block]
        if not gone and not new:
            return
        self.version += 1
        self._parts = dict(parts)
        changes = [(block, sign) for sign, blocks in ((-1, gone), (1, new)) for block in blocks]
        columns = []
        for block, sign in changes:
            keys, lower, above = block.contribution()
            columns.append((keys, sign * lower, sign * above))
            self._grow(len(block))
            self.totals[: len(block)] += sign * block.totals
            self.residuals[: len(block)] += sign * block.residuals
            self._slack += sign * block.slack(self._slack_keys, hashes)
        keys, lower, above = (np.concatenate(column) for column in zip(*columns, strict=True))
        keys, (lower, above) = summed(keys, lower, above)
        self.sums.add(keys, lower, above)

    def slack(self, keys: UInt64s, hashes: UInt64s) -> Int64s:
        """Return how much less than `residual + above` each sorted key can have, by the cells of blocks without it."""
        regions = regions_of(keys)
        asked = np.flatnonzero(regions < len(self.residuals))
        asked = asked[self.residuals[regions[asked]] > 0]
        slack = np.zeros(len(keys), dtype=np.int64)
        wanted = keys[asked]
        new = wanted[~find(self._slack_keys, wanted)[1]]
        if len(new):
            found = np.zeros(len(new), dtype=np.int64)
            for block in self._parts.values():
                found += block.slack(new, hashes)
            at = np.searchsorted(self._slack_keys, new)
            self._slack_keys = np.insert(self._slack_keys, at, new)
            self._slack = np.insert(self._slack, at, found)
        slack[asked] = self._slack[find(self._slack_keys, wanted)[0]] if len(wanted) else slack[asked]
        return slack

    def forget_slack(self, keys: UInt64s, *, most: int) -> None:
        """Keep what `slack` found of these sorted keys only, once it is of more than `most` keys."""
        if len(self._slack_keys) <= most:
            return
        kept = find(keys, self._slack_keys)[1]
        self._slack_keys, self._slack = self._slack_keys[kept], self._slack[kept]

    def used_items(self) -> Numbers:
        """Return the numbers of all items that it knows."""
        return items_of(np.concatenate((self.sums.keys, self._slack_keys)))

    def renumber(self, moved: Numbers) -> None:
        """Give each item the number that stands at its old one; the order of items must stay."""
        self.sums.keys = renumbered_keys(self.sums.keys, moved)
        self._slack_keys = renumbered_keys(self._slack_keys, moved)

    def _grow(self, regions: int) -> None:
        missing = regions - len(self.totals)
        if missing > 0:
            more = np.zeros(missing, dtype=np.int64)
            self.totals = np.concatenate((self.totals, more))
            self.residuals = np.concatenate((self.residuals, more))
