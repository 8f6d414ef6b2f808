"""Proofs that block a release: each returns the rows that contradict it, none when it holds.

A failing row has columns `proof, table, event_date, event_hour, detail`; `event_hour` is NULL where a day fails.
"""

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from domain.events import ALL_REGIONS, COPY_REASONS
from domain.table import POSITION_COLUMNS
from domain.tables import CHARTS, COUNT_COLUMNS, DAILY_COUNTS, HOURLY_COUNTS, LEFT_OUT
from pipelines.by_window import WINDOW_KEYS
from pipelines.charts import CHART_KEYS

FAILING_COLUMNS = ("proof", "table", "event_date", "event_hour", "detail")
GROWTH = "bronze_growth"
_ITEM = ("region", "item_id")


def counts_balance(hourly_counts: DataFrame) -> DataFrame:
    """`received = counted + duplicates + conflicts + excluded`, in plays and events, and nothing is negative."""
    wrong = [
        (
            F.col(f"received{of}")
            != F.col(f"counted{of}") + F.col(f"duplicates{of}") + F.col(f"conflicts{of}") + F.col(f"excluded{of}")
        )
        for of in ("", "_events")
    ]
    negative = [F.col(name) < 0 for name in COUNT_COLUMNS]
    return _failing(hourly_counts.where(_any([*wrong, *negative])), "counts_balance", HOURLY_COUNTS.name, COUNT_COLUMNS)


def left_out_is_booked(hourly_counts: DataFrame, left_out: DataFrame) -> DataFrame:
    """Every hour books exactly the events that `silver/left_out` lists for it, and each of them once."""
    listed = left_out.groupBy("event_date", "event_hour").agg(
        F.count("*").alias("listed"), F.countDistinct(*POSITION_COLUMNS).alias("distinct")
    )
    booked = hourly_counts.groupBy("event_date", "event_hour").agg(
        F.sum(F.col("duplicates_events") + F.col("conflicts_events") + F.col("excluded_events")).alias("booked")
    )
    both = booked.join(listed, on=["event_date", "event_hour"], how="full").na.fill(0)
    wrong = both.where("booked != listed OR listed != distinct")
    return _failing(wrong, "left_out_is_booked", LEFT_OUT.name, ("booked", "listed", "distinct"))


def each_id_counts_once(candidates: DataFrame, left_out: DataFrame) -> DataFrame:
    """Of all events that share an id, at most one is neither a copy nor left out by a rule.

    Args:
        candidates: Rows of `bronze/plays` that share their id with another one.
        left_out: Every copy's row among them.
    """
    copies = left_out.where(F.col("reason").isin(*COPY_REASONS)).select(*POSITION_COLUMNS)
    standing = (
        candidates.join(copies, on=[*POSITION_COLUMNS], how="left_anti")
        .groupBy("event_id")
        .agg(
            F.count("*").alias("standing"),
            F.min("event_date").alias("event_date"),
            F.min("event_hour").alias("event_hour"),
        )
    )
    return _failing(standing.where("standing > 1"), "each_id_counts_once", LEFT_OUT.name, ("event_id", "standing"))


def hours_sum_to_days(hours_of_days: DataFrame, daily_counts: DataFrame) -> DataFrame:
    """A day's numbers are the sums of its hours', for every item and region, with none missing on either side."""
    hours = hours_of_days.select("event_date", *_ITEM, *COUNT_COLUMNS, F.lit(1).alias("side"))
    days = daily_counts.select("event_date", *_ITEM, *COUNT_COLUMNS, F.lit(-1).alias("side"))
    differences = (
        hours.unionAll(days)
        .groupBy("event_date", *_ITEM)
        .agg(*[F.sum(F.col(name) * F.col("side")).alias(name) for name in COUNT_COLUMNS])
    )
    wrong = differences.where(_any([F.col(name) != 0 for name in COUNT_COLUMNS]))
    return _failing(wrong, "hours_sum_to_days", DAILY_COUNTS.name, (*_ITEM, *COUNT_COLUMNS))


