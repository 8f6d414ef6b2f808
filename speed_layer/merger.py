"""The merger: joins what the partitions say into ready charts, batch's view at the frontier; pure, one cycle at a time.

It keeps every list in memory and makes only those charts anew of which a list changed, or all of a window when the
partitions that are in, the view, or the day's first hour did.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from domain.batch_join import hidden_top, joined_tops
from domain.batch_view import BatchView, PartitionOf
from domain.events import ALL_REGIONS, UNKNOWN_REGION
from domain.live_chart import CHART_ROWS, Lack, LiveChart, LiveMoment
from domain.live_windows import MINUTE, LiveWindow
from domain.merge import LocalTop, MergedTop, merged_top
from domain.windows import EPOCH
from speed_layer.changes import ChangedList
from speed_layer.moments import Agreement, agreement, of_one_log
from speed_layer.store.lists import PartitionStatus

MOST_ASKED = 1024  # rows of a list; beyond it a chart says by its bounds what it does not know
_NOTHING = LocalTop(rows=(), cut=None, residual=0, total=0)

Name = tuple[LiveWindow, str]  # window and region of a list or chart


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What was read of one partition.

    Attributes:
        status: Its status; None when it has none.
        changed: Lists that changed since the last reading; None = it is empty now.
        anew: These are all its lists: what was known before is void.
    """

    status: PartitionStatus | None
    changed: Mapping[Name, ChangedList | None]
    anew: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """What came of one cycle.

    Attributes:
        charts: Those that are different now; None = there is none any more.
        moments: Of every window that was ever joined.
        asks: Partition -> list -> rows wanted of it instead of the usual number; all that are in force.
    """

    charts: Mapping[Name, LiveChart | None]
    moments: Mapping[LiveWindow, LiveMoment]
    asks: Mapping[int, Mapping[Name, int]]


