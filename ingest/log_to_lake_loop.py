"""The lake writer as a service: one per lake, commits by the clock, waits for what is away, stops when asked to."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from deltalake.exceptions import DeltaError

from domain.board_tables import SCORES
from domain.clock import Clock
from domain.errors import LakeboardError
from domain.log import LogFullError, LogLostEndError, LogReplacedError, LogUnavailableError
from ingest.lake_writer import BronzeWriter, MovedError, NotCommittedError
from ingest.log_to_lake import SCORES_TO_LAKE, Committed, LogToLake
from ingest.log_to_lake_state import FAILED, STOPPED, WAITING, WORKING, StateFile
from ingest.redis_log import RedisLog
from ingest.table_lock import TableLockedError, locked

LOCK = "lake_writer"
_LOCK_SECONDS = 0.2
_POLL_SECONDS = 1.0
_SHORTEST_WAIT_SECONDS = 0.25
_LONGEST_WAIT_SECONDS = 10.0
_SCORES_READ_TO = timedelta(minutes=10)  # periods are archived by it, and there may be no scores for days
# What passes by itself: a server that starts again, a disk that is freed, a rival that is done.
_PASSING = (LogUnavailableError, LogFullError, MovedError, NotCommittedError, TableLockedError, OSError, DeltaError)


class LakeWriterRunningError(LakeboardError):
    """Another lake writer works on this lake."""

    def __init__(self, holder: str) -> None:
        super().__init__(holder)
        self.holder = holder

    def __str__(self) -> str:
        return (
            f"a lake writer works on this lake already ({self.holder}) and one is enough: leave it alone, "
            "or stop it and run this again"
        )


class Tell(Protocol):
    """Takes what happened, with its facts."""

    def __call__(self, event: str, /, **facts: object) -> None:
        """Note one happening."""


class Stop(Protocol):
    """Whether somebody asked the lake writer to end; a `threading.Event` is one."""

    def is_set(self) -> bool:
        """Say whether it was asked."""

    def wait(self, timeout: float) -> object:
        """Return when it was asked, or after so many seconds."""


@dataclass(frozen=True, kw_only=True)
class LakeWriterJob:
    """What a lake writer is to do.

    Attributes:
        lake_root: Folder of the lake.
        open_log: Opens the log; called again after it was away.
        state_file: Where it says how it is.
        clock: Tells now, UTC, for that file.
        tell: Told what happened.
        every_seconds: How often it commits.
        rows: Events after which it commits earlier.
        once: Leave when all that is there is in the lake.
        wait: Wait while another lake writer works on this lake.
        on_step: Told the name of each step of a commit as it begins.
    """

    lake_root: Path
    open_log: Callable[[], RedisLog]
    state_file: Path
    clock: Clock
    tell: Tell
    every_seconds: float = 30.0
    rows: int = 200_000
    once: bool = False
    wait: bool = True
    on_step: Callable[[str], None] = lambda step: None


def run(job: LakeWriterJob, stop: Stop) -> None:
    """Move events from the log to the lake until `stop` is set, or once.

    Args:
        job: What to do.
        stop: When it is set, what was read is committed and the function returns.

    Raises:
        LakeWriterRunningError: another one works and `job.wait` is false.
        LakeBehindLogError: the log dropped entries that the lake does not have.
        UnreadableEntryError: an entry of an unknown version; what lies before it is in the log still.
        UnsafeLogServerError: the server would lose accepted events.
    """
    with _alone(job, stop) as is_alone:
        if not is_alone:
            return
        state = StateFile(job.state_file, job.clock)
        try:
            _Service(job, stop, state).work()
        except LakeboardError as error:
            state.change(FAILED, str(error))
            raise
        state.change(STOPPED)


@contextmanager
def _alone(job: LakeWriterJob, stop: Stop) -> Iterator[bool]:
    """Hold the lake writer's lock of this lake; false when asked to stop before it was free."""
    told = False
    while not stop.is_set():
        lock = locked(job.lake_root, LOCK, wait_seconds=_LOCK_SECONDS if job.wait else 0)
        try:
            lock.__enter__()
        except TableLockedError as error:
            if not job.wait:
                raise LakeWriterRunningError(error.holder) from None
            if not told:
                job.tell("another lake writer works on this lake", holder=error.holder)
                told = True
            continue
        try:
            yield True
        finally:
            lock.__exit__(None, None, None)
        return
    yield False


