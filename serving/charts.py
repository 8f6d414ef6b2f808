"""`GET /v1/top`, `/v1/charts/top`, `/v1/items/{id}/count`: live charts as ready bytes, the rest from the lake.

Work is paid for before it is done: a read of the lake by the bucket that a reader has for all of them, a body of a live
chart by one of that chart. So neither ever new questions nor `If-None-Match` make work without a limit.
"""

import hashlib
from functools import partial

from serving.answers import JSON_TYPE, Answer, Head, Headers
from serving.chart_questions import Question, count_question_of, is_count, question_of
from serving.closed_charts import ClosedCharts
from serving.live_charts import LiveCharts
from serving.problems import Code, RefusedError
from serving.readers import Readers

_LIVE_SECONDS = 1
_NEWEST_SECONDS = 5  # a closed window of the newest release, which another one may follow
_RELEASE_SECONDS = 3600  # of a release that is named: it never changes


class ChartsEndpoint:
    """These routes, for one worker."""

    def __init__(self, *, live: LiveCharts, closed: ClosedCharts, readers: Readers) -> None:
        self._live = live
        self._closed = closed
        self._readers = readers

    async def answer(self, head: Head) -> Answer:
        """Return the answer to a request.

        Raises:
            RefusedError: it is not served.
        """
        require_get(head)
        self._readers.admit(head)
        if is_count(head.path):
            return await self._of_count(head)
        question = question_of(head.path, head.query)
        if question.window is not None:
            return await self._of_closed(head, question)
        ready = await self._live.chart(question.kind, question.region)
        chart = f"{question.kind.value}|{question.region}"
        if not ready.has(question.n):
            self._readers.take(head, f"made|{chart}")  # not its reads, so that asking whether it changed stays free
        tag, body = ready.answer(question.n)
        return self._cached(head, tag, body, seconds=_LIVE_SECONDS, chart=chart)

    async def _of_closed(self, head: Head, question: Question) -> Answer:
        chart = f"{question.kind.value}|{question.region}|{question.window}"
        seconds = _NEWEST_SECONDS if question.version is None else _RELEASE_SECONDS
        body = await self._closed.chart(question, pay=partial(self._readers.take_lake, head))
        return self._cached(head, _tag(body), body, seconds=seconds, chart=chart)

    async def _of_count(self, head: Head) -> Answer:
        item, span, region = count_question_of(head.path, head.query)
        body = await self._closed.count(item, span, region, pay=partial(self._readers.take_lake, head))
        return self._cached(head, _tag(body), body, seconds=_NEWEST_SECONDS, chart=f"item|{item}|{region}")

    def _cached(self, head: Head, tag: bytes, body: bytes, *, seconds: int, chart: str) -> Answer:
        """Answer with a body, or say that the client has it already, which is free."""
        caching: Headers = (
            (b"etag", tag),
            (b"cache-control", b"%b, max-age=%d" % (self._readers.cache_scope, seconds)),
        )
        if has(head, tag):
            return Answer(304, caching, b"")
        self._readers.take(head, chart)
        return Answer(200, ((b"content-type", JSON_TYPE), *caching), body)


def _tag(body: bytes) -> bytes:
    return b'"' + hashlib.blake2b(body, digest_size=9).hexdigest().encode() + b'"'


def require_get(head: Head) -> None:
    """Refuse another method.

    Raises:
        RefusedError: `method_not_allowed`.
    """
    if head.method != "GET":
        raise RefusedError(Code.METHOD_NOT_ALLOWED, "charts are read by GET")


def has(head: Head, tag: bytes) -> bool:
    """Say whether the client named this tag as one that it has; weak and strong ones are compared alike (RFC 9110)."""
    said = head.headers.get(b"if-none-match")
    if said is None:
        return False
    plain = tag.removeprefix(b"W/")
    return any(one.strip().removeprefix(b"W/") in (plain, b"*") for one in said.split(b","))
