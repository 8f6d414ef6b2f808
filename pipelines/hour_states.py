"""What is known of each hour: whether it is certified, and since when."""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from domain.tables import HOURS
from pipelines.hours import starts_at
from pipelines.schemas import conformed

HOUR_KEYS = T.StructType([T.StructField("event_date", T.DateType()), T.StructField("event_hour", T.IntegerType())])
CERTIFIED = "certified"
PROVISIONAL = "provisional"
_KEYS = ("event_date", "event_hour")
_FACTS = ("received_events", "counted", "changed_in", "certified_in")


def hour_states(
    grid: DataFrame,
    hours_of_days: DataFrame,
    old_states: DataFrame,
    changed: DataFrame,
    *,
    frontier: Column,
    release: int,
) -> DataFrame:
    """Return a row of `gold/hours` for every hour of the grid.

    Args:
        grid: event_date, event_hour: all 24 hours of every day in question.
        hours_of_days: All rows of `gold/hourly_counts` of these days, as this release says.
        old_states: Rows of `gold/hours` of these days, from the last release.
        changed: event_date, event_hour of the hours whose numbers this release changes.
        frontier: Exclusive end of what may be certified, a timestamp.
        release: The release that says so.
    """
    nothing = {name: F.lit(None).cast("bigint") for name in _FACTS}
    this = F.lit(release).cast("bigint")
    facts = [
        grid.withColumns(nothing),
        hours_of_days.select(*_KEYS, "received_events", "counted").withColumns(
            _some(nothing, "changed_in", "certified_in")
        ),
        old_states.select(*_KEYS, "changed_in", "certified_in").withColumns(
            _some(nothing, "received_events", "counted")
        ),
        changed.withColumns(nothing).withColumn("changed_in", this),
    ]
    known = (
        reduce(DataFrame.unionByName, facts)
        .groupBy(*_KEYS)
        .agg(
            F.coalesce(F.sum("received_events"), F.lit(0)).alias("received_events"),
            F.coalesce(F.sum("counted"), F.lit(0)).alias("counted"),
            F.max("changed_in").alias("changed_in"),
            F.min("certified_in").alias("certified_before"),
        )
    )
    certified = starts_at(F.col("event_hour") + 1) <= frontier
    state = F.when(certified, CERTIFIED).otherwise(PROVISIONAL)
    certified_in = F.coalesce("certified_before", F.when(certified, this))
    return conformed(known.withColumns({"state": state, "certified_in": certified_in}), HOURS)


def _some(columns: dict[str, Column], *names: str) -> dict[str, Column]:
    return {name: columns[name] for name in names}
