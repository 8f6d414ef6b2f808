"""What the OpenAPI document says beyond what the routes say of themselves: events, refusals, keys."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Litestar, Request, Response, Router, post
from litestar.openapi import OpenAPIConfig
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Components, OpenAPIMediaType, Operation, RequestBody, Schema, SecurityScheme
from litestar.openapi.spec.enums import OpenAPIType

from domain.events import MAX_REGION_LENGTH
from serving.answers import Answer, Head
from serving.bodies import Receive
from serving.events import EVENTS_PATH, JSON_LINES, Accepted
from serving.problems import OF_BOARDS, OF_READING, PROBLEM_TYPE, REQUEST_CODES, ROW_CODES, Code, Problem
from serving.settings import MAX_ROWS

TITLE = "lakeboard"
VERSION = "1"
_NOT_OF_EVENTS = frozenset({Code.NOT_FOUND, Code.BAD_REQUEST}) | OF_READING | OF_BOARDS
_TEXT, _WHOLE, _NULL = OpenAPIType.STRING, OpenAPIType.INTEGER, OpenAPIType.NULL

AnswerEvents = Callable[[Head, Receive], Any]


def _id_schema(description: str, *, optional: bool = False) -> Schema:
    text = Schema(type=_TEXT, min_length=0 if optional else 1, max_length=256, pattern="^[^\\u0000-\\u001f\\u007f]*$")
    kinds = [text, Schema(type=_WHOLE), *([Schema(type=_NULL)] if optional else [])]
    return Schema(one_of=kinds, description=description)


def _number_schema(description: str, least: int, most: int) -> Schema:
    number = Schema(type=OpenAPIType.NUMBER, minimum=least, maximum=most)
    text = Schema(type=_TEXT, pattern="^[0-9]{1,15}$", description="the same as a text, for large numbers")
    return Schema(one_of=[number, text, Schema(type=_NULL)], description=description)


def play_schema() -> Schema:
    """Return the schema of one play as senders write it."""
    region = Schema(one_of=[
        Schema(type=_TEXT, max_length=MAX_REGION_LENGTH, pattern="^[A-Za-z0-9_-]*$"), Schema(type=_NULL),
    ], description="where; kept in capitals; left out or empty = ZZ, unknown")  # fmt: skip
    time = Schema(one_of=[Schema(type=_TEXT, min_length=1), Schema(type=_NULL)], description=(
        "when it happened: ISO 8601 with a zone, or a date for midnight UTC; from 1900 to 5 minutes ahead; "
        "left out = the log's time"), examples=["2026-11-14T09:30:00Z"])  # fmt: skip
    return Schema(
        type=OpenAPIType.OBJECT,
        title="Play",
        required=["item_id", "event_id"],
        additional_properties=False,
        properties={
            "item_id": _id_schema("what was played: 1 to 256 bytes of UTF-8; a whole number is its decimal text"),
            "event_id": _id_schema("id of the event: sent again, it counts once"),
            "region": region,
            "user_id": _id_schema("who played it; left out or empty = not said", optional=True),
            "event_time": time,
            "duration_ms": _number_schema("how long, in milliseconds", 0, 2**53),
            "count": _number_schema("how many plays it stands for, a whole number; left out = 1", 1, 2**40),
        },
        examples=[{"item_id": "song-1", "event_id": "e-1", "region": "IN", "event_time": "2026-11-14T09:30:00Z"}],
    )


@dataclass
class EventsOperation(Operation):
    """The operation of `POST /v1/events`: its body is read by our own code, so Litestar cannot describe it."""

    def __post_init__(self) -> None:
        """Describe the body."""
        play = play_schema()
        many = Schema(type=OpenAPIType.ARRAY, items=play, min_items=1, max_items=MAX_ROWS)
        lines = Schema(type=_TEXT, description=f"1 to {MAX_ROWS:,} objects as above, one a line")
        self.request_body = RequestBody(
            description="One play, an array, or one a line; plain or with Content-Encoding: gzip; up to 4 MiB",
            required=True,
            content={
                "application/json": OpenAPIMediaType(schema=Schema(one_of=[play, many])),
                JSON_LINES.decode(): OpenAPIMediaType(schema=lines),
            },
        )


def refusals() -> Mapping[int, ResponseSpec]:
    """Return the refusals of `POST /v1/events` by status, with every code."""
    codes: dict[int, list[str]] = defaultdict(list)
    for code, (status, _) in REQUEST_CODES.items():
        if code not in _NOT_OF_EVENTS:
            codes[int(status)].append(code)
    codes[int(HTTPStatus.UNPROCESSABLE_ENTITY)] += [str(code) for code in ROW_CODES]
    kind = PROBLEM_TYPE.decode()
    return {
        status: ResponseSpec(Problem, media_type=kind, description=f"code: {', '.join(found)}", generate_examples=False)
        for status, found in sorted(codes.items())
    }


def events_router(answer: Callable[[Request[Any, Any, Any]], Any]) -> Router:
    """Return the route of events as Litestar knows it.

    The server answers it without Litestar, before (`serving/app.py`); both ways run the same code.
    """

    @post(
        EVENTS_PATH,
        status_code=202,
        summary="Take plays; answered once they are on disk",
        description=(
            "A repeated event gets 202 like the first and counts once, so sending again is always safe. "
            "Rows that are not good are named by index and the others are taken."
        ),
        tags=["events"],
        operation_class=EventsOperation,
        responses=dict(refusals()),
        security=[{"key": []}],
    )
    async def post_events(request: Request[Any, Any, Any]) -> Response[Accepted]:
        found: Answer = await answer(request)
        headers = {name.decode(): value.decode() for name, value in found.headers}
        return Response(found.body, status_code=found.status, headers=headers)  # type: ignore[arg-type]  # bytes as they are

    return Router("/", route_handlers=[post_events])


def document_of(routers: list[Router]) -> bytes:
    """Return the OpenAPI document of these routes as JSON."""
    key = SecurityScheme(type="http", scheme="bearer", description="A key: `lakeboard keys add`")
    config = OpenAPIConfig(
        title=TITLE,
        version=VERSION,
        summary="Exact charts over an event lake",
        components=Components(security_schemes={"key": key}),
    )
    app = Litestar(route_handlers=routers, openapi_config=config)
    return msgspec.json.encode(app.openapi_schema.to_schema())
