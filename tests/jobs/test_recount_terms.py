"""What makes a recount needed besides new events, and what it says of a lake that is damaged or from another time."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from domain.policy import Policy
from domain.table import Column, Table, Type, Writer
from domain.tables import CHARTS, DERIVED, PLAYS, RESTATEMENTS
from ingest.lake_reader import LakeReader, newest_release
from ingest.read_files import LakeUnreadableError
from jobs import recount as recounting
from jobs.lake import Lake
from jobs.pace import FEW_ROWS
from jobs.recount import nothing_new, roll_back
from pipelines.schemas import spark_schema
from tests.counted_lakes import assert_equals_model, received, recount, released, request_of
from tests.lakes import ModelLake, Play, at

pytestmark = pytest.mark.spark

NOW = at(12, day=25)
FRONTIER = at(11, day=25)
PLAYED = [Play("1", "a", at(1)), Play("2", "a", at(1)), Play("3", "b", at(1)), Play("4", "c", at(2))]
LATER = Table(
    name="gold/added_later",
    grain="one row of a table that a later lakeboard has",
    columns=(Column("day", Type.DATE, "a day"), Column("number", Type.LONG, "a number")),
    partition_by=("day",),
    writer=Writer.SPARK,
    checks=(("positive", "number > 0"),),
)


def counted(spark: SparkSession, lake: Path, policy: Policy) -> ModelLake:
    model = ModelLake(policy=policy)
    model.release(PLAYED, frontier=FRONTIER)
    received(lake, model.rows[PLAYS.name], seq=1)
    recount(spark, lake, NOW, policy=policy)
    return model


def test_another_size_of_charts_makes_the_charts_again_and_restates_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    model = counted(spark, tmp_path, Policy(chart_size=1))
    assert nothing_new(request_of(tmp_path, NOW, policy=model.policy)) is not None
    model.policy = Policy(chart_size=2)
    assert nothing_new(request_of(tmp_path, NOW, policy=model.policy)) is None

    report = recount(spark, tmp_path, NOW, policy=model.policy)

    assert spark.conf.get("spark.sql.adaptive.enabled") == "true"  # quick while it counted, and no longer
    model.release([], frontier=FRONTIER)
    assert_equals_model(tmp_path, model)
    assert {row[CHARTS.column_names.index("rank")] for row in released(tmp_path, CHARTS)} == {1, 2}
    assert released(tmp_path, RESTATEMENTS) == []
    assert (report.release.cause, report.release.policy_fingerprint) == ("policy changed", model.policy.fingerprint())
    assert nothing_new(request_of(tmp_path, NOW, policy=model.policy)) is not None


def test_a_table_that_was_added_after_a_release_is_empty_for_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = counted(spark, tmp_path, Policy())
    newest = newest_release(tmp_path)
    assert newest is not None
    monkeypatch.setattr(recounting, "DERIVED", (*DERIVED, LATER))
    with LakeReader(tmp_path) as reader:
        assert reader.table(LATER).rows == 0

    model.release([Play("5", "a", at(1))], frontier=FRONTIER)
    received(tmp_path, model.rows[PLAYS.name][-1:], seq=2)
    report = recount(spark, tmp_path, NOW)

    assert_equals_model(tmp_path, model)
    assert report.release.table_versions[LATER.name] == len(LATER.checks)
    monkeypatch.setattr(recounting, "DERIVED", (LATER,))
    lake = Lake(spark, tmp_path)
    lake.append(LATER, lake.frame([{"day": NOW.date(), "number": 1}], spark_schema(LATER)), note="killed")
    assert LATER.name not in newest.table_versions
    assert roll_back(lake, newest) == [LATER.name]
    assert lake.current(LATER).isEmpty()


def test_a_session_is_quick_for_few_rows_only_and_is_left_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    names = ("spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions", "spark.sql.autoBroadcastJoinThreshold")
    before = [spark.conf.get(name) for name in names]
    pace = Lake(spark, tmp_path).pace

    pace.suit(FEW_ROWS)
    assert (pace.quick, spark.conf.get(names[0]), spark.conf.get(names[1])) == (True, "false", "1")
    pace.suit(FEW_ROWS + 1)
    assert (pace.quick, [spark.conf.get(name) for name in names]) == (False, before)
    pace.suit(0)
    pace.restore()
    assert [spark.conf.get(name) for name in names] == before


def cut(log: Path) -> None:
    max(log.glob("*.json")).write_text("{ no JSON", encoding="utf-8")


def lose(log: Path) -> None:
    min(log.glob("*.json")).unlink()


@pytest.mark.parametrize("damage", [cut, lose])
def test_a_damaged_log_of_bronze_is_said_in_one_sentence_with_what_to_do(
    spark: SparkSession, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    model = ModelLake()
    model.release(PLAYED, frontier=FRONTIER)
    received(tmp_path, model.rows[PLAYS.name], seq=1)
    damage(tmp_path / PLAYS.name / "_delta_log")

    with pytest.raises(LakeUnreadableError, match=r"bronze/plays cannot be read \(.+\): .*bring it back") as failed:
        recount(spark, tmp_path, NOW)

    assert "\n" not in str(failed.value)
    assert newest_release(tmp_path) is None
