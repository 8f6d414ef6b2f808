from collections.abc import Iterator
from datetime import datetime, timedelta

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.rules import MinimumDuration, Missing, Rules
from domain.tables import ALL, CHARTS, COUNT_COLUMNS, LEFT_OUT
from ingest.arrow import arrow_schema
from jobs.proof_sql import Proof
from jobs.verify import SHOWN, judge
from jobs.verify_counts import count_proofs
from jobs.verify_events import event_proofs, too_short
from tests.lakes import at
from tests.proved_lake import proved_lake

pytestmark = pytest.mark.lake

MODEL = proved_lake()
PROOFS = {proof.name: proof for proof in
          [*event_proofs(MODEL.releases[-1]), *count_proofs(MODEL.releases[-1], MODEL.policy)]}  # fmt: skip


@pytest.fixture(scope="module")
def tables() -> Iterator[duckdb.DuckDBPyConnection]:
    """The model's lake as tables of DuckDB, under the names that the views of the real one have."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'; SET threads = 1")
    for table in ALL[:-1]:
        rows = pa.Table.from_pylist(MODEL.rows[table.name], schema=arrow_schema(table))
        connection.register("rows_of", rows)
        connection.execute(f"CREATE TABLE {table.view} AS SELECT * FROM rows_of")
    yield connection
    connection.close()


@pytest.fixture
def lake(tables: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """The same, to be broken: what a test changes is taken back."""
    tables.execute("BEGIN")
    yield tables
    tables.execute("ROLLBACK")


@pytest.mark.parametrize("proof", PROOFS.values(), ids=PROOFS.keys())
def test_every_proof_holds_on_a_sound_lake_and_looks_at_something(
    lake: duckdb.DuckDBPyConnection, proof: Proof
) -> None:
    verdict = judge(lake, proof)

    assert (verdict.error, verdict.sample) == (None, [])
    assert verdict.holds
    assert verdict.compared > 0


ONE = "rowid = (SELECT min(rowid) FROM"
BREAKS = [
    ("bronze_is_complete", "DELETE FROM plays WHERE event_id = 'long'"),
    ("bronze_is_complete", "INSERT INTO plays SELECT * FROM plays WHERE event_id = 'long'"),
    ("bronze_is_complete", "UPDATE plays SET writer_seq = 4 WHERE event_id = 'new'"),
    ("bronze_is_complete", "UPDATE plays SET writer = 'somebody' WHERE event_id = 'new'"),
    ("left_out_is_bronze", f"UPDATE left_out SET log_index = 99 WHERE {ONE} left_out)"),
    ("left_out_is_bronze", f"UPDATE left_out SET event_id = 'other' WHERE {ONE} left_out)"),
    ("left_out_is_bronze", f"UPDATE left_out SET item_id = 'other' WHERE {ONE} left_out)"),
    ("left_out_is_bronze", f'UPDATE left_out SET "count" = 7 WHERE {ONE} left_out)'),
    ("left_out_is_bronze", f"UPDATE left_out SET event_hour = 9 WHERE {ONE} left_out)"),
    ("left_out_is_bronze", f"UPDATE left_out SET reason = 'lost' WHERE {ONE} left_out)"),
    ("left_out_is_bronze", f"INSERT INTO left_out SELECT * FROM left_out WHERE {ONE} left_out)"),
    ("left_out_is_bronze", "DELETE FROM plays WHERE event_id = 's1'"),
    ("copies_lose_to_an_earlier_event", "UPDATE left_out SET winner_log_index = 99 WHERE reason = 'duplicate'"),
    ("copies_lose_to_an_earlier_event", "UPDATE left_out SET winner_payload_hash = 1 WHERE reason = 'conflict'"),
    ("copies_lose_to_an_earlier_event", "UPDATE left_out SET winner_log_id = NULL WHERE reason = 'conflict'"),
    ("copies_lose_to_an_earlier_event", "UPDATE left_out SET reason = 'conflict' WHERE reason = 'duplicate'"),
    ("copies_lose_to_an_earlier_event", "UPDATE left_out SET reason = 'duplicate' WHERE reason = 'conflict'"),
    ("copies_lose_to_an_earlier_event", "UPDATE left_out SET winner_log_index = log_index, winner_log_sequence = "
     "log_sequence, winner_ingested_at = ingested_at, reason = 'duplicate' WHERE event_id = 'tie1'"),
    ("copies_lose_to_an_earlier_event", "DELETE FROM plays WHERE event_id = 'tie1' AND log_sequence = 1"),
    ("rules_are_applied", "DELETE FROM left_out WHERE event_id = 's1'"),
    ("rules_are_applied", "DELETE FROM left_out WHERE event_id = 's2'"),
    ("rules_are_applied", "UPDATE left_out SET reason = 'too_short' WHERE event_id = 'tie1'"),
    ("rules_are_applied", "UPDATE plays SET duration_ms = 30000 WHERE event_id = 's1'"),
    ("rules_are_applied", "UPDATE plays SET duration_ms = 9 WHERE event_id = 'long'"),
    ("each_id_counts_once", "DELETE FROM left_out WHERE event_id = 'tie1'"),
    ("each_id_counts_once", "UPDATE left_out SET reason = 'too_short' WHERE event_id = 'tie1'"),
    ("each_id_counts_once", "INSERT INTO plays SELECT * FROM plays WHERE event_id = 'long'"),
    ("hours_are_whole", "DELETE FROM hours WHERE event_hour = 20"),
    ("hours_are_whole", "INSERT INTO hours SELECT * FROM hours WHERE event_hour = 20"),
    ("hours_are_whole", "UPDATE hours SET counted = counted + 1 WHERE event_hour = 1"),
    ("hours_are_whole", "UPDATE hours SET received_events = received_events - 1 WHERE event_hour = 1"),
    ("hours_are_whole", "UPDATE hours SET state = 'certified'"),
    ("hours_are_whole", "UPDATE hours SET certified_in = NULL WHERE event_hour = 1"),
    ("hours_are_whole", "DELETE FROM hours WHERE event_date = '2026-11-15'"),
    *[("days_are_sums_of_hours", f"UPDATE daily_counts SET {name} = {name} + 1 WHERE {ONE} daily_counts)")
      for name in COUNT_COLUMNS],
    ("days_are_sums_of_hours", "UPDATE daily_counts SET region = 'SE' WHERE region = 'IN'"),
    ("days_are_sums_of_hours", "DELETE FROM daily_counts WHERE counted = 0"),
    ("days_are_sums_of_hours", "INSERT INTO daily_counts SELECT * FROM daily_counts WHERE counted = 0"),
    *[("hours_are_recounted", f"UPDATE hourly_counts SET {name} = {name} - 1 WHERE {ONE} hourly_counts)")
      for name in COUNT_COLUMNS],
    ("hours_are_recounted", "UPDATE hourly_counts SET event_hour = 2 WHERE event_hour = 3"),
    ("hours_are_recounted", "DELETE FROM hourly_counts WHERE item_id = 'short'"),
    ("hours_are_recounted", "INSERT INTO hourly_counts SELECT * FROM hourly_counts WHERE item_id = 'short'"),
    ("hours_are_recounted", "DELETE FROM left_out WHERE event_id = 's1'"),
    ("charts_are_sorted_counts", "UPDATE charts SET rank = 3 - rank WHERE region = 'IN'"),
    ("charts_are_sorted_counts", "UPDATE charts SET rank = rank + 1 WHERE region = 'IN'"),
    ("charts_are_sorted_counts", "UPDATE charts SET counted = counted + 1 WHERE region = 'IN' AND rank = 1"),
    ("charts_are_sorted_counts", "UPDATE charts SET total = total + 1 WHERE region = '*'"),
    ("charts_are_sorted_counts", "UPDATE charts SET items = items + 1 WHERE region = '*'"),
    ("charts_are_sorted_counts", "UPDATE charts SET tie_at_cut = NOT tie_at_cut WHERE region = 'IN'"),
    ("charts_are_sorted_counts", "UPDATE charts SET item_id = '\U0001f3b5' WHERE item_id = '\uff5e'"),
    ("charts_are_sorted_counts", "UPDATE charts SET window_start = window_start + INTERVAL 1 HOUR"),
    ("charts_are_sorted_counts", "DELETE FROM charts WHERE rank = 2"),
    ("charts_are_sorted_counts", "DELETE FROM charts WHERE region = '*'"),
    ("charts_are_sorted_counts", "INSERT INTO charts SELECT * FROM charts WHERE rank = 2"),
    ("charts_are_sorted_counts", "UPDATE hourly_counts SET counted = 1 WHERE counted = 0"),
    ("chart_versions_follow", "UPDATE charts SET release = 4 WHERE region = '*'"),
    ("chart_versions_follow", "UPDATE charts SET release = 1"),
    ("chart_versions_follow", "UPDATE charts SET release = 2 WHERE rank = 2 AND region = '*'"),
    ("chart_versions_follow", "UPDATE chart_history SET superseded_by = release"),
    ("chart_versions_follow", "UPDATE chart_history SET superseded_by = 9"),
    ("chart_versions_follow", "DELETE FROM chart_history WHERE rank = 1"),
    ("chart_versions_follow", "INSERT INTO chart_history SELECT * FROM chart_history"),
    ("restatements_chain", "UPDATE restatements SET new = new + 1 WHERE release = 2"),
    ("restatements_chain", "UPDATE restatements SET old = old + 1 WHERE release = 3"),
    ("restatements_chain", "UPDATE restatements SET old = new"),
    ("restatements_chain", "DELETE FROM restatements WHERE release = 3"),
    ("restatements_chain", "INSERT INTO restatements SELECT * FROM restatements"),
    ("restatements_chain", "UPDATE restatements SET measure = 'plays'"),
    ("restatements_chain", "UPDATE daily_counts SET counted = counted + 1 WHERE item_id = 'z'"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "damage"), BREAKS, ids=[f"{name}: {sql[:70]}" for name, sql in BREAKS])
def test_every_proof_fails_on_a_lake_broken_in_its_way(lake: duckdb.DuckDBPyConnection, name: str, damage: str) -> None:
    changed = lake.execute(damage).fetchall()[0][0]

    verdict = judge(lake, PROOFS[name])

    assert changed > 0, "the damage touched nothing"
    assert verdict.error is None
    assert verdict.failures > 0
    assert not verdict.holds


def test_every_proof_is_broken_by_some_test() -> None:
    assert {name for name, _ in BREAKS} == set(PROOFS)


def test_a_proof_that_cannot_run_does_not_hold(lake: duckdb.DuckDBPyConnection) -> None:
    lake.execute("DROP TABLE left_out")

    verdict = judge(lake, PROOFS["left_out_is_bronze"])

    assert not verdict.holds
    assert verdict.error is not None
    assert "left_out does not exist" in verdict.error


def test_all_contradictions_are_counted_and_the_first_are_shown(lake: duckdb.DuckDBPyConnection) -> None:
    lake.execute("DELETE FROM hours")

    verdict = judge(lake, PROOFS["hours_are_whole"])

    assert (verdict.failures, len(verdict.sample)) == (48, SHOWN)


# --- the rules in SQL ---

_MOMENTS = st.integers(-3, 3).map(lambda hours: at(0) + timedelta(hours=hours))
_RULES = st.lists(
    st.builds(
        MinimumDuration,
        effective_from=_MOMENTS,
        duration_ms=st.integers(0, 3),
        missing=st.sampled_from(Missing),
    ),
    max_size=3,
    unique_by=lambda rule: rule.effective_from,
).map(lambda rules: Rules(tuple(sorted(rules, key=lambda rule: rule.effective_from))))


@settings(max_examples=30, deadline=None)
@given(rules=_RULES, plays=st.lists(st.tuples(_MOMENTS, st.none() | st.integers(0, 3)), min_size=1, max_size=8))
def test_the_rules_in_sql_are_the_rules(
    tables: duckdb.DuckDBPyConnection, rules: Rules, plays: list[tuple[datetime, int | None]]
) -> None:
    tables.execute("CREATE OR REPLACE TEMP TABLE p (event_time TIMESTAMPTZ, duration_ms BIGINT)")
    tables.executemany("INSERT INTO p VALUES (?, ?)", plays)

    judged = tables.execute(f"SELECT event_time, duration_ms, {too_short(rules)} FROM p").fetchall()

    assert all(short == rules.too_short(moment, duration) for moment, duration, short in judged)


def test_the_model_has_what_the_proofs_are_about() -> None:
    reasons = {row["reason"] for row in MODEL.rows[LEFT_OUT.name]}
    ties = {row["tie_at_cut"] for row in MODEL.rows[CHARTS.name]}

    assert reasons == {"duplicate", "conflict", "too_short"}
    assert ties == {True, False}
