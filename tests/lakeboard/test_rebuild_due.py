"""When boards are to be rebuilt: once a day, when the lake has all of it, and when a board has grown by much."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from domain.boards.compaction import FEW, MOST_WITHOUT_BASE, last_turn, needs_compaction
from domain.boards.definitions import Boards, Game
from lakeboard.rebuild_due import rebuild_due
from lakeboard.settings import Settings
from speed_layer.store.boards.generations import Generations
from speed_layer.store.boards.keys import of_generation
from speed_layer.store.connection import connect
from tests.board_lake import BoardLake
from tests.certified_lake import LOG, CertifiedLake
from tests.speed_layer.boards.shard import event
from tests.views_server import ViewsServer, views_server

MIDNIGHT = datetime(2026, 11, 15, tzinfo=UTC)
GRACE = timedelta(minutes=10)
SECOND = timedelta(seconds=1)


@pytest.mark.fast
def test_a_day_is_over_when_every_partition_was_read_up_to_the_longest_grace_after_it() -> None:
    boards = Boards({"a": Game(name="a"), "b": Game(name="b", grace=timedelta(hours=2))})
    late, early = MIDNIGHT + timedelta(hours=2), MIDNIGHT + timedelta(hours=2) - SECOND

    assert last_turn([], boards) is None
    assert last_turn([late, late], boards) == MIDNIGHT
    assert last_turn([late, early], boards) == MIDNIGHT - timedelta(days=1)
    assert last_turn([MIDNIGHT - timedelta(days=400)], Boards({})) == MIDNIGHT - timedelta(days=400)


@pytest.mark.fast
def test_a_board_is_compacted_when_a_tenth_of_it_changed_or_when_it_is_large_without_a_base() -> None:
    assert not needs_compaction(0, MOST_WITHOUT_BASE)
    assert needs_compaction(0, MOST_WITHOUT_BASE + 1)
    assert not needs_compaction(10, FEW)
    assert needs_compaction(10, FEW + 1)
    assert not needs_compaction(20 * FEW, 2 * FEW)
    assert needs_compaction(20 * FEW, 2 * FEW + 1)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ViewsServer]:
    with views_server(tmp_path / "views") as found:
        yield found


def settings_of(folder: Path, server: ViewsServer) -> Settings:
    return Settings.load({"LAKEBOARD_HOME": str(folder), "LAKEBOARD_VIEWS_URL": server.address})


@pytest.mark.redis
def test_it_is_due_once_after_each_midnight_that_the_lake_has_and_never_without_scores(
    tmp_path: Path, server: ViewsServer
) -> None:
    silent = settings_of(tmp_path / "silent", server)
    assert rebuild_due(silent) == ""
    CertifiedLake(silent.lake_root).read_to(MIDNIGHT + GRACE)
    assert rebuild_due(silent) == ""  # there was never a score
    settings = settings_of(tmp_path, server)
    certified = CertifiedLake(settings.lake_root)
    lake = BoardLake(settings.lake_root)
    lake.now_us = int((MIDNIGHT - SECOND).timestamp()) * 1_000_000
    lake.add([event(player="a", match_id="1", score=1)], LOG)
    lake.write()
    assert rebuild_due(settings) == ""
    for days in range(3):
        turn = MIDNIGHT + timedelta(days=days)
        certified.read_to(turn + GRACE - SECOND)
        assert rebuild_due(settings) == ""
        certified.read_to(turn + GRACE)
        assert rebuild_due(settings) == f"the day before {turn:%Y-%m-%d} is over"
        certified.certify({("default", "all_time"): [("a", 1, MIDNIGHT)]})
        assert rebuild_due(settings) == ""


@pytest.mark.redis
def test_a_board_that_has_grown_makes_it_due_over_all_its_shards(tmp_path: Path, server: ViewsServer) -> None:
    settings = settings_of(tmp_path, server)
    with connect(server.address) as views:
        for shard, players in enumerate((60_000, 40_000)):
            generation = Generations(views, shard).make()
            Generations(views, shard).put_live(generation)
            views.client.hset(of_generation(shard, generation, "boards"), "default|all_time", "7 64 8 1 512 500")
            views.client.hset(of_generation(shard, generation, "boards"), "default|daily:2026-11-14", "0 64 0 0 0 0")
            key = of_generation(shard, generation, "default|all_time:7:over")
            views.client.zadd(key, {f"{n:08}": 0 for n in range(players)})
        assert rebuild_due(settings) == ""
        views.client.zadd(key, {"one more": 0})
    assert rebuild_due(settings) == "default|all_time has 100,001 players that changed"
