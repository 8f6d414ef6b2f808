"""Settings of the HTTP API: one value, built by an entry point and handed down; nothing here reads a file."""

import os
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from domain.boards.definitions import ONE_GAME, Boards
from ingest.log_clock import ENTRY_CLOCK_NOW, EntryClock
from ingest.log_server import MIN_FREE_BYTES

MAX_BODY_BYTES = 4 << 20  # after inflation too
MAX_ROWS = 1000  # plays in one request


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    """What the API is told when it starts.

    Attributes:
        home: Folder of all state; keys.json is in it.
        run: Folder for what lives as long as the processes do: metrics, counters of limits.
        log_url: Address of the event log's server, as of `RedisLog.open`.
        log_folder: Where that server's files are; None when they are on another machine.
        min_free_bytes: What must stay free on the log's disk.
        entry_clock: What stamps entries; another one than the server's only in a replay.
        host: Address to listen on.
        port: Port to listen on.
        workers: Processes that answer.
        open_reads: Whether reads need no key.
        cors_origins: Web origins that may call from a browser; `*` = all, empty = none.
        access_log: Whether each answered request gets a line, not only the refused ones.
        body_seconds: How long a body may take to arrive.
        header_seconds: How long the head of a request may take, and a connection may idle.
        stop_seconds: How long requests in flight may take once the API is told to stop.
        connections: Open connections a worker takes; more wait in the backlog.
        backlog: Connections that wait for a worker.
        buffered_bytes: Bodies a worker holds in memory at a time; more are refused.
        events_per_second: What one key may send, unless the key says otherwise.
        requests_per_second: The same for requests.
        views_url: Address of the views server; empty = there is none, and no live charts.
        boards: What is ranked.
        board_shards: Into how many shards the players of boards are split; as of the part that ranks.
        lake_root: Folder of the lake, for closed windows; None = there is none.
        reads_per_second: How often one key or address may read one chart.
        viewers: Live charts and boards that a worker keeps open at a time; a part of its connections.
        viewers_each: How many of these one key or address may have.
        heartbeat_seconds: How often an open live chart without news gets a sign of life.
        viewer_seconds: How long a viewer may take for an event, before it is dropped.
        stream_seconds: How long a live chart stays open, before its viewer has to come again.
    """

    home: Path
    run: Path
    log_url: str
    log_folder: Path | None = None
    min_free_bytes: int = MIN_FREE_BYTES
    entry_clock: EntryClock = ENTRY_CLOCK_NOW
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 1
    open_reads: bool = True
    cors_origins: tuple[str, ...] = ()
    access_log: bool = False
    body_seconds: float = 10.0
    header_seconds: float = 15.0
    stop_seconds: int = 20
    connections: int = 512
    backlog: int = 1024
    buffered_bytes: int = 256 << 20
    events_per_second: int = 500_000
    requests_per_second: int = 50_000
    views_url: str = ""
    boards: Boards = ONE_GAME
    board_shards: int = 1
    lake_root: Path | None = None
    reads_per_second: int = 5
    viewers: int = 256
    viewers_each: int = 16
    heartbeat_seconds: float = 15.0
    viewer_seconds: float = 10.0
    stream_seconds: float = 600.0

    @property
    def metrics_folder(self) -> Path:
        """Where every worker keeps its numbers, so that any of them can tell all."""
        return self.run / "api-metrics"

    @property
    def limits_file(self) -> Path:
        """Where the workers count together what each key sent."""
        return self.run / "api-limits"

    @property
    def reads_file(self) -> Path:
        """Where they count together what was read."""
        return self.run / "api-reads"


def is_loopback(host: str) -> bool:
    """Say whether an address is this machine's own; a Unix socket's has no address and is."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host in ("", "localhost")


def use_metrics_folder(folder: Path) -> None:
    """Make prometheus_client keep numbers in this folder: it takes that from the environment, when first imported.

    The folder is made: a number that is defined opens its file at once.
    """
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
