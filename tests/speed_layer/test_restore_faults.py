"""`lakeboard restore` while others are at work, when it takes long, and when the lake had another log before."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeboard.live.restoring
from domain.clock import utc_now
from domain.log import Stream
from domain.windows import milliseconds
from ingest.log_keys import META, READERS
from ingest.read_log_plays import plays_of_log
from ingest.redis_log import RedisLog
from lakeboard.live.lost import incomplete
from lakeboard.live.restoring import PIN, PartitionTakenError, restore
from lakeboard.settings import Settings
from speed_layer.partition import LivePartition
from speed_layer.play_batch import PlayBatch
from speed_layer.store.connection import Views
from speed_layer.store.leases import Lease, Manifest
from speed_layer.store.state import StateStore
from tests.ingest.lake_writing import moved
from tests.servers import LogServer
from tests.speed_layer.consuming import PARTITIONS, consume_once, fill, published, require_as_straight

pytestmark = pytest.mark.redis

LOAD, ACQUIRE = StateStore.load, StateStore.acquire


@pytest.fixture
def settings(server: LogServer, views: Views, tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, log_url=server.address, views_url=views.address)


# --- others at work ---


def test_a_consumer_that_comes_between_is_come_before_the_next_time(
    server: LogServer, log: RedisLog, views: Views, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = fill(log)
    moved(server, settings.home)
    taken: list[Lease | None] = []

    def after_another(store: StateStore, partition: int) -> Lease | None:
        if not taken:
            taken.append(ACQUIRE(store, partition))
        return ACQUIRE(store, partition)

    def before_another(store: StateStore, lease: Lease) -> tuple[Manifest, dict[str, bytes]] | None:
        found = LOAD(store, lease)
        if len(taken) == 1:
            store.release(lease)
            taken.append(ACQUIRE(store, lease.partition))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(StateStore, "acquire", after_another)
        patch.setattr(StateStore, "load", before_another)
        restore(settings)

    assert None not in taken
    assert len(taken) == 2
    told = consume_once(server.address, views, settings.home)
    assert told.names.count("restored") == 2
    require_as_straight(views, entries)


def test_one_that_always_comes_between_ends_it_and_the_log_is_held_back_for_minutes_only(
    server: LogServer, log: RedisLog, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(log)
    moved(server, settings.home)
    monkeypatch.setattr(StateStore, "acquire", lambda *_: None)

    with pytest.raises(PartitionTakenError):
        restore(settings)

    assert pinned(server) <= timedelta(minutes=10)


# --- when it takes long ---


def test_the_log_is_held_back_for_as_long_as_plays_are_counted(
    server: LogServer, log: RedisLog, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(log)
    moved(server, settings.home)
    count, read, left = LivePartition.count, plays_of_log, list[timedelta]()

    def in_pieces(*given: Any, **named: Any) -> Iterator[tuple[int, pa.RecordBatch]]:
        for number, rows in read(*given, **named):
            yield from ((number, rows.slice(start, 10)) for start in range(0, len(rows), 10))

    def long(live: LivePartition, batch: PlayBatch) -> None:
        left.append(pinned(server))
        with server.client() as client:
            client.hset(READERS, PIN, 1)  # as if it took hours
        count(live, batch)

    monkeypatch.setattr(LivePartition, "count", long)
    monkeypatch.setattr(lakeboard.live.restoring, "plays_of_log", in_pieces)
    restore(settings)

    assert len(left) > 10
    assert min(left) > timedelta(minutes=110)
    assert timedelta(minutes=9) < pinned(server) <= timedelta(minutes=10)


# --- another log ---


def test_plays_of_a_log_that_was_replaced_are_said_to_be_missing_and_that_is_no_reason_to_restore_again(
    server: LogServer, log: RedisLog, views: Views, settings: Settings
) -> None:
    fill(log)
    consume_once(server.address, views, settings.home)
    moved(server, settings.home)
    assert incomplete(settings) == frozenset()
    with server.client() as client:
        client.flushall()
    with RedisLog.open(server.address, partitions=PARTITIONS) as new:
        entries = fill(new, "f")
        consume_once(server.address, views, settings.home)
        assert incomplete(settings) == {(0, new.log_id), (1, new.log_id)}
        moved(server, settings.home)

        restore(settings)

        consume_once(server.address, views, settings.home)
        require_as_straight(views, entries)
        began = milliseconds(new.created)
        assert [published(views, number)[0].complete_from_ms for number in (0, 1)] == [began, began]
        assert incomplete(settings) == frozenset()


def test_a_log_that_is_older_than_what_live_charts_need_is_complete(
    server: LogServer, log: RedisLog, views: Views, settings: Settings
) -> None:
    fill(log)
    moved(server, settings.home)
    with server.client() as client:
        client.flushall()
    with RedisLog.open(server.address, partitions=PARTITIONS) as new:
        fill(new, "f")
        moved(server, settings.home)
    with server.client() as client:
        client.hset(META, "created_ms", milliseconds(utc_now() - timedelta(hours=30)))

    restore(settings)

    consume_once(server.address, views, settings.home)
    assert [published(views, number)[0].complete_from_ms for number in (0, 1)] == [0, 0]


def test_views_that_are_lost_are_a_reason_to_restore_until_it_is_done(
    server: LogServer, log: RedisLog, views: Views, settings: Settings
) -> None:
    fill(log)
    consume_once(server.address, views, settings.home)
    moved(server, settings.home)
    assert set(log.lengths(Stream.PLAYS).values()) == {0}
    views.client.flushall()
    consume_once(server.address, views, settings.home)
    assert incomplete(settings) == {(0, log.log_id), (1, log.log_id)}

    restore(settings)

    consume_once(server.address, views, settings.home)
    assert incomplete(settings) == frozenset()


def pinned(server: LogServer) -> timedelta:
    """For how long the log is held back by now."""
    with server.client() as client:
        until = int(client.hget(READERS, PIN) or 0)
    return timedelta(milliseconds=until - milliseconds(utc_now()))
