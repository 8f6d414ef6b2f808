"""The live state of one partition of the log: what the consumer feeds and what it publishes.

The order of steps is fixed: log entry -> copies -> counting rules -> buckets -> tardy. A late or excluded first copy
therefore never lets a second one count.
"""

from collections import Counter
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import compress, pairwise

import numpy as np

from domain.batch_view import BatchView
from domain.live_windows import LiveWindow
from domain.rules import Rules
from domain.sketches.keys import Int64s, Mask, Numbers
from domain.speed_policy import DEFAULT_SPEED_POLICY, SpeedPolicy
from domain.windows import EPOCH, HOUR
from speed_layer.buckets import MINUTES_AN_HOUR, TENS_A_MINUTE, Buckets
from speed_layer.changes import ChangedList, Changes
from speed_layer.counting_rules import counting
from speed_layer.names import Items, Regions
from speed_layer.pending import HOURS_AHEAD, Pending
from speed_layer.play_batch import PlayBatch
from speed_layer.retry_window import LogWentBackError, RetryWindow
from speed_layer.sample import Sample

_MS = timedelta(milliseconds=1)
_US_A_TEN = 10_000_000
_MS_AN_HOUR = 3_600_000
_MS_A_MINUTE = 60_000
_COMPACT_FROM = 65_536
_POSITIONS_A_MINUTE = 2**20 * _MS_A_MINUTE


class Meter(StrEnum):
    """What happened to plays, counted since the state began; the values are names of metrics."""

    READ = "read"
    COPY = "copy"
    EXCLUDED = "excluded"
    COUNTED = "counted"
    LATE = "late"  # of an hour below the frontier, beyond batch's offset: in the next restatement
    AHEAD = "ahead"  # dated too far ahead: pending until its hour is certified
    TOO_OLD = "too_old"  # no bucket of it is kept: batch has its hour, or it is more than a day ago
    FOLDED = "folded"  # counted in ZZ, as there are too many regions


