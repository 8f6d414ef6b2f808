"""The once-a-second write of a partition, and how the merger reads it, against a real views server."""

from collections.abc import Mapping

import pytest

from speed_layer.store.connection import Views
from speed_layer.store.keys import of_partition
from speed_layer.store.leases import Lease
from speed_layer.store.publishing import Publishing
from speed_layer.store.state import StateStore
from tests.speed_layer.storing import status

pytestmark = pytest.mark.redis


@pytest.fixture
def lease(store: StateStore) -> Lease:
    found = store.acquire(0)
    assert found is not None
    return found


def said(publishing: Publishing, lease: Lease, cycle: int, lists: Mapping[str, bytes | None], **how: bool) -> None:
    publishing.publish(lease, status(cycle=cycle), lists, whole=how.get("whole", False))


def test_a_reader_gets_what_changed_since_the_cycle_it_knows(views: Views, lease: Lease) -> None:
    publishing = Publishing(views)
    assert publishing.changed_since(0, -1).status is None
    said(publishing, lease, 10, {"1h|*": b"a", "1h|IN": b"b"}, whole=True)
    said(publishing, lease, 11, {"1h|IN": b"c"})
    assert publishing.changed_since(0, -1).lists == {"1h|*": b"a", "1h|IN": b"c"}
    assert publishing.changed_since(0, 10).lists == {"1h|IN": b"c"}
    assert publishing.changed_since(0, 11).lists == {}
    assert publishing.read_statuses([0, 1]) == {0: status(cycle=11), 1: None}
    assert publishing.changed_since(0, 11).status == status(cycle=11)


def test_a_list_that_became_empty_is_said_to_be_gone(views: Views, lease: Lease) -> None:
    publishing = Publishing(views)
    said(publishing, lease, 10, {"1h|*": b"a", "1h|IN": b"b"}, whole=True)
    said(publishing, lease, 11, {"1h|IN": None})
    assert publishing.changed_since(0, 10).lists == {"1h|IN": None}
    assert views.client.hkeys(of_partition(0, "lists")) == [b"1h|*"]


def test_the_first_cycle_of_a_consumer_drops_what_it_does_not_say(views: Views, lease: Lease) -> None:
    publishing = Publishing(views)
    said(publishing, lease, 5_000_000, {"1m|DE": b"x", "1m|FR": b"x"}, whole=True)
    said(publishing, lease, 8_000_000, {"1m|FR": None, "1h|IN": b"b"})
    said(publishing, lease, 9_000_000, {"1h|*": b"a"}, whole=True)
    assert publishing.changed_since(0, 8_000_000).lists == {"1h|*": b"a", "1h|IN": None, "1m|FR": None, "1m|DE": None}
    assert publishing.changed_since(0, 9_000_000).lists == {}
    said(publishing, lease, 20_000_000, {"1h|*": b"a"}, whole=True)
    assert publishing.changed_since(0, -1).lists == {"1h|*": b"a"}  # marks of what is gone for an hour are gone


def test_asks_replace_those_before(views: Views) -> None:
    publishing = Publishing(views)
    publishing.ask(0, {"1h|*": 300, "1m|IN": 200})
    assert publishing.read_asks(0) == {"1h|*": 300, "1m|IN": 200}
    publishing.ask(0, {"1h|*": 400})
    assert publishing.read_asks(0) == {"1h|*": 400}
    publishing.ask(0, {})
    assert publishing.read_asks(0) == publishing.read_asks(1) == {}
