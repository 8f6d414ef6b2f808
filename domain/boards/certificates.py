"""What a rebuild certifies: which players a board has, in which order, of which version of the lake."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Self

from domain.boards.definitions import board_name
from domain.errors import BadRequestError

WHOLE: Final = "*"  # as game and board of the certificate that stands for all boards of a rebuild
LEAST_KEPT: Final = 0.95  # a board that lost more players than that is refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What one rebuild says of one board, or of all together.

    Attributes:
        rebuild: Number of the rebuild, from 1.
        game: Its game; `WHOLE` for all together.
        board: Key of its period; `WHOLE` for all together.
        created_at: When it was made, UTC.
        scores_version: Delta version of bronze/scores that it counts.
        entries_version: Delta version of gold/board_entries that has its players.
        positions: `<log id>/<partition>` -> `EntryId.version` of the last entry that it counts.
        players: Ranked.
        banned: Whose entries live on out of sight.
        digest: Of all members with their ranks, 16 hex digits: equal boards, equal digests.
    """

    rebuild: int
    game: str
    board: str
    created_at: datetime
    scores_version: int
    entries_version: int
    positions: Mapping[str, int]
    players: int
    banned: int
    digest: str

    @property
    def name(self) -> str:
        """The board's name."""
        return board_name(self.game, self.board)


@dataclass(frozen=True, slots=True)
class Certified:
    """What is certified now: by the newest rebuild of all boards, and by those of single boards after it."""

    whole: Certificate
    boards: Mapping[str, Certificate]

    @classmethod
    def newest(cls, certificates: Iterable[Certificate]) -> Self | None:
        """Return what is certified now; None before all boards were rebuilt once.

        A board that the newest rebuild of all says nothing of had no players.
        """
        by_age = sorted(certificates, key=lambda one: one.rebuild)
        whole = next((one for one in reversed(by_age) if one.game == WHOLE), None)
        if whole is None:
            return None
        boards = {one.name: one for one in by_age if one.game != WHOLE and one.rebuild >= whole.rebuild}
        return cls(whole, boards)

    def has(self, board: str, source: str, version: int) -> bool:
        """Say whether what an entry of the log brought is in the certified players of a board.

        Args:
            board: Its name.
            source: `<log id>/<partition>`.
            version: `EntryId.version` of the entry.
        """
        return version <= self.boards.get(board, self.whole).positions.get(source, -1)

    def positions(self) -> Mapping[str, int]:
        """Return up to where all boards have every entry, by source."""
        every = [self.whole, *self.boards.values()]
        return {source: min(one.positions.get(source, -1) for one in every) for source in self.whole.positions}


class BoardShrankError(BadRequestError):
    """A rebuild has far fewer players than the one before: the source has lost some, or much was removed."""

    def __init__(self, board: str, before: int, now: int) -> None:
        super().__init__(board, before, now)
        self.board = board
        self.before = before
        self.now = now

    def __str__(self) -> str:
        return (
            f"{self.board} would have {self.now:,} players instead of {self.before:,}: nothing was changed; look at "
            "bronze/scores (docs/runbook.md, a rebuild is refused), or run again with --force when they did go"
        )


def require_kept(before: Mapping[str, int], now: Mapping[str, int]) -> None:
    """Refuse boards that lost more than a twentieth of their players, banned ones included.

    Args:
        before: Players by board, of the certificates in force.
        now: Of the rebuild.

    Raises:
        BoardShrankError: one did.
    """
    for board, players in before.items():
        if now.get(board, 0) < LEAST_KEPT * players:
            raise BoardShrankError(board, players, now.get(board, 0))
