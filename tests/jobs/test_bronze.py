"""Bronze is read up to a position, from the files that can hold what is asked for, whatever happened to it since."""

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from domain.position import BronzePosition
from domain.tables import PLAYS
from ingest.lake_writer import bronze_position
from jobs.bronze import Bronze
from jobs.lake import Lake
from tests import lake_rows
from tests.counted_lakes import received
from tests.lake_rows import WRITER
from tests.lakes import Play, at

pytestmark = pytest.mark.spark

OTHER = "lake_writer/import/other/0"
HOUR = (at(1).date(), 1)


def receive(lake_root: Path, event_id: str, seq: int, writer: str = WRITER, *, day: int = 20) -> None:
    row = lake_rows.received(Play(event_id, "a", at(1)), at(0, day=day), seq, 0)
    received(lake_root, [row], seq=seq, writer=writer)


def ids(rows: DataFrame) -> list[str]:
    return sorted(row["event_id"] for row in rows.select("event_id").collect())


def compact_and_remove_what_was(lake_root: Path) -> None:
    handle = DeltaTable(lake_root / PLAYS.name)
    handle.optimize.compact()
    handle.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)


def pinned(lake_root: Path) -> BronzePosition:
    receive(lake_root, "one", 1)
    receive(lake_root, "two", 2)
    receive(lake_root, "three", 1, OTHER)
    return bronze_position(lake_root)


def test_a_position_is_read_after_its_files_were_compacted_and_removed(spark: SparkSession, tmp_path: Path) -> None:
    position = pinned(tmp_path)
    receive(tmp_path, "later", 3)
    receive(tmp_path, "of a writer unknown then", 1, "lake_writer/import/third/0")
    compact_and_remove_what_was(tmp_path)

    bronze = Bronze(Lake(spark, tmp_path), position)

    assert ids(bronze.all().frame) == ["one", "three", "two"]
    assert ids(bronze.of_hours({HOUR}).frame) == ["one", "three", "two"]
    assert ids(bronze.ingested_since(at(0, day=20)).frame) == ["one", "three", "two"]
    with pytest.raises(Exception, match=r"FILE_NOT_EXIST|does not exist|SparkFileNotFound|DELTA_"):
        ids(spark.read.format("delta").option("versionAsOf", position.version).load(str(tmp_path / PLAYS.name)))


def test_only_files_that_can_hold_the_rows_are_read(spark: SparkSession, tmp_path: Path) -> None:
    position = pinned(tmp_path)
    receive(tmp_path, "late", 3, day=22)
    bronze = Bronze(Lake(spark, tmp_path), bronze_position(tmp_path))

    assert bronze.may_be_after(position.writers).rows == 1
    assert bronze.may_be_after({WRITER: 1}).rows == 2
    assert bronze.may_be_after({OTHER: -1}).rows == 1
    assert bronze.ingested_since(at(0, day=21)).rows == 1
    assert bronze.of_hours({(at(1, day=15).date(), 1)}).rows == 0


def test_without_statistics_every_file_is_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned(tmp_path)
    monkeypatch.setattr(
        "jobs.files.statistics",
        lambda delta, *columns: {name: _fact(delta, name) for name in columns},
    )
    bronze = Bronze(Lake(spark, tmp_path), bronze_position(tmp_path))

    assert ids(bronze.may_be_after({WRITER: 1}).frame) == ["one", "three", "two"]
    assert ids(bronze.ingested_since(at(0, day=20)).frame) == ["one", "three", "two"]


def _fact(delta: DeltaTable, name: str) -> list[object]:
    actions = delta.get_add_actions(flatten=True)
    known = name == "path" or name.startswith("partition.")
    return list(actions.column(name).to_pylist()) if known else [None] * len(actions)
