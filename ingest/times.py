"""Event times as sources write them: ISO 8601, epochs, patterns; each becomes a moment in UTC or a reason."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from domain.errors import BadRequestError
from domain.events import Reject
from domain.windows import EPOCH
from ingest.local_time import LocalZone
from ingest.texts import distinct, mask_of, missing
from ingest.verdicts import Int64s, Mask, Verdicts

ISO = "iso"
_EPOCH_UNITS = {  # microseconds in one unit
    "epoch_s": Decimal(10**6),
    "epoch_ms": Decimal(10**3),
    "epoch_us": Decimal(1),
    "epoch_ns": Decimal("0.001"),
}
_MICROSECOND = timedelta(microseconds=1)
_WALL_EPOCH = EPOCH.replace(tzinfo=None)
_DAY_US = 86_400_000_000
_FAR_US = 2**61  # beyond any datetime, and twice it still fits 64 bits
# At most 40 digits and two of exponent: enough for any time, and nothing a short text can blow up.
_PLAIN_EPOCHS = {  # whole numbers whose microseconds, and they themselves, surely fit 64 bits
    "epoch_s": r"\A-?[0-9]{1,12}\z",
    "epoch_ms": r"\A-?[0-9]{1,15}\z",
    "epoch_us": r"\A-?[0-9]{1,18}\z",
    "epoch_ns": r"\A-?[0-8]?[0-9]{1,18}\z",
}
_DECIMAL = re.compile(r"[+-]?\d{1,40}(?:\.\d{0,40})?(?:[eE][+-]?\d{1,2})?", re.ASCII)
# What Arrow's own parser surely reads as `datetime.fromisoformat` does: days that exist in every year, at
# most microseconds. The rest, 29 February too, is read one by one.
_PLAIN_WALL = (
    r"\A(?:19|2\d)\d\d-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])"
    r"|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    r"[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.(?:\d{3}|\d{6}))?)?"
)
_PLAIN_LOCAL = _PLAIN_WALL + r"\z"
_PLAIN_ZONED = _PLAIN_WALL + r"(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)\z"
_TIME_OF_DAY = re.compile(r"%[HIMSfpXcz]")
_YEAR = re.compile(r"%[YyGcx]")
_SAMPLE = datetime(2004, 2, 29, 13, 4, 5, 678901, tzinfo=UTC)


class UnknownTimeFormatError(BadRequestError):
    """`--time-format` is neither a known name nor a pattern that Python's strptime can read."""

    def __init__(self, time_format: str, problem: str) -> None:
        super().__init__(time_format, problem)
        self.time_format = time_format
        self.problem = problem

    def __str__(self) -> str:
        known = ", ".join((ISO, *_EPOCH_UNITS))
        return (
            f"--time-format {self.time_format!r} {self.problem}: use {known}, or a pattern such as '%d.%m.%Y %H:%M:%S'"
        )


@dataclass(frozen=True, slots=True)
class Stamp:
    """A time as written: microseconds since 1970 on its clock; `is_local` = its zone is not applied yet."""

    us: int
    is_local: bool


