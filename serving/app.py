"""The application that a worker serves: the hot route by hand, everything else by Litestar."""

import asyncio
import gc
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Any

from litestar import Litestar, Request, Response
from litestar.routes import HTTPRoute

from ingest.log_appender import LogAppender
from ingest.log_kinds import PLAYS_KIND
from serving import metrics
from serving.answers import Answer, Head, Headers, head_of, refused, send_answer
from serving.auth import KeyRing
from serving.boards.addresses import METHODS, BoardRoute, board_address
from serving.boards.endpoint import BoardsEndpoint
from serving.boards.routes import boards_router
from serving.bodies import ClientLeftError, Message, Receive, Scope, Send
from serving.chart_questions import CHART_PATH, COUNT_ROUTE, LIVE_PATH, RACE_PATH, TOP_PATH, is_count
from serving.chart_routes import charts_router
from serving.charts import ChartsEndpoint
from serving.closed_charts import ClosedCharts
from serving.events import EVENTS_PATH, EventsEndpoint
from serving.live import LiveStreams
from serving.live_charts import LiveCharts
from serving.logs import log
from serving.openapi import document_of, events_router
from serving.problems import PROBLEM_TYPE
from serving.race import RaceStreams
from serving.readers import Readers
from serving.routes import Surroundings, routers
from serving.settings import ApiSettings
from serving.viewers import Viewers

_OTHER = "other"  # the route of addresses that do not exist: metrics must not grow with what strangers try
_FLUSH_SECONDS = 0.25  # how old the numbers of other workers may be in /metrics
_SENT = b"authorization, content-type, content-encoding, idempotency-key, if-none-match, last-event-id, x-request-id"
_EXPOSED = b"x-request-id, retry-after, ratelimit, ratelimit-policy, etag"

Answers = Callable[[Head, Receive, Send], Awaitable[Answer | None]]  # None: it has sent its answer itself


