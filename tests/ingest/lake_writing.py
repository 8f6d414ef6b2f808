"""Runs the lake writer in this process, to its end or beside a test."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis
from deltalake import DeltaTable

from domain.clock import utc_now
from domain.tables import PLAYS
from ingest.log_to_lake_loop import LakeWriterJob, run
from ingest.redis_log import RedisLog
from tests.servers import LogServer

SECONDS = 20.0


class Told(list[tuple[str, dict[str, Any]]]):
    """What a lake writer said."""

    def __call__(self, event: str, /, **facts: object) -> None:
        self.append((event, facts))

    def facts(self, event: str) -> list[dict[str, Any]]:
        return [facts for name, facts in self if name == event]


def job(server: LogServer, folder: Path, told: Told, **options: Any) -> LakeWriterJob:
    given: dict[str, Any] = {"every_seconds": 0.1, "open_log": lambda: RedisLog.open(server.address)} | options
    return LakeWriterJob(
        lake_root=folder / "lake", state_file=folder / "run" / "state.json", clock=utc_now, tell=told, **given
    )


def moved(server: LogServer, folder: Path, **options: Any) -> Told:
    """Run the lake writer until all that is there is in the lake."""
    told = Told()
    run(job(server, folder, told, once=True, **options), threading.Event())
    return told


@contextmanager
def at_work(server: LogServer, folder: Path, **options: Any) -> Iterator[Told]:
    """Run the lake writer beside the test; leaving stops it as SIGTERM does and passes its error on."""
    told, stop = Told(), threading.Event()
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(run, job(server, folder, told, **options), stop)
        try:
            yield told
        finally:
            stop.set()
            running.result(SECONDS)


def until(holds: Callable[[], object]) -> None:
    """Wait for a fact."""
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it did not come to hold"
        time.sleep(0.01)


def read_calls(client: redis.Redis) -> int:
    """How often the server was asked for entries; a read asks twice."""
    return int(client.info("commandstats")["cmdstat_xrange"]["calls"])


def rows(lake: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DeltaTable(lake / PLAYS.name).to_pyarrow_table().to_pylist()
    return sorted(found, key=lambda row: (row["log_partition"], row["log_ms"], row["log_sequence"], row["log_index"]))


def state(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "run" / "state.json").read_text())
    return found
