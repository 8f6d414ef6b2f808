"""The consumer killed again and again, while plays come in and the log is trimmed."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from threading import Event
from time import monotonic, sleep

import pytest

from domain.log import BEGINNING, LAKE_READER, Entry, Stream
from domain.windows import HOUR
from ingest.log_clock import ReplayClock
from ingest.redis_log import RedisLog
from speed_layer.consumer import run
from speed_layer.snapshot import Snapshot
from speed_layer.store.connection import Views
from speed_layer.store.leases import Lease
from speed_layer.store.lists import PartitionStatus
from speed_layer.store.publishing import Publishing
from speed_layer.store.state import StateStore
from tests.log_entries import play
from tests.speed_layer.consuming import (
    Told,
    append,
    consume_once,
    consumer_job,
    fill,
    joined,
    partition_of,
    require_as_straight,
)

pytestmark = pytest.mark.redis


def test_killed_at_any_moment_it_resumes_exactly_and_says_nothing_that_goes_back(
    log: RedisLog, views: Views, tmp_path: Path
) -> None:
    """Plays go on coming while consumers are killed, the log is trimmed as far as they let it, and a reader watches."""
    random, entries = Random(7), {0: list[Entry](), 1: list[Entry]()}
    seen: dict[int, list[PartitionStatus]] = {0: [], 1: []}
    consume_once(log.address, views, tmp_path)  # from now on the log keeps what no checkpoint holds
    for life in range(6):
        with subprocess.Popen(
            [sys.executable, "-m", "tests.speed_layer.run_consumer", log.address, views.address, str(tmp_path)]
        ) as process:
            try:
                before = len(seen[0])
                until = monotonic() + random.uniform(0.0, 0.5)
                while monotonic() < until or len(seen[0]) == before:  # it lives for a while after it said something
                    assert process.poll() is None
                    more = fill(log, f"{life}.{monotonic()}.", entries=2)
                    entries = joined(entries, more)
                    look(views, seen)
                    forget(log)
                    sleep(0.005)
            finally:
                process.kill()
    consume_once(log.address, views, tmp_path)
    look(views, seen)
    require_as_straight(views, entries)
    for number, statuses in seen.items():
        assert all(status.complete_from_ms == 0 for status in statuses)
        for one, two in pairwise(statuses):
            assert (one.cycle, one.position, one.as_of_ms) <= (two.cycle, two.position, two.as_of_ms)
            assert one.position <= two.position
            assert one.as_of_ms <= two.as_of_ms
        assert log.trim(partition_of(number)) > BEGINNING


def look(views: Views, seen: Mapping[int, list[PartitionStatus]]) -> None:
    for number, status in Publishing(views).read_statuses(list(seen)).items():
        if status is not None and (not seen[number] or seen[number][-1].cycle != status.cycle):
            seen[number].append(status)


def forget(log: RedisLog) -> None:
    log.commit_offsets(LAKE_READER, log.end_offsets(Stream.PLAYS))
    for partition in log.partitions(Stream.PLAYS):
        log.trim(partition)


class NeverStores(StateStore):
    """As if every consumer was killed before its first checkpoint."""

    def checkpoint(self, lease: Lease, snapshot: Snapshot, *, log_id: str, complete_from_ms: int) -> int:
        return 0


class Watched(Publishing):
    """Notes every status that is written."""

    def __init__(self, views: Views) -> None:
        super().__init__(views)
        self.statuses: dict[int, list[PartitionStatus]] = {0: [], 1: []}

    def publish(self, lease: Lease, status: PartitionStatus, lists: Mapping[str, bytes | None], *, whole: bool) -> None:
        super().publish(lease, status, lists, whole=whole)
        self.statuses[lease.partition].append(status)


def test_a_consumer_that_starts_again_says_nothing_before_it_is_where_the_last_one_was(
    log: RedisLog, views: Views, tmp_path: Path
) -> None:
    """It counts from the beginning, many micro-batches, and the lists that are there stay until it has caught up.

    Meanwhile the log server's clock stepped back an hour.
    """
    entries = {0: [append(log, 0, play(f"e{n}", f"item{n % 5}")) for n in range(200)]}
    job = consumer_job(log.address, views, tmp_path, tell=Told())
    lists = Watched(views)
    job = replace(job, publish_seconds=0.0, tools=replace(job.tools, leases=NeverStores(views), lists=lists))
    run(job, Event())
    before = {number: statuses[-1] for number, statuses in lists.statuses.items()}
    first = lists.statuses[0][0]
    assert first.position < before[0].position  # the first one has nothing to wait for
    entries[0].append(append(log, 0, play("more", "item1")))
    back = ReplayClock(start=log.now() - HOUR, began=log.now(), speed=1.0)

    run(replace(job, open_log=lambda: RedisLog.open(log.address, clock=back)), Event())

    for number, statuses in lists.statuses.items():
        after = statuses[statuses.index(before[number]) + 1 :]
        assert after
        assert all(status.position >= before[number].position for status in after)
        assert all(status.as_of_ms >= before[number].as_of_ms for status in after)
        assert all(one.cycle < two.cycle for one, two in pairwise(statuses))
    require_as_straight(views, entries)
