"""The appending side against a real server: together, each to its own, through kills, replacement and full memory."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from domain.clock import utc_now
from domain.log import (
    BEGINNING,
    LAKE_READER,
    EntryId,
    LogFullError,
    LogUnavailableError,
    NoVersionError,
    Stream,
    UnsafeLogServerError,
)
from ingest.hashing import partition_number
from ingest.log_appender import LogAppender
from ingest.log_clock import ReplayClock
from ingest.log_entry import Play, decode_plays
from ingest.log_keys import stream_key
from ingest.log_kinds import PLAYS_KIND, Appended
from ingest.redis_log import RedisLog
from tests.log_entries import play
from tests.servers import LogServer, log_server

pytestmark = pytest.mark.redis

Work = Callable[[LogAppender[Play]], Awaitable[None]]
SECONDS = 20.0


def with_appender(server: LogServer, work: Work, **options: object) -> None:
    """Run work against a started appender and stop it."""

    async def run() -> None:
        appender = LogAppender(PLAYS_KIND, server.address, **options)  # type: ignore[arg-type]
        await appender.start()
        try:
            await asyncio.wait_for(work(appender), SECONDS)
        finally:
            await appender.stop()

    asyncio.run(run())


def entries(server: LogServer) -> list[tuple[int, list[str], list[tuple[str, int]]]]:
    """Partition, event ids and sources of every entry that is there."""
    with RedisLog.open(server.address) as log:
        return [
            (partition.number, decoded.event_ids, decoded.sources)
            for partition, after in log.offsets(LAKE_READER, Stream.PLAYS).items()
            for entry in log.read(partition, after=after, limit=100_000).entries
            for decoded in [decode_plays(entry.body, where=str(entry.id))]
        ]


def event_ids(server: LogServer) -> list[str]:
    return sorted(event_id for _, ids, _ in entries(server) for event_id in ids)


def test_requests_of_the_same_moment_share_entries_and_each_play_is_in_the_partition_of_its_item(
    server: LogServer,
) -> None:
    async def work(appender: LogAppender[Play]) -> None:
        await asyncio.gather(*(appender.append([play(f"e{n}", f"item {n % 50}")], f"key {n % 3}") for n in range(500)))

    with_appender(server, work)

    found = entries(server)
    assert sorted(event_id for _, ids, _ in found for event_id in ids) == sorted(f"e{n}" for n in range(500))
    assert len(found) <= 3 * 8  # three turns at the most, where 500 requests alone would make 500 entries
    for number, ids, sources in found:
        numbers = [int(event_id[1:]) for event_id in ids]
        assert {partition_number(f"item {n % 50}", 8) for n in numbers} == {number}
        named = [name for name, length in sources for _ in range(length)]
        assert named == [f"key {n % 3}" for n in numbers]


def test_a_request_is_answered_when_all_its_plays_can_be_read(server: LogServer) -> None:
    async def work(appender: LogAppender[Play]) -> None:
        for turn in range(5):
            mine = [play(f"{turn}.{n}", f"item {n}") for n in range(40)]
            others = [appender.append([play(f"other {turn}.{n}")], "other") for n in range(20)]
            task = asyncio.gather(*others)
            await appender.append(mine, "me")
            there = set(await asyncio.to_thread(event_ids, server))
            assert {each.event_id for each in mine} <= there
            await task

    with_appender(server, work)


def test_a_request_that_goes_away_takes_no_other_with_it(server: LogServer) -> None:
    async def work(appender: LogAppender[Play]) -> None:
        tasks = [asyncio.create_task(appender.append([play(f"e{n}")], "api")) for n in range(30)]
        await asyncio.sleep(0)  # all have queued
        for task in tasks[::3]:
            task.cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(answer) for answer in answers] == [
            asyncio.CancelledError if n % 3 == 0 else list for n in range(30)
        ]
        await appender.append([play("after")], "api")

    with_appender(server, work)

    assert {f"e{n}" for n in range(30) if n % 3} | {"after"} <= set(event_ids(server))


def test_stopping_first_puts_on_disk_what_waits(server: LogServer) -> None:
    tasks: list[asyncio.Task[Sequence[Appended]]] = []

    async def work(appender: LogAppender[Play]) -> None:
        tasks.extend(asyncio.create_task(appender.append([play(f"e{n}")], "api")) for n in range(10))
        await asyncio.sleep(0)

    with_appender(server, work)

    assert [task.done() and task.exception() for task in tasks] == [None] * 10
    assert len(event_ids(server)) == 10


def test_a_killed_server_is_said_and_after_its_start_appends_go_on_with_nothing_lost(tmp_path: Path) -> None:
    with log_server(tmp_path) as server:

        async def work(appender: LogAppender[Play]) -> None:
            await appender.append([play("before")], "api")
            server.kill()
            with pytest.raises(LogUnavailableError, match="does not answer"):
                await appender.append([play("away")], "api")
            await asyncio.to_thread(server.start)
            await until_taken(appender, "after")

        with_appender(server, work)

        assert {"before", "after"} <= set(event_ids(server))


def test_in_a_server_that_lost_its_log_a_new_one_is_made(server: LogServer) -> None:
    async def work(appender: LogAppender[Play]) -> None:
        await appender.append([play("before", f"item {n}") for n in range(3)], "api")
        with server.client() as client:
            client.flushall()
        await appender.append([play(f"after {n}", f"item {n}") for n in range(100)], "api")

    with_appender(server, work)

    assert event_ids(server) == sorted(f"after {n}" for n in range(100))


def test_a_full_server_refuses_and_takes_again_when_it_was_trimmed(tmp_path: Path) -> None:
    with log_server(tmp_path, max_bytes=8 << 20) as server:
        taken: list[str] = []

        async def work(appender: LogAppender[Play]) -> None:
            with pytest.raises(LogFullError):
                await append_for_ever(appender, taken)
            assert len(taken) > 1000
            assert set(taken) <= set(await asyncio.to_thread(event_ids, server))
            await asyncio.to_thread(trim_all, server)
            await until_taken(appender, "after")

        with_appender(server, work)

        assert event_ids(server) == ["after"]


def test_a_server_that_would_lose_events_is_not_appended_to(server: LogServer) -> None:
    with server.client() as client:
        client.config_set("appendfsync", "everysec")
        try:
            with pytest.raises(UnsafeLogServerError, match="appendfsync is everysec"):
                with_appender(server, until_taken_of("never"))
        finally:
            client.config_set("appendfsync", "always")


def test_a_replay_clock_that_went_back_stamps_again(server: LogServer) -> None:
    began = datetime(2026, 1, 1, tzinfo=UTC)
    moments = iter([began + timedelta(seconds=s) for s in (10, 5, 5, 12, *range(13, 40))])
    clock = ReplayClock(start=began, began=began, speed=1.0, real=lambda: next(moments))

    async def work(appender: LogAppender[Play]) -> None:
        await appender.append([play("one")], "api")
        await appender.append([play("two")], "api")

    with_appender(server, work, clock=clock)

    with RedisLog.open(server.address) as log:
        partition = log.partitions(Stream.PLAYS)[partition_number("a", 8)]
        first, second = log.read(partition, after=BEGINNING, limit=9).entries
    assert second.id.ms - first.id.ms == 2000


def test_a_server_whose_clock_went_back_is_not_appended_to_until_the_lake_has_no_room_for_the_numbers(
    server: LogServer,
) -> None:
    with RedisLog.open(server.address) as log, server.client() as client:
        key = stream_key(log.partitions(Stream.PLAYS)[partition_number("a", 8)])
        ahead_ms = int(utc_now().timestamp() * 1000) + 3_600_000
        client.xadd(key, {"b": b""}, id=f"{ahead_ms}-99998")

    async def work(appender: LogAppender[Play]) -> None:
        await appender.append([play("99999")], "api")
        await appender.append([play("100000")], "api")
        with pytest.raises(LogFullError, match="clock went back"):
            await appender.append([play("refused")], "api")

    with_appender(server, work)

    with pytest.raises(NoVersionError, match="counter of 1048576 or more"):
        EntryId(ahead_ms, 2**20).version.bit_length()


async def append_for_ever(appender: LogAppender[Play], taken: list[str]) -> None:
    while True:
        big = [play(f"{len(taken)}.{k}", f"item {k}", user_id="u" * 250) for k in range(200)]
        await appender.append(big, "api")
        taken.extend(each.event_id for each in big)


async def until_taken(appender: LogAppender[Play], event_id: str) -> None:
    """Append until it works; the deadline is that of the work around it."""
    taken = False
    while not taken:
        with suppress(LogUnavailableError, LogFullError):
            await appender.append([play(event_id)], "api")
            taken = True
        await asyncio.sleep(0.02)


def until_taken_of(event_id: str) -> Work:
    async def work(appender: LogAppender[Play]) -> None:
        await until_taken(appender, event_id)

    return work


def trim_all(server: LogServer) -> Sequence[object]:
    with RedisLog.open(server.address) as log:
        log.commit_offsets(LAKE_READER, log.end_offsets(Stream.PLAYS))
        return [log.trim(partition) for partition in log.partitions(Stream.PLAYS)]
