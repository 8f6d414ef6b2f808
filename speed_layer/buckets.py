"""The buckets of one partition: 10 seconds, minutes and hours of event time, by region, in bounded memory.

    plays -> buckets of 10 seconds  --2 minutes after it ended-->  a minute at rest  --after 62 minutes-->  its hour
    late plays of minutes at rest   -> the tail  ------------------------------------------------------^

A play is in exactly one of them, so sums of buckets are sums over plays. Nothing here reads a clock: what is moved
when follows from the log's time alone, and the same log gives the same plays in every bucket however it is cut.
"""

from collections.abc import Iterator

import numpy as np

from domain.sketches.block import Block
from domain.sketches.keys import NO_KEYS, Int64s, Mask, Numbers, UInt64s, items_of, keys_of, summed
from domain.sketches.merged import merged
from domain.sketches.packed import PackedBlock
from domain.speed_policy import SpeedPolicy
from speed_layer.names import Items
from speed_layer.tail import Tail, renumbered_keys

TENS_A_MINUTE = 6
MINUTES_AN_HOUR = 60
_MS_A_MINUTE = 60_000
_MOST_IN_TAIL = 200_000
_MINUTE = 60


class Buckets:
    """All buckets of a partition. Times are whole 10 seconds, minutes and hours since 1970 UTC.

    Args:
        policy: How much is kept for how long.
        items: Numbers of the items.

    Attributes:
        fine: Buckets of 10 seconds.
        minutes: Minutes at rest.
        hours: Hours, of those minutes that are kept no longer.
        tail: Late plays of what is at rest.
        pins: Sorted keys listed from the start in buckets that begin from now on.
        frontier: Hours below it are in batch's view and are not kept; None before any view.
    """

    def __init__(self, policy: SpeedPolicy, items: Items) -> None:
        self.policy = policy
        self.items = items
        self.fine: dict[int, Block] = {}
        self.minutes: dict[int, PackedBlock] = {}
        self.hours: dict[int, PackedBlock] = {}
        self.tail = Tail()
        self.pins: UInt64s = NO_KEYS
        self.frontier: int | None = None
        self._packed: dict[int, PackedBlock] = {}
        self.fine_from = 0
        self.minutes_from = 0
        self.hours_from = 0

    def advance(self, log_ms: int) -> None:
        """Move to rest what is due at a log time, in milliseconds since 1970 UTC; times never go back."""
        self.fine_from = log_ms // _MS_A_MINUTE - _whole_minutes(self.policy.fine.total_seconds())
        self.minutes_from = log_ms // _MS_A_MINUTE - _whole_minutes(self.policy.coarse.total_seconds()) + 1
        self.hours_from = log_ms // (_MS_A_MINUTE * MINUTES_AN_HOUR) - self.policy.hours_kept
        for minute in sorted({tens // TENS_A_MINUTE for tens in self.fine}):
            if minute < self.fine_from:
                self._rest(minute)
        if any(minute < self.minutes_from for minute in self.minutes) or self._tail_is_due():
            self._roll()
        for hour in [hour for hour in self.hours if not self._keeps(hour)]:
            del self.hours[hour]

    def add(self, tens: Int64s, regions: Numbers, items: Numbers, counts: Int64s) -> Mask:
        """Count plays in their region and in `*`; say which ones came after their hour had been given up.

        Args:
            tens: When each happened.
            regions: Number of each one's region.
            items: Number of each one's item.
            counts: At least 1.
        """
        minutes = tens // TENS_A_MINUTE
        open_ = minutes >= self.fine_from
        for moment in np.unique(tens[open_]).tolist():
            of_it = np.flatnonzero(tens == moment)
            self._packed.pop(moment, None)
            block = self.fine.get(moment)
            if block is None:
                block = self.fine[moment] = Block(self.policy.minutes, self.pins)
            block.add(*by_key(regions[of_it], items[of_it], counts[of_it]), self.items.hashes)
        hours = minutes // MINUTES_AN_HOUR
        kept = (minutes >= self.minutes_from) | (hours >= max(self.hours_from, self.frontier or self.hours_from))
        late = np.flatnonzero(~open_ & kept)
        if len(late):
            everywhere = np.zeros(len(late), dtype=np.intp)
            both = np.concatenate((everywhere, regions[late]))
            keys = keys_of(both, np.tile(items[late], 2))
            self.tail.add(np.tile(minutes[late], 2), keys, np.tile(counts[late], 2))
            if len(self.tail) > _MOST_IN_TAIL:
                self._fold()
        return ~(open_ | kept)

    def packed_fine(self, moment: int) -> PackedBlock:
        """Return a bucket of 10 seconds as it is now; the same object until it changes."""
        if moment not in self._packed:
            self.fine[moment].tighten(self.items.hashes)
            self._packed[moment] = PackedBlock(self.fine[moment])
        return self._packed[moment]

    def as_it_is(self, moment: int) -> PackedBlock:
        """Return a bucket of 10 seconds without touching it: the same object as `packed_fine` gave while it is that."""
        found = self._packed.get(moment)
        return PackedBlock(self.fine[moment]) if found is None else found

    def certified(self, frontier: int) -> None:
        """Drop hours below a frontier: batch's view has them. A frontier below an earlier one changes nothing."""
        self.frontier = max(frontier, self.frontier or frontier)
        for hour in [hour for hour in self.hours if not self._keeps(hour)]:
            del self.hours[hour]

    def at_rest(self) -> Iterator[PackedBlock]:
        """Yield all blocks at rest."""
        yield from self.minutes.values()
        yield from self.hours.values()

    @property
    def size_bytes(self) -> int:
        """Bytes of buckets; ids are not among them."""
        fine = sum(PackedBlock(block).size_bytes for block in self.fine.values())
        return fine + sum(block.size_bytes for block in self.at_rest()) + 24 * len(self.tail)

    def used_items(self) -> Mask:
        """Say of each item number whether some bucket needs it."""
        self.tail.settle()
        used = np.zeros(len(self.items), dtype=np.bool_)
        for block in self.at_rest():
            used[block.items] = True
        for keys in (self.tail.keys, self.pins, *(k for b in self.fine.values() for k in (b.keys, b.pinned))):
            used[items_of(keys)] = True
        return used

    def used_regions(self, number: int) -> Mask:
        """Say of each of the first `number` regions whether some bucket has plays of it."""
        self.tail.settle()
        used = np.zeros(number, dtype=np.bool_)
        for totals in (*(b.totals for b in self.at_rest()), *(b.totals for b in self.fine.values())):
            used[np.flatnonzero(totals)] = True
        used[(self.tail.keys >> np.uint64(32)).astype(np.intp)] = True
        return used

    def renumber(self, moved: Numbers) -> None:
        """Give each item the number that stands at its old one; the order of items must stay."""
        for packed in (*self.at_rest(), *self._packed.values()):
            packed.renumber(moved)
        for block in self.fine.values():
            block.keys = renumbered_keys(block.keys, moved)
            block.pinned = renumbered_keys(block.pinned, moved)
        self.pins = renumbered_keys(self.pins, moved)
        self.tail.renumber(moved)

    def _keeps(self, hour: int) -> bool:
        return hour >= max(self.hours_from, self.frontier or self.hours_from)

    def _tail_is_due(self) -> bool:
        self.tail.settle()
        return bool(np.any(self.tail.minutes < self.minutes_from))

    def _rest(self, minute: int) -> None:
        """Sum a minute's buckets of 10 seconds into one and put it to rest."""
        tens = range(minute * TENS_A_MINUTE, (minute + 1) * TENS_A_MINUTE)
        blocks = [self.fine.pop(moment) for moment in tens if moment in self.fine]
        for moment in tens:
            self._packed.pop(moment, None)
        self.minutes[minute] = PackedBlock(merged(blocks, self.policy.minutes, self.items.hashes))

    def _roll(self) -> None:
        """Sum minutes that are kept no longer, and late plays as old, into their hours."""
        old: dict[int, list[Block]] = {}
        for minute, (keys, counts) in self.tail.take_before(self.minutes_from).items():
            block = Block(self.policy.hours)
            block.add(keys, counts, self.items.hashes)
            old.setdefault(minute // MINUTES_AN_HOUR, []).append(block)
        for minute in sorted(minute for minute in self.minutes if minute < self.minutes_from):
            old.setdefault(minute // MINUTES_AN_HOUR, []).append(self.minutes.pop(minute).block())
        for hour, blocks in old.items():
            if self._keeps(hour):
                before = [self.hours[hour].block()] if hour in self.hours else []
                whole = merged([*before, *blocks], self.policy.hours, self.items.hashes)
                self.hours[hour] = PackedBlock(whole)

    def _fold(self) -> None:
        """Sum all late plays into their minutes, and into their hours where the minute is not kept."""
        self._roll()
        for minute, (keys, counts) in self.tail.take_before(self.fine_from).items():
            block = self.minutes[minute].block() if minute in self.minutes else Block(self.policy.minutes)
            block.add(keys, counts, self.items.hashes)
            self.minutes[minute] = PackedBlock(block)


def by_key(regions: Numbers, items: Numbers, counts: Int64s) -> tuple[UInt64s, Int64s]:
    """Return plays summed by key, each in `*` and in its region, sorted."""
    everywhere, (of_all,) = summed(items.astype(np.uint64), counts)
    keys, (of_regions,) = summed(keys_of(regions, items), counts)
    return np.concatenate((everywhere, keys)), np.concatenate((of_all, of_regions))


def _whole_minutes(seconds: float) -> int:
    return int(seconds) // _MINUTE
