"""A generation of a shard that follows the log: reads its partitions, applies what came, says how far it is."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from domain.boards.events import BoardEvent, EventKind, PlacedEvent, Position
from domain.log import EntryId, Partition, Reading
from domain.windows import milliseconds
from speed_layer.boards.building import Move, apply_events, source_of
from speed_layer.boards.deciding import Outcome, is_over, lift, touched
from speed_layer.boards.job import BoardsJob, steps
from speed_layer.consumer_ports import OpenedLog
from speed_layer.store.boards.writer import WHOLE, Applied, BoardWriter

_ENTRIES: Final = 64  # of one read of the log
_MS_US = 1000
_DAY_MS = 86_400_000


@dataclass
class Part:
    """One partition.

    Attributes:
        partition: Which.
        applied: Up to where; None = nothing of it is.
        as_of_ms: Log time up to which everything is.
        reached_end: Whether the end of the log was seen once.
    """

    partition: Partition
    applied: Applied | None
    as_of_ms: int = 0
    reached_end: bool = False


@dataclass
class Following:
    """One generation of one shard.

    Args:
        job: What is to be done.
        log: What is read.
        writer: Of the generation.
        parts: Its partitions.
        outcomes: Counted here.
    """

    job: BoardsJob
    log: OpenedLog
    writer: BoardWriter
    parts: Sequence[Part]
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    _said: tuple[int, bool] | None = None
    _ledger_day: int | None = None

    def step(self) -> bool:
        """Read once from each partition and apply what came; return whether anything did.

        Raises:
            TrimmedError: the log has dropped what comes next.
            BoardsMovedError: somebody else applies events to this generation, or it is gone.
        """
        busy = [self._step(part) for part in self.parts]
        self._say()
        return any(busy)

    @property
    def as_of_ms(self) -> int:
        """Log time up to which everything is applied, milliseconds since 1970 UTC."""
        return min((part.as_of_ms for part in self.parts), default=0)

    @property
    def is_whole(self) -> bool:
        """Whether each partition has been at its end."""
        return all(part.reached_end for part in self.parts)

    @property
    def offsets(self) -> Mapping[Partition, EntryId]:
        """Behind which entries the log is still needed."""
        applied = {part.partition: part.applied for part in self.parts}
        return {one: EntryId.of_version(at.read_after) for one, at in applied.items() if at is not None}

    def keep_house(self, partitions: int) -> None:
        """End bans that are over, and forget matches of days gone by.

        Args:
            partitions: Of the log, for scores.
        """
        self._lift(self.as_of_ms * _MS_US, partitions)
        if self._ledger_day != (day := self.as_of_ms // _DAY_MS):  # it looks through all keys
            self.writer.drop_ledger_before(day)
            self._ledger_day = day

    def _step(self, part: Part) -> bool:
        after = -1 if part.applied is None else part.applied.read_after
        reading = self.log.read(part.partition, after=EntryId.of_version(after), limit=_ENTRIES)
        events = self._events(part, reading)
        before, taken = after, 0
        for some in steps(events, lambda _: self.writer.shard):
            taken += len(some)
            last = some[-1].position
            before = next((e.position.version for e in reversed(some) if e.position.version < last.version), before)
            is_whole = taken == len(events) or events[taken].position.version != last.version
            self._apply(part, some, Applied(last.version, WHOLE if is_whole else last.number + 1, before))
            before = last.version if is_whole else before
        part.reached_end |= reading.reached_end
        part.as_of_ms = milliseconds(reading.at) if reading.reached_end else self._logged_ms(part)
        return bool(events)

    def _events(self, part: Part, reading: Reading) -> list[PlacedEvent]:
        found = [event for entry in reading.entries for event in self.job.decode(entry, part.partition)]
        if part.applied is None:
            return found
        return [event for event in found if not part.applied.includes(*event.position)]

    def _apply(self, part: Part, events: Sequence[PlacedEvent], after: Applied) -> None:
        move = Move(part.partition.number, part.applied, after)
        found = apply_events(self.job, self.writer, self.log.log_id, events, move, as_of_ms=self.as_of_ms)
        part.applied = after
        self.outcomes.update(found)

    def _say(self) -> None:
        now = (self.as_of_ms, self.is_whole)
        if now != self._said:
            self.writer.say(as_of_ms=now[0], ready=now[1])
            self._said = now

    def _lift(self, now_us: int, partitions: int) -> None:
        """End the bans that are over; each in its own partition's order, like any event."""
        for player, until_us in self.writer.bans().items():
            if not is_over(until_us, now_us):
                continue
            number = self.job.partition_of(player, partitions)
            part = next(part for part in self.parts if part.partition.number == number)
            if part.applied is None:
                continue
            ended = BoardEvent(EventKind.RESTORE, "", player, "", 0, now_us, 0, "", now_us)
            day = now_us // (_DAY_MS * _MS_US)
            known = self.writer.known(touched(self.job.boards, [PlacedEvent(Position(0, 0), now_us, ended)]), day=day)
            self.writer.apply(
                source_of(self.job, self.log.log_id), number, lift(self.job.boards, known, [player]),
                before=part.applied, after=part.applied, as_of_ms=now_us // _MS_US, day=day,
            )  # fmt: skip

    @staticmethod
    def _logged_ms(part: Part) -> int:
        return 0 if part.applied is None else EntryId.of_version(part.applied.version).ms
