"""Answers find whoever asked, whatever happens to the connection between."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from speed_layer.store import coalesced
from speed_layer.store.coalesced import CoalescedCalls
from speed_layer.store.leases import ViewsUnavailableError
from tests.views_server import ViewsServer, views_server

ECHO: Final = "#!lua flags=no-writes\nreturn ARGV[1]"
FAIL: Final = "#!lua flags=no-writes\nreturn redis.error_reply('it says no')"
SHORT: Final = 0.2


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ViewsServer]:
    with views_server(tmp_path_factory.mktemp("coalesced")) as server:
        yield server


def test_each_of_many_gets_its_own_answer_and_errors_hit_only_their_own(server: ViewsServer) -> None:
    async def ask() -> None:
        calls = CoalescedCalls(server.address)
        asked = [calls.script(FAIL if n % 7 == 0 else ECHO, ["{0}"], [f"answer {n}"]) for n in range(500)]
        found = await asyncio.gather(*asked, return_exceptions=True)
        await calls.close()
        for number, answer in enumerate(found):
            if number % 7 == 0:
                assert isinstance(answer, ViewsUnavailableError)
                assert "it says no" in str(answer)
            else:
                assert answer == f"answer {number}".encode()

    asyncio.run(ask())


def test_an_answer_that_came_too_late_is_nobody_elses(server: ViewsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask() -> None:
        calls = CoalescedCalls(server.address)
        assert await calls.script(ECHO, ["{0}"], ["first"]) == b"first"
        monkeypatch.setattr(coalesced, "_SECONDS", SHORT)
        assert server.process is not None
        os.kill(server.process.pid, signal.SIGSTOP)
        try:
            with pytest.raises(ViewsUnavailableError):
                await calls.script(ECHO, ["{0}"], ["late"])
        finally:
            os.kill(server.process.pid, signal.SIGCONT)
            monkeypatch.undo()
        found = await asyncio.gather(*[calls.script(ECHO, ["{0}"], [str(n)]) for n in range(50)])
        assert found == [str(n).encode() for n in range(50)]
        await calls.close()

    asyncio.run(ask())


def test_who_stops_waiting_takes_nobody_s_answer_away(server: ViewsServer) -> None:
    async def ask() -> None:
        calls = CoalescedCalls(server.address)
        asked = [asyncio.ensure_future(calls.script(ECHO, ["{0}"], [str(n)])) for n in range(100)]
        await asyncio.sleep(0)
        for one in asked[::2]:
            one.cancel()
        assert await asyncio.gather(*asked[1::2]) == [str(n).encode() for n in range(1, 100, 2)]
        await calls.close()

    asyncio.run(ask())


def test_a_server_that_came_back_without_its_scripts_is_asked_again(tmp_path: Path) -> None:
    async def ask(server: ViewsServer) -> None:
        calls = CoalescedCalls(server.address)
        assert await calls.script(ECHO, ["{0}"], ["before"]) == b"before"
        server.kill()
        with pytest.raises(ViewsUnavailableError):
            await calls.script(ECHO, ["{0}"], ["meanwhile"])
        server.start()
        found = await asyncio.gather(*[calls.script(ECHO, ["{0}"], [str(n)]) for n in range(10)])
        assert found == [str(n).encode() for n in range(10)]
        await calls.close()

    with views_server(tmp_path) as server:
        asyncio.run(ask(server))
