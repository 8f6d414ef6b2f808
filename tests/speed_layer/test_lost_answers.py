"""A script that did its work and whose answer was lost: the client asks again, and is refused for its own work."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from domain.rules import Rules
from domain.speed_policy import DEFAULT_SPEED_POLICY
from speed_layer.snapshot import restored, snapshot
from speed_layer.store.connection import Views, connect
from speed_layer.store.leases import LeaseLostError
from speed_layer.store.state import StateStore
from speed_layer.store.views import OtherPublisherError, ViewStore
from tests.speed_layer.deaf_proxy import DeafProxy, deaf_proxy
from tests.speed_layer.live_model import batch_of
from tests.speed_layer.storing import FOREVER_MS, counted, played, put, taken
from tests.speed_layer.test_view_store import FRONTIER, same, view

pytestmark = pytest.mark.redis


@pytest.fixture
def proxy(views: Views) -> Iterator[DeafProxy]:
    with deaf_proxy(views.address) as proxy:
        yield proxy


@pytest.fixture
def far(proxy: DeafProxy) -> Iterator[Views]:
    with connect(proxy.address) as far:
        yield far


def test_a_checkpoint_whose_answer_was_lost_is_in_force_whole(proxy: DeafProxy, far: Views, store: StateStore) -> None:
    behind = StateStore(far, lease_ms=FOREVER_MS)
    lease, partition = taken(behind), counted()
    put(behind, lease, partition)
    partition.count(batch_of([played(9)]))
    proxy.deaf_to(behind._flip.sha)

    put(behind, lease, partition)

    assert proxy.lost == 1
    found = store.load(lease)
    assert found is not None
    assert restored(found[1], DEFAULT_SPEED_POLICY, Rules()).position == partition.position
    partition.count(batch_of([played(10)]))
    put(behind, lease, partition)  # it knows the checkpoint in force


def test_blobs_that_the_next_holder_goes_on_with_are_not_dropped_by_a_late_refusal(
    views: Views, store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flip was done; before the client asks again, another one took the state over and stored its own."""
    lease, partition, flip = taken(store), counted(), store._flip
    other = StateStore(views, lease_ms=FOREVER_MS)

    def late(**how: Any) -> object:
        flip(**how)
        store.release(lease)
        new = taken(other)
        found = other.load(new)
        assert found is not None
        live = restored(found[1], DEFAULT_SPEED_POLICY, Rules())
        other.restored(new, found[0], snapshot(live))
        live.count(batch_of([played(9)]))
        put(other, new, live)
        return flip(**how)

    with monkeypatch.context() as patch:
        patch.setattr(store, "_flip", late)
        with pytest.raises(LeaseLostError):
            put(store, lease, partition)

    found = store.load(lease)
    assert found is not None
    assert set(found[0].blobs) == set(found[1])
    assert restored(found[1], DEFAULT_SPEED_POLICY, Rules()).position > partition.position


def test_a_view_whose_answer_was_lost_is_in_force_whole(proxy: DeafProxy, far: Views, views: Views) -> None:
    behind = ViewStore(far)
    behind.write(view(1))
    newer = view(2, frontier=FRONTIER + timedelta(hours=1))
    proxy.deaf_to(behind._swap.sha)

    behind.write(newer)

    assert proxy.lost == 1
    assert ViewStore(views).current() == newer.version
    assert same(ViewStore(views).load(newer.version), newer)
    assert behind.versions() == {view(1).version, newer.version}


def test_a_view_that_was_refused_is_dropped(views: Views, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ViewStore(views)
    store.write(view(1))
    monkeypatch.setattr(store, "_swap", lambda **_: 0)

    with pytest.raises(OtherPublisherError):
        store.write(view(2))

    assert store.versions() == {view(1).version}
