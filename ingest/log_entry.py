"""Entries of the plays log: many events of one partition as columns, in MessagePack. Format: docs/log-format.md.

The bytes are stored for as long as a log lives and are read by other versions of this program, so `tests/golden`
holds some. A reader refuses a version that it does not know; it never guesses.
"""

from collections.abc import Iterable, Sequence
from struct import pack
from typing import Annotated, Final, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from domain.errors import LakeboardError

FORMAT_VERSION: Final = 1
NOT_SAID = -(2**63)  # of a time or a duration; a time that was not said is the entry's own

Int64s = npt.NDArray[np.int64]


class UnreadableEntryError(LakeboardError):
    """An entry is no entry of a version that this program knows."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(where, problem)
        self.where = where
        self.problem = problem

    def __str__(self) -> str:
        return (
            f"log entry {self.where} cannot be read ({self.problem}): it may be from a newer lakeboard; "
            "run that version, or see docs/log-format.md. Nothing after it was read"
        )


class Play(msgspec.Struct, gc=False):
    """One play as accepted: checked and in its stored spelling.

    Attributes:
        event_id: Id of the event, NFC.
        id_hash: `ingest.hashing.id_hash` of it.
        item_id: NFC.
        region: Upper case; ZZ = unknown.
        user_id: None = not said.
        event_time_us: Microseconds since 1970 UTC; `NOT_SAID` = the log's time stands for it.
        duration_ms: Milliseconds; `NOT_SAID` where nothing was said.
        count: At least 1.
    """

    event_id: str
    id_hash: int
    item_id: str
    region: str
    user_id: str | None
    event_time_us: int
    duration_ms: int
    count: int


class PlaysEntry(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """The columns of an entry, in the order of the bytes; all have one value an event.

    Attributes:
        sources: Who sent them, as runs [name, number of events].
    """

    version: Literal[1] = FORMAT_VERSION
    kind: Literal["plays"] = "plays"
    sources: list[tuple[str, Annotated[int, msgspec.Meta(ge=0)]]]
    event_ids: list[str]
    id_hashes: bytes
    item_ids: list[str]
    regions: list[str]
    user_ids: list[str | None] | None
    event_times_us: bytes
    durations_ms: bytes
    counts: bytes

    def __len__(self) -> int:
        return len(self.event_ids)


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(PlaysEntry)


def encode_plays(plays: Sequence[Play], sources: Iterable[tuple[str, int]]) -> bytes:
    """Return the bytes of one entry.

    Args:
        plays: Events of one partition, in the order they came.
        sources: Who sent them, as runs (name, number of events) in that order; the numbers sum to all events.
    """
    users = [play.user_id for play in plays]
    entry = PlaysEntry(
        sources=list(sources),
        event_ids=[play.event_id for play in plays],
        id_hashes=_packed([play.id_hash for play in plays]),
        item_ids=[play.item_id for play in plays],
        regions=[play.region for play in plays],
        user_ids=users if any(user is not None for user in users) else None,
        event_times_us=_packed([play.event_time_us for play in plays]),
        durations_ms=_packed([play.duration_ms for play in plays]),
        counts=_packed([play.count for play in plays]),
    )
    return _ENCODER.encode(entry)


def decode_plays(body: bytes, *, where: str) -> PlaysEntry:
    """Read the bytes of one entry.

    Args:
        body: The bytes.
        where: Partition and entry, for the message when they cannot be read.

    Raises:
        UnreadableEntryError: another version, or columns of different lengths.
    """
    try:
        entry = _DECODER.decode(body)
    except msgspec.MsgspecError as error:
        raise UnreadableEntryError(where, str(error)) from error
    numbers = (entry.id_hashes, entry.event_times_us, entry.durations_ms, entry.counts)
    lengths = {len(entry.item_ids), len(entry.regions), *(len(column) / 8 for column in numbers)}
    lengths.add(sum(length for _, length in entry.sources))
    if entry.user_ids is not None:
        lengths.add(len(entry.user_ids))
    if lengths != {len(entry.event_ids)}:
        raise UnreadableEntryError(where, "its columns have different lengths")
    return entry


def numbers_of(column: bytes) -> Int64s:
    """Return a column of numbers; reading only."""
    return np.frombuffer(column, dtype="<i8")


def _packed(numbers: Sequence[int]) -> bytes:
    return pack(f"<{len(numbers)}q", *numbers)