class LivePartition:
    """Counts one partition.

    Args:
        policy: Bounds of everything that is kept.
        rules: Which plays count.
    """

    def __init__(self, policy: SpeedPolicy = DEFAULT_SPEED_POLICY, rules: Rules | None = None) -> None:
        self.policy = policy
        self.rules = rules or Rules()
        self.items = Items()
        self.regions = Regions(policy.regions)
        self.retry = RetryWindow(_minutes(policy.retry_window))
        self.pending = Pending()
        self.sample = Sample()
        self.buckets = Buckets(policy, self.items)
        self.meters: Counter[Meter] = Counter()
        self.position = -1
        self.log_ms = 0
        self.offset = -1
        self.changes = Changes(self.buckets, self.pending, self.regions)
        self._compact_at = _COMPACT_FROM
        self._folded_hour = -1
        self._pinned_at = -1
        self._coming: tuple[BatchView, int] | None = None

    def count(self, batch: PlayBatch) -> None:
        """Count a micro-batch, whose plays come after all that was counted before.

        Raises:
            LogWentBackError: they are older in log time; nothing was counted.
        """
        if not len(batch):
            return
        if batch.positions[0] < self.position:
            raise LogWentBackError(self.position // _POSITIONS_A_MINUTE, int(batch.positions[0]) // _POSITIONS_A_MINUTE)
        # A server's clock that stepped back stamps entries below the time that an idle partition was moved on to.
        log_ms, happened = np.maximum(batch.log_ms, self.log_ms), batch.happened_us
        first = self.retry.first_copies(batch.id_hashes, log_ms // _MS_A_MINUTE)
        counts = counting(self.rules, happened_us=happened, durations_ms=batch.durations_ms)
        self.meters.update(
            {
                Meter.READ: len(batch),
                Meter.COPY: int(np.sum(~first)),
                Meter.EXCLUDED: int(np.sum(first & ~counts)),
            }
        )
        count = first & counts
        minutes = log_ms // _MS_A_MINUTE
        steps = np.flatnonzero(minutes[1:] != minutes[:-1]) + 1
        for start, end in pairwise([0, *steps.tolist(), len(batch)]):  # what is at rest when, however a log is cut
            self._move_on(int(log_ms[start]))
            of_minute = np.zeros(len(batch), dtype=np.bool_)
            of_minute[start:end] = count[start:end]
            if of_minute.any():
                self._count(batch, of_minute, happened // _US_A_TEN)
        self._move_on(int(log_ms[-1]))
        self.position = int(batch.positions[-1])

    def advance(self, at: datetime) -> None:
        """Move the log's time on without events: a partition that was read to its end, at the server's time before it.

        Args:
            at: UTC; an earlier time changes nothing.
        """
        self._move_on((at - EPOCH) // _MS)
        self.retry.advance(self.log_ms // _MS_A_MINUTE)

    def certified(self, view: BatchView, *, offset: int) -> bool:
        """Take over a view that the merger has begun to use: the day is summed from its frontier on.

        When batch is ahead of what was read here, the view is kept until the log's time comes to its frontier: the day
        of a moment before begins with hours that the view does not have, and ends before it.

        Returns whether it is, or will be, taken: a view whose frontier lies below that of an earlier one changes
        nothing, as the hours between are not kept any more.

        Args:
            view: With the items of this partition only, as `BatchView.split` gives it.
            offset: Position in this partition up to which, included, batch has read.
        """
        hour = (view.frontier - EPOCH) // HOUR
        if self.buckets.frontier is not None and hour < self.buckets.frontier:
            return False
        self._coming = (view, offset)
        self._take_over()
        return True

    @property
    def marks(self) -> tuple[int, int, int]:
        """When ids are dropped next, when a play was folded last, when pins were chosen last; they are stored."""
        return self._compact_at, self._folded_hour, self._pinned_at

    @marks.setter
    def marks(self, marks: tuple[int, int, int]) -> None:
        self._compact_at, self._folded_hour, self._pinned_at = marks

    @property
    def view(self) -> str | None:
        """Version of the view that the day's lists are chosen by, and can be joined with; None before any.

        It is no part of stored state: after a restart there is a frontier, but no view until it is handed over again.
        """
        return self.changes.view

    @property
    def as_of(self) -> datetime:
        """Log time read so far, UTC."""
        return EPOCH + self.log_ms * _MS

    def changed(self, as_of: datetime | None = None) -> list[ChangedList]:
        """Return the lists that say something new since they were returned last.

        Args:
            as_of: Moment of the windows, UTC, at most 50 s before this partition's own, which is the default.
        """
        changed = self.changes.since_last(as_of or self.as_of)
        minute = self.log_ms // _MS_A_MINUTE
        if minute != self._pinned_at:
            self._pinned_at = minute
            self.buckets.pins = self.changes.pins(self.policy.minutes.heads(len(self.regions)) // 2)
        return changed

    def top(self, kind: LiveWindow, region: str, *, size: int, as_of: datetime | None = None) -> ChangedList:
        """Return one list of any length, for when a cut hides rows that may belong into a chart."""
        return self.changes.top(kind, region, size=size, as_of=as_of or self.as_of)

    def _move_on(self, log_ms: int) -> None:
        if log_ms <= self.log_ms:
            return
        before, self.log_ms = self.log_ms, log_ms
        if before // _MS_A_MINUTE == log_ms // _MS_A_MINUTE:
            return
        self.buckets.advance(log_ms)
        hour = log_ms // _MS_AN_HOUR
        if before // _MS_AN_HOUR != hour:
            self.pending.forget_before(self.buckets.hours_from)
            self.sample.forget_before(self.buckets.hours_from)
            self._free_regions(hour)
            self._take_over()
        if len(self.items) > self._compact_at:
            self._compact()

    def _take_over(self) -> None:
        """Take the view that was handed over, once the log's time has come to its frontier."""
        if self._coming is None:
            return
        view, offset = self._coming
        hour = (view.frontier - EPOCH) // HOUR
        if self.log_ms // _MS_AN_HOUR < hour:
            return
        self._coming = None
        self.buckets.certified(hour)
        self.offset = max(self.offset, offset)
        self.pending.certified(hour, self.offset)
        self.changes.take(view)

    def _count(self, batch: PlayBatch, count: Mask, tens: Int64s) -> None:
        used = np.flatnonzero(count)
        tens = tens[used]
        names = list(compress(batch.regions, count.tolist()))
        regions, folded = self.regions.numbers_of(names)
        if folded.any():
            self.meters[Meter.FOLDED] += int(folded.sum())
            self._fold(tens[folded] // (TENS_A_MINUTE * MINUTES_AN_HOUR))
        counts, positions = batch.counts[used], batch.positions[used]
        log_ms = np.maximum(batch.log_ms[used], self.log_ms)
        minutes = tens // TENS_A_MINUTE
        ahead = minutes > log_ms // _MS_A_MINUTE + _minutes(self.policy.ahead)
        self._note(tens // (TENS_A_MINUTE * MINUTES_AN_HOUR), regions, log_ms, positions, counts, ahead=ahead)
        near = np.flatnonzero(~ahead)
        wanted = count.copy()
        wanted[used[ahead]] = False
        items = self.items.numbers_of(list(compress(batch.items, wanted.tolist())))
        too_old = self.buckets.add(tens[near], regions[near], items, counts[near])
        hours = tens[near] // (TENS_A_MINUTE * MINUTES_AN_HOUR)
        self.sample.add(hours[~too_old], items[~too_old], counts[near][~too_old], self.items.hashes)
        self.meters.update({Meter.TOO_OLD: int(too_old.sum()), Meter.COUNTED: int(len(near) - too_old.sum())})
        self.changes.touch(regions)

    def _note(
        self, hours: Int64s, regions: Numbers, log_ms: Int64s, positions: Int64s, counts: Int64s, *, ahead: Mask
    ) -> None:
        """Note what is tardy and what is dated too far ahead, in its region and in `*`."""
        if ahead.any():
            self.meters[Meter.AHEAD] += int(ahead.sum())
            log_hour = self.log_ms // _MS_AN_HOUR
            for numbers in (regions[ahead], np.zeros(int(ahead.sum()), dtype=np.intp)):
                self.pending.add_ahead(hours[ahead], numbers, counts[ahead], log_hour=log_hour)
        grace = self.policy.grace // _MS
        tardy = (log_ms >= (hours + 1) * _MS_AN_HOUR + grace) & (hours >= self.buckets.hours_from)
        below = hours < (self.buckets.frontier or 0)
        tardy &= ~(below & (positions <= self.offset))
        if tardy.any():
            self.meters[Meter.LATE] += int(np.sum(tardy & below))
            for numbers in (regions[tardy], np.zeros(int(tardy.sum()), dtype=np.intp)):
                self.pending.add_tardy(hours[tardy], numbers, positions[tardy], counts[tardy])

    def _fold(self, hours: Int64s) -> None:
        """Note until when plays of regions that are not told apart stand in `ZZ`: those dated ahead stay longer."""
        now = self.log_ms // _MS_AN_HOUR
        self._folded_hour = max(self._folded_hour, now, min(int(hours.max()), now + HOURS_AHEAD))

    def _free_regions(self, hour: int) -> None:
        """Let regions without plays go, unless plays of others may stand in `ZZ` still."""
        if self.regions.folding and hour <= self._folded_hour + self.policy.hours_kept + 1:
            return
        number = len(self.regions)
        used = self.buckets.used_regions(number) | self.pending.regions_used(number)
        self.changes.free(used)
        self.regions.forget(used)

    def _compact(self) -> None:
        """Drop the ids of items that are in no bucket any more."""
        for sums in self.changes.windows.values():
            sums.slide(self.as_of, len(self.regions))  # they hold on to no bucket that is gone
        used = self.buckets.used_items()
        for numbers in self.changes.used_items():
            used[numbers] = True
        used[self.sample.used_items()] = True
        moved = self.items.keep(used)
        self.buckets.renumber(moved)
        self.sample.renumber(moved)
        self.changes.renumber(moved)
        self._compact_at = max(_COMPACT_FROM, 2 * len(self.items))


def _minutes(span: timedelta) -> int:
    return span // timedelta(minutes=1)
