"""Child processes that do not outlive their parent, each with a process group of its own."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from serving.parent import die_with_parent


class Process(Protocol):
    """What is known of a started process."""

    @property
    def pid(self) -> int:
        """Its id, which is its group's too."""

    @property
    def returncode(self) -> int | None:
        """How it ended, minus the signal when one ended it; None before that."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""


def started(
    command: Sequence[str], *, log: Path, environment: Mapping[str, str], held: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start a part. It is killed with us, and what a terminal sends to us (Ctrl-C) does not reach it.

    Call it from the main thread only: the kernel watches the thread that started a process, not the process.

    Args:
        command: Program and arguments.
        log: Where its output is appended.
        environment: Its environment.
        held: Descriptors it inherits.
    """
    parent = os.getpid()
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            env=dict(environment),
            pass_fds=held,
            start_new_session=True,
            preexec_fn=lambda: die_with_parent(parent),  # noqa: PLW1509  safe: this process has one thread
        )
    finally:
        os.close(descriptor)


def has_ended(process: Process) -> bool:
    """Say whether a process is over, and end what is left of its group before its id can be anyone else's."""
    if process.returncode is not None:
        return True
    if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        return False
    signal_group(process, signal.SIGKILL)
    process.wait()
    return True


def signal_group(process: Process, number: signal.Signals) -> None:
    """Send a signal to a process and all that it started."""
    if process.returncode is not None:  # reaped: the id may be another's by now
        return
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return


def is_alive(pid: int) -> bool:
    """Say whether there is a process of this id; a dead one that nobody has reaped is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] != "Z"