_NO_STAMP = Stamp(0, is_local=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRules:
    """How the time column is read.

    Attributes:
        time_format: `iso`, `epoch_s|ms|us|ns`, or a strptime pattern.
        zone: Clock of times that name no zone. A bare date is midnight UTC whatever the zone.
        oldest: First moment that is taken, UTC.
        latest: Last moment that is taken, UTC.
    """

    time_format: str
    zone: LocalZone
    oldest: datetime
    latest: datetime


def stamp_reader(time_format: str) -> Callable[[str], Stamp | Reject]:
    """Return the scalar definition of one format.

    Raises:
        UnknownTimeFormatError: no such name, or no pattern that reads back what it writes.
    """
    if time_format == ISO:
        return iso_stamp
    if time_format in _EPOCH_UNITS:
        return lambda text: epoch_stamp(text, time_format)
    _check_pattern(time_format)
    has_time = bool(_TIME_OF_DAY.search(time_format))
    return lambda text: _pattern_stamp(text, time_format, has_time=has_time)


def iso_stamp(text: str) -> Stamp | Reject:
    """Read ISO 8601 as Python does; a bare date is midnight UTC, digits below the microsecond are cut off."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        pass
    else:
        return _stamp(datetime.combine(day, time(), tzinfo=UTC))
    try:
        return _stamp(datetime.fromisoformat(text))
    except ValueError:
        return Reject.TIME_INVALID


def epoch_stamp(text: str, unit: str) -> Stamp | Reject:
    """Read a decimal number of units since 1970 UTC, exactly; parts below the microsecond are floored."""
    value = decimal_of(text)
    if value is None:
        return Reject.TIME_INVALID
    us = value * _EPOCH_UNITS[unit]
    if abs(us) >= _FAR_US:
        return Reject.IN_THE_FUTURE if us > 0 else Reject.TIME_OUT_OF_RANGE
    return Stamp(floor(us), is_local=False)


def decimal_of(text: str) -> Decimal | None:
    """Return a plain decimal number exactly, None when the text is none or is absurdly long."""
    return Decimal(text) if _DECIMAL.fullmatch(text) else None


def floor(value: Decimal) -> int:
    """Return the largest whole number that is not above the value."""
    whole = int(value)  # towards zero
    return whole - 1 if whole > value else whole


class TimeReader:
    """Reads a column of times into microseconds since 1970 UTC."""

    def __init__(self, rules: TimeRules) -> None:
        """Raises: UnknownTimeFormatError."""
        self._rules = rules
        self._stamp = stamp_reader(rules.time_format)
        self._oldest_us = (rules.oldest - EPOCH) // _MICROSECOND
        self._latest_us = (rules.latest - EPOCH) // _MICROSECOND

    def read(self, values: pa.Array, verdicts: Verdicts) -> Int64s:
        """Return the moments, with each refused row told to `verdicts` (its number means nothing then).

        Args:
            values: Texts, or Arrow timestamps and dates, which follow the zone only where they carry none.
            verdicts: One for each value.
        """
        is_native = pa.types.is_temporal(values.type)
        us, is_local = _native(values) if is_native else self._texts(values, verdicts)
        verdicts.refuse(mask_of(pc.is_null(values)) if is_native else missing(values), Reject.TIME_MISSING)
        self._refuse_outside(us, _DAY_US, verdicts)  # so that no zone sees a year it cannot
        us = self._apply_zone(us, is_local & verdicts.accepted, verdicts)
        self._refuse_outside(us, 0, verdicts)
        return us

    def _texts(self, values: pa.Array, verdicts: Verdicts) -> tuple[Int64s, Mask]:
        us, plain, is_local = self._plain(values)
        odd = ~(plain | missing(values))
        texts, places = distinct(values, odd)
        stamps = [self._stamp(text) for text in texts]
        good = [stamp if isinstance(stamp, Stamp) else _NO_STAMP for stamp in stamps]
        us[odd] = np.array([stamp.us for stamp in good], dtype=np.int64)[places]
        is_local[odd] = np.array([stamp.is_local for stamp in good], dtype=np.bool_)[places]
        for reason in {stamp for stamp in stamps if isinstance(stamp, Reject)}:
            refused: Mask = np.zeros(len(values), dtype=np.bool_)
            refused[odd] = np.array([stamp is reason for stamp in stamps], dtype=np.bool_)[places]
            verdicts.refuse(refused, reason)
        return us, is_local

    def _plain(self, values: pa.Array) -> tuple[Int64s, Mask, Mask]:
        """Read at array speed what is surely good: numbers (0 elsewhere), where, and which are local."""
        if self._rules.time_format == ISO:
            zoned = mask_of(pc.match_substring_regex(values, _PLAIN_ZONED))
            local = mask_of(pc.match_substring_regex(values, _PLAIN_LOCAL))
            us = _cast(values, zoned, pa.timestamp("us", "UTC")) + _cast(values, local, pa.timestamp("us"))
            return us, zoned | local, local
        nowhere: Mask = np.zeros(len(values), dtype=np.bool_)
        unit = _EPOCH_UNITS.get(self._rules.time_format)
        if unit is None:
            return np.zeros(len(values), dtype=np.int64), nowhere, nowhere.copy()
        digits = mask_of(pc.match_substring_regex(values, _PLAIN_EPOCHS[self._rules.time_format]))
        whole = _cast(values, digits, pa.int64())
        return whole * int(unit) if unit >= 1 else whole // int(1 / unit), digits, nowhere

    def _apply_zone(self, us: Int64s, rows: Mask, verdicts: Verdicts) -> Int64s:
        if not rows.any():
            return us
        places = np.flatnonzero(rows)
        resolved, nonexistent, ambiguous = self._rules.zone.to_utc(us[places])
        for refused, reason in ((nonexistent, Reject.TIME_NONEXISTENT), (ambiguous, Reject.TIME_AMBIGUOUS)):
            where: Mask = np.zeros(len(us), dtype=np.bool_)
            where[places[refused]] = True
            verdicts.refuse(where, reason)
        us[places] = resolved
        return us

    def _refuse_outside(self, us: Int64s, margin_us: int, verdicts: Verdicts) -> None:
        verdicts.refuse(us < self._oldest_us - margin_us, Reject.TIME_OUT_OF_RANGE)
        verdicts.refuse(us > self._latest_us + margin_us, Reject.IN_THE_FUTURE)


def _cast(values: pa.Array, rows: Mask, kind: pa.DataType) -> Int64s:
    """Read the set rows by Arrow as this type, as 64-bit numbers; 0 elsewhere."""
    numbers: Int64s = np.zeros(len(values), dtype=np.int64)
    numbers[rows] = values.filter(pa.array(rows)).cast(kind).cast(pa.int64()).to_numpy(zero_copy_only=False)
    return numbers


def _native(values: pa.Array) -> tuple[Int64s, Mask]:
    """Return Arrow times as microseconds (floored, far ones clipped), and where a zone is missing."""
    kind = values.type
    if pa.types.is_date(kind):
        values, per_us, is_local = values.cast(pa.date32()).cast(pa.int32()), _DAY_US, False
    else:
        per_us, is_local = {"s": 10**6, "ms": 10**3, "us": 1, "ns": 0}[kind.unit], kind.tz is None
    whole: Int64s = pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    us = np.clip(whole, -_FAR_US // per_us, _FAR_US // per_us) * per_us if per_us else whole // 1000
    return us, np.full(len(values), is_local)


def _stamp(moment: datetime) -> Stamp:
    offset = moment.utcoffset()
    us = (moment.replace(tzinfo=None) - _WALL_EPOCH) // _MICROSECOND
    return Stamp(us, is_local=True) if offset is None else Stamp(us - offset // _MICROSECOND, is_local=False)


def _pattern_stamp(text: str, pattern: str, *, has_time: bool) -> Stamp | Reject:
    try:
        moment = datetime.strptime(text, pattern)  # noqa: DTZ007  the zone is applied to the whole column
    except ValueError:
        return Reject.TIME_INVALID
    return _stamp(moment if has_time else moment.replace(tzinfo=UTC))


def _check_pattern(pattern: str) -> None:
    if "%" not in pattern:
        raise UnknownTimeFormatError(pattern, "is no known format")
    if "%Z" in pattern:
        raise UnknownTimeFormatError(pattern, "has %Z, whose names are ambiguous (take %z or --time-zone)")
    if not _YEAR.search(pattern):
        raise UnknownTimeFormatError(pattern, "has no year")
    try:
        datetime.strptime(_SAMPLE.strftime(pattern), pattern)  # noqa: DTZ007  only tries the pattern
    except ValueError as error:
        raise UnknownTimeFormatError(pattern, f"cannot be read back ({error})") from None
