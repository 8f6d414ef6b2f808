"""Boards counted by Spark against all events counted one by one, their certificates, and what is refused."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from struct import pack

import pytest
import xxhash
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from domain.board_tables import BOARD_ENTRIES
from domain.boards.certificates import WHOLE, BoardShrankError, Certificate, Certified
from domain.boards.definitions import Boards, board_name
from domain.boards.entries import ZEROS_ALONE
from domain.boards.events import EventKind
from domain.boards.sort_key import KEY_BYTES, Mode, member, sort_key
from domain.windows import EPOCH
from ingest.read_certificates import certificates
from jobs.rebuild_boards import NoScoresError, RebuildRequest, run
from tests.board_lake import BOARDS, HOUR_US, LOGS, BoardLake
from tests.speed_layer.boards.shard import US, event

pytestmark = pytest.mark.spark

NOW = datetime(2026, 12, 1, tzinfo=UTC)
Rows = Mapping[str, Sequence[Mapping[str, object]]]


def request(lake: BoardLake, **other: object) -> RebuildRequest:
    usual = {"lake_root": lake.root, "boards": BOARDS, "clock": lambda: NOW, "code_version": "1", "log_id": LOGS[-1]}
    return RebuildRequest(**usual | other)  # type: ignore[arg-type]  # of many kinds


def rows(lake: BoardLake, version: int | None = None) -> Rows:
    found: dict[str, list[Mapping[str, object]]] = {}
    for row in DeltaTable(lake.root / BOARD_ENTRIES.name, version=version).to_pyarrow_table().to_pylist():
        found.setdefault(board_name(row["game"], row["board"]), []).append(row)
    return found


def entry_of(row: Mapping[str, object], mode: Mode) -> bytes:
    key = sort_key(mode, int(str(row["score"])), (row["reached_at"] - EPOCH) // US)  # type: ignore[operator]  # a datetime
    return key + (ZEROS_ALONE if row["zeros_alone"] else b"")


def require_model(lake: BoardLake, found: Rows, boards: Boards = BOARDS) -> None:
    """Each player with the right entry, the right rank, or none where banned."""
    for banned in (False, True):
        expected = lake.entries(banned=banned, boards=boards)
        got = {
            board: {str(row["player_id"]): entry_of(row, boards.games[board.split("|")[0]].mode) for row in some}
            for board, some in (
                (board, [row for row in some if (row["rank"] is None) is banned]) for board, some in found.items()
            )
            if some
        }
        assert got == expected
    for board, in_order in lake.members(boards).items():
        mode = boards.games[board.split("|")[0]].mode
        ranked = sorted((row for row in found[board] if row["rank"]), key=lambda row: int(str(row["rank"])))
        assert [row["rank"] for row in ranked] == list(range(1, len(in_order) + 1))
        assert [member(entry_of(row, mode)[:KEY_BYTES], str(row["player_id"])) for row in ranked] == in_order


def digest(in_order: Sequence[bytes]) -> str:
    """The digest of a board, said again in Python."""
    found = 0
    for rank, one in enumerate(in_order, start=1):
        found ^= xxhash.xxh64_intdigest(pack("<q", rank), seed=xxhash.xxh64_intdigest(one, seed=42))
    return f"{found:016x}"


@pytest.fixture
def lake(tmp_path: Path) -> BoardLake:
    return BoardLake(tmp_path / "lake")


def test_every_entry_and_rank_is_what_all_events_say_whatever_came_in_which_order(
    spark: SparkSession, lake: BoardLake
) -> None:
    random = Random(3)
    lake.happen(random, 120, LOGS[0])
    lake.happen(random, 120)
    version = lake.write()
    made = run(spark, request(lake))

    require_model(lake, rows(lake))
    members = lake.members()
    assert {one.name: one.digest for one in made[1:] if one.players} == {b: digest(m) for b, m in members.items()}
    assert {one.name: one.players for one in made[1:] if one.players} == {b: len(m) for b, m in members.items()}
    assert sum(one.banned for one in made[1:]) == sum(map(len, lake.entries(banned=True).values())) == made[0].banned
    assert made[0].name == board_name(WHOLE, WHOLE)
    assert {one.scores_version for one in made} == {version}
    assert certificates(lake.root) == list(made)
    assert len(members) > 20


def test_many_tasks_and_few_make_the_same_boards(spark: SparkSession, lake: BoardLake) -> None:
    lake.happen(Random(4), 150)
    lake.write()
    few = run(spark, request(lake))
    quick = spark.conf.get("spark.sql.shuffle.partitions")
    try:
        spark.conf.set("spark.sql.shuffle.partitions", "7")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("jobs.pace.FEW_ROWS", 0)
            many = run(spark, request(lake))
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", quick or "2")

    assert [one.digest for one in many] == [one.digest for one in few]
    require_model(lake, rows(lake))


def test_removing_a_match_and_a_late_one_move_the_sum_and_who_leads(spark: SparkSession, lake: BoardLake) -> None:
    def plus(player: str, match: str, minutes: int, score: int) -> None:
        lake.add(
            [
                event(
                    player=player,
                    game="sum",
                    match_id=match,
                    score=score,
                    ended_us=lake.now_us + minutes * HOUR_US // 60,
                )
            ]
        )

    plus("A", "1", 0, 5)
    plus("A", "2", 5, 5)
    plus("B", "1", 3, 10)
    lake.write()
    run(spark, request(lake))
    assert leaders(lake) == [("B", 10), ("A", 10)]
    lake.now_us += HOUR_US
    lake.add([event(EventKind.REMOVE, "A", game="sum", match_id="1")])
    lake.write()
    run(spark, request(lake))
    assert leaders(lake) == [("B", 10), ("A", 5)]
    lake.add([event(player="A", game="sum", match_id="3", score=10, ended_us=lake.now_us - 2 * HOUR_US)])
    lake.write()
    run(spark, request(lake))
    assert leaders(lake) == [("A", 15), ("B", 10)]


def leaders(lake: BoardLake) -> list[tuple[str, int]]:
    some = sorted(rows(lake)["sum|all_time"], key=lambda row: int(str(row["rank"])))
    return [(str(row["player_id"]), int(str(row["score"]))) for row in some]


def test_one_board_is_rebuilt_alone_and_others_stay_as_they_were_certified(
    spark: SparkSession, lake: BoardLake
) -> None:
    lake.happen(Random(5), 60)
    lake.write()
    whole = run(spark, request(lake))[0]
    before = dict(rows(lake))
    lake.happen(Random(6), 60)
    lake.write()
    (one,) = run(spark, request(lake, only=("sum", "all_time")))
    found = Certified.newest(certificates(lake.root))

    assert found is not None
    assert (one.name, one.rebuild, one.digest) == ("sum|all_time", 2, digest(lake.members()["sum|all_time"]))
    after = dict(rows(lake))
    assert sorted_rows(after.pop("sum|all_time")) != sorted_rows(before.pop("sum|all_time"))
    assert {board: sorted_rows(some) for board, some in after.items()} == {
        board: sorted_rows(some) for board, some in before.items()
    }
    source, newest = next((source, at) for source, at in one.positions.items() if at > whole.positions.get(source, -1))
    assert found.has("sum|all_time", source, newest)
    assert not found.has("high|all_time", source, newest)
    assert found.positions() == whole.positions


def sorted_rows(some: Sequence[Mapping[str, object]]) -> list[str]:
    return sorted(map(str, some))


def test_boards_that_lose_players_and_lakes_without_scores_are_refused(spark: SparkSession, lake: BoardLake) -> None:
    with pytest.raises(NoScoresError, match="no scores yet"):
        run(spark, request(lake))
    for number in range(40):
        lake.add([event(player=f"p{number}", game="sum", match_id="m", score=number)])
    lake.write()
    run(spark, request(lake))
    for number in range(3):
        lake.add([event(EventKind.REMOVE, f"p{number}", game="sum", match_id="m")])
    lake.write()
    with pytest.raises(BoardShrankError, match="would have 37 players instead of 40"):
        run(spark, request(lake))
    assert {one.rebuild for one in certificates(lake.root)} == {1}
    assert len(rows(lake)["sum|all_time"]) == 40
    nobody = Boards({})
    with pytest.raises(BoardShrankError, match="would have 0 players instead of 40"):
        run(spark, request(lake, boards=nobody))
    forced = run(spark, request(lake, force=True))

    assert [one.players for one in forced if one.name == "sum|all_time"] == [37]


def test_a_board_that_nobody_is_on_any_more_is_certified_as_empty(spark: SparkSession, lake: BoardLake) -> None:
    lake.add([event(player="p", game="sum", match_id="m", score=1)])
    lake.write()
    run(spark, request(lake))
    lake.add([event(EventKind.REMOVE, "p", game="sum", match_id="m")])
    lake.write()
    made: Sequence[Certificate] = run(spark, request(lake, force=True))

    assert [(one.name, one.players) for one in made] == [("*|*", 0)]
    assert rows(lake) == {}
