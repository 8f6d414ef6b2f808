"""Ten years of plays imported today: every day they touch, and every chart, is right at the next recount."""

import csv
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from domain.policy import Policy
from domain.table import POSITION_COLUMNS
from domain.tables import DERIVED, LEFT_OUT
from domain.windows import Granularity, Window
from ingest.importers.request import ImportRequest
from ingest.importers.run import import_files
from ingest.lake_reader import LakeReader
from tests.counted_lakes import recount, released, said_by
from tests.lakes import ModelLake, Play, at

pytestmark = pytest.mark.spark

POLICY = Policy(chart_size=3)
YEARS = range(2016, 2026)
# What only the real import gives: places in files, and hashes.
AS_IMPORTED = (*POSITION_COLUMNS, *(f"winner_{name}" for name in POSITION_COLUMNS), "payload_hash",
               "winner_payload_hash", "id_hash")  # fmt: skip
NOW, LEAP_DAY = at(1, day=15), datetime(2020, 2, 29, 23, 59, 59, 999_999, UTC)


def ten_years() -> list[Play]:
    """Plays of five items, two or three at a time: the start of each year, some of their ends, each 29 February."""
    choose = random.Random(25)
    moments = [datetime(year, 1, 1, tzinfo=UTC) for year in YEARS]
    moments += [datetime(year, 12, 31, 23, 59, 59, 999_999, UTC) for year in YEARS if year % 3 == 0]
    moments += [LEAP_DAY.replace(year=year) for year in YEARS if year % 4 == 0]
    moments += [moments[0] + timedelta(hours=choose.randrange(10 * 365 * 24)) for _ in range(4)]
    moments = [moment for moment in moments for _ in range(choose.choice([2, 3]))]
    plays = [
        Play(f"old-{n}", choose.choice("abcde"), moment, choose.choice(["ZZ", "IN"]), count=choose.choice([1, 1, 7]))
        for n, moment in enumerate(moments)
    ]
    return [*plays, plays[0], replace(plays[1], item_id="another")]


def imported(folder: Path, plays: list[Play]) -> Path:
    """Write plays as CSV and import it; return the lake."""
    path = folder / "ten_years.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "item", "time", "region", "count"])
        rows.writerows([play.event_id, play.item_id, play.at.isoformat(), play.region, play.count] for play in plays)
    request = ImportRequest(files=(path,), item="item", time="time", event_id="id", region="region", count="count")
    summary = import_files(request, lake_root=folder / "lake", clock=lambda: NOW)
    assert summary.new_rows == summary.files[0].accepted == len(plays)
    return folder / "lake"


def test_every_day_and_chart_of_ten_imported_years_is_right_at_the_next_recount(
    spark: SparkSession, tmp_path: Path
) -> None:
    plays = ten_years()
    lake, model = imported(tmp_path, plays), ModelLake(policy=POLICY)
    model.release(plays, frontier=NOW, created_at=NOW)

    recount(spark, lake, NOW + POLICY.grace, policy=POLICY)

    for table in DERIVED:
        without = AS_IMPORTED if table is LEFT_OUT else ()
        assert released(lake, table, without=without) == said_by(model, table, without=without), table.name
    days = {Window.of_day(play.at.date()) for play in plays}
    assert (len(plays) > 40, len(days) > 15) == (True, True)
    assert Window.of_day(LEAP_DAY.date()) in days
    with LakeReader(lake) as reader:
        for day in days:
            chart = reader.chart(Granularity.DAY, day, region="*", n=3).body()
            assert (chart["status"], chart["total"]) == ("final", plain_count(plays, day)), day


def plain_count(plays: list[Play], window: Window) -> int:
    """Each id once, the first that came; no code of ours but the window."""
    first = {play.event_id: play for play in reversed(plays)}
    return sum(play.count for play in first.values() if window.contains(play.at))
