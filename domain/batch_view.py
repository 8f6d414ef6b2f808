"""What batch hands to the live charts: the best items of each region in the day before the frontier, hour by hour."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from domain.sketches.keys import Int64s
from domain.windows import DAY, HOUR

HOURS_IN_VIEW = DAY // HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionView:
    """Exact counts of one region over the 24 hours before the frontier.

    Attributes:
        item_ids: The items with the most plays in these hours, by (plays descending, id bytes).
        hourly: Plays by item and hour, shape (items, 24), oldest hour first.
        residual: No other item has more plays in all 24 hours together; 0 when every item is listed.
        totals: Plays of all items by hour, shape (24,).
    """

    item_ids: Sequence[str]
    hourly: Int64s
    residual: int
    totals: Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchView:
    """Exact counts of `[frontier - 24 h, frontier)`, as one release certified them.

    Attributes:
        version: Name of this view; a view never changes.
        release: Number of the release.
        frontier: Exclusive end, a whole hour UTC.
        offsets: `<log id>/<partition number>` -> `EntryId.version` up to which, included, the release has read it.
        regions: Region name -> its counts; `*` is all, and a region without plays is absent.
    """

    version: str
    release: int
    frontier: datetime
    offsets: Mapping[str, int]
    regions: Mapping[str, RegionView]

    def offset(self, log_id: str, partition: int) -> int:
        """Return up to where batch has read a partition of a log; -1 when it has not read that log."""
        return self.offsets.get(f"{log_id}/{partition}", -1)

    def since(self, region: str, start: datetime) -> RegionView:
        """Return a region with the hours before `start` (inclusive bound, a whole hour UTC) emptied.

        The residual stays: it is a bound for fewer hours as well. A region without plays is an empty one.
        """
        found = self.regions.get(region, _NOBODY)
        gone = min(max((start - (self.frontier - DAY)) // HOUR, 0), HOURS_IN_VIEW)
        if not gone:
            return found
        hourly, totals = found.hourly.copy(), found.totals.copy()
        hourly[:, :gone] = 0
        totals[:gone] = 0
        residual = found.residual if gone < HOURS_IN_VIEW else 0
        return RegionView(item_ids=found.item_ids, hourly=hourly, residual=residual, totals=totals)


_NOBODY = RegionView(
    item_ids=(),
    hourly=np.zeros((0, HOURS_IN_VIEW), dtype=np.int64),
    residual=0,
    totals=np.zeros(HOURS_IN_VIEW, dtype=np.int64),
)
