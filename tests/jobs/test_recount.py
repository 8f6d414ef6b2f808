"""What a recount touches, what it refuses, and what it remembers."""

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from domain.policy import Policy
from domain.position import PositionWentBackError
from domain.rules import Rules
from domain.tables import CHARTS, DAILY_COUNTS, HOURLY_COUNTS, HOURS, LEFT_OUT, PLAYS, RELEASES, RESTATEMENTS
from ingest.arrow import arrow_schema
from ingest.lake_reader import newest_release
from ingest.lake_writer import compact
from jobs.proving import ProofFailedError
from jobs.recount import NothingImportedError, nothing_new, run
from tests.counted_lakes import assert_equals_model, received, recount, released, request_of, said_by, tables
from tests.lake_rows import WRITER
from tests.lakes import ModelLake, Play, at

pytestmark = pytest.mark.spark

NOW = at(12, day=25)
FRONTIER = NOW - timedelta(hours=1)


def counted_model(spark: SparkSession, lake_root: Path, *batches: list[Play]) -> ModelLake:
    """Receive and count batches one after the other, in the lake and in the model."""
    model = ModelLake()
    for seq, plays in enumerate(batches, 1):
        receive(model, lake_root, plays, seq)
        recount(spark, lake_root, NOW)
    return model


def receive(model: ModelLake, lake_root: Path, plays: list[Play], seq: int) -> None:
    known = len(model.rows[PLAYS.name])
    model.release(plays, frontier=FRONTIER)
    received(lake_root, model.rows[PLAYS.name][known:], seq=seq)


def files_of(lake_root: Path, table: str) -> set[str]:
    return {str(path) for path in DeltaTable(lake_root / table).file_uris()}


def test_a_late_event_changes_its_own_hour_day_and_charts_and_no_other_file(
    spark: SparkSession, tmp_path: Path
) -> None:
    days = range(14, 24)
    model = counted_model(spark, tmp_path, [Play(f"{day}-{h}", "a", at(h, day=day)) for day in days for h in (3, 4)])
    before = {table.name: files_of(tmp_path, table.name) for table in (HOURLY_COUNTS, DAILY_COUNTS, CHARTS, HOURS)}

    receive(model, tmp_path, [Play("late", "a", at(3, day=14))], 2)
    report = recount(spark, tmp_path, NOW)

    assert_equals_model(tmp_path, model)
    replaced = {name: len(files - files_of(tmp_path, name)) for name, files in before.items()}
    assert replaced == {HOURLY_COUNTS.name: 1, DAILY_COUNTS.name: 1, CHARTS.name: 2, HOURS.name: 1}
    assert all(commit.rows_copied == 0 for commit in report.commits.values())
    assert report.release.hours_touched == 1
    restated = {(row[1], row[2], row[5], row[6], row[7], row[8]) for row in released(tmp_path, RESTATEMENTS)}
    hour = at(3, day=14)
    assert restated == {
        ("1h", hour, "received", 1, 2, "late_event"),
        ("1h", hour, "counted", 1, 2, "late_event"),
        ("1d", at(0, day=14), "received", 2, 3, "late_event"),
        ("1d", at(0, day=14), "counted", 2, 3, "late_event"),
    }


def test_a_copy_stays_left_out_when_its_hour_is_counted_again_for_another_reason(
    spark: SparkSession, tmp_path: Path
) -> None:
    first = [Play("X", "a", at(1)), Play("X", "a", at(2)), Play("only-copy", "b", at(3)), Play("only-copy", "b", at(4))]

    model = counted_model(spark, tmp_path, first, [Play("unrelated", "a", at(2))], [Play("X", "c", at(5))])

    assert_equals_model(tmp_path, model)
    counts = {(row[1], row[3]): row[8] for row in released(tmp_path, HOURLY_COUNTS)}
    assert counts == {(1, "a"): 1, (2, "a"): 1, (3, "b"): 1, (4, "b"): 0, (5, "c"): 0}
    charted_hours = {row[2] for row in released(tmp_path, CHARTS) if row[0] == "1h"}
    assert charted_hours == {1, 2, 3}


