"""What the API refuses, and how it says so: one code a reason, stable, as application/problem+json (RFC 9457)."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from http import HTTPStatus

import msgspec

from domain.errors import LakeboardError
from domain.events import Reject
from serving.settings import MAX_BODY_BYTES, MAX_ROWS

PROBLEM_TYPE = b"application/problem+json"
ZONE_MISSING = "time_zone_missing"


class Code(StrEnum):
    """Why a request is not served. Stable: clients decide by them."""

    INVALID_JSON = "invalid_json"
    INVALID_GZIP = "invalid_gzip"
    EMPTY = "empty"
    UNKNOWN_FIELD = "unknown_field"
    UNKNOWN_PARAMETER = "unknown_parameter"
    BAD_REQUEST = "bad_request"
    KEY_MISSING = "key_missing"
    KEY_INVALID = "key_invalid"
    ROLE_MISSING = "role_missing"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    TOO_SLOW = "too_slow"
    BODY_TOO_LARGE = "body_too_large"
    TOO_MANY_ROWS = "too_many_rows"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    UNSUPPORTED_ENCODING = "unsupported_encoding"
    NO_GOOD_ROW = "no_good_row"
    RATE_LIMITED = "rate_limited"
    INTERNAL = "internal"
    BUSY = "busy"
    LOG_FULL = "log_full"
    LOG_UNAVAILABLE = "log_unavailable"
    PARAMETER_INVALID = "parameter_invalid"
    K_OUT_OF_RANGE = "k_out_of_range"
    START_UNALIGNED = "start_unaligned"
    NOTHING_COUNTED = "nothing_counted"
    RELEASE_UNKNOWN = "release_unknown"
    TOO_MANY_VIEWERS = "too_many_viewers"
    CHARTS_NOT_READY = "charts_not_ready"
    CHARTS_UNAVAILABLE = "charts_unavailable"
    LAKE_UNAVAILABLE = "lake_unavailable"
    UNKNOWN_GAME = "unknown_game"
    UNKNOWN_BOARD = "unknown_board"
    NOT_RANKED = "not_ranked"
    NOT_CERTIFIED = "not_certified"
    MATCH_CONFLICT = "match_conflict"
    IDEMPOTENCY_REQUIRED = "idempotency_required"
    PLAYER_INVALID = "player_invalid"
    MATCH_INVALID = "match_invalid"
    SCORE_INVALID = "score_invalid"
    DELTA_INVALID = "delta_invalid"
    GAME_NOT_ALLOWED = "game_not_allowed"
    BOARDS_NOT_READY = "boards_not_ready"
    BOARDS_UNAVAILABLE = "boards_unavailable"


# Reasons that concern one row: the importer's own codes, with the field they are about and what a sender should know.
ROW_CODES: Mapping[str, tuple[str | None, str]] = {
    Reject.UNREADABLE_ROW: (None, "the row is no JSON object"),
    Reject.NOT_UTF8: (None, "the row is no UTF-8"),
    Reject.ITEM_MISSING: ("item_id", "an item id is needed"),
    Reject.ITEM_INVALID: ("item_id", "an id is 1 to 256 bytes of UTF-8 without control characters, or a whole number"),
    Reject.ID_MISSING: ("event_id", "an event id is needed: it is what makes sending again safe"),
    Reject.ID_INVALID: ("event_id", "an id is 1 to 256 bytes of UTF-8 without control characters, or a whole number"),
    Reject.USER_INVALID: ("user_id", "an id is 1 to 256 bytes of UTF-8 without control characters, or a whole number"),
    Reject.REGION_INVALID: ("region", "a region is 1 to 32 of A-Z a-z 0-9 _ -"),
    Reject.TIME_MISSING: ("event_time", "an empty text is no time; leave the field out for the log's own time"),
    Reject.TIME_INVALID: ("event_time", "a time is a text in ISO 8601 with a zone, or a date"),
    ZONE_MISSING: ("event_time", "the time has no zone: end it with Z or an offset such as +05:30"),
    Reject.TIME_OUT_OF_RANGE: ("event_time", "times before 1900 are not taken"),
    Reject.IN_THE_FUTURE: ("event_time", "the time is more than 5 minutes ahead of the server's clock"),
    Reject.DURATION_INVALID: ("duration_ms", "a duration is a number of milliseconds from 0 to 2^53"),
    Reject.COUNT_INVALID: ("count", "a count is a whole number from 1 to 2^40"),
}

# Reasons that concern the whole request, with their status.
REQUEST_CODES: Mapping[str, tuple[HTTPStatus, str]] = {
    Code.INVALID_JSON: (HTTPStatus.BAD_REQUEST, "The body is not valid JSON"),
    Code.INVALID_GZIP: (HTTPStatus.BAD_REQUEST, "The body is not valid gzip"),
    Code.EMPTY: (HTTPStatus.BAD_REQUEST, "The body has no rows"),
    Code.UNKNOWN_FIELD: (HTTPStatus.BAD_REQUEST, "A row has a field that does not exist"),
    Code.UNKNOWN_PARAMETER: (HTTPStatus.BAD_REQUEST, "The address has a query parameter that does not exist"),
    Code.BAD_REQUEST: (HTTPStatus.BAD_REQUEST, "The request cannot be understood"),
    Code.KEY_MISSING: (HTTPStatus.UNAUTHORIZED, "A key is needed"),
    Code.KEY_INVALID: (HTTPStatus.UNAUTHORIZED, "The key is not valid"),
    Code.ROLE_MISSING: (HTTPStatus.FORBIDDEN, "The key may not do this"),
    Code.NOT_FOUND: (HTTPStatus.NOT_FOUND, "There is nothing at this address"),
    Code.METHOD_NOT_ALLOWED: (HTTPStatus.METHOD_NOT_ALLOWED, "This address does not take this method"),
    Code.TOO_SLOW: (HTTPStatus.REQUEST_TIMEOUT, "The body took too long to arrive"),
    Code.BODY_TOO_LARGE: (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The body is too large"),
    Code.TOO_MANY_ROWS: (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The body has too many rows"),
    Code.UNSUPPORTED_MEDIA_TYPE: (HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "The body is of an unknown kind"),
    Code.UNSUPPORTED_ENCODING: (
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        "The body has an unknown encoding",
    ),
    Code.NO_GOOD_ROW: (HTTPStatus.UNPROCESSABLE_ENTITY, "No row could be taken"),
    Code.RATE_LIMITED: (HTTPStatus.TOO_MANY_REQUESTS, "The key sent too much in too short a time"),
    Code.INTERNAL: (HTTPStatus.INTERNAL_SERVER_ERROR, "Something went wrong in the server"),
    Code.BUSY: (HTTPStatus.SERVICE_UNAVAILABLE, "Too many large requests at once"),
    Code.LOG_FULL: (HTTPStatus.SERVICE_UNAVAILABLE, "The event log takes nothing for now"),
    Code.LOG_UNAVAILABLE: (HTTPStatus.SERVICE_UNAVAILABLE, "The event log does not answer"),
    Code.PARAMETER_INVALID: (HTTPStatus.BAD_REQUEST, "A query parameter has a value that it cannot have"),
    Code.K_OUT_OF_RANGE: (HTTPStatus.BAD_REQUEST, "A chart has 1 to 100 rows"),
    Code.START_UNALIGNED: (HTTPStatus.BAD_REQUEST, "Closed windows start on whole hours or days, UTC"),
    Code.NOTHING_COUNTED: (HTTPStatus.NOT_FOUND, "Nothing has been counted yet"),
    Code.RELEASE_UNKNOWN: (HTTPStatus.NOT_FOUND, "There is no such release"),
    Code.TOO_MANY_VIEWERS: (HTTPStatus.SERVICE_UNAVAILABLE, "Too many live charts are open"),
    Code.CHARTS_NOT_READY: (HTTPStatus.SERVICE_UNAVAILABLE, "No live chart is ready"),
    Code.CHARTS_UNAVAILABLE: (HTTPStatus.SERVICE_UNAVAILABLE, "The views server does not answer"),
    Code.LAKE_UNAVAILABLE: (HTTPStatus.SERVICE_UNAVAILABLE, "The lake cannot be read"),
    Code.UNKNOWN_GAME: (HTTPStatus.NOT_FOUND, "There is no such game"),
    Code.UNKNOWN_BOARD: (HTTPStatus.NOT_FOUND, "The game has no such board"),
    Code.NOT_RANKED: (HTTPStatus.NOT_FOUND, "The player is not on the board"),
    Code.NOT_CERTIFIED: (HTTPStatus.NOT_FOUND, "Nothing is certified of the board"),
    Code.MATCH_CONFLICT: (HTTPStatus.CONFLICT, "The match has another score already"),
    Code.IDEMPOTENCY_REQUIRED: (HTTPStatus.BAD_REQUEST, "The match of a score is not said"),
    Code.PLAYER_INVALID: (HTTPStatus.UNPROCESSABLE_ENTITY, "A player id cannot be as it was sent"),
    Code.MATCH_INVALID: (HTTPStatus.UNPROCESSABLE_ENTITY, "A match id cannot be as it was sent"),
    Code.SCORE_INVALID: (HTTPStatus.UNPROCESSABLE_ENTITY, "A score cannot be as it was sent"),
    Code.DELTA_INVALID: (HTTPStatus.UNPROCESSABLE_ENTITY, "A delta cannot be as it was sent"),
    Code.GAME_NOT_ALLOWED: (HTTPStatus.FORBIDDEN, "The key is limited to other games"),
    Code.BOARDS_NOT_READY: (HTTPStatus.SERVICE_UNAVAILABLE, "The boards are not whole yet"),
    Code.BOARDS_UNAVAILABLE: (HTTPStatus.SERVICE_UNAVAILABLE, "The views server does not answer"),
}

# Those that only boards have.
OF_BOARDS = frozenset(
    {
        Code.UNKNOWN_GAME,
        Code.UNKNOWN_BOARD,
        Code.NOT_RANKED,
        Code.NOT_CERTIFIED,
        Code.MATCH_CONFLICT,
        Code.IDEMPOTENCY_REQUIRED,
        Code.PLAYER_INVALID,
        Code.MATCH_INVALID,
        Code.SCORE_INVALID,
        Code.DELTA_INVALID,
        Code.GAME_NOT_ALLOWED,
        Code.BOARDS_NOT_READY,
        Code.BOARDS_UNAVAILABLE,
    }
)

# Those that only reading has.
OF_READING = frozenset(
    {
        Code.PARAMETER_INVALID,
        Code.K_OUT_OF_RANGE,
        Code.START_UNALIGNED,
        Code.NOTHING_COUNTED,
        Code.RELEASE_UNKNOWN,
        Code.TOO_MANY_VIEWERS,
        Code.CHARTS_NOT_READY,
        Code.CHARTS_UNAVAILABLE,
        Code.LAKE_UNAVAILABLE,
    }
)


class RowError(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why one row was not taken.

    Attributes:
        index: Which row of the body, from 0.
        code: One of `ROW_CODES`.
        detail: The same for a person.
        field: The field it is about, None where it is the whole row.
    """

    index: int
    code: str
    detail: str
    field: str | None = None


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of a refusal, as RFC 9457 names its members."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    field: str | None = None
    index: int | None = None
    errors: tuple[RowError, ...] | None = None


