"""One part of the stack: how it is started, when it is well, and when it is started again."""

import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from signal import SIGKILL, SIGTERM, Signals

from lakeboard.stack.health import Probe
from lakeboard.stack.processes import has_ended, signal_group, started

PROBE_EVERY_SECONDS = 1.0
UNWELL_AFTER_PROBES = 3
LONGEST_LOG_BYTES = 10 << 20


class PartState(StrEnum):
    """Where a part stands."""

    WAITING = "waiting"  # for parts that it needs, or for its time to start again
    STARTING = "starting"  # runs and has not answered yet
    UP = "up"
    UNWELL = "unwell"  # was up, runs still, and does not answer or waits for something
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How long a part that ended waits before it is started again, seconds."""

    first: float = 1.0
    longest: float = 30.0
    healthy: float = 60.0  # of health, after which an end counts as the first one

    def before(self, end: int) -> float:
        """Return the wait after the n-th end in a row, the first being 1."""
        return min(self.first * 2.0 ** min(end - 1, 16), self.longest)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartPlan:
    """How to run a part.

    Attributes:
        name: Its name, and that of its log file.
        command: Program and arguments.
        probe: Says whether it is well.
        needs: Parts that must be well before it is started.
        held: Descriptors it inherits.
        on_ready: Called each time it became well, before those that need it are started.
        stop_seconds: How long it may take to end when it is asked to.
    """

    name: str
    command: Sequence[str]
    probe: Probe
    needs: Collection[str] = ()
    held: Sequence[int] = ()
    on_ready: Callable[[], None] = lambda: None
    stop_seconds: float = 20.0


@dataclass(kw_only=True)
class Part:
    """A part that runs, or waits to. All moments are of the monotonic clock.

    Attributes:
        say: Told in one line what happened.
        restarts: How often it was started again.
        last_end: How it ended last, empty if it never did.
        problem: What its last probe said, empty when it was well.
    """

    plan: PartPlan
    log: Path
    environment: Mapping[str, str]
    say: Callable[[str], None]
    backoff: Backoff = field(default_factory=Backoff)
    state: PartState = PartState.WAITING
    restarts: int = 0
    last_end: str = ""
    problem: str = ""
    process: subprocess.Popen[bytes] | None = None
    _since: float = 0.0
    _ends: int = 0
    _start_at: float = 0.0
    _probe_at: float = 0.0
    _misses: int = 0

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return None if self.process is None else self.process.pid

    def step(self, well: Collection[str]) -> None:
        """Look once: notice an end, start what may be started, probe what runs.

        Args:
            well: Names of the parts that are up.
        """
        now = time.monotonic()
        if self.process is not None and has_ended(self.process):
            self._ended(now)
        if self.process is None:
            if now >= self._start_at and all(need in well for need in self.plan.needs):
                self._start(now)
        elif now >= self._probe_at:
            self._probe(now)

    def ask_to_stop(self) -> None:
        """Ask it to end; `has_stopped` says when it did."""
        self.state = PartState.STOPPED
        if self.process is not None and not has_ended(self.process):
            self.process.send_signal(SIGTERM)

    def has_stopped(self) -> bool:
        """Say whether nothing of it runs any more."""
        return self.process is None or has_ended(self.process)

    def kill(self) -> None:
        """End it and all that it started, at once."""
        if self.process is not None:
            signal_group(self.process, SIGKILL)
            self.process.wait()

    def _start(self, now: float) -> None:
        rotate(self.log)
        self.process = started(self.plan.command, log=self.log, environment=self.environment, held=self.plan.held)
        self.state, self._since, self._probe_at, self._misses = PartState.STARTING, now, now, 0
        self.restarts += bool(self.last_end)

    def _ended(self, now: float) -> None:
        assert self.process is not None  # noqa: S101  the caller looked
        if self.state is PartState.UP and now - self._since >= self.backoff.healthy:
            self._ends = 0
        self._ends += 1
        wait = self.backoff.before(self._ends)
        self.last_end = _ending(self.process.returncode, self.log)
        self.say(f"{self.plan.name} {self.last_end}; starting it again in {wait:g} s (see {self.log})")
        self.process, self.state, self._start_at, self.problem = None, PartState.WAITING, now + wait, ""

    def _probe(self, now: float) -> None:
        assert self.process is not None  # noqa: S101  the caller looked
        self.problem = self.plan.probe(self.process.pid) or ""
        if not self.problem:
            self._found_well(now)
            return
        self._misses += 1
        if self.state is PartState.UP and self._misses >= UNWELL_AFTER_PROBES:
            self.state = PartState.UNWELL
            self.say(f"{self.plan.name} (process {self.pid}) {self.problem}")
        self._probe_at = now + (PROBE_EVERY_SECONDS if self.state is not PartState.STARTING else 0.1)

    def _found_well(self, now: float) -> None:
        if self.state is not PartState.UP:
            self.plan.on_ready()
            self.state, self._since = PartState.UP, now
            self.say(f"{self.plan.name} is up (process {self.pid})")
        self._misses, self._probe_at = 0, now + PROBE_EVERY_SECONDS


def rotate(log: Path) -> None:
    """Put a log that grew long aside; one older file is kept."""
    if log.exists() and log.stat().st_size > LONGEST_LOG_BYTES:
        log.replace(log.with_name(f"{log.name}.1"))


def _ending(code: int, log: Path) -> str:
    return f"ended with code {code}{_last_words(log)}" if code >= 0 else f"was ended by {Signals(-code).name}"


def _last_words(log: Path) -> str:
    """Return the last line of a log as ` (...)`, empty where there is none."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 2000))
        lines = file.read().decode(errors="replace").split("\n")
    words = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f" ({words[:200]})" if words else ""
