"""`lakeboard hourly`: when a recount is due."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from domain.policy import DEFAULT_POLICY
from domain.tables import PLAYS
from domain.windows import HOUR, milliseconds
from ingest.arrow import arrow_schema
from ingest.lake_writer import BronzeWriter
from lakeboard.hourly import certifiable, is_due
from tests.lakes import ModelLake, Play, at

pytestmark = pytest.mark.lake

GRACE = DEFAULT_POLICY.grace
SECOND = timedelta(seconds=1)


def read_through(lake: Path, *moments: datetime) -> None:
    """The lake writer of log `a` has read each partition to its end at these moments."""
    bronze = BronzeWriter(lake)
    bronze.create()
    marks = {f"read_to/a/{number}": milliseconds(moment) for number, moment in enumerate(moments)}
    bronze.append_from(PLAYS, arrow_schema(PLAYS).empty_table(), after={}, transactions={"log_in_use/a": 1, **marks})


def due(lake: Path, now: datetime, *, since: datetime) -> bool:
    return is_due(lake, now, DEFAULT_POLICY, since=since)


def test_without_a_lake_nothing_is_due(tmp_path: Path) -> None:
    assert certifiable(tmp_path, at(12), DEFAULT_POLICY) is None
    assert not due(tmp_path, at(12), since=at(0))


def test_the_first_hour_to_end_after_the_start_makes_a_lake_without_release_due(tmp_path: Path) -> None:
    read_through(tmp_path, at(12) + GRACE, at(13))

    assert certifiable(tmp_path, at(13), DEFAULT_POLICY) == at(12)
    assert not due(tmp_path, at(13), since=at(12) + GRACE)
    assert due(tmp_path, at(13), since=at(12) + GRACE - SECOND)


def test_an_hour_is_due_once_every_partition_was_read_past_its_grace(tmp_path: Path) -> None:
    model = ModelLake()
    model.release([Play("e", "a", at(11))], frontier=at(12))
    read_through(tmp_path, at(13) + GRACE, at(13) + GRACE - SECOND)
    model.write(tmp_path)
    now = at(13) + GRACE + HOUR

    assert not due(tmp_path, now, since=now)
    read_through(tmp_path, at(13) + GRACE, at(13) + GRACE)
    assert due(tmp_path, now, since=now)
    assert not due(tmp_path, at(13) + GRACE - SECOND, since=now)  # whatever the log says, by our own clock it is early
