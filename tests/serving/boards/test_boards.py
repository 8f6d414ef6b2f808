"""Boards over HTTP: scores with ranks in the answer, tops, places, friends, bans, what is refused."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from domain.boards.sort_key import SCORE_BYTES
from domain.clock import utc_now
from domain.periods import PeriodKind, period_at
from serving.keys import KeyFile, Limits, Role
from tests.serving.api_server import until
from tests.serving.boards.board_api import BoardServing, board_api

pytestmark = pytest.mark.redis


GOOD = {"player_id": "a", "score": 1, "match_id": "m"}


@pytest.fixture(scope="module", params=[1, 8], ids=["one shard", "eight shards"])
def serving(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[BoardServing]:
    with board_api(tmp_path_factory.mktemp("boards"), shards=request.param) as found:
        yield found


def iso(ago: timedelta) -> str:
    return (utc_now() - ago).isoformat()


def test_a_score_is_ranked_in_its_answer_in_every_period_and_again_the_same(serving: BoardServing) -> None:
    first = serving.post("one/ä", 42, match="m1")
    again = serving.post("one/ä", 42, match="m1")
    other = serving.post("one/ä", 43, match="m1")
    better = serving.post("one/ä", 44, match="m2").json()

    names = {"all_time", "daily", "weekly", "monthly"}
    assert (first.status_code, first.json()["best"]) == (200, dict.fromkeys(names, 42))
    assert first.json()["rank"].keys() == names
    assert (again.status_code, again.json()["best"], again.json()["rank"]) == (
        200, first.json()["best"], first.json()["rank"],
    )  # fmt: skip
    assert (other.status_code, other.json()["code"]) == (409, "match_conflict")
    assert better["best"]["weekly"] == 44
    assert better["moved"]["weekly"] == first.json()["rank"]["weekly"] - better["rank"]["weekly"]


def test_tops_pages_places_and_friends_agree(serving: BoardServing) -> None:
    rows = [{"match_id": "x", "player_id": f"p{n:02}", "delta": n // 2, "game": "sums"} for n in range(25)]
    answer = serving.call("POST", "/scores", rows)
    assert (answer.status_code, {one["status"] for one in answer.json()["results"]}) == (200, {"counted"})

    path = "/v1/games/sums/boards/weekly/top?limit=7"
    paged: list[tuple[int, str, int]] = []
    cursor = ""
    while cursor is not None:
        page = serving.get(path + (f"&cursor={cursor}" if cursor else ""))
        assert page["of"] == 25
        paged += [(row["rank"], row["player_id"], row["score"]) for row in page["entries"]]
        cursor = page["cursor"]
    assert [rank for rank, _, _ in paged] == list(range(1, 26))
    assert {player for _, player, _ in paged} == {f"p{n:02}" for n in range(25)}
    assert [score for _, _, score in paged] == sorted((n // 2 for n in range(25)), reverse=True)

    for rank, player, score in paged:
        found = serving.get(f"/v1/games/sums/boards/weekly/players/{player}?around=3")
        assert (found["rank"], found["score"]) == (rank, score)
        around = [(row["rank"], row["player_id"], row["score"]) for row in (*found["above"], found, *found["below"])]
        start = min(max(0, rank - 4), 25 - 7)
        assert around == paged[start : start + 7]
    friends = serving.get("/v1/games/sums/boards/weekly/friends?ids=p03,nobody,p24,p03")["entries"]
    assert [(row["rank"], row["player_id"], row["score"]) for row in friends] == [
        row for row in paged if row[1] in ("p03", "p24")
    ]
    posted = serving.call("POST", "/v1/games/sums/boards/weekly/friends", {"ids": ["p03", "nobody", "p24", "p03"]})
    assert posted.json()["entries"] == friends
    assert serving.get("/v1/games/sums/rank/p24?around=0")["rank"] == 1 + [p for _, p, _ in paged].index("p24")
    assert serving.ranks("/v1/games/sums/top?n=3") == paged[:3]


def test_lowest_wins_and_ties_are_numbered_as_asked(serving: BoardServing) -> None:
    for player, score in (("a", 5), ("b", 7), ("c", 7), ("d", 9)):
        assert serving.post(player, score, game="golf").status_code == 200

    def ranks(ties: str) -> list[int]:
        found = serving.get(f"/v1/games/golf/boards/all_time/players/b?around=3&ties={ties}")
        return [row["rank"] for row in (*found["above"], found, *found["below"])]

    assert [ranks(ties) for ties in ("ordinal", "competition", "dense")] == [[1, 2, 3, 4], [1, 2, 2, 4], [1, 2, 2, 3]]
    assert SCORE_BYTES == 8


def test_large_scores_keep_every_digit_and_may_be_sent_as_texts(serving: BoardServing) -> None:
    for player, score in (("big", 9007199254740993), ("less", "9007199254740992"), ("most", 2**62)):
        row = {"match_id": "large", "player_id": player, "score": score}
        assert serving.call("POST", "/v1/scores", row).status_code == 200

    ranks = {player: place for place, player, _ in serving.ranks("/boards/all_time/top?limit=10")}
    assert ranks["most"] < ranks["big"] < ranks["less"]
    assert serving.get("/boards/all_time/players/big")["score"] == 9007199254740993


def test_the_end_of_the_match_decides_the_day_and_who_was_first(serving: BoardServing) -> None:
    day = period_at(PeriodKind.DAILY, utc_now())
    assert day.start is not None
    before = day.start - timedelta(microseconds=1)
    if utc_now() - before < timedelta(hours=24):
        answer = serving.post("yesterday", 7, ended_at=before.isoformat()).json()
        yesterday = period_at(PeriodKind.DAILY, before)
        assert answer["rank"]["daily"] >= 1
        assert serving.get(f"/boards/{yesterday.key}/players/yesterday")["score"] == 7
        assert serving.call("GET", "/boards/daily/players/yesterday").json()["code"] == "not_ranked"
        assert serving.get(f"/boards/daily/top?period={yesterday.key[6:]}")["board"] == yesterday.key
    serving.post("late", 1000, match="1", ended_at=iso(timedelta(minutes=1)))
    serving.post("early", 1000, match="2", ended_at=iso(timedelta(minutes=9)))
    assert (
        serving.get("/boards/all_time/players/early")["rank"] + 1
        == serving.get("/boards/all_time/players/late")["rank"]
    )


def test_what_ended_long_ago_is_pending_and_what_is_too_good_is_held_until_approved(serving: BoardServing) -> None:
    old = serving.post("old", 5, ended_at=iso(timedelta(hours=25)))
    held = serving.post("good", 101, game="held")
    assert (old.status_code, old.json()) == (202, {"status": "pending"})
    assert (held.status_code, held.json()) == (202, {"status": "held"})
    assert serving.call("GET", "/v1/games/held/rank/good").json()["code"] == "not_ranked"

    approved = serving.call("POST", "/v1/games/held/matches/good-101/players/good/approve")
    assert approved.status_code == 200
    assert serving.get("/v1/games/held/rank/good")["rank"] == 1
    assert serving.post("good", 101, game="held").json()["best"] == {"all_time": 101}


def test_a_ban_hides_at_once_and_its_end_gives_the_place_back(serving: BoardServing) -> None:
    for player, score in (("cheat", 2_000_000), ("fair", 1_900_000)):
        serving.post(player, score)
    before = serving.get("/boards/daily/players/fair")["rank"]
    banned = serving.call("PUT", "/v1/players/cheat/ban", {"reason": "a bot"})
    hidden = serving.call("GET", "/boards/daily/players/cheat")
    moved_up = serving.get("/boards/daily/players/fair")["rank"]
    better = serving.post("cheat", 3_000_000)
    serving.call("DELETE", "/v1/players/cheat/ban")

    assert (banned.status_code, hidden.status_code, moved_up) == (200, 404, before - 1)
    assert (better.status_code, better.json().get("rank", {})) == (200, {})
    assert serving.get("/boards/daily/players/cheat")["score"] == 3_000_000
    assert serving.get("/boards/daily/players/fair")["rank"] == before


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/scores", {"player_id": "a", "score": 1}, 400, "idempotency_required"),
        ("/scores", {"player_id": "a", "score": 1, "match_id": "m", "game": "none"}, 404, "unknown_game"),
        ("/scores", {"player_id": "", "score": 1, "match_id": "m"}, 422, "player_invalid"),
        ("/scores", {"player_id": "a\n", "score": 1, "match_id": "m"}, 422, "player_invalid"),
        ("/scores", {"player_id": "a", "score": 1, "match_id": "m" * 257}, 422, "match_invalid"),
        ("/scores", {"player_id": "a", "score": 1.5, "match_id": "m"}, 422, "score_invalid"),
        ("/scores", {"player_id": "a", "score": True, "match_id": "m"}, 422, "score_invalid"),
        ("/scores", {"player_id": "a", "score": 2**62 + 1, "match_id": "m"}, 422, "score_invalid"),
        ("/scores", {"player_id": "a", "delta": 1, "match_id": "m"}, 422, "score_invalid"),
        ("/v1/games/sums/scores", {"player_id": "a", "delta": 2**40 + 1, "match_id": "m"}, 422, "delta_invalid"),
        ("/v1/games/sums/scores", {"player_id": "a", "score": 1, "match_id": "m"}, 422, "delta_invalid"),
        ("/v1/games/none/scores", {"player_id": "a", "delta": 1, "match_id": "m"}, 404, "unknown_game"),
        ("/scores", GOOD | {"ended_at": "2999-01-01T00:00Z"}, 422, "in_the_future"),
        ("/scores", GOOD | {"ended_at": "2026-01-01T00:00"}, 422, "time_zone_missing"),
        ("/scores", GOOD | {"ended_at": 5}, 422, "time_invalid"),
        ("/scores", {"player_id": "a", "score": 1, "match_id": "m", "extra": 5}, 400, "unknown_field"),
        ("/scores", [], 400, "empty"),
        ("/scores", "text", 422, "unreadable_row"),
        ("/scores", [{"player_id": "a"}] * 1001, 413, "too_many_rows"),
        ("/scores", [{"player_id": "a"}], 422, "no_good_row"),
    ],
)  # fmt: skip
def test_what_is_no_score_is_refused_by_its_code(
    serving: BoardServing, path: str, body: Any, status: int, code: str
) -> None:
    answer = serving.call("POST", path, body)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/boards/hourly/top", 404, "unknown_board"),
        ("/boards/daily:2026-02-30/top", 404, "unknown_board"),
        ("/v1/games/golf/boards/daily/top", 404, "unknown_board"),
        ("/boards/daily/top?period=weekly:2026-W46", 404, "unknown_board"),
        ("/v1/games/none/top", 404, "unknown_game"),
        ("/boards/daily/top?limit=0", 400, "parameter_invalid"),
        ("/boards/daily/top?limit=101", 400, "parameter_invalid"),
        ("/boards/daily/top?cursor=!", 400, "parameter_invalid"),
        ("/boards/daily/top?n=5", 400, "unknown_parameter"),
        ("/boards/daily/players/a?ties=none", 400, "parameter_invalid"),
        ("/boards/daily/players/a?mode=approx", 400, "parameter_invalid"),
        ("/boards/daily/friends", 400, "parameter_invalid"),
        ("/boards/daily/players/nobody", 404, "not_ranked"),
        ("/v1/boards?x=1", 400, "unknown_parameter"),
    ],
)
def test_a_question_that_cannot_be_is_refused_by_its_code(
    serving: BoardServing, path: str, status: int, code: str
) -> None:
    answer = serving.call("GET", path)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text


def test_who_may_write(serving: BoardServing) -> None:
    keys = KeyFile(serving.api.home)
    producer = keys.add("producer", (Role.PRODUCER,), Limits())[1]
    row = {"match_id": "m", "player_id": "a", "score": 1}

    def code(key: str, method: str, path: str) -> str:
        with serving.client(key) as client:
            return str(client.request(method, path, json=row).json().get("code"))

    until(lambda: code(producer, "POST", "/scores") != "key_invalid", "the new key is known")
    assert code(producer, "POST", "/scores") == "role_missing"
    assert code(producer, "PUT", "/v1/players/a/ban") == "role_missing"
    assert serving.call("PATCH", "/scores", row).headers["allow"] == "POST"
    assert serving.call("POST", "/v1/players/a/ban", row).headers["allow"] == "DELETE, PUT"


def test_an_idempotency_key_stands_for_the_match(serving: BoardServing) -> None:
    row = {"player_id": "retry", "delta": 3}
    answers = [serving.call("POST", "/v1/games/sums/scores", row, Idempotency_Key="k-1") for _ in range(3)]

    assert [answer.json()["best"] for answer in answers] == [{"all_time": 3, "weekly": 3}] * 3


def test_definitions_and_calendar(serving: BoardServing) -> None:
    games = {game["game"]: game for game in serving.get("/v1/boards")["games"]}
    periods = [one for one in serving.get("/v1/calendar")["periods"] if one["game"] == "sums"]

    assert (games["golf"]["mode"], games["sums"]["boards"]) == ("best_low", ["all_time", "weekly"])
    assert [one["board"][:8] for one in periods] == ["all_time", "weekly:2"]
    assert periods[1]["grace_end"] > periods[1]["end"] > periods[1]["start"]


def test_the_same_score_many_times_at_once_counts_once(serving: BoardServing) -> None:
    def send(_: int) -> httpx.Response:
        return serving.call("POST", "/v1/games/sums/scores", {"player_id": "many", "delta": 5, "match_id": "once"})

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(send, range(64)))

    assert {answer.status_code for answer in answers} <= {200, 202}
    until(lambda: serving.get("/v1/games/sums/rank/many")["score"] == 5, "it is counted")


def test_while_views_are_away_tops_are_stale_the_rest_is_503_scores_are_durable_and_all_comes_back(
    tmp_path: Path,
) -> None:
    with board_api(tmp_path) as own:
        own.post("a", 5)
        own.post("b", 7)
        top = "/boards/all_time/top?limit=3"
        before = own.ranks(top)
        own.server.kill()
        stale = own.call("GET", top)
        until(lambda: own.call("GET", top).json().get("stale") is True, "the top is stale")
        rank = own.call("GET", "/boards/all_time/players/a")
        accepted = own.post("c", 6)
        own.server.start()
        until(lambda: own.call("GET", "/boards/all_time/players/c").status_code == 200, "boards come back", 30)

        assert stale.status_code == 200
        assert (rank.status_code, rank.json()["code"], rank.headers["retry-after"]) == (503, "boards_unavailable", "1")
        assert (accepted.status_code, accepted.json()["status"]) == (202, "pending")
        assert before == [(1, "b", 7), (2, "a", 5)]
        until(lambda: own.ranks(top) == [(1, "b", 7), (2, "c", 6), (3, "a", 5)], "the same boards and the new score")
        assert "stale" not in own.get(top)
