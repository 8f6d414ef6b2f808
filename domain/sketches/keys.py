"""Keys: a region's number and an item's number in one integer of 64 bits, so that a sorted array is by region.

Numbers are given by the owner of the buckets (`*` is region 0) and mean nothing outside of it.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

UInt64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

EVERYWHERE: Final = 0
_SHIFT = np.uint64(32)
_ITEM_BITS = np.uint64(2**32 - 1)
NO_KEYS: UInt64s = np.zeros(0, dtype=np.uint64)


def keys_of(regions: npt.ArrayLike, items: npt.ArrayLike) -> UInt64s:
    """Return the keys of pairs of region and item."""
    return (np.asarray(regions).astype(np.uint64) << _SHIFT) | np.asarray(items).astype(np.uint64)


def regions_of(keys: UInt64s) -> Numbers:
    """Return the numbers of the regions."""
    return (keys >> _SHIFT).astype(np.intp)


def items_of(keys: UInt64s) -> Numbers:
    """Return the numbers of the items."""
    return (keys & _ITEM_BITS).astype(np.intp)


def region_bounds(keys: UInt64s, regions: int) -> Numbers:
    """Return where each of the first `regions` regions begins in sorted keys, and where the last one ends."""
    return np.searchsorted(keys, np.arange(regions + 1, dtype=np.uint64) << _SHIFT)


def sizes_of(bounds: npt.NDArray[np.integer]) -> Numbers:
    """Return how many entries lie between each two bounds."""
    wide = bounds.astype(np.intp)
    return wide[1:] - wide[:-1]


def find(among: UInt64s, keys: UInt64s) -> tuple[Numbers, Mask]:
    """Return for each key its place in sorted, distinct keys and whether it is there; the place is valid if it is."""
    if not len(among):
        return np.zeros(len(keys), dtype=np.intp), np.zeros(len(keys), dtype=np.bool_)
    places = np.searchsorted(among, keys)
    places[places == len(among)] = 0
    return places, among[places] == keys


def distinct(keys: UInt64s) -> UInt64s:
    """Return the distinct keys, sorted.

    `numpy.unique` hashes them since 2.3, and keys of one region fall together there: over 50 times as slow as sorting.
    """
    keys = np.sort(keys, kind="stable")  # which is quick where sorted runs follow each other, as here
    found: UInt64s = keys[np.concatenate((keys[:1] == keys[:1], keys[1:] != keys[:-1]))]
    return found


def summed(keys: UInt64s, *columns: Int64s) -> tuple[UInt64s, list[Int64s]]:
    """Return the distinct keys, sorted, and the sum of each column for each of them."""
    if not len(keys):
        return keys, list(columns)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    return keys[first], [np.add.reduceat(column[order], first) for column in columns]


def ranks_within(groups: Numbers) -> Numbers:
    """Return each element's place within its run of equal groups, from 0; equal groups stand together."""
    if not len(groups):
        return groups
    first = np.flatnonzero(np.concatenate(([True], groups[1:] != groups[:-1])))
    return np.arange(len(groups)) - np.repeat(first, np.diff(np.append(first, len(groups))))


def indices_of_runs(starts: Numbers, ends: Numbers) -> Numbers:
    """Return all places of runs [start, end), in order."""
    lengths = ends - starts
    total = int(lengths.sum())
    shifts = np.repeat(starts - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths) if total else 0
    return np.arange(total) + shifts
