"""Scores as a game server sends them, while every part of the stack is killed: each acknowledged one counts once."""

import http.client
import json
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tests.faults.sending import Killer
from tests.stacks import Stack, running_stack, until

pytestmark = pytest.mark.e2e

SEED = 20_261_201
COMMAND = (sys.executable, "-m", "tests.faults.run_stack")
VICTIMS = ["boards", "views", "api", "log", "lake-writer"] * 4
PLAYERS = [f"player {number}" for number in range(12)]
TOML = '[[game]]\nname = "sums"\nmode = "sum"\nperiods = ["all_time", "daily"]\n'


@dataclass
class GameServer:
    """Sends scores one array after the other, each until it is acknowledged.

    Attributes:
        totals: By player, what was acknowledged.
        failures: What it got instead of an acknowledgement.
    """

    stack: Stack
    chance: random.Random
    totals: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    matches: int = 0
    ended: Event = field(default_factory=Event)

    def play(self) -> None:
        while not self.ended.is_set():
            rows = [self.row() for _ in range(self.chance.randint(1, 30))]
            self.until_taken(rows)
            if self.chance.random() < 0.2:
                self.until_taken(rows)
            for row in rows:
                self.totals[row["player_id"]] += row["delta"]

    def row(self) -> dict[str, Any]:
        self.matches += 1
        delta = self.chance.randint(-3, 9)
        return {
            "match_id": f"m{self.matches}",
            "player_id": self.chance.choice(PLAYERS),
            "delta": delta,
            "game": "sums",
        }

    def until_taken(self, rows: list[dict[str, Any]]) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                status, body = call(self.stack, "POST", "/scores", rows)
            except (OSError, http.client.HTTPException) as error:
                self.failures[type(error).__name__] += 1
            else:
                if status in (200, 202):
                    assert {one["status"] for one in body["results"]} <= {"counted", "pending"}, body
                    return
                self.failures[body["code"]] += 1
            assert time.monotonic() < deadline, self.failures
            time.sleep(0.05)


def call(stack: Stack, method: str, path: str, body: object = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", stack.port, timeout=10)
    try:
        key = (stack.home / "dev.key").read_text().strip()
        connection.request(method, path, json.dumps(body), {"Authorization": f"Bearer {key}"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def totals(stack: Stack, board: str) -> dict[str, int] | None:
    status, body = call(stack, "GET", f"/v1/games/sums/boards/{board}/top?limit=100")
    return (
        {row["player_id"]: row["score"] for row in body["entries"]} if status == 200 and "stale" not in body else None
    )


@pytest.mark.timeout(900)
def test_whatever_is_killed_each_acknowledged_score_counts_once_on_every_board(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "boards.toml").write_text(TOML, encoding="utf-8")
    chance = random.Random(SEED)
    victims = chance.sample(VICTIMS, len(VICTIMS))
    with running_stack(home, command=COMMAND) as stack:
        game, killer = GameServer(stack, chance), Killer(stack, chance)
        sender = Thread(target=game.play)
        sender.start()
        try:
            for victim in victims:
                killer.kill(victim, within=0.8)
        finally:
            game.ended.set()
            sender.join()

        assert killer.kills.total() == len(VICTIMS)
        assert game.failures
        assert game.matches > 100
        expected = dict(game.totals)
        until(lambda: totals(stack, "all_time") == expected, "every score is on the board once", 60)
        until(lambda: totals(stack, "daily") == expected, "and on that of the day", 60)
