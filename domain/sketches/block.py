"""A block: the buckets of all regions in one span of event time, of one partition of the log, as columns.

A bucket is one region's. It is **exact** while it has few items: every item with its count. Then it becomes a
**sketch**: Count-Min cells for all of its events, and a head of the items that seem largest. In both forms an entry is
(count, before): `count` events since it was listed, and `before`, an upper bound of those before that. What is not
listed had at most `residual` events: an item is outside only because it was evicted, where count + before went into
the residual, or refused, where the most that it could have did; and whenever it comes again it is tested again. So,
with `estimate` from the cells:

    listed:      count <= truth <= min(estimate, count + before)
    not listed:      0 <= truth <= min(estimate, residual)

An item that is outside and comes `c` times can have min(estimate now, residual + c): that is what it is tested by, and
less `c` its `before`. A bucket that never left an item out has residual 0, so what enters it then is exact.

Relatives: Space-Saving (Metwally, Agrawal and El Abbadi, ICDT 2005), whose `error` is our `before`; here the cells
bound it as well, which is tighter for items that are small.
"""

import numpy as np

from domain.sketches.admission import Contenders, admitted, best_first
from domain.sketches.cells import Cells
from domain.sketches.keys import (
    NO_KEYS,
    Int64s,
    Mask,
    Numbers,
    UInt64s,
    find,
    indices_of_runs,
    items_of,
    ranks_within,
    region_bounds,
    regions_of,
    sizes_of,
)
from domain.sketches.shape import Shapes

_NONE: Int64s = np.zeros(0, dtype=np.int64)


