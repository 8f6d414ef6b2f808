"""Sums of blocks: several spans of event time as one, with bounds that still hold."""

from collections.abc import Sequence

import numpy as np

from domain.sketches.block import Block
from domain.sketches.keys import UInt64s, distinct, items_of, regions_of
from domain.sketches.shape import Shapes


def merged(blocks: Sequence[Block], shapes: Shapes, hashes: UInt64s) -> Block:
    """Return one block of the events of all.

    Bounds and residuals are sums of those of the parts, as the parts share no event; cells are sums of cells. A
    bucket is exact when all parts were and the items fit. What does not fit into a head any more goes into the
    residual with the most that it can have.

    Args:
        blocks: Of disjoint events and of shapes with the same widths as `shapes`.
        shapes: Of the result; its heads may be larger.
        hashes: Hash of each item number.
    """
    result = Block(shapes)
    result.grow(max((len(block) for block in blocks), default=0))
    result.keys = distinct(np.concatenate([block.keys for block in blocks])) if blocks else result.keys
    lower, upper = np.zeros((2, len(result.keys)), dtype=np.int64)
    for block in blocks:
        more = block.bounds(result.keys, hashes)
        lower += more[0]
        upper += more[1]
        result.totals[: len(block)] += block.totals
        result.residuals[: len(block)] += block.residuals
    result.counts, result.before = lower, upper - lower
    _sum_cells(result, blocks, hashes)
    result.trim(result.cells.sketched, hashes)
    result.sketch_what_is_too_large(hashes)
    return result


def _sum_cells(result: Block, blocks: Sequence[Block], hashes: UInt64s) -> None:
    """Give sketches to the regions that have one in some block; exact buckets of others are counted into them."""
    sketched = np.unique(np.concatenate([block.cells.sketched for block in blocks])) if blocks else None
    if sketched is None or not len(sketched):
        return
    result.cells.make_room(int(result.totals.max()))
    result.cells.open(sketched)
    for block in blocks:
        for region in block.cells.sketched.tolist():
            result.cells.merge(region, block.cells.of(region))
        regions = regions_of(block.keys)
        exact = result.cells.has(regions) & ~block.cells.has(regions)
        keys = block.keys[exact]
        result.cells.add(regions[exact], hashes[items_of(keys)], block.counts[exact])
