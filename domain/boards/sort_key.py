"""The sort key of a board: 16 bytes whose order as bytes is the order of the board, followed by the player's id.

    8 bytes big-endian   2^63 - 1 - score for boards where high is good, score + 2^63 where low is good
    8 bytes big-endian   microseconds since 1970 UTC + 2^63
    the id               UTF-8; so players who are equal otherwise are in the order of their ids

No floating point, so all 64 bits of a score count; and reach times of one microsecond apart are told apart. Stored in
the views server and in the lake: `tests/golden` holds bytes.
"""

from enum import StrEnum
from struct import Struct
from typing import Final, NamedTuple

KEY_BYTES: Final = 16
SCORE_BYTES: Final = 8
_TOP: Final = 2**63
_PACKED: Final = Struct(">QQ")


class Mode(StrEnum):
    """How a player's matches become one entry of a board."""

    BEST_HIGH = "best_high"
    BEST_LOW = "best_low"
    SUM = "sum"


class Place(NamedTuple):
    """What a key says: a score, and since when it stands, microseconds since 1970 UTC."""

    score: int
    reached_us: int


def sort_key(mode: Mode, score: int, reached_us: int) -> bytes:
    """Return the 16 bytes of a score and its reach time.

    Args:
        mode: Of the board.
        score: From -2^63 to 2^63 - 1.
        reached_us: Microseconds since 1970 UTC, from -2^63 to 2^63 - 1.

    Raises:
        struct.error: one of them is beyond that.
    """
    first = score + _TOP if mode is Mode.BEST_LOW else _TOP - 1 - score
    return _PACKED.pack(first, reached_us + _TOP)


def place_of(mode: Mode, key: bytes) -> Place:
    """Return what a key, or a member that begins with one, says."""
    first, reached = _PACKED.unpack_from(key)
    return Place(first - _TOP if mode is Mode.BEST_LOW else _TOP - 1 - first, reached - _TOP)


def member(key: bytes, player_id: str) -> bytes:
    """Return the bytes by which a player stands on a board."""
    return key + player_id.encode()


def player_of(board_member: bytes) -> str:
    """Return the player of a member."""
    return board_member[KEY_BYTES:].decode()
