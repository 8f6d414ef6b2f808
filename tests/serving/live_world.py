"""A log, live counting, batch, a merger and an API at a test's command, and all plays to compare answers with."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from domain.batch_view import BatchView
from domain.speed_policy import SpeedPolicy
from domain.windows import EPOCH, HOUR
from speed_layer.store.keys import CHARTS_LEASE
from speed_layer.store.merge_loop import Merging
from speed_layer.store.views import ViewStore
from tests.serving.live_api import Serving, live_api
from tests.speed_layer.live_model import Played, view_of
from tests.speed_layer.merging import partition_of
from tests.speed_layer.published import Publishers, merging

ROWS = 100
TIMES = ("window_start", "window_end", "as_of")
Answer = Mapping[str, Any]


@dataclass(frozen=True)
class Event:
    """A play as it is sent."""

    item: str
    region: str
    happened: datetime


@dataclass
class World:
    """A log whose time moves on, partitions that count it, batch, and a merger."""

    serving: Serving
    policy: SpeedPolicy
    publishers: Publishers = field(init=False)
    merging: Merging = field(init=False)
    plays: list[Played] = field(default_factory=list)
    unread: list[tuple[datetime, int]] = field(default_factory=list)  # log time, and how many plays by then
    counted: dict[datetime, int] = field(default_factory=dict)  # the same that live counting has read, by `as_of`
    views: list[BatchView] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.publishers = Publishers(self.serving.views, policy=self.policy)
        self.new_merger()

    @property
    def store(self) -> ViewStore:
        return ViewStore(self.serving.views)

    def new_merger(self) -> None:
        """Let another merger begin, after the lease of the one before has run out."""
        self.serving.views.client.delete(CHARTS_LEASE)
        load = self.store.load
        self.merging = merging(
            self.serving.server,
            self.serving.views,
            list_size=self.policy.list_size,
            load_view=lambda _, version: load(version),
        )

    def lose_views(self) -> None:
        """Empty the views server; partitions and the merger say all they know again, and batch nothing yet."""
        self.serving.views.client.flushall()
        self.publishers.again()
        self.new_merger()

    def write(self, now: datetime, events: Sequence[Event]) -> None:
        """Append events to the log."""
        for number, event in enumerate(events, start=len(self.plays)):
            self.plays.append(Played(number, now, number, event.item, event.region, event.happened))
        self.unread.append((now, len(self.plays)))

    def catch_up(self) -> None:
        """Count what came, a moment after the other, and merge."""
        while self.unread:
            now, end = self.unread.pop(0)
            self.publishers.say(self.plays[max(self.counted.values(), default=0) : end], now=now)
            self.counted[now] = end
            self.merging.cycle()

    def publish(self, frontier: datetime) -> None:
        """Put in force what batch finds that has read all of the log."""
        numbers = range(len(self.publishers.parts))
        sent = [(play, partition_of(play.item, len(numbers))) for play in self.plays]
        offsets = {n: max((play.version for play, of in sent if of == n), default=-1) for n in numbers}
        view = view_of(sent, frontier, offsets, most=10_000, version=f"v{len(self.views)}")
        self.views.append(replace(view, release=len(self.views) + 1))
        self.store.write(self.views[-1])
        self.merging.cycle()

    def hand_over(self, number: int) -> None:
        """Let a partition take the newest view."""
        parts, view = self.publishers.parts, self.views[-1]
        own = view.split(lambda items: [partition_of(item, len(parts)) for item in items], len(parts))[number]
        parts[number].certify(view, own, view.offset("log", number))

    def truth(self, answer: Answer) -> Counter[str]:
        """Plays of the very window and region of an answer, of those that were counted at its moment."""
        start, end, as_of = (datetime.fromisoformat(answer[name]) for name in TIMES)
        return Counter(
            play.item
            for play in self.plays[: self.counted[as_of]]
            if start <= play.at < end and answer["region"] in ("*", play.region)
        )

    def require_true(self, answer: Answer) -> None:
        """Hold an answer against the plays: never too many, none missing unless it says so, and all when it is exact.

        The answer was asked for with as many rows as there may be.
        """
        truth = self.truth(answer)
        rows = {row["item_id"]: row for row in answer["entries"]}
        assert all(row["count"] == row["lower"] <= truth[item] for item, row in rows.items()), answer
        order = sorted(truth, key=lambda item: (-truth[item], item.encode()))
        if "partial" not in answer:
            assert all(truth[item] <= row["upper"] for item, row in rows.items()), answer
            assert max((truth[item] for item in order if item not in rows), default=0) <= answer["missed_max"], answer
            ranks = {item: rank for rank, item in enumerate(order, start=1)}
            assert all(row["rank_min"] <= ranks[item] <= row["rank_max"] for item, row in rows.items()), answer
        if answer["exact"]:
            found = [(row["item_id"], row["lower"], row["upper"]) for row in answer["entries"]]
            assert found == [(item, truth[item], truth[item]) for item in order[:ROWS]], answer
            assert answer["total"] == truth.total()


@contextmanager
def live_world(folder: Path, policy: SpeedPolicy | None = None) -> Iterator[World]:
    """Run a world."""
    with live_api(folder) as serving:
        yield World(serving, policy or SpeedPolicy())


def hour_of(moment: datetime) -> datetime:
    """When its hour began."""
    return EPOCH + (moment - EPOCH) // HOUR * HOUR


def as_of(answer: Answer) -> datetime:
    return datetime.fromisoformat(answer["as_of"])
