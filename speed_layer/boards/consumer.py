"""The consumer of boards as a service: reads scores from the log, decides, and has the store move entries.

It keeps nothing: how far it is stands beside the boards, in the same step as what was changed. Killed at any point,
the next one goes on there. Boards that are not whole, as the server lost them or another log stands there, are made
anew: of what is certified, of what the lake has beyond it, then of the log. A generation that a rebuild has made beside
the live one is let catch up with the log, and put in its place once it is no less far.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from domain.log import LogFullError, LogReplacedError, LogUnavailableError, Partition, Stream, TrimmedError
from speed_layer.boards.building import build, source_of
from speed_layer.boards.deciding import Outcome
from speed_layer.boards.following import Following, Part
from speed_layer.boards.job import BoardsBehindLogError, BoardsJob
from speed_layer.consumer_ports import OpenedLog, Stop
from speed_layer.store.boards.generations import Generations, shards_of
from speed_layer.store.boards.writer import Applied, BoardsMovedError, BoardWriter
from speed_layer.store.connection import Views, ViewsUnavailableError

READER: Final = "boards"
READER_LEASE: Final = timedelta(hours=6)  # how long the log is held for a consumer that is away
WORKING, WAITING, REBUILDING = "working", "waiting", "rebuilding"
_POLL_SECONDS = 0.02
_RETRY_SECONDS = 0.5
_HOUSEKEEPING_SECONDS = 1.0
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
class _Work:
    """One run over one log and one views server."""

    job: BoardsJob
    log: OpenedLog
    views: Views
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    _partitions: list[Partition] = field(default_factory=list)
    _live: dict[int, Following] = field(default_factory=dict)
    _coming: dict[int, Following] = field(default_factory=dict)
    _dropping: dict[tuple[int, int], Iterator[int]] = field(default_factory=dict)
    _housekeeping_at: float = 0.0

    def work(self, stop: Stop) -> bool:
        """Apply what is there and what comes; return whether all is done."""
        self._begin()
        while not stop.is_set():
            busy = [self._step(one) for one in self._live.values()]
            self._keep_house()
            busy += [self._catch_up(shard) for shard in list(self._coming)]
            self._drop_some()
            self.job.say(WORKING, "")
            if self.job.once and not any(busy) and not self._coming and not self._dropping:
                return True
            if not any(busy):
                stop.wait(_POLL_SECONDS)
        return True

    def _begin(self) -> None:
        """Find out how far each shard is; when one is not whole, or of another log, all begin anew."""
        self._partitions = list(self.log.partitions(Stream.SCORES))
        for shard in shards_of(self.views) - set(range(self.job.shards)):
            Generations(self.views, shard).forget_all()
        generations = [Generations(self.views, shard) for shard in range(self.job.shards)]
        for one in generations:
            live = one.live()
            writer = None if live is None else BoardWriter(self.views, one.shard, live)
            state = None if writer is None else writer.state()
            if writer is None or state is None or not state.ready or state.log_id != self._source:
                self._begin_anew(generations)
                return
            self._live[one.shard] = self._following(writer, state.applied)

    def _begin_anew(self, generations: list[Generations]) -> None:
        """Make all shards of what is certified and what the lake has; the log goes on from there."""
        self.job.say(REBUILDING, "the boards are made of what the lake has")
        writers = [BoardWriter(self.views, one.shard, one.make()) for one in generations]
        for one, writer in zip(generations, writers, strict=True):
            writer.begin(self._source, partitions=len(self._partitions))
            one.put_live(writer.generation)
            for other in one.others():
                self._drop(one, other)
        self.log.commit_offsets(READER, {}, lease=READER_LEASE, only=Stream.SCORES)  # nothing more is dropped meanwhile
        applied = build(self.job, writers, self.log.log_id, len(self._partitions))
        self._live = {writer.shard: self._following(writer, applied) for writer in writers}

    def _following(self, writer: BoardWriter, applied: Mapping[int, Applied]) -> Following:
        mine = [one for one in self._partitions if one.number % self.job.shards == writer.shard]
        parts = [Part(one, applied.get(one.number)) for one in mine]
        return Following(self.job, self.log, writer, parts, self.outcomes)

    @property
    def _source(self) -> str:
        return source_of(self.job, self.log.log_id)

    def _step(self, one: Following) -> bool:
        try:
            return one.step()
        except TrimmedError as error:
            for shard in self._live:  # what is missing is in the lake: they are made anew
                Generations(self.views, shard).forget_all()
            raise BoardsBehindLogError(str(error)) from error

    def _catch_up(self, shard: int) -> bool:
        """Let a generation that is to become live read on, and put it in place once it is as far."""
        live, coming, generations = self._live[shard], self._coming[shard], Generations(self.views, shard)
        try:
            busy = coming.step()
        except (TrimmedError, BoardsMovedError):  # it has waited too long, or was withdrawn: what is live stays
            generations.withdraw()
            self._drop(generations, coming.writer.generation)
            del self._coming[shard]
            return False
        numbers = [part.partition.number for part in live.parts]
        if coming.is_whole and generations.swap(live.writer.generation, coming.writer.generation, numbers):
            self._drop(generations, live.writer.generation)
            self._live[shard] = self._coming.pop(shard)
        return busy

    def _keep_house(self) -> None:
        """Once a second: let the log forget what is applied, end bans, look for a new generation."""
        if (now := time.monotonic()) < self._housekeeping_at:
            return
        self._housekeeping_at = now + _HOUSEKEEPING_SECONDS
        offsets = {partition: at for one in self._live.values() for partition, at in one.offsets.items()}
        self.log.commit_offsets(READER, offsets, lease=READER_LEASE, only=Stream.SCORES)
        for shard, one in self._live.items():
            one.keep_house(len(self._partitions))
            self._look_for_next(shard, one.writer.generation)
        self.job.report({
            "as_of_ms": min(one.as_of_ms for one in self._live.values()),
            "events": {outcome.value: number for outcome, number in self.outcomes.items()},
        })  # fmt: skip

    def _look_for_next(self, shard: int, live: int) -> None:
        """Take up a generation that a rebuild offers.

        Raises:
            BoardsMovedError: another one is live than was.
        """
        generations = Generations(self.views, shard)
        if generations.live() != live:
            raise BoardsMovedError(shard, "generation")
        offered = generations.next()
        if offered is None or (shard in self._coming and self._coming[shard].writer.generation == offered):
            return
        writer = BoardWriter(self.views, shard, offered)
        state = writer.state()
        if state.log_id != self._source:  # of a log that was replaced meanwhile, or gone
            generations.withdraw()
            self._drop(generations, offered)
            return
        self._coming[shard] = self._following(writer, state.applied)

    def _drop(self, generations: Generations, number: int) -> None:
        self._dropping[generations.shard, number] = generations.forget(number)

    def _drop_some(self) -> None:
        """Drop a few keys of what nobody reads any more."""
        for which, dropping in list(self._dropping.items()):
            if next(dropping, None) is None:
                del self._dropping[which]
