"""`POST /v1/events`: plays in, the log behind it; answered once they are on disk."""

from collections.abc import Sequence
from time import perf_counter

import msgspec

from domain.clock import Clock, utc_now
from domain.policy import DEFAULT_POLICY
from ingest.log_appender import LogAppender
from ingest.log_entry import Play
from serving import metrics
from serving.answers import JSON_TYPE, Answer, Head
from serving.auth import KeyRing
from serving.bodies import BodyReader, Receive, inflated
from serving.keys import Key, Role
from serving.limits import RateLimits
from serving.plays import RowJudge
from serving.problems import Code, RefusedError, RowError
from serving.rows import Row, rows_of_json, rows_of_lines
from serving.settings import ApiSettings

EVENTS_PATH = "/v1/events"
JSON_LINES = b"application/x-ndjson"
_OF_CURL = b"application/x-www-form-urlencoded"  # what `curl -d` says of any text; it is read as JSON
_ACCEPTED = ((b"content-type", JSON_TYPE),)


class Accepted(msgspec.Struct, frozen=True):
    """What became of a request; the three numbers together are the rows it had.

    Attributes:
        accepted: Events that this request put into the log; they are on disk.
        duplicates: Rows that said again what an earlier row of this request had said; not appended again.
        errors: Rows that were not taken.
    """

    accepted: int
    duplicates: int
    errors: Sequence[RowError]


class EventsEndpoint:
    """The route, for one worker."""

    def __init__(
        self,
        settings: ApiSettings,
        *,
        appender: LogAppender[Play],
        ring: KeyRing,
        tally: metrics.Tally,
        clock: Clock = utc_now,
    ) -> None:
        self._tally = tally
        self._appender = appender
        self._ring = ring
        self._clock = clock
        self._entry_clock = settings.entry_clock
        self._judge = RowJudge(DEFAULT_POLICY)
        self._limits = RateLimits(settings)
        self._bodies = BodyReader(seconds=settings.body_seconds, most_bytes=settings.buffered_bytes)

    async def watch(self) -> None:
        """Cut off bodies that take too long, for ever."""
        await self._bodies.watch()

    def close(self) -> None:
        """Let go of what is shared with other workers."""
        self._limits.close()

    async def answer(self, head: Head, receive: Receive) -> Answer:
        """Take a request and return its answer.

        Raises:
            RefusedError: it is not taken, or no row of it.
            LogFullError, LogUnavailableError, LogReplacedError: the log does not take it; parts may be in it.
            ClientLeftError: there is nobody to answer.
        """
        started = perf_counter()
        key = self._permitted(head)
        body = await self._bodies.read(receive, length=head.headers.get(b"content-length"))
        body = inflated(body, head.headers.get(b"content-encoding"))
        rows, is_one = self._rows(head, body)
        answer = await self._append(rows, key, is_one=is_one)
        self._tally.accepted(answer.accepted, duplicates=answer.duplicates, seconds=perf_counter() - started)
        return Answer(202, _ACCEPTED, msgspec.json.encode(answer))

    def _permitted(self, head: Head) -> Key:
        if head.method != "POST":
            raise RefusedError(Code.METHOD_NOT_ALLOWED, "send events by POST")
        if head.query:
            raise RefusedError(Code.UNKNOWN_PARAMETER, "this address takes no query parameters")
        key = self._ring.require(head.headers.get(b"authorization"), Role.PRODUCER)
        self._limits.take_request(key)
        return key

    def _rows(self, head: Head, body: bytes) -> tuple[Sequence[Row], bool]:
        said = head.headers.get(b"content-type", JSON_TYPE)
        kind = said if said in (JSON_TYPE, JSON_LINES) else said.split(b";")[0].strip().lower()
        if kind in (JSON_TYPE, _OF_CURL):
            return rows_of_json(body)
        if kind == JSON_LINES:
            return rows_of_lines(body), False
        detail = "send application/json, or application/x-ndjson with one object a line"
        raise RefusedError(Code.UNSUPPORTED_MEDIA_TYPE, detail)

    async def _append(self, rows: Sequence[Row], key: Key, *, is_one: bool) -> Accepted:
        judged = self._judge.judge(rows, self._entry_clock.of_server(self._clock()))
        for error in judged.errors:
            metrics.ROWS_REFUSED.labels(error.code).inc()
        if not judged.plays:
            raise _nothing_taken(judged.errors, is_one=is_one)
        self._limits.take_events(key, len(judged.plays))
        await self._appender.append(judged.plays, f"api/{key.name}")
        return Accepted(accepted=len(judged.plays), duplicates=judged.duplicates, errors=judged.errors)


def _nothing_taken(errors: Sequence[RowError], *, is_one: bool) -> RefusedError:
    """Say that no row was good; of a single row, with its own code."""
    first = errors[0]
    if is_one:
        return RefusedError(first.code, first.detail, field=first.field, index=0, errors=errors)
    return RefusedError(Code.NO_GOOD_ROW, f"none of the {len(errors):,} rows could be taken: see errors", errors=errors)
