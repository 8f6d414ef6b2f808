"""A bucket: what a region (or `*`) had in one window of one partition, exact while small, else a sketch and a head."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from domain.sketches.count_min import ROWS, CountMin, Int64s, UInt64s
from domain.sketches.head import Head

_CELL_BYTES = 4
_ENTRY_BYTES = 28  # of a head entry: two counts of 8 bytes and an id of 12
_EXACT_ENTRY_BYTES = 20  # of an exact entry: one count and such an id


@dataclass(frozen=True, slots=True)
class SketchShape:
    """How large a bucket may become.

    Attributes:
        width: Cells a row of its sketch.
        head: Entries of its head.
    """

    width: int
    head: int

    @property
    def size_bytes(self) -> int:
        """Bytes of the sketched form, by column, with ids of 12 bytes."""
        return ROWS * self.width * _CELL_BYTES + self.head * _ENTRY_BYTES

    @property
    def exact_items(self) -> int:
        """Most items of the exact form: what takes the room of the sketched form."""
        return self.size_bytes // _EXACT_ENTRY_BYTES

    @property
    def epsilon(self) -> float:
        """Overcount that an estimate exceeds with probability at most e^-4, as a share of the bucket's events."""
        return float(np.e) / self.width


class Bucket:
    """Counts of items with bounds: `lower <= truth <= upper` for every item, listed or not.

    Args:
        shape: How large it may become.
        pinned: Items that are listed from the start and stay so, best first.
    """

    __slots__ = ("_form", "_pinned", "shape", "total")

    def __init__(self, shape: SketchShape, pinned: Sequence[str] = ()) -> None:
        self.shape = shape
        self.total = 0
        self._pinned = tuple(pinned)
        self._form: _Exact | _Sketched = _Exact()

    @property
    def is_exact(self) -> bool:
        """Whether every count in it is the truth."""
        return isinstance(self._form, _Exact)

    @property
    def residual(self) -> int:
        """Most events that an item outside `listed` can have; 0 while the bucket is exact."""
        return self._form.residual

    @property
    def listed(self) -> Sequence[str]:
        """The items that the bucket knows by name."""
        return self._form.listed

    def add(self, items: Sequence[str], hashes: UInt64s, counts: Int64s) -> None:
        """Count distinct items.

        Args:
            items: Each at most once.
            hashes: The 64-bit hash of each item, always the same for the same item.
            counts: How many events each had, at least 1.
        """
        self.total += int(counts.sum())
        self._form.add(items, hashes, counts)
        if isinstance(self._form, _Exact) and len(self._form.listed) > self.shape.exact_items:
            self._form = self._form.sketched(self.shape, self._pinned)

    def bounds(self, items: Sequence[str], hashes: UInt64s) -> tuple[Int64s, Int64s]:
        """Return (lower, upper), both included, of how many events each item had."""
        return self._form.bounds(items, hashes)


class _Exact:
    """Every item with its count and hash."""

    __slots__ = ("_counts", "_hashes")

    residual = 0

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._hashes: dict[str, int] = {}

    @property
    def listed(self) -> Sequence[str]:
        return tuple(self._counts)

    def add(self, items: Sequence[str], hashes: UInt64s, counts: Int64s) -> None:
        for item, count in zip(items, counts.tolist(), strict=True):
            self._counts[item] = self._counts.get(item, 0) + count
        self._hashes.update(zip(items, hashes.tolist(), strict=True))

    def bounds(self, items: Sequence[str], hashes: UInt64s) -> tuple[Int64s, Int64s]:
        del hashes  # names are enough
        counts = np.array([self._counts.get(item, 0) for item in items], dtype=np.int64)
        return counts, counts

    def sketched(self, shape: SketchShape, pinned: Sequence[str]) -> "_Sketched":
        """Put all that was counted into a sketch and the best of it into a head; those stay exact."""
        items = list(self._counts)
        counts = np.array([self._counts[item] for item in items], dtype=np.int64)
        hashes = np.array([self._hashes[item] for item in items], dtype=np.uint64)
        form = _Sketched(CountMin(shape.width), Head(shape.head, pinned))
        form.sketch.add(hashes, counts)
        form.head.add(items, counts, counts)  # the truth is the tightest estimate
        return form


class _Sketched:
    """A sketch of all events, and a head of the items that seem largest."""

    __slots__ = ("head", "sketch")

    def __init__(self, sketch: CountMin, head: Head) -> None:
        self.sketch = sketch
        self.head = head

    @property
    def residual(self) -> int:
        return self.head.residual

    @property
    def listed(self) -> Sequence[str]:
        return self.head.items

    def add(self, items: Sequence[str], hashes: UInt64s, counts: Int64s) -> None:
        self.sketch.add(hashes, counts)
        self.head.add(items, counts, self.sketch.estimate(hashes))

    def bounds(self, items: Sequence[str], hashes: UInt64s) -> tuple[Int64s, Int64s]:
        return self.head.bounds(items, self.sketch.estimate(hashes))
