"""`POST /scores`: scores in, the log behind them, ranks out.

Durable first: an answer of 200 or 202 means that it is on disk. Then it is waited, for a bounded time, until the boards
have it, so that the answer can say where the player stands. Which score of a match counts says the ledger.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from time import perf_counter

import msgspec

from domain.boards.definitions import Boards, Game, board_name
from domain.boards.entries import shown_score
from domain.boards.events import NOT_SAID, BoardEvent
from domain.boards.ledger import MatchState
from domain.boards.sort_key import place_of
from domain.clock import Clock, utc_now
from domain.periods import Period
from domain.policy import DEFAULT_POLICY
from domain.windows import EPOCH
from ingest.log_appender import LogAppender
from ingest.log_kinds import Appended
from serving import metrics
from serving.answers import JSON_TYPE, Answer, Head
from serving.auth import KeyRing
from serving.boards.addresses import BoardAddress, BoardRoute
from serving.boards.rows import ScoreJudge, Sent, error_of, rows_of
from serving.boards.taken import Taken, asked_of, ends_of, is_same, short_name
from serving.boards.view import BoardViews
from serving.boards.waiting import AppliedWatch
from serving.bodies import BodyReader, Receive, inflated
from serving.keys import Key, Role
from serving.limits import RateLimits
from serving.problems import Code, RefusedError, RowError
from serving.settings import ApiSettings
from speed_layer.boards.deciding import match_of
from speed_layer.store.boards.reader import Asked, Result
from speed_layer.store.leases import ViewsUnavailableError

_US = timedelta(microseconds=1)
_DAY_US = 86_400_000_000
_WAIT_SECONDS = 0.25
_IDEMPOTENCY_KEY = b"idempotency-key"
_JSON = ((b"content-type", JSON_TYPE),)


class Scored(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of a score, and where its player stands in the periods that it belongs to.

    Attributes:
        status: `counted`, also for the same score again; `pending`: it is durable and will be ranked; `held`: it waits
            for approval; `conflict`: the match has another score already, which stands; `error`.
        best: Board -> score that stands; the total where scores are summed.
        rank: Board -> place, from 1.
        moved: Board -> how many places the player went up; of a single score only.
        error: Why it was not taken.
    """

    status: str
    best: Mapping[str, int] | None = None
    rank: Mapping[str, int] | None = None
    moved: Mapping[str, int] | None = None
    error: RowError | None = None


class Results(msgspec.Struct, frozen=True):
    """What became of each row, in their order."""

    results: Sequence[Scored]


