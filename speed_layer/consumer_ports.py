"""What the consumer is given: the log, the stores, and what turns entries into plays."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from domain.batch_view import BatchView
from domain.log import Entry, EntryId, EventLog, Partition, Stream
from speed_layer.play_batch import PlayBatch
from speed_layer.snapshot import Snapshot
from speed_layer.store.leases import Lease, Manifest
from speed_layer.store.lists import PartitionStatus

Decode = Callable[[Sequence[Entry], Partition], PlayBatch]


class OpenedLog(EventLog, Protocol):
    """A log with a connection to close, whose readers may be named for a time."""

    def commit_offsets(
        self,
        reader: str,
        offsets: Mapping[Partition, EntryId],
        *,
        lease: timedelta | None = None,
        only: Stream | None = None,
    ) -> None:
        """Say up to where (inclusive) a reader of one stream needs nothing any more; its lease says for how long."""

    def close(self) -> None:
        """Close the connections."""


class Leases(Protocol):
    """Who works on a partition, and its checkpoints; `speed_layer.store.state.StateStore` is one."""

    def acquire(self, partition: int) -> Lease | None:
        """Take a partition that nobody works on."""

    def free(self, partitions: Sequence[int]) -> list[int]:
        """Return the partitions that nobody works on."""

    def present(self, name: str) -> int:
        """Say that a consumer is there; return how many are."""

    def absent(self, name: str) -> None:
        """Say that a consumer is not there any more."""

    def renew(self, lease: Lease) -> None:
        """Keep a partition."""

    def release(self, lease: Lease) -> None:
        """Leave a partition to others."""

    def load(self, lease: Lease) -> tuple[Manifest, dict[str, bytes]] | None:
        """Return the checkpoint in force."""

    def restored(self, lease: Lease, manifest: Manifest, snapshot: Snapshot) -> None:
        """Note that these parts are stored."""

    def checkpoint(self, lease: Lease, snapshot: Snapshot, *, log_id: str, complete_from_ms: int) -> int:
        """Put a snapshot in force; return the bytes written."""


class Lists(Protocol):
    """What partitions say; `speed_layer.store.publishing.Publishing` is one."""

    def publish(self, lease: Lease, status: PartitionStatus, lists: Mapping[str, bytes | None], *, whole: bool) -> None:
        """Write one cycle of a partition."""

    def read_statuses(self, partitions: Sequence[int]) -> dict[int, PartitionStatus | None]:
        """Return what each partition said last of how far it is."""

    def read_asks(self, partition: int) -> dict[str, int]:
        """Return for which lists more rows are needed than usual."""

    def now_ms(self) -> int:
        """Return the server's clock."""


class BatchViews(Protocol):
    """Batch's views; `speed_layer.store.views.ViewStore` is one."""

    def acknowledged(self) -> str | None:
        """Return the version that the merger has begun to use."""

    def load(self, version: str) -> BatchView | None:
        """Return a view; None when it is gone."""


class Tell(Protocol):
    """Takes what happened, with its facts."""

    def __call__(self, event: str, /, **facts: object) -> None:
        """Note one happening."""


class Stop(Protocol):
    """Whether somebody asked the consumer to end; a `threading.Event` is one."""

    def is_set(self) -> bool:
        """Say whether it was asked."""

    def wait(self, timeout: float) -> object:
        """Return when it was asked, or after so many seconds."""
