"""Which published numbers a release changes, one row each."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from domain.tables import MEASURES, RESTATEMENTS
from domain.windows import Granularity
from pipelines.hours import starts_at
from pipelines.schemas import conformed

_KEYS = ("event_date", "event_hour", "region", "item_id")


def restatements(
    old_counts: DataFrame, new_counts: DataFrame, causes: DataFrame, *, granularity: Granularity, release: int
) -> DataFrame:
    """Compare counts of certified windows before and after; a missing row stands for zeros.

    Args:
        old_counts: Columns event_date, event_hour (0 for days), region, item_id and the measures.
        new_counts: The same, as this release says.
        causes: event_date, event_hour, cause of every certified window that was computed again; others are no
            restatements.
        granularity: What a row covers.
        release: The release that changes the numbers.
    """
    old = old_counts.select(*_KEYS, *[F.col(name).alias(f"old_{name}") for name in MEASURES])
    new = new_counts.select(*_KEYS, *[F.col(name).alias(f"new_{name}") for name in MEASURES])
    both = old.join(new, on=[*_KEYS], how="full").na.fill(0).join(causes, on=["event_date", "event_hour"], how="inner")
    measured = [
        F.struct(F.lit(name).alias("measure"), F.col(f"old_{name}").alias("old"), F.col(f"new_{name}").alias("new"))
        for name in MEASURES
    ]
    changes = both.select(
        "*", starts_at(F.col("event_hour")).alias("window_start"), F.explode(F.array(*measured)).alias("change")
    )
    rows = changes.where("change.old != change.new").select(
        F.lit(release).alias("release"),
        F.lit(granularity.value).alias("window_length"),
        "window_start",
        "region",
        "item_id",
        "change.measure",
        "change.old",
        "change.new",
        "cause",
        F.date_format("event_date", "yyyy-MM").alias("month"),
    )
    return conformed(rows, RESTATEMENTS)
