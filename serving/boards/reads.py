"""Reading boards over HTTP: tops, a player's place among neighbours, friends, definitions and calendar."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

import msgspec

from domain.boards.definitions import Boards, Game, board_name
from domain.boards.sort_key import SCORE_BYTES
from domain.clock import Clock, utc_now
from domain.events import normal_id
from domain.periods import Period
from domain.windows import EPOCH
from serving.answers import Answer, Head
from serving.boards import shown
from serving.boards.addresses import BoardAddress, BoardRoute
from serving.boards.archived import ArchivedBoard, BoardsOfLake
from serving.boards.questions import (
    Ties,
    cursor_of,
    friends_body,
    friends_question,
    nothing_asked,
    period_of,
    player_question,
    top_question,
)
from serving.boards.ranking import Ranking, Standing
from serving.boards.shown import Row, about, answer_of, moment, row
from serving.boards.view import BoardViews, LiveBoard
from serving.bodies import BodyReader, Receive, inflated
from serving.problems import Code, RefusedError
from serving.readers import Readers
from serving.settings import ApiSettings
from speed_layer.store.boards.reader import BoardsNotReadyError
from speed_layer.store.leases import ViewsUnavailableError

_MS = timedelta(milliseconds=1)
_MOST_DENSE = 1000
_CACHED_SECONDS = 0.2
_MOST_CACHED = 1024
_WAIT = ((b"retry-after", b"1"),)
_NOT_RANKED = "the player has no score on this board, or is not ranked for now"


class BoardReads:
    """The routes that read, for one worker.

    Args:
        settings: Of the API.
        boards: Definitions.
        views: The live boards.
        lake: What the lake has of boards.
        readers: Who may read, and how often.
        clock: Tells now, UTC.
    """

    def __init__(
        self,
        settings: ApiSettings,
        *,
        boards: Boards,
        views: BoardViews,
        lake: BoardsOfLake,
        readers: Readers,
        clock: Clock = utc_now,
    ) -> None:
        self._boards = boards
        self._views = views
        self._lake = lake
        self._bodies = BodyReader(seconds=settings.body_seconds, most_bytes=settings.buffered_bytes)
        self._readers = readers
        self._clock = clock
        self._entry_clock = settings.entry_clock
        self._tops: dict[tuple[str, str, int], tuple[float, Row, bytes]] = {}

    async def watch(self) -> None:
        """Cut off bodies that take too long, for ever."""
        await self._bodies.watch()

    async def answer(self, head: Head, receive: Receive, address: BoardAddress) -> Answer:
        """Return the answer to a request.

        Raises:
            RefusedError: it is not served.
            ClientLeftError: there is nobody to answer.
        """
        self._readers.admit(head)
        if address.route is BoardRoute.BOARDS:
            nothing_asked(head.query)
            return answer_of(shown.definitions(self._boards))
        if address.route is BoardRoute.CALENDAR:
            nothing_asked(head.query)
            return answer_of(shown.calendar(self._boards, self._now(), await self._lake.archives()))
        game = self.game(address.game)
        with _refusing():
            return await self._of_board(head, receive, address, game)

    def game(self, name: str) -> Game:
        """Return a game by its name.

        Raises:
            RefusedError: `unknown_game`.
        """
        found = self._boards.games.get(name)
        if found is None:
            raise RefusedError(Code.UNKNOWN_GAME, "GET /v1/boards lists the games; boards.toml defines them")
        return found

    async def best(self, game: Game, board: str, size: int) -> tuple[Row, bytes]:
        """Return the best of a board, as they are and as they are sent: the last ones while there are none.

        Args:
            game: Whose board.
            board: `daily` for the present one, or a full key.
            size: How many rows.

        Raises:
            RefusedError: `unknown_board`, or they are not there.
        """
        period = period_of(game, board, "", self._now())
        with _refusing():
            return await self._best(game, period, size)

    async def _of_board(self, head: Head, receive: Receive, address: BoardAddress, game: Game) -> Answer:
        match address.route:
            case BoardRoute.GAME_TOP | BoardRoute.TOP | BoardRoute.GAME_BOARD_TOP:
                rows = "n" if address.route is BoardRoute.GAME_TOP else "limit"
                size, after, period = top_question(head.query, rows=rows)
                found = period_of(game, address.board or _default(game), period, self._now())
                self._readers.take(head, f"top|{game.name}|{found.key}")
                return answer_of(await self._top(game, found, after, size))
            case BoardRoute.FRIENDS | BoardRoute.GAME_FRIENDS:
                return await self._friends(head, receive, address, game)
            case BoardRoute.CERTIFICATE:
                nothing_asked(head.query)
                return await self._certificate(head, game, period_of(game, address.board, "", self._now()))
            case _:
                around, ties, period = player_question(head.query)
                found = period_of(game, address.board or _default(game), period, self._now())
                self._readers.take(head, f"rank|{game.name}|{found.key}")
                return await self._player(game, found, address.player_id, around, ties)

    async def _top(self, game: Game, period: Period, after: bytes, size: int) -> bytes:
        if after:
            return msgspec.json.encode(await self._rows_after(game, period, after, size))
        return (await self._best(game, period, size))[1]

    async def _best(self, game: Game, period: Period, size: int) -> tuple[Row, bytes]:
        """Return the best: the same bytes for all within a moment, the last ones while there are none."""
        name = (game.name, period.key, size)
        held = self._tops.get(name)
        now = time.monotonic()
        if held is not None and now - held[0] < _CACHED_SECONDS:
            return held[1:]
        try:
            body = await self._rows_after(game, period, b"", size)
        except (BoardsNotReadyError, ViewsUnavailableError):
            if held is None:
                raise
            stale = {**held[1], "stale": True}
            return stale, msgspec.json.encode(stale)
        if len(self._tops) >= _MOST_CACHED:
            self._tops.clear()
        self._tops[name] = (now, body, encoded := msgspec.json.encode(body))
        return body, encoded

    async def _rows_after(self, game: Game, period: Period, after: bytes, size: int) -> Row:
        ranking = await self._ranking(game, period)
        page = await ranking.page(after=after, size=size)
        rows = [row(game, one, rank) for rank, one in enumerate(page.members, start=page.before + 1)]
        more = len(page.members) == size and page.before + size < page.listed
        return {
            **_about(game, period, ranking),
            "as_of": moment(EPOCH + page.as_of_ms * _MS),
            "of": page.size,
            "entries": rows,
            "cursor": cursor_of(page.members[-1]) if more else None,
        }

    async def _player(self, game: Game, period: Period, player_id: str, around: int, ties: Ties) -> Answer:
        player = normal_id(player_id)
        ranking = await self._ranking(game, period)
        standing = None if player is None else await ranking.standing(player, around=around)
        if standing is None:
            detail = _NOT_RANKED if not isinstance(ranking, ArchivedBoard) else ranking.not_ranked
            raise RefusedError(Code.NOT_RANKED, detail)
        ranks = await _numbered(ranking, standing, ties)
        above = len(standing.above)
        members = [*standing.above, standing.member, *standing.below]
        rows = [row(game, one, rank) for one, rank in zip(members, ranks, strict=True)]
        return answer_of(msgspec.json.encode({
            **_about(game, period, ranking),
            "as_of": moment(EPOCH + standing.as_of_ms * _MS),
            "of": standing.size,
            **rows[above],
            "above": rows[:above],
            "below": rows[above + 1 :],
        }))  # fmt: skip

    async def _friends(self, head: Head, receive: Receive, address: BoardAddress, game: Game) -> Answer:
        """Answer with the places of some players among all, the best first; those who have none are left out."""
        if head.method == "POST":
            nothing_asked(head.query)
            body = await self._bodies.read(receive, length=head.headers.get(b"content-length"))
            ids, said = friends_body(inflated(body, head.headers.get(b"content-encoding")))
        else:
            ids, said = friends_question(head.query)
        period = period_of(game, address.board, said, self._now())
        self._readers.take(head, f"friends|{game.name}|{period.key}")
        ranking = await self._ranking(game, period)
        found = await ranking.places(ids)
        return answer_of(msgspec.json.encode({
            **_about(game, period, ranking),
            "as_of": moment(EPOCH + found.as_of_ms * _MS),
            "of": found.size,
            "entries": [row(game, one, before + 1) for one, before in sorted(found.members)],
        }))  # fmt: skip

    async def _certificate(self, head: Head, game: Game, period: Period) -> Answer:
        self._readers.take(head, f"certificate|{game.name}|{period.key}")
        found = await self._lake.certificate(board_name(game.name, period.key))
        if found is None:
            detail = "no rebuild has found players on this board: `lakeboard rebuild-board --all` makes one"
            raise RefusedError(Code.NOT_CERTIFIED, detail)
        return answer_of(shown.certificate(found))

    async def _ranking(self, game: Game, period: Period) -> Ranking:
        """Return the board: its archive, once no score can come to it live and it has all of those that did."""
        name, until = board_name(game.name, period.key), game.live_until(period)
        if until is not None and self._now() >= until and (found := await self._lake.board(name)) is not None:
            return found
        return LiveBoard(self._views, name)

    def _now(self) -> datetime:
        return self._entry_clock.of_server(self._clock())


@contextmanager
def _refusing() -> Iterator[None]:
    """Refuse what cannot be read now, by its code."""
    try:
        yield
    except BoardsNotReadyError as error:
        raise RefusedError(Code.BOARDS_NOT_READY, str(error), headers=_WAIT) from error
    except ViewsUnavailableError as error:
        detail = "the boards cannot be read now; ask again"
        raise RefusedError(Code.BOARDS_UNAVAILABLE, detail, headers=_WAIT) from error


def _default(game: Game) -> str:
    """Return the board of the routes that name none: the one that lasts longest."""
    return game.kinds[0].value if game.kinds else game.seasons[0].key


def _about(game: Game, period: Period, ranking: Ranking) -> Row:
    archive = ranking.archive if isinstance(ranking, ArchivedBoard) else None
    return about(game, period) if archive is None else {**about(game, period), "archived": shown.archived(archive)}


async def _numbered(ranking: Ranking, standing: Standing, ties: Ties) -> Sequence[int]:
    """Return the ranks of a player and of the neighbours, in the order of the board."""
    members = [*standing.above, standing.member, *standing.below]
    first = standing.before - len(standing.above)
    if ties is Ties.ORDINAL:
        return range(first + 1, first + 1 + len(members))
    if ties is Ties.COMPETITION:
        return [better + 1 for better in await ranking.better_than(members)]
    if first + len(members) > _MOST_DENSE:
        detail = f"dense ranks need all scores above to be looked at: they are given to the first {_MOST_DENSE:,}"
        raise RefusedError(Code.PARAMETER_INVALID, detail, field="ties")
    page = await ranking.page(after=b"", size=first + len(members))
    scores = sorted({one[:SCORE_BYTES] for one in (*page.members, *members)})
    numbers = {score: number for number, score in enumerate(scores, start=1)}
    return [numbers[one[:SCORE_BYTES]] for one in members]
