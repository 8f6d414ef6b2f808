"""One partition as the consumer works on it: read, count, say, store."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from domain.batch_view import BatchView
from domain.log import BEGINNING, EntryId, Partition, Reading, Stream
from domain.rules import Rules
from domain.speed_policy import SpeedPolicy
from domain.windows import EPOCH, milliseconds
from speed_layer.consumer_ports import Decode, Leases, Lists, OpenedLog, Tell
from speed_layer.partition import LivePartition, Meter
from speed_layer.snapshot import restored, snapshot
from speed_layer.snapshot_rest import UnusableStateError, state_fingerprint
from speed_layer.store.keys import field as field_of
from speed_layer.store.keys import of_field
from speed_layer.store.leases import Lease, Manifest, ViewsUnavailableError
from speed_layer.store.lists import PartitionStatus, encode_list

READER = "speed_layer"
# The log drops what a consumer that is away so long has not stored: senders cannot wait, and a restore has the lake.
READER_LEASE = timedelta(minutes=15)
MOST_BACK = timedelta(seconds=50)  # how far before its own moment a partition can speak of; see `LivePartition.changed`
MOST_ROWS = 5000  # of a list that the merger asks for
_MS = timedelta(milliseconds=1)
_PLAYS_A_BATCH = 20_000  # about: so that no partition keeps the others waiting for long
_FIRST_LIMIT, _MOST_ENTRIES = 64, 4096


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What all partitions of a consumer share."""

    leases: Leases
    lists: Lists
    decode: Decode
    policy: SpeedPolicy
    rules: Rules
    tell: Tell

    @property
    def fingerprint(self) -> str:
        """Of all that state depends on."""
        return state_fingerprint(self.policy, self.rules)


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """What a checkpoint cost."""

    bytes_written: int
    seconds: float


