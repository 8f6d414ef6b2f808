"""The consumer as a service: counts the plays of the log live, says what changed every second, stores its state.

It reads its partitions in turn, a micro-batch each, so that one far behind does not keep the others from being fresh.
What is away is waited for; what is another consumer's is left alone until it is free.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from domain.batch_view import PartitionOf
from domain.clock import Clock
from domain.errors import LakeboardError
from domain.log import (
    EntryId,
    LogFullError,
    LogLostEndError,
    LogReplacedError,
    LogUnavailableError,
    Stream,
    TrimmedError,
)
from speed_layer.consumer_partition import PartitionWork, Tools, common_moment, hold
from speed_layer.consumer_ports import BatchViews, OpenedLog, Stop
from speed_layer.consumer_sharing import Sharing
from speed_layer.consumer_state import FAILED, STOPPED, WAITING, StateFile, note_checkpoint
from speed_layer.consumer_view import ViewInUse
from speed_layer.retry_window import LogWentBackError
from speed_layer.store.leases import LeaseLostError, ViewsUnavailableError

_POLL_SECONDS = 0.1
_PATIENT_SECONDS = 15.0  # a killed consumer's lease runs out long before
_SHORTEST_WAIT_SECONDS = 0.25
_LONGEST_WAIT_SECONDS = 10.0
_PASSING = (LogUnavailableError, LogFullError, ViewsUnavailableError, OSError)  # a server starts again, or is freed


@dataclass(frozen=True, kw_only=True)
class ConsumerJob:
    """What a consumer is to do.

    Attributes:
        open_log: Opens the log; called again after it was away or replaced.
        tools: Stores, decoding, policy and rules.
        views: Batch's views.
        partition_of: Gives the partition of each item, by their ids and the number of partitions.
        state_file: Where it says how it is.
        clock: Tells now, UTC, for that file.
        publish_seconds: How often each partition says what changed, and how often we look what is ours.
        checkpoint_seconds: How often its state is stored.
        once: Leave when all that is in the log is counted, said and stored.
    """

    open_log: Callable[[], OpenedLog]
    tools: Tools
    views: BatchViews
    partition_of: Callable[[int], PartitionOf]
    state_file: Path
    clock: Clock
    publish_seconds: float = 1.0
    checkpoint_seconds: float = 10.0
    once: bool = False


def run(job: ConsumerJob, stop: Stop) -> None:
    """Count until `stop` is set, or once; what was counted is stored then.

    Raises:
        LakeboardError: what does not pass by itself.
    """
    state = StateFile(job.state_file, job.clock)
    try:
        _Service(job, stop, state).work()
    except LakeboardError as error:
        state.change(FAILED, str(error))
        raise
    state.change(STOPPED)


@dataclass
class _Due:
    """When a partition's next steps are due, seconds of the monotonic clock."""

    checkpoint: float = 0.0
    again: float = 0.0  # after it could not go on
    problem: str = ""
    failures: int = 0


