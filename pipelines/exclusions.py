"""Which events a counting rule leaves out."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from domain.events import LeftOut
from domain.rules import MinimumDuration, Missing, Rules
from domain.table import POSITION_COLUMNS
from domain.tables import LEFT_OUT
from pipelines.schemas import conformed, spark_schema

_WINNER_COLUMNS = tuple(name for name in LEFT_OUT.column_names if name.startswith("winner_"))


def too_short(rules: Rules) -> Column:
    """Return the condition under which `Rules.too_short` holds for a row of `bronze/plays`."""
    condition = F.lit(False)
    for rule in rules.minimum_durations:  # in order of their dates: a later one takes over
        in_force = F.col("event_time") >= F.lit(rule.effective_from)
        condition = F.when(in_force, _is_short(rule)).otherwise(condition)
    return condition


def excluded_left_out(plays: DataFrame, copies: DataFrame, rules: Rules) -> DataFrame:
    """Return a `silver/left_out` row for every event that a rule excludes.

    Copies are judged before rules, never after: an excluded first copy does not let the second one count.

    Args:
        plays: All rows of `bronze/plays` of some hours.
        copies: All copies left out of these hours.
        rules: Counting rules.
    """
    short = plays.where(too_short(rules)).join(
        copies.select(*POSITION_COLUMNS), on=[*POSITION_COLUMNS], how="left_anti"
    )
    types = spark_schema(LEFT_OUT)
    nothing_won = {name: F.lit(None).cast(types[name].dataType) for name in _WINNER_COLUMNS}
    return conformed(short.withColumns({"reason": F.lit(LeftOut.TOO_SHORT.value), **nothing_won}), LEFT_OUT)


def _is_short(rule: MinimumDuration) -> Column:
    shorter = F.col("duration_ms") < F.lit(rule.duration_ms)
    return F.coalesce(shorter, F.lit(rule.missing is Missing.EXCLUDE))
