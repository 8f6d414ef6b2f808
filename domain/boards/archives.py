"""Boards of periods that ended: their best players, kept for ever, and what has to be kept anew."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, NamedTuple

from domain.boards.certificates import Certificate, Certified
from domain.boards.definitions import Boards, Game, board_name
from domain.periods import Period, period_named

_NOBODY: Final = "0" * 16  # digest of a board without players


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """What is kept of one board.

    Attributes:
        game: Its game.
        board: Key of its period.
        revision: Grows by one or more each time that the board has changed; the first is 1.
        archived_at: When this was written, UTC.
        counted_to: Log time up to which every score is counted, UTC, exclusive.
        rebuild: Number of the rebuild that counted them.
        players: That the board has, ranked.
        places: How many of them are kept, the best.
        digest: Of the whole board, as its certificate has it.
    """

    game: str
    board: str
    revision: int
    archived_at: datetime
    counted_to: datetime
    rebuild: int
    players: int
    places: int
    digest: str

    @property
    def name(self) -> str:
        """The board's name."""
        return board_name(self.game, self.board)


class ArchivedPlace(NamedTuple):
    """One player of an archive.

    Attributes:
        player_id: Who.
        score: Best score, or the sum.
        reached_us: Since when it stands, microseconds since 1970 UTC.
    """

    player_id: str
    score: int
    reached_us: int


class Due(NamedTuple):
    """A board that has to be archived.

    Attributes:
        game: Its game.
        certificate: What is certified of it.
        counted_to: As of `Archive`.
        known: What is archived of it so far; None = nothing.
    """

    game: Game
    certificate: Certificate
    counted_to: datetime
    known: Archive | None

    @property
    def is_restated(self) -> bool:
        """Whether players or places are others than those that are archived."""
        return self.known is None or self.known.digest != self.certificate.digest


def is_final(game: Game, period: Period, counted_to: datetime) -> bool:
    """Say whether every score that could come to a board live is counted."""
    until = game.live_until(period)
    return until is not None and counted_to >= until


def is_settled(archive: Archive, boards: Boards) -> bool:
    """Say whether an archive has all that the live board had, so that this one is needed no more."""
    game = boards.games.get(archive.game)
    period = None if game is None else period_named(archive.board, game.seasons)
    return game is not None and period is not None and is_final(game, period, archive.counted_to)


def due(
    certified: Certified, boards: Boards, counted_to: Mapping[int, datetime], known: Mapping[str, Archive]
) -> Iterator[Due]:
    """Yield the boards whose period ended, with its grace, before what their certificate counts; those that changed.

    A board is archived once when its grace is over, again with another revision when it changed, and once more when no
    score can come to it live any more, so that it is known to have all of them.

    Args:
        certified: What is certified now.
        boards: Definitions; boards of other games and seasons stay as they are.
        counted_to: Version of bronze/scores -> log time up to which it has every score, UTC, exclusive.
        known: Newest archive of each board.
    """
    nobody = replace(certified.whole, players=0, banned=0, digest=_NOBODY)
    gone = [
        replace(nobody, game=old.game, board=old.board) for name, old in known.items() if name not in certified.boards
    ]
    for certificate in (*certified.boards.values(), *gone):
        game = boards.games.get(certificate.game)
        period = None if game is None else period_named(certificate.board, game.seasons)
        if game is None or period is None or period.end is None:
            continue
        reached, old = counted_to[certificate.scores_version], known.get(certificate.name)
        if reached < period.end + game.grace or (old is None and not certificate.players):
            continue
        found = Due(game, certificate, reached, old)
        confirms = old is not None and not is_final(game, period, old.counted_to) and is_final(game, period, reached)
        if found.is_restated or confirms:
            yield found
