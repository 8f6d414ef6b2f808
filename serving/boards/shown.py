"""How boards are shown in answers."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from domain.boards.archives import Archive
from domain.boards.certificates import Certificate
from domain.boards.definitions import Boards, Game, board_name
from domain.boards.entries import shown_score
from domain.boards.sort_key import place_of, player_of
from domain.periods import Period
from domain.windows import EPOCH
from serving.answers import JSON_TYPE, Answer

_US = timedelta(microseconds=1)
_CACHE: Final = (b"cache-control", b"public, max-age=1")

Row = Mapping[str, object]


def answer_of(body: bytes) -> Answer:
    """Return an answer that holds for a second."""
    return Answer(200, ((b"content-type", JSON_TYPE), _CACHE), body)


def about(game: Game, period: Period) -> Mapping[str, str]:
    """Return which board an answer is of."""
    return {"game": game.name, "board": period.key}


def row(game: Game, member: bytes, rank: int) -> Row:
    """Return a player with place and score.

    Args:
        game: Whose board.
        member: As of `domain.boards.sort_key.member`.
        rank: From 1.
    """
    place = place_of(game.mode, member)
    score, beyond = shown_score(place.score)
    found: dict[str, object] = {
        "rank": rank,
        "player_id": player_of(member),
        "score": score,
        "reached_at": moment(EPOCH + place.reached_us * _US),
    }
    return found | {"clamped": True} if beyond else found


def moment(at: datetime) -> str:
    """Return a moment in ISO 8601, UTC."""
    return (at if at.tzinfo is UTC else at.astimezone(UTC)).isoformat().replace("+00:00", "Z")


def definitions(boards: Boards) -> bytes:
    """Return games and their boards."""
    games = [
        {
            "game": game.name,
            "mode": game.mode.value,
            "boards": [*game.kinds, *(season.key for season in game.seasons)],
            "grace_seconds": int(game.grace.total_seconds()),
            "archive_size": game.archive_size,
            "player_writes": game.player_writes,
        }
        for game in boards.games.values()
    ]
    return msgspec.json.encode({"games": games})


def calendar(boards: Boards, now: datetime, archives: Mapping[str, Archive]) -> bytes:
    """Return the present periods and the seasons, and those that are archived, with their edges.

    Args:
        boards: Definitions.
        now: The present moment.
        archives: Newest archive of each board, by its name.
    """
    kept: dict[str, list[str]] = {}
    for one in archives.values():
        kept.setdefault(one.game, []).append(one.board)
    periods = [
        _calendar_row(game, period, archives.get(board_name(game.name, period.key)))
        for game in boards.games.values()
        for period in _periods(game, now, sorted(kept.get(game.name, ()), reverse=True))
    ]
    return msgspec.json.encode({"as_of": moment(now), "periods": periods})


def archived(one: Archive) -> Row:
    """Return what an answer out of an archive says of it."""
    return {"revision": one.revision, "archived_at": moment(one.archived_at), "places": one.places}


def certificate(one: Certificate) -> bytes:
    """Return what a rebuild certified of a board."""
    return msgspec.json.encode({
        "game": one.game, "board": one.board, "rebuild": one.rebuild, "created_at": moment(one.created_at),
        "players": one.players, "banned": one.banned, "digest": one.digest, "scores_version": one.scores_version,
        "entries_version": one.entries_version, "positions": dict(one.positions),
    })  # fmt: skip


def _periods(game: Game, now: datetime, kept: Sequence[str]) -> Sequence[Period]:
    present = [game.period(kind, now) for kind in game.kinds]
    old = [game.period(board, now) for board in kept]
    found = [period for period in (*present, *game.seasons, *old) if period is not None]
    return list({period.key: period for period in found}.values())


def _calendar_row(game: Game, period: Period, archive: Archive | None) -> Mapping[str, object]:
    return {
        **about(game, period),
        "start": None if period.start is None else moment(period.start),
        "end": None if period.end is None else moment(period.end),
        "grace_end": None if period.end is None else moment(period.end + game.grace),
        "archived_at": None if archive is None else moment(archive.archived_at),
    }