def test_rows_that_arrive_during_a_recount_wait_for_the_next_and_compaction_touches_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    model = ModelLake()
    receive(model, tmp_path, [Play("one", "a", at(1)), Play("two", "b", at(2))], 1)
    as_pinned = ModelLake()
    as_pinned.release([Play("one", "a", at(1)), Play("two", "b", at(2))], frontier=FRONTIER)

    def append_meanwhile(step: str) -> None:
        if step == "count hours":
            receive(model, tmp_path, [Play("one", "a", at(1)), Play("three", "a", at(1))], 2)

    recount(spark, tmp_path, NOW, on_step=append_meanwhile)
    assert_equals_model(tmp_path, as_pinned)
    before, after = compact(tmp_path, PLAYS)
    assert (before, after) == (2, 1)
    report = recount(spark, tmp_path, NOW)

    assert report.new_events == 2
    assert report.release.hours_touched == 1
    assert_equals_model(tmp_path, model)
    DeltaTable(tmp_path / PLAYS.name).optimize.compact()
    unchanged = nothing_new(request_of(tmp_path, NOW))
    assert unchanged is not None
    assert not unchanged.is_new
    assert not recount(spark, tmp_path, NOW).is_new
    assert newest_release(tmp_path) == report.release


def test_a_commit_removed_behind_our_back_is_refused_and_the_release_stays(spark: SparkSession, tmp_path: Path) -> None:
    model = counted_model(spark, tmp_path, [Play("one", "a", at(1))], [Play("two", "a", at(1))])
    said = tables(tmp_path)
    log = tmp_path / PLAYS.name / "_delta_log"
    newest = max(log.glob("*.json"))

    newest.unlink()
    with pytest.raises(PositionWentBackError, match="went back"):
        recount(spark, tmp_path, NOW)
    # The lost commit's number is taken by another one: the writer has moved on, but rows are missing.
    received(tmp_path, [model.rows[PLAYS.name][0] | {"event_id": "three", "id_hash": 3, "log_index": 7}], seq=3)
    with pytest.raises(ProofFailedError, match="bronze_growth") as failed:
        recount(spark, tmp_path, NOW)

    assert "positions say 1 are new" in str(failed.value)
    assert tables(tmp_path) == said


def test_rows_that_slip_in_below_a_counted_position_fail_the_proof(spark: SparkSession, tmp_path: Path) -> None:
    model = counted_model(spark, tmp_path, [Play("one", "a", at(1))])
    said = tables(tmp_path)
    stray = model.rows[PLAYS.name][0] | {"event_id": "stray", "id_hash": 5, "log_index": 9}
    received(tmp_path, [stray], seq=1, writer="lake_writer/import/other/0")
    sneaky = {**stray, "event_id": "sneaky", "writer": WRITER, "writer_seq": 0, "event_hour": 7}
    table = DeltaTable(tmp_path / PLAYS.name)
    write_deltalake(table, pa.Table.from_pylist([sneaky], schema=arrow_schema(PLAYS)), mode="append")
    with pytest.raises(ProofFailedError, match="bronze_growth"):
        recount(spark, tmp_path, NOW)

    assert tables(tmp_path) == said


def test_without_an_import_there_is_nothing_to_count(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NothingImportedError, match="lakeboard import"):
        recount(spark, tmp_path, NOW)


def test_hours_are_certified_when_their_grace_is_over_without_counting_them_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    model = ModelLake()
    model.release([Play("one", "a", at(10)), Play("two", "a", at(11))], frontier=at(11))
    received(tmp_path, model.rows[PLAYS.name], seq=1)
    grace = Policy().grace

    first = recount(spark, tmp_path, at(11) + grace)
    assert (first.release.frontier, first.release.hours_touched) == (at(11), 2)
    assert_equals_model(tmp_path, model)
    assert nothing_new(request_of(tmp_path, at(11, 59) + grace)) is not None
    again = recount(spark, tmp_path, at(12) + grace)

    model.release([], frontier=at(12))
    assert again.is_new
    assert (again.release.hours_touched, list(again.commits)) == (0, [HOURS.name])
    assert_equals_model(tmp_path, model)
    with_state = {row[1]: row[2] for row in released(tmp_path, HOURS)}
    assert (with_state[10], with_state[11], with_state[12]) == ("certified", "certified", "provisional")
    assert released(tmp_path, RESTATEMENTS) == []


