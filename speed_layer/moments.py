"""At which moment the partitions' lists fit together, and what is missing from them then.

The rule, as `docs/guarantees.md` has it: partitions that are at most `MOST_LAG` behind the newest one must speak of
one and the same span; while they do not (a boundary passes between them) the charts stay as they are, which by this
very bound is over after `MOST_LAG`. A partition that is further behind **lags**: it stays in with the span of its own
moment, is named, and `as_of` is its moment. Once that span has nothing in common with the others', it is left out.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.live_chart import Lack, LiveMoment, PartialPartition
from domain.live_windows import LiveWindow
from domain.policy import DEFAULT_POLICY
from domain.windows import EPOCH, HOUR
from speed_layer.store.lists import PartitionStatus

MOST_LAG = timedelta(seconds=5)
_MS = timedelta(milliseconds=1)

Statuses = Mapping[int, PartitionStatus]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How the lists of one live window are joined.

    Attributes:
        moment: What the charts say of all of them.
        members: Partitions whose lists are in.
        view: Version of the batch view that their day lists go with; None before any view, and but for `1d`.
    """

    moment: LiveMoment
    members: frozenset[int]
    view: str | None


def of_one_log(statuses: Statuses) -> dict[int, PartitionStatus]:
    """Return the statuses of the log that most partitions speak of; a replaced log's are as good as none."""
    logs = Counter(status.log_id for status in statuses.values())
    newest = {status.log_id: status.written_ms for status in sorted(statuses.values(), key=lambda one: one.written_ms)}
    chosen = max(logs, key=lambda log_id: (logs[log_id], newest[log_id]), default=None)
    return {number: status for number, status in statuses.items() if status.log_id == chosen}


def agreement(
    kind: LiveWindow, statuses: Statuses, *, partitions: int, most_lag: timedelta = MOST_LAG
) -> Agreement | None:
    """Say how to join, or None while the partitions do not fit together.

    Args:
        kind: The live window.
        statuses: By partition, of one log.
        partitions: How many there are.
        most_lag: How far behind the newest partition one may be that does not lag.
    """
    if not statuses:
        return None
    newest = max(status.as_of for status in statuses.values())
    close = {n: status for n, status in statuses.items() if newest - status.as_of <= most_lag}
    spans = {(kind.at(status.as_of), _view(kind, status)) for status in close.values()}
    if len(spans) > 1 or any(_has_no_view_yet(kind, status) for status in close.values()):
        return None
    ((window, view),) = spans
    frontier = _frontier(kind, next(iter(close.values())))
    moment = LiveMoment(kind=kind, as_of=newest, window=window, frontier=frontier)
    partial = [
        *_missing(statuses, partitions),
        *(_behind(moment, n, status, view) for n, status in statuses.items() if n not in close),
    ]
    out = {one.partition for one in partial if one.lack is not Lack.LAGGING}
    members = {n: status for n, status in statuses.items() if n not in out}
    partial += _incomplete(moment, members)
    as_of = min(status.as_of for status in members.values())
    whole = LiveMoment(
        kind=kind,
        as_of=as_of,
        window=window,
        frontier=frontier,
        partial=sorted(partial, key=lambda one: (one.partition, one.lack)),
    )
    return Agreement(moment=whole, members=frozenset(members), view=view)


def _view(kind: LiveWindow, status: PartitionStatus) -> str | None:
    return status.view if kind is LiveWindow.DAY else None


def _has_no_view_yet(kind: LiveWindow, status: PartitionStatus) -> bool:
    """Say of a partition whether it lacks hours that batch has, and was not handed the view since it was restored."""
    return kind is LiveWindow.DAY and status.frontier_hour is not None and status.view is None


def _frontier(kind: LiveWindow, status: PartitionStatus) -> datetime | None:
    """Return the frontier that the day lists are above; other windows have batch's hours from the log as well."""
    hour = status.frontier_hour
    return EPOCH + hour * HOUR if kind is LiveWindow.DAY and hour is not None else None


def _missing(statuses: Statuses, partitions: int) -> Iterator[PartialPartition]:
    for number in range(partitions):
        if number not in statuses:
            yield PartialPartition(partition=number, lack=Lack.MISSING)


def _behind(moment: LiveMoment, number: int, status: PartitionStatus, view: str | None) -> PartialPartition:
    """Say of a partition that lags whether its lists can stand beside the others'."""
    kind, window = moment.kind, moment.kind.at(status.as_of)
    # Batch's hours are added from the others' first one on: a span of its own would miss an hour or have one too many.
    has_other_hours = view is not None and window.start != moment.window.start
    if window.end <= moment.window.start or _view(kind, status) != view or has_other_hours:
        return PartialPartition(partition=number, lack=Lack.LEFT_OUT, as_of=status.as_of)
    own = None if window == moment.window else window
    return PartialPartition(partition=number, lack=Lack.LAGGING, as_of=status.as_of, window=own)


def _incomplete(moment: LiveMoment, members: Statuses) -> Iterator[PartialPartition]:
    """Name those that began to count after the window had begun.

    What was logged before may be dated later by as much as senders' clocks may be ahead.
    """
    for number, status in members.items():
        begins = max(moment.kind.at(status.as_of).start, moment.frontier or EPOCH)
        complete_from = EPOCH + status.complete_from_ms * _MS
        if status.complete_from_ms and begins < complete_from + DEFAULT_POLICY.future_tolerance:
            yield PartialPartition(partition=number, lack=Lack.INCOMPLETE, complete_from=complete_from)
