"""From the log to bronze: rows as sent, positions with them in one commit, on disk before the log forgets."""

import os
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from domain.clock import utc_now
from domain.frontier import certifiable_end, log_in_use
from domain.log import BEGINNING, LAKE_READER, EntryId, LogReplacedError, Stream, TrimmedError
from domain.policy import DEFAULT_POLICY
from domain.tables import PLAYS
from ingest.arrow import arrow_schema
from ingest.durable import commits_since, make_durable
from ingest.lake_writer import BronzeWriter, MovedError, bronze_position, log_read_to
from ingest.log_to_lake import LogToLake
from ingest.redis_log import RedisLog
from tests.ingest.lake_writing import moved
from tests.log_entries import bronze_positions, commits, entry, fill, plays_partition
from tests.servers import LogServer

pytestmark = pytest.mark.redis


def test_one_commit_holds_rows_positions_and_read_to_of_all_partitions(
    log: RedisLog, server: LogServer, tmp_path: Path
) -> None:
    before = utc_now()
    sent = fill(log, 20)
    ends = log.end_offsets(Stream.PLAYS)

    told = moved(server, tmp_path)

    lake = tmp_path / "lake"
    assert bronze_positions(lake) == Counter(sent)
    transactions = {a["txn"]["appId"]: a["txn"]["version"] for a in commits(lake)[-1] if "txn" in a}
    assert {
        f"lake_writer/{log.log_id}/{p.number}": end.version for p, end in ends.items()
    }.items() <= transactions.items()
    read_to = log_read_to(lake, bronze_position(lake).version)
    assert len(read_to) == 8
    assert all(before - timedelta(seconds=1) < at < utc_now() for at in read_to.values())
    assert len(transactions) == 8 + 8 + 1
    assert log_in_use(transactions) == log.log_id
    assert all(log.lengths(Stream.PLAYS)[p] == 0 for p in ends)
    assert [facts["events"] for facts in told.facts("committed")] == [60]


def test_a_commit_without_rows_moves_read_to_and_no_position(log: RedisLog, server: LogServer, tmp_path: Path) -> None:
    fill(log, 3)
    moved(server, tmp_path)
    lake = tmp_path / "lake"
    then = bronze_position(lake)
    before = log_read_to(lake, then.version)

    moved(server, tmp_path)

    now = bronze_position(lake)
    after = log_read_to(lake, now.version)
    assert now.version == then.version + 1
    assert now.writers == then.writers
    assert now.advances(then) == {}
    assert len(now.writers) == 3  # a partition without entries has no position, and so makes no recount look
    assert all(after[name] > at for name, at in before.items())


def test_a_backlog_is_read_in_commits_of_bounded_size_and_every_partition_gets_its_turn(
    log: RedisLog, server: LogServer, tmp_path: Path
) -> None:
    p0, p1 = plays_partition(log, 0), plays_partition(log, 1)
    log.append([(p0, entry(*(f"{n}.{k}" for k in range(10)))) for n in range(100)])
    log.append([(p1, entry("small"))])
    bronze = BronzeWriter(tmp_path / "lake")
    bronze.create()
    writer = LogToLake(log, bronze, 200)
    writer.start()

    writer.poll()
    assert 200 <= writer.events <= 400
    assert writer.progress[p1].read > BEGINNING
    assert writer.progress[p0].read_to is None
    assert not writer.at_end
    writer.commit()

    read_to = log_read_to(tmp_path / "lake", bronze_position(tmp_path / "lake").version)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert [name for name, at in read_to.items() if at == epoch] == [f"read_to/{log.log_id}/0"]
    assert certifiable_end(read_to.values(), utc_now(), DEFAULT_POLICY) < epoch
    log.append([(p1, entry("small again"))])
    sizes, read = [], []
    while not writer.at_end:
        writer.poll()
        sizes.append(writer.events)
        read.append(writer.progress[p1].read)
        writer.commit()
    assert max(sizes) <= 400
    assert read[0] == log.end_offsets(Stream.PLAYS)[p1]
    assert sum(bronze_positions(tmp_path / "lake").values()) == 1002
    assert set(bronze_positions(tmp_path / "lake").values()) == {1}


def test_it_goes_on_from_the_lake_and_not_from_what_the_log_says(
    log: RedisLog, server: LogServer, tmp_path: Path
) -> None:
    sent = fill(log, 16)
    moved(server, tmp_path)
    with server.client() as client:
        client.delete("lb:log:offsets")
    more = fill(log, 8, name="more")

    moved(server, tmp_path)

    assert bronze_positions(tmp_path / "lake") == Counter(sent + more)


def test_other_readers_hold_the_trim_back(log: RedisLog, server: LogServer, tmp_path: Path) -> None:
    log.commit_offsets("speed", {})
    fill(log, 8)

    moved(server, tmp_path)

    assert set(log.lengths(Stream.PLAYS).values()) == {1}
    assert log.readers() == [LAKE_READER, "speed"]
    log.commit_offsets("speed", log.end_offsets(Stream.PLAYS))
    moved(server, tmp_path)
    assert set(log.lengths(Stream.PLAYS).values()) == {0}


