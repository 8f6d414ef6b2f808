"""What the OpenAPI document says of boards: one row an operation.

The server answers these addresses without Litestar, before (`serving/app.py`); both ways run the same code.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from litestar import Request, Response, Router
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import OpenAPIMediaType, Operation, Parameter, RequestBody, Schema
from litestar.openapi.spec.enums import OpenAPIType

from serving.answers import Answer
from serving.boards.addresses import DECISIONS, FRIENDS, LIVE, WRITES, BoardRoute
from serving.boards.questions import MOST_AROUND, MOST_FRIENDS, MOST_ROWS, Ties
from serving.chart_routes import AnswerRequest, refusals
from serving.problems import Code
from serving.settings import MAX_ROWS

_TEXT, _WHOLE, _OBJECT = OpenAPIType.STRING, OpenAPIType.INTEGER, OpenAPIType.OBJECT
_ID = Schema(one_of=[Schema(type=_TEXT, min_length=1, max_length=256), Schema(type=_WHOLE)])
_SCORE = Schema(one_of=[Schema(type=_WHOLE), Schema(type=_TEXT, pattern="^-?[0-9]{1,19}$")])
_READING = (
    Code.UNKNOWN_GAME, Code.UNKNOWN_BOARD, Code.NOT_RANKED, Code.NOT_CERTIFIED, Code.BOARDS_NOT_READY,
    Code.BOARDS_UNAVAILABLE, Code.LAKE_UNAVAILABLE, Code.BUSY, Code.METHOD_NOT_ALLOWED,
)  # fmt: skip
_ASKING = (Code.BAD_REQUEST, Code.BODY_TOO_LARGE, Code.TOO_SLOW, Code.INVALID_GZIP, Code.UNSUPPORTED_ENCODING)
_WRITING = (
    Code.INVALID_JSON, Code.INVALID_GZIP, Code.EMPTY, Code.UNKNOWN_FIELD, Code.BAD_REQUEST, Code.TOO_SLOW,
    Code.BODY_TOO_LARGE, Code.TOO_MANY_ROWS, Code.UNSUPPORTED_MEDIA_TYPE, Code.UNSUPPORTED_ENCODING, Code.NO_GOOD_ROW,
    Code.BUSY, Code.LOG_FULL, Code.LOG_UNAVAILABLE, Code.UNKNOWN_GAME, Code.MATCH_CONFLICT, Code.IDEMPOTENCY_REQUIRED,
    Code.PLAYER_INVALID, Code.MATCH_INVALID, Code.SCORE_INVALID, Code.DELTA_INVALID, Code.GAME_NOT_ALLOWED,
    Code.BOARDS_UNAVAILABLE, Code.METHOD_NOT_ALLOWED,
)  # fmt: skip
_TOP = ("period", "cursor")
_PLAYER = ("around", "ties", "mode", "period")


@dataclass(frozen=True)
class _Described:
    """One operation.

    Attributes:
        method: Of HTTP.
        route: Where.
        summary: What it does.
        query: Names of its parameters.
    """

    method: str
    route: BoardRoute
    summary: str
    query: Sequence[str] = ()


_OPERATIONS: Final = (
    _Described("POST", BoardRoute.SCORES, "Take scores; answered once they are on disk, with ranks"),
    _Described("POST", BoardRoute.SCORES_V1, "The same"),
    _Described("POST", BoardRoute.GAME_SCORES, "The same for one game; sums take delta"),
    _Described("GET", BoardRoute.TOP, "The best players of a board of the game `default`", ("limit", *_TOP)),
    _Described("GET", BoardRoute.GAME_BOARD_TOP, "The best players of a board", ("limit", *_TOP)),
    _Described("GET", BoardRoute.GAME_TOP, "The best players of a game's first board", ("n", *_TOP)),
    _Described("GET", BoardRoute.PLAYER, "A player's exact place and neighbours, in the game `default`", _PLAYER),
    _Described("GET", BoardRoute.GAME_PLAYER, "A player's exact place and neighbours", _PLAYER),
    _Described("GET", BoardRoute.GAME_RANK, "A player's exact place on a game's first board", _PLAYER),
    _Described("GET", BoardRoute.FRIENDS, "The places of some players, the best first", ("ids", "period")),
    _Described("GET", BoardRoute.GAME_FRIENDS, "The places of some players, the best first", ("ids", "period")),
    _Described("POST", BoardRoute.FRIENDS, "The same, of players named in the body"),
    _Described("POST", BoardRoute.GAME_FRIENDS, "The same, of players named in the body"),
    _Described("GET", BoardRoute.LIVE, "The best of a board of `default`, whenever they change, as server-sent events"),
    _Described("GET", BoardRoute.GAME_LIVE, "The best of a board, whenever they change, as server-sent events"),
    _Described("GET", BoardRoute.CERTIFICATE, "What the newest rebuild certified of a board"),
    _Described("GET", BoardRoute.BOARDS, "Games and their boards"),
    _Described("GET", BoardRoute.CALENDAR, "Periods of boards: start, end, end of grace, when archived"),
    _Described("PUT", BoardRoute.BAN, "Take a player off all boards, for ever or until a moment"),
    _Described("DELETE", BoardRoute.BAN, "End a ban: the player is back in the exact place"),
    _Described("POST", BoardRoute.APPROVE, "Rank a score that is held"),
    _Described("DELETE", BoardRoute.MATCH, "Remove a match of a player, at the next rebuild"),
)
_QUERY: Final[Mapping[str, tuple[Schema, str]]] = {
    "limit": (Schema(type=_WHOLE, minimum=1, maximum=MOST_ROWS), "rows; left out = 10"),
    "n": (Schema(type=_WHOLE, minimum=1, maximum=MOST_ROWS), "rows; left out = 10"),
    "period": (Schema(type=_TEXT), "a full key, or what follows its colon; left out = the present one"),
    "cursor": (Schema(type=_TEXT), "that of the page before"),
    "around": (Schema(type=_WHOLE, minimum=0, maximum=MOST_AROUND), "neighbours on each side; left out = 5"),
    "ties": (Schema(type=_TEXT, enum=list(Ties)), "numbering of equal scores: 1234, 1224 or 1223"),
    "mode": (Schema(type=_TEXT, enum=["exact"]), "ranks are exact"),
    "ids": (Schema(type=_TEXT), "player ids with commas between them; needed"),
}
_SCORE_SCHEMA: Final = Schema(
    type=_OBJECT,
    title="Score",
    required=["player_id"],
    additional_properties=False,
    properties={
        "match_id": _ID, "player_id": _ID, "score": _SCORE, "delta": _SCORE, "game": Schema(type=_TEXT),
        "ended_at": Schema(type=_TEXT, description="ISO 8601 with a zone; left out = the log's time"),
    },
    examples=[{"match_id": "m-1", "player_id": "ann", "score": 4200}],
)  # fmt: skip
_BAN_SCHEMA: Final = Schema(
    type=_OBJECT, title="Ban", required=["reason"], additional_properties=False,
    properties={"reason": Schema(type=_TEXT, min_length=1, max_length=1000), "until": Schema(type=_TEXT)},
)  # fmt: skip
_FRIENDS_SCHEMA: Final = Schema(
    type=_OBJECT, title="Friends", required=["ids"], additional_properties=False,
    properties={"ids": Schema(type=OpenAPIType.ARRAY, items=_ID, min_items=1, max_items=MOST_FRIENDS),
                "period": Schema(type=_TEXT)},
)  # fmt: skip


def boards_router(answer: AnswerRequest) -> Router:
    """Return the routes of boards as Litestar knows them."""
    return Router("/", route_handlers=[_handler(one, answer) for one in _OPERATIONS])


def _handler(described: _Described, answer: AnswerRequest) -> HTTPRouteHandler:
    async def handle(request: Request[Any, Any, Any]) -> Response[dict[str, Any]]:
        found: Answer = await answer(request)
        headers = {name.decode(): value.decode() for name, value in found.headers}
        return Response(found.body, status_code=found.status, headers=headers)  # type: ignore[arg-type]  # bytes as they are

    writes = described.route in WRITES or described.route in DECISIONS
    accepted = ResponseSpec(dict[str, Any], description="It is on disk, and not ranked yet", generate_examples=False)
    more = {202: accepted} if described.route in WRITES else {}
    handler = HTTPRouteHandler(
        described.route.value.replace("}", ":str}"),
        http_method=described.method,  # type: ignore[arg-type]  # one of those it knows
        status_code=200,
        media_type="text/event-stream" if described.route in LIVE else None,
        summary=described.summary,
        operation_id=f"{described.method} {described.route.value}",
        tags=["boards"],
        operation_class=_operation(described),
        responses={**more, **refusals(*_codes(described))},
        security=[{"key": []}] if writes else None,
    )
    return handler(handle)


def _codes(described: _Described) -> Sequence[Code]:
    if described.route in WRITES or described.route in DECISIONS:
        return _WRITING
    if described.route in LIVE:
        return (*_READING, Code.TOO_MANY_VIEWERS)
    return (*_READING, *_ASKING) if described.method == "POST" else _READING


def _operation(described: _Described) -> type[Operation]:
    """Return the operation: our own code reads query and body, so Litestar cannot tell."""
    path = [part[1:-1] for part in described.route.value.split("/") if part.startswith("{")]

    @dataclass
    class Described(Operation):
        def __post_init__(self) -> None:
            self.parameters = [
                *(Parameter(name, "path", required=True, schema=Schema(type=_TEXT, min_length=1)) for name in path),
                *(Parameter(name, "query", required=name == "ids", schema=_QUERY[name][0], description=_QUERY[name][1])
                  for name in described.query),
            ]  # fmt: skip
            schema = _body(described)
            if schema is not None:
                content = {"application/json": OpenAPIMediaType(schema=schema)}
                self.request_body = RequestBody(content=content, required=True)

    return Described


def _body(described: _Described) -> Schema | None:
    if described.route in WRITES:
        many = Schema(type=OpenAPIType.ARRAY, items=_SCORE_SCHEMA, min_items=1, max_items=MAX_ROWS)
        return Schema(one_of=[_SCORE_SCHEMA, many])
    if described.route in FRIENDS and described.method == "POST":
        return _FRIENDS_SCHEMA
    return _BAN_SCHEMA if described.method == "PUT" else None
