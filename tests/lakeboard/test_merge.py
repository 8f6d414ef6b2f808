"""`lakeboard merge` as a user runs it: plays of the log, counted by `lakeboard speed`, as charts."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from domain.live_chart import LiveChart
from domain.live_windows import LiveWindow
from domain.log import Stream
from ingest.hashing import partition_number
from ingest.log_entry import encode_plays
from ingest.redis_log import RedisLog
from speed_layer.store.charts import ChartsReader, ChartsWriter
from speed_layer.store.connection import connect
from tests.log_entries import play
from tests.servers import LogServer, log_server
from tests.stacks import until
from tests.views_server import ViewsServer, views_server

pytestmark = pytest.mark.redis


@pytest.fixture
def log(tmp_path: Path) -> Iterator[LogServer]:
    with log_server(tmp_path / "log") as server:
        yield server


@pytest.fixture
def views(tmp_path: Path) -> Iterator[ViewsServer]:
    with views_server(tmp_path / "views") as server:
        yield server


def begun(home: Path, log: LogServer, views: ViewsServer, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "lakeboard", words[0], "--log", log.address, "--views", views.address, *words[1:]]
    environment = {**os.environ, "LAKEBOARD_HOME": str(home)}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def once(home: Path, log: LogServer, views: ViewsServer, command: str) -> None:
    with begun(home, log, views, command, "--once") as process:
        _, told = process.communicate(timeout=60)
    assert process.returncode == 0, told


def append(log: RedisLog, random: Random, number: int) -> Counter[tuple[str, str]]:
    """Append plays of now, each in its item's partition; return (region, item) -> plays."""
    partitions = log.partitions(Stream.PLAYS)
    counted: Counter[tuple[str, str]] = Counter()
    plays = defaultdict(list)
    for event in range(number):
        item, region = f"song-{int(random.paretovariate(0.7)) % 300}", random.choice(("IN", "DE"))
        plays[partition_number(item, len(partitions))].append(play(f"e{event}", item, region=region))
        counted[region, item] += 1
        counted["*", item] += 1
    log.append([(partitions[n], encode_plays(found, [("api", len(found))])) for n, found in plays.items()])
    return counted


def chart(views: ViewsServer, kind: LiveWindow, region: str) -> LiveChart | None:
    async def read() -> LiveChart | None:
        reader = ChartsReader(views.address)
        try:
            return (await reader.read(kind, region)).chart
        finally:
            await reader.close()

    return asyncio.run(read())


def state(home: Path) -> str:
    found: str = json.loads((home / "run" / "merger.json").read_text(encoding="utf-8"))["state"]
    return found


def test_charts_are_what_was_played_rank_by_rank(log: LogServer, views: ViewsServer, tmp_path: Path) -> None:
    with RedisLog.open(log.address) as opened:
        counted = append(opened, Random(5), 3000)
    once(tmp_path, log, views, "speed")
    once(tmp_path, log, views, "merge")

    for kind in (LiveWindow.HOUR, LiveWindow.DAY):
        for region in ("*", "IN", "DE"):
            found = chart(views, kind, region)
            assert found is not None
            of_region = {item: count for (where, item), count in counted.items() if where == region}
            best = sorted(of_region.items(), key=lambda pair: (-pair[1], pair[0].encode()))
            assert [(row.item_id, row.lower, row.upper) for row in found.top.rows] == [(i, c, c) for i, c in best[:100]]
            assert found.top.total == sum(of_region.values())
    assert state(tmp_path) == "stopped"


def test_a_second_merger_waits_takes_over_and_ends_when_it_is_asked(
    log: LogServer, views: ViewsServer, tmp_path: Path
) -> None:
    RedisLog.open(log.address).close()
    with connect(views.address) as connection:
        epoch = ChartsWriter(connection, lease_ms=60_000).acquire()
        assert epoch is not None
        with begun(tmp_path, log, views, "merge") as process:
            until(lambda: (tmp_path / "run" / "merger.json").exists() and state(tmp_path) == "waiting", "it waits")
            ChartsWriter(connection).release(epoch)
            until(lambda: state(tmp_path) == "working", "it works")
            process.send_signal(signal.SIGTERM)
            _, told = process.communicate(timeout=30)
        assert process.returncode == 0
        assert connection.client.get("lb:{charts}:lease") is None  # the next one need not wait
    events = [json.loads(line)["event"] for line in told.splitlines()]
    assert events == ["waiting", "working", "stopped"]
