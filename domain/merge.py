"""Joins what the partitions of the log each call their best into one chart.

All events of an item are in one partition, so an item comes from one list with all that it has, and nothing has to be
added up: the join is exact where the lists are, and as bounded as they are elsewhere.

Relative: the threshold idea of Fagin, Lotem and Naor, "Optimal aggregation algorithms for middleware", PODS 2001: a
list may stop as soon as nothing below its cut can reach the answer.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest

from domain.estimates import Estimate, RankedEstimate, ranked_estimates


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTop:
    """What one partition says of a window and region.

    Attributes:
        rows: Its best items by (upper descending, id).
        cut: The next of its items, the first that was left out of `rows`; None when none was.
        residual: The most that an item can have which the partition does not know by name.
        total: Events it had.
    """

    rows: Sequence[Estimate]
    cut: Estimate | None
    residual: int
    total: int

    @property
    def missed_max(self) -> int:
        """The most that any item can have which is not in `rows`."""
        return max(self.residual, 0 if self.cut is None else self.cut.upper)

    def may_belong(self, last: tuple[int, bytes]) -> bool:
        """Say whether an item that was cut off could stand before the row with this key."""
        return self.cut is not None and (-self.cut.upper, self.cut.item_id.encode()) < last


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedTop:
    """A live chart of a window and region.

    Attributes:
        rows: At most `n`, best first.
        missed_max: No item outside `rows` has more events.
        total: All events.
        tie_at_cut: The first item left out may have as many events as the last row.
        deeper: Partitions whose cut hides items that could belong into `rows`: ask them for longer lists.
        exact: Every row is the truth and stands at its true rank, and nothing outside could stand before one.
        hidden: No item that is in no list has more events.
    """

    rows: Sequence[RankedEstimate]
    missed_max: int
    total: int
    tie_at_cut: bool
    deeper: Sequence[int]
    exact: bool
    hidden: int

    def cut(self, n: int) -> "MergedTop":
        """Return the best `n` of these rows, as `merged_top` makes them of the same lists; nothing is asked for it.

        Args:
            n: At most what this was made with.
        """
        left_out = max((row.upper for row in self.rows[n:]), default=0)
        missed_max = max(left_out, self.missed_max)
        return _joined(self.rows[:n], n=n, missed_max=missed_max, hidden=self.hidden, total=self.total)


def local_top(estimates: Iterable[Estimate], *, size: int, residual: int, total: int) -> LocalTop:
    """Return the best `size` of a partition's items by what they can have at most.

    Args:
        estimates: All items that the partition knows by name, each once.
        size: Rows wanted.
        residual: The most that any other item can have.
        total: Events of the partition in this window and region.
    """
    best = nsmallest(size + 1, estimates, key=lambda row: (-row.upper, row.item_id.encode()))
    return LocalTop(rows=best[:size], cut=best[size] if len(best) > size else None, residual=residual, total=total)


def merged_top(tops: Mapping[int, LocalTop], *, n: int) -> MergedTop:
    """Join the partitions' lists into the top `n`.

    Args:
        tops: Partition -> its list.
        n: Rows wanted.
    """
    listed = [row for top in tops.values() for row in top.rows]
    total = sum(top.total for top in tops.values())
    hidden = max((top.missed_max for top in tops.values()), default=0)
    rows = ranked_estimates(listed, n=n, residual=hidden, total=total)
    inside = {row.item_id for row in rows}
    left_out = max((row.upper for row in listed if row.item_id not in inside), default=0)
    last_key = (-rows[-1].lower, rows[-1].item_id.encode()) if len(rows) == n else (0, b"")
    deeper = [number for number, top in tops.items() if top.may_belong(last_key)]
    return _joined(rows, n=n, missed_max=max(left_out, hidden), hidden=hidden, total=total, deeper=deeper)


def _joined(
    rows: Sequence[RankedEstimate], *, n: int, missed_max: int, hidden: int, total: int, deeper: Sequence[int] = ()
) -> MergedTop:
    last = rows[-1].lower if len(rows) == n else 0
    return MergedTop(
        rows=rows,
        missed_max=missed_max,
        total=total,
        tie_at_cut=len(rows) == n and missed_max == last > 0,
        deeper=deeper,
        exact=_is_exact(rows, hidden=hidden, last=last),
        hidden=hidden,
    )


def _is_exact(rows: Sequence[RankedEstimate], *, hidden: int, last: int) -> bool:
    true_rows = all(row.exact and row.rank_min == row.rank == row.rank_max for row in rows)
    return true_rows and (hidden < last or hidden == 0)
