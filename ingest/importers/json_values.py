"""Values of JSON objects as texts: the same rules for a file of lines and a file of one array."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from ingest.importers.chunks import strings
from ingest.validate import UNUSABLE


class DecimalText(str):
    """A JSON number with a point or an exponent, in its own digits."""

    __slots__ = ()


def column(objects: Sequence[Mapping[str, Any] | None], name: str, *, numeric: bool) -> pa.Array:
    """Return one key of each object as text, NULL where it is null or absent.

    A whole number is its decimal text. A number with decimals is its text in a numeric column, where it
    cannot be an id elsewhere. What cannot be a text (true, a list) is handed on so that its field refuses it.

    Args:
        objects: None for a broken row.
        name: A key, or keys joined by dots.
        numeric: Whether numbers with decimals make sense.
    """
    return strings([None if thing is None else text_of(value_at(thing, name), numeric=numeric) for thing in objects])


def value_at(thing: Mapping[str, Any], name: str) -> Any:
    """Return the value of a key; a key with dots that is not there itself is looked up part by part."""
    if name in thing or "." not in name:
        return thing.get(name)
    value: Any = thing
    for key in name.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def text_of(value: Any, *, numeric: bool) -> str | None:
    """Return a JSON value as the text of a field, behind `UNUSABLE` when no field can take it."""
    if value is None or type(value) is str:
        return None if value is None else _encodable(value)
    if type(value) is int or (numeric and isinstance(value, DecimalText)):
        return str(value)
    shown = str(value) if isinstance(value, DecimalText) else msgspec.json.encode(value, enc_hook=str).decode()
    return UNUSABLE + shown


def _encodable(text: str) -> str:
    """Mark a text with half of a surrogate pair, which JSON can spell and UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return UNUSABLE + text.encode("utf-8", "backslashreplace").decode()
    return text
