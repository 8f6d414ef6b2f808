"""Boards of periods that ended over HTTP: from their archives, by the same questions, once these have all of them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from domain.boards.definitions import LIVE_WINDOW, Boards
from domain.clock import utc_now
from ingest.board_archiver import ArchiveRequest, archive
from tests.certified_lake import CertifiedLake
from tests.serving.api_server import until
from tests.serving.boards.board_api import TOML, BoardServing, board_api

pytestmark = pytest.mark.redis

DAY = datetime(2026, 3, 4, tzinfo=UTC)
BOARD = "daily:2026-03-04"
PLAYERS = [(f"p{number}", score, DAY + timedelta(hours=1)) for number, score in enumerate([9, 7, 7, 7, 5])]
GOLF = [(f"p{number}", score, DAY) for number, score in enumerate([1, 2])]
MANY = [(f"q{number:04}", 2000 - number, DAY) for number in range(1200)]


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoardServing]:
    with board_api(tmp_path_factory.mktemp("boards")) as found:
        yield found


@pytest.fixture(scope="module")
def lake(serving: BoardServing) -> CertifiedLake:
    """Some archived boards."""
    found = CertifiedLake(serving.lake)
    found.read_to(DAY + timedelta(days=30))
    boards = {("default", BOARD): PLAYERS, ("golf", "all_time"): GOLF, ("sums", "weekly:2026-W10"): MANY}
    found.certify(boards, now=DAY)
    archived(found.root)
    until(lambda: serving.call("GET", f"/boards/{BOARD}/top").json()["of"] == 5, "the archive is seen")
    return found


def archived(root: Path) -> None:
    archive(ArchiveRequest(lake_root=root, boards=Boards.parse(TOML), clock=lambda: DAY, code_version="1"))


def test_tops_places_ties_and_friends_are_those_of_the_archive(serving: BoardServing, lake: CertifiedLake) -> None:
    top = serving.get(f"/boards/{BOARD}/top?limit=2")
    rest = serving.get(f"/boards/{BOARD}/top?limit=9&cursor={top['cursor']}")
    assert [(row["rank"], row["player_id"], row["score"]) for row in (*top["entries"], *rest["entries"])] == [
        (rank, player, score) for rank, (player, score, _) in enumerate(PLAYERS, start=1)
    ]
    assert (rest["cursor"], top["entries"][0]["reached_at"]) == (None, "2026-03-04T01:00:00Z")
    assert top["archived"] == {"revision": 1, "archived_at": "2026-03-04T00:00:00Z", "places": 5}
    assert (top["as_of"], top["board"]) == ("2026-04-03T00:00:00Z", BOARD)

    found = serving.get(f"/boards/{BOARD}/players/p3?around=1&ties=competition")
    ranks = [row["rank"] for row in (*found["above"], found, *found["below"])]
    assert (ranks, found["of"]) == ([2, 2, 5], 5)
    assert serving.get(f"/boards/{BOARD}/players/p4?ties=dense")["rank"] == 3
    edge = serving.get(f"/boards/{BOARD}/players/p0?around=1")
    assert [row["player_id"] for row in edge["below"]] == ["p1", "p2"]
    for answer in (
        serving.get(f"/boards/{BOARD}/friends?ids=p4,nobody,p1"),
        serving.call("POST", f"/boards/{BOARD}/friends", {"ids": ["p4", "nobody", "p1"]}).json(),
    ):
        assert [(row["rank"], row["player_id"]) for row in answer["entries"]] == [(2, "p1"), (5, "p4")]


def test_the_best_thousand_are_kept_and_the_answer_says_so(serving: BoardServing, lake: CertifiedLake) -> None:
    path = "/v1/games/sums/boards/weekly:2026-W10"
    seen, cursor = 0, ""
    while cursor is not None:
        page = serving.get(f"{path}/top?limit=100" + (f"&cursor={cursor}" if cursor else ""))
        seen, cursor = seen + len(page["entries"]), page["cursor"]
    assert (seen, page["of"], page["archived"]["places"]) == (1000, 1200, 1000)
    assert serving.get(f"{path}/players/q0999")["rank"] == 1000
    refused = serving.call("GET", f"{path}/players/q1000")
    assert (refused.status_code, refused.json()["code"]) == (404, "not_ranked")
    assert "the best 1,000 of 1,200 players" in refused.json()["detail"]


def test_a_certificate_says_what_was_counted(serving: BoardServing, lake: CertifiedLake) -> None:
    found = serving.get("/v1/games/golf/boards/all_time/certificate")
    assert (found["players"], found["rebuild"], len(found["digest"])) == (2, 1, 16)
    missing = serving.call("GET", "/v1/games/golf/boards/season:none/certificate")
    assert (missing.status_code, missing.json()["code"]) == (404, "unknown_board")
    missing = serving.call("GET", "/v1/games/held/boards/all_time/certificate")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_certified")


def test_the_calendar_says_when_a_period_was_archived(serving: BoardServing, lake: CertifiedLake) -> None:
    periods = {(one["game"], one["board"]): one for one in serving.get("/v1/calendar")["periods"]}
    assert periods["default", BOARD] == {
        "game": "default", "board": BOARD, "start": "2026-03-04T00:00:00Z", "end": "2026-03-05T00:00:00Z",
        "grace_end": "2026-03-05T00:10:00Z", "archived_at": "2026-03-04T00:00:00Z",
    }  # fmt: skip
    assert periods["default", "all_time"]["archived_at"] is None


def test_a_period_that_scores_still_come_to_is_live_though_it_is_archived_already(
    serving: BoardServing, lake: CertifiedLake
) -> None:
    now = utc_now()
    yesterday = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)
    board = f"daily:{yesterday:%Y-%m-%d}"
    ended = max(yesterday, now - LIVE_WINDOW + timedelta(minutes=1))
    assert serving.post("late", 3, ended_at=ended.isoformat()).json()["status"] == "counted"
    lake.read_to(now)
    lake.certify({("default", board): [("other", 8, yesterday)], ("default", BOARD): PLAYERS[:2]})
    archived(lake.root)
    until(lambda: serving.get(f"/boards/{BOARD}/top")["archived"]["revision"] == 2, "another revision is seen")
    assert serving.ranks(f"/boards/{BOARD}/top") == [(1, "p0", 9), (2, "p1", 7)]
    assert [player for _, player, _ in serving.ranks(f"/boards/{board}/top")] == ["late"]


def test_a_lake_that_cannot_be_read_is_said_and_live_boards_go_on(serving: BoardServing, lake: CertifiedLake) -> None:
    commit = max((lake.root / "gold" / "board_archives" / "_delta_log").glob("*.json"))
    text = commit.read_text(encoding="utf-8")
    (commit.parent / f"{int(commit.stem) + 1:020d}.json").write_text("{", encoding="utf-8")
    until(lambda: serving.call("GET", f"/boards/{BOARD}/top").status_code == 503, "the damage is seen")
    assert serving.call("GET", f"/boards/{BOARD}/top").json()["code"] == "lake_unavailable"
    assert serving.call("GET", "/boards/all_time/top").status_code == 200
    (commit.parent / f"{int(commit.stem) + 1:020d}.json").unlink()
    assert commit.read_text(encoding="utf-8") == text
    until(lambda: serving.call("GET", f"/boards/{BOARD}/top").status_code == 200, "it is mended")
