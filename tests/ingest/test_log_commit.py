import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import redis
from redis.asyncio import Redis

from ingest.log_appender import LogAppender
from ingest.log_commit import commit
from ingest.log_kinds import PLAYS_KIND
from tests.log_entries import play
from tests.servers import LogServer, log_server

pytestmark = pytest.mark.redis

Result = TypeVar("Result")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LogServer]:
    with log_server(tmp_path / "log", max_bytes=32 << 20) as running:
        with running.client() as client:
            for key in ("a", "b"):
                client.xgroup_create(key, "making", mkstream=True)
        yield running


def run(server: LogServer, work: Callable[[Redis], Awaitable[Result]]) -> Result:
    async def connected() -> Result:
        async with Redis.from_url(server.address, protocol=3) as client:
            return await work(client)

    return asyncio.run(connected())


def test_all_entries_of_a_commit_are_there_and_their_ids_are_told_in_order(server: LogServer) -> None:
    bodies = {"b": b"second\r\n$5\r\n\x00", "a": b""}

    answers = run(server, lambda client: commit(client, bodies, entry_id="*"))

    with server.client() as client:
        assert [client.xrange(key) for key in bodies] == [
            [(answer, {b"b": body})] for answer, body in zip(answers, bodies.values(), strict=True)
        ]


def test_a_commit_larger_than_the_server_reads_at_a_time_is_one_transaction(server: LogServer) -> None:
    run(server, lambda client: commit(client, {"a": bytes(1 << 20), "b": bytes(1 << 20)}, entry_id="*"))

    with server.client() as client:
        calls = {name: int(told["calls"]) for name, told in client.info("commandstats").items()}
    assert (calls["cmdstat_multi"], calls["cmdstat_exec"], calls["cmdstat_xadd"]) == (1, 1, 2)


def test_a_stream_that_is_not_there_is_said_and_not_made(server: LogServer) -> None:
    answers = run(server, lambda client: commit(client, {"gone": b"x", "a": b"y"}, entry_id="*"))

    assert answers[0] is None
    assert isinstance(answers[1], bytes)
    with server.client() as client:
        assert not client.exists("gone")


def test_a_clock_that_went_back_is_the_answer_of_its_own_stream_only(server: LogServer) -> None:
    async def work(client: Redis) -> list[Any]:
        await commit(client, {"a": b"x"}, entry_id="2000-*")
        return await commit(client, {"a": b"x", "b": b"y"}, entry_id="1000-*")

    first, second = run(server, work)

    assert "equal or smaller" in str(first)
    assert second == b"1000-0"


def test_a_full_server_takes_nothing_of_a_commit_and_the_connection_stays_good(server: LogServer) -> None:
    async def work(client: Redis) -> tuple[list[Any], list[Any], int]:
        await client.config_set("maxmemory", 1 << 20)
        full = await commit(client, {"a": bytes(100), "b": bytes(100)}, entry_id="*")
        await client.config_set("maxmemory", 32 << 20)
        return full, await commit(client, {"a": b"x"}, entry_id="*"), await client.xlen("b")

    full, after, length = run(server, work)

    assert [type(answer) for answer in full] == [redis.exceptions.OutOfMemoryError] * 2
    assert isinstance(after[0], bytes)
    assert length == 0


def test_an_appender_that_is_stopped_finishes_what_it_was_given(server: LogServer) -> None:
    async def work() -> list[Any]:
        appender = LogAppender(PLAYS_KIND, server.address)
        await appender.start()
        appends = [asyncio.create_task(appender.append([play(f"{n}-{m}") for m in range(100)], "s")) for n in range(50)]
        await asyncio.sleep(0)
        await appender.stop()
        return await asyncio.wait_for(asyncio.gather(*appends, return_exceptions=True), 20)

    assert sum(place.events for (place,) in asyncio.run(work())) == 50 * 100


def test_an_appender_may_start_before_its_server_and_takes_events_once_it_is_there(server: LogServer) -> None:
    server.kill()

    async def work() -> list[Any]:
        appender = LogAppender(PLAYS_KIND, server.address)
        await appender.start(must_answer=False)
        before = await asyncio.gather(appender.append([play("1")], "s"), return_exceptions=True)
        await asyncio.to_thread(server.start)
        await asyncio.wait_for(appender.append([play("2")], "s"), 10)
        await appender.stop()
        return list(before)

    before = asyncio.run(work())

    assert "does not answer" in str(before[0])
    with server.client() as client:
        assert sum(client.xlen(f"lb:log:plays:{number}") for number in range(8)) == 1
