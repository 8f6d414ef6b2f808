"""What batch has of the items of one partition: its part in choosing the lists of the live day.

The lists carry what live counting knows; the merger alone adds what batch has. But an item that was played most before
the frontier must be in the list, however little it was played since.
"""

from collections.abc import Iterator
from datetime import datetime

import numpy as np

from domain.batch_view import HOURS_IN_VIEW, BatchView, Counts
from domain.sketches.keys import (
    NO_KEYS,
    Int64s,
    Mask,
    Numbers,
    UInt64s,
    find,
    items_of,
    keys_of,
    region_bounds,
    regions_of,
)
from domain.windows import DAY, HOUR
from speed_layer.lists import Bounded, thresholds
from speed_layer.names import Items, Regions
from speed_layer.tail import renumbered_keys
from speed_layer.windows import WindowSums

_NO_PLAYS: Int64s = np.zeros(0, dtype=np.int64)
_NO_HOURS: Counts = np.zeros((0, HOURS_IN_VIEW), dtype=np.uint8)


class OfBatch:
    """Plays of a view by key, since the start of the live day.

    A region's items get numbers when the region has one: of others nothing was played here, and no list is made.

    Args:
        items: Of the partition.
        regions: Of the partition.
    """

    def __init__(self, items: Items, regions: Regions) -> None:
        self._items = items
        self._regions = regions
        self._view: BatchView | None = None
        self._names: dict[int, str] = {}
        self._keys = NO_KEYS
        self._hourly = _NO_HOURS
        self._plays = _NO_PLAYS
        self._residuals = _NO_PLAYS
        self._gone = -1
        self._enough: tuple[int, Int64s] | None = None

    @property
    def version(self) -> str | None:
        """Version of the view; None before any."""
        return None if self._view is None else self._view.version

    def take(self, view: BatchView) -> None:
        """Use another view, with the items of this partition only."""
        self._view = view
        self._names = {}
        self._keys, self._hourly, self._plays = NO_KEYS, _NO_HOURS, _NO_PLAYS
        self._gone, self._enough = -1, None

    def slide(self, start: datetime) -> None:
        """Sum the plays since the start of the live day, inclusive, a whole hour UTC; know the regions of now."""
        if self._view is None:
            return
        new = {n: name for n, name in enumerate(self._regions.names) if name and self._names.get(n) != name}
        if new:
            self._learn(self._view, new)
        gone = min(max((start - (self._view.frontier - DAY)) // HOUR, 0), HOURS_IN_VIEW)
        names = self._regions.names
        if new or gone != self._gone or len(names) != len(self._residuals):
            self._gone, self._enough = gone, None
            self._plays = self._hourly[:, gone:].sum(axis=1, dtype=np.int64)
            left = [self._view.since(name, start).residual if name else 0 for name in names]
            self._residuals = np.array(left, dtype=np.int64)

    def at(self, keys: UInt64s) -> Int64s:
        """Return how many plays batch has of each key, at most: exactly where it knows the item, else its residual."""
        if self._view is None:
            return np.zeros(len(keys), dtype=np.int64)
        places, known = find(self._keys, keys)
        plays = self._residuals[regions_of(keys)]
        plays[known] = self._plays[places[known]]
        return plays

    def join(self, bounded: Bounded, sums: WindowSums, *, size: int, wanted: Mask) -> Bounded:
        """Return bounds of all items that may be among the best by what batch and live counting have together.

        Regions of which live counting has nothing are left as they are: there is no list of them.

        Args:
            bounded: Of all that may be among the best by live counting alone.
            sums: Of the live day.
            size: How many are asked for.
            wanted: By region number.
        """
        if self._view is None:
            return bounded
        played = wanted & (bounded.totals > 0)
        keys, upper = bounded.keys, bounded.upper
        beside = self.at(keys)
        enough = np.maximum(
            thresholds(keys, upper + beside, size=size + 1, regions=len(wanted)), self._enough_of_batch(size)
        )
        most = np.maximum(np.maximum(bounded.unlooked, bounded.residuals), 0)  # of an item that is not among the keys
        regions = regions_of(self._keys)
        hopeful = played[regions] & (self._plays > 0) & (self._plays + most[regions] >= enough[regions])
        new = self._keys[hopeful]
        beside_new = self._plays[hopeful]
        missing = ~find(keys, new)[1]
        new, beside_new = new[missing], beside_new[missing]
        more = sums.bounds(new)
        at = np.searchsorted(keys, new)
        unlooked = np.where(bounded.unlooked > 0, bounded.unlooked + self._residuals, bounded.unlooked)
        return bounded._replace(
            keys=np.insert(keys, at, new),
            lower=np.insert(bounded.lower, at, more[0]),
            upper=np.insert(upper, at, more[1]),
            beside=np.insert(beside, at, beside_new),
            unlooked=unlooked,
        )

    def best(self, capacity: Int64s) -> Iterator[tuple[int, Numbers]]:
        """Yield region numbers with the numbers of their best items, best first.

        Args:
            capacity: Most of them by region number.
        """
        bounds = region_bounds(self._keys, len(capacity)).tolist()
        for region in sorted(self._names):
            start, end = bounds[region], bounds[region + 1]
            order = start + np.argsort(-self._plays[start:end], kind="stable")
            yield region, items_of(self._keys[order[: int(capacity[region])]])

    def forget(self, used: Mask) -> None:
        """Forget regions whose numbers will be free.

        Args:
            used: By region number.
        """
        self._names = {number: name for number, name in self._names.items() if used[number]}
        self._keep(used[regions_of(self._keys)])

    def used_items(self) -> Numbers:
        """Return the numbers of all items that it knows."""
        return items_of(self._keys)

    def renumber(self, moved: Numbers) -> None:
        """Give each item the number that stands at its old one; the order of items must stay."""
        self._keys = renumbered_keys(self._keys, moved)

    def _learn(self, view: BatchView, new: dict[int, str]) -> None:
        """Give numbers to the items of regions that were not known here, or had another name."""
        self._names.update(new)
        stale = np.isin(regions_of(self._keys), list(new))
        self._keep(~stale)
        keys, hourly = [self._keys], [self._hourly]
        for number, name in new.items():
            found = view.regions.get(name)
            if found is not None and len(found.item_ids):
                items = self._items.numbers_of(list(found.item_ids))
                keys.append(keys_of(np.full(len(items), number), items))
                hourly.append(found.hourly)
        all_keys = np.concatenate(keys)
        order = np.argsort(all_keys)
        self._keys, self._hourly = all_keys[order], np.concatenate(hourly)[order]

    def _keep(self, kept: Mask) -> None:
        self._keys, self._hourly, self._plays = self._keys[kept], self._hourly[kept], self._plays[kept]
        self._enough = None

    def _enough_of_batch(self, size: int) -> Int64s:
        """Return by region what one more item than is asked for has in batch at least."""
        if self._enough is None or self._enough[0] != size:
            regions = len(self._residuals)
            self._enough = (size, thresholds(self._keys, self._plays, size=size + 1, regions=regions))
        return self._enough[1]
