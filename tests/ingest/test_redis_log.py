"""The log against a real server: order, places, marks, replacement, full memory."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from domain.log import (
    BEGINNING,
    LAKE_READER,
    EntryId,
    LogFullError,
    LogLostEndError,
    LogReplacedError,
    Partition,
    Stream,
    TrimmedError,
)
from ingest.log_keys import META
from ingest.redis_log import RedisLog
from tests.log_entries import bodies
from tests.servers import LogServer, log_server

pytestmark = pytest.mark.redis

P0 = Partition(Stream.PLAYS, 0)
P1 = Partition(Stream.PLAYS, 1)
SOME = {Stream.PLAYS: 3, Stream.SCORES: 2}


def append_for_ever(log: RedisLog, ids: list[EntryId]) -> None:
    while True:
        ids += log.append([(P0, b"x" * 100_000)])


def test_each_partition_gives_back_what_was_appended_in_its_order(log: RedisLog) -> None:
    ids = log.append([(P0, b"a"), (P1, b"b"), (P0, b"c"), (P0, b"d")])

    assert bodies(log, P0) == [b"a", b"c", b"d"]
    assert bodies(log, P1) == [b"b"]
    assert ids[0] < ids[2] < ids[3]
    assert bodies(log, P0, after=ids[0]) == [b"c", b"d"]
    assert bodies(log, P0, after=ids[3]) == []


def test_a_read_that_is_cut_has_not_reached_the_end(log: RedisLog) -> None:
    ids = log.append([(P0, b"a"), (P0, b"b")])

    assert not log.read(P0, after=BEGINNING, limit=1).reached_end
    assert log.read(P0, after=ids[0], limit=2).reached_end
    assert log.read(P1, after=BEGINNING, limit=1).reached_end


def test_the_time_of_a_read_is_before_every_later_entry_and_not_before_the_ones_it_found(log: RedisLog) -> None:
    first = log.append([(P0, b"a")])[0]
    reading = log.read(P0, after=BEGINNING, limit=10)
    later = log.append([(P0, b"b")])[0]

    at_ms = (reading.at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert first.ms <= at_ms <= later.ms
    assert reading.at.tzinfo is not None


def test_end_offsets_name_the_last_entry_ever_without_sending_any(log: RedisLog, server: LogServer) -> None:
    ids = log.append([(P0, b"x" * 200_000), (P1, b"b")])
    log.commit_offsets(LAKE_READER, {P0: ids[0]})
    log.trim(P0)

    with server.client() as client:
        before = client.info()["total_net_output_bytes"]
        ends = log.end_offsets(Stream.PLAYS)
        log.append([(P1, b"x" * 200_000)])
        log.end_offsets(Stream.PLAYS)
        sent = client.info()["total_net_output_bytes"] - before

    assert ends[P0] == ids[0]
    assert ends[P1] == ids[1]
    assert ends[Partition(Stream.PLAYS, 7)] == BEGINNING
    assert sent < 50_000


def test_below_the_mark_a_read_is_an_error_and_at_the_mark_it_goes_on(log: RedisLog) -> None:
    ids = log.append([(P0, b"a"), (P0, b"b"), (P0, b"c")])
    log.commit_offsets(LAKE_READER, {P0: ids[1]})

    assert log.trim(P0) == ids[1]

    with pytest.raises(TrimmedError, match=rf"plays:0 was trimmed through {ids[1]}.*stands at {ids[0]}"):
        log.read(P0, after=ids[0], limit=1)
    with pytest.raises(TrimmedError):
        log.read(P0, after=BEGINNING, limit=1)
    assert bodies(log, P0, after=ids[1]) == [b"c"]
    assert log.lengths(Stream.PLAYS)[P0] == 1


def test_from_its_birth_a_log_keeps_everything_for_the_lake(log: RedisLog) -> None:
    ids = log.append([(P0, b"a")])

    assert log.readers() == [LAKE_READER]
    log.commit_offsets("other", {P0: ids[0]})
    assert log.trim(P0) == BEGINNING


def test_without_readers_nothing_is_dropped_and_a_reader_without_offsets_holds_everything(log: RedisLog) -> None:
    log.remove_reader(LAKE_READER)
    ids = log.append([(P0, b"a")])
    assert log.trim(P0) == BEGINNING

    log.commit_offsets("new", {})
    log.commit_offsets("done", {P0: ids[0]})
    assert log.trim(P0) == BEGINNING
    assert bodies(log, P0) == [b"a"]

    log.remove_reader("new")
    assert log.readers() == ["done"]
    assert log.trim(P0) == ids[0]


def test_a_log_that_was_emptied_and_made_again_is_noticed_by_every_call(log: RedisLog, server: LogServer) -> None:
    ids = log.append([(P0, b"a")])
    old = log.log_id

    def every_call_notices() -> None:
        for call in (
            lambda: log.read(P0, after=ids[0], limit=1),
            lambda: log.end_offsets(Stream.PLAYS),
            lambda: log.append([(P1, b"b")]),
            lambda: log.commit_offsets(LAKE_READER, {P0: ids[0]}),
            lambda: log.trim(P0),
        ):
            with pytest.raises(LogReplacedError, match=rf"expected {old}, found"):
                call()

    with server.client() as client:
        client.flushall()
    every_call_notices()
    with RedisLog.open(server.address) as new:
        assert new.log_id != old
        every_call_notices()
        assert new.readers() == [LAKE_READER]
        assert new.offsets(LAKE_READER, Stream.PLAYS)[P0] == BEGINNING


def test_a_log_that_lost_its_end_is_noticed_even_when_it_has_grown_past_the_place_again(
    log: RedisLog, server: LogServer
) -> None:
    first, lost = log.append([(P0, b"a"), (P0, b"lost")])
    with server.client() as client:
        client.xdel(f"{META}:{P0}", str(lost))
    log.append([(P0, b"new")])

    with pytest.raises(LogLostEndError, match=rf"plays:0 has no entry {lost}"):
        log.read(P0, after=lost, limit=1)
    assert bodies(log, P0, after=first) == [b"new"]
    with pytest.raises(LogLostEndError):
        log.read(P1, after=EntryId(lost.ms + 1000, 0), limit=1)


def test_a_log_that_starts_over_keeps_its_entries_and_forgets_what_was_said_of_the_old_one(
    log: RedisLog, server: LogServer
) -> None:
    ids = log.append([(P0, b"a"), (P0, b"b")])
    log.commit_offsets(LAKE_READER, {P0: ids[0]})
    log.trim(P0)
    old = log.log_id
    with server.client() as client:
        client.hset(META, "created_ms", 1)
    other = RedisLog.open(server.address)
    log.start_over()
    with pytest.raises(LogReplacedError):
        other.commit_offsets(LAKE_READER, {P0: ids[1]})
    other.start_over()  # noticed the same at the same time: the first one decided

    assert other.log_id == log.log_id != old
    with RedisLog.open(server.address) as new:
        assert other.created + timedelta(days=1) < new.created  # what was dropped is of the old one
    assert bodies(log, P0) == [b"b"]
    assert log.offsets(LAKE_READER, Stream.PLAYS)[P0] == BEGINNING
    assert log.trim(P0) == BEGINNING  # the reader holds everything until it has read under the new id
    log.commit_offsets(LAKE_READER, {P0: ids[1]})
    other.log_id = old
    with pytest.raises(LogReplacedError):
        other.trim(P0)
    assert bodies(log, P0) == [b"b"]


def test_offsets_never_go_back(log: RedisLog) -> None:
    ids = log.append([(P0, b"a"), (P0, b"b")])

    log.commit_offsets(LAKE_READER, {P0: ids[1]})
    log.commit_offsets(LAKE_READER, {P0: ids[0], P1: BEGINNING})

    assert log.offsets(LAKE_READER, Stream.PLAYS)[P0] == ids[1]


def test_a_reader_of_one_stream_holds_back_nothing_of_another(log: RedisLog) -> None:
    plays, scores = log.partitions(Stream.PLAYS)[0], log.partitions(Stream.SCORES)[0]
    (of_plays, of_scores) = log.append([(plays, b"a"), (scores, b"b")])
    log.commit_offsets("of scores", {}, lease=timedelta(hours=1), only=Stream.SCORES)
    log.commit_offsets(LAKE_READER, {plays: of_plays, scores: of_scores})

    assert (log.trim(plays), log.trim(scores)) == (of_plays, BEGINNING)
    log.commit_offsets("of scores", {scores: of_scores}, lease=timedelta(hours=1), only=Stream.SCORES)
    assert log.trim(scores) == of_scores


def test_a_full_server_refuses_keeps_what_it_has_and_can_be_opened_read_and_trimmed(tmp_path: Path) -> None:
    with log_server(tmp_path, max_bytes=6 << 20) as server, RedisLog.open(server.address) as log:
        ids: list[EntryId] = []
        with pytest.raises(LogFullError, match="memory limit"):
            append_for_ever(log, ids)
        assert len(ids) > 10

        with RedisLog.open(server.address) as reader:
            assert len(bodies(reader, P0)) == len(ids)
            reader.commit_offsets(LAKE_READER, {P0: ids[-1]})
            assert reader.trim(P0) == ids[-1]
        assert log.append([(P0, b"x")])
