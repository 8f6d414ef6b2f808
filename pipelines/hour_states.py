"""What is known of each hour: whether it is certified, and since when."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from domain.tables import HOURS
from pipelines.hours import starts_at
from pipelines.schemas import conformed

CERTIFIED = "certified"
PROVISIONAL = "provisional"
_KEYS = ("event_date", "event_hour")


def hour_states(
    hours_of_days: DataFrame, old_states: DataFrame, touched: DataFrame, *, frontier: Column, release: int
) -> DataFrame:
    """Return 24 rows of `gold/hours` for every day that has counts.

    Args:
        hours_of_days: All rows of `gold/hourly_counts` of these days, as this release says.
        old_states: Rows of `gold/hours` of these days, from the last release.
        touched: event_date, event_hour of the hours this release computed.
        frontier: Exclusive end of what may be certified, a timestamp.
        release: The release that says so.
    """
    sums = hours_of_days.groupBy(*_KEYS).agg(F.sum("received_events").alias("received_events"),
                                             F.sum("counted").alias("counted"))  # fmt: skip
    days = hours_of_days.select("event_date").unionAll(old_states.select("event_date")).distinct()
    every_hour = days.select("event_date", F.explode(F.sequence(F.lit(0), F.lit(23))).alias("event_hour"))
    before = old_states.select(*_KEYS, "changed_in", "certified_in")
    marked = touched.withColumn("touched", F.lit(True))
    rows = (
        every_hour.join(sums, on=[*_KEYS], how="left")
        .na.fill(0, subset=["received_events", "counted"])
        .join(before, on=[*_KEYS], how="left")
        .join(marked, on=[*_KEYS], how="left")
    )
    certified = starts_at(F.col("event_hour") + 1) <= frontier
    return conformed(
        rows.withColumns(
            {
                "state": F.when(certified, CERTIFIED).otherwise(PROVISIONAL),
                "changed_in": F.when(F.coalesce("touched", F.lit(False)), F.lit(release)).otherwise(
                    F.col("changed_in")
                ),
                "certified_in": F.coalesce("certified_in", F.when(certified, F.lit(release))),
            }
        ),
        HOURS,
    )
