"""Real servers for tests: started with the product's own settings, stopped by process id."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import redis

from lakeboard.stack.servers import address, log_server_command, server_binary, socket_path

LOG_BYTES = 256 << 20
_START_SECONDS = 20.0


@dataclass
class LogServer:
    """A log server that a test may kill and start again; its files stay."""

    folder: Path
    max_bytes: int = LOG_BYTES
    extra: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def socket(self) -> Path:
        return socket_path(self.folder, "log")

    @property
    def address(self) -> str:
        return address(self.socket)

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        binary = server_binary(Path(sys.prefix), "")
        command = log_server_command(binary, folder=self.folder, socket=self.socket, max_bytes=self.max_bytes)
        self.process = subprocess.Popen([*command, *self.extra], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._await()

    def kill(self) -> None:
        """End it at once, as `kill -9` does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.address)

    def _await(self) -> None:
        """Wait until it answers: bounded polling of a fact, not a hope."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                with self.client() as client:
                    client.ping()
            except redis.exceptions.RedisError:
                assert self.process is not None
                assert self.process.poll() is None, "the server ended while it started"
                assert time.monotonic() < deadline, "the server does not answer"
                time.sleep(0.01)
            else:
                return


@contextmanager
def log_server(folder: Path, *, max_bytes: int = LOG_BYTES, extra: tuple[str, ...] = ()) -> Iterator[LogServer]:
    """Run a log server for a test."""
    server = LogServer(folder, max_bytes=max_bytes, extra=extra)
    server.start()
    try:
        yield server
    finally:
        server.kill()
