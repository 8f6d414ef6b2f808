"""The best of a board as server-sent events."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from domain.boards.definitions import Boards
from serving.auth import KeyRing
from serving.boards.archived import BoardsOfLake
from serving.boards.live import best_now
from serving.boards.reads import BoardReads
from serving.boards.view import BoardViews
from serving.readers import Readers
from serving.settings import ApiSettings
from speed_layer.store.boards.reader import BoardsReader
from tests.serving.api_server import until
from tests.serving.boards.board_api import TOML, BoardServing, board_api
from tests.serving.streams import Stream

pytestmark = pytest.mark.redis


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoardServing]:
    with board_api(tmp_path_factory.mktemp("boards"), heartbeat_seconds=0.5, viewers=3) as found:
        yield found


def watch(serving: BoardServing, path: str, **headers: str) -> Stream:
    return Stream(serving.api, serving.key, path, **headers)


def test_a_viewer_gets_the_best_whenever_they_change_and_nothing_for_those_further_down(serving: BoardServing) -> None:
    for number in range(11):
        assert serving.post(f"p{number:02}", 100 - number).status_code == 200
    with watch(serving, "/boards/all_time/live") as stream:
        until(lambda: len(stream.events) == 1, "the present best")
        assert serving.post("further-down", 1).status_code == 200
        comments = stream.comments
        until(lambda: stream.comments > comments + 1, "signs of life since")
        assert len(stream.events) == 1
        assert serving.post("p05", 1000).status_code == 200
        until(lambda: len(stream.events) == 2, "the change", 2)
        assert stream.events[0]["event"] == "board"
        first, second = ([row["player_id"] for row in stream.data(at)["entries"]] for at in (0, 1))
        seen = stream.events[-1]["id"]
    with watch(serving, "/v1/games/default/boards/all_time/live", Last_Event_ID=seen) as again:
        until(lambda: again.comments > 0, "it is open")
        assert again.events == []
        assert serving.post("p06", 999).status_code == 200
        until(lambda: len(again.events) == 1, "only what is new")

    assert first == [f"p{number:02}" for number in range(10)]
    assert second == ["p05", *(f"p{number:02}" for number in (0, 1, 2, 3, 4, 6, 7, 8, 9))]


def test_the_board_of_a_day_turns_to_the_next_one_at_midnight(serving: BoardServing, tmp_path: Path) -> None:
    boards = Boards.parse(TOML)
    settings = ApiSettings(home=tmp_path, run=tmp_path, log_url="")
    midnight = datetime(2026, 3, 5, tzinfo=UTC)
    now = midnight - timedelta(microseconds=1)

    async def looks() -> list[tuple[str, str]]:
        nonlocal now
        reader, lake = BoardsReader(serving.server.address), BoardsOfLake(None, boards)
        views, readers = BoardViews(reader, shards=1), Readers(settings, ring=KeyRing(tmp_path))
        reads = BoardReads(settings, boards=boards, views=views, lake=lake, readers=readers, clock=lambda: now)
        found = []
        for moment in (now, now, midnight):
            now = moment
            tag, body = await best_now(reads, boards.games["default"], "daily")
            found.append((tag, json.loads(body)["board"]))
        await reader.close()
        lake.close()
        readers.close()
        return found

    before, again, after = asyncio.run(looks())
    assert (before[1], after[1]) == ("daily:2026-03-04", "daily:2026-03-05")
    assert before == again
    assert before[0] != after[0]


def test_what_cannot_be_watched_is_refused_by_its_code(serving: BoardServing) -> None:
    paths = ("/boards/hourly/live", "/v1/games/none/boards/daily/live", "/boards/daily/live?limit=5")
    answers = [serving.call("GET", path) for path in paths]
    wrong = serving.call("POST", "/boards/daily/live")
    with ExitStack() as open_:
        streams = [open_.enter_context(watch(serving, "/boards/daily/live")) for _ in range(3)]
        until(lambda: all(stream.status == 200 for stream in streams), "three viewers")
        full = serving.call("GET", "/boards/daily/live")

    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [
        (404, "unknown_board"),
        (404, "unknown_game"),
        (400, "unknown_parameter"),
    ]
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET")
    assert (full.status_code, full.json()["code"]) == (503, "too_many_viewers")


def test_viewers_hear_that_the_best_are_stale_and_that_they_are_back(tmp_path: Path) -> None:
    with board_api(tmp_path, heartbeat_seconds=0.2) as own:
        assert own.post("a", 5).status_code == 200
        with watch(own, "/boards/all_time/live") as stream:
            until(lambda: len(stream.events) == 1, "the present best")
            own.server.kill()
            until(lambda: stream.data().get("stale") is True, "they are stale")
            own.server.start()
            until(lambda: "stale" not in stream.data(), "they are back", 30)
            assert [row["player_id"] for row in stream.data()["entries"]] == ["a"]
            assert stream.status == 200
