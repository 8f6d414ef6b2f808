"""What `lakeboard status` finds out: parts, log, lake. Looks only, from another process than the stack."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from domain.errors import LakeboardError
from domain.log import Partition, Stream
from domain.speed_policy import DEFAULT_SPEED_POLICY
from domain.tables import PLAYS
from domain.windows import HOUR
from ingest.delta_log import newest_version
from ingest.lake_reader import newest_release
from ingest.redis_log import RedisLog
from lakeboard.commands.reading import clock_time
from lakeboard.settings import Settings, size_in_bytes
from lakeboard.stack.part import PartState
from lakeboard.stack.parts import LAKE_WRITER_STATE, SPEED_STATE
from lakeboard.stack.processes import is_alive
from lakeboard.stack.speed_facts import SpeedFacts, speed_facts
from lakeboard.stack.state import PartReport, StackReport, read_report

_TIMEOUT_SECONDS = 5.0
_LATE_CYCLES = 3  # a lake writer that missed so many commits is stuck or waits for something
_LATE_LEAST = timedelta(seconds=60)
_LATE_BATCH = timedelta(hours=3)  # an hour is certified some minutes after its end: two were missed


class PartFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One part; `since` is when it came into this state."""

    name: str
    state: str
    pid: int | None
    restarts: int
    since: datetime
    age_seconds: int
    last_end: str
    problem: str


class PartitionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One partition that holds or has held entries; lag = age of the oldest entry that a reader has not committed."""

    partition: str
    entries: int
    end: str
    lag_seconds: dict[str, float]


class LogFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The event log; sizes in bytes, None where the disk is another machine's."""

    log_id: str
    used_memory: int
    max_memory: int
    file: int
    free_disk: int | None
    refusal: str | None
    readers: Sequence[str]
    partitions: Sequence[PartitionFacts]


class LakeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The lake; None where there is none yet."""

    last_commit: datetime | None
    last_commit_age_seconds: int | None
    release: int | None
    release_age_seconds: int | None
    frontier: datetime | None


class StackFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything; `problems` is empty when all is well."""

    home: str
    pid: int | None
    url: str | None
    replay: str
    problems: Sequence[str]
    parts: Sequence[PartFacts]
    log: LogFacts | None
    lake: LakeFacts
    speed: SpeedFacts | None


def stack_facts(settings: Settings) -> StackFacts:
    """Look at everything that a stack consists of."""
    now = settings.machine_clock()
    report = read_report(settings.run_folder)
    problems = [] if report else [f"no stack runs in {settings.home}: start it with `lakeboard up`"]
    parts = [_part(each, now) for each in report.parts] if report else []
    problems += [f"{part.name} is {part.state}{_why(part)}" for part in parts if part.state != PartState.UP]
    log, trouble = _log(settings, report)
    lake = _lake(settings, now)
    problems += trouble
    if report is not None:
        problems += [*_lateness(settings, now), *batch_lateness(lake, settings.clock())]
    speed = speed_facts(settings.run_folder / SPEED_STATE, now) if report is not None else None
    problems += speed.problems if speed else []
    return StackFacts(
        home=str(settings.home),
        pid=report.pid if report else None,
        url=f"http://{report.host}:{report.port}" if report else None,
        replay=report.replay if report else "",
        problems=problems,
        parts=parts,
        log=log,
        lake=lake,
        speed=speed,
    )


def _part(each: PartReport, now: datetime) -> PartFacts:
    is_gone = each.pid is not None and not is_alive(each.pid)
    return PartFacts(
        name=each.name,
        state="gone" if is_gone else each.state,
        pid=each.pid,
        restarts=each.restarts,
        since=each.since,
        age_seconds=_seconds(now - each.since),
        last_end=each.last_end,
        problem=each.problem,
    )


def _why(part: PartFacts) -> str:
    return f" ({part.problem or part.last_end})" if part.problem or part.last_end else ""


