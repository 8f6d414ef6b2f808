"""A block's bounds against brute force: they hold for every item and region after every batch, and are tight enough."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.sketches.block import Block
from domain.sketches.count_min import CountMin
from domain.sketches.keys import EVERYWHERE, NO_KEYS, Int64s, UInt64s, keys_of
from domain.sketches.merged import merged
from domain.sketches.shape import Shapes, SketchShape

pytestmark = pytest.mark.law

Batch = dict[tuple[int, int], int]  # (region, item) -> events
Truth = Counter[tuple[int, int]]

REGIONS, ITEMS = 4, 40
HASHES = np.random.default_rng(3).integers(2**64, size=5000, dtype=np.uint64)
EVERY = keys_of(np.repeat(np.arange(REGIONS), ITEMS), np.tile(np.arange(ITEMS), REGIONS))
SMALL = Shapes(SketchShape(width=64, head=6, exact=9), SketchShape(width=64, head=4, exact=6))

# Few items often and many rarely, so that heads fill, overflow, evict and admit again.
some_items = st.one_of(st.integers(0, 5), st.integers(0, ITEMS - 1))
batches = st.dictionaries(st.tuples(st.integers(0, REGIONS - 1), some_items), st.integers(1, 9), max_size=40)
streams = st.lists(batches, max_size=10)
pins = st.sets(st.tuples(st.integers(0, REGIONS - 1), st.integers(0, 11)), max_size=12)


def columns(batch: Batch) -> tuple[UInt64s, Int64s]:
    pairs = sorted(batch)
    keys = keys_of([region for region, _ in pairs], [item for _, item in pairs])
    return keys, np.array([batch[pair] for pair in pairs], dtype=np.int64)


def pinned_keys(pinned: Iterable[tuple[int, int]]) -> UInt64s:
    """At most half a head in each region, as callers promise."""
    kept: list[tuple[int, int]] = []
    for region, item in sorted(pinned):
        if sum(other == region for other, _ in kept) < SMALL.of(region).head // 2:
            kept.append((region, item))
    return keys_of([r for r, _ in kept], [i for _, i in kept]) if kept else NO_KEYS


def bounds_of(block: Block) -> dict[tuple[int, int], tuple[int, int]]:
    lower, upper = block.bounds(EVERY, HASHES)
    pairs = [(r, i) for r in range(REGIONS) for i in range(ITEMS)]
    return dict(zip(pairs, zip(lower.tolist(), upper.tolist(), strict=True), strict=True))


def require_true_bounds(block: Block, truth: Truth) -> None:
    listed = set(block.keys.tolist())
    for (region, item), (lower, upper) in bounds_of(block).items():
        assert lower <= truth[region, item] <= upper, (region, item)
        in_head = (region << 32 | item) in listed
        assert in_head or region >= len(block) or truth[region, item] <= block.residuals[region], (region, item)
    totals: Counter[int] = Counter()
    for (region, _), count in truth.items():
        totals[region] += count
    assert [totals[region] for region in range(len(block))] == block.totals.tolist()


def require_true_cells(block: Block, truth: Truth) -> None:
    """Each sketch is the one that Count-Min makes of the same events."""
    for region in block.cells.sketched.tolist():
        sketch = CountMin(SMALL.of(region).width)
        mine = {item: count for (r, item), count in truth.items() if r == region}
        sketch.add(HASHES[list(mine)], np.array(list(mine.values()), dtype=np.int64))
        assert np.array_equal(block.cells.of(region), sketch.cells)


def filled(stream: Sequence[Batch], pinned: UInt64s = NO_KEYS) -> tuple[Block, Truth]:
    block, truth = Block(SMALL, pinned), Truth()
    for batch in stream:
        block.add(*columns(batch), HASHES)
        truth.update(batch)
    return block, truth


@settings(max_examples=settings().max_examples // 2)
@given(streams, pins)
def test_bounds_hold_for_every_item_and_region_after_every_batch(
    stream: list[Batch], pinned: set[tuple[int, int]]
) -> None:
    block, truth = Block(SMALL, pinned_keys(pinned)), Truth()
    for batch in stream:
        block.add(*columns(batch), HASHES)
        truth.update(batch)
        require_true_bounds(block, truth)
    require_true_cells(block, truth)


@settings(max_examples=settings().max_examples // 2)
@given(streams)
def test_a_bucket_is_exact_until_it_has_too_many_items(stream: list[Batch]) -> None:
    block, truth = filled(stream)

    for region in range(len(block)):
        items = {item: count for (r, item), count in truth.items() if r == region}
        exact = len(items) <= SMALL.of(region).exact_items
        assert exact == (region not in block.cells.sketched)
        if exact:
            found = {i: bounds for (r, i), bounds in bounds_of(block).items() if r == region}
            assert found == {i: (items.get(i, 0), items.get(i, 0)) for i in range(ITEMS)}
            assert block.residuals[region] == 0


@settings(max_examples=settings().max_examples // 2)
@given(streams, pins)
def test_pinned_items_are_exact_whatever_comes(stream: list[Batch], pinned: set[tuple[int, int]]) -> None:
    keys = pinned_keys(pinned)
    block, truth = filled(stream, keys)

    lower, upper = block.bounds(keys, HASHES)
    expected = [truth[key >> 32, key & 0xFFFFFFFF] for key in keys.tolist()]
    assert lower.tolist() == expected == upper.tolist()


@settings(max_examples=settings().max_examples // 2)
@given(st.lists(st.tuples(streams, pins), max_size=4), streams)
def test_a_sum_of_blocks_holds_bounds_and_takes_late_events(
    parts: list[tuple[list[Batch], set[tuple[int, int]]]], late: list[Batch]
) -> None:
    blocks, truth = [], Truth()
    for stream, pinned in parts:
        block, own = filled(stream, pinned_keys(pinned))
        blocks.append(block)
        truth.update(own)

    whole = merged(blocks, SMALL, HASHES)

    require_true_bounds(whole, truth)
    for batch in late:
        whole.add(*columns(batch), HASHES)
        truth.update(batch)
        require_true_bounds(whole, truth)
    require_true_cells(whole, truth)


@settings(max_examples=settings().max_examples // 2)
@given(st.lists(st.dictionaries(st.tuples(st.just(1), st.integers(0, 5)), st.integers(1, 9)), max_size=5))
def test_small_blocks_merge_without_error(parts: list[Batch]) -> None:
    """Scenario: five hourly buckets below capacity."""
    truth = Truth()
    for part in parts:
        truth.update(part)

    whole = merged([filled([part])[0] for part in parts], SMALL, HASHES)

    assert all(lower == upper == truth[pair] for pair, (lower, upper) in bounds_of(whole).items())


def test_counts_that_32_bits_do_not_hold_stay_exact() -> None:
    block, truth = filled([{(1, 0): 2**40, (1, 1): 2**32 - 1}, {(1, item): 1 for item in range(20)}, {(1, 1): 2}])

    assert bounds_of(block)[1, 0][0] == 2**40 + 1
    assert bounds_of(block)[1, 1] == (2**32 + 2, 2**32 + 2)
    require_true_cells(block, truth)


# --- tightness, and faults that the checks above must see ---


def zipf_batches(
    seed: int, *, batches: int = 60, size: int = 400, items: int = 4000
) -> Iterator[tuple[UInt64s, Int64s]]:
    """A stream of many more items than any head holds."""
    random = np.random.default_rng(seed)
    for _ in range(batches):
        ids, counts = np.unique(np.minimum(random.zipf(1.3, size), items), return_counts=True)
        yield keys_of(np.full(len(ids), EVERYWHERE), ids), counts.astype(np.int64)


def share_of_wide_gaps(seeds: int = 20) -> float:
    """Share of items whose gap exceeds (e/w) N + N/head."""
    shape, wide, looked_at = SketchShape(width=256, head=32, exact=100), 0, 0
    for seed in range(seeds):
        block = Block(Shapes(shape, shape))
        hashes = np.random.default_rng([seed, 1]).integers(2**64, size=4001, dtype=np.uint64)
        for keys, counts in zipf_batches(seed):
            block.add(keys, counts, hashes)
        every = keys_of(np.zeros(4000), np.arange(1, 4001))
        lower, upper = block.bounds(every, hashes)
        total = int(block.totals[EVERYWHERE])
        wide += int(np.sum(upper - lower > shape.epsilon * total + total / shape.head))
        looked_at += len(every)
    return wide / looked_at


def test_upper_and_lower_are_no_further_apart_than_sketch_and_head_explain() -> None:
    assert share_of_wide_gaps() <= np.exp(-4)


def lower_of_a_steady_item(pinned: UInt64s) -> int:
    """An item that is second-best in every minute, behind crowds of which each is larger for a moment."""
    total = 0
    shape = SketchShape(width=64, head=4, exact=6)
    for _ in range(30):
        block = Block(Shapes(shape, shape), pinned)
        for step in range(12):
            crowd = np.arange(1 + step * 100, 1 + step * 100 + 100)
            block.add(keys_of(np.ones(100), crowd), np.full(100, 20), HASHES)
            block.add(keys_of([1], [0]), np.array([10]), HASHES)
        total += int(block.bounds(keys_of([1], [0]), HASHES)[0][0])
    return total


def test_an_item_that_is_second_in_every_minute_is_whole_in_the_hour_when_it_is_pinned() -> None:
    """Without pins it is evicted again and again, and what it had before is lost from the lower bound."""
    assert lower_of_a_steady_item(keys_of([1], [0])) == 30 * 12 * 10
    assert lower_of_a_steady_item(NO_KEYS) < 30 * 12 * 10


class _NoResidual(Block):
    """A fault: what was left out is forgotten."""

    def _contest(self, keys: UInt64s, added: Int64s, hashes: UInt64s) -> None:
        kept = self.residuals.copy()
        super()._contest(keys, added, hashes)
        self.residuals[:] = kept


def check_many_items(kind: type[Block]) -> None:
    block, truth = kind(SMALL), Truth()
    for start in range(0, ITEMS, 10):
        batch = {(1, item): 3 + start // 10 for item in range(start, start + 10)}
        block.add(*columns(batch), HASHES)
        truth.update(batch)
        require_true_bounds(block, truth)


def test_the_check_of_bounds_sees_a_head_that_forgets_its_residual() -> None:
    check_many_items(Block)
    with pytest.raises(AssertionError):
        check_many_items(_NoResidual)


def test_the_check_of_tightness_sees_a_bucket_whose_bounds_say_little() -> None:
    """Every item in one cell of each row, and nothing said of what was left out: true bounds, and useless ones."""
    constant = np.zeros(5000, dtype=np.uint64)
    shape = SketchShape(width=256, head=32, exact=100)
    block = Block(Shapes(shape, shape))
    for keys, counts in zipf_batches(1):
        block.add(keys, counts, constant)
        block.residuals[:] = block.totals
    lower, upper = block.bounds(keys_of(np.zeros(4000), np.arange(1, 4001)), constant)
    total = int(block.totals[EVERYWHERE])

    assert np.mean(upper - lower > shape.epsilon * total + total / shape.head) > np.exp(-4)
