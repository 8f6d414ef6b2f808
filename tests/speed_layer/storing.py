"""Small states, and how they are stored under a lease."""

from datetime import timedelta

from domain.rules import Rules
from domain.speed_policy import DEFAULT_SPEED_POLICY
from speed_layer.partition import LivePartition
from speed_layer.snapshot import snapshot
from speed_layer.store.leases import Lease
from speed_layer.store.lists import PartitionStatus
from speed_layer.store.state import StateStore
from tests.speed_layer.live_model import START, Played, batch_of

FOREVER_MS = 600_000


def counted(minutes: int = 5) -> LivePartition:
    partition = LivePartition(DEFAULT_SPEED_POLICY, Rules())
    partition.count(batch_of([played(number) for number in range(minutes)]))
    return partition


def played(number: int) -> Played:
    at = START + number * timedelta(minutes=1)
    return Played(number, at, number, f"item{number}", "IN", at)


def put(store: StateStore, lease: Lease, partition: LivePartition) -> int:
    return store.checkpoint(lease, snapshot(partition), log_id="log", complete_from_ms=7)


def taken(store: StateStore, partition: int = 0) -> Lease:
    lease = store.acquire(partition)
    assert lease is not None
    return lease


def status(*, cycle: int) -> PartitionStatus:
    """Return the status of some partition; nothing in it means anything but the cycle."""
    return PartitionStatus(
        log_id="log",
        position=1,
        as_of_ms=2,
        complete_from_ms=0,
        view=None,
        frontier_hour=None,
        folding=False,
        policy="p",
        cycle=cycle,
        written_ms=3,
    )
