"""Addresses of boards: which route a path is, and which game, board, player or match it names."""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from domain.boards.definitions import DEFAULT_GAME


class BoardRoute(StrEnum):
    """The routes, as metrics and the document name them."""

    SCORES = "/scores"
    SCORES_V1 = "/v1/scores"
    GAME_SCORES = "/v1/games/{game}/scores"
    TOP = "/boards/{board}/top"
    GAME_BOARD_TOP = "/v1/games/{game}/boards/{board}/top"
    GAME_TOP = "/v1/games/{game}/top"
    PLAYER = "/boards/{board}/players/{player}"
    GAME_PLAYER = "/v1/games/{game}/boards/{board}/players/{player}"
    GAME_RANK = "/v1/games/{game}/rank/{player}"
    FRIENDS = "/boards/{board}/friends"
    GAME_FRIENDS = "/v1/games/{game}/boards/{board}/friends"
    LIVE = "/boards/{board}/live"
    GAME_LIVE = "/v1/games/{game}/boards/{board}/live"
    CERTIFICATE = "/v1/games/{game}/boards/{board}/certificate"
    BOARDS = "/v1/boards"
    CALENDAR = "/v1/calendar"
    BAN = "/v1/players/{player}/ban"
    APPROVE = "/v1/games/{game}/matches/{match}/players/{player}/approve"
    MATCH = "/v1/games/{game}/matches/{match}/players/{player}"


WRITES: Final = frozenset({BoardRoute.SCORES, BoardRoute.SCORES_V1, BoardRoute.GAME_SCORES})
FRIENDS: Final = frozenset({BoardRoute.FRIENDS, BoardRoute.GAME_FRIENDS})
LIVE: Final = frozenset({BoardRoute.LIVE, BoardRoute.GAME_LIVE})
METHODS: Final[Mapping[BoardRoute, tuple[str, ...]]] = {
    **dict.fromkeys(BoardRoute, ("GET",)),
    **dict.fromkeys(WRITES, ("POST",)),
    **dict.fromkeys(FRIENDS, ("GET", "POST")),
    BoardRoute.BAN: ("DELETE", "PUT"),
    BoardRoute.APPROVE: ("POST",),
    BoardRoute.MATCH: ("DELETE",),
}
DECISIONS: Final = frozenset({BoardRoute.BAN, BoardRoute.APPROVE, BoardRoute.MATCH})


class BoardAddress(NamedTuple):
    """What a path names; empty where it does not.

    Attributes:
        route: Which route it is.
        game: The one of the short routes is `default`.
        board: As it stands there: `daily`, or a full key.
        player_id: Decoded; not checked.
        match_id: Decoded; not checked.
    """

    route: BoardRoute
    game: str = DEFAULT_GAME
    board: str = ""
    player_id: str = ""
    match_id: str = ""


# Ids may hold slashes, so the one at the end takes all that follows; of a match, the first `/players/` ends its id.
_PARTS: Final = {"{game}": "(?P<game>[^/]+)", "{board}": "(?P<board>[^/]+)", "{match}": "(?P<match_id>.+?)",
                 "{player}": "(?P<player_id>.+)"}  # fmt: skip
_BEGINNINGS: Final = ("/boards/", "/v1/games/", "/v1/players/", "/scores", "/v1/scores", "/v1/boards", "/v1/calendar")


def _pattern(route: BoardRoute) -> re.Pattern[str]:
    text = route.value
    for name, part in _PARTS.items():
        text = text.replace(name, part)
    return re.compile(text)


# The longer ones first: a match's approval is no removal of a player `.../approve`.
_PATTERNS: Final = [(route, _pattern(route)) for route in sorted(BoardRoute, key=lambda one: -one.value.count("/"))]


@lru_cache(1024)  # asked for several times on the way of one request
def board_address(path: str) -> BoardAddress | None:
    """Return what a path names; None when it is not of boards.

    Args:
        path: Decoded, without the query.
    """
    if not path.startswith(_BEGINNINGS):
        return None
    for route, pattern in _PATTERNS:
        if found := pattern.fullmatch(path):
            return BoardAddress(route, **found.groupdict())
    return None
