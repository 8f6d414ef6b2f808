"""Rows to plays or reasons: plain requests column by column, others row by row by the importer's definitions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeGuard, cast

import msgspec

from domain.events import MAX_ID_BYTES, UNKNOWN_REGION, Reject, normal_id, normal_region
from domain.policy import Policy
from domain.windows import EPOCH
from ingest.hashing import id_hash
from ingest.importers.json_values import text_of
from ingest.log_entry import NOT_SAID, Play
from ingest.times import iso_stamp
from ingest.validate import UNUSABLE, duration_ms, whole_count
from serving.problems import ZONE_MISSING, RowError, row_error
from serving.rows import FIELDS, PlayBody, Row

_moment_of = datetime.fromisoformat
_NUMERIC = frozenset({"duration_ms", "count"})
_MICROSECOND = timedelta(microseconds=1)
_DAY_US, _SECOND_US = 86_400_000_000, 1_000_000
_LONGEST_DATE = 10  # characters; longer texts can only be times
_KEPT_REGIONS = 4096
_PLAIN_DURATION_MS = 10**15  # longer ones are looked at closely
_LONGEST_NUMBER_BITS = 1024  # longer ones fit no field, and Python refuses to spell the longest

Texts = dict[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What became of the rows of a request.

    Attributes:
        plays: To be appended, in the order they came.
        duplicates: Rows that said again, in this request, what an earlier one had said.
        errors: Rows that were not taken.
    """

    plays: Sequence[Play]
    duplicates: int
    errors: Sequence[RowError]


class RowJudge:
    """Judges rows; a row with several faults gets the first in the order of the importer."""

    def __init__(self, policy: Policy) -> None:
        self._oldest_us = (policy.oldest_event - EPOCH) // _MICROSECOND
        self._tolerance_us = policy.future_tolerance // _MICROSECOND
        self._max_count = policy.max_count
        self._regions: dict[str | None, str] = {None: UNKNOWN_REGION}

    def judge(self, rows: Sequence[Row], now: datetime) -> Judged:
        """Judge the rows of one request.

        Args:
            rows: As read.
            now: The log's clock, UTC; what is later than it and the tolerance is refused.
        """
        latest_us = (now - EPOCH) // _MICROSECOND + self._tolerance_us
        errors: list[RowError] = []
        plays = self._quickly(rows, latest_us)
        if plays is None:
            plays = []
            for index, row in enumerate(rows):
                verdict = self._one(row, latest_us)
                if isinstance(verdict, Play):
                    plays.append(verdict)
                else:
                    errors.append(row_error(index, verdict))
        kept, duplicates = _without_repeats(plays)
        return Judged(plays=kept, duplicates=duplicates, errors=errors)

    def _quickly(self, rows: Sequence[Row], latest_us: int) -> list[Play] | None:
        """Return the plays of rows that are plain in every field; None when one needs a closer look."""
        first = rows[0]
        if type(first) is not PlayBody:
            return None
        if len(rows) > 1:
            return self._all_plain(cast(Sequence[PlayBody], rows), latest_us)
        play = self._one_plain(first, latest_us)
        return None if play is None else [play]

    def _one_plain(self, row: PlayBody, latest_us: int) -> Play | None:
        """Do for a single row what `_all_plain` does for many, without making columns of it."""
        item, event, user, text = row.item_id, row.event_id, row.user_id, row.event_time
        if not (_is_plain(item) and _is_plain(event) and (user is None or _is_plain(user))):
            return None
        region = self._region(row.region)
        times = [NOT_SAID] if text is None else self._plain_times((text,), latest_us)
        duration = NOT_SAID if row.duration_ms is None else row.duration_ms
        count = 1 if row.count is None else row.count
        if region is None or times is None or not 1 <= count <= self._max_count:
            return None
        if row.duration_ms is not None and not 0 <= duration <= _PLAIN_DURATION_MS:
            return None
        return Play(event, id_hash(event), item, region, user, times[0], duration, count)

    def _all_plain(self, rows: Sequence[PlayBody], latest_us: int) -> list[Play] | None:
        """Return the plays of rows that are plain in every field, column by column; None when one is not."""
        items, events, users = _plain_ids(rows)
        times = self._plain_times([row.event_time for row in rows], latest_us)
        regions = [self._region(row.region) for row in rows]
        said = [row.duration_ms for row in rows if row.duration_ms is not None]
        counts = [1 if row.count is None else row.count for row in rows]
        if not items or times is None or None in regions:
            return None
        if said and not 0 <= min(said) <= max(said) <= _PLAIN_DURATION_MS:
            return None
        if not 1 <= min(counts) <= max(counts) <= self._max_count:
            return None
        durations = [NOT_SAID if row.duration_ms is None else row.duration_ms for row in rows]
        columns: Any = (events, map(id_hash, events), items, regions, users, times, durations, counts)
        return list(map(Play, *columns))

    def _plain_times(self, texts: Sequence[str | None], latest_us: int) -> list[int] | None:
        times: list[int] = []
        for text in texts:
            if text is None:
                times.append(NOT_SAID)
                continue
            try:
                moment = _moment_of(text)
            except ValueError:
                return None
            if len(text) <= _LONGEST_DATE or moment.tzinfo is None:
                return None
            since = moment - EPOCH
            us = since.days * _DAY_US + since.seconds * _SECOND_US + since.microseconds
            if not self._oldest_us <= us <= latest_us:
                return None
            times.append(us)
        return times

    def _region(self, text: str | None) -> str | None:
        """Return a region in its spelling; the ones that came before are remembered."""
        region = self._regions.get(text)
        if region is None:
            region = normal_region(text)
            if region is not None and len(self._regions) < _KEPT_REGIONS:
                self._regions[text] = region
        return region

    def _one(self, row: Row, latest_us: int) -> Play | str:
        """Judge one row by the definitions that stand for all."""
        if isinstance(row, Reject):
            return row
        values = row if isinstance(row, dict) else msgspec.structs.asdict(row)
        texts = {name: _text(name, values.get(name)) for name in FIELDS}
        return self.of_texts(texts, latest_us)

    def of_texts(self, texts: Texts, latest_us: int) -> Play | str:
        """Return the play of seven texts, or the code of the first fault; None = not said.

        Args:
            texts: By name of the field.
            latest_us: Last moment that is taken, microseconds since 1970 UTC.
        """
        item, event, user = (_id(texts[name]) for name in ("item_id", "event_id", "user_id"))
        if fault := _fault_of_ids(texts, item, event, user):
            return fault
        region = normal_region(texts["region"])
        if region is None:
            return Reject.REGION_INVALID
        us = self._time(texts["event_time"], latest_us)
        if not isinstance(us, int):
            return us
        said_duration, said_count = texts["duration_ms"], texts["count"]
        duration = duration_ms(said_duration, 1) if said_duration else NOT_SAID
        if duration is None:
            return Reject.DURATION_INVALID
        count = whole_count(said_count, self._max_count) if said_count else 1
        if count is None:
            return Reject.COUNT_INVALID
        assert item is not None  # noqa: S101  both were just judged; the type checker cannot know
        assert event is not None  # noqa: S101
        return Play(event, id_hash(event), item, region, user, us, duration, count)

    def _time(self, text: str | None, latest_us: int) -> int | str:
        if text is None:
            return NOT_SAID
        if not text:
            return Reject.TIME_MISSING
        stamp = iso_stamp(text)
        if isinstance(stamp, Reject):
            return stamp
        if stamp.is_local:
            return ZONE_MISSING
        if stamp.us < self._oldest_us:
            return Reject.TIME_OUT_OF_RANGE
        return stamp.us if stamp.us <= latest_us else Reject.IN_THE_FUTURE


