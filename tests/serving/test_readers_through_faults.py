"""Readers that never rest while batch is late, early, killed and restated: each answer is compared with all plays.

What they read says of which moment it is. So the truth is found in the plays that were counted by then, one by one, and
an answer that mixes two moments, two views or half a write is no truth of any.
"""

import http.client
import json
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import pytest

from domain.live_windows import MINUTE
from domain.sketches.shape import Shapes, SketchShape
from domain.speed_policy import SpeedPolicy
from domain.windows import HOUR
from speed_layer.store.keys import BATCH_VIEW
from speed_layer.store.view_codec import encode_view
from tests.serving.api_server import until
from tests.serving.live_api import Serving
from tests.serving.live_world import ROWS, Answer, Event, World, as_of, hour_of, live_world

pytestmark = pytest.mark.redis

START = datetime.fromisoformat("2026-11-14T20:10:00Z")
NARROW = SpeedPolicy(
    minutes=Shapes(SketchShape(width=64, head=5, exact=6), SketchShape(width=64, head=5, exact=6)),
    hour_heads=(8, 8),
    list_size=12,
)
ITEMS = [f"song {number}" for number in range(40)]
REGIONS = ("IN", "DE")
QUESTIONS = [(window, region) for window in ("1m", "1h", "1d") for region in ("*", "IN")]
SECOND = timedelta(seconds=1)


# --- readers ---


@dataclass
class Readers:
    """Threads that ask for charts one after the other; `answers` are in the order of each thread."""

    serving: Serving
    questions: Sequence[tuple[str, str]]
    answers: list[list[Answer]] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)
    reads: int = 0
    ended: threading.Event = field(default_factory=threading.Event)

    def read(self, window: str, region: str, into: list[Answer]) -> None:
        """Ask until told to end; keep an answer when it is another one than before."""
        connection = http.client.HTTPConnection(str(urlsplit(self.serving.api.url).netloc), timeout=20)
        tag: str | None = None
        while not self.ended.is_set():
            headers = {"Authorization": f"Bearer {self.serving.key}"}
            connection.request("GET", f"/v1/charts/top?window={window}&region={region}&n={ROWS}", headers=headers)
            answer = connection.getresponse()
            body = answer.read()
            self.reads += 1
            if answer.status != 200:
                self.refusals[json.loads(body)["code"]] += 1
                assert answer.headers["retry-after"]
            elif answer.headers["etag"] != tag:
                tag = answer.headers["etag"]
                into.append(json.loads(body))
        connection.close()


@contextmanager
def reading(serving: Serving, questions: Sequence[tuple[str, str]]) -> Iterator[Readers]:
    readers, failed = Readers(serving, questions, [[] for _ in questions]), []

    def read(number: int) -> None:
        try:
            readers.read(*questions[number], readers.answers[number])
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(len(questions))]
    for thread in threads:
        thread.start()
    try:
        yield readers
    finally:
        readers.ended.set()
        for thread in threads:
            thread.join()
    assert failed == []


# --- what is played ---


@dataclass
class Players:
    """Made-up plays of a world whose favourites change."""

    world: World
    random: Random = field(default_factory=lambda: Random(7))
    now: datetime = START

    def write(self, forward: timedelta, *, late: int = 0) -> None:
        """Let plays come into the log after a while, a few of them late by a minute or by this many."""
        self.now += forward
        favourite = len(self.world.plays) // 120
        events = []
        for _ in range(12):
            place = min(self.random.randrange(40), self.random.randrange(40))
            happened = self.now - timedelta(minutes=self.random.choice([0, 0, 0, 1, late]))
            events.append(Event(ITEMS[(favourite + place) % 40], self.random.choice(REGIONS), happened))
        self.world.write(self.now, events)

    def step(self, forward: timedelta, *, late: int = 0) -> None:
        """The same, and count them and merge."""
        self.write(forward, late=late)
        self.world.catch_up()

    def steps(self, number: int, forward: timedelta) -> None:
        for _ in range(number):
            self.step(forward)

    def publish(self, frontier: datetime) -> None:
        """Put a view in force; partitions take it one after the other, and time goes on between."""
        self.world.publish(frontier)
        for number in range(len(self.world.publishers.parts)):
            self.world.hand_over(number)
            self.step(timedelta(seconds=10))


