"""What a chart and a count say: the shape of answers, from rows and a release alone. No I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from domain.releases import Release
from domain.tables import MEASURES
from domain.windows import DAY, HOUR, Granularity, Window

FINAL = "final"
PROVISIONAL = "provisional"


@dataclass(frozen=True, slots=True)
class ChartRow:
    """One stored row of a chart; `total`, `items` and `tie_at_cut` are of the whole stored chart."""

    rank: int
    item_id: str
    counted: int
    total: int
    items: int
    tie_at_cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartAnswer:
    """The best items of one closed window and region, exactly as a release counted them.

    Attributes:
        granularity: Width of the window.
        window: The window, UTC.
        region: A region, or `*`.
        release: The release that answers.
        rows: The rows listed, best first.
        total: Plays of all items, listed or not.
        items: Items that counted at all.
        missed_max: No item that is not listed has more plays. Exact, but below the last stored row: there
            only the rows' end is known, and it is the most that the order allows. 0 when every item is
            listed.
        tie_at_cut: The first item not listed has as many plays as the last one listed.
    """

    granularity: Granularity
    window: Window
    region: str
    release: Release
    rows: Sequence[ChartRow]
    total: int
    items: int
    missed_max: int
    tie_at_cut: bool

    @property
    def status(self) -> str:
        """`final` when the release had certified the whole window, else `provisional`."""
        return status_of(self.window, self.release)

    def body(self) -> dict[str, Any]:
        """Return the JSON body of `docs/reading.md`, which is that of the HTTP API."""
        return {
            "window": self.granularity.value,
            "region": self.region,
            "window_start": iso(self.window.start),
            "window_end": iso(self.window.end),
            "as_of": iso(self.release.created_at),
            "status": self.status,
            "exact": self.status == FINAL,
            "frontier": iso(self.release.frontier),
            "total": self.total,
            "missed_max": self.missed_max,
            "tie_at_cut": self.tie_at_cut,
            "release": self.release.release,
            "entries": [_entry(row) for row in self.rows],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CountAnswer:
    """What one item counted in a span of whole hours, as of a release.

    Attributes:
        item_id: The item.
        region: A region, or `*` for the sum over all of them.
        span: `[from, to)`, UTC.
        release: The release that answers.
        numbers: Plays by measure (`domain/tables.py`).
        hours_not_certified: Hours of the span that the release had not certified. Asked of the newest release
            they count with what is there so far; asked of an older one they count 0, as what they were is not
            kept.
    """

    item_id: str
    region: str
    span: Window
    release: Release
    numbers: Mapping[str, int]
    hours_not_certified: int

    @property
    def status(self) -> str:
        """`final` when every hour of the span was certified, else `provisional`."""
        return PROVISIONAL if self.hours_not_certified else FINAL

    def body(self) -> dict[str, Any]:
        """Return the JSON body of `docs/reading.md`."""
        return {
            "item_id": self.item_id,
            "region": self.region,
            "from": iso(self.span.start),
            "to": iso(self.span.end),
            **{measure: self.numbers[measure] for measure in MEASURES},
            "release": self.release.release,
            "status": self.status,
            "hours_not_certified": self.hours_not_certified,
        }


@dataclass(frozen=True, slots=True)
class Pieces:
    """A span of hours as whole UTC days and the hours left over; both sets are disjoint and cover it."""

    days: frozenset[date]
    hours: frozenset[datetime]


def chart_answer(
    stored: Sequence[ChartRow],
    *,
    granularity: Granularity,
    window: Window,
    region: str,
    release: Release,
    n: int,
) -> ChartAnswer:
    """Cut the stored rows of a chart to its best n and say what is known of the rest.

    Args:
        stored: At least the best n + 1 stored rows in order, or all there are; none for an empty chart.
        granularity: Width of the window.
        window: The window.
        region: A region, or `*`.
        release: The release the rows are of.
        n: Rows wanted, at least 1.
    """
    listed, below = stored[:n], stored[n:]
    missed_max, tie_at_cut = _below(listed, below)
    return ChartAnswer(
        granularity=granularity,
        window=window,
        region=region,
        release=release,
        rows=listed,
        total=listed[0].total if listed else 0,
        items=listed[0].items if listed else 0,
        missed_max=missed_max,
        tie_at_cut=tie_at_cut,
    )


def status_of(span: Window, release: Release) -> str:
    """Return `final` when the span ends at or before the release's frontier, else `provisional`."""
    return FINAL if span.end <= release.frontier else PROVISIONAL


