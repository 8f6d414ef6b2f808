"""Lists of one window: the best items of each region of one partition, chosen from bounds by key."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from domain.estimates import Estimate
from domain.sketches.keys import (
    Int64s,
    Mask,
    Numbers,
    UInt64s,
    items_of,
    ranks_within,
    region_bounds,
    regions_of,
    sizes_of,
)
from speed_layer.names import Items

_ANY_ID = ""  # before every id: of an item that is left out and not looked up


@dataclass(frozen=True, slots=True)
class RegionList:
    """What a partition says of a region and window, still by number.

    Attributes:
        items: Numbers of the best by (upper and what batch has descending, id), in no order that means anything.
        lower: Of each.
        upper: Of each.
        cut: The most that an item which is known and left out can have, with what batch has of it, and its id; None
            when none was.
        residual: The most that an item can have which is not known.
        total: Events, at most.
    """

    items: Numbers
    lower: Int64s
    upper: Int64s
    cut: Estimate | None
    residual: int
    total: int

    @property
    def places(self) -> Numbers:
        """Place of each item by its lower bound, from 0."""
        places = np.empty(len(self.items), dtype=np.intp)
        places[np.argsort(-self.lower, kind="stable")] = np.arange(len(self.items))
        return places

    def says_the_same(self, other: "RegionList | None") -> bool:
        """Say whether there is nothing new to report."""
        return (
            other is not None
            and (self.total, self.residual, self.cut) == (other.total, other.residual, other.cut)
            and np.array_equal(self.items, other.items)
            and np.array_equal(self.lower, other.lower)
            and np.array_equal(self.upper, other.upper)
        )


class Bounded(NamedTuple):
    """Bounds of the items of a window that are worth looking at.

    Attributes:
        keys: Sorted.
        lower: Of each.
        upper: Of each.
        beside: Of each, the most that batch has of it beside: they are chosen by `upper + beside`.
        unlooked: By region number, the most that a known item can have, `beside` and all, which is not among the keys;
            -1 for none.
        residuals: By region number, the most that an unknown item can have; nothing of batch is in it.
        totals: By region number, all events at most.
    """

    keys: UInt64s
    lower: Int64s
    upper: Int64s
    beside: Int64s
    unlooked: Int64s
    residuals: Int64s
    totals: Int64s


def thresholds(keys: UInt64s, values: Int64s, *, size: int, regions: int) -> Int64s:
    """Return by region the value of its `size`-th best key; the least 64-bit number where it has fewer.

    Keys with at least that value are the best `size` and those equal to the last of them.
    """
    bounds = region_bounds(keys, regions)
    least = np.full(regions, np.iinfo(np.int64).min)
    for region in np.flatnonzero(sizes_of(bounds) >= size).tolist():
        of_region = values[bounds[region] : bounds[region + 1]]
        least[region] = np.partition(of_region, len(of_region) - size)[len(of_region) - size]
    return least


def lists_of(bounded: Bounded, *, size: int, items: Items, wanted: Mask) -> dict[int, RegionList]:
    """Return by region number the lists of the wanted regions.

    Args:
        bounded: Of the window.
        size: Rows wanted.
        items: Ids, for ties.
        wanted: By region number.
    """
    regions = len(wanted)
    values = bounded.upper + bounded.beside
    least = thresholds(bounded.keys, values, size=size + 1, regions=regions)
    rows, cuts = _chosen(bounded.keys, values, np.maximum(least, 1), size=size, items=items)
    numbers, lower, upper = items_of(bounded.keys[rows]), bounded.lower[rows], bounded.upper[rows]
    bounds = region_bounds(bounded.keys[rows], regions).tolist()
    found = {}
    for region in np.flatnonzero(wanted).tolist():
        start, end = bounds[region], bounds[region + 1]
        found[region] = RegionList(
            items=numbers[start:end],
            lower=lower[start:end],
            upper=upper[start:end],
            cut=_cut(cuts.get(region), bounded.keys, values, items, unlooked=int(bounded.unlooked[region])),
            residual=int(bounded.residuals[region]),
            total=int(bounded.totals[region]),
        )
    return found


def _chosen(keys: UInt64s, values: Int64s, least: Int64s, *, size: int, items: Items) -> tuple[Numbers, dict[int, int]]:
    """Return the places of the best `size` of each region, by key, and by region the place of the next one.

    Args:
        keys: Sorted.
        values: What each can have.
        least: By region number, what the next one can have; less than all where there is none.
        size: Rows wanted.
        items: Ids: of those that can have as much as the next one the first go first.
    """
    regions = regions_of(keys)
    edge = least[regions]
    better = np.flatnonzero(values > edge)
    equal = np.flatnonzero(values == edge)
    room = size - np.bincount(regions[better], minlength=len(least))
    tied = np.bincount(regions[equal], minlength=len(least)) > room
    close = equal[tied[regions[equal]]]
    close = close[items.in_order(items_of(keys[close]), regions[close])]
    ranks = ranks_within(regions[close])
    in_, next_ = (close[ranks < room[regions[close]]], close[ranks == room[regions[close]]])
    rows = np.sort(np.concatenate((better, equal[~tied[regions[equal]]], in_)))
    return rows, dict(zip(regions[next_].tolist(), next_.tolist(), strict=True))


def _cut(place: int | None, keys: UInt64s, values: Int64s, items: Items, *, unlooked: int) -> Estimate | None:
    """Return the first item left out, by (upper descending, id); its lower bound plays no part."""
    known = [Estimate(_ANY_ID, 0, unlooked)] if unlooked > 0 else []
    if place is not None:
        known.append(Estimate(items.ids[int(items_of(keys[place : place + 1])[0])], 0, int(values[place])))
    return min(known, key=lambda row: (-row.upper, row.item_id.encode()), default=None)


def pinned_from(lists: Sequence[dict[int, RegionList]], *, capacity: Int64s) -> UInt64s:
    """Return sorted keys of the best items of several lists, taken in turn, at most `capacity` a region.

    Args:
        lists: By region number.
        capacity: By region number.
    """
    columns = [
        (np.full(len(found.items), region), found.items, found.places * len(lists) + turn)
        for turn, of_window in enumerate(lists)
        for region, found in of_window.items()
        if len(found.items)
    ]
    if not columns:
        return np.zeros(0, dtype=np.uint64)
    regions, items, places = (np.concatenate(column) for column in zip(*columns, strict=True))
    keys = (regions.astype(np.uint64) << np.uint64(32)) | items.astype(np.uint64)
    by_key = np.lexsort((places, keys))
    first = by_key[np.concatenate(([True], keys[by_key][1:] != keys[by_key][:-1]))]
    order = first[np.lexsort((places[first], regions[first]))]
    kept = order[ranks_within(regions[order]) < capacity[regions[order]]]
    return np.sort(keys[kept])
