"""How fast does one consumer count a log live, and what does a checkpoint cost?

The plays of `bench.speed_core` as entries of a log of 8 partitions in a server of its own, stamped as if they had come
at 10,000 a second; then one consumer in this process reads, decodes, counts, says its lists every second, and stores
its state every 10 s, into a views server of its own.

  python -m bench.speed_consumer --plays 600000
"""

import tempfile
import time
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Event

from bench.ingest_builds import redis_server
from bench.report import plays_asked_for, print_table, rate, say
from bench.speed_core import BATCH, Load, batches
from domain.clock import utc_now
from domain.log import Stream
from domain.rules import Rules
from domain.speed_policy import DEFAULT_SPEED_POLICY
from domain.windows import EPOCH
from ingest.hashing import partition_number
from ingest.log_clock import ReplayClock
from ingest.log_entry import Play, encode_plays
from ingest.redis_log import RedisLog
from lakeboard.live.decode import partition_numbers, play_batch
from speed_layer.consumer import ConsumerJob
from speed_layer.consumer import run as consume
from speed_layer.consumer_partition import Tools
from speed_layer.play_batch import PlayBatch
from speed_layer.snapshot import Snapshot
from speed_layer.store.connection import Views
from speed_layer.store.leases import Lease
from speed_layer.store.publishing import Publishing
from speed_layer.store.state import StateStore
from speed_layer.store.views import ViewStore

PLAYS = 600_000
_MS = timedelta(milliseconds=1)


class _Noting(StateStore):
    """Notes the bytes and seconds of each checkpoint."""

    def __init__(self, views: Views) -> None:
        super().__init__(views)
        self.done: list[tuple[int, float]] = []

    def checkpoint(self, lease: Lease, snapshot: Snapshot, *, log_id: str, complete_from_ms: int) -> int:
        began = time.monotonic()
        size = super().checkpoint(lease, snapshot, log_id=log_id, complete_from_ms=complete_from_ms)
        self.done.append((size, time.monotonic() - began))
        return size


def append_all(log_address: str, plays: int) -> ReplayClock:
    """Fill the log; return a clock that shows its end."""
    moment = EPOCH
    for batch in batches(plays, Load()):
        moment = EPOCH + int(batch.log_ms[-1]) * _MS
        with RedisLog.open(log_address, clock=ReplayClock(start=moment, began=EPOCH, speed=0.0)) as log:
            partitions = log.partitions(Stream.PLAYS)
            by_partition = _entries(batch, len(partitions))
            log.append([(partitions[number], body) for number, body in by_partition.items()])
    return ReplayClock(start=moment, began=utc_now(), speed=1.0)


def _entries(batch: PlayBatch, partitions: int) -> dict[int, bytes]:
    found: dict[int, list[Play]] = {}
    columns = (batch.id_hashes.view("int64").tolist(), batch.items, batch.regions, batch.event_times_us.tolist(),
               batch.durations_ms.tolist())  # fmt: skip
    for id_hash, item, region, us, duration in zip(*columns, strict=True):
        play = Play(event_id="", id_hash=id_hash, item_id=item, region=region, user_id=None, event_time_us=us,
                    duration_ms=duration, count=1)  # fmt: skip
        found.setdefault(partition_number(item, partitions), []).append(play)
    return {number: encode_plays(of_it, [("bench", len(of_it))]) for number, of_it in found.items()}


def run(plays: int) -> None:
    """Measure and print."""
    with (
        tempfile.TemporaryDirectory() as folder,
        redis_server() as (_, log_address),
        redis_server(durable=False) as (_, views_address),
        Views(views_address) as views,
    ):
        clock = append_all(log_address, plays)
        say(f"{plays:,} plays in the log")
        store = _Noting(views)
        tools = Tools(
            leases=store,
            lists=Publishing(views),
            decode=play_batch,
            policy=DEFAULT_SPEED_POLICY,
            rules=Rules(),
            tell=lambda event, /, **facts: None,
        )
        job = ConsumerJob(
            open_log=lambda: RedisLog.open(log_address, clock=clock),
            tools=tools,
            views=ViewStore(views),
            partition_of=lambda number: partial(partition_numbers, partitions=number),
            state_file=Path(folder) / "speed.json",
            clock=utc_now,
            once=True,
        )
        began, cpu = time.monotonic(), time.process_time()
        consume(job, Event())
        wall, cpu = time.monotonic() - began, time.process_time() - cpu
        began = time.monotonic()
        consume(job, Event())
        again = time.monotonic() - began
    largest = max(store.done)
    print_table(
        f"{plays:,} plays, {BATCH:,} in the entries of a moment",
        ["what", "measured"],
        [
            ["log to buckets, lists and checkpoints", f"{rate(plays, wall)} ({rate(plays, cpu)} of processor time)"],
            ["checkpoints of a partition", f"{len(store.done)}"],
            ["largest", f"{largest[0] / 1e6:.1f} MB in {1000 * largest[1]:.0f} ms"],
            ["a start from a checkpoint, 8 partitions, to the end", f"{again:.1f} s"],
        ],
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Read the arguments and run."""
    run(plays_asked_for(argv, __doc__, PLAYS))


if __name__ == "__main__":
    main()
