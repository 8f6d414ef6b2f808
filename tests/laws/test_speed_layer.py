"""Live counting of a partition against brute force: random logs with copies, late plays, frontiers, pauses."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.batch_view import BatchView, RegionView
from domain.live_windows import LiveWindow
from domain.rules import Rules
from domain.sketches.block import Block
from domain.sketches.keys import NO_KEYS, Numbers, UInt64s, keys_of
from domain.sketches.packed import PackedBlock
from domain.sketches.shape import Shapes, SketchShape
from domain.speed_policy import SpeedPolicy
from speed_layer import buckets as buckets_module
from speed_layer import partition as partition_module
from speed_layer import windows as windows_module
from speed_layer.changes import ChangedList, Changes
from speed_layer.partition import LivePartition
from speed_layer.pending import Pending
from speed_layer.retry_window import RetryWindow
from speed_layer.running_sum import Part, RunningSum
from tests.speed_layer.live_model import START, LiveModel, Played, batch_of, certified_through, view_of

pytestmark = pytest.mark.law

ITEMS = ["ärger", "夜に駆ける", "🎵", *(f"track-{n}" for n in range(12))]
REGIONS = ["ZZ", "IN", "US-CA", "DE", "BR"]
TINY = SpeedPolicy(
    minutes=Shapes(SketchShape(width=64, head=5, exact=6), SketchShape(width=64, head=3, exact=4)),
    hour_heads=(7, 4),
    regions=4,  # of the five above, so one is folded into ZZ
    list_size=3,
)
RULES = Rules.parse(
    """
    [[minimum_duration]]
    duration_ms = 30000
    [[minimum_duration]]
    from = 2026-11-14T10:30:00Z
    duration_ms = 1
    missing = "exclude"
    """
)

STEPS = [timedelta(minutes=m) for m in (0, 0, 0, 1, 2, 7, 16, 61, 62, 200, 1500)]
DELAYS = [
    timedelta(minutes=m) for m in (0, 0, -4000, -300, -8, -7, -6, -1, 1, 2, 3, 30, 59, 60, 61, 62, 63, 130, 400, 1600)
]

seeds = st.integers(0, 2**32)  # a log of many plays drawn one by one costs hypothesis seconds


def log_of(random: Random, *, longest: int = 60) -> list[Played]:
    """Most plays come close together, so that buckets fill; some late, ahead, again, or after a pause."""
    logged, plays = START, []
    for position in range(random.randint(1, longest)):
        if random.random() < 0.2:
            logged += random.choice(STEPS) + timedelta(seconds=random.randint(0, 59))
        delay = (
            random.choice(DELAYS) + timedelta(seconds=random.randint(0, 59)) if random.random() < 0.4 else timedelta(0)
        )
        play = Played(
            position=position,
            logged=logged,
            event=random.randint(0, 8) if random.random() < 0.2 else 100 + position,
            item=random.choice(ITEMS[:3] if random.random() < 0.5 else ITEMS),
            region=random.choice(REGIONS),
            happened=None if random.random() < 0.1 else logged - delay,
            duration_ms=random.choice([None, 0, 29_999, 30_000]) if random.random() < 0.2 else 200_000,
            count=random.choice([1, 1, 1, 2, 7, 2**33]),
        )
        plays.append(play)
    return plays


def cut(plays: Sequence[Played], random: Random) -> list[Sequence[Played]]:
    edges = sorted({0, len(plays), *(random.randrange(len(plays)) for _ in range(random.randint(0, 8)))})
    return [plays[start:end] for start, end in pairwise(edges)]


def require_bounds(partition: LivePartition, model: LiveModel, view: BatchView | None = None) -> None:
    """Every item of every region and window, listed or not, lies within its bounds."""
    items = partition.items.numbers_of(ITEMS)
    for kind in LiveWindow:
        truth = model.of_window(kind, partition.as_of)
        sums = partition.changes.windows[kind]
        assert sums.slide(partition.as_of, len(partition.regions)) == kind.at(partition.as_of)
        totals, residuals = sums.totals()
        pending = int(partition.pending.far is not None) + len(partition.pending.ahead) + len(partition.pending.tardy)
        for number, region in enumerate(partition.regions.names):
            mine: Mapping[str, int] = truth.get(region, {})
            keys = keys_of(np.full(len(items), number), items)
            order = np.argsort(keys)
            lower, upper = sums.bounds(keys[order])
            for at, item in enumerate(np.array(ITEMS, dtype=object)[order].tolist()):
                assert lower[at] <= mine.get(item, 0) <= upper[at], (kind, region, item)
            total = sum(mine.values())
            assert total <= totals[number]
            assert pending or total == totals[number], (kind, region)
            if region:  # a number that is free has no name
                of_view = (
                    view.since(region, kind.at(partition.as_of).start) if view and kind is LiveWindow.DAY else None
                )
                require_list(partition, kind, region, mine, residual=int(residuals[number]), view=of_view)


def require_list(
    partition: LivePartition,
    kind: LiveWindow,
    region: str,
    truth: Mapping[str, int],
    *,
    residual: int,
    view: RegionView | None,
) -> None:
    """Rows are within bounds; what is left out has, with batch, no more than the cut says, or what is unknown can."""
    batch = {} if view is None else dict(zip(view.item_ids, view.plays.tolist(), strict=True))
    rho = 0 if view is None else view.residual
    for size in (3, 40):
        found = partition.top(kind, region, size=size)
        top = found.top()
        rows = {row.item_id: row for row in top.rows}
        assert len(rows) == len(top.rows) <= size
        assert all(row.lower <= truth.get(item, 0) <= row.upper for item, row in rows.items())
        assert top.residual == residual
        most = max(0 if top.cut is None else top.cut.upper, rho + top.residual)
        if found.total:  # without plays there is no list, and all that batch has is in no list
            left_out = {item: batch.get(item, rho) + truth.get(item, 0) for item in ITEMS if item not in rows}
            assert max(left_out.values(), default=0) <= most
            assert all(batch[item] == 0 for item in batch if item not in rows) or top.cut is not None
        joined = [(-row.upper - batch.get(row.item_id, rho), row.item_id.encode()) for row in top.rows]
        last = max(joined, default=(0, b""))
        assert top.cut is None or last < (-top.cut.upper, top.cut.item_id.encode()) or not top.cut.item_id


def check_a_log(seed: int, policy: SpeedPolicy = TINY) -> None:
    """Count a random log in random batches; between them views arrive and lists are read, or not."""
    random = Random(seed)
    plays = log_of(random)
    partition, model = LivePartition(policy, RULES), LiveModel(policy, RULES)
    reported: dict[tuple[LiveWindow, str], ChangedList] = {}
    views: list[BatchView] = []
    for batch in cut(plays, random):
        partition.count(batch_of(batch))
        for play in batch:
            model.read(play, partition.regions.names)
        if random.random() < 0.3:
            frontier, offset = certified_through(plays, random.randrange(len(plays)), policy.grace)
            known = views[-1] if views else None
            frontier = max(frontier, known.frontier if known else frontier)
            offset = max(offset, known.offset("log", 0) if known else offset)
            sent, most, version = [(play, 0) for play in plays], random.choice([1, 4, 40]), str(len(views))
            views.append(view_of(sent, frontier, {0: offset}, most=most, version=version))
            assert partition.certified(views[-1], offset=offset)
        in_use = next((view for view in views if view.version == partition.view), None)
        if in_use is not None:
            model.frontier, model.offset = in_use.frontier, in_use.offset("log", 0)
        if random.random() < 0.5:
            for one in partition.changed():
                reported[one.kind, one.region] = one
            require_reports(partition, reported)
        require_bounds(partition, model, in_use)


def require_reports(partition: LivePartition, reported: Mapping[tuple[LiveWindow, str], ChangedList]) -> None:
    """What was reported last of each list is what it says now: nothing changed in silence."""
    for kind in LiveWindow:
        for region in filter(None, partition.regions.names):
            now, said = partition.top(kind, region, size=TINY.list_size), reported.get((kind, region))
            if said is None:
                assert now.total == 0
            else:
                assert (sorted(zip(now.item_ids, now.lower, now.upper, strict=True)), now.residual, now.total) == (
                    sorted(zip(said.item_ids, said.lower, said.upper, strict=True)),
                    said.residual,
                    said.total,
                )


@settings(max_examples=settings().max_examples // 2)
@given(seeds)
def test_bounds_hold_for_every_item_region_and_window_after_every_step(seed: int) -> None:
    check_a_log(seed)


@settings(max_examples=8)
@given(seeds)
def test_they_hold_while_ids_are_dropped_and_late_plays_are_folded_all_the_time(seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition_module, "_COMPACT_FROM", 1)
        patch.setattr(buckets_module, "_MOST_IN_TAIL", 2)
        patch.setattr(windows_module, "_MOST_SLACK", 1)
        check_a_log(seed)


ROOMY = replace(TINY, minutes=SpeedPolicy().minutes, hour_heads=SpeedPolicy().hour_heads)


def counted(plays: Sequence[Played], random: Random, policy: SpeedPolicy) -> LivePartition:
    partition = LivePartition(policy, RULES)
    for batch in cut(plays, random):
        partition.count(batch_of(batch))
    return partition


@settings(max_examples=10)
@given(seeds, st.randoms(use_true_random=False))
def test_how_the_log_is_cut_into_batches_means_nothing(seed: int, random: Random) -> None:
    """While buckets are exact the lists are equal; of sketches the totals and cells are (heads hold either way)."""
    plays = log_of(Random(seed))
    one, other = counted(plays, random, ROOMY), counted(plays, random, ROOMY)
    for kind in LiveWindow:
        for region in ("*", "ZZ", "IN"):
            lists = [partition.top(kind, region, size=50) for partition in (one, other)]
            columns = [sorted(zip(found.item_ids, found.lower, found.upper, strict=True)) for found in lists]
            assert columns[0] == columns[1]
            assert (lists[0].total, lists[0].residual, lists[0].cut) == (lists[1].total, lists[1].residual, None)
    assert one.meters == other.meters
    one, other = counted(plays, random, TINY), counted(plays, random, TINY)
    for moment, block in one.buckets.fine.items():
        again = other.buckets.fine[moment]
        assert block.totals.tolist() == again.totals.tolist()
        assert block.cells.sketched.tolist() == again.cells.sketched.tolist()
        assert all(np.array_equal(block.cells.of(int(r)), again.cells.of(int(r))) for r in block.cells.sketched)


def test_windows_at_a_moment_a_little_before_the_logs_time_are_whole() -> None:
    """The merger's moment is the smallest of all partitions', so the others are asked for one that has passed."""
    for seed in range(12):
        plays = log_of(Random(seed))
        partition, model = LivePartition(TINY, RULES), LiveModel(TINY, RULES)
        partition.count(batch_of(plays))
        for play in plays:
            model.read(play, partition.regions.names)
        for kind in LiveWindow:
            as_of = partition.as_of - timedelta(seconds=50)
            for region, truth in model.of_window(kind, as_of).items():
                found = partition.top(kind, region, size=40, as_of=as_of)
                assert found.window == kind.at(as_of)
                rows = dict(zip(found.item_ids, zip(found.lower, found.upper, strict=True), strict=True))
                for item, count in truth.items():
                    lower, upper = rows.get(item, (0, found.residual))
                    assert lower <= count <= upper


# --- faults that the law must see ---


def some_log_fails(seeds: range = range(40)) -> bool:
    for seed in seeds:
        try:
            check_a_log(seed)
        except AssertionError:
            return True
    return False


def test_the_law_sees_a_head_that_forgets_what_it_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Block.trim

    def forgetful(self: Block, regions: Numbers, hashes: UInt64s) -> None:
        kept = self.residuals.copy()
        whole(self, regions, hashes)
        self.residuals[:] = kept

    monkeypatch.setattr(Block, "trim", forgetful)
    assert some_log_fails()


def test_the_law_sees_running_sums_with_an_eviction_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Subtracting heads from a bounded head was tried: it loses what left before."""
    whole = RunningSum.cover

    def bounded(self: RunningSum, parts: Mapping[Part, PackedBlock], hashes: UInt64s) -> None:
        whole(self, parts, hashes)
        sums = self.sums
        best = np.sort(np.argsort(-sums.lower, kind="stable")[:6])
        sums.keys, sums.lower, sums.above = sums.keys[best], sums.lower[best], sums.above[best]

    monkeypatch.setattr(RunningSum, "cover", bounded)
    assert some_log_fails()


