"""Moves events from the log to bronze, each exactly once: what was read and up to where are one Delta commit.

The transactions in Delta are the truth about what is in the lake. The log's offsets follow them, never lead: an offset
is committed when the rows are on disk, and only then may the log forget them.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Protocol

import pyarrow as pa

from domain.board_tables import SCORES
from domain.errors import LakeboardError
from domain.frontier import log_in_use
from domain.log import LAKE_READER, Entry, EntryId, Partition, Stream, TrimmedError
from domain.position import LAKE_WRITER, LOG_IN_USE, READ_TO
from domain.table import Table
from domain.tables import PLAYS
from domain.windows import milliseconds
from ingest.arrow import arrow_schema
from ingest.durable import commits_since, make_durable
from ingest.lake_writer import BronzeWriter
from ingest.log_to_lake_rows import plays_rows, writer_of
from ingest.log_to_lake_scores import scores_rows
from ingest.redis_log import RedisLog


class Rows(Protocol):
    """Makes rows of bronze of entries of one partition."""

    def __call__(self, entries: Sequence[Entry], /, *, log_id: str, partition: Partition) -> pa.Table:
        """Return one row an event, in the order of the log."""


_NEVER = -1
_MILLISECOND = timedelta(milliseconds=1)
_READ_BYTES = 8 << 20  # what one read should bring
_FIRST_LIMIT = 16  # entries, before the size of any is known


class LakeBehindLogError(LakeboardError):
    """The log has forgotten entries that this lake does not have."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return (
            f"this lake lacks events that the log has dropped already ({self.problem}): bring back the lake that had "
            "them, or keep this one and begin with an empty log; docs/runbook.md, lake writer stuck"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """What one commit moved.

    Attributes:
        version: Of the table.
        events: Rows.
        partitions: How many partitions had some.
        seconds: From the start of the commit to the end of the trim.
    """

    version: int
    events: int
    partitions: int
    seconds: float


