"""Charts: the best items of each window, per region and over all regions."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from domain.events import ALL_REGIONS
from domain.tables import CHART_HISTORY, CHARTS
from pipelines.by_window import WINDOW_KEYS
from pipelines.differences import differing_rows
from pipelines.hours import starts_at
from pipelines.schemas import conformed

CHART_KEYS = (*WINDOW_KEYS, "region")
_SAID = ("window_start", "rank", "item_id", "counted", "total", "items", "tie_at_cut")


def windowed_counts(counts: DataFrame) -> DataFrame:
    """Return what each item counted in each hour and day, per region and with `*` for all of them.

    Columns: window_length, event_date, event_hour (0 for a day), region, item_id, counted. Items that counted 0
    are left out: they are in no chart.

    Args:
        counts: What `by_window` returns.
    """
    by_region = counts.where("counted > 0").select(*CHART_KEYS, "item_id", "counted")
    everywhere = by_region.groupBy(*WINDOW_KEYS, "item_id").agg(F.sum("counted").alias("counted"))
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
    return differing_rows(old_charts, new_charts, [*CHART_KEYS, *_SAID]).select(*CHART_KEYS).distinct()


def released_charts(new_charts: DataFrame, old_charts: DataFrame, changed: DataFrame, *, release: int) -> DataFrame:
    """Return the rows of `gold/charts`: a chart that did not change keeps the release that last changed it."""
    before = old_charts.where("rank = 1").select(*CHART_KEYS, "release")
    now = changed.select(*CHART_KEYS, F.lit(release).cast("bigint").alias("release"))
    newest = before.unionAll(now).groupBy(*CHART_KEYS).agg(F.max("release").alias("release"))
    return conformed(new_charts.join(newest, on=[*CHART_KEYS], how="left"), CHARTS)


def superseded_charts(old_charts: DataFrame, changed: DataFrame, *, release: int) -> DataFrame:
    """Return the rows that move to `gold/chart_history` because this release says something else."""
    rows = old_charts.join(changed, on=[*CHART_KEYS], how="left_semi")
    added = {"superseded_by": F.lit(release), "month": F.date_format("event_date", "yyyy-MM")}
    return conformed(rows.withColumns(added), CHART_HISTORY)
