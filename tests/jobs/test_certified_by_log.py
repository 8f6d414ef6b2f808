"""An hour is certified when every partition of the log in use was read past its end and grace."""

import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from domain.clock import utc_now
from domain.frontier import certifiable_end
from domain.log import Stream
from domain.policy import DEFAULT_POLICY
from domain.tables import HOURS
from domain.windows import EPOCH
from ingest.hashing import partition_number
from ingest.lake_writer import BronzeWriter, bronze_position, log_read_to
from ingest.log_clock import ReplayClock
from ingest.log_entry import encode_plays
from ingest.log_to_lake import LogToLake
from ingest.log_to_lake_loop import LakeWriterJob, run
from ingest.redis_log import RedisLog
from tests.counted_lakes import recount, released
from tests.lakes import at
from tests.log_entries import fill, play
from tests.servers import LogServer, log_server

pytestmark = pytest.mark.spark

NOW = at(20)


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogServer]:
    with log_server(tmp_path_factory.mktemp("log")) as running:
        yield running


def log_at(server: LogServer, moment: datetime) -> RedisLog:
    """The log as it is when its clock shows a moment."""
    return RedisLog.open(server.address, clock=ReplayClock(start=moment, began=utc_now(), speed=1.0))


def moved(server: LogServer, lake: Path, moment: datetime) -> None:
    """Run the lake writer at a moment until all is in the lake."""
    job = LakeWriterJob(lake_root=lake, open_log=lambda: log_at(server, moment), clock=utc_now, once=True,
                        state_file=lake.parent / "state.json", tell=lambda event, /, **facts: None)  # fmt: skip
    run(job, threading.Event())


def moved_in_part(log: RedisLog, lake: Path) -> None:
    """Make one commit that reads partition 0 not to its end."""
    writer = LogToLake(log, BronzeWriter(lake), 200)
    writer.start()
    writer.poll()
    assert [p.number for p, progress in writer.progress.items() if progress.read_to is None] == [0]
    writer.commit()


def send(log: RedisLog, *sent: tuple[str, datetime]) -> None:
    number = partition_number("a", 8)
    plays = [play(event_id, us=int((moment - EPOCH).total_seconds()) * 1_000_000) for event_id, moment in sent]
    log.append([(log.partitions(Stream.PLAYS)[number], encode_plays(plays, [("api", len(plays))]))])


def backlog(log: RedisLog) -> None:
    """Fill partition 0 with more than a commit takes, and every other one with little."""
    fill(log, 8)
    log.append([(log.partitions(Stream.PLAYS)[0], encode_plays([play(f"b{n}.{k}") for k in range(10)], [("api", 10)]))
                for n in range(60)])  # fmt: skip


def frontier(lake: Path) -> datetime:
    """What a recount would certify up to."""
    return certifiable_end(log_read_to(lake, bronze_position(lake).version).values(), NOW, DEFAULT_POLICY)


def certified_hours(lake: Path) -> list[int]:
    columns = HOURS.column_names
    rows = [dict(zip(columns, row, strict=True)) for row in released(lake, HOURS)]
    return sorted(row["event_hour"] for row in rows if row["state"] == "certified")


def test_hours_are_certified_as_the_slowest_partition_of_the_log_in_use_is_read(
    spark: SparkSession, server: LogServer, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    with log_at(server, at(10, 5)) as log:
        send(log, ("e8", at(8, 30)), ("e9", at(9, 30)))
    moved(server, lake, at(10, 5))
    first = recount(spark, lake, NOW).release
    assert first.frontier == at(9)  # 10:05 is before 10:00 + 10 minutes
    assert certified_hours(lake) == list(range(9))
    assert recount(spark, lake, NOW).is_new is False

    moved(server, lake, at(10, 11))  # nothing new, and that is what it says
    second = recount(spark, lake, NOW)
    assert (second.release.frontier, second.new_events) == (at(10), 0)
    assert certified_hours(lake) == list(range(10))

    with log_at(server, at(12, 30)) as log:
        backlog(log)
        moved_in_part(log, lake)
        assert frontier(lake) == at(10)  # seven partitions stand at 12:30, one at 10:11
    moved(server, lake, at(12, 31))
    assert frontier(lake) == at(12)

    with server.client() as client:
        client.flushall()
    with log_at(server, at(15)) as new:
        assert frontier(lake) == at(12)  # nobody has read the new log yet
        backlog(new)
        moved_in_part(new, lake)
        assert frontier(lake) < EPOCH  # the old log holds nothing back, the unread part of the new one does
    moved(server, lake, at(15, 20))
    assert frontier(lake) == at(15)
