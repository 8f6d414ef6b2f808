"""How large a bucket may become."""

from dataclasses import dataclass
from math import e
from typing import Final

import numpy as np
import numpy.typing as npt

from domain.sketches.count_min import MAX_WIDTH, MIN_WIDTH, ROWS

_CELL_BYTES: Final = 4
HEAD_ENTRY_BYTES: Final = 12  # number of the item, events since admission, the most before it
_EXACT_ENTRY_BYTES: Final = 8  # number of the item, events

Numbers = npt.NDArray[np.intp]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SketchShape:
    """The two forms of a bucket.

    Attributes:
        width: Cells a row of its sketch, a power of two.
        head: Entries of its head.
        exact: Most items of the exact form; None = what takes the room of the sketched form.
    """

    width: int
    head: int
    exact: int | None = None

    def __post_init__(self) -> None:
        if not MIN_WIDTH <= self.width <= MAX_WIDTH or self.width & (self.width - 1):
            message = f"width must be a power of two from {MIN_WIDTH} to {MAX_WIDTH}, not {self.width}"
            raise ValueError(message)
        if self.head < 1 or (self.exact is not None and self.exact < 0):
            message = f"head must be at least 1 and exact at least 0, not {self.head} and {self.exact}"
            raise ValueError(message)

    @property
    def size_bytes(self) -> int:
        """Bytes of the sketched form; ids are kept once for all buckets and do not count."""
        return ROWS * self.width * _CELL_BYTES + self.head * HEAD_ENTRY_BYTES

    @property
    def exact_items(self) -> int:
        """Most items of the exact form."""
        return self.size_bytes // _EXACT_ENTRY_BYTES if self.exact is None else self.exact

    @property
    def epsilon(self) -> float:
        """Overcount that an estimate exceeds with probability at most e^-4, as a share of the bucket's events."""
        return e / self.width


@dataclass(frozen=True, slots=True)
class Shapes:
    """Shapes of the buckets of a block: `*` sees all events, so it has a larger one."""

    everywhere: SketchShape
    region: SketchShape

    def of(self, number: int) -> SketchShape:
        """Return the shape of a region by its number; 0 is `*`."""
        return self.region if number else self.everywhere

    def bits(self, regions: Numbers) -> npt.NDArray[np.uint64]:
        """Return for each region the logarithm of the width."""
        wide, narrow = (shape.width.bit_length() - 1 for shape in (self.everywhere, self.region))
        return np.where(regions == 0, np.uint64(wide), np.uint64(narrow))

    def heads(self, number: int) -> Int64s:
        """Return the head's capacity of each of the first `number` regions."""
        return self._by_region(number, self.everywhere.head, self.region.head)

    def exact_items(self, number: int) -> Int64s:
        """Return the exact form's capacity of each of the first `number` regions."""
        return self._by_region(number, self.everywhere.exact_items, self.region.exact_items)

    @staticmethod
    def _by_region(number: int, everywhere: int, region: int) -> Int64s:
        values = np.full(number, region, dtype=np.int64)
        values[:1] = everywhere
        return values
