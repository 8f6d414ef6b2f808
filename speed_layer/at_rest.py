"""What is at rest in a window: a sum that it shares with another window, and what it has alone.

The live hour and the live day have nearly the same minutes. They are summed once.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from domain.sketches.keys import Int64s, Numbers, UInt64s, distinct, regions_of
from domain.sketches.packed import PackedBlock
from speed_layer.lists import thresholds
from speed_layer.running_sum import Part, RunningSum

LEAST = np.iinfo(np.int64).min  # by region: there is no such key
_SPARE = 2


class Shortlist(NamedTuple):
    """The keys at rest that are best by themselves.

    Attributes:
        made_for: Versions of the sums, size asked for, regions.
        keys: Sorted; twice as many as are asked for, so that what happens now moves them among themselves.
        lower: Of each, at rest.
        above: Of each, at rest, above the residual, less what the cells say.
        others: By region number, the most above the residual of those at rest that are not among them.
        enough: By region number, what one more of them than is asked for have above the residual at least.
    """

    made_for: tuple[int, int, int, int]
    keys: UInt64s
    lower: Int64s
    above: Int64s
    others: Int64s
    enough: Int64s


class AtRest:
    """The sum of the blocks at rest of one window.

    Args:
        shared: Sum of those that another window has too.
    """

    def __init__(self, shared: RunningSum) -> None:
        self._shared = shared
        self._own = RunningSum()
        self._shortlist: Shortlist | None = None

    @property
    def sums(self) -> tuple[RunningSum, RunningSum]:
        """Both sums."""
        return self._shared, self._own

    @property
    def version(self) -> tuple[int, int]:
        """Changes with what is summed."""
        return self._shared.version, self._own.version

    def cover(self, shared: Mapping[Part, PackedBlock], own: Mapping[Part, PackedBlock], hashes: UInt64s) -> None:
        """Make this the sum of exactly these blocks, each in one of the two."""
        self._shared.cover(shared, hashes)
        self._own.cover(own, hashes)

    def at(self, keys: UInt64s) -> tuple[Int64s, Int64s]:
        """Return (lower, above) of keys, 0 where they are not listed."""
        (lower, above), (more, more_above) = (part.sums.at(keys) for part in self.sums)
        return lower + more, above + more_above

    def slack(self, keys: UInt64s, hashes: UInt64s) -> Int64s:
        """Return how much less than `residual + above` each sorted key can have."""
        return self._shared.slack(keys, hashes) + self._own.slack(keys, hashes)

    def shortlist(self, size: int, *, regions: int, hashes: UInt64s) -> Shortlist:
        """Return what is best; the same until the sums change.

        Args:
            size: How many are asked for.
            regions: How many numbers of regions there are.
            hashes: Hash of each item number.
        """
        made_for = (*self.version, size, regions)
        if self._shortlist is None or self._shortlist.made_for != made_for:
            shared = self._shared.sums
            best, others = _best(shared.keys, shared.above, size=_SPARE * size, regions=regions)
            keys = distinct(np.concatenate((shared.keys[best], self._own.sums.keys)))  # few have blocks of their own
            lower, above = self.at(keys)
            best, more_others = _best(keys, above, size=_SPARE * size, regions=regions)
            keys = keys[best]
            certain = above[best] - self.slack(keys, hashes)
            enough = thresholds(keys, certain, size=size + 1, regions=regions)
            others = np.maximum(others, more_others)
            self._shortlist = Shortlist(made_for, keys, lower[best], certain, others, enough)
        return self._shortlist

    def forget_slack(self, keys: UInt64s, *, most: int) -> None:
        """Keep what `slack` found of these sorted keys only, once it is of more than `most` keys."""
        for part in self.sums:
            part.forget_slack(keys, most=most)

    def renumber(self, moved: Numbers) -> None:
        """Give each item the number that stands at its old one, in what is not shared; the order must stay."""
        self._own.renumber(moved)
        self._shortlist = None


def _best(keys: UInt64s, above: Int64s, *, size: int, regions: int) -> tuple[Numbers, Int64s]:
    """Return the places of the best keys of each region, and by region the most that the others have."""
    least = thresholds(keys, above, size=size, regions=regions)
    best = above >= least[regions_of(keys)]
    cut = np.bincount(regions_of(keys[~best]), minlength=regions) > 0
    return np.flatnonzero(best), np.where(cut, least - 1, LEAST)
