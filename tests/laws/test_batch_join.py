"""Batch and live counting as one: a log cut anywhere between them, moving frontiers, restatements, several partitions.

Every answer is compared with all plays counted one by one.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings

from domain import batch_join as batch_join_module
from domain.batch_join import BATCH, hidden_top, joined_tops
from domain.batch_view import BatchView
from domain.live_windows import LiveWindow
from domain.merge import LocalTop, MergedTop, merged_top
from domain.sketches.keys import Int64s, UInt64s, find
from domain.sketches.shape import Shapes, SketchShape
from domain.speed_policy import SpeedPolicy
from domain.windows import EPOCH
from speed_layer.changes import ChangedList
from speed_layer.lists import Bounded
from speed_layer.of_batch import OfBatch
from speed_layer.partition import LivePartition
from tests.laws.test_speed_layer import ITEMS, REGIONS, RULES, TINY, cut, log_of, seeds
from tests.speed_layer.live_model import HOURS_BACK, START, LiveModel, Played, batch_of, certified_through, view_of

pytestmark = pytest.mark.law

PARTITIONS = 3
DAY = LiveWindow.DAY
ROOMY = replace(TINY, regions=9, minutes=Shapes(SketchShape(64, 5, 6), SketchShape(64, 4, 4)))


def partition_of(items: Sequence[str]) -> list[int]:
    return [ITEMS.index(item) % PARTITIONS for item in items]


def of_partition(plays: Sequence[Played], number: int) -> list[Played]:
    return [play for play in plays if partition_of([play.item]) == [number]]


def history(random: Random) -> list[Played]:
    """Some hours in which other items are played before a frontier than after it, or any log at all."""
    if random.random() < 0.3:
        return log_of(random)
    steps = [timedelta(minutes=minutes) for minutes in random.choice([(0, 0, 1, 7), (0, 5, 20, 61)])]
    logged, plays = START, []
    for position in range(random.randint(20, 90)):
        logged += random.choice(steps) + timedelta(seconds=random.randint(0, 59))
        favour = (logged - START) // timedelta(hours=1) * 4
        place = favour + min(random.randrange(9), random.randrange(9))
        item = ITEMS[place % len(ITEMS)] if random.random() < 0.8 else random.choice(ITEMS)
        region = random.choice(REGIONS) if random.random() < 0.3 else "IN"
        happened = logged - timedelta(minutes=random.choice([0, 0, 0, 0, 0, 0, 1, 15, 70, 130]))
        times = random.choice([1, 1, 2, 5])
        plays.append(Played(position, logged, 100 + position, item, region, happened, 200_000, times))
    return plays


@dataclass
class Side:
    """One partition with its model, and what the merger knows of it."""

    live: LivePartition
    model: LiveModel
    lists: dict[str, ChangedList] = field(default_factory=dict)
    handed: dict[str, BatchView] = field(default_factory=dict)

    @property
    def view(self) -> BatchView | None:
        """The view in use: the one handed over last, once the log's time has come to its frontier."""
        return self.handed[self.live.view] if self.live.view is not None else None

    def count(self, plays: Sequence[Played], until: Played) -> None:
        self.live.count(batch_of(plays))
        for play in plays:
            self.model.read(play, self.live.regions.names)
        self.live.advance(until.logged)

    def take(self, view: BatchView, number: int) -> None:
        part = view.split(partition_of, PARTITIONS)[number]
        assert self.live.certified(part, offset=view.offset("log", number))
        self.handed[view.version] = view

    def follow(self, number: int) -> None:
        if self.view is not None:
            self.model.frontier, self.model.offset = self.view.frontier, self.view.offset("log", number)

    def report(self) -> None:
        for one in self.live.changed():
            if one.kind is DAY:
                self.lists[one.region] = one
        self.lists = {region: one for region, one in self.lists.items() if one.total}
        frontier = None if self.view is None else self.view.frontier
        assert all(one.frontier == frontier for one in self.lists.values())

    def top(self, region: str) -> LocalTop | None:
        if region in self.lists:
            return self.lists[region].top()
        if self.live.regions.folding and region != "ZZ":
            return hidden_top(self.lists["ZZ"].total if "ZZ" in self.lists else 0)
        return None