class Block:
    """Buckets by region number, 0 = `*`. Items are numbers; `hashes` gives the 64-bit hash of each number.

    Args:
        shapes: How large its buckets may become.
        pinned: Sorted keys of items that are listed from the start of a sketch and are never evicted, at most half a
            head's capacity in each region. Nothing was left out before, so they are exact.

    Attributes:
        keys: Of all entries, sorted.
        counts: Events of each entry since it was listed.
        before: At most so many came before that.
        totals: Events of each region.
        residuals: Of each region, the most that an item can have which is not listed; 0 while the bucket is exact.
        cells: Sketches of those regions that have one.
    """

    __slots__ = ("before", "cells", "counts", "keys", "pinned", "residuals", "shapes", "totals")

    def __init__(self, shapes: Shapes, pinned: UInt64s = NO_KEYS) -> None:
        self.shapes = shapes
        self.pinned = pinned
        self.keys = NO_KEYS
        self.counts = _NONE
        self.before = _NONE
        self.totals = _NONE
        self.residuals = _NONE
        self.cells = Cells(shapes)

    def __len__(self) -> int:
        return len(self.totals)

    def add(self, keys: UInt64s, added: Int64s, hashes: UInt64s) -> None:
        """Count events.

        Args:
            keys: Sorted and distinct.
            added: Events of each key, at least 1.
            hashes: Hash of each item number.
        """
        if not len(keys):
            return
        regions = regions_of(keys)
        self.grow(int(regions[-1]) + 1)
        np.add.at(self.totals, regions, added)
        places, listed = find(self.keys, keys)
        self.counts[places[listed]] += added[listed]
        sketched = self.cells.has(regions)
        plain = ~listed & ~sketched
        before = np.zeros(int(plain.sum()), dtype=np.int64)
        if sketched.any():
            self._add_sketched(keys[sketched], added[sketched], listed[sketched], hashes)
        self._insert(keys[plain], added[plain], before)
        if len(before):
            self.sketch_what_is_too_large(hashes)

    def bounds(self, keys: UInt64s, hashes: UInt64s) -> tuple[Int64s, Int64s]:
        """Return (lower, upper), both included, of how many events each key had; keys in any order."""
        regions = regions_of(keys)
        known = regions < len(self)
        if not known.all():
            lower, upper = np.zeros((2, len(keys)), dtype=np.int64)
            lower[known], upper[known] = self.bounds(keys[known], hashes)
            return lower, upper
        places, listed = find(self.keys, keys)
        lower = np.zeros(len(keys), dtype=np.int64)
        upper = self.residuals[regions]
        lower[listed] = self.counts[places[listed]]
        upper[listed] = lower[listed] + self.before[places[listed]]
        loose = np.flatnonzero((upper > lower) & self.cells.has(regions))
        if len(loose):
            estimates = self.cells.estimate(regions[loose], hashes[items_of(keys[loose])])
            upper[loose] = np.minimum(upper[loose], estimates)
        return lower, upper

    def tighten(self, hashes: UInt64s) -> None:
        """Let each entry's `before` be no more than what the cells leave for it; bounds stay what they are."""
        loose = np.flatnonzero(self.before > 0)
        if len(loose):
            keys = self.keys[loose]
            left = self.cells.estimate(regions_of(keys), hashes[items_of(keys)]) - self.counts[loose]
            self.before[loose] = np.minimum(self.before[loose], left)

    def grow(self, regions: int) -> None:
        """Know this many regions."""
        missing = regions - len(self.totals)
        if missing > 0:
            self.totals = np.concatenate((self.totals, np.zeros(missing, dtype=np.int64)))
            self.residuals = np.concatenate((self.residuals, np.zeros(missing, dtype=np.int64)))
            self.cells.grow(regions)

    def sketch_what_is_too_large(self, hashes: UInt64s) -> None:
        """Turn exact buckets with more items than the exact form holds into sketches; what is listed stays exact."""
        sizes = sizes_of(region_bounds(self.keys, len(self)))
        large = np.flatnonzero((self.cells.bases < 0) & (sizes > self.shapes.exact_items(len(self))))
        if not len(large):
            return
        self.cells.make_room(int(self.totals.max()))
        self.cells.open(large)
        places = self._places_of(large)
        keys = self.keys[places]
        self.cells.add(regions_of(keys), hashes[items_of(keys)], self.counts[places])
        pinned = self.pinned[np.isin(regions_of(self.pinned), large)]
        missing = pinned[~find(self.keys, pinned)[1]]
        nothing = np.zeros(len(missing), dtype=np.int64)
        self._insert(missing, nothing, nothing)
        self.trim(large, hashes)

    def trim(self, regions: Numbers, hashes: UInt64s) -> None:
        """List no more items of these regions than their heads hold: pinned ones and those that can have most."""
        places = self._places_of(regions)
        keys = self.keys[places]
        most = self.counts[places] + self.before[places]
        pinned = find(self.pinned, keys)[1]
        preferred = np.where(pinned, np.iinfo(np.int64).max, most)
        order = best_first(Contenders(regions_of(keys), preferred, hashes[items_of(keys)]))
        in_order = regions_of(keys[order])
        out = order[ranks_within(in_order) >= self.shapes.heads(len(self))[in_order]]
        np.maximum.at(self.residuals, regions_of(keys[out]), most[out])
        self._delete(places[out])

    def _add_sketched(self, keys: UInt64s, added: Int64s, listed: Mask, hashes: UInt64s) -> None:
        """Count events of regions that have sketches; the entries of those listed have been counted already."""
        self.cells.make_room(int(self.totals.max()))
        regions = regions_of(keys)
        self.cells.add(regions, hashes[items_of(keys)], added)
        outside = np.flatnonzero(~listed)
        if len(outside):
            self._contest(keys[outside], added[outside], hashes)

    def _contest(self, keys: UInt64s, added: Int64s, hashes: UInt64s) -> None:
        """Let items in that can have more than an entry which is not pinned; the smallest entry leaves for each."""
        regions, own = regions_of(keys), hashes[items_of(keys)]
        most = np.minimum(self.cells.estimate(regions, own), self.residuals[regions] + added)
        places = self._places_of(np.unique(regions))
        free = self.shapes.heads(len(self)) - sizes_of(region_bounds(self.keys, len(self)))
        places = places[~find(self.pinned, self.keys[places])[1]]
        entries = self.keys[places]
        entry_most = self.counts[places] + self.before[places]
        enters, leaves = admitted(
            Contenders(regions, most, own),
            Contenders(regions_of(entries), entry_most, hashes[items_of(entries)]),
            free,
        )
        np.maximum.at(self.residuals, regions[~enters], most[~enters])
        np.maximum.at(self.residuals, regions_of(entries[leaves]), entry_most[leaves])
        self._delete(places[leaves])
        self._insert(keys[enters], added[enters], (most - added)[enters])

    def _places_of(self, regions: Numbers) -> Numbers:
        bounds = region_bounds(self.keys, len(self))
        return indices_of_runs(bounds[regions], bounds[regions + 1])

    def _insert(self, keys: UInt64s, counts: Int64s, before: Int64s) -> None:
        if not len(keys):
            return
        places = np.searchsorted(self.keys, keys)
        self.keys = np.insert(self.keys, places, keys)
        self.counts = np.insert(self.counts, places, counts)
        self.before = np.insert(self.before, places, before)

    def _delete(self, places: Numbers) -> None:
        if not len(places):
            return
        kept = np.ones(len(self.keys), dtype=np.bool_)
        kept[places] = False
        self.keys, self.counts, self.before = self.keys[kept], self.counts[kept], self.before[kept]
