"""Exact counts: an hour is its bronze rows minus its left-out rows; a day is the sum of its hours."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from domain.events import LeftOut
from domain.tables import COUNT_COLUMNS, DAILY_COUNTS, HOURLY_COUNTS
from pipelines.differences import differing_rows
from pipelines.schemas import conformed

_HOUR_KEYS = ("event_date", "event_hour", "region", "item_id")
_DAY_KEYS = ("event_date", "region", "item_id")
_LEFT_OUT_MEASURES = {
    "duplicates": (LeftOut.DUPLICATE,),
    "conflicts": (LeftOut.CONFLICT,),
    "excluded": (LeftOut.TOO_SHORT,),
}


def hourly_counts(plays: DataFrame, left_out: DataFrame) -> DataFrame:
    """Count plays per item, region and UTC hour of event time, exactly.

    A copy is booked where it was sent for itself, not where its winner counts.

    Args:
        plays: All rows of `bronze/plays` of some hours.
        left_out: All rows of `silver/left_out` of the same hours.
    """
    received = plays.groupBy(*_HOUR_KEYS).agg(F.sum("count").alias("received"), F.count("*").alias("received_events"))
    lost = left_out.groupBy(*_HOUR_KEYS).agg(*_left_out_sums())
    joined = received.join(lost, on=[*_HOUR_KEYS], how="left").na.fill(0)
    counted = {f"counted{of}": _rest(of) for of in ("", "_events")}
    return conformed(joined.withColumns(counted), HOURLY_COUNTS)


def daily_counts(hours_of_days: DataFrame) -> DataFrame:
    """Sum hours to UTC days.

    Args:
        hours_of_days: All rows of `gold/hourly_counts` of some whole days.
    """
    sums = hours_of_days.groupBy(*_DAY_KEYS).agg(*[F.sum(name).alias(name) for name in COUNT_COLUMNS])
    return conformed(sums, DAILY_COUNTS)


def changed_hours(old_counts: DataFrame, new_counts: DataFrame) -> DataFrame:
    """Return the (event_date, event_hour) in which any number is another one than before."""
    differing = differing_rows(old_counts, new_counts, HOURLY_COUNTS.column_names)
    return differing.select("event_date", "event_hour").distinct()


def _left_out_sums() -> list[Column]:
    sums = []
    for measure, reasons in _LEFT_OUT_MEASURES.items():
        holds = F.col("reason").isin(*reasons)
        sums.append(F.sum(F.when(holds, F.col("count")).otherwise(0)).alias(measure))
        sums.append(F.sum(F.when(holds, 1).otherwise(0)).alias(f"{measure}_events"))
    return sums


def _rest(of: str) -> Column:
    left_out = [F.col(f"{measure}{of}") for measure in _LEFT_OUT_MEASURES]
    return F.col(f"received{of}") - sum(left_out[1:], start=left_out[0])
