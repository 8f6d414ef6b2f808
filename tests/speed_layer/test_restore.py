"""`lakeboard restore`: the views server lost everything, and afterwards the charts say what they would have said."""

import json
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from domain.batch_join import joined_tops
from domain.clock import utc_now
from domain.live_windows import LiveWindow
from domain.log import BEGINNING, Entry, Stream
from domain.merge import merged_top
from domain.policy import DEFAULT_POLICY
from domain.position import BronzePosition
from domain.windows import DAY, HOUR, floor_hour
from ingest.read_log_plays import log_positions
from ingest.redis_log import RedisLog
from lakeboard.commands.restore import restore_command
from lakeboard.live.decode import partition_numbers
from lakeboard.live.restoring import PIN, NothingToRestoreFromError, restore
from lakeboard.settings import Settings
from speed_layer.store.connection import Views
from speed_layer.store.keys import MERGED_VIEW
from speed_layer.store.lists import decode_list
from speed_layer.store.publishing import Publishing
from speed_layer.store.state import StateStore
from speed_layer.store.views import ViewStore
from tests.ingest.lake_writing import moved
from tests.lake_rows import WRITER
from tests.lakes import ModelLake, Play
from tests.log_entries import play
from tests.servers import LogServer
from tests.speed_layer.consuming import append, consume_once, fill, joined, published, require_as_straight

pytestmark = pytest.mark.redis


@pytest.fixture
def settings(server: LogServer, views: Views, tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, log_url=server.address, views_url=views.address)


def in_lake_only(server: LogServer, log: RedisLog, views: Views, folder: Path) -> dict[int, list[Entry]]:
    """Plays that were counted live, moved to the lake, and dropped by the log."""
    entries = fill(log)
    consume_once(server.address, views, folder)
    moved(server, folder)
    assert set(log.lengths(Stream.PLAYS).values()) == {0}
    return entries


def test_lost_views_are_rebuilt_from_the_lake_and_the_log(
    server: LogServer, log: RedisLog, views: Views, settings: Settings
) -> None:
    entries = in_lake_only(server, log, views, settings.home)
    later = fill(log, "f")
    later[0].append(append(log, 0, play("e0.0", "item0", region="IN"), play("e2.1", "item2", region="DE")))  # copies
    views.client.flushall()

    result = CliRunner().invoke(restore_command, ["--json"], obj=settings)

    said = json.loads(result.stdout)
    assert (said["partitions"], said["plays"], said["release"]) == (2, 123, None)
    assert "nothing has been counted" in said["without_release"]
    told = consume_once(server.address, views, settings.home)
    assert told.names.count("restored") == 2
    require_as_straight(views, joined(entries, later))
    assert [published(views, number)[0].complete_from_ms for number in (0, 1)] == [0, 0]


def test_without_it_they_say_that_plays_are_missing(
    server: LogServer, log: RedisLog, views: Views, settings: Settings
) -> None:
    in_lake_only(server, log, views, settings.home)
    fill(log, "f")
    views.client.flushall()

    consume_once(server.address, views, settings.home)

    assert min(published(views, number)[0].complete_from_ms for number in (0, 1)) > 0


def test_a_consumer_that_counts_is_refused_and_takes_the_rebuilt_state_up(
    server: LogServer, log: RedisLog, views: Views, settings: Settings
) -> None:
    entries = in_lake_only(server, log, views, settings.home)
    views.client.flushall()
    store = StateStore(views, lease_ms=60_000)
    held = store.acquire(0)
    assert held is not None

    restore(settings)

    assert store.acquire(0) is not None  # it was released
    views.client.delete("lb:speed:{0}:lease")
    consume_once(server.address, views, settings.home)
    require_as_straight(views, entries)


def test_what_the_consumer_must_read_still_is_not_dropped_for_ten_minutes(
    server: LogServer, log: RedisLog, views: Views, settings: Settings
) -> None:
    in_lake_only(server, log, views, settings.home)
    restore(settings)
    later = fill(log, "f")
    log.commit_offsets("speed_layer", {log.partitions(Stream.PLAYS)[n]: later[n][-1].id for n in later})
    moved(server, settings.home)

    assert PIN in log.readers()
    assert all(length >= 10 for length in log.lengths(Stream.PLAYS).values())
    assert log.offsets(PIN, Stream.PLAYS)[log.partitions(Stream.PLAYS)[0]] > BEGINNING


def test_a_log_of_which_the_lake_has_nothing_is_no_case_for_it(log: RedisLog, settings: Settings) -> None:
    fill(log)
    with pytest.raises(NothingToRestoreFromError, match="counts the whole log by itself"):
        restore(settings)
    assert PIN not in log.readers()


def test_the_day_joins_with_the_release_that_is_published_again(
    server: LogServer, log: RedisLog, views: Views, settings: Settings
) -> None:
    """Batch has the day before the frontier, the rebuilt state what came since, the log the rest."""
    truth = spread(log, "e")
    moved(server, settings.home)
    now = utc_now()
    frontier = floor_hour(now - DEFAULT_POLICY.grace)
    batch = [Play(f"b{n}", f"item{n % 3}", frontier - HOUR, "IN", count=100) for n in range(9)]
    batch += [Play("gone", "item5", frontier - DAY - HOUR, "IN", count=10**6)]
    release(settings.lake_root, batch, frontier, log.log_id)
    views.client.flushall()

    done = restore(settings)

    assert done.release == 1
    latest = utc_now() - timedelta(minutes=62 + 6 + 15)  # by the clock after it: a minute may pass meanwhile
    assert frontier - 2 * HOUR < done.since <= latest
    version = ViewStore(views).current()
    assert version is not None
    views.client.set(MERGED_VIEW, version)
    truth += spread(log, "f") + Counter({f"item{n}": 300 for n in range(3)})
    consume_once(server.address, views, settings.home)
    assert {published(views, number)[0].view for number in (0, 1)} == {version}
    assert day_chart(views, version) == truth


def spread(log: RedisLog, name: str) -> Counter[str]:
    """Plays of some items, each in the partition that it belongs to; return how many there are."""
    truth = Counter({f"item{number}": 2 * number + 1 for number in range(9)})
    for item, times in truth.items():
        (number,) = partition_numbers([item], 2)
        append(log, number, *(play(f"{name}.{item}.{n}", item) for n in range(times)))
    return truth


def release(lake_root: Path, plays: list[Play], frontier: datetime, log_id: str) -> None:
    """Release a lake that has the log, with these imported plays beside."""
    model = ModelLake()
    model.release(plays, frontier=frontier)
    _, positions = log_positions(lake_root, log_id)
    writers = {f"lake_writer/{log_id}/{number}": position for number, position in positions.items()}
    position = BronzePosition(0, len(plays), {WRITER: 1, **writers})
    model.releases[-1] = replace(model.releases[-1], position=position)
    model.write(lake_root)


def day_chart(views: Views, version: str) -> dict[str, int]:
    view = ViewStore(views).load(version)
    assert view is not None
    tops = {}
    for number in (0, 1):
        status, _ = published(views, number)
        body = Publishing(views).changed_since(number, -1).lists["1d|*"]
        assert body is not None
        tops[number] = decode_list(body, kind=LiveWindow.DAY, region="*").top()
    of_region = view.since("*", LiveWindow.DAY.at(status.as_of).start)
    chart = merged_top(joined_tops(tops, of_region, lambda items: partition_numbers(items, 2)), n=50)
    assert chart.exact
    return {row.item_id: row.lower for row in chart.rows}
