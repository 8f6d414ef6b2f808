"""Whatever arrives in whatever order, the released tables are those that a plain count of all events gives."""

import random
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from domain.policy import Policy
from domain.tables import PLAYS
from tests.counted_lakes import assert_equals_model, received, recount, released, tables
from tests.lakes import ModelLake, Play, at

pytestmark = pytest.mark.spark

POLICY = Policy(chart_size=3)
ITEMS = ["a", "b", "é", "\uff5e", "\U0001f3b5", "Z"]
REGIONS = ["ZZ", "IN", "US"]


def random_plays(choose: random.Random, how_many: int) -> list[Play]:
    """Plays of few ids over three days, so that copies, conflicts and chains of hours come up all the time."""
    return [
        Play(
            event_id=f"e{choose.randrange(40)}",
            item_id=choose.choice(ITEMS),
            at=at(choose.choice([0, 1, 5, 23]), choose.randrange(60), day=14 + choose.randrange(3)),
            region=choose.choice(REGIONS),
            count=choose.choice([1, 1, 1, 3, 10**9]),
        )
        for _ in range(how_many)
    ]


@pytest.fixture
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Small lakes are counted in their quick way, or in the way of large ones."""
    if request.param == "as large":
        monkeypatch.setattr("jobs.pace.FEW_ROWS", -1)
        monkeypatch.setattr("jobs.lake.FEW_FILES", 0)
    return str(request.param)


@pytest.mark.parametrize(("seed", "size"), [(1, "as small"), (2, "as large")], indirect=["size"])
def test_a_history_of_recounts_equals_one_count_of_everything(
    spark: SparkSession, tmp_path: Path, seed: int, size: str
) -> None:
    choose = random.Random(seed)
    model = ModelLake(policy=POLICY)
    before: list[Play] = []
    frontier = at(0)

    for release in range(1, 4):
        fresh = random_plays(choose, choose.choice([1, 12, 30]))
        repeats = choose.sample(before, min(len(before), choose.randrange(4)))
        before += fresh
        frontier = max(frontier, at(choose.randrange(24), day=14 + choose.randrange(4)))
        # An interrupted import that goes on later brings rows that count as received before newer ones.
        ingested = at(choose.randrange(24), day=20)
        known = len(model.rows[PLAYS.name])
        model.release([*fresh, *repeats], frontier=frontier, created_at=ingested)
        received(tmp_path, model.rows[PLAYS.name][known:], seq=release)

        report = recount(spark, tmp_path, frontier + POLICY.grace, policy=POLICY)

        assert report.is_new
        assert_equals_model(tmp_path, model)

    incremental = tables(tmp_path)
    full = recount(spark, tmp_path, frontier + POLICY.grace + timedelta(hours=1), policy=POLICY, full=True)
    assert full.is_new
    for name, rows in tables(tmp_path).items():
        if name != "gold/hours":  # one more hour is certified
            assert rows == incremental[name], name
    assert sum(row[-1] for row in released(tmp_path, PLAYS)) > 0
