"""What may be asked of charts: query strings to questions, and the words for what may not."""

from collections.abc import Collection
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qsl

from domain.events import ALL_REGIONS
from domain.live_chart import CHART_ROWS
from domain.live_windows import LiveWindow
from domain.questions import (
    ItemInvalidError,
    MomentInvalidError,
    RegionInvalidError,
    parse_item,
    parse_moment,
    parse_region,
)
from domain.windows import Granularity, UnalignedWindowError, Window, floor_hour
from serving.problems import Code, RefusedError

TOP_PATH = "/v1/top"
CHART_PATH = "/v1/charts/top"
LIVE_PATH = "/v1/charts/live"
RACE_PATH = "/v1/race/live"
COUNT_ROUTE = "/v1/items/{item_id:str}/count"
DEFAULT_WINDOW = LiveWindow.HOUR
DEFAULT_K = 10
_ALLOWED = {
    TOP_PATH: ("k", "window"),
    CHART_PATH: ("window", "region", "n", "start", "version"),
    LIVE_PATH: ("window", "region", "n"),
}
_BEFORE_ITEM, _AFTER_ITEM = COUNT_ROUTE.split("{item_id:str}")
_LONGEST_QUERY = 2048
_LONGEST_NUMBER = 9  # digits; longer ones are no rows and no releases
_REMEMBERED = 4096
_LONGEST_SPAN = timedelta(days=3660)  # ten years: each day of a span is made to ask the lake for it


class Question(NamedTuple):
    """Which chart is asked for.

    Attributes:
        kind: The window's length.
        region: A region as stored, or `*`.
        n: Rows wanted, 1 to 100.
        window: The closed window; None for the live one.
        version: The release that is to answer; None = the newest.
    """

    kind: LiveWindow
    region: str
    n: int
    window: Window | None = None
    version: int | None = None

    @property
    def granularity(self) -> Granularity:
        """The length of a closed window."""
        return Granularity(self.kind.value)


@lru_cache(maxsize=_REMEMBERED)
def question_of(path: str, query: bytes) -> Question:
    """Read the query of a request; what was refused before is looked at again.

    Raises:
        RefusedError: `unknown_parameter`, `parameter_invalid`, `k_out_of_range`, `start_unaligned`.
    """
    said = parameters(query, allowed=_ALLOWED[path])
    kind = _kind(said.get("window", DEFAULT_WINDOW.value))
    region = _region(said.get("region", ALL_REGIONS))
    n = _rows("k", said.get("k", str(DEFAULT_K))) if path == TOP_PATH else _rows("n", said.get("n", str(CHART_ROWS)))
    if "start" not in said:
        if "version" in said:
            detail = "version goes with start: a live chart is of now"
            raise RefusedError(Code.PARAMETER_INVALID, detail, field="version")
        return Question(kind, region, n)
    version = _release(said["version"]) if "version" in said else None
    return Question(kind, region, n, _window(kind, said["start"]), version)


def parameters(query: bytes, *, allowed: Collection[str]) -> dict[str, str]:
    """Return the parameters of a query, each at most once.

    Raises:
        RefusedError: `unknown_parameter`, `parameter_invalid`.
    """
    if len(query) > _LONGEST_QUERY:
        raise RefusedError(Code.PARAMETER_INVALID, f"a query has at most {_LONGEST_QUERY:,} bytes")
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError as error:
        raise RefusedError(Code.PARAMETER_INVALID, "the query is no percent-encoded UTF-8") from error
    said = dict(pairs)
    if unknown := sorted(set(said) - set(allowed)):
        raise RefusedError(
            Code.UNKNOWN_PARAMETER, f"this address takes {', '.join(allowed)}; {len(unknown)} others came"
        )
    if len(said) < len(pairs):
        raise RefusedError(Code.PARAMETER_INVALID, "a parameter is said twice: say each once")
    return said


def is_count(path: str) -> bool:
    """Say whether an address is that of an item's count."""
    return path.startswith(_BEFORE_ITEM) and path.endswith(_AFTER_ITEM) and len(path) > len(_BEFORE_ITEM + _AFTER_ITEM)


def count_question_of(path: str, query: bytes) -> tuple[str, Window, str]:
    """Read the address of an item's count: the item, the span of whole hours, the region.

    Raises:
        RefusedError: `unknown_parameter`, `parameter_invalid`.
    """
    said = parameters(query, allowed=("from", "to", "region"))
    try:
        item = parse_item(path[len(_BEFORE_ITEM) : -len(_AFTER_ITEM)])
    except ItemInvalidError as error:
        detail = "an item's id is 1 to 256 bytes of UTF-8 without control characters"
        raise RefusedError(Code.PARAMETER_INVALID, detail, field="item_id") from error
    for name in ("from", "to"):
        if name not in said:
            raise RefusedError(Code.PARAMETER_INVALID, f"{name} is needed: a whole hour, UTC", field=name)
    start, end = moment_of("from", said["from"]), moment_of("to", said["to"])
    if floor_hour(start) != start or floor_hour(end) != end or end <= start:
        detail = "from and to are whole hours UTC, and to, which is not included, is the later one"
        raise RefusedError(Code.PARAMETER_INVALID, detail, field="to")
    if end - start > _LONGEST_SPAN:
        detail = f"to is at most {_LONGEST_SPAN.days:,} days after from: ask for the years one by one"
        raise RefusedError(Code.PARAMETER_INVALID, detail, field="to")
    return item, Window(start, end), _region(said.get("region", ALL_REGIONS))


def _kind(text: str) -> LiveWindow:
    try:
        return LiveWindow(text)
    except ValueError as error:
        detail = f"window is one of {', '.join(kind.value for kind in LiveWindow)}"
        raise RefusedError(Code.PARAMETER_INVALID, detail, field="window") from error


def _region(text: str) -> str:
    try:
        return parse_region(text)
    except RegionInvalidError as error:
        detail = "a region is 1 to 32 of A-Z a-z 0-9 _ -, ZZ for the unknown one, or * for all (as %2A or *)"
        raise RefusedError(Code.PARAMETER_INVALID, detail, field="region") from error


def _rows(name: str, text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER and 1 <= int(text) <= CHART_ROWS:
        return int(text)
    detail = f"{name} is a whole number from 1 to {CHART_ROWS}; for more, `lakeboard sql` over the lake has every item"
    raise RefusedError(Code.K_OUT_OF_RANGE, detail, field=name)


def _release(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER:
        return int(text)
    raise RefusedError(Code.PARAMETER_INVALID, "version is the number of a release", field="version")


def _window(kind: LiveWindow, text: str) -> Window:
    if kind is LiveWindow.MINUTE:
        detail = "closed windows are of 1h and 1d: minutes are live only"
        raise RefusedError(Code.PARAMETER_INVALID, detail, field="start")
    try:
        return Window.starting(moment_of("start", text), Granularity(kind.value))
    except UnalignedWindowError as error:
        raise RefusedError(Code.START_UNALIGNED, str(error), field="start") from error


def moment_of(name: str, text: str) -> datetime:
    """Read a moment from a parameter, UTC.

    Raises:
        RefusedError: `parameter_invalid`.
    """
    try:
        return parse_moment(text)
    except MomentInvalidError as error:
        detail = f"{name} is ISO 8601 with a zone, such as 2026-11-14T08:00Z (+ is %2B), or a date for midnight UTC"
        raise RefusedError(Code.PARAMETER_INVALID, detail, field=name) from error
