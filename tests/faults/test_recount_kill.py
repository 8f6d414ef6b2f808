"""A recount killed anywhere leaves readers where they were, and the next one gives the tables of an unkilled run."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from domain.tables import DERIVED, PLAYS
from ingest.lake_reader import newest_release
from ingest.table_lock import locked
from jobs.recount import DERIVED_LOCKS
from tests.counted_lakes import assert_equals_model, received, recount, tables
from tests.lakes import ModelLake, Play, at

pytestmark = pytest.mark.spark

NOW = at(12, day=25)
FRONTIER = at(11, day=25)
COMMITTED = [table.name for table in DERIVED]
FIRST = [Play("a1", "a", at(1)), Play("b1", "b", at(2)), Play("a1", "a", at(3))]
SECOND = [Play("a2", "a", at(1)), Play("b1", "c", at(5)), Play("c1", "c", at(1, day=15))]


def model_of(*batches: list[Play]) -> ModelLake:
    model = ModelLake()
    for plays in batches:
        model.release(plays, frontier=FRONTIER)
    return model


def receive_all(lake_root: Path, model: ModelLake) -> None:
    """Bring every transaction of the model that the lake does not have."""
    rows = model.rows[PLAYS.name]
    for seq in sorted({row["writer_seq"] for row in rows}):
        received(lake_root, [row for row in rows if row["writer_seq"] == seq], seq=seq)


def test_a_kill_between_any_two_commits_is_repaired_by_the_next_run(spark: SparkSession, tmp_path: Path) -> None:
    """A process killed as a step begins leaves exactly the files of that moment: each copy is such a lake."""
    lake = tmp_path / "lake"
    receive_all(lake, model_of(FIRST))
    recount(spark, lake, NOW)
    before = tables(lake)
    both = model_of(FIRST, SECOND)
    receive_all(lake, both)
    killed: dict[str, Path] = {}

    def copy_lake(step: str) -> None:
        if step.startswith(("commit", "release")):
            killed[step] = tmp_path / step.replace("/", "-").replace(" ", "-")
            shutil.copytree(lake, killed[step])

    recount(spark, lake, NOW, on_step=copy_lake)

    assert set(killed) == {f"commit {name}" for name in COMMITTED} | {"release 2"}
    for step, copy in killed.items():
        newest = newest_release(copy)
        assert newest is not None, step
        assert newest.release == 1, step
        assert tables(copy) == before, step
    for step in ("commit silver/left_out", "commit gold/daily_counts", "commit gold/chart_history", "release 2"):
        report = recount(spark, killed[step], NOW)
        assert report.release.release == 2, step
        assert_equals_model(killed[step], both)


@pytest.mark.parametrize(("step", "seconds"), [("commit gold/hourly_counts", 0.15), ("commit gold/charts", 0.4)])
def test_a_kill_inside_a_commit_is_repaired_and_frees_the_locks(
    spark: SparkSession, tmp_path: Path, step: str, seconds: float
) -> None:
    lake = tmp_path / "lake"
    first = model_of(FIRST)
    receive_all(lake, first)

    killed = subprocess.run(
        [sys.executable, "-m", "tests.faults.kill_recount", str(lake), NOW.isoformat(), step, str(seconds)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        timeout=300,
        check=False,
    )

    assert killed.returncode == -signal.SIGKILL
    assert newest_release(lake) is None
    with locked(lake, *DERIVED_LOCKS, wait_seconds=0):
        pass
    report = recount(spark, lake, NOW)
    assert report.release.release == 1
    assert_equals_model(lake, first)
