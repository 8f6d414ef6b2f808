"""Boards rebuilt by the command while scores come and readers read; then lost: nothing is missing, nobody notices."""

import json
import random
import time
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from deltalake import DeltaTable

from domain.board_tables import SCORES
from domain.clock import utc_now
from tests.faults.sending import Killer
from tests.faults.test_boards_kill import COMMAND, TOML, call
from tests.stacks import Stack, running_stack, until

pytestmark = pytest.mark.e2e

PLAYERS = 2000
TOP = "/v1/games/sums/boards/all_time/top?limit=100"


@dataclass
class GameServer:
    """Sends arrays of scores without a pause, some of them twice."""

    stack: Stack
    chance: random.Random
    totals: dict[str, int] = field(default_factory=dict)
    ended: Event = field(default_factory=Event)
    scores: int = 0

    def play(self) -> None:
        while not self.ended.is_set():
            self.send([self.row() for _ in range(200)])
            time.sleep(0.4)  # one core is Spark's

    def row(self) -> dict[str, Any]:
        self.scores += 1
        player = f"player {self.chance.randrange(PLAYERS)}"
        return {"match_id": f"m{self.scores}", "player_id": player, "delta": self.chance.randint(1, 9), "game": "sums"}

    def send(self, rows: list[dict[str, Any]]) -> None:
        for _ in range(2 if self.chance.random() < 0.05 else 1):
            status, body = call(self.stack, "POST", "/scores", rows)
            assert status in (HTTPStatus.OK, HTTPStatus.ACCEPTED), body
        for row in rows:
            self.totals[row["player_id"]] = self.totals.get(row["player_id"], 0) + row["delta"]


@dataclass
class Reader:
    """Reads the top and a player's place again and again; what it sees must be one whole board each time."""

    stack: Stack
    looks: int = 0
    slowest: float = 0.0
    size: int = 0
    wrong: list[str] = field(default_factory=list)
    ended: Event = field(default_factory=Event)

    def read(self) -> None:
        while not self.ended.is_set() and not self.wrong:
            began = time.monotonic()
            for path, look in (
                (TOP, self.top),
                ("/v1/games/sums/boards/all_time/players/player%201?around=2", self.place),
            ):
                status, body = call(self.stack, "GET", path)
                if status != HTTPStatus.OK or "stale" in body:
                    self.wrong.append(f"{path}: {status} {body}"[:300])
                else:
                    look(body)
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.looks += 1

    def top(self, body: dict[str, Any]) -> None:
        scores = [row["score"] for row in body["entries"]]
        ranks = [row["rank"] for row in body["entries"]]
        if scores != sorted(scores, reverse=True) or ranks != list(range(1, len(ranks) + 1)):
            self.wrong.append(f"not in order: {body}"[:300])
        if body["of"] < self.size:
            self.wrong.append(f"{body['size']} players after {self.size}")
        self.size = body["of"]

    def place(self, body: dict[str, Any]) -> None:
        if len(body["above"]) + len(body["below"]) < min(2, self.size - 1):
            self.wrong.append(f"half a neighbourhood: {body}"[:300])


def totals(stack: Stack) -> dict[str, int]:
    """All players' sums, page by page."""
    found: dict[str, int] = {}
    cursor = ""
    while True:
        status, body = call(stack, "GET", TOP + cursor)
        if status != HTTPStatus.OK or "stale" in body:
            return {}
        found |= {row["player_id"]: row["score"] for row in body["entries"]}
        if not body["cursor"]:
            return found
        cursor = f"&cursor={body['cursor']}"


def in_the_lake(stack: Stack) -> int:
    path = stack.home / "lake" / SCORES.name
    return DeltaTable(path).to_pyarrow_table(columns=["kind"]).num_rows if DeltaTable.is_deltatable(str(path)) else 0


@pytest.mark.timeout(900)
def test_a_rebuild_under_load_loses_nothing_shows_nothing_half_and_counts_what_waited_for_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "boards.toml").write_text(TOML, encoding="utf-8")
    with running_stack(home, command=COMMAND) as stack:
        game, reader = GameServer(stack, random.Random(20_261_202)), Reader(stack)
        game.send(
            [
                {"match_id": f"first {n}", "player_id": f"player {n}", "delta": 1, "game": "sums"}
                for n in range(PLAYERS // 2)
            ]
        )
        late = (utc_now() - timedelta(hours=30)).isoformat()
        status, body = call(
            stack,
            "POST",
            "/scores",
            {"match_id": "late", "player_id": "player 1", "delta": 70, "game": "sums", "ended_at": late},
        )
        assert (status, body["status"]) == (HTTPStatus.ACCEPTED, "pending")
        status, _ = call(stack, "DELETE", "/v1/games/sums/matches/first%202/players/player%202")
        assert status in (HTTPStatus.OK, HTTPStatus.ACCEPTED)
        until(lambda: in_the_lake(stack) >= PLAYERS // 2 + 2, "the lake has them", 60)
        threads = [Thread(target=game.play), Thread(target=reader.read)]
        for thread in threads:
            thread.start()
        before = game.scores
        try:
            done = stack.run("rebuild-board", "--all", "--json")
            during = game.scores - before
            time.sleep(1)  # some more of what comes after it
        finally:
            game.ended.set()
            reader.ended.set()
            for thread in threads:
                thread.join()
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert told["live"] is True
        assert during > 3000, (during, told["seconds"])
        assert reader.wrong == []
        assert reader.looks > 50
        expected = dict(game.totals)
        expected["player 1"] += 70
        expected["player 2"] -= 1
        until(lambda: totals(stack) == expected, "every score is on the board once", 60)

        Killer(stack, random.Random(1)).kill("views", within=0.1)
        until(lambda: totals(stack) == expected, "they are back without Spark", 120)