def charts_sort_the_counts(charts: DataFrame, windowed_counts: DataFrame, *, size: int) -> DataFrame:
    """A chart lists the counts of its best items, in order, leaving out none that is better than its last one.

    Compared with the counts themselves: each listed item has its count, ranks go 1, 2, 3.. along the order, and
    as many items are at least as good as the last one as there are rows.
    """
    order = Window.partitionBy(*CHART_KEYS).orderBy("rank")
    listed = charts.select(
        *CHART_KEYS, "rank", "item_id", "counted", "items",
        F.lag("counted").over(order).alias("better_counted"), F.lag("item_id").over(order).alias("better_item"),
        F.row_number().over(order).alias("place"),
    )  # fmt: skip
    truth = windowed_counts.select(*CHART_KEYS, "item_id", F.col("counted").alias("truth"))
    both = listed.join(truth, on=[*CHART_KEYS, "item_id"], how="left")
    out_of_order = (F.col("better_counted") < F.col("counted")) | (
        (F.col("better_counted") == F.col("counted")) & (F.col("better_item") >= F.col("item_id"))
    )
    wrong = both.where(
        F.col("truth").isNull() | (F.col("truth") != F.col("counted")) | (F.col("rank") != F.col("place"))
        | F.coalesce(out_of_order, F.lit(False))
    )  # fmt: skip
    said = ("window_length", "region", "rank", "item_id", "counted", "truth")
    unsorted = _failing(wrong, "charts_sort_the_counts", CHARTS.name, said)
    return unsorted.unionAll(_incomplete(charts, windowed_counts, size=size))


def _incomplete(charts: DataFrame, windowed_counts: DataFrame, *, size: int) -> DataFrame:
    """Charts whose number of rows is not the number of items at least as good as their last row."""
    last = charts.groupBy(*CHART_KEYS).agg(
        F.count("*").alias("rows"), F.max_by(F.struct("counted", "item_id"), "rank").alias("last")
    )
    good = (F.col("counted") > F.col("last.counted")) | (
        (F.col("counted") == F.col("last.counted")) & (F.col("item_id") <= F.col("last.item_id"))
    )
    found = (
        windowed_counts.join(last, on=[*CHART_KEYS], how="left")
        .groupBy(*CHART_KEYS)
        .agg(
            F.coalesce(F.max("rows"), F.lit(0)).alias("rows"),
            F.count(F.when(good, 1)).alias("as_good"),
            F.count("*").alias("items"),
        )
    )
    wrong = found.where((F.col("rows") != F.col("as_good")) | (F.col("rows") != F.least("items", F.lit(size))))
    said = ("window_length", "region", "rows", "as_good", "items")
    return _failing(wrong, "charts_leave_out_none", CHARTS.name, said)


def regions_sum_to_everywhere(charts: DataFrame) -> DataFrame:
    """The total over all regions is the sum of the regions' totals, in each hour and day."""
    totals = charts.where("rank = 1").select(*WINDOW_KEYS, "region", "total")
    everywhere = F.sum(F.when(F.col("region") == ALL_REGIONS, F.col("total")).otherwise(0)).alias("everywhere")
    regions = F.sum(F.when(F.col("region") != ALL_REGIONS, F.col("total")).otherwise(0)).alias("regions")
    sums = totals.groupBy(*WINDOW_KEYS).agg(everywhere, regions)
    said = ("window_length", "everywhere", "regions")
    return _failing(sums.where("everywhere != regions"), "regions_sum_to_everywhere", CHARTS.name, said)


def charts_total_the_counts(charts: DataFrame, counts: DataFrame) -> DataFrame:
    """The total of the global chart of an hour or day is what all its items counted.

    Args:
        charts: Staged charts.
        counts: What `by_window` returns.
    """
    said = charts.where((F.col("region") == ALL_REGIONS) & (F.col("rank") == 1)).select(*WINDOW_KEYS, "total")
    truth = counts.groupBy(*WINDOW_KEYS).agg(F.sum("counted").alias("truth"))
    both = said.join(truth, on=[*WINDOW_KEYS], how="full").na.fill(0)
    shown = ("window_length", "total", "truth")
    return _failing(both.where("total != truth"), "charts_total_the_counts", CHARTS.name, shown)


def received_growth(old_hourly_counts: DataFrame, new_hourly_counts: DataFrame) -> DataFrame:
    """Return one row whose `detail` says by how many events the computed hours grew.

    It must equal the growth of bronze by its files' statistics: a commit lost behind our back breaks that.
    """
    old = old_hourly_counts.select((-F.col("received_events")).alias("events"))
    both = old.unionAll(new_hourly_counts.select(F.col("received_events").alias("events")))
    growth = both.agg(F.coalesce(F.sum("events"), F.lit(0)).alias("growth"))
    nowhere = growth.withColumns({"event_date": F.lit(None).cast("date"), "event_hour": F.lit(None).cast("int")})
    return _failing(nowhere, GROWTH, HOURLY_COUNTS.name, ("growth",))


def _failing(rows: DataFrame, proof: str, table: str, said: tuple[str, ...]) -> DataFrame:
    hour = F.col("event_hour") if "event_hour" in rows.columns else F.lit(None)
    detail = F.to_json(F.struct(*said))
    return rows.select(
        F.lit(proof).alias("proof"), F.lit(table).alias("table"), "event_date", hour.cast("int").alias("event_hour"),
        detail.alias("detail"),
    )  # fmt: skip


def _any(conditions: list[Column]) -> Column:
    return reduce(lambda one, other: one | other, conditions)
