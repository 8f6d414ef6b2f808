"""Reading boards over HTTP: tops, a player's place among neighbours, friends, definitions and calendar."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from domain.boards.definitions import Boards, Game, board_name
from domain.boards.entries import shown_score
from domain.boards.sort_key import SCORE_BYTES, place_of, player_of
from domain.clock import Clock, utc_now
from domain.events import normal_id
from domain.periods import Period
from domain.windows import EPOCH
from serving.answers import JSON_TYPE, Answer, Head
from serving.boards.addresses import BoardAddress, BoardRoute
from serving.boards.questions import (
    Ties,
    cursor_of,
    friends_question,
    nothing_asked,
    period_of,
    player_question,
    top_question,
)
from serving.boards.view import BoardViews, Standing
from serving.problems import Code, RefusedError
from serving.readers import Readers
from serving.settings import ApiSettings
from speed_layer.store.boards.reader import BoardsNotReadyError
from speed_layer.store.leases import ViewsUnavailableError

_MS, _US = timedelta(milliseconds=1), timedelta(microseconds=1)
_MOST_DENSE = 1000
_CACHED_SECONDS = 0.2
_MOST_CACHED = 1024
_CACHE = (b"cache-control", b"public, max-age=1")
_WAIT = ((b"retry-after", b"1"),)

Row = Mapping[str, object]


class BoardReads:
    """The routes that read, for one worker.

    Args:
        settings: Of the API.
        boards: Definitions.
        views: The boards.
        readers: Who may read, and how often.
        clock: Tells now, UTC.
    """

    def __init__(
        self, settings: ApiSettings, *, boards: Boards, views: BoardViews, readers: Readers, clock: Clock = utc_now
    ) -> None:
        self._boards = boards
        self._views = views
        self._readers = readers
        self._clock = clock
        self._entry_clock = settings.entry_clock
        self._tops: dict[tuple[str, str, int], tuple[float, Mapping[str, object], bytes]] = {}

    async def answer(self, head: Head, address: BoardAddress) -> Answer:
        """Return the answer to a request.

        Raises:
            RefusedError: it is not served.
        """
        self._readers.admit(head)
        if address.route is BoardRoute.BOARDS:
            return self._definitions(head)
        if address.route is BoardRoute.CALENDAR:
            return self._calendar(head)
        game = self._boards.games.get(address.game)
        if game is None:
            raise RefusedError(Code.UNKNOWN_GAME, "GET /v1/boards lists the games; boards.toml defines them")
        try:
            return await self._of_board(head, address, game)
        except BoardsNotReadyError as error:
            raise RefusedError(Code.BOARDS_NOT_READY, str(error), headers=_WAIT) from error
        except ViewsUnavailableError as error:
            detail = "the boards cannot be read now; ask again"
            raise RefusedError(Code.BOARDS_UNAVAILABLE, detail, headers=_WAIT) from error

    async def _of_board(self, head: Head, address: BoardAddress, game: Game) -> Answer:
        match address.route:
            case BoardRoute.GAME_TOP | BoardRoute.TOP | BoardRoute.GAME_BOARD_TOP:
                rows = "n" if address.route is BoardRoute.GAME_TOP else "limit"
                size, after, period = top_question(head.query, rows=rows)
                found = period_of(game, address.board or _default(game), period, self._now())
                self._readers.take(head, f"top|{game.name}|{found.key}")
                return await (self._top(game, found, size) if not after else self._page(game, found, after, size))
            case BoardRoute.FRIENDS | BoardRoute.GAME_FRIENDS:
                return await self._friends(head, address, game)
            case _:
                around, ties, period = player_question(head.query)
                found = period_of(game, address.board or _default(game), period, self._now())
                self._readers.take(head, f"rank|{game.name}|{found.key}")
                return await self._player(game, found, address.player_id, around, ties)

    async def _top(self, game: Game, period: Period, size: int) -> Answer:
        """Answer with the best: the same bytes for all within a moment, the last ones while there are none."""
        name = (game.name, period.key, size)
        held = self._tops.get(name)
        now = time.monotonic()
        if held is not None and now - held[0] < _CACHED_SECONDS:
            return _answer(held[2])
        try:
            body = await self._rows_after(game, period, b"", size)
        except (BoardsNotReadyError, ViewsUnavailableError):
            if held is None:
                raise
            return _answer(msgspec.json.encode({**held[1], "stale": True}))
        if len(self._tops) >= _MOST_CACHED:
            self._tops.clear()
        self._tops[name] = (now, body, encoded := msgspec.json.encode(body))
        return _answer(encoded)

    async def _page(self, game: Game, period: Period, after: bytes, size: int) -> Answer:
        return _answer(msgspec.json.encode(await self._rows_after(game, period, after, size)))

    async def _rows_after(self, game: Game, period: Period, after: bytes, size: int) -> Mapping[str, object]:
        page = await self._views.page(board_name(game.name, period.key), after=after, size=size)
        rows = [_row(game, one, rank) for rank, one in enumerate(page.members, start=page.before + 1)]
        more = len(page.members) == size and page.before + size < page.size
        return {
            **_about(game, period),
            "as_of": _moment(EPOCH + page.as_of_ms * _MS),
            "of": page.size,
            "entries": rows,
            "cursor": cursor_of(page.members[-1]) if more else None,
        }

    async def _player(self, game: Game, period: Period, player_id: str, around: int, ties: Ties) -> Answer:
        player = normal_id(player_id)
        board = board_name(game.name, period.key)
        standing = None if player is None else await self._views.standing(
            board, player, around=around, better=ties is Ties.COMPETITION
        )  # fmt: skip
        if standing is None:
            raise RefusedError(Code.NOT_RANKED, "the player has no score on this board, or is not ranked for now")
        ranks = await self._numbered(board, standing, ties)
        above = len(standing.above)
        members = [*standing.above, standing.member, *standing.below]
        rows = [_row(game, one, rank) for one, rank in zip(members, ranks, strict=True)]
        return _answer(msgspec.json.encode({
            **_about(game, period),
            "as_of": _moment(EPOCH + standing.as_of_ms * _MS),
            "of": standing.size,
            **rows[above],
            "above": rows[:above],
            "below": rows[above + 1 :],
        }))  # fmt: skip

    async def _numbered(self, board: str, standing: Standing, ties: Ties) -> Sequence[int]:
        """Return the ranks of a player and of the neighbours, in the order of the board."""
        members = [*standing.above, standing.member, *standing.below]
        first = standing.before - len(standing.above)
        if ties is Ties.ORDINAL:
            return range(first + 1, first + 1 + len(members))
        if ties is Ties.COMPETITION:
            return [better + 1 for better in await self._views.better_than(board, members)]
        if first + len(members) > _MOST_DENSE:
            detail = f"dense ranks need all scores above to be looked at: they are given to the first {_MOST_DENSE:,}"
            raise RefusedError(Code.PARAMETER_INVALID, detail, field="ties")
        page = await self._views.page(board, after=b"", size=first + len(members))
        scores = sorted({one[:SCORE_BYTES] for one in (*page.members, *members)})
        numbers = {score: number for number, score in enumerate(scores, start=1)}
        return [numbers[one[:SCORE_BYTES]] for one in members]

    async def _friends(self, head: Head, address: BoardAddress, game: Game) -> Answer:
        """Answer with the places of some players among all, the best first; those who have none are left out."""
        said = friends_question(head.query)
        period = period_of(game, address.board, said[1], self._now())
        self._readers.take(head, f"friends|{game.name}|{period.key}")
        board = board_name(game.name, period.key)
        found = await asyncio.gather(*[self._views.standing(board, player) for player in said[0]])
        places = sorted((one for one in found if one is not None), key=lambda one: one.member)
        body = {
            **_about(game, period),
            "as_of": _moment(EPOCH + min((one.as_of_ms for one in places), default=0) * _MS),
            "of": max((one.size for one in places), default=0),
            "entries": [_row(game, one.member, one.before + 1) for one in places],
        }
        return _answer(msgspec.json.encode(body))

    def _definitions(self, head: Head) -> Answer:
        nothing_asked(head.query)
        games = [
            {
                "game": game.name,
                "mode": game.mode.value,
                "boards": [*game.kinds, *(season.key for season in game.seasons)],
                "grace_seconds": int(game.grace.total_seconds()),
                "archive_size": game.archive_size,
                "player_writes": game.player_writes,
            }
            for game in self._boards.games.values()
        ]
        return _answer(msgspec.json.encode({"games": games}))

    def _calendar(self, head: Head) -> Answer:
        nothing_asked(head.query)
        now = self._now()
        periods = [
            {
                **_about(game, period),
                "start": None if period.start is None else _moment(period.start),
                "end": None if period.end is None else _moment(period.end),
                "grace_end": None if period.end is None else _moment(period.end + game.grace),
            }
            for game in self._boards.games.values()
            for period in (*(game.period(kind, now) for kind in game.kinds), *game.seasons)
            if period is not None
        ]
        return _answer(msgspec.json.encode({"as_of": _moment(now), "periods": periods}))

    def _now(self) -> datetime:
        return self._entry_clock.of_server(self._clock())


def _default(game: Game) -> str:
    """Return the board of the routes that name none: the one that lasts longest."""
    return game.kinds[0].value if game.kinds else game.seasons[0].key


def _about(game: Game, period: Period) -> Mapping[str, str]:
    return {"game": game.name, "board": period.key}


def _row(game: Game, member: bytes, rank: int) -> Row:
    place = place_of(game.mode, member)
    score, beyond = shown_score(place.score)
    row: dict[str, object] = {
        "rank": rank,
        "player_id": player_of(member),
        "score": score,
        "reached_at": _moment(EPOCH + place.reached_us * _US),
    }
    return row | {"clamped": True} if beyond else row


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _answer(body: bytes) -> Answer:
    return Answer(200, ((b"content-type", JSON_TYPE), _CACHE), body)