def test_the_law_sees_rules_that_are_asked_before_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """An excluded first copy must not let the second one count."""
    monkeypatch.setattr(RetryWindow, "first_copies", lambda self, ids, minutes: np.ones(len(ids), dtype=np.bool_))
    assert some_log_fails()


def test_the_law_sees_late_plays_that_are_forgotten_when_batch_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pending, "add_tardy", lambda *_, **__: None)
    assert some_log_fails(range(200))


# --- tightness and pinning, on streams with many more items than heads hold ---

SMALL = SpeedPolicy(
    minutes=Shapes(SketchShape(width=256, head=24, exact=60), SketchShape(width=128, head=16, exact=40)),
    hour_heads=(48, 32),
    regions=4,
    list_size=20,
)


def zipf_log(seed: int, *, minutes: int = 70, a_minute: int = 240) -> list[Played]:
    random = np.random.default_rng(seed)
    plays = []
    for number in range(minutes * a_minute):
        at = START + timedelta(seconds=60 * number / a_minute)
        plays.append(Played(number, at, number, f"t{min(int(random.zipf(1.3)), 3000)}", REGIONS[number % 3], at))
    return plays


def test_upper_bounds_are_no_further_away_than_sketches_and_heads_explain() -> None:
    """The gap exceeds the sum of (e/w) N + N/head over the buckets for no more than e^-4 of all items."""
    plays = zipf_log(5)
    partition, model = LivePartition(SMALL), LiveModel(SMALL, Rules())
    for start in range(0, len(plays), 2000):
        partition.count(batch_of(plays[start : start + 2000]))
        partition.changed()
    for play in plays:
        model.read(play, partition.regions.names)
    names = sorted({play.item for play in plays})
    keys = np.sort(keys_of(np.zeros(len(names)), partition.items.numbers_of(names)))
    for kind, most_share in ((LiveWindow.MINUTE, 0.1), (LiveWindow.HOUR, 0.2), (LiveWindow.DAY, 0.2)):
        sums = partition.changes.windows[kind]
        sums.slide(partition.as_of, len(partition.regions))
        lower, upper = sums.bounds(keys)
        total = int(sums.totals()[0][0])
        shape = SMALL.minutes.everywhere
        assert total == sum(model.of_window(kind, partition.as_of)["*"].values())
        assert np.mean(upper - lower > shape.epsilon * total + total / shape.head) <= np.exp(-4)
        top = partition.top(kind, "*", size=10).top()
        best = sorted(top.rows, key=lambda row: -row.lower)[:5]
        assert all(row.upper - row.lower <= most_share * row.upper for row in best), best


def steady_lower(policy: SpeedPolicy) -> int:
    """One item is among the best for two minutes, then behind crowds of which each is larger for a moment."""
    partition, number = LivePartition(policy), 0
    for minute in range(20):
        at = START + timedelta(minutes=minute)
        for step in range(4):
            crowd = [f"crowd-{minute}-{step}-{n}" for n in range(90)]
            plays = [Played(number + n, at, number + n, item, "IN", at, count=20) for n, item in enumerate(crowd)]
            number += len(plays) + 1
            plays.append(Played(number, at, number, "steady", "IN", at, count=25 if minute < 2 else 15))
            partition.count(batch_of(plays))
            partition.changed()
            at += timedelta(seconds=11)
    top = partition.top(LiveWindow.HOUR, "IN", size=100).top()
    return next((row.lower for row in top.rows if row.item_id == "steady"), 0)


def test_an_item_that_is_second_in_every_minute_is_first_in_the_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    assert steady_lower(SMALL) >= 20 * 4 * 15

    monkeypatch.setattr(Changes, "pins", lambda *_: NO_KEYS)
    assert steady_lower(SMALL) < 6 * 4 * 15
