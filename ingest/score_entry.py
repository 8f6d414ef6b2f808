"""Entries of the scores log: many events of boards of one partition as columns, in MessagePack (docs/log-format.md).

The bytes are stored for as long as a log lives and are read by other versions of this program, so `tests/golden`
holds some. A reader refuses a version that it does not know; it never guesses.
"""

from collections.abc import Iterable, Iterator, Sequence
from struct import pack, unpack
from typing import Annotated, Final, Literal

import msgspec
import xxhash

from domain.boards.events import NOT_SAID, BoardEvent, EventKind, PlacedEvent, Position
from domain.log import Entry
from ingest.log_entry import UnreadableEntryError

FORMAT_VERSION: Final = 1
FINGERPRINT_SEED: Final = 0x73636F7265736664
_BETWEEN: Final = "\x1f"  # no id can hold it
_MS_US: Final = 1000


class ScoresEntry(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """The columns of an entry, in the order of the bytes; all have one value an event.

    Attributes:
        sources: Who sent them, as runs [name, number of events].
        kinds: Of `EventKind`, a byte each.
    """

    version: Literal[1] = FORMAT_VERSION
    kind: Literal["scores"] = "scores"
    sources: list[tuple[str, Annotated[int, msgspec.Meta(ge=0)]]]
    kinds: bytes
    games: list[str]
    player_ids: list[str]
    match_ids: list[str]
    scores: bytes
    ended_us: bytes
    fingerprints: bytes
    reasons: list[str] | None
    until_us: bytes

    def __len__(self) -> int:
        return len(self.player_ids)


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(ScoresEntry)


def fingerprint(*, game: str, match_id: str, player_id: str, score: int, ended_us: int) -> int:
    """Return xxh3-64 of what the sender of a score said, with `FINGERPRINT_SEED`, signed.

    The bytes: game, match, player, score and microseconds of the end since 1970 UTC in decimal, joined by U+001F; the
    end is empty when it was not said, since a server's stamp is not the sender's word.
    """
    said = (game, match_id, player_id, str(score), "" if ended_us == NOT_SAID else str(ended_us))
    unsigned = xxhash.xxh3_64_intdigest(_BETWEEN.join(said).encode(), seed=FINGERPRINT_SEED)
    return unsigned - 2**64 if unsigned >= 2**63 else unsigned


def encode_scores(events: Sequence[BoardEvent], sources: Iterable[tuple[str, int]]) -> bytes:
    """Return the bytes of one entry.

    Args:
        events: Of one partition, in the order they came.
        sources: Who sent them, as runs (name, number of events) in that order; the numbers sum to all events.
    """
    reasons = [event.reason for event in events]
    entry = ScoresEntry(
        sources=list(sources),
        kinds=bytes([event.kind for event in events]),
        games=[event.game for event in events],
        player_ids=[event.player_id for event in events],
        match_ids=[event.match_id for event in events],
        scores=_packed([event.score for event in events]),
        ended_us=_packed([event.ended_us for event in events]),
        fingerprints=_packed([event.fingerprint for event in events]),
        reasons=reasons if any(reasons) else None,
        until_us=_packed([event.until_us for event in events]),
    )
    return _ENCODER.encode(entry)


def decode_scores(body: bytes, *, where: str) -> ScoresEntry:
    """Read the bytes of one entry.

    Args:
        body: The bytes.
        where: Partition and entry, for the message when they cannot be read.

    Raises:
        UnreadableEntryError: another version, columns of different lengths, or an event of an unknown kind.
    """
    try:
        entry = _DECODER.decode(body)
    except msgspec.MsgspecError as error:
        raise UnreadableEntryError(where, str(error)) from error
    numbers = (entry.scores, entry.ended_us, entry.fingerprints, entry.until_us)
    lengths = {len(entry.kinds), len(entry.games), len(entry.match_ids), *(len(column) / 8 for column in numbers)}
    lengths.add(sum(length for _, length in entry.sources))
    if entry.reasons is not None:
        lengths.add(len(entry.reasons))
    if lengths != {len(entry.player_ids)}:
        raise UnreadableEntryError(where, "its columns have different lengths")
    if unknown := set(entry.kinds) - set(EventKind):
        raise UnreadableEntryError(where, f"it has events of the unknown kinds {sorted(unknown)}")
    return entry


def events_of(entry: ScoresEntry) -> Iterator[BoardEvent]:
    """Yield the events of an entry in their order."""
    reasons = [""] * len(entry) if entry.reasons is None else entry.reasons
    columns = (_unpacked(column) for column in (entry.scores, entry.ended_us, entry.fingerprints))
    scores, ended, fingerprints = columns
    rows = zip(
        map(EventKind, entry.kinds), entry.games, entry.player_ids, entry.match_ids, scores, ended, fingerprints,
        reasons, _unpacked(entry.until_us), strict=True,
    )  # fmt: skip
    yield from map(BoardEvent._make, rows)


def placed_events(entry: Entry, *, where: str) -> list[PlacedEvent]:
    """Return the events of an entry of the log with their positions.

    Raises:
        UnreadableEntryError: as `decode_scores`.
        NoVersionError: the entry's counter is too large.
    """
    version, logged_us = entry.id.version, entry.id.ms * _MS_US
    found = events_of(decode_scores(entry.body, where=where))
    return [PlacedEvent(Position(version, number), logged_us, event) for number, event in enumerate(found)]


def _packed(numbers: Sequence[int]) -> bytes:
    return pack(f"<{len(numbers)}q", *numbers)


def _unpacked(column: bytes) -> tuple[int, ...]:
    return unpack(f"<{len(column) // 8}q", column)
