"""Rows of a request to scores, or why they are none: the definitions of ids and times are those of plays."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from domain.boards.definitions import DEFAULT_GAME, Boards, Game
from domain.boards.entries import MOST_DELTA, MOST_SCORE
from domain.boards.events import NOT_SAID, BoardEvent, EventKind
from domain.boards.sort_key import Mode
from domain.events import Reject, normal_id
from domain.policy import Policy
from domain.windows import EPOCH
from ingest.score_entry import fingerprint
from ingest.times import iso_stamp
from serving.problems import ZONE_MISSING, Code, RefusedError, RowError, too_many_rows
from serving.settings import MAX_ROWS

FIELDS: Final = ("match_id", "player_id", "score", "delta", "ended_at", "game")
_US = timedelta(microseconds=1)
_LONGEST_NUMBER = 20  # characters of a score that is sent as a text
_ID = "is 1 to 256 bytes of UTF-8 without control characters, or a whole number"
_NUMBER = "as a number or as a text, which keeps all digits"
_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    Code.PLAYER_INVALID: ("player_id", f"a player id {_ID}"),
    Code.MATCH_INVALID: ("match_id", f"a match id {_ID}"),
    Code.IDEMPOTENCY_REQUIRED: ("match_id", "say match_id, or for one score Idempotency-Key: it makes a retry safe"),
    Code.SCORE_INVALID: ("score", f"a score is a whole number from -2^62 to 2^62, {_NUMBER}; sums take delta"),
    Code.DELTA_INVALID: ("delta", f"a delta is a whole number from -2^40 to 2^40, {_NUMBER}; other games take score"),
    Code.UNKNOWN_GAME: ("game", "there is no such game: GET /v1/boards lists them"),
    Reject.TIME_INVALID: ("ended_at", "a time is a text in ISO 8601 with a zone, or a date"),
    ZONE_MISSING: ("ended_at", "the time has no zone: end it with Z or an offset such as +05:30"),
    Reject.TIME_OUT_OF_RANGE: ("ended_at", "times before 1900 are not taken"),
    Reject.IN_THE_FUTURE: ("ended_at", "the time is more than 5 minutes ahead of the server's clock"),
    Reject.UNREADABLE_ROW: ("", "the row is no JSON object"),
}
_SUMMED: Final = ("delta", "score", MOST_DELTA, Code.DELTA_INVALID)
_RANKED: Final = ("score", "delta", MOST_SCORE, Code.SCORE_INVALID)
_WHOLE_TEXT: Final = re.compile("-?[0-9]+")


@dataclass(frozen=True, slots=True)
class Sent:
    """What a request says beside its rows.

    Attributes:
        game: Of the address; None = each row says its own.
        idempotency_key: Stands for the match of a single row; empty = not said.
        now: The log's clock, UTC; what ends later than it and the tolerance is refused.
    """

    game: str | None
    idempotency_key: str
    now: datetime


def rows_of(body: bytes) -> tuple[Sequence[Any], bool]:
    """Read one object or an array of them; return the rows, and whether the body was one object.

    Raises:
        RefusedError: no JSON, no rows, too many of them, or a field that does not exist.
    """
    try:
        found = msgspec.json.decode(body)
    except (ValueError, RecursionError) as error:
        raise RefusedError(Code.INVALID_JSON, "the body is no JSON, or nests too deep") from error
    rows = found if isinstance(found, list) else [found]
    if not rows:
        raise RefusedError(Code.EMPTY, "send at least one row")
    if len(rows) > MAX_ROWS:
        raise too_many_rows()
    for index, row in enumerate(rows):
        unknown = next((name for name in row if name not in FIELDS), None) if isinstance(row, dict) else None
        if unknown is not None:
            detail = f"there is no field {unknown[:64]!r}; there are {', '.join(FIELDS)}. Nothing was taken"
            raise RefusedError(Code.UNKNOWN_FIELD, detail, field=unknown[:64], index=index)
    return rows, not isinstance(found, list)


class ScoreJudge:
    """Judges rows; of one with several faults it says the first."""

    def __init__(self, boards: Boards, policy: Policy) -> None:
        self._boards = boards
        self._oldest_us = (policy.oldest_event - EPOCH) // _US
        self._tolerance = policy.future_tolerance

    def judge(self, row: Any, sent: Sent) -> BoardEvent | str:
        """Return the score of a row, or the code of its first fault."""
        try:
            return self._score(row, sent)
        except _FaultError as fault:
            return fault.code

    def _score(self, row: Any, sent: Sent) -> BoardEvent:
        if not isinstance(row, dict):
            raise _FaultError(Reject.UNREADABLE_ROW)
        game = self._game(row.get("game"), sent)
        player = _id(row.get("player_id"), Code.PLAYER_INVALID)
        said = row.get("match_id")
        if said is None and not sent.idempotency_key:
            raise _FaultError(Code.IDEMPOTENCY_REQUIRED)
        match = _id(sent.idempotency_key if said is None else said, Code.MATCH_INVALID)
        score = _number(row, game.mode)
        ended = self._ended(row.get("ended_at"), sent.now)
        mark = fingerprint(game=game.name, match_id=match, player_id=player, score=score, ended_us=ended)
        return BoardEvent(EventKind.SCORE, game.name, player, match, score, ended, mark, "", NOT_SAID)

    def _game(self, name: object, sent: Sent) -> Game:
        """Return the game of the address, or of the row, which must not differ."""
        wanted = sent.game if sent.game is not None else DEFAULT_GAME if name is None else name
        game = self._boards.games.get(wanted) if isinstance(wanted, str) else None
        if game is None or (name is not None and name != wanted):
            raise _FaultError(Code.UNKNOWN_GAME)
        return game

    def _ended(self, text: object, now: datetime) -> int:
        if text is None:
            return NOT_SAID
        stamp = iso_stamp(text) if isinstance(text, str) and text else Reject.TIME_INVALID
        if isinstance(stamp, Reject):
            raise _FaultError(stamp)
        if stamp.is_local:
            raise _FaultError(ZONE_MISSING)
        if stamp.us < self._oldest_us:
            raise _FaultError(Reject.TIME_OUT_OF_RANGE)
        if stamp.us > (now + self._tolerance - EPOCH) // _US:
            raise _FaultError(Reject.IN_THE_FUTURE)
        return stamp.us


class _FaultError(Exception):
    """A row that is no score."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def error_of(index: int, code: str) -> RowError:
    """Return why a row was not taken."""
    field, detail = _WORDS[code]
    return RowError(index=index, code=str(code), detail=detail, field=field or None)


def _id(value: object, code: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    found = normal_id(value) if isinstance(value, str) and value else None
    if found is None:
        raise _FaultError(code)
    return found


def _number(row: Mapping[str, object], mode: Mode) -> int:
    """Return the score of a row, or its delta where scores are summed; one that has both says nothing clear."""
    name, other, most, code = _SUMMED if mode is Mode.SUM else _RANKED
    value = row.get(name)
    if isinstance(value, str) and len(value) <= _LONGEST_NUMBER and _WHOLE_TEXT.fullmatch(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not -most <= value <= most or other in row:
        raise _FaultError(code)
    return value
