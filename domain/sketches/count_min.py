"""Count-Min: how often each of very many items was seen, in fixed memory; never below the truth.

Linear: adding, merging and subtracting sketches of equal width is adding and subtracting cells, so sketches of parts
sum to the sketch of the whole. (Conservative update is tighter and is not linear; it is not used.)

Source: Cormode and Muthukrishnan, "An improved data stream summary: the count-min sketch and its applications",
Journal of Algorithms 55 (2005). With N events and width w the estimate of an item exceeds the truth by more than
(e / w) N with probability at most e^-4.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from domain.errors import LakeboardError

UInt64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]

ROWS: Final = 4
MIN_WIDTH: Final = 64
MAX_WIDTH: Final = 65_536
_NARROW_MOST = 2**32 - 1  # of a cell of 32 bits
# One seed a row: with a shared one, items that meet in one row meet in all of them. Stored sketches depend on them.
ROW_SEEDS = np.array([0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0xAEF17502108EF2D9, 0x8CB92BA72F3D8DD7], dtype=np.uint64)


class UnlikeSketchesError(LakeboardError):
    """Two sketches of different widths, or one that does not contain what is to be taken from it."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"these sketches cannot be combined: {self.problem}; neither was changed"


class CountMin:
    """Four rows of `width` cells. Cells have 32 bits until a sum could pass them, then 64.

    Args:
        width: Cells a row, a power of two from 64 to 65,536.
    """

    __slots__ = ("_cells", "total", "width")

    def __init__(self, width: int) -> None:
        if not MIN_WIDTH <= width <= MAX_WIDTH or width & (width - 1):
            message = f"width must be a power of two from {MIN_WIDTH} to {MAX_WIDTH}, not {width}"
            raise ValueError(message)
        self.width = width
        self.total = 0
        self._cells: npt.NDArray[np.unsignedinteger] = np.zeros((ROWS, width), dtype=np.uint32)

    @classmethod
    def of_cells(cls, cells: npt.NDArray[np.unsignedinteger]) -> "CountMin":
        """Return the sketch with these cells, shape (4, width); each row sums to the number of events.

        Raises:
            UnlikeSketchesError: the rows have different sums, so these are no cells of a sketch.
        """
        sums = {int(row.sum(dtype=np.uint64)) for row in cells}
        if len(sums) != 1:
            problem = f"its rows sum to {sorted(sums)}"
            raise UnlikeSketchesError(problem)
        made = cls(cells.shape[1])
        made.total = sums.pop()
        made._cells = cells.copy()
        return made

    @property
    def cells(self) -> npt.NDArray[np.unsignedinteger]:
        """The cells, shape (4, width); reading only."""
        view = self._cells.view()
        view.flags.writeable = False
        return view

    def add(self, hashes: UInt64s, counts: Int64s) -> None:
        """Count items.

        Args:
            hashes: A 64-bit hash of each item; an item may come several times.
            counts: How often each is counted, at least 0.
        """
        self._make_room(int(counts.sum()))
        added = counts.astype(self._cells.dtype)
        for row, places in zip(self._cells, cell_places(hashes, self.width), strict=True):
            np.add.at(row, places, added)

    def estimate(self, hashes: UInt64s) -> Int64s:
        """Return for each item the smallest of its cells: at least how often it was counted."""
        places = cell_places(hashes, self.width)
        found = np.stack([row[at] for row, at in zip(self._cells, places, strict=True)])
        smallest: Int64s = found.min(axis=0).astype(np.int64)
        return smallest

    def merge(self, other: "CountMin") -> None:
        """Add another sketch's events to this one.

        Raises:
            UnlikeSketchesError: another width.
        """
        self._require_alike(other)
        self._make_room(other.total)
        self._cells += other._cells.astype(self._cells.dtype)

    def subtract(self, other: "CountMin") -> None:
        """Take away the events of a sketch that is part of this one.

        Raises:
            UnlikeSketchesError: another width, or a cell would become negative.
        """
        self._require_alike(other)
        if bool(np.any(self._cells < other._cells)):
            problem = "what is to be taken away was never added"
            raise UnlikeSketchesError(problem)
        self._cells -= other._cells.astype(self._cells.dtype)
        self.total -= other.total

    def _require_alike(self, other: "CountMin") -> None:
        if self.width != other.width:
            problem = f"one has {self.width} cells a row, the other {other.width}"
            raise UnlikeSketchesError(problem)

    def _make_room(self, more: int) -> None:
        """Count `more` events; widen the cells first where one could overflow. A cell never exceeds the total."""
        self.total += more
        if self.total > _NARROW_MOST and self._cells.dtype == np.uint32:
            self._cells = self._cells.astype(np.uint64)


def cell_places(hashes: UInt64s, width: int) -> npt.NDArray[np.intp]:
    """Return each item's cell in each row, shape (4, items), for a width that is a power of two."""
    return (mixed_rows(hashes) >> np.uint64(64 - (width.bit_length() - 1))).astype(np.intp)


def mixed_rows(hashes: UInt64s) -> UInt64s:
    """Return 64 new bits of each item for each row, shape (4, items); the highest ones choose its cell.

    The rows mix the hash with seeds of their own, so items that share a cell in one row need not in the next.
    """
    return mixed(hashes[np.newaxis, :] ^ ROW_SEEDS[:, np.newaxis])


def mixed(words: UInt64s) -> UInt64s:
    """Return 64 new bits for each word, of which every one depends on all of it.

    Source: the finalizer of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
    OOPSLA 2014), with Stafford's constants.
    """
    found = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found ^= found >> np.uint64(31)
    return found
