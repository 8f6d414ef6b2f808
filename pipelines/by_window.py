"""Hours and days as one frame, so that what holds for windows is said once."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from domain.tables import MEASURES
from domain.windows import Granularity

WINDOW_KEYS = ("window_length", "event_date", "event_hour")


def by_window(hourly_counts: DataFrame, daily_counts: DataFrame) -> DataFrame:
    """Return the counts of hours and days together.

    Columns: window_length, event_date, event_hour (0 for a day), region, item_id, and the measures.
    """
    hours = hourly_counts.withColumn("window_length", F.lit(Granularity.HOUR.value))
    days = daily_counts.withColumns({"window_length": F.lit(Granularity.DAY.value), "event_hour": F.lit(0)})
    columns = [*WINDOW_KEYS, "region", "item_id", *MEASURES]
    return hours.select(*columns).unionAll(days.select(*columns))