@dataclass
class _Service:
    """One run of the service."""

    job: ConsumerJob
    stop: Stop
    state: StateFile
    _works: list[PartitionWork] = field(default_factory=list)
    _due: dict[int, _Due] = field(default_factory=dict)
    _view: ViewInUse = field(init=False)
    _sharing: Sharing = field(init=False)
    _look_at: float = 0.0
    _publish_at: float = 0.0
    _waits: int = 0
    _patient_until: float = field(default_factory=lambda: time.monotonic() + _PATIENT_SECONDS)

    def __post_init__(self) -> None:
        self._sharing = Sharing(self.job.tools.leases)
        self._view = ViewInUse(self.job.views, self.job.partition_of, self.job.tools.tell)

    def work(self) -> None:
        """Work until asked to stop, through everything that passes by itself."""
        while not self.stop.is_set():
            try:
                log = self.job.open_log()
                try:
                    if self._consume(log):
                        return
                finally:
                    log.close()
            except LogReplacedError as error:
                self._start_over(error)
            except _PASSING as error:
                self._wait(error)

    def _consume(self, log: OpenedLog) -> bool:
        """Count one log; return whether all is done."""
        self._know(log)
        self._sharing.look(self._works)  # while the views server is away, nothing is stored and no lease renewed
        hold(log, {})
        while not self.stop.is_set():
            self._look(log)
            busy = False
            for work in self._works:
                if work.lease is not None:
                    busy |= self._step(work, log)
                if self.stop.is_set():
                    break
            self._publish()
            if self.job.once and not busy and self._is_done():
                break
            self._waits = 0
            if not busy:
                self.stop.wait(_POLL_SECONDS)
        self._leave(log)
        return True

    def _know(self, log: OpenedLog) -> None:
        """Know the partitions of a log; what was counted of another one is forgotten."""
        partitions = list(log.partitions(Stream.PLAYS))
        if [work.partition for work in self._works] != partitions:
            self._works = [PartitionWork(tools=self.job.tools, partition=partition) for partition in partitions]
            self._due = {work.number: _Due() for work in self._works}
        for work in self._works:
            if work.lease is not None and work.log_id != log.log_id:
                self.job.tools.leases.release(work.lease)
                work.start_over(lost_end=False)
        self._look_at = 0.0

    def _look(self, log: OpenedLog) -> None:
        """As often as lists are said: keep what is ours, take what is free, look for a new view, say how it goes."""
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + self.job.publish_seconds
        if self._view.look(len(self._works)):
            for work in self._works:
                self._view.hand(work)
        for work in self._works:
            if work.lease is not None:
                self._guard(work, lambda w: self.job.tools.leases.renew(w.lease) if w.lease else None)
        self._share(log)
        self._report(log)

    def _share(self, log: OpenedLog) -> None:
        """Take what is free and of our part, and leave what is of another's."""
        self._sharing.look(self._works)
        if (left := self._sharing.to_leave(self._works)) is not None:
            self.job.tools.tell("partition is left to another consumer", partition=str(left.partition))
            self._finish(left, log)
        for work in self._works:
            due, now = self._due[work.number], time.monotonic()
            if work.lease is None and now >= due.again and self._sharing.may_take(work) and work.take(log.log_id):
                self._sharing.taken()
                due.checkpoint = now + self._spread(work)
                self._view.hand(work)
                if now > self._look_at:  # large states take a while, and those that are ours must be kept meanwhile
                    break

    def _step(self, work: PartitionWork, log: OpenedLog) -> bool:
        """Take one partition on by a micro-batch and what is due; return whether there was anything to read."""
        due, now = self._due[work.number], time.monotonic()
        busy: bool | None = None
        if now >= due.again:
            busy = self._guard(work, lambda w: w.read(log))
            if busy is not None:
                due.problem, due.failures = "", 0
        if work.lease is not None and now >= due.checkpoint and now >= due.again:
            due.checkpoint = now + self.job.checkpoint_seconds
            self._checkpoint(work, log)
        return bool(busy)

    def _publish(self) -> None:
        """Once a second: let all partitions say what changed, for one moment, so that what they say fits together."""
        if (now := time.monotonic()) < self._publish_at:
            return
        self._publish_at = now + self.job.publish_seconds
        moment = common_moment(self._works)
        for work in self._works:
            if work.is_ready:
                self._guard(work, lambda w: w.publish(moment))

    def _checkpoint(self, work: PartitionWork, log: OpenedLog) -> None:
        self._guard(work, lambda w: w.checkpoint(log))
        if work.lease is not None:
            note_checkpoint(work)

    def _guard(self, work: PartitionWork, step: Callable[[PartitionWork], bool | None]) -> bool | None:
        """Do a step of one partition and return what it does; None when it failed, which does not stop the others."""
        try:
            return bool(step(work))
        except (LogReplacedError, *_PASSING):
            raise
        except LeaseLostError as error:
            self.job.tools.tell("partition left", partition=str(work.partition), problem=str(error))
            if work.lease is not None:
                self.job.tools.leases.release(work.lease)
            work.lease = None
        except TrimmedError as error:
            self.job.tools.tell("log was trimmed", partition=str(work.partition), problem=str(error))
            work.start_fresh(work.log_id, EntryId.parse(error.trimmed_through))
            self._view.hand(work)
        except LakeboardError as error:
            self._hold(work, error)
        return None

    def _hold(self, work: PartitionWork, error: LakeboardError) -> None:
        """Leave a partition that cannot go on alone for a while; of one that went back use what is stored."""
        if self.job.once:
            raise error
        due = self._due[work.number]
        seconds = min(_SHORTEST_WAIT_SECONDS * 2.0 ** min(due.failures, 16), _LONGEST_WAIT_SECONDS)
        due.failures += 1
        due.again, due.problem = time.monotonic() + seconds, str(error)
        self.job.tools.tell("partition held", partition=str(work.partition), problem=str(error), seconds=seconds)
        if isinstance(error, LogWentBackError) and work.lease is not None:
            self.job.tools.leases.release(work.lease)
            work.lease = work.live = None

    def _report(self, log: OpenedLog) -> None:
        held = {str(work.partition): self._due[work.number].problem for work in self._works}
        self.state.working(self._works, log_id=log.log_id, view=self._view.version,
                           held={name: problem for name, problem in held.items() if problem})  # fmt: skip

    def _is_done(self) -> bool:
        """Say whether everything is counted, but for what another consumer is counting still after some time."""
        ours = [work for work in self._works if work.lease is not None]
        others = [str(work.partition) for work in self._works if work.lease is None]
        if not all(work.at_end for work in ours) or (others and time.monotonic() < self._patient_until):
            return False
        if others:
            self.job.tools.tell("another consumer counts", partitions=others)
        return True

    def _leave(self, log: OpenedLog) -> None:
        """Say and store what is counted, and leave the partitions to others."""
        self._report(log)
        for work in self._works:
            self._finish(work, log)
        self._sharing.leave()

    def _finish(self, work: PartitionWork, log: OpenedLog) -> None:
        if work.lease is not None and work.is_ready:
            self._guard(work, lambda w: w.publish())
        if work.lease is not None:
            self._checkpoint(work, log)
        if work.lease is not None:
            self.job.tools.leases.release(work.lease)
            work.lease = None

    def _start_over(self, error: LogReplacedError) -> None:
        """Begin again with another log, or with this one that lost its end."""
        self.job.tools.tell("log replaced", problem=str(error))
        for work in self._works:
            if isinstance(error, LogLostEndError) and str(work.partition) == error.partition:
                if work.lease is not None:
                    self.job.tools.leases.release(work.lease)
                work.start_over(lost_end=True)

    def _spread(self, work: PartitionWork) -> float:
        """Return when the first checkpoint of a partition is due, so that not all are written at once."""
        return self.job.checkpoint_seconds * (work.number + 1) / len(self._works)

    def _wait(self, error: Exception) -> None:
        seconds = min(_SHORTEST_WAIT_SECONDS * 2.0 ** min(self._waits, 16), _LONGEST_WAIT_SECONDS)
        self._waits += 1
        problem = str(error) or type(error).__name__
        self.state.change(WAITING, problem)
        self.job.tools.tell("waiting", problem=problem, seconds=seconds)
        self.stop.wait(seconds)