def _is_plain(value: object) -> TypeGuard[str]:
    """Say whether an id is printable ASCII of a fitting length: such a text is its own spelling."""
    return type(value) is str and 0 < len(value) <= MAX_ID_BYTES and value.isascii() and value.isprintable()


def _plain_ids(rows: Sequence[PlayBody]) -> tuple[list[str], list[str], list[str | None]]:
    """Return the three ids of rows, or nothing when one of them is not plain."""
    columns: Any = [row.item_id for row in rows], [row.event_id for row in rows], [row.user_id for row in rows]
    items, events, users = columns
    said = [user for user in users if user is not None]
    return columns if _are_plain(items) and _are_plain(events) and _are_plain(said) else ([], [], [])


def _are_plain(ids: Sequence[str]) -> bool:
    """Say whether ids are printable ASCII of a fitting length: such texts are their own spelling."""
    if not ids:
        return True
    try:
        together = "".join(ids)
    except TypeError:  # there is a number among them
        return False
    lengths = list(map(len, ids))
    return together.isascii() and together.isprintable() and min(lengths) > 0 and max(lengths) <= MAX_ID_BYTES


def _text(name: str, value: object) -> str | None:
    if name == "event_time" and value is not None and not isinstance(value, str):
        return UNUSABLE  # a number could be seconds or milliseconds: never guessed
    if isinstance(value, int) and value.bit_length() > _LONGEST_NUMBER_BITS:
        return UNUSABLE
    return text_of(value, numeric=name in _NUMERIC)


def _id(text: str | None) -> str | None:
    return normal_id(text) if text else None


def _fault_of_ids(texts: Texts, item: str | None, event: str | None, user: str | None) -> Reject | None:
    if item is None:
        return Reject.ITEM_INVALID if texts["item_id"] else Reject.ITEM_MISSING
    if event is None:
        return Reject.ID_INVALID if texts["event_id"] else Reject.ID_MISSING
    if user is None and texts["user_id"]:
        return Reject.USER_INVALID
    return None


def _without_repeats(plays: Sequence[Play]) -> tuple[Sequence[Play], int]:
    """Drop plays that say again what an earlier one said, and count them.

    One with a known id that says something else stays: batch is to see the conflict.
    """
    if len({play.event_id for play in plays}) == len(plays):
        return plays, 0
    distinct = {msgspec.structs.astuple(play): play for play in reversed(plays)}
    kept = [play for play in plays if distinct.get(msgspec.structs.astuple(play)) is play]
    return kept, len(plays) - len(kept)
