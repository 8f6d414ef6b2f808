"""Queries of boards: how many rows, which period, behind which place, how ties are numbered."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from domain.boards.definitions import Game
from domain.boards.sort_key import KEY_BYTES
from domain.events import normal_id
from domain.periods import Period
from serving.chart_questions import parameters
from serving.problems import Code, RefusedError

MOST_ROWS: Final = 100
MOST_AROUND: Final = 50
MOST_FRIENDS: Final = 500
DEFAULT_TOP: Final = 10
DEFAULT_AROUND: Final = 5
_LONGEST_CURSOR = 512


class Ties(StrEnum):
    """How players of one score are numbered: 1 2 3 4, 1 2 2 4 or 1 2 2 3."""

    ORDINAL = "ordinal"
    COMPETITION = "competition"
    DENSE = "dense"


def top_question(query: bytes, *, rows: str) -> tuple[int, bytes, str]:
    """Read the query of a top: how many rows, behind which member, and which period; empty = not said.

    Args:
        query: As it came.
        rows: Name of the parameter that says how many.

    Raises:
        RefusedError: `unknown_parameter`, `parameter_invalid`.
    """
    said = parameters(query, allowed=(rows, "period", "cursor"))
    return _whole(said, rows, DEFAULT_TOP, 1, MOST_ROWS), _member(said.get("cursor", "")), said.get("period", "")


def player_question(query: bytes) -> tuple[int, Ties, str]:
    """Read the query of a player's place: neighbours on each side, numbering of ties, period.

    Raises:
        RefusedError: `unknown_parameter`, `parameter_invalid`.
    """
    said = parameters(query, allowed=("around", "ties", "mode", "period"))
    if said.get("mode", "exact") != "exact":
        raise RefusedError(Code.PARAMETER_INVALID, "mode is exact: ranks are exact at any size", field="mode")
    try:
        ties = Ties(said.get("ties", Ties.ORDINAL))
    except ValueError as error:
        raise RefusedError(Code.PARAMETER_INVALID, f"ties is one of {', '.join(Ties)}", field="ties") from error
    return _whole(said, "around", DEFAULT_AROUND, 0, MOST_AROUND), ties, said.get("period", "")


def friends_question(query: bytes) -> tuple[Sequence[str], str]:
    """Read the query of friends: their ids, each once, and the period.

    Raises:
        RefusedError: `unknown_parameter`, `parameter_invalid`.
    """
    said = parameters(query, allowed=("ids", "period"))
    return _friends(said.get("ids", "").split(","), "with commas between them"), said.get("period", "")


class FriendsBody(msgspec.Struct, forbid_unknown_fields=True):
    """Whose places are asked for."""

    ids: list[str | int]
    period: str = ""


def friends_body(body: bytes) -> tuple[Sequence[str], str]:
    """Read the body of friends, as `friends_question`; ids may hold commas here, and may be whole numbers.

    Raises:
        RefusedError: `bad_request`, `parameter_invalid`.
    """
    try:
        said = msgspec.json.decode(body, type=FriendsBody)
    except (ValueError, RecursionError) as error:
        detail = 'send {"ids": ["..."]}, and "period" for another one than the present'
        raise RefusedError(Code.BAD_REQUEST, detail) from error
    return _friends([str(one) for one in said.ids], "in a list"), said.period


def _friends(texts: Sequence[str], how: str) -> Sequence[str]:
    found = [normal_id(text) for text in texts if text]
    ids = list(dict.fromkeys(one for one in found if one is not None))
    if not ids or len(ids) > MOST_FRIENDS or None in found:
        detail = f"ids is 1 to {MOST_FRIENDS} player ids {how}"
        raise RefusedError(Code.PARAMETER_INVALID, detail, field="ids")
    return ids


def nothing_asked(query: bytes) -> None:
    """Refuse query parameters.

    Raises:
        RefusedError: `unknown_parameter`.
    """
    if query:
        raise RefusedError(Code.UNKNOWN_PARAMETER, "this address takes no query parameters")


def period_of(game: Game, board: str, period: str, now: datetime) -> Period:
    """Return the period that a board's name and a `period` mean.

    Args:
        game: Whose board.
        board: `daily` for the present one, or a full key.
        period: A full key, or what follows its colon; empty = as the board says.
        now: The present moment.

    Raises:
        RefusedError: `unknown_board`.
    """
    name = board if not period else period if ":" in period or period == board else f"{board}:{period}"
    found = game.period(name, now)
    if found is None or (period and not found.key.startswith(board)):
        kinds = [*game.kinds, *(season.key for season in game.seasons)]
        detail = f"this game has {', '.join(kinds)}; a full key is such as daily:2026-11-14 or weekly:2026-W46"
        raise RefusedError(Code.UNKNOWN_BOARD, detail, field="board")
    return found


def cursor_of(member: bytes) -> str:
    """Return the cursor behind a member; it stays right while players around it move."""
    return urlsafe_b64encode(member).decode().rstrip("=")


def _member(cursor: str) -> bytes:
    if not cursor:
        return b""
    try:
        found = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)) if len(cursor) <= _LONGEST_CURSOR else b""
    except (binascii.Error, ValueError):
        found = b""
    if len(found) <= KEY_BYTES:
        raise RefusedError(Code.PARAMETER_INVALID, "cursor is one that an answer gave", field="cursor")
    return found


def _whole(said: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = said.get(name, str(default))
    if text.isascii() and text.isdigit() and len(text) <= len(str(most)) and least <= int(text) <= most:
        return int(text)
    raise RefusedError(Code.PARAMETER_INVALID, f"{name} is a whole number from {least} to {most}", field=name)
