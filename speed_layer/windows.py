"""The live windows of one partition: sums of its buckets, and the best items of each region in them."""

from datetime import datetime

import numpy as np

from domain.live_windows import TEN_SECONDS, LiveWindow
from domain.sketches.keys import Int64s, Mask, Numbers, UInt64s, find, regions_of
from domain.sketches.packed import PackedBlock
from domain.windows import EPOCH, Window
from speed_layer.at_rest import LEAST, AtRest, Shortlist
from speed_layer.buckets import MINUTES_AN_HOUR, TENS_A_MINUTE, Buckets
from speed_layer.lists import Bounded
from speed_layer.pending import Pending
from speed_layer.running_sum import Part, RunningSum, Sums

_MINUTE = TENS_A_MINUTE
_HOUR = TENS_A_MINUTE * MINUTES_AN_HOUR
_MOST_SLACK = 100_000  # keys whose slack is kept, before those not asked for now are dropped


class WindowSums:
    """Running sums of one live window of one partition; `slide` comes before each reading.

    Args:
        kind: Which window.
        buckets: What is summed.
        pending: What any item may have beside.
        fine: Sum of buckets of 10 seconds; windows that end alike share one.
        shared: Sum of minutes at rest that the live hour and the live day have both.
    """

    def __init__(
        self, kind: LiveWindow, buckets: Buckets, pending: Pending, *, fine: RunningSum, shared: RunningSum
    ) -> None:
        self.kind = kind
        self._buckets = buckets
        self._pending = pending
        self._rest = AtRest(shared)
        self._fine = fine
        self._late = Sums()
        self._hours = range(0)
        self._regions = 0

    def slide(self, as_of: datetime, regions: int) -> Window:
        """Sum what the window at `as_of` is made of; return the window.

        Args:
            as_of: Log time, UTC; not more than 50 s before the latest the buckets were moved on to.
            regions: How many numbers of regions there are.
        """
        window, hashes = self.kind.at(as_of), self._buckets.items.hashes
        self._regions = regions
        first = self._first(self.kind, as_of)
        start, end = ((moment - EPOCH) // TEN_SECONDS for moment in (window.start, window.end))
        fine: dict[Part, PackedBlock] = {
            ("10s", moment): self._buckets.packed_fine(moment) for moment in self._buckets.fine if first <= moment < end
        }
        self._fine.cover(fine, hashes)
        if self.kind is not LiveWindow.MINUTE:
            parts = self._at_rest(first)
            both = max(self._first(kind, as_of) for kind in (LiveWindow.HOUR, LiveWindow.DAY))
            shared = {part: block for part, block in parts.items() if part[0] == "minute" and part[1] * _MINUTE >= both}
            own = {part: block for part, block in parts.items() if part not in shared}
            self._rest.cover(shared, own, hashes)
            keys, counts = self._buckets.tail.since(first // _MINUTE)
            self._late = Sums(keys, counts, counts)
        self._hours = range(start // _HOUR, -(-end // _HOUR))
        return window

    def best(self, wanted: Mask, *, size: int) -> Bounded:
        """Return bounds of all items that may be among the best `size` of the wanted regions, and of what is left out.

        Args:
            wanted: By region number.
            size: How many are asked for.
        """
        short = self._rest.shortlist(size, regions=self._regions, hashes=self._buckets.items.hashes)
        totals, residuals = self.totals()
        now = self._now()
        places, listed = find(now.keys, short.keys)
        lower, above = short.lower.copy(), short.above.copy()
        lower[listed] += now.lower[places[listed]]
        above[listed] += now.above[places[listed]]
        new = self._hopeful(now, short, places[listed])
        unlooked = self._unlooked(now, short, np.concatenate((places[listed], new)), residuals)
        more = self._rest.at(now.keys[new])
        slack = self._rest.slack(now.keys[new], self._buckets.items.hashes)
        at = np.searchsorted(short.keys, now.keys[new])
        keys = np.insert(short.keys, at, now.keys[new])
        lower = np.insert(lower, at, now.lower[new] + more[0])
        above = np.insert(above, at, now.above[new] + more[1] - slack)
        kept = wanted[regions_of(keys)]
        keys, lower, above = keys[kept], lower[kept], above[kept]
        above -= self._fine.slack(keys, self._buckets.items.hashes)
        self._rest.forget_slack(keys, most=_MOST_SLACK)
        upper, nothing = residuals[regions_of(keys)] + above, np.zeros(len(keys), dtype=np.int64)
        return Bounded(keys, lower, upper, nothing, unlooked, residuals, totals)

    def bounds(self, keys: UInt64s) -> tuple[Int64s, Int64s]:
        """Return (lower, upper), both included, of how many events sorted keys had in the window."""
        hashes = self._buckets.items.hashes
        lower, above = self._late.at(keys)
        for part in self.parts:
            more = part.sums.at(keys)
            lower += more[0]
            above += more[1] - part.slack(keys, hashes)
        return lower, self.totals()[1][regions_of(keys)] + above

    def totals(self) -> tuple[Int64s, Int64s]:
        """Return by region number all events and the most of an item that is not listed; pending ones in both."""
        frontier = self._buckets.frontier if self.kind is LiveWindow.DAY else None
        pending = self._pending.of_window(self._regions, hours=self._hours, frontier=frontier)
        totals, residuals = pending.copy(), pending
        np.add.at(totals, regions_of(self._late.keys), self._late.lower)
        for part in self.parts:
            totals[: len(part.totals)] += part.totals
            residuals[: len(part.residuals)] += part.residuals
        return totals, residuals

    @property
    def version(self) -> tuple[int, int, range]:
        """Changes when the window has slid or what is at rest in it has changed."""
        return *self._rest.version, self._hours

    @property
    def parts(self) -> tuple[RunningSum, ...]:
        """The sums of what is at rest and of buckets of 10 seconds."""
        return *self._rest.sums, self._fine

    def renumber(self, moved: Numbers) -> None:
        """Give each item the number that stands at its old one, in what is this window's alone; the order must stay."""
        self._rest.renumber(moved)
        self._late = Sums()

    def _first(self, kind: LiveWindow, as_of: datetime) -> int:
        """Return the first 10 seconds of a window that do not come from batch's view."""
        start = (kind.at(as_of).start - EPOCH) // TEN_SECONDS
        if kind is LiveWindow.DAY and self._buckets.frontier is not None:
            return max(start, self._buckets.frontier * _HOUR)
        return start

    def _at_rest(self, first: int) -> dict[Part, PackedBlock]:
        parts: dict[Part, PackedBlock] = {
            ("minute", minute): block for minute, block in self._buckets.minutes.items() if minute * _MINUTE >= first
        }
        if self.kind is LiveWindow.DAY:
            hours = self._buckets.hours.items()
            parts.update({("hour", hour): block for hour, block in hours if hour * _HOUR >= first})
        return parts

    def _now(self) -> Sums:
        """Return what happens now and what came late."""
        fine = self._fine.sums
        if not len(self._late.keys):
            return fine
        late = self._late
        keys = np.concatenate((fine.keys, late.keys))
        lower, above = np.concatenate((fine.lower, late.lower)), np.concatenate((fine.above, late.above))
        return Sums.of(keys, lower, above)

    @staticmethod
    def _unlooked(now: Sums, short: Shortlist, looked: Numbers, residuals: Int64s) -> Int64s:
        """Return by region number the most that a known item can have which is not looked at; -1 for none.

        Args:
            now: What happens now.
            short: What was best before: all of it is looked at.
            looked: Places in `now` of what else is.
            residuals: Of the window.
        """
        most = np.where(short.others == LEAST, -1, short.others + residuals)
        left = np.ones(len(now.keys), dtype=np.bool_)
        left[looked] = False
        regions = regions_of(now.keys[left])
        np.maximum.at(most, regions, np.maximum(short.others, 0)[regions] + now.above[left] + residuals[regions])
        return most

    def _hopeful(self, now: Sums, short: Shortlist, listed: Numbers) -> Numbers:
        """Return the places in `now` of keys beside the shortlist that may be among the best, or one behind them.

        Of a key that is left out here, more of the shortlist than are asked for can have more, whatever happens now.

        Args:
            now: What happens now.
            short: What was best before.
            listed: Places in `now` of keys in the shortlist.
        """
        enough = short.enough.copy()  # of the shortlist with nothing happening now
        of_fine = self._fine.residuals
        enough[: len(of_fine)] -= np.where(enough[: len(of_fine)] == LEAST, 0, of_fine)
        regions = regions_of(now.keys)
        beside = np.maximum(short.others, 0)[regions] + now.above >= enough[regions]
        beside[listed] = False
        return np.flatnonzero(beside)
