"""A service on a real socket that takes events as `POST /v1/events` does, and answers otherwise when a test says so."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "lb_1_secret"
HANG_UP = -1  # a status that stands for closing the connection without an answer


@dataclass(frozen=True)
class Reply:
    """What is answered instead of taking the events; `take_first`: they are taken all the same, but nobody is told."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)
    take_first: bool = False


@dataclass
class EventService:
    """What it took, in the order of arrival, and how it answers.

    `script` gets the number of the request, from 0, and its events; None means that they are taken.
    `refuse` gives the code of an event that is not taken.
    """

    script: Callable[[int, list[dict[str, Any]]], Reply | None] = lambda _number, _events: None
    refuse: Callable[[dict[str, Any]], str | None] = lambda _event: None
    taken: list[dict[str, Any]] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)  # events of each
    arrivals: list[float] = field(default_factory=list)  # when each came, seconds
    port: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ids(self) -> list[str]:
        return [event["event_id"] for event in self.taken]

    def answer(self, events: list[dict[str, Any]]) -> tuple[int, dict[str, str], dict[str, Any]]:
        with self.lock:
            number = len(self.requests)
            self.requests.append(len(events))
            self.arrivals.append(time.monotonic())
        reply = self.script(number, events)
        if reply is not None and not reply.take_first:
            return reply.status, reply.headers, reply.body
        errors = [
            {"index": index, "code": code, "detail": "no"}
            for index, event in enumerate(events)
            if (code := self.refuse(event)) is not None
        ]
        bad = {error["index"] for error in errors}
        with self.lock:
            self.taken += [event for index, event in enumerate(events) if index not in bad]
        if reply is not None:
            return reply.status, reply.headers, reply.body
        if len(errors) == len(events):
            return 422, {}, {"code": "no_good_row", "detail": "none", "errors": errors}
        return 202, {}, {"accepted": len(events) - len(errors), "duplicates": 0, "errors": errors}


def _handler(service: EventService) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path != "/v1/events":
                self._say(404, {}, {"code": "not_found", "detail": "there is nothing here"})
            elif self.headers["authorization"] != f"Bearer {KEY}":
                self._say(401, {}, {"code": "key_invalid", "detail": "the key is not valid"})
            else:
                self._say(*service.answer(json.loads(body)))

        def _say(self, status: int, headers: dict[str, str], body: dict[str, Any]) -> None:
            if status == HANG_UP:
                self.close_connection = True
                self.connection.close()
                return
            text = json.dumps(body).encode()
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(text))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: pytest shows what matters."""

        def handle(self) -> None:
            try:
                super().handle()
            except (ConnectionError, ValueError):  # the client went away, or the script hung up
                self.close_connection = True

        def finish(self) -> None:
            try:
                super().finish()
            except (ConnectionError, ValueError):
                self.close_connection = True

    return Handler


@contextmanager
def running(service: EventService, port: int = 0) -> Iterator[EventService]:
    """Serve on a free port of this machine, or on the one given."""
    server = ThreadingHTTPServer(("127.0.0.1", port), _handler(service))
    server.daemon_threads = True
    service.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