class World:
    """A log of several partitions, batch that reads it at its own pace, and the merger's knowledge."""

    def __init__(self, random: Random, policy: SpeedPolicy = TINY) -> None:
        self.random = random
        self.plays = history(random)
        self.sides = [Side(LivePartition(policy, RULES), LiveModel(policy, RULES)) for _ in range(PARTITIONS)]
        self.batch = self._counted(policy)
        self.views: list[BatchView] = []
        self._read = 0

    def _counted(self, policy: SpeedPolicy) -> list[tuple[Played, int]]:
        sent = []
        for number in range(PARTITIONS):
            model = LiveModel(policy, RULES)
            for play in of_partition(self.plays, number):
                model.read(play, REGIONS)
            sent += [(play, number) for play in model.sent]
        return sent

    def publish(self) -> None:
        """Certify what batch has read; often no further than before, which restates the same hours."""
        self._read = max(self._read, self.random.randrange(len(self.plays)))
        frontier, _ = certified_through(self.plays, self._read, TINY.grace)
        read = self.plays[: self._read + 1]
        offsets = {n: max((play.version for play in of_partition(read, n)), default=-1) for n in range(PARTITIONS)}
        most = self.random.choice([1, 3, 40])
        self.views.append(view_of(self.batch, frontier, offsets, most=most, version=f"v{len(self.views)}"))

    def step(self, plays: Sequence[Played]) -> None:
        for number, side in enumerate(self.sides):
            side.count(of_partition(plays, number), plays[-1])
        if self.random.random() < 0.4:
            self.publish()
        for number, side in enumerate(self.sides):  # each takes the view when it comes to it
            if self.views and self.views[-1].version not in side.handed and self.random.random() < 0.7:
                side.take(self.views[-1], number)
            side.follow(number)
            side.report()

    @property
    def view(self) -> BatchView | None:
        return self.sides[0].view

    @property
    def agreed(self) -> bool:
        return len({None if side.view is None else side.view.version for side in self.sides}) == 1

    def truth(self, region: str) -> Counter[str]:
        """Plays of the live day, one by one: of batch below the frontier, of each partition from there on."""
        as_of = self.sides[0].live.as_of
        window = DAY.at(as_of)
        truth: Counter[str] = Counter()
        for side in self.sides:
            truth += side.model.of_window(DAY, as_of, as_sent=region != "ZZ").get(region, Counter())
        if self.view is not None:
            assert window.start >= self.view.frontier - HOURS_BACK, "hours that neither has"
            assert window.end >= self.view.frontier, "hours that are not in the window"
            for play, number in self.batch:
                mine = region in ("*", play.region) and play.version <= self.view.offset("log", number)
                if mine and window.start <= play.at < self.view.frontier:
                    truth[play.item] += play.count
        return truth


def joined(world: World, tops: Mapping[int, LocalTop], region: str, most_alone: int) -> Mapping[int, LocalTop]:
    if world.view is None:
        return tops
    of_region = world.view.since(region, DAY.at(world.sides[0].live.as_of).start)
    return joined_tops(tops, of_region, partition_of, most_alone=most_alone)


def require_bounds(tops: Mapping[int, LocalTop], truth: Mapping[str, int], *, total_is_known: bool) -> None:
    rows = [row for top in tops.values() for row in top.rows]
    assert len({row.item_id for row in rows}) == len(rows)
    assert all(row.lower <= truth.get(row.item_id, 0) <= row.upper for row in rows)
    listed = {row.item_id for row in rows}
    for item in set(ITEMS) - listed:
        mine = [tops[number].missed_max for number in (BATCH, *partition_of([item])) if number in tops]
        assert truth.get(item, 0) <= max(mine, default=0)
    total = sum(top.total for top in tops.values())
    assert sum(truth.values()) <= total
    assert not total_is_known or sum(truth.values()) == total


def require_chart(chart: MergedTop, truth: Mapping[str, int], n: int, *, all_is_known: bool) -> None:
    """A chart for which nobody hides anything is the truth when all that is listed is exact and the rest impossible."""
    inside = {row.item_id for row in chart.rows}
    assert all(count <= chart.missed_max for item, count in truth.items() if item not in inside)
    order = sorted((-count, item.encode()) for item, count in truth.items() if count)
    for row in chart.rows:
        mine = (-truth.get(row.item_id, 0), row.item_id.encode())
        assert row.rank_min <= 1 + sum(other < mine for other in order) <= row.rank_max
    if chart.exact or all_is_known:
        best = [(item.decode(), -count) for count, item in order[:n]]
        assert [(row.item_id, row.lower) for row in chart.rows] == best


