"""Opening a log: made once, kept, refused where it would lose events, away, or on a replay's clock."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from domain.log import (
    BEGINNING,
    EntryId,
    LogReplacedError,
    LogUnavailableError,
    Partition,
    Stream,
    UnknownLogFormatError,
    UnsafeLogServerError,
)
from ingest.log_clock import ReplayClock
from ingest.log_keys import META
from ingest.redis_log import RedisLog
from tests.log_entries import bodies
from tests.servers import LogServer, log_server

pytestmark = pytest.mark.redis

P0 = Partition(Stream.PLAYS, 0)
P1 = Partition(Stream.PLAYS, 1)
SOME = {Stream.PLAYS: 3, Stream.SCORES: 2}


def test_the_number_of_partitions_stays_whatever_later_openers_ask_for(server: LogServer) -> None:
    with RedisLog.open(server.address, partitions=SOME) as made, RedisLog.open(server.address) as found:
        assert found.log_id == made.log_id
        assert [len(found.partitions(stream)) for stream in Stream] == [3, 2]
        assert found.partitions(Stream.PLAYS)[2] == Partition(Stream.PLAYS, 2)


def test_openers_at_the_same_moment_make_one_log(server: LogServer) -> None:
    for _ in range(20):
        with server.client() as client:
            client.flushall()
        together = threading.Barrier(4)

        def opened(number: int, together: threading.Barrier = together) -> RedisLog:
            together.wait()
            return RedisLog.open(server.address, partitions={Stream.PLAYS: 1 + number, Stream.SCORES: 1})

        with ThreadPoolExecutor(4) as threads:
            logs = list(threads.map(opened, range(4)))
        assert len({log.log_id for log in logs}) == 1
        assert len({log.partitions(Stream.PLAYS) for log in logs}) == 1
        assert all(log.append([(P0, b"x")]) for log in logs)
        for log in logs:
            log.close()


def test_a_server_with_a_new_folder_has_another_log(tmp_path: Path) -> None:
    with log_server(tmp_path / "one") as one, RedisLog.open(one.address) as log:
        log.append([(P0, b"a")])
        old = log.log_id
        one.kill()
        one.start()
        assert RedisLog.open(one.address).log_id == old
        assert bodies(log, P0) == [b"a"]
        one.kill()
        for path in sorted(one.folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        one.start()
        with pytest.raises(LogReplacedError, match="an empty server"):
            log.read(P0, after=BEGINNING, limit=1)
        assert RedisLog.open(one.address).log_id != old


@pytest.mark.parametrize(
    ("setting", "value", "problem"),
    [
        ("appendfsync", "everysec", "appendfsync is everysec, must be always"),
        ("appendonly", "no", "appendonly is no, must be yes"),
        ("maxmemory-policy", "allkeys-lru", "maxmemory-policy is allkeys-lru, must be noeviction"),
        ("maxmemory", "0", "maxmemory is not set"),
        ("no-appendfsync-on-rewrite", "yes", "no-appendfsync-on-rewrite is yes, must be no"),
    ],
)
def test_a_server_that_would_lose_events_is_refused_by_name(
    server: LogServer, setting: str, value: str, problem: str
) -> None:
    with server.client() as client:
        before = client.config_get(setting)[setting]
        client.config_set(setting, value)
        try:
            with pytest.raises(UnsafeLogServerError, match=problem) as refused:
                RedisLog.open(server.address)
        finally:
            client.config_set(setting, before)
    assert len(refused.value.problems) == 1
    with RedisLog.open(server.address) as log:
        assert log.append([(P0, b"a")])


def test_a_log_of_another_format_is_refused(server: LogServer) -> None:
    RedisLog.open(server.address).close()
    with server.client() as client:
        client.hset(META, "format", 2)

    with pytest.raises(UnknownLogFormatError, match="has format 2"):
        RedisLog.open(server.address)


def test_a_server_that_is_away_is_said_and_a_connection_that_died_meanwhile_is_not(tmp_path: Path) -> None:
    with log_server(tmp_path) as server, RedisLog.open(server.address) as log:
        log.append([(P0, b"a")])
        server.kill()
        with pytest.raises(LogUnavailableError, match="does not answer"):
            log.read(P0, after=BEGINNING, limit=1)
        server.start()
        assert bodies(log, P0) == [b"a"]


def test_a_replay_stamps_entries_and_time_by_its_own_clock(server: LogServer) -> None:
    began = datetime(2026, 1, 1, tzinfo=UTC)
    real = [began]
    clock = ReplayClock(start=datetime(2013, 3, 10, 5, tzinfo=UTC), began=began, speed=60.0, real=lambda: real[0])
    with RedisLog.open(server.address, clock=clock) as log:
        ids = [*log.append([(P0, b"a"), (P0, b"b")])]
        real[0] += timedelta(minutes=1)
        ids += log.append([(P0, b"c")])

        at_five = int(datetime(2013, 3, 10, 5, tzinfo=UTC).timestamp() * 1000)
        assert ids == [EntryId(at_five, 0), EntryId(at_five, 1), EntryId(at_five + 3_600_000, 0)]
        with server.client() as client:
            seconds, _ = client.time()
        shown = log.read(P0, after=ids[2], limit=1).at
        expected = clock.of_server(datetime.fromtimestamp(seconds, UTC))
        assert abs(shown - expected) < timedelta(seconds=5 * 60)


def test_an_id_that_went_back_in_a_replay_is_stamped_again(server: LogServer) -> None:
    began = datetime(2026, 1, 1, tzinfo=UTC)
    moments = iter([began + timedelta(seconds=s) for s in (10, 9, 9, 11)])
    clock = ReplayClock(start=began, began=began, speed=1.0, real=lambda: next(moments))
    with RedisLog.open(server.address, clock=clock) as log:
        first = log.append([(P0, b"a")])[0]
        second = log.append([(P0, b"b")])[0]

    assert second.ms - first.ms == 1000
    assert next(moments, None) is None
