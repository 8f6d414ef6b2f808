"""The merger as it runs: real partitions, a real views server, charts as the API reads them."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from domain.batch_view import BatchView
from domain.live_windows import LiveWindow
from domain.speed_policy import SpeedPolicy
from speed_layer.store.charts import ChartReading, ChartsReader, ChartsWriter, MergerReplacedError
from speed_layer.store.connection import Views, connect, octets
from speed_layer.store.keys import BATCH_VIEW, CHARTS_LEASE, MERGED_VIEW, READY
from speed_layer.store.merge_loop import WAITING, WORKING, CycleReport, run
from speed_layer.store.publishing import Publishing
from tests.speed_layer.merging import partition_of
from tests.speed_layer.published import AT, Publishers, job, merging, plays
from tests.views_server import ViewsServer, views_server

pytestmark = pytest.mark.redis


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ViewsServer]:
    with views_server(tmp_path_factory.mktemp("views")) as found:
        yield found


@pytest.fixture
def views(server: ViewsServer) -> Iterator[Views]:
    with connect(server.address) as found:
        found.client.flushall()
        yield found


def read(server: ViewsServer, kind: LiveWindow = LiveWindow.HOUR, region: str = "*") -> ChartReading:
    async def once() -> ChartReading:
        reader = ChartsReader(server.address)
        try:
            return await reader.read(kind, region)
        finally:
            await reader.close()

    return asyncio.run(once())


def test_more_reads_at_once_than_connections_wait_for_their_turn(server: ViewsServer, views: Views) -> None:
    async def burst() -> tuple[int, int]:
        reader = ChartsReader(server.address)
        found = await asyncio.gather(*[reader.read(LiveWindow.HOUR, f"R{n}") for n in range(400)])
        clients = len(views.client.client_list())
        await reader.close()
        return len(found), clients

    Publishers(views).say(plays("a"))
    merging(server, views).cycle()
    read_, clients = asyncio.run(burst())
    assert read_ == 400
    assert clients <= 20


def counts(reading: ChartReading) -> list[tuple[str, int]]:
    assert reading.chart is not None
    return [(row.item_id, row.lower) for row in reading.chart.top.rows]


def test_what_partitions_say_is_read_as_one_chart_with_its_moment(server: ViewsServer, views: Views) -> None:
    Publishers(views).say(plays("a", "a", "b", "ärger", "a"))
    merging(server, views).cycle()

    found = read(server)
    assert counts(found) == [("a", 3), ("b", 1), ("ärger", 1)]
    assert counts(read(server, region="IN")) == counts(found)
    assert found.status is not None
    moment = found.status.moments[LiveWindow.HOUR]
    assert (moment.as_of, moment.window, moment.partial) == (AT, LiveWindow.HOUR.at(AT), [])
    assert found.now_ms >= found.status.written_ms
    assert read(server, region="FR").chart is None


def test_only_dirty_charts_are_written(server: ViewsServer, views: Views) -> None:
    publishers, at_work = Publishers(views), merging(server, views)
    publishers.say(plays("a", region="IN") + plays("b", region="DE", first=1))
    everything = at_work.cycle()
    publishers.say(plays("a", region="IN", first=2))
    dirty = at_work.cycle()
    publishers.say(plays("c", region="BR", first=3)[:1])
    quiet = at_work.cycle()

    assert (everything.charts, dirty.charts, quiet.charts) == (9, 6, 6)  # three windows each
    assert (everything.number, quiet.number) == (1, 3)


def test_an_older_merger_is_refused_and_changes_nothing(server: ViewsServer, views: Views) -> None:
    publishers = Publishers(views)
    publishers.say(plays("a"))
    old = merging(server, views)
    old.cycle()
    assert ChartsWriter(views).acquire() is None
    views.client.delete("lb:{charts}:lease")  # it ran out
    publishers.say(plays("b", first=1))
    new = merging(server, views)
    new.cycle()
    publishers.say(plays("b", "b", first=2))

    with pytest.raises(MergerReplacedError):
        old.cycle()

    assert counts(read(server)) == [("a", 1), ("b", 1)]
    new.cycle()
    assert counts(read(server)) == [("b", 3), ("a", 1)]


def test_a_new_merger_leaves_no_chart_of_the_one_before(server: ViewsServer, views: Views) -> None:
    views.client.hset(READY, "1h|OLD", b"of another merger")
    Publishers(views).say(plays("a"))
    merging(server, views).cycle()

    assert {octets(name).decode() for name in views.client.hkeys(READY)} == {
        f"{kind.value}|{region}" for kind in LiveWindow for region in ("*", "IN")
    }


def test_a_consumer_that_starts_over_replaces_all_that_it_had_said(server: ViewsServer, views: Views) -> None:
    publishers, at_work = Publishers(views), merging(server, views)
    publishers.say(plays("a", region="IN"))
    at_work.cycle()
    publishers.start_over()
    publishers.say(plays("z", region="DE", first=9))
    at_work.cycle()

    assert counts(read(server)) == [("z", 1)]
    assert read(server, region="IN").chart is None


def test_a_view_is_acknowledged_once_it_is_loaded(server: ViewsServer, views: Views) -> None:
    loaded: list[str] = []

    def load(_: Views, version: str) -> BatchView | None:
        loaded.append(version)
        view = BatchView(version=version, release=1, frontier=AT.replace(minute=0, second=0), log_id=None,
                         offsets={}, regions={})  # fmt: skip
        return None if version == "gone" else view

    Publishers(views).say(plays("a"))
    at_work = merging(server, views, load_view=load)
    views.client.set(BATCH_VIEW, "gone")
    at_work.cycle()
    assert views.client.get(MERGED_VIEW) is None
    views.client.set(BATCH_VIEW, "v1")
    at_work.cycle()
    at_work.cycle()

    assert views.client.get(MERGED_VIEW) == b"v1"
    assert loaded == ["gone", "v1"]


def test_loading_views_does_not_let_the_lease_run_out(server: ViewsServer, views: Views) -> None:
    left: list[int] = []

    def load(_: Views, version: str) -> BatchView | None:
        left.append(int(views.client.pttl(CHARTS_LEASE)))
        views.client.pexpire(CHARTS_LEASE, 100)  # as if this took nearly as long as the lease
        return None

    publishers = Publishers(views)
    publishers.say(plays("a"), view="v1")
    views.client.set(BATCH_VIEW, "v2")
    at_work = merging(server, views, load_view=load)
    views.client.pexpire(CHARTS_LEASE, 100)  # as if reading all lists did
    at_work.cycle()

    assert len(left) == 2
    assert min(left) > 1000


def test_a_merger_that_was_replaced_before_its_first_write_learns_it(server: ViewsServer, views: Views) -> None:
    Publishers(views).say(plays("a"))
    old = merging(server, views)
    views.client.delete(CHARTS_LEASE)
    merging(server, views)

    with pytest.raises(MergerReplacedError):
        old.cycle()

    assert views.client.get(CHARTS_LEASE) is not None


def test_a_list_whose_cut_hides_rows_is_asked_for_and_the_ask_is_taken_back(server: ViewsServer, views: Views) -> None:
    policy = SpeedPolicy(list_size=64)
    items = [f"i{n:04}" for n in range(500)]
    of = [[item for item in items if partition_of(item, 2) == number] for number in range(2)]
    publishers = Publishers(views, policy=policy)
    publishers.say(plays(*items, *of[0]))  # two plays of each in the first partition, of which it lists 64
    at_work = merging(server, views, list_size=64)
    at_work.cycle()
    everywhere = {f"{kind.value}|{region}": 128 for kind in LiveWindow for region in ("*", "IN")}
    assert [Publishing(views).read_asks(number) for number in range(2)] == [everywhere, {}]

    publishers.say(plays(*of[1][:110] * 3, first=1000))
    at_work.cycle()
    assert [Publishing(views).read_asks(number) for number in range(2)] == [{}, everywhere]


def test_it_goes_on_when_the_views_server_was_away_and_lost_everything(server: ViewsServer, views: Views) -> None:
    """It waits, says why, and serves what partitions say afterwards."""
    states: list[str] = []
    reports: list[CycleReport] = []
    stop = threading.Event()
    asked = job(server, say=lambda state, _: states.append(state), report=reports.append)
    Publishers(views).say(plays("a"))
    thread = threading.Thread(target=run, args=(asked, stop))
    thread.start()
    try:
        until(lambda: bool(reports), "a first cycle")
        server.kill()
        until(lambda: states[-1] == WAITING, "it notices")
        server.start()
        with connect(server.address) as again:
            Publishers(again).say(plays("b", "b", first=5))
            until(lambda: states[-1] == WORKING and read(server).chart is not None, "it works again")
            assert counts(read(server)) == [("b", 2)]
    finally:
        stop.set()
        thread.join(10)
    assert not thread.is_alive()


def until(holds: Callable[[], bool], what: str, seconds: float = 15) -> None:
    """Wait for a fact, and fail when it does not come."""
    waiter = threading.Event()
    for _ in range(int(seconds / 0.05)):
        if holds():
            return
        waiter.wait(0.05)
    pytest.fail(f"not within {seconds:g} s: {what}")
