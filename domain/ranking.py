"""The one order of a chart, and what a chart row says."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scored:
    """An item and what it counted in some window and region."""

    item_id: str
    event_count: int


def rank_key(scored: Scored) -> tuple[int, bytes]:
    """Highest count first; equal counts by `item_id`, ascending by UTF-8 bytes (as Spark and Redis do)."""
    return (-scored.event_count, scored.item_id.encode())


def ranked(items: Iterable[Scored]) -> list[Scored]:
    """Return the items that counted at all, in chart order. An item that counted 0 is in no chart."""
    return sorted((item for item in items if item.event_count > 0), key=rank_key)


def tie_at_cut(order: Sequence[Scored], n: int) -> bool:
    """Say whether the first item left out of the top `n` has the count of the last one in it."""
    return 0 < n < len(order) and order[n].event_count == order[n - 1].event_count
