"""What may be asked of the lake: moments, spans, regions, items, and the words for what may not."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from domain.errors import BadRequestError
from domain.events import ALL_REGIONS, MAX_ID_BYTES, MAX_REGION_LENGTH, normal_id, normal_region
from domain.windows import DAY, HOUR, Window, floor_hour

_LAST_MOMENT = datetime(9999, 12, 31, tzinfo=UTC)  # the day that holds it has an end that no datetime can say


class MomentInvalidError(BadRequestError):
    """A text was given for a moment that is none, or that has no time zone."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return (
            f"{self.text!r} is no moment we can read: write ISO 8601 with a time zone, such as "
            "2026-11-14T08:00Z or 2026-11-14T08:00+01:00, or a bare date, which means its midnight UTC"
        )


class UnalignedHourError(BadRequestError):
    """A span of whole hours was asked for with an end inside an hour."""

    def __init__(self, moment: datetime) -> None:
        super().__init__(moment)
        self.moment = moment

    def __str__(self) -> str:
        before = floor_hour(self.moment)
        return (
            f"counts are kept by whole UTC hours, and {self.moment.isoformat()} is inside one: "
            f"the nearest hours start at {before.isoformat()} and {(before + HOUR).isoformat()}"
        )


class EmptySpanError(BadRequestError):
    """A span was asked for that ends before it has begun."""

    def __init__(self, start: datetime, end: datetime) -> None:
        super().__init__(start, end)
        self.start = start
        self.end = end

    def __str__(self) -> str:
        return (
            f"there is nothing from {self.start.isoformat()} to {self.end.isoformat()}: "
            "--from is included and --to is not, so --to must be later"
        )


class RegionInvalidError(BadRequestError):
    """A region was asked for that no event can have."""

    def __init__(self, region: str) -> None:
        super().__init__(region)
        self.region = region

    def __str__(self) -> str:
        return (
            f"{self.region!r} cannot be a region: write 1 to {MAX_REGION_LENGTH} letters, digits, _ or -, "
            "ZZ for the unknown region, or * for all regions"
        )


class ItemInvalidError(BadRequestError):
    """An item was asked for that no event can have."""

    def __init__(self, item_id: str) -> None:
        super().__init__(item_id)
        self.item_id = item_id

    def __str__(self) -> str:
        return (
            f"{self.item_id[:80]!r} cannot be an item: "
            f"an id is 1 to {MAX_ID_BYTES} bytes of UTF-8 without control characters, check what was copied"
        )


class ChartLengthError(BadRequestError):
    """More or fewer rows of a chart were asked for than are kept."""

    def __init__(self, n: int, most: int) -> None:
        super().__init__(n, most)
        self.n = n
        self.most = most

    def __str__(self) -> str:
        return (
            f"a chart has 1 to {self.most} rows, not {self.n}: "
            "for more, `lakeboard sql` over hourly_counts or daily_counts has every item"
        )


@dataclass(frozen=True, slots=True)
class AsOf:
    """Which release is to answer: one of this number, or the newest made at or before a moment (UTC)."""

    release: int | None = None
    moment: datetime | None = None


def parse_moment(text: str) -> datetime:
    """Read ISO 8601 with a time zone, or a bare date as midnight UTC; return it in UTC.

    Raises:
        MomentInvalidError: no such moment, no time zone, or a year whose last day has no end (9999).
    """
    if (day := _bare_date(text)) is not None:
        return _in_range(datetime.combine(day, time(), tzinfo=UTC), text)
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise MomentInvalidError(text)
        return _in_range(moment.astimezone(UTC), text)
    except (ValueError, OverflowError) as error:
        raise MomentInvalidError(text) from error


def parse_hours(start: str, end: str) -> Window:
    """Return the span `[start, end)` of whole UTC hours.

    Raises:
        MomentInvalidError: an end is no moment.
        UnalignedHourError: an end is inside an hour.
        EmptySpanError: the end is not after the start.
    """
    first, last = parse_moment(start), parse_moment(end)
    for moment in (first, last):
        if floor_hour(moment) != moment:
            raise UnalignedHourError(moment)
    if last <= first:
        raise EmptySpanError(first, last)
    return Window(first, last)


def parse_as_of(text: str) -> AsOf:
    """Read a release number, a moment, or a date.

    A bare date means the end of that UTC day: "as of the 14th" is what was known when the 14th was over.

    Raises:
        MomentInvalidError: none of the three.
    """
    if text.isascii() and text.isdigit():
        return AsOf(release=int(text))
    moment = parse_moment(text)
    if _bare_date(text) is not None:
        return AsOf(moment=moment + DAY - timedelta(microseconds=1))
    return AsOf(moment=moment)


def parse_region(text: str) -> str:
    """Return a region as stored, or `*` for all of them.

    Raises:
        RegionInvalidError: no event can have it; the empty text is refused too, as it means no region.
    """
    region = ALL_REGIONS if text == ALL_REGIONS else normal_region(text)
    if not text or region is None:
        raise RegionInvalidError(text)
    return region


def parse_item(text: str) -> str:
    """Return an item's id in its one spelling.

    Raises:
        ItemInvalidError: no event can have it.
    """
    item_id = normal_id(text)
    if item_id is None:
        raise ItemInvalidError(text)
    return item_id


def checked_length(n: int, *, most: int) -> int:
    """Return how many rows of a chart are wanted.

    Raises:
        ChartLengthError: fewer than 1 or more than are kept.
    """
    if not 1 <= n <= most:
        raise ChartLengthError(n, most)
    return n


def _bare_date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _in_range(moment: datetime, text: str) -> datetime:
    if moment >= _LAST_MOMENT:
        raise MomentInvalidError(text)
    return moment
