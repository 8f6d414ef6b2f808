"""What a player's entry on a board becomes with one more score: the rules by which live counting and batch agree.

The order in which scores arrive means nothing: any order of the same scores ends in the same entry.
"""

from typing import Final

from domain.boards.sort_key import KEY_BYTES, Mode, place_of, sort_key

ZEROS_ALONE: Final = b"\0"  # follows the key of a sum while all its deltas were 0
MOST_SCORE: Final = 2**62
MOST_DELTA: Final = 2**40
_LEAST_TOTAL, _MOST_TOTAL = -(2**63), 2**63 - 1  # what a key can hold, beyond the 2^62 that answers show


def entry_after(mode: Mode, entry: bytes | None, score: int, ended_us: int) -> bytes:
    """Return a player's entry after one more accepted score.

    Of `best_high` and `best_low` the smallest sort key stands: the better score, then the earlier one. So an equal
    score that ended later changes nothing, and one that ended earlier moves the reach time back.

    Of `sum` the total stands since the last of its deltas that are not 0. A player all of whose deltas are 0 is listed
    with 0, since the first of them.

    Args:
        mode: Of the board.
        entry: Before it: a sort key, of a sum with `ZEROS_ALONE` behind it if so; None = the player is not listed.
        score: Score or delta.
        ended_us: When its match ended, microseconds since 1970 UTC.
    """
    if mode is not Mode.SUM:
        key = sort_key(mode, score, ended_us)
        return key if entry is None else min(entry, key)
    if entry is None:
        return sort_key(mode, score, ended_us) + (b"" if score else ZEROS_ALONE)
    total, reached_us = place_of(mode, entry)
    zeros = len(entry) > KEY_BYTES
    if not score:
        return sort_key(mode, total, min(reached_us, ended_us)) + ZEROS_ALONE if zeros else entry
    total = max(_LEAST_TOTAL, min(total + score, _MOST_TOTAL))
    return sort_key(mode, total, ended_us if zeros else max(reached_us, ended_us))


def shown_score(score: int) -> tuple[int, bool]:
    """Return a total as answers show it, from -2^62 to 2^62, and whether it is beyond that."""
    shown = max(-MOST_SCORE, min(score, MOST_SCORE))
    return shown, shown != score
