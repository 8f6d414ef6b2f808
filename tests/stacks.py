"""The whole stack for tests: `lakeboard up` as a user runs it, in a home of the test, stopped by process id."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from domain.tables import PLAYS

LAKEBOARD = Path(sys.executable).with_name("lakeboard")
FAST_COMMITS = {
    "LAKEBOARD_COMMIT_SECONDS": "0.5",
    "LAKEBOARD_LOG_MAX_MEMORY": "128m",
    "LAKEBOARD_HOURLY": "false",
    "LAKEBOARD_READS_PER_SECOND": "1000",
}
ROOT = Path(__file__).parents[1]
_START_SECONDS = 60.0
_OK, _ACCEPTED = 200, 202


def until(fact: Callable[[], object], what: str, seconds: float = 30.0) -> None:
    """Wait for a fact, with a deadline."""
    deadline = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.05)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


@dataclass
class Stack:
    """One home and the stack that runs in it; `command` may be another program that runs the same."""

    home: Path
    port: int = field(default_factory=free_port)
    settings: dict[str, str] = field(default_factory=lambda: dict(FAST_COMMITS))
    command: Sequence[str] = (str(LAKEBOARD), "up")
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "LAKEBOARD_HOME": str(self.home), **self.settings}

    @property
    def said(self) -> str:
        return (self.home / "up.out").read_text(encoding="utf-8")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until everything is up."""
        self.begin()
        until(lambda: "Everything is up" in self.said or self.has_ended(), "everything is up", _START_SECONDS)
        assert "Everything is up" in self.said, self.said

    def begin(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "up.out").open("wb") as out:
            command = [*self.command, "--port", str(self.port)]
            self.process = subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=out, stderr=out)

    def has_ended(self) -> bool:
        assert self.process is not None
        return self.process.poll() is not None

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """Ask it to stop; return its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(timeout=60)

    def end(self) -> None:
        """End whatever runs, after a test."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        until(lambda: not self.processes(), "no process is left after the supervisor was killed")

    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads((self.home / "run" / "stack.json").read_bytes())
        return report

    def part(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = next(part for part in self.report()["parts"] if part["name"] == name)
        return found

    def processes(self) -> dict[int, str]:
        """Return every process of this home but the supervisor, by environment or, as servers overwrite it, command."""
        home, found = str(self.home), {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                environment = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
                command = (folder / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
            except OSError:  # no process, or one that ended meanwhile
                continue
            if f"LAKEBOARD_HOME={home}" in environment or f"{home}/" in command:
                found[int(folder.name)] = command
        own = {os.getpid(), self.process.pid if self.process else 0}
        return {pid: what for pid, what in found.items() if pid not in own}

    def workers(self) -> list[int]:
        """Return the API's worker processes."""
        children = Path(f"/proc/{self.part('api')['pid']}/task/{self.part('api')['pid']}/children")
        return [int(pid) for pid in children.read_text().split()]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [LAKEBOARD, *arguments], env=self.environment, capture_output=True, text=True, timeout=300, check=False
        )

    def post(self, body: object, *, timeout: float = 10.0) -> tuple[int, dict[str, Any], dict[str, str]]:
        """Post events with the developer's key: status, body and headers. Errors of the connection are raised."""
        request = urllib.request.Request(  # noqa: S310  our own address
            f"{self.url}/v1/events",
            data=json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {(self.home / 'dev.key').read_text().strip()}"},
            method="POST",
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:  # noqa: S310
                return answer.status, json.load(answer), dict(answer.headers)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error), dict(error.headers)

    def ids_in_bronze(self) -> list[str]:
        """Return the event ids of bronze, as often as they are there."""
        path = self.home / "lake" / PLAYS.name
        if not DeltaTable.is_deltatable(str(path)):
            return []
        ids: list[str] = DeltaTable(path).to_pyarrow_table(columns=["event_id"])["event_id"].to_pylist()
        return ids


@contextmanager
def running_stack(home: Path, **options: Any) -> Iterator[Stack]:
    """Run a stack for a test."""
    stack = Stack(home, **options)
    try:
        stack.start()
        yield stack
    finally:
        stack.end()
