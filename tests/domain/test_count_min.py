"""The sketch: linear, never below the truth, and as wrong as its inequality says."""

from collections import Counter
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.sketches.count_min import MAX_WIDTH, ROWS, CountMin, Int64s, UInt64s, UnlikeSketchesError, cell_places

pytestmark = pytest.mark.law

Events = list[tuple[int, int]]
Shares = npt.NDArray[np.float64]

counted = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5)), max_size=60)


def hashes_of(items: Iterable[int]) -> UInt64s:
    """A fixed 64-bit hash per item, as the consumer would hand it over."""
    return np.array([np.random.default_rng(item).integers(2**64, dtype=np.uint64) for item in items], dtype=np.uint64)


def sketch_of(events: Events, width: int = 64) -> CountMin:
    sketch = CountMin(width)
    sketch.add(hashes_of([item for item, _ in events]), np.array([count for _, count in events], dtype=np.int64))
    return sketch


@given(counted)
def test_an_estimate_is_never_below_the_truth_and_every_row_sums_to_the_events(events: Events) -> None:
    sketch = sketch_of(events)
    truth: Counter[int] = Counter()
    for item, count in events:
        truth[item] += count

    estimates = sketch.estimate(hashes_of(range(41)))

    assert all(estimates[item] >= truth[item] for item in range(41))
    assert sketch.cells.sum(axis=1).tolist() == [truth.total()] * ROWS
    assert sketch.total == truth.total()


@given(counted, counted, counted)
def test_sketches_of_parts_sum_to_the_sketch_of_the_whole_in_any_grouping(
    first: Events, second: Events, third: Events
) -> None:
    whole = sketch_of(first + second + third)
    left, right = sketch_of(first), sketch_of(third)
    left.merge(sketch_of(second))
    left.merge(right)
    right.merge(sketch_of(second))
    right.merge(sketch_of(first))

    assert np.array_equal(left.cells, whole.cells)
    assert np.array_equal(right.cells, whole.cells)
    left.subtract(sketch_of(third))
    assert np.array_equal(left.cells, sketch_of(first + second).cells)
    assert left.total == sketch_of(first + second).total


def test_what_cannot_be_combined_changes_nothing() -> None:
    sketch, other = sketch_of([(1, 5)]), sketch_of([(2, 7)])
    before = sketch.cells.copy()

    with pytest.raises(UnlikeSketchesError, match="64 cells a row, the other 128"):
        sketch.merge(sketch_of([(1, 1)], width=128))
    with pytest.raises(UnlikeSketchesError, match="never added"):
        sketch.subtract(other)

    assert np.array_equal(sketch.cells, before)
    assert sketch.total == 5


def test_cells_are_widened_before_they_overflow() -> None:
    sketch = sketch_of([(1, 2**32 - 1)])
    assert sketch.cells.dtype == np.uint32

    sketch.add(hashes_of([1]), np.array([1], dtype=np.int64))

    assert sketch.cells.dtype == np.uint64
    assert sketch.estimate(hashes_of([1])).tolist() == [2**32]
    narrow = sketch_of([(1, 2**32 - 1)])
    narrow.merge(sketch_of([(1, 2**32 - 1)]))
    assert narrow.estimate(hashes_of([1])).tolist() == [2**33 - 2]


def test_counts_beyond_the_precision_of_floats_are_exact() -> None:
    sketch = sketch_of([(1, 2**53), (1, 1), (1, 1)])

    assert sketch.estimate(hashes_of([1])).tolist() == [2**53 + 2]


@pytest.mark.parametrize("width", [0, 1, 63, 100, 2 * MAX_WIDTH])
def test_a_width_is_a_power_of_two_within_bounds(width: int) -> None:
    with pytest.raises(ValueError, match=f"not {width}"):
        CountMin(width)


def test_cells_whose_rows_disagree_are_no_sketch() -> None:
    cells = sketch_of([(1, 5)]).cells.copy()
    cells[0, 0] += 1

    with pytest.raises(UnlikeSketchesError, match="rows sum to"):
        CountMin.of_cells(cells)
    assert CountMin.of_cells(sketch_of([(1, 5)]).cells).total == 5


def test_items_that_meet_in_one_row_do_not_meet_in_all() -> None:
    """Scenario 38: with one hash for all rows a collision would be for ever."""
    hashes = np.random.default_rng(7).integers(2**64, size=3000, dtype=np.uint64)
    places = cell_places(hashes, 64)

    first_row = places[0][:, None] == places[0][None, :]
    every_row = np.logical_and.reduce([row[:, None] == row[None, :] for row in places])

    pairs = 3000 * 2999 / 2
    assert (first_row.sum() - 3000) / 2 == pytest.approx(pairs / 64, rel=0.1)
    assert (every_row.sum() - 3000) / 2 <= 3  # 0.27 expected; all of the first row's with a shared hash


def overcounted_shares(sketch_class: type[CountMin], trials: int = 200, width: int = 512) -> Shares:
    """Share of absent items, per trial, whose estimate exceeds (e / width) N.

    Not on Zipf streams: there a broken row passes. Every item has one event, so each row must do its part.
    """
    random = np.random.default_rng(20261114)
    epsilon = np.e / width
    shares = []
    for _ in range(trials):
        sketch = sketch_class(width)
        items = int(1 / epsilon) - 1
        sketch.add(random.integers(2**64, size=items, dtype=np.uint64), np.ones(items, dtype=np.int64))
        absent = sketch.estimate(random.integers(2**64, size=2000, dtype=np.uint64))
        shares.append(float(np.mean(absent > epsilon * items)))
    return np.array(shares)


def holds(shares: Shares) -> bool:
    return bool(shares.mean() + 3.09 * shares.std() / np.sqrt(len(shares)) <= np.exp(-ROWS))


class _OneRowConstant(CountMin):
    def estimate(self, hashes: UInt64s) -> Int64s:
        places = cell_places(hashes, self.width)
        found: Int64s = np.stack([self.cells[row][places[row]] for row in (0, 1, 2)]).min(axis=0).astype(np.int64)
        return found


class _LargestCell(CountMin):
    def estimate(self, hashes: UInt64s) -> Int64s:
        places = cell_places(hashes, self.width)
        found: Int64s = np.stack([self.cells[row][places[row]] for row in range(ROWS)]).max(axis=0).astype(np.int64)
        return found


def test_the_error_exceeds_its_bound_no_more_often_than_its_inequality_allows() -> None:
    shares = overcounted_shares(CountMin)

    assert holds(shares)
    assert shares.mean() > 0  # the stream is hard enough to say something


@pytest.mark.parametrize("broken", [_OneRowConstant, _LargestCell])
def test_the_check_of_the_error_sees_a_broken_sketch(broken: type[CountMin]) -> None:
    assert not holds(overcounted_shares(broken, trials=20))
