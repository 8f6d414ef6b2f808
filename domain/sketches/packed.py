"""Blocks at rest: the same buckets in a third of the memory, for minutes and hours that hardly change any more."""

import numpy as np
import numpy.typing as npt

from domain.sketches.block import Block
from domain.sketches.cells import Cells
from domain.sketches.keys import (
    Int64s,
    Mask,
    Numbers,
    UInt64s,
    find,
    items_of,
    keys_of,
    region_bounds,
    regions_of,
    sizes_of,
)
from domain.sketches.shape import Shapes

Unsigned = npt.NDArray[np.unsignedinteger]

_NARROW_MOST = 2**32 - 1


class PackedBlock:
    """A block that is read or put aside. An entry of an exact bucket takes 8 bytes.

    Attributes:
        shapes: As of the block.
        bounds: Where each region's entries begin, and where the last one ends.
        items: Item number of each entry, by region, then number.
        counts: Events of each entry since it was listed, 32 bits while they fit.
        before: At most so many before that; only of entries in regions that have a sketch, as it is 0 elsewhere.
        totals: Events of each region.
        residuals: Of each region.
        bases: Where each region's cells begin in `cells`, -1 for none.
        cells: Sketches.
    """

    __slots__ = ("bases", "before", "bounds", "cells", "counts", "items", "residuals", "shapes", "totals")

    def __init__(self, block: Block) -> None:
        self.shapes: Shapes = block.shapes
        self.bounds = region_bounds(block.keys, len(block)).astype(np.uint32)
        self.items = items_of(block.keys).astype(np.uint32)
        self.counts = narrow(block.counts)
        self.bases = block.cells.bases.copy()
        self.before = narrow(block.before[self._with_before()])
        self.totals = block.totals.copy()
        self.residuals = block.residuals.copy()
        self.cells: Unsigned = block.cells.flat.copy()

    def __len__(self) -> int:
        return len(self.totals)

    def block(self) -> Block:
        """Return the buckets in the form that can be added to; the numbers of regions and items are as they were."""
        block = Block(self.shapes)
        block.grow(len(self))
        block.totals[:] = self.totals
        block.residuals[:] = self.residuals
        block.keys = keys_of(self._regions(), self.items)
        block.counts = self.counts.astype(np.int64)
        block.before = np.zeros(len(self.items), dtype=np.int64)
        block.before[self._with_before()] = self.before
        block.cells.bases = self.bases.copy()
        block.cells.flat = self.cells.copy()
        return block

    def contribution(self) -> tuple[UInt64s, Int64s, Int64s]:
        """Return sorted keys, lower bounds, and how far each upper bound is above the residual, of all entries.

        So a sum of blocks has `upper = sum of residuals + sum of what is above them`, whichever blocks list the item.
        """
        regions = self._regions()
        lower = self.counts.astype(np.int64)
        above = lower - self.residuals[regions]
        above[self._with_before()] += self.before.astype(np.int64)
        return keys_of(regions, self.items), lower, above

    def slack(self, keys: UInt64s, hashes: UInt64s) -> Int64s:
        """Return for each sorted key how much less than the residual it can have, by the cells; 0 if it is listed."""
        slack = np.zeros(len(keys), dtype=np.int64)
        if not self.residuals.any():
            return slack
        regions = regions_of(keys)
        asked = np.flatnonzero(regions < len(self))
        asked = asked[(self.bases[regions[asked]] >= 0) & (self.residuals[regions[asked]] > 0)]
        if not len(asked):
            return slack
        with_before = self._with_before()
        listed = keys_of(self._regions()[with_before], self.items[with_before])
        asked = asked[~find(listed, keys[asked])[1]]
        cells = Cells(self.shapes)
        cells.bases, cells.flat = self.bases, self.cells
        estimates = cells.estimate(regions[asked], hashes[items_of(keys[asked])])
        slack[asked] = np.maximum(self.residuals[regions[asked]] - estimates, 0)
        return slack

    def renumber(self, moved: Numbers) -> None:
        """Give each item the number that stands at its old one; the order of items must stay."""
        self.items = moved[self.items].astype(np.uint32)

    @property
    def exact_regions(self) -> int:
        """How many regions have an exact bucket with events."""
        return int(np.sum((self.bases < 0) & (self.totals > 0)))

    @property
    def size_bytes(self) -> int:
        """Bytes of all columns."""
        columns = (self.bounds, self.items, self.counts, self.before, self.totals, self.residuals, self.bases)
        return sum(column.nbytes for column in columns) + self.cells.nbytes

    def _regions(self) -> npt.NDArray[np.intp]:
        return np.repeat(np.arange(len(self.bounds) - 1), sizes_of(self.bounds))

    def _with_before(self) -> Mask:
        return np.repeat(self.bases >= 0, sizes_of(self.bounds))


def narrow(numbers: npt.NDArray[np.integer]) -> Unsigned:
    """Return non-negative numbers in 32 bits if all fit, else in 64."""
    fits = not len(numbers) or int(numbers.max()) <= _NARROW_MOST
    return numbers.astype(np.uint32 if fits else np.uint64)