@dataclass(slots=True)
class Progress:
    """How far one partition is.

    Attributes:
        committed: Delta transaction of its position, -1 before the first.
        read: Last entry read.
        committed_read_to_ms: Its `read_to` in Delta, milliseconds since 1970 UTC, -1 before the first.
        read_to: The log's time before the last read that reached the end, None before one did.
        limit: How many entries to ask for next, by their size.
        events_each: Events that an entry had, in the last read.
    """

    committed: int
    read: EntryId
    committed_read_to_ms: int
    read_to: datetime | None = None
    limit: int = _FIRST_LIMIT
    events_each: int = 1

    def found(self, entries: Sequence[Entry], events: int) -> None:
        """Note a read that found entries."""
        self.read = entries[-1].id
        self.events_each = max(events // len(entries), 1)
        size = max(sum(len(entry.body) for entry in entries) // len(entries), 1)
        self.limit = max(1, min(2 * self.limit, _READ_BYTES // size))

    @property
    def read_to_ms(self) -> int:
        """What the next commit says: never less than the last one did, 0 while the end was never reached."""
        reached = 0 if self.read_to is None else milliseconds(self.read_to)
        return max(reached, self.committed_read_to_ms)


@dataclass(frozen=True)
class StreamToLake:
    """Where the events of a stream go.

    Attributes:
        stream: Which.
        table: Of bronze.
        rows: Makes rows of entries of one partition.
    """

    stream: Stream
    table: Table
    rows: Rows


PLAYS_TO_LAKE: Final = StreamToLake(Stream.PLAYS, PLAYS, plays_rows)
SCORES_TO_LAKE: Final = StreamToLake(Stream.SCORES, SCORES, scores_rows)


@dataclass
class LogToLake:
    """Reads one stream of one log and commits it to one lake; `start` it before use.

    Args:
        log: The log.
        bronze: Writer of the lake, whose tables exist.
        rows: Events that one commit should have at most; an entry is never cut, so it may be some more.
        on_step: Told the name of each step as it begins.
        kind: Which stream, and where it goes.
    """

    log: RedisLog
    bronze: BronzeWriter
    rows: int
    on_step: Callable[[str], None] = lambda step: None
    kind: StreamToLake = PLAYS_TO_LAKE
    progress: dict[Partition, Progress] = field(default_factory=dict, init=False)
    events: int = field(default=0, init=False)
    _gathered: list[pa.Table] = field(default_factory=list, init=False)
    _marks: dict[str, int] = field(default_factory=dict, init=False)
    _turns: deque[Partition] = field(default_factory=deque, init=False)
    _has_events: bool = field(default=False, init=False)

    @property
    def is_full(self) -> bool:
        """Whether a commit's worth of events waits."""
        return self.events >= self.rows

    @property
    def at_end(self) -> bool:
        """Whether every partition has been read to its end since the start."""
        return all(progress.read_to is not None for progress in self.progress.values())

    def is_news(self, step: timedelta) -> bool:
        """Say whether a commit without events would say something: the log was read past another multiple of `step`.

        Of a table that never had events nobody asks it.
        """
        if not self._has_events:
            return False
        step_ms = step // _MILLISECOND
        read = min(progress.read_to_ms for progress in self.progress.values())
        return read // step_ms > min(progress.committed_read_to_ms for progress in self.progress.values()) // step_ms

    def start(self) -> None:
        """Find where to go on, hold back the trim, and finish what a killed one may have left undone."""
        path = self.bronze.lake_root / self.kind.table.name
        version, transactions = self.bronze.transactions(self.kind.table)
        self._has_events = any(app.startswith(LAKE_WRITER) for app in transactions)
        if log_in_use(transactions) != self.log.log_id:
            changes = [n for app, n in transactions.items() if app.startswith(LOG_IN_USE)]
            self._marks = {f"{LOG_IN_USE}{self.log.log_id}": max(changes, default=0) + 1}
        for partition in self.log.partitions(self.kind.stream):
            committed = transactions.get(writer_of(self.log.log_id, partition), _NEVER)
            read_to_ms = transactions.get(self._read_to(partition), _NEVER)
            self.progress[partition] = Progress(committed, EntryId.of_version(committed), read_to_ms)
        self._turns = deque(self.progress)
        make_durable(path, commits_since(path, version, f"{READ_TO}{self.log.log_id}/"))
        self._let_go()

    def poll(self) -> None:
        """Read what is there, partition by partition in turns, until all are at their end or a commit is full.

        Raises:
            LakeBehindLogError: the log dropped entries that the lake does not have.
            UnreadableEntryError: an entry of an unknown version; nothing is skipped.
        """
        left = set(self.progress)
        while left and not self.is_full:
            partition = self._turns[0]
            self._turns.rotate(-1)  # stays so over commits: one with a long backlog must not starve the others
            if partition in left and self._reached_end(partition):
                left.remove(partition)

    def commit(self) -> Committed:
        """Commit what was read, with positions, also when it is nothing; then let the log forget it.

        Raises:
            MovedError: somebody else wrote on from the same position.
        """
        began = time.monotonic()
        moved = {p: at for p, at in self.progress.items() if at.read != EntryId.of_version(at.committed)}
        self.on_step("commit")
        version = self.bronze.append_from(
            self.kind.table,
            pa.concat_tables(self._gathered) if self._gathered else arrow_schema(self.kind.table).empty_table(),
            after={writer_of(self.log.log_id, p): progress.committed for p, progress in self.progress.items()},
            transactions=self._transactions(moved),
        )
        events, self.events, self._gathered, self._marks = self.events, 0, [], {}
        self._has_events |= events > 0
        for progress in self.progress.values():
            progress.committed_read_to_ms = progress.read_to_ms
        for progress in moved.values():
            progress.committed = progress.read.version
        self.on_step("make durable")
        make_durable(self.bronze.lake_root / self.kind.table.name, [version])
        self._let_go()
        return Committed(version=version, events=events, partitions=len(moved), seconds=time.monotonic() - began)

    def _reached_end(self, partition: Partition) -> bool:
        """Read once from a partition; return whether it is at its end."""
        progress = self.progress[partition]
        try:
            reading = self.log.read(
                partition,
                after=progress.read,
                limit=min(progress.limit, 1 + (self.rows - self.events) // progress.events_each),
            )
        except TrimmedError as error:
            raise LakeBehindLogError(str(error)) from error
        if reading.entries:
            rows = self.kind.rows(reading.entries, log_id=self.log.log_id, partition=partition)
            self._gathered.append(rows)
            self.events += len(rows)
            progress.found(reading.entries, len(rows))
        if reading.reached_end:
            progress.read_to = reading.at
        return reading.reached_end

    def _transactions(self, moved: Mapping[Partition, Progress]) -> dict[str, int]:
        positions = {writer_of(self.log.log_id, p): progress.read.version for p, progress in moved.items()}
        read_to = {self._read_to(p): max(progress.read_to_ms, 0) for p, progress in self.progress.items()}
        return positions | read_to | self._marks

    def _let_go(self) -> None:
        """Tell the log what the lake has on disk, and let it forget that."""
        offsets = {p: EntryId.of_version(progress.committed) for p, progress in self.progress.items()}
        self.on_step("commit offsets")
        self.log.commit_offsets(LAKE_READER, offsets)
        for partition in self.progress:
            self.on_step(f"trim {partition}")
            self.log.trim(partition)

    def _read_to(self, partition: Partition) -> str:
        return f"{READ_TO}{self.log.log_id}/{partition.number}"
