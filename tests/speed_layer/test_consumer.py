"""The consumer over a real log and a real views server: what it says is what an uninterrupted count says."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event

import pytest

from domain.clock import utc_now
from domain.live_windows import LiveWindow
from domain.log import LAKE_READER, Entry, EntryId, Partition, Stream
from domain.rules import Rules
from domain.speed_policy import DEFAULT_SPEED_POLICY
from domain.windows import EPOCH, HOUR, milliseconds
from ingest.log_clock import ReplayClock
from ingest.log_entry import UnreadableEntryError
from ingest.redis_log import RedisLog
from lakeboard.live.decode import play_batch
from speed_layer.consumer import run
from speed_layer.consumer_partition import READER
from speed_layer.play_batch import PlayBatch
from speed_layer.store.connection import Views, ViewsUnavailableError
from speed_layer.store.keys import MERGED_VIEW, field
from speed_layer.store.leases import Lease
from speed_layer.store.lists import PartitionStatus, decode_list
from speed_layer.store.publishing import Publishing
from speed_layer.store.views import ViewStore
from tests.log_entries import play
from tests.servers import LogServer
from tests.speed_layer.consuming import (
    PARTITIONS,
    Told,
    append,
    consume_once,
    consumer_job,
    fill,
    joined,
    partition_of,
    published,
    require_as_straight,
    stopped_when,
    view_of,
)

pytestmark = pytest.mark.redis


# --- counting ---


def test_what_is_in_the_log_is_counted_said_and_stored(log: RedisLog, views: Views, tmp_path: Path) -> None:
    entries = fill(log)

    told = consume_once(log.address, views, tmp_path)

    require_as_straight(views, entries)
    status, lists = published(views, 0)
    assert {kind for kind, _ in lists} == set(LiveWindow)
    assert {region for _, region in lists} == {"*", "IN", "DE", "ZZ"}
    assert (status.log_id, status.complete_from_ms, status.view) == (log.log_id, 0, None)
    assert told.names.count("starting without stored state") == 2
    ends = log.end_offsets(Stream.PLAYS)
    assert log.offsets(READER, Stream.PLAYS) == ends
    state = json.loads((tmp_path / "run" / "speed.json").read_text())
    assert state["state"] == "stopped"
    assert set(state["partitions"]) == {"plays:0", "plays:1"}
    assert state["partitions"]["plays:0"]["lag_seconds"] == 0
    assert state["partitions"]["plays:0"]["plays"] == {
        "read": 61,
        "copy": 1,
        "excluded": 0,
        "counted": 60,
        "too_old": 0,
    }


def test_the_next_consumer_goes_on_where_the_last_one_stored(log: RedisLog, views: Views, tmp_path: Path) -> None:
    entries = fill(log)
    consume_once(log.address, views, tmp_path)
    more = fill(log, "f")
    again = append(log, 0, play("e0.1", "item3"))  # a copy of what the first consumer counted
    read: list[EntryId] = []

    def decode(found: Sequence[Entry], partition: Partition) -> PlayBatch:
        read.extend(entry.id for entry in found)
        return play_batch(found, partition)

    told = consume_once(log.address, views, tmp_path, decode=decode)

    assert told.names.count("restored") == 2
    assert sorted(read) == sorted(entry.id for entry in [*more[0], *more[1], again])
    entries = joined(entries, more)
    entries[0].append(again)
    require_as_straight(views, entries)


def test_rules_decide_what_counts_live(log: RedisLog, views: Views, tmp_path: Path) -> None:
    rules = Rules.parse("[[minimum_duration]]\nduration_ms = 30000\n")
    entries = {0: [append(log, 0, play("a", "long", duration_ms=30_000), play("b", "short", duration_ms=29_999))]}
    consume_once(log.address, views, tmp_path, rules=rules)
    require_as_straight(views, entries, rules)
    assert [row for row, *_ in published(views, 0)[1][LiveWindow.HOUR, "*"][0]] == ["long"]


def test_the_log_is_kept_until_it_is_stored(log: RedisLog, views: Views, tmp_path: Path) -> None:
    """It is a reader of the log before it has read anything, and lets go of what a checkpoint holds."""
    fill(log)
    consume_once(log.address, views, tmp_path)
    fill(log, "f")
    first_end = log.offsets(READER, Stream.PLAYS)
    log.commit_offsets(LAKE_READER, log.end_offsets(Stream.PLAYS))
    for partition in log.partitions(Stream.PLAYS):
        assert log.trim(partition) == first_end[partition]
    told = consume_once(log.address, views, tmp_path)
    assert "log was trimmed" not in told.names
    assert published(views, 1)[0].complete_from_ms == 0


# --- time ---


def test_an_idle_partition_has_the_time_of_the_log(log: RedisLog, views: Views, tmp_path: Path) -> None:
    append(log, 0, play("a", "x"))
    consume_once(log.address, views, tmp_path)
    before = milliseconds(log.now())
    consume_once(log.address, views, tmp_path)
    idle, other = published(views, 1)[0], published(views, 0)[0]
    assert idle.position == -1
    assert idle.as_of_ms >= before
    assert other.as_of_ms >= before


def test_what_is_counted_does_not_depend_on_the_clock_of_the_consumers_machine(
    log: RedisLog, views: Views, tmp_path: Path
) -> None:
    entries = fill(log)
    for number, wrong in enumerate((-HOUR, HOUR)):
        now = log.now()
        consume_once(log.address, views, tmp_path, clock=lambda wrong=wrong: utc_now() + wrong)

        require_as_straight(views, entries)
        status = published(views, 0)[0]
        assert abs(status.as_of_ms - milliseconds(now)) < 60_000
        written_at = json.loads((tmp_path / "run" / "speed.json").read_bytes())["written_at"]
        assert abs(datetime.fromisoformat(written_at) - utc_now()) > HOUR / 2
        entries = joined(entries, fill(log, f"more{number}"))


def test_a_partition_that_cannot_be_read_stalls_alone(log: RedisLog, views: Views, tmp_path: Path) -> None:
    entries = {0: [append(log, 0, play("a", "x"))], 1: [append(log, 1, play("b", "y"))]}
    consume_once(log.address, views, tmp_path)
    stalled = published(views, 1)[0]
    log.append([(partition_of(1), b"\x93\x02\x01\x00")])
    entries[0].append(append(log, 0, play("c", "x")))
    told = Told()

    def has_moved() -> bool:
        status = Publishing(views).read_statuses([0])[0]
        return status is not None and status.position == entries[0][-1].id.version and "partition held" in told.names

    run(consumer_job(log.address, views, tmp_path, tell=told, once=False), stopped_when(has_moved))
    require_as_straight(views, {0: entries[0]})
    after = published(views, 1)[0]
    assert (after.position, after.as_of_ms) == (stalled.position, stalled.as_of_ms)
    state = json.loads((tmp_path / "run" / "speed.json").read_text())
    assert "cannot be read" in state["held"]["plays:1"]
    with pytest.raises(UnreadableEntryError):
        consume_once(log.address, views, tmp_path)


def test_a_clock_that_steps_back_moves_nothing_back(server: LogServer, views: Views, tmp_path: Path) -> None:
    """The idle partition was moved on to a time that the entries which come then do not have."""
    start = EPOCH + timedelta(days=20_000, hours=10)

    def clock(ahead: timedelta) -> ReplayClock:
        return ReplayClock(start=start + ahead, began=start, speed=0.0)

    with RedisLog.open(server.address, partitions=PARTITIONS, clock=clock(timedelta(0))) as log:
        append(log, 0, play("a", "x"))
    ahead, back = clock(timedelta(minutes=30)), clock(timedelta(minutes=10))
    job = consumer_job(server.address, views, tmp_path, tell=Told())
    run(replace(job, open_log=lambda: RedisLog.open(server.address, clock=ahead)), Event())
    before = published(views, 0)[0]
    assert before.as_of == start + timedelta(minutes=30)
    with RedisLog.open(server.address, clock=back) as log:
        append(log, 0, play("b", "x"), play("a", "x"))

    run(replace(job, open_log=lambda: RedisLog.open(server.address, clock=back)), Event())

    status, lists = published(views, 0)
    assert status.as_of == before.as_of
    assert EntryId.of_version(status.position).ms == milliseconds(start + timedelta(minutes=10))
    assert lists[LiveWindow.HOUR, "*"][0] == [("x", 3, 3)]  # the retry window had passed for the first copy of `a`


# --- what is said ---


class Flaky(Publishing):
    """A views server that is away when it is told to be."""

    def __init__(self, views: Views) -> None:
        super().__init__(views)
        self.failures = 0

    def publish(self, lease: Lease, status: PartitionStatus, lists: Mapping[str, bytes | None], *, whole: bool) -> None:
        if self.failures:
            self.failures -= 1
            raise ViewsUnavailableError(self._views.address, "away")
        super().publish(lease, status, lists, whole=whole)


def test_what_could_not_be_said_is_said_the_next_time(log: RedisLog, views: Views, tmp_path: Path) -> None:
    entries = fill(log)
    job = consumer_job(log.address, views, tmp_path, tell=Told(), once=False)
    more: list[dict[int, list[Entry]]] = []
    lists = Flaky(views)

    def all_is_said() -> bool:
        statuses = Publishing(views).read_statuses([0, 1])
        if None in statuses.values():
            return False
        if not more:
            lists.failures = 2
            more.append(fill(log, "f", entries=2))
        return all(s is not None and s.position == more[0][n][-1].id.version for n, s in statuses.items())

    run(replace(job, tools=replace(job.tools, lists=lists)), stopped_when(all_is_said))

    require_as_straight(views, joined(entries, more[0]))


# --- what the merger asks for ---


def test_a_list_is_as_long_as_the_merger_asks_for_and_as_usual_afterwards(
    log: RedisLog, views: Views, tmp_path: Path
) -> None:
    policy = replace(DEFAULT_SPEED_POLICY, list_size=2)
    append(log, 0, *(play(f"e{n}", f"item{n % 7}") for n in range(30)))
    of_hour, publishing = field(LiveWindow.HOUR, "*"), Publishing(views)
    rows = 5

    def length() -> int:
        body = publishing.changed_since(0, -1).lists.get(of_hour)
        return len(decode_list(body, kind=LiveWindow.HOUR, region="*").item_ids) if body else 0

    def answered() -> bool:
        if length() == 2 and not publishing.read_asks(0):
            publishing.ask(0, {of_hour: rows})
        return length() == rows

    job = consumer_job(log.address, views, tmp_path, tell=Told(), once=False, policy=policy)
    run(job, stopped_when(answered))
    asked = publishing.read_statuses([0])[0]
    assert asked is not None
    consume_once(log.address, views, tmp_path, policy=policy)  # the next one reads the ask too
    assert length() == rows
    append(log, 0, play("more", "item6"))
    publishing.ask(0, {})
    consume_once(log.address, views, tmp_path, policy=policy)
    assert length() == 2
    assert of_hour in publishing.changed_since(0, asked.cycle).lists


# --- batch ---


def test_a_view_is_used_once_the_merger_uses_it_and_by_the_next_consumer_too(
    log: RedisLog, views: Views, tmp_path: Path
) -> None:
    entries = fill(log)
    hour = entries[0][0].id.ms // 3_600_000
    store = ViewStore(views)
    store.write(view_of(log, "v1", hour, 0))
    consume_once(log.address, views, tmp_path)
    assert published(views, 0)[0].view is None
    views.client.set(MERGED_VIEW, "v1")
    told = consume_once(log.address, views, tmp_path)
    for number in (0, 1):
        status = published(views, number)[0]
        assert (status.view, status.frontier_hour) == ("v1", hour)
    assert told.names.count("view taken") == 1
    again = consume_once(log.address, views, tmp_path)
    assert again.names.count("view taken") == 1
    assert published(views, 0)[0].view == "v1"


def test_a_view_of_another_log_is_not_used(log: RedisLog, views: Views, tmp_path: Path) -> None:
    entries = fill(log)
    store = ViewStore(views)
    store.write(replace(view_of(log, "v1", entries[0][0].id.ms // 3_600_000, 0), log_id="another"))
    views.client.set(MERGED_VIEW, "v1")
    consume_once(log.address, views, tmp_path)
    status = published(views, 0)[0]
    assert (status.view, status.frontier_hour) == (None, None)
    require_as_straight(views, entries)
