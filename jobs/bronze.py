"""`bronze/plays` up to a position, and parts of it, read from the files that can hold them."""

from collections.abc import Callable, Collection, Mapping
from datetime import date, datetime, timedelta
from typing import Any

from pyspark.sql import functions as F

from domain.position import BronzePosition
from domain.tables import PLAYS
from jobs.lake import Lake, Part
from jobs.plan import committed_by
from pipelines.hours import Hour, hours_condition

_CUT = timedelta(milliseconds=1)  # a writer may cut the largest time of a file to milliseconds


class Bronze:
    """The rows of a position, whatever version the table has by now.

    At the position's own version these are all rows. When the table has moved on, by appends or compaction, they
    are those that their writers committed up to the position: the files of the old version may be gone by then.
    """

    def __init__(self, lake: Lake, position: BronzePosition) -> None:
        self._lake = lake
        self._position = position
        self._files = lake.files(PLAYS, "min.writer", "max.writer", "max.writer_seq", "max.ingested_at")

    def all(self) -> Part:
        """Return every row."""
        return self._part(lambda says: True)

    def may_be_after(self, since: Mapping[str, int]) -> Part:
        """Return all rows that these writers committed after these transactions, and others of the same files."""
        return self._part(lambda says: any(_may_hold(says, *last) for last in since.items()))

    def ingested_since(self, moment: datetime) -> Part:
        """Return the rows ingested at this moment or later."""
        part = self._part(lambda says: says["max.ingested_at"] is None or says["max.ingested_at"] + _CUT >= moment)
        return part.where(F.col("ingested_at") >= F.lit(moment))

    def of_hours(self, hours: Collection[Hour]) -> Part:
        """Return the rows of these UTC hours."""
        days = {day for day, _ in hours}
        return self._part(lambda says: says["event_date"] in days).where(hours_condition(hours))

    def of_days(self, first: date, last: date) -> Part:
        """Return the rows of the UTC days from one to another, both included."""
        part = self._part(lambda says: first <= says["event_date"] <= last)
        return part.where((F.col("event_date") >= F.lit(first)) & (F.col("event_date") <= F.lit(last)))

    def _part(self, holds: Callable[[Mapping[str, Any]], bool]) -> Part:
        part = self._lake.part(self._files.where(holds))
        return part if self._files.version == self._position.version else part.where(committed_by(self._position))


def _may_hold(says: Mapping[str, Any], writer: str, seq: int) -> bool:
    """Say whether a file can hold a row that this writer committed after this transaction."""
    least, most, last = says["min.writer"], says["max.writer"], says["max.writer_seq"]
    unknown = least is None or most is None or last is None
    return unknown or (least <= writer <= most and last > seq)
