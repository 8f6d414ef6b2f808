"""A client that sends until it is told that an event is accepted, and somebody who kills what it talks to."""

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.stacks import Stack, until

Event = dict[str, Any]
_ACCEPTED = 202
_GIVE_UP_SECONDS = 120.0
_PAUSE_SECONDS = 0.05
FIRST_HOUR = datetime(2026, 11, 14, 8, tzinfo=UTC)


def made_up_events(count: int, seed: int) -> list[Event]:
    """Plays with ids of their own, over a few items, regions and hours."""
    chance = random.Random(seed)
    return [
        {
            "event_id": f"event-{number}",
            "item_id": f"item-{min(int(chance.expovariate(0.1)), 60)}",
            "region": chance.choice(["IN", "US", "BR"]),
            "event_time": (FIRST_HOUR + timedelta(seconds=chance.randrange(3 * 3600))).isoformat(),
            "count": chance.choice([1, 1, 1, 2]),
        }
        for number in range(count)
    ]


def requests_of(events: Sequence[Event], seed: int) -> list[list[Event]]:
    """Cut events into requests: half of them single plays, the others arrays of up to 200."""
    chance, requests, at = random.Random(seed), [], 0
    while at < len(events):
        size = 1 if chance.random() < 0.93 else chance.randrange(2, 200)
        requests.append(list(events[at : at + size]))
        at += size
    return requests


@dataclass
class Client:
    """Sends requests from several threads; counts how often each event was sent and acknowledged.

    Attributes:
        stack: Where it sends them.
        sent: Times that an event went out, by id, whatever came of it.
        acknowledged: Times that it was acknowledged.
        failures: What went wrong, by kind.
    """

    stack: Stack
    sent: Counter[str] = field(default_factory=Counter)
    acknowledged: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, requests: Sequence[list[Event]], *, threads: int = 6) -> None:
        """Send all requests, each until it is acknowledged."""
        with ThreadPoolExecutor(threads) as pool:
            for _ in pool.map(self._until_acknowledged, requests):
                pass

    def once(self) -> set[str]:
        """Return the ids that were sent a single time and acknowledged: nothing but the log can have kept them."""
        return {event_id for event_id, times in self.acknowledged.items() if times == self.sent[event_id] == 1}

    def _until_acknowledged(self, events: list[Event]) -> None:
        deadline = time.monotonic() + _GIVE_UP_SECONDS
        while not self._acknowledged(events):
            assert time.monotonic() < deadline, f"{events[0]} was never accepted: {self.failures}"
            time.sleep(_PAUSE_SECONDS)

    def _acknowledged(self, events: list[Event]) -> bool:
        ids = [event["event_id"] for event in events]
        with self._lock:
            self.sent.update(ids)
        try:
            status, body, _ = self.stack.post(events[0] if len(events) == 1 else events)
        except (OSError, ValueError) as error:  # refused, reset, timed out, or cut in the middle of the answer
            status, body = 0, {"code": type(error).__name__}
        with self._lock:
            if status == _ACCEPTED:
                assert body == {"accepted": len(ids), "duplicates": 0, "errors": []}
                self.acknowledged.update(ids)
            else:
                self.failures[f"{status} {body.get('code')}"] += 1
        return status == _ACCEPTED


@dataclass
class Killer:
    """Kills processes of a stack with -9.

    Attributes:
        stack: Whose.
        chance: Decides which and when.
        kills: How often each was killed.
    """

    stack: Stack
    chance: random.Random
    kills: Counter[str] = field(default_factory=Counter)

    def kill(self, victim: str, *, within: float) -> None:
        """Kill a part at a random moment from now on, once it runs.

        Args:
            victim: log, lake-writer, or api for a worker of the API.
            within: Longest wait, seconds.
        """
        time.sleep(self.chance.uniform(0, within))
        until(lambda: self._killed(victim), f"{victim} runs and can be killed", 60)
        self.kills[victim] += 1

    def _killed(self, victim: str) -> bool:
        try:
            pid = self.stack.workers()[0] if victim == "api" else self.stack.part(victim)["pid"]
            if pid is None:
                return False
            os.kill(pid, signal.SIGKILL)
        except (OSError, IndexError):  # it is not there just now
            return False
        return True
