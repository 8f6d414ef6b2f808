"""Counting by the clock: recount and publish once another hour can be certified, until an orchestrator does so.

And restore, when live counting had to begin without plays that the lake has: its server keeps nothing on disk. All
three run as commands of their own, so that what Spark takes is given back, and a killed one is repaired as by hand.
"""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from domain.clock import Clock
from domain.frontier import certifiable_end
from domain.policy import Policy
from domain.tables import PLAYS
from ingest.delta_log import newest_version
from ingest.lake_writer import log_read_to
from ingest.read_releases import newest_release
from lakeboard.commands.service import AskedToEnd
from lakeboard.part_state import PartStateFile

STATE_FILE = "hourly.json"
WORKING, FAILED, STOPPED = "working", "failed", "stopped"
_LOOK_SECONDS = 5.0
_FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS = 30.0, 600.0
_POLL_SECONDS = 0.2
Incomplete = frozenset[tuple[int, int]]  # partition, and log time from which it is complete
_PATIENCE_SECONDS = 20.0  # a recount that is asked to end leaves the lake as it is, or the next one repairs it


@dataclass(frozen=True, kw_only=True)
class HourlyJob:
    """What to do by the clock.

    Attributes:
        lake_root: Folder of the lake.
        policy: Gives the grace after an hour's end.
        clock: Tells now, UTC; that of a replay in a replay.
        incomplete: Which partitions live counting began without earlier plays, and when; a new set is worth a restore.
        state: Where it says how it is.
        tell: Told what happened.
    """

    lake_root: Path
    policy: Policy
    clock: Clock
    incomplete: Callable[[], Incomplete]
    state: PartStateFile
    tell: Callable[..., object]


def certifiable(lake_root: Path, now: datetime, policy: Policy) -> datetime | None:
    """Return the end of the hours that a recount could certify now, UTC, exclusive; None while the lake is empty."""
    version = newest_version(lake_root / PLAYS.name)
    if version < 0:
        return None
    return certifiable_end(log_read_to(lake_root, version).values(), now, policy)


def is_due(lake_root: Path, now: datetime, policy: Policy, *, since: datetime) -> bool:
    """Say whether a recount would certify an hour that none has certified.

    Args:
        lake_root: Folder of the lake.
        now: The present moment, UTC.
        policy: Gives the grace after an hour's end.
        since: In a lake without a release, hours that ended before this moment make nothing due: it waits for the
            first hour to end instead of starting Spark beside the first event.
    """
    end = certifiable(lake_root, now, policy)
    if end is None:
        return False
    newest = newest_release(lake_root)
    return end > (certifiable_end((), since, policy) if newest is None else newest.frontier)


def run(job: HourlyJob, stop: AskedToEnd) -> None:
    """Do it by the clock until asked to end; what fails is tried again, less and less often."""
    since, retry = job.clock(), _FIRST_RETRY_SECONDS
    restored_for: Incomplete = frozenset()
    while not stop.is_set():
        incomplete = job.incomplete()
        if incomplete - restored_for:
            restored_for = incomplete
            _told(job, "restore", stop)  # what it cannot restore, the present hours bring by and by
        problem = ""
        if is_due(job.lake_root, job.clock(), job.policy, since=since):
            problem = _told(job, "recount", stop) or _told(job, "publish", stop)
        job.state.change(FAILED if problem else WORKING, problem)
        stop.wait(retry if problem else _LOOK_SECONDS)
        retry = min(2 * retry, _LONGEST_RETRY_SECONDS) if problem else _FIRST_RETRY_SECONDS
    job.state.change(STOPPED)


def _told(job: HourlyJob, command: str, stop: AskedToEnd) -> str:
    """Run a command and tell how it ended; return why it failed, empty when it is done or was asked to end."""
    if stop.is_set():
        return ""
    job.tell("begun", command=command)
    code, last = _ended(command, stop)
    problem = f"lakeboard {command} ended with code {code}: {last}" if code and not stop.is_set() else ""
    job.tell("failed" if problem else "ended", command=command, code=code, said=last)
    job.state.note(**{command: {"at": job.clock(), "code": code, "said": last}})
    return problem


def _ended(command: str, stop: AskedToEnd) -> tuple[int, str]:
    """Run one command of ours to its end, or end it when asked to; return its code and the last line it said."""
    whole = [sys.executable, "-m", "lakeboard", command]
    with subprocess.Popen(whole, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        while True:
            try:
                said, _ = process.communicate(timeout=_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                if not stop.is_set():
                    continue
                process.terminate()
                said = _rest(process)
            lines = said.decode(errors="replace").strip().splitlines()
            return process.returncode, lines[-1] if lines else "nothing was said"


def _rest(process: "subprocess.Popen[bytes]") -> bytes:
    try:
        return process.communicate(timeout=_PATIENCE_SECONDS)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0]
