"""Rebuilding what the views server lost: batch's view from the newest release, live state from the lake's own plays.

The lake has every play that the log has dropped, so a partition is counted again from the lake up to where the lake
stands, and the consumer goes on from there with the log. While this runs the log drops nothing behind that.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from domain.batch_view import BatchView
from domain.errors import LakeboardError
from domain.live_windows import LiveWindow
from domain.log import EntryId, Partition, Stream
from domain.rules import Rules
from domain.speed_policy import SpeedPolicy
from domain.windows import EPOCH, milliseconds
from ingest.read_batch_view import ReleaseBehindLogError
from ingest.read_log_plays import had_another_log, log_positions, plays_of_log
from ingest.read_releases import NothingCountedError
from ingest.redis_log import RedisLog
from lakeboard.live.decode import partition_numbers
from lakeboard.publishing import publish
from lakeboard.settings import Settings
from speed_layer.partition import LivePartition
from speed_layer.play_batch import NOT_SAID, PlayBatch
from speed_layer.snapshot import snapshot
from speed_layer.store.connection import Views, connect
from speed_layer.store.keys import of_partition
from speed_layer.store.leases import LeaseLostError
from speed_layer.store.state import StateStore
from speed_layer.store.views import ViewStore

PIN = "lakeboard_restore"  # holds back what the log drops, until the consumer has read it
_PINNED = timedelta(hours=2)  # without a sign of life, as of one that was killed: more than publishing takes
_PINNED_AFTER = timedelta(minutes=10)
_TRIES = 5  # a consumer that looks every second seldom comes between twice
_MINUTE = timedelta(minutes=1)


class NothingToRestoreFromError(LakeboardError):
    """The lake has nothing of the log in use."""

    def __init__(self, log_id: str) -> None:
        super().__init__(log_id)
        self.log_id = log_id

    def __str__(self) -> str:
        return (
            f"the lake has no plays of log {self.log_id} yet: there is nothing to restore, `lakeboard speed` counts "
            "the whole log by itself"
        )


class PartitionTakenError(LakeboardError):
    """Another consumer took a partition in the moment in which its state was to be written."""

    def __init__(self, partition: str) -> None:
        super().__init__(partition)
        self.partition = partition

    def __str__(self) -> str:
        return f"another process took partition {self.partition} meanwhile: run `lakeboard restore` again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What was rebuilt.

    Attributes:
        log_id: Of which log.
        partitions: How many.
        plays: Accepted plays that were counted again, copies among them.
        since: Log time of the first of them, UTC.
        release: Release that the live day joins with; None for none.
        without_release: Why there is none; empty when there is.
    """

    log_id: str
    partitions: int
    plays: int
    since: datetime
    release: int | None
    without_release: str


@dataclass
class _Rebuild:
    """One rebuild: what all partitions have in common."""

    store: StateStore
    views: Views
    policy: SpeedPolicy
    rules: Rules
    log_id: str
    view: BatchView | None
    positions: dict[int, int]
    complete_from_ms: int
    plays: int = 0
    parts: list[BatchView] = field(default_factory=list)

    def counted(self, number: int, batches: Iterator[pa.RecordBatch]) -> LivePartition:
        """Count a partition from the lake's rows."""
        live = LivePartition(self.policy, self.rules)
        if self.view is not None:
            live.certified(self.parts[number], offset=self.view.offset(self.log_id, number))
        for rows in batches:
            live.count(_play_batch(rows))
            self.plays += len(rows)
        live.position = max(live.position, self.positions.get(number, -1))
        return live

    def write(self, partition: Partition, live: LivePartition, *, tries: int = _TRIES) -> None:
        """Put a state in force; whoever worked on the partition is refused from then on, and takes this one up."""
        try:
            self._put(partition, live)
        except (PartitionTakenError, LeaseLostError):
            if tries == 1:
                raise
            self.write(partition, live, tries=tries - 1)

    def _put(self, partition: Partition, live: LivePartition) -> None:
        with self.views.translated():
            self.views.client.delete(of_partition(partition.number, "lease"))
        lease = self.store.acquire(partition.number)
        if lease is None:
            raise PartitionTakenError(str(partition))
        self.store.load(lease)
        self.store.checkpoint(lease, snapshot(live), log_id=self.log_id, complete_from_ms=self.complete_from_ms)
        self.store.release(lease)


