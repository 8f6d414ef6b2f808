"""A lake writer killed anywhere: each accepted play is in bronze once, and the log forgot nothing before."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector

from domain.clock import utc_now
from domain.log import LAKE_READER, EntryId, Partition, Stream
from ingest.log_keys import TRIMMED
from ingest.log_to_lake_loop import LakeWriterJob, run
from ingest.log_to_lake_state import STATE_FILE
from ingest.redis_log import RedisLog
from tests.log_entries import Position, bronze_positions, fill, positions_of
from tests.servers import LogServer, log_server

pytestmark = pytest.mark.redis

ROOT = Path(__file__).parents[2]
SECONDS = 60.0


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogServer]:
    with log_server(tmp_path_factory.mktemp("log")) as server:
        yield server


@pytest.fixture
def log(running: LogServer) -> Iterator[RedisLog]:
    """The log of an empty server."""
    with running.client() as client:
        client.flushall()
    with RedisLog.open(running.address) as opened:
        yield opened


def command(log: RedisLog, home: Path, *options: str) -> subprocess.Popen[str]:
    """Start the real command."""
    metrics = home / "metrics"
    metrics.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"LAKEBOARD_HOME": str(home), "LAKEBOARD_LOG_URL": log.address,
                                "PROMETHEUS_MULTIPROC_DIR": str(metrics)}  # fmt: skip
    return subprocess.Popen([sys.executable, "-m", "lakeboard", "lake-writer", *options], cwd=ROOT, env=environment,
                            stderr=subprocess.PIPE, text=True)  # fmt: skip


def moved(log: RedisLog, home: Path) -> None:
    """Run the lake writer until all is in the lake."""
    job = LakeWriterJob(lake_root=home / "lake", open_log=lambda: RedisLog.open(log.address), clock=utc_now, once=True,
                        state_file=home / "run" / STATE_FILE, tell=lambda event, /, **facts: None)  # fmt: skip
    run(job, threading.Event())


def in_log(log: RedisLog, each: int = 3) -> set[Position]:
    """The positions of the plays that the log still has."""
    found: set[Position] = set()
    for partition, after in trimmed_through(log).items():
        ids = [entry.id for entry in log.read(partition, after=after, limit=100_000).entries]
        found.update(positions_of(log.log_id, [partition] * len(ids), ids, each))
    return found


def trimmed_through(log: RedisLog) -> dict[Partition, EntryId]:
    """The marks as they stand: asking for a trim would move them."""
    with redis.Redis.from_url(log.address) as client:
        marks = client.hgetall(TRIMMED)
    return {p: EntryId.parse(marks.get(str(p).encode(), b"0-0")) for p in log.partitions(Stream.PLAYS)}


@pytest.mark.parametrize(
    ("step", "committed", "let_go"),
    [
        ("commit", False, 0),
        ("make durable", True, 0),
        ("commit offsets", True, 0),
        ("trim plays:0", True, 0),
        ("trim plays:3", True, 3),
    ],
)
def test_a_kill_between_any_two_steps_loses_nothing_and_doubles_nothing(
    log: RedisLog, tmp_path: Path, step: str, committed: bool, let_go: int
) -> None:
    sent = fill(log, 16)

    killed = subprocess.run(
        [sys.executable, "-m", "tests.faults.kill_lake_writer", log.address, str(tmp_path), step, "0"],
        cwd=ROOT, capture_output=True, timeout=SECONDS, check=False,
    )  # fmt: skip

    assert killed.returncode == -signal.SIGKILL, killed.stderr
    lake = tmp_path / "lake"
    assert bronze_positions(lake) == (Counter(sent) if committed else Counter())
    assert sum(length == 0 for length in log.lengths(Stream.PLAYS).values()) == let_go
    assert set(sent) <= in_log(log) | set(bronze_positions(lake))

    sent += fill(log, 8, name="more")
    moved(log, tmp_path)

    assert bronze_positions(lake) == Counter(sent)
    assert in_log(log) == set()
    assert log.offsets(LAKE_READER, Stream.PLAYS) == log.end_offsets(Stream.PLAYS)


@pytest.mark.parametrize("seconds", [0.002, 0.01])
def test_a_kill_inside_a_commit_loses_nothing_and_doubles_nothing(
    log: RedisLog, tmp_path: Path, seconds: float
) -> None:
    sent = fill(log, 400, each=20)

    killed = subprocess.run(
        [sys.executable, "-m", "tests.faults.kill_lake_writer", log.address, str(tmp_path), "commit", str(seconds)],
        cwd=ROOT, capture_output=True, timeout=SECONDS, check=False,
    )  # fmt: skip

    assert killed.returncode == -signal.SIGKILL, killed.stderr
    moved(log, tmp_path)
    assert bronze_positions(tmp_path / "lake") == Counter(sent)


def test_the_real_command_killed_at_random_under_load_writes_each_position_once(log: RedisLog, tmp_path: Path) -> None:
    chance, sent = random.Random(4), []
    for turn in range(3):
        with command(log, tmp_path, "--every", "0.1", "--rows", "50") as process:
            assert process.stderr is not None
            assert "reading" in process.stderr.readline()
            end = time.monotonic() + chance.uniform(0, 0.5)
            while time.monotonic() < end:
                sent += fill(log, 8, name=f"{turn}.")
            process.kill()
        assert set(sent) <= in_log(log) | set(bronze_positions(tmp_path / "lake"))

    with command(log, tmp_path, "--once") as process:
        _, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, said
    assert bronze_positions(tmp_path / "lake") == Counter(sent)
    assert in_log(log) == set()


def test_asked_to_end_the_command_leaves_with_0_and_a_second_one_without_waiting_with_1(
    log: RedisLog, tmp_path: Path
) -> None:
    with command(log, tmp_path) as first:
        assert first.stderr is not None
        started = json.loads(first.stderr.readline())
        assert (started["event"], started["part"], started["log_id"]) == ("reading", "lake-writer", log.log_id)
        with command(log, tmp_path, "--no-wait") as second:
            _, said = second.communicate(timeout=SECONDS)
        assert second.returncode == 1
        assert f"works on this lake already (process {first.pid})" in said
        first.send_signal(signal.SIGTERM)
        _, said = first.communicate(timeout=SECONDS)

    assert first.returncode == 0
    last = json.loads(said.splitlines()[-1])
    assert last["event"] == "committed"
    state = json.loads((tmp_path / "run" / "lake-writer.json").read_text())
    assert (state["pid"], state["state"]) == (first.pid, "stopped")
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=str(tmp_path / "metrics"))  # type: ignore[no-untyped-call]
    values = {sample.name: sample.value for family in registry.collect() for sample in family.samples}
    assert values["lakeboard_lake_writer_commits_total"] == 1
    assert values["lakeboard_lake_writer_commit_seconds_count"] == 1
    assert (
        values["lakeboard_lake_writer_read_to_timestamp_seconds"]
        <= values["lakeboard_lake_writer_last_commit_timestamp_seconds"]
    )
