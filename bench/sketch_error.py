"""How far off is a sketch, against what theory allows, and beside Apache DataSketches?

Zipf plays into bare Count-Min sketches of the widths in use, ours and theirs, and into frequent items of theirs.
Overcount: estimate less truth, of every item; of frequent items, upper bound less truth of those listed.

  python -m bench.sketch_error --plays 1000000
"""

from collections.abc import Sequence
from math import e, exp

import numpy as np
import numpy.typing as npt
from datasketches import count_min_sketch, frequent_items_error_type, frequent_strings_sketch

from bench.report import WrongResultError, plays_asked_for, print_table, say
from domain.sketches.count_min import ROWS, CountMin, Int64s, UInt64s, mixed

PLAYS = 1_000_000
ITEMS = 200_000
WIDTHS = (1_024, 4_096)
_LOG_MAP_SIZE = {1_024: 10, 4_096: 12}  # the largest frequent items that take no more bytes


def run(plays: int) -> None:
    """Make plays, measure, print the table."""
    say(f"sketch_error: {plays:,} plays of {ITEMS:,} items")
    random = np.random.default_rng(20261114)
    shares = np.cumsum(1 / np.arange(1, ITEMS + 1))
    drawn = np.searchsorted(shares, random.random(plays) * shares[-1])
    truth = np.bincount(drawn, minlength=ITEMS).astype(np.int64)
    rows = [line for width in WIDTHS for line in _lines(width, truth, plays)]
    print_table(
        f"Overcount of {ITEMS:,} items after {plays:,} plays",
        ["sketch", "kB", "mean", "N / w", "largest", "(e / w) N", "beyond it", "allowed"],
        rows,
        remark="Beyond it: share of the items whose overcount exceeds (e / w) N; theory allows so much an item. N / w "
        "is the mean of one row. Frequent items have no cells: their bound is the largest error that they state.",
    )


def _lines(width: int, truth: Int64s, plays: int) -> list[Sequence[str]]:
    hashes: UInt64s = mixed(np.arange(1, len(truth) + 1, dtype=np.uint64))
    ours = CountMin(width)
    ours.add(hashes, truth)
    theirs = count_min_sketch(ROWS, width)
    for item, count in enumerate(truth.tolist()):
        theirs.update(item, count)
    found = np.array([theirs.get_estimate(item) for item in range(len(truth))], dtype=np.int64)
    return [
        _line(f"lakeboard, width {width:,}", ours.cells.nbytes, ours.estimate(hashes) - truth, width, plays),
        _line(f"DataSketches count-min, width {width:,}", len(theirs.serialize()), found - truth, width, plays),
        _frequent_line(width, truth),
    ]


def _line(name: str, size: int, over: Int64s, width: int, plays: int) -> Sequence[str]:
    if int(over.min()) < 0:
        what = f"the smallest overcount of {name}"
        raise WrongResultError(what, expected="0 or more", found=int(over.min()))
    bound = e / width * plays
    beyond: npt.NDArray[np.bool_] = over > bound
    numbers = (size / 1e3, float(over.mean()), plays / width, float(over.max()), bound)
    return [name, *(f"{number:,.0f}" for number in numbers), f"{beyond.mean():.3%}", f"{exp(-ROWS):.1%}"]


def _frequent_line(width: int, truth: Int64s) -> Sequence[str]:
    sketch = frequent_strings_sketch(_LOG_MAP_SIZE[width])
    order = np.random.default_rng(1).permutation(len(truth))
    for item in order.tolist():
        if truth[item]:
            sketch.update(str(item), int(truth[item]))
    listed = sketch.get_frequent_items(frequent_items_error_type.NO_FALSE_NEGATIVES)
    over = np.array([upper - truth[int(item)] for item, _, _, upper in listed] or [0], dtype=np.int64)
    numbers = (len(sketch.serialize()) / 1e3, float(over.mean()))
    stated = frequent_strings_sketch.get_epsilon_for_lg_size(_LOG_MAP_SIZE[width]) * float(truth.sum())
    name = f"DataSketches frequent items, 2^{_LOG_MAP_SIZE[width]}, of {len(listed):,} listed"
    return [name, *(f"{number:,.0f}" for number in numbers), "", f"{over.max():,}", f"{stated:,.0f}", "", ""]


def main(argv: Sequence[str] | None = None) -> None:
    """Read the arguments and run."""
    run(plays_asked_for(argv, __doc__, PLAYS))


if __name__ == "__main__":
    main()
