"""A real views server for tests, started with the product's own settings."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lakeboard.stack.servers import server_binary, socket_path, views_server_command
from tests.servers import LogServer

_BYTES = 256 << 20


@dataclass
class ViewsServer(LogServer):
    """A views server that a test may kill and start again; nothing of it stays."""

    @property
    def socket(self) -> Path:
        return socket_path(self.folder, "views")

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        binary = server_binary(Path(sys.prefix), "")
        command = views_server_command(binary, folder=self.folder, socket=self.socket, max_bytes=_BYTES)
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._await()


@contextmanager
def views_server(folder: Path) -> Iterator[ViewsServer]:
    """Run a views server for a test."""
    server = ViewsServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()
