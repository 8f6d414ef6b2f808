"""An API with live charts that count for real, and a small lake behind it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx

from serving.keys import KeyFile, Limits, Role
from speed_layer.store.connection import Views, connect
from speed_layer.store.merge_loop import Merging
from tests.lakes import ModelLake, Play, at
from tests.servers import LogServer, log_server
from tests.serving.api_server import Api, api, until
from tests.speed_layer.published import AT, Publishers, merging, plays
from tests.views_server import ViewsServer, views_server


@dataclass
class Serving:
    """An API with live charts, what counts for it, and a key without a narrow limit."""

    api: Api
    log: LogServer
    server: ViewsServer
    views: Views
    key: str
    publishers: Publishers
    merging: Merging
    first: int = 0

    def play(self, *items: str, region: str = "IN") -> None:
        """Count plays, a moment later than those before, and merge."""
        at = AT + self.first * timedelta(milliseconds=1)
        self.publishers.say(plays(*items, region=region, first=self.first, at=at))
        self.first += len(items)
        self.merging.cycle()

    def get(self, path: str, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with self.api.client(self.key) as client:
            return client.get(path, headers=named)

    def counts(self, path: str) -> list[tuple[str, int]]:
        return [(row["item_id"], row["count"]) for row in self.get(path).json()["entries"]]


@contextmanager
def live_api(folder: Path, **special: Any) -> Iterator[Serving]:
    """Run an API with these settings, a log, a views server and a merger that works when it is asked to."""
    for name in ("api", "log", "views", "lake"):
        (folder / name).mkdir()
    home, lake = folder / "api", str(counted_lake(folder / "lake"))
    with (
        log_server(folder / "log") as log,
        views_server(folder / "views") as server,
        connect(server.address) as views,
        api(home, log.address, special={**special, "lake_root": lake}, views_url=server.address) as found,
    ):
        key = KeyFile(home).add("bench", (Role.READER, Role.PRODUCER), Limits(requests_per_second=1_000_000))[1]
        with found.client(key) as client:
            until(lambda: client.post("/v1/events").status_code != HTTPStatus.UNAUTHORIZED, "the new key is known")
        yield Serving(found, log, server, views, key, Publishers(views), merging(server, views))


def counted_lake(folder: Path) -> Path:
    """Hour 1 of day 14, certified, with a late event in its second release; hour 3 of day 15, not certified."""
    model = ModelLake()
    plays_ = [
        Play(f"{item}{n}", item, at(1), "IN") for item, times in {"a/b": 3, "ärger": 2}.items() for n in range(times)
    ]
    model.release(plays_, frontier=at(2))
    model.release([Play("late", "ärger", at(1), "IN"), Play("new", "c", at(3, day=15), "SE")], frontier=at(2, day=15))
    return model.write(folder)
