"""Sets of UTC hours as conditions on the partition columns `event_date` and `event_hour`."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from domain.windows import EPOCH, Granularity

Hour = tuple[date, int]
NO_ROWS = "event_date IS NULL"  # event_date is never NULL, so this holds for no row


@dataclass(frozen=True, slots=True)
class Folders:
    """Folders of a table, said twice: as SQL on its partition columns, and as a test of a folder's values."""

    condition: str
    holds: Callable[[Mapping[str, Any]], bool]


def folders_of_hours(hours: Collection[Hour]) -> Folders:
    """Return the folders of these hours."""
    return Folders(hours_condition(hours), lambda of: (of["event_date"], of["event_hour"]) in hours)


def folders_of_days(days: Collection[date]) -> Folders:
    """Return the folders of these UTC days, with all their hours where a table has folders of hours."""
    return Folders(days_condition(days), lambda of: of["event_date"] in days)


def folders_of_charts(hours: Collection[Hour]) -> Folders:
    """Return the folders of `gold/charts` about these hours or the days they lie in."""
    of = {
        Granularity.HOUR.value: folders_of_hours(hours),
        Granularity.DAY.value: folders_of_days({d for d, _ in hours}),
    }
    return Folders(charts_condition(hours), lambda folder: of[folder["window_length"]].holds(folder))


def without_hours(folders: Folders, hours: Collection[Hour]) -> Folders:
    """Return the folders but for those of these hours."""
    left_out = folders_of_hours(hours)
    condition = f"({folders.condition}) AND NOT ({left_out.condition})" if hours else folders.condition
    return Folders(condition, lambda of: folders.holds(of) and not left_out.holds(of))


def hours_condition(hours: Collection[Hour]) -> str:
    """Return SQL that holds exactly for rows of these hours.

    Days prune folders; the hour itself is one number in one list. Thousands of ORs instead made Spark's code
    generator give up.
    """
    if not hours:
        return NO_ROWS
    numbers = ", ".join(str((day - EPOCH.date()).days * 24 + hour) for day, hour in sorted(hours))
    return f"{days_condition({day for day, _ in hours})} AND unix_date(event_date) * 24 + event_hour IN ({numbers})"


def days_condition(days: Collection[date]) -> str:
    """Return SQL that holds exactly for rows of these UTC days."""
    listed = ", ".join(f"DATE'{day.isoformat()}'" for day in sorted(days))
    return f"event_date IN ({listed})" if listed else NO_ROWS


def charts_condition(hours: Collection[Hour]) -> str:
    """Return SQL that holds exactly for rows of `gold/charts` about these hours or the days they lie in."""
    if not hours:
        return NO_ROWS
    days = {day for day, _ in hours}
    return (
        f"(window_length = '{Granularity.HOUR.value}' AND ({hours_condition(hours)}))"
        f" OR (window_length = '{Granularity.DAY.value}' AND {days_condition(days)})"
    )


def starts_at(hour: Column) -> Column:
    """Return the moment at which this hour of `event_date` starts, whatever the session's time zone."""
    return F.timestamp_seconds(F.unix_date("event_date").cast("bigint") * 86400 + hour * 3600)
