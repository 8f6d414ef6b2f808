"""Leases against a real views server: who may work on a partition, and who learns that it may not any more."""

from threading import Barrier, Thread
from time import monotonic, sleep

import pytest

from speed_layer.store.connection import Views, connect
from speed_layer.store.keys import of_partition
from speed_layer.store.leases import Lease, LeaseLostError
from speed_layer.store.state import StateStore
from tests.speed_layer.storing import FOREVER_MS, counted, put, taken

pytestmark = pytest.mark.redis


def test_a_partition_has_one_holder(views: Views, store: StateStore) -> None:
    found: list[Lease | None] = []
    start = Barrier(8)

    def take() -> None:
        with connect(views.address) as connection:
            start.wait()
            found.append(StateStore(connection, lease_ms=FOREVER_MS).acquire(0))

    threads = [Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([lease for lease in found if lease is not None]) == 1
    assert store.acquire(0) is None
    assert store.acquire(1) is not None


def test_a_lease_that_is_given_back_is_free_at_once_and_epochs_grow(store: StateStore) -> None:
    first = taken(store)
    store.release(first)
    second = taken(store)
    assert [lease.epoch.partition("-")[0] for lease in (first, second)] == ["1", "2"]
    store.release(first)  # too late: it is another one's
    assert store.acquire(0) is None


def test_a_lease_ends_by_itself_and_its_holder_learns_of_it(views: Views, store: StateStore) -> None:
    hasty = StateStore(views, lease_ms=30)
    old = taken(hasty)
    hasty.renew(old)
    new = awaited(store)
    with pytest.raises(LeaseLostError, match="partition 0 of the live charts is not ours any more"):
        hasty.renew(old)
    store.renew(new)


def awaited(store: StateStore) -> Lease:
    """Take the partition once the lease of its holder has run out."""
    deadline = monotonic() + 10
    while (lease := store.acquire(0)) is None:
        assert monotonic() < deadline
        sleep(0.005)
    return lease


def test_a_lease_that_ran_out_is_kept_when_nobody_else_came(views: Views, store: StateStore) -> None:
    lease = taken(store)
    views.client.delete(of_partition(0, "lease"))
    store.renew(lease)
    assert store.acquire(0) is None
    put(store, lease, counted())


def test_a_server_that_forgot_everything_has_forgotten_the_holder(views: Views, store: StateStore) -> None:
    """The next epoch begins at 1 again, and is another one all the same."""
    lease = taken(store)
    views.client.flushall()
    with pytest.raises(LeaseLostError):
        store.renew(lease)
    again = taken(store)
    assert again.epoch.startswith("1-")
    with pytest.raises(LeaseLostError):
        put(store, lease, counted())
