"""What a partition reports: lists of its live windows that say something new, and lists of any length when asked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from domain.estimates import Estimate
from domain.live_windows import LiveWindow
from domain.merge import LocalTop
from domain.sketches.keys import EVERYWHERE, Int64s, Mask, Numbers, UInt64s
from domain.windows import EPOCH, HOUR, Window
from speed_layer.buckets import Buckets
from speed_layer.lists import RegionList, lists_of, pinned_from
from speed_layer.names import UNKNOWN, Items, Regions
from speed_layer.pending import Pending
from speed_layer.running_sum import RunningSum
from speed_layer.windows import WindowSums

_NO_ITEMS: Numbers = np.zeros(0, dtype=np.intp)
_NONE: Int64s = np.zeros(0, dtype=np.int64)
_NOTHING = RegionList(_NO_ITEMS, _NONE, _NONE, None, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedList:
    """A partition's list that says something new.

    Attributes:
        kind: Which live window.
        window: Its span.
        region: Its name; `*` = all.
        frontier: Hours below it are not in the list (`1d` only); None before any view.
        item_ids: Its best items by (upper descending, id), in no order that means anything.
        lower: Of each.
        upper: Of each.
        cut: The most that an item which is left out can have, and its id ("" = any); None when none was left out.
        residual: The most that an item can have which the partition does not know by name.
        total: Events, at most.
    """

    kind: LiveWindow
    window: Window
    region: str
    frontier: datetime | None
    item_ids: Sequence[str]
    lower: Sequence[int]
    upper: Sequence[int]
    cut: Estimate | None
    residual: int
    total: int

    def top(self) -> LocalTop:
        """Return it as the merger takes it."""
        rows = list(map(Estimate, self.item_ids, self.lower, self.upper))
        return LocalTop(rows=rows, cut=self.cut, residual=self.residual, total=self.total)


class Changes:
    """Reads the live windows of one partition, and knows what was reported.

    Args:
        buckets: Of the partition.
        pending: Of the partition.
        regions: Of the partition.
    """

    def __init__(self, buckets: Buckets, pending: Pending, regions: Regions) -> None:
        self._fine = {kind.grain: RunningSum() for kind in LiveWindow}
        self._shared = {kind.grain: RunningSum() for kind in LiveWindow}
        self.windows = {
            kind: WindowSums(kind, buckets, pending, fine=self._fine[kind.grain], shared=self._shared[kind.grain])
            for kind in LiveWindow
        }
        self._buckets = buckets
        self._regions = regions
        self._reported: dict[LiveWindow, dict[int, RegionList]] = {kind: {} for kind in LiveWindow}
        self._looked: dict[LiveWindow, tuple[object, ...]] = {}
        self._touched = {kind: np.zeros(0, dtype=np.bool_) for kind in LiveWindow}
        self._gone: dict[LiveWindow, list[str]] = {}
        self._of_batch: dict[int, RegionList] = {}

    @property
    def _items(self) -> Items:
        return self._buckets.items

    def touch(self, regions: Numbers) -> None:
        """Note that plays of these regions were counted."""
        missing = len(self._regions) - len(self._touched[LiveWindow.DAY])
        for kind in LiveWindow:
            self._touched[kind] = np.concatenate((self._touched[kind], np.zeros(missing, dtype=np.bool_)))
            self._touched[kind][regions] = True
            self._touched[kind][EVERYWHERE] = True

    def look_again(self) -> None:
        """Look at every list next time: a view was taken over."""
        self._looked.clear()

    def batch_has(self, region: int, best: Numbers) -> None:
        """Note the best items of a region in batch's view, best first: they are pinned like those of live lists."""
        order = np.arange(len(best), 0, -1)
        self._of_batch[region] = RegionList(best, order, order, None, 0, 0)

    def since_last(self, as_of: datetime) -> list[ChangedList]:
        """Return the lists that say something new since they were returned last."""
        changed = []
        for kind in LiveWindow:
            window, found = self._lists(kind, as_of)
            before = self._reported[kind]
            changed += [self._named(kind, window, region, _NOTHING) for region in self._gone.pop(kind, ())]
            for number, one in found.items():
                if not one.says_the_same(before.get(number)) and (one.total or number in before):
                    changed.append(self._named(kind, window, self._regions.names[number], one))
                    before[number] = one
        return changed

    def top(self, kind: LiveWindow, region: str, *, size: int, as_of: datetime) -> ChangedList:
        """Return one list of any length, for when a cut hides rows that may belong into a chart.

        A region without buckets of its own has an empty one, with the plays of `ZZ` as residual if it may be there.
        """
        sums = self.windows[kind]
        window = sums.slide(as_of, len(self._regions))
        wanted = np.arange(len(self._regions)) == self._regions.number(region)
        if wanted.any():
            (found,) = lists_of(sums.best(wanted, size=size), size=size, items=self._items, wanted=wanted).values()
        else:
            hidden = int(sums.totals()[0][UNKNOWN]) if self._regions.folding else 0
            found = RegionList(_NO_ITEMS, _NONE, _NONE, None, hidden, hidden)
        return self._named(kind, window, region, found)

    def pins(self, capacity: Int64s) -> UInt64s:
        """Return sorted keys of what is best now in the live hour and day and in batch's view.

        Args:
            capacity: Most of them by region number.
        """
        lists = [self._reported[LiveWindow.HOUR], self._reported[LiveWindow.DAY], self._of_batch]
        return pinned_from(lists, capacity=capacity)

    def free(self, used: Mask) -> None:
        """Forget regions whose numbers will be free; their lists are reported as empty next time.

        Args:
            used: By region number.
        """
        for kind, reported in self._reported.items():
            gone = [self._regions.names[region] for region, said in reported.items() if said.total and not used[region]]
            self._gone.setdefault(kind, []).extend(gone)
        for lists in self._all_lists():
            for region in [region for region in lists if not used[region]]:
                del lists[region]

    def used_items(self) -> Iterator[Numbers]:
        """Yield the numbers of items that are known here."""
        for sums in self.windows.values():
            yield from (part.used_items() for part in sums.parts)
        for lists in self._all_lists():
            yield from (found.items for found in lists.values())

    def renumber(self, moved: Numbers) -> None:
        """Give each item the number that stands at its old one; the order of items must stay."""
        for sums in self.windows.values():
            sums.renumber(moved)
        for shared in (*self._fine.values(), *self._shared.values()):
            shared.renumber(moved)
        for lists in self._all_lists():
            lists.update({n: replace(found, items=moved[found.items]) for n, found in lists.items()})

    def _all_lists(self) -> Sequence[dict[int, RegionList]]:
        return (*self._reported.values(), self._of_batch)

    def _lists(self, kind: LiveWindow, as_of: datetime) -> tuple[Window, dict[int, RegionList]]:
        """Return the lists of those regions of which something may have changed."""
        sums, number = self.windows[kind], len(self._regions)
        window = sums.slide(as_of, number)
        wanted = np.zeros(number, dtype=np.bool_)
        touched = self._touched[kind]
        wanted[: len(touched)] = touched
        look = (window, *sums.version, number)
        if self._looked.get(kind) != look:
            wanted[:] = True
        self._looked[kind] = look
        touched[:] = False
        size = self._buckets.policy.list_size
        return window, lists_of(sums.best(wanted, size=size), size=size, items=self._items, wanted=wanted)

    def _named(self, kind: LiveWindow, window: Window, region: str, found: RegionList) -> ChangedList:
        hour = self._buckets.frontier if kind is LiveWindow.DAY else None
        ids = self._items.ids
        return ChangedList(
            kind=kind,
            window=window,
            region=region,
            frontier=None if hour is None else EPOCH + hour * HOUR,
            item_ids=[ids[number] for number in found.items.tolist()],
            lower=found.lower.tolist(),
            upper=found.upper.tolist(),
            cut=found.cut,
            residual=found.residual,
            total=found.total,
        )