class ScoresEndpoint:
    """The routes that write, for one worker.

    Args:
        settings: Of the API.
        boards: Definitions.
        appender: Of the log.
        ring: Keys.
        views: The boards.
        clock: Tells now, UTC.
    """

    def __init__(
        self,
        settings: ApiSettings,
        *,
        boards: Boards,
        appender: LogAppender[BoardEvent],
        ring: KeyRing,
        views: BoardViews,
        clock: Clock = utc_now,
    ) -> None:
        self._boards = boards
        self._appender = appender
        self._ring = ring
        self._views = views
        self._clock = clock
        self._entry_clock = settings.entry_clock
        self._judge = ScoreJudge(boards, DEFAULT_POLICY)
        self._limits = RateLimits(settings)
        self._bodies = BodyReader(seconds=settings.body_seconds, most_bytes=settings.buffered_bytes)
        self._watch = AppliedWatch(views.reader, views.shard_of_partition)

    async def watch(self) -> None:
        """Cut off bodies that take too long, for ever."""
        await self._bodies.watch()

    async def close(self) -> None:
        """Let go of what is shared with other workers."""
        await self._watch.close()
        self._limits.close()

    async def answer(self, head: Head, receive: Receive, address: BoardAddress) -> Answer:
        """Take a request and return its answer.

        Raises:
            RefusedError: it is not taken.
            LogFullError, LogUnavailableError, LogReplacedError: the log does not take it; parts may be in it.
            ClientLeftError: there is nobody to answer.
        """
        began = perf_counter()
        key = self._permitted(head)
        body = inflated(await self._body(head, receive), head.headers.get(b"content-encoding"))
        rows, is_one = rows_of(body)
        game = address.game if address.route is BoardRoute.GAME_SCORES else None
        if game is not None:
            self.game(game, key)
        sent = Sent(game, self._idempotency_key(head, is_one=is_one), self._entry_clock.of_server(self._clock()))
        judged = [self._judge.judge(row, sent) for row in rows]
        scored = await self._take(judged, key, is_one=is_one)
        metrics.SCORE_SECONDS.observe(perf_counter() - began)
        return _answer_of(scored, is_one=is_one)

    async def append(self, events: Sequence[BoardEvent], key: Key) -> Sequence[Appended]:
        """Append events of an admin, and wait a while until the boards have them."""
        appended = await self._appender.append(events, f"api/{key.name}")
        await self._watch.until(appended, seconds=_WAIT_SECONDS)
        return appended

    def game(self, name: str, key: Key | None = None) -> Game:
        """Return a game that a key may write.

        Raises:
            RefusedError: `unknown_game`, `game_not_allowed`.
        """
        game = self._boards.games.get(name)
        if game is None:
            raise RefusedError(Code.UNKNOWN_GAME, "GET /v1/boards lists the games; boards.toml defines them")
        if key is not None and key.games is not None and name not in key.games:
            raise RefusedError(Code.GAME_NOT_ALLOWED, f"the key is limited to {', '.join(key.games)}")
        return game

    def _permitted(self, head: Head) -> Key:
        if head.query:
            raise RefusedError(Code.UNKNOWN_PARAMETER, "this address takes no query parameters")
        key = self._ring.require(head.headers.get(b"authorization"), Role.GAME_SERVER)
        self._limits.take_request(key)
        return key

    async def _body(self, head: Head, receive: Receive) -> bytes:
        kind = head.headers.get(b"content-type", JSON_TYPE).split(b";")[0].strip().lower()
        if kind not in (JSON_TYPE, b"application/x-www-form-urlencoded"):
            raise RefusedError(Code.UNSUPPORTED_MEDIA_TYPE, "send application/json")
        return await self._bodies.read(receive, length=head.headers.get(b"content-length"))

    @staticmethod
    def _idempotency_key(head: Head, *, is_one: bool) -> str:
        said = head.headers.get(_IDEMPOTENCY_KEY, b"") if is_one else b""
        return said.decode("utf-8", "replace")

    async def _take(self, judged: Sequence[BoardEvent | str], key: Key, *, is_one: bool) -> Sequence[Scored]:
        events = [one for one in judged if isinstance(one, BoardEvent)]
        errors = [error_of(n, code) for n, code in enumerate(judged) if isinstance(code, str)]
        if is_one and errors:
            raise RefusedError(errors[0].code, errors[0].detail, field=errors[0].field, index=0, errors=errors)
        if not events:
            raise RefusedError(Code.NO_GOOD_ROW, f"none of the {len(judged):,} rows could be taken", errors=errors)
        for event in events:
            self.game(event.game, key)
        self._limits.take_events(key, len(events))
        before = await self._ranks(events[0]) if is_one else {}
        taken = self._placed(events, await self._appender.append(events, f"api/{key.name}"))
        found = iter(await self._scored(taken, before))
        failed = iter(errors)
        return [next(found) if isinstance(one, BoardEvent) else Scored(status="error", error=next(failed))
                for one in judged]  # fmt: skip

    def _placed(self, events: Sequence[BoardEvent], appended: Sequence[Appended]) -> Sequence[Taken]:
        """Return where each event is: those of one partition follow each other in its entry."""
        where = {one.partition: one for one in appended}
        counts = dict.fromkeys(where, 0)
        taken = []
        for event in events:
            number = self._appender.partition_of(event.player_id)
            one = where[number]
            taken.append(Taken(event, one.entry.version, one.first + counts[number], one.entry.ms * 1000, number))
            counts[number] += 1
        return taken

    async def _scored(self, taken: Sequence[Taken], before: Mapping[str, int]) -> Sequence[Scored]:
        """Wait until the boards have scores, for a while, and say what became of each."""
        waited = [one for one in taken if not one.is_late]
        pending = Scored(status="pending")
        if not waited or not await self._watch.until(ends_of(waited), seconds=_WAIT_SECONDS):
            return [pending] * len(taken)
        periods = [self._boards.games[one.event.game].periods_at(one.ended) for one in waited]
        asked = [(one.partition, asked_of(one, of_one)) for one, of_one in zip(waited, periods, strict=True)]
        try:
            results = await self._views.results(asked)
        except ViewsUnavailableError:
            return [pending] * len(taken)
        found = iter(map(partial(self._outcome, before), waited, periods, results))
        return [pending if one.is_late else next(found) for one in taken]

    def _outcome(self, before: Mapping[str, int], taken: Taken, periods: Sequence[Period], result: Result) -> Scored:
        if result.row is None:
            return Scored(status="pending")
        if not is_same(result.row, taken):
            return Scored(status="conflict")
        if result.row.state is MatchState.HELD:
            return Scored(status="held")
        if result.row.state is MatchState.LATE:
            return Scored(status="pending")
        mode = self._boards.games[taken.event.game].mode
        places = {short_name(period): place for period, place in zip(periods, result.places, strict=True) if place}
        ranks = {name: stand + 1 for name, (_, stand) in places.items()}
        return Scored(
            status="counted",
            best={name: shown_score(place_of(mode, entry).score)[0] for name, (entry, _) in places.items()},
            rank=ranks,
            moved={name: before[name] - rank for name, rank in ranks.items() if name in before} or None,
        )

    async def _ranks(self, event: BoardEvent) -> Mapping[str, int]:
        """Return where a player stands before a score, as far as that is known."""
        if not self._appender.is_open:
            return {}
        now = self._entry_clock.of_server(self._clock())
        ended = now if event.ended_us == NOT_SAID else EPOCH + event.ended_us * _US
        game = self._boards.games[event.game]
        periods = game.periods_at(ended)
        asked = Asked(match_of(event), 0, [board_name(game.name, period.key) for period in periods])
        try:
            (result,) = await self._views.results([(self._appender.partition_of(event.player_id), asked)])
        except ViewsUnavailableError:
            return {}
        places = zip(periods, result.places, strict=False)  # there are none while the boards are not whole
        return {short_name(period): place[1] + 1 for period, place in places if place is not None}


def _answer_of(scored: Sequence[Scored], *, is_one: bool) -> Answer:
    """Return the answer: of a single score by its own status, of an array always what became of each row."""
    if not is_one:
        pending = all(one.status == "pending" for one in scored)
        status = HTTPStatus.ACCEPTED if pending else HTTPStatus.OK
        return Answer(status, _JSON, msgspec.json.encode(Results(scored)))
    (only,) = scored
    if only.status == "conflict":
        detail = "the first score of this match stands; another one needs another match_id"
        raise RefusedError(Code.MATCH_CONFLICT, detail, field="match_id", index=0)
    status = HTTPStatus.OK if only.status == "counted" else HTTPStatus.ACCEPTED
    return Answer(status, _JSON, msgspec.json.encode(only))
