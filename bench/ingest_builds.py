"""The services that `bench/ingest.py` compares: each is started here, on loopback only, and stopped by its process."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import httpx
import redis

from bench.peers.postgres import INSTALL, postgres, programs, rows_held
from bench.peers.redis_app import STREAM
from domain.log import BEGINNING, Stream
from ingest.log_entry import decode_plays
from ingest.redis_log import RedisLog
from lakeboard.settings import Settings
from lakeboard.stack.servers import address, log_server_command, server_binary, socket_path, views_server_command
from serving.keys import KeyFile, Limits, Role

LOG_BYTES = 4 << 30
_PAGE_ENTRIES = 500
_START_SECONDS = 60.0
_STOP_SECONDS = 30.0
LIMITS = Limits(events_per_second=1_000_000_000, requests_per_second=1_000_000_000)


class NotStartedError(Exception):
    """A service did not start; the text is what it printed."""

    def __init__(self, command: str, printed: str) -> None:
        super().__init__(command, printed)
        self.command = command
        self.printed = printed

    def __str__(self) -> str:
        return f"{self.command} did not start:\n{self.printed}"


@dataclass(frozen=True, slots=True)
class Service:
    """A running service: where it takes events, with which key, and how many events it holds whose ids begin so."""

    url: str
    key: str
    held: Callable[[str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """One way to build it.

    Attributes:
        name: For the table.
        what: What it is, in a line, and what is durable before it answers.
        start: Runs it.
        missing: Why it is left out here, None when it can run.
    """

    name: str
    what: str
    start: Callable[[], AbstractContextManager[Service]]
    missing: str | None = None


def builds() -> Sequence[Build]:
    """Return ours and the peers."""
    parser = "httptools" if find_spec("httptools") else "h11"
    loop = "uvloop" if find_spec("uvloop") else "asyncio"
    plain = f"uvicorn ({parser}, {loop}) + FastAPI, one worker"
    found = programs()
    version = f" {found.parent.name}" if found else ""
    return (
        Build(
            name="lakeboard",
            what="`lakeboard api`, one worker, key and limits checked: fdatasync of the log once for all that one turn "
            "of the event loop brought, before their 202",
            start=_lakeboard,
        ),
        Build(
            name="XADD",
            what=f"{plain}, one XADD a request; the same server and settings, appendfsync always",
            start=_one_xadd,
        ),
        Build(
            name="INSERT",
            what=f"{plain}, one INSERT a request, asyncpg; PostgreSQL{version} with its "
            "defaults, synchronous_commit on",
            start=_one_insert,
            missing=None if found else f"no PostgreSQL server: {INSTALL}",
        ),
    )


@contextmanager
def _lakeboard() -> Iterator[Service]:
    with redis_server() as (home, url):
        _, key = KeyFile(home).add("bench", [Role.PRODUCER], LIMITS)
        port = free_port()
        command = [sys.executable, "-m", "lakeboard", "api", "--port", str(port)]
        with service_process(command, port, "/healthz", LAKEBOARD_HOME=str(home), LAKEBOARD_LOG_URL=url):
            yield Service(f"http://127.0.0.1:{port}/v1/events", key, lambda prefix: _held_by_log(url, prefix))


@contextmanager
def _one_xadd() -> Iterator[Service]:
    with redis_server() as (_, url):
        port = free_port()
        command = [sys.executable, "-m", "bench.peers.redis_app", "--address", url, "--port", str(port)]
        with service_process(command, port, "/docs"):
            yield Service(f"http://127.0.0.1:{port}/v1/events", "none", lambda prefix: _held_by_stream(url, prefix))


@contextmanager
def _one_insert() -> Iterator[Service]:
    found = programs()
    assert found is not None  # noqa: S101  it is left out otherwise
    with postgres(found) as folder:
        port = free_port()
        command = [sys.executable, "-m", "bench.peers.postgres_app", "--socket-folder", str(folder)]
        with service_process([*command, "--port", str(port)], port, "/docs"):
            yield Service(f"http://127.0.0.1:{port}/v1/events", "none", lambda prefix: rows_held(folder, prefix))


@contextmanager
def redis_server(*, durable: bool = True) -> Iterator[tuple[Path, str]]:
    """Run a server with the settings of the product's log; yield a home folder and its address.

    Without `durable` it is one as for views: nothing goes to the disk.
    """
    with tempfile.TemporaryDirectory(prefix="lakeboard-bench-") as name:
        home = Path(name)
        socket_file = socket_path(home, "log")
        binary = server_binary(Path(sys.prefix), Settings.unset().search_path)
        command_of = log_server_command if durable else views_server_command
        command = command_of(binary, folder=home, socket=socket_file, max_bytes=LOG_BYTES)
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        url = address(socket_file)
        try:
            if not _until(lambda: _pings(url), server):
                raise NotStartedError(" ".join(command), "it does not answer")
            yield home, url
        finally:
            server.terminate()
            server.wait(_STOP_SECONDS)


@contextmanager
def service_process(command: Sequence[str], port: int, path: str, **environment: str) -> Iterator[None]:
    """Run a service until the block ends; what it prints is shown when it does not start."""
    with tempfile.TemporaryFile() as printed:
        service = subprocess.Popen(command, stdout=printed, stderr=printed, env=os.environ | environment)
        try:
            if not _until(lambda: _answers(f"http://127.0.0.1:{port}{path}"), service):
                printed.seek(0)
                raise NotStartedError(" ".join(command), printed.read().decode(errors="replace"))
            yield
        finally:
            service.terminate()
            try:
                service.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                service.kill()
                service.wait()


def _until(fact: Callable[[], bool], process: subprocess.Popen[bytes]) -> bool:
    """Wait for a fact while a process runs, and not for ever; say whether it came."""
    deadline = time.monotonic() + _START_SECONDS
    while not fact():
        if process.poll() is not None or time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _pings(url: str) -> bool:
    try:
        with redis.Redis.from_url(url) as client:
            return bool(client.ping())
    except redis.exceptions.RedisError:
        return False


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2.0, trust_env=False).is_success
    except httpx.TransportError:
        return False


def _held_by_log(url: str, prefix: str) -> int:
    """Count the events of every partition by reading all of them."""
    events = 0
    with RedisLog.open(url) as log:
        for partition in log.partitions(Stream.PLAYS):
            after = BEGINNING
            while (reading := log.read(partition, after=after, limit=_PAGE_ENTRIES)).entries:
                for entry in reading.entries:
                    ids = decode_plays(entry.body, where=str(entry.id)).event_ids
                    events += sum(event_id.startswith(prefix) for event_id in ids)
                after = reading.entries[-1].id
    return events


def _held_by_stream(url: str, prefix: str) -> int:
    events, after, begin = 0, "-", f'"event_id":"{prefix}'.encode()
    with redis.Redis.from_url(url) as client:
        while found := client.xrange(STREAM, min=after, count=_PAGE_ENTRIES):
            events += sum(fields[b"plays"].count(begin) for _, fields in found)
            after = f"({found[-1][0].decode()}"
    return events


def free_port() -> int:
    """Return a port of loopback that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
