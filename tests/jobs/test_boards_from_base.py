"""Boards made of a certified base, of the lake beyond it and of the log: what they say is what all events say."""

import asyncio
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from threading import Event
from typing import NoReturn

import pytest
from pyspark.sql import SparkSession

from domain.board_tables import BOARD_ARCHIVES, BOARD_ENTRIES
from domain.boards.definitions import board_name
from domain.boards.events import EventKind
from domain.clock import utc_now
from domain.windows import EPOCH
from ingest.read_archives import archives
from ingest.read_board_entries import NotAsCertifiedError, certified_base
from ingest.read_certificates import certificates
from ingest.redis_log import RedisLog
from lakeboard.live.rebuilding import fill
from speed_layer.boards.consumer import run
from speed_layer.store.boards.generations import Generations
from speed_layer.store.boards.keys import of_generation, of_shard
from speed_layer.store.boards.writer import BoardWriter
from speed_layer.store.connection import Views, connect
from tests.board_lake import BOARDS
from tests.jobs.board_world import PARTITIONS, World, boards_of
from tests.servers import LogServer, log_server
from tests.speed_layer.boards.shard import event
from tests.views_server import ViewsServer, views_server

pytestmark = [pytest.mark.spark, pytest.mark.redis]

DAY_US = 86_400_000_000


@pytest.fixture
def log(tmp_path: Path) -> Iterator[LogServer]:
    with log_server(tmp_path / "log") as found:
        yield found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ViewsServer]:
    with views_server(tmp_path / "views") as found:
        yield found


def test_boards_of_base_lake_and_log_are_what_all_events_say_when_swapped_in_and_when_all_was_lost(
    spark: SparkSession, log: LogServer, server: ViewsServer, tmp_path: Path
) -> None:
    random = Random(11)
    world = World(log, server, tmp_path / "lake")
    for round_ in range(3):
        world.happen(random, 30)
        run(world.job(2), Event())
        world.take()
        if round_ < 2:  # the first rebuild, then one board alone
            world.recount(spark, only=None if round_ == 0 else ("sum", "all_time"))
        world.happen(random, 10)
        world.take()
        world.lake.write()  # the lake has more than is certified
        world.happen(random, 10)  # and the log more than the lake
        world.take()
        made = world.swap_in(2)
        boards = world.require_same(2)
        with connect(server.address) as views:
            assert {shard: Generations(views, shard).live() for shard in made} == made
            assert all(not Generations(views, shard).others() for shard in made)
    assert sum(map(len, boards.values())) > 100
    for shards in (8, 1):
        with connect(server.address) as views:
            views.client.flushall()
        run(world.job(shards), Event())
        assert world.require_same(shards) == boards
    require_bases(server, boards)


def require_bases(server: ViewsServer, boards: Mapping[str, Sequence[bytes]]) -> None:
    """Most players are on bases: the boards above were not only replayed."""
    with connect(server.address) as views:
        live = Generations(views, 0).live()
        assert live is not None
        pointers = views.client.hgetall(of_generation(0, live, "boards"))
        players = sum(int(text.split()[5]) for text in pointers.values())
    assert players > sum(map(len, boards.values())) / 2


def test_a_rebuild_that_was_killed_leaves_the_live_boards_and_the_next_one_drops_what_it_left(
    spark: SparkSession, log: LogServer, server: ViewsServer, tmp_path: Path
) -> None:
    world = World(log, server, tmp_path / "lake")
    world.happen(Random(12), 30)
    run(world.job(1), Event())
    world.take()
    world.recount(spark)
    base = certified_base(world.lake.root, BOARDS, utc_now())
    assert base is not None
    with RedisLog.open(log.address, partitions=PARTITIONS) as opened, connect(server.address) as views:
        before = Generations(views, 0).live()
        killed = replace(world.job(1), history=raising)
        with pytest.raises(KeyboardInterrupt):
            fill(killed, opened, views)
        left = Generations(views, 0).others()
        run(world.job(1), Event())
        assert (Generations(views, 0).live(), Generations(views, 0).next(), len(left)) == (before, None, 1)
        made = world.swap_in(1)
        assert Generations(views, 0).live() == made[0] != before
        assert Generations(views, 0).others() == set()
    world.require_same(1)