class Application:
    """The ASGI application of one worker."""

    def __init__(self, settings: ApiSettings) -> None:
        self._settings = settings
        self._ring = KeyRing(settings.home)
        self._appender = LogAppender(
            PLAYS_KIND,
            settings.log_url,
            clock=settings.entry_clock,
            folder=settings.log_folder,
            min_free_bytes=settings.min_free_bytes,
        )
        self._tally = metrics.Tally()
        self._endpoint = EventsEndpoint(settings, appender=self._appender, ring=self._ring, tally=self._tally)
        readers = Readers(settings, ring=self._ring)
        self._readers = readers
        self._live, self._closed = LiveCharts(settings.views_url), ClosedCharts(settings.lake_root)
        self._charts = ChartsEndpoint(live=self._live, closed=self._closed, readers=readers)
        self._viewers = viewers = Viewers(settings)
        self._boards = BoardsEndpoint(settings, ring=self._ring, readers=readers, viewers=viewers)
        self._streams = LiveStreams(settings, live=self._live, readers=readers, viewers=viewers)
        self._races = RaceStreams(settings, readers=readers, viewers=viewers)
        charts = dict.fromkeys((TOP_PATH, CHART_PATH, COUNT_ROUTE), self._answer_charts)
        self._by_hand_of: Mapping[str, Answers] = {
            EVENTS_PATH: self._answer_events,
            LIVE_PATH: self._serve_live,
            RACE_PATH: self._serve_race,
            **charts,
            **dict.fromkeys(map(str, BoardRoute), self._answer_boards),
        }
        self._litestar = self._other_routes()
        self._routes = {route.path: route for route in self._litestar.routes}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the life of the worker."""
        if scope["type"] == "lifespan":
            await self._litestar(scope, receive, send)  # type: ignore[arg-type]  # Litestar's own names of the same
        elif (answers := self._by_hand_of.get(self._route(scope["path"]))) is not None:
            await self._by_hand(scope, receive, send, answers)
        else:
            await self._by_litestar(scope, receive, send)

    async def _by_hand(self, scope: Scope, receive: Receive, send: Send, answers: Answers) -> None:
        head = head_of(scope)
        route = self._route(head.path)
        head = head if "{" in route else head._replace(path=route)  # those that name something keep what it is
        try:
            answer = self._preflight(head) or await answers(head, receive, send)
        except ClientLeftError:
            log.warning("client_left", request_id=head.request_id.decode(), route=route)
            return
        except Exception as error:  # each becomes an answer, and a line of the log
            answer = self._refused(error, head, route)
        self._count(route, 200 if answer is None else answer.status, head)
        if answer is not None:
            await send_answer(send, answer, self._common(head))

    async def _answer_events(self, head: Head, receive: Receive, _: Send) -> Answer:
        return await self._endpoint.answer(head, receive)

    async def _answer_boards(self, head: Head, receive: Receive, send: Send) -> Answer | None:
        return await self._boards.answer(head, receive, send, self._common(head))

    async def _answer_charts(self, head: Head, _: Receive, __: Send) -> Answer:
        return await self._charts.answer(head)

    async def _serve_live(self, head: Head, receive: Receive, send: Send) -> None:
        await self._streams.serve(head, receive, send, self._common(head))

    async def _serve_race(self, head: Head, receive: Receive, send: Send) -> None:
        await self._races.serve(head, receive, send, self._common(head))

    async def _by_litestar(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = head_of(scope)
        scope["lakeboard_head"] = head
        more = self._common(head)
        if preflight := self._preflight(head):
            self._count(self._route(head.path), preflight.status, head)
            await send_answer(send, preflight, more)
            return

        async def send_with_more(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._count(self._route(head.path), message["status"], head)
                message["headers"] = [*message["headers"], *more]
            await send(message)

        await self._litestar(scope, receive, send_with_more)  # type: ignore[arg-type]  # as above

    def _refused(self, error: Exception, head: Head, route: str) -> Answer:
        answer, code = refused(error, head, route=route)
        metrics.REFUSED.labels(code).inc()
        if answer.status != HTTPStatus.METHOD_NOT_ALLOWED:
            return answer
        allow = (b"allow", ", ".join(sorted(self._methods(route))).encode())
        return answer._replace(headers=(*answer.headers, allow))

    def _methods(self, route: str) -> Collection[str]:
        if route in set(BoardRoute):
            return METHODS[BoardRoute(route)]
        found = self._routes.get(route)
        return found.methods - {"OPTIONS"} if isinstance(found, HTTPRoute) else ()

    def _count(self, route: str, status: int, head: Head) -> None:
        self._tally.answered(route, status)
        if self._settings.access_log:
            log.info("request", request_id=head.request_id.decode(), method=head.method, route=route, status=status)

    def _route(self, path: str) -> str:
        if path in self._routes:
            return path
        if is_count(path):
            return COUNT_ROUTE
        if (board := board_address(path)) is not None:
            return board.route.value
        plain = "/" + "/".join(part for part in path.split("/") if part)  # as Litestar reads it
        return plain if plain in self._routes else _OTHER

    def _common(self, head: Head) -> Headers:
        """Return what every answer carries: the request's id, and what a browser of another origin asks for."""
        named = (b"x-request-id", head.request_id)
        if not self._settings.cors_origins:
            return (named,)
        vary = (b"vary", b"origin")  # on all: a cache must not hand what it got without an origin to one with
        allowed = self._allowed_origin(head)
        if allowed is None:
            return (named, vary)
        exposed = (b"access-control-expose-headers", _EXPOSED)
        return (named, (b"access-control-allow-origin", allowed), exposed, vary)

    def _allowed_origin(self, head: Head) -> bytes | None:
        origin = head.headers.get(b"origin")
        if origin is None or not self._settings.cors_origins:
            return None
        allowed = self._settings.cors_origins
        return origin if "*" in allowed or origin.decode("latin-1") in allowed else None

    def _preflight(self, head: Head) -> Answer | None:
        """Answer a browser that asks what it may send; None when this is no such request."""
        if head.method != "OPTIONS" or self._allowed_origin(head) is None:
            return None
        allowed = (
            (b"access-control-allow-methods", b"GET, POST, PUT, DELETE"),
            (b"access-control-allow-headers", _SENT),
            (b"access-control-max-age", b"600"),
        )
        return Answer(204, allowed, b"")

    def _other_routes(self) -> Litestar:
        surroundings = Surroundings(
            self._settings, appender=self._appender, ring=self._ring, tally=self._tally, live=self._live
        )
        by_hand = [
            events_router(self._events_by_litestar),
            charts_router(self._charts_by_litestar),
            boards_router(self._boards_by_litestar),
        ]
        document = document_of([*by_hand, *routers(surroundings, b'{"info":{"title":""},"paths":{}}')])
        return Litestar(
            route_handlers=[*by_hand, *routers(surroundings, document)],
            openapi_config=None,  # it would bring pages of its own; the document is one of our routes
            exception_handlers={Exception: self._litestar_refusal},
            lifespan=[self._life],
            logging_config=None,
        )

    async def _events_by_litestar(self, request: Request[Any, Any, Any]) -> Answer:
        receive: Any = request.receive  # the same thing in Litestar's own types
        return await self._endpoint.answer(_head(request), receive)

    async def _boards_by_litestar(self, request: Request[Any, Any, Any]) -> Answer:
        receive: Any = request.receive  # the same thing in Litestar's own types
        send: Any = request.send
        answer = await self._boards.answer(_head(request), receive, send, ())
        assert answer is not None  # noqa: S101  streams never come this way
        return answer

    async def _charts_by_litestar(self, request: Request[Any, Any, Any]) -> Answer:
        return await self._charts.answer(_head(request))

    def _litestar_refusal(self, request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
        head = _head(request)
        answer = self._refused(error, head, self._route(head.path))
        headers = {name.decode(): value.decode() for name, value in answer.headers if name != b"content-type"}
        return Response(answer.body, status_code=answer.status, headers=headers, media_type=PROBLEM_TYPE.decode())

    @asynccontextmanager
    async def _life(self, _: Litestar) -> AsyncIterator[None]:
        """Run what a worker needs between its first and its last request."""
        self._ring.look()
        _before_stopping(self._viewers.close)
        await self._appender.start(must_answer=False)
        watches = (self._ring.watch, self._endpoint.watch, self._live.watch, self._flush)
        watching = [*(asyncio.create_task(watch()) for watch in watches), *await self._boards.start()]
        gc.collect()
        gc.freeze()  # what a worker begins with stays: looking through it held up all requests, 60 ms at a time
        log.info("worker_started")
        try:
            yield
        finally:
            for task in watching:
                task.cancel()
            self._viewers.close()
            await asyncio.gather(*watching, return_exceptions=True)
            await self._appender.stop()
            await self._boards.stop()
            await self._live.close()
            self._closed.close()
            self._readers.close()
            self._endpoint.close()
            self._tally.flush()
            log.info("worker_stopped")

    async def _flush(self) -> None:
        while True:
            await asyncio.sleep(_FLUSH_SECONDS)
            self._tally.flush()


def _before_stopping(call: Callable[[], None]) -> None:
    """Have something called in the event loop once this process is asked to end.

    The server waits for open answers before it ends the worker's life, and one that never ends would hold it up. It has
    handlers of its own, which are called as before.
    """
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        before = signal.getsignal(number)
        if callable(before):
            signal.signal(number, partial(_call_both, before, partial(loop.call_soon_threadsafe, call)))


def _call_both(before: Callable[..., object], more: Callable[[], object], number: int, frame: object) -> None:
    more()
    before(number, frame)


def _head(request: Request[Any, Any, Any]) -> Head:
    head: Head = request.scope["lakeboard_head"]  # type: ignore[typeddict-item]  # ours, put there before Litestar
    return head
