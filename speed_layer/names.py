"""Numbers of items and regions within one partition: buckets hold numbers, and ids are kept once."""

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Final

import numpy as np
import numpy.typing as npt
import xxhash

from domain.sketches.keys import EVERYWHERE, Numbers, UInt64s

ITEM_SEED: Final = 0x736B657463686573  # another one than of event ids and partitions: they must not choose cells too
HASHING: Final = f"xxh3-64 of UTF-8, seed {ITEM_SEED}"  # part of the fingerprint of stored buckets
UNKNOWN: Final = 1  # number of the region ZZ

_LEAD_WORDS = 4  # of 8 bytes of an id, kept as numbers for sorting
_LEAD_BYTES = 8 * _LEAD_WORDS
_FIRST_ROOM = 1024


class Items:
    """Numbers of item ids, from 0 in the order they came; with the 64-bit hash of each."""

    __slots__ = ("_hashes", "_leads", "_longest", "_numbers", "ids")

    def __init__(self) -> None:
        self.ids: list[str] = []
        self._numbers: dict[str, int] = {}
        self._longest = 0  # bytes of the longest id's lead
        self._hashes: UInt64s = np.zeros(_FIRST_ROOM, dtype=np.uint64)
        self._leads: UInt64s = np.zeros((_FIRST_ROOM, _LEAD_WORDS), dtype=np.uint64)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def hashes(self) -> UInt64s:
        """Hash of each number."""
        return self._hashes[: len(self.ids)]

    def numbers_of(self, ids: Sequence[str]) -> Numbers:
        """Return the number of each id, giving numbers to new ones."""
        get = self._numbers.get
        numbers = np.fromiter(map(get, ids, repeat(-1)), dtype=np.intp, count=len(ids))
        new = np.flatnonzero(numbers < 0)
        if len(new):
            self._give_numbers(dict.fromkeys(ids[at] for at in new.tolist()))
            numbers[new] = [self._numbers[ids[at]] for at in new.tolist()]
        return numbers

    def in_order(self, numbers: Numbers, *columns: npt.NDArray[np.integer]) -> Numbers:
        """Return the order by columns, the last one first as of `numpy.lexsort`, and by UTF-8 bytes of ids in the end.

        Args:
            numbers: Of items.
            columns: Of one value an item.
        """
        words = [self._leads[numbers, word] for word in reversed(range(-(-self._longest // 8)))]
        words = [word for word in words if (word != word[:1]).any()]  # what all begin with orders nothing
        order = np.lexsort((*words, *columns))
        return order if self._longest < _LEAD_BYTES else self._by_rest(order, numbers, (*words, *columns))

    def keep(self, used: npt.NDArray[np.bool_]) -> Numbers:
        """Drop the items that are not used; return the new number of each old one. The order stays."""
        moved = np.cumsum(used) - 1
        self.ids = [item for item, kept in zip(self.ids, used.tolist(), strict=True) if kept]
        self._numbers = {item: number for number, item in enumerate(self.ids)}
        self._hashes = self._hashes[: len(used)][used]
        self._leads = self._leads[: len(used)][used]
        return moved

    def _give_numbers(self, ids: Iterable[str]) -> None:
        encoded = []
        for item in ids:
            self._numbers[item] = len(self.ids)
            self.ids.append(item)
            encoded.append(item.encode())
        first = len(self.ids) - len(encoded)
        self._longest = max(self._longest, min(_LEAD_BYTES, max(map(len, encoded))))
        if len(self.ids) > len(self._hashes):
            room = 2 * len(self.ids)
            self._hashes = np.resize(self._hashes, room)
            self._leads = np.resize(self._leads, (room, _LEAD_WORDS))
        digest = xxhash.xxh3_64_intdigest
        self._hashes[first : len(self.ids)] = [digest(item, seed=ITEM_SEED) for item in encoded]
        leads = b"".join(item[:_LEAD_BYTES].ljust(_LEAD_BYTES, b"\0") for item in encoded)
        self._leads[first : len(self.ids)] = np.frombuffer(leads, dtype=">u8").reshape(-1, _LEAD_WORDS)

    def _by_rest(self, order: Numbers, numbers: Numbers, columns: Sequence[npt.NDArray[np.integer]]) -> Numbers:
        """Sort those runs by whole ids that are alike in all that was sorted by."""
        alike = np.ones(max(len(order) - 1, 0), dtype=np.bool_)
        for column in columns:
            alike &= column[order[1:]] == column[order[:-1]]
        if not alike.any():
            return order
        starts = np.flatnonzero(np.concatenate(([True], ~alike, [True])))
        runs = np.flatnonzero(starts[1:] - starts[:-1] > 1)
        for start, end in zip(starts[runs].tolist(), starts[runs + 1].tolist(), strict=True):
            run = order[start:end].tolist()
            order[start:end] = sorted(run, key=lambda at: self.ids[numbers[at]].encode())
        return order


class Regions:
    """Numbers of regions: 0 is `*`, 1 is `ZZ`; at most `most` without `*`, and what comes after them is `ZZ`.

    A region that is told apart only after some of its plays went into `ZZ` would have too few, so once that happened
    no region is added until `forget` says that those plays are in no bucket any more.
    """

    __slots__ = ("_folding", "_numbers", "most", "names")

    def __init__(self, most: int) -> None:
        self.most = most
        self.names = ["*", "ZZ"]
        self._numbers = {"ZZ": UNKNOWN}
        self._folding = False

    def __len__(self) -> int:
        return len(self.names)

    def restore(self, names: Sequence[str], *, folding: bool) -> None:
        """Become the regions that had these names by number ("" = free)."""
        self.names = list(names)
        self._numbers = {name: number for number, name in enumerate(names) if name and number != EVERYWHERE}
        self._folding = folding

    @property
    def folding(self) -> bool:
        """Whether plays of some regions are counted in `ZZ`."""
        return self._folding

    def numbers_of(self, names: Sequence[str]) -> tuple[Numbers, npt.NDArray[np.bool_]]:
        """Return the number of each name, and which ones are counted in `ZZ` for want of room."""
        get = self._numbers.get
        numbers = np.fromiter(map(get, names, repeat(-1)), dtype=np.intp, count=len(names))
        new = np.flatnonzero(numbers < 0).tolist()
        folded = np.zeros(len(names), dtype=np.bool_)
        for at in new:
            number = self._numbers.get(names[at]) or self._add(names[at])
            numbers[at] = number or UNKNOWN
            folded[at] = not number
        return numbers, folded

    def number(self, name: str) -> int | None:
        """Return the number of a region, None when it has no buckets of its own."""
        return EVERYWHERE if name == "*" else self._numbers.get(name)

    def forget(self, used: npt.NDArray[np.bool_]) -> None:
        """Free the numbers that no bucket uses, and allow new regions again.

        Args:
            used: By number.
        """
        self._folding = False
        for number in np.flatnonzero(~used).tolist():
            if number not in (EVERYWHERE, UNKNOWN) and self.names[number]:
                del self._numbers[self.names[number]]
                self.names[number] = ""

    def _add(self, name: str) -> int | None:
        if not self._folding and len(self._numbers) < self.most:
            number = self.names.index("") if "" in self.names else len(self.names)
            self.names[number : number + 1] = [name]
            self._numbers[name] = number
            return number
        self._folding = True
        return None
