"""What the OpenAPI document says of charts, and the routes that are served by Litestar itself."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from litestar import Request, Response, Router, get
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Operation, Parameter, Schema
from litestar.openapi.spec.enums import OpenAPIFormat, OpenAPIType

from domain.race import MOST_SEED, WIDTHS
from serving.answers import Answer
from serving.chart_questions import CHART_PATH, COUNT_ROUTE, LIVE_PATH, RACE_PATH, TOP_PATH
from serving.problems import PROBLEM_TYPE, Code, Problem, status_of

_TEXT, _WHOLE = OpenAPIType.STRING, OpenAPIType.INTEGER
_COMMON = (
    Code.UNKNOWN_PARAMETER,
    Code.PARAMETER_INVALID,
    Code.KEY_MISSING,
    Code.KEY_INVALID,
    Code.ROLE_MISSING,
    Code.RATE_LIMITED,
    Code.INTERNAL,
)
_LIVE = (Code.K_OUT_OF_RANGE, Code.CHARTS_NOT_READY, Code.CHARTS_UNAVAILABLE)
_CLOSED = (Code.NOTHING_COUNTED, Code.LAKE_UNAVAILABLE, Code.BUSY)

_SAME = ResponseSpec(None, description="The client has it already (If-None-Match)", generate_examples=False)

AnswerRequest = Callable[[Request[Any, Any, Any]], Any]


class ChartEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One row: `lower <= truth <= upper`, and the ranks between which the truth stands."""

    rank: int
    item_id: str
    count: int
    lower: int
    upper: int
    rank_min: int
    rank_max: int
    moved: int | None = None