@dataclass
class _Service:
    """One run of the service, the lock being held."""

    job: LakeWriterJob
    stop: Stop
    state: StateFile
    _bronze: BronzeWriter = field(init=False)
    _waits: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._bronze = BronzeWriter(self.job.lake_root, on_wait=self._held)

    def work(self) -> None:
        """Work until asked to stop, through everything that passes by itself."""
        while not self.stop.is_set():
            try:
                self._bronze.create()
                with self.job.open_log() as log:
                    if self._move(log):
                        return
            except LogLostEndError as error:
                self._start_over(error)
            except LogReplacedError as error:
                self.job.tell("log replaced", expected=error.expected, found=error.found)
            except _PASSING as error:
                self._wait(error)

    def _move(self, log: RedisLog) -> bool:
        """Move the events of one log; return whether all is done."""
        writer = LogToLake(log, self._bronze, self.job.rows, self.job.on_step)
        scores = LogToLake(log, self._bronze, self.job.rows, self.job.on_step, SCORES_TO_LAKE)
        writer.start()
        scores.start()
        self.state.change(WORKING)
        self.job.tell(
            "reading", log_id=log.log_id, positions={str(p): str(at.read) for p, at in writer.progress.items()}
        )
        while True:
            self._gather(writer, scores)
            if scores.events or scores.is_news(_SCORES_READ_TO):
                self._tell_of(scores.commit(), SCORES.name)
            done = writer.commit()
            lag = self.state.committed(done, writer)
            self._waits = 0
            self.job.tell("committed", version=done.version, events=done.events, partitions=done.partitions,
                          seconds=round(done.seconds, 3), lag_seconds=lag)  # fmt: skip
            if self.stop.is_set() or (self.job.once and writer.at_end and scores.at_end):
                return True

    def _tell_of(self, done: Committed, table: str) -> None:
        self.job.tell("committed", table=table, version=done.version, events=done.events, partitions=done.partitions,
                      seconds=round(done.seconds, 3))  # fmt: skip

    def _gather(self, *writers: LogToLake) -> None:
        """Read until a commit is due or full; when asked to stop, read nothing more."""
        due = time.monotonic() + (0 if self.job.once else self.job.every_seconds)
        while not self.stop.is_set():
            for writer in writers:
                writer.poll()
            left = due - time.monotonic()
            if any(writer.is_full for writer in writers) or left <= 0:
                return
            self.stop.wait(min(_POLL_SECONDS, left))

    def _start_over(self, error: LogLostEndError) -> None:
        """Give a log that lost its end another identity; what the lake has of it already will be found as copies."""
        with self.job.open_log() as log:
            if log.log_id == error.log_id:
                log.start_over()
            self.job.tell("log lost its end", partition=error.partition, entry=error.entry, was=error.log_id,
                          log_id=log.log_id)  # fmt: skip

    def _held(self, table: str, holder: str) -> None:
        """Say that another process commits to a table, or compacts it."""
        self.state.change(WAITING, f"{table} is held by {holder}")
        self.job.tell("waiting", problem=f"{table} is held by {holder}")

    def _wait(self, error: Exception) -> None:
        seconds = min(_SHORTEST_WAIT_SECONDS * 2.0 ** min(self._waits, 16), _LONGEST_WAIT_SECONDS)
        self._waits += 1
        problem = str(error) or type(error).__name__
        self.state.change(WAITING, problem)
        self.job.tell("waiting", problem=problem, seconds=seconds)
        self.stop.wait(seconds)