def _log(settings: Settings, report: StackReport | None) -> tuple[LogFacts | None, list[str]]:
    """Look at the log, when a stack runs it or when it is a server of its own."""
    if report is None and not settings.log_url:
        return None, []
    try:
        with RedisLog.open(settings.log_address, timeout_seconds=_TIMEOUT_SECONDS) as log:
            facts = _facts_of(log, settings)
    except LakeboardError as error:
        return None, [str(error)]
    return facts, [f"the log takes no events: {facts.refusal}; see docs/runbook.md"] if facts.refusal else []


def _facts_of(log: RedisLog, settings: Settings) -> LogFacts:
    room = log.room(folder=settings.log_folder, min_free_bytes=size_in_bytes(settings.log_min_free_disk))
    readers = log.readers()
    return LogFacts(
        log_id=log.log_id,
        used_memory=room.used_bytes,
        max_memory=room.max_bytes,
        file=room.log_bytes,
        free_disk=room.free_bytes,
        refusal=room.refusal(),
        readers=readers,
        partitions=[each for stream in Stream for each in _partitions(log, stream, readers)],
    )


def _partitions(log: RedisLog, stream: Stream, readers: Sequence[str]) -> list[PartitionFacts]:
    ends, lengths = log.end_offsets(stream), log.lengths(stream)
    lags: dict[Partition, dict[str, float]] = {partition: {} for partition in ends}
    for reader in readers:
        for partition, offset in log.offsets(reader, stream).items():
            reading = log.read(partition, after=offset, limit=1) if offset < ends[partition] else None
            first = reading.entries[0].id.ms if reading and reading.entries else None
            at = 0 if reading is None else int(reading.at.timestamp() * 1000)
            lags[partition][reader] = 0.0 if first is None else max(at - first, 0) / 1000
    return [
        PartitionFacts(partition=str(p), entries=lengths[p], end=str(ends[p]), lag_seconds=lags[p])
        for p in ends
        if lengths[p] or ends[p].ms
    ]


def _lake(settings: Settings, now: datetime) -> LakeFacts:
    committed = last_commit(settings.lake_root)
    newest = newest_release(settings.lake_root) if committed else None
    return LakeFacts(
        last_commit=committed,
        last_commit_age_seconds=_seconds(now - committed) if committed else None,
        release=newest.release if newest else None,
        release_age_seconds=_seconds(settings.clock() - newest.created_at) if newest else None,
        frontier=newest.frontier if newest else None,
    )


def last_commit(lake_root: Path) -> datetime | None:
    """Return when the newest commit of the plays was written, by the machine's clock; None before the first."""
    path = lake_root / PLAYS.name
    version = newest_version(path)
    if version < 0:
        return None
    written = (path / "_delta_log" / f"{version:020d}.json").stat().st_mtime
    return datetime.fromtimestamp(written, UTC)


def _lateness(settings: Settings, now: datetime) -> list[str]:
    """Say when the lake writer, which writes its state with each commit, has not done so for some time."""
    try:
        written = (settings.run_folder / LAKE_WRITER_STATE).stat().st_mtime
    except FileNotFoundError:
        return []  # said by its part
    age = now - datetime.fromtimestamp(written, UTC)
    if age <= _late_after(settings):
        return []
    every = f"it should commit every {settings.commit_seconds:g} s"
    return [f"the lake writer said nothing for {_seconds(age)} s and {every}; see docs/runbook.md"]


def batch_lateness(lake: LakeFacts, now: datetime) -> list[str]:
    """Say when batch is so late that the live day leans on its buckets alone.

    Args:
        lake: Its newest release; one without says nothing, as there is nothing to be late with.
        now: By the clock of the stack, UTC.
    """
    if lake.frontier is None or now - lake.frontier <= _LATE_BATCH:
        return []
    end = lake.frontier + DEFAULT_SPEED_POLICY.hours_kept * HOUR
    return [
        f"batch is late: certified up to {clock_time(lake.frontier)} only. The live day has all until "
        f"{clock_time(end)}; see logs/hourly.log, or run `lakeboard recount` and `lakeboard publish`"
    ]


def _late_after(settings: Settings) -> timedelta:
    return max(_LATE_CYCLES * timedelta(seconds=settings.commit_seconds), _LATE_LEAST)


def _seconds(age: timedelta) -> int:
    return max(int(age.total_seconds()), 0)
