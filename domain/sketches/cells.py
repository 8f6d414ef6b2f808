"""The sketches of a block's regions: Count-Min cells of all of them in one array, so that a batch is counted at once.

Each region that has a sketch owns `ROWS` rows of its width; `CountMin` is the same for one set of events alone.
"""

import numpy as np
import numpy.typing as npt

from domain.sketches.count_min import ROWS, mixed_rows
from domain.sketches.keys import Int64s, Mask, Numbers, UInt64s
from domain.sketches.shape import Shapes

_NARROW_MOST = 2**32 - 1  # of a cell of 32 bits
_NONE = -1


class Cells:
    """Cells by region number; a region has none until it is given some.

    Attributes:
        flat: All cells, region after region in the order in which they got them.
        bases: Where each region's cells begin, -1 for none.
    """

    __slots__ = ("_shapes", "bases", "flat")

    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes
        self.flat: npt.NDArray[np.unsignedinteger] = np.zeros(0, dtype=np.uint32)
        self.bases = np.zeros(0, dtype=np.int64)

    def grow(self, regions: int) -> None:
        """Know this many regions."""
        missing = regions - len(self.bases)
        if missing > 0:
            self.bases = np.concatenate((self.bases, np.full(missing, _NONE)))

    def has(self, regions: Numbers) -> Mask:
        """Say for each region whether it has a sketch."""
        known: Mask = self.bases[regions] != _NONE
        return known

    @property
    def sketched(self) -> Numbers:
        """The regions that have a sketch."""
        return np.flatnonzero(self.bases != _NONE)

    def of(self, region: int) -> npt.NDArray[np.unsignedinteger]:
        """Return a region's cells, shape (4, width), as a view."""
        width = self._shapes.of(region).width
        base = int(self.bases[region])
        return self.flat[base : base + ROWS * width].reshape(ROWS, width)

    def open(self, regions: Numbers) -> None:
        """Give sketches to regions that have none."""
        sizes = np.array([ROWS * self._shapes.of(int(region)).width for region in regions], dtype=np.int64)
        ends = len(self.flat) + np.cumsum(sizes)
        self.bases[regions] = ends - sizes
        self.flat = np.concatenate((self.flat, np.zeros(int(sizes.sum()), dtype=self.flat.dtype)))

    def make_room(self, most: int) -> None:
        """Widen the cells if a region's events, at most this many, could overflow one. No cell exceeds them."""
        if most > _NARROW_MOST and self.flat.dtype == np.uint32:
            self.flat = self.flat.astype(np.uint64)

    def add(self, regions: Numbers, hashes: UInt64s, counts: Int64s) -> None:
        """Count items of regions that have sketches; `make_room` came before."""
        added = np.broadcast_to(counts.astype(self.flat.dtype), (ROWS, len(counts)))
        np.add.at(self.flat, self._places(regions, hashes).ravel(), added.ravel())

    def merge(self, region: int, cells: npt.NDArray[np.unsignedinteger]) -> None:
        """Add cells of the same region's events elsewhere, shape (4, width); `make_room` came before."""
        mine = self.of(region)
        mine += cells.astype(mine.dtype)

    def estimate(self, regions: Numbers, hashes: UInt64s) -> Int64s:
        """Return the smallest of each item's cells: at least how often it was counted."""
        smallest: Int64s = self.flat[self._places(regions, hashes)].min(axis=0).astype(np.int64)
        return smallest

    def _places(self, regions: Numbers, hashes: UInt64s) -> Numbers:
        bits = self._shapes.bits(regions)
        rows = np.arange(ROWS, dtype=np.int64)[:, np.newaxis] << bits.astype(np.int64)
        return (mixed_rows(hashes) >> (np.uint64(64) - bits)).astype(np.intp) + rows + self.bases[regions]
