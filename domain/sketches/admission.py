"""Who is listed: the contest between items that are outside of a head and its entries, for many regions at once.

The i-th best item outside meets the i-th smallest entry. What the ones can have falls and what the others can have
grows, so once an item is refused all after it are, and one comparison an item decides.

Among equals the smaller hash of the id is admitted first and the larger one leaves first: an order that depends on
nothing but the events. (By id it would be the chart's order, but sorting texts for each batch costs more than
counting; equals at the edge of a head stand far below the rows that are shown.)
"""

from typing import NamedTuple

import numpy as np

from domain.sketches.keys import Int64s, Mask, Numbers, UInt64s, ranks_within


class Contenders(NamedTuple):
    """Items with the most that each can have, in no order."""

    regions: Numbers
    most: Int64s
    hashes: UInt64s


def admitted(outside: Contenders, entries: Contenders, free: Int64s) -> tuple[Mask, Numbers]:
    """Return which items enter, and which entries leave for them.

    Args:
        outside: Items that are not listed.
        entries: Listed ones that may be evicted.
        free: For each region number, the entries that its head has room for.
    """
    order = best_first(outside)
    regions = outside.regions[order]
    place = ranks_within(regions) - free[regions]
    by_size = np.lexsort((~entries.hashes, entries.most, entries.regions))
    sorted_regions = entries.regions[by_size]
    opponent = np.searchsorted(sorted_regions, regions) + place
    meets = (place >= 0) & (opponent < np.searchsorted(sorted_regions, regions, side="right"))
    wins = np.zeros(len(order), dtype=np.bool_)
    wins[meets] = outside.most[order[meets]] > entries.most[by_size[opponent[meets]]]
    enters = np.zeros(len(order), dtype=np.bool_)
    enters[order] = wins | (place < 0)
    return enters, by_size[opponent[wins]]


def best_first(contenders: Contenders) -> Numbers:
    """Return the order by region, then the most first, then the smaller hash."""
    return np.lexsort((contenders.hashes, -contenders.most, contenders.regions))
