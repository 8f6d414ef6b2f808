"""One late event costs the hour it touches, not the lake: rows read and files rewritten, counted by Spark and Delta."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from domain.tables import PLAYS
from tests.counted_lakes import received, recount
from tests.lakes import ModelLake, Play, at

pytestmark = pytest.mark.spark

NOW = at(12, day=29)
HOURS = (1, 7, 20)
PER_HOUR = 20


def stages_so_far(spark: SparkSession) -> dict[int, int]:
    """Rows read from files by the id of each stage; the store forgets the oldest beyond `spark.ui.retainedStages`."""
    context: Any = spark.sparkContext
    jvm, gateway = context._jvm, context._gateway
    context._jsc.sc().listenerBus().waitUntilEmpty()
    quantiles = gateway.new_array(jvm.double, 0)
    stages = context._jsc.sc().statusStore().stageList(None, False, False, quantiles, jvm.java.util.ArrayList())
    found = [stages.apply(n) for n in range(stages.size())]
    return {int(stage.stageId()): int(stage.inputRecords()) for stage in found}


def rows_read_after(spark: SparkSession, last: int) -> int:
    """Rows that all stages after stage `last` have read; they must all still be known."""
    found = {number: rows for number, rows in stages_so_far(spark).items() if number > last}
    assert min(stages_so_far(spark)) <= last + 1, "the store has forgotten stages of this recount"
    return sum(found.values())


def late_event_in_a_lake_of(spark: SparkSession, lake: Path, days: int) -> tuple[int, dict[str, tuple[int, int]]]:
    """Return rows read, and (files added, files removed) by table, of a recount after one late event."""
    plays = [
        Play(f"{day}-{hour}-{n}", f"item{n}", at(hour) + timedelta(days=day))
        for day in range(days) for hour in HOURS for n in range(PER_HOUR)
    ]  # fmt: skip
    model = ModelLake()
    model.release(plays, frontier=at(0, day=28))
    model.release([Play("late", "item0", at(7))], frontier=at(0, day=28))
    received(lake, model.rows[PLAYS.name][:-1], seq=1)
    recount(spark, lake, NOW)
    received(lake, model.rows[PLAYS.name][-1:], seq=2)
    last = max(stages_so_far(spark))

    report = recount(spark, lake, NOW)

    commits = {name: (commit.files_added, commit.files_removed) for name, commit in report.commits.items()}
    return rows_read_after(spark, last), commits


def test_a_late_event_reads_no_more_of_a_larger_lake_but_for_the_search_of_its_id(
    spark: SparkSession, tmp_path: Path
) -> None:
    small, files_of_small = late_event_in_a_lake_of(spark, tmp_path / "small", days=1)
    large, files_of_large = late_event_in_a_lake_of(spark, tmp_path / "large", days=8)

    assert files_of_large == files_of_small
    assert files_of_small["gold/hourly_counts"] == (1, 1)
    more_events = 7 * len(HOURS) * PER_HOUR
    more_files_in_logs = 12 * 7 * len(HOURS)  # Delta's own logs are read as rows: some actions a file
    assert 0 < small < 40 * PER_HOUR * len(HOURS)
    assert large - small <= 2 * more_events + more_files_in_logs, (small, large)