class Partial(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A partition of the log of which not all is in the chart."""

    partition: int
    reason: str
    as_of: str | None = None
    window_start: str | None = None
    window_end: str | None = None
    complete_from: str | None = None


class Chart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The best items of a window and region, and what is known of all others."""

    window: str
    region: str
    window_start: str
    window_end: str
    as_of: str
    status: str
    exact: bool
    frontier: str | None
    total: int
    missed_max: int
    tie_at_cut: bool
    entries: Sequence[ChartEntry]
    partial: Sequence[Partial] | None = None
    release: int | None = None


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """What one item counted in a span of whole hours."""

    item_id: str
    region: str
    received: int
    duplicates: int
    conflicts: int
    excluded: int
    counted: int
    release: int
    status: str
    hours_not_certified: int


_MOMENT = Schema(type=_TEXT, format=OpenAPIFormat.DATE_TIME)


def _parameter(name: str, schema: Schema, description: str) -> Parameter:
    return Parameter(name=name, param_in="query", schema=schema, description=description, required=False)


_PARAMETERS: Mapping[str, Parameter] = {
    "window": _parameter(
        "window", Schema(type=_TEXT, enum=["1m", "1h", "1d"]), "how long; left out = 1h; closed ones 1h and 1d"
    ),
    "region": _parameter(
        "region",
        Schema(type=_TEXT, pattern="^([A-Za-z0-9_-]{1,32}|\\*)$"),
        "where; ZZ = unknown; left out or * = everywhere",
    ),
    "k": _parameter("k", Schema(type=_WHOLE, minimum=1, maximum=100), "rows; left out = 10"),
    "n": _parameter("n", Schema(type=_WHOLE, minimum=1, maximum=100), "rows; left out = 100"),
    "start": _parameter(
        "start",
        _MOMENT,
        "start of a closed window, on a whole hour (1h) or at midnight UTC (1d); left out = the live window",
    ),
    "version": _parameter(
        "version", Schema(type=_WHOLE, minimum=0, maximum=999_999_999), "number of a release; left out = the newest"
    ),
    "from": _parameter("from", _MOMENT, "first whole hour, included; needed"),
    "width": _parameter(
        "width", Schema(type=_WHOLE, enum=list(WIDTHS)), "cells in each of the sketch's 4 rows; left out = 128"
    ),
    "seed": _parameter(
        "seed", Schema(type=_WHOLE, minimum=0, maximum=MOST_SEED), "the same seed, the same plays; left out = 1"
    ),
    "to": _parameter("to", _MOMENT, "whole hour at which it ends, not included; needed"),
}


def _queried(*names: str) -> type[Operation]:
    """Return the operation of a route with these parameters: our own code reads them, so Litestar cannot tell."""

    @dataclass
    class Queried(Operation):
        def __post_init__(self) -> None:
            self.parameters = [_PARAMETERS[name] for name in names]

    return Queried


@dataclass
class CountOperation(Operation):
    """The operation of `GET /v1/items/{id}/count`: its query is read by our own code too."""

    def __post_init__(self) -> None:
        """Describe the query beside the id, which stands in the path."""
        item = Parameter(
            name="item_id",
            param_in="path",
            required=True,
            schema=Schema(type=_TEXT, min_length=1, max_length=256),
            description="the item",
        )
        self.parameters = [item, *(_PARAMETERS[name] for name in ("from", "to", "region"))]


def refusals(*codes: Code) -> Mapping[int, ResponseSpec]:
    """Return what a route may answer instead, by status with every code."""
    by_status: dict[int, list[str]] = {}
    for code in (*_COMMON, *codes):
        by_status.setdefault(status_of(code), []).append(code)
    kind = PROBLEM_TYPE.decode()
    return {
        status: ResponseSpec(Problem, media_type=kind, description=f"code: {', '.join(found)}", generate_examples=False)
        for status, found in sorted(by_status.items())
    }


def charts_router(answer: AnswerRequest) -> Router:
    """Return the routes of charts as Litestar knows them.

    The server answers the same addresses without Litestar, before (`serving/app.py`); both ways run the same code.
    """
    return Router("/", route_handlers=[*_charts(answer), *_others(answer)])


def _charts(answer: AnswerRequest) -> Sequence[HTTPRouteHandler]:
    @get(
        TOP_PATH,
        summary="The best items everywhere, now",
        tags=["charts"],
        operation_class=_queried("k", "window"),
        responses={304: _SAME, **refusals(*_LIVE)},
    )
    async def top(request: Request[Any, Any, Any]) -> Response[Chart]:
        return _as_it_is(await answer(request))

    @get(
        CHART_PATH,
        summary="The best items of a window and region: now, or of a closed hour or day",
        description=(
            "Live rows have bounds and rank ranges; closed windows are exact, and final once every hour is certified."
        ),
        tags=["charts"],
        operation_class=_queried("window", "region", "n", "start", "version"),
        responses={304: _SAME, **refusals(*_LIVE, *_CLOSED, Code.START_UNALIGNED, Code.RELEASE_UNKNOWN)},
    )
    async def chart(request: Request[Any, Any, Any]) -> Response[Chart]:
        return _as_it_is(await answer(request))

    return top, chart


def _others(answer: AnswerRequest) -> Sequence[HTTPRouteHandler]:
    @get(
        LIVE_PATH,
        summary="The same as server-sent events: the chart whenever it changed",
        description="Events are named chart; their data is the body of /v1/charts/top. Last-Event-ID is understood.",
        tags=["charts"],
        media_type="text/event-stream",
        operation_class=_queried("window", "region", "n"),
        responses=dict(refusals(*_LIVE, Code.TOO_MANY_VIEWERS)),
    )
    async def live(request: Request[Any, Any, Any]) -> Response[str]:
        return _as_it_is(await answer(request))

    @get(
        RACE_PATH,
        summary="The race as server-sent events: exact counts and a sketch of the same plays",
        description="Events are named frame, about seven a second; the last is followed by one named end.",
        tags=["charts"],
        media_type="text/event-stream",
        operation_class=_queried("width", "seed"),
        responses=dict(refusals(Code.TOO_MANY_VIEWERS)),
    )
    async def race(request: Request[Any, Any, Any]) -> Response[str]:
        return _as_it_is(await answer(request))

    @get(
        COUNT_ROUTE,
        summary="Plays of one item from one whole hour up to another, exactly",
        tags=["charts"],
        operation_class=CountOperation,
        responses={304: _SAME, **refusals(*_CLOSED)},
    )
    async def count(request: Request[Any, Any, Any], item_id: str) -> Response[Count]:
        return _as_it_is(await answer(request))

    return live, race, count


def _as_it_is(found: Answer) -> Response[Any]:
    headers = {name.decode(): value.decode() for name, value in found.headers}
    return Response(found.body, status_code=found.status, headers=headers)
