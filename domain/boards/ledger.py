"""Each match of a player counts once: what is remembered of the one that was first in the log."""

from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple, Self

from domain.boards.events import Position

_PACKED: Final = Struct(">qiqB")


class MatchState(IntEnum):
    """What became of the first score of a match; the numbers are stored."""

    COUNTED = 0
    HELD = 1
    LATE = 2  # its match ended before the live window: batch counts it


class LedgerRow(NamedTuple):
    """The score of a match that counts.

    Attributes:
        position: Of the first one in the log.
        fingerprint: Of what its sender said.
        state: What became of it.
    """

    position: Position
    fingerprint: int
    state: MatchState

    def encode(self) -> bytes:
        """Return its 21 bytes."""
        return _PACKED.pack(*self.position, self.fingerprint, self.state)

    @classmethod
    def decode(cls, body: bytes) -> Self:
        """Read what `encode` wrote."""
        version, number, fingerprint, state = _PACKED.unpack(body)
        return cls(Position(version, number), fingerprint, MatchState(state))


class Match(NamedTuple):
    """Names one result of one player."""

    game: str
    match_id: str
    player_id: str

    @property
    def field(self) -> str:
        """Its name in a hash: ids have no control characters, so nothing else has this name."""
        return "\0".join(self)
