"""Each proof holds on right tables and fails on tables broken in its way: a proof that can't fail proves nothing."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from domain.rules import Rules
from domain.tables import LEFT_OUT, PLAYS
from pipelines import proofs
from pipelines.by_window import by_window
from pipelines.charts import charts, windowed_counts
from pipelines.copies import copies_left_out
from pipelines.counts import daily_counts, hourly_counts
from tests import lake_rows
from tests.lake_rows import Play, at
from tests.pipelines.frames import frame

pytestmark = pytest.mark.spark

SIZE = 2


@dataclass
class Right:
    plays: DataFrame
    left_out: DataFrame
    hourly: DataFrame
    daily: DataFrame
    counts: DataFrame
    windowed: DataFrame
    charts: DataFrame


@pytest.fixture(scope="module")
def right(spark: SparkSession) -> Right:
    said = [Play("1", "a", at(1)), Play("2", "a", at(1)), Play("3", "b", at(1), "IN"), Play("4", "c", at(1)),
            Play("5", "d", at(2)), Play("1", "a", at(2)), Play("3", "c", at(2), "IN")]  # fmt: skip
    plays = frame(spark, PLAYS, [lake_rows.received(play, at(0, day=20), 0, n) for n, play in enumerate(said)])
    left_out = copies_left_out(plays, frame(spark, LEFT_OUT, [])).localCheckpoint()
    hourly = hourly_counts(plays, left_out).localCheckpoint()
    daily = daily_counts(hourly).localCheckpoint()
    counts = by_window(hourly, daily)
    windowed = windowed_counts(counts).localCheckpoint()
    return Right(plays, left_out, hourly, daily, counts, windowed, charts(windowed, size=SIZE).localCheckpoint())


def changed(rows: DataFrame, column: str, value: Column, where: str = "true") -> DataFrame:
    return rows.withColumn(column, F.when(F.expr(where), value).otherwise(F.col(column)))


def test_the_right_tables_hold(right: Right) -> None:
    assert proofs.counts_balance(right.hourly).count() == 0
    assert proofs.left_out_is_booked(right.hourly, right.left_out).count() == 0
    assert proofs.each_id_counts_once(right.plays, right.left_out).count() == 0
    assert proofs.hours_sum_to_days(right.hourly, right.daily).count() == 0
    assert proofs.charts_sort_the_counts(right.charts, right.windowed, size=SIZE).count() == 0
    assert proofs.regions_sum_to_everywhere(right.charts).count() == 0
    assert proofs.charts_total_the_counts(right.charts, right.counts).count() == 0
    assert lake_rows.left_out([], Rules()) == []


BROKEN: dict[str, Callable[[Right], DataFrame]] = {
    "a play too many": lambda r: proofs.counts_balance(changed(r.hourly, "counted", F.col("counted") + 1)),
    "an event too many": lambda r: proofs.counts_balance(changed(r.hourly, "counted_events", F.lit(9))),
    "a negative number": lambda r: proofs.counts_balance(
        changed(changed(r.hourly, "counted", F.lit(-1)), "excluded", F.col("received") + 1)
    ),
    "a copy not booked": lambda r: proofs.left_out_is_booked(
        changed(r.hourly, "conflicts_events", F.lit(0)), r.left_out
    ),
    "a copy booked for an hour without one": lambda r: proofs.left_out_is_booked(
        r.hourly, r.left_out.where("event_hour = 9")
    ),
    "a copy listed twice": lambda r: proofs.left_out_is_booked(r.hourly, r.left_out.unionAll(r.left_out)),
    "a copy that counts": lambda r: proofs.each_id_counts_once(r.plays, r.left_out.where("event_id != '1'")),
    "a copy excused by a rule": lambda r: proofs.each_id_counts_once(
        r.plays, changed(r.left_out, "reason", F.lit("too_short"))
    ),
    "a day's number": lambda r: proofs.hours_sum_to_days(
        r.hourly, changed(r.daily, "received", F.lit(99), "item_id = 'a'")
    ),
    "a day's item missing": lambda r: proofs.hours_sum_to_days(r.hourly, r.daily.where("item_id != 'a'")),
    "an hour missing": lambda r: proofs.hours_sum_to_days(r.hourly.where("event_hour = 1"), r.daily),
    "a chart's number": lambda r: proofs.charts_sort_the_counts(
        changed(r.charts, "counted", F.lit(3), "rank = 1"), r.windowed, size=SIZE
    ),
    "an item that counted nothing": lambda r: proofs.charts_sort_the_counts(
        changed(r.charts, "item_id", F.lit("zz"), "rank = 2"), r.windowed, size=SIZE
    ),
    "ranks swapped": lambda r: proofs.charts_sort_the_counts(
        changed(r.charts, "rank", F.lit(3) - F.col("rank"), "region = '*'"), r.windowed, size=SIZE
    ),
    "a rank left out": lambda r: proofs.charts_sort_the_counts(
        changed(r.charts, "rank", F.lit(5), "rank = 2"), r.windowed, size=SIZE
    ),
    "the best row missing": lambda r: proofs.charts_sort_the_counts(
        changed(r.charts.where("rank = 2"), "rank", F.lit(1)), r.windowed, size=SIZE
    ),
    "a whole chart missing": lambda r: proofs.charts_sort_the_counts(
        r.charts.where("region != 'IN'"), r.windowed, size=SIZE
    ),
    "a chart too short": lambda r: proofs.charts_sort_the_counts(r.charts.where("rank = 1"), r.windowed, size=SIZE),
    "a region's total": lambda r: proofs.regions_sum_to_everywhere(
        changed(r.charts, "total", F.lit(7), "region = 'IN'")
    ),
    "a region missing": lambda r: proofs.regions_sum_to_everywhere(r.charts.where("region != 'IN'")),
    "the global total": lambda r: proofs.charts_total_the_counts(
        changed(r.charts, "total", F.lit(7), "region = '*'"), r.counts
    ),
}


@pytest.mark.parametrize("damage", BROKEN)
def test_damage_is_found_and_named(right: Right, damage: str) -> None:
    failing = BROKEN[damage](right).collect()

    assert failing, damage
    assert set(failing[0].asDict()) == set(proofs.FAILING_COLUMNS)
    assert all(row["event_date"] == at(0).date() and row["table"] and row["detail"] for row in failing)
