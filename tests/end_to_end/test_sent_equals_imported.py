"""A real file sent over HTTP ends in the same numbers as the same file imported."""

import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from domain.clock import utc_now
from domain.tables import CHARTS, DAILY_COUNTS, HOURLY_COUNTS, PLAYS
from serving.keys import ensure_dev_key
from tests.counted_lakes import recount, released
from tests.end_to_end.test_real_data import EDITS, WIKITICKER, day_chart, shared
from tests.ingest.importing import plays
from tests.servers import log_server
from tests.serving.api_server import api

pytestmark = pytest.mark.spark

OPTIONS = ("--format", "csv", "--item", "page", "--time", "time", "--region", "countryIsoCode")


def lakeboard(home: Path, log_url: str, *arguments: str) -> str:
    """Run a command as a user does; return what it prints."""
    environment = os.environ | {"LAKEBOARD_HOME": str(home), "LAKEBOARD_LOG_URL": log_url}
    command = [sys.executable, "-m", "lakeboard", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120).stdout


def said(lake: Path) -> Sequence[tuple[object, ...]]:
    """What the senders of a lake's plays said, and the hashes by which copies and conflicts are told."""
    names = ("event_id", "id_hash", "payload_hash", "item_id", "region", "user_id", "event_time", "count")
    return sorted((tuple(row[name] for name in names) for row in plays(lake)), key=str)


def test_a_file_sent_over_http_counts_as_the_same_file_imported(
    spark: SparkSession, wikiticker: Path, tmp_path: Path
) -> None:
    file, home = shared(WIKITICKER), tmp_path / "home"
    with log_server(home / "log") as log:
        ensure_dev_key(home)
        with api(home, log.address) as service:
            told = lakeboard(home, log.address, "send", str(file), *OPTIONS, "--url", service.url)
        lakeboard(home, log.address, "lake-writer", "--once")
    assert f"{EDITS:,} accepted" in told

    recount(spark, home / "lake", utc_now())

    sent, day = home / "lake", datetime(2015, 9, 12, tzinfo=UTC)
    assert said(sent) == said(wikiticker)  # so sending and importing the same file makes duplicates, not second plays
    for table in (HOURLY_COUNTS, DAILY_COUNTS, CHARTS):
        assert released(sent, table) == released(wikiticker, table), table.name
    assert day_chart(sent, day, 1) == [("Wikipedia:Vandalismusmeldung", 33)]
    assert len(released(sent, PLAYS)) == EDITS
