"""The consumer of boards as a service: reads scores from the log, decides, and has the store move entries.

It keeps nothing: how far it is stands beside the boards, in the same step as what was changed. Killed at any point,
the next one goes on there. Boards that are not whole, as the server lost them or another log stands there, are made
anew: of what the lake has, then of the log behind it.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final

from domain.boards.events import BoardEvent, EventKind, PlacedEvent, Position
from domain.log import (
    EntryId,
    LogFullError,
    LogReplacedError,
    LogUnavailableError,
    Partition,
    Reading,
    Stream,
    TrimmedError,
)
from domain.windows import milliseconds
from speed_layer.boards.deciding import Known, Outcome, decide, is_over, lift, touched
from speed_layer.boards.job import BoardsBehindLogError, BoardsJob, steps
from speed_layer.consumer_ports import OpenedLog, Stop
from speed_layer.store.boards.writer import (
    WHOLE,
    Applied,
    BoardsMovedError,
    BoardWriter,
    day_of,
    forget_shard,
    shards_of,
)
from speed_layer.store.connection import Views, ViewsUnavailableError

READER: Final = "boards"
READER_LEASE: Final = timedelta(hours=6)  # how long the log is held for a consumer that is away
WORKING, WAITING, REBUILDING = "working", "waiting", "rebuilding"
_ENTRIES = 64  # of one read of the log
_POLL_SECONDS = 0.02
_RETRY_SECONDS = 0.5
_HOUSEKEEPING_SECONDS = 1.0
_MS_US = 1000
_DAY_MS = 86_400_000
_PASSING = (LogUnavailableError, LogFullError, LogReplacedError, ViewsUnavailableError, BoardsMovedError, OSError)


def run(job: BoardsJob, stop: Stop) -> None:
    """Apply events until `stop` is set, or once.

    Raises:
        UnreadableEntryError: an entry of another version of this program.
    """
    while not stop.is_set():
        try:
            log = job.open_log()
            try:
                with job.connect() as views:
                    if _Work(job, log, views).work(stop):
                        return
            finally:
                log.close()
        except (*_PASSING, BoardsBehindLogError) as error:
            job.say(WAITING, str(error))
            if job.once:
                raise
            stop.wait(_RETRY_SECONDS)


@dataclass
class _Part:
    """One partition."""

    partition: Partition
    applied: Applied | None
    as_of_ms: int = 0
    reached_end: bool = False


@dataclass
class _Work:
    """One run over one log and one views server."""

    job: BoardsJob
    log: OpenedLog
    views: Views
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    _writers: list[BoardWriter] = field(default_factory=list)
    _parts: dict[int, list[_Part]] = field(default_factory=dict)
    _said: dict[int, tuple[int, bool]] = field(default_factory=dict)
    _ledger_days: dict[int, int] = field(default_factory=dict)
    _housekeeping_at: float = 0.0

    def work(self, stop: Stop) -> bool:
        """Apply what is there and what comes; return whether all is done."""
        self._begin()
        while not stop.is_set():
            busy = [self._step(writer, part) for writer in self._writers for part in self._parts[writer.shard]]
            for writer in self._writers:
                self._say(writer)
            self._keep_house()
            self.job.say(WORKING, "")
            if self.job.once and not any(busy):
                return True
            if not any(busy):
                stop.wait(_POLL_SECONDS)
        return True

    def _begin(self) -> None:
        """Find out how far each shard is; one of another log begins anew."""
        partitions = self.log.partitions(Stream.SCORES)
        for shard in shards_of(self.views) - set(range(self.job.shards)):
            forget_shard(self.views, shard)
        is_whole = True
        for shard in range(self.job.shards):
            writer = BoardWriter(self.views, shard)
            state = writer.state()
            is_whole &= state.log_id == self._source and state.ready
            self._writers.append(writer)
            self._parts[shard] = [
                _Part(one, state.applied.get(one.number)) for one in partitions if one.number % self.job.shards == shard
            ]
        if not is_whole:
            self._begin_anew(len(partitions))

    def _begin_anew(self, partitions: int) -> None:
        """Make all shards of what the lake has, up to where it has each partition; the log goes on from there."""
        self.job.say(REBUILDING, "the boards are made of what the lake has")
        for writer in self._writers:
            writer.begin(self._source, partitions=partitions)
            writer.state()
            for part in self._parts[writer.shard]:
                part.applied = None
        self.log.commit_offsets(READER, {}, lease=READER_LEASE, only=Stream.SCORES)  # nothing more is dropped meanwhile
        history = self.job.history(self.log.log_id)
        done = 0
        for events in history.events:
            for step in steps(events, partial(self._shard_of, partitions)):
                shard = self._shard_of(partitions, step[0])
                self._apply(self._writers[shard], self._parts[shard][0], step, None)
            for writer in self._writers:
                writer.drop_ledger_before(day_of(events))
            done += len(events)
            self.job.report({"events_of_the_lake": done})
        for writer in self._writers:
            for part in self._parts[writer.shard]:
                if (version := history.positions.get(part.partition.number)) is not None:
                    self._apply(writer, part, (), Applied(version, WHOLE, version))

    def _shard_of(self, partitions: int, placed: PlacedEvent) -> int:
        return self.job.partition_of(placed.event.player_id, partitions) % self.job.shards

    @property
    def _source(self) -> str:
        """What the boards are made of, and how they are split: with another one they begin anew."""
        return f"{self.log.log_id}/{self.job.shards}"

    def _step(self, writer: BoardWriter, part: _Part) -> bool:
        """Read once from a partition and apply what came; return whether anything did."""
        after = -1 if part.applied is None else part.applied.read_after
        try:
            reading = self.log.read(part.partition, after=EntryId.of_version(after), limit=_ENTRIES)
        except TrimmedError as error:
            for one in self._writers:  # what is missing is in the lake: they are made anew
                forget_shard(self.views, one.shard)
            raise BoardsBehindLogError(str(error)) from error
        events = self._events(part, reading)
        before, taken = after, 0
        for some in steps(events, lambda _: writer.shard):
            taken += len(some)
            last = some[-1].position
            before = next((e.position.version for e in reversed(some) if e.position.version < last.version), before)
            is_whole = taken == len(events) or events[taken].position.version != last.version
            self._apply(writer, part, some, Applied(last.version, WHOLE if is_whole else last.number + 1, before))
            before = last.version if is_whole else before
        part.reached_end |= reading.reached_end
        part.as_of_ms = milliseconds(reading.at) if reading.reached_end else self._logged_ms(part)
        return bool(events)

    def _events(self, part: _Part, reading: Reading) -> list[PlacedEvent]:
        found = [event for entry in reading.entries for event in self.job.decode(entry, part.partition)]
        if part.applied is None:
            return found
        return [event for event in found if not part.applied.includes(*event.position)]

    def _apply(self, writer: BoardWriter, part: _Part, events: Sequence[PlacedEvent], after: Applied | None) -> None:
        """Decide on events of one day and apply what follows, with the position behind them."""
        day = day_of(events) if events else 0
        known = writer.known(touched(self.job.boards, events), day=day) if events else Known()
        changes = decide(self.job.boards, known, events)
        number, as_of_ms = part.partition.number, self._as_of(writer.shard)
        writer.apply(self._source, number, changes, before=part.applied, after=after, as_of_ms=as_of_ms, day=day)
        part.applied = after
        self.outcomes.update(changes.outcomes)

    def _say(self, writer: BoardWriter) -> None:
        """Say up to when everything is applied, and whether a shard is whole: each partition has been at its end."""
        parts = self._parts[writer.shard]
        now = (self._as_of(writer.shard), all(part.reached_end for part in parts))
        if now != self._said.get(writer.shard):
            writer.say(as_of_ms=now[0], ready=now[1])
            self._said[writer.shard] = now

    def _keep_house(self) -> None:
        """Once a second: let the log forget what is applied, end bans that are over, forget old matches."""
        if (now := time.monotonic()) < self._housekeeping_at:
            return
        self._housekeeping_at = now + _HOUSEKEEPING_SECONDS
        parts = [part for of_shard in self._parts.values() for part in of_shard]
        offsets = {p.partition: EntryId.of_version(p.applied.read_after) for p in parts if p.applied is not None}
        self.log.commit_offsets(READER, offsets, lease=READER_LEASE, only=Stream.SCORES)
        for writer in self._writers:
            as_of_ms = self._as_of(writer.shard)
            self._lift(writer, as_of_ms * _MS_US)
            if self._ledger_days.get(writer.shard) != (day := as_of_ms // _DAY_MS):  # it looks through all keys
                writer.drop_ledger_before(day)
                self._ledger_days[writer.shard] = day
        self.job.report({
            "as_of_ms": min(self._as_of(writer.shard) for writer in self._writers),
            "events": {outcome.value: number for outcome, number in self.outcomes.items()},
        })  # fmt: skip

    def _lift(self, writer: BoardWriter, now_us: int) -> None:
        """End the bans that are over; each in its own partition's order, like any event."""
        for player, until_us in writer.bans().items():
            if not is_over(until_us, now_us):
                continue
            number = self.job.partition_of(player, sum(map(len, self._parts.values())))
            part = next(part for part in self._parts[writer.shard] if part.partition.number == number)
            if part.applied is None:
                continue
            ended = BoardEvent(EventKind.RESTORE, "", player, "", 0, now_us, 0, "", now_us)
            day = now_us // 86_400_000_000
            known = writer.known(touched(self.job.boards, [PlacedEvent(Position(0, 0), now_us, ended)]), day=day)
            writer.apply(
                self._source, number, lift(self.job.boards, known, [player]), before=part.applied,
                after=part.applied, as_of_ms=now_us // _MS_US, day=day,
            )  # fmt: skip

    def _as_of(self, shard: int) -> int:
        return min((part.as_of_ms for part in self._parts[shard]), default=0)

    @staticmethod
    def _logged_ms(part: _Part) -> int:
        return 0 if part.applied is None else EntryId.of_version(part.applied.version).ms
