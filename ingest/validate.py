"""Rows of text to plays: the plain majority at array speed, everything else through `domain/events.py`."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from domain.events import MAX_ID_BYTES, UNKNOWN_REGION, Reject, normal_id, normal_region
from domain.policy import Policy
from ingest.texts import by_scalar, mask_of, missing, printable_ascii
from ingest.times import TimeReader, decimal_of, floor
from ingest.verdicts import Int64s, Mask, Verdicts

_PLAIN_NUMBER = r"\A[0-9]{1,15}\z"
_MAX_DURATION_MS = 2**53
_DETAIL_CHARACTERS = 200
# A value that cannot be the text of any field (a list, true, 1.5 as an id) is handed on behind this
# character: no field accepts it, so the row is refused with the reason of its field, and the value can still
# be shown.
UNUSABLE = "\x00"


class DurationUnit(StrEnum):
    """Unit of the duration column; decimals are exact, what is below a millisecond is cut off."""

    MILLISECONDS = "ms"
    SECONDS = "s"

    @property
    def milliseconds(self) -> int:
        """Milliseconds in one unit."""
        return 1 if self is DurationUnit.MILLISECONDS else 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RawFields:
    """Fields as the source has them, one text a row; None = the source has no such field.

    `time` may hold Arrow timestamps or dates instead of texts.
    """

    item: pa.Array
    time: pa.Array
    region: pa.Array | None = None
    user: pa.Array | None = None
    event_id: pa.Array | None = None
    duration: pa.Array | None = None
    count: pa.Array | None = None

    def behind(self, reason: Reject) -> pa.Array | None:
        """Return the field that a reason is about, None for reasons about the whole row."""
        fields = {"item": self.item, "id": self.event_id, "user": self.user, "region": self.region}
        fields |= {"duration": self.duration, "count": self.count, "time": self.time, "in": self.time}
        return fields.get(reason.split("_")[0])

    def detail(self, row: int, reason: Reject) -> str | None:
        """Return the refused value for a person, its first 200 characters; None when there is none."""
        column = self.behind(reason)
        value = None if column is None else column[row].as_py()
        return None if value is None else str(value).removeprefix(UNUSABLE)[:_DETAIL_CHARACTERS]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Rows in their stored spelling. Where a row is refused its values mean nothing.

    Attributes:
        event_id: None when the source has no ids.
        event_time_us: Microseconds since 1970 UTC.
        duration_ms: NULL = not said.
        verdicts: Which rows are accepted, and why the others are not.
    """

    item_id: pa.Array
    region: pa.Array
    user_id: pa.Array
    event_id: pa.Array | None
    event_time_us: Int64s
    duration_ms: pa.Array
    count: pa.Array
    verdicts: Verdicts


class RowChecker:
    """Turns raw fields into plays or reasons. A row with several faults gets the first in the order below."""

    def __init__(self, *, times: TimeReader, duration_unit: DurationUnit, policy: Policy) -> None:
        self._times = times
        self._duration_unit = duration_unit
        self._policy = policy

    def check(self, raw: RawFields, verdicts: Verdicts) -> Checked:
        """Check every row that has no reason yet.

        Args:
            raw: Fields of all rows, unreadable ones included (with NULLs).
            verdicts: Holds what the reader found already; the reasons found here are added to it.
        """
        return Checked(
            item_id=_required_id(raw.item, verdicts, Reject.ITEM_MISSING, Reject.ITEM_INVALID),
            event_id=_event_id(raw.event_id, verdicts),
            user_id=_user(raw.user, verdicts),
            region=_region(raw.region, verdicts),
            event_time_us=self._times.read(raw.time, verdicts),
            duration_ms=self._duration(raw.duration, verdicts),
            count=self._count(raw.count, verdicts),
            verdicts=verdicts,
        )

    def _duration(self, values: pa.Array | None, verdicts: Verdicts) -> pa.Array:
        unit = self._duration_unit.milliseconds
        kind = _Number(Reject.DURATION_INVALID, 0, _MAX_DURATION_MS, unit, lambda text: duration_ms(text, unit))
        return kind.read(values, verdicts)

    def _count(self, values: pa.Array | None, verdicts: Verdicts) -> pa.Array:
        most = self._policy.max_count
        kind = _Number(Reject.COUNT_INVALID, 1, most, 1, lambda text: whole_count(text, most))
        return pc.fill_null(kind.read(values, verdicts), 1)


