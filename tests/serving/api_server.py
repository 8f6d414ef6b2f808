"""A real API for tests: `lakeboard api` as a user starts it, or the same server with settings that nobody may set."""

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from domain.log import BEGINNING, Stream
from ingest.log_entry import decode_plays
from ingest.redis_log import RedisLog
from serving.keys import KeyFile, Role

ROOT = Path(__file__).parents[2]
_START_SECONDS = 30.0
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # made once: httpx would read all certificates for each client
_SERVE = """
import json, sys
from pathlib import Path
from serving.server import serve
from serving.settings import ApiSettings
given = json.loads(sys.argv[1])
paths = {name: Path(given.pop(name)) for name in ("home", "run", "lake_root") if name in given}
given["cors_origins"] = tuple(given.get("cors_origins", ()))
if text := given.pop("boards_text", ""):
    from domain.boards.definitions import Boards
    given["boards"] = Boards.parse(text)
serve(ApiSettings(**paths, **given))
"""


def free_port() -> int:
    """A port that nobody had a moment ago."""
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        port: int = trial.getsockname()[1]
        return port


@dataclass
class Api:
    """One running API.

    Attributes:
        home: Its folder.
        log_url: Its log.
        workers: Processes.
        special: Settings of `ApiSettings` that are not for users; then it is not started by the command line.
        views_url: Its views server; empty = none, so no charts.
    """

    home: Path
    log_url: str
    workers: int = 1
    special: Mapping[str, Any] = field(default_factory=dict)
    views_url: str = ""
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def lines_file(self) -> Path:
        return self.home / "api.stderr"

    def start(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        with self.lines_file.open("ab") as stderr:
            self.process = subprocess.Popen(self._command(), cwd=ROOT, env=self._environment(), stdout=stderr,
                                            stderr=stderr)  # fmt: skip
        until(self._answers, "the API answers")

    def stop(self) -> int:
        """Ask it to end, as a supervisor does, and return its exit code."""
        assert self.process is not None
        self.process.terminate()
        code = self.process.wait(timeout=30)
        self.process = None
        return code

    def client(self, key: str | None = None, **options: Any) -> httpx.Client:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=20, verify=_NO_TLS, **options)

    def key(self, *roles: Role, name: str = "tester") -> str:
        """Make a key and return its text; the API knows it within a second."""
        return KeyFile(self.home).add(name, roles or (Role.PRODUCER,))[1]

    def lines(self) -> list[dict[str, Any]]:
        """What it logged, line by line."""
        return [json.loads(line) for line in self.lines_file.read_text(encoding="utf-8").splitlines()]

    def worker_pids(self) -> list[int]:
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(encoding="ascii")
        return [int(pid) for pid in children.split()]

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"the API ended: {self.lines_file.read_text(encoding='utf-8')}"
        try:
            return httpx.get(f"{self.url}/healthz", timeout=5, verify=_NO_TLS).status_code == 200
        except httpx.TransportError:
            return False

    def _command(self) -> list[str]:
        if not self.special:
            return [sys.executable, "-m", "lakeboard", "api", "--port", str(self.port), "--workers", str(self.workers)]
        given = {
            "home": str(self.home),
            "run": str(self.home / "run"),
            "log_url": self.log_url,
            "port": self.port,
            "views_url": self.views_url,
        }
        return [sys.executable, "-c", _SERVE, json.dumps(given | {"workers": self.workers, **self.special})]

    def _environment(self) -> dict[str, str]:
        servers = {"LAKEBOARD_LOG_URL": self.log_url, "LAKEBOARD_VIEWS_URL": self.views_url}
        return {**os.environ, "LAKEBOARD_HOME": str(self.home), **servers}


@contextmanager
def api(
    home: Path, log_url: str, *, workers: int = 1, special: Mapping[str, Any] | None = None, views_url: str = ""
) -> Iterator[Api]:
    """Run an API for a test, with a key file that is there before it starts."""
    running = Api(home, log_url, workers=workers, special=special or {}, views_url=views_url)
    running.start()
    try:
        yield running
    finally:
        if running.process is not None:
            workers_left = running.worker_pids() if running.process.poll() is None else []
            running.process.kill()
            running.process.wait()
            for pid in workers_left:
                until(lambda pid=pid: has_ended(pid), "a worker ends with its parent")


def appended(log_url: str) -> list[tuple[Any, ...]]:
    """Every event in the log, as (event id, item, region, user, count, source), partition by partition."""
    found: list[tuple[Any, ...]] = []
    with RedisLog.open(log_url) as log:
        for partition in log.partitions(Stream.PLAYS):
            for entry in log.read(partition, after=BEGINNING, limit=1_000_000).entries:
                plays = decode_plays(entry.body, where=str(entry.id))
                users = plays.user_ids or [None] * len(plays)
                counts = [int.from_bytes(plays.counts[8 * n : 8 * n + 8], "little") for n in range(len(plays))]
                sources = [name for name, number in plays.sources for _ in range(number)]
                found += zip(plays.event_ids, plays.item_ids, plays.regions, users, counts, sources, strict=True)
    return found


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or only its exit code is left."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


def until(holds: Any, what: str, seconds: float = _START_SECONDS) -> None:
    """Wait for a fact, and fail when it does not come."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.02)


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    os.kill(pid, number)
