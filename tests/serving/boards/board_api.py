"""An API with boards: a real log, a real views server, and a consumer that works beside it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx

from domain.boards.definitions import Boards
from ingest.hashing import partition_number
from ingest.read_scores import score_history
from ingest.redis_log import RedisLog
from ingest.score_entry import placed_events
from serving.keys import KeyFile, Limits, Role
from speed_layer.boards.consumer import run
from speed_layer.boards.job import BoardsJob
from speed_layer.store.connection import connect
from tests.servers import LogServer, log_server
from tests.serving.api_server import Api, api, until
from tests.views_server import ViewsServer, views_server

TOML = """
[[game]]
name = "default"
[[game]]
name = "sums"
mode = "sum"
periods = ["all_time", "weekly"]
[[game]]
name = "golf"
mode = "best_low"
periods = ["all_time"]
[[game]]
name = "held"
periods = ["all_time"]
hold_above = 100
"""


class Consumer:
    """A consumer of boards in a thread, that may be stopped and started."""

    def __init__(self, log: LogServer, views: ViewsServer, boards: Boards, lake: Path, shards: int) -> None:
        self._job = BoardsJob(
            open_log=lambda: RedisLog.open(log.address),
            connect=lambda: connect(views.address),
            boards=boards,
            shards=shards,
            decode=lambda entry, partition: placed_events(entry, where=f"{entry.id} of {partition}"),
            base=lambda: None,
            history=partial(score_history, lake),
            partition_of=partition_number,
            say=lambda *_: None,
            report=lambda _: None,
        )
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=run, args=(self._job, self._stop))
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None


@dataclass
class BoardServing:
    """A running API with boards and what works for it."""

    api: Api
    log: LogServer
    server: ViewsServer
    consumer: Consumer
    key: str
    lake: Path

    def client(self, key: str | None = None) -> httpx.Client:
        return self.api.client(self.key if key is None else key)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with self.client() as client:
            return client.request(method, path, json=body, headers=named)

    def get(self, path: str) -> Any:
        answer = self.call("GET", path)
        assert answer.status_code == HTTPStatus.OK, answer.text
        return answer.json()

    def post(self, player: str, score: int, *, match: str | None = None, **more: Any) -> httpx.Response:
        body = {"match_id": match or f"{player}-{score}", "player_id": player, "score": score, **more}
        return self.call("POST", "/scores", body)

    def ranks(self, path: str) -> list[tuple[int, str, int]]:
        return [(row["rank"], row["player_id"], row["score"]) for row in self.get(path)["entries"]]


@contextmanager
def board_api(folder: Path, *, shards: int = 1, **special: object) -> Iterator[BoardServing]:
    """Run all of it in a folder, with special settings of the API."""
    for name in ("api", "log", "views"):
        (folder / name).mkdir(parents=True)
    boards = Boards.parse(TOML)
    all_special = {
        "boards_text": TOML,
        "board_shards": shards,
        "reads_per_second": 1_000_000,
        "lake_root": str(folder / "lake"),
        **special,
    }
    (folder / "api" / "boards.toml").write_text(TOML, encoding="utf-8")
    with (
        log_server(folder / "log") as log,
        views_server(folder / "views") as server,
        api(folder / "api", log.address, special=all_special, views_url=server.address) as found,
    ):
        consumer = Consumer(log, server, boards, folder / "lake", shards)
        consumer.start()
        roles = (Role.READER, Role.GAME_SERVER, Role.ADMIN)
        key = KeyFile(folder / "api").add("game", roles, Limits(requests_per_second=1_000_000))[1]
        try:
            serving = BoardServing(found, log, server, consumer, key, folder / "lake")
            until(lambda: serving.call("POST", "/scores").status_code != HTTPStatus.UNAUTHORIZED, "the key is known")
            until(lambda: serving.call("GET", "/boards/daily/top").status_code == HTTPStatus.OK, "the boards are ready")
            yield serving
        finally:
            consumer.stop()