def pieces(span: Window, certified: frozenset[datetime] | None = None) -> Pieces:
    """Split a span into whole days, which `gold/daily_counts` answers, and hours at its edges.

    Args:
        span: Whole hours.
        certified: When given, only these hours of the span are wanted; a day is whole when all its 24 hours
            are.
    """
    first, last = _midnight(span.start + DAY - HOUR), _midnight(span.end)
    days = frozenset(day for day in _days(first, last) if certified is None or _all_in(day, certified))
    if certified is not None:
        return Pieces(days, frozenset(h for h in certified if span.contains(h) and h.date() not in days))
    if not days:
        return Pieces(days, frozenset(span.hours()))
    return Pieces(days, frozenset([*_hours(span.start, first), *_hours(last, span.end)]))


def hours_not_certified(span: Window, certified_in: Mapping[datetime, int | None], release: Release) -> int:
    """Count the hours of a span that a release had not certified.

    Args:
        span: Whole hours.
        certified_in: Of the hours that `gold/hours` has: the release that certified each, None when none has.
        release: The release. An hour that has no row, as its day has no events, is certified once the
            frontier is past.
    """
    known = sum(1 for number in certified_in.values() if number is None or number > release.release)
    ahead = [hour for hour in certified_in if hour >= release.frontier]
    beyond = max(span.end - max(release.frontier, span.start), HOUR * 0) // HOUR
    return known + beyond - len(ahead)


def restated_back(
    numbers: Mapping[str, int], changes: Sequence[tuple[datetime, str, int]], certified: frozenset[datetime]
) -> dict[str, int]:
    """Take later restatements back out of present numbers.

    Args:
        numbers: Present plays by measure, of certified hours only.
        changes: (hour, measure, new - old) of every later restatement.
        certified: The hours the numbers are of: what was restated elsewhere is not in them.
    """
    back = {
        measure: sum(change for hour, of, change in changes if of == measure and hour in certified)
        for measure in MEASURES
    }
    return {measure: numbers[measure] - back[measure] for measure in MEASURES}


def iso(moment: datetime) -> str:
    """Return a moment as ISO 8601 in UTC with `Z`."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _below(listed: Sequence[ChartRow], below: Sequence[ChartRow]) -> tuple[int, bool]:
    """Return (largest count of an item not listed, whether it is that of the last one listed)."""
    if not listed:
        return 0, False
    last = listed[-1]
    if below:
        return below[0].counted, below[0].counted == last.counted
    if last.items > len(listed):  # the stored rows end here: the order and the flag are all that is known
        return (last.counted, True) if last.tie_at_cut else (last.counted - 1, False)
    return 0, False


def _entry(row: ChartRow) -> dict[str, Any]:
    return {
        "rank": row.rank,
        "item_id": row.item_id,
        "count": row.counted,
        "lower": row.counted,
        "upper": row.counted,
        "rank_min": row.rank,
        "rank_max": row.rank,
    }


def _midnight(moment: datetime) -> datetime:
    return Window.containing(moment, Granularity.DAY).start


def _days(start: datetime, end: datetime) -> list[date]:
    return [(start + DAY * n).date() for n in range(max((end - start) // DAY, 0))]


def _hours(start: datetime, end: datetime) -> list[datetime]:
    return [start + HOUR * n for n in range((end - start) // HOUR)]


def _all_in(day: date, hours: frozenset[datetime]) -> bool:
    return all(hour in hours for hour in Window.of_day(day).hours())
