"""Batch views in a real views server: whole or not at all, never back, two of them kept."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from domain.batch_view import HOURS_IN_VIEW, BatchView, RegionView, narrowed
from speed_layer.store.connection import Views, connect
from speed_layer.store.keys import BATCH_VIEW, MERGED_VIEW, of_view
from speed_layer.store.lists import UnknownListFormatError
from speed_layer.store.view_codec import decode_items, decode_meta, decode_region, encode_view, view_from
from speed_layer.store.views import OtherPublisherError, ViewStore, ViewWentBackError
from tests.views_server import ViewsServer, views_server

GOLDEN = Path(__file__).parents[1] / "golden" / "batch_view_v1.json"
FRONTIER = datetime(2026, 11, 15, 9, tzinfo=UTC)


def region(*items: tuple[str, int], residual: int = 0) -> RegionView:
    hourly = np.zeros((len(items), HOURS_IN_VIEW), dtype=np.int64)
    hourly[:, -1] = [plays for _, plays in items]
    totals = hourly.sum(axis=0) + residual
    return RegionView(item_ids=[item for item, _ in items], hourly=narrowed(hourly), residual=residual, totals=totals)


def view(release: int = 1, *, frontier: datetime = FRONTIER, plays: int = 5) -> BatchView:
    return BatchView(
        version=f"{release}-{frontier:%dT%H}-{plays}",
        release=release,
        frontier=frontier,
        log_id="log",
        offsets={"log/0": 2**50, "log/1": -1},
        regions={"*": region(("夜に駆ける", plays), ("b", 1), residual=1), "IN": region(("b", 1))},
        others=3,
    )


def same(one: BatchView | None, other: BatchView) -> bool:
    assert one is not None
    assert replace(one, regions={}) == replace(other, regions={})
    assert one.regions.keys() == other.regions.keys()
    for name, found in one.regions.items():
        wanted = other.regions[name]
        assert (list(found.item_ids), found.residual) == (list(wanted.item_ids), wanted.residual)
        assert found.hourly.tolist() == wanted.hourly.tolist()
        assert found.totals.tolist() == wanted.totals.tolist()
    return True


# --- bytes ---


@pytest.mark.fast
def test_bytes_of_version_1_stay_readable() -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    meta = decode_meta(bytes.fromhex(golden["meta"]))
    ids = decode_items({name: bytes.fromhex(body) for name, body in golden["items"].items()})
    regions = {name: decode_region(bytes.fromhex(body), ids) for name, body in golden["regions"].items()}

    assert same(view_from(meta, regions), view())
    assert encode_view(view()).head.hex() == golden["meta"]


@pytest.mark.fast
def test_every_width_of_counts_comes_back() -> None:
    for most in (1, 255, 256, 65_536, 2**32, 2**60):
        wide = replace(view(), regions={"*": region(("a", most), ("b", 1))})
        encoded = encode_view(wide)
        found = decode_region(encoded.regions["*"], decode_items(encoded.items))
        assert found.hourly.tolist() == wide.regions["*"].hourly.tolist()
        assert found.plays.tolist() == [most, 1]


@pytest.mark.fast
def test_what_another_version_wrote_is_refused() -> None:
    encoded = encode_view(view())
    with pytest.raises(UnknownListFormatError, match="a batch view of format 7"):
        decode_meta(encoded.head.replace(b"\xa1v\x01", b"\xa1v\x07"))
    with pytest.raises(UnknownListFormatError, match="a region of a batch view"):
        decode_region(b"no bytes of ours", [])


# --- the store ---


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ViewsServer]:
    with views_server(tmp_path_factory.mktemp("views")) as found:
        yield found


@pytest.fixture
def views(server: ViewsServer) -> Iterator[Views]:
    with connect(server.address) as found:
        found.client.flushall()
        yield found


@pytest.mark.redis
def test_what_is_written_is_in_force_and_comes_back(views: Views) -> None:
    store = ViewStore(views)
    assert store.current() is None

    meta = store.write(view())

    assert store.current() == meta.version == view().version
    assert (meta.items, meta.regions) == (2, 2)
    assert same(ViewStore(views).load(meta.version), view())
    assert store.load(meta.version) is store.load(meta.version)
    assert {views.client.ttl(of_view(meta.version, name)) for name in ("meta", "items", "regions")} == {-1}


@pytest.mark.redis
def test_the_same_release_again_changes_nothing(views: Views) -> None:
    store = ViewStore(views)
    store.write(view())
    before = views.client.keys("*")

    assert store.write(replace(view(), version="again")).version == view().version
    assert sorted(views.client.keys("*")) == sorted(before)
    assert store.in_force(1, FRONTIER, "log") is not None
    assert store.in_force(1, FRONTIER, "other") is None


@pytest.mark.redis
def test_a_view_that_lies_behind_is_refused_unless_it_is_meant(views: Views) -> None:
    store = ViewStore(views)
    store.write(view(4))
    for behind in (view(3), view(5, frontier=FRONTIER - timedelta(hours=1))):
        with pytest.raises(ViewWentBackError, match="use release 4, certified up to 2026-11-15 09:00 UTC"):
            store.write(behind)
    assert store.current() == view(4).version
    assert store.versions() == {view(4).version}

    store.write(view(3), back=True)
    assert store.current() == view(3).version


@pytest.mark.redis
def test_the_two_newest_and_what_the_merger_uses_are_kept(views: Views) -> None:
    store = ViewStore(views)
    made = [view(n, frontier=FRONTIER + timedelta(hours=n)) for n in range(5)]
    store.write(made[0])
    views.client.set(MERGED_VIEW, made[0].version)
    for each in made[1:]:
        store.write(each)

    assert store.acknowledged() == made[0].version
    assert store.versions() == {made[n].version for n in (0, 3, 4)}
    views.client.delete(MERGED_VIEW)
    store.write(view(9, frontier=FRONTIER + timedelta(hours=9)))
    assert store.versions() == {made[4].version, store.current()}
    assert store.load(made[1].version) is None


@pytest.mark.redis
def test_what_a_killed_writer_left_has_an_expiry_and_is_swept(views: Views) -> None:
    store = ViewStore(views)
    store.write(view())
    encoded = encode_view(view(2))
    store._write(encoded)
    assert 0 < views.client.ttl(of_view(view(2).version, "regions")) <= 600
    assert store.current() == view().version

    store.write(view(3))

    assert store.versions() == {view().version, view(3).version}


@pytest.mark.redis
def test_a_view_that_was_swept_while_it_was_written_is_not_put_in_force(
    views: Views, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ViewStore(views)
    store.write(view())
    whole = ViewStore._write

    def swept(self: ViewStore, encoded: object) -> None:
        whole(self, encoded)  # type: ignore[arg-type]
        views.client.delete(of_view(view(2).version, "items"))

    monkeypatch.setattr(ViewStore, "_write", swept)
    with pytest.raises(OtherPublisherError):
        store.write(view(2))
    assert store.current() == view().version
    assert store.versions() == {view().version}


@pytest.mark.redis
def test_a_reader_never_sees_half_a_view(views: Views, server: ViewsServer) -> None:
    """Each view says one number everywhere; a loop that follows the pointer meets only whole ones."""
    store, seen, stop = ViewStore(views), [], threading.Event()

    def follow() -> None:
        with connect(server.address) as mine:
            reader = ViewStore(mine)
            while not stop.is_set():
                version = reader.current()
                found = None if version is None else reader.load(version)
                if found is not None:
                    seen.append({found.release, *(int(r.plays[0]) for r in found.regions.values())})

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        for release in range(1, 120):
            regions = {f"R{n}": region((f"{release}-{n}", release)) for n in range(20)}
            store.write(replace(view(release), regions=regions))
    finally:
        stop.set()
        thread.join()

    assert len(seen) > 20
    assert all(len(numbers) == 1 for numbers in seen)


@pytest.mark.redis
def test_the_pointer_alone_names_what_is_in_force(views: Views) -> None:
    store = ViewStore(views)
    store.write(view())
    views.client.flushall()
    assert store.current() is None
    views.client.set(BATCH_VIEW, "gone")
    assert store.load("gone") is None
    assert store.write(view()).version == view().version
    assert store.current() == view().version
