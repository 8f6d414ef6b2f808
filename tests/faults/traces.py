"""System calls of running processes, and what their order says about the disk."""

import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from tests.stacks import until

_CALLS = "read,readv,recvfrom,recvmsg,write,writev,sendto,sendmsg,fsync,fdatasync"
_RECEIVES, _SENDS = {"read", "readv", "recvfrom", "recvmsg"}, {"write", "writev", "sendto", "sendmsg"}
_SYNCS = {"fsync", "fdatasync"}
_LINE = re.compile(r"^(\d+) +(?:<\.\.\. (\w+) resumed>|(\w+)\((\d+))(.*)$")
_ENTRY = re.compile(r"\d{13}-\d+")
ACCEPTED = "HTTP/1.1 202"


@dataclass(frozen=True, slots=True)
class Call:
    """A call at the moment that matters: data was received, a sync is done, data begins to be sent."""

    pid: int
    name: str
    fd: int
    text: str

    @property
    def receives(self) -> bool:
        return self.name in _RECEIVES

    @property
    def sends(self) -> bool:
        return self.name in _SENDS

    @property
    def syncs(self) -> bool:
        return self.name in _SYNCS


@contextmanager
def traced(pids: Sequence[int], out: Path) -> Iterator[None]:
    """Trace processes with all of their threads; the trace is whole when this is left."""
    wanted = [part for pid in pids for part in ("-p", str(pid))]
    command = ["strace", "-f", "-s", "400", "-e", f"trace={_CALLS}", "-o", str(out), *wanted]
    told = out.with_suffix(".told")
    with told.open("wb") as file:
        tracer = subprocess.Popen(command, stderr=file)
    try:
        attached = [f"Process {pid} attached" for pid in pids]
        until(lambda: all(line in told.read_text() for line in attached), f"strace is attached: {told.read_text()}")
        yield
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.wait(timeout=30)


def calls_of(trace: Path) -> Iterator[Call]:
    """Read a trace; of a call that others interrupted, the half that matters."""
    begun: dict[tuple[int, str], int] = {}
    for line in trace.read_text(encoding="utf-8", errors="replace").splitlines():
        found = _LINE.match(line)
        if found is None:
            continue
        pid, resumed, name, fd, rest = int(found[1]), found[2], found[3], found[4], found[5]
        if resumed is not None:
            if resumed not in _SENDS and _succeeded(rest):
                yield Call(pid, resumed, begun.get((pid, resumed), -1), rest)
        elif rest.endswith("<unfinished ...>"):
            begun[pid, name] = int(fd)
            if name in _SENDS:
                yield Call(pid, name, int(fd), rest)
        elif _succeeded(rest) or (name in _SENDS and _was_detached(rest)):
            yield Call(pid, name, int(fd), rest)


def _succeeded(rest: str) -> bool:
    return re.search(r"= \d+$", rest) is not None


def _was_detached(rest: str) -> bool:
    """Whether the trace ended while the call ran: its data may be with the client already."""
    return rest.endswith("<detached ...>")


class _Stage(IntEnum):
    RECEIVED = 0
    WRITTEN = 1
    SYNCED = 2


@dataclass(slots=True)
class Answers:
    """What a log server answered to XADD.

    Attributes:
        synced: Answers sent after their entries were written and synced.
        early: Answers sent before.
    """

    synced: int = 0
    early: int = 0


def answers_of(trace: Path, *, server: int, file: int) -> Answers:
    """Judge every answer to XADD in a trace.

    Args:
        trace: Of the log's server.
        server: Its main thread.
        file: Its descriptor of the append-only file.
    """
    stages: dict[int, _Stage] = {}
    answers = Answers()
    for call in calls_of(trace):
        if call.syncs and call.fd == file:
            stages = {fd: _Stage.SYNCED if stage >= _Stage.WRITTEN else stage for fd, stage in stages.items()}
        elif call.pid != server:
            continue
        elif call.sends and call.fd == file:
            stages = {fd: max(stage, _Stage.WRITTEN) for fd, stage in stages.items()}
        elif call.receives and ("XADD" in call.text or call.fd in stages):
            stages[call.fd] = _Stage.RECEIVED
        elif call.sends and call.fd in stages and _ENTRY.search(call.text):
            is_synced = stages.pop(call.fd) is _Stage.SYNCED
            answers.synced += is_synced
            answers.early += not is_synced
    return answers


def accepted_without_sync(trace: Path, *, file: int) -> tuple[int, int]:
    """Return how many 202s a trace has, and before how many the log's file was not synced since the one before.

    For a client that sends one request after the other.
    """
    accepted = unsynced = syncs = 0
    for call in calls_of(trace):
        if call.syncs and call.fd == file:
            syncs += 1
        elif call.sends and ACCEPTED in call.text:
            accepted += 1
            unsynced += syncs == 0
            syncs = 0
    return accepted, unsynced


def append_only_file(pid: int) -> int:
    """Return a server's descriptor of the file that it appends to."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        if link.readlink().name.endswith(".incr.aof"):
            return int(link.name)
    message = f"process {pid} has no append-only file open"
    raise AssertionError(message)