def restore(
    settings: Settings,
    *,
    on_step: Callable[[str], None] = lambda step: None,
    on_wait: Callable[[str, str], None] | None = None,
) -> Restored:
    """Rebuild the view of batch and the live state of every partition. A running consumer takes them up.

    Args:
        settings: Where the lake and the servers are.
        on_step: Told the name of each step as it begins.
        on_wait: Told (what, holder) when another process publishes.

    Raises:
        NothingToRestoreFromError: the lake has nothing of the log in use.
        PartitionTakenError, LeaseLostError: somebody else wrote at the same moment, several times.
        LogUnavailableError, ViewsUnavailableError: a server does not answer.
        LakeUnreadableError: the lake cannot be read.
    """
    lake_root = settings.lake_root.absolute()
    with (
        RedisLog.open(settings.log_address, clock=settings.entry_clock) as log,
        connect(settings.views_address) as views,
        ExitStack() as at_end,
    ):
        log.commit_offsets(PIN, {}, lease=_PINNED_AFTER, only=Stream.PLAYS)
        version, positions = log_positions(lake_root, log.log_id)
        if not positions:
            log.remove_reader(PIN)
            raise NothingToRestoreFromError(log.log_id)
        partitions = log.partitions(Stream.PLAYS)
        ends = {p: EntryId.of_version(positions.get(p.number, -1)) for p in partitions}
        log.commit_offsets(PIN, ends, lease=_PINNED, only=Stream.PLAYS)
        # Until the consumer has come by.
        at_end.callback(log.commit_offsets, PIN, {}, lease=_PINNED_AFTER, only=Stream.PLAYS)
        view, why_not = _published(settings, views, log.log_id, on_step, on_wait)
        since = _since(log.now(), view, settings.speed_policy)
        rebuild = _Rebuild(
            store=StateStore(views),
            views=views,
            policy=settings.speed_policy,
            rules=settings.rules(),
            log_id=log.log_id,
            view=view,
            positions=positions,
            complete_from_ms=_complete_from_ms(log, lake_root, version, since),
        )
        if view is not None:
            rebuild.parts = view.split(lambda items: partition_numbers(items, len(partitions)), len(partitions))
        _rebuild(rebuild, log, lake_root, version, since, on_step)
    return Restored(
        log_id=rebuild.log_id,
        partitions=len(partitions),
        plays=rebuild.plays,
        since=since,
        release=None if view is None else view.release,
        without_release=why_not,
    )


def _published(
    settings: Settings,
    views: Views,
    log_id: str,
    on_step: Callable[[str], None],
    on_wait: Callable[[str, str], None] | None,
) -> tuple[BatchView | None, str]:
    """Return the view of the newest release, in force now, or why there is none for this log."""
    try:
        done = publish(settings, back=True, on_step=on_step, on_wait=on_wait)
    except (NothingCountedError, ReleaseBehindLogError) as error:
        return None, str(error)
    view = ViewStore(views).load(done.version)
    return (view, "") if view is not None and view.goes_with(log_id) else (None, "its view is gone again")


def _since(now: datetime, view: BatchView | None, policy: SpeedPolicy) -> datetime:
    """Return the log time from which on plays are needed: of the hours that batch does not have, and of the live hour.

    Before the first that counts come those whose copies it may be, and those dated ahead.
    """
    day = LiveWindow.DAY.at(now).start
    first = day if view is None else max(day, view.frontier)
    whole = min(first, now - policy.coarse) - policy.ahead - policy.retry_window
    return whole - (whole - EPOCH) % _MINUTE


def _rebuild(
    rebuild: _Rebuild,
    log: RedisLog,
    lake_root: Path,
    version: int,
    since: datetime,
    on_step: Callable[[str], None],
) -> None:
    """Count and write one partition after the other; the lake's rows come in that order."""
    rows = groupby(
        plays_of_log(lake_root, version=version, log_id=rebuild.log_id, since=since), key=lambda found: found[0]
    )
    found = next(rows, None)
    for partition in log.partitions(Stream.PLAYS):
        on_step(f"count partition {partition.number} again")
        ours = found is not None and found[0] == partition.number
        batches = _pinning(log, (batch for _, batch in found[1]) if found is not None and ours else iter(()))
        rebuild.write(partition, rebuild.counted(partition.number, batches))
        found = next(rows, None) if ours else found


def _pinning(log: RedisLog, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass batches on; the log is told that they are still being counted."""
    for batch in batches:
        log.commit_offsets(PIN, {}, lease=_PINNED, only=Stream.PLAYS)
        yield batch


def _complete_from_ms(log: RedisLog, lake_root: Path, version: int, since: datetime) -> int:
    """Return from which log time on no play is missing; 0 = none is.

    Plays of a log that was replaced have no place in this one's counts: only batch has them, below its frontier.
    """
    has_all = log.created <= since or not had_another_log(lake_root, version, log.log_id)
    return 0 if has_all else milliseconds(log.created)


def _play_batch(rows: pa.RecordBatch) -> PlayBatch:
    """Return rows of `ingest.read_log_plays` as live counting takes them."""
    ms, sequence = (rows.column(name).to_numpy() for name in ("log_ms", "log_sequence"))
    return PlayBatch(
        positions=ms * 2**20 + sequence,
        id_hashes=rows.column("id_hash").to_numpy().view(np.uint64),
        items=rows.column("item_id").to_pylist(),
        regions=rows.column("region").to_pylist(),
        event_times_us=rows.column("event_us").to_numpy(),
        durations_ms=pc.fill_null(rows.column("duration_ms"), NOT_SAID).to_numpy(),
        counts=rows.column("count").to_numpy(),
    )
