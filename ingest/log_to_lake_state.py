"""What a lake writer says of itself: a file for `lakeboard status`, and metrics."""

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import msgspec
from prometheus_client import Counter, Gauge, Histogram

from domain.clock import Clock
from ingest.log_to_lake import Committed, LogToLake

STATE_FILE = "lake-writer.json"
STARTING, WORKING, WAITING, STOPPED, FAILED = "starting", "working", "waiting", "stopped", "failed"

_EVENTS = Counter("lakeboard_lake_writer_events_total", "Events that the lake writer committed to bronze.")
_COMMITS = Counter("lakeboard_lake_writer_commits_total", "Commits of the lake writer, those without events too.")
_WAITS = Counter("lakeboard_lake_writer_waits_total", "Times the lake writer had to wait for the log or the disk.")
_SECONDS = Histogram("lakeboard_lake_writer_commit_seconds", "From the start of a commit to the end of the trim.")
_LAST_COMMIT = Gauge(
    "lakeboard_lake_writer_last_commit_timestamp_seconds", "When it committed last.", multiprocess_mode="mostrecent"
)
_READ_TO = Gauge(
    "lakeboard_lake_writer_read_to_timestamp_seconds",
    "The log's time up to which the lake has all of a partition.",
    ["partition"],
    multiprocess_mode="mostrecent",
)


class PartitionState(msgspec.Struct, frozen=True, kw_only=True):
    """How far a partition is in the lake.

    Attributes:
        position: Last entry committed, `<ms>-<sequence>`.
        read_to: The log's time up to which the lake has all of it, UTC; None before its end was reached once.
        lag_seconds: How far that lay behind the newest reading of the log at the last commit.
    """

    position: str
    read_to: datetime | None
    lag_seconds: float | None


class State(msgspec.Struct, kw_only=True):
    """The lake writer as of the last change; times UTC.

    Attributes:
        pid: Its process.
        since: When it started.
        state: starting, working, waiting, stopped or failed.
        changed_at: When it came into this state.
        problem: What it waits for or failed of; empty otherwise.
        log_id: The log it reads.
        last_commit_at: None before the first commit of this process.
        version: Of `bronze/plays`, made by that commit.
        events: Rows of that commit.
        events_total: Rows since it started.
        partitions: By name, as `plays:0`.
    """

    pid: int
    since: datetime
    state: str = STARTING
    changed_at: datetime
    problem: str = ""
    log_id: str = ""
    last_commit_at: datetime | None = None
    version: int = -1
    events: int = 0
    events_total: int = 0
    partitions: Mapping[str, PartitionState] = {}


class StateFile:
    """Keeps the state of this process in a file; each write replaces it whole.

    Args:
        path: Of the file; its folder is made.
        clock: Tells now, UTC.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        now = clock()
        self.state = State(pid=os.getpid(), since=now, changed_at=now)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._write()

    def change(self, state: str, problem: str = "") -> None:
        """Say what it does now; nothing is written when that is what it did before."""
        if (state, problem) == (self.state.state, self.state.problem):
            return
        _WAITS.inc(state == WAITING)
        self.state.state, self.state.problem, self.state.changed_at = state, problem, self._clock()
        self._write()

    def committed(self, done: Committed, writer: LogToLake) -> float | None:
        """Say what a commit moved; return the largest lag in seconds, None while a partition's end was never read."""
        now, state = self._clock(), self.state
        state.state, state.problem, state.log_id, state.last_commit_at = WORKING, "", writer.log.log_id, now
        state.version, state.events = done.version, done.events
        state.events_total += done.events
        state.partitions = partition_states(writer)
        self._write()
        _EVENTS.inc(done.events)
        _COMMITS.inc()
        _SECONDS.observe(done.seconds)
        _LAST_COMMIT.set(now.timestamp())
        for name, partition in state.partitions.items():
            if partition.read_to is not None:
                _READ_TO.labels(name).set(partition.read_to.timestamp())
        lags = [partition.lag_seconds for partition in state.partitions.values()]
        known = [lag for lag in lags if lag is not None]
        return max(known, default=0.0) if len(known) == len(lags) else None

    def _write(self) -> None:
        beside = self.path.with_name(f"{self.path.name}.{self.state.pid}.new")
        beside.write_bytes(msgspec.json.format(msgspec.json.encode(self.state)))
        beside.replace(self.path)


def partition_states(writer: LogToLake) -> dict[str, PartitionState]:
    """Return how far each partition is, by its name."""
    moments = [progress.read_to for progress in writer.progress.values() if progress.read_to is not None]
    newest = max(moments, default=None)

    def lag_seconds(read_to: datetime | None) -> float | None:
        return None if newest is None or read_to is None else (newest - read_to).total_seconds()

    return {
        str(partition): PartitionState(
            position=str(progress.read), read_to=progress.read_to, lag_seconds=lag_seconds(progress.read_to)
        )
        for partition, progress in writer.progress.items()
    }
