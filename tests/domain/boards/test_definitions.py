"""boards.toml: what it may say, and how it is refused."""

from datetime import UTC, datetime, timedelta

import pytest

from domain.boards.definitions import DEFAULT_GAME, ONE_GAME, Bands, Boards, Game, InvalidBoardsError
from domain.boards.sort_key import Mode
from domain.periods import PeriodKind

pytestmark = pytest.mark.fast

WHOLE = """
[[game]]
name = "chess"
mode = "best_low"
periods = ["all_time", "weekly"]
grace_minutes = 5
archive_size = 10
player_writes = true
hold_above = 3
bands = {min = 0, max = 100, width = 5}
[[game.season]]
name = "spring"
start = 2026-03-01
end = 2026-06-01T12:00:00+02:00
[[game]]
name = "plain"
"""
NOW = datetime(2026, 4, 5, tzinfo=UTC)


def test_all_that_can_be_said_is_read_and_the_rest_has_defaults() -> None:
    boards = Boards.parse(WHOLE)
    chess = boards.games["chess"]

    assert (chess.mode, chess.grace, chess.archive_size, chess.player_writes) == (
        Mode.BEST_LOW, timedelta(minutes=5), 10, True,
    )  # fmt: skip
    assert chess.bands == Bands(min=0, max=100, width=5)
    assert [period.key for period in chess.periods_at(NOW)] == ["all_time", "weekly:2026-W14", "season:spring"]
    assert [period.key for period in chess.periods_at(datetime(2026, 6, 1, 10, tzinfo=UTC))] == [
        "all_time", "weekly:2026-W23",
    ]  # fmt: skip
    assert boards.games["plain"] == Game(name="plain")
    assert ONE_GAME.games == {DEFAULT_GAME: Game(name=DEFAULT_GAME)}


def test_a_board_is_named_by_its_kind_or_by_a_full_key_that_the_game_has() -> None:
    chess = Boards.parse(WHOLE).games["chess"]
    names = ("weekly", "weekly:2020-W53", "season:spring", "daily", "daily:2026-04-05", "season", "season:x", "")
    found = {name: chess.period(name, NOW) for name in names}

    assert {name: None if period is None else period.key for name, period in found.items()} == {
        "weekly": "weekly:2026-W14", "weekly:2020-W53": "weekly:2020-W53", "season:spring": "season:spring",
        "daily": None, "daily:2026-04-05": None, "season": None, "season:x": None, "": None,
    }  # fmt: skip
    assert chess.kinds == (PeriodKind.ALL_TIME, PeriodKind.WEEKLY)


def test_scores_that_are_too_good_are_held() -> None:
    assert [Game(name="g", hold_above=10).is_held(score) for score in (9, 10, 11)] == [False, False, True]
    assert [Game(name="g", mode=Mode.BEST_LOW, hold_above=10).is_held(n) for n in (9, 10, 11)] == [True, False, False]
    assert not Game(name="g").is_held(2**62)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[game]", "boards.toml"),
        ("game = 3", "write [[game]]"),
        ("[[game]]", "name of a game must be"),
        ("[[game]]\nname = 'a/b'", "name of a game must be"),
        ("[[game]]\nname = 'a'\n[[game]]\nname = 'a'", "two games have one name"),
        ("[[game]]\nname = 'a'\nmod = 'sum'", "unknown keys mod"),
        ("[[game]]\nname = 'a'\nmode = 'best'", "one of best_high, best_low, sum"),
        ("[[game]]\nname = 'a'\nperiods = ['hourly']", "must be different ones of"),
        ("[[game]]\nname = 'a'\nperiods = ['daily', 'daily']", "must be different ones of"),
        ("[[game]]\nname = 'a'\ngrace_minutes = -1", "whole number from 0 to 1440"),
        ("[[game]]\nname = 'a'\nhold_above = 1.5", "hold_above of game 'a'"),
        ("[[game]]\nname = 'a'\nplayer_writes = 1", "true or false"),
        ("[[game]]\nname = 'a'\nbands = {min = 5, max = 1}", "from min to max"),
        ("[[game]]\nname = 'a'\n[[game.season]]\nname = 's'\nstart = 2026-01-01", "end of season 's'"),
        ("[[game]]\nname = 'a'\n[[game.season]]\nname = 's'\nstart = 2026-01-01T00:00:00\nend = 2026-01-02",
         "a moment with its zone"),
        ("[[game]]\nname = 'a'\n[[game.season]]\nname = 's'\nstart = 2026-01-02\nend = 2026-01-01", "ends before"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(InvalidBoardsError) as caught:
        Boards.parse(text)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)
