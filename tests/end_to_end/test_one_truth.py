"""The same tables under any time zone, and the same rows from every reader."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from domain.tables import BRONZE, DERIVED, PLAYS, RELEASES
from tests.counted_lakes import assert_equals_model, by_value, received, recount, released
from tests.lakes import ModelLake, Play
from tests.pipelines.frames import ZONES

pytestmark = pytest.mark.spark

NOW = datetime(2013, 11, 5, tzinfo=UTC)
FRONTIER = datetime(2013, 11, 4, 23, tzinfo=UTC)
# 02:00 in New York on 10 March did not exist; 01:00 on 3 November came twice.
NIGHTS = [datetime(2013, 3, 10, 7, tzinfo=UTC), datetime(2013, 11, 3, 6, tzinfo=UTC), datetime(2013, 3, 31, tzinfo=UTC)]
EDGES = [timedelta(microseconds=-1), timedelta(0), timedelta(minutes=59, seconds=59), timedelta(hours=1)]


@pytest.fixture
def zone(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def nightly_model() -> ModelLake:
    model = ModelLake()
    plays = [Play(f"{n}{e}", "dial", night + edge) for n, night in enumerate(NIGHTS) for e, edge in enumerate(EDGES)]
    model.release([*plays, Play("00", "copy", NIGHTS[1]), Play("é", "\U0001f3b5", NIGHTS[0], "IN")], frontier=FRONTIER)
    return model


@pytest.mark.parametrize("zone", ZONES, indirect=True)
def test_nights_of_clock_changes_count_the_same_in_every_session_zone(
    spark: SparkSession, tmp_path: Path, zone: str
) -> None:
    model = nightly_model()
    received(tmp_path, model.rows[PLAYS.name], seq=1)

    recount(spark, tmp_path, NOW)

    assert_equals_model(tmp_path, model)
    if zone == ZONES[-1]:
        assert_every_reader_agrees(spark, tmp_path)


def assert_every_reader_agrees(spark: SparkSession, lake: Path) -> None:
    for table in (*BRONZE, *DERIVED, RELEASES):
        path = str(lake / table.name)
        delta = DeltaTable(path)
        assert delta.protocol().min_reader_version == 1, table.name
        columns = table.column_names
        by_duckdb = released(lake, table)
        arrow = delta.to_pyarrow_table(columns=columns).to_pylist()
        polars = pl.scan_delta(path).select(columns).collect().rows()
        sparks = spark.read.format("delta").load(path).select(*columns).toArrow().to_pylist()
        assert as_rows(arrow, columns) == by_duckdb, table.name
        assert by_value(polars) == by_duckdb, table.name
        assert as_rows(sparks, columns) == by_duckdb, table.name


def as_rows(rows: list[dict[str, Any]], columns: list[str]) -> list[tuple[Any, ...]]:
    def in_utc(value: Any) -> Any:
        return value.astimezone(UTC) if isinstance(value, datetime) else value

    return by_value([in_utc(row[name]) for name in columns] for row in rows)
