"""The lake writer as a service: alone on its lake, through everything that goes away, stopped when asked to."""

import os
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from deltalake import DeltaTable

from domain.board_tables import SCORES
from domain.boards.events import BoardEvent
from domain.clock import utc_now
from domain.log import Stream
from domain.tables import PLAYS
from ingest.lake_writer import bronze_position, compact, log_read_to
from ingest.log_clock import ReplayClock
from ingest.log_entry import UnreadableEntryError
from ingest.log_keys import META
from ingest.log_to_lake import LakeBehindLogError
from ingest.log_to_lake_loop import LakeWriterRunningError
from ingest.redis_log import RedisLog
from ingest.score_entry import encode_scores
from ingest.table_lock import locked
from tests.ingest.lake_writing import at_work, moved, read_calls, rows, state, until
from tests.log_entries import bronze_positions, entry, fill, plays_partition
from tests.servers import LogServer, log_server
from tests.speed_layer.boards.shard import event

pytestmark = pytest.mark.redis


def test_a_replaced_log_is_said_and_read_from_its_beginning(server: LogServer, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with at_work(server, tmp_path) as told:
        with RedisLog.open(server.address) as log:
            sent = fill(log, 8)
        until(lambda: len(told.facts("committed")) > 1 and bronze_positions(lake) == Counter(sent))
        with server.client() as client:
            client.flushall()
        until(lambda: told.facts("log replaced"))
        with RedisLog.open(server.address) as new:
            sent += fill(new, 8, name="new")
        until(lambda: bronze_positions(lake) == Counter(sent))

    assert told.facts("log replaced")[0]["expected"] == log.log_id
    read_to = log_read_to(lake, bronze_position(lake).version)
    assert {name.split("/")[1] for name in read_to} == {new.log_id}
    assert len(read_to) == 8
    assert len(bronze_position(lake).writers) == 16


def test_a_log_that_lost_its_end_gets_another_id_and_is_read_again(
    log: RedisLog, server: LogServer, tmp_path: Path
) -> None:
    log.commit_offsets("speed", {})  # holds back the trim
    ids = log.append([(plays_partition(log, 0), entry("kept")), (plays_partition(log, 0), entry("lost"))])
    moved(server, tmp_path)
    old = log.log_id
    with server.client() as client:
        client.xdel(f"{META}:plays:0", str(ids[1]))
    log.append([(plays_partition(log, 0), entry("new"))])

    told = moved(server, tmp_path)

    (said,) = told.facts("log lost its end")
    assert (said["entry"], said["was"]) == (str(ids[1]), old)
    found = sorted((row["event_id"], row["log_id"] == old) for row in rows(tmp_path / "lake"))
    assert found == [("kept", False), ("kept", True), ("lost", True), ("new", False)]


def test_an_entry_of_an_unknown_version_stops_it_and_nothing_is_skipped(
    log: RedisLog, server: LogServer, tmp_path: Path
) -> None:
    newer = msgspec.msgpack.decode(entry("newer"))
    newer[0] = 2
    p0 = plays_partition(log, 0)
    log.append([(p0, entry("before")), (p0, msgspec.msgpack.encode(newer)), (p0, entry("after"))])

    with pytest.raises(UnreadableEntryError, match="may be from a newer lakeboard"):
        moved(server, tmp_path)

    assert bronze_positions(tmp_path / "lake") == Counter()
    assert log.lengths(Stream.PLAYS)[p0] == 3
    assert state(tmp_path)["state"] == "failed"
    assert "cannot be read" in state(tmp_path)["problem"]


def test_a_lake_that_lacks_what_the_log_dropped_is_refused(log: RedisLog, server: LogServer, tmp_path: Path) -> None:
    fill(log, 8)
    moved(server, tmp_path)

    with pytest.raises(LakeBehindLogError, match="lacks events that the log has dropped"):
        moved(server, tmp_path / "another")


def test_while_the_log_is_away_it_waits_visibly_and_then_goes_on(tmp_path: Path) -> None:
    with log_server(tmp_path / "log") as server, at_work(server, tmp_path) as told:
        with RedisLog.open(server.address) as log:
            sent = fill(log, 8)
            until(lambda: told.facts("committed"))
            server.kill()
            until(lambda: (tmp_path / "run" / "state.json").exists() and state(tmp_path)["state"] == "waiting")
            assert "does not answer" in state(tmp_path)["problem"]
            server.start()
            until(lambda: state(tmp_path)["state"] == "working")
            sent += fill(log, 8, name="more")
        until(lambda: bronze_positions(tmp_path / "lake") == Counter(sent))

    waits = [facts["seconds"] for facts in told.facts("waiting")]
    assert waits == sorted(waits)
    assert state(tmp_path)["state"] == "stopped"


def test_while_another_process_holds_the_table_it_waits_visibly(
    log: RedisLog, server: LogServer, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    with at_work(server, tmp_path) as told:
        until(lambda: told.facts("committed"))
        with locked(lake, PLAYS.name):
            sent = fill(log, 8)
            until(lambda: state(tmp_path)["state"] == "waiting")
            assert state(tmp_path)["problem"] == f"bronze/plays is held by process {os.getpid()}"
        until(lambda: bronze_positions(lake) == Counter(sent))
        until(lambda: state(tmp_path)["state"] == "working")


def test_asked_to_stop_it_commits_what_it_has_read(log: RedisLog, server: LogServer, tmp_path: Path) -> None:
    with at_work(server, tmp_path, every_seconds=3600.0) as told:
        until(lambda: told.facts("reading"))
        sent = fill(log, 8)
        with server.client() as client:
            reads = read_calls(client)
            until(lambda: read_calls(client) >= reads + 2 * 2 * 8)  # so one whole turn began after the plays were there
        assert told.facts("committed") == []

    assert bronze_positions(tmp_path / "lake") == Counter(sent)
    assert [facts["events"] for facts in told.facts("committed")] == [24]


def test_a_full_commit_does_not_wait_for_its_time(log: RedisLog, server: LogServer, tmp_path: Path) -> None:
    fill(log, 80)

    with at_work(server, tmp_path, every_seconds=3600.0, rows=100) as told:
        until(lambda: sum(facts["events"] for facts in told.facts("committed")) >= 200)

    assert all(facts["events"] <= 150 for facts in told.facts("committed"))
    assert set(bronze_positions(tmp_path / "lake").values()) == {1}


def test_of_two_lake_writers_the_second_says_who_works_and_waits_or_leaves(
    log: RedisLog, server: LogServer, tmp_path: Path
) -> None:
    sent = fill(log, 8)
    with at_work(server, tmp_path) as first:
        until(lambda: first.facts("committed"))
        with pytest.raises(LakeWriterRunningError, match=rf"works on this lake already \(process {os.getpid()}\)"):
            moved(server, tmp_path, wait=False)
        with at_work(server, tmp_path) as second:
            until(lambda: second.facts("another lake writer works on this lake"))
            sent += fill(log, 8, name="more")
            until(lambda: bronze_positions(tmp_path / "lake") == Counter(sent))
            assert second.facts("committed") == []
    with locked(tmp_path / "lake", "lake_writer", wait_seconds=0):
        assert state(tmp_path)["state"] == "stopped"


def test_compaction_in_between_changes_neither_rows_nor_positions_and_no_commit_is_lost(
    log: RedisLog, server: LogServer, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    sent = []
    with at_work(server, tmp_path, every_seconds=0.1) as told:
        until(lambda: told.facts("committed"))
        for turn in range(6):
            sent += fill(log, 8, name=f"{turn}.")
            until(lambda: bronze_positions(lake) == Counter(sent))  # noqa: B023  called in this turn only
            with locked(lake, PLAYS.name):
                before = bronze_position(lake)
                files, after = compact(lake, PLAYS)
                now = bronze_position(lake)
            assert after <= files
            assert (now.events, now.writers) == (before.events, before.writers)
    assert after == 1
    assert bronze_positions(lake) == Counter(sent)
    assert all("is held by process" in facts["problem"] for facts in told.facts("waiting"))


def test_the_state_says_how_far_each_partition_is(log: RedisLog, server: LogServer, tmp_path: Path) -> None:
    fill(log, 8)
    before = utc_now()

    moved(server, tmp_path)

    said = state(tmp_path)
    ends = log.end_offsets(Stream.PLAYS)
    assert (said["pid"], said["state"], said["events"], said["events_total"]) == (os.getpid(), "stopped", 24, 24)
    assert said["log_id"] == log.log_id
    assert said["version"] == bronze_position(tmp_path / "lake").version
    assert before <= datetime.fromisoformat(said["last_commit_at"]) <= utc_now()
    assert {name: of["position"] for name, of in said["partitions"].items()} == {
        str(p): str(e) for p, e in ends.items()
    }
    assert all(0 <= of["lag_seconds"] < 5 for of in said["partitions"].values())


def test_up_to_when_scores_were_read_is_said_every_ten_minutes_once_there_were_any(
    server: LogServer, tmp_path: Path
) -> None:
    began, start = utc_now(), datetime(2026, 11, 14, 12, 5, tzinfo=UTC)

    def versions(minutes: int, score: BoardEvent | None = None) -> int:
        """Run it at a time of the log; return the version of bronze/scores afterwards."""
        clock = ReplayClock(start=start + timedelta(minutes=minutes), began=began, speed=1)
        with RedisLog.open(server.address, clock=clock) as log:
            if score is not None:
                log.append([(log.partitions(Stream.SCORES)[0], encode_scores([score], [("api", 1)]))])
        moved(server, tmp_path, open_log=lambda: RedisLog.open(server.address, clock=clock))
        return DeltaTable(tmp_path / "lake" / SCORES.name).version()

    empty = versions(0)
    assert versions(60) == empty
    assert versions(61, event(player="a", match_id="1")) == empty + 1
    assert [versions(minutes) - empty for minutes in (62, 64, 66, 67, 90)] == [1, 1, 2, 2, 3]
    read_to = log_read_to(tmp_path / "lake", empty + 3, SCORES)
    assert min(read_to.values()) >= start + timedelta(minutes=90)
