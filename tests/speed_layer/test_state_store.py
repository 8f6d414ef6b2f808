"""Leases, checkpoints and the once-a-second write, against a real views server: who may write, and what is left."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any, NoReturn

import msgspec
import pytest

from domain.log import without_secrets
from domain.rules import Rules
from domain.speed_policy import DEFAULT_SPEED_POLICY
from speed_layer.snapshot import restored, snapshot
from speed_layer.snapshot_rest import UnusableStateError
from speed_layer.store.connection import Views, ViewsUnavailableError, connect, octets
from speed_layer.store.keys import of_partition
from speed_layer.store.leases import LeaseLostError, Manifest
from speed_layer.store.publishing import Publishing
from speed_layer.store.state import StateStore, packed, unpacked
from tests.servers import LogServer
from tests.speed_layer.live_model import batch_of
from tests.speed_layer.storing import counted, played, put, status, taken
from tests.views_server import ViewsServer

pytestmark = pytest.mark.redis


def contents(views: Views) -> dict[bytes, bytes | None]:
    return {key: views.client.dump(key) for key in sorted(views.client.scan_iter(match="*"))}


def blobs(views: Views) -> set[str]:
    keys = {key.decode() for key in views.client.scan_iter(match="*")}
    return {key.partition("blob:")[2] for key in keys if "blob:" in key}


def noted(views: Views) -> set[str]:
    return {octets(name).decode() for name in views.client.smembers(of_partition(0, "blobs"))}


# --- checkpoints ---


def test_a_checkpoint_is_read_back_by_the_next_holder(store: StateStore) -> None:
    lease = taken(store)
    assert store.load(lease) is None
    partition = counted()
    put(store, lease, partition)
    store.release(lease)
    found = store.load(taken(store))
    assert found is not None
    manifest, parts = found
    assert (manifest.log_id, manifest.position, manifest.complete_from_ms) == (
        "log",
        partition.position,
        7,
    )
    assert parts == snapshot(partition).encoded()
    assert restored(parts, DEFAULT_SPEED_POLICY, Rules()).meters == partition.meters


def test_what_did_not_change_is_not_written_again_and_what_is_replaced_goes(views: Views, store: StateStore) -> None:
    lease, partition = taken(store), counted(minutes=6)
    partition.changed()
    whole = put(store, lease, partition)
    before = blobs(views)
    partition.count(batch_of([replace(played(5), position=6, event=6)]))
    partition.changed()
    part = put(store, lease, partition)
    after = blobs(views)
    assert part < whole
    kept = {name.split(".")[2].partition("/")[0] for name in before & after}
    assert {"minute", "retry"} <= kept
    assert after == noted(views)
    assert {name.split(".")[2] for name in after} == set(snapshot(partition).parts)  # none is there twice


def test_the_next_holder_writes_only_what_changed_too(views: Views, store: StateStore) -> None:
    lease, partition = taken(store), counted(minutes=6)
    put(store, lease, partition)
    store.release(lease)
    lease = taken(store)
    found = store.load(lease)
    assert found is not None
    again = restored(found[1], DEFAULT_SPEED_POLICY, Rules())
    store.restored(lease, found[0], snapshot(again))
    before = blobs(views)
    put(store, lease, again)
    minutes = {name for name in before if ".minute/" in name}
    assert len(minutes) == 3
    assert minutes <= blobs(views)


def test_a_writer_whose_epoch_is_past_writes_nothing(views: Views, store: StateStore) -> None:
    old, partition = taken(store), counted()
    put(store, old, partition)
    store.release(old)
    new = taken(store)
    store.load(new)
    put(store, new, partition)
    before = contents(views)
    partition.count(batch_of([played(9)]))
    with pytest.raises(LeaseLostError):
        put(store, old, partition)
    with pytest.raises(LeaseLostError):
        Publishing(views).publish(old, status(cycle=9), {"1h|*": b"late"}, whole=True)
    assert contents(views) == before


def test_a_writer_that_does_not_know_the_checkpoint_in_force_writes_nothing(views: Views, store: StateStore) -> None:
    lease, partition = taken(store), counted()
    put(store, lease, partition)
    before = contents(views)
    lease.sequence = ""
    with pytest.raises(LeaseLostError):
        put(store, lease, partition)
    assert contents(views) == before


def test_a_flip_whose_answer_was_lost_does_no_harm(
    views: Views, store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint is in force and its writer does not know: the next one must not touch its blobs."""
    lease, partition, flip = taken(store), counted(), store._flip

    def deaf(**how: Any) -> NoReturn:
        flip(**how)
        raise ViewsUnavailableError(views.address, "no answer")

    with monkeypatch.context() as patch:
        patch.setattr(store, "_flip", deaf)
        with pytest.raises(ViewsUnavailableError):
            put(store, lease, partition)
    before = contents(views)
    partition.count(batch_of([played(9)]))
    with pytest.raises(LeaseLostError):
        put(store, lease, partition)
    assert contents(views) == before
    found = store.load(lease)
    assert found is not None
    assert restored(found[1], DEFAULT_SPEED_POLICY, Rules()).position == counted().position


