"""Charts: the best items of each window, per region and over all regions."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from domain.events import ALL_REGIONS
from domain.tables import CHART_HISTORY, CHARTS
from domain.windows import Granularity
from pipelines.hours import starts_at
from pipelines.schemas import conformed

CHART_KEYS = ("window_length", "event_date", "event_hour", "region")
_SAID = ("window_start", "rank", "item_id", "counted", "total", "items", "tie_at_cut")


def windowed_counts(hourly_counts: DataFrame, daily_counts: DataFrame) -> DataFrame:
    """Return what each item counted in each hour and day, per region and with `*` for all of them.

    Columns: window_length, event_date, event_hour (0 for a day), region, item_id, counted. Items that counted 0
    are left out: they are in no chart.
    """
    hours = hourly_counts.select(F.lit(Granularity.HOUR.value).alias("window_length"), "event_date", "event_hour",
                                 "region", "item_id", "counted")  # fmt: skip
    days = daily_counts.select(F.lit(Granularity.DAY.value).alias("window_length"), "event_date",
                               F.lit(0).alias("event_hour"), "region", "item_id", "counted")  # fmt: skip
    by_region = hours.unionAll(days).where("counted > 0")
    everywhere = by_region.groupBy("window_length", "event_date", "event_hour", "item_id").agg(
        F.sum("counted").alias("counted")
    )
    return by_region.unionByName(everywhere.withColumn("region", F.lit(ALL_REGIONS)))


def charts(windowed_counts: DataFrame, *, size: int) -> DataFrame:
    """Rank each window and region: counted descending, then `item_id` by UTF-8 bytes; keep the best `size`.

    Returns the columns of `gold/charts` but for `release`.
    """
    chart = Window.partitionBy(*CHART_KEYS)
    order = chart.orderBy(F.col("counted").desc(), F.col("item_id").asc())
    ranked = windowed_counts.select(
        "*",
        F.row_number().over(order).alias("rank"),
        F.lead("counted").over(order).alias("next_counted"),
        F.sum("counted").over(chart).alias("total"),
        F.count("*").over(chart).alias("items"),
    )
    kept = ranked.where(F.col("rank") <= size)
    tied = (F.col("rank") == size) & (F.col("next_counted") == F.col("counted"))
    return kept.select(
        *CHART_KEYS,
        starts_at(F.col("event_hour")).alias("window_start"),
        "rank",
        "item_id",
        "counted",
        "total",
        "items",
        F.coalesce(F.max(tied).over(chart), F.lit(False)).alias("tie_at_cut"),
    )


def changed_charts(new_charts: DataFrame, old_charts: DataFrame) -> DataFrame:
    """Return the keys (window, start, region) of charts that are new, gone or say something else."""
    columns = [*CHART_KEYS, *_SAID]
    new, old = new_charts.select(*columns), old_charts.select(*columns)
    return new.exceptAll(old).unionAll(old.exceptAll(new)).select(*CHART_KEYS).distinct()


def released_charts(new_charts: DataFrame, old_charts: DataFrame, changed: DataFrame, *, release: int) -> DataFrame:
    """Return the rows of `gold/charts`: a chart that did not change keeps the release that last changed it."""
    since = old_charts.groupBy(*CHART_KEYS).agg(F.max("release").alias("since"))
    marked = changed.withColumn("changed", F.lit(True))
    rows = new_charts.join(since, on=[*CHART_KEYS], how="left").join(marked, on=[*CHART_KEYS], how="left")
    changed_in = F.when(F.coalesce("changed", F.lit(False)), F.lit(release)).otherwise(F.col("since"))
    return conformed(rows.withColumn("release", changed_in), CHARTS)


def superseded_charts(old_charts: DataFrame, changed: DataFrame, *, release: int) -> DataFrame:
    """Return the rows that move to `gold/chart_history` because this release says something else."""
    rows = old_charts.join(changed, on=[*CHART_KEYS], how="left_semi")
    added = {"superseded_by": F.lit(release), "month": F.date_format("event_date", "yyyy-MM")}
    return conformed(rows.withColumns(added), CHART_HISTORY)
