"""The routes that are not in a hurry: health, metrics, the OpenAPI document and its page."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
from litestar import Request, Response, Router, get
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler, HTTPRouteHandler
from litestar.openapi.datastructures import ResponseSpec
from litestar.response import Redirect
from prometheus_client.registry import Collector

from domain.errors import LakeboardError
from domain.log import Stream
from ingest.log_appender import LogAppender
from ingest.log_entry import Play
from serving import metrics
from serving.auth import KeyRing
from serving.charts_page import CHARTS_PAGE
from serving.charts_state import ChartsCollector
from serving.keys import Role
from serving.live_charts import LiveCharts
from serving.live_state import LiveCollector, read_live_state
from serving.log_state import LogCollector, read_log_state
from serving.logs import log
from serving.page_shell import LivePage
from serving.pages import docs_page
from serving.problems import PROBLEM_TYPE, Code, Problem, RefusedError
from serving.race_page import RACE_PAGE
from serving.settings import ApiSettings, is_loopback

_NO_SCRIPTS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"}


class Health(msgspec.Struct, frozen=True):
    """The process answers."""

    status: str


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that the API needs."""

    ok: bool
    problem: str | None = None


class Readiness(msgspec.Struct, frozen=True):
    """Whether events can be taken, and what each part says.

    Attributes:
        ready: Every part that accepting needs is well.
        parts: `log` answers, `room` is in it, `keys` can be read; `charts` are ready, which only reading needs.
    """

    ready: bool
    parts: dict[str, Part]


class Surroundings:
    """What the routes look at."""

    def __init__(
        self,
        settings: ApiSettings,
        *,
        appender: LogAppender[Play],
        ring: KeyRing,
        tally: metrics.Tally,
        live: LiveCharts,
    ) -> None:
        self._tally = tally
        self._live = live
        self.settings = settings
        self.ring = ring
        self._appender = appender

    def readiness(self) -> Readiness:
        """Say what each part was like within the last second."""
        problems = {
            "log": self._appender.problem and "its server does not answer, or its folder cannot be looked at",
            "room": self._appender.refusal,
            "keys": self.ring.problem and "keys.json cannot be read; the keys of before stand",
        }
        ready = all(problem is None for problem in problems.values())
        problems["charts"] = self._live.problem  # reading alone needs them
        parts = {name: Part(ok=problem is None, problem=problem) for name, problem in problems.items()}
        return Readiness(ready=ready, parts=parts)

    async def exposition(self) -> bytes:
        """Return all metrics; those of the log are left out while it does not answer."""
        self._tally.flush()
        return await asyncio.to_thread(self._exposition)

    def _exposition(self) -> bytes:
        settings = self.settings
        others: list[Collector] = [ChartsCollector(self._live.seen)]
        try:
            state = read_log_state(
                settings.log_url,
                clock=settings.entry_clock,
                folder=settings.log_folder,
                min_free_bytes=settings.min_free_bytes,
            )
        except (LakeboardError, OSError) as error:  # OSError: its folder is not there
            log.warning("log_unmeasured", reason=str(error))
        else:
            others.append(LogCollector(state))
            others += self._live_counting([p.number for p in state.lengths if p.stream is Stream.PLAYS])
        return metrics.exposition(settings.metrics_folder, *others)

    def _live_counting(self, partitions: Sequence[int]) -> list[Collector]:
        """Return how far each partition is counted live; nothing while the views server does not answer."""
        if not self.settings.views_url:
            return []
        try:
            state = read_live_state(self.settings.views_url, partitions, clock=self.settings.entry_clock)
        except LakeboardError as error:
            log.warning("live_counting_unmeasured", reason=str(error))
            return []
        return [LiveCollector(state)]

    def require_reader(self, connection: ASGIConnection[Any, Any, Any, Any]) -> None:
        """Let a reader in: anybody when reads are open, else this machine, else a key with the role.

        Raises:
            RefusedError: none of these.
        """
        client = connection.client
        if self.settings.open_reads or (client is not None and is_loopback(client.host)):
            return
        said = connection.headers.get("authorization")
        self.ring.require(None if said is None else said.encode("latin-1"), Role.READER)


