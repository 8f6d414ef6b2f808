"""What a running stack says of itself in `run/stack.json`, and whose turn it is: one supervisor a home."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import msgspec

from domain.errors import LakeboardError

_POLL_SECONDS = 0.05


class PartReport(msgspec.Struct, frozen=True, kw_only=True):
    """One part, as of the last change of any."""

    name: str
    pid: int | None
    state: str
    since: datetime
    restarts: int
    last_end: str
    problem: str


class StackReport(msgspec.Struct, frozen=True, kw_only=True):
    """The whole stack; moments in UTC of the machine's clock."""

    pid: int
    started: datetime
    host: str
    port: int
    replay: str
    parts: list[PartReport]


class StackRunningError(LakeboardError):
    """Another supervisor runs the stack of this home."""

    def __init__(self, home: Path, holder: str) -> None:
        super().__init__(home, holder)
        self.home = home
        self.holder = holder

    def __str__(self) -> str:
        return (
            f"the stack of {self.home} is run by process {self.holder or 'unknown'} already: `lakeboard status` shows "
            "it; stop that one with Ctrl-C or `kill`, or set LAKEBOARD_HOME to another folder"
        )


class ServerLeftError(LakeboardError):
    """A server of this home runs without a supervisor."""

    def __init__(self, name: str, where: Path) -> None:
        super().__init__(name, where)
        self.name = name
        self.where = where

    def __str__(self) -> str:
        return (
            f"a {self.name} server that is not of this stack listens on {self.where}: two would write the same files; "
            "stop it, then run `lakeboard up` again"
        )


def report_path(run: Path) -> Path:
    """Return where the supervisor of a home writes its report."""
    return run / "stack.json"


def write_report(run: Path, report: StackReport) -> None:
    """Put a report in the place of the one before, in one step."""
    path = report_path(run)
    new = path.with_suffix(".new")
    new.write_bytes(msgspec.json.format(msgspec.json.encode(report)))
    new.replace(path)


def read_report(run: Path) -> StackReport | None:
    """Return the report of the stack that runs now, None when none does, whatever a killed one left."""
    try:
        with (run / "stack.lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return None
    except BlockingIOError:
        pass
    else:
        return None
    try:
        return msgspec.json.decode(report_path(run).read_bytes(), type=StackReport)
    except (FileNotFoundError, msgspec.DecodeError):  # it is just starting
        return None


@contextmanager
def only_supervisor(home: Path, run: Path) -> Iterator[None]:
    """Be the one supervisor of a home; the kernel frees the lock however we end.

    Raises:
        StackRunningError: another one is.
    """
    descriptor = os.open(run / "stack.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 40, 0).decode(errors="replace")
            raise StackRunningError(home, holder) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def server_lock(run: Path, name: str, *, wait_seconds: float = 10.0) -> Iterator[int]:
    """Hold the lock of a server's files, and give its descriptor to be inherited by the server.

    The lock lives as long as the last process that holds the descriptor: a server that a killed supervisor left for a
    moment keeps the next one from starting a second server on the same files.

    Raises:
        ServerLeftError: it stayed taken.
    """
    path = run / f"{name}.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + wait_seconds
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    raise ServerLeftError(name, path) from error
                time.sleep(_POLL_SECONDS)
        yield descriptor
    finally:
        os.close(descriptor)