@dataclass(frozen=True, slots=True)
class _Number:
    """A column of whole numbers from `least` to `most`: a text of digits times `factor`, else by `scalar`."""

    reason: Reject
    least: int
    most: int
    factor: int
    scalar: Callable[[str], int | None]

    def read(self, values: pa.Array | None, verdicts: Verdicts) -> pa.Array:
        """Return the numbers, NULL where nothing is said; refuse what is said and is no such number."""
        if values is None:
            return pa.nulls(len(verdicts), pa.int64())
        said = ~missing(values)
        plain, digits = self._plain(values)
        numbers = by_scalar(values, rows=said & ~digits, scalar=self.scalar, plain=plain)
        verdicts.refuse(mask_of(pc.is_null(numbers)) & said, self.reason)
        return numbers

    def _plain(self, values: pa.Array) -> tuple[pa.Array, Mask]:
        """Return texts of plain digits that are in range as numbers, NULL elsewhere, and where they are."""
        digits = pc.match_substring_regex(values, _PLAIN_NUMBER)
        whole = pc.if_else(digits, values, pa.scalar(None, pa.string())).cast(pa.int64())
        in_range = pc.and_(pc.greater_equal(whole, self.least), pc.less_equal(whole, self.most // self.factor))
        numbers = pc.if_else(in_range, pc.multiply(whole, self.factor), pa.scalar(None, pa.int64()))
        return numbers, mask_of(in_range)


def duration_ms(text: str, unit: int) -> int | None:
    """Return a duration in whole milliseconds, None when it cannot be one.

    Args:
        text: A decimal number of units, not negative.
        unit: Milliseconds in a unit.
    """
    value = decimal_of(text)
    if value is None or value < 0 or value * unit > _MAX_DURATION_MS:
        return None
    return floor(value * unit)


def whole_count(text: str, most: int) -> int | None:
    """Return a count from 1 to `most`, both included, None when it cannot be one. 3.0 is 3."""
    value = decimal_of(text)
    if value is None or not 1 <= value <= most or value != int(value):
        return None
    return int(value)


def _spelled(values: pa.Array) -> pa.Array:
    """Return ids in their one spelling, NULL where they cannot be ids."""
    plain = printable_ascii(values) & mask_of(pc.less_equal(pc.binary_length(values), MAX_ID_BYTES))
    return by_scalar(values, rows=~plain, scalar=normal_id, plain=values)


def _required_id(values: pa.Array, verdicts: Verdicts, if_missing: Reject, if_invalid: Reject) -> pa.Array:
    absent = missing(values)
    spelled = _spelled(values)
    verdicts.refuse(absent, if_missing)
    verdicts.refuse(mask_of(pc.is_null(spelled)), if_invalid)
    return spelled


def _event_id(values: pa.Array | None, verdicts: Verdicts) -> pa.Array | None:
    return None if values is None else _required_id(values, verdicts, Reject.ID_MISSING, Reject.ID_INVALID)


def _user(values: pa.Array | None, verdicts: Verdicts) -> pa.Array:
    if values is None:
        return pa.nulls(len(verdicts), pa.string())
    absent = missing(values)
    spelled = _spelled(values)
    verdicts.refuse(mask_of(pc.is_null(spelled)) & ~absent, Reject.USER_INVALID)
    return pc.if_else(pa.array(absent), pa.scalar(None, pa.string()), spelled)


def _region(values: pa.Array | None, verdicts: Verdicts) -> pa.Array:
    unknown = pa.repeat(pa.scalar(UNKNOWN_REGION), len(verdicts))
    if values is None:
        return unknown
    everything: Mask = np.ones(len(values), dtype=np.bool_)
    regions = by_scalar(values, rows=everything, scalar=normal_region, plain=unknown)
    verdicts.refuse(mask_of(pc.is_null(regions)), Reject.REGION_INVALID)
    return regions
