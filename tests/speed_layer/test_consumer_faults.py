"""The consumer when state is of no use, servers are lost or replaced, it is killed, or another one took over."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest

from domain.log import LAKE_READER, Entry, LogUnavailableError, Partition, Stream
from domain.speed_policy import DEFAULT_SPEED_POLICY
from ingest.redis_log import RedisLog
from lakeboard.live.decode import play_batch
from speed_layer.consumer import run
from speed_layer.consumer_partition import READER
from speed_layer.play_batch import PlayBatch
from speed_layer.store.connection import Views, connect
from speed_layer.store.publishing import Publishing
from speed_layer.store.state import StateStore
from tests.log_entries import play
from tests.servers import LogServer
from tests.speed_layer.consuming import (
    PARTITIONS,
    Told,
    append,
    consume_once,
    consumer_job,
    fill,
    joined,
    partition_of,
    published,
    require_as_straight,
    stopped_when,
    straight,
)
from tests.views_server import views_server

pytestmark = pytest.mark.redis


# --- state that is not used ---


def test_state_of_another_policy_is_not_used_and_the_status_says_from_when_it_is_complete(
    log: RedisLog, views: Views, tmp_path: Path
) -> None:
    fill(log)
    consume_once(log.address, views, tmp_path)
    log.commit_offsets(LAKE_READER, log.end_offsets(Stream.PLAYS))
    trimmed = {p.number: log.trim(p) for p in log.partitions(Stream.PLAYS)}
    more = fill(log, "f")

    told = consume_once(log.address, views, tmp_path, policy=replace(DEFAULT_SPEED_POLICY, list_size=64))

    assert told.names.count("stored state is not used") == 2
    for number, entries in more.items():
        status, lists = published(views, number)
        assert status.complete_from_ms == trimmed[number].ms + 1
        assert lists == straight(entries, partition_of(number), status)


def test_a_trimmed_log_is_counted_from_its_mark_on(log: RedisLog, views: Views, tmp_path: Path) -> None:
    """Somebody removed the reader and trimmed: what is missing is said, and nothing is counted twice."""
    fill(log)
    consume_once(log.address, views, tmp_path)
    fill(log, "f")
    log.remove_reader(READER)
    log.commit_offsets(LAKE_READER, log.end_offsets(Stream.PLAYS))
    trimmed = {p.number: log.trim(p) for p in log.partitions(Stream.PLAYS)}
    more = fill(log, "g")

    told = consume_once(log.address, views, tmp_path)

    assert told.names.count("log was trimmed") == 2
    for number, entries in more.items():
        status, lists = published(views, number)
        assert status.complete_from_ms == trimmed[number].ms + 1
        assert lists == straight(entries, partition_of(number), status)


def test_another_log_is_counted_from_its_beginning(server: LogServer, views: Views, tmp_path: Path) -> None:
    with RedisLog.open(server.address, partitions=PARTITIONS) as log:
        fill(log)
        consume_once(log.address, views, tmp_path)
    before = published(views, 0)[0]
    with server.client() as client:
        client.flushall()
    with RedisLog.open(server.address, partitions=PARTITIONS) as log:
        entries = fill(log, "f", entries=6)
        consume_once(log.address, views, tmp_path)
        require_as_straight(views, entries)
        status = published(views, 0)[0]
        assert status.log_id == log.log_id != before.log_id
        assert status.complete_from_ms >= before.as_of_ms  # what the old log had is not here
        assert status.cycle > before.cycle


def test_a_log_that_is_replaced_while_it_is_read_is_counted_anew(
    server: LogServer, views: Views, tmp_path: Path
) -> None:
    new: list[dict[int, list[Entry]]] = []
    told = Told()

    def replaced_and_counted() -> bool:
        if not new:
            if "views" not in told.names and Publishing(views).read_statuses([0])[0] is None:
                return False
            with server.client() as client:
                client.flushall()
            with RedisLog.open(server.address, partitions=PARTITIONS) as log:
                new.append(fill(log, "f"))
        statuses = Publishing(views).read_statuses([0, 1])
        return all(s is not None and s.position == new[0][n][-1].id.version for n, s in statuses.items())

    with RedisLog.open(server.address, partitions=PARTITIONS) as log:
        fill(log)
    run(consumer_job(server.address, views, tmp_path, tell=told, once=False), stopped_when(replaced_and_counted))
    assert "log replaced" in told.names
    require_as_straight(views, new[0])


def test_a_log_that_lost_its_end_is_counted_anew(log: RedisLog, views: Views, tmp_path: Path) -> None:
    entries = fill(log)
    gone = append(log, 0, play("gone", "gone"))
    consume_once(log.address, views, tmp_path)
    assert any("gone" in str(rows) for rows, *_ in published(views, 0)[1].values())
    log._client.xdel("lb:log:plays:0", str(gone.id))

    told = consume_once(log.address, views, tmp_path)

    assert "log replaced" in told.names
    status, lists = published(views, 0)
    assert lists == straight(entries[0], partition_of(0), status)
    assert status.complete_from_ms > gone.id.ms


# --- the views server ---


def test_views_that_are_lost_are_written_again_from_memory(log: RedisLog, views: Views, tmp_path: Path) -> None:
    entries = fill(log)
    lost: list[int] = []
    told = Told()

    def written_again() -> bool:
        statuses = Publishing(views).read_statuses([0, 1])
        if any(s is None or s.position != entries[n][-1].id.version for n, s in statuses.items()):
            return False
        if not lost:
            views.client.flushall()
            lost.append(1)
            return False
        return True

    run(consumer_job(log.address, views, tmp_path, tell=told, once=False), stopped_when(written_again))
    assert told.names.count("views were lost, going on with what is in memory") == 2
    assert told.names.count("starting without stored state") == 2
    require_as_straight(views, entries)
    told = consume_once(log.address, views, tmp_path)
    assert told.names.count("restored") == 2


def test_a_views_server_that_is_away_is_waited_for(server: LogServer, log: RedisLog, tmp_path: Path) -> None:
    entries = fill(log)
    told = Told()
    with views_server(tmp_path / "views") as away, Views(away.address) as views:
        away.kill()

        def counted() -> bool:
            if away.process is None:
                if "waiting" in told.names:
                    away.start()
                return False
            return all(s is not None for s in Publishing(views).read_statuses([0, 1]).values())

        run(consumer_job(log.address, views, tmp_path, tell=told, once=False), stopped_when(counted))
        require_as_straight(views, entries)
    waiting = next(facts for name, facts in told.events if name == "waiting")
    assert "the views server at" in str(waiting["problem"])


def test_a_log_server_that_is_away_is_waited_for(log: RedisLog, views: Views, tmp_path: Path) -> None:
    fill(log)
    told, opened = Told(), []

    def open_log() -> RedisLog:
        opened.append(1)
        if len(opened) == 1:
            raise LogUnavailableError(log.address, "it starts")
        return RedisLog.open(log.address)

    run(replace(consumer_job(log.address, views, tmp_path, tell=told), open_log=open_log), Event())
    assert told.names[0] == "waiting"
    assert published(views, 0)[0].position > 0


# --- several consumers ---


def test_a_partition_that_another_one_holds_is_left_alone(log: RedisLog, views: Views, tmp_path: Path) -> None:
    other = StateStore(views, lease_ms=600_000)
    lease = other.acquire(1)
    assert lease is not None
    entries = fill(log)
    told = Told()

    def first_is_counted() -> bool:
        status = Publishing(views).read_statuses([0])[0]
        if status is None or status.position != entries[0][-1].id.version:
            return False
        assert Publishing(views).read_statuses([1])[1] is None
        other.release(lease)
        return True

    run(consumer_job(log.address, views, tmp_path, tell=told, once=False), stopped_when(first_is_counted))
    consume_once(log.address, views, tmp_path)
    require_as_straight(views, entries)


def test_consumers_share_the_partitions_and_take_over_from_one_that_ends(
    log: RedisLog, views: Views, tmp_path: Path
) -> None:
    """One counts both partitions; a second one comes and gets one of them; the first ends and the second has both."""
    entries, stop = fill(log), Event()
    alone, second = Told(), Told()
    job = consumer_job(log.address, views, tmp_path / "one", tell=alone, once=False)
    thread = Thread(target=run, args=(job, stop))
    thread.start()

    def has_both_in_the_end() -> bool:
        if second.names.count("restored") == 1 and not stop.is_set():
            assert alone.names.count("partition is left to another consumer") == 1
            stop.set()
        return second.names.count("restored") == 2

    try:
        both = stopped_when(lambda: None not in Publishing(views).read_statuses([0, 1]).values())
        while not both.is_set():
            both.wait(0.02)
        with connect(views.address) as connection:
            late = consumer_job(log.address, connection, tmp_path / "two", tell=second, once=False)
            run(late, stopped_when(has_both_in_the_end))
    finally:
        stop.set()
        thread.join(20)
    require_as_straight(views, entries)


def test_what_nobody_takes_is_taken_beyond_ones_part(log: RedisLog, views: Views, tmp_path: Path) -> None:
    """A consumer that is said to be there and takes nothing: killed just now, or stuck."""
    entries = fill(log)
    StateStore(views, lease_ms=600_000).present("stuck")
    told = consume_once(log.address, views, tmp_path, lease_ms=600_000)
    assert "another consumer counts" not in told.names
    require_as_straight(views, entries)


def test_a_consumer_that_was_asleep_writes_nothing_when_another_one_took_over(
    log: RedisLog, views: Views, tmp_path: Path
) -> None:
    """It stops while it counts; meanwhile its lease ends and another one counts all and more."""
    entries = fill(log)
    asleep, awake, told = Event(), Event(), Told()

    def decode(found: Sequence[Entry], partition: Partition) -> PlayBatch:
        asleep.set()
        assert awake.wait(20)
        return play_batch(found, partition)

    with connect(views.address) as connection:
        job = consumer_job(log.address, connection, tmp_path / "one", tell=told, decode=decode, once=False)
        stop = Event()
        sleeper = Thread(target=run, args=(job, stop))
        sleeper.start()
        try:
            assert asleep.wait(20)
            consume_once(log.address, views, tmp_path / "two", lease_ms=600_000)
            more = fill(log, "f")
            held = [StateStore(views, lease_ms=600_000).acquire(number) for number in (0, 1)]
            assert all(held)
            before = contents(views)
            awake.set()
            while told.names.count("partition left") < 2 and sleeper.is_alive():
                stop.wait(0.02)
            assert contents(views) == before
        finally:
            awake.set()
            stop.set()
            sleeper.join(20)
    assert told.names.count("partition left") == 2
    for lease in held:
        assert lease is not None
        StateStore(views).release(lease)
    consume_once(log.address, views, tmp_path / "two")
    require_as_straight(views, joined(entries, more))


def contents(views: Views) -> dict[bytes, bytes | None]:
    """Everything that is in the views server, but for who is there."""
    return {key: views.client.dump(key) for key in sorted(views.client.scan_iter(match="lb:speed:{*"))}
