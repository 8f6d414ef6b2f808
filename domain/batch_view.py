"""What batch hands to the live charts: the best items of each region in the day before the frontier, hour by hour."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

import numpy as np
import numpy.typing as npt

from domain.sketches.keys import Int64s, Numbers
from domain.windows import DAY, HOUR

HOURS_IN_VIEW = DAY // HOUR
ITEMS_IN_VIEW = 5_000  # of each region

Counts = npt.NDArray[np.integer]
PartitionOf = Callable[[Sequence[str]], Sequence[int]]


@dataclass(frozen=True, kw_only=True)
class RegionView:
    """Exact counts of one region over the 24 hours before the frontier, or over the last of them.

    Attributes:
        item_ids: The items with the most plays in these hours, by (plays descending, id bytes).
        hourly: Plays by item and hour, shape (items, hours), oldest hour first; of any width of integer.
        residual: No other item has more plays in all 24 hours together; 0 when every item is listed.
        totals: Plays of all items by hour, shape (hours,).
    """

    item_ids: Sequence[str]
    hourly: Counts
    residual: int
    totals: Int64s

    @cached_property
    def plays(self) -> Int64s:
        """Plays of each item in all hours, shape (items,)."""
        plays: Int64s = self.hourly.sum(axis=1, dtype=np.int64)
        return plays

    @cached_property
    def order(self) -> Numbers:
        """Places of the items by (plays descending, place): other than their own order once hours are left out."""
        return np.argsort(-self.plays, kind="stable")

    @property
    def total(self) -> int:
        """Plays of all items in all hours."""
        return int(self.totals.sum())

    def of_places(self, places: Numbers) -> "RegionView":
        """Return it with the items at these places only; the residual and the totals stay those of all."""
        ids = self.item_ids
        return replace(self, item_ids=[ids[place] for place in places.tolist()], hourly=self.hourly[places])


@dataclass(frozen=True, kw_only=True)
class BatchView:
    """Exact counts of `[frontier - 24 h, frontier)`, as one release certified them.

    Attributes:
        version: Name of this view; a view never changes.
        release: Number of the release.
        frontier: Exclusive end, a whole hour UTC.
        log_id: The log that batch read past the frontier and its grace; None when it read none.
        offsets: `<log id>/<partition number>` -> `EntryId.version` up to which, included, the release has read it.
        regions: Region name -> its counts; `*` is all, and a region without plays is absent.
        others: No region that is absent for want of room has more plays than that; 0 when every region is there.
        copies: Events of these hours that batch left out as copies, by reason; live counting sees only those that come
            again within its retry window, and counts the others until batch has the hour.
    """

    version: str
    release: int
    frontier: datetime
    log_id: str | None = None
    offsets: Mapping[str, int]
    regions: Mapping[str, RegionView]
    others: int = 0
    copies: Mapping[str, int] = field(default_factory=dict)
    _since: dict[str, tuple[int, RegionView]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def offset(self, log_id: str, partition: int) -> int:
        """Return up to where batch has read a partition of a log; -1 when it has not read that log."""
        return self.offsets.get(f"{log_id}/{partition}", -1)

    def goes_with(self, log_id: str) -> bool:
        """Say whether live counts of this log may begin at the frontier.

        A view of another log says nothing about what came through this one before the frontier: with it, plays would
        be in neither.
        """
        return self.log_id == log_id

    def since(self, region: str, start: datetime) -> RegionView:
        """Return a region without the hours before `start` (inclusive bound, a whole hour UTC); kept until asked anew.

        The residual stays: it is a bound for fewer hours as well. A region without plays is an empty one. Of a region
        that is absent for want of room any item may have what the largest of these has, and so may all together.
        """
        gone = min(max((start - (self.frontier - DAY)) // HOUR, 0), HOURS_IN_VIEW)
        kept = self._since.get(region)
        if kept is None or kept[0] != gone:
            whole = self.regions.get(region) or self._absent()
            residual = whole.residual if gone < HOURS_IN_VIEW else 0
            left = replace(whole, hourly=whole.hourly[:, gone:], totals=whole.totals[gone:], residual=residual)
            kept = self._since[region] = (gone, left)
        return kept[1]

    def split(self, partition_of: PartitionOf, partitions: int) -> "list[BatchView]":
        """Return one view a partition of the log, with its own items only; residuals and totals stay those of all.

        Args:
            partition_of: Gives the partition of each item.
            partitions: How many there are.
        """
        distinct = list(dict.fromkeys(item for region in self.regions.values() for item in region.item_ids))
        numbers = dict(zip(distinct, partition_of(distinct), strict=True))
        parts: list[dict[str, RegionView]] = [{} for _ in range(partitions)]
        for name, region in self.regions.items():
            of_items = np.fromiter(map(numbers.__getitem__, region.item_ids), np.intp, count=len(region.item_ids))
            order = np.argsort(of_items, kind="stable")
            bounds = np.searchsorted(of_items[order], np.arange(partitions + 1))
            for number, part in enumerate(parts):
                part[name] = region.of_places(order[bounds[number] : bounds[number + 1]])
        return [replace(self, regions=part) for part in parts]

    def _absent(self) -> RegionView:
        totals = np.zeros(HOURS_IN_VIEW, dtype=np.int64)
        totals[-1] = self.others  # in the hour that stays longest: it is a bound
        return RegionView(
            item_ids=(),
            hourly=np.zeros((0, HOURS_IN_VIEW), dtype=np.int64),
            residual=self.others,
            totals=totals,
        )


def narrowed(counts: Int64s) -> Counts:
    """Return non-negative numbers in the narrowest unsigned integers that hold them all: most fit into 16 bits."""
    most = int(counts.max(initial=0))
    return counts.astype(np.min_scalar_type(most))