def test_copies_beyond_the_horizon_are_found_by_a_full_recount_and_losers_are_remembered_for_ever(
    spark: SparkSession, tmp_path: Path
) -> None:
    model = ModelLake()
    months = [at(0, day=1), at(0, day=1) + timedelta(days=30), at(0, day=1) + timedelta(days=60)]
    now = months[2] + timedelta(days=40)
    for seq, ingested in enumerate(months, 1):
        known = len(model.rows[PLAYS.name])
        plays = [Play("X", "a", at(seq)), *([Play("Y", "b", at(seq))] if seq != 2 else [])]
        model.release(plays, frontier=at(0, day=28), created_at=ingested)
        received(tmp_path, model.rows[PLAYS.name][known:], seq=seq)
        recount(spark, tmp_path, now)

    # X at hour 3 meets X at hour 2 within the horizon; that one lost to X at hour 1, 60 days before.
    counts = {(row[1], row[3]): row[8] for row in released(tmp_path, HOURLY_COUNTS)}
    assert counts == {(1, "a"): 1, (1, "b"): 1, (2, "a"): 0, (3, "a"): 0, (3, "b"): 1}
    recount(spark, tmp_path, now, full=True)

    counts = {(row[1], row[3]): row[8] for row in released(tmp_path, HOURLY_COUNTS)}
    assert counts == {(1, "a"): 1, (1, "b"): 1, (2, "a"): 0, (3, "a"): 0, (3, "b"): 0}
    moved = {(row[1], row[4], row[5], row[8]) for row in released(tmp_path, RESTATEMENTS) if row[0] == 4}
    assert ("1h", "b", "counted", "late_duplicate") in moved
    assert {cause for *_, cause in moved} == {"late_duplicate"}


def test_changed_rules_recount_the_hours_they_concern_and_say_so(spark: SparkSession, tmp_path: Path) -> None:
    plays = [
        Play("short", "a", at(1), duration_ms=29_900),
        Play("exact", "a", at(1), duration_ms=30_000),
        Play("unsaid", "a", at(1)),
        Play("early", "a", at(1, day=13), duration_ms=5),
        Play("copy-of-short", "b", at(2), duration_ms=1),
        Play("copy-of-short", "b", at(3), duration_ms=99_000),
    ]
    rules = Rules.parse('[[minimum_duration]]\nfrom = 2026-11-14\nduration_ms = 30000\nmissing = "count"')
    counted_model(spark, tmp_path, plays)
    expected = ModelLake(rules=rules)
    expected.release(plays, frontier=FRONTIER)

    report = recount(spark, tmp_path, NOW, rules=rules)

    for table in (LEFT_OUT, HOURLY_COUNTS, DAILY_COUNTS):
        assert released(tmp_path, table) == said_by(expected, table), table.name
    assert report.release.rules.fingerprint() == rules.fingerprint()
    assert report.release.hours_touched == 3  # of 14 November; the 13th keeps the rules of its time
    restated = {row[8] for row in released(tmp_path, RESTATEMENTS)}
    assert restated == {"rules_changed"}
    assert len(released(tmp_path, RELEASES)) == 2
    assert nothing_new(request_of(tmp_path, NOW, rules=rules)) is not None


def test_a_second_recount_waits_for_the_first(spark: SparkSession, tmp_path: Path) -> None:
    model = ModelLake()
    receive(model, tmp_path, [Play("one", "a", at(1))], 1)
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from pathlib import Path; from ingest.table_lock import locked\n"
            f"with locked(Path({str(tmp_path)!r}), 'gold/charts'): print('held', flush=True); sys.stdin.read()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    waited: list[tuple[str, str]] = []

    def let_go(name: str, who: str) -> None:
        waited.append((name, who))
        holder.communicate()

    report = run(spark, request_of(tmp_path, NOW), on_wait=let_go)

    assert waited == [("gold/charts", f"process {holder.pid}")]
    assert report.is_new
    assert_equals_model(tmp_path, model)