@dataclass(kw_only=True)
class PartitionWork:
    """A partition that is ours, or that we would take.

    Attributes:
        partition: Of the log.
        lease: Our right to write it; None = we have none.
        live: Its buckets; kept when the lease is lost for want of the views server.
        log_id: Log that `live` was counted from.
        at_end: Its end was read, and nothing has come since as far as we know.
        lag_ms: How far the log's clock was ahead of what is counted, when it was read last.
        checkpointed: The last checkpoint.
    """

    tools: Tools
    partition: Partition
    lease: Lease | None = None
    live: LivePartition | None = None
    log_id: str = ""
    after: EntryId = BEGINNING
    complete_from_ms: int = 0
    at_end: bool = False
    lag_ms: int | None = None
    checkpointed: Checkpointed | None = None
    _floor: PartitionStatus | None = None
    _limit: int = _FIRST_LIMIT
    _cycle: int = 0
    _said_ms: int = 0
    _whole: bool = True
    _lists: dict[str, bytes] = field(default_factory=dict)
    _unsent: set[str] = field(default_factory=set)
    _asked: dict[str, int] = field(default_factory=dict)
    _ignores_stored: bool = False
    _after_another_log: bool = False

    @property
    def number(self) -> int:
        """Number of the partition."""
        return self.partition.number

    def take(self, log_id: str) -> bool:
        """Take the partition if nobody works on it, with the state that is stored, that we have, or with none."""
        lease = self.tools.leases.acquire(self.number)
        if lease is None:
            self.live = None
            return False
        try:
            status = self.tools.lists.read_statuses([self.number])[self.number]
            found = self.tools.leases.load(lease)
        except ViewsUnavailableError:
            self.tools.leases.release(lease)  # or what is in memory would be given up as another one's work
            raise
        self._begin(lease, status, found, log_id)
        self.lease = lease  # not before: a partition that is ours has its buckets
        return True

    def _begin(
        self, lease: Lease, status: PartitionStatus | None, found: tuple[Manifest, dict[str, bytes]] | None, log_id: str
    ) -> None:
        """Go on with what is stored, or in memory, or with nothing."""
        self._whole, self.at_end, self._asked = True, False, {}
        self._cycle = max(self._cycle, status.cycle if status else 0)
        self._floor = status if status is not None and status.log_id == log_id else None
        self._said_ms = self._floor.as_of_ms if self._floor is not None else 0
        if found is not None and self._restore(lease, *found, log_id=log_id):
            return
        if found is None and self.live is not None and self.log_id == log_id:
            self.tools.tell("views were lost, going on with what is in memory", partition=str(self.partition))
            return
        others = (status.log_id if status else "", found[0].log_id if found else "", self.log_id)
        self._after_another_log = self._after_another_log or any(other not in ("", log_id) for other in others)
        self.start_fresh(log_id)

    def start_fresh(self, log_id: str, after: EntryId = BEGINNING) -> None:
        """Begin without any state, behind an entry that was dropped last, or at the beginning of the log."""
        self.live, self.log_id, self.after = LivePartition(self.tools.policy, self.tools.rules), log_id, after
        self._lists, self._unsent, self._whole, self._asked = {}, set(), True, {}
        self._ignores_stored = False
        if after != BEGINNING:
            self.live.position = after.version
            self.complete_from_ms = max(self.complete_from_ms, after.ms + 1)
        else:
            self.complete_from_ms = 0
        facts = {"partition": str(self.partition), "after": str(after), "complete_from_ms": self.complete_from_ms}
        self.tools.tell("starting without stored state", **facts)

    def start_over(self, *, lost_end: bool) -> None:
        """Forget what was counted and use nothing that is stored: the log behind it is another one."""
        self.lease = self.live = None
        self._ignores_stored, self._after_another_log = lost_end, True

    def take_view(self, view: BatchView, *, offset: int) -> None:
        """Take over a view of batch that the merger uses."""
        assert self.live is not None  # noqa: S101  the caller holds the partition
        self.live.certified(view, offset=offset)

    def read(self, log: OpenedLog) -> bool:
        """Count a micro-batch; return whether there was any.

        Raises:
            TrimmedError, LogReplacedError, LogUnavailableError: as the log says.
            LogWentBackError: entries are older than those before them.
        """
        assert self.live is not None  # noqa: S101  the caller holds the partition
        reading = log.read(self.partition, after=self.after, limit=self._limit)
        if self._after_another_log:
            self.complete_from_ms = max(self.complete_from_ms, milliseconds(reading.at))
            self._after_another_log = False
        if reading.entries:
            batch = self.tools.decode(reading.entries, self.partition)
            self.live.count(batch)
            self.after = reading.entries[-1].id
            self.live.position = self.after.version
            a_batch = _PLAYS_A_BATCH * len(reading.entries) // max(len(batch), 1)
            self._limit = min(max(a_batch, 1), 2 * self._limit, _MOST_ENTRIES)
        self._move_on(reading)
        return bool(reading.entries)

    @property
    def is_ready(self) -> bool:
        """Whether it has read anything, and has come as far as what was said last, so that answers do not go back."""
        return self.lease is not None and self._floor is None and self.live is not None and self.live.log_ms > 0

    def publish(self, moment: datetime | None = None) -> None:
        """Say what changed, and how far it is.

        Args:
            moment: For which moment of log time, UTC, if it can be said for that one and none later was said; its own
                otherwise, which is the default.

        Raises:
            LeaseLostError: another consumer took the partition; nothing was said.
        """
        assert self.live is not None and self.lease is not None  # noqa: S101, PT018  the caller holds the partition
        now_ms, own = self.tools.lists.now_ms(), self.live.as_of
        asked = moment if moment is not None and own - MOST_BACK <= moment <= own else own
        as_of = min(max(asked, EPOCH + self._said_ms * _MS), own)
        self._note({field_of(one.kind, one.region): encode_list(one) if one.total else None
                    for one in self.live.changed(as_of)})  # fmt: skip
        self._answer_asks(self.tools.lists.read_asks(self.number), as_of)
        status = self._status(cycle=max(self._cycle + 1, now_ms), now_ms=now_ms, as_of=as_of)
        sent = dict.fromkeys(self._lists) if self._whole else dict.fromkeys(self._unsent)
        lists = {name: self._lists.get(name) for name in sent}
        self.tools.lists.publish(self.lease, status, lists, whole=self._whole)
        self._cycle, self._whole, self._said_ms = status.cycle, False, status.as_of_ms
        self._unsent.clear()

    def checkpoint(self, log: OpenedLog) -> None:
        """Store the state, then let the log forget what is in it.

        Raises:
            LeaseLostError: another consumer took the partition; the checkpoint before stays in force.
        """
        assert self.live is not None and self.lease is not None  # noqa: S101, PT018  the caller holds the partition
        began = time.monotonic()
        size = self.tools.leases.checkpoint(
            self.lease,
            snapshot(self.live),
            log_id=self.log_id,
            complete_from_ms=self.complete_from_ms,
        )
        self.checkpointed = Checkpointed(size, time.monotonic() - began)
        stored = {self.partition: EntryId.of_version(self.live.position)} if self.live.position >= 0 else {}
        hold(log, stored)

    def _restore(self, lease: Lease, manifest: Manifest, blobs: Mapping[str, bytes], *, log_id: str) -> bool:
        """Use what is stored, unless it is of another log, policy or version."""
        if manifest.log_id != log_id or self._ignores_stored:
            return False
        try:
            live = restored(blobs, self.tools.policy, self.tools.rules)
        except UnusableStateError as error:
            self.tools.tell("stored state is not used", partition=str(self.partition), problem=error.problem)
            return False
        self.live, self.log_id, self.after = live, log_id, EntryId.of_version(live.position)
        self.complete_from_ms = manifest.complete_from_ms
        self._lists, self._unsent = {}, set()
        self.tools.leases.restored(lease, manifest, snapshot(live))
        self.tools.tell("restored", partition=str(self.partition), position=str(self.after), log_id=log_id)
        return True

    def _move_on(self, reading: Reading) -> None:
        assert self.live is not None  # noqa: S101  the caller looked
        self.at_end = reading.reached_end
        floor = self._floor
        if self.at_end:
            self.live.advance(max(reading.at, floor.as_of) if floor is not None else reading.at)
        self.lag_ms = 0 if self.at_end else max(milliseconds(reading.at) - self.live.log_ms, 0)
        if floor is not None:
            has_all = self.live.position >= floor.position and self.live.log_ms >= floor.as_of_ms
            self._floor = None if self.at_end or has_all else floor

    def _note(self, lists: Mapping[str, bytes | None]) -> None:
        """Keep what lists say now, and which of them say something new."""
        for name, body in lists.items():
            if body != self._lists.get(name):
                self._unsent.add(name)
                if body is None:
                    del self._lists[name]
                else:
                    self._lists[name] = body

    def _answer_asks(self, asks: Mapping[str, int], as_of: datetime) -> None:
        """Make lists longer that the merger needs longer, and those usual again that it needed so before."""
        usual = self.tools.policy.list_size
        wanted = dict.fromkeys(self._asked.keys() - asks.keys(), usual)
        wanted |= {name: min(max(rows, usual), MOST_ROWS) for name, rows in asks.items()}
        longer = {}
        for name, rows in wanted.items():
            kind, region = of_field(name)
            assert self.live is not None  # noqa: S101  the caller looked
            found = self.live.top(kind, region, size=rows, as_of=as_of)
            longer[name] = encode_list(found) if found.total else None
        self._note(longer)
        self._asked = dict(asks)

    def _status(self, *, cycle: int, now_ms: int, as_of: datetime) -> PartitionStatus:
        live = self.live
        assert live is not None  # noqa: S101  the caller looked
        return PartitionStatus(
            log_id=self.log_id,
            position=live.position,
            as_of_ms=milliseconds(as_of),
            complete_from_ms=self.complete_from_ms,
            view=live.view,
            frontier_hour=live.buckets.frontier,
            folding=live.regions.folding,
            policy=self.tools.fingerprint,
            cycle=cycle,
            written_ms=now_ms,
            plays={meter.value: live.meters[meter] for meter in Meter},
        )


def hold(log: OpenedLog, stored: Mapping[Partition, EntryId]) -> None:
    """Have the log keep all plays that are not stored, from now on for as long as `READER_LEASE`."""
    log.commit_offsets(READER, stored, lease=READER_LEASE, only=Stream.PLAYS)


def common_moment(works: Iterable[PartitionWork]) -> datetime | None:
    """Return the latest moment, UTC, for which all can speak that are not far behind; None when none is ready."""
    moments = [work.live.as_of for work in works if work.is_ready and work.live is not None]
    return min((moment for moment in moments if max(moments) - moment <= MOST_BACK), default=None)