def raising(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def test_a_ban_between_the_rebuild_s_pin_and_its_swap_holds_and_repeats_across_it_count_once(
    spark: SparkSession, log: LogServer, server: ViewsServer, tmp_path: Path
) -> None:
    world = World(log, server, tmp_path / "lake")
    with RedisLog.open(log.address, partitions=PARTITIONS) as opened:
        scores = [event(player=p, game="sum", match_id="1", score=s, fingerprint=s) for p, s in (("a", 5), ("b", 3))]
        world.append(opened, scores)
        run(world.job(1), Event())
        world.take()
        world.recount(spark)
        with connect(server.address) as views:
            fill(world.job(1), opened, views)
            world.append(opened, [event(kind=EventKind.BAN, player="a", game="", match_id="")])
            world.append(opened, scores)  # the same again
            world.append(opened, [event(player="b", game="sum", match_id="1", score=9, fingerprint=9)])  # a conflict
            run(world.job(1), Event())
            live = Generations(views, 0).live()
            assert live is not None
            assert BoardWriter(views, 0, live).bans().keys() == {"a"}
        found = asyncio.run(boards_of(server.address, ["sum|all_time"], 1))["sum|all_time"]
        assert [one[16:] for one in found] == [b"b"]
        world.append(opened, [event(kind=EventKind.RESTORE, player="a", game="", match_id="")])
        run(world.job(1), Event())
        world.take()
    boards = world.require_same(1)
    assert [one[16:] for one in boards["sum|all_time"]] == [b"a", b"b"]
    assert [2**63 - 1 - int.from_bytes(one[:8]) for one in boards["sum|all_time"]] == [5, 3]


def test_boards_that_nobody_can_change_any_more_are_not_filled_in(
    spark: SparkSession, log: LogServer, server: ViewsServer, tmp_path: Path
) -> None:
    world = World(log, server, tmp_path / "lake")
    with RedisLog.open(log.address, partitions=PARTITIONS) as opened:
        old_us = int(opened.now().timestamp() * 1_000_000) - 40 * DAY_US
        world.append(opened, [event(player="a", game="sum", match_id="1", score=5, ended_us=old_us)])
    run(world.job(1), Event())
    world.take()
    world.recount(spark)
    world.swap_in(1)
    ended = [period for period in BOARDS.games["sum"].periods_at(EPOCH + timedelta(microseconds=old_us)) if period.end]
    with connect(server.address) as views:
        assert boards_with_players(views) == {"sum|all_time"}
    assert len(certificates(world.lake.root)) == 5  # all together, and four of the game
    assert {name: one.players for name, one in archives(world.lake.root).items()} == dict.fromkeys(
        (board_name("sum", period.key) for period in ended), 1
    )
    old = utc_now() - timedelta(days=40)
    base = certified_base(world.lake.root, BOARDS, old)
    assert base is not None
    assert len(base.boards) == 4
    shutil.rmtree(world.lake.root / BOARD_ARCHIVES.name)  # what is archived nowhere stays live
    base = certified_base(world.lake.root, BOARDS, utc_now())
    assert base is not None
    assert len(base.boards) == 4


def boards_with_players(views: Views) -> set[str]:
    live = Generations(views, 0).live()
    assert live is not None
    return {name.decode() for name in views.client.hgetall(of_generation(0, live, "boards"))}  # type: ignore[union-attr]  # bytes


def test_entries_that_are_not_as_certified_are_not_loaded(
    spark: SparkSession, log: LogServer, server: ViewsServer, tmp_path: Path
) -> None:
    world = World(log, server, tmp_path / "lake")
    world.happen(Random(13), 20)
    run(world.job(1), Event())
    world.take()
    world.recount(spark)
    base = certified_base(world.lake.root, BOARDS, utc_now())
    assert base is not None
    (one,) = [board for board in base.boards if board.name == "high|all_time"]
    assert one.players
    for other in (replace(one, digest="0" * 16), replace(one, players=one.players + 1)):
        lies = replace(base, boards=[other])
        with RedisLog.open(log.address, partitions=PARTITIONS) as opened, connect(server.address) as views:
            with pytest.raises(NotAsCertifiedError, match=f"{BOARD_ENTRIES.name} has other players of high.all_time"):
                fill(world.job(1, lies), opened, views)
            assert views.client.get(of_shard(0, "next")) is None
