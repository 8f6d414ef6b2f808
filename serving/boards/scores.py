"""`POST /scores`: scores in, the log behind them, ranks out.

Durable first: an answer of 200 or 202 means that it is on disk. Then it is waited, for a bounded time, until the boards
have it, so that the answer can say where the player stands. Which score of a match counts says the ledger.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from time import perf_counter

import msgspec

from domain.boards.definitions import LIVE_WINDOW, Boards, Game
from domain.boards.entries import shown_score
from domain.boards.events import NOT_SAID, BoardEvent
from domain.boards.ledger import LedgerRow, MatchState
from domain.boards.sort_key import place_of
from domain.clock import Clock, utc_now
from domain.log import EntryId
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
from serving.boards.view import BoardViews
from serving.boards.waiting import AppliedWatch
from serving.bodies import BodyReader, Receive, inflated
from serving.keys import Key, Role
from serving.limits import RateLimits
from serving.problems import Code, RefusedError, RowError
from serving.settings import ApiSettings
from speed_layer.boards.deciding import board_name, match_of

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


@dataclass(frozen=True)
class _Taken:
    """A score that is in the log."""

    event: BoardEvent
    version: int
    number: int
    logged_us: int
    partition: int

    @property
    def ended(self) -> datetime:
        """When its match ended, UTC."""
        return EPOCH + (self.logged_us if self.event.ended_us == NOT_SAID else self.event.ended_us) * _US

    @property
    def is_late(self) -> bool:
        """Whether batch alone counts it."""
        return self.ended < EPOCH + self.logged_us * _US - LIVE_WINDOW


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
        waited = [one for one in taken if not one.is_late]
        applied = not waited or await self._watch.until(_ends(waited), seconds=_WAIT_SECONDS)
        found = iter(await asyncio.gather(*[self._scored(one, before, applied=applied) for one in taken]))
        failed = iter(errors)
        return [next(found) if isinstance(one, BoardEvent) else Scored(status="error", error=next(failed))
                for one in judged]  # fmt: skip

    def _placed(self, events: Sequence[BoardEvent], appended: Sequence[Appended]) -> Sequence[_Taken]:
        """Return where each event is: those of one partition follow each other in its entry."""
        where = {one.partition: one for one in appended}
        counts = dict.fromkeys(where, 0)
        taken = []
        for event in events:
            number = self._appender.partition_of(event.player_id)
            one = where[number]
            taken.append(_Taken(event, one.entry.version, one.first + counts[number], one.entry.ms * 1000, number))
            counts[number] += 1
        return taken

    async def _scored(self, taken: _Taken, before: Mapping[str, int], *, applied: bool) -> Scored:
        if taken.is_late or not applied:
            return Scored(status="pending")
        event, shard = taken.event, self._views.shard_of_partition(taken.partition)
        row = await self._views.reader.match(shard, match_of(event), day=taken.logged_us // _DAY_US)
        if row is None or not _is_same(row, taken):
            return Scored(status="pending" if row is None else "conflict")
        if row.state is MatchState.HELD:
            return Scored(status="held")
        game = self._boards.games[event.game]
        places = await asyncio.gather(
            *[self._place(game, period, event.player_id) for period in game.periods_at(taken.ended)]
        )
        there = {name: place for name, place in places if place is not None}
        return Scored(
            status="counted",
            best={name: score for name, (score, _) in there.items()},
            rank={name: rank for name, (_, rank) in there.items()},
            moved={name: before[name] - rank for name, (_, rank) in there.items() if name in before} or None,
        )

    async def _ranks(self, event: BoardEvent) -> Mapping[str, int]:
        """Return where a player stands before a score, as far as that is known."""
        game = self._boards.games[event.game]
        ended = (
            self._entry_clock.of_server(self._clock()) if event.ended_us == NOT_SAID else EPOCH + event.ended_us * _US
        )
        places = await asyncio.gather(*[self._place(game, one, event.player_id) for one in game.periods_at(ended)])
        return {name: place[1] for name, place in places if place is not None}

    async def _place(self, game: Game, period: Period, player_id: str) -> tuple[str, tuple[int, int] | None]:
        """Return a board's short name, and a player's score and rank there; None when there is none or not now."""
        name = period.key if period.key.startswith("season:") else period.kind.value
        standing = await self._views.standing_or_none(board_name(game.name, period.key), player_id)
        if standing is None:
            return name, None
        score, _ = shown_score(place_of(game.mode, standing.member).score)
        return name, (score, standing.before + 1)


def _is_same(row: LedgerRow, taken: _Taken) -> bool:
    return row.fingerprint == taken.event.fingerprint or row.position == (taken.version, taken.number)


def _ends(taken: Sequence[_Taken]) -> Sequence[Appended]:
    """Return up to where partitions must be applied."""
    last = {one.partition: one for one in taken}
    return [Appended(one.partition, EntryId.of_version(one.version), 0, one.number + 1) for one in last.values()]


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
