"""Our sketches beside those of Apache DataSketches on the same streams: what both promise must agree.

Both give bounds that hold the truth, so the two intervals of an item always meet; and with as many cells, a Count-Min
errs by about as much whoever wrote it.
"""

from collections import Counter

import datasketches
import numpy as np
import numpy.typing as npt
import pytest

from domain.sketches.block import Block
from domain.sketches.count_min import ROWS, CountMin
from domain.sketches.keys import EVERYWHERE, NO_KEYS, keys_of, summed
from domain.sketches.shape import Shapes, SketchShape

pytestmark = pytest.mark.law

WIDTH, HEAD, ITEMS, PLAYS = 256, 128, 20_000, 60_000
HASHES = np.random.default_rng(5).integers(2**64, size=ITEMS, dtype=np.uint64)


def stream(seed: int, exponent: float) -> npt.NDArray[np.intp]:
    """Plays of items with the shares of Zipf."""
    shares = np.cumsum(1 / np.arange(1, ITEMS + 1) ** exponent)
    drawn = np.random.default_rng(seed).random(PLAYS) * shares[-1]
    found: npt.NDArray[np.intp] = np.searchsorted(shares, drawn)
    return found


@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.3])
def test_a_count_min_errs_as_much_as_the_one_of_datasketches(exponent: float) -> None:
    over_ours, over_theirs = [], []
    for seed in range(5):
        items = stream(seed, exponent)
        distinct, truth = np.unique(items, return_counts=True)
        ours = CountMin(WIDTH)
        ours.add(HASHES[distinct], truth)
        theirs = datasketches.count_min_sketch(ROWS, WIDTH, seed + 1)
        for item, count in zip(distinct.tolist(), truth.tolist(), strict=True):
            theirs.update(item, count)
        estimates = ours.estimate(HASHES[distinct])
        said = np.array([theirs.get_estimate(item) for item in distinct.tolist()])
        assert np.all(estimates >= truth)
        assert np.all(said >= truth)
        over_ours.append(float(np.mean(estimates - truth)))
        over_theirs.append(float(np.mean(said - truth)))
    assert 0 < np.mean(over_ours) < 1.25 * np.mean(over_theirs)


@pytest.mark.parametrize("exponent", [0.8, 1.0, 1.3])
def test_bounds_of_a_bucket_and_of_a_frequent_items_sketch_meet(exponent: float) -> None:
    items = stream(11, exponent)
    shape = SketchShape(width=WIDTH, head=HEAD, exact=HEAD)
    block = Block(Shapes(shape, shape), NO_KEYS)
    theirs = datasketches.frequent_strings_sketch(8)
    for part in np.array_split(items, 60):
        keys, (counts,) = summed(keys_of(np.full(len(part), EVERYWHERE), part), np.ones(len(part), dtype=np.int64))
        block.add(keys, counts, HASHES)
        for item, count in Counter(part.tolist()).items():
            theirs.update(str(item), count)
    every = np.arange(ITEMS)
    lower, upper = block.bounds(keys_of(np.full(ITEMS, EVERYWHERE), every), HASHES)
    for item in every.tolist():
        assert lower[item] <= theirs.get_upper_bound(str(item)), item
        assert theirs.get_lower_bound(str(item)) <= upper[item], item
    surely = theirs.get_frequent_items(datasketches.frequent_items_error_type.NO_FALSE_POSITIVES)
    assert len(surely) >= 3
    assert {int(name) for name, *_ in surely[:5]} <= set(np.argsort(-lower, kind="stable")[:10].tolist())
