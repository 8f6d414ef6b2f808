"""When boards are to be rebuilt: once a day, and when too much of one is in its overlay."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from domain.boards.definitions import Boards
from domain.windows import DAY, EPOCH

MOST_CHANGED: Final = 0.1  # of the base
FEW: Final = 100_000  # changed players that are never worth a rebuild
MOST_WITHOUT_BASE: Final = 1_000_000


def needs_compaction(base: int, overlay: int) -> bool:
    """Say whether a board takes much more memory than after a rebuild.

    Args:
        base: Players of its base; 0 = it has none.
        overlay: Players that changed or came since.
    """
    return overlay > (max(FEW, int(base * MOST_CHANGED)) if base else MOST_WITHOUT_BASE)


def last_turn(read_to: Iterable[datetime], boards: Boards) -> datetime | None:
    """Return the last midnight of which the lake has every score, with the longest grace of all games; None = unknown.

    Days, weeks and months end at midnight UTC.

    Args:
        read_to: Of each partition of the log, up to when the lake has every score, UTC.
        boards: Definitions.
    """
    reached = min(read_to, default=None)
    grace = max((game.grace for game in boards.games.values()), default=timedelta())
    return None if reached is None else EPOCH + (reached - grace - EPOCH) // DAY * DAY
