"""What happens to boards: scores, and what people decide about players and matches. One entry of the log has many."""

from enum import IntEnum
from typing import Final, NamedTuple

NOT_SAID: Final = -(2**63)  # of a time; the log's own stands for it


class EventKind(IntEnum):
    """What an event is; the numbers are stored."""

    SCORE = 0
    BAN = 1
    RESTORE = 2  # a ban ends
    APPROVE = 3  # a score that was held is ranked
    REMOVE = 4  # a match of a player does not count: batch alone applies it


class BoardEvent(NamedTuple):
    """One event, in its stored spelling.

    Attributes:
        kind: What it is.
        game: Of a score, an approval or a removal; empty for bans, which hold in all games.
        player_id: Whose it is; NFC.
        match_id: Of a score, an approval or a removal; NFC.
        score: Score or delta.
        ended_us: When the match ended, microseconds since 1970 UTC; `NOT_SAID` = when the log took it.
        fingerprint: Hash of what the sender said, for scores: another one for the same match is a conflict.
        reason: Of a ban or a removal.
        until_us: When a ban ends by itself, microseconds since 1970 UTC; `NOT_SAID` = it does not.
    """

    kind: EventKind
    game: str
    player_id: str
    match_id: str
    score: int
    ended_us: int
    fingerprint: int
    reason: str
    until_us: int


class Position(NamedTuple):
    """Where an event stands in its partition: positions of one partition are in the order of the log.

    Attributes:
        version: `EntryId.version` of its entry.
        number: Its place in the entry, from 0.
    """

    version: int
    number: int


class PlacedEvent(NamedTuple):
    """An event as the log has it.

    Attributes:
        position: Where.
        logged_us: When the log took it, microseconds since 1970 UTC.
        event: What.
    """

    position: Position
    logged_us: int
    event: BoardEvent

    @property
    def ended_us(self) -> int:
        """When the match ended, in microseconds since 1970 UTC."""
        said = self.event.ended_us
        return self.logged_us if said == NOT_SAID else said
