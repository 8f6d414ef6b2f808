"""Streams as large as they come: what live counting says of them, against counts by numpy."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

import numpy as np
import numpy.typing as npt
import pytest

from domain.capacity import Load, bucket_sizes
from domain.live_windows import LiveWindow
from domain.merge import MergedTop, merged_top
from domain.sketches.keys import keys_of
from domain.speed_policy import DEFAULT_SPEED_POLICY
from domain.windows import EPOCH
from speed_layer.partition import LivePartition
from speed_layer.play_batch import NOT_SAID, PlayBatch

pytestmark = pytest.mark.law

START_MS = 1_794_650_400_000  # a whole hour
PARTITIONS = 8
BATCH = 50_000
MS_AN_HOUR = 3_600_000
MS = timedelta(milliseconds=1)

Int64s = npt.NDArray[np.int64]


def batches(drawn: Int64s, *, seconds: int, hour: int = 0) -> Iterator[PlayBatch]:
    """Plays of numbered items in the order drawn, evenly spread over so many seconds of the n-th hour from 0."""
    for start in range(0, len(drawn), BATCH):
        some = drawn[start : start + BATCH]
        number = np.arange(start, start + len(some))
        log_ms = START_MS + hour * MS_AN_HOUR + number * (1000 * seconds) // len(drawn)
        yield PlayBatch(
            positions=log_ms << 20,
            id_hashes=(number.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15),
            items=[f"i{item}" for item in some.tolist()],
            regions=["IN"] * len(some),
            event_times_us=log_ms * 1000,
            durations_ms=np.full(len(some), NOT_SAID),
            counts=np.ones(len(some), dtype=np.int64),
        )


def counted(drawn: Int64s, *, seconds: int) -> list[LivePartition]:
    """Count plays in the partitions of their items, at one moment in the end."""
    parts = []
    for number in range(PARTITIONS):
        live = LivePartition(DEFAULT_SPEED_POLICY)
        for batch in batches(drawn[drawn % PARTITIONS == number], seconds=seconds):
            live.count(batch)
        live.advance(EPOCH + (START_MS + 1000 * seconds) * MS)
        parts.append(live)
    return parts


def chart_of(parts: Sequence[LivePartition], *, size: int = 128) -> MergedTop:
    """The live hour everywhere, with lists as long as it takes."""
    while True:
        tops = {n: live.top(LiveWindow.HOUR, "*", size=size).top() for n, live in enumerate(parts)}
        merged = merged_top(tops, n=100)
        if not merged.deeper or size >= 1024:
            return merged
        size *= 2


def true_ranks(truth: Int64s) -> Mapping[str, int]:
    order = sorted(np.flatnonzero(truth).tolist(), key=lambda item: (-truth[item], f"i{item}".encode()))
    return {f"i{item}": rank for rank, item in enumerate(order, start=1)}


def require_honest(merged: MergedTop, truth: Int64s) -> None:
    """Every row's count and rank lie within what it says, and nothing outside has more than is said."""
    ranks = true_ranks(truth)
    for row in merged.rows:
        assert row.lower <= truth[int(row.item_id[1:])] <= row.upper
        assert row.rank_min <= ranks[row.item_id] <= row.rank_max
    outside = truth.copy()
    outside[[int(row.item_id[1:]) for row in merged.rows]] = 0
    assert outside.max() <= merged.missed_max


def test_ten_plays_among_two_million_enter_no_chart_by_an_estimate() -> None:
    """Many small items crowd the cells: who is in by its lower bound while a larger one is out says so by its rank."""
    random, items = np.random.default_rng(5), 400_000
    shares = np.cumsum(np.arange(1, items + 1) ** -0.6)
    drawn = np.searchsorted(shares, random.random(2_000_000 - 10) * shares[-1]).astype(np.int64)
    drawn = np.insert(drawn, random.integers(0, len(drawn), 10), items + 3)  # an item of its own, ten times
    truth = np.bincount(drawn, minlength=items + 4)

    merged = chart_of(counted(drawn, seconds=3_000))

    assert truth[items + 3] == 10
    assert f"i{items + 3}" not in {row.item_id for row in merged.rows}
    require_honest(merged, truth)
    larger = {f"i{item}" for item in np.flatnonzero(truth > truth[int(merged.rows[-1].item_id[1:])]).tolist()}
    left_out = larger - {row.item_id for row in merged.rows}
    assert not left_out or merged.rows[-1].rank_max > 100


def test_an_item_with_half_of_all_plays_is_first_with_nearly_all_of_them() -> None:
    random, items = np.random.default_rng(6), 50_000
    drawn = random.integers(1, items, 400_000)
    drawn[random.random(len(drawn)) < 0.5] = 0
    truth = np.bincount(drawn, minlength=items)

    parts = counted(drawn, seconds=1_200)
    merged = chart_of(parts)

    require_honest(merged, truth)
    assert merged.rows[0].item_id == "i0"
    assert (merged.rows[0].lower, merged.rows[0].rank_min, merged.rows[0].rank_max) == (truth[0], 1, 1)
    assert merged.total == len(drawn)
    assert {live.as_of for live in parts} == {EPOCH + (START_MS + 1_200_000) * MS}  # none is behind for it


def test_five_million_items_in_an_hour_stay_within_memory_and_bounds() -> None:
    """One of eight partitions, since they share nothing: 625,000 items, each played once, and one twice a minute."""
    items = 5_000_000 // PARTITIONS
    drawn = np.insert(np.arange(1, items), np.linspace(0, items - 2, 120).astype(np.int64), 0)
    live = LivePartition(DEFAULT_SPEED_POLICY)

    for batch in batches(drawn, seconds=3_600):
        live.count(batch)

    sizes = bucket_sizes(DEFAULT_SPEED_POLICY, Load(plays_per_second=len(drawn) // 3_600 + 1, regions=1, partitions=1))
    tens, minutes, *_ = sizes
    assert live.buckets.size_bytes <= tens.size_bytes + minutes.size_bytes
    assert live.retry.size_bytes <= sizes[-1].size_bytes
    best = live.top(LiveWindow.HOUR, "IN", size=10)
    assert ("i0", 120) in [(item, lower) for item, lower in zip(best.item_ids, best.lower, strict=True)]
    sample = np.random.default_rng(1).integers(1, items, 2_000)
    numbers = live.items.numbers_of([f"i{item}" for item in sample.tolist()])
    lower, upper = live.changes.windows[LiveWindow.HOUR].bounds(np.unique(keys_of(np.zeros(len(numbers)), numbers)))
    assert int(lower.max()) <= 1 <= int(upper.min())
    assert len(live.items) < items // 4 + len(sample)  # of most no bucket says the name any more


def test_names_that_no_bucket_has_are_dropped() -> None:
    live, number = LivePartition(DEFAULT_SPEED_POLICY), 200_000
    for hour in (0, 30):
        for batch in batches(np.arange(hour * number, (hour + 1) * number), seconds=3_600, hour=hour):
            live.count(batch)

    assert len(live.items) <= number
    assert {int(item[1:]) >= 30 * number for item in live.items.ids} == {True}


def test_the_check_sees_a_chart_that_says_too_much() -> None:
    truth: Int64s = np.array([5, 9, 7])
    first = LivePartition(DEFAULT_SPEED_POLICY)
    drawn = np.repeat(np.arange(3), truth)
    for batch in batches(drawn, seconds=60):
        first.count(batch)
    merged = chart_of([first])
    require_honest(merged, truth)

    with pytest.raises(AssertionError):
        require_honest(merged, truth + np.array([0, 0, 3]))
