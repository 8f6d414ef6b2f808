"""Consumers over real servers, and what an uninterrupted count of the same entries says."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import numpy as np

from domain.batch_view import BatchView, RegionView
from domain.clock import Clock, utc_now
from domain.live_windows import LiveWindow
from domain.log import Entry, Partition, Stream
from domain.rules import Rules
from domain.speed_policy import DEFAULT_SPEED_POLICY
from domain.windows import EPOCH, HOUR
from ingest.log_entry import Play, encode_plays
from ingest.redis_log import RedisLog
from lakeboard.live.decode import partition_numbers, play_batch
from speed_layer.changes import ChangedList
from speed_layer.consumer import ConsumerJob, run
from speed_layer.consumer_partition import Tools
from speed_layer.consumer_ports import Stop
from speed_layer.partition import LivePartition
from speed_layer.store.connection import Views
from speed_layer.store.keys import of_field
from speed_layer.store.lists import PartitionStatus, decode_list
from speed_layer.store.publishing import Publishing
from speed_layer.store.state import StateStore
from speed_layer.store.views import ViewStore
from tests.log_entries import play

LEASE_MS = 400
PARTITIONS = {Stream.PLAYS: 2, Stream.SCORES: 1}
Said = tuple[list[tuple[str, int, int]], object, int, int]


@dataclass
class Told:
    """What a consumer told, in order."""

    events: list[tuple[str, dict[str, object]]] = field(default_factory=list)

    def __call__(self, event: str, /, **facts: object) -> None:
        self.events.append((event, facts))

    @property
    def names(self) -> list[str]:
        return [event for event, _ in self.events]


def consumer_job(
    address: str,
    views: Views,
    folder: Path,
    *,
    tell: Told,
    once: bool = True,
    lease_ms: int = LEASE_MS,
    clock: Clock = utc_now,
    **others: Any,
) -> ConsumerJob:
    """A consumer with other policy, rules or decode than usual if they are given."""
    usual: dict[str, Any] = {"decode": play_batch, "policy": DEFAULT_SPEED_POLICY, "rules": Rules()}
    tools = Tools(
        leases=StateStore(views, lease_ms=lease_ms),
        lists=Publishing(views),
        tell=tell,
        **(usual | others),
    )
    return ConsumerJob(
        open_log=lambda: RedisLog.open(address),
        tools=tools,
        views=ViewStore(views),
        partition_of=lambda number: partial(partition_numbers, partitions=number),
        state_file=folder / "run" / "speed.json",
        clock=clock,
        publish_seconds=0.05,
        checkpoint_seconds=0.2,
        once=once,
    )


def consume_once(address: str, views: Views, folder: Path, **options: Any) -> Told:
    """Count what is in the log, and say what was told."""
    told = Told()
    run(consumer_job(address, views, folder, tell=told, **options), Event())
    return told


@dataclass
class WhenTrue:
    """Ends a consumer once something holds; looks whenever the consumer has nothing to do."""

    holds: Callable[[], bool]
    ended: bool = False
    deadline: float = field(default_factory=lambda: monotonic() + 30)

    def is_set(self) -> bool:
        return self.ended

    def wait(self, timeout: float) -> object:
        assert monotonic() < self.deadline, "it never became true"
        self.ended = self.ended or self.holds()
        return Event().wait(0.0 if self.ended else min(timeout, 0.02))


def stopped_when(holds: Callable[[], bool]) -> Stop:
    return WhenTrue(holds)


def append(log: RedisLog, number: int, *plays: Play) -> Entry:
    """Append one entry to a partition and return it as a reader would find it."""
    body = encode_plays(plays, [("api", len(plays))])
    (entry_id,) = log.append([(log.partitions(Stream.PLAYS)[number], body)])
    return Entry(entry_id, body)


def published(views: Views, number: int) -> tuple[PartitionStatus, dict[tuple[LiveWindow, str], Said]]:
    """What a partition says now."""
    changed = Publishing(views).changed_since(number, -1)
    assert changed.status is not None
    lists = {of_field(name): body for name, body in changed.lists.items() if body is not None}
    return changed.status, {
        (kind, region): said(decode_list(body, kind=kind, region=region)) for (kind, region), body in lists.items()
    }


def straight(
    entries: Sequence[Entry], partition: Partition, status: PartitionStatus, rules: Rules | None = None
) -> Mapping[tuple[LiveWindow, str], Said]:
    """What a partition says that counted all entries without a break, at the moment of a status."""
    live = LivePartition(DEFAULT_SPEED_POLICY, rules or Rules())
    for entry in entries:
        live.count(play_batch([entry], partition))
    live.advance(status.as_of)
    return {(one.kind, one.region): said(one) for one in live.changed() if one.total}


def said(found: ChangedList) -> Said:
    """What a list says; not its span: one that says the same is not said again when its window slides."""
    rows = sorted(zip(found.item_ids, found.lower, found.upper, strict=True))
    return rows, found.cut, found.residual, found.total


def fill(log: RedisLog, name: str = "e", *, entries: int = 20) -> dict[int, list[Entry]]:
    """Plays of some items and regions in both partitions; every fifth is sent again."""
    found: dict[int, list[Entry]] = {0: [], 1: []}
    for number in range(entries):
        plays = [
            play(f"{name}{number}.{index}", f"item{(number * index) % 7}", region=("IN", "DE", "ZZ")[index % 3])
            for index in range(6)
        ]
        again = [play(f"{name}{number - 2}.0", "item0", region="IN")] if number % 5 == 0 and number else []
        found[number % 2].append(append(log, number % 2, *plays, *again))
    return found


def partition_of(number: int) -> Partition:
    return Partition(Stream.PLAYS, number)


def require_as_straight(views: Views, entries: dict[int, list[Entry]], rules: Rules | None = None) -> None:
    for number, of_partition in entries.items():
        status, lists = published(views, number)
        assert lists == straight(of_partition, partition_of(number), status, rules)
        assert status.position == of_partition[-1].id.version


def joined(one: dict[int, list[Entry]], other: dict[int, list[Entry]]) -> dict[int, list[Entry]]:
    return {number: [*one[number], *other[number]] for number in one}


def view_of(log: RedisLog, version: str, frontier_hour: int, offset: int) -> BatchView:
    hourly = np.zeros((1, 24), dtype=np.int64)
    hourly[0, -1] = 1000
    region = RegionView(item_ids=["batch"], hourly=hourly, residual=0, totals=hourly.sum(axis=0))
    return BatchView(
        version=version,
        release=1,
        frontier=EPOCH + frontier_hour * HOUR,
        log_id=log.log_id,
        offsets={f"{log.log_id}/{number}": offset for number in (0, 1)},
        regions={"*": region},
    )
