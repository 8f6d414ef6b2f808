"""Readers that never rest while batch is late, early, killed and restated: each answer is compared with all plays.

What they read says of which moment it is. So the truth is found in the plays that were counted by then, one by one, and
an answer that mixes two moments, two views or half a write is no truth of any.
"""

import http.client
import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import pytest

from domain.batch_view import BatchView
from domain.sketches.shape import Shapes, SketchShape
from domain.speed_policy import SpeedPolicy
from domain.windows import EPOCH, HOUR
from speed_layer.store.keys import BATCH_VIEW, CHARTS_LEASE
from speed_layer.store.merge_loop import Merging
from speed_layer.store.view_codec import encode_view
from speed_layer.store.views import ViewStore
from tests.serving.api_server import until
from tests.serving.live_api import Serving, live_api
from tests.speed_layer.live_model import Played, view_of
from tests.speed_layer.merging import partition_of
from tests.speed_layer.published import Publishers, merging
from tests.views_server import ViewsServer

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
TIMES = ("window_start", "window_end", "as_of")
Answer = Mapping[str, Any]


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
            connection.request("GET", f"/v1/charts/top?window={window}&region={region}&n=100", headers=headers)
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


# --- what is counted ---


@dataclass
class World:
    """A log whose time moves on, partitions that count it, batch, and a merger."""

    serving: Serving
    publishers: Publishers
    merging: Merging
    random: Random
    now: datetime = START
    plays: list[Played] = field(default_factory=list)
    unread: list[tuple[datetime, int]] = field(default_factory=list)  # log time, and how many plays by then
    counted: dict[str, int] = field(default_factory=dict)  # the same that live counting has read, by `as_of`
    views: list[BatchView] = field(default_factory=list)

    @property
    def store(self) -> ViewStore:
        return ViewStore(self.serving.views)

    def step(self, forward: timedelta, *, late: int = 0) -> None:
        """Let plays come into the log, count them and merge."""
        self.write(forward, late=late)
        self.catch_up()

    def catch_up(self) -> None:
        """Count what came, a moment after the other, and merge."""
        while self.unread:
            now, end = self.unread.pop(0)
            self.publishers.say(self.plays[max(self.counted.values(), default=0) : end])
            self.counted[now.isoformat()] = end
            self.merging.cycle()

    def write(self, forward: timedelta, plays: int = 12, *, late: int = 0) -> None:
        """Let plays come into the log, a few of them late by a minute or by this many."""
        self.now += forward
        favourite = len(self.plays) // 120 % len(ITEMS)
        for _ in range(plays):
            place = min(self.random.randrange(40), self.random.randrange(40))
            item = ITEMS[(favourite + place) % len(ITEMS)]
            happened = self.now - timedelta(minutes=self.random.choice([0, 0, 0, 1, late]))
            number, region = len(self.plays), self.random.choice(REGIONS)
            self.plays.append(Played(number, self.now, number, item, region, happened))
        self.unread.append((self.now, len(self.plays)))

    def view(self, frontier: datetime) -> BatchView:
        """What batch finds that has read all of the log."""
        parts = self.publishers.parts
        sent = [(play, partition_of(play.item, len(parts))) for play in self.plays]
        offsets = {number: max(play.version for play, of in sent if of == number) for number in range(len(parts))}
        version = f"v{len(self.views)}"
        found = replace(view_of(sent, frontier, offsets, most=1000, version=version), release=len(self.views) + 1)
        self.views.append(found)
        return found

    def hand_over(self, number: int) -> None:
        """Let a partition take the newest view."""
        parts, view = self.publishers.parts, self.views[-1]
        own = view.split(lambda items: [partition_of(item, len(parts)) for item in items], len(parts))[number]
        parts[number].certify(view, own, view.offset("log", number))

    def publish(self, frontier: datetime) -> None:
        """Put a view in force; partitions take it one after the other, and time goes on between."""
        self.store.write(self.view(frontier))
        self.merging.cycle()
        for number in range(len(self.publishers.parts)):
            self.hand_over(number)
            self.step(timedelta(seconds=10))

    def truth(self, answer: Answer) -> Counter[str]:
        """Plays of the very window and region of an answer, of those that were counted at its moment."""
        start, end, as_of = (datetime.fromisoformat(answer[name]) for name in TIMES)
        return Counter(
            play.item
            for play in self.plays[: self.counted[as_of.isoformat()]]
            if start <= play.at < end and answer["region"] in ("*", play.region)
        )


@contextmanager
def world(folder: Path, policy: SpeedPolicy | None = None) -> Iterator[World]:
    policy = policy or SpeedPolicy()
    with live_api(folder) as serving:
        publishers = Publishers(serving.views, policy=policy)
        yield World(serving, publishers, new_merger(serving.server, serving, policy), Random(7))


def new_merger(server: ViewsServer, serving: Serving, policy: SpeedPolicy) -> Merging:
    serving.views.client.delete(CHARTS_LEASE)
    return merging(
        server, serving.views, list_size=policy.list_size, load_view=lambda v, version: ViewStore(v).load(version)
    )


def hour_of(moment: datetime) -> datetime:
    return EPOCH + (moment - EPOCH) // HOUR * HOUR


