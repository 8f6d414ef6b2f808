"""Bodies to rows: JSON objects, arrays and lines. The usual body is read in one go, the odd one row by row.

The odd one is read as the importer reads JSON, so that the same text gets the same verdict from both.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import msgspec

from domain.events import Reject
from ingest.importers.json_values import DecimalText
from serving.problems import Code, RefusedError, too_many_rows
from serving.settings import MAX_ROWS

_SHOWN_NAME = 64  # characters of a field's name that an answer repeats
_WHITE = b" \t\r\n"
_LONGEST_WHOLE = 300  # digits; no field takes longer ones, and Python refuses to read very long ones


class PlayBody(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A play as senders write it."""

    item_id: str | int
    event_id: str | int
    region: str | None = None
    user_id: str | int | None = None
    event_time: str | None = None
    duration_ms: int | None = None
    count: int | None = None


Row = PlayBody | dict[str, Any] | Reject  # a reason stands for a row that is no object
FIELDS = PlayBody.__struct_fields__

_ONE = msgspec.json.Decoder(PlayBody)
_MANY = msgspec.json.Decoder(list[PlayBody])
_LINE = msgspec.json.Decoder(dict[str, Any], float_hook=DecimalText)


def rows_of_json(body: bytes) -> tuple[Sequence[Row], bool]:
    """Read one object or an array of them.

    Returns:
        The rows, and whether the body was one object.

    Raises:
        RefusedError: no JSON, no rows, too many of them, or a field that does not exist.
    """
    start = body[:1] if body[:1] not in _WHITE else body.lstrip(_WHITE)[:1]
    if not start:
        raise _empty()
    is_one = start != b"["
    try:
        rows: Sequence[Row] = [_ONE.decode(body)] if is_one else _MANY.decode(body)
    except (ValueError, RecursionError):  # a value or field of another kind, or no JSON at all
        value = _odd_value(body)
        rows = _known([value] if is_one else value)
    return _counted(rows), is_one


def rows_of_lines(body: bytes) -> Sequence[Row]:
    """Read one object a line; blank lines are no rows.

    Raises:
        RefusedError: no rows, too many of them, or a field that does not exist.
    """
    if body.count(b"\n") > 2 * MAX_ROWS:
        raise too_many_rows()
    try:
        rows: Sequence[Row] = _ONE.decode_lines(body)
    except (ValueError, RecursionError):
        rows = _known([_line_value(line) for line in body.split(b"\n") if line.strip()])
    return _counted(rows)


def _counted(rows: Sequence[Row]) -> Sequence[Row]:
    if not rows:
        raise _empty()
    if len(rows) > MAX_ROWS:
        raise too_many_rows()
    return rows


def _empty() -> RefusedError:
    return RefusedError(Code.EMPTY, "send at least one row")


def _odd_value(body: bytes) -> Any:
    """Read JSON that may hold anything: half a surrogate pair in a text is the fault of its row, not of the body.

    Raises:
        RefusedError: it is no JSON.
    """
    try:
        return json.loads(body.decode(), parse_float=DecimalText, parse_int=_whole, parse_constant=_no_number)
    except RecursionError:
        problem = "it nests too deep"
    except UnicodeDecodeError:
        problem = "it is no UTF-8"
    except ValueError as error:  # its words name a place, never a value
        problem = str(error)
    raise RefusedError(Code.INVALID_JSON, problem)


def _whole(text: str) -> int | DecimalText:
    return int(text) if len(text) <= _LONGEST_WHOLE else DecimalText(text)


def _no_number(_: str) -> NoReturn:
    message = "NaN and Infinity are no JSON"
    raise ValueError(message)


def _line_value(line: bytes) -> Any:
    try:
        return _LINE.decode(line)
    except (ValueError, RecursionError):  # ValueError: broken, no object, no UTF-8
        return Reject.UNREADABLE_ROW if _is_utf8(line) else Reject.NOT_UTF8


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _known(values: Sequence[Any]) -> Sequence[Row]:
    """Return values as rows.

    Raises:
        RefusedError: too many, or one has a field that does not exist.
    """
    if len(values) > MAX_ROWS:
        raise too_many_rows()
    return list(_rows(values))


def _rows(values: Sequence[Any]) -> Iterator[Row]:
    for index, value in enumerate(values):
        if isinstance(value, dict):
            unknown = next((name for name in value if name not in FIELDS), None)
            if unknown is not None:
                raise _unknown_field(index, unknown)
            yield value
        else:
            yield value if isinstance(value, Reject) else Reject.UNREADABLE_ROW


def _unknown_field(index: int, name: str) -> RefusedError:
    shown = name.encode("utf-8", "replace").decode()[:_SHOWN_NAME]
    detail = f"there is no field {shown!r}; there are {', '.join(FIELDS)}. Nothing of the request was taken"
    return RefusedError(Code.UNKNOWN_FIELD, detail, field=shown, index=index)
