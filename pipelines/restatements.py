"""Which published numbers a release changes, one row each."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from domain.tables import MEASURES, RESTATEMENTS
from pipelines.by_window import WINDOW_KEYS
from pipelines.hours import starts_at
from pipelines.schemas import conformed

_KEYS = (*WINDOW_KEYS, "region", "item_id")

CAUSES = T.StructType(
    [
        T.StructField("window_length", T.StringType()),
        T.StructField("event_date", T.DateType()),
        T.StructField("event_hour", T.IntegerType()),
        T.StructField("cause", T.StringType()),
    ]
)


def restatements(old_counts: DataFrame, new_counts: DataFrame, causes: DataFrame, *, release: int) -> DataFrame:
    """Compare counts of certified windows before and after; a missing row stands for zeros.

    Args:
        old_counts: What `by_window` returned of the last release.
        new_counts: The same, as this release says.
        causes: `CAUSES` of every certified window that was computed again; others are no restatements.
        release: The release that changes the numbers.
    """
    old = old_counts.select(*_KEYS, *[F.col(name).alias(f"old_{name}") for name in MEASURES])
    new = new_counts.select(*_KEYS, *[F.col(name).alias(f"new_{name}") for name in MEASURES])
    both = old.join(new, on=[*_KEYS], how="full").na.fill(0).join(causes, on=[*WINDOW_KEYS], how="inner")
    measured = [
        F.struct(F.lit(name).alias("measure"), F.col(f"old_{name}").alias("old"), F.col(f"new_{name}").alias("new"))
        for name in MEASURES
    ]
    changes = both.select("*", F.explode(F.array(*measured)).alias("change")).where("change.old != change.new")
    added = {
        "release": F.lit(release),
        "window_start": starts_at(F.col("event_hour")),
        "month": F.date_format("event_date", "yyyy-MM"),
        **{name: F.col(f"change.{name}") for name in ("measure", "old", "new")},
    }
    return conformed(changes.withColumns(added), RESTATEMENTS)
