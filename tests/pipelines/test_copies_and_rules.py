"""Winners, reasons and exclusions against plain Python, many random cases in one Spark job."""

import random
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from domain.rules import Rules
from domain.table import POSITION_COLUMNS
from domain.tables import LEFT_OUT, PLAYS
from pipelines.copies import copies_left_out, repeated_hashes
from pipelines.counts import hourly_counts
from pipelines.exclusions import excluded_left_out, too_short
from tests import lake_rows
from tests.counted_lakes import by_value
from tests.lake_rows import Play, Row, at
from tests.pipelines.frames import frame

pytestmark = pytest.mark.spark

RULES = Rules.parse(
    "[[minimum_duration]]\nduration_ms = 30000\n"
    '[[minimum_duration]]\nfrom = 2026-11-14T02:00:00Z\nduration_ms = 10\nmissing = "exclude"'
)
IDS = ["x", "x ", "X", "\uff58", "é", "\U0001f3b5" * 64, "long" * 64]


def random_rows(choose: random.Random, cases: int) -> list[Row]:
    """Events of many independent cases: each has its own ids, a few events, random positions that may tie."""
    rows = []
    for case in range(cases):
        for index in range(choose.randrange(1, 7)):
            said = Play(
                event_id=f"{case}:{choose.choice(IDS)}",
                item_id=choose.choice("ab"),
                at=at(choose.randrange(4), choose.randrange(60)),
                region=choose.choice(["ZZ", "IN"]),
                count=choose.choice([1, 2**40]),
                duration_ms=choose.choice([None, 0, 9, 10, 29_999, 30_000]),
            )
            row = lake_rows.received(said, at(choose.randrange(2), day=20), 0, 0)
            place = {
                "log_id": choose.choice(["import/é", "import/z", "log/1"]),
                "log_partition": choose.randrange(2),
                "log_ms": choose.randrange(2),
                "log_sequence": choose.randrange(2),
                "log_index": case * 10 + index,
            }
            rows.append({**row, **place})
    return rows


def as_tuples(rows: Any) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in LEFT_OUT.column_names) for row in rows.toArrow().to_pylist()]


@pytest.mark.parametrize("partitions", [1, 5])
def test_winner_reason_and_exclusion_are_the_same_for_any_order_and_partitioning(
    spark: SparkSession, partitions: int
) -> None:
    choose = random.Random(partitions)
    rows = random_rows(choose, 300)
    choose.shuffle(rows)
    expected = by_value(
        [row[name] for name in LEFT_OUT.column_names] for row in lake_rows.left_out(rows, RULES)
    )  # fmt: skip
    plays = frame(spark, PLAYS, rows).repartition(partitions)

    hashes = repeated_hashes(plays, F.lit(True))
    candidates = plays.join(hashes, on="id_hash", how="left_semi")
    copies = copies_left_out(candidates, frame(spark, LEFT_OUT, []))
    excluded = excluded_left_out(plays, copies, RULES)
    left_out = copies.unionAll(excluded).localCheckpoint()

    assert by_value(as_tuples(left_out)) == expected
    counts = hourly_counts(plays, left_out).toArrow().to_pylist()
    truth = [lake_rows.counted(key, n) for key, n in lake_rows.hourly(rows, lake_rows.left_out(rows, RULES)).items()]
    assert by_value(row.values() for row in counts) == by_value([row[c] for c in counts[0]] for row in truth)


def test_ids_whose_hashes_collide_are_told_apart(spark: SparkSession) -> None:
    one = lake_rows.received(Play("one", "a", at(1)), at(0), 0, 0)
    other = {**lake_rows.received(Play("other", "a", at(1)), at(0), 0, 1), "id_hash": one["id_hash"]}

    candidates = frame(spark, PLAYS, [one, other])

    assert repeated_hashes(candidates, F.lit(True)).count() == 1
    assert copies_left_out(candidates, frame(spark, LEFT_OUT, [])).count() == 0


def test_a_hash_without_a_new_event_is_no_candidate(spark: SparkSession) -> None:
    rows = [lake_rows.received(Play("old", "a", at(1)), at(0), 0, n) for n in range(2)]

    assert repeated_hashes(frame(spark, PLAYS, rows), F.lit(False)).count() == 0


def test_a_loser_whose_winner_is_out_of_sight_still_loses_to_it(spark: SparkSession) -> None:
    rows = [lake_rows.received(Play("x", "a", at(n)), at(n, day=20), 0, n) for n in range(4)]
    seen_before = lake_rows.left_out(rows[:2], Rules())

    left_out = copies_left_out(frame(spark, PLAYS, rows[1:]), frame(spark, LEFT_OUT, seen_before))

    expected = lake_rows.left_out(rows, Rules())
    assert by_value(as_tuples(left_out)) == by_value([row[name] for name in LEFT_OUT.column_names] for row in expected)
    assert {row["winner_ingested_at"] for row in left_out.toArrow().to_pylist()} == {at(0, day=20)}


def test_the_spark_rule_is_the_rule_of_the_domain(spark: SparkSession) -> None:
    moments = [at(2) + timedelta(microseconds=n) for n in (-1, 0, 1)] + [at(1), at(3)]
    durations = [None, 0, 9, 10, 11, 29_999, 30_000, 2**53]
    rows = [
        lake_rows.received(Play(f"{m}{d}", "a", moment, duration_ms=d), at(0), 0, n)
        for n, (m, moment, d) in enumerate((m, moment, d) for m, moment in enumerate(moments) for d in durations)
    ]

    judged = frame(spark, PLAYS, rows).select(*POSITION_COLUMNS, too_short(RULES).alias("short")).toArrow().to_pylist()

    said = {row["log_index"]: row["short"] for row in judged}
    assert said == {row["log_index"]: RULES.too_short(row["event_time"], row["duration_ms"]) for row in rows}
    assert set(said.values()) == {True, False}