def test_two_that_know_of_no_lock_write_each_position_once(log: RedisLog, server: LogServer, tmp_path: Path) -> None:
    """As on two machines: Delta itself refuses the second commit from the same position."""
    bronze = BronzeWriter(tmp_path / "lake")
    bronze.create()
    log.commit_offsets("speed", {})
    sent = fill(log, 8)
    with RedisLog.open(server.address) as other_log:
        one, other = LogToLake(log, bronze, 1000), LogToLake(other_log, bronze, 1000)
        for writer in (one, other):
            writer.start()
            writer.poll()
        one.commit()
        with pytest.raises(MovedError, match="another process wrote on; nothing was written"):
            other.commit()

    assert bronze_positions(tmp_path / "lake") == Counter(sent)


def test_bronze_gets_checkpoints_so_that_many_commits_stay_cheap_to_open(
    log: RedisLog, server: LogServer, tmp_path: Path
) -> None:
    fill(log, 8)
    moved(server, tmp_path)
    lake = tmp_path / "lake"
    bronze = BronzeWriter(lake)
    _, transactions = bronze.transactions(PLAYS)
    handle = DeltaTable(lake / PLAYS.name)
    nothing, mark = arrow_schema(PLAYS).empty_table(), f"read_to/{log.log_id}/0"
    while handle.version() < 99:
        bronze._commit(handle, nothing, "lake writer", {mark: handle.version()})
    version = bronze.append_from(PLAYS, nothing, after={}, transactions={mark: 2**50})

    checkpoints = sorted(
        int(path.name[:20]) for path in (lake / PLAYS.name / "_delta_log").glob("*.checkpoint.parquet")
    )
    assert (version, checkpoints) == (100, [99])
    for old in range(100):
        (lake / PLAYS.name / "_delta_log" / f"{old:020d}.json").unlink()  # as clean-up does after 90 days
    _, found = bronze.transactions(PLAYS)
    assert found == transactions | {mark: 2**50}


def test_a_commit_is_forced_to_the_disk_before_the_log_may_forget(
    log: RedisLog, server: LogServer, tmp_path: Path
) -> None:
    fill(log, 8)
    moved(server, tmp_path)
    path = tmp_path / "lake" / PLAYS.name
    added = [str(a["add"]["path"]) for a in commits(tmp_path / "lake")[-1] if "add" in a]
    synced: list[Path] = []

    version = DeltaTable(path).version()
    make_durable(path, [version], sync=lambda fd: synced.append(Path(os.readlink(f"/proc/self/fd/{fd}"))))

    commit = path / "_delta_log" / f"{version:020d}.json"
    assert len(added) >= 1
    assert synced[: len(added)] == sorted(path / name for name in added)
    assert synced[len(added)] == commit
    assert set(synced[len(added) + 1 :]) == {
        *((path / name).parent for name in added), path / "_delta_log", path, path.parent, path.parent.parent
    }  # fmt: skip
    assert commits_since(path, version, f"read_to/{log.log_id}/") == range(version, version + 1)
    assert commits_since(path, version, "read_to/another") == range(0)


def test_each_commit_is_on_disk_before_the_log_hears_of_it(
    log: RedisLog, server: LogServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[tuple[list[int], int]] = []

    def noted(table: Path, versions: Iterable[int]) -> None:
        offsets = log.offsets(LAKE_READER, Stream.PLAYS)
        versions = [*versions]
        if table.name == "plays":
            heard.append((versions, sum(at != BEGINNING for at in offsets.values())))
        make_durable(table, versions)

    monkeypatch.setattr("ingest.log_to_lake.make_durable", noted)
    fill(log, 8)
    (first,) = moved(server, tmp_path).facts("committed")
    assert heard == [([], 0), ([first["version"]], 0)]
    log.append([(plays_partition(log, 0), entry("more"))])
    with server.client() as client:
        client.delete("lb:log:offsets")  # as a kill before it would have left it

    (second,) = moved(server, tmp_path).facts("committed")

    assert heard[2:] == [([first["version"]], 0), ([second["version"]], 8)]


def test_a_reader_that_asks_for_what_the_lake_writer_let_go_gets_an_error(
    log: RedisLog, server: LogServer, tmp_path: Path
) -> None:
    fill(log, 8)
    moved(server, tmp_path)

    with pytest.raises(TrimmedError):
        log.read(plays_partition(log, 0), after=BEGINNING, limit=1)


def test_a_place_of_an_old_log_says_nothing_about_a_new_one(log: RedisLog, server: LogServer, tmp_path: Path) -> None:
    fill(log, 8)
    bronze = BronzeWriter(tmp_path / "lake")
    bronze.create()
    writer = LogToLake(log, bronze, 1000)
    writer.start()
    writer.poll()
    with server.client() as client:
        client.flushall()
    with RedisLog.open(server.address) as new:
        kept = fill(new, 8, name="new")
        with pytest.raises(LogReplacedError):
            writer.commit()

        assert new.offsets(LAKE_READER, Stream.PLAYS)[plays_partition(new, 0)] == BEGINNING
        assert set(new.lengths(Stream.PLAYS).values()) == {1}
        assert [p for p in kept if EntryId(p[2], p[3]) == BEGINNING] == []