def test_blobs_of_a_writer_that_was_killed_are_swept_by_the_next_holder(
    views: Views, store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease, partition = taken(store), counted()
    put(store, lease, partition)
    in_force = blobs(views)
    partition.count(batch_of([played(9)]))

    def killed(*_: object, **__: object) -> NoReturn:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store, "_flip", killed)
        with pytest.raises(KeyboardInterrupt):
            put(store, lease, partition)
    assert blobs(views) > in_force
    store.release(lease)
    found = store.load(taken(store))
    assert found is not None
    assert found[0].position == counted().position
    assert blobs(views) == noted(views) == in_force


def test_a_checkpoint_without_a_blob_is_said_to_lack_it(views: Views, store: StateStore) -> None:
    lease = taken(store)
    put(store, lease, counted())
    gone = next(name for name in blobs(views) if ".items/" in name)
    views.client.delete(of_partition(0, f"blob:{gone}"))
    found = store.load(lease)
    assert found is not None
    assert set(found[0].blobs) - set(found[1]) == {"items/0"}


@pytest.mark.parametrize("body", [b"", b"x", b"some id\0" * 5000, Random(1).randbytes(40_000)])
def test_bytes_are_stored_as_short_as_is_worth_it_and_read_back(body: bytes) -> None:
    stored = packed(body)
    assert unpacked(stored) == body
    assert len(stored) <= len(body) + 1
    assert len(stored) < len(body) / 3 or b"some id" not in body


def test_a_blob_that_is_damaged_makes_the_state_unusable(views: Views, store: StateStore) -> None:
    lease = taken(store)
    put(store, lease, counted())
    for name in blobs(views):
        views.client.set(of_partition(0, f"blob:{name}"), b"\1not zlib")
    found = store.load(lease)
    assert found is not None
    with pytest.raises(UnusableStateError):
        restored(found[1], DEFAULT_SPEED_POLICY, Rules())


def test_a_manifest_of_another_version_is_none(views: Views, store: StateStore) -> None:
    lease = taken(store)
    put(store, lease, counted())
    body = views.client.hget(of_partition(0, "manifest"), "body")
    assert isinstance(body, bytes)
    later = msgspec.structs.replace(msgspec.msgpack.decode(body, type=Manifest), version=2)
    views.client.hset(of_partition(0, "manifest"), "body", msgspec.msgpack.encode(later))
    assert store.load(lease) is None
    put(store, lease, counted())  # it is replaced


# --- the server ---


def test_a_server_that_is_not_there_is_said_to_be_with_the_next_step() -> None:
    with pytest.raises(ViewsUnavailableError, match="start it with `lakeboard up`") as caught:
        connect("redis://someone:secret@127.0.0.1:1", timeout_seconds=1.0)
    assert "secret" not in str(caught.value)
    assert caught.value.address == without_secrets("redis://someone:secret@127.0.0.1:1")


def test_a_server_that_is_full_is_unavailable_and_the_checkpoint_before_stays(
    views: Views, views_of_all: ViewsServer, store: StateStore
) -> None:
    lease = taken(store)
    put(store, lease, counted())
    with full(views_of_all), pytest.raises(ViewsUnavailableError, match="memory"):
        put(store, lease, counted(minutes=8))
    found = store.load(lease)
    assert found is not None
    assert found[0].position == counted().position
    put(store, lease, counted(minutes=8))


@contextmanager
def full(server: LogServer) -> Iterator[None]:
    """Let a server be over its memory limit."""
    with server.client() as client:
        client.config_set("maxmemory", "1")
        try:
            yield
        finally:
            client.config_set("maxmemory", str(256 << 20))
