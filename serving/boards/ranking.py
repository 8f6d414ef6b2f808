"""A board that is read: pages, places and neighbours, of one moment each; live, or of a period that ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Rows of a board.

    Attributes:
        before: How many stand before the first of them.
        members: In the order of the board.
        size: Players of the board.
        listed: How many of them can be paged to, the best.
        as_of_ms: Log time that is applied, milliseconds since 1970 UTC.
    """

    before: int
    members: Sequence[bytes]
    size: int
    listed: int
    as_of_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A player's place.

    Attributes:
        member: Of the player.
        before: How many stand before.
        above: Those just before, the nearest last.
        below: Those just after, the nearest first.
        size: Players of the board.
        as_of_ms: As in `Page`.
    """

    member: bytes
    before: int
    above: Sequence[bytes]
    below: Sequence[bytes]
    size: int
    as_of_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where some players stand.

    Attributes:
        members: Of those who are ranked, with how many stand before each.
        size: Players of the board.
        as_of_ms: As in `Page`.
    """

    members: Sequence[tuple[bytes, int]]
    size: int
    as_of_ms: int


class Ranking(Protocol):
    """One board."""

    async def page(self, *, after: bytes, size: int) -> Page:
        """Return the rows behind a member, which need not be there any more; empty = from the top."""

    async def places(self, player_ids: Sequence[str]) -> Places:
        """Return where players stand."""

    async def standing(self, player_id: str, *, around: int = 0) -> Standing | None:
        """Return a player's place, with as many neighbours as asked for, on both sides together twice as many.

        At an edge of the board the other side has more, so that a list is as long there as anywhere.
        """

    async def better_than(self, members: Sequence[bytes]) -> Sequence[int]:
        """Return how many have a better score than each of some members."""


def shares(above: int, below: int, around: int) -> tuple[int, int]:
    """Return how many neighbours to show on each side.

    Args:
        above: How many there are above.
        below: How many there are below.
        around: How many are asked for on each side.
    """
    wide = 2 * around
    ups, downs = min(above, wide), min(below, wide)
    return min(ups, max(around, wide - downs)), min(downs, max(around, wide - ups))
