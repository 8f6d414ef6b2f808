"""The head: the items of a bucket that seem largest, counted exactly since they were admitted.

An entry is (count, before): `count` events since admission, and `before`, an upper bound of those before it. What is
not listed had at most `residual` events: an item is left out only by eviction, where count + before goes into the
residual, or by refusal, where its estimate does; and whenever it comes again it is tested again.

So, with `estimate` from the sketch that counts all events of the bucket:

    listed:      count <= truth <= min(estimate, count + before)
    not listed:      0 <= truth <= min(estimate, residual)

Relatives: Space-Saving (Metwally, Agrawal and El Abbadi, ICDT 2005), whose `error` is our `before`; here the sketch
bounds what came before admission, which is tighter than the evicted count.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from domain.sketches.count_min import Int64s


class Head:
    """At most `capacity` listed items of one bucket.

    Args:
        capacity: Most entries.
        pinned: Items listed from the bucket's start, which are never evicted; best first, at most half the capacity
            of them are taken. Nothing came before them, so they are exact.
    """

    __slots__ = ("_before", "_counts", "_items", "_pinned", "_slots", "capacity", "residual")

    def __init__(self, capacity: int, pinned: Sequence[str] = ()) -> None:
        if capacity < 1:
            message = f"capacity must be at least 1, not {capacity}"
            raise ValueError(message)
        self.capacity = capacity
        self.residual = 0
        self._items: list[str] = []
        self._slots: dict[str, int] = {}
        self._counts: Int64s = np.zeros(capacity, dtype=np.int64)
        self._before: Int64s = np.zeros(capacity, dtype=np.int64)
        self._pinned: npt.NDArray[np.bool_] = np.zeros(capacity, dtype=np.bool_)
        for item in list(dict.fromkeys(pinned))[: capacity // 2]:
            self._pinned[len(self._items)] = True
            self._list(item, count=0, before=0)

    def __len__(self) -> int:
        return len(self._items)

    @property
    def items(self) -> Sequence[str]:
        """The listed items, in no order that means anything."""
        return tuple(self._items)

    def add(self, items: Sequence[str], counts: Int64s, estimates: Int64s) -> None:
        """Count distinct items after the sketch has counted them.

        Those not listed are tested in one order, the largest estimate first, equal ones by id, whatever order they
        come in: the same events give the same head.

        Args:
            items: Each at most once.
            counts: How many events each had, at least 1.
            estimates: What the sketch says of each now.
        """
        slots = np.fromiter((self._slots.get(item, -1) for item in items), dtype=np.intp, count=len(items))
        listed = slots >= 0
        self._counts[slots[listed]] += counts[listed]
        outside = np.flatnonzero(~listed).tolist()
        if not outside:
            return
        outside.sort(key=lambda at: (-int(estimates[at]), items[at].encode()))
        free = self.capacity - len(self._items)
        for at in outside[:free]:  # a head with room never left an item out, so nothing came before
            self._list(items[at], count=int(counts[at]), before=0)
        if outside[free:]:
            self._compete(outside[free:], items, counts, estimates)

    def bounds(self, items: Sequence[str], estimates: Int64s) -> tuple[Int64s, Int64s]:
        """Return (lower, upper), both included, of how many events each item had."""
        slots = np.fromiter((self._slots.get(item, -1) for item in items), dtype=np.intp, count=len(items))
        listed = slots >= 0
        lower = np.where(listed, self._counts[slots], 0)
        most = np.where(listed, self._counts[slots] + self._before[slots], self.residual)
        return lower, np.minimum(most, estimates)

    def _compete(self, outside: Sequence[int], items: Sequence[str], counts: Int64s, estimates: Int64s) -> None:
        """Let items in whose estimate exceeds what an unpinned entry can have; the smallest entry leaves for each.

        The i-th best item meets the i-th smallest entry; estimates fall and entries grow, so once one is refused
        all after it are.
        """
        admitted = 0
        for at, (smallest, place) in zip(outside, self._leaving(), strict=False):
            if int(estimates[at]) <= smallest:
                break
            self.residual = max(self.residual, smallest)
            self._replace(place, items[at], count=int(counts[at]), before=int(estimates[at] - counts[at]))
            admitted += 1
        if admitted < len(outside):
            self.residual = max(self.residual, int(estimates[outside[admitted]]))

    def _leaving(self) -> Sequence[tuple[int, int]]:
        """Return (most it can have, place) of the entries that may be evicted, the first to leave first.

        Of equal ones the larger id leaves, as it would stand behind in a chart.
        """
        places = np.flatnonzero(~self._pinned[: len(self._items)]).tolist()
        places.sort(key=lambda place: self._items[place].encode(), reverse=True)
        most = self._counts + self._before
        return sorted(((int(most[place]), place) for place in places), key=lambda pair: pair[0])

    def _list(self, item: str, *, count: int, before: int) -> None:
        place = len(self._items)
        self._items.append(item)
        self._slots[item] = place
        self._counts[place] = count
        self._before[place] = before

    def _replace(self, place: int, item: str, *, count: int, before: int) -> None:
        del self._slots[self._items[place]]
        self._items[place] = item
        self._slots[item] = place
        self._counts[place] = count
        self._before[place] = before
