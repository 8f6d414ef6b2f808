"""What admins decide: bans, approvals of scores that are held, removals of matches. Each is an event in the log."""

from datetime import datetime, timedelta

import msgspec

from domain.boards.events import NOT_SAID, BoardEvent, EventKind
from domain.events import normal_id
from domain.windows import EPOCH
from serving.answers import JSON_TYPE, Answer, Head
from serving.auth import KeyRing
from serving.boards.addresses import BoardAddress, BoardRoute
from serving.boards.questions import nothing_asked
from serving.boards.scores import ScoresEndpoint
from serving.bodies import BodyReader, Receive, inflated
from serving.keys import Key, Role
from serving.problems import Code, RefusedError
from serving.settings import ApiSettings

_US = timedelta(microseconds=1)
_LONGEST_REASON = 1000


class BanBody(msgspec.Struct, forbid_unknown_fields=True):
    """Why a player is banned, and until when."""

    reason: str
    until: datetime | None = None


class Decided(msgspec.Struct, frozen=True):
    """The decision is on disk, and on the boards if they answer; a removal is there after the next rebuild."""

    accepted: int


class BoardAdmin:
    """The routes of admins, for one worker."""

    def __init__(self, settings: ApiSettings, *, ring: KeyRing, scores: ScoresEndpoint) -> None:
        self._ring = ring
        self._scores = scores
        self._bodies = BodyReader(seconds=settings.body_seconds, most_bytes=settings.buffered_bytes)

    async def watch(self) -> None:
        """Cut off bodies that take too long, for ever."""
        await self._bodies.watch()

    async def answer(self, head: Head, receive: Receive, address: BoardAddress) -> Answer:
        """Take a decision and return the answer.

        Raises:
            RefusedError: it is not taken.
            LogFullError, LogUnavailableError, LogReplacedError: the log does not take it; it may be there.
            ClientLeftError: there is nobody to answer.
        """
        nothing_asked(head.query)
        key = self._ring.require(head.headers.get(b"authorization"), Role.ADMIN)
        body = inflated(
            await self._bodies.read(receive, length=head.headers.get(b"content-length")),
            head.headers.get(b"content-encoding"),
        )
        await self._scores.append([self._event(head, address, body, key)], key)
        return Answer(200, ((b"content-type", JSON_TYPE),), msgspec.json.encode(Decided(accepted=1)))

    def _event(self, head: Head, address: BoardAddress, body: bytes, key: Key) -> BoardEvent:
        player = _id(address.player_id, Code.PLAYER_INVALID, "player_id")
        if address.route is not BoardRoute.BAN:
            kind = EventKind.APPROVE if address.route is BoardRoute.APPROVE else EventKind.REMOVE
            self._scores.game(address.game, key)
            match = _id(address.match_id, Code.MATCH_INVALID, "match_id")
            return BoardEvent(kind, address.game, player, match, 0, NOT_SAID, 0, "", NOT_SAID)
        if head.method == "DELETE":
            return BoardEvent(EventKind.RESTORE, "", player, "", 0, NOT_SAID, 0, "", NOT_SAID)
        ban = _ban_of(body)
        until = NOT_SAID if ban.until is None else (ban.until - EPOCH) // _US
        return BoardEvent(EventKind.BAN, "", player, "", 0, NOT_SAID, 0, ban.reason, until)


def _ban_of(body: bytes) -> BanBody:
    try:
        ban = msgspec.json.decode(body, type=BanBody)
    except (ValueError, RecursionError) as error:
        detail = 'send {"reason": "..."}, and "until": a moment in ISO 8601 with its zone if the ban ends by itself'
        raise RefusedError(Code.BAD_REQUEST, detail) from error
    if len(ban.reason) > _LONGEST_REASON or not ban.reason:
        raise RefusedError(Code.BAD_REQUEST, f"a reason has 1 to {_LONGEST_REASON:,} characters", field="reason")
    if ban.until is not None and ban.until.tzinfo is None:
        raise RefusedError(Code.BAD_REQUEST, "until needs a zone: end it with Z or an offset", field="until")
    return ban


def _id(text: str, code: Code, field: str) -> str:
    found = normal_id(text)
    if found is None:
        detail = "an id is 1 to 256 bytes of UTF-8 without control characters"
        raise RefusedError(code, detail, field=field)
    return found
