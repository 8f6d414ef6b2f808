"""Maintenance makes files fewer and changes nothing that anybody reads."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from domain.tables import PLAYS
from ingest.lake_reader import newest_release
from jobs import maintain
from jobs.recount import nothing_new
from tests.counted_lakes import received, recount, request_of, tables
from tests.lakes import ModelLake, Play, at

pytestmark = pytest.mark.spark

NOW = at(12, day=25)
FRONTIER = at(11, day=25)


def test_maintenance_keeps_every_number_and_rolls_back_a_killed_recount_first(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake, killed = tmp_path / "lake", tmp_path / "killed"
    model = ModelLake()
    for seq, plays in enumerate(([Play("a1", "a", at(1))], [Play("a2", "a", at(1)), Play("a1", "b", at(2))]), 1):
        model.release(plays, frontier=FRONTIER)
        received(lake, model.rows[PLAYS.name][-len(plays) :], seq=seq)
    recount(spark, lake, at(12, day=24))
    before = tables(lake)
    model.release([Play("a3", "a", at(1))], frontier=FRONTIER)
    received(lake, model.rows[PLAYS.name][-1:], seq=3)

    def copy_lake(step: str) -> None:
        if step == "commit gold/charts":
            shutil.copytree(lake, killed)

    recount(spark, lake, NOW, on_step=copy_lake)
    done = {each.table: each for each in maintain.run(spark, killed, clock=lambda: NOW)}

    newest = newest_release(killed)
    assert newest is not None
    assert (newest.release, newest.cause, newest.position.events) == (2, "maintenance", 3)
    assert tables(killed) == before
    assert (done[PLAYS.name].files_before, done[PLAYS.name].files_after) == (3, 1)
    assert nothing_new(request_of(killed, NOW)) is None
    report = recount(spark, killed, NOW)
    assert (report.release.release, report.new_events) == (3, 1)
    counted = {row[1]: row[8] for row in tables(killed)["gold/hourly_counts"]}
    assert counted == {1: 3, 2: 0}
    assert len(model.releases) == 3
