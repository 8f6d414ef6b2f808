"""What a consumer says of itself: a file for `lakeboard status`, and metrics."""

import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

import msgspec
from prometheus_client import Counter, Histogram

from domain.clock import Clock
from speed_layer.consumer_partition import PartitionWork
from speed_layer.partition import Meter

STATE_FILE = "speed.json"
STARTING, WORKING, WAITING, STOPPED, FAILED = "starting", "working", "waiting", "stopped", "failed"

_PLAYS = Counter("lakeboard_speed_plays_total", "Plays read by the live counting, by what became of them.", ["outcome"])
_CHECKPOINT_SECONDS = Histogram("lakeboard_speed_checkpoint_seconds", "To store the live state of a partition.")
_CHECKPOINT_BYTES = Counter("lakeboard_speed_checkpoint_bytes_total", "Bytes of live state stored.")


class PartitionReport(msgspec.Struct, frozen=True, kw_only=True):
    """How far a partition is counted.

    Attributes:
        position: Last entry counted, `<ms>-<sequence>`.
        as_of: Log time read through, UTC.
        lag_seconds: How far the log's clock was ahead of that when it was read last; None before it was read.
        publishes: Whether it says its lists; not before it is where the lists in the views server are.
        checkpoint_bytes: Of the last checkpoint, what had to be written; None before the first one.
        checkpoint_seconds: How long it took.
        plays: By what became of them, since the state began.
    """

    position: str
    as_of: datetime
    lag_seconds: float | None
    publishes: bool
    checkpoint_bytes: int | None
    checkpoint_seconds: float | None
    plays: Mapping[str, int]


class State(msgspec.Struct, kw_only=True):
    """The consumer as of the last change; times UTC.

    Attributes:
        pid: Its process.
        since: When it started.
        state: starting, working, waiting, stopped or failed.
        changed_at: When it came into this state.
        written_at: When this was written.
        problem: What it waits for or failed of; empty otherwise.
        log_id: The log it reads.
        view: Batch view in use.
        partitions: Those that it works on, by name as `plays:0`.
        held: Partitions that cannot go on -> why.
    """

    pid: int
    since: datetime
    state: str = STARTING
    changed_at: datetime
    written_at: datetime
    problem: str = ""
    log_id: str = ""
    view: str | None = None
    partitions: Mapping[str, PartitionReport] = {}
    held: Mapping[str, str] = {}


class StateFile:
    """Keeps the state of this process in a file; each write replaces it whole.

    Args:
        path: Of the file; its folder is made.
        clock: Tells now, UTC.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._metered: dict[str, Mapping[Meter, int]] = {}
        now = clock()
        self.state = State(pid=os.getpid(), since=now, changed_at=now, written_at=now)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._write()

    def change(self, state: str, problem: str = "") -> None:
        """Say what it does now; nothing is written when that is what it did before."""
        if (state, problem) == (self.state.state, self.state.problem):
            return
        self.state.state, self.state.problem, self.state.changed_at = state, problem, self._clock()
        self._write()

    def working(
        self, works: Iterable[PartitionWork], *, log_id: str, view: str | None, held: Mapping[str, str]
    ) -> None:
        """Say how far the partitions are that it works on."""
        if self.state.state != WORKING:
            self.state.state, self.state.problem, self.state.changed_at = WORKING, "", self._clock()
        ours = [work for work in works if work.lease is not None and work.live is not None]
        self.state.log_id, self.state.view, self.state.held = log_id, view, held
        self.state.partitions = {str(work.partition): _report(work) for work in ours}
        self._write()
        for work in ours:
            self._measure(work)

    def _measure(self, work: PartitionWork) -> None:
        name, live = str(work.partition), work.live
        if live is None:
            return
        before = self._metered.get(name, {})
        for meter, number in live.meters.items():
            more = number - before.get(meter, 0)
            _PLAYS.labels(meter.value).inc(max(more, 0))  # a state that began anew has less
        self._metered[name] = dict(live.meters)

    def _write(self) -> None:
        self.state.written_at = self._clock()
        beside = self.path.with_name(f"{self.path.name}.{self.state.pid}.new")
        beside.write_bytes(msgspec.json.format(msgspec.json.encode(self.state)))
        beside.replace(self.path)


def note_checkpoint(work: PartitionWork) -> None:
    """Take a checkpoint into the metrics."""
    if work.checkpointed is not None:
        _CHECKPOINT_SECONDS.observe(work.checkpointed.seconds)
        _CHECKPOINT_BYTES.inc(work.checkpointed.bytes_written)


def _report(work: PartitionWork) -> PartitionReport:
    assert work.live is not None  # noqa: S101  the caller looked
    done = work.checkpointed
    return PartitionReport(
        position=str(work.after),
        as_of=work.live.as_of,
        lag_seconds=None if work.lag_ms is None else work.lag_ms / 1000,
        publishes=work.is_ready,
        checkpoint_bytes=None if done is None else done.bytes_written,
        checkpoint_seconds=None if done is None else round(done.seconds, 4),
        plays={meter.value: number for meter, number in work.live.meters.items()},
    )
