"""Counting by the clock: recount and publish once another hour can be certified, until an orchestrator does so.

And restore, when live counting had to begin without plays that the lake has: its server keeps nothing on disk. And
rebuild boards once a day, and when they have grown. All run as commands of their own, so that what Spark takes is given
back, and a killed one is repaired as by hand.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from domain.clock import Clock
from domain.frontier import certifiable_end
from domain.policy import Policy
from domain.tables import PLAYS
from ingest.delta_log import newest_version
from ingest.lake_writer import log_read_to
from ingest.read_releases import newest_release
from lakeboard.part_state import PartStateFile

STATE_FILE = "hourly.json"
WORKING, FAILED, STOPPED = "working", "failed", "stopped"
_LOOK_SECONDS = 5.0
_FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS = 30.0, 600.0
_POLL_SECONDS = 0.2
_LOOK_FOR_VIEW_SECONDS = 30.0  # opening the lake for it costs some
_LOOK_FOR_BOARDS_SECONDS = 30.0  # the same
_REBUILD_AGAIN_SECONDS = 1800.0  # what refuses a rebuild seldom passes by itself
REBUILD = "rebuild-board --all"
Incomplete = frozenset[tuple[int, str]]  # partition number and log id
_PATIENCE_SECONDS = 20.0  # a recount that is asked to end leaves the lake as it is, or the next one repairs it


class Stop(Protocol):
    """Whether somebody asked to end."""

    def is_set(self) -> bool:
        """Say whether it was asked."""

    def wait(self, timeout: float) -> object:
        """Return soon after it was asked, or after so many seconds."""


def ended(command: str, stop: Stop) -> tuple[int, str]:
    """Run one command of ours to its end, or end it when asked to; return its code and the last line it said.

    Args:
        command: With its options, which have no spaces in them.
        stop: Asks it to end.
    """
    whole = [sys.executable, "-m", "lakeboard", *command.split()]
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


@dataclass(frozen=True, kw_only=True)
class HourlyJob:
    """What to do by the clock.

    Attributes:
        lake_root: Folder of the lake.
        policy: Gives the grace after an hour's end.
        clock: Tells now, UTC; that of a replay in a replay.
        incomplete: Which partitions live counting began without earlier plays of which log; a new one is worth a
            restore.
        unpublished: Whether the newest release could be handed over to the live charts and was not.
        rebuild_due: Why boards are to be rebuilt; empty = they are not.
        state: Where it says how it is.
        tell: Told what happened.
        command: Runs one command of ours; returns its code and the last line it said.
    """

    lake_root: Path
    policy: Policy
    clock: Clock
    incomplete: Callable[[], Incomplete]
    unpublished: Callable[[], bool]
    rebuild_due: Callable[[], str]
    state: PartStateFile
    tell: Callable[..., object]
    command: Callable[[str, Stop], tuple[int, str]] = ended


def certifiable(lake_root: Path, now: datetime, policy: Policy) -> datetime | None:
    """Return the end of the hours that a recount could certify now, UTC, exclusive; None while the lake is empty."""
    version = newest_version(lake_root / PLAYS.name)
    if version < 0:
        return None
    return certifiable_end(log_read_to(lake_root, version).values(), now, policy)


def due_end(lake_root: Path, now: datetime, policy: Policy, *, since: datetime) -> datetime | None:
    """Return the end of the hours that a recount would certify and none has, UTC, exclusive; None when there is none.

    Args:
        lake_root: Folder of the lake.
        now: The present moment, UTC.
        policy: Gives the grace after an hour's end.
        since: In a lake without a release, hours that ended before this moment make nothing due: it waits for the
            first hour to end instead of starting Spark beside the first event.
    """
    end = certifiable(lake_root, now, policy)
    if end is None:
        return None
    newest = newest_release(lake_root)
    return end if end > (certifiable_end((), since, policy) if newest is None else newest.frontier) else None


def run(job: HourlyJob, stop: Stop) -> None:
    """Do it by the clock until asked to end; what fails is tried again, less and less often."""
    job.state.change(WORKING)
    since, retry = job.clock(), _FIRST_RETRY_SECONDS
    done = _Done()
    while not stop.is_set():
        problems = [_restored(job, done, stop), _recounted(job, done, since, stop), _published(job, done, stop)]
        problem = next(filter(None, problems), "")
        said = problem or _rebuilt(job, done, stop)
        job.state.change(FAILED if said else WORKING, said)
        stop.wait(retry if problem else _LOOK_SECONDS)
        retry = min(2 * retry, _LONGEST_RETRY_SECONDS) if problem else _FIRST_RETRY_SECONDS
    job.state.change(STOPPED)


@dataclass
class _Done:
    """What was done for what, so that it is not done for the same again."""

    restored_for: Incomplete = frozenset()
    recounted_to: datetime | None = None
    look_for_view_at: float = 0.0
    look_for_boards_at: float = 0.0
    boards_problem: str = ""


def _restored(job: HourlyJob, done: _Done, stop: Stop) -> str:
    incomplete = job.incomplete()
    done.restored_for &= incomplete  # what is whole again may be lost again
    if not incomplete - done.restored_for:
        return ""
    problem = _told(job, "restore", stop)
    done.restored_for = done.restored_for if problem else incomplete
    return problem


def _recounted(job: HourlyJob, done: _Done, since: datetime, stop: Stop) -> str:
    """Recount once for each end: where no play is, nothing is certified, and the frontier stays as it is."""
    end = due_end(job.lake_root, job.clock(), job.policy, since=since)
    if end is None or end == done.recounted_to:
        return ""
    problem = _told(job, "recount", stop)
    done.recounted_to = done.recounted_to if problem else end
    done.look_for_view_at = 0.0
    return problem


def _published(job: HourlyJob, done: _Done, stop: Stop) -> str:
    """Publish what is not in force: after a recount, whoever ran it, and when the views server lost the view."""
    if time.monotonic() < done.look_for_view_at:
        return ""
    problem = _told(job, "publish", stop) if job.unpublished() else ""
    done.look_for_view_at = 0.0 if problem else time.monotonic() + _LOOK_FOR_VIEW_SECONDS
    return problem


def _rebuilt(job: HourlyJob, done: _Done, stop: Stop) -> str:
    """Rebuild boards when it is due; what refuses it stays said, and does not make hours wait."""
    if time.monotonic() < done.look_for_boards_at:
        return done.boards_problem
    if why := job.rebuild_due():
        job.tell("boards are rebuilt", why=why)
        done.boards_problem = _told(job, REBUILD, stop)
    wait = _REBUILD_AGAIN_SECONDS if done.boards_problem else _LOOK_FOR_BOARDS_SECONDS
    done.look_for_boards_at = time.monotonic() + wait
    return done.boards_problem


def _told(job: HourlyJob, command: str, stop: Stop) -> str:
    """Run a command and tell how it ended; return why it failed, empty when it is done or was asked to end."""
    if stop.is_set():
        return ""
    job.tell("begun", command=command)
    code, last = job.command(command, stop)
    problem = f"lakeboard {command} ended with code {code}: {last}" if code and not stop.is_set() else ""
    job.tell("failed" if problem else "ended", command=command, code=code, said=last)
    name = command.partition(" ")[0].replace("-", "_")
    job.state.note(**{name: {"at": job.clock(), "code": code, "said": last}})
    return problem
