"""Rows of bronze are what was sent and where it stood, and each is found by its own writer and transaction."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ingest.hashing import id_hash, payload_hash
from ingest.lake_writer import bronze_position
from ingest.log_entry import encode_plays
from ingest.redis_log import RedisLog
from tests.ingest.lake_writing import moved, rows
from tests.log_entries import entry, fill, play, plays_partition
from tests.servers import LogServer

pytestmark = pytest.mark.redis


def test_rows_are_what_was_sent_and_where_it_stood(log: RedisLog, server: LogServer, tmp_path: Path) -> None:
    sent_us = 1_794_614_399_999_999  # a microsecond before midnight
    p2 = plays_partition(log, 2)
    full = play("évènement", "Für Elise", us=sent_us, region="DE", user_id="ऋतु", duration_ms=0, count=7)
    ids = log.append(
        [
            (p2, encode_plays([full, play("least")], [("api", 1), ("flights", 1)])),
            (p2, encode_plays([play("before 1970", us=-1)], [("api", 1)])),
        ]
    )

    moved(server, tmp_path)

    first, second, third = rows(tmp_path / "lake")
    entry_time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ids[0].ms)
    position = {"log_id": log.log_id, "log_partition": 2, "log_ms": ids[0].ms, "log_sequence": ids[0].sequence,
                "writer": f"lake_writer/{log.log_id}/2", "writer_seq": ids[0].version,
                "ingested_at": entry_time}  # fmt: skip
    sent = datetime(2026, 11, 13, 23, 59, 59, 999_999, tzinfo=UTC)
    said: dict[str, Any] = {"item_id": "Für Elise", "region": "DE", "user_id": "ऋतु", "duration_ms": 0, "count": 7}
    assert first == position | said | {
        "event_id": "évènement", "id_hash": id_hash("évènement"), "payload_hash": payload_hash(**said, event_time=sent),
        "event_time": sent, "event_date": date(2026, 11, 13), "event_hour": 23, "time_source": "client",
        "source": "api", "source_row": None, "log_index": 0,
    }  # fmt: skip
    least: dict[str, Any] = {"item_id": "a", "region": "ZZ", "user_id": None, "duration_ms": None, "count": 1}
    assert second == position | least | {
        "event_id": "least", "id_hash": id_hash("least"), "payload_hash": payload_hash(**least, event_time=None),
        "event_time": entry_time, "event_date": entry_time.date(), "event_hour": entry_time.hour,
        "time_source": "server", "source": "flights", "source_row": None, "log_index": 1,
    }  # fmt: skip
    assert (third["event_date"], third["event_hour"], third["writer_seq"]) == (date(1969, 12, 31), 23, ids[1].version)


def test_every_row_is_found_by_its_own_writer_and_how_far_a_reader_had_come(
    log: RedisLog, server: LogServer, tmp_path: Path
) -> None:
    fill(log, 20)
    moved(server, tmp_path)
    then = bronze_position(tmp_path / "lake")
    fill(log, 9, name="later")
    moved(server, tmp_path)
    now = bronze_position(tmp_path / "lake")

    advances = now.advances(then)
    new = [r for r in rows(tmp_path / "lake") if r["writer_seq"] > advances.get(r["writer"], now.writers[r["writer"]])]

    assert len(advances) == 8
    assert sorted({row["event_id"].split(".")[0] for row in new}) == sorted(f"later{n}" for n in range(9))
    assert all(row["writer_seq"] <= now.writers[row["writer"]] for row in rows(tmp_path / "lake"))


def test_entries_without_events_bring_no_rows_and_move_the_position(
    log: RedisLog, server: LogServer, tmp_path: Path
) -> None:
    p2 = plays_partition(log, 2)
    (only,) = log.append([(p2, encode_plays([], []))])
    moved(server, tmp_path)
    assert bronze_position(tmp_path / "lake").writers == {f"lake_writer/{log.log_id}/2": only.version}

    log.append([(p2, encode_plays([play("a")], [("api", 1)])), (p2, encode_plays([], [])), (p2, entry("b", "c"))])
    moved(server, tmp_path)

    assert [(row["event_id"], row["log_index"]) for row in rows(tmp_path / "lake")] == [("a", 0), ("b", 0), ("c", 1)]