def require_true(world: World, answer: Answer) -> None:
    """Hold an answer against the plays: never too many, none missing unless it says so, and all when it is exact."""
    truth = world.truth(answer)
    rows = {row["item_id"]: (row["lower"], row["upper"]) for row in answer["entries"]}
    assert all(lower <= truth[item] for item, (lower, _) in rows.items()), answer
    if "partial" not in answer:
        missed = {item: (0, answer["missed_max"]) for item in truth.keys() - rows.keys()}
        assert all(truth[item] <= upper for item, (_, upper) in (rows | missed).items()), answer
    if answer["exact"]:
        assert rows == {item: (count, count) for item, count in truth.items()}, answer
        assert answer["total"] == truth.total()


def swaps(before: Answer, after: Answer) -> list[tuple[str, str]]:
    """Pairs that changed places though the lower bound of neither changed."""
    old = {row["item_id"]: (place, row["lower"]) for place, row in enumerate(before["entries"])}
    new = {row["item_id"]: (place, row["lower"]) for place, row in enumerate(after["entries"])}
    same = [item for item in old if item in new and old[item][1] == new[item][1]]
    return [(a, b) for a in same for b in same if old[a][0] < old[b][0] and new[a][0] > new[b][0]]


# --- the histories ---


def test_readers_see_the_truth_of_one_moment_whatever_batch_does(tmp_path: Path) -> None:
    with world(tmp_path) as at_work, reading_once_ready(at_work, QUESTIONS) as readers:
        for _ in range(100):  # batch stands still for more than three hours
            at_work.step(timedelta(minutes=2))
        at_work.publish(hour_of(at_work.now) - HOUR)
        at_work.store.write(replace(at_work.views[-1], version="again"))  # the same release: nothing changes
        at_work.step(timedelta(seconds=10), late=150)
        at_work.publish(at_work.views[-1].frontier)  # with late plays of hours that were certified already
        killed_while_publishing(at_work)
        for _ in range(40):
            at_work.write(timedelta(minutes=2))
        at_work.publish(hour_of(at_work.now) - HOUR)  # of hours to which live counting has yet to come
        at_work.step(timedelta(minutes=11))
        at_work.publish(hour_of(at_work.now))
        newest = at_work.now
        until(lambda: all(seen and moment(seen[-1]) >= newest for seen in readers.answers), "readers see the end")

    answers = [answer for seen in readers.answers for answer in seen]
    for answer in answers:
        require_true(at_work, answer)
    assert not any("partial" in answer for answer in answers)
    assert sum(answer["exact"] for answer in answers) > 0.8 * len(answers)
    assert readers.refusals == {}
    assert {answer["frontier"] for answer in readers.answers[4]} >= {
        None, *(f"{view.frontier:%Y-%m-%dT%H:%M:%SZ}" for view in at_work.views if view.version != "killed")
    }  # fmt: skip
    for seen in readers.answers:
        assert all(moment(one) <= moment(next_) for one, next_ in pairwise(seen)), "an answer went back"
    assert readers.reads > 1000


def test_views_that_are_lost_come_back_and_no_reader_sees_less_than_the_truth_as_whole(tmp_path: Path) -> None:
    with world(tmp_path) as at_work, reading_once_ready(at_work, QUESTIONS) as readers:
        for _ in range(70):
            at_work.step(timedelta(minutes=1))
        at_work.publish(hour_of(at_work.now))
        lost_at = at_work.now
        for _ in range(3):
            at_work.serving.views.client.flushall()
            at_work.publishers.again()
            at_work.merging = new_merger(at_work.serving.server, at_work.serving, SpeedPolicy())
            for _ in range(5):
                at_work.step(timedelta(seconds=20))
            at_work.store.write(at_work.views[-1])  # as `lakeboard restore` does
            for _ in range(5):
                at_work.step(timedelta(seconds=20))
        newest = at_work.now
        until(lambda: all(seen and moment(seen[-1]) >= newest for seen in readers.answers), "readers see the end")

    for seen in readers.answers:
        for answer in seen:
            require_true(at_work, answer)
        assert "partial" not in seen[-1]
        assert moment(seen[0]) < lost_at
    assert readers.refusals.keys() <= {"charts_not_ready"}


def test_in_10_000_reads_no_two_rows_change_places_unless_a_lower_bound_changes(tmp_path: Path) -> None:
    with world(tmp_path, NARROW) as at_work, reading_once_ready(at_work, QUESTIONS[:4]) as readers:
        while readers.reads < 10_000:
            at_work.step(timedelta(seconds=5))

    moved = 0
    for seen in readers.answers:
        for before, after in pairwise(seen):
            assert swaps(before, after) == []
            moved += [row["item_id"] for row in before["entries"]] != [row["item_id"] for row in after["entries"]]
        for answer in seen:
            truth = at_work.truth(answer)
            assert all(row["lower"] <= truth[row["item_id"]] <= row["upper"] for row in answer["entries"])
    assert moved > 100
    assert any(row["lower"] < row["upper"] for seen in readers.answers for row in seen[-1]["entries"])


def moment(answer: Answer) -> datetime:
    return datetime.fromisoformat(answer["as_of"])


@contextmanager
def reading_once_ready(world: World, questions: Sequence[tuple[str, str]]) -> Iterator[Readers]:
    world.step(timedelta(seconds=1))
    until(lambda: world.serving.get("/v1/charts/top?window=1h").status_code == 200, "the first chart")
    with reading(world.serving, questions) as readers:
        yield readers


def killed_while_publishing(world: World) -> None:
    """Leave what a publisher leaves that was killed before it put its view in force."""
    left = encode_view(replace(world.views[-1], version="killed", release=len(world.views) + 1))
    world.store._write(left)
    assert world.serving.views.client.get(BATCH_VIEW) == world.views[-1].version.encode()
    world.step(timedelta(seconds=10))
