"""`lakeboard speed`: entries as plays, what it says in `lakeboard status`, and the command itself."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from domain.log import BEGINNING, Entry, EntryId, Partition, Stream
from domain.windows import EPOCH
from ingest.hashing import partition_number
from ingest.log_entry import UnreadableEntryError, encode_plays
from ingest.log_to_lake_rows import plays_rows
from ingest.redis_log import RedisLog
from lakeboard.live.decode import partition_numbers, play_batch
from lakeboard.stack.speed_facts import speed_facts
from speed_layer.consumer_partition import READER
from speed_layer.play_batch import NOT_SAID
from speed_layer.store.connection import connect
from speed_layer.store.publishing import Publishing
from tests.log_entries import fill, play
from tests.servers import LogServer, log_server
from tests.views_server import ViewsServer, views_server

PARTITION = Partition(Stream.PLAYS, 3)
NOW = datetime(2026, 11, 14, 12, tzinfo=UTC)
US = timedelta(microseconds=1)


def entry_of(ms: int, *ids: str, us: int = NOT_SAID, **said: object) -> Entry:
    body = encode_plays([play(each, f"item-{each}", us=us, **said) for each in ids], [("api", len(ids))])
    return Entry(EntryId(ms, 2), body)


@pytest.mark.fast
def test_plays_that_are_counted_live_are_the_rows_of_the_lake() -> None:
    """One reading of an entry, whoever reads it: ids, items, regions, times, durations, counts and places."""
    entries = [
        entry_of(1_700_000_000_000, "a", "b", region="IN", count=7),
        entry_of(1_700_000_000_001, "ärger", us=1_600_000_000_000_000, duration_ms=30_000),
        entry_of(1_700_000_000_001 + 60_000, *(f"e{number}" for number in range(5)), us=-5),
    ]
    batch = play_batch(entries, PARTITION)
    rows = plays_rows(entries, log_id="log", partition=PARTITION).to_pydict()
    assert batch.positions.tolist() == rows["writer_seq"]
    assert batch.id_hashes.view(np.int64).tolist() == rows["id_hash"]
    assert list(batch.items) == rows["item_id"]
    assert list(batch.regions) == rows["region"]
    assert [EPOCH + us * US for us in batch.happened_us.tolist()] == rows["event_time"]
    assert [None if ms == NOT_SAID else ms for ms in batch.durations_ms.tolist()] == rows["duration_ms"]
    assert batch.counts.tolist() == rows["count"]
    assert batch.log_ms.tolist() == rows["log_ms"]


@pytest.mark.fast
def test_an_entry_that_cannot_be_read_is_named() -> None:
    with pytest.raises(UnreadableEntryError, match="log entry 5-0 of partition plays:3 cannot be read"):
        play_batch([Entry(EntryId(5, 0), b"\x93\x02\x01\x00")], PARTITION)


@pytest.mark.fast
def test_items_are_in_the_partition_that_the_api_put_them_in() -> None:
    items = ["a", "ärger", "夜に駆ける"]
    assert partition_numbers(items, 8) == [partition_number(item, 8) for item in items]
    assert len(set(partition_numbers([f"item{number}" for number in range(100)], 8))) == 8


@pytest.mark.fast
def test_status_says_what_is_not_counted_and_when_nothing_was_said(tmp_path: Path) -> None:
    file = tmp_path / "speed.json"
    assert speed_facts(file, NOW) is None
    state = {
        "written_at": NOW.isoformat(),
        "view": "v1",
        "partitions": {"plays:0": {"lag_seconds": 0.5}, "plays:1": {"lag_seconds": None}},
        "held": {},
    }
    file.write_text(json.dumps(state))
    well = speed_facts(file, NOW + timedelta(seconds=30))
    assert well is not None
    assert (well.partitions, well.largest_lag_seconds, well.view, well.problems) == (2, 0.5, "v1", [])
    file.write_text(json.dumps(state | {"held": {"plays:1": "log entry 5-0 cannot be read"}}))
    ill = speed_facts(file, NOW + timedelta(seconds=31))
    assert ill is not None
    assert ill.problems == [
        "the live counting said nothing for 31 s; see docs/runbook.md",
        "plays:1 is not counted live: log entry 5-0 cannot be read",
    ]


# --- the command ---


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LogServer]:
    with log_server(tmp_path / "log") as server:
        yield server


@pytest.fixture
def views(tmp_path: Path) -> Iterator[ViewsServer]:
    with views_server(tmp_path / "views") as server:
        yield server


def begun(home: Path, server: LogServer, views: ViewsServer, *options: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "LAKEBOARD_HOME": str(home), "LAKEBOARD_CHECKPOINT_SECONDS": "3600"}
    command = [sys.executable, "-m", "lakeboard", "speed", "--log", server.address, "--views", views.address, *options]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


@pytest.mark.redis
def test_the_command_counts_what_is_there_once_and_leaves(
    server: LogServer, views: ViewsServer, tmp_path: Path
) -> None:
    with RedisLog.open(server.address) as log:
        fill(log, 16)
        with begun(tmp_path, server, views, "--once") as process:
            _, told = process.communicate(timeout=60)
        assert process.returncode == 0, told
        assert log.offsets(READER, Stream.PLAYS) == log.end_offsets(Stream.PLAYS)
    lines = [json.loads(line) for line in told.splitlines()]
    assert [line["event"] for line in lines] == ["starting without stored state"] * 8
    assert {line["part"] for line in lines} == {"speed"}
    with connect(views.address) as connection:
        statuses = Publishing(connection).read_statuses(range(8))
    assert all(status is not None and status.position > 0 for status in statuses.values())


@pytest.mark.redis
def test_asked_to_end_it_stores_what_it_has_counted(server: LogServer, views: ViewsServer, tmp_path: Path) -> None:
    with RedisLog.open(server.address) as log, connect(views.address) as connection:
        fill(log, 16)
        with begun(tmp_path, server, views) as process:
            deadline = time.monotonic() + 60
            while None in Publishing(connection).read_statuses(range(8)).values():
                assert time.monotonic() < deadline
                assert process.poll() is None
                time.sleep(0.02)
            assert set(log.offsets(READER, Stream.PLAYS).values()) == {BEGINNING}  # no checkpoint was due yet
            process.send_signal(signal.SIGTERM)
            _, told = process.communicate(timeout=60)
        assert process.returncode == 0, told
        assert log.offsets(READER, Stream.PLAYS) == log.end_offsets(Stream.PLAYS)
