"""Rows whose counts are known between bounds: their order, and between which ranks each truly stands."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Estimate(NamedTuple):  # a hundred thousand are made a second
    """An item of a window and region with `lower <= truth <= upper`."""

    item_id: str
    lower: int
    upper: int


@dataclass(frozen=True, slots=True)
class RankedEstimate:
    """A row of a live chart.

    Attributes:
        rank: Place by `lower`, from 1. A swap of two rows therefore means that a lower bound changed.
        item_id: The item.
        lower: Events it has at least; the `count` of the row.
        upper: Events it has at most.
        rank_min: No place above this one is possible for the truth.
        rank_max: No place below this one is possible for the truth.
    """

    rank: int
    item_id: str
    lower: int
    upper: int
    rank_min: int
    rank_max: int

    @property
    def exact(self) -> bool:
        """Whether the count is the truth."""
        return self.lower == self.upper


def estimate_key(estimate: Estimate) -> tuple[int, bytes]:
    """Highest lower bound first; equal ones by `item_id`, ascending by UTF-8 bytes, as in exact charts."""
    return (-estimate.lower, estimate.item_id.encode())


def ranked_estimates(listed: Sequence[Estimate], *, n: int, residual: int, total: int) -> list[RankedEstimate]:
    """Return the top `n` rows with their rank ranges.

    Args:
        listed: Every item known by name, each once; more than `n` of them make the ranges tighter.
        n: Rows wanted.
        residual: No item that is not listed has more events.
        total: All events of the window, at most. What the listed ones do not have at least, others may have; this
            limits how many unlisted items can stand before a row.

    Source: the ranges follow from the order (count descending, id) and the bounds alone; docs of the live charts.
    """
    near = _near(listed, n)
    ordered = sorted((row for row in listed if row.upper >= near), key=estimate_key)
    surely = [estimate_key(row) for row in ordered]
    possibly = sorted((-row.upper, row.item_id.encode()) for row in ordered)
    unnamed = total - sum(row.lower for row in listed)
    rows = []
    for rank, row in enumerate(ordered[:n], start=1):
        item = row.item_id.encode()
        before = bisect_left(surely, (-row.upper, item))
        # The row itself is among those possibly before its own lower bound, unless its bounds meet.
        possible = bisect_left(possibly, (-row.lower, item)) - (row.upper > row.lower)
        hidden = unnamed // max(row.lower, 1) if residual >= row.lower else 0
        rows.append(RankedEstimate(rank, row.item_id, row.lower, row.upper, 1 + before, 1 + possible + hidden))
    return rows


def _near(listed: Sequence[Estimate], n: int) -> int:
    """Return the upper bound from which on a row matters: what can have less is no row, and stands before none."""
    if len(listed) < n:
        return 1
    return max(sorted((row.lower for row in listed), reverse=True)[n - 1], 1)
