"""What many watch is looked at once: how often, for how many viewers."""

import asyncio
from pathlib import Path

import pytest

from serving.answers import Head
from serving.bodies import Message
from serving.channels import Channels
from serving.settings import ApiSettings
from serving.viewers import Viewers

pytestmark = pytest.mark.fast

CHANGES = 20


def test_all_who_watch_the_same_share_one_look_at_a_time_and_nobody_looks_once_they_left(tmp_path: Path) -> None:
    settings = ApiSettings(home=tmp_path, run=tmp_path, log_url="")
    looks = 0
    heard: list[list[bytes]] = [[], [], []]
    left = asyncio.Event()

    async def look() -> tuple[str, bytes]:
        nonlocal looks
        looks += 1
        return str(looks), b"{}"

    async def receive() -> Message:
        await left.wait()
        return {"type": "http.disconnect"}

    async def view(channels: Channels, number: int) -> None:
        async def send(message: Message) -> None:
            heard[number] += [message["body"]] if message.get("body") else []
            if all(len(one) > CHANGES for one in heard):
                left.set()

        head = Head("GET", "/v1/charts/live", b"", {}, b"id", "127.0.0.1")
        await channels.show("it", look, head=head, receive=receive, send=send, more=())

    async def watch() -> int:
        channels = Channels(settings, viewers=Viewers(settings), name="chart", seconds=0.001)
        await asyncio.wait_for(asyncio.gather(*[view(channels, number) for number in range(3)]), 30)
        before = looks
        await asyncio.sleep(0.01)
        return looks - before

    assert asyncio.run(watch()) == 0
    assert max(len(one) for one in heard) <= looks <= max(len(one) for one in heard) + 3
    ids = [[body.split(b"id: ")[1].split(b"\n")[0] for body in one if b"id: " in body] for one in heard]
    assert all(one == sorted(set(one), key=int) and len(one) >= CHANGES for one in ids)
