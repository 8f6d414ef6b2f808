"""Live charts as they are served: rows with bounds, the moment they are of, and what is missing from them.

What the charts of one live window have in common in a cycle of the merger is said once (`LiveMoment`); a chart itself
is made anew only when its rows change. So a chart stays as it is while its moment goes on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from domain.answers import PROVISIONAL, iso
from domain.estimates import RankedEstimate
from domain.live_windows import LiveWindow
from domain.merge import MergedTop
from domain.windows import Window

CHART_ROWS = 100  # the most that a live chart has


class Lack(StrEnum):
    """What an answer lacks of a partition."""

    LAGGING = "lagging"  # it is in, but as of an earlier moment, and of the window that belongs to that moment
    LEFT_OUT = "left_out"  # it is behind by so much that nothing of it is in
    MISSING = "missing"  # it never said anything, or speaks of a log that was replaced
    INCOMPLETE = "incomplete"  # it began to count after the window had begun


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialPartition:
    """A partition of which not all is in the charts.

    Attributes:
        partition: Its number.
        lack: What is missing.
        as_of: Log time up to which it was read, UTC; None for a missing one.
        window: Of which span its rows are, where that is not the chart's window.
        complete_from: Its plays before this log time may be missing, UTC.
    """

    partition: int
    lack: Lack
    as_of: datetime | None = None
    window: Window | None = None
    complete_from: datetime | None = None

    def body(self) -> dict[str, Any]:
        """Return it as JSON says it; what does not apply is absent."""
        span = {} if self.window is None else {"start": iso(self.window.start), "end": iso(self.window.end)}
        moments = {"as_of": self.as_of, "complete_from": self.complete_from}
        return {
            "partition": self.partition,
            "reason": self.lack.value,
            **{name: iso(moment) for name, moment in moments.items() if moment is not None},
            **{f"window_{name}": text for name, text in span.items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveMoment:
    """What all charts of one live window have in common.

    Attributes:
        kind: The live window.
        as_of: Log time up to which every partition that is in was read, UTC.
        window: The span of those that do not lag.
        frontier: Hours below it are batch's exact counts, in `1d` alone; None before any view.
        partial: What is missing; empty when all is there.
        unlisted_max: The most that an item can have in a region of which there is no chart.
        unlisted_total: The most events that such a region can have.
    """

    kind: LiveWindow
    as_of: datetime
    window: Window
    frontier: datetime | None
    partial: Sequence[PartialPartition] = ()
    unlisted_max: int = 0
    unlisted_total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveChart:
    """The best items of a live window and region, up to `CHART_ROWS`, ready to be cut.

    Attributes:
        top: Rows and what is known of the others.
        moved: Item -> places it went up since the minute of log time began in which the chart was made; for items that
            were in the chart then.
    """

    top: MergedTop
    moved: Mapping[str, int] = field(default_factory=dict)

    def body(self, moment: LiveMoment, *, region: str, n: int) -> dict[str, Any]:
        """Return the JSON body of the best `n` rows (`docs/http-api.md`).

        Args:
            moment: Of the chart's window.
            region: Of the chart.
            n: From 1 to `CHART_ROWS`.
        """
        top = self.top.cut(n)
        partial = {"partial": [one.body() for one in moment.partial]} if moment.partial else {}
        return {
            "window": moment.kind.value,
            "region": region,
            "window_start": iso(moment.window.start),
            "window_end": iso(moment.window.end),
            "as_of": iso(moment.as_of),
            "status": PROVISIONAL,
            "exact": top.exact and not partial,
            **partial,
            "frontier": None if moment.frontier is None else iso(moment.frontier),
            "total": top.total,
            "missed_max": top.missed_max,
            "tie_at_cut": top.tie_at_cut,
            "entries": [self._entry(row) for row in top.rows],
        }

    def _entry(self, row: RankedEstimate) -> dict[str, Any]:
        moved = {"moved": self.moved[row.item_id]} if row.item_id in self.moved else {}
        return {
            "rank": row.rank,
            "item_id": row.item_id,
            "count": row.lower,
            "lower": row.lower,
            "upper": row.upper,
            "rank_min": row.rank_min,
            "rank_max": row.rank_max,
            **moved,
        }


def unlisted(moment: LiveMoment) -> LiveChart:
    """Return the chart of a region of which nothing is known: empty, and exact when it can have no plays."""
    hidden = moment.unlisted_max
    top = MergedTop(
        rows=(),
        missed_max=hidden,
        total=moment.unlisted_total,
        tie_at_cut=False,
        deeper=(),
        exact=not hidden,
        hidden=hidden,
    )
    return LiveChart(top=top)