def swaps(before: Answer, after: Answer) -> list[tuple[str, str]]:
    """Pairs that changed places though the lower bound of neither changed."""
    old = {row["item_id"]: (place, row["lower"]) for place, row in enumerate(before["entries"])}
    new = {row["item_id"]: (place, row["lower"]) for place, row in enumerate(after["entries"])}
    same = [item for item in old if item in new and old[item][1] == new[item][1]]
    return [(a, b) for a in same for b in same if old[a][0] < old[b][0] and new[a][0] > new[b][0]]


# --- the histories ---


def test_readers_see_the_truth_of_one_moment_whatever_batch_does(tmp_path: Path) -> None:
    with live_world(tmp_path) as world, players_and_readers(world, QUESTIONS) as (players, readers):
        players.steps(100, 2 * MINUTE)  # batch stands still for more than three hours
        players.publish(hour_of(players.now) - HOUR)
        wait_for(readers, players.now)
        world.store.write(replace(world.views[-1], version="again"))  # the same release: nothing changes
        players.step(10 * SECOND, late=150)
        players.publish(world.views[-1].frontier)  # with late plays of hours that were certified already
        wait_for(readers, players.now)
        killed_while_publishing(world)
        for _ in range(40):
            players.write(2 * MINUTE)
        players.publish(hour_of(players.now) - HOUR)  # of hours to which live counting has yet to come
        wait_for(readers, players.now)
        players.step(11 * MINUTE)
        players.publish(hour_of(players.now))
        wait_for(readers, players.now)

    answers = [answer for seen in readers.answers for answer in seen]
    for answer in answers:
        world.require_true(answer)
    assert not any("partial" in answer for answer in answers)
    assert sum(answer["exact"] for answer in answers) > 0.8 * len(answers)
    assert readers.refusals == {}
    frontiers = {f"{view.frontier:%Y-%m-%dT%H:%M:%SZ}" for view in world.views}
    assert {answer["frontier"] for answer in readers.answers[4]} == {None, *frontiers}
    for seen in readers.answers:
        assert all(as_of(one) <= as_of(other) for one, other in pairwise(seen)), "an answer went back"
    assert readers.reads > 1000


def test_views_that_are_lost_come_back_and_no_reader_sees_less_than_the_truth_as_whole(tmp_path: Path) -> None:
    with live_world(tmp_path) as world, players_and_readers(world, QUESTIONS) as (players, readers):
        players.steps(70, MINUTE)
        players.publish(hour_of(players.now))
        lost_at = players.now
        for _ in range(3):
            world.lose_views()
            players.steps(5, 20 * SECOND)
            world.store.write(world.views[-1])  # as `lakeboard restore` does
            players.steps(5, 20 * SECOND)
        wait_for(readers, players.now)

    for seen in readers.answers:
        for answer in seen:
            world.require_true(answer)
        assert "partial" not in seen[-1]
        assert as_of(seen[0]) < lost_at
    assert readers.refusals.keys() <= {"charts_not_ready"}


def test_in_10_000_reads_no_two_rows_change_places_unless_a_lower_bound_changes(tmp_path: Path) -> None:
    with live_world(tmp_path, NARROW) as world, players_and_readers(world, QUESTIONS[:4]) as (players, readers):
        while readers.reads < 10_000:
            players.step(5 * SECOND)

    moved = 0
    for seen in readers.answers:
        for before, after in pairwise(seen):
            assert swaps(before, after) == []
            moved += [row["item_id"] for row in before["entries"]] != [row["item_id"] for row in after["entries"]]
        for answer in seen:
            world.require_true(answer)
    assert moved > 100
    assert any(row["lower"] < row["upper"] for seen in readers.answers for row in seen[-1]["entries"])


@contextmanager
def players_and_readers(world: World, questions: Sequence[tuple[str, str]]) -> Iterator[tuple[Players, Readers]]:
    players = Players(world)
    players.step(SECOND)
    until(lambda: world.serving.get("/v1/charts/top?window=1h").status_code == 200, "the first chart")
    with reading(world.serving, questions) as readers:
        yield players, readers


def wait_for(readers: Readers, moment: datetime) -> None:
    until(lambda: all(seen and as_of(seen[-1]) >= moment for seen in readers.answers), f"readers see {moment}")


def killed_while_publishing(world: World) -> None:
    """Leave what a publisher leaves that was killed before it put its view in force."""
    world.store._write(encode_view(replace(world.views[-1], version="killed", release=len(world.views) + 1)))
    assert world.serving.views.client.get(BATCH_VIEW) == world.views[-1].version.encode()
