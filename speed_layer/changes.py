"""What a partition reports: lists of its live windows that say something new, and lists of any length when asked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from domain.batch_view import BatchView
from domain.estimates import Estimate
from domain.live_windows import LiveWindow
from domain.merge import LocalTop
from domain.sketches.keys import EVERYWHERE, Int64s, Mask, Numbers, UInt64s
from domain.windows import EPOCH, HOUR, Window
from speed_layer.buckets import Buckets
from speed_layer.lists import RegionList, lists_of, pinned_from
from speed_layer.names import UNKNOWN, Items, Regions
from speed_layer.of_batch import OfBatch
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
        item_ids: Its best items by (upper descending, id), in no order that means anything; for `1d` by what batch
            has of them and `upper` together.
        lower: Of each, without what batch has.
        upper: Of each, without what batch has.
        cut: The most that an item which is left out can have, and its id ("" = any); None when none was left out.
            For `1d` with all that batch has of it, at most: what is left out is not told apart.
        residual: The most that an item can have which the partition does not know by name, without what batch has.
        total: Events, at most, without those of batch.
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
        """Return it as the merger takes it; a day's is to be joined with batch first (`domain.batch_join`)."""
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
        self._of_batch = OfBatch(buckets.items, regions)
        self._told_frontier: int | None = None

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

    @property
    def view(self) -> str | None:
        """Version of the view that the day's lists are chosen by; None before any."""
        return self._of_batch.version

    def take(self, view: BatchView) -> None:
        """Choose the day's lists by this view from now on, and look at every list next time.

        Args:
            view: With the items of this partition only.
        """
        self._of_batch.take(view)
        self._looked.clear()

    def since_last(self, as_of: datetime) -> list[ChangedList]:
        """Return the lists that say something new since they were returned last.

        A day's list says something new when its frontier has moved: the same numbers then are of other hours.
        """
        changed = []
        for kind in LiveWindow:
            window, found = self._lists(kind, as_of)
            before = self._reported[kind]
            moved = kind is LiveWindow.DAY and self._told_frontier != self._buckets.frontier
            changed += [self._named(kind, window, region, _NOTHING) for region in self._gone.pop(kind, ())]
            for number, one in found.items():
                other = not one.says_the_same(before.get(number)) and (one.total or number in before)
                if other or (moved and one.total):
                    changed.append(self._named(kind, window, self._regions.names[number], one))
                    before[number] = one
        self._told_frontier = self._buckets.frontier
        return changed

    def top(self, kind: LiveWindow, region: str, *, size: int, as_of: datetime) -> ChangedList:
        """Return one list of any length, for when a cut hides rows that may belong into a chart.

        A region without buckets of its own has an empty one, with the plays of `ZZ` as residual if it may be there.
        """
        sums = self.windows[kind]
        window = sums.slide(as_of, len(self._regions))
        wanted = np.arange(len(self._regions)) == self._regions.number(region)
        if wanted.any():
            (found,) = self._chosen(kind, window, wanted, size=size).values()
        else:
            hidden = int(sums.totals()[0][UNKNOWN]) if self._regions.folding else 0
            found = RegionList(_NO_ITEMS, _NONE, _NONE, None, hidden, hidden)
        return self._named(kind, window, region, found)

    def pins(self, capacity: Int64s) -> UInt64s:
        """Return sorted keys of what is best now in the live hour and day and in batch's view.

        Args:
            capacity: Most of them by region number.
        """
        of_batch = {}
        for region, items in self._of_batch.best(capacity):
            order = np.arange(len(items), 0, -1)
            of_batch[region] = RegionList(items, order, order, None, 0, 0)
        lists = [self._reported[LiveWindow.HOUR], self._reported[LiveWindow.DAY], of_batch]
        return pinned_from(lists, capacity=capacity)

    def free(self, used: Mask) -> None:
        """Forget regions whose numbers will be free; their lists are reported as empty next time.

        Args:
            used: By region number.
        """
        for kind, reported in self._reported.items():
            gone = [self._regions.names[region] for region, said in reported.items() if said.total and not used[region]]
            self._gone.setdefault(kind, []).extend(gone)
        for lists in self._reported.values():
            for region in [region for region in lists if not used[region]]:
                del lists[region]
        self._of_batch.forget(used)

    def used_items(self) -> Iterator[Numbers]:
        """Yield the numbers of items that are known here."""
        for sums in self.windows.values():
            yield from (part.used_items() for part in sums.parts)
        for lists in self._reported.values():
            yield from (found.items for found in lists.values())
        yield self._of_batch.used_items()

    def renumber(self, moved: Numbers) -> None:
        """Give each item the number that stands at its old one; the order of items must stay."""
        for sums in self.windows.values():
            sums.renumber(moved)
        for shared in (*self._fine.values(), *self._shared.values()):
            shared.renumber(moved)
        for lists in self._reported.values():
            lists.update({n: replace(found, items=moved[found.items]) for n, found in lists.items()})
        self._of_batch.renumber(moved)

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
        return window, self._chosen(kind, window, wanted, size=self._buckets.policy.list_size)

    def _chosen(self, kind: LiveWindow, window: Window, wanted: Mask, *, size: int) -> dict[int, RegionList]:
        """Return lists of the wanted regions; those of the day are chosen by what batch has, too."""
        sums = self.windows[kind]
        bounded = sums.best(wanted, size=size)
        if kind is LiveWindow.DAY:
            self._of_batch.slide(window.start)
            bounded = self._of_batch.join(bounded, sums, size=size, wanted=wanted)
        return lists_of(bounded, size=size, items=self._items, wanted=wanted)

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
