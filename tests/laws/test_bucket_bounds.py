"""A bucket's bounds against brute force: they hold for every item after every batch, and they are tight enough."""

from collections import Counter
from collections.abc import Iterable, Iterator
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.sketches.bucket import Bucket, SketchShape
from domain.sketches.count_min import Int64s, UInt64s
from domain.sketches.head import Head

pytestmark = pytest.mark.fast

Batch = dict[str, int]

ITEMS = [f"track-{n}" for n in range(120)] + ["ärger", "日本語", "🎵"]
HASH = dict(zip(ITEMS, np.random.default_rng(3).integers(2**64, size=len(ITEMS), dtype=np.uint64), strict=True))
SMALL = SketchShape(width=64, head=4)

# Few items often and many rarely, so that heads fill, overflow, evict and admit again.
some_items = st.one_of(st.sampled_from(ITEMS[:6]), st.sampled_from(ITEMS))
batches = st.lists(st.dictionaries(some_items, st.integers(1, 9), max_size=70), max_size=12)
pins = st.lists(st.sampled_from(ITEMS[:12]), max_size=5)


def hashes_of(items: Iterable[str]) -> UInt64s:
    return np.array([HASH[item] for item in items], dtype=np.uint64)


def add(bucket: Bucket, batch: Batch) -> None:
    items = list(batch)
    bucket.add(items, hashes_of(items), np.array(list(batch.values()), dtype=np.int64))


def bounds(bucket: Bucket) -> dict[str, tuple[int, int]]:
    lower, upper = bucket.bounds(ITEMS, hashes_of(ITEMS))
    return {item: (int(low), int(high)) for item, low, high in zip(ITEMS, lower, upper, strict=True)}


def require_true_bounds(bucket: Bucket, truth: Counter[str]) -> None:
    assert bucket.total == truth.total()
    listed = set(bucket.listed)
    for item, (lower, upper) in bounds(bucket).items():
        assert lower <= truth[item] <= upper, item
        assert item in listed or truth[item] <= bucket.residual, item


@settings(max_examples=60)
@given(batches, pins)
def test_bounds_hold_for_every_item_after_every_batch(stream: list[Batch], pinned: list[str]) -> None:
    bucket, truth = Bucket(SMALL, pinned), Counter[str]()
    for batch in stream:
        add(bucket, batch)
        truth.update(batch)
        require_true_bounds(bucket, truth)


@settings(max_examples=40)
@given(batches)
def test_while_a_bucket_is_exact_its_bounds_are_the_counts(stream: list[Batch]) -> None:
    bucket, truth = Bucket(SketchShape(width=64, head=64)), Counter[str]()
    for batch in stream:
        add(bucket, batch)
        truth.update(batch)
        if len(truth) <= bucket.shape.exact_items:
            assert bucket.is_exact
            assert bounds(bucket) == {item: (truth[item], truth[item]) for item in ITEMS}
        else:
            assert not bucket.is_exact


@settings(max_examples=40)
@given(batches, st.randoms(use_true_random=False))
def test_the_order_of_items_within_a_batch_means_nothing(stream: list[Batch], random: Random) -> None:
    one, other = Bucket(SMALL), Bucket(SMALL)
    for batch in stream:
        add(one, batch)
        pairs = list(batch.items())
        random.shuffle(pairs)
        add(other, dict(pairs))

    assert bounds(one) == bounds(other)
    assert set(one.listed) == set(other.listed)
    assert one.residual == other.residual


@settings(max_examples=40)
@given(batches, pins)
def test_pinned_items_are_exact_whatever_comes(stream: list[Batch], pinned: list[str]) -> None:
    bucket, truth = Bucket(SMALL, pinned), Counter[str]()
    for batch in stream:
        add(bucket, batch)
        truth.update(batch)

    for item in list(dict.fromkeys(pinned))[: SMALL.head // 2]:
        lower, upper = bounds(bucket)[item]
        assert lower == truth[item]
        assert bucket.is_exact or upper == truth[item]


def long_stream(
    seed: int, *, batches: int = 60, size: int = 400, items: int = 4000
) -> Iterator[tuple[list[str], Int64s]]:
    """A Zipf stream of many more items than any head holds, as batches of (ids, counts)."""
    random = np.random.default_rng(seed)
    for _ in range(batches):
        ids, counts = np.unique(np.minimum(random.zipf(1.3, size), items), return_counts=True)
        yield [f"t{n}" for n in ids.tolist()], counts.astype(np.int64)


def long_hashes(items: Iterable[str], seed: int) -> UInt64s:
    hashes = np.random.default_rng([seed, 1]).integers(2**64, size=4001, dtype=np.uint64)
    return hashes[[int(item[1:]) for item in items]]


def test_upper_and_lower_are_no_further_apart_than_sketch_and_head_explain() -> None:
    """The gap exceeds (e/w) N + N/head for no more than e^-4 of the items; a bucket without a sketch would fail."""
    shape, wide, looked_at = SketchShape(width=256, head=32), 0, 0
    for seed in range(20):
        bucket = Bucket(shape)
        for items, counts in long_stream(seed):
            bucket.add(items, long_hashes(items, seed), counts)
        every = [f"t{n}" for n in range(1, 4001)]
        lower, upper = bucket.bounds(every, long_hashes(every, seed))
        wide += int(np.sum(upper - lower > shape.epsilon * bucket.total + bucket.total / shape.head))
        looked_at += len(every)

    assert wide / looked_at <= np.exp(-4)


def test_an_item_that_is_second_in_every_minute_is_first_in_the_hour_when_it_is_pinned() -> None:
    """Without pins it is evicted again and again, and what it had before is lost from the lower bound."""

    def lower_of_steady(pinned: list[str]) -> int:
        total = 0
        for minute in range(30):
            bucket = Bucket(SketchShape(width=64, head=4), pinned)
            for step in range(12):  # each step brings new items that look larger, then the steady one again
                crowd = {f"crowd-{minute}-{step}-{n}": 20 for n in range(100)}
                for name in crowd:
                    HASH.setdefault(name, np.uint64(hash_of(name)))
                add(bucket, crowd)
                add(bucket, {"track-0": 10})
            lower, _ = bucket.bounds(["track-0"], hashes_of(["track-0"]))
            total += int(lower[0])
        return total

    assert lower_of_steady(["track-0"]) == 30 * 12 * 10
    assert lower_of_steady([]) < 30 * 12 * 10


def hash_of(name: str) -> int:
    return int.from_bytes(name.encode()[-8:].rjust(8, b"\0"), "big") * 0x9E3779B97F4A7C15 % 2**64


class _NoResidual(Head):
    """The head with a fault: it forgets what it left out."""

    @property
    def residual(self) -> int:
        return 0

    @residual.setter
    def residual(self, _: int) -> None:
        pass


def check_a_stream_of_many_items() -> None:
    bucket, truth = Bucket(SMALL), Counter[str]()
    for start in range(0, 120, 40):
        batch = dict.fromkeys(ITEMS[start : start + 40], 3)
        add(bucket, batch)
        truth.update(batch)
        require_true_bounds(bucket, truth)


def test_the_check_of_the_bounds_sees_a_head_that_forgets_its_residual(monkeypatch: pytest.MonkeyPatch) -> None:
    check_a_stream_of_many_items()
    monkeypatch.setattr("domain.sketches.bucket.Head", _NoResidual)

    with pytest.raises(AssertionError):
        check_a_stream_of_many_items()
