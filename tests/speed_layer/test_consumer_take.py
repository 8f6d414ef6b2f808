"""How a consumer takes a partition when the views server hiccups, what it says first, how long the log waits for it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from domain.clock import utc_now
from domain.errors import LakeboardError
from domain.log import LAKE_READER, Entry, Partition, Stream
from domain.windows import milliseconds
from ingest.log_keys import READERS
from ingest.redis_log import RedisLog
from lakeboard.live.decode import play_batch
from speed_layer.consumer import run
from speed_layer.consumer_partition import READER, READER_LEASE, PartitionWork
from speed_layer.play_batch import PlayBatch
from speed_layer.store.connection import Views, ViewsUnavailableError
from speed_layer.store.leases import Lease, Manifest
from speed_layer.store.publishing import Publishing
from speed_layer.store.state import StateStore
from tests.servers import LogServer
from tests.speed_layer.consuming import (
    LEASE_MS,
    Told,
    consume_once,
    consumer_job,
    fill,
    joined,
    partition_of,
    published,
    require_as_straight,
    stopped_when,
)
from tests.speed_layer.storing import FOREVER_MS, counted, put, taken

pytestmark = pytest.mark.redis


class Hiccups(StateStore):
    """Loads, and the answer does not come through, so many times."""

    left, address = 1, "redis://views"

    def load(self, lease: Lease) -> tuple[Manifest, dict[str, bytes]] | None:
        found = super().load(lease)
        if self.left:
            self.left -= 1
            raise ViewsUnavailableError(self.address, "no answer")
        return found


def work_on(log: RedisLog, views: Views, folder: Path, told: Told) -> PartitionWork:
    tools = consumer_job(log.address, views, folder, tell=told).tools
    return PartitionWork(tools=replace(tools, leases=Hiccups(views, lease_ms=FOREVER_MS)), partition=partition_of(0))


# --- taking ---


def test_a_hiccup_while_state_is_read_is_no_gap(log: RedisLog, views: Views, tmp_path: Path) -> None:
    entries, told = fill(log), Told()
    job = consumer_job(log.address, views, tmp_path, tell=told)

    run(replace(job, tools=replace(job.tools, leases=Hiccups(views, lease_ms=LEASE_MS))), stopped_when(lambda: False))

    assert "waiting" in told.names
    require_as_straight(views, entries)
    assert [published(views, number)[0].complete_from_ms for number in (0, 1)] == [0, 0]


def test_a_partition_that_was_not_taken_wholly_is_not_ours(log: RedisLog, views: Views, tmp_path: Path) -> None:
    """It has no buckets to count into, and what another one stored meanwhile is used."""
    told = Told()
    work = work_on(log, views, tmp_path, told)
    work.log_id, work.live = "log", counted(minutes=2)
    store = StateStore(views, lease_ms=FOREVER_MS)
    lease = taken(store)
    put(store, lease, counted(minutes=9))
    store.release(lease)

    with pytest.raises(ViewsUnavailableError):
        work.take("log")
    assert work.lease is None
    assert not work.is_ready
    assert work.take("log")

    assert "restored" in told.names
    assert work.live.position == counted(minutes=9).position
    work.checkpoint(log)
    assert work.lease is not None


def test_what_is_in_memory_survives_a_hiccup_of_a_server_that_lost_everything(
    log: RedisLog, views: Views, tmp_path: Path
) -> None:
    told = Told()
    work = work_on(log, views, tmp_path, told)
    work.log_id, work.live = log.log_id, counted()
    in_memory = work.live

    with pytest.raises(ViewsUnavailableError):
        work.take(log.log_id)
    assert work.take(log.log_id)  # nobody else had it

    assert work.live is in_memory
    assert told.names == ["views were lost, going on with what is in memory"]


# --- what is said first ---


def test_nothing_is_said_before_anything_was_read(log: RedisLog, views: Views, tmp_path: Path) -> None:
    """The moment of a partition that counted nothing is 1970, and all charts would stand there."""
    fill(log)
    told = Told()

    def unreadable(entries: Sequence[Entry], partition: Partition) -> PlayBatch:
        if partition.number == 0:
            raise LakeboardError
        return play_batch(entries, partition)

    def other_is_said() -> bool:
        status = Publishing(views).read_statuses([1])[1]
        return told.names.count("partition held") > 1 and status is not None

    job = consumer_job(log.address, views, tmp_path, tell=told, once=False, decode=unreadable)
    run(job, stopped_when(other_is_said))

    assert Publishing(views).read_statuses([0])[0] is None


# --- how long the log waits ---


def test_the_log_waits_a_quarter_of_an_hour_for_a_consumer_that_is_away(
    server: LogServer, log: RedisLog, views: Views, tmp_path: Path
) -> None:
    entries = fill(log)
    consume_once(log.address, views, tmp_path)
    assert timedelta(minutes=14) < left(server) <= READER_LEASE
    more = fill(log, "f")
    log.commit_offsets(LAKE_READER, log.end_offsets(Stream.PLAYS))
    trim(log)
    consume_once(log.address, views, tmp_path)
    require_as_straight(views, joined(entries, more))

    fill(log, "g")
    log.commit_offsets(LAKE_READER, log.end_offsets(Stream.PLAYS))
    run_out(server)
    trim(log)
    assert set(log.lengths(Stream.PLAYS).values()) == {0}
    told = consume_once(log.address, views, tmp_path)
    assert told.names.count("log was trimmed") == 2
    assert min(published(views, number)[0].complete_from_ms for number in (0, 1)) > 0


def test_a_consumer_without_plays_renews_it(server: LogServer, log: RedisLog, views: Views, tmp_path: Path) -> None:
    job = consumer_job(log.address, views, tmp_path, tell=Told(), once=False)
    run(
        job,
        stopped_when(
            once_each(lambda: READER in log.readers(), lambda: run_out(server), lambda: left(server) > timedelta())
        ),
    )


def test_the_log_does_not_wait_for_a_views_server_that_is_away(log: RedisLog, tmp_path: Path) -> None:
    told = Told()
    with Views("redis://127.0.0.1:1") as nowhere:
        run(
            consumer_job(log.address, nowhere, tmp_path, tell=told, once=False),
            stopped_when(lambda: len(told.names) > 1),
        )

    assert set(told.names) == {"waiting"}
    assert READER not in log.readers()


def once_each(
    holds: Callable[[], bool], then: Callable[[], None], finally_holds: Callable[[], bool]
) -> Callable[[], bool]:
    """Wait for the first, do the second once, wait for the last."""
    done: list[bool] = []

    def look() -> bool:
        if not done and holds():
            then()
            done.append(True)
            return False
        return bool(done) and finally_holds()

    return look


def left(server: LogServer) -> timedelta:
    with server.client() as client:
        until = int(client.hget(READERS, READER) or 0)
    return timedelta(milliseconds=until - milliseconds(utc_now()))


def run_out(server: LogServer) -> None:
    with server.client() as client:
        client.hset(READERS, READER, 1)


def trim(log: RedisLog) -> None:
    for partition in log.partitions(Stream.PLAYS):
        log.trim(partition)
