"""Heads of requests and answers to them: what every route has in common."""

import os
import re
from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

from litestar.exceptions import HTTPException

from domain.log import LogFullError, LogReplacedError, LogUnavailableError, UnsafeLogServerError
from serving.bodies import Scope, Send
from serving.logs import log, of_error
from serving.problems import PROBLEM_TYPE, Code, RefusedError

JSON_TYPE = b"application/json"
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_OF_WORKER, _NUMBERS = os.urandom(4).hex().encode(), count()  # loaded by each worker for itself
_SERVER_ERROR = 500
_OF_STATUS = {400: Code.BAD_REQUEST, 404: Code.NOT_FOUND, 405: Code.METHOD_NOT_ALLOWED}
_WAIT_FOR_LOG = ((b"retry-after", b"1"),)
_WAIT_FOR_ROOM = ((b"retry-after", b"10"),)

Headers = Sequence[tuple[bytes, bytes]]


class Head(NamedTuple):
    """The head of a request.

    Attributes:
        method: In capitals.
        path: Decoded.
        query: As it came.
        headers: By name in small letters; of a repeated one, the last.
        request_id: What the client said, or a new one.
        client: Address it came from; empty for a Unix socket.
    """

    method: str
    path: str
    query: bytes
    headers: dict[bytes, bytes]
    request_id: bytes
    client: str = ""


class Answer(NamedTuple):
    """What is answered; the request id and what browsers need come on top."""

    status: int
    headers: Headers
    body: bytes


def head_of(scope: Scope) -> Head:
    """Return the head of a request."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    said = headers.get(b"x-request-id")
    request_id = said if said and _REQUEST_ID.fullmatch(said) else b"%b%08x" % (_OF_WORKER, next(_NUMBERS))
    client = scope.get("client") or ("", 0)
    return Head(scope["method"], scope["path"], scope["query_string"], headers, request_id, client[0])


async def send_answer(send: Send, answer: Answer, more: Headers) -> None:
    """Send an answer with more headers."""
    length = (b"content-length", str(len(answer.body)).encode())
    headers = [*answer.headers, length, *more]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


def refusal_of(error: Exception) -> RefusedError:
    """Return what a client is told of an error: nothing of the server's insides."""
    match error:
        case RefusedError():
            return error
        case LogFullError():
            return RefusedError(Code.LOG_FULL, "the log has no room; send the same again later", headers=_WAIT_FOR_ROOM)
        case LogUnavailableError() | LogReplacedError() | UnsafeLogServerError():
            detail = "the log does not answer; send the same again, which is safe"
            return RefusedError(Code.LOG_UNAVAILABLE, detail, headers=_WAIT_FOR_LOG)
        case HTTPException() if error.status_code in _OF_STATUS:
            return RefusedError(_OF_STATUS[error.status_code], "see /docs for what there is")
        case _:
            return RefusedError(Code.INTERNAL, "this is a fault of the server; its log has more under the request id")


def refused(error: Exception, head: Head, *, route: str) -> tuple[Answer, str]:
    """Return the answer to a request that failed, and its code, and write one line about it."""
    refusal = refusal_of(error)
    facts = {"request_id": head.request_id.decode(), "method": head.method, "route": route, "code": refusal.code}
    if refusal.code == Code.INTERNAL:
        log.error("request_failed", **facts, status=refusal.status, **of_error(error))
    elif refusal.status >= _SERVER_ERROR:
        log.error("request_refused", **facts, status=refusal.status, reason=str(error))
    else:
        log.warning("request_refused", **facts, status=refusal.status)
    headers = ((b"content-type", PROBLEM_TYPE), *refusal.headers)
    return Answer(refusal.status, headers, refusal.body()), refusal.code