def no_parameters(request: Request[Any, Any, Any]) -> None:
    """Refuse query parameters: these routes have none, and a misspelt one is to be noticed.

    Raises:
        RefusedError: `unknown_parameter`.
    """
    if request.scope["query_string"]:
        raise RefusedError(Code.UNKNOWN_PARAMETER, "this address takes no query parameters")


def _refusals(*statuses: int) -> dict[int, ResponseSpec]:
    """Return what a route may answer instead, for the document."""
    codes = {400: Code.UNKNOWN_PARAMETER, 401: f"{Code.KEY_MISSING}, {Code.KEY_INVALID}", 403: Code.ROLE_MISSING}
    kind = PROBLEM_TYPE.decode()
    return {
        status: ResponseSpec(Problem, media_type=kind, description=f"code: {codes[status]}", generate_examples=False)
        for status in statuses
    }


_CLOSED = _refusals(400, 401, 403)


def routers(surroundings: Surroundings, document: bytes) -> Sequence[Router]:
    """Return the routes.

    Args:
        surroundings: What they look at.
        document: The OpenAPI document as JSON.
    """
    reading = [*_operations(surroundings), *_documents(document), *_live_pages()]
    return [_health(surroundings), _reading(surroundings, reading)]


def _health(surroundings: Surroundings) -> Router:
    @get("/healthz", summary="Liveness: the process answers", tags=["operations"], responses=_refusals(400))
    async def healthz() -> Health:
        return Health(status="ok")

    not_ready = ResponseSpec(Readiness, description="A part fails; its problem says why", generate_examples=False)

    @get("/readyz", summary="Readiness, by part", tags=["operations"], responses={**_refusals(400), 503: not_ready})
    async def readyz() -> Response[Readiness]:
        found = surroundings.readiness()
        return Response(found, status_code=200 if found.ready else 503)

    return Router("/", route_handlers=[healthz, readyz], before_request=no_parameters)


def _reading(surroundings: Surroundings, handlers: Sequence[HTTPRouteHandler]) -> Router:
    def reader_only(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
        surroundings.require_reader(connection)  # a function, since Litestar copies the object of a method

    return Router("/", route_handlers=handlers, guards=[reader_only], before_request=no_parameters)


def _operations(surroundings: Surroundings) -> Sequence[HTTPRouteHandler]:
    @get(
        "/metrics",
        summary="Metrics of all workers, for Prometheus",
        tags=["operations"],
        media_type="text/plain",
        responses=_CLOSED,
    )
    async def metrics_() -> Response[bytes]:
        content = await surroundings.exposition()
        return Response(content, media_type=metrics.CONTENT_TYPE.decode())

    return (metrics_,)


def _documents(document: bytes) -> Sequence[HTTPRouteHandler]:
    page = docs_page(document)

    @get("/openapi.json", summary="This document", tags=["documentation"], responses=_CLOSED)
    async def openapi() -> Response[bytes]:
        return Response(document, media_type="application/json")

    @get(
        "/docs",
        summary="This document, for people",
        tags=["documentation"],
        media_type="text/html",
        responses=_CLOSED,
    )
    async def docs() -> Response[bytes]:
        return Response(page, media_type="text/html", headers=_NO_SCRIPTS)

    @get("/", include_in_schema=False)
    async def root() -> Redirect:
        return Redirect("/docs")

    return openapi, docs, root


def _live_pages() -> Sequence[HTTPRouteHandler]:
    return [
        _live_page(CHARTS_PAGE, "Live charts, for people"),
        _live_page(RACE_PAGE, "The race: exact counts beside a sketch, for people"),
    ]


def _live_page(page: LivePage, summary: str) -> HTTPRouteHandler:
    content, headers = page.html(), {"Content-Security-Policy": page.content_security_policy()}

    @get(page.path, summary=summary, tags=["documentation"], media_type="text/html", responses=_CLOSED)
    async def show() -> Response[bytes]:
        return Response(content, media_type="text/html", headers=headers)

    return show
