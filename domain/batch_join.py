"""Joins what the partitions counted since the frontier with what batch counted before it: only here both are added.

Of a region, since the start of the live day, with `batch` = plays of an item in the view, `rho` = the most that an item
can have which the view does not list, R = the most that an item can have which a partition does not know:

    listed by its partition and in the view      batch + lower  <=  truth  <=  batch + upper
    listed by its partition, not in the view             lower  <=  truth  <=  rho + upper
    in the view, not listed by its partition     batch          <=  truth  <=  cut, which has batch's part in it
    neither                                      0              <=  truth  <=  max(cut, rho + R)

It holds when the lists were chosen by this very view: a partition says of which view its lists are, and lists of
another one, of an equal frontier too, are not to be joined with it.
"""

from collections.abc import Container, Mapping
from dataclasses import replace
from typing import Final

from domain.batch_view import PartitionOf, RegionView
from domain.estimates import Estimate
from domain.merge import LocalTop

BATCH: Final = -1  # stands for batch among the partitions; it has no cut, so nobody asks it for more
_MOST_ALONE = 256  # more than any chart has rows


def joined_tops(
    tops: Mapping[int, LocalTop], view: RegionView, partition_of: PartitionOf, *, most_alone: int = _MOST_ALONE
) -> Mapping[int, LocalTop]:
    """Return lists of one region with what batch has, ready for `merged_top`.

    The result has one more list, `BATCH`: what batch alone knows by name, and its total, which counts once.

    Args:
        tops: Partition -> its list of the live day, with bounds of live counting alone. A partition without plays of
            the region since the frontier has none.
        view: What batch has of the region since the start of the live day.
        partition_of: Gives the partition of each item.
        most_alone: Items that batch alone knows by name, at most; not fewer than the chart has rows.
    """
    listed = {row.item_id for top in tops.values() for row in top.rows}
    known = {item: int(view.plays[place]) for place, item in enumerate(view.item_ids) if item in listed}
    joined = {number: _joined(top, known, view.residual) for number, top in tops.items()}
    alone, left = _alone(view, known, most=most_alone)
    ids = [item for item, _ in alone]
    rows = [
        Estimate(item, count, count + _beside(tops.get(number), count))
        for (item, count), number in zip(alone, partition_of(ids) if ids else (), strict=True)
    ]
    of_left = left + max((_beside(top, left) for top in tops.values()), default=0) if left else 0
    joined[BATCH] = LocalTop(rows=rows, cut=None, residual=max(view.residual, of_left), total=view.total)
    return joined


def hidden_top(plays: int) -> LocalTop:
    """Return the list of a partition that counts a region in `ZZ`, for want of room: any item may have all of it.

    Args:
        plays: The total of its list of `ZZ`.
    """
    return LocalTop(rows=(), cut=None, residual=plays, total=plays)


def _joined(top: LocalTop, known: Mapping[str, int], rho: int) -> LocalTop:
    rows = [
        Estimate(row.item_id, row.lower + known.get(row.item_id, 0), row.upper + known.get(row.item_id, rho))
        for row in top.rows
    ]
    return replace(top, rows=rows, residual=top.residual + rho)


def _alone(view: RegionView, listed: Container[str], *, most: int) -> tuple[list[tuple[str, int]], int]:
    """Return the best items with their plays that no partition lists, and what the next one has; 0 for none."""
    found: list[tuple[str, int]] = []
    for place in map(int, view.order):
        item, count = view.item_ids[place], int(view.plays[place])
        if not count:
            break
        if item in listed:
            continue
        if len(found) == most:
            return found, count
        found.append((item, count))
    return found, 0


def _beside(top: LocalTop | None, plays: int) -> int:
    """Return the most that live counting can have of an item that is in the view and in no list.

    Args:
        top: The list of its partition; None when the partition counted nothing of the region.
        plays: What batch has of the item.
    """
    if top is None:
        return 0
    if top.cut is None:
        return top.residual
    return max(top.cut.upper - plays, 0)
