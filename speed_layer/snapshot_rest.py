"""The small part of a partition's state: everything that is no column. MessagePack, versioned.

The bytes are stored between versions of this program, so `tests/golden` holds some. What is not known is refused.
"""

from hashlib import sha256
from typing import Final

import msgspec
import numpy as np

from domain.errors import LakeboardError
from domain.rules import Rules
from domain.sketches.codec import FORMAT_VERSION, fingerprint
from domain.sketches.keys import UInt64s
from domain.speed_policy import SpeedPolicy
from speed_layer.names import HASHING
from speed_layer.sample import SAMPLING

REST_VERSION: Final = 1


class UnusableStateError(LakeboardError):
    """Stored live state is of another version, policy or rules, or damaged."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return (
            f"stored live state is not used: {self.problem}. The live charts start over from what the log still holds "
            "and say from when they are complete"
        )


class Rest(msgspec.Struct, frozen=True, kw_only=True):
    """What is no column. Times are counted since 1970 UTC, in the unit that the name says.

    Attributes:
        version: Of these bytes.
        made_with: `state_fingerprint` of what it was counted under.
        position: `EntryId.version` of the last entry that is counted, -1 for none.
        log_ms: Log time read through.
        offset: Position up to which batch has read this partition.
        frontier: Hours below it are in batch's view.
        at_rest_from: First minute of 10-second buckets, first minute and first hour that are kept.
        compact_at: So many items, and those that no bucket needs are dropped.
        folded_hour: Of the last play that was counted in `ZZ` for want of room; -1 for none.
        pinned_minute: When pins were chosen last.
        regions: Names by number, "" = free.
        folding: Plays of some regions are counted in `ZZ`.
        items: How many items have numbers.
        meters: By name.
        tardy: (hour, region number, part of the log, last position in it, plays).
        ahead: (hour, region number, plays).
        far: First hour and plays of those dated too far ahead to tell their hours apart.
        retry_minute: Minute of log time at which the retry window stands.
        pins: Number of the pins that buckets get which begin now.
        fine: (10 seconds, number of its pins) of each 10-second bucket.
    """

    version: int = REST_VERSION
    made_with: str
    position: int
    log_ms: int
    offset: int
    frontier: int | None
    at_rest_from: tuple[int, int, int]
    compact_at: int
    folded_hour: int
    pinned_minute: int
    regions: list[str]
    folding: bool
    items: int
    meters: dict[str, int]
    tardy: list[tuple[int, int, int, int, int]]
    ahead: list[tuple[int, int, int]]
    far: tuple[int, int] | None
    retry_minute: int | None
    pins: int
    fine: list[tuple[int, int]]


class _Versioned(msgspec.Struct):
    version: int


_DECODER = msgspec.msgpack.Decoder(Rest)
_VERSION_DECODER = msgspec.msgpack.Decoder(_Versioned)


def state_fingerprint(policy: SpeedPolicy, rules: Rules) -> str:
    """Return 16 hex digits that change with anything that stored state depends on: bounds, rules, hashes, formats."""
    parts = (policy.fingerprint(), rules.fingerprint(), fingerprint(policy.minutes, HASHING))
    return sha256(repr((parts, FORMAT_VERSION, REST_VERSION, SAMPLING)).encode()).hexdigest()[:16]


def encode_rest(rest: Rest) -> bytes:
    """Return the bytes. Inverse of `decode_rest`."""
    return msgspec.msgpack.encode(rest)


def decode_rest(body: bytes, *, made_with: str) -> Rest:
    """Read the bytes.

    Args:
        body: What `encode_rest` made.
        made_with: Fingerprint in force.

    Raises:
        UnusableStateError: another version or fingerprint, or bytes that are none.
    """
    try:
        version = _VERSION_DECODER.decode(body).version
        if version != REST_VERSION:
            problem = f"it has format {version}, and this lakeboard knows {REST_VERSION}"
            raise UnusableStateError(problem)
        rest = _DECODER.decode(body)
    except msgspec.MsgspecError as error:
        problem = f"it is damaged ({error})"
        raise UnusableStateError(problem) from error
    if rest.made_with != made_with:
        problem = f"it was counted under policy {rest.made_with}, and {made_with} is in force"
        raise UnusableStateError(problem)
    return rest


def column(body: bytes) -> UInt64s:
    """Return a column of unsigned numbers of 8 bytes, little-endian, writable.

    Raises:
        UnusableStateError: the bytes are no whole numbers.
    """
    if len(body) % 8:
        problem = "a column of it ends within a number"
        raise UnusableStateError(problem)
    return np.frombuffer(body, dtype="<u8").astype(np.uint64)