class RefusedError(LakeboardError):
    """A request that is not served.

    Attributes:
        code: One of `REQUEST_CODES`, or of `ROW_CODES` when the request was a single row.
        detail: What is wrong and what to do, for a person; no value of the request.
        field: The field it is about.
        index: The row it is about, from 0.
        errors: Every row that was not taken, when it is about rows.
        headers: What the answer must carry beside the body.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        field: str | None = None,
        index: int | None = None,
        errors: Sequence[RowError] = (),
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        super().__init__(code, detail)
        self.code = str(code)
        self.detail = detail
        self.field = field
        self.index = index
        self.errors = tuple(errors)
        self.headers = tuple(headers)

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"

    @property
    def status(self) -> int:
        """Return the HTTP status."""
        return status_of(self.code)

    def body(self) -> bytes:
        """Return the body of the answer."""
        title = REQUEST_CODES[self.code][1] if self.code in REQUEST_CODES else "The row could not be taken"
        problem = Problem(
            type=f"/docs#{self.code}",
            title=title,
            status=self.status,
            code=self.code,
            detail=self.detail,
            field=self.field,
            index=self.index,
            errors=self.errors or None,
        )
        return msgspec.json.encode(problem)


def status_of(code: str) -> int:
    """Return the HTTP status of a code."""
    return int(REQUEST_CODES[code][0] if code in REQUEST_CODES else HTTPStatus.UNPROCESSABLE_ENTITY)


def row_error(index: int, code: str) -> RowError:
    """Return why a row was not taken, with the words of its code."""
    field, detail = ROW_CODES[code]
    return RowError(index=index, code=str(code), field=field, detail=detail)


def too_large() -> RefusedError:
    """Return the refusal of a body over the limit."""
    detail = f"a body may have {MAX_BODY_BYTES >> 20} MiB, inflated too: send less at once"
    return RefusedError(Code.BODY_TOO_LARGE, detail)


def too_many_rows() -> RefusedError:
    """Return the refusal of a body with more rows than one request may bring."""
    return RefusedError(Code.TOO_MANY_ROWS, f"a request may bring {MAX_ROWS:,} rows: send the others in another one")
