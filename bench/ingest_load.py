r"""Sends plays over HTTP as fast as the service answers, from a process of its own, and says how fast that was.

With Debian's wrk where it is installed, else with a bare asyncio client on raw sockets, which costs more.

  python -m bench.ingest_load --url http://127.0.0.1:8080/v1/events --key K --run r1 --rows 1 \
    --connections 32 --seconds 5
"""

import argparse
import asyncio
import json
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from math import ceil
from pathlib import Path
from statistics import quantiles
from urllib.parse import urlsplit

_SCRIPTS = Path(__file__).parent / "peers"
INSTALL_WRK = "apt-get install wrk"
_ITEMS = 20_000
_TIMEOUT_SECONDS = 20.0
_ACCEPTED = 202
_ROW = (
    '{"event_id":"%s","item_id":"Song %06d","region":"IN","user_id":"listener-%06d",'
    '"event_time":"2026-03-02T12:34:56.789Z","duration_ms":%d}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is sent: `rows` plays a request over so many connections; `run` begins all ids of it."""

    run: str
    rows: int
    connections: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What came of it.

    Attributes:
        requests: Answered ones.
        seconds: How long it took.
        p50_ms: Half of the answers took no longer, milliseconds.
        p99_ms: 99 of 100 took no longer.
        refused: Answers other than a success.
        broken: Connections that failed and answers that did not come in time.
        unanswered: Requests that may have been out when it ended, and whose events may be in the log.
    """

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float
    refused: int
    broken: int
    unanswered: int = 0

    @property
    def accepted(self) -> int:
        """Requests that were taken."""
        return self.requests - self.refused


def has_wrk() -> bool:
    """Say whether wrk is on PATH."""
    return shutil.which("wrk") is not None


def send_load(url: str, key: str, load: Load, *, to_the_end: bool = False) -> Loaded:
    """Run one load in a process of its own and wait for it.

    Args:
        url: Where events are taken.
        key: Text of the key.
        load: What to send.
        to_the_end: Every answer is waited for, which wrk does not do.
    """
    by_wrk = has_wrk() and not to_the_end
    if by_wrk:
        command = wrk_command(
            "load.lua", url, load.run, load.rows, key, connections=load.connections, seconds=load.seconds
        )
    else:
        command = [sys.executable, "-m", "bench.ingest_load", "--url", url, "--key", key, "--run", load.run]
        command += ["--rows", str(load.rows), "--connections", str(load.connections), "--seconds", str(load.seconds)]
    return loaded_by(command, load.seconds, unanswered=load.connections if by_wrk else 0)


def wrk_command(script: str, url: str, *words: object, connections: int, seconds: float) -> list[str]:
    """Return the command of wrk with one of the scripts of `peers/`."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{ceil(seconds)}s", "--timeout", f"{ceil(_TIMEOUT_SECONDS)}s"]
    return [*command, "-s", str(_SCRIPTS / script), url, "--", *map(str, words)]


def loaded_by(command: Sequence[str], seconds: float, *, unanswered: int = 0) -> Loaded:
    """Run a client for so many seconds; its last line says what came of it, as JSON."""
    limit = seconds + 3 * _TIMEOUT_SECONDS
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=limit).stdout
    return Loaded(**{"unanswered": unanswered, **json.loads(said.strip().splitlines()[-1])})


@dataclass(slots=True)
class _Client:
    """The bare client: one task a connection; at the end it waits for what is out."""

    url: str
    key: str
    load: Load
    sent: int = 0
    refused: int = 0
    broken: int = 0
    latencies: list[float] = field(default_factory=list)

    async def run(self) -> Loaded:
        """Send until the time is over."""
        began = time.perf_counter()
        bodies = self._bodies()
        tasks = [self._connection(began + self.load.seconds, bodies) for _ in range(self.load.connections)]
        await asyncio.gather(*tasks)
        seconds = time.perf_counter() - began
        cuts = quantiles(self.latencies, n=100) if len(self.latencies) > 1 else [0.0] * 99
        return Loaded(requests=len(self.latencies), seconds=seconds, p50_ms=1e3 * cuts[49], p99_ms=1e3 * cuts[98],
                      refused=self.refused, broken=self.broken)  # fmt: skip

    def _bodies(self) -> Callable[[str], str]:
        """Return what makes a body whose ids begin with a prefix, made beforehand but for the prefix."""
        made = [_ROW % (f"@-{place}", *_item(random.Random(place))) for place in range(max(self.load.rows, 256))]
        if self.load.rows > 1:
            template = f"[{','.join(made[: self.load.rows])}]"
            return lambda prefix: template.replace("@", prefix)
        return lambda prefix: made[self.sent % len(made)].replace("@", prefix, 1)

    async def _connection(self, end: float, bodies: Callable[[str], str]) -> None:
        loop = asyncio.get_running_loop()
        where = urlsplit(self.url)
        head = (
            f"POST {where.path} HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {self.key}\r\nContent-Length: "
        )
        with socket.create_connection((where.hostname or "", where.port or 80)) as connection:
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while time.perf_counter() < end:
                self.sent += 1
                body = bodies(f"{self.load.run}-{self.sent}")
                began = time.perf_counter()
                await loop.sock_sendall(connection, f"{head}{len(body)}\r\n\r\n{body}".encode())
                status = await _status(loop, connection)
                self.latencies.append(time.perf_counter() - began)
                self.refused += status != _ACCEPTED


async def _status(loop: asyncio.AbstractEventLoop, connection: socket.socket) -> int:
    """Read one whole answer and return its status."""
    data = b""
    while (end := data.find(b"\r\n\r\n")) < 0:
        data += await _more(loop, connection)
    length = int(data[:end].lower().split(b"content-length:")[1].split(b"\r\n")[0])
    while len(data) < end + 4 + length:
        data += await _more(loop, connection)
    return int(data[9:12])


async def _more(loop: asyncio.AbstractEventLoop, connection: socket.socket) -> bytes:
    data = await asyncio.wait_for(loop.sock_recv(connection, 1 << 16), _TIMEOUT_SECONDS)
    if not data:
        message = "the service closed the connection"
        raise ConnectionError(message)
    return data


def _item(dice: random.Random) -> tuple[int, int, int]:
    """Return item, listener and duration; items follow Zipf's law with exponent 1."""
    item = int(_ITEMS ** dice.random()) - 1
    return item, item * 7 % 200_000, 1_000 + item * 13 % 400_000


def main(argv: Sequence[str] | None = None) -> None:
    """Send one load with the bare client and print what came of it as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.ingest_load")
    for name in ("url", "key", "run"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("rows", "connections"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    a = parser.parse_args(argv)
    load = Load(run=a.run, rows=a.rows, connections=a.connections, seconds=a.seconds)
    print(json.dumps(asdict(asyncio.run(_Client(a.url, a.key, load).run()))))


if __name__ == "__main__":
    main()