class Merger:
    """Joins the lists of all partitions.

    Args:
        partitions: How many the log has.
        partition_of: Item ids -> number of the partition of each.
        list_size: Rows that a partition's list usually has.
    """

    def __init__(self, *, partitions: int, partition_of: PartitionOf, list_size: int) -> None:
        self._partitions = partitions
        self._partition_of = partition_of
        self._list_size = list_size
        self._statuses: dict[int, PartitionStatus] = {}
        self._lists: dict[LiveWindow, dict[str, dict[int, LocalTop]]] = {kind: {} for kind in LiveWindow}
        self._dirty: dict[LiveWindow, set[str]] = {kind: set() for kind in LiveWindow}
        self._joined_as: dict[LiveWindow, object] = {}
        self._moments: dict[LiveWindow, LiveMoment] = {}
        self._ready: dict[LiveWindow, dict[str, LiveChart]] = {kind: {} for kind in LiveWindow}
        self._ranks_before: dict[Name, tuple[datetime, Mapping[str, int]]] = {}
        self._asks: dict[int, dict[Name, int]] = {number: {} for number in range(partitions)}

    def cycle(self, said: Mapping[int, Said], views: Mapping[str, BatchView]) -> Cycle:
        """Take what was read of the partitions and return what changed by it.

        Args:
            said: By partition; one that is absent said nothing new.
            views: The views that are loaded, by version.
        """
        for number, one in said.items():
            self._take(number, one)
        statuses = of_one_log(self._statuses)
        charts: dict[Name, LiveChart | None] = {}
        for kind in LiveWindow:
            agreed = self._agreed(kind, statuses)
            if agreed is not None and (agreed.view is None or agreed.view in views):
                charts |= self._join(kind, agreed, views[agreed.view] if agreed.view is not None else None)
        return Cycle(charts=charts, moments=dict(self._moments), asks=self._asks)

    def _agreed(self, kind: LiveWindow, statuses: Mapping[int, PartitionStatus]) -> Agreement | None:
        """Say how to join a window now; None while its charts are to stay as they are.

        Where there are none yet, nothing can stay: a boundary that passes between the partitions is no reason to wait.
        """
        agreed = agreement(kind, statuses, partitions=self._partitions)
        if agreed is not None or kind in self._moments:
            return agreed
        apart = agreement(kind, statuses, partitions=self._partitions, most_lag=timedelta(0))
        left_out = apart is not None and any(one.lack is Lack.LEFT_OUT for one in apart.moment.partial)
        return None if left_out else apart

    def _take(self, number: int, said: Said) -> None:
        if said.anew:
            self._forget(number)
        if said.status is None:
            self._statuses.pop(number, None)
        else:
            self._statuses[number] = said.status
        for (kind, region), changed in said.changed.items():
            lists = self._lists[kind].setdefault(region, {})
            self._dirty[kind].add(region)
            if changed is None:
                lists.pop(number, None)
            else:
                lists[number] = changed.top()
            if region == UNKNOWN_REGION and said.status is not None and said.status.folding:
                self._dirty[kind].update(self._lists[kind], self._ready[kind])  # their plays may be in it

    def _forget(self, number: int) -> None:
        for kind, lists in self._lists.items():
            for region, of_region in lists.items():
                if of_region.pop(number, None) is not None:
                    self._dirty[kind].add(region)

    def _join(self, kind: LiveWindow, agreed: Agreement, view: BatchView | None) -> dict[Name, LiveChart | None]:
        """Make the charts of a window that are due."""
        moment, lists, dirty = agreed.moment, self._lists[kind], self._dirty[kind]
        folding = frozenset(n for n in agreed.members if self._statuses[n].folding)
        # The day's start counts when batch's hours are added, which no list tells of.
        joined_as = (agreed.members, folding, agreed.view, moment.window.start if view is not None else None)
        if self._joined_as.get(kind) != joined_as:
            self._joined_as[kind] = joined_as
            dirty.update(lists, self._ready[kind], () if view is None else view.regions)
        charts: dict[Name, LiveChart | None] = {}
        for region in dirty:
            chart = self._chart(kind, region, agreed, view)
            if chart != self._ready[kind].get(region):
                charts[kind, region] = chart
                self._remember(kind, region, chart)
            if not lists.get(region, True):
                del lists[region]
        dirty.clear()
        hidden = [self._in_zz(kind, number).total for number in folding]
        others = 0 if view is None else view.others  # of regions that are absent in the view for want of room
        self._moments[kind] = replace(
            moment, unlisted_max=max(hidden, default=0) + others, unlisted_total=sum(hidden) + others
        )
        return charts

    def _remember(self, kind: LiveWindow, region: str, chart: LiveChart | None) -> None:
        if chart is None:
            self._ready[kind].pop(region, None)
            self._ranks_before.pop((kind, region), None)
        else:
            self._ready[kind][region] = chart

    def _chart(self, kind: LiveWindow, region: str, agreed: Agreement, view: BatchView | None) -> LiveChart | None:
        lists = self._lists[kind].get(region, {})
        tops: Mapping[int, LocalTop] = {n: lists.get(n) or self._unlisted(kind, region, n) for n in agreed.members}
        if view is not None:
            tops = joined_tops(tops, view.since(region, agreed.moment.window.start), self._partition_of)
        top = merged_top(tops, n=CHART_ROWS)
        self._ask(kind, region, tops, top)
        if not top.total and not top.rows and not top.missed_max:
            return None
        return LiveChart(top=replace(top, deeper=()), moved=self._moved(kind, region, top, agreed.moment.as_of))

    def _unlisted(self, kind: LiveWindow, region: str, number: int) -> LocalTop:
        """Return what a partition that has no list of a region may have of it."""
        if region in (ALL_REGIONS, UNKNOWN_REGION) or not self._statuses[number].folding:
            return _NOTHING
        return self._in_zz(kind, number)

    def _in_zz(self, kind: LiveWindow, number: int) -> LocalTop:
        """Return a region whose plays a partition may have counted in `ZZ`."""
        return hidden_top(self._lists[kind].get(UNKNOWN_REGION, {}).get(number, _NOTHING).total)

    def _moved(self, kind: LiveWindow, region: str, top: MergedTop, as_of: datetime) -> Mapping[str, int]:
        """Return how many places each row went up since the minute began, where it was a row then."""
        minute = EPOCH + (as_of - EPOCH) // MINUTE * MINUTE
        began, before = self._ranks_before.get((kind, region), (None, {}))
        if began != minute:
            ready = self._ready[kind].get(region)
            before = {} if ready is None else {row.item_id: row.rank for row in ready.top.rows}
            self._ranks_before[kind, region] = (minute, before)
        return {row.item_id: before[row.item_id] - row.rank for row in top.rows if row.item_id in before}

    def _ask(self, kind: LiveWindow, region: str, tops: Mapping[int, LocalTop], top: MergedTop) -> None:
        """Ask for longer lists where a cut hides what may belong into the chart; take back what is not needed."""
        last = top.rows[-1] if len(top.rows) == CHART_ROWS else None
        edge = (0, b"") if last is None else (-last.lower, last.item_id.encode())
        for number, asks in self._asks.items():
            own = self._lists[kind].get(region, {}).get(number)
            wanted = 0 if own is None or number not in tops else self._wanted(own, tops[number], edge)
            if wanted > self._list_size:
                asks[kind, region] = wanted
            else:
                asks.pop((kind, region), None)

    def _wanted(self, own: LocalTop, joined: LocalTop, edge: tuple[int, bytes]) -> int:
        """Return how many rows a partition's list needs for a chart.

        Args:
            own: As the partition sent it.
            joined: The same with batch's counts.
            edge: Key of the chart's last row; the lowest there is while the chart has room.
        """
        if joined.may_belong(edge):
            return min(2 * max(len(own.rows), self._list_size), MOST_ASKED)
        if len(own.rows) <= self._list_size:
            return 0
        listed = {row.item_id for row in own.rows}
        keys = sorted((-row.upper, row.item_id.encode()) for row in joined.rows if row.item_id in listed)
        return next((size for size in self._sizes() if size >= len(keys) or keys[size] >= edge), MOST_ASKED)

    def _sizes(self) -> Iterable[int]:
        size = self._list_size
        while size < MOST_ASKED:
            yield size
            size *= 2
