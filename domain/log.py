"""The event log as every part sees it: partitions, positions, and the port that an engine puts behind them.

Positions are integers and are compared as integers. A log has an identity of its own: a lost or replaced log is
another log, and nothing that was read from the first says anything about the second.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol, Self

from domain.errors import LakeboardError

_SEQUENCES_A_MS = 2**20


class Stream(StrEnum):
    """Kinds of event that have partitions of their own."""

    PLAYS = "plays"  # by hash of the item's id
    SCORES = "scores"  # by hash of the player's id


class Partition(NamedTuple):
    """One ordered part of the log."""

    stream: Stream
    number: int

    def __str__(self) -> str:
        return f"{self.stream.value}:{self.number}"


class EntryId(NamedTuple):
    """Where an entry stands in its partition: the log server's milliseconds since 1970 UTC, and a counter in them."""

    ms: int
    sequence: int

    def __str__(self) -> str:
        return f"{self.ms}-{self.sequence}"

    @classmethod
    def parse(cls, text: str | bytes) -> Self:
        """Read `<ms>-<sequence>`."""
        ms, _, sequence = (text.decode() if isinstance(text, bytes) else text).partition("-")
        return cls(int(ms), int(sequence))

    @property
    def version(self) -> int:
        """The same place as one integer of 63 bits that grows with it: the version of a Delta transaction.

        Raises:
            NoVersionError: 2^20 entries or more in one millisecond, which only a server's clock that went back brings.
        """
        if not 0 <= self.sequence < _SEQUENCES_A_MS:
            raise NoVersionError(str(self))
        return self.ms * _SEQUENCES_A_MS + self.sequence

    @classmethod
    def of_version(cls, version: int) -> Self:
        """Return the place behind a version; before the first transaction (-1) it is the log's beginning."""
        return cls(*divmod(version, _SEQUENCES_A_MS)) if version >= 0 else cls(0, 0)


BEGINNING = EntryId(0, 0)
NEEDS_NOTHING = EntryId(2**52, 0)  # of a partition that a reader does not read: behind all that will ever be
LAKE_READER = "lake_writer"  # a log knows this reader from its birth: nothing is dropped that no lake has


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: many events of one partition, accepted together."""

    id: EntryId
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one read of a partition found.

    Attributes:
        entries: In order, all after the place that was asked for.
        at: The log server's clock just before the read, UTC.
        reached_end: Nothing more was in the partition at that moment.
    """

    entries: Sequence[Entry]
    at: datetime
    reached_end: bool


class EventLog(Protocol):
    """A durable, partitioned log. Appended once means on disk; what was trimmed cannot be read by mistake."""

    @property
    def log_id(self) -> str:
        """Identity of the log; another one means that all positions start over."""

    def partitions(self, stream: Stream) -> Sequence[Partition]:
        """Return the partitions of a stream; their number never changes for a log id."""

    def append(self, entries: Sequence[tuple[Partition, bytes]]) -> Sequence[EntryId]:
        """Append entries; they are on disk when this returns."""

    def read(self, partition: Partition, *, after: EntryId, limit: int) -> Reading:
        """Read up to `limit` entries after a place (exclusive): an entry that was read before, or the beginning."""

    def end_offsets(self, stream: Stream) -> Mapping[Partition, EntryId]:
        """Return the last entry each partition ever had, trimmed ones included; the beginning if it had none."""

    def commit_offsets(self, reader: str, offsets: Mapping[Partition, EntryId]) -> None:
        """Say up to where (inclusive) a reader needs nothing any more."""

    def trim(self, partition: Partition) -> EntryId:
        """Drop what no reader needs any more; return the last entry dropped so far."""


def without_secrets(address: str) -> str:
    """Return the address of a server as it may be shown: without user, password and options."""
    scheme, found, rest = address.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}" if found and scheme != "unix" else address


class NoVersionError(LakeboardError):
    """An entry's counter has no room in the version of a Delta transaction."""

    def __init__(self, entry: str) -> None:
        super().__init__(entry)
        self.entry = entry

    def __str__(self) -> str:
        return (
            f"entry {self.entry} has a counter of {_SEQUENCES_A_MS} or more, which the lake cannot note: the log "
            "server's clock went back and it numbers all entries within one millisecond; see docs/log-format.md"
        )


class LogUnavailableError(LakeboardError):
    """The log server cannot be reached or does not answer in time: what was being appended may or may not be there."""

    def __init__(self, address: str, reason: str) -> None:
        self.address = without_secrets(address)
        super().__init__(self.address, reason)
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"the event log at {self.address} does not answer ({self.reason}): start it with `lakeboard up`, "
            "or set log_url to where it runs; sending the same events again is safe"
        )


class LogFullError(LakeboardError):
    """The log refuses events before it runs out of memory or disk."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"the event log takes no events for now: {self.reason}; see docs/runbook.md"


class LogReplacedError(LakeboardError):
    """Another log stands where ours was, or ours lost its end: positions in it mean nothing any more."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(expected, found)
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        return f"the event log was replaced: expected {self.expected}, found {self.found}; readers start over"


class LogLostEndError(LogReplacedError):
    """The log is the one we know, but an entry that we have read is not in it any more: it lost its end."""

    def __init__(self, log_id: str, partition: str, entry: str) -> None:
        super().__init__(log_id, f"the same without its end (partition {partition} has no entry {entry})")
        self.args = (log_id, partition, entry)
        self.log_id = log_id
        self.partition = partition
        self.entry = entry


class TrimmedError(LakeboardError):
    """A reader asked for entries that were dropped: going on would leave a silent hole."""

    def __init__(self, partition: str, after: str, trimmed_through: str) -> None:
        super().__init__(partition, after, trimmed_through)
        self.partition = partition
        self.after = after
        self.trimmed_through = trimmed_through

    def __str__(self) -> str:
        return (
            f"partition {self.partition} was trimmed through {self.trimmed_through}, but the reader stands at "
            f"{self.after}: the entries between are in the lake only; start the reader over from the lake"
        )


class UnknownLogFormatError(LakeboardError):
    """The log's keys are laid out as another version of this program does it."""

    def __init__(self, address: str, found: str) -> None:
        self.address = without_secrets(address)
        super().__init__(self.address, found)
        self.found = found

    def __str__(self) -> str:
        return (
            f"the event log at {self.address} has format {self.found or 'unknown'}, which this lakeboard does not "
            "know: run the version that made it, see docs/log-format.md"
        )


class UnsafeLogServerError(LakeboardError):
    """The server's settings would lose accepted events."""

    def __init__(self, address: str, problems: Sequence[str]) -> None:
        self.address = without_secrets(address)
        super().__init__(self.address, problems)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return (
            f"the server at {self.address} is not safe as an event log: {'; '.join(self.problems)}. "
            "Set these and start it again; docs/log-server.md says why"
        )