def all_is_known(world: World, lists: Mapping[int, LocalTop], region: str) -> bool:
    unknown = [top.residual for number, top in lists.items() if number != BATCH]
    if world.view is not None:
        unknown.append(world.view.since(region, world.view.frontier - HOURS_BACK).residual)
    return not any(unknown) and all(row.lower == row.upper for top in lists.values() for row in top.rows)


def require_whole(world: World, random: Random) -> None:
    """The chart of each region, as it is and after asking deeper until nobody hides anything."""
    for region in ("*", *REGIONS):
        truth = world.truth(region)
        tops = {number: top for number, side in enumerate(world.sides) if (top := side.top(region)) is not None}
        n, folding = random.choice([1, 2, 3]), any(side.live.regions.folding for side in world.sides)
        pending = any(side.live.pending.far or side.live.pending.ahead or side.live.pending.tardy
                      for side in world.sides)  # fmt: skip
        for size in (2 * n * 2**more for more in count()):
            lists = joined(world, tops, region, random.choice([n, 5]))
            require_bounds(lists, truth, total_is_known=not folding and not pending)
            chart = merged_top(lists, n=n)
            require_chart(chart, truth, n, all_is_known=not chart.deeper and all_is_known(world, lists, region))
            if not chart.deeper:
                break
            assert size <= 64
            assert BATCH not in chart.deeper
            tops |= {number: world.sides[number].live.top(DAY, region, size=size).top() for number in chart.deeper}


def check_a_world(seed: int, policy: SpeedPolicy = TINY) -> int:
    """Return how many moments there were with one view that all partitions use."""
    random, compared = Random(seed), 0
    world = World(random, policy)
    for plays in cut(world.plays, random):
        world.step(plays)
        if world.agreed:
            compared += world.view is not None
            require_whole(world, random)
    return compared


@settings(max_examples=settings().max_examples // 2)
@given(seeds)
def test_batch_and_live_counts_joined_hold_every_item_of_every_region(seed: int) -> None:
    check_a_world(seed)


@settings(max_examples=settings().max_examples // 4)
@given(seeds)
def test_they_do_when_no_region_is_folded(seed: int) -> None:
    check_a_world(seed, ROOMY)


def test_most_worlds_come_to_one_view() -> None:
    assert sum(check_a_world(seed) > 0 for seed in range(10)) >= 4


# --- faults that the law must see ---


def some_world_fails(seeds: Sequence[int] = (25, 29, 37, 48, 56, 1)) -> bool:
    """Say whether the law notices a fault, in worlds of which some do."""
    for seed in seeds:
        try:
            check_a_world(seed)
        except AssertionError:
            return True
    return False


def test_the_law_sees_lists_that_are_chosen_without_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    def alone(self: OfBatch, bounded: Bounded, *_: object, **__: object) -> Bounded:
        return bounded

    monkeypatch.setattr(OfBatch, "join", alone)
    assert some_world_fails()


def test_the_law_sees_a_cut_that_forgets_what_batch_may_have_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = OfBatch.at

    def listed_only(self: OfBatch, keys: UInt64s) -> Int64s:
        plays = whole(self, keys)
        return np.where(find(self._keys, keys)[1], plays, 0)

    monkeypatch.setattr(OfBatch, "at", listed_only)
    assert some_world_fails()


def test_the_law_sees_folding_that_ends_before_plays_dated_ahead_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A play of a folded region dated ahead stands in ZZ for longer than a day: until then no region is told apart."""

    def as_of_now(self: LivePartition, _: Int64s) -> None:
        self._folded_hour = self.log_ms // 3_600_000

    monkeypatch.setattr(LivePartition, "_fold", as_of_now)
    assert some_world_fails([1])


def test_the_law_sees_a_view_that_is_taken_before_the_log_has_come_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batch may be ahead of a partition: then the day begins with hours that its view does not have."""

    def at_once(self: LivePartition) -> None:
        if self._coming is not None:
            view, self.offset = self._coming
            self.buckets.certified((view.frontier - EPOCH) // timedelta(hours=1))
            self.changes.take(view)

    monkeypatch.setattr(LivePartition, "_take_over", at_once)
    assert some_world_fails()


def test_the_law_sees_items_that_batch_alone_knows_and_nobody_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_join_module, "_alone", lambda *_, **__: ([], 0))
    assert some_world_fails()


def test_the_law_sees_an_item_beside_all_lists_that_is_left_out_of_the_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_join_module, "_beside", lambda *_: 0)
    assert some_world_fails()
