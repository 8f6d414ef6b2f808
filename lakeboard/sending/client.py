"""Posts events and tries again until they are taken: the same ids each time, so that none counts twice."""

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Protocol

import httpx
import msgspec

from lakeboard.sending.request import AnswerError, BadUrlError, GaveUpError, NotTakenError

PATH = "/v1/events"
_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 30.0
_FIRST_MEETING_SECONDS = 10.0  # nobody there at all: more likely not started than being started again
_FIRST_WAIT_SECONDS = 0.1
_LONGEST_WAIT_SECONDS = 10.0
_SAID_CHARACTERS = 200
_TRY_AGAIN = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})


class Event(msgspec.Struct, omit_defaults=True, gc=False):
    """One event as the API takes it; what is not said is left out."""

    event_id: str
    item_id: str
    event_time: str
    region: str = "ZZ"
    user_id: str | None = None
    duration_ms: int | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class Refused:
    """A row that the service did not take: which one of the request from 0, the code, and a sentence."""

    index: int
    code: str
    detail: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of the rows of a request; those that are not refused are on disk."""

    refused: Sequence[Refused]
    repeated: int = 0


class _RowError(msgspec.Struct):
    index: int
    code: str
    detail: str | None = None


class _Body(msgspec.Struct):
    """What both kinds of answer say: 202, and 422 where no row was good."""

    accepted: int = 0
    duplicates: int = 0
    errors: list[_RowError] = []


class Stop(Protocol):
    """Whether somebody asked to stop; a `threading.Event` is one."""

    def wait(self, timeout: float) -> bool:
        """Return once it was asked, or after so many seconds; say whether it was."""


class StoppedError(Exception):
    """Somebody asked to stop while the events were not taken yet."""


class Client:
    """Posts batches; may be used by several threads. Close it when done, or use it as a context.

    Args:
        url: Address of the service, without a path.
        key: Text of the key.
        connections: How many requests there may be at a time.
        give_up_seconds: How long to try while nothing at all is taken; 10 s at most while nobody has answered yet.
        on_trouble: Told in a few words why it waits, once for each time that the service stops taking events.
        stop: When set, waiting ends.

    Raises:
        BadUrlError: the address is none.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        connections: int,
        give_up_seconds: float,
        on_trouble: Callable[[str], None],
        stop: Stop,
    ) -> None:
        self._url = url.rstrip("/")
        self._address = f"{_checked(self._url)}{PATH}"
        self._give_up_seconds = give_up_seconds
        self._on_trouble = on_trouble
        self._stop = stop
        self._well_at = time.monotonic()
        self._is_well = True
        self._was_met = False
        self._lock = threading.Lock()
        self._http = httpx.Client(
            headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
            timeout=httpx.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS, pool=None),
            trust_env=False,  # a proxy of the machine is not for a service of our own
        )

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def post(self, events: Sequence[Event]) -> Answer:
        """Send events until the service has judged each of them.

        Raises:
            NotTakenError: the service refuses such requests.
            GaveUpError: nothing was taken for too long.
            AnswerError: the answer does not account for the events.
            StoppedError: `stop` was set; some or all of the events may be taken.
        """
        body = msgspec.json.encode(events)
        wait = _FIRST_WAIT_SECONDS
        while True:
            response, said = self._try(body)
            if response is not None and not _may_pass(response.status_code):
                self._note_well()
                return _answer(response, len(events))
            self._note_trouble(said, was_met=response is not None)
            if self._stop.wait(_pause(response, wait)):
                raise StoppedError
            wait = min(2 * wait, _LONGEST_WAIT_SECONDS)

    def _try(self, body: bytes) -> tuple[httpx.Response | None, str]:
        """Send once; return the answer, None where none came, and what to say of it."""
        try:
            response = self._http.post(self._address, content=body)
        except httpx.TransportError as error:
            return None, str(error) or type(error).__name__
        return response, f"{response.status_code}: {_said(response)}"

    def _note_well(self) -> None:
        with self._lock:
            self._well_at = time.monotonic()
            self._is_well = True
            self._was_met = True

    def _note_trouble(self, said: str, *, was_met: bool) -> None:
        with self._lock:
            news, self._is_well = self._is_well, False
            self._was_met = self._was_met or was_met
            seconds = time.monotonic() - self._well_at
            patience = self._give_up_seconds if self._was_met else min(_FIRST_MEETING_SECONDS, self._give_up_seconds)
        if news:  # whatever it took, one failure is no reason to give up
            self._on_trouble(f"{self._url} does not take events ({said}); trying again")
        elif seconds > patience:
            raise GaveUpError(self._url, seconds, said)


def _checked(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        raise BadUrlError(url) from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise BadUrlError(url)
    return url


def _may_pass(status: int) -> bool:
    """Say whether the same request may be taken later."""
    return status in _TRY_AGAIN or status >= HTTPStatus.INTERNAL_SERVER_ERROR


def _pause(response: httpx.Response | None, wait: float) -> float:
    """Return how long to wait: what the service asks for, else `wait`, spread so that senders do not march in step."""
    asked = "" if response is None else response.headers.get("retry-after", "")
    spread = 1 + random.random() / 2  # noqa: S311  no secret
    return (float(asked) if asked.isdigit() else wait / 1.5) * spread


def _answer(response: httpx.Response, rows: int) -> Answer:
    """Read what became of each row.

    Raises:
        NotTakenError, AnswerError.
    """
    status = response.status_code
    if status not in (HTTPStatus.OK, HTTPStatus.ACCEPTED, HTTPStatus.UNPROCESSABLE_ENTITY):
        raise NotTakenError(status, _said(response))
    try:
        body = msgspec.json.decode(response.content, type=_Body)
    except msgspec.MsgspecError as error:
        raise AnswerError(rows, str(error)) from error
    places = {error.index for error in body.errors}
    adds_up = body.accepted + body.duplicates + len(places) == rows and len(places) == len(body.errors)
    if not adds_up or not places <= set(range(rows)):
        raise AnswerError(rows, f"{body.accepted} accepted, {body.duplicates} repeated, {len(body.errors)} refused")
    return Answer([Refused(error.index, error.code, error.detail) for error in body.errors], body.duplicates)


def _said(response: httpx.Response) -> str:
    """Return what an answer says for a person, in one line."""
    try:
        body: Any = msgspec.json.decode(response.content)
    except msgspec.MsgspecError:
        body = None
    text = body.get("detail") or body.get("code") if isinstance(body, dict) else None
    return " ".join(str(text or response.reason_phrase or "no reason given").split())[:_SAID_CHARACTERS]
